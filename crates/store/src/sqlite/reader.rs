//! Read-only access to a store's file: a server may have it open, and nothing is locked, recovered or
//! written.

use super::catalog::db::run_now;
use super::{connection, open, schema, segment};
use crate::catalog::CatalogLimits;
use crate::catalog::methods::{CatalogBackend, CatalogJob, RecordSource};
use crate::error::StoreError;
use crate::log::LogRecord;
use crate::records::LogState;
use crate::records::frame::RunDecoder;
use async_trait::async_trait;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reads a store's file while others write it: a [`StoreReader`](crate::StoreReader).
pub struct SqliteReader {
    connection: Mutex<Connection>,
}

impl SqliteReader {
    /// Looks into this file, which must be there and of this release's version.
    ///
    /// # Errors
    /// [`StoreError::Failed`]: there is no such file, or it is no store of this version.
    pub fn open(file: &Path) -> Result<Self, StoreError> {
        match open_existing(file, connection::reader)? {
            (connection, found) if found == schema::NEWEST => Ok(Self { connection: Mutex::new(connection) }),
            (_, found) => Err(wrong_version(file, found)),
        }
    }

    /// All records of a turn that have been acknowledged by now; `None` = there is no such turn.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn records(&self, turn: &str) -> Result<Option<Vec<LogRecord>>, StoreError> {
        // One snapshot of the file: with two, a segment written in between would hide its records from both
        // reads.
        let connection = self.connection();
        let view = connection.unchecked_transaction()?;
        let Some(row) = segment::load_row(&view, turn)? else { return Ok(None) };
        let mut records = segment::read_all(&view, row.n)?;
        if row.state == LogState::Open || records.last().map_or(0, |record| record.seq) < row.last_seq {
            for run in open::read_journal(&view)?.remove(&row.n).unwrap_or_default() {
                for record in RunDecoder::new(run.payload, run.first_seq) {
                    let record = record.map_err(|error| StoreError::Corrupt { why: error.to_string() })?;
                    if records.last().is_none_or(|last| last.seq < record.seq) {
                        records.push(record);
                    }
                }
            }
        }
        Ok(Some(records))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn wrong_version(file: &Path, found: i64) -> StoreError {
    let (file, known) = (file.display(), schema::NEWEST);
    StoreError::failed(format!("{file} has version {found}, but this release reads version {known}"))
}

/// A connection to a store's file that is there, and the version of its tables.
pub(super) fn open_existing(
    file: &Path,
    connect: fn(&Path) -> rusqlite::Result<Connection>,
) -> Result<(Connection, i64), StoreError> {
    if !file.is_file() {
        return Err(StoreError::failed(format!("there is no {}", file.display())));
    }
    let connection = connect(file)?;
    let pragma = |name| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
    if pragma("application_id")? != i64::from(schema::APPLICATION_ID) {
        return Err(StoreError::failed(format!("{} is a database of another program", file.display())));
    }
    let version = pragma("user_version")?;
    Ok((connection, version))
}

#[async_trait]
impl RecordSource for SqliteReader {
    async fn turn_records(&self, turn: &str) -> Result<Option<Vec<LogRecord>>, StoreError> {
        self.records(turn)
    }
}

#[async_trait]
impl CatalogBackend for SqliteReader {
    fn limits(&self) -> CatalogLimits {
        CatalogLimits::default()
    }

    async fn read<T: Send + 'static>(&self, job: CatalogJob<T>) -> Result<T, StoreError> {
        run_now(&mut self.connection(), job)
    }
}
