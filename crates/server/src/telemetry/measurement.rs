//! Measurements derived from a turn's events: values with units, independent of any exporter's names.

use throughline_engine::{CallStatus, ConversationId, TimeSegment, TurnId, TurnStatus, UnixMillis};
use throughline_wire::{CallId, FinishReason, Usage};

/// One result of [`TelemetryFold`](super::TelemetryFold).
#[derive(Clone, Debug, PartialEq)]
pub enum Measurement {
    TurnBegan,
    /// A turn that another process (or this one before a restart) had begun continues here.
    TurnResumed,
    /// The first model call of a turn, with the user's choices.
    ChoiceMade(TurnChoice),
    /// A call became visible to viewers.
    CallDetected(CallDetected),
    /// Assessment of a call that was seen on the wire.
    CallAssessed(CallAssessment),
    /// A call has ended.
    CallEnded(Box<CallMetrics>),
    /// A model call failed; the turn may continue with another attempt.
    UpstreamFailed(FailureMetrics),
    /// A model call is over.
    StepEnded(Box<StepMetrics>),
    /// A turn is over.
    TurnEnded(Box<TurnMetrics>),
}

/// Failure of a model call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureMetrics {
    /// A stable code: `rate_limit`, `retry`, `fallback`, or the code of the turn's error.
    pub code: String,
    /// Name of the upstream, if it is known.
    pub upstream: Option<String>,
    /// The upstream's message.
    pub why: Option<String>,
    /// The continuation, if any.
    pub remedy: Option<String>,
    pub at: UnixMillis,
}

/// Choices of the user for a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnChoice {
    /// Conversation of the turn; without one there is no previous turn to compare with.
    pub conversation: Option<ConversationId>,
    /// `upstream/model`.
    pub model: String,
    /// `native`, `text` or `auto`.
    pub mode: String,
}

/// A call that has just become visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallDetected {
    /// Our id.
    pub call: CallId,
    /// Step of the call, from 1.
    pub step: u32,
    /// The tool's own name, if such a tool was offered.
    pub tool: Option<String>,
    /// Time from the delta of the upstream that named the call to the acknowledgment of its `tool_use`, in
    /// milliseconds.
    pub latency_ms: u64,
    /// Bytes of text, thinking and arguments that the step had written before.
    pub stream_position: u64,
}

/// Completeness of a call that was seen on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAssessment {
    /// A call with the name of an offered tool and valid arguments.
    Detected,
    /// A call that is incomplete, malformed, for a tool that was not offered, or leaked as text.
    Missed,
}

/// A call that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CallMetrics {
    /// Our id.
    pub call: CallId,
    /// Step of the call, from 1.
    pub step: u32,
    /// The tool's own name, if such a tool was offered.
    pub tool: Option<String>,
    /// Source of the tool: `builtin`, `mcp:files`, `upstream`, ...
    pub source: String,
    pub effect: &'static str,
    pub status: CallStatus,
    /// Code of the error, if it failed.
    pub error: Option<String>,
    /// Time of the tool's start; absent if it never started.
    pub started_at: Option<UnixMillis>,
    /// Time of the result.
    pub ended_at: UnixMillis,
    /// Run time in milliseconds.
    pub duration_ms: Option<u64>,
    /// True if another tool of the turn ran at the same time.
    pub parallel: bool,
    /// True if it started while the model was still writing.
    pub early: bool,
    /// Arguments and output, if content may be recorded.
    pub content: Option<CallContent>,
}

/// Content of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallContent {
    /// Arguments as JSON.
    pub arguments: String,
    pub output: String,
}

/// A model call that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct StepMetrics {
    /// Number of the step in the turn, from 1.
    pub step: u32,
    /// Number of the attempt in the step, from 1.
    pub attempt: u32,
    /// Name of the upstream.
    pub upstream: String,
    /// Name of the model there.
    pub model: String,
    /// Time of the request.
    pub started_at: UnixMillis,
    /// Time of the end of the reply.
    pub ended_at: UnixMillis,
    /// Time to the first content, in milliseconds.
    pub first_chunk_ms: Option<u64>,
    /// Mean time between two pieces of content after the first, in milliseconds.
    pub per_chunk_ms: Option<f64>,
    /// Finish reason of the model.
    pub finish: Option<FinishReason>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// Code of the error, if it failed.
    pub error: Option<String>,
}

/// A turn that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnMetrics {
    pub turn: TurnId,
    /// Conversation of the turn.
    pub conversation: Option<ConversationId>,
    /// Name of the agent.
    pub agent: String,
    /// `native`, `text` or `auto`.
    pub mode: String,
    pub status: TurnStatus,
    /// Time of the first event.
    pub started_at: UnixMillis,
    /// Time of the last event.
    pub ended_at: UnixMillis,
    /// Model calls.
    pub steps: u32,
    /// Tool calls.
    pub calls: u32,
    /// Tokens of all steps.
    pub usage: Usage,
    /// Time from the beginning to the first content, in milliseconds.
    pub first_content_ms: Option<u64>,
    /// Segments of the turn's time.
    pub segments: Vec<TimeSegment>,
    /// Code of the error, if it failed.
    pub error: Option<String>,
}
