//! From a path to a store that works, or a clear reason why not.

use super::live::{InDatabase, Live};
use super::place::{self, Place};
use super::settings::SqliteSettings;
use super::shared::Shared;
use super::writer::Writer;
use super::{connection, housekeeping, now_ms, schema, segment};
use crate::error::StoreError;
use crate::records::{Chunk, Piece, frame};
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a store could not be opened. Nothing of what is there has been changed, unless it says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another server uses this file.
    #[error("{} is in use by {holder}\n  remedy: stop that server, or give this one a file of its own", path.display())]
    InUse {
        /// The database.
        path: PathBuf,
        /// Who has it, as far as it said.
        holder: String,
    },
    /// Locks and shared memory do not hold there.
    #[error("{} lies on a network file system ({kind}), where a database can be damaged\n  remedy: put it on a disk of this machine, or use PostgreSQL", path.display())]
    NetworkFileSystem {
        /// The database.
        path: PathBuf,
        /// Kind of the file system.
        kind: &'static str,
    },
    /// The file is damaged and has been moved aside.
    #[error("{} is damaged: {why}\n  It has been moved to {}.\n  remedy: {}", path.display(), moved_to.display(), restore(path, backup.as_deref()))]
    Corrupt {
        /// Where it was.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// Where it is now.
        moved_to: PathBuf,
        /// The newest backup, if there is one.
        backup: Option<PathBuf>,
    },
    /// An earlier start found the file damaged and moved it aside; nothing has been put in its place.
    #[error("there is no {}: it was damaged and moved to {}\n  remedy: {}\n  To begin with nothing instead, move the damaged file to another folder.", path.display(), moved_to.display(), restore(path, backup.as_deref()))]
    MovedAside {
        /// Where it was.
        path: PathBuf,
        /// Where it is now.
        moved_to: PathBuf,
        /// The newest backup, if there is one.
        backup: Option<PathBuf>,
    },
    /// The file belongs to another program.
    #[error("{} is a database of another program\n  remedy: give another file", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A newer release has written it.
    #[error("{} has version {found}; this release knows versions up to {known}\n  remedy: use the newer release, or restore a backup from before", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// The operating system refuses.
    #[error("{}: {why}", path.display())]
    Io {
        /// What was tried.
        path: PathBuf,
        /// What it said.
        why: String,
    },
    /// SQLite refuses.
    #[error("{} cannot be opened: {why}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What it said.
        why: String,
    },
}

fn restore(path: &Path, backup: Option<&Path>) -> String {
    match backup {
        Some(backup) => format!("cp {} {}", backup.display(), path.display()),
        None => format!(
            "there is no backup; `sqlite3 FILE .recover` may save what is in it, into {}",
            path.display()
        ),
    }
}

/// How the store was left by whoever had it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There was none.
    Nothing,
    /// It was closed.
    Closed,
    /// Its process died. Everything that was acknowledged is there.
    ProcessDied,
    /// Its machine went down, perhaps. The last moments of what is only [`Durability::Process`](crate::Durability) may
    /// be lost, so that a viewer may have seen more than the log has.
    MachineDied,
}

/// Everything up to a working writer. Blocks.
pub(super) fn open(path: &Path, settings: SqliteSettings) -> Result<(Arc<Shared>, Writer, Found), OpenError> {
    let place = Place::new(path)?;
    let io =
        |path: &Path, error: std::io::Error| OpenError::Io { path: path.to_owned(), why: error.to_string() };
    fs::create_dir_all(place.folder()).map_err(|error| io(place.folder(), error))?;
    place::refuse_network(&place)?;
    let lock = place::lock(&place)?;
    if !place.file.exists()
        && let Some(moved_to) = place.moved_aside()
    {
        let backup = place.backups_newest_first().into_iter().next();
        return Err(OpenError::MovedAside { path: place.file, moved_to, backup });
    }
    let (mut connection, found) = match prepare(&place, &settings) {
        Ok(prepared) => prepared,
        Err(Trouble::Refused(error)) => return Err(error),
        Err(Trouble::Corrupt(why)) => return Err(corrupt(place, why)),
        Err(Trouble::Sqlite(why)) => return Err(OpenError::Sqlite { path: place.file, why }),
    };
    let Taken { generation, turns, open } = match take_over(&mut connection) {
        Ok(taken) => taken,
        Err(Trouble::Refused(error)) => return Err(error),
        Err(Trouble::Corrupt(why)) => {
            drop(connection);
            return Err(corrupt(place, why));
        }
        Err(Trouble::Sqlite(why)) => return Err(OpenError::Sqlite { path: place.file, why }),
    };
    // A disk too full for the reserve refuses new turns by itself.
    let _ = housekeeping::put_ballast(&place.beside(".ballast"), settings.ballast_bytes);
    let shared = Arc::new(Shared::new(place, settings, generation, turns, lock));
    for turn in open {
        shared.lives.add(turn);
    }
    Ok((shared.clone(), Writer::new(connection, shared), found))
}

/// Why a file cannot be used.
enum Trouble {
    Refused(OpenError),
    Corrupt(String),
    Sqlite(String),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Corrupt(error.to_string()),
            _ => Self::Sqlite(error.to_string()),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt { why } => Self::Corrupt(why),
            error => Self::Sqlite(error.to_string()),
        }
    }
}

fn corrupt(place: Place, why: String) -> OpenError {
    let backup = place.backups_newest_first().into_iter().next();
    match place.move_aside(now_ms()) {
        Ok(moved_to) => OpenError::Corrupt { path: place.file, why, moved_to, backup },
        Err(error) => OpenError::Io {
            path: place.file,
            why: format!("it is damaged ({why}) and cannot be moved aside: {error}"),
        },
    }
}

/// A connection to a file that is ours, of this version, and sound.
fn prepare(place: &Place, settings: &SqliteSettings) -> Result<(Connection, Found), Trouble> {
    let size = fs::metadata(&place.file).map_or(0, |metadata| metadata.len());
    let mut connection = connection::writer(&place.file)?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != i64::from(schema::APPLICATION_ID) && (application != 0 || tables > 0) {
        return Err(Trouble::Refused(OpenError::Foreign { path: place.file.clone() }));
    }
    if version > schema::NEWEST {
        let (path, known) = (place.file.clone(), schema::NEWEST);
        return Err(Trouble::Refused(OpenError::Newer { path, found: version, known }));
    }
    connection::keep_log(&connection)?;
    if version == 0 {
        schema::migrate(&mut connection, version)?;
        return Ok((connection, Found::Nothing));
    }
    let found = how_it_was_left(&connection)?;
    if matches!(found, Found::ProcessDied | Found::MachineDied) && size <= settings.check_first_bytes_max {
        check(&connection)?;
    }
    schema::migrate(&mut connection, version)?;
    Ok((connection, found))
}

fn how_it_was_left(connection: &Connection) -> rusqlite::Result<Found> {
    let last = connection
        .query_row("SELECT boot, closed_at FROM owner ORDER BY generation DESC LIMIT 1", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?))
        })
        .optional()?;
    Ok(match last {
        None | Some((_, Some(_))) => Found::Closed,
        Some((boot, None)) if boot == place::boot() && !boot.is_empty() => Found::ProcessDied,
        Some((_, None)) => Found::MachineDied,
    })
}

/// Looks through the whole file.
pub(super) fn check(connection: &Connection) -> Result<(), StoreError> {
    let said: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if said == "ok" { Ok(()) } else { Err(StoreError::Corrupt { why: said }) }
}

/// A file that is ours.
struct Taken {
    generation: i64,
    /// The highest number that a turn of it ever had.
    turns: i64,
    open: Vec<Live>,
}

/// Becomes the one who writes, and brings what the journal still holds into segments: afterwards it is empty.
fn take_over(connection: &mut Connection) -> Result<Taken, Trouble> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "INSERT INTO owner (generation, name, boot, opened_at)
         SELECT coalesce(max(generation), 0) + 1, ?1, ?2, ?3 FROM owner",
        params![uuid::Uuid::now_v7().to_string(), place::boot(), now_ms()],
    )?;
    let generation = transaction.last_insert_rowid();
    transaction.execute("DELETE FROM owner WHERE generation < ?1", [generation])?;
    for (n, pieces) in journalled(&transaction)? {
        let standing = transaction
            .query_row("SELECT turn, folded_seq FROM turn_log WHERE n = ?1", [n], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)? as u64))
            })
            .optional()?;
        // A turn that has been forgotten since.
        let Some((turn, folded_seq)) = standing else { continue };
        let pieces: Vec<Piece> = pieces.into_iter().filter(|piece| piece.last_seq > folded_seq).collect();
        let mut last_seq = folded_seq;
        for piece in &pieces {
            if piece.first_seq != last_seq + 1 {
                let why = format!("turn `{turn}` goes on at {} behind {last_seq}", piece.first_seq);
                return Err(Trouble::Corrupt(why));
            }
            last_seq = piece.last_seq;
        }
        segment::fold(&transaction, n, &pieces)?;
    }
    transaction.execute_batch("DELETE FROM journal")?;
    let open = open_turns(&transaction)?;
    let turns = transaction
        .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'turn_log'", [], |row| row.get(0))
        .optional()?;
    transaction.commit()?;
    Ok(Taken { generation, turns: turns.unwrap_or(0), open })
}

/// What the journal holds, by turn, oldest first.
pub(super) fn journalled(connection: &Connection) -> Result<BTreeMap<i64, Vec<Piece>>, StoreError> {
    let mut turns: BTreeMap<i64, Vec<Piece>> = BTreeMap::new();
    let mut rows = connection.prepare("SELECT id, data FROM journal ORDER BY id")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        let damaged = |damaged: frame::Damaged| StoreError::Corrupt { why: damaged.to_string() };
        let data = frame::unseal(row.get(1)?).map_err(damaged)?;
        for chunk in Chunk::read_all(&data).map_err(damaged)? {
            turns.entry(chunk.n).or_default().push(Piece::new(chunk, id));
        }
    }
    Ok(turns)
}

fn open_turns(connection: &Connection) -> rusqlite::Result<Vec<Live>> {
    let mut open = connection.prepare("SELECT turn, n, epoch, folded_seq FROM turn_log WHERE state = 0")?;
    let live = |row: &rusqlite::Row<'_>| {
        let (epoch, seq): (i64, i64) = (row.get(2)?, row.get(3)?);
        Ok(Live::new(row.get(0)?, row.get(1)?, epoch as u64, seq as u64, InDatabase::Yes))
    };
    open.query_map([], live)?.collect()
}
