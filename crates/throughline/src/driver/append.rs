//! From events to records of the log, one append at a time.

use super::model::LogState;
use crate::clock::Clock;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::Arc;
use throughline_engine::{
    Append, Beside, Effect, Event, EventKind, OnInterrupted, Out, Outbox, Turn, TurnId, TurnSetup, TurnStart,
};
use throughline_store as store;
use throughline_store::{Durability, Epoch, Log, LogError, Record};
use throughline_wire::{CallId, Message};

/// Appends what the outbox hands out.
pub(super) struct Appender {
    log: Arc<dyn Log>,
    turn: TurnId,
    epoch: Epoch,
    effects: Effects,
    under_way: Option<BoxFuture<'static, Result<(), LogError>>>,
}

impl Appender {
    /// Becomes the owner of the turn.
    pub(super) async fn claim(log: Arc<dyn Log>, turn: &TurnId) -> Result<Self, LogError> {
        let epoch = log.claim(turn.as_str()).await?.epoch;
        Ok(Self { log, turn: turn.clone(), epoch, effects: Effects::default(), under_way: None })
    }

    pub(super) fn state(&self) -> LogState {
        if self.under_way.is_some() { LogState::Busy } else { LogState::Idle }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// Begins an append; one at a time, which the outbox sees to.
    pub(super) fn begin(&mut self, append: Append) {
        let (log, turn, epoch) = (self.log.clone(), self.turn.clone(), self.epoch);
        let batch = batch(append, &mut self.effects);
        self.under_way =
            Some(Box::pin(async move { log.append(turn.as_str(), epoch, batch?).await.map(|_ack| ()) }));
    }

    /// The append under way is durable, or refused; never, if none is.
    pub(super) async fn done(&mut self) -> Result<(), LogError> {
        match &mut self.under_way {
            Some(append) => {
                let done = append.await;
                self.under_way = None;
                done
            }
            None => std::future::pending().await,
        }
    }
}

fn batch(append: Append, effects: &mut Effects) -> Result<store::Batch, LogError> {
    let records = append.events.iter().map(|event| effects.record(event)).collect::<Result<_, _>>()?;
    let beside = append.beside.iter().map(written).collect::<Result<_, _>>()?;
    Ok(store::Batch { records, beside })
}

fn written(beside: &Beside) -> Result<store::Beside, LogError> {
    Ok(store::Beside { step: beside.step, payload: json(&beside.state)?.into() })
}

fn json<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, LogError> {
    serde_json::to_vec(value)
        .map_err(|error| LogError::Store { why: format!("an event cannot be written: {error}") })
}

/// What each call of the turn may do: the durability of its intent and result depends on it.
#[derive(Default)]
struct Effects(HashMap<CallId, Effect>);

impl Effects {
    fn record(&mut self, event: &Event) -> Result<Record, LogError> {
        if let (EventKind::ToolUse { effect, .. }, Some(call)) = (&event.kind, &event.tool_id) {
            self.0.insert(call.clone(), *effect);
        }
        let (kind, durability) = self.class(event);
        Ok(Record::new(event.seq.0, kind, durability, json(event)?))
    }

    /// The name of an event on the wire, and what it must survive: a power cut, if losing it could make someone do a
    /// thing twice or lose what a person has said.
    fn class(&self, event: &Event) -> (&'static str, Durability) {
        use Durability::{Power, Process};
        use EventKind as E;
        let effect = event.tool_id.as_ref().and_then(|call| self.0.get(call)).copied().unwrap_or_default();
        let by_effect = if effect.may_run_again() { Process } else { Power };
        match &event.kind {
            E::StreamStart { .. } => ("stream_start", Power),
            E::StepStart { .. } => ("step_start", Process),
            E::StepEnd { .. } => ("step_end", Process),
            E::BlockStart(_) => ("block_start", Process),
            E::BlockEnd => ("block_end", Process),
            E::ContentDelta { .. } => ("content_delta", Process),
            E::Thinking { .. } => ("thinking", Process),
            E::Citation { .. } => ("citation", Process),
            E::ToolUse { .. } => ("tool_use", Process),
            E::ToolInputDelta { .. } => ("tool_input_delta", Process),
            E::ToolInputReset => ("tool_input_reset", Process),
            E::ToolInput(_) => ("tool_input", Process),
            E::ApprovalRequest { .. } => ("approval_request", Power),
            E::ApprovalResolved { .. } => ("approval_resolved", Power),
            E::ToolRedefined { .. } => ("tool_redefined", Power),
            E::ToolStart { .. } => ("tool_start", by_effect),
            E::ToolProgress(_) => ("tool_progress", Process),
            E::ToolResult(_) => ("tool_result", by_effect),
            E::AudioDelta { .. } => ("audio_delta", Process),
            E::UserMessage { .. } => ("user_message", Power),
            E::Waiting { .. } => ("waiting", Process),
            E::Problem { .. } => ("problem", Process),
            E::SessionStats(_) => ("session_stats", Process),
            E::Error(_) => ("error", Process),
            E::TurnResumed { .. } => ("turn_resumed", Power),
            E::BlockSuperseded { .. } => ("block_superseded", Process),
            E::StreamEnd { .. } => (store::STREAM_END, Power),
            E::Unrecognised => ("unrecognised", Process),
        }
    }
}

/// Most records read at once when a turn is taken up again.
const RECORDS_PER_READ: usize = 4_096;

/// Takes a turn whose driver is gone out of the log and ends it truthfully: what was running is `unknown` or
/// `not_started`, the message says that it was interrupted.
pub(super) async fn end_as_interrupted(
    log: &dyn Log,
    turn: &TurnId,
    setup: TurnSetup,
    start: TurnStart,
    clock: Clock,
) -> Result<Vec<Message>, LogError> {
    let claim = log.claim(turn.as_str()).await?;
    let mut events: Vec<Event> = Vec::new();
    loop {
        let records =
            log.read(turn.as_str(), events.last().map_or(0, |event| event.seq.0), RECORDS_PER_READ).await?;
        if records.is_empty() {
            break;
        }
        for record in records {
            events.push(read(&record.payload)?);
        }
    }
    let mut beside = Vec::new();
    for written in log.read_beside(turn.as_str()).await? {
        beside.push(Beside { step: written.step, state: read(&written.payload)? });
    }
    let setup = TurnSetup { on_interrupted: OnInterrupted::End, ..setup };
    let mut machine = Turn::restore(setup, start, &events, &beside);
    let (mut out, mut outbox) = (Out::default(), Outbox::new());
    machine.resume(claim.epoch.0, clock.now(), &mut out);
    if !machine.is_over() {
        // The log held nothing, so that resuming was beginning. Nothing is performed, so it ends as it began.
        machine.resume(claim.epoch.0, clock.now(), &mut out);
    }
    // Its actions are dropped: the turn is over.
    let _ = outbox.push(&mut out);
    if let Some(append) = outbox.next_append() {
        let mut effects = Effects::default();
        for event in &events {
            effects.record(event)?;
        }
        log.append(turn.as_str(), claim.epoch, batch(append, &mut effects)?).await?;
    }
    Ok(machine.history().unwrap_or_default())
}

fn read<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Result<T, LogError> {
    serde_json::from_slice(payload)
        .map_err(|error| LogError::Store { why: format!("a record cannot be read: {error}") })
}
