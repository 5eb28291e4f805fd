//! Removal of turns and conversations with everything that is only theirs.

use super::rows::sanitize_param;
use super::turns::running_in;
use super::{DbConnection, files};
use crate::catalog::{RemovalOutcome, RemovalSummary, RetentionCutoffs};
use crate::error::StoreError;
use crate::postgres::log;
use sqlx::Row;

/// About how many turns are removed in one commit when old ones are forgotten.
const TURNS_PER_COMMIT: usize = 200;
/// Likewise for conversations without many turns, raw answers and files.
const ROWS_PER_COMMIT: usize = 200;

/// A turn that goes.
struct PostgresRemovalRow {
    n: i64,
    id: String,
}

fn rows_to_remove(rows: &[sqlx::postgres::PgRow]) -> Result<Vec<PostgresRemovalRow>, StoreError> {
    super::rows::map_rows(rows, |row| Ok(PostgresRemovalRow { n: row.try_get("n")?, id: row.try_get("id")? }))
}

pub(super) async fn conversation(
    db: DbConnection<'_>,
    user: &str,
    id: &str,
) -> Result<RemovalOutcome, StoreError> {
    // No turn can begin in it until it is gone.
    let there = sqlx::query("SELECT 1 FROM conversation WHERE id = $1 AND user_id = $2 FOR UPDATE")
        .bind(sanitize_param(id))
        .bind(sanitize_param(user))
        .fetch_optional(&mut *db)
        .await?;
    if there.is_none() {
        return Ok(RemovalOutcome::NotFound);
    }
    if let Some(turn_id) = running_in(db, id).await? {
        return Ok(RemovalOutcome::StillRunning { turn_id });
    }
    let mut summary = RemovalSummary::default();
    remove_conversation(db, id, &mut summary).await?;
    Ok(RemovalOutcome::Removed(summary))
}

async fn remove_conversation(
    db: DbConnection<'_>,
    id: &str,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let turns = sqlx::query("SELECT n, id FROM turn WHERE conversation_id = $1 ORDER BY n")
        .bind(id)
        .fetch_all(&mut *db)
        .await?;
    remove_turns(db, &rows_to_remove(&turns)?, summary).await?;
    // With it goes what was remembered for it.
    sqlx::query("DELETE FROM conversation WHERE id = $1").bind(id).execute(db).await?;
    summary.conversations += 1;
    Ok(())
}

pub(super) async fn turn(
    db: DbConnection<'_>,
    user: &str,
    turn_id: &str,
) -> Result<RemovalOutcome, StoreError> {
    let found =
        sqlx::query("SELECT conversation_id, parent_id FROM turn WHERE id = $1 AND user_id = $2 FOR UPDATE")
            .bind(sanitize_param(turn_id))
            .bind(sanitize_param(user))
            .fetch_optional(&mut *db)
            .await?;
    let Some(found) = found else { return Ok(RemovalOutcome::NotFound) };
    let conversation_id: Option<String> = found.try_get("conversation_id")?;
    let parent_id: Option<String> = found.try_get("parent_id")?;
    let turns = sqlx::query(
        "WITH RECURSIVE descendants (n, id, running) AS (
            SELECT n, id, ended_at IS NULL FROM turn WHERE id = $1
            UNION ALL
            SELECT t.n, t.id, t.ended_at IS NULL
            FROM descendants JOIN turn t ON t.conversation_id = $2 AND t.parent_id = descendants.id
         ) SELECT n, id, running FROM descendants",
    )
    .bind(turn_id)
    .bind(&conversation_id)
    .fetch_all(&mut *db)
    .await?;
    for turn in &turns {
        if turn.try_get("running")? {
            return Ok(RemovalOutcome::StillRunning { turn_id: turn.try_get("id")? });
        }
    }
    let mut summary = RemovalSummary::default();
    remove_turns(db, &rows_to_remove(&turns)?, &mut summary).await?;
    if let Some(conversation_id) = conversation_id {
        sqlx::query(
            "UPDATE conversation SET turns = turns - $2,
                leaf_id = CASE WHEN EXISTS (SELECT 1 FROM turn WHERE id = leaf_id) THEN leaf_id ELSE $3 END
             WHERE id = $1",
        )
        .bind(conversation_id)
        .bind(turns.len() as i64)
        .bind(parent_id)
        .execute(db)
        .await?;
    }
    Ok(RemovalOutcome::Removed(summary))
}

pub(super) async fn delete_expired(
    db: DbConnection<'_>,
    cutoffs: &RetentionCutoffs,
) -> Result<RemovalSummary, StoreError> {
    let mut summary = RemovalSummary::default();
    if let Some(before) = cutoffs.conversations {
        delete_old_conversations(db, before, &mut summary).await?;
        delete_old_standalone(db, before, &mut summary).await?;
    }
    if let Some(before) = cutoffs.raw {
        let deleted =
            sqlx::query("DELETE FROM raw WHERE n IN (SELECT n FROM raw WHERE created_at < $1 LIMIT $2)")
                .bind(before)
                .bind(ROWS_PER_COMMIT as i64)
                .execute(&mut *db)
                .await?;
        summary.has_more |= deleted.rows_affected() == ROWS_PER_COMMIT as u64;
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
    db: DbConnection<'_>,
    before: i64,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    // What somebody uses just now is left for the next time.
    let old = sqlx::query(
        "SELECT n, id FROM conversation c WHERE updated_at < $1
            AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL)
         ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED",
    )
    .bind(before)
    .bind(ROWS_PER_COMMIT as i64)
    .fetch_all(&mut *db)
    .await?;
    summary.has_more |= old.len() == ROWS_PER_COMMIT;
    for conversation in rows_to_remove(&old)? {
        if summary.turns.len() >= TURNS_PER_COMMIT {
            summary.has_more = true;
            break;
        }
        remove_conversation(db, &conversation.id, summary).await?;
    }
    Ok(())
}

async fn delete_old_standalone(
    db: DbConnection<'_>,
    before: i64,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let old = sqlx::query(
        "SELECT n, id FROM turn WHERE conversation_id IS NULL AND ended_at < $1 ORDER BY ended_at LIMIT $2
         FOR UPDATE SKIP LOCKED",
    )
    .bind(before)
    .bind(TURNS_PER_COMMIT as i64)
    .fetch_all(&mut *db)
    .await?;
    summary.has_more |= old.len() == TURNS_PER_COMMIT;
    remove_turns(db, &rows_to_remove(&old)?, summary).await
}

/// With their logs and the files that no other turn uses; what was searched, calls, raw bytes and keys of idempotency go
/// by themselves.
async fn remove_turns(
    db: DbConnection<'_>,
    turns: &[PostgresRemovalRow],
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let ids: Vec<String> = turns.iter().map(|turn| turn.id.clone()).collect();
    let numbers: Vec<i64> = turns.iter().map(|turn| turn.n).collect();
    let used: Vec<String> =
        sqlx::query_scalar("SELECT DISTINCT file_id FROM file_use WHERE turn_id = ANY ($1)")
            .bind(ids.clone())
            .fetch_all(&mut *db)
            .await?;
    sqlx::query("DELETE FROM turn WHERE n = ANY ($1)").bind(numbers).execute(&mut *db).await?;
    for id in &ids {
        log::delete(db, id).await?;
    }
    summary.turns.extend(ids);
    let removed = files::remove_unused(db, used).await?;
    summary.files += removed.len() as u64;
    summary.blobs.extend(removed);
    Ok(())
}
