//! Graceful shutdown: turns finish, or are handed over to the next process that opens the store.

use super::Hub;
use std::time::Duration;

/// Interval for checking running turns.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Result of draining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainSummary {
    /// Those that were still running when the time was over. They are not ended: the next start goes on with them.
    pub handed_over: usize,
}

impl Hub {
    /// Starts no more turns, gives running ones this much time, and closes their viewers, which reconnect elsewhere. A
    /// turn that still runs then is stopped only by the end of the process: no turn gets an end that its model or user
    /// did not give it.
    pub async fn drain(&self, time: Duration) -> DrainSummary {
        let inner = &self.0;
        inner.stopping.cancel();
        inner.tasks.close();
        // Whether in time or not, what is left says it.
        let _ = tokio::time::timeout(time, self.wait_until_idle()).await;
        let handed_over = self.turns_running();
        inner.handed_over.cancel();
        DrainSummary { handed_over }
    }

    /// Waits until all that is left are parked turns: whoever goes on with one of them does so after the next start.
    async fn wait_until_idle(&self) {
        // Each turn has one task, until everything about it is kept.
        let idle = async {
            while self.0.tasks.len() > self.parked_count() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            () = self.0.tasks.wait() => {}
            () = idle => {}
        }
    }
}
