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
use throughline_engine::{Seq, TurnId};
use throughline_store::LogError;
use utoipa::ToSchema;

/// What the notice of a turn says that was ended to make room.
const EVICTED: &str =
    "Ended by the server: nobody went on with this turn, and newer ones wait (parked_turns_per_key_max).";

/// What a parked turn waits for. All of it comes with another request of whoever asked for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// Results of calls that the requester runs.
    ToolResults,
    /// A yes or a no.
    Approval,
}

/// Since when, and for what, a turn waits.
#[derive(Clone, Debug)]
pub(super) struct Parked {
    pub waits_for: WaitsFor,
    /// In milliseconds since 1970.
    pub since: i64,
    /// A lower one was parked before.
    number: u64,
    stays: Stays,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stays {
    Yes,
    /// It is being ended, and nobody goes on with it.
    Evicted,
}

enum GoesOn {
    Yes,
    No,
}

/// Whether a request can go on with a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a turn that is over, or about to be, is not gone on with"]
pub enum Unparked {
    /// It runs: it can be given what it waits for.
    GoesOn,
    /// It is over, or being ended to make room: the request is answered by a new turn.
    Gone,
}

impl Hub {
    /// Parks a turn whose answer ended with its event `after`. If it has ended, or goes on already, nothing happens.
    /// Parking a parked turn again makes it the newest.
    pub fn park(&self, turn: &TurnId, after: Seq, waits_for: WaitsFor) {
        let since = jiff::Timestamp::now().as_millisecond();
        let mut turns = self.running();
        turns.parked += 1;
        let number = turns.parked;
        let Some(running) = turns.get_mut(turn) else { return };
        if running.parked.as_ref().is_some_and(|parked| parked.stays == Stays::Evicted) {
            return;
        }
        running.parked = Some(Parked { waits_for, since, number, stays: Stays::Yes });
        let who = (running.begun.user.clone(), running.begun.counted_as.clone());
        let evicted = self.oldest_over_the_limit(&mut turns, &who);
        drop(turns);
        if let Some((turn, control)) = evicted {
            tokio::spawn(async move {
                tracing::info!(turn_id = turn.as_str(), "a parked turn is ended: newer ones wait");
                // If it has ended meanwhile, all the better.
                let _ = control.cancel_because(EVICTED).await;
            });
        }
        let (hub, turn) = (self.clone(), turn.clone());
        tokio::spawn(async move { hub.count_when_it_goes_on(&turn, after, number).await });
    }

    /// Takes a turn of this user back from the parked ones, before it is given what it waits for. A turn that is not parked
    /// runs already, and goes on.
    ///
    /// # Errors
    /// 429 `too_many_turns`: it would be one more than may run. It stays parked.
    pub fn unpark(&self, user: &str, turn: &TurnId) -> Result<Unparked, ApiError> {
        let mut turns = self.running();
        let Some(running) = turns.get(turn).filter(|running| running.begun.user == user) else {
            return Ok(Unparked::Gone);
        };
        match &running.parked {
            _ if running.control.is_over() => return Ok(Unparked::Gone),
            None => return Ok(Unparked::GoesOn),
            Some(parked) if parked.stays == Stays::Evicted => return Ok(Unparked::Gone),
            Some(_) => {}
        }
        if let Some(who) = &running.begun.counted_as {
            turns.has_room(who, self.0.limits.turns_per_key_max)?;
        }
        if let Some(running) = turns.get_mut(turn) {
            running.parked = None;
        }
        Ok(Unparked::GoesOn)
    }

    /// Marks the oldest parked turn of a key if there is one too many, and gives its handle.
    fn oldest_over_the_limit(
        &self,
        turns: &mut super::Turns,
        who: &(String, Option<String>),
    ) -> Option<(TurnId, TurnControl)> {
        let max = self.0.limits.parked_turns_per_key_max as usize;
        let parked = turns
            .iter_mut()
            .filter(|(_, running)| (&running.begun.user, &running.begun.counted_as) == (&who.0, &who.1));
        let mut parked: Vec<_> = parked
            .filter_map(|(id, running)| {
                let place = running.parked.as_mut().filter(|parked| parked.stays == Stays::Yes)?;
                Some((place.number, id, place, &running.control))
            })
            .collect();
        if parked.len() <= max {
            return None;
        }
        // One is added at a time, so one is enough.
        let (_, id, oldest, control) = parked.iter_mut().min_by_key(|(number, ..)| *number)?;
        oldest.stays = Stays::Evicted;
        Some((id.clone(), control.clone()))
    }

    /// Waits for the turn to go on, by whatever: then it counts as running again.
    async fn count_when_it_goes_on(&self, turn: &TurnId, after: Seq, number: u64) {
        let goes_on = async {
            let mut tail = self.0.log.tail(turn.as_str(), after.0).await?;
            while let Some(records) = tail.next().await? {
                // Until then it only says that it waits, or what has been answered of several things.
                if records.iter().any(|record| record.kind == "step_start" || record.kind == "tool_start") {
                    return Ok::<_, LogError>(GoesOn::Yes);
                }
            }
            Ok(GoesOn::No)
        };
        let goes_on = tokio::select! {
            goes_on = goes_on => goes_on,
            () = self.0.handed_over.cancelled() => return,
        };
        match goes_on {
            Ok(GoesOn::Yes) => {}
            // It has ended, and is no longer among those that run in a moment.
            Ok(GoesOn::No) => return,
            Err(error) => {
                tracing::warn!(%error, turn_id = turn.as_str(), "a parked turn cannot be followed");
                return;
            }
        }
        if let Some(running) = self.running().get_mut(turn)
            && running.parked.as_ref().is_some_and(|parked| parked.number == number)
        {
            running.parked = None;
        }
    }
}
