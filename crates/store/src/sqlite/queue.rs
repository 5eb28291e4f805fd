//! What waits for the writer, and when the writer takes it.
//!
//! The writer takes everything there is at once. When little happens it takes each job as it comes; when much happens
//! it lets jobs gather between commits ([`Pace`]), unless one is urgent.

use crate::log::Urgency;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

pub(super) struct Queue<J> {
    state: Mutex<State<J>>,
    wake: Condvar,
    room: Notify,
    bytes_max: usize,
}

struct State<J> {
    jobs: Vec<J>,
    bytes: usize,
    most: Urgency,
    writer: Doing,
    door: Door,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Working,
    /// Nothing to do: any job wakes it.
    Resting,
    /// Jobs gather: only an urgent one wakes it.
    Gathering,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    Open,
    Closed,
}

/// What the writer does next.
pub(super) enum Next<J> {
    Jobs(Vec<J>),
    /// Time for housekeeping; nothing else is to be done.
    Tick,
    /// No job will come any more.
    Over,
}

/// The queue has been closed.
#[derive(Debug)]
pub(super) struct Closed;

impl<J> Queue<J> {
    pub fn new(bytes_max: usize) -> Self {
        let state = State {
            jobs: Vec::new(),
            bytes: 0,
            most: Urgency::Gathers,
            writer: Doing::Working,
            door: Door::Open,
        };
        Self { state: Mutex::new(state), wake: Condvar::new(), room: Notify::new(), bytes_max }
    }

    /// Puts a job at the end. Waits while the queue is full; a job that is too large for it goes in alone.
    pub async fn push(&self, job: J, bytes: usize, urgency: Urgency) -> Result<(), Closed> {
        let mut job = Some(job);
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            // Registered before looking, so that room made in between is noticed.
            room.as_mut().enable();
            {
                let mut state = self.state();
                if state.door == Door::Closed {
                    return Err(Closed);
                }
                if state.jobs.is_empty() || state.bytes.saturating_add(bytes) <= self.bytes_max {
                    state.jobs.extend(job.take());
                    state.bytes = state.bytes.saturating_add(bytes);
                    state.most = state.most.max(urgency);
                    let wakes = match state.writer {
                        Doing::Working => false,
                        Doing::Resting => true,
                        Doing::Gathering => urgency == Urgency::AtOnce,
                    };
                    if wakes {
                        state.writer = Doing::Working;
                        drop(state);
                        self.wake.notify_one();
                    }
                    return Ok(());
                }
            }
            room.await;
        }
    }

    /// Waits for something to do. `spare` is an empty vector to gather in; `tick` is the time after which housekeeping
    /// wants to run, if it wants to.
    pub fn next(&self, spare: Vec<J>, pace: &mut Pace, tick: Option<Duration>) -> Next<J> {
        let mut state = self.state();
        loop {
            if !state.jobs.is_empty() {
                let wait = match state.most {
                    Urgency::AtOnce => Duration::ZERO,
                    Urgency::Gathers if state.door == Door::Closed => Duration::ZERO,
                    Urgency::Gathers => pace.wait(Instant::now()),
                };
                if wait.is_zero() {
                    pace.spend(Instant::now());
                    state.writer = Doing::Working;
                    state.most = Urgency::Gathers;
                    state.bytes = 0;
                    let jobs = std::mem::replace(&mut state.jobs, spare);
                    drop(state);
                    self.room.notify_waiters();
                    return Next::Jobs(jobs);
                }
                state.writer = Doing::Gathering;
                state = self.wait(state, wait).0;
                continue;
            }
            if state.door == Door::Closed {
                return Next::Over;
            }
            state.writer = Doing::Resting;
            match tick {
                None => state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(tick) => {
                    let timed_out;
                    (state, timed_out) = self.wait(state, tick);
                    if timed_out && state.jobs.is_empty() && state.door == Door::Open {
                        state.writer = Doing::Working;
                        return Next::Tick;
                    }
                }
            }
        }
    }

    /// Jobs that are in are done; no more come in.
    pub fn close(&self) {
        self.state().door = Door::Closed;
        self.wake.notify_one();
        self.room.notify_waiters();
    }

    /// Jobs that wait, and their bytes.
    pub fn depth(&self) -> (usize, usize) {
        let state = self.state();
        (state.jobs.len(), state.bytes)
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<J>>, time: Duration) -> (MutexGuard<'a, State<J>>, bool) {
        let (state, timeout) = self.wake.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner);
        (state, timeout.timed_out())
    }
}

/// How often commits that nobody waits for may follow each other: `burst` at once, then one each `interval`.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    burst: Duration,
    /// When the allowance would be whole again.
    whole_at: Instant,
}

impl Pace {
    pub fn new(commits_per_second: u32, burst: u32, now: Instant) -> Self {
        let interval = Duration::from_secs(1) / commits_per_second.max(1);
        Self { interval, burst: interval * burst.saturating_sub(1), whole_at: now }
    }

    fn wait(&self, now: Instant) -> Duration {
        self.whole_at.saturating_duration_since(now).saturating_sub(self.burst)
    }

    fn spend(&mut self, now: Instant) {
        // An urgent commit may overdraw, but not without end.
        let most = now + self.burst + self.interval;
        self.whole_at = (self.whole_at.max(now) + self.interval).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R: R2 `commits_per_second_max`, `commit_burst`
    #[test]
    fn a_burst_passes_and_then_commits_keep_their_distance() {
        let start = Instant::now();
        let mut pace = Pace::new(500, 4, start);
        for _ in 0..4 {
            assert_eq!(pace.wait(start), Duration::ZERO);
            pace.spend(start);
        }
        assert_eq!(pace.wait(start), Duration::from_millis(2));
        let later = start + Duration::from_millis(2);
        assert_eq!(pace.wait(later), Duration::ZERO);
        pace.spend(later);
        assert_eq!(pace.wait(later), Duration::from_millis(2));
        // Urgent ones do not wait and do not make the others wait for more than one interval.
        (0..100).for_each(|_| pace.spend(later));
        assert_eq!(pace.wait(later), Duration::from_millis(2));
        // A quiet time gives the whole burst back, and no more.
        let quiet = later + Duration::from_secs(9);
        for _ in 0..4 {
            assert_eq!(pace.wait(quiet), Duration::ZERO);
            pace.spend(quiet);
        }
        assert_eq!(pace.wait(quiet), Duration::from_millis(2));
    }

    // R: R2 `queue_bytes_max`
    #[tokio::test]
    async fn a_full_queue_makes_the_next_job_wait_outside() {
        let queue = Queue::new(10);
        let mut pace = Pace::new(1, 9, Instant::now());
        queue.push("large", 99, Urgency::Gathers).await.unwrap();
        let outside = queue.push("next", 1, Urgency::Gathers);
        tokio::pin!(outside);
        assert!(futures_util::poll!(outside.as_mut()).is_pending(), "there is no room");
        assert!(matches!(queue.next(Vec::new(), &mut pace, None), Next::Jobs(jobs) if jobs == ["large"]));
        outside.await.unwrap();
        queue.close();
        assert!(queue.push("late", 1, Urgency::AtOnce).await.is_err());
        assert!(matches!(queue.next(Vec::new(), &mut pace, None), Next::Jobs(jobs) if jobs == ["next"]));
        assert!(matches!(queue.next(Vec::new(), &mut pace, None), Next::Over));
    }
}
