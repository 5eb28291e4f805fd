//! The deltas of a turn that has ended become few: who reads it later wants the text and not the pace at which it came. R: S1

use super::Hub;
use crate::viewer::merge_deltas;
use std::sync::Arc;
use std::time::Duration;
use throughline_engine::TurnId;

/// How long after its end a turn is merged, if it is at all. Whoever looked at it is at its end by then: a cursor in the middle
/// of what was merged gets a snapshot instead of events.
pub const MERGE_AFTER: Duration = Duration::from_secs(60);

impl Hub {
    /// Merges a turn in a while. If the server stops before, the turn stays as it is, which is as good.
    pub(super) fn merge_later(&self, turn: TurnId) {
        let Some(after) = self.0.merge_after else { return };
        let hub = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(after) => {}
                () = hub.0.handed_over.cancelled() => return,
            }
            if let Err(error) = hub.0.log.compact(turn.as_str(), Arc::new(merge_deltas)).await {
                tracing::warn!(%error, turn_id = turn.as_str(), "the deltas of a turn are not merged");
            }
        });
    }
}
