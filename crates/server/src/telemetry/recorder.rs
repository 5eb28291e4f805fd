//! Where events become telemetry: one fold for each running turn, its findings to every exporter. R: O1

use super::calls::CallFold;
use super::fold::{Content, TelemetryFold};
use super::history::CallHistory;
use super::logs;
use super::measurement::Measurement;
use super::meter::Meter;
use super::redaction::Redaction;
use super::rollback::{Choices, Delivery};
use super::traces::{TraceFold, TraceSink};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use throughline::{ModelCallFacts, Observer, TurnFacts};
use throughline_engine::{Event, EventKind, TurnId};
use throughline_store::catalog::RawId;

/// How often histograms are taken up: until then they grow with every observation.
const UPKEEP: Duration = Duration::from_secs(5);

/// The telemetry of one server: what it is told as an [`Observer`] becomes metrics, logs, spans and rows. Give it to [`throughline::Builder::observer`].
pub struct Telemetry {
    meter: Arc<Meter>,
    redaction: Arc<Redaction>,
    content: Content,
    turns: Mutex<HashMap<TurnId, Arc<Mutex<Watched>>>>,
    choices: Mutex<Choices>,
    /// Upstreams that are asked for whole replies.
    whole: HashSet<String>,
    traces: Option<Arc<dyn TraceSink>>,
    history: OnceLock<CallHistory>,
}

#[derive(Default)]
struct Watched {
    fold: TelemetryFold,
    calls: CallFold,
    trace: TraceFold,
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
            whole: HashSet::new(),
            traces: None,
            history: OnceLock::new(),
        }
    }

    /// Traces, too.
    #[must_use]
    pub fn traces(self, sink: Arc<dyn TraceSink>, content: Content) -> Self {
        Self { traces: Some(sink), content, ..self }
    }

    /// These upstreams are asked for whole replies; all others stream.
    #[must_use]
    pub fn whole_replies(self, upstreams: impl IntoIterator<Item = String>) -> Self {
        Self { whole: upstreams.into_iter().collect(), ..self }
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

    /// Nothing more will come of this turn, though its last event has not: its log refused, or another process has it.
    pub fn forget(&self, turn: &TurnId) {
        let mut turns = self.turns();
        turns.remove(turn);
        self.meter.active_turns(turns.len());
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<TurnId, Arc<Mutex<Watched>>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self, turn: &TurnId) -> Arc<Mutex<Watched>> {
        let mut turns = self.turns();
        if let Some(watched) = turns.get(turn) {
            return watched.clone();
        }
        let watched = Watched { fold: TelemetryFold::new(self.content), ..Watched::default() };
        let watched = Arc::new(Mutex::new(watched));
        turns.insert(turn.clone(), watched.clone());
        self.meter.active_turns(turns.len());
        watched
    }

    fn found(&self, turn: &TurnId, measurement: &Measurement, trace: &mut TraceFold) {
        self.meter.record(measurement);
        logs::record(turn, measurement);
        if let Measurement::Chosen(chosen) = measurement {
            let upstream = chosen.model.split('/').next().unwrap_or_default();
            let whole = self.whole.contains(upstream);
            let delivery = if whole { Delivery::Whole } else { Delivery::Streamed };
            let changes =
                self.choices.lock().unwrap_or_else(PoisonError::into_inner).absorb(chosen.clone(), delivery);
            for change in changes {
                self.meter.rollback(change);
            }
        }
        if let Some(sink) = &self.traces
            && let Some(finished) = trace.absorb(measurement)
        {
            sink.export(finished);
        }
    }
}

impl Observer for Telemetry {
    fn logged(&self, turn: &TurnFacts, events: &[Event]) {
        let watched = self.watched(&turn.turn_id);
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        let Watched { fold, calls, trace } = &mut *watched;
        let (acknowledged_at, mut found) = (now(), Vec::new());
        for event in events {
            fold.absorb(event, acknowledged_at, &mut found);
            if let (Some(history), Some(user)) = (self.history.get(), &turn.user)
                && let Some(change) = calls.absorb(event)
            {
                history.changed(user, &turn.turn_id, change);
            }
        }
        for measurement in &found {
            self.found(&turn.turn_id, measurement, trace);
        }
        if events.last().is_some_and(|event| matches!(event.kind, EventKind::StreamEnd { .. })) {
            let mut turns = self.turns();
            turns.remove(&turn.turn_id);
            self.meter.active_turns(turns.len());
            if let Some(history) = self.history.get() {
                history.turn_ended(&turn.turn_id);
            }
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
