//! Looking into a store's file from beside: a server may have it open, and nothing is locked, recovered or written.

use super::{connection, open, schema, segment};
use crate::error::StoreError;
use crate::log::Record;
use crate::records::frame::Records;
use rusqlite::Connection;
use std::path::Path;

/// Reads a store's file while others write it. For commands that look at the past; a server has a
/// [`SqliteStore`](super::SqliteStore). R: S5
pub struct SqliteOnlooker {
    connection: Connection,
}

/// A turn in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedTurn {
    /// Its id.
    pub id: String,
    /// Whether it has its last record.
    pub ended: bool,
}

impl SqliteOnlooker {
    /// Looks into this file, which must be there and of this release's version.
    ///
    /// # Errors
    /// [`StoreError::Failed`]: there is no such file, or it is no store of this version.
    pub fn open(file: &Path) -> Result<Self, StoreError> {
        if !file.is_file() {
            return Err(StoreError::failed(format!("there is no {}", file.display())));
        }
        let connection = connection::reader(file)?;
        let pragma = |name| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
        if pragma("application_id")? != i64::from(schema::APPLICATION_ID) {
            return Err(StoreError::failed(format!("{} is a database of another program", file.display())));
        }
        match pragma("user_version")? {
            found if found == schema::NEWEST => Ok(Self { connection }),
            found => Err(StoreError::failed(format!(
                "{} has version {found}, and this release reads version {}",
                file.display(),
                schema::NEWEST
            ))),
        }
    }

    /// All records of a turn that have been acknowledged by now; `None` = there is no such turn.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn records(&self, turn: &str) -> Result<Option<Vec<Record>>, StoreError> {
        // One view of the file: a segment that is written meanwhile would hide its records from both.
        let view = self.connection.unchecked_transaction()?;
        let Some(row) = segment::row(&view, turn)? else { return Ok(None) };
        let mut records = segment::all(&view, row.n)?;
        if row.state == segment::State::Open || records.last().map_or(0, |record| record.seq) < row.last_seq {
            for piece in open::journalled(&view)?.remove(&row.n).unwrap_or_default() {
                for record in Records::new(piece.run, piece.first_seq) {
                    let record =
                        record.map_err(|damaged| StoreError::Corrupt { why: damaged.to_string() })?;
                    if records.last().is_none_or(|last| last.seq < record.seq) {
                        records.push(record);
                    }
                }
            }
        }
        Ok(Some(records))
    }

    /// The turns that came last, latest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn latest(&self, turns_max: u32) -> Result<Vec<LoggedTurn>, StoreError> {
        let mut find =
            self.connection.prepare("SELECT turn, state FROM turn_log ORDER BY n DESC LIMIT ?1")?;
        let turn =
            |row: &rusqlite::Row<'_>| Ok(LoggedTurn { id: row.get(0)?, ended: row.get::<_, i64>(1)? > 0 });
        Ok(find.query_map([turns_max], turn)?.collect::<Result<_, _>>()?)
    }
}
