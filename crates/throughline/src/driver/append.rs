//! From events to records of the log, one append at a time.

use super::model::LogState;
use crate::clock::Clock;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use throughline_engine::{
    Append, Beside, Effect, Event, EventKind, OnInterrupted, Out, Outbox, Turn, TurnId, TurnSetup, TurnStart,
};
use throughline_store as store;
use throughline_store::failpoint::OnItsWay;
use throughline_store::{Durability, Epoch, Log, LogError, Record, Urgency};
use throughline_wire::CallId;
use tokio::time::{Duration, Instant};

/// Appends what the outbox hands out.
pub(super) struct Appender {
    log: Arc<dyn Log>,
    turn: Arc<str>,
    epoch: Epoch,
    effects: Effects,
    under_way: Option<BoxFuture<'static, Result<(), LogError>>>,
    since: Instant,
    wait: LogWait,
}

/// For how long a turn has been waiting for its log, for whoever looks at the turn: the log itself cannot tell it.
#[derive(Clone, Debug)]
pub(crate) struct LogWait {
    begun: Instant,
    /// Milliseconds behind `begun`, and one more; 0 = nothing is under way.
    since: Arc<AtomicU64>,
}

impl Default for LogWait {
    fn default() -> Self {
        Self { begun: Instant::now(), since: Arc::default() }
    }
}

impl LogWait {
    fn begins(&self, at: Instant) {
        let behind = at.saturating_duration_since(self.begun).as_millis();
        self.since.store(u64::try_from(behind).unwrap_or(u64::MAX - 1) + 1, Ordering::Relaxed);
    }

    fn ends(&self) {
        self.since.store(0, Ordering::Relaxed);
    }

    /// `None` = nothing is under way.
    pub(crate) fn so_far(&self) -> Option<Duration> {
        let since = self.since.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.begun.elapsed().saturating_sub(Duration::from_millis(since)))
    }
}

impl Appender {
    /// Of the owner of the turn; `logged` = what the log has of it.
    pub(super) fn new(
        log: Arc<dyn Log>,
        turn: &TurnId,
        epoch: Epoch,
        logged: &[Event],
        wait: LogWait,
    ) -> Self {
        let mut effects = Effects::default();
        logged.iter().for_each(|event| effects.note(event));
        Self { log, turn: turn.as_str().into(), epoch, effects, under_way: None, since: Instant::now(), wait }
    }

    pub(super) fn state(&self) -> LogState {
        if self.under_way.is_some() { LogState::Busy } else { LogState::Idle }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// Begins an append; one at a time, which the outbox sees to.
    pub(super) fn begin(&mut self, append: Append<'_>) {
        let (log, turn, epoch) = (self.log.clone(), self.turn.clone(), self.epoch);
        let batch = batch(append, &mut self.effects);
        self.since = Instant::now();
        self.wait.begins(self.since);
        self.under_way = Some(Box::pin(async move {
            let batch = batch?;
            let on_its_way = OnItsWay::of(&batch);
            log.append(&turn, epoch, batch).await?;
            on_its_way.arrived();
            Ok(())
        }));
    }

    /// The append under way is durable, or refused; never, if none is.
    pub(super) async fn done(&mut self) -> Result<Pace, LogError> {
        match &mut self.under_way {
            Some(append) => {
                let done = append.await;
                self.under_way = None;
                self.wait.ends();
                let took = self.since.elapsed();
                done.map(|()| if took < SLOW { Pace::Normal } else { Pace::Slow(took) })
            }
            None => std::future::pending().await,
        }
    }
}

/// How long an append took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Normal,
    /// So long that people have noticed.
    Slow(Duration),
}

/// From when on an append is slow: long enough to be noticed by whoever reads along.
const SLOW: Duration = Duration::from_secs(1);

fn batch(append: Append<'_>, effects: &mut Effects) -> Result<store::Batch, LogError> {
    let records = append.events.iter().map(|event| effects.record(event)).collect::<Result<_, _>>()?;
    let beside: Vec<_> = append.beside.iter().map(written).collect::<Result<_, _>>()?;
    // Where something begins or ends somebody waits, or something begins behind it.
    let urgency = match beside.is_empty() && append.events.iter().all(is_more_of_the_same) {
        true => Urgency::Gathers,
        false => Urgency::AtOnce,
    };
    Ok(store::Batch { records, beside, urgency })
}

fn is_more_of_the_same(event: &Event) -> bool {
    use EventKind as E;
    matches!(
        event.kind,
        E::ContentDelta { .. }
            | E::Thinking { .. }
            | E::ToolInputDelta { .. }
            | E::ToolProgress(_)
            | E::AudioDelta { .. }
    )
}

fn written(beside: &Beside) -> Result<store::Beside, LogError> {
    let payload = serde_json::to_vec(&beside.state).map_err(unwritable)?;
    Ok(store::Beside { step: beside.step, payload: payload.into() })
}

fn unwritable(error: serde_json::Error) -> LogError {
    LogError::Store { why: format!("an event cannot be written: {error}") }
}

/// What each call of the turn may do: the durability of its intent and result depends on it.
#[derive(Default)]
struct Effects(HashMap<CallId, Effect>);

impl Effects {
    fn note(&mut self, event: &Event) {
        if let (EventKind::ToolUse { effect, .. }, Some(call)) = (&event.kind, &event.tool_id) {
            self.0.insert(call.clone(), *effect);
        }
    }

    fn record(&mut self, event: &Event) -> Result<Record, LogError> {
        self.note(event);
        let (kind, durability) = self.class(event);
        Ok(Record::new(event.seq.0, kind, durability, event.to_json().map_err(unwritable)?))
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
    given: &(TurnSetup, TurnStart),
    clock: Clock,
) -> Result<Turn, LogError> {
    let (setup, start) = given;
    let turn = &start.turn_id;
    let claim = log.claim(turn.as_str()).await?;
    let (events, beside) = read(log, turn.as_str()).await?;
    let setup = TurnSetup { on_interrupted: OnInterrupted::End, ..setup.clone() };
    let mut machine = Turn::restore(setup, start.clone(), &events, &beside);
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
        events.iter().for_each(|event| effects.note(event));
        log.append(turn.as_str(), claim.epoch, batch(append, &mut effects)?).await?;
    }
    Ok(machine)
}

/// Everything that the log has of a turn.
pub(crate) async fn read(log: &dyn Log, turn: &str) -> Result<(Vec<Event>, Vec<Beside>), LogError> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq.0);
        let records = log.read(turn, after, RECORDS_PER_READ).await?;
        if records.is_empty() {
            break;
        }
        for record in records {
            events.push(parsed(&record.payload)?);
        }
    }
    let mut beside = Vec::new();
    for written in log.read_beside(turn).await? {
        beside.push(Beside { step: written.step, state: parsed(&written.payload)? });
    }
    Ok((events, beside))
}

fn parsed<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Result<T, LogError> {
    serde_json::from_slice(payload)
        .map_err(|error| LogError::Store { why: format!("a record cannot be read: {error}") })
}
