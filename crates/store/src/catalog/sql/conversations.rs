//! Conversations: created, renamed, listed, imported.

use super::turns::{self, TurnInsert};
use super::{
    CatalogDb, CatalogRow, IndexChange, SqlText, bind, calls, files, filing, query_one, query_optional, sql,
};
use crate::catalog::fold::fold;
use crate::catalog::texts::{auto_title, normalize_title, replace_nul, validate_id};
use crate::catalog::{
    CatalogLimits, ConversationFilter, ConversationRow, ConversationSummary, ImportedConversation,
    NewConversation, PagePosition, PageRequest, ResultPage, TitleSource, TurnRow,
};
use crate::error::StoreError;
use std::collections::HashSet;

/// The columns of a conversation, with the turn that runs in it.
macro_rules! select_conversations_from {
    () => {
        "SELECT c.*, (SELECT t.id FROM turn t WHERE t.conversation_id = c.id AND t.ended_at IS NULL) AS running,
            (SELECT count(*) FROM turn t JOIN call k ON k.turn_id = t.id
             WHERE t.conversation_id = c.id AND t.ended_at IS NULL AND k.status = 'awaiting_approval') AS asks
         FROM "
    };
}

/// Reads conversations with the turn that runs in each.
macro_rules! select_summary {
    ($condition:literal $(, in $number:literal, $after:literal)?) => {
        sql!(select_summary!(@text $condition) $(, in $number, $after)?)
    };
    (@text $condition:literal) => {
        concat!(select_conversations_from!(), "conversation c WHERE ", $condition)
    };
}

/// A page of one list, over the parameters of [`ListQuery::run`]. Each list has an index with these conditions.
macro_rules! select_page {
    ($condition:literal) => {
        select_page!(from "conversation c", concat!("c.user_id = $1 AND c.temporary = 0 AND ", $condition), "c.updated_at", "c.id")
    };
    (from $tables:literal, $condition:expr, $at:literal, $id:literal) => {
        sql!(concat!(
            select_conversations_from!(), $tables, " WHERE ", $condition, " AND (", $at, ", ", $id, ") < ($2, $3)
                AND ($5 IS NULL OR c.folder = $5) AND ($6 IS NULL OR c.id IN (
                    SELECT conversation_id FROM conversation_tag WHERE conversation_id = c.id AND tag = $6))
                AND ($7 IS NULL OR (CASE WHEN c.pinned_at IS NULL THEN 0 ELSE 1 END) = $7)
             ORDER BY ", $at, " DESC, ", $id, " DESC LIMIT $4"
        ))
    };
}

pub(crate) async fn create(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    new: &NewConversation,
) -> Result<ConversationRow, StoreError> {
    validate_id("user", user)?;
    insert(db, limits, user, &new.id, new.title.as_deref(), new.created_at).await?;
    if new.temporary {
        db.execute(&sql!("UPDATE conversation SET temporary = 1 WHERE id = $1"), bind![&new.id]).await?;
    }
    let row = get(db, user, &new.id).await?.map(|summary| summary.conversation);
    row.ok_or_else(|| StoreError::failed("a conversation is absent after it was created"))
}

pub(super) async fn insert(
    db: &mut dyn CatalogDb,
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
    let params = bind![id, user, &title, title_by_to_sql(title_by), created_at, fold(&title)];
    let n: i64 = query_one(db, &insert, params, |row| row.get("n")).await?;
    db.update_index(IndexChange::Title(n, &title)).await
}

/// A new turn, as far as it changes its conversation.
pub(super) struct AddedTurn<'a> {
    pub id: &'a str,
    /// True if the turn continues no other one: the first turn, or an edit of it.
    pub is_root: bool,
    pub input_text: &'a str,
    pub at: i64,
}

/// A turn has been added: it is the leaf, and its input may give the title.
pub(super) async fn turn_added(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    id: &str,
    turn: AddedTurn<'_>,
) -> Result<(), StoreError> {
    let AddedTurn { id: turn_id, is_root, input_text, at } = turn;
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
    // An edit of the first message is about something else. A title that a user gave stays.
    if source == TitleSource::FirstInput && (title.is_empty() || is_root) {
        let words = normalize_title(&auto_title(input_text), limits.title_chars_max);
        if words != title && !words.is_empty() {
            set_title(db, n, &words, TitleSource::FirstInput).await?;
        }
    }
    touch_tags(db, id, at).await
}

/// Moves the time of the last event forward.
pub(super) async fn touch(db: &mut dyn CatalogDb, id: &str, at: i64) -> Result<(), StoreError> {
    let touch = sql!("UPDATE conversation SET updated_at = $2 WHERE id = $1 AND updated_at < $2");
    db.execute(&touch, bind![id, at]).await?;
    touch_tags(db, id, at).await
}

/// The lists of its tags are in the order of the others.
async fn touch_tags(db: &mut dyn CatalogDb, id: &str, at: i64) -> Result<(), StoreError> {
    let touch =
        sql!("UPDATE conversation_tag SET updated_at = $2 WHERE conversation_id = $1 AND updated_at < $2");
    db.execute(&touch, bind![id, at]).await?;
    Ok(())
}

async fn set_title(
    db: &mut dyn CatalogDb,
    n: i64,
    title: &str,
    title_by: TitleSource,
) -> Result<(), StoreError> {
    let update = sql!(
        sqlite: "UPDATE conversation SET title = $2, title_by = $3 WHERE n = $1",
        postgres: "UPDATE conversation SET title = $2, title_by = $3, title_lower = $4 WHERE n = $1"
    );
    db.execute(&update, bind![n, title, title_by_to_sql(title_by), fold(title)]).await?;
    db.update_index(IndexChange::Retitled(n, title)).await
}

pub(crate) async fn get(
    db: &mut dyn CatalogDb,
    user: &str,
    id: &str,
) -> Result<Option<ConversationSummary>, StoreError> {
    let get = select_summary!("c.id = $1 AND c.user_id = $2");
    query_optional(db, &get, bind![id, user], summary).await
}

/// Conversations with these ids, those with the latest events first. Without statistics PostgreSQL would scan
/// all conversations of the user; an expression has no index.
pub(crate) async fn by_ids(
    db: &mut dyn CatalogDb,
    user: &str,
    ids: Vec<String>,
) -> Result<Vec<ConversationSummary>, StoreError> {
    let list = select_summary!(
        "(c.user_id || '') = $1 AND c.id", in 2, " ORDER BY c.updated_at DESC, c.id DESC"
    );
    db.query(&list, bind![user, ids], summary).await
}

const ACTIVE: SqlText = select_page!("c.pinned_at IS NULL AND c.archived_at IS NULL");
const PINNED: SqlText = select_page!("c.pinned_at IS NOT NULL");
const ARCHIVED: SqlText = select_page!("c.archived_at IS NOT NULL");
const IN_FOLDER: SqlText = select_page!("c.folder IS NOT NULL AND c.archived_at IS NULL AND c.folder = $5");
const ARCHIVED_IN_FOLDER: SqlText =
    select_page!("c.folder IS NOT NULL AND c.archived_at IS NOT NULL AND c.folder = $5");
const WITH_TAG: SqlText = select_page!(
    from "conversation_tag g JOIN conversation c ON c.id = g.conversation_id",
    "g.user_id = $1 AND g.tag = $6 AND g.is_archived = 0", "g.updated_at", "g.conversation_id"
);
const ARCHIVED_WITH_TAG: SqlText = select_page!(
    from "conversation_tag g JOIN conversation c ON c.id = g.conversation_id",
    "g.user_id = $1 AND g.tag = $6 AND g.is_archived = 1", "g.updated_at", "g.conversation_id"
);

/// All lists, each with the index in whose order it is.
#[cfg(test)]
#[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "the test is that of SQLite"))]
pub(crate) const LISTS: [(&str, SqlText); 7] = [
    ("conversation_active", ACTIVE),
    ("conversation_pinned", PINNED),
    ("conversation_archived", ARCHIVED),
    ("conversation_in_folder", IN_FOLDER),
    ("conversation_archived_in_folder", ARCHIVED_IN_FOLDER),
    ("conversation_by_tag", WITH_TAG),
    ("conversation_by_tag", ARCHIVED_WITH_TAG),
];

/// Begins a cursor that is among the pinned ones.
const PINNED_CURSOR: &str = "pinned~";

/// Rows of a list after a position.
struct ListQuery<'a> {
    user: &'a str,
    filter: &'a ConversationFilter,
}

impl ListQuery<'_> {
    async fn run(
        &self,
        db: &mut dyn CatalogDb,
        list: &SqlText,
        after: Option<PagePosition>,
        rows: usize,
    ) -> Result<Vec<ConversationSummary>, StoreError> {
        let PagePosition { at, id } = after.unwrap_or(PagePosition { at: i64::MAX, id: String::new() });
        let pinned = self.filter.pinned.map(i64::from);
        let params = bind![self.user, at, id, rows as i64, &self.filter.folder, &self.filter.tag, pinned];
        db.query(list, params, summary).await
    }
}

fn position_of(item: &ConversationSummary) -> PagePosition {
    PagePosition { at: item.conversation.updated_at, id: item.conversation.id.clone() }
}

pub(crate) async fn list(
    db: &mut dyn CatalogDb,
    user: &str,
    filter: &ConversationFilter,
    page: &PageRequest,
) -> Result<ResultPage<ConversationSummary>, StoreError> {
    let archived = filter.archived.unwrap_or(false);
    let list = match (&filter.tag, &filter.folder, archived) {
        (Some(_), _, false) => &WITH_TAG,
        (Some(_), _, true) => &ARCHIVED_WITH_TAG,
        (None, Some(_), false) => &IN_FOLDER,
        (None, Some(_), true) => &ARCHIVED_IN_FOLDER,
        (None, None, true) => &ARCHIVED,
        (None, None, false) => match filter.pinned {
            None => return list_pinned_first(db, user, filter, page).await,
            Some(true) => &PINNED,
            Some(false) => &ACTIVE,
        },
    };
    let rows = page.rows();
    let query = ListQuery { user, filter };
    let items = query.run(db, list, page.position()?, rows as usize + 1).await?;
    Ok(ResultPage::from_rows(items, rows, position_of))
}

async fn list_pinned_first(
    db: &mut dyn CatalogDb,
    user: &str,
    filter: &ConversationFilter,
    page: &PageRequest,
) -> Result<ResultPage<ConversationSummary>, StoreError> {
    let (rows, query) = (page.rows() as usize, ListQuery { user, filter });
    let mut items = Vec::new();
    let pinned = page.cursor.as_deref().and_then(|cursor| cursor.strip_prefix(PINNED_CURSOR));
    let after = match (&page.cursor, pinned) {
        (Some(_), None) => page.position()?,
        (_, pinned) => {
            let after = pinned.map(PageRequest::after).unwrap_or_default().position()?;
            items = query.run(db, &PINNED, after, rows + 1).await?;
            None
        }
    };
    if items.len() <= rows {
        let wanted = rows + 1 - items.len();
        items.extend(query.run(db, &ACTIVE, after, wanted).await?);
    }
    let has_more = items.len() > rows;
    items.truncate(rows);
    let next = items.last().filter(|_| has_more).map(|last| match last.conversation.pinned_at {
        Some(_) => format!("{PINNED_CURSOR}{}", position_of(last)),
        None => position_of(last).to_string(),
    });
    Ok(ResultPage { items, next, partial: false })
}

pub(crate) async fn rename(
    db: &mut dyn CatalogDb,
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
            "SELECT b.input_text FROM turn t JOIN turn_begin b ON b.n = t.n
             WHERE t.conversation_id = $1 AND t.parent_id IS NULL AND b.input_text <> ''
             ORDER BY t.created_at DESC, t.n DESC LIMIT 1"
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
    db: &mut dyn CatalogDb,
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
    db: &mut dyn CatalogDb,
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
        let added = AddedTurn {
            id: &turn.id,
            is_root: turn.parent.is_none(),
            input_text: &turn.input_text,
            at: turn.created_at,
        };
        turn_added(db, limits, id, added).await?;
    }
    if let Some(leaf) = &conversation.leaf_id {
        if !before.contains(leaf.as_str()) {
            return Err(StoreError::invalid("leaf_id", "it is not a turn of the conversation"));
        }
        set_leaf(db, user, id, leaf).await?;
    }
    if let Some(orphan) = calls.iter().find(|call| !before.contains(call.turn_id.as_str())) {
        return Err(StoreError::invalid(
            "calls",
            format!("`{}` does not belong to a turn of the conversation", orphan.tool_id),
        ));
    }
    calls::put(db, user, calls).await?;
    for (turn, file) in files.iter().filter(|(turn, _)| before.contains(turn.as_str())) {
        files::record_use(db, user, turn, file).await?;
    }
    filing::import(db, limits, conversation).await?;
    touch(db, id, conversation.updated_at).await?;
    db.update_index(IndexChange::Imported).await
}

async fn import_turn(
    db: &mut dyn CatalogDb,
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
        return Err(StoreError::invalid("turns", format!("the parent of `{}` does not precede it", turn.id)));
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
        key_id: None,
    };
    turns::insert(db, user, Some(conversation_id), &new_row).await?;
    turns::write_end(db, user, &turn.id, end).await?;
    if turn.rating.is_some() {
        turns::rate(db, user, &turn.id, turn.rating.as_ref()).await?;
    }
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
            folder: row.get("folder")?,
            tags: row.optional_json("tags")?.unwrap_or_default(),
            pinned_at: row.get("pinned_at")?,
            archived_at: row.get("archived_at")?,
            temporary: row.get::<i64>("temporary")? != 0,
        },
        turns: row.get("turns")?,
        running_turn_id: row.get("running")?,
        awaits_approval: row.get::<i64>("asks")? > 0,
    })
}
