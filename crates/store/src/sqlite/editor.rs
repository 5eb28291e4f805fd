//! Small changes to a store's file from beside: the program that has it open goes on, and nobody waits for longer than one
//! transaction.

use super::catalog::db::run_now;
use super::{connection, reader};
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
/// For what a server reads anew each time, such as remembered approvals. What a server has in memory does not learn of a
/// change from here, so turns and conversations are not to be touched.
pub struct SqliteEditor {
    connection: Mutex<Connection>,
}

impl SqliteEditor {
    /// Opens this file, which must be there and of this release's version.
    ///
    /// # Errors
    /// As those of [`SqliteReader::open`](crate::SqliteReader::open).
    pub fn open(file: &Path) -> Result<Self, StoreError> {
        let connection = reader::open_existing(file, connection::editor)?;
        Ok(Self { connection: Mutex::new(connection) })
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
