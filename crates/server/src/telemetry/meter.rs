//! Measurements as Prometheus metrics. One registry for each server: nothing global, so that two in one process never mix.

use super::labels::{AGENT_LABELS_MAX, BoundedLabel, MODEL_LABELS_MAX, TOOL_LABELS_MAX, WORD_LABELS_MAX};
use super::measurement::{CallAssessment, CallMetrics, Measurement, StepMetrics, TurnMetrics};
use super::names::{self, Metric, MetricKind};
use super::redaction::Redaction;
use super::rollback::RollbackKind;
use super::thresholds::{ThresholdInfo, ThresholdWindow};
use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use throughline_engine::{CallStatus, TurnStatus};
use throughline_store::RatingValue;

/// Calls that the detection rate looks back on.
pub(super) const DETECTION_WINDOW_CALLS: usize = 1_000;
/// Label of a tool that was not offered.
const UNKNOWN_TOOL: &str = "unknown";

/// Result of a viewer's reconnection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerResume {
    /// The events after the last one that it had seen.
    Continued,
    /// The message so far, then the events after it.
    Snapshot,
    /// The message so far, because the viewer's cursor is not in the log.
    Resync,
    /// Nothing: the turn was deleted.
    Expired,
}

impl ViewerResume {
    pub const ALL: [ViewerResume; 4] =
        [ViewerResume::Continued, ViewerResume::Snapshot, ViewerResume::Resync, ViewerResume::Expired];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            ViewerResume::Continued => "continued",
            ViewerResume::Snapshot => "snapshot",
            ViewerResume::Resync => "resync",
            ViewerResume::Expired => "gone",
        }
    }
}

/// Function that reads the metrics of the store.
pub type StoreMetricsFn = Arc<dyn Fn() -> StoreMetrics + Send + Sync>;

/// Metrics of the store since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreMetrics {
    /// Transactions.
    pub commits: u64,
    /// Number of syncs to disk among them.
    pub fsyncs: u64,
    pub events: u64,
    /// Appends that wait.
    pub queue: u64,
}

/// The metrics of one server.
pub struct TelemetryMeter {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    redaction: Arc<Redaction>,
    tools: BoundedLabel,
    models: BoundedLabel,
    agents: BoundedLabel,
    words: BoundedLabel,
    assessments: Mutex<VecDeque<CallAssessment>>,
    lately: Mutex<ThresholdWindow>,
}

impl std::fmt::Debug for TelemetryMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TelemetryMeter")
    }
}

impl TelemetryMeter {
    /// All metrics, starting at zero where that is meaningful.
    pub fn new(redaction: Arc<Redaction>) -> Self {
        let mut builder = PrometheusBuilder::new();
        for metric in names::METRICS {
            if let MetricKind::Histogram(buckets) = metric.kind {
                // Refused for an empty list only, and none is.
                builder = match builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), buckets)
                {
                    Ok(with) => with,
                    Err(_) => PrometheusBuilder::new(),
                };
            }
        }
        let recorder = builder.build_recorder();
        for metric in names::METRICS {
            let (name, help) = (metric.name.into(), metric.help.into());
            match metric.kind {
                MetricKind::Counter => recorder.describe_counter(name, None, help),
                MetricKind::Gauge => recorder.describe_gauge(name, None, help),
                MetricKind::Histogram(_) => recorder.describe_histogram(name, None, help),
            }
        }
        let handle = recorder.handle();
        let meter = Self {
            recorder,
            handle,
            redaction,
            tools: BoundedLabel::new(TOOL_LABELS_MAX),
            models: BoundedLabel::new(MODEL_LABELS_MAX),
            agents: BoundedLabel::new(AGENT_LABELS_MAX),
            words: BoundedLabel::new(WORD_LABELS_MAX),
            assessments: Mutex::default(),
            lately: Mutex::default(),
        };
        meter.init_counters();
        meter
    }

    /// A rate needs a first value: what can be counted is there before it happens.
    fn init_counters(&self) {
        self.gauge(names::BUILD, vec![Label::new("version", env!("CARGO_PKG_VERSION"))], 1.0);
        for status in STATUSES {
            self.count(names::TURNS, vec![Label::new("status", turn_status(status))], 0);
        }
        for change in RollbackKind::ALL {
            self.count(names::ROLLBACKS, vec![Label::new("change", change.name())], 0);
        }
        for outcome in ViewerResume::ALL {
            self.count(names::RESUMES, vec![Label::new("outcome", outcome.name())], 0);
        }
        for counter in
            [names::JANK_FRAMES, names::CALLS_SEEN, names::CALLS_DETECTED, names::TURNS_RESUMED, names::DROPS]
        {
            self.count(counter, Vec::new(), 0);
        }
        for gauge in [names::ACTIVE_TURNS, names::VIEWERS, names::HISTORY_QUEUE] {
            self.gauge(gauge, Vec::new(), 0.0);
        }
        // Nothing was missed yet.
        self.gauge(names::DETECTION_RATE, Vec::new(), 1.0);
    }

    /// Takes a finding.
    pub fn record(&self, measurement: &Measurement) {
        match measurement {
            Measurement::CallDetected(detected) => {
                self.observe(names::DETECTION, Vec::new(), seconds(detected.latency_ms));
            }
            Measurement::CallAssessed(assessment) => self.assess(*assessment),
            Measurement::CallEnded(call) => self.record_call(call),
            Measurement::UpstreamFailed(failure) => {
                self.count(names::UPSTREAM_ERRORS, vec![self.word("code", &failure.code)], 1);
            }
            Measurement::StepEnded(step) => self.record_step(step),
            Measurement::TurnEnded(turn) => self.record_turn(turn),
            Measurement::TurnResumed => self.count(names::TURNS_RESUMED, Vec::new(), 1),
            Measurement::TurnBegan | Measurement::ChoiceMade(_) => {}
        }
    }

    fn assess(&self, assessment: CallAssessment) {
        self.lately(|lately, now| lately.call_assessed(now, assessment == CallAssessment::Detected));
        self.count(names::CALLS_SEEN, Vec::new(), 1);
        self.count(names::CALLS_DETECTED, Vec::new(), u64::from(assessment == CallAssessment::Detected));
        let mut assessments = self.assessments.lock().unwrap_or_else(PoisonError::into_inner);
        assessments.push_back(assessment);
        if assessments.len() > DETECTION_WINDOW_CALLS {
            assessments.pop_front();
        }
        let detected =
            assessments.iter().filter(|assessment| **assessment == CallAssessment::Detected).count();
        self.gauge(names::DETECTION_RATE, Vec::new(), detected as f64 / assessments.len() as f64);
    }

    fn record_call(&self, call: &CallMetrics) {
        let tool = self.bounded(names::TOOL, &self.tools, call.tool.as_deref().unwrap_or(UNKNOWN_TOOL));
        let status = Label::new("status", call_status(call.status));
        self.count(names::CALLS, vec![tool.clone(), status], 1);
        // What never started took no time.
        let (Some(_), Some(ms)) = (call.started_at, call.duration_ms) else { return };
        let error = call_error(call).map(|error| self.word(names::ERROR_TYPE, error));
        self.observe(names::EXECUTION_LATENCY, Vec::new(), seconds(ms));
        self.lately(|lately, now| lately.call_executed(now, ms));
        if call.source.starts_with("mcp:") {
            let method = Label::new("mcp_method_name", "tools/call");
            let labels = [method, tool.clone()].into_iter().chain(error.clone()).collect();
            self.observe(names::MCP_DURATION, labels, seconds(ms));
        }
        let labels = [Label::new(names::OPERATION, "execute_tool"), tool].into_iter().chain(error).collect();
        self.observe(names::TOOL_DURATION, labels, seconds(ms));
    }

    fn record_step(&self, step: &StepMetrics) {
        let base = vec![
            Label::new(names::OPERATION, "chat"),
            self.word(names::PROVIDER, names::provider_name(&step.upstream)),
            self.bounded(names::MODEL, &self.models, &step.model),
        ];
        let error = step.error.as_deref().map(|error| self.word(names::ERROR_TYPE, error));
        let elapsed_ms = u64::try_from(step.ended_at - step.started_at).unwrap_or(0);
        self.observe(
            names::OPERATION_DURATION,
            base.iter().cloned().chain(error).collect(),
            seconds(elapsed_ms),
        );
        if let Some(ms) = step.first_chunk_ms {
            self.observe(names::FIRST_CHUNK, base.clone(), seconds(ms));
        }
        if let Some(ms) = step.per_chunk_ms {
            self.observe(names::PER_CHUNK, base.clone(), ms / 1_000.0);
        }
        let usage = step.usage.unwrap_or_default();
        for (kind, tokens) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
            if let Some(tokens) = tokens {
                let labels = base.iter().cloned().chain([Label::new(names::TOKEN_TYPE, kind)]).collect();
                self.observe(names::TOKEN_USAGE, labels, tokens as f64);
            }
        }
    }

    fn record_turn(&self, turn: &TurnMetrics) {
        self.count(names::TURNS, vec![Label::new("status", turn_status(turn.status))], 1);
        self.observe(names::STEPS_PER_TURN, Vec::new(), f64::from(turn.steps));
        if let Some(ms) = turn.first_content_ms {
            self.observe(names::FIRST_CONTENT, Vec::new(), seconds(ms));
        }
        let error = match turn.status {
            TurnStatus::Completed | TurnStatus::Length | TurnStatus::Limit => None,
            TurnStatus::Error => Some(turn.error.as_deref().unwrap_or("error")),
            TurnStatus::Cancelled => Some("cancelled"),
            TurnStatus::Interrupted => Some("interrupted"),
        };
        let labels = [
            Label::new(names::OPERATION, "invoke_agent"),
            self.bounded(names::AGENT, &self.agents, &turn.agent),
        ];
        let labels =
            labels.into_iter().chain(error.map(|error| self.word(names::ERROR_TYPE, error))).collect();
        let elapsed_ms = u64::try_from(turn.ended_at - turn.started_at).unwrap_or(0);
        self.observe(names::AGENT_DURATION, labels, seconds(elapsed_ms));
    }

    /// Sets the number of running turns.
    pub(crate) fn active_turns(&self, turns: usize) {
        self.gauge(names::ACTIVE_TURNS, Vec::new(), turns as f64);
    }

    /// Sets the number of ended calls that wait for the call history.
    pub(crate) fn history_queue(&self, calls: usize) {
        self.gauge(names::HISTORY_QUEUE, Vec::new(), calls as f64);
    }

    /// Counts a viewer that connects or disconnects.
    pub fn viewers(&self, change: i32) {
        let key = Key::from_static_name(names::VIEWERS.name);
        self.recorder.register_gauge(&key, &META).increment(f64::from(change));
    }

    /// A viewer came back.
    pub fn resumed(&self, outcome: ViewerResume) {
        self.count(names::RESUMES, vec![Label::new("outcome", outcome.name())], 1);
    }

    /// A viewer was cut off because it did not read.
    pub fn dropped(&self) {
        self.count(names::DROPS, Vec::new(), 1);
    }

    /// A user rated the answer of a turn.
    pub fn rated(&self, turn: &str, value: RatingValue) {
        self.count(names::RATINGS, vec![Label::new("value", value.name())], 1);
        self.lately(|lately, now| lately.rated(now, turn, Some(value == RatingValue::Up)));
    }

    /// A user retracted a rating. A counter never decreases; the thresholds have recent figures.
    pub(crate) fn rating_removed(&self, turn: &str) {
        self.lately(|lately, now| lately.rated(now, turn, None));
    }

    /// A user returned to something simpler.
    pub fn rollback(&self, change: RollbackKind) {
        self.count(names::ROLLBACKS, vec![Label::new("change", change.name())], 1);
        self.lately(ThresholdWindow::rolled_back);
    }

    /// A page reports late frames.
    pub fn jank_frames(&self, frames: u64) {
        self.count(names::JANK_FRAMES, Vec::new(), frames);
        self.lately(|lately, now| lately.jank_frames(now, frames));
    }

    /// Thresholds for streaming tool calls, held against what happened lately.
    pub fn thresholds(&self) -> Vec<ThresholdInfo> {
        self.lately(|lately, now| lately.thresholds(now))
    }

    fn lately<T>(&self, act: impl FnOnce(&mut ThresholdWindow, i64) -> T) -> T {
        let now = jiff::Timestamp::now().as_millisecond();
        act(&mut self.lately.lock().unwrap_or_else(PoisonError::into_inner), now)
    }

    /// Records the metrics of the store.
    pub fn store(&self, metrics: StoreMetrics) {
        let total = |metric: Metric, value| {
            self.recorder.register_counter(&Key::from_static_name(metric.name), &META).absolute(value);
        };
        total(names::STORE_COMMITS, metrics.commits);
        total(names::STORE_FSYNCS, metrics.fsyncs);
        total(names::STORE_EVENTS, metrics.events);
        self.gauge(names::STORE_QUEUE, Vec::new(), metrics.queue as f64);
    }

    /// Sets the memory of the process, in bytes.
    pub fn resident_memory(&self, bytes: u64) {
        self.gauge(names::RESIDENT_MEMORY, Vec::new(), bytes as f64);
    }

    /// The Prometheus text, version 0.0.4.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Aggregates the samples of histograms, which grow until then. To be called every few seconds.
    pub fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }

    fn word(&self, label: &'static str, value: &str) -> Label {
        self.bounded(label, &self.words, value)
    }

    /// A label value from outside: redacted, and bounded in number.
    fn bounded(&self, label: &'static str, values: &BoundedLabel, value: &str) -> Label {
        Label::new(label, values.value(&self.redaction.redact(value)))
    }

    fn count(&self, metric: Metric, labels: Vec<Label>, by: u64) {
        self.recorder.register_counter(&Key::from_parts(metric.name, labels), &META).increment(by);
    }

    fn gauge(&self, metric: Metric, labels: Vec<Label>, value: f64) {
        self.recorder.register_gauge(&Key::from_parts(metric.name, labels), &META).set(value);
    }

    fn observe(&self, metric: Metric, labels: Vec<Label>, value: f64) {
        self.recorder.register_histogram(&Key::from_parts(metric.name, labels), &META).record(value);
    }
}

static META: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

const STATUSES: [TurnStatus; 6] = [
    TurnStatus::Completed,
    TurnStatus::Length,
    TurnStatus::Limit,
    TurnStatus::Error,
    TurnStatus::Cancelled,
    TurnStatus::Interrupted,
];

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// Status of a turn, as in events.
pub(super) fn turn_status(status: TurnStatus) -> &'static str {
    match status {
        TurnStatus::Completed => "completed",
        TurnStatus::Length => "length",
        TurnStatus::Limit => "limit",
        TurnStatus::Error => "error",
        TurnStatus::Cancelled => "cancelled",
        TurnStatus::Interrupted => "interrupted",
    }
}

/// State of a call, as events have it.
pub(super) fn call_status(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Preparing => "preparing",
        CallStatus::Queued => "queued",
        CallStatus::AwaitingApproval => "awaiting_approval",
        CallStatus::Running => "running",
        CallStatus::Success => "success",
        CallStatus::Error => "error",
        CallStatus::Denied => "denied",
        CallStatus::Cancelled => "cancelled",
        CallStatus::TimedOut => "timed_out",
        CallStatus::NotStarted => "not_started",
        CallStatus::Unknown => "unknown",
    }
}

/// `error.type` of a call: an MCP server's failure is `tool_error`, as the conventions have it.
pub(super) fn call_error(call: &CallMetrics) -> Option<&str> {
    match call.status {
        CallStatus::Success => None,
        CallStatus::Error if call.source.starts_with("mcp:") => Some("tool_error"),
        status => Some(call.error.as_deref().unwrap_or(call_status(status))),
    }
}
