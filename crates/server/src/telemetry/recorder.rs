//! Where events become telemetry: one fold for each running turn, its findings to every exporter. R: O1

use super::calls::CallFold;
use super::fold::{Content, TelemetryFold};
use super::history::CallHistory;
use super::logs;
use super::measurement::Measurement;
use super::meter::Meter;
use super::redaction::Redaction;
use super::rollback::{Choices, Delivery, Rollback};
use super::trace_context::TraceContext;
use super::traces::{TraceFold, TraceSink};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use throughline::{ModelCallFacts, Observer, TurnFacts};
use throughline_engine::{Event, TurnId};
use throughline_store::catalog::RawId;
use throughline_wire::Transfer;

/// How often histograms are taken up: until then they grow with every observation.
const UPKEEP: Duration = Duration::from_secs(5);

/// The telemetry of one server: what it is told as an [`Observer`] becomes metrics, logs, spans and rows. Give it to [`throughline::Builder::observer`].
pub struct Telemetry {
    meter: Arc<Meter>,
    redaction: Arc<Redaction>,
    content: Content,
    turns: Mutex<HashMap<TurnId, Arc<Mutex<Watched>>>>,
    choices: Mutex<Choices>,
    traces: Option<Arc<dyn TraceSink>>,
    history: OnceLock<CallHistory>,
}

/// What is held of a turn until it is over here.
struct Watched {
    fold: TelemetryFold,
    calls: CallFold,
    trace: TraceFold,
    trace_id: String,
    delivery: Delivery,
}

impl Watched {
    fn new(turn: &TurnFacts, content: Content) -> Self {
        let context = TraceContext::of(&turn.turn_id, turn.trace_parent.as_deref());
        Self {
            fold: TelemetryFold::new(content),
            calls: CallFold::default(),
            trace: TraceFold::new(context),
            trace_id: context.trace_id(),
            delivery: match turn.transfer {
                Some(Transfer::Whole) => Delivery::Whole,
                Some(Transfer::Stream) | None => Delivery::Streamed,
            },
        }
    }
}

impl Default for Telemetry {
    /// Of a process without secrets.
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl Telemetry {
    /// Metrics and logs; secrets of `redaction` stay out of both.
    pub fn new(redaction: Arc<Redaction>) -> Self {
        Self {
            meter: Arc::new(Meter::new(redaction.clone())),
            redaction,
            content: Content::LeftOut,
            turns: Mutex::default(),
            choices: Mutex::default(),
            traces: None,
            history: OnceLock::new(),
        }
    }

    /// Traces, too.
    #[must_use]
    pub fn traces(self, sink: Arc<dyn TraceSink>, content: Content) -> Self {
        Self { traces: Some(sink), content, ..self }
    }

    /// The history of tool calls, once there is a store. The first one counts.
    pub fn keep_history(&self, history: CallHistory) {
        let _ = self.history.set(history);
    }

    /// The history of tool calls.
    pub fn history(&self) -> Option<&CallHistory> {
        self.history.get()
    }

    /// The metrics.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// What must not leave the process.
    pub fn redaction(&self) -> &Arc<Redaction> {
        &self.redaction
    }

    /// Takes up what histograms have gathered, for as long as somebody holds this.
    pub async fn upkeep(self: Arc<Self>) {
        let telemetry = Arc::downgrade(&self);
        drop(self);
        let mut ticks = tokio::time::interval(UPKEEP);
        loop {
            ticks.tick().await;
            match telemetry.upgrade() {
                Some(telemetry) => telemetry.meter.upkeep(),
                None => return,
            }
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<TurnId, Arc<Mutex<Watched>>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many turns are held in memory.
    pub fn turns_held(&self) -> usize {
        self.turns().len()
    }

    fn watched(&self, turn: &TurnFacts) -> Arc<Mutex<Watched>> {
        let mut turns = self.turns();
        if let Some(watched) = turns.get(&turn.turn_id) {
            return watched.clone();
        }
        let watched = Arc::new(Mutex::new(Watched::new(turn, self.content)));
        turns.insert(turn.turn_id.clone(), watched.clone());
        self.meter.active_turns(turns.len());
        watched
    }

    fn found(&self, turn: &TurnId, measurement: &Measurement, watched: &mut Watched) {
        self.meter.record(measurement);
        logs::record(turn, &watched.trace_id, measurement);
        for change in self.chosen(measurement, watched.delivery) {
            self.meter.rollback(change);
        }
        if let Some(sink) = &self.traces
            && let Some(finished) = watched.trace.absorb(measurement)
        {
            sink.export(finished);
        }
    }

    /// What a user's choice changes within its conversation.
    fn chosen(&self, measurement: &Measurement, delivery: Delivery) -> Vec<Rollback> {
        let Measurement::Chosen(chosen) = measurement else { return Vec::new() };
        self.choices.lock().unwrap_or_else(PoisonError::into_inner).absorb(chosen.clone(), delivery)
    }
}

impl Observer for Telemetry {
    fn resumed(&self, turn: &TurnFacts, events: &[Event]) {
        let watched = self.watched(turn);
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for event in events {
            // How long it took until they were seen is not known any more.
            watched.fold.absorb(event, event.timestamp, &mut found);
            watched.calls.absorb(event);
        }
        for measurement in &found {
            // The process before has counted and logged it; the turn's trace and the next choice go on from it.
            self.chosen(measurement, watched.delivery);
            if self.traces.is_some() {
                watched.trace.absorb(measurement);
            }
        }
    }

    fn logged(&self, turn: &TurnFacts, events: &[Event]) {
        let watched = self.watched(turn);
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        let (acknowledged_at, mut found) = (now(), Vec::new());
        for event in events {
            watched.fold.absorb(event, acknowledged_at, &mut found);
            if let (Some(history), Some(user)) = (self.history.get(), &turn.user)
                && let Some(change) = watched.calls.absorb(event)
            {
                history.changed(user, &turn.turn_id, change);
            }
        }
        for measurement in &found {
            self.found(&turn.turn_id, measurement, &mut watched);
        }
    }

    fn over(&self, turn: &TurnFacts) {
        let mut turns = self.turns();
        turns.remove(&turn.turn_id);
        self.meter.active_turns(turns.len());
        drop(turns);
        if let Some(history) = self.history.get() {
            history.turn_ended(&turn.turn_id);
        }
    }

    fn raw(&self, turn: &TurnFacts, call: &ModelCallFacts, bytes: &[u8]) {
        if let (Some(history), Some(user)) = (self.history.get(), &turn.user) {
            let turn_id = turn.turn_id.as_str().to_owned();
            history.raw(user, RawId { turn_id, step: call.step, attempt: call.attempt }, bytes);
        }
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
