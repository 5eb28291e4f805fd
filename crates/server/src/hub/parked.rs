//! Turns that wait for nobody but their requester: their answer has ended, and another request of the requester goes on
//! with them, or never comes.
//!
//! Such a turn runs nothing and costs no more than its memory, so it is *parked*: it does not count against
//! `turns_per_key_max`. A key has at most `parked_turns_per_key_max` of them; over that the oldest is ended, with a notice
//! that says so. A request that comes for it later is answered by a new turn from its own messages.
//!
//! A surface parks a turn when it has ended an answer and let the turn go ([`Hub::park`]), and takes it back before it
//! gives the turn what it waits for ([`Hub::unpark`]). A turn that goes on without that (a time limit, an answer over
//! another API) counts as running again by itself, as does one that ends.

use super::Hub;
use crate::error::ApiError;
use serde::Serialize;
use throughline::TurnControl;
use throughline_engine::{EventSeq, TurnId};
use throughline_store::LogError;
use utoipa::ToSchema;

/// Notice of a turn that was ended to make room.
const EVICTED_TEXT: &str =
    "Ended by the server: nobody went on with this turn, and newer ones wait (parked_turns_per_key_max).";

/// Input that a parked turn waits for, from another request of the same requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitsFor {
    /// Results of calls that the requester runs.
    ToolResults,
    /// A yes or a no.
    Approval,
}

/// Since when, and for what, a turn waits.
#[derive(Clone, Debug)]
pub(super) struct ParkedState {
    pub waits_for: WaitsFor,
    /// In milliseconds since 1970.
    pub since: i64,
    /// A lower one was parked before.
    number: u64,
    /// True while the turn is being ended to make room: it cannot be continued.
    evicted: bool,
}

enum ParkedEnd {
    Resumed,
    Ended,
}

/// Result of trying to continue a parked turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a turn that has ended, or is about to, cannot be continued"]
pub(crate) enum UnparkOutcome {
    /// It runs: it can be given what it waits for.
    Running,
    /// It is over, or being ended to make room: the request is answered by a new turn.
    Ended,
}

impl Hub {
    /// Parks a turn whose answer ended with its event `after`. If it has ended, or goes on already, nothing happens.
    /// Parking a parked turn again makes it the newest.
    pub(crate) fn park(&self, turn: &TurnId, after: EventSeq, waits_for: WaitsFor) {
        let since = jiff::Timestamp::now().as_millisecond();
        let mut turns = self.turns();
        turns.parked_counter += 1;
        let number = turns.parked_counter;
        let Some(entry) = turns.get_mut(turn) else { return };
        if entry.parked.as_ref().is_some_and(|parked| parked.evicted) {
            return;
        }
        entry.parked = Some(ParkedState { waits_for, since, number, evicted: false });
        let limit_key = (entry.info.user.clone(), entry.info.counted_as.clone());
        let evicted = self.mark_oldest_for_eviction(&mut turns, &limit_key);
        drop(turns);
        if let Some((turn, control)) = evicted {
            tokio::spawn(async move {
                tracing::info!(turn_id = turn.as_str(), "a parked turn is ended: newer ones wait");
                // If it has ended meanwhile, all the better.
                let _ = control.cancel_because(EVICTED_TEXT).await;
            });
        }
        let (hub, turn) = (self.clone(), turn.clone());
        tokio::spawn(async move { hub.count_on_resume(&turn, after, number).await });
    }

    /// Takes a turn of this user back from the parked ones, before it is given what it waits for. A turn that is not parked
    /// runs already, and goes on.
    ///
    /// # Errors
    /// 429 `too_many_turns`: it would be one more than may run. It stays parked.
    pub(crate) fn unpark(&self, user: &str, turn: &TurnId) -> Result<UnparkOutcome, ApiError> {
        let mut turns = self.turns();
        let Some(entry) = turns.get(turn).filter(|entry| entry.info.user == user) else {
            return Ok(UnparkOutcome::Ended);
        };
        match &entry.parked {
            _ if entry.control.is_over() => return Ok(UnparkOutcome::Ended),
            None => return Ok(UnparkOutcome::Running),
            Some(parked) if parked.evicted => return Ok(UnparkOutcome::Ended),
            Some(_) => {}
        }
        if let Some(limit_key) = &entry.info.counted_as {
            turns.check_capacity(limit_key, self.0.limits.turns_per_key_max)?;
        }
        if let Some(entry) = turns.get_mut(turn) {
            entry.parked = None;
        }
        Ok(UnparkOutcome::Running)
    }

    /// Marks the oldest parked turn of a key if there is one too many, and gives its handle.
    fn mark_oldest_for_eviction(
        &self,
        turns: &mut super::TurnTable,
        limit_key: &(String, Option<String>),
    ) -> Option<(TurnId, TurnControl)> {
        let max = self.0.limits.parked_turns_per_key_max as usize;
        let parked = turns
            .iter_mut()
            .filter(|(_, entry)| (&entry.info.user, &entry.info.counted_as) == (&limit_key.0, &limit_key.1));
        let mut parked: Vec<_> = parked
            .filter_map(|(id, entry)| {
                let parked_state = entry.parked.as_mut().filter(|parked| !parked.evicted)?;
                Some((parked_state.number, id, parked_state, &entry.control))
            })
            .collect();
        if parked.len() <= max {
            return None;
        }
        // One is added at a time, so one is enough.
        let (_, id, oldest, control) = parked.iter_mut().min_by_key(|(number, ..)| *number)?;
        oldest.evicted = true;
        Some((id.clone(), control.clone()))
    }

    /// Waits for the turn to go on, by whatever: then it counts as running again.
    async fn count_on_resume(&self, turn: &TurnId, after: EventSeq, number: u64) {
        let parked_end = async {
            let mut tail = self.0.log.tail(turn.as_str(), after.0).await?;
            while let Some(records) = tail.next().await? {
                // Until then it only says that it waits, or what has been answered of several things.
                if records.iter().any(|record| record.kind == "step_start" || record.kind == "tool_start") {
                    return Ok::<_, LogError>(ParkedEnd::Resumed);
                }
            }
            Ok(ParkedEnd::Ended)
        };
        let parked_end = tokio::select! {
            parked_end = parked_end => parked_end,
            () = self.0.handed_over.cancelled() => return,
        };
        match parked_end {
            Ok(ParkedEnd::Resumed) => {}
            // It has ended, and is no longer among those that run in a moment.
            Ok(ParkedEnd::Ended) => return,
            Err(error) => {
                tracing::warn!(%error, turn_id = turn.as_str(), "a parked turn cannot be followed");
                return;
            }
        }
        if let Some(entry) = self.turns().get_mut(turn)
            && entry.parked.as_ref().is_some_and(|parked| parked.number == number)
        {
            entry.parked = None;
        }
    }
}
