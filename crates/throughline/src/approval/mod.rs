//! Approvals: questions about tools with side effects, and their answers.

mod answer_words;
mod outcome;
pub mod store;

pub use answer_words::decision_in_words;
pub use outcome::ApprovalOutcome;

use serde_json::Value;
use throughline_engine::{
    ApprovalDecision, ApprovalId, ApprovalRule, ApprovalTarget, RememberRequest, ToolAnswer, TurnInput,
};
use throughline_tools::complete_answer;
use throughline_wire::{CallId, ToolName};

/// Handling of the approval questions of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ApprovalMode {
    /// A person, through [`TurnHandle::answer`](crate::TurnHandle::answer), or the program, through
    /// [`ThroughlineBuilder::on_approval`](crate::ThroughlineBuilder::on_approval). Without an answer a question expires as denied.
    #[default]
    Ask,
    /// Every call is approved in advance.
    AllowAll,
    /// Denies everything that would ask; the model receives the reason, and viewers see it.
    DenyAll {
        /// Reason of the denial, for example "no user is available to ask".
        reason: String,
    },
}

impl From<ApprovalMode> for ApprovalRule {
    fn from(approval: ApprovalMode) -> Self {
        match approval {
            ApprovalMode::Ask => ApprovalRule::Ask,
            ApprovalMode::AllowAll => ApprovalRule::ApproveAll,
            ApprovalMode::DenyAll { reason } => ApprovalRule::DenyAll { reason },
        }
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The key of the answer.
    pub approval_id: ApprovalId,
    /// Call that needs approval.
    pub call: CallId,
    /// Tool of the call.
    pub tool: ToolName,
    /// Display name of the tool.
    pub title: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// Text of the question.
    pub question: String,
    /// Rule that requires approval.
    pub rule: String,
    /// Hash of the arguments: an [`ApprovalResponse::for_arguments`] of it is refused if they have changed.
    pub arguments_hash: String,
    /// Hash of the tool's definition that an answer is bound to.
    pub fingerprint: String,
}

/// An answer. It applies to one call, with its arguments and its tool as they are now; if one of them changes before
/// the tool starts, the question is asked again.
///
/// ```
/// use throughline::{ApprovalResponse, ApprovalScope, ArgumentConstraints, RememberRequest};
/// use serde_json::json;
///
/// let with_care = ApprovalResponse::approve().with_arguments(json!({"path": "notes/draft.md", "text": "…"}));
/// let for_now = ApprovalResponse::approve().remember(RememberRequest::exactly(ApprovalScope::Conversation));
/// let in_here = ApprovalResponse::approve().remember(RememberRequest {
///     scope: ApprovalScope::Always,
///     constraints: serde_json::from_value(json!({"arguments": {"path": {"under": "notes"}}}))?,
/// });
/// assert!(matches!(in_here.remember.unwrap().constraints, ArgumentConstraints::Arguments(_)));
/// # assert!(with_care.arguments.is_some() && for_now.remember.is_some());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ApprovalResponse {
    /// Run it or not.
    pub decision: ApprovalDecision,
    /// The reason; the model receives the reason of a denial.
    pub reason: Option<String>,
    /// Runs the call with these arguments instead. They are checked first: if they do not fit the tool's schema, the
    /// question stays open and a `problem` of code `invalid_edit` explains why. The model is informed of the change.
    pub arguments: Option<Value>,
    /// Scope and constraints under which the answer applies to later calls.
    pub remember: Option<RememberRequest>,
    /// Hash of the arguments that were looked at; if they are others by now, the answer is refused with a `problem` of
    /// code `stale_answer`.
    pub arguments_hash: Option<String>,
    /// Also stops the turn, on a denial: its other calls are cancelled, no further model call is made, and
    /// the turn ends as `cancelled`. Ignored without a denial.
    pub stop: bool,
}

impl ApprovalResponse {
    /// Run it.
    pub fn approve() -> Self {
        Self::from_decision(ApprovalDecision::Approve, None)
    }

    /// Do not run it; the model receives the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::from_decision(ApprovalDecision::Deny, Some(reason.into()))
    }

    /// A decision without further settings.
    pub fn from_decision(decision: ApprovalDecision, reason: Option<String>) -> Self {
        Self { decision, reason, arguments: None, remember: None, arguments_hash: None, stop: false }
    }

    /// Denies the call, and stops the turn. The model receives the reason, if any, in the next turn.
    pub fn deny_and_stop(reason: Option<String>) -> Self {
        Self { stop: true, ..Self::from_decision(ApprovalDecision::Deny, reason) }
    }

    /// Approves with other arguments than the model's.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Value) -> Self {
        self.arguments = Some(arguments);
        self
    }

    /// Remembers the answer for later calls.
    #[must_use]
    pub fn remember(mut self, remember: RememberRequest) -> Self {
        self.remember = Some(remember);
        self
    }

    /// Restricts the answer to arguments with this hash.
    #[must_use]
    pub fn for_arguments(mut self, hash: impl Into<String>) -> Self {
        self.arguments_hash = Some(hash.into());
        self
    }

    /// True for a denial that stops the turn.
    pub(crate) fn stops_turn(&self) -> bool {
        self.stop && self.decision == ApprovalDecision::Deny
    }

    /// The same answer for an elicitation of a running tool: the fields of the form come from `arguments`.
    pub(crate) fn into_tool_answer(self) -> ToolAnswer {
        match self.decision {
            ApprovalDecision::Approve => ToolAnswer::Accept { content: self.arguments },
            ApprovalDecision::Deny => ToolAnswer::Decline,
        }
    }

    /// Fills fields that are missing in the form of a running tool from its `schema`, as the tool receives
    /// it. Content that does not fit, and an answer to a question without a form, stay unchanged.
    #[must_use]
    pub fn completed(self, schema: Option<&Value>) -> Self {
        let Some(schema) = schema else { return self };
        match complete_answer(Some(schema), self.clone().into_tool_answer()) {
            Ok(ToolAnswer::Accept { content }) => Self { arguments: content, ..self },
            _ => self,
        }
    }

    pub(crate) fn into_input(self, question: ApprovalTarget, by: &str) -> TurnInput {
        let Self { decision, reason, arguments, remember, arguments_hash, stop } = self;
        TurnInput::Approval {
            question,
            decision,
            by: by.to_owned(),
            reason,
            arguments_hash,
            arguments,
            remember,
            stop,
        }
    }
}
