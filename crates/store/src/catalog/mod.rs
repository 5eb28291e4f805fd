//! Everything that is stored except the log: owners of turns, their position in conversations, tool calls,
//! files and settings. Never the events of a turn: those are in the [`Log`](crate::Log) alone.
//!
//! Ownership is part of every query: rows of another user are absent. The few methods without a user are for
//! the server itself and documented as such.

mod calls;
mod conversations;
mod documents;
mod files;
pub(crate) mod fold;
mod keys;
mod limits;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) mod methods;
mod page;
pub(crate) mod people;
mod raw;
mod samples;
mod shares;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) mod sql;
pub(crate) mod texts;
mod turns;

pub use calls::{CallCounts, CallFilter, CallRow, NamedCount};
pub use conversations::{
    ConversationChange, ConversationFilter, ConversationLabels, ConversationRow, ConversationSummary,
    ConversationUsage, ImportedConversation, NewConversation, RemovalOutcome, RemovalSummary,
    RetentionCutoffs, SearchHit, SearchHitPart, TitleSource,
};
pub use documents::{
    DocumentKind, DocumentPrecondition, NewDocument, NewRemembered, PutOutcome, RememberedRow, StoredDocument,
};
pub use files::{FileRow, NewFile};
pub use keys::{KeyRow, LAST_USED_INTERVAL_MS};
pub use limits::CatalogLimits;
pub use page::{PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, PagePosition, PageRequest, ResultPage};
pub use people::{
    KeyLimits, PersonChange, PersonRow, TurnCharge, UsageCount, UsageExceeded, UsageLimits, UsageOwner,
    UsagePeriod, UsageReport,
};
pub use raw::{RawExtent, RawId, RawRow};
pub use samples::{CallSample, MetricSamples, SampleRange, SampleRows, TurnSample};
pub use shares::ShareRow;
pub use turns::{
    IDEMPOTENCY_MS, IdempotencyKey, NewTurnRow, NextTurn, OpenTurn, PathTurn, RatingValue, STATUS_RUNNING,
    TurnCounts, TurnCreation, TurnEnd, TurnFilter, TurnHistoryRow, TurnParent, TurnPlacement, TurnRating,
    TurnRefusal, TurnRow, TurnSummary, TurnTiming,
};

use crate::error::StoreError;
use async_trait::async_trait;
use std::collections::HashSet;

/// Everything that is stored except the log: conversations, turns, calls, files, keys, people.
///
/// All times are milliseconds since 1970 and given by the caller; all ids are made by the caller, 128 random bits or
/// more. Each method is one transaction. Rows of another user are not found:
///
/// ```
/// # #[cfg(feature = "sqlite")]
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let folder = tempfile::tempdir()?;
/// use throughline_store::{Catalog, ConversationFilter, NewConversation, PageRequest};
/// use throughline_store::{SqliteSettings, SqliteStore};
///
/// let store = SqliteStore::open(&folder.path().join("throughline.db"), SqliteSettings::default()).await?;
/// let catalog: &dyn Catalog = &store;
/// let title = Some("Trip to Paris".into());
/// let trip = NewConversation { id: "conv_1".into(), title, temporary: false, created_at: 0 };
/// catalog.create_conversation("ann", trip).await?;
///
/// let paris = ConversationFilter::text("paris");
/// let page = catalog.conversations("ann", &paris, &PageRequest::first()).await?;
/// assert_eq!(page.items[0].conversation.title, "Trip to Paris");
/// assert!(catalog.conversation("bob", "conv_1").await?.is_none());
/// # store.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[async_trait]
pub trait Catalog: Send + Sync {
    // Turns

    /// Begins a turn, and its conversation if it is the first one of it. The turn becomes the leaf of the
    /// conversation.
    ///
    /// Only as durable as [`Durability::Process`](crate::Durability::Process): the first append to the log of the turn
    /// follows on the same connection with [`Durability::Power`](crate::Durability::Power) and makes both durable, so
    /// that a turn costs one fsync before it is acknowledged. Acknowledge a turn after that append, not after this.
    ///
    /// # Errors
    /// [`StoreError::Exists`]: the id of turn or conversation is taken, by this user or another.
    async fn create_turn(&self, user: &str, turn: NewTurnRow) -> Result<TurnCreation, StoreError>;

    /// Reason that [`create_turn`](Self::create_turn) would refuse a turn even after the one that runs in its
    /// conversation has ended; `None`: it would be accepted now. Writes nothing.
    ///
    /// # Errors
    /// As for [`create_turn`](Self::create_turn), including [`StoreError::OverLimit`].
    async fn refusal_of_next(&self, user: &str, next: NextTurn) -> Result<Option<TurnRefusal>, StoreError>;

    async fn turn(&self, user: &str, turn_id: &str) -> Result<Option<TurnRow>, StoreError>;

    /// The turn of a request that came before, by its key: for a quick look before a turn is prepared.
    async fn turn_by_idempotency_key(
        &self,
        user: &str,
        key: &IdempotencyKey,
        now: i64,
    ) -> Result<Option<TurnCreation>, StoreError>;

    /// Ends a turn. `false`: there is no such turn, or it has ended before, which stays as it was.
    async fn end_turn(&self, user: &str, turn_id: &str, end: TurnEnd) -> Result<bool, StoreError>;

    /// Rates the answer of a turn; `None` takes the rating back. `false`: there is no such turn, or it has not ended.
    async fn rate_turn(
        &self,
        user: &str,
        turn_id: &str,
        rating: Option<TurnRating>,
    ) -> Result<bool, StoreError>;

    /// Turns in short, newest first.
    async fn turns(
        &self,
        user: &str,
        filter: &TurnFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<TurnHistoryRow>, StoreError>;

    /// Turns with a text in input or answer, ignoring case, newest first. `%` and `_` are matched literally.
    /// A page ends after [`CatalogLimits::search_ms_max`] and is then marked [partial](ResultPage::partial).
    async fn search_turns(
        &self,
        user: &str,
        text: &str,
        filter: &TurnFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<TurnHistoryRow>, StoreError>;

    /// Numbers of turns by status, model and agent.
    async fn count_turns(&self, user: &str, filter: &TurnFilter) -> Result<TurnCounts, StoreError>;

    /// Removes a turn with all its descendants. If the leaf was among them, the parent becomes the leaf.
    async fn delete_turn(&self, user: &str, turn_id: &str) -> Result<RemovalOutcome, StoreError>;

    /// All turns without an end, of all users, oldest first: for the server when it starts.
    async fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError>;

    // Conversations

    /// Creates a conversation without a turn.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`]: the id is taken, by this user or another.
    async fn create_conversation(
        &self,
        user: &str,
        conversation: NewConversation,
    ) -> Result<ConversationRow, StoreError>;

    async fn conversation(&self, user: &str, id: &str) -> Result<Option<ConversationSummary>, StoreError>;

    /// Conversations, those with the latest events first. Temporary ones are never among them.
    async fn conversations(
        &self,
        user: &str,
        filter: &ConversationFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<ConversationSummary>, StoreError>;

    /// Folders and tags in use.
    async fn conversation_labels(&self, user: &str) -> Result<ConversationLabels, StoreError>;

    /// Usage of a conversation. `None`: there is no such conversation.
    async fn conversation_usage(&self, user: &str, id: &str)
    -> Result<Option<ConversationUsage>, StoreError>;

    /// Files a conversation; its position in lists by time stays. `false`: there is no such conversation.
    ///
    /// # Errors
    ///
    /// [`StoreError::OverLimit`]: `folder_chars_max`, `tag_chars_max`, `tags_max`.
    async fn change_conversation(
        &self,
        user: &str,
        id: &str,
        change: ConversationChange,
        now: i64,
    ) -> Result<bool, StoreError>;

    /// Occurrences of a text in titles, inputs and answers, ignoring case, newest first. `%`, `_` and the
    /// like are matched literally. A text of blanks only has no hits. Texts that cannot be searched within
    /// the time limit are left to the next page, and the page is marked [partial](ResultPage::partial).
    ///
    /// # Errors
    ///
    /// [`StoreError::Busy`]: too many searches wait, or this one has waited too long.
    async fn search(
        &self,
        user: &str,
        text: &str,
        page: &PageRequest,
    ) -> Result<ResultPage<SearchHit>, StoreError>;

    /// Gives a conversation a title; an empty one brings back the first words. `false`: there is no such conversation.
    async fn rename(&self, user: &str, id: &str, title: &str, now: i64) -> Result<bool, StoreError>;

    /// Goes to another branch. `false`: there is no such conversation, or no such turn in it.
    async fn set_leaf(&self, user: &str, id: &str, turn_id: &str) -> Result<bool, StoreError>;

    /// All turns of a conversation, oldest first; empty if there is no such conversation.
    async fn tree(&self, user: &str, id: &str) -> Result<Vec<TurnSummary>, StoreError>;

    /// The way from the beginning of its conversation to a turn, both included. Empty: there is no such turn.
    async fn path(&self, user: &str, turn_id: &str) -> Result<Vec<PathTurn>, StoreError>;

    /// Removes a conversation with its turns, their logs, calls and raw bytes, and the files that no other turn uses.
    async fn delete_conversation(&self, user: &str, id: &str) -> Result<RemovalOutcome, StoreError>;

    /// Deletes a conversation so that it can be brought back: it is absent everywhere, with its turns and calls, until
    /// [`restore_conversation`](Self::restore_conversation), or [`delete_expired`](Self::delete_expired) removes it.
    async fn trash_conversation(&self, user: &str, id: &str, now: i64) -> Result<RemovalOutcome, StoreError>;

    /// Restores a conversation that was deleted after this time. `false`: there is none.
    async fn restore_conversation(
        &self,
        user: &str,
        id: &str,
        deleted_after: i64,
    ) -> Result<bool, StoreError>;

    /// Takes in a conversation from elsewhere. Logs of its turns, if there are any, are appended before, under the same
    /// ids; a turn without a log is what its `history_json` says.
    ///
    /// # Errors
    /// [`StoreError::Exists`]: an id is taken. [`StoreError::Invalid`]: a turn runs, or its parent is not before it.
    async fn import(&self, user: &str, imported: ImportedConversation) -> Result<(), StoreError>;

    /// Deletes data older than the given times, of all users, a part at a time: for the server itself.
    /// Conversations with a running turn stay.
    async fn delete_expired(&self, times: RetentionCutoffs) -> Result<RemovalSummary, StoreError>;

    // Links that show a conversation

    /// Adds a link. `false`: the user has no such conversation, or no such turn in it.
    ///
    /// # Errors
    /// [`StoreError::OverLimit`]: `shares_max`. [`StoreError::Exists`].
    async fn add_share(&self, user: &str, share: ShareRow) -> Result<bool, StoreError>;

    /// Links, newest first, of one conversation or of all; expired ones until they are removed.
    async fn shares(
        &self,
        user: &str,
        conversation_id: Option<&str>,
        page: &PageRequest,
    ) -> Result<ResultPage<ShareRow>, StoreError>;

    /// Removes a link. `false`: there is no such link.
    async fn delete_share(&self, user: &str, id: &str) -> Result<bool, StoreError>;

    /// A share link of any user: for the handler that checks the link's secret.
    async fn share(&self, id: &str) -> Result<Option<ShareRow>, StoreError>;

    // Calls

    /// Stores calls, each under its turn and id, replacing earlier rows. Returns the number stored; calls of
    /// another user's turns are left out. Survives the death of the process; after a power cut the log still
    /// has the calls.
    async fn put_calls(&self, user: &str, calls: Vec<CallRow>) -> Result<u64, StoreError>;

    async fn call(&self, user: &str, turn_id: &str, tool_id: &str) -> Result<Option<CallRow>, StoreError>;

    /// Calls, newest first.
    async fn calls(
        &self,
        user: &str,
        filter: &CallFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<CallRow>, StoreError>;

    /// Numbers of calls by status and by tool.
    async fn count_calls(&self, user: &str, filter: &CallFilter) -> Result<CallCounts, StoreError>;

    /// Turns and calls of a time as figures: what metrics are computed from.
    async fn samples(&self, user: &str, range: &SampleRange) -> Result<MetricSamples, StoreError>;

    // Documents

    async fn document(
        &self,
        user: &str,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Option<StoredDocument>, StoreError>;

    /// All documents of a kind, by name.
    async fn documents(&self, user: &str, kind: DocumentKind) -> Result<Vec<StoredDocument>, StoreError>;

    /// Writes a document.
    async fn put_document(&self, user: &str, document: NewDocument) -> Result<PutOutcome, StoreError>;

    /// Removes a document, and returns it.
    async fn remove_document(
        &self,
        user: &str,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Option<StoredDocument>, StoreError>;

    /// Answers that hold always and, if one is named, in a conversation; oldest first.
    async fn remembered(
        &self,
        user: &str,
        conversation_id: Option<&str>,
    ) -> Result<Vec<RememberedRow>, StoreError>;

    /// All answers of the user that are remembered, those of every conversation too, in order of their numbers.
    async fn all_remembered(&self, user: &str) -> Result<Vec<RememberedRow>, StoreError>;

    /// Remembers an answer. `None`: there is no such conversation.
    async fn remember(&self, user: &str, answer: NewRemembered) -> Result<Option<RememberedRow>, StoreError>;

    /// Deletes a remembered decision, and returns it.
    async fn delete_remembered(&self, user: &str, number: u64) -> Result<Option<RememberedRow>, StoreError>;

    // Keys

    /// Adds a key of the user.
    ///
    /// # Errors
    /// [`StoreError::Exists`]: the id is taken. [`StoreError::Invalid`]: `key.user` is another one.
    async fn add_key(&self, user: &str, key: KeyRow) -> Result<(), StoreError>;

    /// All keys of the user, newest first.
    async fn keys(&self, user: &str) -> Result<Vec<KeyRow>, StoreError>;

    /// Makes a key worthless from now on. `false`: there is no such key, or it was revoked before.
    async fn revoke_key(&self, user: &str, id: &str, now: i64) -> Result<bool, StoreError>;

    /// A key by its id, of any user, valid or not: for authentication, which determines the user from it.
    async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError>;

    /// Notes that a key was used, at most once in [`LAST_USED_INTERVAL_MS`]: for authentication. `true` if it was written.
    async fn touch_key(&self, id: &str, now: i64) -> Result<bool, StoreError>;

    /// Sets the limits of a key. `false`: there is no such key.
    async fn set_key_limits(&self, user: &str, id: &str, limits: KeyLimits) -> Result<bool, StoreError>;

    /// Keys of the user, newest first.
    async fn keys_page(&self, user: &str, page: &PageRequest) -> Result<ResultPage<KeyRow>, StoreError>;

    /// Keys of all people, newest first: for administrators.
    async fn all_keys(&self, page: &PageRequest) -> Result<ResultPage<KeyRow>, StoreError>;

    // People

    /// Adds a person: for administrators, like the three methods that follow.
    ///
    /// # Errors
    ///
    /// [`StoreError::Exists`]: the name is taken, also by a person who was removed.
    async fn add_person(&self, person: PersonRow) -> Result<(), StoreError>;

    async fn person(&self, name: &str) -> Result<Option<PersonRow>, StoreError>;

    /// People, newest first, including removed ones.
    async fn people(&self, page: &PageRequest) -> Result<ResultPage<PersonRow>, StoreError>;

    /// Changes a person. `None`: there is no person with this name.
    async fn change_person(&self, name: &str, change: PersonChange) -> Result<Option<PersonRow>, StoreError>;

    /// Revokes all keys of the user, and returns the ids of those that were valid until now.
    async fn revoke_keys(&self, user: &str, now: i64) -> Result<Vec<String>, StoreError>;

    /// Deletes a part of all data of the user; repeat it while there is more. When no turn runs any more, the
    /// last part deletes the keys and the row of the person.
    async fn delete_data(&self, user: &str) -> Result<RemovalSummary, StoreError>;

    // Use

    /// Counts a request that is not a turn, unless a usage limit of the user or the key is reached: then
    /// nothing is written. Turns are counted by [`create_turn`](Self::create_turn) and
    /// [`end_turn`](Self::end_turn).
    async fn charge(
        &self,
        user: &str,
        charge: TurnCharge,
        count: UsageCount,
        now: i64,
    ) -> Result<Option<UsageExceeded>, StoreError>;

    /// Usage of people and keys, in the order given: for administrators.
    async fn usage(&self, owners: &[UsageOwner<'_>], now: i64) -> Result<Vec<UsageReport>, StoreError>;

    // Files

    /// Adds a file.
    ///
    /// # Errors
    /// [`StoreError::OverLimit`]: the user would have more than `user_files_bytes_max`. [`StoreError::Exists`].
    async fn add_file(&self, user: &str, file: NewFile) -> Result<FileRow, StoreError>;

    /// A file for content that turns refer to: an existing used one of the user with the same content, else
    /// this one, which is added as by [`add_file`](Self::add_file).
    ///
    /// # Errors
    ///
    /// As [`add_file`](Self::add_file).
    async fn find_or_add_file(&self, user: &str, file: NewFile) -> Result<FileRow, StoreError>;

    /// Notes that a turn uses a file: it stays as long as the turn does. `false`: the user does not have both.
    async fn record_file_use(&self, user: &str, turn_id: &str, file_id: &str) -> Result<bool, StoreError>;

    /// One of these turns that uses the file.
    async fn turn_using_file(
        &self,
        user: &str,
        turn_ids: &[String],
        file_id: &str,
    ) -> Result<Option<String>, StoreError>;

    async fn file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError>;

    /// Files, newest first.
    async fn files(&self, user: &str, page: &PageRequest) -> Result<ResultPage<FileRow>, StoreError>;

    /// Removes a file, used or not, and returns it.
    async fn remove_file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError>;

    /// Those of these blobs that a file of any user still needs: for the blob folder itself.
    async fn blobs_in_use(&self, hashes: &[String]) -> Result<HashSet<String>, StoreError>;

    // Raw upstream bytes

    /// Appends bytes of an upstream to those that are stored already. `None`: there is no such turn.
    async fn append_raw(
        &self,
        user: &str,
        id: &RawId,
        bytes: &[u8],
        now: i64,
    ) -> Result<Option<RawExtent>, StoreError>;

    /// Records that bytes of an answer were left out: the stored bytes are its beginning, and nothing is
    /// appended to them. `false`: there is no such turn.
    async fn mark_raw_truncated(&self, user: &str, id: &RawId, now: i64) -> Result<bool, StoreError>;

    /// Stored replies of a turn's upstreams, in order.
    async fn raw_of_turn(&self, user: &str, turn_id: &str) -> Result<Vec<RawRow>, StoreError>;

    /// The bytes of one answer.
    async fn raw(&self, user: &str, id: &RawId) -> Result<Option<Vec<u8>>, StoreError>;
}
