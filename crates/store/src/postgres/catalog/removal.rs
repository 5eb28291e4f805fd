//! What goes, and what goes with it.

use super::rows::sought;
use super::turns::running_in;
use super::{Db, files};
use crate::catalog::{ForgetBefore, Gone, Removed};
use crate::error::StoreError;
use crate::postgres::journal;
use sqlx::Row;

/// About how many turns are removed in one commit when old ones are forgotten.
const TURNS_AT_ONCE: usize = 200;
/// Likewise for conversations without many turns, raw answers and files.
const ROWS_AT_ONCE: usize = 200;

/// A turn that goes.
struct Going {
    n: i64,
    id: String,
}

fn going(rows: &[sqlx::postgres::PgRow]) -> Result<Vec<Going>, StoreError> {
    super::rows::each(rows, |row| Ok(Going { n: row.try_get("n")?, id: row.try_get("id")? }))
}

pub(super) async fn conversation(db: Db<'_>, user: &str, id: &str) -> Result<Removed, StoreError> {
    // No turn can begin in it until it is gone.
    let there = sqlx::query("SELECT 1 FROM conversation WHERE id = $1 AND user_id = $2 FOR UPDATE")
        .bind(sought(id))
        .bind(sought(user))
        .fetch_optional(&mut *db)
        .await?;
    if there.is_none() {
        return Ok(Removed::Absent);
    }
    if let Some(turn_id) = running_in(db, id).await? {
        return Ok(Removed::StillRunning { turn_id });
    }
    let mut gone = Gone::default();
    remove_conversation(db, id, &mut gone).await?;
    Ok(Removed::Gone(gone))
}

async fn remove_conversation(db: Db<'_>, id: &str, gone: &mut Gone) -> Result<(), StoreError> {
    let turns = sqlx::query("SELECT n, id FROM turn WHERE conversation_id = $1 ORDER BY n")
        .bind(id)
        .fetch_all(&mut *db)
        .await?;
    remove_turns(db, &going(&turns)?, gone).await?;
    // With it goes what was remembered for it.
    sqlx::query("DELETE FROM conversation WHERE id = $1").bind(id).execute(db).await?;
    gone.conversations += 1;
    Ok(())
}

pub(super) async fn turn(db: Db<'_>, user: &str, turn_id: &str) -> Result<Removed, StoreError> {
    let found =
        sqlx::query("SELECT conversation_id, parent_id FROM turn WHERE id = $1 AND user_id = $2 FOR UPDATE")
            .bind(sought(turn_id))
            .bind(sought(user))
            .fetch_optional(&mut *db)
            .await?;
    let Some(found) = found else { return Ok(Removed::Absent) };
    let conversation_id: Option<String> = found.try_get("conversation_id")?;
    let parent_id: Option<String> = found.try_get("parent_id")?;
    let turns = sqlx::query(
        "WITH RECURSIVE behind (n, id, running) AS (
            SELECT n, id, ended_at IS NULL FROM turn WHERE id = $1
            UNION ALL
            SELECT t.n, t.id, t.ended_at IS NULL
            FROM behind JOIN turn t ON t.conversation_id = $2 AND t.parent_id = behind.id
         ) SELECT n, id, running FROM behind",
    )
    .bind(turn_id)
    .bind(&conversation_id)
    .fetch_all(&mut *db)
    .await?;
    for turn in &turns {
        if turn.try_get("running")? {
            return Ok(Removed::StillRunning { turn_id: turn.try_get("id")? });
        }
    }
    let mut gone = Gone::default();
    remove_turns(db, &going(&turns)?, &mut gone).await?;
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
    Ok(Removed::Gone(gone))
}

pub(super) async fn forget_before(db: Db<'_>, times: &ForgetBefore) -> Result<Gone, StoreError> {
    let mut gone = Gone::default();
    if let Some(before) = times.conversations {
        forget_conversations(db, before, &mut gone).await?;
        forget_alone(db, before, &mut gone).await?;
    }
    if let Some(before) = times.raw {
        let forgotten =
            sqlx::query("DELETE FROM raw WHERE n IN (SELECT n FROM raw WHERE created_at < $1 LIMIT $2)")
                .bind(before)
                .bind(ROWS_AT_ONCE as i64)
                .execute(&mut *db)
                .await?;
        gone.more |= forgotten.rows_affected() == ROWS_AT_ONCE as u64;
    }
    if let Some(before) = times.unused_files {
        let removed = files::forget_unused(db, before, ROWS_AT_ONCE).await?;
        gone.more |= removed.len() == ROWS_AT_ONCE;
        gone.files += removed.len() as u64;
        gone.blobs.extend(removed);
    }
    Ok(gone)
}

async fn forget_conversations(db: Db<'_>, before: i64, gone: &mut Gone) -> Result<(), StoreError> {
    // What somebody uses just now is left for the next time.
    let old = sqlx::query(
        "SELECT n, id FROM conversation c WHERE updated_at < $1
            AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL)
         ORDER BY updated_at LIMIT $2 FOR UPDATE SKIP LOCKED",
    )
    .bind(before)
    .bind(ROWS_AT_ONCE as i64)
    .fetch_all(&mut *db)
    .await?;
    gone.more |= old.len() == ROWS_AT_ONCE;
    for conversation in going(&old)? {
        if gone.turns.len() >= TURNS_AT_ONCE {
            gone.more = true;
            break;
        }
        remove_conversation(db, &conversation.id, gone).await?;
    }
    Ok(())
}

async fn forget_alone(db: Db<'_>, before: i64, gone: &mut Gone) -> Result<(), StoreError> {
    let old = sqlx::query(
        "SELECT n, id FROM turn WHERE conversation_id IS NULL AND ended_at < $1 ORDER BY ended_at LIMIT $2
         FOR UPDATE SKIP LOCKED",
    )
    .bind(before)
    .bind(TURNS_AT_ONCE as i64)
    .fetch_all(&mut *db)
    .await?;
    gone.more |= old.len() == TURNS_AT_ONCE;
    remove_turns(db, &going(&old)?, gone).await
}

/// With their logs and the files that no other turn uses; what was searched, calls, raw bytes and keys of idempotency go
/// by themselves.
async fn remove_turns(db: Db<'_>, turns: &[Going], gone: &mut Gone) -> Result<(), StoreError> {
    let ids: Vec<String> = turns.iter().map(|turn| turn.id.clone()).collect();
    let numbers: Vec<i64> = turns.iter().map(|turn| turn.n).collect();
    let used: Vec<String> =
        sqlx::query_scalar("SELECT DISTINCT file_id FROM file_use WHERE turn_id = ANY ($1)")
            .bind(ids.clone())
            .fetch_all(&mut *db)
            .await?;
    sqlx::query("DELETE FROM turn WHERE n = ANY ($1)").bind(numbers).execute(&mut *db).await?;
    for id in &ids {
        journal::forget(db, id).await?;
    }
    gone.turns.extend(ids);
    let removed = files::remove_unused(db, used).await?;
    gone.files += removed.len() as u64;
    gone.blobs.extend(removed);
    Ok(())
}
