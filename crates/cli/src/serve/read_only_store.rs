//! A store that is looked into from beside, whichever it is: a server may have it open, and nothing is written.

use super::store::{StoreLocation, store_location};
use crate::exit::CliFailure;
use crate::messages;
use std::path::{Path, PathBuf};
use throughline_store::catalog::{
    CallFilter, CallRow, ConversationRow, FileRow, PageRequest, PathTurn, RawId, RawRow, ResultPage,
    TurnFilter, TurnRow, TurnSummary,
};
#[cfg(feature = "postgres")]
use throughline_store::postgres::PostgresReader;
use throughline_store::sqlite::SqliteReader;
use throughline_store::{LogRecord, LoggedTurn, StoreError};

/// The store, and where it is: a path, or a URL without its password.
pub(crate) struct ReadOnlyStore {
    backend: StoreBackend,
    location: PathBuf,
}

enum StoreBackend {
    File(SqliteReader),
    #[cfg(feature = "postgres")]
    Database(PostgresReader),
}

/// One question to whichever store it is.
macro_rules! ask {
    ($self:ident.$question:ident($($with:expr),*)) => {
        match &$self.backend {
            StoreBackend::File(store) => store.$question($($with),*),
            #[cfg(feature = "postgres")]
            StoreBackend::Database(store) => store.$question($($with),*).await,
        }
    };
}

impl ReadOnlyStore {
    /// The store that is named, else that of the configuration.
    pub(crate) async fn open(named: Option<&Path>) -> Result<Self, CliFailure> {
        match store_location(named)? {
            StoreLocation::File(path) => {
                let opened = SqliteReader::open(&path);
                let backend =
                    StoreBackend::File(opened.map_err(|error| messages::store_unreadable(&path, &error))?);
                Ok(Self { backend, location: path })
            }
            #[cfg(feature = "postgres")]
            StoreLocation::Database { url, shown } => {
                let shown_path = PathBuf::from(shown);
                let opened = PostgresReader::open(&url).await;
                let failed = |error| messages::store_unreadable(&shown_path, &StoreError::failed(error));
                let backend = StoreBackend::Database(opened.map_err(failed)?);
                Ok(Self { backend, location: shown_path })
            }
        }
    }

    /// Where it is, for people.
    pub(crate) fn location(&self) -> &Path {
        &self.location
    }

    /// Failure to report if the store cannot be read.
    pub(crate) fn failed(&self) -> impl Fn(StoreError) -> CliFailure + Copy + '_ {
        |error| messages::store_unreadable(&self.location, &error)
    }

    pub(crate) async fn records(&self, turn: &str) -> Result<Option<Vec<LogRecord>>, StoreError> {
        ask!(self.records(turn))
    }

    pub(crate) async fn latest(&self, turns_max: u32) -> Result<Vec<LoggedTurn>, StoreError> {
        ask!(self.latest(turns_max))
    }

    pub(crate) async fn users(&self) -> Result<Vec<String>, StoreError> {
        ask!(self.users())
    }

    pub(crate) async fn calls(
        &self,
        user: &str,
        filter: &CallFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<CallRow>, StoreError> {
        ask!(self.calls(user, filter, page))
    }

    pub(crate) async fn turns(
        &self,
        user: &str,
        filter: &TurnFilter,
        page: &PageRequest,
    ) -> Result<ResultPage<TurnSummary>, StoreError> {
        ask!(self.turns(user, filter, page))
    }

    pub(crate) async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError> {
        ask!(self.conversation(id))
    }

    pub(crate) async fn latest_conversations(
        &self,
        rows_max: u32,
    ) -> Result<Vec<(String, String)>, StoreError> {
        ask!(self.latest_conversations(rows_max))
    }

    pub(crate) async fn tree(&self, user: &str, conversation: &str) -> Result<Vec<TurnSummary>, StoreError> {
        ask!(self.tree(user, conversation))
    }

    pub(crate) async fn path(&self, user: &str, turn: &str) -> Result<Vec<PathTurn>, StoreError> {
        ask!(self.path(user, turn))
    }

    pub(crate) async fn turn(&self, id: &str) -> Result<Option<TurnRow>, StoreError> {
        ask!(self.turn(id))
    }

    pub(crate) async fn file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
        ask!(self.file(user, id))
    }

    pub(crate) async fn raw_of_turn(&self, user: &str, turn: &str) -> Result<Vec<RawRow>, StoreError> {
        ask!(self.raw_of_turn(user, turn))
    }

    pub(crate) async fn raw(&self, user: &str, id: &RawId) -> Result<Option<Vec<u8>>, StoreError> {
        ask!(self.raw(user, id))
    }
}
