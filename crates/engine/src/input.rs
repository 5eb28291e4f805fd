//! Inputs of the machine. Every input may come at any time: one that is late, doubled or unknown is ignored.

use crate::event::CallProgress;
use crate::id::{ApprovalId, UnixMillis, UserMessageId};
use crate::policy::{ApprovalDecision, RememberRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use throughline_wire::{CallId, CallOutcome, StepEvent, ToolName, UserPart};

/// Everything that can happen to a turn: the only way in.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnInput {
    /// An event of the model's reply. Events of one attempt come in the decoder's order.
    Model {
        /// Repeated from the action that called the model.
        step: u32,
        /// Repeated from the action that called the model.
        attempt: u32,
        /// One event of the decoded reply.
        event: StepEvent<'static>,
    },
    /// The model call failed outside the decoder: no connection, an HTTP status, a timeout. Before the stream
    /// or during it; instead of [`StepEvent::End`]. Also instead of an error that came as the first event of
    /// a stream, if the driver recognizes it.
    ModelFailed {
        /// Repeated from the action that called the model.
        step: u32,
        /// Repeated from the action that called the model.
        attempt: u32,
        /// The failure, as the driver classifies it.
        failure: UpstreamFailure,
        /// Time that is left for further attempts on this upstream, in milliseconds: a wait that does not fit into it is not
        /// begun. `None` = no limit.
        time_left_ms: Option<u64>,
    },
    /// The answer to [`TurnAction::Validate`](crate::TurnAction::Validate). A call of a connected client starts only with
    /// one that has just come.
    Validated {
        /// The call whose arguments were checked.
        call: CallId,
        /// As in the action: the answer to a check that no longer matters is ignored.
        version: u32,
        /// The result of the check.
        validation: ArgumentValidation,
    },
    /// A check is held: the client that the tool was offered for is not back since a restart. It is answered once the client
    /// is back, or at `until`.
    CheckHeld {
        /// Call whose arguments are checked.
        call: CallId,
        /// As in the action.
        version: u32,
        /// The end of the wait.
        until: UnixMillis,
    },
    /// Progress report of a tool.
    ToolProgress {
        /// Call that reports.
        call: CallId,
        /// Repeated from the action that started it.
        attempt: u32,
        /// Reported progress.
        progress: CallProgress,
    },
    /// A running tool wants to know something of a person; the answer comes by
    /// [`TurnAction::AnswerTool`](crate::TurnAction::AnswerTool).
    ToolQuestionAsked {
        /// Call whose tool asks.
        call: CallId,
        /// Repeated from the action that started it.
        attempt: u32,
        /// To be repeated in the answer.
        question_id: u64,
        /// Question for a person.
        question: ToolQuestion,
    },
    /// A person answers a tool's question; the values fit the question's schema.
    ToolQuestionAnswered {
        /// Id of the question, from its `approval_request`.
        question: ApprovalId,
        /// Answer of the person.
        answer: ToolAnswer,
        /// Name of the person who answers.
        by: String,
    },
    /// A client reports how a call ended that it was asked to run. The first answer in time wins.
    ClientAnswered {
        /// Call that the client was asked to run.
        call: CallId,
        /// The start that it answers, if the client names one.
        attempt: Option<u32>,
        /// The client's answer.
        answer: ClientAnswer,
    },
    /// A tool has ended, with any outcome. A second end of an attempt is ignored.
    ToolEnded {
        /// The call that ended.
        call: CallId,
        /// Repeated from the action that started it.
        attempt: u32,
        /// Outcome of the call.
        outcome: CallOutcome,
    },
    /// A person (or who acts for one) answers.
    Approval {
        /// The answered question, or all open ones.
        question: ApprovalTarget,
        /// Decision of the person.
        decision: ApprovalDecision,
        /// Name of the person who answers.
        by: String,
        /// Reason; the model sees that of a denial.
        reason: Option<String>,
        /// `arguments_hash` of the question as the answering person saw it. If it is another one by now, the answer is
        /// refused (problem `stale_answer`); `None` = not compared.
        arguments_hash: Option<String>,
        /// An approval with these arguments instead. They are checked first: if they do not fit, or a rule denies them,
        /// the question stays open (problem `invalid_edit`). Only for one question at a time.
        arguments: Option<serde_json::Value>,
        /// The part of the answer to remember for later calls.
        remember: Option<RememberRequest>,
        /// With a denial: the turn stops as well, as if the same person had pressed stop. Without a denial it means
        /// nothing.
        stop: bool,
    },
    /// A tool is no longer defined as it was offered: an approval was for another definition, so a call that has not been
    /// started asks again.
    ToolRedefined {
        /// Name of the tool.
        tool: ToolName,
        /// Fingerprint of its new definition.
        fingerprint: String,
        /// The start that was not made because of it: an [`TurnAction::StartTool`](crate::TurnAction::StartTool) whose
        /// fingerprint is not that of the definition that is there now.
        start: Option<(CallId, u32)>,
    },
    /// The user sends a message while the turn runs. A message with a known id changes nothing.
    UserMessage(QueuedMessage),
    /// The user takes a message back that was not taken in yet.
    RetractMessage {
        /// Id of the message.
        id: UserMessageId,
    },
    /// Stop the turn. A second one does not wait for tools to say how they ended.
    Cancel,
    /// A cancellation by the operator, for a reason that its notice gives.
    CancelWithReason {
        /// A sentence for people.
        why: String,
    },
    /// Stop one call; the turn continues.
    CancelCall {
        /// The call to stop.
        call: CallId,
    },
    /// The log has taken this long over an append and has caught up: viewers learn the reason of the pause.
    LogDelayed {
        /// Duration of the delay, in milliseconds.
        ms: u64,
    },
    /// A timer of [`TurnAction::SetTimer`](crate::TurnAction::SetTimer) is due. Timers are never taken back: one that is no
    /// longer needed is ignored.
    Timer {
        /// The timer that fired.
        id: TimerId,
    },
}

impl TurnInput {
    /// An answer without conditions: nothing compared, nothing changed, nothing remembered.
    ///
    /// ```
    /// use throughline_engine::{ApprovalDecision, ApprovalTarget, TurnInput};
    ///
    /// let reason = Some("not today".to_owned());
    /// let input = TurnInput::plain_approval(ApprovalTarget::All, ApprovalDecision::Deny, "ada", reason);
    /// assert!(matches!(input, TurnInput::Approval { arguments_hash: None, remember: None, .. }));
    /// ```
    pub fn plain_approval(
        question: ApprovalTarget,
        decision: ApprovalDecision,
        by: &str,
        reason: Option<String>,
    ) -> Self {
        let by = by.to_owned();
        let (arguments_hash, arguments, remember) = (None, None, None);
        TurnInput::Approval {
            question,
            decision,
            by,
            reason,
            arguments_hash,
            arguments,
            remember,
            stop: false,
        }
    }
}

/// The question, or questions, that an approval answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalTarget {
    /// One approval request.
    One(ApprovalId),
    /// All requests that are open now.
    All,
}

/// Result of checking arguments against a tool's schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentValidation {
    /// The arguments fit the schema.
    Valid,
    /// The arguments do not fit the schema.
    Invalid {
        /// Path and expectation, for the model.
        message: String,
    },
    /// The client that the tool was offered for has withdrawn it, so the arguments can no longer be
    /// validated.
    NoViewer,
}

/// Identity of a timer. Opaque to the driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TimerId {
    /// An approval request expires.
    Approval(ApprovalId),
    /// The next try of a model call.
    Retry {
        /// Step that waits for its next attempt.
        step: u32,
        /// The try that begins.
        attempt: u32,
    },
    /// A tool should have ended by now.
    Tool {
        /// Running call.
        call: CallId,
        /// The start that the limit belongs to.
        attempt: u32,
    },
    /// The upstream should have sent something by now: viewers learn if it has not.
    ModelSilence {
        /// Step whose model is silent.
        step: u32,
        /// The try that is awaited.
        attempt: u32,
    },
    /// The remote runner of a call should have answered by now: viewers learn that it has not.
    RemoteCall {
        /// Call that a client runs.
        call: CallId,
        /// The start that is awaited.
        attempt: u32,
    },
    /// A check should have been answered by now: viewers learn that its client is waited for.
    HeldCheck {
        /// Call whose arguments are checked.
        call: CallId,
        /// The check that is held.
        version: u32,
    },
    /// A cancelled tool should have reported its end by now.
    CancelGrace {
        /// Cancelled call.
        call: CallId,
        /// Cancelled start, counted from 1.
        attempt: u32,
    },
}

/// A failed model call, as the driver classifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamFailure {
    /// Class of the failure.
    pub kind: FailureKind,
    /// HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// Message of the upstream or the network, for people; short.
    pub message: String,
    /// `Retry-After`, in milliseconds from now.
    pub retry_after_ms: Option<u64>,
}

/// Kinds of failed model calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// No connection: name, address, TLS.
    Connect,
    /// Nothing came within the first-byte limit.
    FirstByteTimeout,
    /// Nothing came within the first-byte limit from a model on the user's network, which may still be
    /// reading the prompt: a retry would make it start over.
    PromptTimeout,
    /// Nothing came within the idle limit.
    IdleTimeout,
    /// Over the total limit.
    TotalTimeout,
    /// The connection broke.
    Broken,
    /// 429 or its like.
    RateLimited,
    /// The upstream or the model has too much to do, for everybody and not for this key alone.
    Overloaded,
    /// Another HTTP error status.
    Status,
    /// A quota or credit is used up, which does not come back within a turn, though some tell it as 429.
    QuotaExhausted,
    /// The upstream does not have this model.
    ModelNotFound,
    /// No API at this address: the base URL lacks its `/v1`, or has a path too many.
    WrongAddress,
    /// 401, 403, or no key is configured.
    Unauthorized,
    /// The key is a good one, and may not use this: a model, a country, an account that is blocked.
    NotAllowed,
    /// The upstream's content filter refuses the request.
    ContentFiltered,
    /// The upstream refuses native tool calling.
    ToolsUnsupported,
    /// The upstream refuses the length of the history.
    ContextTooLong,
    /// The request cannot be sent at all (a dialect without an encoder, a bad address).
    Unsendable,
}

impl fmt::Display for UpstreamFailure {
    /// `HTTP 429: …`, or the message alone if there was no answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "HTTP {status}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for UpstreamFailure {}

impl UpstreamFailure {
    /// True if trying the same again may help.
    pub fn is_retryable(&self) -> bool {
        match self.kind {
            FailureKind::Connect
            | FailureKind::FirstByteTimeout
            | FailureKind::IdleTimeout
            | FailureKind::TotalTimeout
            | FailureKind::Broken
            | FailureKind::RateLimited
            | FailureKind::Overloaded => true,
            FailureKind::Status => {
                self.status.is_some_and(|status| status == 408 || status == 425 || status >= 500)
            }
            FailureKind::PromptTimeout
            | FailureKind::QuotaExhausted
            | FailureKind::ModelNotFound
            | FailureKind::WrongAddress
            | FailureKind::Unauthorized
            | FailureKind::NotAllowed
            | FailureKind::ContentFiltered
            | FailureKind::ToolsUnsupported
            | FailureKind::ContextTooLong
            | FailureKind::Unsendable => false,
        }
    }
}

/// An instant that a timer is due, with its id; for drivers that keep timers in a heap.
pub type TimerDeadline = (UnixMillis, TimerId);

/// Answer of a client to a call that it was asked to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientAnswer {
    /// Success or failure, as the client reports it.
    pub status: ClientStatus,
    /// Output, or the error message: a text as it is, anything else as JSON.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// True if the call took effect where the user can see it (an avatar may be hidden, or lack the
    /// expression).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<bool>,
}

/// Success or failure of a client-side call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientStatus {
    /// The client ran the call.
    Success,
    /// The client could not run the call.
    Error,
}

/// A question of a running tool to a person.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolQuestion {
    /// The question in words.
    pub message: String,
    /// The way to answer it.
    pub mode: ElicitationMode,
}

/// The way in which a person answers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitationMode {
    /// By values that fit a JSON Schema: an object with flat fields. Never for secrets: the answer is in the
    /// log.
    Form {
        /// JSON Schema of the values.
        schema: Value,
    },
    /// By an action of the person at an external address (signing in, paying); the tool only learns that it
    /// was done.
    Url {
        /// Address to open.
        url: String,
    },
}

/// The answer that a tool receives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolAnswer {
    /// A person answered.
    Accept {
        /// Values that the person entered; absent if the person was asked to open an address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
    },
    /// A person refused, or the question expired.
    Decline,
    /// No answer will come: the call is being stopped, or the question was not asked.
    Cancel,
}

impl ToolQuestion {
    /// Wants values that fit a schema.
    pub fn form(message: impl Into<String>, schema: Value) -> Self {
        Self { message: message.into(), mode: ElicitationMode::Form { schema } }
    }

    /// Wants an address to be opened.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self { message: message.into(), mode: ElicitationMode::Url { url: url.into() } }
    }
}

impl ToolAnswer {
    pub(crate) fn action_name(&self) -> &'static str {
        match self {
            ToolAnswer::Accept { .. } => "accept",
            ToolAnswer::Decline => "decline",
            ToolAnswer::Cancel => "cancel",
        }
    }
}

/// A message of the user that waits to be taken in.
#[derive(Clone, Debug, PartialEq)]
pub struct QueuedMessage {
    /// The sender's id of it.
    pub id: UserMessageId,
    /// Parts of the message.
    pub input: Vec<UserPart>,
    /// The moment at which it is taken in.
    pub when: MessageTiming,
}

/// Time at which a message that is sent in mid-turn is taken in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageTiming {
    /// At the next step border: the model answers it in this turn.
    #[default]
    NextStep,
    /// When the turn is over: the next one begins with it.
    AfterTurn,
}
