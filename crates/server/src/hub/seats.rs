//! Who looks: how many streams a user has open, and whether anybody looks at a turn that should not go on unseen.

use super::{Hub, OnDisconnect};
use crate::error::ApiError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline_engine::TurnId;

/// Open streams, by whose limits they count against.
#[derive(Clone, Default)]
pub(super) struct Seats(Arc<Mutex<HashMap<String, u32>>>);

impl Seats {
    fn by_key(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        // Every change is one call on the map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, who: &str, max: u32) -> bool {
        let mut by_key = self.by_key();
        let taken = by_key.entry(who.to_owned()).or_default();
        if *taken >= max {
            return false;
        }
        *taken += 1;
        true
    }

    fn leave(&self, who: &str) {
        let mut by_key = self.by_key();
        if let Some(taken) = by_key.get_mut(who) {
            *taken -= 1;
            if *taken == 0 {
                by_key.remove(who);
            }
        }
    }
}

/// One viewer's place. Dropping it is leaving: if the turn should not go on unseen and nobody else looks, it is cancelled.
pub struct Seat {
    hub: Hub,
    who: String,
    turn: TurnId,
}

impl Hub {
    pub(super) fn seat(&self, who: &str, turn: &TurnId) -> Result<Seat, ApiError> {
        let max = self.0.limits.streams_per_key_max;
        if !self.0.seats.take(who, max) {
            return Err(ApiError::too_many("too_many_streams", format!("{max} streams are open already"), 1)
                .param("streams_per_key_max")
                .remedy(
                    "close those that nobody reads, or follow several turns over one WebSocket (/v1/ws)",
                ));
        }
        if let Some(running) = self.running().get_mut(turn) {
            running.viewers += 1;
        }
        if let Some(telemetry) = self.telemetry() {
            telemetry.meter().viewers(1);
        }
        Ok(Seat { hub: self.clone(), who: who.to_owned(), turn: turn.clone() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.hub.0.seats.leave(&self.who);
        if let Some(telemetry) = self.hub.telemetry() {
            telemetry.meter().viewers(-1);
        }
        let mut turns = self.hub.running();
        let Some(running) = turns.get_mut(&self.turn) else { return };
        running.viewers = running.viewers.saturating_sub(1);
        // Viewers that are closed because the server stops have not left of their own will.
        let unseen = running.viewers == 0 && !self.hub.0.handed_over.is_cancelled();
        if !unseen || running.begun.on_disconnect == OnDisconnect::Continue {
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
