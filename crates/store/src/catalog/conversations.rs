//! Conversations as rows: trees of turns with a title.

use super::calls::{CallRow, NamedCount};
use super::turns::TurnRow;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationRow {
    pub id: String,
    /// Name of the owner.
    pub user: String,
    /// Given, or the first words of the first input.
    pub title: String,
    /// Origin of the title.
    pub title_by: TitleSource,
    /// Turn that a new one continues by default.
    pub leaf_id: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When something last happened in it, in milliseconds since 1970: the order of lists.
    pub updated_at: i64,
    /// Folder in which its user has put it.
    #[serde(default)]
    pub folder: Option<String>,
    /// Tags by its user, in order, each once.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Time of pinning, in milliseconds since 1970: pinned conversations come first. Never together with
    /// `archived_at`.
    #[serde(default)]
    pub pinned_at: Option<i64>,
    /// Time of archiving, in milliseconds since 1970: archived conversations are not in the default list.
    #[serde(default)]
    pub archived_at: Option<i64>,
    /// Neither listed nor searched, and removed a while after its last event.
    #[serde(default)]
    pub temporary: bool,
}

/// Origin of a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleSource {
    /// The first words of the first input.
    #[serde(rename = "input")]
    FirstInput,
    /// Given by the user.
    #[serde(rename = "given")]
    UserGiven,
}

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationSummary {
    #[serde(flatten)]
    pub conversation: ConversationRow,
    /// Number of its turns, all branches counted.
    pub turns: u64,
    /// The turn that runs in it now.
    pub running_turn_id: Option<String>,
    /// A call of that turn waits for a person.
    pub awaits_approval: bool,
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
    /// Neither listed nor searched, and removed a while after its last event.
    pub temporary: bool,
}

/// Selects conversations; a field that is `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationFilter {
    /// With this text in title, inputs or answers.
    pub text: Option<String>,
    /// Only conversations in this folder.
    pub folder: Option<String>,
    /// Only conversations with this tag.
    pub tag: Option<String>,
    /// Archived ones, or others. `None` = others; with a text, both.
    pub archived: Option<bool>,
    /// Pinned, or not. `None` = all: in a list without text, folder and tag the pinned ones come first.
    pub pinned: Option<bool>,
}

impl ConversationFilter {
    /// Filter for conversations with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}

/// Changes of how a conversation is filed; `None` leaves a value as it is. A temporary conversation that is
/// filed becomes permanent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationChange {
    /// Into a folder, or out of its folder.
    pub folder: Option<Option<String>>,
    /// All of its tags.
    pub tags: Option<Vec<String>>,
    /// True = pin, which also unarchives; false = unpin.
    pub pinned: Option<bool>,
    /// True = archive, which also unpins; false = unarchive.
    pub archived: Option<bool>,
    /// `Some(false)` = it stays for good.
    pub temporary: Option<bool>,
}

/// Folders and tags of a user, by name, with the numbers of their conversations that are not archived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationLabels {
    pub folders: Vec<NamedCount>,
    pub tags: Vec<NamedCount>,
}

/// Usage of a conversation, all branches counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationUsage {
    /// Turns that have ended.
    pub turns: u64,
    /// Tokens read by models outside a cache, or all where caches are not counted apart.
    pub input_tokens: u64,
    /// Tokens read from a cache.
    pub cached_input_tokens: u64,
    /// Tokens written by models.
    pub output_tokens: u64,
    /// Time in which models wrote, in milliseconds.
    pub writing_ms: u64,
    /// Time from the beginning to the end of each turn, in milliseconds.
    pub turn_ms: u64,
    /// Tool calls.
    pub calls: u64,
    /// Tool calls that failed.
    pub failed_calls: u64,
    /// Time in which tools ran, in milliseconds; calls side by side count apart.
    pub call_ms: u64,
    /// Turns by model, most first.
    pub models: Vec<NamedCount>,
}

/// Outcome of a removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovalOutcome {
    /// Removed, with everything that only it used.
    Removed(RemovalSummary),
    /// A turn of it runs; cancel it first. Nothing was removed.
    StillRunning { turn_id: String },
    /// Nothing with this id exists.
    NotFound,
}

/// Counts of everything that a removal deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemovalSummary {
    pub conversations: u64,
    /// Turns, with their logs, calls and raw bytes.
    pub turns: Vec<String>,
    /// Files that no other turn uses.
    pub files: u64,
    /// Hashes that lost a file: candidates for [`BlobFolder::collect`](crate::BlobFolder::collect).
    pub blobs: Vec<String>,
    /// True if more must be removed than fits one commit: call again.
    pub has_more: bool,
}

/// A text that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    pub conversation_id: String,
    pub title: String,
    /// Turn of the text; `None` = the title of the conversation.
    pub turn_id: Option<String>,
    pub part: SearchHitPart,
    /// The text around the hit.
    pub snippet: String,
    /// Milliseconds since 1970: when the turn began, or the conversation.
    pub at: i64,
}

/// Part of a conversation in which a text was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchHitPart {
    Title,
    /// Input of a user.
    Input,
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
    /// Conversations without an event since this time, and turns without a conversation.
    pub conversations: Option<i64>,
    /// Raw upstream bytes older than this.
    pub raw: Option<i64>,
    /// Files that no turn uses.
    pub unused_files: Option<i64>,
    /// Deleted conversations that can still be brought back.
    pub deleted: Option<i64>,
    /// Temporary conversations in which nothing has happened since.
    pub temporary: Option<i64>,
    /// Links whose time is over.
    pub shares: Option<i64>,
}
