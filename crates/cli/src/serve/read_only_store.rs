//! Read-only access to a store, in either database: a server may have it open, and nothing is written.

use super::store::{StoreLocation, store_location};
use crate::exit::CliFailure;
use crate::messages;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use throughline_store::{ConversationRow, TurnRow};
#[cfg(feature = "postgres")]
use throughline_store::{PostgresReader, SqliteReader, StoreError, StoreReader};

/// The store, and where it is: a path, or a URL without its password.
pub(crate) struct ReadOnlyStore {
    reader: Box<dyn StoreReader>,
    location: PathBuf,
}

impl Deref for ReadOnlyStore {
    type Target = dyn StoreReader;

    fn deref(&self) -> &Self::Target {
        &*self.reader
    }
}

impl ReadOnlyStore {
    /// The store that is named, else that of the configuration.
    pub(crate) async fn open(named: Option<&Path>) -> Result<Self, CliFailure> {
        match store_location(named)? {
            StoreLocation::File(path) => {
                let opened = SqliteReader::open(&path);
                let reader = opened.map_err(|error| messages::store_unreadable(&path, &error))?;
                Ok(Self { reader: Box::new(reader), location: path })
            }
            #[cfg(feature = "postgres")]
            StoreLocation::Database { url, shown } => {
                let shown_path = PathBuf::from(shown);
                let opened = PostgresReader::open(&url).await;
                let failed = |error| messages::store_unreadable(&shown_path, &StoreError::failed(error));
                Ok(Self { reader: Box::new(opened.map_err(failed)?), location: shown_path })
            }
        }
    }

    /// Location of the store, for people.
    pub(crate) fn location(&self) -> &Path {
        &self.location
    }

    /// Failure to report if the store cannot be read.
    pub(crate) fn failed(&self) -> impl Fn(StoreError) -> CliFailure + Copy + '_ {
        |error| messages::store_unreadable(&self.location, &error)
    }

    /// A conversation of any user.
    pub(crate) async fn conversation(&self, id: &str) -> Result<Option<ConversationRow>, StoreError> {
        let Some(user) = self.reader.user_of_conversation(id).await? else { return Ok(None) };
        Ok(self.reader.conversation(&user, id).await?.map(|summary| summary.conversation))
    }

    /// A turn of any user.
    pub(crate) async fn turn(&self, id: &str) -> Result<Option<TurnRow>, StoreError> {
        let Some(user) = self.reader.user_of_turn(id).await? else { return Ok(None) };
        self.reader.turn(&user, id).await
    }
}
