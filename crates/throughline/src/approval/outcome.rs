//! The outcome of an answer to an approval question, reported once the turn's log has it.

use super::ApprovalResponse;
use throughline_engine::{ApprovalDecision, QuestionResolution};

/// Outcome of an answer to an approval question. Over HTTP: 200, 202, 200, 409, 410, 422, 404, 410.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it may have been answered elsewhere, or have timed out"]
pub enum ApprovalOutcome {
    /// The answer was accepted and is in the log.
    Resolved,
    /// The question has not been asked yet; this answer will be used as soon as it is.
    Queued,
    /// The same answer had been given before.
    AlreadyResolved,
    /// A different answer had been given before.
    Conflict,
    /// The question closed unanswered: it timed out, or its call was cancelled.
    Expired,
    /// The edited arguments or form values do not fit, or the call has changed; the question is still open.
    Invalid {
        /// The fields at fault and the reason.
        message: String,
    },
    /// The turn has no such question.
    Unknown,
    /// The turn is over.
    TurnEnded,
}

impl ApprovalOutcome {
    /// Outcome for an answer to a question that has already been answered: the same while the turn runs and
    /// afterwards.
    pub fn from_resolution(answer: &ApprovalResponse, resolution: &QuestionResolution) -> Self {
        if matches!(resolution.by.as_str(), "timer" | "stop" | "cancel" | "end" | "reset") {
            return Self::Expired;
        }
        let same_content = match (&answer.arguments, &resolution.content) {
            (Some(wanted), Some(given)) => wanted == given,
            // Arguments equal to those of the request are no change.
            (Some(_), None) => true,
            (None, given) => given.as_ref().is_none_or(serde_json::Value::is_null),
        };
        let same_decision = answer.decision == resolution.decision && answer.stops_turn() == resolution.stop;
        if same_decision && (answer.decision == ApprovalDecision::Deny || same_content) {
            Self::AlreadyResolved
        } else {
            Self::Conflict
        }
    }
}
