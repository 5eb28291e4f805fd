//! Recording of telemetry: one fold for each running turn, whose measurements go to every exporter.

use super::calls::CallFold;
use super::fold::{ContentCapture, TelemetryFold};
use super::history::CallHistory;
use super::logs;
use super::measurement::{FailureMetrics, Measurement};
use super::meter::TelemetryMeter;
use super::redaction::Redaction;
use super::rollback::{ChoiceHistory, RollbackKind, UpstreamDelivery};
use super::trace_context::TraceContext;
use super::traces::{TraceFold, TraceSink};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
use throughline::{ModelCallFacts, TurnFacts, TurnObserver};
use throughline_engine::{Event, TurnId};
use throughline_store::RawId;
use throughline_wire::TransferMode;

/// Interval for draining histograms: until then they grow with every observation.
const HISTOGRAM_UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The telemetry of one server: as a [`TurnObserver`] it turns events into metrics, logs, spans and rows.
/// Give it to [`throughline::ThroughlineBuilder::observer`].
pub struct Telemetry {
    meter: Arc<TelemetryMeter>,
    redaction: Arc<Redaction>,
    content: ContentCapture,
    turns: Mutex<HashMap<TurnId, Arc<Mutex<TurnTelemetry>>>>,
    choices: Mutex<ChoiceHistory>,
    /// Failures by the name of the upstream that answered last.
    upstream_failures: Mutex<BTreeMap<String, FailureMetrics>>,
    traces: Option<Arc<dyn TraceSink>>,
    history: OnceLock<CallHistory>,
}

/// Telemetry state of a turn while it is open.
struct TurnTelemetry {
    fold: TelemetryFold,
    calls: CallFold,
    trace: TraceFold,
    trace_id: String,
    delivery: UpstreamDelivery,
}

impl TurnTelemetry {
    fn new(turn: &TurnFacts, content: ContentCapture) -> Self {
        let context = TraceContext::of(&turn.turn_id, turn.trace_parent.as_deref());
        Self {
            fold: TelemetryFold::new(content),
            calls: CallFold::default(),
            trace_id: context.trace_id(),
            trace: TraceFold::new(context),
            delivery: match turn.transfer {
                Some(TransferMode::Whole) => UpstreamDelivery::Whole,
                Some(TransferMode::Stream) | None => UpstreamDelivery::Streamed,
            },
        }
    }
}

impl Default for Telemetry {
    /// Telemetry of a process without secrets.
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl Telemetry {
    /// Metrics and logs; secrets of `redaction` stay out of both.
    pub fn new(redaction: Arc<Redaction>) -> Self {
        Self {
            meter: Arc::new(TelemetryMeter::new(redaction.clone())),
            redaction,
            content: ContentCapture::Omitted,
            turns: Mutex::default(),
            choices: Mutex::default(),
            upstream_failures: Mutex::default(),
            traces: None,
            history: OnceLock::new(),
        }
    }

    /// Traces, too.
    #[must_use]
    pub fn with_traces(self, sink: Arc<dyn TraceSink>, content: ContentCapture) -> Self {
        Self { traces: Some(sink), content, ..self }
    }

    /// Sets the history of tool calls, once the store is open. The first one set is used.
    pub fn set_call_history(&self, history: CallHistory) {
        let _ = self.history.set(history);
    }

    /// The history of tool calls.
    pub fn history(&self) -> Option<&CallHistory> {
        self.history.get()
    }

    /// The metrics.
    pub fn meter(&self) -> &Arc<TelemetryMeter> {
        &self.meter
    }

    /// Redaction of secrets.
    pub fn redaction(&self) -> &Arc<Redaction> {
        &self.redaction
    }

    /// Aggregates the samples of histograms periodically, until the telemetry is dropped.
    pub async fn run_upkeep(self: Arc<Self>) {
        let telemetry = Arc::downgrade(&self);
        drop(self);
        let mut ticks = tokio::time::interval(HISTOGRAM_UPKEEP_INTERVAL);
        loop {
            ticks.tick().await;
            match telemetry.upgrade() {
                Some(telemetry) => telemetry.meter.run_upkeep(),
                None => return,
            }
        }
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<TurnId, Arc<Mutex<TurnTelemetry>>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of turns in memory.
    pub fn turns_held(&self) -> usize {
        self.turns().len()
    }

    fn turn_telemetry(&self, turn: &TurnFacts) -> Arc<Mutex<TurnTelemetry>> {
        let mut turns = self.turns();
        if let Some(turn_telemetry) = turns.get(&turn.turn_id) {
            return turn_telemetry.clone();
        }
        let turn_telemetry = Arc::new(Mutex::new(TurnTelemetry::new(turn, self.content)));
        turns.insert(turn.turn_id.clone(), turn_telemetry.clone());
        self.meter.active_turns(turns.len());
        turn_telemetry
    }

    fn export_measurement(
        &self,
        turn: &TurnId,
        measurement: &Measurement,
        turn_telemetry: &mut TurnTelemetry,
    ) {
        self.meter.record(measurement);
        self.note_last_answer(measurement);
        logs::log_measurement(turn, &turn_telemetry.trace_id, measurement);
        for change in self.detect_rollbacks(measurement, turn_telemetry.delivery) {
            self.meter.rollback(change);
        }
        if let Some(sink) = &self.traces
            && let Some(finished) = turn_telemetry.trace.apply(measurement)
        {
            sink.export(finished);
        }
    }

    fn note_last_answer(&self, measurement: &Measurement) {
        let mut failures = self.upstream_failures.lock().unwrap_or_else(PoisonError::into_inner);
        match measurement {
            Measurement::UpstreamFailed(failure) => {
                if let Some(upstream) = &failure.upstream {
                    failures.insert(upstream.clone(), failure.clone());
                }
            }
            Measurement::StepEnded(step) if step.error.is_none() => {
                failures.remove(&step.upstream);
            }
            _ => {}
        }
    }

    /// Last answer of an upstream, if it was a failure.
    pub(crate) fn last_failure(&self, upstream: &str) -> Option<FailureMetrics> {
        self.upstream_failures.lock().unwrap_or_else(PoisonError::into_inner).get(upstream).cloned()
    }

    /// Effects of a user's choice on its conversation.
    fn detect_rollbacks(&self, measurement: &Measurement, delivery: UpstreamDelivery) -> Vec<RollbackKind> {
        let Measurement::ChoiceMade(choice) = measurement else { return Vec::new() };
        self.choices.lock().unwrap_or_else(PoisonError::into_inner).apply(choice.clone(), delivery)
    }
}

impl TurnObserver for Telemetry {
    fn resumed(&self, turn: &TurnFacts, events: &[Event]) {
        let turn_telemetry = self.turn_telemetry(turn);
        let mut turn_telemetry = turn_telemetry.lock().unwrap_or_else(PoisonError::into_inner);
        let mut measurements = Vec::new();
        for event in events {
            // How long it took until they were seen is not known any more.
            turn_telemetry.fold.apply(event, event.timestamp, &mut measurements);
            turn_telemetry.calls.apply(event);
        }
        for measurement in &measurements {
            // The previous process has counted and logged it; the turn's trace and the next choice continue
            // from it.
            self.detect_rollbacks(measurement, turn_telemetry.delivery);
            if self.traces.is_some() {
                turn_telemetry.trace.apply(measurement);
            }
        }
    }

    fn logged(&self, turn: &TurnFacts, events: &[Event]) {
        let turn_telemetry = self.turn_telemetry(turn);
        let mut turn_telemetry = turn_telemetry.lock().unwrap_or_else(PoisonError::into_inner);
        let (acknowledged_at, mut measurements) = (now(), Vec::new());
        for event in events {
            turn_telemetry.fold.apply(event, acknowledged_at, &mut measurements);
            if let (Some(history), Some(user)) = (self.history.get(), &turn.user)
                && let Some(change) = turn_telemetry.calls.apply(event)
            {
                history.record_change(user, &turn.turn_id, change);
            }
        }
        for measurement in &measurements {
            self.export_measurement(&turn.turn_id, measurement, &mut turn_telemetry);
        }
    }

    fn turn_ended(&self, turn: &TurnFacts) {
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
            history.record_raw(user, RawId { turn_id, step: call.step, attempt: call.attempt }, bytes);
        }
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
