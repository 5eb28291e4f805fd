//! A clock that advances only on request, or with tokio's.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::time::Instant;

/// Milliseconds since 1970, under a test's control. Clones show the same time.
///
/// ```
/// let clock = throughline_testkit::FakeClock::at(1_763_683_200_000);
/// clock.advance(250);
/// assert_eq!(clock.now_ms(), 1_763_683_200_250);
/// ```
#[derive(Clone, Debug)]
pub struct FakeClock {
    set: Arc<AtomicI64>,
    /// Time from which tokio's time is added, if it is.
    tokio_start: Option<Instant>,
}

impl FakeClock {
    /// A clock stopped at this moment, in milliseconds since 1970.
    pub fn at(now_ms: i64) -> Self {
        Self { set: Arc::new(AtomicI64::new(now_ms)), tokio_start: None }
    }

    /// Begins at this moment and goes with `tokio::time`: under paused time, as far as the test sleeps or advances.
    pub fn with_tokio(now_ms: i64) -> Self {
        Self { tokio_start: Some(Instant::now()), ..Self::at(now_ms) }
    }

    /// The time it shows.
    pub fn now_ms(&self) -> i64 {
        let elapsed = self.tokio_start.map_or(0, |since| since.elapsed().as_millis());
        self.set.load(Ordering::Relaxed).saturating_add(i64::try_from(elapsed).unwrap_or(i64::MAX))
    }

    /// Puts it on, or back.
    pub fn advance(&self, ms: i64) {
        self.set.fetch_add(ms, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn fake_clock_follows_tokio_only_if_requested() {
        let (still, going) = (FakeClock::at(1_000), FakeClock::with_tokio(1_000));
        tokio::time::advance(Duration::from_millis(250)).await;
        let copy = going.clone();
        copy.advance(-50);
        assert_eq!((still.now_ms(), going.now_ms()), (1_000, 1_200));
    }
}
