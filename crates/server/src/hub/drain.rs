//! How the server stops: turns finish, or are handed over to whoever opens the store next. R: O2

use super::Hub;
use std::time::Duration;

/// How often is looked at what still runs.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What became of the turns that were running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Those that were still running when the time was over. They are not ended: the next start goes on with them.
    pub handed_over: usize,
}

impl Hub {
    /// Starts no more turns, gives those that run this much time, and closes their viewers, which come back elsewhere.
    /// What still runs then is stopped by the end of the process, and by nothing else: no turn gets an end that its model
    /// or user did not give it.
    pub async fn drain(&self, time: Duration) -> Drained {
        let inner = &self.0;
        inner.stopping.cancel();
        inner.tasks.close();
        // Whether in time or not, what is left says it.
        let _ = tokio::time::timeout(time, self.nothing_runs()).await;
        let handed_over = self.turns_running();
        inner.handed_over.cancel();
        Drained { handed_over }
    }

    /// Waits until all that is left are parked turns: whoever goes on with one of them does so after the next start.
    async fn nothing_runs(&self) {
        // Each turn has one task, until everything about it is kept.
        let only_parked_are_left = async {
            while self.0.tasks.len() > self.turns_parked() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            () = self.0.tasks.wait() => {}
            () = only_parked_are_left => {}
        }
    }
}
