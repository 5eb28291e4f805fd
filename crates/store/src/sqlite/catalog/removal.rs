//! Removal of turns and conversations with everything that is only theirs.

use super::turns::running_in;
use super::{files, search};
use crate::catalog::{RemovalOutcome, RemovalSummary, RetentionCutoffs};
use crate::error::StoreError;
use crate::sqlite::log;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;

/// About how many turns are removed in one commit when old ones are forgotten: others wait for the writer meanwhile.
const TURNS_PER_COMMIT: usize = 200;
/// Likewise for conversations without many turns, raw answers and files.
const ROWS_PER_COMMIT: usize = 200;

/// A turn that goes.
struct SqliteRemovalRow {
    n: i64,
    id: String,
}

pub(super) fn conversation(db: &Connection, user: &str, id: &str) -> Result<RemovalOutcome, StoreError> {
    let n: Option<i64> = db
        .prepare_cached("SELECT n FROM conversation WHERE id = ?1 AND user_id = ?2")?
        .query_row([id, user], |row| row.get(0))
        .optional()?;
    let Some(n) = n else { return Ok(RemovalOutcome::NotFound) };
    if let Some(turn_id) = running_in(db, id)? {
        return Ok(RemovalOutcome::StillRunning { turn_id });
    }
    let mut summary = RemovalSummary::default();
    remove_conversation(db, n, id, &mut summary)?;
    Ok(RemovalOutcome::Removed(summary))
}

fn remove_conversation(
    db: &Connection,
    n: i64,
    id: &str,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let turns = rows_to_remove(db, "SELECT n, id FROM turn WHERE conversation_id = ?1 ORDER BY n", [id])?;
    remove_turns(db, &turns, summary)?;
    search::remove_title(db, n)?;
    // With it goes what was remembered for it.
    db.prepare_cached("DELETE FROM conversation WHERE n = ?1")?.execute([n])?;
    summary.conversations += 1;
    Ok(())
}

pub(super) fn turn(db: &Connection, user: &str, turn_id: &str) -> Result<RemovalOutcome, StoreError> {
    type TurnLinks = (Option<String>, Option<String>);
    let found: Option<TurnLinks> = db
        .prepare_cached("SELECT conversation_id, parent_id FROM turn WHERE id = ?1 AND user_id = ?2")?
        .query_row([turn_id, user], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((conversation_id, parent_id)) = found else { return Ok(RemovalOutcome::NotFound) };
    let turns = rows_to_remove(
        db,
        "WITH RECURSIVE descendants (n, id) AS (
            SELECT n, id FROM turn WHERE id = ?1
            UNION ALL
            SELECT t.n, t.id FROM descendants JOIN turn t ON t.conversation_id = ?2 AND t.parent_id = descendants.id
         ) SELECT n, id FROM descendants",
        params![turn_id, conversation_id],
    )?;
    let mut running = db.prepare_cached("SELECT 1 FROM turn WHERE n = ?1 AND ended_at IS NULL")?;
    for turn in &turns {
        if running.exists([turn.n])? {
            return Ok(RemovalOutcome::StillRunning { turn_id: turn.id.clone() });
        }
    }
    let mut summary = RemovalSummary::default();
    remove_turns(db, &turns, &mut summary)?;
    if let Some(conversation_id) = conversation_id {
        db.prepare_cached(
            "UPDATE conversation SET turns = turns - ?2,
                leaf_id = CASE WHEN EXISTS (SELECT 1 FROM turn WHERE id = leaf_id) THEN leaf_id ELSE ?3 END
             WHERE id = ?1",
        )?
        .execute(params![conversation_id, turns.len() as i64, parent_id])?;
    }
    Ok(RemovalOutcome::Removed(summary))
}

pub(super) fn delete_expired(
    db: &Connection,
    cutoffs: &RetentionCutoffs,
) -> Result<RemovalSummary, StoreError> {
    let mut summary = RemovalSummary::default();
    if let Some(before) = cutoffs.conversations {
        delete_old_conversations(db, before, &mut summary)?;
        delete_old_standalone(db, before, &mut summary)?;
    }
    if let Some(before) = cutoffs.raw {
        let deleted = db
            .prepare_cached("DELETE FROM raw WHERE n IN (SELECT n FROM raw WHERE created_at < ?1 LIMIT ?2)")?
            .execute(params![before, ROWS_PER_COMMIT as i64])?;
        summary.has_more |= deleted == ROWS_PER_COMMIT;
    }
    if let Some(before) = cutoffs.unused_files {
        let removed = files::delete_unused(db, before, ROWS_PER_COMMIT)?;
        summary.has_more |= removed.len() == ROWS_PER_COMMIT;
        summary.files += removed.len() as u64;
        summary.blobs.extend(removed);
    }
    Ok(summary)
}

fn delete_old_conversations(
    db: &Connection,
    before: i64,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let old = rows_to_remove(
        db,
        "SELECT n, id FROM conversation c WHERE updated_at < ?1
            AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL)
         ORDER BY updated_at LIMIT ?2",
        params![before, ROWS_PER_COMMIT as i64],
    )?;
    summary.has_more |= old.len() == ROWS_PER_COMMIT;
    for conversation in old {
        if summary.turns.len() >= TURNS_PER_COMMIT {
            summary.has_more = true;
            break;
        }
        remove_conversation(db, conversation.n, &conversation.id, summary)?;
    }
    Ok(())
}

fn delete_old_standalone(
    db: &Connection,
    before: i64,
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let old = rows_to_remove(
        db,
        "SELECT n, id FROM turn WHERE conversation_id IS NULL AND ended_at < ?1 ORDER BY ended_at LIMIT ?2",
        params![before, TURNS_PER_COMMIT as i64],
    )?;
    summary.has_more |= old.len() == TURNS_PER_COMMIT;
    remove_turns(db, &old, summary)
}

fn rows_to_remove(
    db: &Connection,
    query: &str,
    parameters: impl rusqlite::Params,
) -> Result<Vec<SqliteRemovalRow>, StoreError> {
    let mut query = db.prepare_cached(query)?;
    let rows = query.query_map(parameters, |row| Ok(SqliteRemovalRow { n: row.get(0)?, id: row.get(1)? }))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// With their logs, what was indexed of them, and the files that no other turn uses; calls, raw bytes and keys of
/// idempotency go by themselves.
fn remove_turns(
    db: &Connection,
    turns: &[SqliteRemovalRow],
    summary: &mut RemovalSummary,
) -> Result<(), StoreError> {
    let mut used = BTreeSet::new();
    {
        let mut uses = db.prepare_cached("SELECT file_id FROM file_use WHERE turn_id = ?1")?;
        for turn in turns {
            for file in uses.query_map([&turn.id], |row| row.get::<_, String>(0))? {
                used.insert(file?);
            }
        }
    }
    for turn in turns {
        search::remove_turn_texts(db, turn.n)?;
        db.prepare_cached("DELETE FROM turn WHERE n = ?1")?.execute([turn.n])?;
        log::delete(db, &turn.id)?;
    }
    summary.turns.extend(turns.iter().map(|turn| turn.id.clone()));
    for file in used {
        if let Some(hash) = files::remove_if_unused(db, &file)? {
            summary.files += 1;
            summary.blobs.push(hash);
        }
    }
    Ok(())
}
