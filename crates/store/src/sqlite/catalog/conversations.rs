//! Conversations: begun, named, listed, taken in from elsewhere.

use super::rows::{exists_error, unsigned};
use super::turns::{self, SqliteTurnInsert};
use super::{calls, files, search};
use crate::catalog::texts::{auto_title, normalize_title as shown_title, replace_nul, validate_id};
use crate::catalog::{
    CatalogLimits, ConversationRow, ConversationSummary, ImportedConversation, NewConversation, PagePosition,
    PageRequest, ResultPage, TitleSource, TurnRow,
};
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use std::collections::HashSet;

const SUMMARY: &str =
    "SELECT c.*, (SELECT t.id FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL) AS running
    FROM conversation c";

pub(super) fn create(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    new: &NewConversation,
) -> Result<ConversationRow, StoreError> {
    validate_id("user", user)?;
    insert(db, limits, user, &new.id, new.title.as_deref(), new.created_at)?;
    let row = get(db, user, &new.id)?.map(|summary| summary.conversation);
    row.ok_or_else(|| StoreError::failed("a conversation is not there after it was begun"))
}

pub(super) fn insert(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    id: &str,
    title: Option<&str>,
    created_at: i64,
) -> Result<(), StoreError> {
    validate_id("conversation_id", id)?;
    let title = title.map(|title| shown_title(title, limits.title_chars_max)).unwrap_or_default();
    let title_by = if title.is_empty() { TitleSource::FirstInput } else { TitleSource::UserGiven };
    db.prepare_cached(
        "INSERT INTO conversation (id, user_id, title, title_by, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
    )?
    .execute(params![id, user, title, title_by_to_sql(title_by), created_at])
    .map_err(exists_error("conversation"))?;
    search::index_title(db, db.last_insert_rowid(), &title)
}

/// A turn has been added: it is the leaf, and its input may give the title.
pub(super) fn turn_added(
    db: &Connection,
    limits: &CatalogLimits,
    id: &str,
    turn_id: &str,
    input_text: &str,
    at: i64,
) -> Result<(), StoreError> {
    let (n, title, title_by): (i64, String, i64) = db
        .prepare_cached(
            "UPDATE conversation SET leaf_id = ?2, turns = turns + 1, updated_at = max(updated_at, ?3) WHERE id = ?1
             RETURNING n, title, title_by",
        )?
        .query_row(params![id, turn_id, at], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if title.is_empty() && title_by == title_by_to_sql(TitleSource::FirstInput) {
        set_title(
            db,
            n,
            &shown_title(&auto_title(input_text), limits.title_chars_max),
            TitleSource::FirstInput,
        )?;
    }
    Ok(())
}

/// Something has happened in it.
pub(super) fn touch(db: &Connection, id: &str, at: i64) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE conversation SET updated_at = max(updated_at, ?2) WHERE id = ?1")?
        .execute(params![id, at])?;
    Ok(())
}

fn set_title(db: &Connection, n: i64, title: &str, title_by: TitleSource) -> Result<(), StoreError> {
    db.prepare_cached("UPDATE conversation SET title = ?2, title_by = ?3 WHERE n = ?1")?.execute(params![
        n,
        title,
        title_by_to_sql(title_by)
    ])?;
    search::remove_title(db, n)?;
    search::index_title(db, n, title)
}

pub(in crate::sqlite) fn get(
    db: &Connection,
    user: &str,
    id: &str,
) -> Result<Option<ConversationSummary>, StoreError> {
    Ok(db
        .prepare_cached(&format!("{SUMMARY} WHERE c.id = ?1 AND c.user_id = ?2"))?
        .query_row([id, user], summary)
        .optional()?)
}

/// A conversation that is known to be there.
pub(super) fn by_number(db: &Connection, n: i64) -> Result<ConversationSummary, StoreError> {
    Ok(db.prepare_cached(&format!("{SUMMARY} WHERE c.n = ?1"))?.query_row([n], summary)?)
}

pub(super) fn list(
    db: &Connection,
    user: &str,
    page: &PageRequest,
) -> Result<ResultPage<ConversationSummary>, StoreError> {
    let position = page.position()?;
    let mut query = db.prepare_cached(&format!(
        "{SUMMARY} WHERE c.user_id = :user AND (:at IS NULL OR (c.updated_at, c.id) < (:at, :id))
         ORDER BY c.updated_at DESC, c.id DESC LIMIT :rows"
    ))?;
    let rows = query.query_map(
        named_params! {
            ":user": user,
            ":at": position.as_ref().map(|position| position.at),
            ":id": position.as_ref().map(|position| &position.id),
            ":rows": page.rows() + 1,
        },
        summary,
    )?;
    let items = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(ResultPage::from_rows(items, page.rows(), |item| PagePosition {
        at: item.conversation.updated_at,
        id: item.conversation.id.clone(),
    }))
}

pub(super) fn rename(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    id: &str,
    title: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let n: Option<i64> = db
        .prepare_cached("SELECT n FROM conversation WHERE id = ?1 AND user_id = ?2")?
        .query_row([id, user], |row| row.get(0))
        .optional()?;
    let Some(n) = n else { return Ok(false) };
    let title = shown_title(title, limits.title_chars_max);
    if title.is_empty() {
        let input: Option<String> = db
            .prepare_cached(
                "SELECT b.input_text FROM turn t JOIN turn_begin b ON b.n = t.n WHERE t.conversation_id = ?1
                 ORDER BY t.created_at, t.n LIMIT 1",
            )?
            .query_row([id], |row| row.get(0))
            .optional()?;
        let words = auto_title(&input.unwrap_or_default());
        set_title(db, n, &shown_title(&words, limits.title_chars_max), TitleSource::FirstInput)?;
    } else {
        set_title(db, n, &title, TitleSource::UserGiven)?;
    }
    touch(db, id, now)?;
    Ok(true)
}

pub(super) fn set_leaf(db: &Connection, user: &str, id: &str, turn_id: &str) -> Result<bool, StoreError> {
    let changed = db
        .prepare_cached(
            "UPDATE conversation SET leaf_id = ?3 WHERE id = ?1 AND user_id = ?2
             AND EXISTS (SELECT 1 FROM turn WHERE id = ?3 AND conversation_id = ?1 AND user_id = ?2)",
        )?
        .execute([id, user, turn_id])?;
    Ok(changed > 0)
}

pub(super) fn import(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    imported: &ImportedConversation,
) -> Result<(), StoreError> {
    validate_id("user", user)?;
    let ImportedConversation { conversation, turns, calls, files } = imported;
    let max = limits.conversation_turns_max;
    if turns.len() as u64 > max {
        return Err(StoreError::OverLimit { limit: "conversation_turns_max", max });
    }
    let id = &conversation.id;
    let title = (conversation.title_by == TitleSource::UserGiven).then_some(conversation.title.as_str());
    insert(db, limits, user, id, title, conversation.created_at)?;
    let mut before = HashSet::new();
    for turn in turns {
        import_turn(db, user, id, turn, &before)?;
        before.insert(turn.id.as_str());
        turn_added(db, limits, id, &turn.id, &turn.input_text, turn.created_at)?;
    }
    if let Some(leaf) = &conversation.leaf_id {
        if !before.contains(leaf.as_str()) {
            return Err(StoreError::invalid("leaf_id", "it is no turn of the conversation"));
        }
        set_leaf(db, user, id, leaf)?;
    }
    if let Some(orphan) = calls.iter().find(|call| !before.contains(call.turn_id.as_str())) {
        return Err(StoreError::invalid(
            "calls",
            format!("`{}` is in no turn of the conversation", orphan.tool_id),
        ));
    }
    calls::put(db, user, calls)?;
    for (turn, file) in files.iter().filter(|(turn, _)| before.contains(turn.as_str())) {
        files::record_use(db, user, turn, file)?;
    }
    touch(db, id, conversation.updated_at)?;
    // Much has come at once: the next one who searches does not wait for it.
    search::index(db, usize::MAX)?;
    Ok(())
}

fn import_turn(
    db: &Connection,
    user: &str,
    conversation_id: &str,
    turn: &TurnRow,
    before: &HashSet<&str>,
) -> Result<(), StoreError> {
    validate_id("turn_id", &turn.id)?;
    let Some(end) = &turn.end else {
        return Err(StoreError::invalid("turns", format!("`{}` has not ended", turn.id)));
    };
    if let Some(parent) = &turn.parent
        && !before.contains(parent.turn_id.as_str())
    {
        return Err(StoreError::invalid("turns", format!("what `{}` continues is not before it", turn.id)));
    }
    let input_text = replace_nul(&turn.input_text);
    let n = turns::insert(
        db,
        user,
        Some(conversation_id),
        &SqliteTurnInsert {
            id: &turn.id,
            parent: turn.parent.as_ref(),
            message_id: &turn.message_id,
            agent: &turn.agent,
            model: turn.model.as_deref(),
            mode: turn.mode.as_deref(),
            stored: &turn.stored,
            input_text: &input_text,
            created_at: turn.created_at,
        },
    )?;
    search::index_input(db, n, &input_text)?;
    turns::end(db, user, &turn.id, end)?;
    Ok(())
}

fn title_by_to_sql(title_by: TitleSource) -> i64 {
    match title_by {
        TitleSource::FirstInput => 0,
        TitleSource::UserGiven => 1,
    }
}

fn summary(row: &Row<'_>) -> rusqlite::Result<ConversationSummary> {
    let title_by = match row.get::<_, i64>("title_by")? {
        0 => TitleSource::FirstInput,
        _ => TitleSource::UserGiven,
    };
    Ok(ConversationSummary {
        conversation: ConversationRow {
            id: row.get("id")?,
            user: row.get("user_id")?,
            title: row.get("title")?,
            title_by,
            leaf_id: row.get("leaf_id")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        },
        turns: unsigned(row, "turns")?,
        running_turn_id: row.get("running")?,
    })
}
