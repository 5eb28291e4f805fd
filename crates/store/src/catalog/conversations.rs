//! Conversations as rows: trees of turns with a title.
// R: S4

use super::calls::CallRow;
use super::turns::TurnRow;
use serde::{Deserialize, Serialize};

/// A conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationRow {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// Given, or the first words of the first input.
    pub title: String,
    /// Where the title comes from.
    pub title_by: TitleSource,
    /// The turn that a new one continues if nothing else is said.
    pub leaf_id: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When something last happened in it, in milliseconds since 1970: the order of lists.
    pub updated_at: i64,
}

/// Where a title comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleSource {
    /// The first words of the first input.
    #[serde(rename = "input")]
    FirstInput,
    /// Somebody gave it.
    #[serde(rename = "given")]
    UserGiven,
}

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationSummary {
    /// The conversation.
    #[serde(flatten)]
    pub conversation: ConversationRow,
    /// Number of its turns, all branches counted.
    pub turns: u64,
    /// The turn that runs in it now.
    pub running_turn_id: Option<String>,
}

/// A new conversation, without turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewConversation {
    /// Made by the caller, never used before.
    pub id: String,
    /// `None` = the first words of the first input, when it comes.
    pub title: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
}

/// Outcome of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalOutcome {
    /// It is gone, with everything that was only its own.
    Removed(RemovalSummary),
    /// A turn of it runs; cancel it first. Nothing was removed.
    StillRunning { turn_id: String },
    /// There is no such thing.
    NotFound,
}

/// Everything that a removal deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovalSummary {
    /// Conversations.
    pub conversations: u64,
    /// Turns, with their logs, calls and raw bytes.
    pub turns: Vec<String>,
    /// Files that no other turn uses.
    pub files: u64,
    /// Hashes that lost a file: candidates for [`BlobFolder::collect`](crate::blobs::BlobFolder::collect).
    pub blobs: Vec<String>,
    /// There is more to be removed than fits one commit: ask again.
    pub has_more: bool,
}

/// A place where a text was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    /// In which conversation.
    pub conversation_id: String,
    /// Its title.
    pub title: String,
    /// In which turn; `None` = in the title.
    pub turn_id: Option<String>,
    /// In which part.
    pub part: SearchHitPart,
    /// The text around the hit.
    pub snippet: String,
    /// Milliseconds since 1970: when the turn began, or the conversation.
    pub at: i64,
}

/// Where in a conversation a text was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchHitPart {
    /// In the title.
    Title,
    /// In what a person said.
    Input,
    /// In the answer.
    Answer,
}

/// A conversation that comes from elsewhere, under ids that are new here.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedConversation {
    /// The conversation. Its `user` is not looked at.
    pub conversation: ConversationRow,
    /// All ended; parents before children. Their `user` and `conversation_id` are not looked at.
    pub turns: Vec<TurnRow>,
    /// Calls of these turns.
    pub calls: Vec<CallRow>,
    /// Pairs of a turn and a file that it uses, by id. Files that the user does not have are left out.
    pub files: Vec<(String, String)>,
}

/// Cutoffs of retention, in milliseconds since 1970: older rows are deleted. `None` = they stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionCutoffs {
    /// Conversations in which nothing has happened since, and turns that stand alone.
    pub conversations: Option<i64>,
    /// Raw upstream bytes.
    pub raw: Option<i64>,
    /// Files that no turn uses.
    pub unused_files: Option<i64>,
}
