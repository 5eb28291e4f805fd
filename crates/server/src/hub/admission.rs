//! Whether a key may have one more turn. Looking and taking the place are one step, under one lock: however many requests
//! come at once, no more turns run than the limit says. // R: R4

use super::Hub;
use super::running::Running;
use crate::error::ApiError;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use throughline_engine::TurnId;

/// The turns that run, and how many are being started by now.
#[derive(Default)]
pub(super) struct Turns {
    by_id: HashMap<TurnId, Running>,
    /// By whose limit they count against.
    starting: HashMap<String, u32>,
    /// Counts turns that were parked: a later one comes behind an earlier one.
    pub parked: u64,
}

impl Turns {
    /// How many turns count against a limit: those that run and those that are being started. A parked turn runs nothing.
    fn counted(&self, who: &str) -> usize {
        let runs =
            |running: &&Running| running.parked.is_none() && running.begun.counted_as.as_deref() == Some(who);
        let starting = self.starting.get(who).copied().unwrap_or_default();
        self.by_id.values().filter(runs).count() + starting as usize
    }

    /// Whether one more may run.
    ///
    /// # Errors
    /// 429 `too_many_turns`.
    pub fn has_room(&self, who: &str, turns_max: u32) -> Result<(), ApiError> {
        if self.counted(who) < turns_max as usize {
            return Ok(());
        }
        Err(ApiError::too_many("too_many_turns", format!("{turns_max} turns are running already"), 5)
            .param("turns_per_key_max")
            .remedy("wait for one of them, or cancel it: GET /v1/turns lists them"))
    }

    /// The turn runs, in the place that was kept for it.
    pub fn take_in(&mut self, id: TurnId, running: Running, admission: Option<&mut Admission>) {
        if let Some(who) = admission.and_then(|admission| admission.who.take()) {
            self.leave(&who);
        }
        self.by_id.insert(id, running);
    }

    fn leave(&mut self, who: &str) {
        if let Some(starting) = self.starting.get_mut(who) {
            *starting -= 1;
            if *starting == 0 {
                self.starting.remove(who);
            }
        }
    }
}

impl Deref for Turns {
    type Target = HashMap<TurnId, Running>;

    fn deref(&self) -> &Self::Target {
        &self.by_id
    }
}

impl DerefMut for Turns {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.by_id
    }
}

/// The place of a turn that is being started. Dropping it gives the place back; [`Turns::take_in`] fills it.
pub(super) struct Admission {
    hub: Hub,
    /// `None` = the turn runs and counts by itself.
    who: Option<String>,
}

impl Hub {
    /// Keeps a place for one more turn.
    ///
    /// # Errors
    /// 429 `too_many_turns`.
    pub(super) fn admit(&self, who: &str) -> Result<Admission, ApiError> {
        let mut turns = self.running();
        turns.has_room(who, self.0.limits.turns_per_key_max)?;
        *turns.starting.entry(who.to_owned()).or_default() += 1;
        drop(turns);
        Ok(Admission { hub: self.clone(), who: Some(who.to_owned()) })
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(who) = self.who.take() {
            self.hub.running().leave(&who);
        }
    }
}
