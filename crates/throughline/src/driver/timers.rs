//! Timers of a turn: a heap, and one sleep for the earliest.

use crate::clock::TurnClock;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::Pin;
use throughline_engine::{TimerId, UnixMillis};
use tokio::time::{Duration, Sleep};

/// Timers that have been set and are not due. Never removed early: the machine ignores those that it no
/// longer needs.
#[derive(Default)]
pub(super) struct TimerQueue(BinaryHeap<Reverse<(UnixMillis, TimerId)>>);

impl TimerQueue {
    pub(super) fn set(&mut self, id: TimerId, at: UnixMillis) {
        self.0.push(Reverse((at, id)));
    }

    /// Deadline of the earliest timer.
    pub(super) fn next(&self) -> Option<UnixMillis> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Timers that are due, earliest first.
    pub(super) fn take_due(&mut self, now: UnixMillis) -> Vec<TimerId> {
        let mut due = Vec::new();
        while self.next().is_some_and(|at| at <= now)
            && let Some(Reverse((_, id))) = self.0.pop()
        {
            due.push(id);
        }
        due
    }
}

/// One sleep, reset only when another timer becomes the earliest: a streaming turn polls it for every token,
/// and a reset takes a lock of the runtime.
pub(super) struct TimerSleep {
    sleep: Pin<Box<Sleep>>,
    set_to: Option<UnixMillis>,
}

impl TimerSleep {
    pub(super) fn new() -> Self {
        Self { sleep: Box::pin(tokio::time::sleep(Duration::ZERO)), set_to: None }
    }

    /// Waits for a time; without one it never returns. Cancel-safe: dropping the future leaves the alarm set.
    pub(super) async fn wait_until(&mut self, clock: TurnClock, at: Option<UnixMillis>) {
        let Some(at) = at else { return std::future::pending().await };
        if self.set_to != Some(at) {
            self.sleep.as_mut().reset(clock.instant(at));
            self.set_to = Some(at);
        }
        self.sleep.as_mut().await;
        self.set_to = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn timers_fire_in_order_and_not_early() {
        let id = |step| TimerId::Retry { step, attempt: 1 };
        let mut timers = TimerQueue::default();
        for (step, at) in [(1, 30), (2, 10), (3, 20)] {
            timers.set(id(step), at);
        }
        assert_eq!(timers.next(), Some(10));
        assert_eq!(timers.take_due(9), []);
        assert_eq!(timers.take_due(20), [id(2), id(3)]);
        assert_eq!(timers.take_due(i64::MAX), [id(1)]);
        assert_eq!(timers.next(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn timer_sleep_ends_at_its_deadline() {
        let clock = TurnClock::start();
        let start = clock.now();
        let mut alarm = TimerSleep::new();
        alarm.wait_until(clock, Some(start + 1_500)).await;
        assert_eq!(clock.now() - start, 1_500);
        alarm.wait_until(clock, Some(start)).await;
        assert_eq!(clock.now() - start, 1_500, "what has passed is due at once");
        // Who stops waiting, and who waits for something earlier, is not late.
        assert!(alarm.wait_until(clock, Some(start + 9_000)).now_or_never().is_none());
        alarm.wait_until(clock, Some(start + 2_000)).await;
        assert_eq!(clock.now() - start, 2_000);
        alarm.wait_until(clock, Some(start + 9_000)).await;
        assert_eq!(clock.now() - start, 9_000);
    }
}
