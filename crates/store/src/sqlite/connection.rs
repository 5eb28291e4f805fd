//! Connections with the settings that everything here relies on.

use crate::catalog::fold::find_folded;
use crate::error::StoreError;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// Longest time that a statement waits for a lock of another connection.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The one that writes.
pub(super) fn writer(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
    let connection = Connection::open_with_flags(file, flags)?;
    apply_pragmas(&connection)?;
    add_functions(&connection)?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

/// Settings that are written into the file: only for one that is ours.
pub(super) fn enable_wal(connection: &Connection) -> rusqlite::Result<()> {
    // Anything else than `wal` would be slow, not wrong; a file system without shared memory fails here.
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 4000;
         PRAGMA journal_size_limit = 67108864;",
    )
}

/// One that copies everything into another file.
pub(super) fn backup_source(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    apply_pragmas(&connection)?;
    Ok(connection)
}

pub(super) fn reader(file: &Path) -> rusqlite::Result<Connection> {
    let connection = editor(file)?;
    // Opened for writing, as the shared memory of WAL requires; this makes it read-only.
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A second connection, besides the writer's, to an existing file.
pub(super) fn editor(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
    let connection = Connection::open_with_flags(file, flags)?;
    apply_pragmas(&connection)?;
    add_functions(&connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn apply_pragmas(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.execute_batch(
        "PRAGMA foreign_keys = ON;
         PRAGMA mmap_size = 0;
         PRAGMA trusted_schema = OFF;
         PRAGMA cell_size_check = ON;
         PRAGMA temp_store = MEMORY;",
    )
}

/// `contains_folded(text, sought)`: SQLite's own `LIKE` folds the case of ASCII letters only.
fn add_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function(c"contains_folded", 2, flags, |context| {
        let (text, sought) = (context.get_raw(0).as_str_or_null()?, context.get_raw(1).as_str_or_null()?);
        Ok(text.zip(sought).is_some_and(|(text, sought)| find_folded(text, sought).is_some()))
    })
}

/// Errors of SQLite by their meaning.
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let why = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull { why },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { why },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt { why },
            _ => Self::Failed { why },
        }
    }
}
