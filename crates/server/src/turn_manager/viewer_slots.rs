//! Viewer counts: the open streams of each user, and the viewers of each turn that must not run unseen.

use super::{OnDisconnect, TurnManager};
use crate::error::ApiError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline_engine::TurnId;

/// Number of open streams by the key whose limit they count against.
#[derive(Clone, Default)]
pub(super) struct ViewerSlots(Arc<Mutex<HashMap<String, u32>>>);

impl ViewerSlots {
    fn by_key(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        // Every change is one call on the map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acquire(&self, limit_key: &str, max: u32) -> bool {
        let mut by_key = self.by_key();
        let used = by_key.entry(limit_key.to_owned()).or_default();
        if *used >= max {
            return false;
        }
        *used += 1;
        true
    }

    fn release(&self, limit_key: &str) {
        let mut by_key = self.by_key();
        if let Some(used) = by_key.get_mut(limit_key) {
            *used -= 1;
            if *used == 0 {
                by_key.remove(limit_key);
            }
        }
    }
}

/// Registration of one viewer. Dropping it means that the viewer has left: a turn that must not run unseen is cancelled with
/// its last viewer.
pub(super) struct ViewerSlot {
    turn_manager: TurnManager,
    limit_key: String,
    turn: TurnId,
}

impl TurnManager {
    pub(super) fn viewer_slot(&self, limit_key: &str, turn: &TurnId) -> Result<ViewerSlot, ApiError> {
        let max = self.0.limits.streams_per_key_max;
        if !self.0.viewer_slots.acquire(limit_key, max) {
            return Err(ApiError::too_many("too_many_streams", format!("{max} streams are open already"), 1)
                .param("streams_per_key_max")
                .remedy("close unused streams, or follow several turns over one WebSocket (/v1/ws)"));
        }
        if let Some(running) = self.turns().get_mut(turn) {
            running.viewers += 1;
        }
        if let Some(telemetry) = self.telemetry() {
            telemetry.meter().viewers(1);
        }
        Ok(ViewerSlot { turn_manager: self.clone(), limit_key: limit_key.to_owned(), turn: turn.clone() })
    }
}

impl Drop for ViewerSlot {
    fn drop(&mut self) {
        self.turn_manager.0.viewer_slots.release(&self.limit_key);
        if let Some(telemetry) = self.turn_manager.telemetry() {
            telemetry.meter().viewers(-1);
        }
        let mut turns = self.turn_manager.turns();
        let Some(running) = turns.get_mut(&self.turn) else { return };
        running.viewers = running.viewers.saturating_sub(1);
        // Viewers that are closed because the server stops have not left themselves.
        let is_unviewed = running.viewers == 0 && !self.turn_manager.0.handed_over.is_cancelled();
        if !is_unviewed || running.info.on_disconnect == OnDisconnect::Continue {
            return;
        }
        let control = running.control.clone();
        drop(turns);
        // Without a runtime everything has ended already.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { control.cancel().await });
        }
    }
}
