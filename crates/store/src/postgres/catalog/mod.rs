//! The catalog, in the same database as the log. Its tables: `schema/catalog.sql`.
//!
//! A method that writes is one transaction on a connection of the pool. Writes of one user are serialized by
//! a lock that ends with the transaction: limits and idempotency keys are checked and then relied on.

mod conversation_search;
pub(super) mod db;
mod search;

use super::PostgresStore;
use super::connection::sanitize_param;
use super::search_pool::SearchStep;
use crate::catalog::methods::{CatalogBackend, CatalogJob};
use crate::catalog::sql::turns;
use crate::catalog::texts::SearchTerm;
use crate::catalog::{
    CatalogLimits, ConversationFilter, ConversationSummary, OpenTurn, PageRequest, ResultPage, SearchHit,
};
use crate::error::StoreError;
use crate::log::Durability::{self, Power, Process};
use async_trait::async_trait;
use db::PostgresCatalogDb;
use sqlx::{AssertSqlSafe, Postgres, Transaction};

impl PostgresStore {
    /// A transaction of the requested durability, after all other writes of this user.
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
}

#[async_trait]
impl CatalogBackend for PostgresStore {
    fn limits(&self) -> CatalogLimits {
        self.shared().settings.catalog
    }

    async fn read<T: Send + 'static>(&self, job: CatalogJob<T>) -> Result<T, StoreError> {
        let mut connection = self.shared().pool.acquire().await?;
        job(&mut PostgresCatalogDb::new(&mut connection, self.shared().replica)).await
    }

    async fn scan<T: Send + 'static>(&self, job: CatalogJob<T>) -> Result<T, StoreError> {
        let mut session = self.shared().search_pool.begin().await?;
        let result = match session.db(SearchStep::Scan).await {
            Ok(db) => job(&mut PostgresCatalogDb::new(db, self.shared().replica)).await,
            Err(error) => Err(error.into()),
        };
        session.finish(result)
    }

    async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        user: &str,
        job: CatalogJob<T>,
    ) -> Result<T, StoreError> {
        let mut transaction = self.write_transaction(durability, user).await?;
        let result = job(&mut PostgresCatalogDb::new(&mut transaction, self.shared().replica)).await?;
        transaction.commit().await?;
        Ok(result)
    }

    fn evict(&self, turn_id: &str) {
        self.evict_turn(turn_id);
    }

    // Turns of this server and turns without an owner: not those that another server runs.
    async fn open_turn_rows(&self) -> Result<Vec<OpenTurn>, StoreError> {
        let open = format!(
            "SELECT t.id, t.user_id, t.conversation_id, b.stored FROM turn t JOIN turn_begin b ON b.n = t.n
                LEFT JOIN turn_log l ON l.turn = t.id
             WHERE t.ended_at IS NULL AND (coalesce(l.owner, t.replica) = $1
                OR NOT EXISTS (SELECT 1 FROM replica r WHERE r.id = coalesce(l.owner, t.replica) AND {}))
             ORDER BY t.n",
            super::lease::alive_condition()
        );
        let open = sqlx::query(AssertSqlSafe(open)).bind(self.shared().replica);
        let rows = open.fetch_all(&self.shared().pool).await?;
        rows.iter().map(|row| turns::open_turn(row)).collect()
    }

    async fn search_hits(
        &self,
        user: &str,
        text: &str,
        page: &PageRequest,
    ) -> Result<ResultPage<SearchHit>, StoreError> {
        let mut session = self.shared().search_pool.begin().await?;
        let result = search::hits(&mut session, &self.limits(), user, text, page).await;
        session.finish(result)
    }

    async fn search_conversations(
        &self,
        user: &str,
        term: SearchTerm,
        filter: &ConversationFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<ConversationSummary>, StoreError> {
        let mut session = self.shared().search_pool.begin().await?;
        let result = conversation_search::conversations(&mut session, user, &term, filter, page).await;
        session.finish(result)
    }
}
