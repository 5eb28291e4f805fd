//! Merging of the deltas of ended turns: later readers need the text and not its timing.

use super::TurnManager;
use crate::viewer::merge_deltas;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::TurnId;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;

/// Delay between the end of a turn and the merging of its deltas. Its viewers have reached the end by then: a cursor in
/// the middle of merged events gets a snapshot instead.
pub const COMPACT_AFTER: Duration = Duration::from_secs(60);

/// Turns that wait to be merged, in the order of their ends.
pub(super) type CompactionQueue = UnboundedSender<(Instant, TurnId)>;

impl TurnManager {
    /// Merges a turn after a delay. If the server stops before, the turn stays as it is, which does no harm.
    pub(super) fn merge_later(&self, turn: TurnId) {
        let Some(after) = self.0.merge_after else { return };
        // One task for all: an entry is an id and a time, and after a busy minute the turns are not merged
        // all at the same time.
        let queue = self.0.compaction_queue.get_or_init(|| self.spawn_compactor());
        // The receiver is closed only when the server stops.
        let _ = queue.send((Instant::now() + after, turn));
    }

    fn spawn_compactor(&self) -> CompactionQueue {
        let (queue, mut turns) = unbounded_channel::<(Instant, TurnId)>();
        let (log, stopped) = (self.0.log.clone(), self.0.handed_over.clone());
        tokio::spawn(async move {
            while let Some((at, turn)) = turns.recv().await {
                tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = stopped.cancelled() => return,
                }
                if let Err(error) = log.compact(turn.as_str(), Arc::new(merge_deltas)).await {
                    tracing::warn!(%error, turn_id = turn.as_str(), "cannot merge the deltas of a turn");
                }
            }
        });
        queue
    }
}
