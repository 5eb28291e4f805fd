//! History of a turn: the path through its conversation, and the messages that each turn on it adds.

use super::TurnManager;
use crate::error::ApiError;
use std::collections::VecDeque;
use throughline::{Event, StoredTurn};
use throughline_engine::{EventSeq, StepProviderState, TurnId};
use throughline_store::{LogError, PathTurn, TurnParent};
use throughline_wire::{ClosedStep, Message, UserPart};

/// Records per read when folding.
const RECORDS_PER_READ: usize = 1_024;

/// Reason why the history is not available.
pub(super) enum HistoryError {
    /// A turn of the conversation still runs, so its part of the history is not final.
    Running(String),
    /// Any other error.
    Error(ApiError),
}

impl<E: Into<ApiError>> std::convert::From<E> for HistoryError {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// Text of a history, in bytes.
pub(super) fn text_bytes(history: &[Message]) -> usize {
    let of_message = |message: &Message| match message {
        Message::User(parts) => parts.iter().map(UserPart::text_bytes).sum::<usize>(),
        Message::Step(step) => {
            let calls = step.calls.iter().map(|(call, outcome)| {
                call.arguments_text().len() + outcome.output().map_or(0, |output| output.text.len())
            });
            step.text.len() + step.thinking.len() + calls.sum::<usize>()
        }
    };
    history.iter().map(of_message).sum()
}

impl TurnManager {
    /// Messages up to and including a turn, or up to an event of it; `None` for none.
    pub(super) async fn history(
        &self,
        user: &str,
        parent: Option<&TurnParent>,
    ) -> Result<Vec<Message>, HistoryError> {
        let Some(parent) = parent else { return Ok(Vec::new()) };
        let mut path = VecDeque::from(self.0.catalog.path(user, &parent.turn_id).await?);
        let Some(last) = path.back_mut() else {
            return Err(ApiError::not_found("turn", &parent.turn_id).param("parent_id").into());
        };
        last.cut_at = parent.seq;
        let mut history = Vec::new();
        for turn in path {
            history.extend(self.turn_messages(user, turn).await?);
        }
        Ok(history)
    }

    /// Messages before an existing turn.
    pub(super) async fn history_before(&self, user: &str, turn: &str) -> Result<Vec<Message>, HistoryError> {
        let mut path = self.0.catalog.path(user, turn).await?;
        path.pop();
        let mut history = Vec::new();
        for turn in path {
            history.extend(self.turn_messages(user, turn).await?);
        }
        Ok(history)
    }

    async fn turn_messages(&self, user: &str, turn: PathTurn) -> Result<Vec<Message>, HistoryError> {
        match (turn.cut_at, turn.history_json) {
            (Some(seq), _) => Ok(self.turn_messages_up_to(user, &turn.id, EventSeq(seq)).await?),
            (None, Some(adds)) => Ok(serde_json::from_str(&adds).map_err(ApiError::internal)?),
            (None, None) => Err(HistoryError::Running(turn.id)),
        }
    }

    /// Messages that a turn had added at one of its events. A running turn can be forked.
    async fn turn_messages_up_to(
        &self,
        user: &str,
        turn: &str,
        seq: EventSeq,
    ) -> Result<Vec<Message>, ApiError> {
        let inner = &self.0;
        let row = inner.catalog.turn(user, turn).await?.ok_or_else(|| ApiError::not_found("turn", turn))?;
        let stored: StoredTurn = serde_json::from_str(&row.stored).map_err(ApiError::internal)?;
        let events = self.events_up_to(turn, seq).await?;
        if events.last().is_none_or(|last| last.seq < seq) {
            let message = format!("turn `{turn}` has no event {}", seq.0);
            return Err(ApiError::bad_request("no_such_event", message).param("parent_seq"));
        }
        Ok(stored.added_messages(&events, &self.provider_states(turn).await?, Some(seq)))
    }

    /// Steps of a turn, with what their model wants back; none if the user has no such turn.
    pub(crate) async fn steps_of(&self, user: &str, turn: &TurnId) -> Result<Vec<ClosedStep>, ApiError> {
        let Some(row) = self.0.catalog.turn(user, turn.as_str()).await? else { return Ok(Vec::new()) };
        let added: Vec<Message> = match row.end {
            Some(end) => serde_json::from_str(&end.history_json).map_err(ApiError::internal)?,
            // It is being stopped: everything that it has written is in the log.
            None => {
                let stored: StoredTurn = serde_json::from_str(&row.stored).map_err(ApiError::internal)?;
                let events = self.events_up_to(turn.as_str(), EventSeq(u64::MAX)).await?;
                stored.added_messages(&events, &self.provider_states(turn.as_str()).await?, None)
            }
        };
        let step = |message| match message {
            Message::Step(step) => Some(step),
            Message::User(_) => None,
        };
        Ok(added.into_iter().filter_map(step).collect())
    }

    async fn provider_states(&self, turn: &str) -> Result<Vec<StepProviderState>, ApiError> {
        let mut provider_states = Vec::new();
        for state_row in self.0.log.read_provider_state(turn).await? {
            let state = serde_json::from_slice(&state_row.payload).map_err(ApiError::internal)?;
            provider_states.push(StepProviderState { step: state_row.step, state });
        }
        Ok(provider_states)
    }

    async fn events_up_to(&self, turn: &str, seq: EventSeq) -> Result<Vec<Event>, LogError> {
        let (mut events, mut after) = (Vec::new(), 0);
        while after < seq.0 {
            let records = self.0.log.read(turn, after, RECORDS_PER_READ).await?;
            let Some(last) = records.last() else { break };
            after = last.seq;
            // Readers ignore unknown events.
            let read =
                records.iter().filter_map(|record| Event::from_json(&record.kind, &record.payload).ok());
            events.extend(read);
        }
        Ok(events)
    }
}
