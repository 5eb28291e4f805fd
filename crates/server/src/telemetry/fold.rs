//! Measurements from the events of one turn. Only this module decides the content of metrics, log lines and
//! spans.
//!
//! No clock, no exporter. Times come from the events; only the delay until a viewer could see a call comes
//! from the caller, who knows when the log acknowledged it.

use super::measurement::{
    CallAssessment, CallContent, CallDetected, CallMetrics, FailureMetrics, Measurement, StepMetrics,
    TurnChoice, TurnMetrics,
};
use std::collections::{HashMap, HashSet};
use throughline_engine::{
    BlockStart, CallStatus, ConversationId, Event, EventKind, SessionStats, ToolResult, TurnFault,
    TurnStatus, UnixMillis, WaitReason,
};
use throughline_wire::{CallId, FinishReason};

/// `source` of tools that the provider runs itself.
const HOSTED: &str = "upstream";

/// Inclusion of inputs and outputs in measurements, in addition to durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContentCapture {
    /// Names, times and numbers only.
    #[default]
    Omitted,
    /// Arguments and outputs too.
    Captured,
}

/// State of one turn, as far as telemetry needs it.
#[derive(Clone, Debug, Default)]
pub struct TelemetryFold {
    content: ContentCapture,
    began: Option<UnixMillis>,
    conversation: Option<ConversationId>,
    agent: String,
    mode: String,
    chosen: bool,
    offered: HashSet<String>,
    step: Option<TrackedStep>,
    steps: u32,
    calls: HashMap<CallId, TrackedCall>,
    calls_seen: u32,
    running: HashSet<CallId>,
    stats: Option<SessionStats>,
    error: Option<String>,
}

#[derive(Clone, Debug)]
struct TrackedStep {
    step: u32,
    attempt: u32,
    upstream: String,
    model: String,
    started_at: UnixMillis,
    first: Option<UnixMillis>,
    last: UnixMillis,
    chunks: u32,
    written: u64,
    /// Error that its events reported.
    error: Option<String>,
}

#[derive(Clone, Debug, Default)]
struct TrackedCall {
    step: u32,
    tool: Option<String>,
    source: String,
    effect: &'static str,
    assessed: bool,
    early: bool,
    parallel: bool,
    arguments: Option<String>,
}

impl TelemetryFold {
    /// The state before the first event.
    pub fn new(content: ContentCapture) -> Self {
        Self { content, ..Self::default() }
    }

    /// Takes the next event, which the log acknowledged at `acknowledged_at` (ms since 1970).
    pub fn apply(&mut self, event: &Event, acknowledged_at: UnixMillis, out: &mut Vec<Measurement>) {
        self.began.get_or_insert(event.timestamp);
        match &event.kind {
            EventKind::StreamStart { conversation_id, agent, mode, .. } => {
                self.conversation.clone_from(conversation_id);
                self.agent.clone_from(agent);
                self.mode.clone_from(mode);
                out.push(Measurement::TurnBegan);
            }
            EventKind::StepStart { upstream, model, attempt, fallback, tools_offered, .. } => {
                self.end_attempt(event.timestamp, out);
                let step = event.step.unwrap_or_default();
                self.steps = self.steps.max(step);
                self.offered = tools_offered.iter().map(|name| name.as_str().to_owned()).collect();
                if !self.chosen && *fallback == 0 {
                    self.chosen = true;
                    out.push(Measurement::ChoiceMade(TurnChoice {
                        conversation: self.conversation.clone(),
                        model: format!("{upstream}/{model}"),
                        mode: self.mode.clone(),
                    }));
                }
                self.step = Some(TrackedStep {
                    step,
                    attempt: *attempt,
                    upstream: upstream.clone(),
                    model: model.clone(),
                    started_at: event.timestamp,
                    first: None,
                    last: event.timestamp,
                    chunks: 0,
                    written: 0,
                    error: None,
                });
            }
            EventKind::ContentDelta { text, .. } | EventKind::Thinking { text, .. } => {
                self.content(event, text.len());
            }
            EventKind::ToolInputDelta { delta, .. } => self.content(event, delta.len()),
            EventKind::AudioDelta { .. } | EventKind::BlockStart(BlockStart::Image(_)) => {
                self.content(event, 0)
            }
            EventKind::Waiting { reason: WaitReason::RateLimit, why, .. } => {
                self.attempt_failed(self.failure("rate_limit", event, why.clone()), out);
            }
            EventKind::Waiting { reason: WaitReason::Retry, why, .. } => {
                self.attempt_failed(self.failure("retry", event, why.clone()), out);
            }
            EventKind::Problem { code, excerpt, remedy, .. } if code == "fallback" => {
                let failure = self.failure("fallback", event, Some(excerpt.clone()));
                self.attempt_failed(FailureMetrics { remedy: remedy.clone(), ..failure }, out);
            }
            // One that the decoder made a call of has an id.
            EventKind::Problem { code, .. } if code == "leaked_call" && event.tool_id.is_none() => {
                out.push(Measurement::CallAssessed(CallAssessment::Missed));
            }
            // A reply that breaks off reports its failure as a block of the step; the turn's error follows
            // after its end.
            EventKind::BlockStart(BlockStart::Error(fault)) => self.step_failed(fault, event, out),
            EventKind::Error(fault) => {
                self.error = Some(fault.code.clone());
                self.step_failed(fault, event, out);
            }
            EventKind::StepEnd { finish, usage, .. } => {
                if let Some(mut step) = self.step.take() {
                    let error = match (step.error.take(), finish) {
                        (Some(code), _) => Some(code),
                        (None, None) => Some("interrupted".to_owned()),
                        (None, Some(FinishReason::Error)) => Some("error".to_owned()),
                        (None, Some(_)) => None,
                    };
                    let metrics = StepMetrics {
                        finish: *finish,
                        usage: *usage,
                        ..step.metrics(event.timestamp, error)
                    };
                    out.push(Measurement::StepEnded(Box::new(metrics)));
                }
            }
            EventKind::TurnResumed { .. } => {
                // What ran in the process before will never report here.
                self.running.clear();
                self.end_attempt(event.timestamp, out);
                out.push(Measurement::TurnResumed);
            }
            EventKind::SessionStats(stats) => self.stats = Some(stats.clone()),
            EventKind::StreamEnd { status, .. } => self.end(event, *status, out),
            _ => self.call_event(event, acknowledged_at, out),
        }
    }

    fn call_event(&mut self, event: &Event, acknowledged_at: UnixMillis, out: &mut Vec<Measurement>) {
        let Some(id) = &event.tool_id else { return };
        match &event.kind {
            EventKind::ToolUse { tool_name, source, effect, supersedes, .. } => {
                let position = self.step.as_ref().map_or(0, |step| step.written);
                self.content(event, 0);
                self.calls_seen += 1;
                let hosted = source == HOSTED;
                // A name that the model made up must not become a label. A call in text may have a name that
                // matches no tool: its source is empty then.
                let is_ours = !source.is_empty() && self.offered.contains(tool_name.as_str());
                let known = hosted || is_ours;
                let call = TrackedCall {
                    step: event.step.unwrap_or_default(),
                    tool: known.then(|| tool_name.as_str().to_owned()),
                    source: source.clone(),
                    effect: effect.name(),
                    // Calls of provider tools are not assessed by our decoder; a call that supersedes another
                    // is the same call on the wire.
                    assessed: hosted || supersedes.is_some(),
                    ..TrackedCall::default()
                };
                out.push(Measurement::CallDetected(CallDetected {
                    call: id.clone(),
                    step: call.step,
                    tool: call.tool.clone(),
                    latency_ms: elapsed_ms(event.timestamp, acknowledged_at),
                    stream_position: position,
                }));
                self.calls.insert(id.clone(), call);
            }
            EventKind::ToolInput(input) => {
                let Some(call) = self.calls.get_mut(id) else { return };
                if self.content == ContentCapture::Captured {
                    call.arguments = input.arguments.as_ref().map(ToString::to_string).or(input.raw.clone());
                }
                if !std::mem::replace(&mut call.assessed, true) {
                    let is_complete = input.arguments.is_some() && call.tool.is_some();
                    let assessment =
                        if is_complete { CallAssessment::Detected } else { CallAssessment::Missed };
                    out.push(Measurement::CallAssessed(assessment));
                }
            }
            EventKind::ToolStart { early, .. } => {
                self.running.insert(id.clone());
                let is_parallel = self.running.len() > 1;
                for running in &self.running {
                    if let Some(call) = self.calls.get_mut(running) {
                        call.parallel |= is_parallel;
                    }
                }
                if let Some(call) = self.calls.get_mut(id) {
                    call.early = *early;
                }
            }
            EventKind::ToolInputReset | EventKind::ToolRedefined { .. } => {
                self.running.remove(id);
            }
            EventKind::ToolResult(result) => self.call_ended(id, event, result, out),
            _ => {}
        }
    }

    fn call_ended(&mut self, id: &CallId, event: &Event, result: &ToolResult, out: &mut Vec<Measurement>) {
        self.running.remove(id);
        let Some(call) = self.calls.remove(id) else { return };
        // Its arguments are incomplete: the stream broke, unless the call was cancelled.
        if !call.assessed && result.status != CallStatus::Cancelled {
            out.push(Measurement::CallAssessed(CallAssessment::Missed));
        }
        let content = (self.content == ContentCapture::Captured).then(|| CallContent {
            arguments: call.arguments.clone().unwrap_or_default(),
            output: result.output.clone().unwrap_or_default(),
        });
        out.push(Measurement::CallEnded(Box::new(CallMetrics {
            call: id.clone(),
            step: call.step,
            tool: call.tool,
            source: call.source,
            effect: call.effect,
            status: result.status,
            error: result.error.as_ref().map(|error| error.code.clone()),
            started_at: result.started_at,
            ended_at: match (result.started_at, result.duration_ms) {
                (Some(start), Some(ms)) => start.saturating_add_unsigned(ms),
                _ => event.timestamp,
            },
            duration_ms: result.duration_ms,
            parallel: call.parallel,
            early: call.early,
            content,
        })));
    }

    /// A piece of content of the running step, `bytes` long.
    fn content(&mut self, event: &Event, bytes: usize) {
        if let Some(step) = &mut self.step {
            step.first.get_or_insert(event.timestamp);
            step.last = event.timestamp;
            step.chunks += 1;
            step.written += bytes as u64;
        }
    }

    /// A failure of the model call that runs.
    fn failure(&self, code: &str, event: &Event, why: Option<String>) -> FailureMetrics {
        FailureMetrics {
            code: code.to_owned(),
            upstream: self.step.as_ref().map(|step| step.upstream.clone()),
            why,
            remedy: None,
            at: event.timestamp,
        }
    }

    /// The model call that runs has failed for good.
    fn step_failed(&mut self, fault: &TurnFault, event: &Event, out: &mut Vec<Measurement>) {
        let failure = self.failure(&fault.code, event, Some(fault.why.clone()));
        if let Some(step) = self.step.as_mut().filter(|step| step.error.is_none()) {
            step.error = Some(fault.code.clone());
            out.push(Measurement::UpstreamFailed(failure));
        }
    }

    /// The model call that runs has failed, and another one follows.
    fn attempt_failed(&mut self, failure: FailureMetrics, out: &mut Vec<Measurement>) {
        let (code, at) = (failure.code.clone(), failure.at);
        out.push(Measurement::UpstreamFailed(failure));
        if let Some(step) = self.step.take() {
            out.push(Measurement::StepEnded(Box::new(step.metrics(at, Some(code)))));
        }
    }

    /// A step that another one follows without a `step_end` was given up.
    fn end_attempt(&mut self, at: UnixMillis, out: &mut Vec<Measurement>) {
        if let Some(step) = self.step.take() {
            out.push(Measurement::StepEnded(Box::new(step.metrics(at, Some("interrupted".to_owned())))));
        }
    }

    fn end(&mut self, event: &Event, status: TurnStatus, out: &mut Vec<Measurement>) {
        if let Some(mut step) = self.step.take() {
            let error = step.error.take().or_else(|| Some("interrupted".to_owned()));
            out.push(Measurement::StepEnded(Box::new(step.metrics(event.timestamp, error))));
        }
        let stats = self.stats.take().unwrap_or_default();
        out.push(Measurement::TurnEnded(Box::new(TurnMetrics {
            turn: event.turn_id.clone(),
            conversation: self.conversation.clone(),
            agent: self.agent.clone(),
            mode: self.mode.clone(),
            status,
            started_at: self.began.unwrap_or(event.timestamp),
            ended_at: event.timestamp,
            steps: stats.steps.max(self.steps),
            calls: stats.calls.max(self.calls_seen),
            usage: stats.usage,
            first_content_ms: stats.first_content_ms,
            segments: stats.segments,
            error: self.error.clone(),
        })));
    }
}

impl TrackedStep {
    fn metrics(self, at: UnixMillis, error: Option<String>) -> StepMetrics {
        let gaps = self.chunks.saturating_sub(1);
        let per_chunk_ms = self
            .first
            .filter(|_| gaps > 0)
            .map(|first| elapsed_ms(first, self.last) as f64 / f64::from(gaps));
        StepMetrics {
            step: self.step,
            attempt: self.attempt,
            upstream: self.upstream,
            model: self.model,
            started_at: self.started_at,
            ended_at: at,
            first_chunk_ms: self.first.map(|first| elapsed_ms(self.started_at, first)),
            per_chunk_ms,
            finish: None,
            usage: None,
            error,
        }
    }
}

/// Time between two events; 0 if the clock went back.
fn elapsed_ms(from: UnixMillis, to: UnixMillis) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}
