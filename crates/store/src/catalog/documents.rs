//! JSON documents that users set, and answers that are remembered for them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Kind of a document. Each kind has its own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    /// An agent that was made at run time. Those of the configuration file are not here and cannot be changed.
    Agent,
    /// Tools that are switched on or off.
    ToolToggles,
    /// Messages that a user sent to a running turn, until it ends.
    Queued,
    /// Questions in an answer of a chat, until the next message answers them.
    ChatQuestion,
    /// Prompts that a user has saved, to be put into messages.
    SavedPrompt,
    /// Anything else that a user or a page sets.
    Setting,
}

impl DocumentKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Agent, Self::ToolToggles, Self::Queued, Self::ChatQuestion, Self::SavedPrompt, Self::Setting];

    /// Name of the kind in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::ToolToggles => "tool_toggles",
            Self::Queued => "queued",
            Self::ChatQuestion => "chat_question",
            Self::SavedPrompt => "saved_prompt",
            Self::Setting => "setting",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredDocument {
    /// Name, unique within its kind.
    pub name: String,
    /// Opaque to the store.
    pub body: Value,
    /// Grows by one with each change, from 1.
    pub version: u64,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Milliseconds since 1970.
    pub updated_at: i64,
}

/// A document to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDocument {
    pub kind: DocumentKind,
    /// Name, unique within its kind.
    pub name: String,
    /// Opaque to the store.
    pub body: Value,
    /// Precondition of the write.
    pub precondition: DocumentPrecondition,
    /// Milliseconds since 1970.
    pub now: i64,
}

/// Precondition of a write, so that two people do not overwrite each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentPrecondition {
    /// No condition.
    Any,
    /// The document must not exist.
    Absent,
    /// The document in this version.
    Version(u64),
}

/// Outcome of writing a document.
#[derive(Clone, Debug, PartialEq)]
pub enum PutOutcome {
    /// Written; this is the stored document.
    Written(StoredDocument),
    /// Another version is stored. Nothing was written.
    Conflict(Option<StoredDocument>),
}

/// An answer to remember.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRemembered {
    /// Holds in this conversation only, and goes with it; `None` = always.
    pub conversation_id: Option<String>,
    /// Subject of the answer: an answer about the same, in the same conversation or always, is replaced.
    pub about: String,
    /// Opaque to the store.
    pub answer: Value,
    /// Milliseconds since 1970.
    pub at: i64,
}

/// An answer that is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RememberedRow {
    /// Number by which the decision is deleted. Never reused.
    pub number: u64,
    /// Holds in this conversation only; `None` = always.
    pub conversation_id: Option<String>,
    /// Subject of the answer.
    pub about: String,
    /// Opaque to the store.
    pub answer: Value,
    /// Milliseconds since 1970.
    pub at: i64,
}
