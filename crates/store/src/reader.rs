//! Looking into a store that servers may have open: nothing is registered, locked, recovered or written.

use crate::catalog::Catalog;
use crate::error::StoreError;
use crate::log::LogRecord;
use crate::status::LoggedTurn;
use async_trait::async_trait;

/// A store for commands that look at the past: a catalog that can neither be written nor searched, and its records.
/// Anyone who may read the store may read all of it, so a few methods are about all users.
#[async_trait]
pub trait StoreReader: Catalog {
    /// All records of a turn that have been acknowledged by now; `None` = there is no such turn.
    async fn records(&self, turn: &str) -> Result<Option<Vec<LogRecord>>, StoreError>;

    /// The turns that came last, latest first.
    async fn latest(&self, turns_max: u32) -> Result<Vec<LoggedTurn>, StoreError>;

    /// Users who have turns, by name.
    async fn users(&self) -> Result<Vec<String>, StoreError>;

    /// Id and title of the conversations that changed last, latest first.
    async fn latest_conversations(&self, rows_max: u32) -> Result<Vec<(String, String)>, StoreError>;

    /// The user whose turn it is.
    async fn user_of_turn(&self, id: &str) -> Result<Option<String>, StoreError>;

    /// The user whose conversation it is.
    async fn user_of_conversation(&self, id: &str) -> Result<Option<String>, StoreError>;
}
