//! The events of a turn: they are stored in the log, shown to viewers, and sufficient to restore the machine.
//!
//! One event is one JSON object, the same in SSE, WebSocket, `ask --events` and the store. A log written by any
//! release folds in every later one: fields and types are added, never changed, and readers ignore those they do not
//! know ([`EventKind::Unrecognised`]).

mod name;
mod new;
mod question;
mod text_delta;
pub(crate) mod tool_result;

pub use question::QuestionKind;

use crate::id::{ApprovalId, ConversationId, EventSeq, MessageId, TurnId, UnixMillis, UserMessageId};
use crate::policy::{ApprovalDecision, RememberedDecision};
use crate::tool::Effect;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use throughline_wire::{
    ArgumentRepair, BrokenCall, CallId, CallKind, CallSlot, FinishReason, Media, SealEvidence, ToolName,
    UpstreamCallId, Usage, UserPart, WireName,
};

/// Version of the event format, in `stream_start`.
pub const FORMAT: u32 = 1;

/// One item of the log.
///
/// ```
/// use throughline_engine::{Event, EventKind};
///
/// let json = br#"{"turn_id":"t","seq":7,"timestamp":5,"step":1,"block":0,"type":"content_delta","text":"Hi"}"#;
/// let event = Event::from_json("content_delta", json)?;
/// assert!(matches!(&event.kind, EventKind::ContentDelta { text, .. } if text == "Hi"));
/// assert_eq!(event.to_json()?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Id of the turn.
    pub turn_id: TurnId,
    /// Number of the event, dense from 1.
    pub seq: EventSeq,
    /// Time of the event, in milliseconds since 1970.
    pub timestamp: UnixMillis,
    /// The model call it belongs to, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Position of the block in the message, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// The tool call concerned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<CallId>,
    /// Content of the event.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// The event as viewers get it: without a text that people are not shown.
    #[must_use]
    pub fn for_viewers(mut self) -> Self {
        if let EventKind::ModelText { text, message } = &mut self.kind {
            (*text, *message) = (String::new(), None);
        }
        self
    }
}

/// Content of an event. The `type` on the wire is the variant's name in snake case.
///
/// Kinds and fields are added by later releases, so a match ends with `_`, and a pattern with `..`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The turn begins. Always `seq` 1.
    #[non_exhaustive]
    StreamStart {
        /// Version of the event format, [`FORMAT`].
        v: u32,
        /// The conversation, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<ConversationId>,
        /// The message that this turn writes.
        message_id: MessageId,
        /// Name of the answering agent.
        agent: String,
        /// `native`, `text` or `auto`. The machine does not look at it.
        mode: String,
        /// Content that the user sent.
        input: Vec<UserPart>,
    },
    /// A model call begins; once more with the next `attempt` if it is tried again before its first token.
    #[non_exhaustive]
    StepStart {
        /// Name of the upstream.
        upstream: String,
        /// Name of the model there.
        model: String,
        /// Number of the try, from 1 in each step, counted over all upstreams.
        attempt: u32,
        /// Number of the fallback, from 1; 0 = the first choice.
        #[serde(default, skip_serializing_if = "is_zero")]
        fallback: u32,
        /// Tools the model may call; empty in the last step after a limit.
        tools_offered: Vec<ToolName>,
    },
    /// The model call is over; its tools may still run. With a finish that does not truncate this is the commit.
    #[non_exhaustive]
    StepEnd {
        /// Reason for which the model stopped; absent if the step was stopped by us or by a crash.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish: Option<FinishReason>,
        /// Finish reason in the upstream's own word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_raw: Option<String>,
        /// Tokens of this step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Use of the time since the step before ended (or the turn began), contiguous.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        segments: Vec<TimeSegment>,
    },
    /// A block opens. `image`, `notice` and `error` blocks are complete with this event; `text`, `thinking` and
    /// `audio` take deltas until their `block_end`. A `tool_call` block is opened by `tool_use` instead.
    BlockStart(BlockStart),
    /// A text, thinking or audio block is complete.
    BlockEnd,
    /// Visible text, appended to the block.
    #[non_exhaustive]
    ContentDelta {
        /// Text to append.
        text: String,
    },
    /// The model's own words of a text block, or the output of a tool for the model, where a text rule shows
    /// people something else: for a block right before its `block_end`, for a call right before its
    /// `tool_result`. Viewers get the event without its text.
    ModelText {
        /// The whole text of the block, or the whole output of the call.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// Message of a call that failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Reasoning, appended to the block. Empty = the model is thinking and does not say what.
    #[non_exhaustive]
    Thinking {
        /// Text to append.
        text: String,
    },
    /// A source that the model cites, in the dialect's own form.
    #[non_exhaustive]
    Citation {
        /// Source, as the upstream describes it.
        source: Value,
    },
    /// A tool call appears: opens its block.
    #[non_exhaustive]
    ToolUse {
        /// The tool's own name (`group.method`), or the name on the wire if no such tool is offered.
        tool_name: ToolName,
        /// The name on the wire.
        wire_name: WireName,
        /// Name for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        title: String,
        /// Source of the tool: `builtin`, `mcp:files`, `upstream` (run by the provider itself), ...
        #[serde(default, skip_serializing_if = "String::is_empty")]
        source: String,
        /// The strongest effect it may have.
        effect: Effect,
        /// Always `preparing`.
        status: CallStatus,
        /// One line about the arguments, empty while none are known.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        input_summary: String,
        /// The upstream's id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        upstream_id: Option<UpstreamCallId>,
        /// Number of the call in its step, by appearance.
        slot: CallSlot,
        /// Position in the recorded order: by (`position`, `slot`).
        position: u32,
        /// JSON arguments or free text.
        #[serde(default, skip_serializing_if = "is_function")]
        call_kind: CallKind,
        /// The call that this one replaces: the upstream contradicted its arguments after its result was recorded,
        /// so that result is not used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        supersedes: Option<CallId>,
    },
    /// Argument text, appended.
    #[non_exhaustive]
    ToolInputDelta {
        /// Text to append.
        delta: String,
        /// One line about the arguments that are complete with this piece, if it differs from the one before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_summary: Option<String>,
    },
    /// The upstream contradicted an earlier `tool_input`: the argument text so far is void.
    ToolInputReset,
    /// The arguments are final, or will never be.
    ToolInput(ToolInput),
    /// A person is asked.
    #[non_exhaustive]
    ApprovalRequest {
        /// The key of the answer.
        approval_id: ApprovalId,
        /// Kind of question; absent = may the call run.
        #[serde(default, skip_serializing_if = "QuestionKind::is_call")]
        kind: QuestionKind,
        /// The question in words.
        question: String,
        /// The rule that asks.
        rule: String,
        /// Time at which it counts as denied; absent = never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<UnixMillis>,
        /// The arguments that would run, as JSON text for people: nothing in it is invisible, and it reads as the same
        /// value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments_text: Option<String>,
        /// Hash of the canonical arguments that the answer is bound to, BLAKE3 in hex.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        arguments_hash: String,
        /// Fingerprint of the definition that the answer is bound to.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        fingerprint: String,
        /// JSON Schema of the values of an elicitation to be filled in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        schema: Option<Value>,
        /// Address that an elicitation asks to open instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
    },
    /// The question is answered.
    #[non_exhaustive]
    ApprovalResolved {
        /// Id of the question.
        approval_id: ApprovalId,
        /// Decision of the person.
        decision: ApprovalDecision,
        /// Source of the answer: a person's name, `timer`, `stop`, `cancel`, `remembered`.
        by: String,
        /// Reason; the model sees that of a denial.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The arguments as the person changed them: the tool runs with these.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// Difference from the model's arguments: `[{path, from, to}]`, by JSON pointer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments_diff: Option<Value>,
        /// Scope of the answer: `call`, `turn`, `conversation`, `always`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remember: Option<String>,
        /// The decision to store for as long as it holds beyond the turn. Unreadable = nothing is stored, and the next call asks
        /// again.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "if_understood")]
        remembered: Option<Box<RememberedDecision>>,
        /// Answer to an elicitation: `accept`, `decline`, `cancel`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// Values that the person filled in, for an elicitation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
        /// The denial stopped the turn as well.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stop: bool,
    },
    /// A tool is no longer defined as it was offered. With a `tool_id`: an earlier answer about this call no longer holds, and
    /// it asks again.
    #[non_exhaustive]
    ToolRedefined {
        /// Name of the tool.
        tool_name: ToolName,
        /// Fingerprint of the new definition.
        fingerprint: String,
        /// The start of the call that was not made because of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attempt: Option<u32>,
    },
    /// The intent: durable before the tool runs.
    #[non_exhaustive]
    ToolStart {
        /// Before the step's commit.
        early: bool,
        /// From 1; again only after `tool_input_reset` or `tool_redefined`, or after a crash for tools that may be
        /// repeated.
        attempt: u32,
        /// Rule that allowed the call, or that required an approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        /// The client that is asked to run it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client_id: Option<String>,
    },
    /// A long tool reports.
    ToolProgress(CallProgress),
    /// Outcome of the call: closes its block. Exactly one for each `tool_use`.
    ToolResult(ToolResult),
    /// Sound, appended to the audio block.
    #[non_exhaustive]
    AudioDelta {
        /// `pcm16`, `mp3`, ...; absent = as configured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// In Hz.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sample_rate: Option<u32>,
        /// Base64.
        data: String,
        /// Transcript of the piece.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        transcript: String,
    },
    /// A message that the user sent during the turn is taken in at a step border: a separate block, whole.
    #[non_exhaustive]
    UserMessage {
        /// The sender's id of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<UserMessageId>,
        /// Parts of the message.
        input: Vec<UserPart>,
    },
    /// The turn waits for a known reason.
    #[non_exhaustive]
    Waiting {
        /// Reason for the wait.
        reason: WaitReason,
        /// Start of the wait, for one that has lasted a while.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<UnixMillis>,
        /// End of the wait, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<UnixMillis>,
        /// A sentence about the cause.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A finding of the decoder or the loop guard.
    #[non_exhaustive]
    Problem {
        /// A stable word: `contradicted_seal`, `repaired`, `loop_note`, ...
        code: String,
        /// Offset in the body, in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
        /// The bytes concerned, or a sentence.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        excerpt: String,
        /// Suggested remedy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
    /// Totals, right before the end.
    SessionStats(SessionStats),
    /// The turn failed; comes right after the error block of the same content.
    Error(TurnFault),
    /// Another process took the turn over.
    #[non_exhaustive]
    TurnResumed {
        /// The owner's number; writes of lower ones are refused.
        epoch: u64,
    },
    /// A block is replaced by what follows, but for its first characters.
    #[non_exhaustive]
    BlockSuperseded {
        /// Number of characters (Unicode scalar values) that stay.
        keep_chars: u64,
    },
    /// The end. Exactly one, last.
    #[non_exhaustive]
    StreamEnd {
        /// Final status.
        status: TurnStatus,
    },
    /// A type that this release does not know; ignored by every fold.
    #[serde(other)]
    Unrecognised,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_function(kind: &CallKind) -> bool {
    *kind == CallKind::Function
}

/// A value that a later release may have written: what cannot be understood of it is left out as a whole.
fn if_understood<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

/// Content of `block_start`, by its `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockStart {
    /// Visible text.
    Text {
        /// `refusal` if the model declines; absent for a normal answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// Reasoning.
    Thinking,
    /// Audio.
    Audio,
    /// A picture, whole.
    Image(Media),
    /// A remark of the engine, whole.
    Notice {
        /// A stable word: `limit`, `length`, `loop_stopped`, `empty_reply`, ...
        code: String,
        /// A sentence for people.
        text: String,
    },
    /// A failure, whole.
    Error(TurnFault),
    /// A kind that this release does not know.
    #[serde(other)]
    Unrecognised,
}

/// Kinds of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockKind {
    /// Visible text.
    Text,
    /// Reasoning.
    Thinking,
    /// A tool call with its outcome.
    ToolCall,
    /// Audio.
    Audio,
    /// A picture.
    Image,
    /// A remark of the engine.
    Notice,
    /// A failure.
    Error,
}

/// Content of `tool_input`: `arguments` (with `seal`), or `raw` and `problem`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolInput {
    /// The arguments as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The argument text that is run and echoed, where it is not the compact form of `arguments`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Repairs that were needed to read it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<ArgumentRepair>,
    /// The evidence that they are final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<SealEvidence>,
    /// The text of a call that cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Reason why it cannot be read, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Reason as a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<BrokenCall>,
    /// One line about the arguments.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input_summary: String,
}

/// Content of `tool_progress`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallProgress {
    /// Progress, in the tool's own unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// Total that `progress` counts towards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Current activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Output as it comes, appended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_delta: Option<String>,
}

/// Content of `tool_result`. It holds the whole outcome: [`ToolResult::outcome`] gives it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Final state of the call.
    pub status: CallStatus,
    /// Text output, at most [`TurnLimits::output_bytes_max`](crate::TurnLimits::output_bytes_max).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Structured form of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_value: Option<Value>,
    /// Pictures and sounds of the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_media: Vec<Media>,
    /// Bytes of the whole output, before any limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_size: Option<u64>,
    /// Path of the whole output, if it was over the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_spilled_to: Option<String>,
    /// One line about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output_summary: String,
    /// Error of a call that did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// Rule that denied the call, or that required an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Start of the tool; absent if it never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<UnixMillis>,
    /// Running time, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Client's report that a client-side call took effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<bool>,
    /// True if the model sees it. Absent = the step has not ended yet: yes, if it ends with a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_by_model: Option<bool>,
}

/// Error of a call that did not succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallError {
    /// `failed`, `denied`, `cancelled`, `cancelled_before_start`, `timed_out`, `interrupted`, `invalid_arguments`,
    /// `refused`, `unknown_tool`, `no_viewer`, `client_gone`, `stopped`, `limit`, `unknown`.
    pub code: String,
    /// Message of the tool, the check or the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Closest names to that of an unknown tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closest: Vec<String>,
    /// Name of the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Time limit, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
}

/// A failure as people see it: a code, the event, the cause and a remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFault {
    /// A stable word: `upstream_lost`, `tool_calling_unsupported`, ...
    pub code: String,
    /// The event, in a sentence.
    pub what: String,
    /// The cause, in a sentence.
    pub why: String,
    /// Suggested action.
    pub remedy: String,
    /// True if trying the same again may help.
    pub retryable: bool,
    /// HTTP status of the upstream, if it answered with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Wait before the next attempt as the upstream requested it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

impl fmt::Display for TurnFault {
    /// The sentences for people: event, cause, remedy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentences = [&self.what, &self.why, &self.remedy].map(|sentence| sentence.trim());
        let mut sentences = sentences.into_iter().filter(|sentence| !sentence.is_empty()).peekable();
        if sentences.peek().is_none() {
            return f.write_str(&self.code);
        }
        while let Some(sentence) = sentences.next() {
            f.write_str(sentence)?;
            // An upstream's own words often end without a full stop.
            f.write_str(missing_stop(sentence))?;
            if sentences.peek().is_some() {
                f.write_str(" ")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for TurnFault {}

/// The full stop that a sentence lacks, if it does, before another sentence follows it.
pub fn missing_stop(sentence: &str) -> &'static str {
    let marks = ['.', '!', '?', ':', '…', '。', '！', '？', '：', '．'];
    // It may be a quotation, or in brackets.
    let sentence = sentence.trim_end_matches(|c: char| c.is_whitespace() || "\"'”’)]）」』".contains(c));
    if sentence.is_empty() || sentence.ends_with(marks) { "" } else { "." }
}

/// Content of `session_stats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionStats {
    /// Model calls.
    pub steps: u32,
    /// Tool calls, those run by the provider included.
    pub calls: u32,
    /// Tokens of all steps.
    pub usage: Usage,
    /// From `stream_start` to this event, in milliseconds.
    pub wall_ms: u64,
    /// From `stream_start` to the first content, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_content_ms: Option<u64>,
    /// Tool time during the model's stream, which so cost nothing, in milliseconds.
    pub saved_by_eager_ms: u64,
    /// Use of the time: contiguous segments whose sum is `wall_ms`.
    pub segments: Vec<TimeSegment>,
}

/// State of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Arguments are arriving.
    Preparing,
    /// Arguments are final; it has not been started.
    Queued,
    /// A person is asked.
    AwaitingApproval,
    /// The call runs.
    Running,
    /// The call succeeded.
    Success,
    /// The tool reported a failure.
    Error,
    /// A person or a rule refused.
    Denied,
    /// Stopped by the user.
    Cancelled,
    /// The call exceeded its time limit.
    TimedOut,
    /// The call never ran.
    NotStarted,
    /// The call was started, and its outcome is not known.
    Unknown,
}

impl CallStatus {
    /// No further event will change it.
    pub fn is_final(self) -> bool {
        !matches!(
            self,
            CallStatus::Preparing | CallStatus::Queued | CallStatus::AwaitingApproval | CallStatus::Running
        )
    }
}

/// Reason for a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WaitReason {
    /// The upstream has not answered yet.
    FirstByte,
    /// The upstream has gone silent during its reply.
    Silence,
    /// The upstream asked for a pause (rate limit).
    RateLimit,
    /// The call failed and will be tried again.
    Retry,
    /// The log is slow.
    Store,
    /// A client has not answered a call, or has not reconnected since a restart.
    Client,
}

/// Final status of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// The model stopped normally.
    Completed,
    /// Cut by the token budget; it can be continued.
    Length,
    /// A limit of the engine was reached; the last step answered without tools.
    Limit,
    /// The turn failed; an error block gives the reason.
    Error,
    /// The user stopped it.
    Cancelled,
    /// The process that ran it died and no other continued it.
    Interrupted,
}

/// A stretch of time with one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSegment {
    /// Activity during this segment.
    pub kind: SegmentKind,
    /// Number of the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The call, for tools and approvals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<CallId>,
    /// Start of the segment.
    pub start: UnixMillis,
    /// Length, in milliseconds.
    pub ms: u64,
}

/// Activity that a stretch of time is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SegmentKind {
    /// From the request to the first content.
    FirstToken,
    /// The model thinks.
    Thinking,
    /// The model writes.
    Text,
    /// The model writes arguments.
    Arguments,
    /// A person is asked and nothing else runs.
    ApprovalWait,
    /// A tool runs and the model does not.
    Tool,
    /// A failed model call waits for its next try.
    Retry,
    /// None of the above: the engine's own time between the parts.
    Engine,
}
