//! Conversations: begun, named, listed, taken in from elsewhere.

use super::rows::{exists_error, map_rows, sanitize_param, unsigned};
use super::turns::{self, PostgresTurnInsert};
use super::{DbConnection, calls, files, search};
use crate::catalog::texts::{auto_title, normalize_title as shown_title, replace_nul, validate_id};
use crate::catalog::{
    CatalogLimits, ConversationRow, ConversationSummary, ImportedConversation, NewConversation, PagePosition,
    PageRequest, ResultPage, TitleSource, TurnRow,
};
use crate::error::StoreError;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};
use std::collections::HashSet;

const SUMMARY: &str =
    "SELECT c.*, (SELECT t.id FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL) AS running
    FROM conversation c";

pub(super) async fn create(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    user: &str,
    new: &NewConversation,
) -> Result<ConversationRow, StoreError> {
    validate_id("user", user)?;
    insert(db, limits, user, &new.id, new.title.as_deref(), new.created_at).await?;
    let row = get(db, user, &new.id).await?.map(|summary| summary.conversation);
    row.ok_or_else(|| StoreError::failed("a conversation is not there after it was begun"))
}

pub(super) async fn insert(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    user: &str,
    id: &str,
    title: Option<&str>,
    created_at: i64,
) -> Result<(), StoreError> {
    validate_id("conversation_id", id)?;
    let title = title.map(|title| shown_title(title, limits.title_chars_max)).unwrap_or_default();
    let title_by = if title.is_empty() { TitleSource::FirstInput } else { TitleSource::UserGiven };
    sqlx::query(
        "INSERT INTO conversation (id, user_id, title, title_lower, title_by, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6)",
    )
    .bind(id)
    .bind(user)
    .bind(&title)
    .bind(search::folded(&title))
    .bind(title_by_to_sql(title_by))
    .bind(created_at)
    .execute(db)
    .await
    .map_err(exists_error("conversation"))?;
    Ok(())
}

/// A turn has been added: it is the leaf, and its input may give the title.
pub(super) async fn turn_added(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    id: &str,
    turn_id: &str,
    input_text: &str,
    at: i64,
) -> Result<(), StoreError> {
    let (title, title_by): (String, i16) = sqlx::query_as(
        "UPDATE conversation SET leaf_id = $2, turns = turns + 1, updated_at = greatest(updated_at, $3) WHERE id = $1
         RETURNING title, title_by",
    )
    .bind(id)
    .bind(turn_id)
    .bind(at)
    .fetch_one(&mut *db)
    .await?;
    if title.is_empty() && title_by == title_by_to_sql(TitleSource::FirstInput) {
        let words = shown_title(&auto_title(input_text), limits.title_chars_max);
        set_title(db, id, &words, TitleSource::FirstInput).await?;
    }
    Ok(())
}

/// Something has happened in it.
pub(super) async fn touch(db: DbConnection<'_>, id: &str, at: i64) -> Result<(), StoreError> {
    sqlx::query("UPDATE conversation SET updated_at = greatest(updated_at, $2) WHERE id = $1")
        .bind(id)
        .bind(at)
        .execute(db)
        .await?;
    Ok(())
}

async fn set_title(
    db: DbConnection<'_>,
    id: &str,
    title: &str,
    title_by: TitleSource,
) -> Result<(), StoreError> {
    sqlx::query("UPDATE conversation SET title = $2, title_lower = $3, title_by = $4 WHERE id = $1")
        .bind(id)
        .bind(title)
        .bind(search::folded(title))
        .bind(title_by_to_sql(title_by))
        .execute(db)
        .await?;
    Ok(())
}

pub(in crate::postgres) async fn get(
    db: DbConnection<'_>,
    user: &str,
    id: &str,
) -> Result<Option<ConversationSummary>, StoreError> {
    let row = sqlx::query(AssertSqlSafe(format!("{SUMMARY} WHERE c.id = $1 AND c.user_id = $2")))
        .bind(sanitize_param(id))
        .bind(sanitize_param(user))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(summary).transpose()
}

pub(super) async fn list(
    db: DbConnection<'_>,
    user: &str,
    page: &PageRequest,
) -> Result<ResultPage<ConversationSummary>, StoreError> {
    let position = page.position()?;
    let rows = sqlx::query(AssertSqlSafe(format!(
        "{SUMMARY} WHERE c.user_id = $1 AND ($2::bigint IS NULL OR (c.updated_at, c.id) < ($2, $3))
         ORDER BY c.updated_at DESC, c.id DESC LIMIT $4"
    )))
    .bind(sanitize_param(user))
    .bind(position.as_ref().map(|position| position.at))
    .bind(position.as_ref().map(|position| position.id.clone()))
    .bind(i64::from(page.rows() + 1))
    .fetch_all(db)
    .await?;
    Ok(ResultPage::from_rows(map_rows(&rows, summary)?, page.rows(), position_of))
}

/// Those with these ids, in the order of lists.
pub(super) async fn by_ids(
    db: DbConnection<'_>,
    user: &str,
    ids: &[String],
) -> Result<Vec<ConversationSummary>, StoreError> {
    let rows = sqlx::query(AssertSqlSafe(format!(
        "{SUMMARY} WHERE c.user_id = $1 AND c.id = ANY ($2) ORDER BY c.updated_at DESC, c.id DESC"
    )))
    .bind(sanitize_param(user))
    .bind(ids)
    .fetch_all(db)
    .await?;
    map_rows(&rows, summary)
}

fn position_of(item: &ConversationSummary) -> PagePosition {
    PagePosition { at: item.conversation.updated_at, id: item.conversation.id.clone() }
}

pub(super) async fn rename(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    user: &str,
    id: &str,
    title: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let is_present = sqlx::query("SELECT 1 FROM conversation WHERE id = $1 AND user_id = $2 FOR UPDATE")
        .bind(sanitize_param(id))
        .bind(sanitize_param(user))
        .fetch_optional(&mut *db)
        .await?;
    if is_present.is_none() {
        return Ok(false);
    }
    let title = shown_title(title, limits.title_chars_max);
    if title.is_empty() {
        let input: Option<String> = sqlx::query_scalar(
            "SELECT b.input_text FROM turn t JOIN turn_begin b ON b.n = t.n WHERE t.conversation_id = $1
             ORDER BY t.created_at, t.n LIMIT 1",
        )
        .bind(id)
        .fetch_optional(&mut *db)
        .await?;
        let words = auto_title(&input.unwrap_or_default());
        set_title(db, id, &shown_title(&words, limits.title_chars_max), TitleSource::FirstInput).await?;
    } else {
        set_title(db, id, &title, TitleSource::UserGiven).await?;
    }
    touch(db, id, now).await?;
    Ok(true)
}

pub(super) async fn set_leaf(
    db: DbConnection<'_>,
    user: &str,
    id: &str,
    turn_id: &str,
) -> Result<bool, StoreError> {
    let changed = sqlx::query(
        "UPDATE conversation SET leaf_id = $3 WHERE id = $1 AND user_id = $2
         AND EXISTS (SELECT 1 FROM turn WHERE id = $3 AND conversation_id = $1 AND user_id = $2)",
    )
    .bind(sanitize_param(id))
    .bind(sanitize_param(user))
    .bind(sanitize_param(turn_id))
    .execute(db)
    .await?;
    Ok(changed.rows_affected() > 0)
}

pub(super) async fn import(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    replica: i32,
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
    insert(db, limits, user, id, title, conversation.created_at).await?;
    let mut before = HashSet::new();
    for turn in turns {
        import_turn(db, replica, user, id, turn, &before).await?;
        before.insert(turn.id.as_str());
        turn_added(db, limits, id, &turn.id, &turn.input_text, turn.created_at).await?;
    }
    if let Some(leaf) = &conversation.leaf_id {
        if !before.contains(leaf.as_str()) {
            return Err(StoreError::invalid("leaf_id", "it is no turn of the conversation"));
        }
        set_leaf(db, user, id, leaf).await?;
    }
    if let Some(orphan) = calls.iter().find(|call| !before.contains(call.turn_id.as_str())) {
        return Err(StoreError::invalid(
            "calls",
            format!("`{}` is in no turn of the conversation", orphan.tool_id),
        ));
    }
    calls::put(db, user, calls).await?;
    for (turn, file) in files.iter().filter(|(turn, _)| before.contains(turn.as_str())) {
        files::record_use(db, user, turn, file).await?;
    }
    touch(db, id, conversation.updated_at).await
}

async fn import_turn(
    db: DbConnection<'_>,
    replica: i32,
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
    let begin = PostgresTurnInsert {
        id: &turn.id,
        parent: turn.parent.as_ref(),
        message_id: &turn.message_id,
        agent: &turn.agent,
        model: turn.model.as_deref(),
        mode: turn.mode.as_deref(),
        stored: &turn.stored,
        input_text: &input_text,
        created_at: turn.created_at,
    };
    turns::insert(db, replica, user, Some(conversation_id), &begin).await?;
    turns::end(db, user, &turn.id, end).await?;
    Ok(())
}

fn title_by_to_sql(title_by: TitleSource) -> i16 {
    match title_by {
        TitleSource::FirstInput => 0,
        TitleSource::UserGiven => 1,
    }
}

fn summary(row: &PgRow) -> Result<ConversationSummary, StoreError> {
    let title_by = match row.try_get::<i16, _>("title_by")? {
        0 => TitleSource::FirstInput,
        _ => TitleSource::UserGiven,
    };
    Ok(ConversationSummary {
        conversation: ConversationRow {
            id: row.try_get("id")?,
            user: row.try_get("user_id")?,
            title: row.try_get("title")?,
            title_by,
            leaf_id: row.try_get("leaf_id")?,
            created_at: row.try_get("created_at")?,
            updated_at: row.try_get("updated_at")?,
        },
        turns: unsigned(row, "turns")?,
        running_turn_id: row.try_get("running")?,
    })
}
