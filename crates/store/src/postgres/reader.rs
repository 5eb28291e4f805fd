//! Looking into a database from beside: servers may have it open, and nothing is registered, taken or written.

use super::catalog::db::PostgresCatalogDb;
use super::{PostgresOpenError, connection, schema, segment};
use crate::catalog::sql::{calls, conversations, files, raw, turns};
use crate::catalog::{
    CallFilter, CallRow, CatalogLimits, ConversationRow, FileRow, PageRequest, PathTurn, RawId, RawRow,
    ResultPage, TurnFilter, TurnRow, TurnSummary,
};
use crate::error::StoreError;
use crate::log::LogRecord;
use crate::records::SegmentRead;
use crate::status::LoggedTurn;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Postgres, Row as _};
use std::time::Duration;

/// Time limit for connecting to the database.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// Records read at once.
const RECORDS_PER_READ: usize = 4_096;

/// Reads a database while servers write it. For commands that look at the past; a server has a
/// [`PostgresStore`](super::PostgresStore).
// R: S5
pub struct PostgresReader {
    pool: PgPool,
}

impl PostgresReader {
    /// Looks into this database, whose tables must be there and of this release's version.
    ///
    /// # Errors
    /// It cannot be reached; there is no store in it, or one of another version.
    pub async fn open(url: &str) -> Result<Self, PostgresOpenError> {
        // One connection, which cannot write whatever is asked of it.
        let options = connection::options(url)?.options([("default_transaction_read_only", "on")]);
        let pool =
            PgPoolOptions::new().max_connections(1).acquire_timeout(CONNECT_WAIT).connect_with(options);
        let pool = pool.await?;
        let found = schema::version(&pool).await?.ok_or_else(|| PostgresOpenError::Database {
            why: "there is no store in it; a server that keeps its turns there makes one".into(),
        })?;
        match found {
            found if found == schema::NEWEST => Ok(Self { pool }),
            found if found > schema::NEWEST => Err(PostgresOpenError::Newer { found, known: schema::NEWEST }),
            found => Err(PostgresOpenError::Database {
                why: format!(
                    "its tables have version {found}; a server of this release brings them to {}",
                    schema::NEWEST
                ),
            }),
        }
    }

    /// All records of a turn that have been acknowledged by now; `None` = there is no such turn.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn records(&self, turn: &str) -> Result<Option<Vec<LogRecord>>, StoreError> {
        let mut db = self.db().await?;
        let Some(row) = segment::load_row(&mut *db, turn).await? else { return Ok(None) };
        let mut records: Vec<LogRecord> = Vec::new();
        loop {
            let after = records.last().map_or(0, |record| record.seq);
            match segment::read_after(&mut db, row.n, after, RECORDS_PER_READ).await? {
                SegmentRead::Records(more) if more.is_empty() => return Ok(Some(records)),
                SegmentRead::Records(more) => records.extend(more),
                // The turn was merged between two reads: from the beginning, it is all there.
                SegmentRead::InsideMerged => records.clear(),
            }
        }
    }

    /// The turns that came last, latest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn latest(&self, turns_max: u32) -> Result<Vec<LoggedTurn>, StoreError> {
        let rows = sqlx::query("SELECT turn, state FROM turn_log ORDER BY n DESC LIMIT $1")
            .bind(i64::from(turns_max))
            .fetch_all(&mut *self.db().await?)
            .await?;
        let turn = |row: &sqlx::postgres::PgRow| {
            Ok(LoggedTurn { id: row.try_get("turn")?, ended: row.try_get::<i16, _>("state")? > 0 })
        };
        rows.iter().map(turn).collect()
    }

    /// Whose turns there are, by name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn users(&self) -> Result<Vec<String>, StoreError> {
        let users = sqlx::query_scalar("SELECT DISTINCT user_id FROM turn ORDER BY user_id");
        Ok(users.fetch_all(&mut *self.db().await?).await?)
    }

    /// Calls of a user, newest first.
    ///
    /// # Errors
    /// The database cannot be read, or the filter holds what cannot be looked for.
    pub async fn calls(
        &self,
        user: &str,
        filter: &CallFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<CallRow>, StoreError> {
        calls::list(
            &mut PostgresCatalogDb::reader(&mut *self.db().await?),
            &CatalogLimits::default(),
            user,
            filter,
            page,
        )
        .await
    }

    /// Turns of a user, newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn turns(
        &self,
        user: &str,
        filter: &TurnFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<TurnSummary>, StoreError> {
        turns::list(&mut PostgresCatalogDb::reader(&mut *self.db().await?), user, filter, page).await
    }

    /// A conversation, whosever it is: who may read the database may read all of it.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError> {
        let mut db = self.db().await?;
        let user: Option<String> = sqlx::query_scalar("SELECT user_id FROM conversation WHERE id = $1")
            .bind(connection::sanitize_param(id))
            .fetch_optional(&mut *db)
            .await?;
        let Some(user) = user else { return Ok(None) };
        Ok(conversations::get(&mut PostgresCatalogDb::reader(&mut db), &user, id)
            .await?
            .map(|summary| summary.conversation))
    }

    /// Id and title of the conversations that changed last, latest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn latest_conversations(&self, rows_max: u32) -> Result<Vec<(String, String)>, StoreError> {
        Ok(sqlx::query_as("SELECT id, title FROM conversation ORDER BY updated_at DESC, id DESC LIMIT $1")
            .bind(i64::from(rows_max))
            .fetch_all(&mut *self.db().await?)
            .await?)
    }

    /// The turns of a conversation, parents before children.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn tree(&self, user: &str, conversation: &str) -> Result<Vec<TurnSummary>, StoreError> {
        turns::tree(&mut PostgresCatalogDb::reader(&mut *self.db().await?), user, conversation).await
    }

    /// The turns from the beginning of a conversation to this one.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn path(&self, user: &str, turn: &str) -> Result<Vec<PathTurn>, StoreError> {
        turns::path(&mut PostgresCatalogDb::reader(&mut *self.db().await?), user, turn).await
    }

    /// A turn, whosever it is.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn turn(&self, id: &str) -> Result<Option<TurnRow>, StoreError> {
        let mut db = self.db().await?;
        let user: Option<String> = sqlx::query_scalar("SELECT user_id FROM turn WHERE id = $1")
            .bind(connection::sanitize_param(id))
            .fetch_optional(&mut *db)
            .await?;
        match user {
            Some(user) => turns::get(&mut PostgresCatalogDb::reader(&mut db), &user, id).await,
            None => Ok(None),
        }
    }

    /// A file of a user.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
        files::get(&mut PostgresCatalogDb::reader(&mut *self.db().await?), user, id).await
    }

    /// Stored replies of a turn's upstreams, in order.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn raw_of_turn(&self, user: &str, turn: &str) -> Result<Vec<RawRow>, StoreError> {
        raw::of_turn(&mut PostgresCatalogDb::reader(&mut *self.db().await?), user, turn).await
    }

    /// The bytes of one answer.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn raw(&self, user: &str, id: &RawId) -> Result<Option<Vec<u8>>, StoreError> {
        raw::get(&mut PostgresCatalogDb::reader(&mut *self.db().await?), user, id).await
    }

    async fn db(&self) -> Result<PoolConnection<Postgres>, StoreError> {
        Ok(self.pool.acquire().await?)
    }
}
