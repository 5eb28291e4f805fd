//! Turns as rows: their user and input, their position in a conversation, and their end.

use super::calls::NamedCount;
use super::people::{TurnCharge, UsageExceeded};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Lifetime of an idempotency key: 24 hours, in milliseconds.
pub const IDEMPOTENCY_MS: i64 = 24 * 60 * 60 * 1000;

/// A turn that is about to begin.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTurnRow {
    /// Made by the caller, never used before.
    pub id: String,
    /// Id of the answer.
    pub message_id: String,
    /// Conversation and parent of the turn.
    pub placement: TurnPlacement,
    /// Recognizes a repeated request.
    pub idempotency: Option<IdempotencyKey>,
    /// Everything that is needed to resume the turn, as JSON. Opaque to the store.
    pub stored: String,
    pub agent: String,
    /// Model, as `upstream/model`.
    pub model: Option<String>,
    /// Tool-calling mode.
    pub mode: Option<String>,
    /// Text of the input: for the search, and for the title of a new conversation.
    pub input_text: String,
    /// Ids of the files in the input. Files of other users are left out.
    pub files: Vec<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Accounts that the turn counts against.
    pub charge: TurnCharge,
}

/// Position of a turn in a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnPlacement {
    /// In no conversation: its history came with the request.
    Standalone,
    /// First turn of a conversation that is created in the same commit.
    NewConversation {
        /// Made by the caller, never used before.
        id: String,
        /// `None` = the first words of the input.
        title: Option<String>,
    },
    /// In a conversation that is there.
    InConversation {
        conversation_id: String,
        /// Parent of the turn; `None` = at the root, as a sibling of earlier first turns.
        parent: Option<TurnParent>,
    },
}

/// The turn that another one continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnParent {
    /// A turn of the same conversation.
    pub turn_id: String,
    /// Last event of the parent that is used: a fork. `None` = the whole turn.
    pub seq: Option<u64>,
}

impl TurnParent {
    /// Parent of a turn that follows all of `turn_id`.
    pub fn after_turn(turn_id: impl Into<String>) -> Self {
        Self { turn_id: turn_id.into(), seq: None }
    }

    /// Parent of a turn that follows one event of `turn_id`.
    pub fn after_event(turn_id: impl Into<String>, seq: u64) -> Self {
        Self { turn_id: turn_id.into(), seq: Some(seq) }
    }
}

/// A request that may come twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The caller's own word for the request.
    pub key: String,
    /// Hash of the whole request body.
    pub body_hash: String,
}

/// Outcome of creating a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnCreation {
    /// Created; the turn runs.
    New,
    /// The same request came before; this is its turn.
    Replayed(Box<TurnRow>),
    /// The key was used for another request in the last 24 hours. Nothing was written.
    KeyReused,
    /// A turn of the conversation is still running. Nothing was written.
    ConversationBusy { turn_id: String },
    /// Refused. Nothing was written.
    Refused(TurnRefusal),
}

/// Reason that a turn may not begin, whether or not another one runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnRefusal {
    /// The conversation does not exist.
    ConversationNotFound,
    /// The conversation has no such turn.
    ParentNotFound,
    /// A usage limit of the person or the key is reached.
    UsageExceeded(UsageExceeded),
}

/// A turn that is to follow the running one of its conversation, before that one is ended in favour of it.
#[derive(Clone, Debug, PartialEq)]
pub struct NextTurn {
    pub conversation_id: String,
    /// Parent, as in [`TurnPlacement::InConversation`].
    pub parent: Option<TurnParent>,
    pub charge: TurnCharge,
    /// Usage of the turn that runs, which is counted when it ends.
    pub running_usage: Option<Value>,
    /// Milliseconds since 1970.
    pub now: i64,
}

/// A stored turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRow {
    pub id: String,
    /// Name of the owner.
    pub user: String,
    /// Id of the conversation; `None` = a turn without one.
    pub conversation_id: Option<String>,
    /// The turn that it continues; `None` = the beginning.
    pub parent: Option<TurnParent>,
    /// Id of the answer.
    pub message_id: String,
    /// Everything that is needed to resume the turn, as JSON.
    pub stored: String,
    pub agent: String,
    /// Model, as `upstream/model`.
    pub model: Option<String>,
    /// Tool-calling mode.
    pub mode: Option<String>,
    /// The text of the input.
    pub input_text: String,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// End of the turn; `None` = it runs.
    pub end: Option<TurnEnd>,
    /// Rating by its user.
    #[serde(default)]
    pub rating: Option<TurnRating>,
}

impl TurnRow {
    /// The status of its end, or `running`.
    pub fn status(&self) -> &str {
        self.end.as_ref().map_or(STATUS_RUNNING, |end| &end.status)
    }
}

/// Rating of an answer by a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRating {
    pub value: RatingValue,
    /// In the user's words; may be empty.
    #[serde(default)]
    pub reason: String,
    /// Milliseconds since 1970.
    pub rated_at: i64,
}

/// Good or bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RatingValue {
    Up,
    Down,
}

impl RatingValue {
    /// Name of the rating in exports and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// Status of a turn without an end ([`TurnRow::status`]).
pub const STATUS_RUNNING: &str = "running";

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// As in `stream_end`: completed, length, limit, error, cancelled, interrupted.
    pub status: String,
    /// Messages that it adds to the history, as JSON. Never parsed here.
    pub history_json: String,
    /// Text of the answer, for the search.
    pub text: String,
    /// Usage, as in `session_stats`.
    pub usage: Option<Value>,
    #[serde(default)]
    pub pace: TurnTiming,
    /// Milliseconds since 1970.
    pub ended_at: i64,
}

/// Speed of a turn; `None` where it is not known. In columns, so that a metric of many turns reads no log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnTiming {
    /// From its beginning to the first content, in milliseconds.
    pub first_content_ms: Option<i64>,
    /// Time in which models wrote thinking, text and arguments, in milliseconds.
    pub writing_ms: Option<i64>,
    /// Tokens written by models, as upstreams count them.
    pub output_tokens: Option<i64>,
}

/// A turn that has no end yet, of any user: the turns that a server finds when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTurn {
    pub id: String,
    /// Name of the owner.
    pub user: String,
    /// Id of the conversation; `None` = a turn without one.
    pub conversation_id: Option<String>,
    /// Everything that is needed to resume the turn, as JSON.
    pub stored: String,
}

/// A turn in short: for trees and lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSummary {
    pub id: String,
    /// Id of the conversation; `None` = a turn without one.
    pub conversation_id: Option<String>,
    /// The turn that it continues; `None` = the beginning. Turns with the same parent are siblings: with another input an edit,
    /// with the same input a regeneration.
    pub parent: Option<TurnParent>,
    /// Id of the answer.
    pub message_id: String,
    pub agent: String,
    /// Model, as `upstream/model`.
    pub model: Option<String>,
    /// The beginning of the input.
    pub input: String,
    /// The beginning of the answer.
    pub answer: String,
    /// Status, as [`TurnRow::status`].
    pub status: String,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Milliseconds since 1970; `None` = it runs.
    pub ended_at: Option<i64>,
    /// Rating by its user.
    #[serde(default)]
    pub rating: Option<TurnRating>,
}

/// One turn on the way from the beginning to a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTurn {
    pub id: String,
    /// Event after which the path leaves this turn; `None` = after its end.
    pub cut_at: Option<u64>,
    /// Everything that the turn adds to the history, as JSON; `None` = it runs. If the turn is cut, this is
    /// too much: fold its log.
    pub history_json: Option<String>,
}

/// A turn as history has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnHistoryRow {
    #[serde(flatten)]
    pub turn: TurnSummary,
    /// Tool-calling mode.
    pub mode: Option<String>,
    /// Usage, as in `session_stats`; `None` = it runs, or nothing is known.
    pub usage: Option<Value>,
    /// Speed, if it has ended.
    pub pace: TurnTiming,
    /// Number of its tool calls.
    pub calls: u64,
    /// Number of failed calls.
    pub failed_calls: u64,
}

impl TurnHistoryRow {
    /// A number of the usage, such as `input_tokens`.
    pub fn tokens(&self, name: &str) -> Option<u64> {
        self.usage.as_ref()?.get(name)?.as_u64()
    }
}

/// Selects turns; a field that is `None` matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnFilter {
    pub conversation_id: Option<String>,
    /// Answered by this agent.
    pub agent: Option<String>,
    /// Answered by this model, as `upstream/model`.
    pub model: Option<String>,
    /// With one of these [statuses](TurnRow::status); empty = with any.
    pub statuses: Vec<String>,
    /// Begun then or later.
    pub from: Option<i64>,
    /// Only turns begun before this time.
    pub until: Option<i64>,
}

/// Numbers of turns by status, model and agent, the most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnCounts {
    pub total: u64,
    pub by_status: Vec<NamedCount>,
    /// Number of turns by model.
    pub by_model: Vec<NamedCount>,
    pub by_agent: Vec<NamedCount>,
}
