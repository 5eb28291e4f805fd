//! Limit of running turns per key. Checking and reserving are one step under one lock: however many requests arrive at
//! once, no more turns run than the limit allows.

use super::TurnManager;
use super::running_turns::TurnEntry;
use crate::error::ApiError;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use throughline_engine::TurnId;

/// The turns that run, and how many are being started by now.
#[derive(Default)]
pub(super) struct TurnTable {
    by_id: HashMap<TurnId, TurnEntry>,
    /// Number of starting turns by limit key.
    starting: HashMap<String, u32>,
    /// Counter of parked turns, which gives their order.
    pub parked_counter: u64,
}

impl TurnTable {
    /// Number of turns that count against a limit: running and starting ones. A parked turn runs nothing and
    /// does not count, nor does one that has ended and is still being recorded: a client that has read its
    /// end may start the next one.
    fn count_for(&self, limit_key: &str) -> usize {
        let runs = |running: &&TurnEntry| {
            running.parked.is_none()
                && !running.control.is_over()
                && running.info.quota_key.as_deref() == Some(limit_key)
        };
        let starting = self.starting.get(limit_key).copied().unwrap_or_default();
        self.by_id.values().filter(runs).count() + starting as usize
    }

    /// Checks that one more turn may run.
    ///
    /// # Errors
    /// 429 `too_many_turns`.
    pub(super) fn check_capacity(&self, limit_key: &str, turns_max: u32) -> Result<(), ApiError> {
        if self.count_for(limit_key) < turns_max as usize {
            return Ok(());
        }
        Err(ApiError::too_many("too_many_turns", format!("{turns_max} turns are running already"), 5)
            .param("turns_per_key_max")
            .remedy("wait for one of them, or cancel it: GET /v1/turns lists them"))
    }

    /// Adds a running turn, in its reserved slot.
    pub(super) fn insert_running(
        &mut self,
        id: TurnId,
        running: TurnEntry,
        admission: Option<&mut TurnAdmission>,
    ) {
        if let Some(limit_key) = admission.and_then(|admission| admission.limit_key.take()) {
            self.release_starting(&limit_key);
        }
        self.by_id.insert(id, running);
    }

    fn release_starting(&mut self, limit_key: &str) {
        if let Some(starting) = self.starting.get_mut(limit_key) {
            *starting -= 1;
            if *starting == 0 {
                self.starting.remove(limit_key);
            }
        }
    }
}

impl Deref for TurnTable {
    type Target = HashMap<TurnId, TurnEntry>;

    fn deref(&self) -> &Self::Target {
        &self.by_id
    }
}

impl DerefMut for TurnTable {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.by_id
    }
}

/// The slot reserved for a starting turn. Dropping it releases the slot; [`TurnTable::insert_running`] uses
/// it.
pub(super) struct TurnAdmission {
    turn_manager: TurnManager,
    /// `None` = the turn runs and is counted there.
    limit_key: Option<String>,
}

impl TurnManager {
    /// Reserves a slot for one more turn.
    ///
    /// # Errors
    /// 429 `too_many_turns`.
    pub(super) fn admit(&self, limit_key: &str) -> Result<TurnAdmission, ApiError> {
        let mut turns = self.turns();
        turns.check_capacity(limit_key, self.0.limits.turns_per_key_max)?;
        *turns.starting.entry(limit_key.to_owned()).or_default() += 1;
        drop(turns);
        Ok(TurnAdmission { turn_manager: self.clone(), limit_key: Some(limit_key.to_owned()) })
    }
}

impl Drop for TurnAdmission {
    fn drop(&mut self) {
        if let Some(limit_key) = self.limit_key.take() {
            self.turn_manager.turns().release_starting(&limit_key);
        }
    }
}
