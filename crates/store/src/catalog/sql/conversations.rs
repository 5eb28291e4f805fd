//! Conversations: created, renamed, listed, imported.

use super::turns::{self, TurnInsert};
use super::{
    CatalogDb, CatalogRow, IndexChange, bind, calls, files, page_params, query_one, query_optional, sql,
};
use crate::catalog::texts::{auto_title, normalize_title, replace_nul, to_lowercase, validate_id};
use crate::catalog::{
    CatalogLimits, ConversationRow, ConversationSummary, ImportedConversation, NewConversation, PagePosition,
    PageRequest, ResultPage, TitleSource, TurnRow,
};
use crate::error::StoreError;
use std::collections::HashSet;

/// Reads conversations with the turn that runs in each.
macro_rules! select_summary {
    ($condition:literal $(, in $number:literal, $after:literal)?) => {
        sql!(select_summary!(@text $condition) $(, in $number, $after)?)
    };
    (@text $condition:literal) => {
        concat!(
            "SELECT c.*, (SELECT t.id FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL) AS running
             FROM conversation c WHERE ",
            $condition
        )
    };
}

pub(crate) async fn create(
    db: &mut impl CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    new: &NewConversation,
) -> Result<ConversationRow, StoreError> {
    validate_id("user", user)?;
    insert(db, limits, user, &new.id, new.title.as_deref(), new.created_at).await?;
    let row = get(db, user, &new.id).await?.map(|summary| summary.conversation);
    row.ok_or_else(|| StoreError::failed("a conversation is absent after it was created"))
}

pub(super) async fn insert(
    db: &mut impl CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    id: &str,
    title: Option<&str>,
    created_at: i64,
) -> Result<(), StoreError> {
    validate_id("conversation_id", id)?;
    let title = title.map(|title| normalize_title(title, limits.title_chars_max)).unwrap_or_default();
    let title_by = if title.is_empty() { TitleSource::FirstInput } else { TitleSource::UserGiven };
    let insert = sql!(
        sqlite: "INSERT INTO conversation (id, user_id, title, title_by, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $5) RETURNING n",
        postgres: "INSERT INTO conversation (id, user_id, title, title_by, created_at, updated_at, title_lower)
             VALUES ($1, $2, $3, $4, $5, $5, $6) RETURNING n"
    )
    .or_exists("conversation");
    let params = bind![id, user, &title, title_by_to_sql(title_by), created_at, to_lowercase(&title)];
    let n: i64 = query_one(db, &insert, params, |row| row.get("n")).await?;
    db.update_index(IndexChange::Title(n, &title)).await
}

/// A turn has been added: it is the leaf, and its input may give the title.
pub(super) async fn turn_added(
    db: &mut impl CatalogDb,
    limits: &CatalogLimits,
    id: &str,
    turn_id: &str,
    input_text: &str,
    at: i64,
) -> Result<(), StoreError> {
    let update = sql!(
        "UPDATE conversation SET leaf_id = $2, turns = turns + 1,
            updated_at = CASE WHEN updated_at < $3 THEN $3 ELSE updated_at END
         WHERE id = $1 RETURNING n, title, title_by"
    );
    let (n, title, source): (i64, String, TitleSource) =
        query_one(db, &update, bind![id, turn_id, at], |row| {
            Ok((row.get("n")?, row.get("title")?, title_by(row)?))
        })
        .await?;
    if title.is_empty() && source == TitleSource::FirstInput {
        let words = normalize_title(&auto_title(input_text), limits.title_chars_max);
        set_title(db, n, &words, TitleSource::FirstInput).await?;
    }
    Ok(())
}

/// Moves the time of the last event forward.
pub(super) async fn touch(db: &mut impl CatalogDb, id: &str, at: i64) -> Result<(), StoreError> {
    let touch = sql!("UPDATE conversation SET updated_at = $2 WHERE id = $1 AND updated_at < $2");
    db.execute(&touch, bind![id, at]).await?;
    Ok(())
}

async fn set_title(
    db: &mut impl CatalogDb,
    n: i64,
    title: &str,
    title_by: TitleSource,
) -> Result<(), StoreError> {
    let update = sql!(
        sqlite: "UPDATE conversation SET title = $2, title_by = $3 WHERE n = $1",
        postgres: "UPDATE conversation SET title = $2, title_by = $3, title_lower = $4 WHERE n = $1"
    );
    db.execute(&update, bind![n, title, title_by_to_sql(title_by), to_lowercase(title)]).await?;
    db.update_index(IndexChange::Retitled(n, title)).await
}

pub(crate) async fn get(
    db: &mut impl CatalogDb,
    user: &str,
    id: &str,
) -> Result<Option<ConversationSummary>, StoreError> {
    let get = select_summary!("c.id = $1 AND c.user_id = $2");
    query_optional(db, &get, bind![id, user], summary).await
}

/// Conversations with these ids, those with the latest events first.
pub(crate) async fn by_ids(
    db: &mut impl CatalogDb,
    user: &str,
    ids: Vec<String>,
) -> Result<Vec<ConversationSummary>, StoreError> {
    let list = select_summary!(
        "c.user_id = $1 AND c.id", in 2, " ORDER BY c.updated_at DESC, c.id DESC"
    );
    db.query(&list, bind![user, ids], summary).await
}

pub(crate) async fn list(
    db: &mut impl CatalogDb,
    user: &str,
    page: &PageRequest,
) -> Result<ResultPage<ConversationSummary>, StoreError> {
    let (at, id, rows) = page_params(page)?;
    let list = select_summary!(
        "c.user_id = $1 AND ($2 IS NULL OR (c.updated_at, c.id) < ($2, $3))
         ORDER BY c.updated_at DESC, c.id DESC LIMIT $4"
    );
    let items = db.query(&list, bind![user, at, id, rows], summary).await?;
    Ok(ResultPage::from_rows(items, page.rows(), |item| PagePosition {
        at: item.conversation.updated_at,
        id: item.conversation.id.clone(),
    }))
}

pub(crate) async fn rename(
    db: &mut impl CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    id: &str,
    title: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let find = sql!("SELECT n FROM conversation WHERE id = $1 AND user_id = $2", lock "FOR UPDATE");
    let n: Option<i64> = query_optional(db, &find, bind![id, user], |row| row.get("n")).await?;
    let Some(n) = n else { return Ok(false) };
    let title = normalize_title(title, limits.title_chars_max);
    if title.is_empty() {
        let find = sql!(
            "SELECT b.input_text FROM turn t JOIN turn_begin b ON b.n = t.n WHERE t.conversation_id = $1
             ORDER BY t.created_at, t.n LIMIT 1"
        );
        let input: Option<String> = query_optional(db, &find, bind![id], |row| row.get("input_text")).await?;
        let words = auto_title(&input.unwrap_or_default());
        let title = normalize_title(&words, limits.title_chars_max);
        set_title(db, n, &title, TitleSource::FirstInput).await?;
    } else {
        set_title(db, n, &title, TitleSource::UserGiven).await?;
    }
    touch(db, id, now).await?;
    Ok(true)
}

pub(crate) async fn set_leaf(
    db: &mut impl CatalogDb,
    user: &str,
    id: &str,
    turn_id: &str,
) -> Result<bool, StoreError> {
    let update = sql!(
        "UPDATE conversation SET leaf_id = $3 WHERE id = $1 AND user_id = $2
            AND EXISTS (SELECT 1 FROM turn WHERE id = $3 AND conversation_id = $1 AND user_id = $2)"
    );
    Ok(db.execute(&update, bind![id, user, turn_id]).await? > 0)
}

pub(crate) async fn import(
    db: &mut impl CatalogDb,
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
    insert(db, limits, user, id, title, conversation.created_at).await?;
    let mut before = HashSet::new();
    for turn in turns {
        import_turn(db, user, id, turn, &before).await?;
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
    touch(db, id, conversation.updated_at).await?;
    db.update_index(IndexChange::Imported).await
}

async fn import_turn(
    db: &mut impl CatalogDb,
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
    let new_row = TurnInsert {
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
    turns::insert(db, user, Some(conversation_id), &new_row).await?;
    turns::end(db, user, &turn.id, end).await?;
    Ok(())
}

fn title_by_to_sql(title_by: TitleSource) -> i64 {
    match title_by {
        TitleSource::FirstInput => 0,
        TitleSource::UserGiven => 1,
    }
}

fn title_by(row: &dyn CatalogRow) -> Result<TitleSource, StoreError> {
    Ok(match row.get::<i64>("title_by")? {
        0 => TitleSource::FirstInput,
        _ => TitleSource::UserGiven,
    })
}

fn summary(row: &dyn CatalogRow) -> Result<ConversationSummary, StoreError> {
    Ok(ConversationSummary {
        conversation: ConversationRow {
            id: row.get("id")?,
            user: row.get("user_id")?,
            title: row.get("title")?,
            title_by: title_by(row)?,
            leaf_id: row.get("leaf_id")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        },
        turns: row.get("turns")?,
        running_turn_id: row.get("running")?,
    })
}
