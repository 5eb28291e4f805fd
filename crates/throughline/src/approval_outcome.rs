//! What became of something that was said to a running turn, answered when its log has it. R: A3

use crate::approval::ApprovalResponse;
use throughline_engine::{ApprovalDecision, QuestionResolution};

/// What became of the answer to a question. Over HTTP: 200, 202, 200, 409, 410, 422, 404, 410.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "somebody else may have answered, or time has"]
pub enum ApprovalOutcome {
    /// It is the answer, and in the log.
    Resolved,
    /// The question has not been asked yet; it will be answered with this as soon as it is.
    Queued,
    /// The same had been answered before.
    AlreadyResolved,
    /// Something else had been answered before.
    Conflict,
    /// The question is no longer open, and nobody answered it: its time was over, or its call went away.
    Expired,
    /// What was filled in or changed does not fit, or the call is another one by now; the question is still open.
    Invalid {
        /// What, and where.
        message: String,
    },
    /// The turn has not asked such a question.
    Unknown,
    /// The turn is over.
    TurnEnded,
}

impl ApprovalOutcome {
    /// What an answer is told whose question has been answered: the same whether the turn runs or is over.
    pub fn from_resolution(answer: &ApprovalResponse, resolution: &QuestionResolution) -> Self {
        if matches!(resolution.by.as_str(), "timer" | "stop" | "cancel" | "end" | "reset") {
            return Self::Expired;
        }
        let same_content = match (&answer.arguments, &resolution.content) {
            (Some(wanted), Some(given)) => wanted == given,
            // Arguments that equal those that were asked about are no change.
            (Some(_), None) => true,
            (None, given) => given.as_ref().is_none_or(serde_json::Value::is_null),
        };
        match answer.decision == resolution.decision
            && (answer.decision == ApprovalDecision::Deny || same_content)
        {
            true => Self::AlreadyResolved,
            false => Self::Conflict,
        }
    }
}

/// What became of the wish to stop one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "the call may have ended before"]
pub enum CancelCallResult {
    /// It ends now, or as soon as its tool has said how it ended.
    Cancelled,
    /// It had an outcome before.
    AlreadyEnded,
    /// The turn has no such call.
    Unknown,
    /// The turn is over.
    TurnEnded,
}
