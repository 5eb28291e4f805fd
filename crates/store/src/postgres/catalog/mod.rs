//! Everything beside the log, in the same database. What is in which table: `schema/catalog.sql`.
//!
//! Each method is one transaction on a connection of the pool. What one user writes follows each other, by a lock that
//! ends with the transaction: limits and keys of idempotency are looked at and then relied on.

mod conversation_search;
pub(super) mod db;
mod search;

use super::PostgresStore;
use super::connection::sanitize_param;
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
use crate::log::Durability::{self, Power, Process};
use async_trait::async_trait;
use db::PostgresCatalogDb;
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, PgConnection, Postgres, Transaction};
use std::collections::HashSet;

impl PostgresStore {
    fn catalog_limits(&self) -> CatalogLimits {
        self.shared().settings.catalog
    }

    /// Runs statements of the catalog on this connection.
    fn catalog_db<'a>(&self, connection: &'a mut PgConnection) -> PostgresCatalogDb<'a> {
        PostgresCatalogDb::new(connection, self.shared().replica)
    }

    async fn read_connection(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        Ok(self.shared().pool.acquire().await?)
    }

    /// A transaction that is as durable as asked, and behind all others of this user that write.
    async fn write_transaction(
        &self,
        durability: Durability,
        user: &str,
    ) -> Result<Transaction<'static, Postgres>, StoreError> {
        let mut transaction = self.shared().pool.begin().await?;
        let synchronous = match durability {
            Process => "off",
            Power => "on",
        };
        sqlx::query("SELECT set_config('synchronous_commit', $1, true), pg_advisory_xact_lock(1953980012, hashtext($2))::text")
            .bind(synchronous)
            .bind(sanitize_param(user))
            .execute(&mut *transaction)
            .await?;
        Ok(transaction)
    }

    /// Evicts from memory the turns that were removed from the database.
    fn evict_removed(&self, removed: RemovalOutcome) -> RemovalOutcome {
        if let RemovalOutcome::Removed(summary) = &removed {
            summary.turns.iter().for_each(|turn| self.evict_turn(turn));
        }
        removed
    }
}

#[async_trait]
impl Catalog for PostgresStore {
    async fn create_turn(&self, user: &str, turn: NewTurnRow) -> Result<TurnCreation, StoreError> {
        let mut db = self.write_transaction(Process, user).await?;
        let done = turns::create(&mut self.catalog_db(&mut db), &self.catalog_limits(), user, &turn).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn turn(&self, user: &str, turn_id: &str) -> Result<Option<TurnRow>, StoreError> {
        turns::get(&mut self.catalog_db(&mut *self.read_connection().await?), user, turn_id).await
    }

    async fn turn_by_idempotency_key(
        &self,
        user: &str,
        key: &IdempotencyKey,
        now: i64,
    ) -> Result<Option<TurnCreation>, StoreError> {
        turns::by_idempotency_key(&mut self.catalog_db(&mut *self.read_connection().await?), user, key, now)
            .await
    }

    // What a power cut takes away of an end is in the log, where the next start finds it.
    async fn end_turn(&self, user: &str, turn_id: &str, end: TurnEnd) -> Result<bool, StoreError> {
        let mut db = self.write_transaction(Process, user).await?;
        let done = turns::end(&mut self.catalog_db(&mut db), user, turn_id, &end).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn turns(
        &self,
        user: &str,
        filter: &TurnFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<TurnSummary>, StoreError> {
        turns::list(&mut self.catalog_db(&mut *self.read_connection().await?), user, filter, page).await
    }

    async fn delete_turn(&self, user: &str, turn_id: &str) -> Result<RemovalOutcome, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let removed = removal::turn(&mut self.catalog_db(&mut db), user, turn_id).await?;
        db.commit().await?;
        Ok(self.evict_removed(removed))
    }

    // Those that are this server's, or nobody's any more: not those that another server runs.
    async fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError> {
        let open = format!(
            "SELECT t.id, t.user_id, t.conversation_id, b.stored FROM turn t JOIN turn_begin b ON b.n = t.n
                LEFT JOIN turn_log l ON l.turn = t.id
             WHERE t.ended_at IS NULL AND (coalesce(l.owner, t.replica) = $1
                OR NOT EXISTS (SELECT 1 FROM replica r WHERE r.id = coalesce(l.owner, t.replica) AND {}))
             ORDER BY t.n",
            super::lease::alive_condition()
        );
        let open = sqlx::query(AssertSqlSafe(open)).bind(self.shared().replica);
        let rows = open.fetch_all(&mut *self.read_connection().await?).await?;
        rows.iter().map(|row| turns::open_turn(row)).collect()
    }

    async fn create_conversation(
        &self,
        user: &str,
        conversation: NewConversation,
    ) -> Result<ConversationRow, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done =
            conversations::create(&mut self.catalog_db(&mut db), &self.catalog_limits(), user, &conversation)
                .await?;
        db.commit().await?;
        Ok(done)
    }

    async fn conversation(&self, user: &str, id: &str) -> Result<Option<ConversationSummary>, StoreError> {
        conversations::get(&mut self.catalog_db(&mut *self.read_connection().await?), user, id).await
    }

    async fn conversations(
        &self,
        user: &str,
        text: Option<&str>,
        page: &PageRequest,
    ) -> Result<ResultPage<ConversationSummary>, StoreError> {
        let term =
            text.map(|text| SearchTerm::parse(text, self.catalog_limits().search_chars_max)).transpose()?;
        let Some(term) = term.filter(|term| *term != SearchTerm::Blank) else {
            return conversations::list(
                &mut self.catalog_db(&mut *self.read_connection().await?),
                user,
                page,
            )
            .await;
        };
        let mut session = self.shared().search_pool.begin().await?;
        let result = conversation_search::conversations(&mut session, user, &term, page).await;
        session.finish(result)
    }

    async fn search(
        &self,
        user: &str,
        text: &str,
        page: &PageRequest,
    ) -> Result<ResultPage<SearchHit>, StoreError> {
        let mut session = self.shared().search_pool.begin().await?;
        let result = search::hits(&mut session, &self.catalog_limits(), user, text, page).await;
        session.finish(result)
    }

    async fn rename(&self, user: &str, id: &str, title: &str, now: i64) -> Result<bool, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done = conversations::rename(
            &mut self.catalog_db(&mut db),
            &self.catalog_limits(),
            user,
            id,
            title,
            now,
        )
        .await?;
        db.commit().await?;
        Ok(done)
    }

    async fn set_leaf(&self, user: &str, id: &str, turn_id: &str) -> Result<bool, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done = conversations::set_leaf(&mut self.catalog_db(&mut db), user, id, turn_id).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn tree(&self, user: &str, id: &str) -> Result<Vec<TurnSummary>, StoreError> {
        turns::tree(&mut self.catalog_db(&mut *self.read_connection().await?), user, id).await
    }

    async fn path(&self, user: &str, turn_id: &str) -> Result<Vec<PathTurn>, StoreError> {
        turns::path(&mut self.catalog_db(&mut *self.read_connection().await?), user, turn_id).await
    }

    async fn delete_conversation(&self, user: &str, id: &str) -> Result<RemovalOutcome, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let removed = removal::conversation(&mut self.catalog_db(&mut db), user, id).await?;
        db.commit().await?;
        Ok(self.evict_removed(removed))
    }

    async fn import(&self, user: &str, imported: ImportedConversation) -> Result<(), StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done =
            conversations::import(&mut self.catalog_db(&mut db), &self.catalog_limits(), user, &imported)
                .await?;
        db.commit().await?;
        Ok(done)
    }

    async fn delete_expired(&self, times: RetentionCutoffs) -> Result<RemovalSummary, StoreError> {
        let mut db = self.write_transaction(Power, "").await?;
        let summary = removal::delete_expired(&mut self.catalog_db(&mut db), &times).await?;
        db.commit().await?;
        summary.turns.iter().for_each(|turn| self.evict_turn(turn));
        Ok(summary)
    }

    async fn put_calls(&self, user: &str, calls: Vec<CallRow>) -> Result<u64, StoreError> {
        let mut db = self.write_transaction(Process, user).await?;
        let done = calls::put(&mut self.catalog_db(&mut db), user, &calls).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn call(&self, user: &str, turn_id: &str, tool_id: &str) -> Result<Option<CallRow>, StoreError> {
        calls::get(&mut self.catalog_db(&mut *self.read_connection().await?), user, turn_id, tool_id).await
    }

    async fn calls(
        &self,
        user: &str,
        filter: &CallFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<CallRow>, StoreError> {
        if filter.text.is_some() {
            let mut session = self.shared().search_pool.begin().await?;
            let result =
                calls::list(&mut self.catalog_db(session.db()?), &self.catalog_limits(), user, filter, page)
                    .await;
            return session.finish(result);
        }
        calls::list(
            &mut self.catalog_db(&mut *self.read_connection().await?),
            &self.catalog_limits(),
            user,
            filter,
            page,
        )
        .await
    }

    async fn count_calls(&self, user: &str, filter: &CallFilter) -> Result<CallCounts, StoreError> {
        if filter.text.is_some() {
            let mut session = self.shared().search_pool.begin().await?;
            let counted =
                calls::count(&mut self.catalog_db(session.db()?), &self.catalog_limits(), user, filter).await;
            return session.finish(counted);
        }
        calls::count(
            &mut self.catalog_db(&mut *self.read_connection().await?),
            &self.catalog_limits(),
            user,
            filter,
        )
        .await
    }

    async fn samples(&self, user: &str, range: &SampleRange) -> Result<MetricSamples, StoreError> {
        let mut connection = self.read_connection().await?;
        let db = &mut self.catalog_db(&mut connection);
        Ok(MetricSamples {
            turns: turns::samples(db, user, range).await?,
            calls: calls::samples(db, user, range).await?,
            waiting: calls::count_waiting(db, user).await?,
        })
    }

    async fn document(
        &self,
        user: &str,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Option<StoredDocument>, StoreError> {
        documents::get(&mut self.catalog_db(&mut *self.read_connection().await?), user, kind, name).await
    }

    async fn documents(&self, user: &str, kind: DocumentKind) -> Result<Vec<StoredDocument>, StoreError> {
        documents::list(&mut self.catalog_db(&mut *self.read_connection().await?), user, kind).await
    }

    async fn put_document(&self, user: &str, document: NewDocument) -> Result<PutOutcome, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done =
            documents::put(&mut self.catalog_db(&mut db), &self.catalog_limits(), user, &document).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn remove_document(
        &self,
        user: &str,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done = documents::remove(&mut self.catalog_db(&mut db), user, kind, name).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn remembered(
        &self,
        user: &str,
        conversation_id: Option<&str>,
    ) -> Result<Vec<RememberedRow>, StoreError> {
        documents::remembered(
            &mut self.catalog_db(&mut *self.read_connection().await?),
            user,
            conversation_id,
        )
        .await
    }

    async fn all_remembered(&self, user: &str) -> Result<Vec<RememberedRow>, StoreError> {
        documents::all_remembered(&mut self.catalog_db(&mut *self.read_connection().await?), user).await
    }

    async fn remember(&self, user: &str, answer: NewRemembered) -> Result<Option<RememberedRow>, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done =
            documents::remember(&mut self.catalog_db(&mut db), &self.catalog_limits(), user, &answer).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn delete_remembered(&self, user: &str, number: u64) -> Result<Option<RememberedRow>, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done = documents::delete_remembered(&mut self.catalog_db(&mut db), user, number).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn add_key(&self, user: &str, key: KeyRow) -> Result<(), StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done = keys::add(&mut self.catalog_db(&mut db), &self.catalog_limits(), user, &key).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn keys(&self, user: &str) -> Result<Vec<KeyRow>, StoreError> {
        keys::list(&mut self.catalog_db(&mut *self.read_connection().await?), user).await
    }

    async fn revoke_key(&self, user: &str, id: &str, now: i64) -> Result<bool, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done = keys::revoke(&mut self.catalog_db(&mut db), user, id, now).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError> {
        keys::get(&mut self.catalog_db(&mut *self.read_connection().await?), id).await
    }

    // Looked at before: each request comes here, and the writer is for those who have something to write.
    async fn touch_key(&self, id: &str, now: i64) -> Result<bool, StoreError> {
        if !keys::needs_touch(&mut self.catalog_db(&mut *self.read_connection().await?), id, now).await? {
            return Ok(false);
        }
        let mut db = self.write_transaction(Process, id).await?;
        let done = keys::touch(&mut self.catalog_db(&mut db), id, now).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn add_file(&self, user: &str, file: NewFile) -> Result<FileRow, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done = files::add(&mut self.catalog_db(&mut db), &self.catalog_limits(), user, &file).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn find_or_add_file(&self, user: &str, file: NewFile) -> Result<FileRow, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done =
            files::find_or_add(&mut self.catalog_db(&mut db), &self.catalog_limits(), user, &file).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn record_file_use(&self, user: &str, turn_id: &str, file_id: &str) -> Result<bool, StoreError> {
        let mut db = self.write_transaction(Process, user).await?;
        let done = files::record_use(&mut self.catalog_db(&mut db), user, turn_id, file_id).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
        files::get(&mut self.catalog_db(&mut *self.read_connection().await?), user, id).await
    }

    async fn files(&self, user: &str, page: &PageRequest) -> Result<ResultPage<FileRow>, StoreError> {
        files::list(&mut self.catalog_db(&mut *self.read_connection().await?), user, page).await
    }

    async fn remove_file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
        let mut db = self.write_transaction(Power, user).await?;
        let done = files::remove(&mut self.catalog_db(&mut db), user, id).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn blobs_in_use(&self, hashes: &[String]) -> Result<HashSet<String>, StoreError> {
        files::blobs_in_use(&mut self.catalog_db(&mut *self.read_connection().await?), hashes).await
    }

    async fn append_raw(
        &self,
        user: &str,
        id: &RawId,
        bytes: &[u8],
        now: i64,
    ) -> Result<Option<RawExtent>, StoreError> {
        let mut db = self.write_transaction(Process, user).await?;
        let done =
            raw::append(&mut self.catalog_db(&mut db), &self.catalog_limits(), user, id, bytes, now).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn mark_raw_truncated(&self, user: &str, id: &RawId, now: i64) -> Result<bool, StoreError> {
        let mut db = self.write_transaction(Process, user).await?;
        let done = raw::mark_truncated(&mut self.catalog_db(&mut db), user, id, now).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn raw_of_turn(&self, user: &str, turn_id: &str) -> Result<Vec<RawRow>, StoreError> {
        raw::of_turn(&mut self.catalog_db(&mut *self.read_connection().await?), user, turn_id).await
    }

    async fn raw(&self, user: &str, id: &RawId) -> Result<Option<Vec<u8>>, StoreError> {
        raw::get(&mut self.catalog_db(&mut *self.read_connection().await?), user, id).await
    }
}
