//! Inputs of a turn at its start: everything that it needs to know about its environment.

use crate::id::{ConversationId, MessageId, TurnId};
use crate::policy::{ApprovalRule, LoopGuard, Policy, RememberedDecision};
use crate::text_rules::TextRule;
use crate::tool::OfferedTool;
use serde::{Deserialize, Serialize};
use throughline_wire::{Message, ModelSettings, ToolChoice, UserPart};

/// Agent, tools, limits and rules of a turn. The same for the whole turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnSetup {
    /// Name of the agent.
    pub agent: String,
    /// System prompt.
    pub instructions: Option<String>,
    /// Messages before this turn, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Message>,
    /// The first model has refused less of this conversation as too long: it reads old results in short from the beginning, so
    /// that it need not refuse them again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub history_too_long: bool,
    /// The model to call, then those to fall back on before the first token. [`TurnAction::CallModel`] names one by its
    /// position here.
    ///
    /// [`TurnAction::CallModel`]: crate::TurnAction::CallModel
    pub upstreams: Vec<UpstreamChoice>,
    /// `native`, `text` or `auto`: only reported in `stream_start`, the machine does not know the difference.
    pub mode: String,
    /// Tools offered, in stable order.
    pub tools: Vec<OfferedTool>,
    /// Forces a call in the first step, of any tool or of one. Afterwards the model decides: a call that is forced in every
    /// step never ends. If there are tools of [`CallRunner::Requester`], that step is offered no others.
    #[serde(skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// Sampling of every request.
    pub settings: ModelSettings,
    /// Limits of the turn.
    pub limits: TurnLimits,
    /// Start of tools without lasting effects.
    pub start: StartRule,
    /// Number of tools that run at the same time.
    pub execution: ExecutionMode,
    /// Rules about calls: allowed, asked about, or denied.
    pub policy: Policy,
    /// Remembered decisions of people, oldest first: the conversation's and those without expiry.
    pub remembered: Vec<RememberedDecision>,
    /// Person or rule that answers questions.
    pub approval: ApprovalRule,
    /// Rules that change the text shown to people or sent to the model, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub text_rules: Vec<TextRule>,
    /// Response to a model that goes in circles.
    pub guard: LoopGuard,
    /// Retries of a failed model call.
    pub retry: RetryPolicy,
    /// Fewer attempts in the first step, for callers that retry the whole turn while nothing has happened
    /// yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_step_attempts_max: Option<u32>,
    /// Handling of a turn whose process died.
    pub on_interrupted: OnInterrupted,
    /// Findings of putting the setup together: each is reported as a `problem` right after `stream_start`.
    pub remarks: Vec<SetupRemark>,
}

/// Something that the user should know before the turn begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupRemark {
    /// Stable code of the remark.
    pub code: String,
    /// The finding, in words.
    pub what: String,
    /// Suggested remedy.
    pub remedy: Option<String>,
}

/// The start input: ids and randomness come from outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnStart {
    /// Unique everywhere; the ids of calls are minted from it.
    pub turn_id: TurnId,
    /// The conversation, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// The message that the turn writes.
    pub message_id: MessageId,
    /// Nonce of the only randomness here, the jitter of retries.
    pub nonce: u64,
    /// Content that the user sent. Empty = nothing new: the model is asked to continue where the history ends.
    pub input: Vec<UserPart>,
}

/// One upstream with the model to ask there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamChoice {
    /// The configured name of the upstream.
    pub name: String,
    /// The upstream's name of the model.
    pub model: String,
}

/// Start of tools that may start early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartRule {
    /// At the seal, while the model still talks.
    #[default]
    Eager,
    /// At the commit, like all others: the barrier exactly.
    AfterStream,
}

/// Number of tools that run at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionMode {
    /// One, in the order of the calls; a call that waits for a person lets later ones start.
    #[default]
    Serial,
    /// As many as [`ToolConcurrency`] allows.
    Parallel,
}

/// Handling of a turn whose process died, when another process takes it over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInterrupted {
    /// End the turn with status `interrupted`.
    #[default]
    End,
    /// Continue from what the log holds.
    Continue,
}

/// Retries and fallbacks before the first token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Tries on each upstream. Default 3.
    pub attempts_max: u32,
    /// Wait before the second try, in milliseconds; doubled each time, half of it at random. Default 500.
    pub backoff_ms: u64,
    /// Longest wait, even if `Retry-After` asks for more, in milliseconds. Default 30,000.
    pub wait_ms_max: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts_max: 3, backoff_ms: 500, wait_ms_max: 30_000 }
    }
}

/// Bounds of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TurnLimits {
    /// Steps with at least one answered call; then one last step without tools. A step that only answers a message sent
    /// in mid-turn does not count. Default 5.
    pub iterations_max: u32,
    /// Times a provider may pause and continue in a row (`pause_turn`). Default 8.
    pub pauses_max: u32,
    /// Tool calls of a turn; further ones end as `not_started`. Default 256.
    pub calls_per_turn_max: u32,
    /// Time after which an open question counts as denied, in milliseconds; `None` = never. Default 10 minutes.
    pub approval_ms_max: Option<u64>,
    /// Questions that a running tool may ask in one call; further ones are answered with `cancel`. Default 16.
    pub questions_per_call_max: u32,
    /// Time for which the limit of a call is paused while its tool asks a person, over all its questions, in
    /// milliseconds; then the limit runs on. Default 30 minutes.
    pub asked_ms_max: u64,
    /// Time in which a cancelled tool must report its end, in milliseconds. Default 2,000.
    pub cancel_grace_ms: u64,
    /// Time beyond its own limit in which a tool must report its end, in milliseconds. Default 5,000.
    pub tool_overrun_ms: u64,
    /// Output of a call that is stored and shown to the model, in bytes; head and tail stay. Default 32 KiB: about
    /// 8,000 tokens, which a small context survives.
    pub output_bytes_max: usize,
    /// Output of a call as the model sees it once an upstream has refused the length of the history, in
    /// bytes; head and tail stay. Default 2 KiB: the subject of a result stays recognizable, and a hundred of
    /// them fit into most models.
    pub shortened_output_bytes_max: usize,
    /// Progress events of a call that are recorded. Default 1,000.
    pub progress_events_max: u32,
    /// Findings of the decoder that are recorded in a step. Default 100.
    pub problems_per_step_max: u32,
    /// Messages of the user that wait at a time, for the next step or for the end of the turn; further ones are not
    /// taken. Default 32.
    pub messages_queued_max: u32,
    /// Time limit of the requester for a call of its own tools, in milliseconds. Default 10 minutes.
    pub own_tool_ms_max: u64,
    /// Number of takeovers after the death of a process; at one more the turn ends as `interrupted`, so that a turn that
    /// brings its process down does so only a few times. Default 3.
    pub takeovers_max: u32,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            iterations_max: 5,
            pauses_max: 8,
            calls_per_turn_max: 256,
            approval_ms_max: Some(600_000),
            questions_per_call_max: 16,
            asked_ms_max: 1_800_000,
            cancel_grace_ms: 2_000,
            tool_overrun_ms: 5_000,
            output_bytes_max: 32 << 10,
            shortened_output_bytes_max: 2 << 10,
            progress_events_max: 1_000,
            problems_per_step_max: 100,
            messages_queued_max: 32,
            own_tool_ms_max: 600_000,
            takeovers_max: 3,
        }
    }
}
