//! Time limits of a model call, in total and between pieces.

use super::{Upstream, UpstreamTimeouts, failure};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use throughline_engine::{FailureKind, UpstreamFailure};
use throughline_wire::TransferMode;
use tokio::time::{Instant, Sleep, sleep_until};

/// Deadlines of a call.
pub(super) struct CallDeadlines {
    pub(super) first_byte: Instant,
    total: Instant,
    timeouts: UpstreamTimeouts,
    /// Kind of a failure to begin in time.
    silence: FailureKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitPhase {
    FirstByte,
    NextChunk,
}

impl CallDeadlines {
    /// Deadlines of an attempt that begins now, of a call that ends at `total`.
    pub(super) fn new(upstream: &Upstream, total: Instant) -> Self {
        Self::of_transfer(upstream, upstream.transfer, total)
    }

    pub(super) fn of_transfer(upstream: &Upstream, transfer: TransferMode, total: Instant) -> Self {
        let (now, timeouts) = (Instant::now(), upstream.time_limits());
        let silence = if upstream.is_on_own_network() {
            FailureKind::PromptTimeout
        } else {
            FailureKind::FirstByteTimeout
        };
        let first_byte = match transfer {
            TransferMode::Stream => total.min(now + Duration::from_millis(timeouts.first_byte_ms)),
            TransferMode::Whole => total,
        };
        Self { first_byte, total, timeouts, silence }
    }

    /// # Errors
    /// The time was over before the try began: its wait was too long.
    pub(super) fn check_remaining(&self) -> Result<(), UpstreamFailure> {
        if Instant::now() < self.total { Ok(()) } else { Err(self.expired(WaitPhase::FirstByte)) }
    }

    pub(super) fn next(&self, phase: WaitPhase) -> Instant {
        match phase {
            WaitPhase::FirstByte => self.first_byte,
            WaitPhase::NextChunk => {
                self.total.min(Instant::now() + Duration::from_millis(self.timeouts.idle_ms))
            }
        }
    }

    /// The failure for the limit that has run out.
    pub(super) fn expired(&self, phase: WaitPhase) -> UpstreamFailure {
        let timeouts = &self.timeouts;
        if Instant::now() >= self.total {
            let message = format!(
                "the call took longer than {} ms including all attempts (total_ms)",
                timeouts.total_ms
            );
            return failure::without_status(FailureKind::TotalTimeout, message);
        }
        match phase {
            WaitPhase::FirstByte => failure::without_status(
                self.silence,
                format!("no response within {} ms (first_byte_ms)", timeouts.first_byte_ms),
            ),
            WaitPhase::NextChunk => failure::without_status(
                FailureKind::IdleTimeout,
                format!("no data for {} ms (idle_ms)", timeouts.idle_ms),
            ),
        }
    }
}

/// One timer for all pieces of a reply. It is reset only when it fires too early or would fire too late: a
/// reset takes a lock of the runtime, and a piece arrives with every token.
pub(super) struct DeadlineSleep(Pin<Box<Sleep>>);

/// The time was over.
pub(super) struct DeadlineElapsed;

impl DeadlineSleep {
    pub(super) fn new(limits: &CallDeadlines) -> Self {
        Self(Box::pin(sleep_until(limits.first_byte)))
    }

    /// The future's output, if it is ready by then.
    pub(super) async fn within<F: Future>(
        &mut self,
        deadline: Instant,
        future: F,
    ) -> Result<F::Output, DeadlineElapsed> {
        let (mut future, sleep) = (pin!(future), &mut self.0);
        std::future::poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            if sleep.deadline() > deadline {
                sleep.as_mut().reset(deadline);
            }
            while sleep.as_mut().poll(cx).is_ready() {
                if Instant::now() >= deadline {
                    return Poll::Ready(Err(DeadlineElapsed));
                }
                sleep.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn deadline_sleep_follows_each_new_deadline() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut patience = DeadlineSleep(Box::pin(sleep_until(after(60_000))));
        // Sooner than it was set to.
        assert!(patience.within(after(1_000), std::future::pending::<()>()).await.is_err());
        assert_eq!(start.elapsed(), Duration::from_millis(1_000));
        // What comes in time is in time, and puts it off.
        assert!(matches!(patience.within(after(2_000), async { 7 }).await, Ok(7)));
        assert!(patience.within(after(9_000), std::future::pending::<()>()).await.is_err());
        assert_eq!(start.elapsed(), Duration::from_millis(9_000));
        // A passed deadline fails immediately, and a value that is ready is still returned.
        assert!(patience.within(after(9_000), std::future::pending::<()>()).await.is_err());
        assert!(patience.within(after(9_000), async {}).await.is_ok());
        assert_eq!(start.elapsed(), Duration::from_millis(9_000));
    }
}
