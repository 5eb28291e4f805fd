//! A store that is looked into from beside, whichever it is: a server may have it open, and nothing is written.

use super::store::{Place, place_of};
use crate::exit::Failure;
use crate::messages;
use std::path::{Path, PathBuf};
use throughline_store::catalog::{
    CallFilter, CallRow, ConversationRow, FileRow, Page, PageRequest, PathTurn, RawId, RawRow, TurnFilter,
    TurnRow, TurnSummary,
};
#[cfg(feature = "postgres")]
use throughline_store::postgres::PostgresOnlooker;
use throughline_store::sqlite::SqliteOnlooker;
use throughline_store::{LoggedTurn, Record, StoreError};

/// The store, and where it is: a path, or a URL without its password.
pub struct Onlooker {
    of: Of,
    place: PathBuf,
}

enum Of {
    File(SqliteOnlooker),
    #[cfg(feature = "postgres")]
    Database(PostgresOnlooker),
}

/// One question to whichever store it is.
macro_rules! ask {
    ($self:ident.$question:ident($($with:expr),*)) => {
        match &$self.of {
            Of::File(store) => store.$question($($with),*),
            #[cfg(feature = "postgres")]
            Of::Database(store) => store.$question($($with),*).await,
        }
    };
}

impl Onlooker {
    /// The store that is named, else that of the configuration.
    pub async fn open(named: Option<&Path>) -> Result<Self, Failure> {
        match place_of(named)? {
            Place::File(place) => {
                let opened = SqliteOnlooker::open(&place);
                let of = Of::File(opened.map_err(|error| messages::store_unreadable(&place, &error))?);
                Ok(Self { of, place })
            }
            #[cfg(feature = "postgres")]
            Place::Database { url, shown } => {
                let place = PathBuf::from(shown);
                let opened = PostgresOnlooker::open(&url).await;
                let failed = |error| messages::store_unreadable(&place, &StoreError::failed(error));
                let of = Of::Database(opened.map_err(failed)?);
                Ok(Self { of, place })
            }
        }
    }

    /// Where it is, for people.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// What is told when it cannot be read.
    pub fn failed(&self) -> impl Fn(StoreError) -> Failure + Copy + '_ {
        |error| messages::store_unreadable(&self.place, &error)
    }

    pub async fn records(&self, turn: &str) -> Result<Option<Vec<Record>>, StoreError> {
        ask!(self.records(turn))
    }

    pub async fn latest(&self, turns_max: u32) -> Result<Vec<LoggedTurn>, StoreError> {
        ask!(self.latest(turns_max))
    }

    pub async fn users(&self) -> Result<Vec<String>, StoreError> {
        ask!(self.users())
    }

    pub async fn calls(
        &self,
        user: &str,
        filter: &CallFilter,
        page: &PageRequest,
    ) -> Result<Page<CallRow>, StoreError> {
        ask!(self.calls(user, filter, page))
    }

    pub async fn turns(
        &self,
        user: &str,
        filter: &TurnFilter,
        page: &PageRequest,
    ) -> Result<Page<TurnSummary>, StoreError> {
        ask!(self.turns(user, filter, page))
    }

    pub async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError> {
        ask!(self.conversation(id))
    }

    pub async fn latest_conversations(&self, rows_max: u32) -> Result<Vec<(String, String)>, StoreError> {
        ask!(self.latest_conversations(rows_max))
    }

    pub async fn tree(&self, user: &str, conversation: &str) -> Result<Vec<TurnSummary>, StoreError> {
        ask!(self.tree(user, conversation))
    }

    pub async fn path(&self, user: &str, turn: &str) -> Result<Vec<PathTurn>, StoreError> {
        ask!(self.path(user, turn))
    }

    pub async fn turn(&self, id: &str) -> Result<Option<TurnRow>, StoreError> {
        ask!(self.turn(id))
    }

    pub async fn file(&self, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
        ask!(self.file(user, id))
    }

    pub async fn raw_of_turn(&self, user: &str, turn: &str) -> Result<Vec<RawRow>, StoreError> {
        ask!(self.raw_of_turn(user, turn))
    }

    pub async fn raw(&self, user: &str, id: &RawId) -> Result<Option<Vec<u8>>, StoreError> {
        ask!(self.raw(user, id))
    }
}
