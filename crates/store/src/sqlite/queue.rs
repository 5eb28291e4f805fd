//! Queue of the writer, and the pace at which it is emptied.
//!
//! The writer takes all waiting jobs together. Under light load it takes each job as it comes; under heavy
//! load it lets jobs accumulate between commits ([`CommitPacer`]), unless one is urgent.

use crate::log::AppendUrgency;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

pub(super) struct JobQueue<J> {
    state: Mutex<QueueState<J>>,
    wake: Condvar,
    room: Notify,
    bytes_max: usize,
}

struct QueueState<J> {
    jobs: Vec<J>,
    bytes: usize,
    max_urgency: AppendUrgency,
    activity: WriterActivity,
    status: QueueStatus,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WriterActivity {
    Working,
    /// No work: any job wakes the writer.
    Idle,
    /// Jobs gather: only an urgent one wakes it.
    Batching,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QueueStatus {
    Open,
    Closed,
}

/// Next step of the writer.
pub(super) enum NextWork<J> {
    Jobs(Vec<J>),
    /// Time for housekeeping; there is no other work.
    Tick,
    /// No job will come any more.
    Closed,
}

/// The queue has been closed.
#[derive(Debug)]
pub(super) struct QueueClosed;

impl<J> JobQueue<J> {
    pub(super) fn new(bytes_max: usize) -> Self {
        let state = QueueState {
            jobs: Vec::new(),
            bytes: 0,
            max_urgency: AppendUrgency::Batched,
            activity: WriterActivity::Working,
            status: QueueStatus::Open,
        };
        Self { state: Mutex::new(state), wake: Condvar::new(), room: Notify::new(), bytes_max }
    }

    /// Puts a job at the end. Waits while the queue is full; a job that is too large for it goes in alone.
    pub(super) async fn push(&self, job: J, bytes: usize, urgency: AppendUrgency) -> Result<(), QueueClosed> {
        let mut job = Some(job);
        loop {
            let space_freed = self.room.notified();
            tokio::pin!(space_freed);
            // Registered before looking, so that room made in between is noticed.
            space_freed.as_mut().enable();
            {
                let mut state = self.state();
                if state.status == QueueStatus::Closed {
                    return Err(QueueClosed);
                }
                if state.jobs.is_empty() || state.bytes.saturating_add(bytes) <= self.bytes_max {
                    state.jobs.extend(job.take());
                    state.bytes = state.bytes.saturating_add(bytes);
                    state.max_urgency = state.max_urgency.max(urgency);
                    let wakes = match state.activity {
                        WriterActivity::Working => false,
                        WriterActivity::Idle => true,
                        WriterActivity::Batching => urgency == AppendUrgency::Immediate,
                    };
                    if wakes {
                        state.activity = WriterActivity::Working;
                        drop(state);
                        self.wake.notify_one();
                    }
                    return Ok(());
                }
            }
            space_freed.await;
        }
    }

    /// Waits for something to do. `spare` is an empty vector to gather in; `tick` is the time after which housekeeping
    /// wants to run, if it wants to.
    pub(super) fn next(&self, spare: Vec<J>, pacer: &mut CommitPacer, tick: Option<Duration>) -> NextWork<J> {
        let mut state = self.state();
        loop {
            if !state.jobs.is_empty() {
                let wait = match state.max_urgency {
                    AppendUrgency::Immediate => Duration::ZERO,
                    AppendUrgency::Batched if state.status == QueueStatus::Closed => Duration::ZERO,
                    AppendUrgency::Batched => pacer.wait(Instant::now()),
                };
                if wait.is_zero() {
                    pacer.spend(Instant::now());
                    state.activity = WriterActivity::Working;
                    state.max_urgency = AppendUrgency::Batched;
                    state.bytes = 0;
                    let jobs = std::mem::replace(&mut state.jobs, spare);
                    drop(state);
                    self.room.notify_waiters();
                    return NextWork::Jobs(jobs);
                }
                state.activity = WriterActivity::Batching;
                state = self.wait(state, wait).0;
                continue;
            }
            if state.status == QueueStatus::Closed {
                return NextWork::Closed;
            }
            state.activity = WriterActivity::Idle;
            match tick {
                None => state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(tick) => {
                    let timed_out;
                    (state, timed_out) = self.wait(state, tick);
                    if timed_out && state.jobs.is_empty() && state.status == QueueStatus::Open {
                        state.activity = WriterActivity::Working;
                        return NextWork::Tick;
                    }
                }
            }
        }
    }

    /// Jobs that are in are done; no more come in.
    pub(super) fn close(&self) {
        self.state().status = QueueStatus::Closed;
        self.wake.notify_one();
        self.room.notify_waiters();
    }

    /// Jobs that wait, and their bytes.
    pub(super) fn depth(&self) -> (usize, usize) {
        let state = self.state();
        (state.jobs.len(), state.bytes)
    }

    fn state(&self) -> MutexGuard<'_, QueueState<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, QueueState<J>>,
        time: Duration,
    ) -> (MutexGuard<'a, QueueState<J>>, bool) {
        let (state, timeout) = self.wake.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner);
        (state, timeout.timed_out())
    }
}

/// Rate of commits that no caller waits for: `burst` immediately, then one each `interval`.
#[derive(Debug)]
pub(super) struct CommitPacer {
    interval: Duration,
    burst: Duration,
    /// When the allowance would be whole again.
    refilled_at: Instant,
}

impl CommitPacer {
    pub(super) fn new(commits_per_second: u32, burst: u32, now: Instant) -> Self {
        let interval = Duration::from_secs(1) / commits_per_second.max(1);
        Self { interval, burst: interval * burst.saturating_sub(1), refilled_at: now }
    }

    fn wait(&self, now: Instant) -> Duration {
        self.refilled_at.saturating_duration_since(now).saturating_sub(self.burst)
    }

    fn spend(&mut self, now: Instant) {
        // An urgent commit may overdraw, but not without end.
        let limit = now + self.burst + self.interval;
        self.refilled_at = (self.refilled_at.max(now) + self.interval).min(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Limits: `commits_per_second_max`, `commit_burst`.
    #[test]
    fn commits_after_a_burst_are_paced() {
        let start = Instant::now();
        let mut pacer = CommitPacer::new(500, 4, start);
        for _ in 0..4 {
            assert_eq!(pacer.wait(start), Duration::ZERO);
            pacer.spend(start);
        }
        assert_eq!(pacer.wait(start), Duration::from_millis(2));
        let later = start + Duration::from_millis(2);
        assert_eq!(pacer.wait(later), Duration::ZERO);
        pacer.spend(later);
        assert_eq!(pacer.wait(later), Duration::from_millis(2));
        // Urgent ones do not wait and do not make the others wait for more than one interval.
        (0..100).for_each(|_| pacer.spend(later));
        assert_eq!(pacer.wait(later), Duration::from_millis(2));
        // A quiet time gives the whole burst back, and no more.
        let quiet = later + Duration::from_secs(9);
        for _ in 0..4 {
            assert_eq!(pacer.wait(quiet), Duration::ZERO);
            pacer.spend(quiet);
        }
        assert_eq!(pacer.wait(quiet), Duration::from_millis(2));
    }

    // Limit: `queue_bytes_max`.
    #[tokio::test]
    async fn push_waits_while_the_queue_is_full() {
        let queue = JobQueue::new(10);
        let mut pacer = CommitPacer::new(1, 9, Instant::now());
        queue.push("large", 99, AppendUrgency::Batched).await.unwrap();
        let outside = queue.push("next", 1, AppendUrgency::Batched);
        tokio::pin!(outside);
        assert!(futures_util::poll!(outside.as_mut()).is_pending(), "there is no room");
        assert!(
            matches!(queue.next(Vec::new(), &mut pacer, None), NextWork::Jobs(jobs) if jobs == ["large"])
        );
        outside.await.unwrap();
        queue.close();
        assert!(queue.push("late", 1, AppendUrgency::Immediate).await.is_err());
        assert!(matches!(queue.next(Vec::new(), &mut pacer, None), NextWork::Jobs(jobs) if jobs == ["next"]));
        assert!(matches!(queue.next(Vec::new(), &mut pacer, None), NextWork::Closed));
    }
}
