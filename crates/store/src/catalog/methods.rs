//! The methods of the catalog, once for both databases: the statements of each, and the connection that runs
//! them.

use super::sql::{
    CatalogDb, calls, conversations, documents, files, filing, keys, overview, people, raw, removal, samples,
    shares, turns,
};
use super::texts::SearchTerm;
use super::{
    CallCounts, CallFilter, CallRow, Catalog, CatalogLimits, ConversationChange, ConversationFilter,
    ConversationLabels, ConversationRow, ConversationSummary, ConversationUsage, DocumentKind, FileRow,
    IdempotencyKey, ImportedConversation, KeyLimits, KeyRow, MetricSamples, NewConversation, NewDocument,
    NewFile, NewRemembered, NewTurnRow, NextTurn, OpenTurn, PageRequest, PathTurn, PersonChange, PersonRow,
    PutOutcome, RawExtent, RawId, RawRow, RememberedRow, RemovalOutcome, RemovalSummary, ResultPage,
    RetentionCutoffs, SampleRange, SearchHit, ShareRow, StoredDocument, TurnCharge, TurnCounts, TurnCreation,
    TurnEnd, TurnFilter, TurnHistoryRow, TurnRating, TurnRefusal, TurnRow, TurnSummary, UsageCount,
    UsageExceeded, UsageOwner, UsageReport,
};
use crate::error::StoreError;
use crate::log::Durability::{self, Power, Process};
use crate::log::LogRecord;
use crate::reader::StoreReader;
use crate::status::LoggedTurn;
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::HashSet;

/// Statements of one method, with their arguments.
pub(crate) type CatalogJob<T> =
    Box<dyn for<'a> FnOnce(&'a mut dyn CatalogDb) -> BoxFuture<'a, Result<T, StoreError>> + Send>;

fn only_read() -> StoreError {
    StoreError::failed("the store is opened read-only and cannot be written or searched")
}

/// A database of the catalog: connections for its statements, and its implementation of the searches. A
/// [read-only](crate::StoreReader) one has neither writes nor searches.
#[async_trait]
pub(crate) trait CatalogBackend: Send + Sync + 'static {
    fn limits(&self) -> CatalogLimits;

    /// Runs statements that read.
    async fn read<T: Send + 'static>(&self, job: CatalogJob<T>) -> Result<T, StoreError>;

    /// Runs statements that read much: in the time and with the connection of a search.
    async fn scan<T: Send + 'static>(&self, job: CatalogJob<T>) -> Result<T, StoreError> {
        self.read(job).await
    }

    /// Runs statements in one transaction. What one user writes follows each other.
    async fn write<T: Send + 'static>(
        &self,
        _durability: Durability,
        _user: &str,
        _job: CatalogJob<T>,
    ) -> Result<T, StoreError> {
        Err(only_read())
    }

    /// Evicts a turn from memory that was removed from the database.
    fn evict(&self, _turn_id: &str) {}

    /// Turns without an end that are this server's to continue.
    async fn open_turn_rows(&self) -> Result<Vec<OpenTurn>, StoreError> {
        Err(only_read())
    }

    async fn search_hits(
        &self,
        _user: &str,
        _text: &str,
        _page: &PageRequest,
    ) -> Result<ResultPage<SearchHit>, StoreError> {
        Err(only_read())
    }

    /// Conversations that contain a term, which is not blank.
    async fn search_conversations(
        &self,
        _user: &str,
        _term: SearchTerm,
        _filter: &ConversationFilter,
        _page: &PageRequest,
    ) -> Result<ResultPage<ConversationSummary>, StoreError> {
        Err(only_read())
    }

    /// Calls are looked through if the filter has a text, else they are found by an index.
    async fn read_calls<T: Send + 'static>(
        &self,
        filter: &CallFilter,
        job: CatalogJob<T>,
    ) -> Result<T, StoreError> {
        if filter.text.is_some() { self.scan(job).await } else { self.read(job).await }
    }

    async fn remove(
        &self,
        user: &str,
        job: CatalogJob<RemovalOutcome>,
    ) -> Result<RemovalOutcome, StoreError> {
        let outcome = self.write(Power, user, job).await?;
        if let RemovalOutcome::Removed(summary) = &outcome {
            summary.turns.iter().for_each(|turn| self.evict(turn));
        }
        Ok(outcome)
    }

    /// Removes many turns, of one user or of all (`""`).
    async fn remove_many(
        &self,
        user: &str,
        job: CatalogJob<RemovalSummary>,
    ) -> Result<RemovalSummary, StoreError> {
        let summary = self.write(Power, user, job).await?;
        summary.turns.iter().for_each(|turn| self.evict(turn));
        Ok(summary)
    }
}

/// A backend that only reads, and from the side: it has the records of running turns from the database.
#[async_trait]
pub(crate) trait RecordSource: CatalogBackend {
    async fn turn_records(&self, turn: &str) -> Result<Option<Vec<LogRecord>>, StoreError>;
}

/// An argument as a job takes it along.
trait JobArgument {
    type Owned;
    fn into_owned(self) -> Self::Owned;
}

impl<T: ToOwned + ?Sized> JobArgument for &T {
    type Owned = T::Owned;
    fn into_owned(self) -> T::Owned {
        self.to_owned()
    }
}

impl JobArgument for Option<&str> {
    type Owned = Option<String>;
    fn into_owned(self) -> Option<String> {
        self.map(str::to_owned)
    }
}

macro_rules! owned_arguments {
    ($($owned:ty),*) => { $(
        impl JobArgument for $owned {
            type Owned = Self;
            fn into_owned(self) -> Self {
                self
            }
        }
    )* };
}

owned_arguments!(i64, u32, u64, NewTurnRow, TurnEnd, NewConversation, ImportedConversation, RetentionCutoffs);
owned_arguments!(Vec<CallRow>, DocumentKind, NewDocument, NewRemembered, KeyRow, NewFile);
owned_arguments!(ConversationChange, ShareRow, NextTurn);
owned_arguments!(KeyLimits, PersonRow, PersonChange, TurnCharge, UsageCount, Option<TurnRating>);

/// Implements a trait for every backend. Each row names the connection, the method, and its statements. The
/// methods under `functions` use more than one transaction, or differ between the databases.
macro_rules! catalog_methods {
    (
        impl $catalog:ident for $store:ident: $backend:ident;
        statements {$(
            $run_on:ident($($with:expr),*) $method:ident($($arg:ident: $type:ty),*) -> $result:ty
                = |$db:ident $(, $limits:ident)?| $statements:expr;
        )*}
        functions {$(
            $own_method:ident($($own_arg:ident: $own_type:ty),*) -> $own_result:ty = $function:expr;
        )*}
    ) => {
        #[async_trait]
        impl<$store: $backend> $catalog for $store {
            $(async fn $method(&self, $($arg: $type),*) -> Result<$result, StoreError> {
                let job: CatalogJob<$result> = {
                    $(let $arg = $arg.into_owned();)*
                    $(let $limits = self.limits();)?
                    Box::new(move |$db| async move { $statements.await }.boxed())
                };
                self.$run_on($($with,)* job).await
            })*

            $(async fn $own_method(&self, $($own_arg: $own_type),*) -> Result<$own_result, StoreError> {
                $function(self, $($own_arg),*).await
            })*
        }
    };
}

catalog_methods! {
    impl Catalog for S: CatalogBackend;
    statements {
        write(Process, user) create_turn(user: &str, turn: NewTurnRow) -> TurnCreation
            = |db, limits| turns::create(db, &limits, &user, &turn);
        // It writes nothing, but takes the locks of the rows that it reads.
        write(Process, user) refusal_of_next(user: &str, next: NextTurn) -> Option<TurnRefusal>
            = |db, limits| turns::refusal_of_next(db, &limits, &user, &next);
        read() turn(user: &str, turn_id: &str) -> Option<TurnRow>
            = |db| turns::get(db, &user, &turn_id);
        read() turn_by_idempotency_key(user: &str, key: &IdempotencyKey, now: i64) -> Option<TurnCreation>
            = |db| turns::by_idempotency_key(db, &user, &key, now);
        // An end that a power cut loses here is still in the log, where the next start finds it.
        write(Process, user) end_turn(user: &str, turn_id: &str, end: TurnEnd) -> bool
            = |db| turns::end(db, &user, &turn_id, &end);
        write(Power, user) rate_turn(user: &str, turn_id: &str, rating: Option<TurnRating>) -> bool
            = |db| turns::rate(db, &user, &turn_id, rating.as_ref());
        read() turns(user: &str, filter: &TurnFilter, page: &PageRequest) -> ResultPage<TurnHistoryRow>
            = |db| turns::list(db, &user, &filter, &page);
        scan() search_turns(user: &str, text: &str, filter: &TurnFilter, page: &PageRequest)
            -> ResultPage<TurnHistoryRow>
            = |db, limits| turns::search(db, &limits, &user, &text, &filter, &page);
        read() count_turns(user: &str, filter: &TurnFilter) -> TurnCounts
            = |db| turns::count(db, &user, &filter);
        remove(user) delete_turn(user: &str, turn_id: &str) -> RemovalOutcome
            = |db| removal::turn(db, &user, &turn_id);

        write(Power, user) create_conversation(user: &str, new: NewConversation) -> ConversationRow
            = |db, limits| conversations::create(db, &limits, &user, &new);
        read() conversation(user: &str, id: &str) -> Option<ConversationSummary>
            = |db| conversations::get(db, &user, &id);
        read() conversation_labels(user: &str) -> ConversationLabels
            = |db, limits| filing::labels(db, &limits, &user);
        read() conversation_usage(user: &str, id: &str) -> Option<ConversationUsage>
            = |db| filing::usage(db, &user, &id);
        write(Power, user) change_conversation(user: &str, id: &str, change: ConversationChange, now: i64) -> bool
            = |db, limits| filing::change(db, &limits, &user, &id, &change, now);
        write(Power, user) rename(user: &str, id: &str, title: &str, now: i64) -> bool
            = |db, limits| conversations::rename(db, &limits, &user, &id, &title, now);
        write(Power, user) set_leaf(user: &str, id: &str, turn_id: &str) -> bool
            = |db| conversations::set_leaf(db, &user, &id, &turn_id);
        read() tree(user: &str, id: &str) -> Vec<TurnSummary>
            = |db| turns::tree(db, &user, &id);
        read() path(user: &str, turn_id: &str) -> Vec<PathTurn>
            = |db| turns::path(db, &user, &turn_id);
        remove(user) delete_conversation(user: &str, id: &str) -> RemovalOutcome
            = |db| removal::conversation(db, &user, &id);
        write(Power, user) trash_conversation(user: &str, id: &str, now: i64) -> RemovalOutcome
            = |db| removal::trash(db, &user, &id, now);
        write(Power, user) restore_conversation(user: &str, id: &str, deleted_after: i64) -> bool
            = |db| removal::restore(db, &user, &id, deleted_after);
        write(Power, user) import(user: &str, imported: ImportedConversation) -> ()
            = |db, limits| conversations::import(db, &limits, &user, &imported);
        remove_many("") delete_expired(times: RetentionCutoffs) -> RemovalSummary
            = |db| removal::delete_expired(db, &times);

        write(Power, user) add_share(user: &str, share: ShareRow) -> bool
            = |db, limits| shares::add(db, &limits, &user, &share);
        read() shares(user: &str, conversation_id: Option<&str>, page: &PageRequest) -> ResultPage<ShareRow>
            = |db| shares::list(db, &user, conversation_id.as_deref(), &page);
        write(Power, user) delete_share(user: &str, id: &str) -> bool
            = |db| shares::delete(db, &user, &id);
        read() share(id: &str) -> Option<ShareRow>
            = |db| shares::get(db, &id);

        write(Process, user) put_calls(user: &str, calls: Vec<CallRow>) -> u64
            = |db| calls::put(db, &user, &calls);
        read() call(user: &str, turn_id: &str, tool_id: &str) -> Option<CallRow>
            = |db| calls::get(db, &user, &turn_id, &tool_id);
        read_calls(filter) calls(user: &str, filter: &CallFilter, page: &PageRequest) -> ResultPage<CallRow>
            = |db, limits| calls::list(db, &limits, &user, &filter, &page);
        read_calls(filter) count_calls(user: &str, filter: &CallFilter) -> CallCounts
            = |db, limits| calls::count(db, &limits, &user, &filter);
        read() samples(user: &str, range: &SampleRange) -> MetricSamples
            = |db| samples(db, &user, &range);

        read() document(user: &str, kind: DocumentKind, name: &str) -> Option<StoredDocument>
            = |db| documents::get(db, &user, kind, &name);
        read() documents(user: &str, kind: DocumentKind) -> Vec<StoredDocument>
            = |db| documents::list(db, &user, kind);
        write(Power, user) put_document(user: &str, document: NewDocument) -> PutOutcome
            = |db, limits| documents::put(db, &limits, &user, &document);
        write(Power, user) remove_document(user: &str, kind: DocumentKind, name: &str) -> Option<StoredDocument>
            = |db| documents::remove(db, &user, kind, &name);
        read() remembered(user: &str, conversation_id: Option<&str>) -> Vec<RememberedRow>
            = |db| documents::remembered(db, &user, conversation_id.as_deref());
        read() all_remembered(user: &str) -> Vec<RememberedRow>
            = |db| documents::all_remembered(db, &user);
        write(Power, user) remember(user: &str, answer: NewRemembered) -> Option<RememberedRow>
            = |db, limits| documents::remember(db, &limits, &user, &answer);
        write(Power, user) delete_remembered(user: &str, number: u64) -> Option<RememberedRow>
            = |db| documents::delete_remembered(db, &user, number);

        write(Power, user) add_key(user: &str, key: KeyRow) -> ()
            = |db, limits| keys::add(db, &limits, &user, &key);
        read() keys(user: &str) -> Vec<KeyRow>
            = |db| keys::list(db, &user);
        write(Power, user) revoke_key(user: &str, id: &str, now: i64) -> bool
            = |db| keys::revoke(db, &user, &id, now);
        read() key(id: &str) -> Option<KeyRow>
            = |db| keys::get(db, &id);
        write(Power, user) set_key_limits(user: &str, id: &str, limits: KeyLimits) -> bool
            = |db| people::set_key_limits(db, &user, &id, &limits);
        read() keys_page(user: &str, page: &PageRequest) -> ResultPage<KeyRow>
            = |db| people::keys(db, Some(&user), &page);
        read() all_keys(page: &PageRequest) -> ResultPage<KeyRow>
            = |db| people::keys(db, None, &page);
        write(Power, user) revoke_keys(user: &str, now: i64) -> Vec<String>
            = |db| people::revoke_keys(db, &user, now);

        // One lock for all people: they are counted.
        write(Power, "") add_person(person: PersonRow) -> ()
            = |db, limits| people::add(db, &limits, &person);
        read() person(name: &str) -> Option<PersonRow>
            = |db| people::get(db, &name);
        read() people(page: &PageRequest) -> ResultPage<PersonRow>
            = |db| people::list(db, &page);
        write(Power, name) change_person(name: &str, change: PersonChange) -> Option<PersonRow>
            = |db| people::change(db, &name, &change);
        remove_many(user) delete_data(user: &str) -> RemovalSummary
            = |db| people::delete_data(db, &user);
        write(Process, user) charge(user: &str, charge: TurnCharge, count: UsageCount, now: i64) -> Option<UsageExceeded>
            = |db| people::charge(db, &user, &charge, count, now);

        write(Power, user) add_file(user: &str, file: NewFile) -> FileRow
            = |db, limits| files::add(db, &limits, &user, &file);
        write(Power, user) find_or_add_file(user: &str, file: NewFile) -> FileRow
            = |db, limits| files::find_or_add(db, &limits, &user, &file);
        write(Process, user) record_file_use(user: &str, turn_id: &str, file_id: &str) -> bool
            = |db| files::record_use(db, &user, &turn_id, &file_id);
        read() turn_using_file(user: &str, turn_ids: &[String], file_id: &str) -> Option<String>
            = |db| files::turn_using(db, &user, turn_ids, &file_id);
        read() file(user: &str, id: &str) -> Option<FileRow>
            = |db| files::get(db, &user, &id);
        read() files(user: &str, page: &PageRequest) -> ResultPage<FileRow>
            = |db| files::list(db, &user, &page);
        write(Power, user) remove_file(user: &str, id: &str) -> Option<FileRow>
            = |db| files::remove(db, &user, &id);
        read() blobs_in_use(hashes: &[String]) -> HashSet<String>
            = |db| files::blobs_in_use(db, &hashes);

        write(Process, user) append_raw(user: &str, id: &RawId, bytes: &[u8], now: i64) -> Option<RawExtent>
            = |db, limits| raw::append(db, &limits, &user, &id, &bytes, now);
        write(Process, user) mark_raw_truncated(user: &str, id: &RawId, now: i64) -> bool
            = |db| raw::mark_truncated(db, &user, &id, now);
        read() raw_of_turn(user: &str, turn_id: &str) -> Vec<RawRow>
            = |db| raw::of_turn(db, &user, &turn_id);
        read() raw(user: &str, id: &RawId) -> Option<Vec<u8>>
            = |db| raw::get(db, &user, &id);
    }
    functions {
        open_turns() -> Vec<OpenTurn> = S::open_turn_rows;
        conversations(user: &str, filter: &ConversationFilter, page: &PageRequest) -> ResultPage<ConversationSummary>
            = conversations;
        search(user: &str, text: &str, page: &PageRequest) -> ResultPage<SearchHit> = S::search_hits;
        touch_key(id: &str, now: i64) -> bool = touch_key;
        usage(owners: &[UsageOwner<'_>], now: i64) -> Vec<UsageReport> = usage;
    }
}

catalog_methods! {
    impl StoreReader for S: RecordSource;
    statements {
        read() latest(turns_max: u32) -> Vec<LoggedTurn>
            = |db| overview::latest(db, turns_max);
        read() users() -> Vec<String>
            = |db| overview::users(db);
        read() latest_conversations(rows_max: u32) -> Vec<(String, String)>
            = |db| overview::latest_conversations(db, rows_max);
        read() user_of_turn(id: &str) -> Option<String>
            = |db| overview::user_of_turn(db, &id);
        read() user_of_conversation(id: &str) -> Option<String>
            = |db| overview::user_of_conversation(db, &id);
    }
    functions {
        records(turn: &str) -> Option<Vec<LogRecord>> = S::turn_records;
    }
}

async fn conversations(
    store: &impl CatalogBackend,
    user: &str,
    filter: &ConversationFilter,
    page: &PageRequest,
) -> Result<ResultPage<ConversationSummary>, StoreError> {
    let text = filter.text.as_deref();
    let term = text.map(|text| SearchTerm::parse(text, store.limits().search_chars_max)).transpose()?;
    match term {
        None | Some(SearchTerm::Blank) => {
            let (user, filter, page) = (user.to_owned(), filter.clone(), page.clone());
            let list: CatalogJob<_> = Box::new(move |db| {
                async move { conversations::list(db, &user, &filter, &page).await }.boxed()
            });
            store.read(list).await
        }
        Some(term) => store.search_conversations(user, term, filter, page).await,
    }
}

async fn usage(
    store: &impl CatalogBackend,
    owners: &[UsageOwner<'_>],
    now: i64,
) -> Result<Vec<UsageReport>, StoreError> {
    let owners: Vec<String> = owners.iter().map(|owner| owner.stored()).collect();
    store.read(Box::new(move |db| async move { people::reports(db, &owners, now).await }.boxed())).await
}

/// Checked before it is written: each request calls this, and the writer should not be woken for nothing.
async fn touch_key(store: &impl CatalogBackend, id: &str, now: i64) -> Result<bool, StoreError> {
    let key = id.to_owned();
    let needs_touch: CatalogJob<bool> =
        Box::new(move |db| async move { keys::needs_touch(db, &key, now).await }.boxed());
    if !store.read(needs_touch).await? {
        return Ok(false);
    }
    let key = id.to_owned();
    store
        .write(Process, id, Box::new(move |db| async move { keys::touch(db, &key, now).await }.boxed()))
        .await
}
