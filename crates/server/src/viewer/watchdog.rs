//! Disconnects viewers that do not read: one that lags by more than a number of bytes or a time loses its
//! connection with a reset, so that the kernel frees its memory. It loses no event: it reconnects with its
//! last number.
//!
//! A stream that hyper does not poll cannot detect this itself, so one task watches all of them.

#[cfg(test)]
mod tests;

use crate::net::ConnectionCanceller;
use crate::telemetry::TelemetryCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline_engine::TurnId;
use throughline_store::Log;
use tokio::time::Instant;

/// Interval for checking viewers.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Time without progress after which the lag of a viewer is measured.
const SUSPECT_AFTER: Duration = Duration::from_millis(1_000);
/// Records per read when measuring the lag in bytes.
const RECORDS_PER_READ: usize = 1_024;

/// Looks after all viewers of a server.
pub(crate) struct ViewerWatchdog {
    shared: Arc<WatchdogShared>,
    started: AtomicBool,
}

struct WatchdogShared {
    log: Arc<dyn Log>,
    watched: Mutex<WatchedClients>,
    began: Instant,
    bytes_max: u64,
    time_max: Duration,
    telemetry: TelemetryCell,
}

#[derive(Default)]
struct WatchedClients {
    viewers: Vec<Weak<ViewerProgress>>,
    /// Connections by address, so that each is listed once however many viewers it has had.
    connections: HashMap<usize, Weak<ConnectionCanceller>>,
}

/// Progress of one viewer, as reported by its stream.
pub(crate) struct ViewerProgress {
    turn: TurnId,
    began: Instant,
    /// Time of the oldest event not read, in milliseconds since `began` plus one; 0 = it waits for more.
    given_at: AtomicU64,
    /// The last event that it was given.
    after: AtomicU64,
    /// Bytes that its connection had taken at the last check, and the time of the last change in milliseconds since
    /// `began`: a slow client may need time for a large event.
    bytes_taken: AtomicU64,
    taken_at: AtomicU64,
    canceller: Arc<ConnectionCanceller>,
}

impl ViewerProgress {
    /// Marks that the viewer has read everything, and waits for more.
    pub(crate) fn mark_taken(&self) {
        self.given_at.store(0, Ordering::Relaxed);
    }

    /// Marks that the viewer was given the events up to this one.
    pub(crate) fn mark_given(&self, after: u64) {
        self.after.store(after, Ordering::Relaxed);
        self.given_at.store(self.now().saturating_add(1), Ordering::Relaxed);
    }

    /// Milliseconds since `began`.
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.canceller.is_cancelled()
    }

    /// Time for which the viewer has read nothing. Called by the watchdog only.
    fn stalled_for(&self) -> Option<Duration> {
        let (now, bytes_taken) = (self.now(), self.canceller.bytes_written());
        if self.bytes_taken.swap(bytes_taken, Ordering::Relaxed) != bytes_taken {
            self.taken_at.store(now, Ordering::Relaxed);
        }
        let given_at = self.given_at.load(Ordering::Relaxed).checked_sub(1)?;
        let since = given_at.max(self.taken_at.load(Ordering::Relaxed));
        Some(Duration::from_millis(now.saturating_sub(since)))
    }
}

impl ViewerWatchdog {
    pub(crate) fn new(log: Arc<dyn Log>, limits: &ServerLimits, telemetry: TelemetryCell) -> Self {
        let shared = WatchdogShared {
            log,
            watched: Mutex::default(),
            began: Instant::now(),
            bytes_max: limits.viewer_backlog_bytes_max,
            time_max: Duration::from_millis(limits.viewer_stall_ms_max),
            telemetry,
        };
        Self { shared: Arc::new(shared), started: AtomicBool::new(false) }
    }

    /// Looks after one more viewer, until the meter is dropped. Needs a runtime.
    pub(crate) fn watch(
        &self,
        turn: TurnId,
        after: u64,
        canceller: Arc<ConnectionCanceller>,
    ) -> Arc<ViewerProgress> {
        // What the viewer's stream has handed over is out of its sight.
        self.watch_connection(&canceller);
        let began = self.shared.began;
        let (given_at, after) = (AtomicU64::new(0), AtomicU64::new(after));
        let (bytes_taken, taken_at) = (AtomicU64::new(canceller.bytes_written()), AtomicU64::new(0));
        let viewer =
            Arc::new(ViewerProgress { turn, began, given_at, after, bytes_taken, taken_at, canceller });
        self.shared.watched().viewers.push(Arc::downgrade(&viewer));
        viewer
    }

    /// Looks after what waits to be written to a client, until the next request on its connection. Needs a runtime.
    pub(crate) fn watch_connection(&self, canceller: &Arc<ConnectionCanceller>) {
        canceller.watch_writes();
        let address = Arc::as_ptr(canceller).addr();
        self.shared.watched().connections.insert(address, Arc::downgrade(canceller));
        if !self.started.swap(true, Ordering::AcqRel) {
            tokio::spawn(run(Arc::downgrade(&self.shared)));
        }
    }
}

impl WatchdogShared {
    fn watched(&self) -> MutexGuard<'_, WatchedClients> {
        // Every change is one call on a list.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts a connection, and counts it once.
    fn cut(&self, canceller: &ConnectionCanceller) {
        if canceller.cancel()
            && let Some(telemetry) = self.telemetry.get()
        {
            telemetry.meter().dropped();
        }
    }

    fn check_connection(&self, canceller: &ConnectionCanceller) {
        let pending = canceller.write_pending_for().filter(|pending| *pending > self.time_max);
        if let Some(pending) = pending.filter(|_| !canceller.is_cancelled()) {
            tracing::info!(
                untaken_ms = pending.as_millis(),
                "closing the connection of a client that does not read"
            );
            self.cut(canceller);
        }
    }

    async fn check_viewer(&self, viewer: &ViewerProgress) {
        let Some(stalled) = viewer.stalled_for().filter(|_| !viewer.is_cancelled()) else { return };
        let is_too_slow =
            stalled > self.time_max || (stalled > SUSPECT_AFTER && self.exceeds_lag(viewer).await);
        if is_too_slow {
            tracing::info!(
                turn_id = viewer.turn.as_str(),
                untaken_ms = stalled.as_millis(),
                "disconnecting a viewer that does not read"
            );
            self.cut(&viewer.canceller);
        }
    }

    async fn exceeds_lag(&self, viewer: &ViewerProgress) -> bool {
        let (mut after, mut bytes) = (viewer.after.load(Ordering::Relaxed), 0u64);
        while bytes <= self.bytes_max {
            let Ok(records) = self.log.read(viewer.turn.as_str(), after, RECORDS_PER_READ).await else {
                return false;
            };
            let Some(last) = records.last() else { return false };
            after = last.seq;
            bytes += records.iter().map(|record| record.payload.len() as u64).sum::<u64>();
        }
        true
    }
}

/// Checks all connections and viewers periodically, as long as the server exists.
async fn run(shared: Weak<WatchdogShared>) {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        let Some(shared) = shared.upgrade() else { return };
        let viewers: Vec<Arc<ViewerProgress>> = {
            let mut watched = shared.watched();
            watched.connections.retain(|_, canceller| match canceller.upgrade() {
                Some(canceller) if canceller.is_watched() => {
                    shared.check_connection(&canceller);
                    true
                }
                _ => false,
            });
            watched.viewers.retain(|viewer| viewer.strong_count() > 0);
            watched.viewers.iter().filter_map(Weak::upgrade).collect()
        };
        for viewer in viewers {
            shared.check_viewer(&viewer).await;
        }
    }
}
