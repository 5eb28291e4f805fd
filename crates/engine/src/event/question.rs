//! Questions to people: their kinds, and the ids that name them.

use crate::id::ApprovalId;
use serde::{Deserialize, Serialize};
use throughline_wire::CallId;

/// Subject of a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QuestionKind {
    /// Approval of a call.
    #[default]
    Call,
    /// A running tool asks for something.
    Elicitation,
    /// A kind that this release does not know.
    #[serde(other)]
    Unrecognised,
}

impl QuestionKind {
    pub(crate) fn is_call(&self) -> bool {
        *self == QuestionKind::Call
    }
}

impl ApprovalId {
    /// Kind of the question (a rule's, or the running tool's), the call it is about, and its number. `None` = no machine has
    /// minted it.
    pub(crate) fn parts(&self) -> Option<(QuestionKind, CallId, u32)> {
        let (call, question) = self.as_str().rsplit_once('.')?;
        let (kind, number) = match question.split_at_checked(1)? {
            ("a", number) => (QuestionKind::Call, number),
            ("q", number) => (QuestionKind::Elicitation, number),
            _ => return None,
        };
        Some((kind, CallId::new(call), number.parse().ok()?))
    }

    /// The call that it is about; `None` = no machine has minted it.
    pub fn call(&self) -> Option<CallId> {
        self.parts().map(|(_, call, _)| call)
    }
}
