//! Viewers that take nothing are cut: one that is more than so many bytes or so long behind loses its connection with a
//! reset, so that the kernel gives its memory back. It loses no event: it comes back with the last number that it has.
//!
//! A stream that hyper does not poll cannot notice anything itself, so one task looks after all of them.

use crate::hub::Measured;
use crate::net::{Cut, Tell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline_engine::TurnId;
use throughline_store::Log;
use tokio::time::Instant;

/// How often viewers are looked at.
const EVERY: Duration = Duration::from_millis(500);
/// A viewer that has not taken something for this long is asked how far it is behind.
const SUSPECT_AFTER: Duration = Duration::from_millis(1_000);
/// Records read at once to find out how many bytes a viewer is behind.
const RECORDS_PER_READ: usize = 1_024;

/// Looks after all viewers of a server.
pub struct Watchdog {
    shared: Arc<Shared>,
    started: AtomicBool,
}

struct Shared {
    log: Arc<dyn Log>,
    meters: Mutex<Vec<Weak<Meter>>>,
    began: Instant,
    bytes_max: u64,
    time_max: Duration,
    /// Counts a viewer that is cut, here or by its connection.
    counts: Tell,
}

/// What one viewer has taken, as its stream tells it.
pub struct Meter {
    turn: TurnId,
    began: Instant,
    /// When something was given that has not been taken, in milliseconds since `began` plus one; 0 = it waits for more.
    gave_at: AtomicU64,
    /// The last event that it was given.
    after: AtomicU64,
    /// What its connection had taken when it was last looked at, and when that was less, in milliseconds since `began`: a
    /// large event may take a slow client its time.
    taken: AtomicU64,
    took_at: AtomicU64,
    cut: Arc<Cut>,
}

impl Meter {
    /// It has taken what it was given, and asks for more.
    pub fn asks(&self) {
        self.gave_at.store(0, Ordering::Relaxed);
    }

    /// It was given the events up to this one.
    pub fn given(&self, after: u64) {
        self.after.store(after, Ordering::Relaxed);
        self.gave_at.store(self.now().saturating_add(1), Ordering::Relaxed);
    }

    /// Milliseconds since `began`.
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether its connection has been cut.
    pub fn is_cut(&self) -> bool {
        self.cut.is_cut()
    }

    /// For how long it has taken nothing of what it was given. Asked by the watchdog alone.
    fn untaken_for(&self) -> Option<Duration> {
        let (now, taken) = (self.now(), self.cut.taken());
        if self.taken.swap(taken, Ordering::Relaxed) != taken {
            self.took_at.store(now, Ordering::Relaxed);
        }
        let gave_at = self.gave_at.load(Ordering::Relaxed).checked_sub(1)?;
        let since = gave_at.max(self.took_at.load(Ordering::Relaxed));
        Some(Duration::from_millis(now.saturating_sub(since)))
    }
}

impl Watchdog {
    pub(crate) fn new(log: Arc<dyn Log>, limits: &ServerLimits, telemetry: Measured) -> Self {
        let shared = Shared {
            log,
            meters: Mutex::default(),
            began: Instant::now(),
            bytes_max: limits.behind_bytes_max,
            time_max: Duration::from_millis(limits.behind_ms_max),
            counts: Tell::new(move || {
                if let Some(telemetry) = telemetry.get() {
                    telemetry.meter().dropped();
                }
            }),
        };
        Self { shared: Arc::new(shared), started: AtomicBool::new(false) }
    }

    /// Looks after one more viewer, until the meter is dropped. Needs a runtime.
    pub fn watch(&self, turn: TurnId, after: u64, cut: Arc<Cut>) -> Arc<Meter> {
        // What the viewer's stream has handed over is out of its sight: the connection looks after that.
        cut.watch_writing(&self.shared.counts);
        let began = self.shared.began;
        let (gave_at, after) = (AtomicU64::new(0), AtomicU64::new(after));
        let (taken, took_at) = (AtomicU64::new(cut.taken()), AtomicU64::new(0));
        let meter = Arc::new(Meter { turn, began, gave_at, after, taken, took_at, cut });
        self.shared.meters().push(Arc::downgrade(&meter));
        if !self.started.swap(true, Ordering::AcqRel) {
            tokio::spawn(look_after(Arc::downgrade(&self.shared)));
        }
        meter
    }
}

impl Shared {
    fn meters(&self) -> MutexGuard<'_, Vec<Weak<Meter>>> {
        // Every change is one call on the list.
        self.meters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn look_at(&self, meter: &Meter) {
        let Some(untaken) = meter.untaken_for().filter(|_| !meter.is_cut()) else { return };
        let too_slow =
            untaken > self.time_max || (untaken > SUSPECT_AFTER && self.is_too_far_behind(meter).await);
        if too_slow {
            tracing::info!(
                turn_id = meter.turn.as_str(),
                untaken_ms = untaken.as_millis(),
                "a viewer that takes nothing is cut"
            );
            meter.cut.too_slow();
        }
    }

    async fn is_too_far_behind(&self, meter: &Meter) -> bool {
        let (mut after, mut bytes) = (meter.after.load(Ordering::Relaxed), 0u64);
        while bytes <= self.bytes_max {
            let Ok(records) = self.log.read(meter.turn.as_str(), after, RECORDS_PER_READ).await else {
                return false;
            };
            let Some(last) = records.last() else { return false };
            after = last.seq;
            bytes += records.iter().map(|record| record.payload.len() as u64).sum::<u64>();
        }
        true
    }
}

/// Looks at all viewers again and again, for as long as the server is there.
async fn look_after(shared: Weak<Shared>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        let meters: Vec<Arc<Meter>> = {
            let mut meters = shared.meters();
            meters.retain(|meter| meter.strong_count() > 0);
            meters.iter().filter_map(Weak::upgrade).collect()
        };
        for meter in meters {
            shared.look_at(&meter).await;
        }
    }
}
