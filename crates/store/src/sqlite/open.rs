//! From a path to a store that works, or a clear reason why not.

use super::live::{SqliteLiveTurn, TurnRowState};
use super::paths::{self, StorePaths};
use super::settings::SqliteSettings;
use super::shared::SqliteShared;
use super::writer::SqliteWriter;
use super::{connection, housekeeping, now_ms, schema, segment};
use crate::error::StoreError;
use crate::records::{AppendedRun, JournalChunk, frame};
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reason that a store could not be opened. Nothing has been changed, except where noted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SqliteOpenError {
    /// Another server uses this file.
    #[error("{} is in use by {holder}\n  remedy: stop that server, or give this one another file", path.display())]
    InUse {
        /// Path of the database.
        path: PathBuf,
        /// The server that holds it, if known.
        holder: String,
    },
    /// Locks and shared memory do not hold there.
    #[error("{} is on a network file system ({kind}), where a database can be damaged\n  remedy: move it to a \
     local disk, or use PostgreSQL", path.display())]
    NetworkFileSystem {
        /// Path of the database.
        path: PathBuf,
        /// Kind of the file system.
        kind: &'static str,
    },
    /// The file is damaged and has been moved aside.
    #[error("{} is damaged: {why}\n  It has been moved to {}.\n  remedy: {}", path.display(), moved_to.display(), restore_hint(path, backup.as_deref()))]
    Corrupt {
        /// Former path of the file.
        path: PathBuf,
        why: String,
        /// Present path of the file.
        moved_to: PathBuf,
        /// The newest backup, if there is one.
        backup: Option<PathBuf>,
    },
    /// An earlier start found the file damaged and moved it aside; no file has replaced it.
    #[error("there is no {}: it was damaged and moved to {}\n  remedy: {}\n  To begin with nothing instead, move the damaged file to another folder.", path.display(), moved_to.display(), restore_hint(path, backup.as_deref()))]
    Quarantined {
        /// Former path of the file.
        path: PathBuf,
        /// Present path of the file.
        moved_to: PathBuf,
        /// The newest backup, if there is one.
        backup: Option<PathBuf>,
    },
    /// The file belongs to another program.
    #[error("{} is a database of another program\n  remedy: use another file", path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// A newer release has written it.
    #[error("{} has version {found}; this release supports versions up to {known}\n  remedy: use the newer \
     release, or restore an older backup", path.display())]
    Newer {
        /// Path of the file.
        path: PathBuf,
        /// Schema version of the file.
        found: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// The operating system refuses.
    #[error("{}: {why}", path.display())]
    Io {
        /// The path that was tried.
        path: PathBuf,
        why: String,
    },
    /// SQLite reports an error.
    #[error("{} cannot be opened: {why}", path.display())]
    Sqlite {
        /// Path of the file.
        path: PathBuf,
        why: String,
    },
}

fn restore_hint(path: &Path, backup: Option<&Path>) -> String {
    match backup {
        Some(backup) => format!("cp {} {}", backup.display(), path.display()),
        None => format!(
            "there is no backup; `sqlite3 FILE .recover` may recover its content into {}",
            path.display()
        ),
    }
}

/// State in which the previous owner left the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastShutdown {
    /// There was no store.
    NoStore,
    /// The store was closed.
    Clean,
    /// The process died. Everything that was acknowledged is in the store.
    ProcessCrash,
    /// The machine probably went down. The last moments of [`Durability::Process`](crate::Durability) records
    /// may be lost, so that a viewer may have seen more than the log has.
    PowerLoss,
}

/// Opens the file up to a working writer. Blocks.
pub(super) fn open(
    path: &Path,
    settings: SqliteSettings,
) -> Result<(Arc<SqliteShared>, SqliteWriter, LastShutdown), SqliteOpenError> {
    let paths = StorePaths::new(path)?;
    let io = |path: &Path, error: std::io::Error| SqliteOpenError::Io {
        path: path.to_owned(),
        why: error.to_string(),
    };
    fs::create_dir_all(paths.folder()).map_err(|error| io(paths.folder(), error))?;
    paths::reject_network_fs(&paths)?;
    let lock = paths::acquire_lock(&paths)?;
    if !paths.file.exists()
        && let Some(moved_to) = paths.quarantined()
    {
        let backup = paths.backups_newest_first().into_iter().next();
        return Err(SqliteOpenError::Quarantined { path: paths.file, moved_to, backup });
    }
    let (mut connection, last_shutdown) = match prepare(&paths, &settings) {
        Ok(prepared) => prepared,
        Err(OpenFailure::Refused(error)) => return Err(error),
        Err(OpenFailure::Corrupt(why)) => return Err(quarantine(paths, why)),
        Err(OpenFailure::Sqlite(why)) => return Err(SqliteOpenError::Sqlite { path: paths.file, why }),
    };
    let OpenedFile { generation, last_turn_n: turns, open_turns: open } = match take_over(&mut connection) {
        Ok(opened) => opened,
        Err(OpenFailure::Refused(error)) => return Err(error),
        Err(OpenFailure::Corrupt(why)) => {
            drop(connection);
            return Err(quarantine(paths, why));
        }
        Err(OpenFailure::Sqlite(why)) => return Err(SqliteOpenError::Sqlite { path: paths.file, why }),
    };
    // A disk too full for the ballast makes the store refuse new turns anyway.
    let _ = housekeeping::write_ballast(&paths.sibling(".ballast"), settings.ballast_bytes);
    let shared = Arc::new(SqliteShared::new(paths, settings, generation, turns, lock));
    for turn in open {
        shared.live_turns.add(turn);
    }
    Ok((shared.clone(), SqliteWriter::new(connection, shared), last_shutdown))
}

/// Reason that a file cannot be used.
enum OpenFailure {
    Refused(SqliteOpenError),
    Corrupt(String),
    Sqlite(String),
}

impl From<rusqlite::Error> for OpenFailure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(error.to_string()),
            _ => Self::Sqlite(error.to_string()),
        }
    }
}

impl From<StoreError> for OpenFailure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt { why } => Self::Corrupt(why),
            error => Self::Sqlite(error.to_string()),
        }
    }
}

fn quarantine(paths: StorePaths, why: String) -> SqliteOpenError {
    let backup = paths.backups_newest_first().into_iter().next();
    match paths.quarantine(now_ms()) {
        Ok(moved_to) => SqliteOpenError::Corrupt { path: paths.file, why, moved_to, backup },
        Err(error) => SqliteOpenError::Io {
            path: paths.file,
            why: format!("it is damaged ({why}) and cannot be moved aside: {error}"),
        },
    }
}

/// A connection to a file that is ours, of this version, and sound.
fn prepare(paths: &StorePaths, settings: &SqliteSettings) -> Result<(Connection, LastShutdown), OpenFailure> {
    let size = fs::metadata(&paths.file).map_or(0, |metadata| metadata.len());
    let mut connection = connection::writer(&paths.file)?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != i64::from(schema::APPLICATION_ID) && (application != 0 || tables > 0) {
        return Err(OpenFailure::Refused(SqliteOpenError::Foreign { path: paths.file.clone() }));
    }
    if version > schema::NEWEST {
        let (path, known) = (paths.file.clone(), schema::NEWEST);
        return Err(OpenFailure::Refused(SqliteOpenError::Newer { path, found: version, known }));
    }
    connection::enable_wal(&connection)?;
    if version == 0 {
        schema::migrate(&mut connection, version)?;
        return Ok((connection, LastShutdown::NoStore));
    }
    let last_shutdown = last_shutdown(&connection)?;
    if matches!(last_shutdown, LastShutdown::ProcessCrash | LastShutdown::PowerLoss)
        && size <= settings.check_first_bytes_max
    {
        check_integrity(&connection)?;
    }
    schema::migrate(&mut connection, version)?;
    Ok((connection, last_shutdown))
}

fn last_shutdown(connection: &Connection) -> rusqlite::Result<LastShutdown> {
    let last = connection
        .query_row("SELECT boot, closed_at FROM owner ORDER BY generation DESC LIMIT 1", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?))
        })
        .optional()?;
    Ok(match last {
        None | Some((_, Some(_))) => LastShutdown::Clean,
        Some((boot, None)) if boot == paths::boot_id() && !boot.is_empty() => LastShutdown::ProcessCrash,
        Some((_, None)) => LastShutdown::PowerLoss,
    })
}

/// Looks through the whole file.
pub(super) fn check_integrity(connection: &Connection) -> Result<(), StoreError> {
    let report: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if report == "ok" { Ok(()) } else { Err(StoreError::Corrupt { why: report }) }
}

/// A file that is ours.
struct OpenedFile {
    generation: i64,
    /// The highest number that a turn of it ever had.
    last_turn_n: i64,
    open_turns: Vec<SqliteLiveTurn>,
}

/// Becomes the writer of the file, and moves the records in the journal to segments: afterwards the journal
/// is empty.
fn take_over(connection: &mut Connection) -> Result<OpenedFile, OpenFailure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "INSERT INTO owner (generation, name, boot, opened_at)
         SELECT coalesce(max(generation), 0) + 1, ?1, ?2, ?3 FROM owner",
        params![uuid::Uuid::now_v7().to_string(), paths::boot_id(), now_ms()],
    )?;
    let generation = transaction.last_insert_rowid();
    transaction.execute("DELETE FROM owner WHERE generation < ?1", [generation])?;
    for (n, runs) in read_journal(&transaction)? {
        let log_row = transaction
            .query_row("SELECT turn, folded_seq FROM turn_log WHERE n = ?1", [n], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)? as u64))
            })
            .optional()?;
        // A turn that has been forgotten since.
        let Some((turn, folded_seq)) = log_row else { continue };
        let runs: Vec<AppendedRun> = runs.into_iter().filter(|run| run.last_seq > folded_seq).collect();
        let mut last_seq = folded_seq;
        for run in &runs {
            if run.first_seq != last_seq + 1 {
                let why = format!("turn `{turn}` continues at {} after {last_seq}", run.first_seq);
                return Err(OpenFailure::Corrupt(why));
            }
            last_seq = run.last_seq;
        }
        segment::fold(&transaction, n, &runs)?;
    }
    transaction.execute_batch("DELETE FROM journal")?;
    let open = open_turns(&transaction)?;
    let last_turn_n = transaction
        .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'turn_log'", [], |row| row.get(0))
        .optional()?;
    transaction.commit()?;
    Ok(OpenedFile { generation, last_turn_n: last_turn_n.unwrap_or(0), open_turns: open })
}

/// Runs in the journal, by turn, oldest first.
pub(super) fn read_journal(connection: &Connection) -> Result<BTreeMap<i64, Vec<AppendedRun>>, StoreError> {
    let mut turns: BTreeMap<i64, Vec<AppendedRun>> = BTreeMap::new();
    let mut rows = connection.prepare("SELECT id, data FROM journal ORDER BY id")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        let damaged = |damaged: frame::CorruptRecords| StoreError::Corrupt { why: damaged.to_string() };
        let data = frame::verify_checksum(row.get(1)?).map_err(damaged)?;
        for chunk in JournalChunk::read_all(&data).map_err(damaged)? {
            turns.entry(chunk.turn_n).or_default().push(AppendedRun::new(chunk, id));
        }
    }
    Ok(turns)
}

fn open_turns(connection: &Connection) -> rusqlite::Result<Vec<SqliteLiveTurn>> {
    let mut open = connection.prepare("SELECT turn, n, epoch, folded_seq FROM turn_log WHERE state = 0")?;
    let live = |row: &rusqlite::Row<'_>| {
        let (epoch, seq): (i64, i64) = (row.get(2)?, row.get(3)?);
        Ok(SqliteLiveTurn::open(row.get(0)?, row.get(1)?, epoch as u64, seq as u64, TurnRowState::Inserted))
    };
    open.query_map([], live)?.collect()
}
