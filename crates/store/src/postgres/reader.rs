//! Read-only access to a database: servers may have it open, and nothing is registered, claimed or written.

use super::catalog::db::PostgresCatalogDb;
use super::{PostgresOpenError, connection, schema, segment};
use crate::catalog::CatalogLimits;
use crate::catalog::methods::{CatalogBackend, CatalogJob, RecordSource};
use crate::error::StoreError;
use crate::log::LogRecord;
use crate::records::SegmentRead;
use async_trait::async_trait;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use std::time::Duration;

/// Time limit for connecting to the database.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// Records per query.
const RECORDS_PER_READ: usize = 4_096;

/// Reads a database while servers write it: a [`StoreReader`](crate::StoreReader).
pub struct PostgresReader {
    pool: PgPool,
}

impl PostgresReader {
    /// Looks into this database, whose tables must be there and of this release's version.
    ///
    /// # Errors
    /// It cannot be reached; there is no store in it, or one of another version.
    pub async fn open(url: &str) -> Result<Self, PostgresOpenError> {
        // One connection, which is read-only for every statement.
        let options = connection::options(url)?.options([("default_transaction_read_only", "on")]);
        let pool =
            PgPoolOptions::new().max_connections(1).acquire_timeout(CONNECT_WAIT).connect_with(options);
        let pool = pool.await?;
        let found = schema::version(&pool).await?.ok_or(PostgresOpenError::NoStore)?;
        match found {
            found if found == schema::NEWEST => Ok(Self { pool }),
            found if found > schema::NEWEST => Err(PostgresOpenError::Newer { found, known: schema::NEWEST }),
            found => Err(PostgresOpenError::Database {
                why: format!(
                    "its tables have version {found}; start a server of this release to upgrade them to {}",
                    schema::NEWEST
                ),
            }),
        }
    }
}

#[async_trait]
impl RecordSource for PostgresReader {
    async fn turn_records(&self, turn: &str) -> Result<Option<Vec<LogRecord>>, StoreError> {
        let mut db = self.pool.acquire().await?;
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
}

#[async_trait]
impl CatalogBackend for PostgresReader {
    fn limits(&self) -> CatalogLimits {
        CatalogLimits::default()
    }

    async fn read<T: Send + 'static>(&self, job: CatalogJob<T>) -> Result<T, StoreError> {
        let mut connection = self.pool.acquire().await?;
        job(&mut PostgresCatalogDb::reader(&mut connection)).await
    }
}
