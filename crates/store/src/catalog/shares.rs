//! Links that show one conversation to others. The secret itself is never here.

use serde::{Deserialize, Serialize};

/// A link to a conversation as it was when the link was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareRow {
    /// The part of the link that is no secret.
    pub id: String,
    /// Name of the owner.
    pub user: String,
    /// Conversation that it shows.
    pub conversation_id: String,
    /// The last turn that it shows: what came later is not in it.
    pub leaf_id: String,
    /// Title of the conversation as it was.
    pub title: String,
    /// Hash of the secret. Compared by the caller, in constant time.
    pub hash: String,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// From then on it shows nothing; milliseconds since 1970.
    pub expires_at: Option<i64>,
}

impl ShareRow {
    /// True unless it has expired at this time.
    pub fn is_valid(&self, now: i64) -> bool {
        self.expires_at.is_none_or(|expires| now < expires)
    }
}
