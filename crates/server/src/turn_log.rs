//! The log of one turn, read whole and folded: to events, to its message, to rows of the call history. Viewers have cursors
//! instead.

use crate::error::ApiError;
use crate::telemetry::{CallChange, CallFold};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::hash_map::{Entry, HashMap};
use throughline_engine::fold::AssistantMessage;
use throughline_engine::{Event, TurnId};
use throughline_store::{CallRow, Log, LogError, LogRecord, STREAM_END, TurnRow, TurnTiming};
use throughline_wire::{Usage, UserPart};

/// Records per read.
const RECORDS_PER_READ: usize = 1_000;
/// Code of [`not_running`].
pub(crate) const NOT_RUNNING: &str = "turn_not_running";
/// `Retry-After` of a command to a turn that no server runs, in seconds.
const NOT_RUNNING_RETRY_S: u64 = 5;

/// An event as JSON, so that what a later release wrote is handed on whole. As text, since its values would take many times as
/// much memory, and a conversation has many events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventJson(Box<str>);

impl EventJson {
    /// The JSON of an event. Names of its fields are in it as they are, without escapes.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn of(event: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self(serde_json::to_string(event)?.into()))
    }

    /// The payload of a record of a log.
    ///
    /// # Errors
    /// It is not JSON.
    pub fn from_log(payload: &[u8]) -> serde_json::Result<Self> {
        let json: &RawValue = serde_json::from_slice(payload)?;
        Ok(Self(json.get().into()))
    }

    /// The JSON.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0.into()
    }

    pub(crate) fn parse<'j, T: Deserialize<'j>>(&'j self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }

    /// Parses the event if it may have a field of this name, at any depth: a cheap search of the text, since
    /// most have not.
    pub(crate) fn values_with(&self, field: &str) -> Option<Value> {
        self.0.contains(&format!("\"{field}\"")).then(|| self.parse().ok()).flatten()
    }
}

/// All events as they were written, those of later releases included. Empty: the turn has no log, or it was
/// deleted.
///
/// # Errors
/// The log cannot be read, or holds invalid JSON.
pub(crate) async fn raw_events(log: &dyn Log, turn: &str) -> Result<Vec<EventJson>, ApiError> {
    let mut events = Vec::new();
    let mut after = 0;
    loop {
        let records = match log.read(turn, after, RECORDS_PER_READ).await {
            Ok(records) => records,
            Err(LogError::UnknownTurn { .. }) => break,
            Err(error) => return Err(error.into()),
        };
        let Some(last) = records.last() else { break };
        after = last.seq;
        for record in &records {
            events.push(EventJson::from_log(&record.payload).map_err(ApiError::internal)?);
        }
        if records.len() < RECORDS_PER_READ {
            break;
        }
    }
    Ok(events)
}

/// Removes text for the model alone: viewers get such an event, since numbers are dense, without its text.
pub(crate) fn withhold_model_texts(records: &mut [LogRecord]) {
    for record in records.iter_mut().filter(|record| record.kind == "model_text") {
        let withheld = Event::from_json(&record.kind, &record.payload).map(Event::for_viewers);
        let payload = withheld.and_then(|event| event.to_json()).unwrap_or_else(|_| b"{}".to_vec());
        *record = LogRecord::new(record.seq, record.kind.clone(), record.durability, payload);
    }
}

/// All events that this release can parse.
///
/// # Errors
/// As in [`raw_events`].
pub async fn events(log: &dyn Log, turn: &str) -> Result<Vec<Event>, ApiError> {
    let raw = raw_events(log, turn).await?;
    raw.iter().map(|event| event.parse().map_err(ApiError::internal)).collect()
}

/// The message of a turn: the fold of its log or, without one, the data of its row.
///
/// # Errors
/// As in [`raw_events`].
pub(crate) async fn message_of(log: &dyn Log, row: &TurnRow) -> Result<AssistantMessage, ApiError> {
    Ok(message_from(&events(log, &row.id).await?, row))
}

/// The message from events that were read already.
pub fn message_from(events: &[Event], row: &TurnRow) -> AssistantMessage {
    if !events.is_empty() {
        return AssistantMessage::from_events(events);
    }
    let mut message = AssistantMessage {
        turn_id: row.id.as_str().into(),
        message_id: row.message_id.as_str().into(),
        conversation_id: row.conversation_id.as_deref().map(Into::into),
        agent: row.agent.clone(),
        mode: row.mode.clone().unwrap_or_default(),
        model: row.model.clone().unwrap_or_default(),
        input: vec![UserPart::Text { text: row.input_text.clone() }],
        started_at: row.created_at,
        ..AssistantMessage::default()
    };
    if let Some(end) = &row.end {
        message.ended_at = Some(end.ended_at);
        message.status = serde_json::from_value(Value::from(end.status.as_str())).ok();
        if !end.text.is_empty() {
            message.blocks.push(throughline::MessageBlock::text(end.text.as_str()));
        }
    }
    message
}

/// The calls of a log as rows of the history, in order.
pub fn call_rows(events: &[Event]) -> Vec<CallRow> {
    let (mut fold, mut rows) = (CallFold::default(), Vec::<CallRow>::new());
    let mut indices = HashMap::new();
    for event in events {
        let Some(CallChange::Row(row)) = fold.apply(event) else { continue };
        match indices.entry(row.tool_id.clone()) {
            Entry::Occupied(known) => rows[*known.get()] = *row,
            Entry::Vacant(new) => {
                new.insert(rows.len());
                rows.push(*row);
            }
        }
    }
    rows
}

/// The current message of a turn, and whether its last event is in it.
///
/// # Errors
/// The log cannot be read.
pub(crate) async fn fold_message(log: &dyn Log, turn: &TurnId) -> Result<(AssistantMessage, bool), LogError> {
    let (mut message, mut after, mut ended) = (AssistantMessage::default(), 0, false);
    loop {
        let records = log.read(turn.as_str(), after, RECORDS_PER_READ).await?;
        let Some(last) = records.last() else { return Ok((message, ended)) };
        after = last.seq;
        ended |= last.kind == STREAM_END;
        for record in &records {
            // Readers ignore unknown events.
            if let Ok(event) = Event::from_json(&record.kind, &record.payload) {
                message.apply(&event);
            }
        }
    }
}

/// True if the log has the last event of a turn, even if the turn manager does not know it yet.
pub(crate) async fn has_ended(log: &dyn Log, turn: &TurnId) -> bool {
    let Err(LogError::Ahead { last_seq, .. }) = log.read(turn.as_str(), u64::MAX, 1).await else {
        return false;
    };
    is_last_event(log, turn, last_seq).await
}

/// True if a turn has events and no end: nothing that is sent to it is too late.
///
/// # Errors
/// The log cannot be read.
pub(crate) async fn is_open(log: &dyn Log, turn: &TurnId) -> Result<bool, LogError> {
    match log.read(turn.as_str(), 0, 1).await {
        Ok(_) => Ok(!has_ended(log, turn).await),
        // It has not begun, or is no longer stored.
        Err(LogError::UnknownTurn { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Checks that a turn has ended which took commands a moment ago and takes them no more. One whose server stops has not: it goes
/// on after the next start.
///
/// # Errors
/// 503 `turn_not_running`: it has no end.
pub(crate) async fn check_end(log: &dyn Log, turn: &TurnId) -> Result<(), ApiError> {
    if is_open(log, turn).await? { Err(not_running(turn)) } else { Ok(()) }
}

/// The error for a command to a turn that has no end, and that nothing runs.
pub(crate) fn not_running(turn: &TurnId) -> ApiError {
    let message = format!("turn `{}` has not ended, but no server is running it", turn.as_str());
    let error = ApiError::unavailable(NOT_RUNNING, message, NOT_RUNNING_RETRY_S);
    error.remedy("try again: it is resumed once its server has started")
}

/// True if this event is the last one of its turn.
pub(crate) async fn is_last_event(log: &dyn Log, turn: &TurnId, seq: u64) -> bool {
    // The position of a merged event lies among deltas.
    let last = log.read(turn.as_str(), seq.saturating_sub(1), 1).await;
    last.is_ok_and(|records| {
        records.first().is_some_and(|record| record.seq == seq && record.kind == STREAM_END)
    })
}

/// Timing of a turn, stored with its end. Tokens are unknown if the upstream does not count them, and a reply that came all at
/// once has no speed.
pub(crate) fn turn_timing(first_content_ms: Option<u64>, writing_ms: u64, usage: &Usage) -> TurnTiming {
    let number = |value: u64| i64::try_from(value).ok();
    TurnTiming {
        first_content_ms: first_content_ms.and_then(number),
        writing_ms: number(writing_ms).filter(|ms| *ms > 0),
        output_tokens: usage.output_tokens.and_then(number).filter(|tokens| *tokens > 0),
    }
}
