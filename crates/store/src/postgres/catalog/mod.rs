//! Everything beside the log, in the same database. What is in which table: `schema/catalog.sql`.
//!
//! Each method is one transaction on a connection of the pool. What one user writes follows each other, by a lock that
//! ends with the transaction: limits and keys of idempotency are looked at and then relied on.

pub(super) mod calls;
pub(super) mod conversations;
mod documents;
pub(super) mod files;
mod keys;
pub(super) mod raw;
mod removal;
mod rows;
mod search;
pub(super) mod turns;
mod within;

use super::PostgresStore;
use crate::catalog::texts::Sought;
use crate::catalog::{
    CallCounts, CallFilter, CallRow, Catalog, CatalogLimits, ConversationRow, ConversationSummary, Created,
    Document, DocumentKind, FileRow, ForgetBefore, Gone, Hit, Idempotency, Imported, KeyRow, NewConversation,
    NewDocument, NewFile, NewRemembered, NewTurn, OpenTurn, Page, PageRequest, PathTurn, Put, RawExtent,
    RawId, RawRow, RememberedRow, Removed, SampleRange, Samples, TurnEnd, TurnFilter, TurnRow, TurnSummary,
};
use crate::error::StoreError;
use crate::log::Durability::{self, Power, Process};
use async_trait::async_trait;
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres, Transaction};
use std::collections::HashSet;

/// Where a query runs: inside a transaction, if it writes.
pub(super) type Db<'a> = &'a mut PgConnection;

impl PostgresStore {
    fn catalog_limits(&self) -> CatalogLimits {
        self.shared().settings.catalog
    }

    async fn reading(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        Ok(self.shared().pool.acquire().await?)
    }

    /// A transaction that is as durable as asked, and behind all others of this user that write.
    async fn writing(
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
            .bind(rows::sought(user))
            .execute(&mut *transaction)
            .await?;
        Ok(transaction)
    }

    /// What has been removed from the database goes from memory, too.
    fn let_go(&self, removed: Removed) -> Removed {
        if let Removed::Gone(gone) = &removed {
            gone.turns.iter().for_each(|turn| self.forgotten(turn));
        }
        removed
    }
}

#[async_trait]
impl Catalog for PostgresStore {
    async fn create_turn(&self, user: &str, turn: NewTurn) -> Result<Created, StoreError> {
        let mut db = self.writing(Process, user).await?;
        let done = turns::create(&mut db, &self.catalog_limits(), self.shared().replica, user, &turn).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn turn(&self, user: &str, turn_id: &str) -> Result<Option<TurnRow>, StoreError> {
        turns::get(&mut *self.reading().await?, user, turn_id).await
    }

    async fn turn_of_key(
        &self,
        user: &str,
        key: &Idempotency,
        now: i64,
    ) -> Result<Option<Created>, StoreError> {
        turns::of_key(&mut *self.reading().await?, user, key, now).await
    }

    // What a power cut takes away of an end is in the log, where the next start finds it.
    async fn end_turn(&self, user: &str, turn_id: &str, end: TurnEnd) -> Result<bool, StoreError> {
        let mut db = self.writing(Process, user).await?;
        let done = turns::end(&mut db, user, turn_id, &end).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn turns(
        &self,
        user: &str,
        filter: &TurnFilter,
        page: &PageRequest,
    ) -> Result<Page<TurnSummary>, StoreError> {
        turns::list(&mut *self.reading().await?, user, filter, page).await
    }

    async fn delete_turn(&self, user: &str, turn_id: &str) -> Result<Removed, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let removed = removal::turn(&mut db, user, turn_id).await?;
        db.commit().await?;
        Ok(self.let_go(removed))
    }

    async fn open_turns(&self) -> Result<Vec<OpenTurn>, StoreError> {
        turns::open(&mut *self.reading().await?, self.shared().replica).await
    }

    async fn create_conversation(
        &self,
        user: &str,
        conversation: NewConversation,
    ) -> Result<ConversationRow, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = conversations::create(&mut db, &self.catalog_limits(), user, &conversation).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn conversation(&self, user: &str, id: &str) -> Result<Option<ConversationSummary>, StoreError> {
        conversations::get(&mut *self.reading().await?, user, id).await
    }

    async fn conversations(
        &self,
        user: &str,
        text: Option<&str>,
        page: &PageRequest,
    ) -> Result<Page<ConversationSummary>, StoreError> {
        let sought = text.map(|text| Sought::of(text, self.catalog_limits().search_chars_max)).transpose()?;
        let Some(sought) = sought.filter(|sought| *sought != Sought::Blank) else {
            return conversations::list(&mut *self.reading().await?, user, page).await;
        };
        let mut searching = self.shared().searchers.begin().await?;
        let found = within::conversations(&mut searching, user, &sought, page).await;
        searching.end(found)
    }

    async fn search(&self, user: &str, text: &str, page: &PageRequest) -> Result<Page<Hit>, StoreError> {
        let mut searching = self.shared().searchers.begin().await?;
        let found = search::hits(&mut searching, &self.catalog_limits(), user, text, page).await;
        searching.end(found)
    }

    async fn rename(&self, user: &str, id: &str, title: &str, now: i64) -> Result<bool, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = conversations::rename(&mut db, &self.catalog_limits(), user, id, title, now).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn set_leaf(&self, user: &str, id: &str, turn_id: &str) -> Result<bool, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = conversations::set_leaf(&mut db, user, id, turn_id).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn tree(&self, user: &str, id: &str) -> Result<Vec<TurnSummary>, StoreError> {
        turns::tree(&mut *self.reading().await?, user, id).await
    }

    async fn path(&self, user: &str, turn_id: &str) -> Result<Vec<PathTurn>, StoreError> {
        turns::path(&mut *self.reading().await?, user, turn_id).await
    }

    async fn delete_conversation(&self, user: &str, id: &str) -> Result<Removed, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let removed = removal::conversation(&mut db, user, id).await?;
        db.commit().await?;
        Ok(self.let_go(removed))
    }

    async fn import(&self, user: &str, imported: Imported) -> Result<(), StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done =
            conversations::import(&mut db, &self.catalog_limits(), self.shared().replica, user, &imported)
                .await?;
        db.commit().await?;
        Ok(done)
    }

    async fn forget_before(&self, times: ForgetBefore) -> Result<Gone, StoreError> {
        let mut db = self.writing(Power, "").await?;
        let gone = removal::forget_before(&mut db, &times).await?;
        db.commit().await?;
        gone.turns.iter().for_each(|turn| self.forgotten(turn));
        Ok(gone)
    }

    async fn put_calls(&self, user: &str, calls: Vec<CallRow>) -> Result<u64, StoreError> {
        let mut db = self.writing(Process, user).await?;
        let done = calls::put(&mut db, user, &calls).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn call(&self, user: &str, turn_id: &str, tool_id: &str) -> Result<Option<CallRow>, StoreError> {
        calls::get(&mut *self.reading().await?, user, turn_id, tool_id).await
    }

    async fn calls(
        &self,
        user: &str,
        filter: &CallFilter,
        page: &PageRequest,
    ) -> Result<Page<CallRow>, StoreError> {
        if filter.text.is_some() {
            let mut searching = self.shared().searchers.begin().await?;
            let found = calls::list(searching.db()?, &self.catalog_limits(), user, filter, page).await;
            return searching.end(found);
        }
        calls::list(&mut *self.reading().await?, &self.catalog_limits(), user, filter, page).await
    }

    async fn count_calls(&self, user: &str, filter: &CallFilter) -> Result<CallCounts, StoreError> {
        if filter.text.is_some() {
            let mut searching = self.shared().searchers.begin().await?;
            let counted = calls::count(searching.db()?, &self.catalog_limits(), user, filter).await;
            return searching.end(counted);
        }
        calls::count(&mut *self.reading().await?, &self.catalog_limits(), user, filter).await
    }

    async fn samples(&self, user: &str, range: &SampleRange) -> Result<Samples, StoreError> {
        let db = &mut *self.reading().await?;
        Ok(Samples {
            turns: turns::samples(db, user, range).await?,
            calls: calls::samples(db, user, range).await?,
            waiting: calls::waiting(db, user).await?,
        })
    }

    async fn document(
        &self,
        user: &str,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Option<Document>, StoreError> {
        documents::get(&mut *self.reading().await?, user, kind, name).await
    }

    async fn documents(&self, user: &str, kind: DocumentKind) -> Result<Vec<Document>, StoreError> {
        documents::list(&mut *self.reading().await?, user, kind).await
    }

    async fn put_document(&self, user: &str, document: NewDocument) -> Result<Put, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = documents::put(&mut db, &self.catalog_limits(), user, &document).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn remove_document(
        &self,
        user: &str,
        kind: DocumentKind,
        name: &str,
    ) -> Result<Option<Document>, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = documents::remove(&mut db, user, kind, name).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn remembered(
        &self,
        user: &str,
        conversation_id: Option<&str>,
    ) -> Result<Vec<RememberedRow>, StoreError> {
        documents::remembered(&mut *self.reading().await?, user, conversation_id).await
    }

    async fn remembered_everywhere(&self, user: &str) -> Result<Vec<RememberedRow>, StoreError> {
        documents::remembered_everywhere(&mut *self.reading().await?, user).await
    }

    async fn remember(&self, user: &str, answer: NewRemembered) -> Result<Option<RememberedRow>, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = documents::remember(&mut db, &self.catalog_limits(), user, &answer).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn forget_remembered(&self, user: &str, number: u64) -> Result<Option<RememberedRow>, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = documents::forget(&mut db, user, number).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn add_key(&self, user: &str, key: KeyRow) -> Result<(), StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = keys::add(&mut db, &self.catalog_limits(), user, &key).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn keys(&self, user: &str) -> Result<Vec<KeyRow>, StoreError> {
        keys::list(&mut *self.reading().await?, user).await
    }

    async fn revoke_key(&self, user: &str, id: &str, now: i64) -> Result<bool, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = keys::revoke(&mut db, user, id, now).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn key(&self, id: &str) -> Result<Option<KeyRow>, StoreError> {
        keys::get(&mut *self.reading().await?, id).await
    }

    // Looked at before: each request comes here, and the writer is for those who have something to write.
    async fn touch_key(&self, id: &str, now: i64) -> Result<bool, StoreError> {
        if !keys::is_to_be_touched(&mut *self.reading().await?, id, now).await? {
            return Ok(false);
        }
        let mut db = self.writing(Process, id).await?;
        let done = keys::touch(&mut db, id, now).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn add_file(&self, user: &str, file: NewFile) -> Result<FileRow, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = files::add(&mut db, &self.catalog_limits(), user, &file).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn keep_file(&self, user: &str, file: NewFile) -> Result<FileRow, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = files::keep(&mut db, &self.catalog_limits(), user, &file).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn use_file(&self, user: &str, turn_id: &str, file_id: &str) -> Result<bool, StoreError> {
        let mut db = self.writing(Process, user).await?;
        let done = files::note_use(&mut db, user, turn_id, file_id).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
        files::get(&mut *self.reading().await?, user, id).await
    }

    async fn files(&self, user: &str, page: &PageRequest) -> Result<Page<FileRow>, StoreError> {
        files::list(&mut *self.reading().await?, user, page).await
    }

    async fn remove_file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
        let mut db = self.writing(Power, user).await?;
        let done = files::remove(&mut db, user, id).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn blobs_in_use(&self, hashes: &[String]) -> Result<HashSet<String>, StoreError> {
        files::blobs_in_use(&mut *self.reading().await?, hashes).await
    }

    async fn append_raw(
        &self,
        user: &str,
        id: &RawId,
        bytes: &[u8],
        now: i64,
    ) -> Result<Option<RawExtent>, StoreError> {
        let mut db = self.writing(Process, user).await?;
        let done = raw::append(&mut db, &self.catalog_limits(), user, id, bytes, now).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn cut_raw(&self, user: &str, id: &RawId, now: i64) -> Result<bool, StoreError> {
        let mut db = self.writing(Process, user).await?;
        let done = raw::cut(&mut db, user, id, now).await?;
        db.commit().await?;
        Ok(done)
    }

    async fn raw_of_turn(&self, user: &str, turn_id: &str) -> Result<Vec<RawRow>, StoreError> {
        raw::of_turn(&mut *self.reading().await?, user, turn_id).await
    }

    async fn raw(&self, user: &str, id: &RawId) -> Result<Option<Vec<u8>>, StoreError> {
        raw::get(&mut *self.reading().await?, user, id).await
    }
}
