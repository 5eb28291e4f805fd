//! The time of a turn.

use tokio::time::{Duration, Instant};

/// Milliseconds since 1970 that never jump: read from the system once, then counted by the monotonic clock, so that a
/// corrected system time moves no timer and no duration of a running turn. Follows tokio's virtual time in tests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnClock {
    started: Instant,
    started_ms: i64,
}

impl TurnClock {
    pub(crate) fn start() -> Self {
        let since_1970 =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self {
            started: Instant::now(),
            started_ms: i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX / 2),
        }
    }

    /// The clock of a turn whose log ends at this time, perhaps written by a clock that was ahead: time in a log never goes back,
    /// and a timer that is set from its end is as long as it should be.
    pub(crate) fn no_earlier_than(self, ms: i64) -> Self {
        let lag_ms = ms.saturating_sub(self.now()).max(0);
        Self { started_ms: self.started_ms.saturating_add(lag_ms), ..self }
    }

    pub(crate) fn now(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX / 2);
        self.started_ms.saturating_add(elapsed)
    }

    /// The instant of a time; now if it has passed, at most one day from now (the timer is then set again).
    pub(crate) fn instant(&self, at_ms: i64) -> Instant {
        let from_start = u64::try_from(at_ms.saturating_sub(self.started_ms)).unwrap_or(0);
        let latest = self.started.elapsed() + Duration::from_secs(86_400);
        self.started + Duration::from_millis(from_start).min(latest)
    }
}
