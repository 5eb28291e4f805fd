//! The wait of a turn for its log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::{Duration, Instant};

/// Duration of a turn's pending append, for viewers of the turn: the log itself cannot report it.
#[derive(Clone, Debug)]
pub(crate) struct AppendLag {
    created: Instant,
    /// Milliseconds since `created`, plus one; 0 = no append is pending.
    pending_since_ms: Arc<AtomicU64>,
}

impl Default for AppendLag {
    fn default() -> Self {
        Self { created: Instant::now(), pending_since_ms: Arc::default() }
    }
}

impl AppendLag {
    pub(crate) fn start(&self, at: Instant) {
        let offset_ms = at.saturating_duration_since(self.created).as_millis();
        self.pending_since_ms.store(u64::try_from(offset_ms).unwrap_or(u64::MAX - 1) + 1, Ordering::Relaxed);
    }

    pub(crate) fn finish(&self) {
        self.pending_since_ms.store(0, Ordering::Relaxed);
    }

    /// `None` = no append is in flight.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        let since = self.pending_since_ms.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.created.elapsed().saturating_sub(Duration::from_millis(since)))
    }
}
