//! Turns: begun, ended, found again.

use super::rows::{exists_error, optional_json, to_json, to_sql};
use super::{conversations, search};
use crate::catalog::texts::{preview, replace_nul, validate_id};
use crate::catalog::{
    CatalogLimits, IDEMPOTENCY_MS, IdempotencyKey, NewTurnRow, OpenTurn, PagePosition, PageRequest, PathTurn,
    ResultPage, STATUS_RUNNING, SampleRange, SampleRows, TurnCreation, TurnEnd, TurnFilter, TurnParent,
    TurnPlacement, TurnRow, TurnSample, TurnSummary, TurnTiming,
};
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};

/// All of a turn.
const SELECT_TURN: &str = "SELECT t.*, b.input_text, b.stored, e.adds, e.text, e.usage
    FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n";

/// A turn in short. The texts are cut to their previews when they have been read, which are at most 4 bytes a character.
const SELECT_SUMMARY: &str =
    "SELECT t.*, substr(b.input_text, 1, 200) AS input, substr(e.text, 1, 200) AS answer
    FROM turn t JOIN turn_begin b ON b.n = t.n LEFT JOIN turn_end e ON e.n = t.n";

pub(super) fn create(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    turn: &NewTurnRow,
) -> Result<TurnCreation, StoreError> {
    validate_id("user", user)?;
    validate_id("turn_id", &turn.id)?;
    if let Some(key) = &turn.idempotency {
        validate_id("idempotency_key", &key.key)?;
        delete_expired_keys(db, turn.created_at)?;
        if let Some(before) = by_idempotency_key(db, user, key, turn.created_at)? {
            return Ok(before);
        }
    }
    let (conversation_id, parent) = match &turn.placement {
        TurnPlacement::Standalone => (None, None),
        TurnPlacement::NewConversation { id, title } => {
            conversations::insert(db, limits, user, id, title.as_deref(), turn.created_at)?;
            (Some(id.as_str()), None)
        }
        TurnPlacement::InConversation { conversation_id, parent } => {
            if let Some(rejection) = check_can_begin(db, limits, user, conversation_id, parent.as_ref())? {
                return Ok(rejection);
            }
            (Some(conversation_id.as_str()), parent.as_ref())
        }
    };
    let input_text = replace_nul(&turn.input_text);
    let n = insert(
        db,
        user,
        conversation_id,
        &SqliteTurnInsert {
            id: &turn.id,
            parent,
            message_id: &turn.message_id,
            agent: &turn.agent,
            model: turn.model.as_deref(),
            mode: turn.mode.as_deref(),
            stored: &turn.stored,
            input_text: &input_text,
            created_at: turn.created_at,
        },
    )?;
    if let Some(key) = &turn.idempotency {
        db.prepare_cached(
            "INSERT INTO idempotency (user_id, key, body_hash, turn_id, created_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![user, key.key, key.body_hash, turn.id, turn.created_at])?;
    }
    let mut uses = db.prepare_cached(
        "INSERT OR IGNORE INTO file_use (turn_id, file_id) SELECT ?1, id FROM file WHERE id = ?2 AND user_id = ?3",
    )?;
    for file in &turn.files {
        uses.execute(params![turn.id, file, user])?;
    }
    // What stands in no conversation is not searched.
    if let Some(conversation_id) = conversation_id {
        search::index_input(db, n, &input_text)?;
        conversations::turn_added(db, limits, conversation_id, &turn.id, &input_text, turn.created_at)?;
    }
    Ok(TurnCreation::New)
}

/// Reason that a turn cannot begin in a conversation.
fn check_can_begin(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    conversation_id: &str,
    parent: Option<&TurnParent>,
) -> Result<Option<TurnCreation>, StoreError> {
    let turns: Option<i64> = db
        .prepare_cached("SELECT turns FROM conversation WHERE id = ?1 AND user_id = ?2")?
        .query_row([conversation_id, user], |row| row.get(0))
        .optional()?;
    let Some(turns) = turns else { return Ok(Some(TurnCreation::ConversationNotFound)) };
    if let Some(parent) = parent {
        let parent_exists = db
            .prepare_cached("SELECT 1 FROM turn WHERE id = ?1 AND conversation_id = ?2 AND user_id = ?3")?
            .exists([&parent.turn_id, conversation_id, user])?;
        if !parent_exists {
            return Ok(Some(TurnCreation::ParentNotFound));
        }
    }
    if let Some(turn_id) = running_in(db, conversation_id)? {
        return Ok(Some(TurnCreation::ConversationBusy { turn_id }));
    }
    let max = limits.conversation_turns_max;
    if u64::try_from(turns).unwrap_or_default() >= max {
        return Err(StoreError::OverLimit { limit: "conversation_turns_max", max });
    }
    Ok(None)
}

pub(super) fn running_in(db: &Connection, conversation_id: &str) -> Result<Option<String>, StoreError> {
    Ok(db
        .prepare_cached("SELECT id FROM turn WHERE conversation_id = ?1 AND ended_at IS NULL")?
        .query_row([conversation_id], |row| row.get(0))
        .optional()?)
}

pub(super) struct SqliteTurnInsert<'a> {
    pub id: &'a str,
    pub parent: Option<&'a TurnParent>,
    pub message_id: &'a str,
    pub agent: &'a str,
    pub model: Option<&'a str>,
    pub mode: Option<&'a str>,
    pub stored: &'a str,
    pub input_text: &'a str,
    pub created_at: i64,
}

/// Returns the number of the row.
pub(super) fn insert(
    db: &Connection,
    user: &str,
    conversation_id: Option<&str>,
    new_row: &SqliteTurnInsert<'_>,
) -> Result<i64, StoreError> {
    let parent_seq =
        new_row.parent.and_then(|parent| parent.seq).map(|seq| to_sql("parent_seq", seq)).transpose()?;
    db.prepare_cached(
        "INSERT INTO turn (id, user_id, conversation_id, parent_id, parent_seq, message_id, agent, model, mode, status,
            created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        new_row.id,
        user,
        conversation_id,
        new_row.parent.map(|parent| &parent.turn_id),
        parent_seq,
        new_row.message_id,
        new_row.agent,
        new_row.model,
        new_row.mode,
        STATUS_RUNNING,
        new_row.created_at,
    ])
    .map_err(exists_error("turn"))?;
    let n = db.last_insert_rowid();
    db.prepare_cached("INSERT INTO turn_begin (n, input_text, stored) VALUES (?1, ?2, ?3)")?
        .execute(params![n, new_row.input_text, new_row.stored])?;
    Ok(n)
}

pub(super) fn by_idempotency_key(
    db: &Connection,
    user: &str,
    key: &IdempotencyKey,
    now: i64,
) -> Result<Option<TurnCreation>, StoreError> {
    let before: Option<(String, String)> = db
        .prepare_cached(
            "SELECT body_hash, turn_id FROM idempotency WHERE user_id = ?1 AND key = ?2 AND created_at > ?3",
        )?
        .query_row(params![user, key.key, now.saturating_sub(IDEMPOTENCY_MS)], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let Some((body_hash, turn_id)) = before else { return Ok(None) };
    if body_hash != key.body_hash {
        return Ok(Some(TurnCreation::KeyReused));
    }
    Ok(get(db, user, &turn_id)?.map(|turn| TurnCreation::Replayed(Box::new(turn))))
}

/// Keys that are known no more make room.
fn delete_expired_keys(db: &Connection, now: i64) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM idempotency WHERE created_at <= ?1")?
        .execute([now.saturating_sub(IDEMPOTENCY_MS)])?;
    Ok(())
}

pub(in crate::sqlite) fn get(
    db: &Connection,
    user: &str,
    turn_id: &str,
) -> Result<Option<TurnRow>, StoreError> {
    Ok(db
        .prepare_cached(&format!("{SELECT_TURN} WHERE t.id = ?1 AND t.user_id = ?2"))?
        .query_row([turn_id, user], turn_row)
        .optional()?)
}

pub(super) fn end(db: &Connection, user: &str, turn_id: &str, end: &TurnEnd) -> Result<bool, StoreError> {
    if end.status == STATUS_RUNNING {
        return Err(StoreError::invalid("status", "a turn that runs has not ended"));
    }
    let ended: Option<(i64, Option<String>)> = db
        .prepare_cached(
            "UPDATE turn SET status = ?3, ended_at = ?4, first_content_ms = ?5, writing_ms = ?6, output_tokens = ?7
             WHERE id = ?1 AND user_id = ?2 AND ended_at IS NULL RETURNING n, conversation_id",
        )?
        .query_row(
            params![
                turn_id,
                user,
                end.status,
                end.ended_at,
                end.pace.first_content_ms,
                end.pace.writing_ms,
                end.pace.output_tokens,
            ],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((n, conversation_id)) = ended else { return Ok(false) };
    let text = replace_nul(&end.text);
    let usage = end.usage.as_ref().map(to_json).transpose()?;
    db.prepare_cached("INSERT INTO turn_end (n, adds, text, usage) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![n, end.adds, text, usage])?;
    if let Some(conversation_id) = conversation_id {
        search::index_answer(db, n, &text)?;
        conversations::touch(db, &conversation_id, end.ended_at)?;
    }
    Ok(true)
}

pub(in crate::sqlite) fn list(
    db: &Connection,
    user: &str,
    filter: &TurnFilter,
    page: &PageRequest,
) -> Result<ResultPage<TurnSummary>, StoreError> {
    let position = page.position()?;
    let mut query = db.prepare_cached(&format!(
        "{SELECT_SUMMARY} WHERE t.user_id = :user
            AND (:conversation IS NULL OR t.conversation_id = :conversation)
            AND (:agent IS NULL OR t.agent = :agent)
            AND (:status IS NULL OR t.status = :status)
            AND (:at IS NULL OR (t.created_at, t.id) < (:at, :id))
         ORDER BY t.created_at DESC, t.id DESC LIMIT :rows"
    ))?;
    let rows = query.query_map(
        named_params! {
            ":user": user,
            ":conversation": filter.conversation_id,
            ":agent": filter.agent,
            ":status": filter.status,
            ":at": position.as_ref().map(|position| position.at),
            ":id": position.as_ref().map(|position| &position.id),
            ":rows": page.rows() + 1,
        },
        turn_summary,
    )?;
    let turns = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(ResultPage::from_rows(turns, page.rows(), |turn| PagePosition {
        at: turn.created_at,
        id: turn.id.clone(),
    }))
}

pub(in crate::sqlite) fn tree(
    db: &Connection,
    user: &str,
    conversation_id: &str,
) -> Result<Vec<TurnSummary>, StoreError> {
    let mut query = db.prepare_cached(&format!(
        "{SELECT_SUMMARY} WHERE t.conversation_id = ?1 AND t.user_id = ?2 ORDER BY t.created_at, t.n"
    ))?;
    Ok(query.query_map([conversation_id, user], turn_summary)?.collect::<Result<_, _>>()?)
}

/// The way is walked from the turn to the beginning; where a turn is cut, its successor on the way says.
pub(in crate::sqlite) fn path(
    db: &Connection,
    user: &str,
    turn_id: &str,
) -> Result<Vec<PathTurn>, StoreError> {
    let mut query = db.prepare_cached(
        "WITH RECURSIVE ancestors (n, id, parent_id, parent_seq, cut_at, length) AS (
            SELECT n, id, parent_id, parent_seq, NULL, 1 FROM turn WHERE id = ?1 AND user_id = ?2
            UNION ALL
            SELECT t.n, t.id, t.parent_id, t.parent_seq, ancestors.parent_seq, ancestors.length + 1
            FROM ancestors JOIN turn t ON t.id = ancestors.parent_id AND t.user_id = ?2
         )
         SELECT ancestors.id, ancestors.cut_at, e.adds FROM ancestors LEFT JOIN turn_end e ON e.n = ancestors.n
         ORDER BY ancestors.length DESC",
    )?;
    let turns = query.query_map([turn_id, user], |row| {
        Ok(PathTurn {
            id: row.get("id")?,
            cut_at: super::rows::optional_unsigned(row, "cut_at")?,
            adds: row.get("adds")?,
        })
    })?;
    Ok(turns.collect::<Result<_, _>>()?)
}

pub(super) fn open_turns(db: &Connection) -> Result<Vec<OpenTurn>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT t.id, t.user_id, t.conversation_id, b.stored FROM turn t JOIN turn_begin b ON b.n = t.n
         WHERE t.ended_at IS NULL ORDER BY t.n",
    )?;
    let turns = query.query_map([], |row| {
        Ok(OpenTurn { id: row.get(0)?, user: row.get(1)?, conversation_id: row.get(2)?, stored: row.get(3)? })
    })?;
    Ok(turns.collect::<Result<_, _>>()?)
}

fn parent(row: &Row<'_>) -> rusqlite::Result<Option<TurnParent>> {
    let Some(turn_id) = row.get("parent_id")? else { return Ok(None) };
    Ok(Some(TurnParent { turn_id, seq: super::rows::optional_unsigned(row, "parent_seq")? }))
}

fn turn_row(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    let ended_at: Option<i64> = row.get("ended_at")?;
    let end = match ended_at {
        None => None,
        Some(ended_at) => Some(TurnEnd {
            status: row.get("status")?,
            adds: row.get("adds")?,
            text: row.get("text")?,
            usage: optional_json(row, "usage")?,
            pace: pace(row)?,
            ended_at,
        }),
    };
    Ok(TurnRow {
        id: row.get("id")?,
        user: row.get("user_id")?,
        conversation_id: row.get("conversation_id")?,
        parent: parent(row)?,
        message_id: row.get("message_id")?,
        stored: row.get("stored")?,
        agent: row.get("agent")?,
        model: row.get("model")?,
        mode: row.get("mode")?,
        input_text: row.get("input_text")?,
        created_at: row.get("created_at")?,
        end,
    })
}

fn pace(row: &Row<'_>) -> rusqlite::Result<TurnTiming> {
    Ok(TurnTiming {
        first_content_ms: row.get("first_content_ms")?,
        writing_ms: row.get("writing_ms")?,
        output_tokens: row.get("output_tokens")?,
    })
}

/// Turns of a time as figures.
pub(super) fn samples(
    db: &Connection,
    user: &str,
    range: &SampleRange,
) -> Result<SampleRows<TurnSample>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT created_at, status, first_content_ms, writing_ms, output_tokens FROM turn
         WHERE user_id = ?1 AND created_at >= ?2 AND created_at < ?3 ORDER BY created_at DESC, id DESC LIMIT ?4",
    )?;
    let range_params = params![user, range.from, range.until, i64::from(range.rows_max) + 1];
    let rows = query.query_map(range_params, |row| {
        Ok(TurnSample { created_at: row.get("created_at")?, status: row.get("status")?, pace: pace(row)? })
    })?;
    Ok(SampleRows::from_rows(rows.collect::<Result<_, _>>()?, range.rows_max))
}

fn turn_summary(row: &Row<'_>) -> rusqlite::Result<TurnSummary> {
    let input: String = row.get("input")?;
    let answer: Option<String> = row.get("answer")?;
    Ok(TurnSummary {
        id: row.get("id")?,
        conversation_id: row.get("conversation_id")?,
        parent: parent(row)?,
        message_id: row.get("message_id")?,
        agent: row.get("agent")?,
        model: row.get("model")?,
        input: preview(&input),
        answer: preview(&answer.unwrap_or_default()),
        status: row.get("status")?,
        created_at: row.get("created_at")?,
        ended_at: row.get("ended_at")?,
    })
}
