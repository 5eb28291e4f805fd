//! Conversations in folders, with tags, pinned and archived; and the usage of one.

use super::{CatalogDb, CatalogRow, bind, query_one, query_optional, sql, to_json};
use crate::catalog::texts::normalize_title;
use crate::catalog::{
    CatalogLimits, ConversationChange, ConversationLabels, ConversationRow, ConversationUsage, NamedCount,
};
use crate::error::StoreError;
use serde_json::Value;
use std::collections::BTreeMap;

/// Folder, tags, pin and archive of a conversation.
struct Filing {
    folder: Option<String>,
    tags: Vec<String>,
    pinned_at: Option<i64>,
    archived_at: Option<i64>,
    temporary: bool,
}

impl Filing {
    fn from_row(row: &dyn CatalogRow) -> Result<Self, StoreError> {
        Ok(Self {
            folder: row.get("folder")?,
            tags: row.optional_json("tags")?.unwrap_or_default(),
            pinned_at: row.get("pinned_at")?,
            archived_at: row.get("archived_at")?,
            temporary: row.get::<i64>("temporary")? != 0,
        })
    }

    fn apply(
        &mut self,
        limits: &CatalogLimits,
        change: &ConversationChange,
        now: i64,
    ) -> Result<(), StoreError> {
        if let Some(folder) = &change.folder {
            self.folder = folder.as_deref().map(|name| folder_name(limits, name)).transpose()?.flatten();
        }
        if let Some(tags) = &change.tags {
            self.tags = tag_names(limits, tags)?;
        }
        if let Some(pinned) = change.pinned {
            self.pinned_at = pinned.then(|| self.pinned_at.unwrap_or(now));
            self.archived_at = self.archived_at.filter(|_| !pinned);
        }
        if let Some(archived) = change.archived {
            self.archived_at = archived.then(|| self.archived_at.unwrap_or(now));
            self.pinned_at = self.pinned_at.filter(|_| !archived);
        }
        let is_filed = self.folder.is_some()
            || !self.tags.is_empty()
            || self.pinned_at.is_some()
            || self.archived_at.is_some();
        self.temporary &= !is_filed && change.temporary != Some(false);
        Ok(())
    }
}

/// `None`: no folder. Names are one line; two that differ in blanks only are one.
fn folder_name(limits: &CatalogLimits, name: &str) -> Result<Option<String>, StoreError> {
    let max = limits.folder_chars_max;
    let name = normalize_title(name, usize::MAX);
    if name.chars().count() > max {
        return Err(StoreError::OverLimit { limit: "folder_chars_max", max: max as u64 });
    }
    Ok((!name.is_empty()).then_some(name))
}

fn tag_names(limits: &CatalogLimits, tags: &[String]) -> Result<Vec<String>, StoreError> {
    let mut names: Vec<String> = Vec::new();
    for tag in tags {
        let name = normalize_title(tag, usize::MAX);
        if name.chars().count() > limits.tag_chars_max {
            let max = limits.tag_chars_max as u64;
            return Err(StoreError::OverLimit { limit: "tag_chars_max", max });
        }
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
        if names.len() > limits.tags_max {
            return Err(StoreError::OverLimit { limit: "tags_max", max: limits.tags_max as u64 });
        }
    }
    Ok(names)
}

pub(crate) async fn change(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    id: &str,
    change: &ConversationChange,
    now: i64,
) -> Result<bool, StoreError> {
    let find = sql!(
        "SELECT folder, tags, pinned_at, archived_at, temporary FROM conversation WHERE id = $1 AND user_id = $2",
        lock "FOR UPDATE"
    );
    let found = query_optional(db, &find, bind![id, user], Filing::from_row).await?;
    let Some(mut filing) = found else { return Ok(false) };
    filing.apply(limits, change, now)?;
    write(db, id, &filing).await?;
    Ok(true)
}

/// Files a conversation that comes from elsewhere as it was filed there.
pub(super) async fn import(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    conversation: &ConversationRow,
) -> Result<(), StoreError> {
    let folder = conversation.folder.as_deref().map(|name| folder_name(limits, name)).transpose()?;
    let filing = Filing {
        folder: folder.flatten(),
        tags: tag_names(limits, &conversation.tags)?,
        pinned_at: conversation.pinned_at.filter(|_| conversation.archived_at.is_none()),
        archived_at: conversation.archived_at,
        temporary: false,
    };
    write(db, &conversation.id, &filing).await
}

async fn write(db: &mut dyn CatalogDb, id: &str, filing: &Filing) -> Result<(), StoreError> {
    let update = sql!(
        "UPDATE conversation SET folder = $2, tags = $3, pinned_at = $4, archived_at = $5, temporary = $6 WHERE id = $1"
    );
    let tags = if filing.tags.is_empty() { None } else { Some(to_json(&filing.tags)?) };
    let params =
        bind![id, &filing.folder, tags, filing.pinned_at, filing.archived_at, i64::from(filing.temporary),];
    db.execute(&update, params).await?;
    db.execute(&sql!("DELETE FROM conversation_tag WHERE conversation_id = $1"), bind![id]).await?;
    let insert = sql!(
        "INSERT INTO conversation_tag (conversation_id, tag, user_id, is_archived, updated_at)
         SELECT id, $2, user_id, $3, updated_at FROM conversation WHERE id = $1"
    );
    for tag in &filing.tags {
        db.execute(&insert, bind![id, tag, i64::from(filing.archived_at.is_some())]).await?;
    }
    Ok(())
}

pub(crate) async fn labels(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
) -> Result<ConversationLabels, StoreError> {
    let folders = sql!(
        "SELECT folder AS name, count(*) AS count FROM conversation
         WHERE user_id = $1 AND folder IS NOT NULL AND archived_at IS NULL AND temporary = 0
         GROUP BY folder ORDER BY folder LIMIT $2"
    );
    let tags = sql!(
        "SELECT tag AS name, count(*) AS count FROM conversation_tag WHERE user_id = $1 AND is_archived = 0
         GROUP BY tag ORDER BY tag LIMIT $2"
    );
    let rows = limits.labels_max;
    Ok(ConversationLabels {
        folders: db.query(&folders, bind![user, rows], named_count).await?,
        tags: db.query(&tags, bind![user, rows], named_count).await?,
    })
}

fn named_count(row: &dyn CatalogRow) -> Result<NamedCount, StoreError> {
    Ok(NamedCount { name: row.get("name")?, count: row.get("count")? })
}

/// Share of one turn in the usage of its conversation.
struct TurnUsage {
    model: Option<String>,
    turn_ms: u64,
    writing_ms: Option<u64>,
    usage: Option<Value>,
}

pub(crate) async fn usage(
    db: &mut dyn CatalogDb,
    user: &str,
    id: &str,
) -> Result<Option<ConversationUsage>, StoreError> {
    let find = sql!("SELECT 1 FROM conversation WHERE id = $1 AND user_id = $2");
    if !super::exists(db, &find, bind![id, user]).await? {
        return Ok(None);
    }
    let list = sql!(
        "SELECT t.model, t.ended_at - t.created_at AS turn_ms, t.writing_ms, e.usage
         FROM turn t JOIN turn_end e ON e.n = t.n WHERE t.conversation_id = $1 AND t.user_id = $2"
    );
    let turns = db
        .query(&list, bind![id, user], |row| {
            Ok(TurnUsage {
                model: row.get("model")?,
                turn_ms: row.get("turn_ms")?,
                writing_ms: row.get("writing_ms")?,
                usage: row.optional_json("usage")?,
            })
        })
        .await?;
    let count = sql!(
        "SELECT count(*) AS calls,
            CAST(coalesce(sum(CASE WHEN c.status = 'error' THEN 1 ELSE 0 END), 0) AS BIGINT) AS failed_calls,
            CAST(coalesce(sum(c.duration_ms), 0) AS BIGINT) AS call_ms
         FROM turn t JOIN call c ON c.turn_id = t.id WHERE t.conversation_id = $1 AND t.user_id = $2"
    );
    let mut sum = query_one(db, &count, bind![id, user], |row| {
        Ok(ConversationUsage {
            calls: row.get("calls")?,
            failed_calls: row.get("failed_calls")?,
            call_ms: row.get("call_ms")?,
            ..ConversationUsage::default()
        })
    })
    .await?;
    let mut models = BTreeMap::<String, u64>::new();
    for turn in turns {
        let tokens = |name: &str| {
            turn.usage.as_ref().and_then(|usage| usage.get(name)).and_then(Value::as_u64).unwrap_or_default()
        };
        sum.turns += 1;
        sum.input_tokens = sum.input_tokens.saturating_add(tokens("input_tokens"));
        sum.cached_input_tokens = sum.cached_input_tokens.saturating_add(tokens("cached_input_tokens"));
        sum.output_tokens = sum.output_tokens.saturating_add(tokens("output_tokens"));
        sum.writing_ms = sum.writing_ms.saturating_add(turn.writing_ms.unwrap_or_default());
        sum.turn_ms = sum.turn_ms.saturating_add(turn.turn_ms);
        if let Some(model) = turn.model {
            *models.entry(model).or_default() += 1;
        }
    }
    sum.models = models.into_iter().map(|(name, count)| NamedCount { name, count }).collect();
    sum.models.sort_by_key(|model| std::cmp::Reverse(model.count));
    Ok(Some(sum))
}
