//! Looking into a store's file from beside: a server may have it open, and nothing is locked, recovered or written.

use super::catalog::db::{SqliteCatalogDb, run_now};
use super::{connection, open, schema, segment};
use crate::catalog::sql::{calls, conversations, files, raw, turns};
use crate::catalog::{
    CallFilter, CallRow, CatalogLimits, ConversationRow, FileRow, PageRequest, PathTurn, RawId, RawRow,
    ResultPage, TurnFilter, TurnRow, TurnSummary,
};
use crate::error::StoreError;
use crate::log::LogRecord;
use crate::records::frame::RunDecoder;
use crate::status::LoggedTurn;
use rusqlite::{Connection, OptionalExtension};
use std::path::Path;

/// Reads a store's file while others write it. For commands that look at the past; a server has a
/// [`SqliteStore`](super::SqliteStore).
// R: S5
pub struct SqliteReader {
    connection: Connection,
}

impl SqliteReader {
    /// Looks into this file, which must be there and of this release's version.
    ///
    /// # Errors
    /// [`StoreError::CommitFailure`]: there is no such file, or it is no store of this version.
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
    pub fn records(&self, turn: &str) -> Result<Option<Vec<LogRecord>>, StoreError> {
        // One view of the file: a segment that is written meanwhile would hide its records from both.
        let view = self.connection.unchecked_transaction()?;
        let Some(row) = segment::load_row(&view, turn)? else { return Ok(None) };
        let mut records = segment::read_all(&view, row.n)?;
        if row.state == segment::SqliteLogState::Open
            || records.last().map_or(0, |record| record.seq) < row.last_seq
        {
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

    /// Whose turns there are, by name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn users(&self) -> Result<Vec<String>, StoreError> {
        let mut find = self.connection.prepare("SELECT DISTINCT user_id FROM turn ORDER BY user_id")?;
        Ok(find.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Calls of a user, newest first.
    ///
    /// # Errors
    /// The file cannot be read, or the filter holds what cannot be looked for.
    pub fn calls(
        &self,
        user: &str,
        filter: &CallFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<CallRow>, StoreError> {
        run_now(calls::list(
            &mut SqliteCatalogDb(&self.connection),
            &CatalogLimits::default(),
            user,
            filter,
            page,
        ))
    }

    /// Turns of a user, newest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn turns(
        &self,
        user: &str,
        filter: &TurnFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<TurnSummary>, StoreError> {
        run_now(turns::list(&mut SqliteCatalogDb(&self.connection), user, filter, page))
    }

    /// A conversation, whosever it is: who may read the file may read all of it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError> {
        let Some(user) = self.user_of("SELECT user_id FROM conversation WHERE id = ?1", id)? else {
            return Ok(None);
        };
        Ok(run_now(conversations::get(&mut SqliteCatalogDb(&self.connection), &user, id))?
            .map(|summary| summary.conversation))
    }

    /// Id and title of the conversations that changed last, latest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn latest_conversations(&self, rows_max: u32) -> Result<Vec<(String, String)>, StoreError> {
        let mut find = self
            .connection
            .prepare("SELECT id, title FROM conversation ORDER BY updated_at DESC, id DESC LIMIT ?1")?;
        Ok(find.query_map([rows_max], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?)
    }

    /// The turns of a conversation, parents before children.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn tree(&self, user: &str, conversation: &str) -> Result<Vec<TurnSummary>, StoreError> {
        run_now(turns::tree(&mut SqliteCatalogDb(&self.connection), user, conversation))
    }

    /// The turns from the beginning of a conversation to this one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn path(&self, user: &str, turn: &str) -> Result<Vec<PathTurn>, StoreError> {
        run_now(turns::path(&mut SqliteCatalogDb(&self.connection), user, turn))
    }

    /// A turn, whosever it is.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn turn(&self, id: &str) -> Result<Option<TurnRow>, StoreError> {
        let Some(user) = self.user_of("SELECT user_id FROM turn WHERE id = ?1", id)? else { return Ok(None) };
        run_now(turns::get(&mut SqliteCatalogDb(&self.connection), &user, id))
    }

    /// A file of a user.
    ///
    /// # Errors
    /// The file of the store cannot be read.
    pub fn file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
        run_now(files::get(&mut SqliteCatalogDb(&self.connection), user, id))
    }

    /// Stored replies of a turn's upstreams, in order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn raw_of_turn(&self, user: &str, turn: &str) -> Result<Vec<RawRow>, StoreError> {
        run_now(raw::of_turn(&mut SqliteCatalogDb(&self.connection), user, turn))
    }

    /// The bytes of one answer.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn raw(&self, user: &str, id: &RawId) -> Result<Option<Vec<u8>>, StoreError> {
        run_now(raw::get(&mut SqliteCatalogDb(&self.connection), user, id))
    }

    fn user_of(&self, find: &str, id: &str) -> Result<Option<String>, StoreError> {
        Ok(self.connection.query_row(find, [id], |row| row.get(0)).optional()?)
    }
}
