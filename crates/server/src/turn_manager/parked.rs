//! Turns that only wait for a person or a client, on any route.
//!
//! Such a turn runs nothing and costs no more than its memory, so it is *parked*: it does not count against
//! `turns_per_key_max`. A key has at most `parked_turns_per_key_max` of them, and more than one only if all
//! of them together were begun with at most `parked_text_bytes_per_key_max` of text. Over a limit the oldest
//! that waits for a client is ended, with a notice that names the limit; a request that continues it later is
//! answered by a new turn from its own messages. A turn that waits for a person is never ended for another:
//! if these fill the limit, the newest one gives way. Its question is denied, or it is ended if it waits for
//! a client; both name the limit.
//!
//! The turn itself reports when it waits and when it continues ([`TurnManager::set_wait`]). A surface that ends an
//! answer parks its turn immediately ([`TurnManager::park`]), so that a client that has read the answer may begin the
//! next one. It unparks the turn before it delivers the input ([`TurnManager::unpark`]), if one more turn may run.

use super::TurnManager;
use super::running_turns::TurnEntry;
use crate::error::ApiError;
use serde::Serialize;
use std::time::Duration;
use throughline::{CommandAck, TurnControl};
use throughline_engine::{ApprovalDecision, TurnId, TurnWait};
use utoipa::ToSchema;

/// Notice of a turn that was ended to make room, over this limit.
fn evicted_text(limit: &str) -> String {
    format!(
        "Ended by the server: this turn waited for input that did not arrive, and newer turns are waiting ({limit})."
    )
}

/// Reason of a denial where as many questions wait as may, by this limit.
fn refused_text(limit: &str) -> String {
    format!("Approval was not requested: the maximum number of questions ({limit}) is already open.")
}

/// Notice of a turn whose conversation continued without the input that it waited for.
const SUPERSEDED_TEXT: &str = "Ended by a new message: this turn waited for input that did not arrive. Calls \
 that had not started do not run.";
/// Timeout for a turn that waits to end and be recorded, so that the next one can begin.
const END_WAIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Input that a parked turn waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WaitsFor {
    /// Results of calls that a client runs, or the client itself: it is not back since a restart and is to run the next call.
    ToolResults,
    /// A person's answer to a question.
    Approval,
}

impl From<TurnWait> for WaitsFor {
    fn from(wait: TurnWait) -> Self {
        match wait {
            TurnWait::Client => Self::ToolResults,
            TurnWait::Person => Self::Approval,
        }
    }
}

/// Start and reason of a turn's wait.
#[derive(Clone, Debug)]
pub(super) struct ParkedState {
    pub waits_for: WaitsFor,
    /// Time since which the turn waits, in milliseconds since 1970.
    pub since: i64,
    /// A lower one was parked before.
    number: u64,
    /// True while the turn is being ended to make room: it cannot be continued.
    evicted: bool,
}

/// Way to make room where one turn too many waits.
enum MadeRoom {
    /// A client's call is given up.
    End(TurnId, TurnControl, &'static str),
    /// The newest question is denied.
    Refuse(TurnControl, &'static str),
}

/// Result of trying to continue a parked turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a turn that has ended, or is ending, cannot be continued"]
pub(crate) enum UnparkOutcome {
    /// The turn runs and accepts the input.
    Running,
    /// The turn has ended, or is being ended to make room: the request is answered by a new turn.
    Ended,
}

impl TurnManager {
    /// Input that a turn waits for; `None` = it runs, or another server has it.
    pub(crate) fn wait_of(&self, turn: &TurnId) -> Option<WaitsFor> {
        self.turns().get(turn)?.parked.as_ref().map(|parked| parked.waits_for)
    }

    /// Sets the wait that a turn reports; `None` = it continues.
    pub(super) fn set_wait(&self, turn: &TurnId, wait: Option<TurnWait>) {
        match wait.map(WaitsFor::from) {
            // A request is about to give it that.
            Some(wait) if self.turns().get(turn).is_some_and(|entry| entry.resuming == Some(wait)) => {}
            Some(wait) => self.park_for(turn, wait),
            None => {
                if let Some(entry) = self.turns().get_mut(turn) {
                    entry.resuming = None;
                    entry.parked.take_if(|parked| !parked.evicted);
                }
            }
        }
    }

    /// Parks a turn whose answer waits for `waits_for`; for a person, if a question is open as well. Does
    /// nothing if the turn is being ended.
    pub(crate) fn park(&self, turn: &TurnId, waits_for: WaitsFor) {
        let is_asked = self
            .turns()
            .get(turn)
            .and_then(|entry| entry.parked.as_ref())
            .is_some_and(|parked| parked.waits_for == WaitsFor::Approval);
        self.park_for(turn, if is_asked { WaitsFor::Approval } else { waits_for });
    }

    fn park_for(&self, turn: &TurnId, waits_for: WaitsFor) {
        let mut turns = self.turns();
        let number = turns.parked_counter + 1;
        let Some(entry) = turns.get_mut(turn) else { return };
        entry.resuming = None;
        if let Some(parked) = &mut entry.parked {
            parked.waits_for = waits_for;
            return;
        }
        let since = jiff::Timestamp::now().as_millisecond();
        entry.parked = Some(ParkedState { waits_for, since, number, evicted: false });
        let limit_key = (entry.info.user.clone(), entry.info.quota_key.clone());
        turns.parked_counter = number;
        let made_room = self.make_room(&mut turns, &limit_key);
        drop(turns);
        for made_room in made_room {
            drop(tokio::spawn(async move {
                match made_room {
                    MadeRoom::End(turn, control, limit) => {
                        tracing::info!(
                            turn_id = turn.as_str(),
                            limit,
                            "ending a parked turn: newer turns are waiting"
                        );
                        // The turn may have ended already.
                        let _ = control.cancel_because(evicted_text(limit)).await;
                    }
                    MadeRoom::Refuse(control, limit) => {
                        let _ = control.answer_all(ApprovalDecision::Deny, Some(refused_text(limit))).await;
                    }
                }
            }));
        }
    }

    /// Ends a turn of this user that waits, and waits until that is recorded. `false`: it runs, or does not end in time.
    pub(super) async fn end_wait(&self, user: &str, turn: &str) -> bool {
        let waiting = self.turns().get(&TurnId::new(turn)).and_then(|entry| {
            let waits = entry.info.user == user && entry.parked.is_some();
            waits.then(|| (entry.control.clone(), entry.finalized.clone()))
        });
        let Some((control, finalized)) = waiting else { return false };
        if control.cancel_because(SUPERSEDED_TEXT).await == CommandAck::Accepted {
            tracing::info!(turn_id = turn, "ending a parked turn: its conversation continues");
        }
        tokio::time::timeout(END_WAIT_TIMEOUT, finalized.cancelled()).await.is_ok()
    }

    /// Unparks a turn of this user, before it receives `brings`. A turn that is not parked already runs, and
    /// continues. If the input is not delivered after all, see [`TurnManager::resume_failed`].
    ///
    /// # Errors
    /// 429 `too_many_turns`: the limit of running turns is reached. The turn stays parked.
    pub(crate) fn unpark(
        &self,
        user: &str,
        turn: &TurnId,
        brings: WaitsFor,
    ) -> Result<UnparkOutcome, ApiError> {
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
        if let Some(limit_key) = &entry.info.quota_key {
            turns.check_capacity(limit_key, self.0.limits.turns_per_key_max)?;
        }
        if let Some(entry) = turns.get_mut(turn) {
            entry.parked = None;
            entry.resuming = Some(brings);
        }
        Ok(UnparkOutcome::Running)
    }

    /// The input of an unparked turn was not delivered: the turn is parked again if it waits.
    pub(crate) fn resume_failed(&self, turn: &TurnId) {
        let wait = self.turns().get_mut(turn).and_then(|entry| {
            entry.resuming = None;
            entry.control.waits_for()
        });
        if let Some(wait) = wait {
            self.park_for(turn, wait.into());
        }
    }

    /// Selects an action if a key has too many waiting turns, or they hold too much text.
    fn make_room(&self, turns: &mut super::TurnTable, limit_key: &(String, Option<String>)) -> Vec<MadeRoom> {
        let limits = &self.0.limits;
        let of_key = |entry: &TurnEntry| {
            (&entry.info.user, &entry.info.quota_key) == (&limit_key.0, &limit_key.1)
                && entry.parked.as_ref().is_some_and(|parked| !parked.evicted)
        };
        let mut parked: Vec<(&TurnId, &mut TurnEntry)> =
            turns.iter_mut().filter(|(_, entry)| of_key(entry)).collect();
        parked.sort_by_key(|(_, entry)| entry.parked.as_ref().map(|parked| parked.number));
        let exceeded = |count: usize, text_bytes: usize| {
            if count > limits.parked_turns_per_key_max as usize {
                Some("parked_turns_per_key_max")
            } else if count > 1 && text_bytes as u64 > limits.parked_text_bytes_per_key_max {
                Some("parked_text_bytes_per_key_max")
            } else {
                None
            }
        };
        let Some((newest_id, newest)) = parked.pop() else { return Vec::new() };
        let waits_for_client = |entry: &TurnEntry| {
            entry.parked.as_ref().is_some_and(|one| one.waits_for == WaitsFor::ToolResults)
        };
        // What stays in any case, and then the others, the youngest first.
        let (mut count, mut text_bytes) = (1, newest.info.text_bytes);
        for (_, entry) in parked.iter().filter(|(_, entry)| !waits_for_client(entry)) {
            count += 1;
            text_bytes += entry.info.text_bytes;
        }
        if let Some(limit) = exceeded(count, text_bytes) {
            let control = newest.control.clone();
            if waits_for_client(newest) {
                newest.parked.iter_mut().for_each(|parked| parked.evicted = true);
                return vec![MadeRoom::End(newest_id.clone(), control, limit)];
            }
            // It counts as running until it continues.
            newest.parked = None;
            return vec![MadeRoom::Refuse(control, limit)];
        }
        let mut ended = Vec::new();
        for (id, entry) in parked.into_iter().rev().filter(|(_, entry)| waits_for_client(entry)) {
            count += 1;
            text_bytes += entry.info.text_bytes;
            if let Some(limit) = exceeded(count, text_bytes) {
                entry.parked.iter_mut().for_each(|parked| parked.evicted = true);
                ended.push(MadeRoom::End(id.clone(), entry.control.clone(), limit));
            }
        }
        ended
    }
}
