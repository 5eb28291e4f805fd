//! Graceful shutdown: turns finish, or are handed over to the next process that opens the store.

use super::TurnManager;
use std::time::Duration;

/// Interval for checking running turns.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Result of draining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainSummary {
    /// Number of turns that were still running at the end of the drain. They are not ended: the next start
    /// resumes them.
    pub handed_over: usize,
}

impl TurnManager {
    /// Starts no more turns, gives running ones this much time, and closes their viewers, which reconnect elsewhere. A
    /// turn that still runs then is stopped only by the end of the process: no turn gets an end that its model or user
    /// did not give it.
    pub async fn drain(&self, time: Duration) -> DrainSummary {
        let inner = &self.0;
        inner.stopping.cancel();
        inner.tasks.close();
        // The remaining turns are counted below, also after a timeout.
        let _ = tokio::time::timeout(time, self.wait_until_idle()).await;
        let handed_over = self.turns_running();
        inner.handed_over.cancel();
        DrainSummary { handed_over }
    }

    /// Waits until only parked turns are left: they are continued after the next start.
    async fn wait_until_idle(&self) {
        // Each turn has one task, until all its data are stored.
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
