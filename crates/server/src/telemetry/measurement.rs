//! Measurements derived from a turn's events: values with units, independent of any exporter's names.

use throughline_engine::{CallStatus, ConversationId, TimeSegment, TurnId, TurnStatus, UnixMillis};
use throughline_wire::{CallId, FinishReason, Usage};

/// One finding of [`TelemetryFold`](super::TelemetryFold).
#[derive(Clone, Debug, PartialEq)]
pub enum Measurement {
    TurnBegan,
    /// A turn that another process (or this one before a restart) had begun goes on here.
    TurnResumed,
    /// The first model call of a turn says what the user has chosen.
    ChoiceMade(TurnChoice),
    /// A call became visible to viewers.
    CallDetected(CallDetected),
    /// Assessment of a call that was seen on the wire.
    CallAssessed(CallAssessment),
    /// A call has ended.
    CallEnded(Box<CallMetrics>),
    /// A model call failed; the turn may go on with another try.
    UpstreamFailed(FailureMetrics),
    /// A model call is over.
    StepEnded(Box<StepMetrics>),
    /// A turn is over.
    TurnEnded(Box<TurnMetrics>),
}

/// Failure of a model call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureMetrics {
    /// A stable word: `rate_limit`, `retry`, `fallback`, or the code of the turn's error.
    pub code: String,
    /// Name of the upstream, if it is known.
    pub upstream: Option<String>,
    /// The upstream's own words.
    pub why: Option<String>,
    /// The continuation, if there is one.
    pub remedy: Option<String>,
    pub at: UnixMillis,
}

/// Choices of the user for a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnChoice {
    /// Where the turn belongs; without one there is nothing to compare with.
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
    /// In which step, from 1.
    pub step: u32,
    /// The tool's own name, if such a tool was offered.
    pub tool: Option<String>,
    /// From the delta of the upstream that named the call to the acknowledgment of its `tool_use`, in milliseconds.
    pub latency_ms: u64,
    /// Bytes of text, thinking and arguments that the step had written before.
    pub stream_position: u64,
}

/// Completeness of a call that was seen on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAssessment {
    /// With the name of an offered tool and readable arguments.
    Detected,
    /// Half, unreadable, for a tool that nobody offered, or leaked as text.
    Missed,
}

/// A call that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CallMetrics {
    /// Our id.
    pub call: CallId,
    /// In which step, from 1.
    pub step: u32,
    /// The tool's own name, if such a tool was offered.
    pub tool: Option<String>,
    /// Where the tool comes from: `builtin`, `mcp:files`, `upstream`, ...
    pub source: String,
    pub effect: &'static str,
    pub status: CallStatus,
    /// Why it did not succeed: a stable word.
    pub error: Option<String>,
    /// When the tool started; absent if it never did.
    pub started_at: Option<UnixMillis>,
    /// When its result was there.
    pub ended_at: UnixMillis,
    /// Run time in milliseconds.
    pub duration_ms: Option<u64>,
    /// True if another tool of the turn ran at the same time.
    pub parallel: bool,
    /// True if it started while the model was still writing.
    pub early: bool,
    /// Arguments and output, where content may be kept.
    pub content: Option<CallContent>,
}

/// Content of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallContent {
    /// As JSON.
    pub arguments: String,
    pub output: String,
}

/// A model call that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct StepMetrics {
    /// From 1 in the turn.
    pub step: u32,
    /// From 1 in the step.
    pub attempt: u32,
    /// Name of the upstream.
    pub upstream: String,
    /// Name of the model there.
    pub model: String,
    /// When it was asked.
    pub started_at: UnixMillis,
    /// When its reply was over.
    pub ended_at: UnixMillis,
    /// To the first content, in milliseconds.
    pub first_chunk_ms: Option<u64>,
    /// Mean time between two pieces of content after the first, in milliseconds.
    pub per_chunk_ms: Option<f64>,
    /// Why the model stopped.
    pub finish: Option<FinishReason>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// Why it failed: a stable word.
    pub error: Option<String>,
}

/// A turn that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnMetrics {
    pub turn: TurnId,
    /// Where it belongs.
    pub conversation: Option<ConversationId>,
    /// Name of the agent.
    pub agent: String,
    /// `native`, `text` or `auto`.
    pub mode: String,
    pub status: TurnStatus,
    /// When it began, as far as these events go.
    pub started_at: UnixMillis,
    /// When it ended.
    pub ended_at: UnixMillis,
    /// Model calls.
    pub steps: u32,
    /// Tool calls.
    pub calls: u32,
    /// Tokens of all steps.
    pub usage: Usage,
    /// From the beginning to the first content, in milliseconds.
    pub first_content_ms: Option<u64>,
    /// Where the time went.
    pub segments: Vec<TimeSegment>,
    /// Why it failed: a stable word.
    pub error: Option<String>,
}
