//! Offline work on a store's file: copying it while a server writes it, and locking servers out while it is
//! replaced.

use super::SqliteOpenError;
use super::connection;
use super::paths::{StoreLock, StorePaths, acquire_lock};
use crate::error::StoreError;
use std::path::Path;

/// Keeps every server away from a store's file while it lives.
#[derive(Debug)]
pub struct SqliteFileLock {
    _lock: StoreLock,
}

/// Copies everything that has been acknowledged into a new file, consistent and compact. A server may write
/// during the copy.
///
/// # Errors
///
/// There is no such file, `to` exists, or one of them cannot be read or written.
pub fn copy_sqlite_file(file: &Path, to: &Path) -> Result<(), StoreError> {
    let target = to.to_str().ok_or_else(|| StoreError::failed("the path of the copy is not valid UTF-8"))?;
    connection::backup_source(file)?.execute("VACUUM INTO ?1", [target])?;
    let io = |error: std::io::Error| StoreError::failed(format!("copy failed: {error}"));
    std::fs::File::open(to).and_then(|file| file.sync_all()).map_err(io)
}

/// Locks a store's file, which need not be there yet; its folder must be.
///
/// # Errors
/// A server has it open, or the folder cannot be written.
pub fn lock_sqlite_file(file: &Path) -> Result<SqliteFileLock, SqliteOpenError> {
    Ok(SqliteFileLock { _lock: acquire_lock(&StorePaths::new(file)?)? })
}
