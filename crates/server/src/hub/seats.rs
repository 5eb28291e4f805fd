//! Who looks: how many streams a user has open, and whether anybody looks at a turn that should not go on unseen.

use super::{Hub, OnDisconnect};
use crate::error::ApiError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use throughline_engine::TurnId;

/// Open streams, by user.
#[derive(Clone, Default)]
pub(super) struct Seats(Arc<Mutex<HashMap<String, u32>>>);

impl Seats {
    fn by_user(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        // Every change is one call on the map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, user: &str, max: u32) -> bool {
        let mut by_user = self.by_user();
        let taken = by_user.entry(user.to_owned()).or_default();
        if *taken >= max {
            return false;
        }
        *taken += 1;
        true
    }

    fn leave(&self, user: &str) {
        let mut by_user = self.by_user();
        if let Some(taken) = by_user.get_mut(user) {
            *taken -= 1;
            if *taken == 0 {
                by_user.remove(user);
            }
        }
    }
}

/// One viewer's place. Dropping it is leaving: if the turn should not go on unseen and nobody else looks, it is cancelled.
pub struct Seat {
    hub: Hub,
    user: String,
    turn: TurnId,
}

impl Hub {
    pub(super) fn seat(&self, user: &str, turn: &TurnId) -> Result<Seat, ApiError> {
        let max = self.0.limits.streams_per_key_max;
        if !self.0.seats.take(user, max) {
            return Err(ApiError::too_many("too_many_streams", format!("{max} streams are open already"), 1)
                .param("streams_per_key_max")
                .remedy(
                    "close those that nobody reads, or follow several turns over one WebSocket (/v1/ws)",
                ));
        }
        if let Some(running) = self.running().get_mut(turn) {
            running.viewers += 1;
        }
        Ok(Seat { hub: self.clone(), user: user.to_owned(), turn: turn.clone() })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.hub.0.seats.leave(&self.user);
        let mut turns = self.hub.running();
        let Some(running) = turns.get_mut(&self.turn) else { return };
        running.viewers = running.viewers.saturating_sub(1);
        // Viewers that are closed because the server stops have not left of their own will.
        let unseen = running.viewers == 0 && !self.hub.0.handed_over.is_cancelled();
        if !unseen || running.on_disconnect == OnDisconnect::Continue {
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
