//! What goes, and what goes with it.

use super::turns::running_in;
use super::{files, search};
use crate::catalog::{ForgetBefore, Gone, Removed};
use crate::error::StoreError;
use crate::sqlite::journal;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;

/// About how many turns are removed in one commit when old ones are forgotten: others wait for the writer meanwhile.
const TURNS_AT_ONCE: usize = 200;
/// Likewise for conversations without many turns, raw answers and files.
const ROWS_AT_ONCE: usize = 200;

/// A turn that goes.
struct Going {
    n: i64,
    id: String,
}

pub(super) fn conversation(db: &Connection, user: &str, id: &str) -> Result<Removed, StoreError> {
    let n: Option<i64> = db
        .prepare_cached("SELECT n FROM conversation WHERE id = ?1 AND user_id = ?2")?
        .query_row([id, user], |row| row.get(0))
        .optional()?;
    let Some(n) = n else { return Ok(Removed::Absent) };
    if let Some(turn_id) = running_in(db, id)? {
        return Ok(Removed::StillRunning { turn_id });
    }
    let mut gone = Gone::default();
    remove_conversation(db, n, id, &mut gone)?;
    Ok(Removed::Gone(gone))
}

fn remove_conversation(db: &Connection, n: i64, id: &str, gone: &mut Gone) -> Result<(), StoreError> {
    let turns = going(db, "SELECT n, id FROM turn WHERE conversation_id = ?1 ORDER BY n", [id])?;
    remove_turns(db, &turns, gone)?;
    search::forget_title(db, n)?;
    // With it goes what was remembered for it.
    db.prepare_cached("DELETE FROM conversation WHERE n = ?1")?.execute([n])?;
    gone.conversations += 1;
    Ok(())
}

pub(super) fn turn(db: &Connection, user: &str, turn_id: &str) -> Result<Removed, StoreError> {
    type Found = (Option<String>, Option<String>);
    let found: Option<Found> = db
        .prepare_cached("SELECT conversation_id, parent_id FROM turn WHERE id = ?1 AND user_id = ?2")?
        .query_row([turn_id, user], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((conversation_id, parent_id)) = found else { return Ok(Removed::Absent) };
    let turns = going(
        db,
        "WITH RECURSIVE behind (n, id) AS (
            SELECT n, id FROM turn WHERE id = ?1
            UNION ALL
            SELECT t.n, t.id FROM behind JOIN turn t ON t.conversation_id = ?2 AND t.parent_id = behind.id
         ) SELECT n, id FROM behind",
        params![turn_id, conversation_id],
    )?;
    let mut running = db.prepare_cached("SELECT 1 FROM turn WHERE n = ?1 AND ended_at IS NULL")?;
    for turn in &turns {
        if running.exists([turn.n])? {
            return Ok(Removed::StillRunning { turn_id: turn.id.clone() });
        }
    }
    let mut gone = Gone::default();
    remove_turns(db, &turns, &mut gone)?;
    if let Some(conversation_id) = conversation_id {
        db.prepare_cached(
            "UPDATE conversation SET turns = turns - ?2,
                leaf_id = CASE WHEN EXISTS (SELECT 1 FROM turn WHERE id = leaf_id) THEN leaf_id ELSE ?3 END
             WHERE id = ?1",
        )?
        .execute(params![conversation_id, turns.len() as i64, parent_id])?;
    }
    Ok(Removed::Gone(gone))
}

pub(super) fn forget_before(db: &Connection, times: &ForgetBefore) -> Result<Gone, StoreError> {
    let mut gone = Gone::default();
    if let Some(before) = times.conversations {
        forget_conversations(db, before, &mut gone)?;
        forget_alone(db, before, &mut gone)?;
    }
    if let Some(before) = times.raw {
        let forgotten = db
            .prepare_cached("DELETE FROM raw WHERE n IN (SELECT n FROM raw WHERE created_at < ?1 LIMIT ?2)")?
            .execute(params![before, ROWS_AT_ONCE as i64])?;
        gone.more |= forgotten == ROWS_AT_ONCE;
    }
    if let Some(before) = times.unused_files {
        let removed = files::forget_unused(db, before, ROWS_AT_ONCE)?;
        gone.more |= removed.len() == ROWS_AT_ONCE;
        gone.files += removed.len() as u64;
        gone.blobs.extend(removed);
    }
    Ok(gone)
}

fn forget_conversations(db: &Connection, before: i64, gone: &mut Gone) -> Result<(), StoreError> {
    let old = going(
        db,
        "SELECT n, id FROM conversation c WHERE updated_at < ?1
            AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL)
         ORDER BY updated_at LIMIT ?2",
        params![before, ROWS_AT_ONCE as i64],
    )?;
    gone.more |= old.len() == ROWS_AT_ONCE;
    for conversation in old {
        if gone.turns.len() >= TURNS_AT_ONCE {
            gone.more = true;
            break;
        }
        remove_conversation(db, conversation.n, &conversation.id, gone)?;
    }
    Ok(())
}

fn forget_alone(db: &Connection, before: i64, gone: &mut Gone) -> Result<(), StoreError> {
    let old = going(
        db,
        "SELECT n, id FROM turn WHERE conversation_id IS NULL AND ended_at < ?1 ORDER BY ended_at LIMIT ?2",
        params![before, TURNS_AT_ONCE as i64],
    )?;
    gone.more |= old.len() == TURNS_AT_ONCE;
    remove_turns(db, &old, gone)
}

fn going(db: &Connection, query: &str, given: impl rusqlite::Params) -> Result<Vec<Going>, StoreError> {
    let mut query = db.prepare_cached(query)?;
    let rows = query.query_map(given, |row| Ok(Going { n: row.get(0)?, id: row.get(1)? }))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// With their logs, what was indexed of them, and the files that no other turn uses; calls, raw bytes and keys of
/// idempotency go by themselves.
fn remove_turns(db: &Connection, turns: &[Going], gone: &mut Gone) -> Result<(), StoreError> {
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
        search::forget_said(db, turn.n)?;
        db.prepare_cached("DELETE FROM turn WHERE n = ?1")?.execute([turn.n])?;
        journal::forget(db, &turn.id)?;
    }
    gone.turns.extend(turns.iter().map(|turn| turn.id.clone()));
    for file in used {
        if let Some(hash) = files::remove_if_unused(db, &file)? {
            gone.files += 1;
            gone.blobs.push(hash);
        }
    }
    Ok(())
}
