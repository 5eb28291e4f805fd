//! Everything beside the log, in the same file. What is in which table: `schema/catalog.sql`.

pub(super) mod db;
pub(super) mod search;

use super::SqliteStore;
use super::search_pool::SearchBudget;
use crate::catalog::sql::{calls, conversations, documents, files, keys, raw, removal, turns};
use crate::catalog::texts::SearchTerm;
use crate::catalog::{
    CallCounts, CallFilter, CallRow, Catalog, CatalogLimits, ConversationRow, ConversationSummary,
    DocumentKind, FileRow, IdempotencyKey, ImportedConversation, KeyRow, MetricSamples, NewConversation,
    NewDocument, NewFile, NewRemembered, NewTurnRow, OpenTurn, PageRequest, PathTurn, PutOutcome, RawExtent,
    RawId, RawRow, RememberedRow, RemovalOutcome, RemovalSummary, ResultPage, RetentionCutoffs, SampleRange,
    SearchHit, StoredDocument, TurnCreation, TurnEnd, TurnFilter, TurnRow, TurnSummary,
};
use crate::error::StoreError;
use crate::log::Durability::{Power, Process};
use async_trait::async_trait;
use db::{SqliteCatalogDb, run_now};
use rusqlite::Connection;
use search::{INDEX_BATCH_BYTES, IndexState};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl SqliteStore {
    fn catalog_limits(&self) -> CatalogLimits {
        self.inner.shared.settings.catalog
    }

    /// Looks for something in everything that has been said until now: what waits for the index is indexed first. If that
    /// is more than can be done in the time of a search, it is indexed when the writer rests, and the page says so.
    async fn search_indexed<T: Send + 'static>(
        &self,
        f: impl Fn(&Connection, &SearchBudget) -> Result<ResultPage<T>, StoreError> + Send + Sync + 'static,
    ) -> Result<ResultPage<T>, StoreError> {
        let f = Arc::new(f);
        let first = f.clone();
        let first_page = self.run_search(move |db, budget| match search::index_state(db)? {
            IndexState::Complete => first(db, budget).map(Some),
            IndexState::Stale => Ok(None),
        });
        if let Some(page) = first_page.await? {
            return Ok(page);
        }
        let index = self.index_pending().await;
        let page = self.run_search(move |db, budget| f(db, budget)).await?;
        Ok(ResultPage { partial: page.partial || index == IndexState::Stale, ..page })
    }

    /// Indexes what waits, in pieces between which others write. A store that cannot be written is searched as far as its
    /// index goes.
    async fn index_pending(&self) -> IndexState {
        let until = Instant::now() + Duration::from_millis(self.catalog_limits().search_ms_max / 3);
        loop {
            match self.write(Process, |db| search::index(db, INDEX_BATCH_BYTES)).await {
                Ok(IndexState::Stale) if Instant::now() < until => {}
                Ok(index) => return index,
                Err(_) => return IndexState::Stale,
            }
        }
    }

    /// Evicts from memory the turns that were removed from the file.
    fn evict_removed(&self, removed: RemovalOutcome) -> RemovalOutcome {
        if let RemovalOutcome::Removed(summary) = &removed {
            summary.turns.iter().for_each(|turn| self.evict_turn(turn));
        }
        removed
    }
}

#[async_trait]
impl Catalog for SqliteStore {
    async fn create_turn(&self, user: &str, turn: NewTurnRow) -> Result<TurnCreation, StoreError> {
        let (limits, user) = (self.catalog_limits(), user.to_owned());
        self.write(Process, move |db| run_now(turns::create(&mut SqliteCatalogDb(db), &limits, &user, &turn)))
            .await
    }

    async fn turn(&self, user: &str, turn_id: &str) -> Result<Option<TurnRow>, StoreError> {
        let (user, turn_id) = (user.to_owned(), turn_id.to_owned());
        self.read(move |db| run_now(turns::get(&mut SqliteCatalogDb(db), &user, &turn_id))).await
    }

    async fn turn_by_idempotency_key(
        &self,
        user: &str,
        key: &IdempotencyKey,
        now: i64,
    ) -> Result<Option<TurnCreation>, StoreError> {
        let (user, key) = (user.to_owned(), key.clone());
        self.read(move |db| run_now(turns::by_idempotency_key(&mut SqliteCatalogDb(db), &user, &key, now)))
            .await
    }

    // What a power cut takes away of an end is in the log, where the next start finds it.
    async fn end_turn(&self, user: &str, turn_id: &str, end: TurnEnd) -> Result<bool, StoreError> {
        let (user, turn_id) = (user.to_owned(), turn_id.to_owned());
        self.write(Process, move |db| run_now(turns::end(&mut SqliteCatalogDb(db), &user, &turn_id, &end)))
            .await
    }

    async fn turns(
        &self,
        user: &str,
        filter: &TurnFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<TurnSummary>, StoreError> {
        let (user, filter, page) = (user.to_owned(), filter.clone(), page.clone());
        self.read(move |db| run_now(turns::list(&mut SqliteCatalogDb(db), &user, &filter, &page))).await
    }

    async fn delete_turn(&self, user: &str, turn_id: &str) -> Result<RemovalOutcome, StoreError> {
        let (user, turn_id) = (user.to_owned(), turn_id.to_owned());
        let removed = self
            .write(Power, move |db| run_now(removal::turn(&mut SqliteCatalogDb(db), &user, &turn_id)))
            .await?;
        Ok(self.evict_removed(removed))
    }

    async fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError> {
        self.read(|db| run_now(turns::open_turns(&mut SqliteCatalogDb(db)))).await
    }

    async fn create_conversation(
        &self,
        user: &str,
        conversation: NewConversation,
    ) -> Result<ConversationRow, StoreError> {
        let (limits, user) = (self.catalog_limits(), user.to_owned());
        self.write(Power, move |db| {
            run_now(conversations::create(&mut SqliteCatalogDb(db), &limits, &user, &conversation))
        })
        .await
    }

    async fn conversation(&self, user: &str, id: &str) -> Result<Option<ConversationSummary>, StoreError> {
        let (user, id) = (user.to_owned(), id.to_owned());
        self.read(move |db| run_now(conversations::get(&mut SqliteCatalogDb(db), &user, &id))).await
    }

    async fn conversations(
        &self,
        user: &str,
        text: Option<&str>,
        page: &PageRequest,
    ) -> Result<ResultPage<ConversationSummary>, StoreError> {
        let term =
            text.map(|text| SearchTerm::parse(text, self.catalog_limits().search_chars_max)).transpose()?;
        let (user, page) = (user.to_owned(), page.clone());
        let term = match term {
            None | Some(SearchTerm::Blank) => {
                return self
                    .read(move |db| run_now(conversations::list(&mut SqliteCatalogDb(db), &user, &page)))
                    .await;
            }
            Some(term) => term,
        };
        self.search_indexed(move |db, budget| search::conversations_with(db, &user, &term, &page, budget))
            .await
    }

    async fn search(
        &self,
        user: &str,
        text: &str,
        page: &PageRequest,
    ) -> Result<ResultPage<SearchHit>, StoreError> {
        let (limits, user, text, page) =
            (self.catalog_limits(), user.to_owned(), text.to_owned(), page.clone());
        self.search_indexed(move |db, budget| search::hits(db, &limits, &user, &text, &page, budget)).await
    }

    async fn rename(&self, user: &str, id: &str, title: &str, now: i64) -> Result<bool, StoreError> {
        let (limits, user, id, title) =
            (self.catalog_limits(), user.to_owned(), id.to_owned(), title.to_owned());
        self.write(Power, move |db| {
            run_now(conversations::rename(&mut SqliteCatalogDb(db), &limits, &user, &id, &title, now))
        })
        .await
    }

    async fn set_leaf(&self, user: &str, id: &str, turn_id: &str) -> Result<bool, StoreError> {
        let (user, id, turn_id) = (user.to_owned(), id.to_owned(), turn_id.to_owned());
        self.write(Power, move |db| {
            run_now(conversations::set_leaf(&mut SqliteCatalogDb(db), &user, &id, &turn_id))
        })
        .await
    }

    async fn tree(&self, user: &str, id: &str) -> Result<Vec<TurnSummary>, StoreError> {
        let (user, id) = (user.to_owned(), id.to_owned());
        self.read(move |db| run_now(turns::tree(&mut SqliteCatalogDb(db), &user, &id))).await
    }

    async fn path(&self, user: &str, turn_id: &str) -> Result<Vec<PathTurn>, StoreError> {
        let (user, turn_id) = (user.to_owned(), turn_id.to_owned());
        self.read(move |db| run_now(turns::path(&mut SqliteCatalogDb(db), &user, &turn_id))).await
    }

    async fn delete_conversation(&self, user: &str, id: &str) -> Result<RemovalOutcome, StoreError> {
        let (user, id) = (user.to_owned(), id.to_owned());
        let removed = self
            .write(Power, move |db| run_now(removal::conversation(&mut SqliteCatalogDb(db), &user, &id)))
            .await?;
        Ok(self.evict_removed(removed))
    }

    async fn import(&self, user: &str, imported: ImportedConversation) -> Result<(), StoreError> {
        let (limits, user) = (self.catalog_limits(), user.to_owned());
        self.write(Power, move |db| {
            run_now(conversations::import(&mut SqliteCatalogDb(db), &limits, &user, &imported))
        })
        .await
    }

    async fn delete_expired(&self, times: RetentionCutoffs) -> Result<RemovalSummary, StoreError> {
        let summary = self
            .write(Power, move |db| run_now(removal::delete_expired(&mut SqliteCatalogDb(db), &times)))
            .await?;
        summary.turns.iter().for_each(|turn| self.evict_turn(turn));
        Ok(summary)
    }

    async fn put_calls(&self, user: &str, calls: Vec<CallRow>) -> Result<u64, StoreError> {
        let user = user.to_owned();
        self.write(Process, move |db| run_now(calls::put(&mut SqliteCatalogDb(db), &user, &calls))).await
    }

    async fn call(&self, user: &str, turn_id: &str, tool_id: &str) -> Result<Option<CallRow>, StoreError> {
        let (user, turn_id, tool_id) = (user.to_owned(), turn_id.to_owned(), tool_id.to_owned());
        self.read(move |db| run_now(calls::get(&mut SqliteCatalogDb(db), &user, &turn_id, &tool_id))).await
    }

    async fn calls(
        &self,
        user: &str,
        filter: &CallFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<CallRow>, StoreError> {
        let (limits, user, filter, page) =
            (self.catalog_limits(), user.to_owned(), filter.clone(), page.clone());
        if filter.text.is_some() {
            return self
                .run_search(move |db, _| {
                    run_now(calls::list(&mut SqliteCatalogDb(db), &limits, &user, &filter, &page))
                })
                .await;
        }
        self.read(move |db| run_now(calls::list(&mut SqliteCatalogDb(db), &limits, &user, &filter, &page)))
            .await
    }

    async fn count_calls(&self, user: &str, filter: &CallFilter) -> Result<CallCounts, StoreError> {
        let (limits, user, filter) = (self.catalog_limits(), user.to_owned(), filter.clone());
        if filter.text.is_some() {
            return self
                .run_search(move |db, _| {
                    run_now(calls::count(&mut SqliteCatalogDb(db), &limits, &user, &filter))
                })
                .await;
        }
        self.read(move |db| run_now(calls::count(&mut SqliteCatalogDb(db), &limits, &user, &filter))).await
    }

    async fn samples(&self, user: &str, range: &SampleRange) -> Result<MetricSamples, StoreError> {
        let (user, range) = (user.to_owned(), *range);
        self.read(move |db| {
            Ok(MetricSamples {
                turns: run_now(turns::samples(&mut SqliteCatalogDb(db), &user, &range))?,
                calls: run_now(calls::samples(&mut SqliteCatalogDb(db), &user, &range))?,
                waiting: run_now(calls::count_waiting(&mut SqliteCatalogDb(db), &user))?,
            })
        })
        .await
    }

    async fn document(
        &self,
        user: &str,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let (user, name) = (user.to_owned(), name.to_owned());
        self.read(move |db| run_now(documents::get(&mut SqliteCatalogDb(db), &user, kind, &name))).await
    }

    async fn documents(&self, user: &str, kind: DocumentKind) -> Result<Vec<StoredDocument>, StoreError> {
        let user = user.to_owned();
        self.read(move |db| run_now(documents::list(&mut SqliteCatalogDb(db), &user, kind))).await
    }

    async fn put_document(&self, user: &str, document: NewDocument) -> Result<PutOutcome, StoreError> {
        let (limits, user) = (self.catalog_limits(), user.to_owned());
        self.write(Power, move |db| {
            run_now(documents::put(&mut SqliteCatalogDb(db), &limits, &user, &document))
        })
        .await
    }

    async fn remove_document(
        &self,
        user: &str,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let (user, name) = (user.to_owned(), name.to_owned());
        self.write(Power, move |db| run_now(documents::remove(&mut SqliteCatalogDb(db), &user, kind, &name)))
            .await
    }

    async fn remembered(
        &self,
        user: &str,
        conversation_id: Option<&str>,
    ) -> Result<Vec<RememberedRow>, StoreError> {
        let (user, conversation_id) = (user.to_owned(), conversation_id.map(str::to_owned));
        self.read(move |db| {
            run_now(documents::remembered(&mut SqliteCatalogDb(db), &user, conversation_id.as_deref()))
        })
        .await
    }

    async fn all_remembered(&self, user: &str) -> Result<Vec<RememberedRow>, StoreError> {
        let user = user.to_owned();
        self.read(move |db| run_now(documents::all_remembered(&mut SqliteCatalogDb(db), &user))).await
    }

    async fn remember(&self, user: &str, answer: NewRemembered) -> Result<Option<RememberedRow>, StoreError> {
        let (limits, user) = (self.catalog_limits(), user.to_owned());
        self.write(Power, move |db| {
            run_now(documents::remember(&mut SqliteCatalogDb(db), &limits, &user, &answer))
        })
        .await
    }

    async fn delete_remembered(&self, user: &str, number: u64) -> Result<Option<RememberedRow>, StoreError> {
        let user = user.to_owned();
        self.write(Power, move |db| {
            run_now(documents::delete_remembered(&mut SqliteCatalogDb(db), &user, number))
        })
        .await
    }

    async fn add_key(&self, user: &str, key: KeyRow) -> Result<(), StoreError> {
        let (limits, user) = (self.catalog_limits(), user.to_owned());
        self.write(Power, move |db| run_now(keys::add(&mut SqliteCatalogDb(db), &limits, &user, &key))).await
    }

    async fn keys(&self, user: &str) -> Result<Vec<KeyRow>, StoreError> {
        let user = user.to_owned();
        self.read(move |db| run_now(keys::list(&mut SqliteCatalogDb(db), &user))).await
    }

    async fn revoke_key(&self, user: &str, id: &str, now: i64) -> Result<bool, StoreError> {
        let (user, id) = (user.to_owned(), id.to_owned());
        self.write(Power, move |db| run_now(keys::revoke(&mut SqliteCatalogDb(db), &user, &id, now))).await
    }

    async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError> {
        let id = id.to_owned();
        self.read(move |db| run_now(keys::get(&mut SqliteCatalogDb(db), &id))).await
    }

    // Looked at before: each request comes here, and the writer is for those who have something to write.
    async fn touch_key(&self, id: &str, now: i64) -> Result<bool, StoreError> {
        let key = id.to_owned();
        if !self.read(move |db| run_now(keys::needs_touch(&mut SqliteCatalogDb(db), &key, now))).await? {
            return Ok(false);
        }
        let id = id.to_owned();
        self.write(Process, move |db| run_now(keys::touch(&mut SqliteCatalogDb(db), &id, now))).await
    }

    async fn add_file(&self, user: &str, file: NewFile) -> Result<FileRow, StoreError> {
        let (limits, user) = (self.catalog_limits(), user.to_owned());
        self.write(Power, move |db| run_now(files::add(&mut SqliteCatalogDb(db), &limits, &user, &file)))
            .await
    }

    async fn find_or_add_file(&self, user: &str, file: NewFile) -> Result<FileRow, StoreError> {
        let (limits, user) = (self.catalog_limits(), user.to_owned());
        self.write(Power, move |db| {
            run_now(files::find_or_add(&mut SqliteCatalogDb(db), &limits, &user, &file))
        })
        .await
    }

    async fn record_file_use(&self, user: &str, turn_id: &str, file_id: &str) -> Result<bool, StoreError> {
        let (user, turn_id, file_id) = (user.to_owned(), turn_id.to_owned(), file_id.to_owned());
        self.write(Process, move |db| {
            run_now(files::record_use(&mut SqliteCatalogDb(db), &user, &turn_id, &file_id))
        })
        .await
    }

    async fn file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
        let (user, id) = (user.to_owned(), id.to_owned());
        self.read(move |db| run_now(files::get(&mut SqliteCatalogDb(db), &user, &id))).await
    }

    async fn files(&self, user: &str, page: &PageRequest) -> Result<ResultPage<FileRow>, StoreError> {
        let (user, page) = (user.to_owned(), page.clone());
        self.read(move |db| run_now(files::list(&mut SqliteCatalogDb(db), &user, &page))).await
    }

    async fn remove_file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
        let (user, id) = (user.to_owned(), id.to_owned());
        self.write(Power, move |db| run_now(files::remove(&mut SqliteCatalogDb(db), &user, &id))).await
    }

    async fn blobs_in_use(&self, hashes: &[String]) -> Result<HashSet<String>, StoreError> {
        let hashes = hashes.to_vec();
        self.read(move |db| run_now(files::blobs_in_use(&mut SqliteCatalogDb(db), &hashes))).await
    }

    async fn append_raw(
        &self,
        user: &str,
        id: &RawId,
        bytes: &[u8],
        now: i64,
    ) -> Result<Option<RawExtent>, StoreError> {
        let (limits, user, id, bytes) = (self.catalog_limits(), user.to_owned(), id.clone(), bytes.to_vec());
        self.write(Process, move |db| {
            run_now(raw::append(&mut SqliteCatalogDb(db), &limits, &user, &id, &bytes, now))
        })
        .await
    }

    async fn mark_raw_truncated(&self, user: &str, id: &RawId, now: i64) -> Result<bool, StoreError> {
        let (user, id) = (user.to_owned(), id.clone());
        self.write(Process, move |db| run_now(raw::mark_truncated(&mut SqliteCatalogDb(db), &user, &id, now)))
            .await
    }

    async fn raw_of_turn(&self, user: &str, turn_id: &str) -> Result<Vec<RawRow>, StoreError> {
        let (user, turn_id) = (user.to_owned(), turn_id.to_owned());
        self.read(move |db| run_now(raw::of_turn(&mut SqliteCatalogDb(db), &user, &turn_id))).await
    }

    async fn raw(&self, user: &str, id: &RawId) -> Result<Option<Vec<u8>>, StoreError> {
        let (user, id) = (user.to_owned(), id.clone());
        self.read(move |db| run_now(raw::get(&mut SqliteCatalogDb(db), &user, &id))).await
    }
}
