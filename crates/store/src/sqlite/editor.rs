//! Small changes to a store's file from another process: the server that has it open continues, and waits for
//! no longer than one transaction.

use super::catalog::db::run_now;
use super::paths::StorePaths;
use super::{connection, reader, schema};
use crate::catalog::CatalogLimits;
use crate::catalog::methods::{CatalogBackend, CatalogJob};
use crate::error::StoreError;
use crate::log::Durability;
use async_trait::async_trait;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reads and changes rows of a store's file while a server may have it open: a [`Catalog`](crate::Catalog).
///
/// For data that a server reads each time, such as remembered approvals. A server does not notice changes to
/// data that it has in memory, so turns and conversations must not be changed here.
pub struct SqliteEditor {
    connection: Mutex<Connection>,
}

/// State of a store's file, as another process finds it.
pub enum SqliteFileState {
    /// Ready to be edited.
    Ready(SqliteEditor),
    /// The file has never been created.
    Absent,
    /// An earlier release made it: it is brought up to date when it is opened as a store.
    Older,
}

impl SqliteEditor {
    /// Looks for this file.
    ///
    /// # Errors
    /// It cannot be read, is damaged or was put away as damaged, belongs to another program or a later release.
    pub fn open(file: &Path) -> Result<SqliteFileState, StoreError> {
        let failed = |why: String| StoreError::failed(format!("{}: {why}", file.display()));
        if !file.try_exists().map_err(|error| failed(error.to_string()))? {
            let paths = StorePaths::new(file).map_err(|error| failed(error.to_string()))?;
            return match paths.quarantined() {
                None => Ok(SqliteFileState::Absent),
                Some(put_away) => {
                    Err(failed(format!("it was damaged and has been moved to {}", put_away.display())))
                }
            };
        }
        match reader::open_existing(file, connection::editor)? {
            (connection, found) if found == schema::NEWEST => {
                Ok(SqliteFileState::Ready(Self { connection: Mutex::new(connection) }))
            }
            (_, found) if found < schema::NEWEST => Ok(SqliteFileState::Older),
            (_, found) => Err(reader::wrong_version(file, found)),
        }
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl CatalogBackend for SqliteEditor {
    fn limits(&self) -> CatalogLimits {
        CatalogLimits::default()
    }

    async fn read<T: Send + 'static>(&self, job: CatalogJob<T>) -> Result<T, StoreError> {
        run_now(&mut self.connection(), job)
    }

    async fn write<T: Send + 'static>(
        &self,
        _durability: Durability,
        _user: &str,
        job: CatalogJob<T>,
    ) -> Result<T, StoreError> {
        let mut connection = self.connection();
        connection.execute_batch("BEGIN IMMEDIATE")?;
        let result = run_now(&mut connection, job);
        let end = connection.execute_batch(if result.is_ok() { "COMMIT" } else { "ROLLBACK" });
        if end.is_err() && !connection.is_autocommit() {
            // The next change begins with none half made.
            connection.execute_batch("ROLLBACK")?;
        }
        let value = result?;
        end?;
        Ok(value)
    }
}
