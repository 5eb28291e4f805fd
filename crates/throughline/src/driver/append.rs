//! From events to records of the log, one append at a time.

use super::model::LogState;
use crate::clock::TurnClock;
use crate::turn::AppendLag;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::sync::Arc;
use throughline_engine::{
    AppendBatch, Effect, Event, EventKind, OnInterrupted, Outbox, StepProviderState, Turn, TurnId,
    TurnOutput, TurnSetup, TurnStart,
};
use throughline_store as store;
use throughline_store::BatchFailpoints;
use throughline_store::{AppendUrgency, Durability, Log, LogError, LogRecord, OwnerEpoch};
use throughline_wire::CallId;
use tokio::time::{Duration, Instant};

/// Appends the batches of the outbox.
pub(super) struct LogAppender {
    log: Arc<dyn Log>,
    turn: Arc<str>,
    epoch: OwnerEpoch,
    effects: CallEffects,
    in_flight: Option<BoxFuture<'static, Result<(), LogError>>>,
    started: Instant,
    lag: AppendLag,
}

impl LogAppender {
    /// An appender for the owner of the turn; `logged` are the events already in the log.
    pub(super) fn new(
        log: Arc<dyn Log>,
        turn: &TurnId,
        epoch: OwnerEpoch,
        logged: &[Event],
        lag: AppendLag,
    ) -> Self {
        let mut effects = CallEffects::default();
        logged.iter().for_each(|event| effects.record_effect(event));
        Self {
            log,
            turn: turn.as_str().into(),
            epoch,
            effects,
            in_flight: None,
            started: Instant::now(),
            lag,
        }
    }

    pub(super) fn state(&self) -> LogState {
        if self.in_flight.is_some() { LogState::Busy } else { LogState::Idle }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Begins an append; one at a time, which the outbox sees to.
    pub(super) fn start(&mut self, append: AppendBatch<'_>) {
        let (log, turn, epoch) = (self.log.clone(), self.turn.clone(), self.epoch);
        let batch = build_batch(append, &mut self.effects);
        self.started = Instant::now();
        self.lag.start(self.started);
        self.in_flight = Some(Box::pin(async move {
            let batch = batch?;
            let in_transit = BatchFailpoints::before_append(&batch);
            log.append(&turn, epoch, batch).await?;
            in_transit.after_ack();
            Ok(())
        }));
    }

    /// The append under way is durable, or refused; never, if none is.
    pub(super) async fn acknowledged(&mut self) -> Result<AppendPace, LogError> {
        match &mut self.in_flight {
            Some(append) => {
                let done = append.await;
                self.in_flight = None;
                self.lag.finish();
                let elapsed = self.started.elapsed();
                done.map(
                    |()| if elapsed < SLOW_APPEND { AppendPace::Normal } else { AppendPace::Slow(elapsed) },
                )
            }
            None => std::future::pending().await,
        }
    }
}

/// Duration class of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AppendPace {
    Normal,
    /// The append takes long enough for people to notice.
    Slow(Duration),
}

/// Threshold of a slow append: long enough for a reader to notice.
const SLOW_APPEND: Duration = Duration::from_secs(1);

fn build_batch(append: AppendBatch<'_>, effects: &mut CallEffects) -> Result<store::LogBatch, LogError> {
    let records = append.events.iter().map(|event| effects.next_record(event)).collect::<Result<_, _>>()?;
    let provider_states: Vec<_> =
        append.provider_states.iter().map(encode_provider_state).collect::<Result<_, _>>()?;
    // Starts and ends are appended immediately: a reader or the next action waits for them.
    let only_deltas = provider_states.is_empty() && append.events.iter().all(is_delta);
    let urgency = if only_deltas { AppendUrgency::Batched } else { AppendUrgency::Immediate };
    Ok(store::LogBatch { records, provider_state: provider_states, urgency })
}

fn is_delta(event: &Event) -> bool {
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

fn encode_provider_state(
    provider_states: &StepProviderState,
) -> Result<store::ProviderStateRecord, LogError> {
    let payload = serde_json::to_vec(&provider_states.state).map_err(encode_error)?;
    Ok(store::ProviderStateRecord { step: provider_states.step, payload: payload.into() })
}

fn encode_error(error: serde_json::Error) -> LogError {
    LogError::StoreFailure { why: format!("cannot serialize event: {error}") }
}

/// Effect of each call of the turn: the durability of its intent and result depends on it.
#[derive(Default)]
struct CallEffects(HashMap<CallId, Effect>);

impl CallEffects {
    fn record_effect(&mut self, event: &Event) {
        if let (EventKind::ToolUse { effect, .. }, Some(call)) = (&event.kind, &event.tool_id) {
            self.0.insert(call.clone(), *effect);
        }
    }

    fn next_record(&mut self, event: &Event) -> Result<LogRecord, LogError> {
        self.record_effect(event);
        let (kind, durability) = (event.kind.name(), self.durability(event));
        Ok(LogRecord::new(event.seq.0, kind, durability, event.to_json().map_err(encode_error)?))
    }

    /// Durability of an event: it must survive a power failure if losing it could repeat a side effect or lose what a
    /// person has sent. Clippy names a kind that is new and missing here.
    #[deny(clippy::wildcard_enum_match_arm)]
    fn durability(&self, event: &Event) -> Durability {
        use Durability::{Power, Process};
        use EventKind as E;
        match &event.kind {
            E::ToolStart { .. } | E::ToolResult(_) => {
                let effect = event.tool_id.as_ref().and_then(|call| self.0.get(call)).copied();
                if effect.unwrap_or_default().may_repeat() { Process } else { Power }
            }
            E::StreamStart { .. }
            | E::ApprovalRequest { .. }
            | E::ApprovalResolved { .. }
            | E::ToolRedefined { .. }
            | E::UserMessage { .. }
            | E::TurnResumed { .. }
            | E::StreamEnd { .. } => Power,
            E::StepStart { .. }
            | E::StepEnd { .. }
            | E::BlockStart(_)
            | E::BlockEnd
            | E::ContentDelta { .. }
            | E::ModelText { .. }
            | E::Thinking { .. }
            | E::Citation { .. }
            | E::ToolUse { .. }
            | E::ToolInputDelta { .. }
            | E::ToolInputReset
            | E::ToolInput(_)
            | E::ToolProgress(_)
            | E::AudioDelta { .. }
            | E::Waiting { .. }
            | E::Problem { .. }
            | E::SessionStats(_)
            | E::Error(_)
            | E::BlockSuperseded { .. }
            | E::Unrecognised => Process,
            _ => Power,
        }
    }
}

/// Records per read when a turn is resumed.
const RECORDS_PER_READ: usize = 4_096;

/// Takes over a turn whose driver has stopped and ends it truthfully: what was running is `unknown` or
/// `not_started`, and the message states that it was interrupted.
pub(super) async fn end_as_interrupted(
    log: &dyn Log,
    spec: &(TurnSetup, TurnStart),
    clock: TurnClock,
) -> Result<Turn, LogError> {
    let (setup, start) = spec;
    let turn = &start.turn_id;
    let claim = log.claim(turn.as_str()).await?;
    let (events, provider_states) = read_turn(log, turn.as_str()).await?;
    let setup = TurnSetup { on_interrupted: OnInterrupted::End, ..setup.clone() };
    let mut machine = Turn::restore(setup, start.clone(), &events, &provider_states);
    let (mut out, mut outbox) = (TurnOutput::default(), Outbox::new());
    machine.resume(claim.epoch.0, clock.now(), &mut out);
    if !machine.is_over() {
        // The log held nothing, so that resuming was beginning. Nothing is performed, so it ends as it began.
        machine.resume(claim.epoch.0, clock.now(), &mut out);
    }
    // Its actions are dropped: the turn is over.
    let _ = outbox.push(&mut out);
    if let Some(append) = outbox.next_append() {
        let mut effects = CallEffects::default();
        events.iter().for_each(|event| effects.record_effect(event));
        log.append(turn.as_str(), claim.epoch, build_batch(append, &mut effects)?).await?;
    }
    Ok(machine)
}

/// Reads the whole log of a turn.
pub(crate) async fn read_turn(
    log: &dyn Log,
    turn: &str,
) -> Result<(Vec<Event>, Vec<StepProviderState>), LogError> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq.0);
        let records = log.read(turn, after, RECORDS_PER_READ).await?;
        if records.is_empty() {
            break;
        }
        for record in records {
            events.push(parse_record(&record.payload)?);
        }
    }
    let mut provider_states = Vec::new();
    for stored in log.read_provider_state(turn).await? {
        provider_states.push(StepProviderState { step: stored.step, state: parse_record(&stored.payload)? });
    }
    Ok((events, provider_states))
}

fn parse_record<T: serde::de::DeserializeOwned>(payload: &[u8]) -> Result<T, LogError> {
    serde_json::from_slice(payload)
        .map_err(|error| LogError::StoreFailure { why: format!("cannot read record: {error}") })
}
