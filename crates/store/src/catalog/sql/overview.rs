//! Rows of all users, for commands that look at a whole store.

use super::{CatalogDb, bind, query_optional, sql};
use crate::error::StoreError;
use crate::status::LoggedTurn;

pub(crate) async fn latest(db: &mut dyn CatalogDb, turns_max: u32) -> Result<Vec<LoggedTurn>, StoreError> {
    let list = sql!("SELECT turn, state FROM turn_log ORDER BY n DESC LIMIT $1");
    db.query(&list, bind![turns_max], |row| {
        Ok(LoggedTurn { id: row.get("turn")?, ended: row.get::<i64>("state")? > 0 })
    })
    .await
}

pub(crate) async fn users(db: &mut dyn CatalogDb) -> Result<Vec<String>, StoreError> {
    let list = sql!("SELECT DISTINCT user_id FROM turn WHERE user_id NOT LIKE 'deleted:%' ORDER BY user_id");
    db.query(&list, bind![], |row| row.get("user_id")).await
}

pub(crate) async fn latest_conversations(
    db: &mut dyn CatalogDb,
    rows_max: u32,
) -> Result<Vec<(String, String)>, StoreError> {
    let list = sql!(
        "SELECT id, title FROM conversation WHERE deleted_at IS NULL ORDER BY updated_at DESC, id DESC LIMIT $1"
    );
    db.query(&list, bind![rows_max], |row| Ok((row.get("id")?, row.get("title")?))).await
}

pub(crate) async fn user_of_turn(db: &mut dyn CatalogDb, id: &str) -> Result<Option<String>, StoreError> {
    let find = sql!("SELECT user_id FROM turn WHERE id = $1 AND user_id NOT LIKE 'deleted:%'");
    query_optional(db, &find, bind![id], |row| row.get("user_id")).await
}

pub(crate) async fn user_of_conversation(
    db: &mut dyn CatalogDb,
    id: &str,
) -> Result<Option<String>, StoreError> {
    let find = sql!("SELECT user_id FROM conversation WHERE id = $1 AND deleted_at IS NULL");
    query_optional(db, &find, bind![id], |row| row.get("user_id")).await
}
