//! Removal of turns and conversations with everything that only they use.

use super::turns::running_in;
use super::{CatalogDb, CatalogRow, IndexChange, SqlParam, SqlText, bind, files, query_optional, sql};
use crate::catalog::{RemovalOutcome, RemovalSummary, RetentionCutoffs};
use crate::error::StoreError;

/// Approximate number of turns removed in one commit when old ones are deleted: other writes wait during it.
const TURNS_PER_COMMIT: usize = 200;
/// Rows per commit for conversations without many turns, raw replies and files.
const ROWS_PER_COMMIT: usize = 200;

/// Number and id of a row that is removed.
pub(super) struct RemovalRow {
    n: i64,
    id: String,
}

pub(super) fn removal_row(row: &dyn CatalogRow) -> Result<RemovalRow, StoreError> {
    Ok(RemovalRow { n: row.get("n")?, id: row.get("id")? })
}

pub(crate) async fn conversation(
    db: &mut dyn CatalogDb,
    user: &str,
    id: &str,
) -> Result<RemovalOutcome, StoreError> {
    // No turn can begin in it until it is removed.
    let find = sql!("SELECT n, id FROM conversation WHERE id = $1 AND user_id = $2", lock "FOR UPDATE");
    let Some(row) = query_optional(db, &find, bind![id, user], removal_row).await? else {
        return Ok(RemovalOutcome::NotFound);
    };
    if let Some(turn_id) = running_in(db, id).await? {
        return Ok(RemovalOutcome::StillRunning { turn_id });
    }
    let mut summary = RemovalSummary::default();
    remove_conversation(db, &row, &mut summary).await?;
    Ok(RemovalOutcome::Removed(summary))
}

/// Prefix of the user of deleted rows that can be restored: like every row of another user they are absent
/// everywhere. No person's name has a colon.
const DELETED_USER: &str = "deleted:";

/// The user of what this user has deleted and may bring back.
pub(super) fn deleted_user(user: &str) -> String {
    format!("{DELETED_USER}{user}")
}

/// The user whose text something is, be it deleted.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "PostgreSQL has no index of its own"))]
pub(crate) fn live_user(user: &str) -> &str {
    user.strip_prefix(DELETED_USER).unwrap_or(user)
}

pub(crate) async fn trash(
    db: &mut dyn CatalogDb,
    user: &str,
    id: &str,
    now: i64,
) -> Result<RemovalOutcome, StoreError> {
    let find = sql!("SELECT n, id FROM conversation WHERE id = $1 AND user_id = $2", lock "FOR UPDATE");
    if query_optional(db, &find, bind![id, user], removal_row).await?.is_none() {
        return Ok(RemovalOutcome::NotFound);
    }
    if let Some(turn_id) = running_in(db, id).await? {
        return Ok(RemovalOutcome::StillRunning { turn_id });
    }
    give_to(db, id, &deleted_user(user), Some(now)).await?;
    // A request that is repeated has nothing to find, and must not be refused for it.
    let forget =
        sql!("DELETE FROM idempotency WHERE turn_id IN (SELECT id FROM turn WHERE conversation_id = $1)");
    db.execute(&forget, bind![id]).await?;
    Ok(RemovalOutcome::Removed(RemovalSummary { conversations: 1, ..RemovalSummary::default() }))
}

pub(crate) async fn restore(
    db: &mut dyn CatalogDb,
    user: &str,
    id: &str,
    deleted_after: i64,
) -> Result<bool, StoreError> {
    let find = sql!(
        "SELECT n, id FROM conversation WHERE id = $1 AND user_id = $2 AND deleted_at > $3",
        lock "FOR UPDATE"
    );
    let params = bind![id, deleted_user(user), deleted_after];
    if query_optional(db, &find, params, removal_row).await?.is_none() {
        return Ok(false);
    }
    give_to(db, id, user, None).await?;
    Ok(true)
}

/// Transfers a conversation to a user, with all rows that are found by user.
async fn give_to(
    db: &mut dyn CatalogDb,
    id: &str,
    user: &str,
    deleted_at: Option<i64>,
) -> Result<(), StoreError> {
    let update = sql!("UPDATE conversation SET user_id = $2, deleted_at = $3 WHERE id = $1");
    db.execute(&update, bind![id, user, deleted_at]).await?;
    for update in [
        sql!(
            "UPDATE call SET user_id = $2 WHERE turn_id IN (SELECT id FROM turn WHERE conversation_id = $1)"
        ),
        sql!("UPDATE turn SET user_id = $2 WHERE conversation_id = $1"),
        sql!("UPDATE conversation_tag SET user_id = $2 WHERE conversation_id = $1"),
        sql!("UPDATE remembered SET user_id = $2 WHERE conversation_id = $1"),
    ] {
        db.execute(&update, bind![id, user]).await?;
    }
    Ok(())
}

pub(super) async fn remove_conversation(
    db: &mut dyn CatalogDb,
    row: &RemovalRow,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let list = sql!("SELECT n, id FROM turn WHERE conversation_id = $1 ORDER BY n");
    let turns = db.query(&list, bind![&row.id], removal_row).await?;
    remove_turns(db, &turns, summary).await?;
    db.update_index(IndexChange::ConversationDeleted(row.n)).await?;
    // Its remembered answers are deleted with it.
    db.execute(&sql!("DELETE FROM conversation WHERE n = $1"), bind![row.n]).await?;
    summary.conversations += 1;
    Ok(())
}

pub(crate) async fn turn(
    db: &mut dyn CatalogDb,
    user: &str,
    turn_id: &str,
) -> Result<RemovalOutcome, StoreError> {
    let find = sql!(
        "SELECT conversation_id, parent_id FROM turn WHERE id = $1 AND user_id = $2",
        lock "FOR UPDATE"
    );
    let found: Option<(Option<String>, Option<String>)> =
        query_optional(db, &find, bind![turn_id, user], |row| {
            Ok((row.get("conversation_id")?, row.get("parent_id")?))
        })
        .await?;
    let Some((conversation_id, parent_id)) = found else { return Ok(RemovalOutcome::NotFound) };
    let list = sql!(
        "WITH RECURSIVE descendants (n, id, ended_at) AS (
            SELECT n, id, ended_at FROM turn WHERE id = $1
            UNION ALL
            SELECT t.n, t.id, t.ended_at
            FROM descendants JOIN turn t ON t.conversation_id = $2 AND t.parent_id = descendants.id
         ) SELECT n, id, ended_at FROM descendants"
    );
    let turns: Vec<(RemovalRow, Option<i64>)> = db
        .query(&list, bind![turn_id, &conversation_id], |row| Ok((removal_row(row)?, row.get("ended_at")?)))
        .await?;
    if let Some((running, _)) = turns.iter().find(|(_, ended_at)| ended_at.is_none()) {
        return Ok(RemovalOutcome::StillRunning { turn_id: running.id.clone() });
    }
    let turns: Vec<RemovalRow> = turns.into_iter().map(|(row, _)| row).collect();
    let mut summary = RemovalSummary::default();
    remove_turns(db, &turns, &mut summary).await?;
    if conversation_id.is_some() {
        let update = sql!(
            "UPDATE conversation SET turns = turns - $2,
                leaf_id = CASE WHEN EXISTS (SELECT 1 FROM turn WHERE id = leaf_id) THEN leaf_id ELSE $3 END
             WHERE id = $1"
        );
        db.execute(&update, bind![&conversation_id, turns.len() as i64, parent_id]).await?;
    }
    Ok(RemovalOutcome::Removed(summary))
}

pub(crate) async fn delete_expired(
    db: &mut dyn CatalogDb,
    cutoffs: &RetentionCutoffs,
) -> Result<RemovalSummary, StoreError> {
    let mut summary = RemovalSummary::default();
    if let Some(before) = cutoffs.conversations {
        delete_old_conversations(db, before, &mut summary).await?;
        delete_old_standalone(db, before, &mut summary).await?;
    }
    // Both are few, and have their own index.
    const DELETED: SqlText = sql!(
        "SELECT n, id FROM conversation c WHERE deleted_at IS NOT NULL AND deleted_at < $1
         ORDER BY deleted_at LIMIT $2",
        lock "FOR UPDATE SKIP LOCKED"
    );
    const TEMPORARY: SqlText = sql!(
        "SELECT n, id FROM conversation c WHERE temporary = 1 AND updated_at < $1
            AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL)
         ORDER BY updated_at LIMIT $2",
        lock "FOR UPDATE SKIP LOCKED"
    );
    for (list, before) in [(DELETED, cutoffs.deleted), (TEMPORARY, cutoffs.temporary)] {
        if let Some(before) = before {
            delete_conversations(db, &list, before, &mut summary).await?;
        }
    }
    if let Some(before) = cutoffs.shares {
        let delete = sql!("DELETE FROM share WHERE expires_at IS NOT NULL AND expires_at < $1");
        db.execute(&delete, bind![before]).await?;
    }
    if let Some(before) = cutoffs.raw {
        let delete = sql!("DELETE FROM raw WHERE n IN (SELECT n FROM raw WHERE created_at < $1 LIMIT $2)");
        let deleted = db.execute(&delete, bind![before, ROWS_PER_COMMIT as i64]).await?;
        summary.has_more |= deleted == ROWS_PER_COMMIT as u64;
    }
    if let Some(before) = cutoffs.unused_files {
        let removed = files::delete_unused(db, before, ROWS_PER_COMMIT).await?;
        summary.has_more |= removed.len() == ROWS_PER_COMMIT;
        summary.files += removed.len() as u64;
        summary.blobs.extend(removed);
    }
    Ok(summary)
}

async fn delete_old_conversations(
    db: &mut dyn CatalogDb,
    before: i64,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    // A conversation that is in use is left for the next time.
    const LIST: SqlText = sql!(
        "SELECT n, id FROM conversation c WHERE updated_at < $1
            AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL)
         ORDER BY updated_at LIMIT $2",
        lock "FOR UPDATE SKIP LOCKED"
    );
    delete_conversations(db, &LIST, before, summary).await
}

async fn delete_conversations(
    db: &mut dyn CatalogDb,
    list: &SqlText,
    before: i64,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let old = db.query(list, bind![before, ROWS_PER_COMMIT as i64], removal_row).await?;
    summary.has_more |= old.len() == ROWS_PER_COMMIT;
    for conversation in old {
        if summary.turns.len() >= TURNS_PER_COMMIT {
            summary.has_more = true;
            break;
        }
        remove_conversation(db, &conversation, summary).await?;
    }
    Ok(())
}

async fn delete_old_standalone(
    db: &mut dyn CatalogDb,
    before: i64,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let list = sql!(
        "SELECT n, id FROM turn WHERE conversation_id IS NULL AND ended_at < $1 ORDER BY ended_at LIMIT $2",
        lock "FOR UPDATE SKIP LOCKED"
    );
    let old = db.query(&list, bind![before, TURNS_PER_COMMIT as i64], removal_row).await?;
    summary.has_more |= old.len() == TURNS_PER_COMMIT;
    remove_turns(db, &old, summary).await
}

/// Removes turns with their logs, their texts in the index, and the files that no other turn uses. Calls, raw bytes and
/// idempotency keys are deleted by their foreign keys.
pub(super) async fn remove_turns(
    db: &mut dyn CatalogDb,
    turns: &[RemovalRow],
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    if turns.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = turns.iter().map(|turn| turn.id.clone()).collect();
    let numbers: Vec<i64> = turns.iter().map(|turn| turn.n).collect();
    let find = sql!("SELECT DISTINCT file_id FROM file_use WHERE turn_id", in 1, " ORDER BY file_id");
    let used: Vec<String> = db.query(&find, &[SqlParam::from(ids.clone())], |row| row.get("file_id")).await?;
    for &n in &numbers {
        db.update_index(IndexChange::TurnDeleted(n)).await?;
    }
    db.execute(&sql!("DELETE FROM turn WHERE n", in 1, ""), bind![numbers]).await?;
    for id in &ids {
        db.delete_turn_log(id).await?;
    }
    summary.turns.extend(ids);
    let removed = files::remove_unused(db, used).await?;
    summary.files += removed.len() as u64;
    summary.blobs.extend(removed);
    Ok(())
}
