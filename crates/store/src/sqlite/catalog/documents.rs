//! Documents and remembered answers.

use super::rows::{json, to_json, to_sql, unsigned};
use crate::catalog::texts::{replace_nul, validate_id};
use crate::catalog::{
    CatalogLimits, DocumentKind, DocumentPrecondition, NewDocument, NewRemembered, PutOutcome, RememberedRow,
    StoredDocument,
};
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};

pub(super) fn get(
    db: &Connection,
    user: &str,
    kind: DocumentKind,
    name: &str,
) -> Result<Option<StoredDocument>, StoreError> {
    Ok(db
        .prepare_cached("SELECT * FROM document WHERE user_id = ?1 AND kind = ?2 AND name = ?3")?
        .query_row([user, kind.name(), name], document)
        .optional()?)
}

pub(super) fn list(
    db: &Connection,
    user: &str,
    kind: DocumentKind,
) -> Result<Vec<StoredDocument>, StoreError> {
    let mut query =
        db.prepare_cached("SELECT * FROM document WHERE user_id = ?1 AND kind = ?2 ORDER BY name")?;
    Ok(query.query_map([user, kind.name()], document)?.collect::<Result<_, _>>()?)
}

pub(super) fn put(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    new: &NewDocument,
) -> Result<PutOutcome, StoreError> {
    validate_id("user", user)?;
    validate_id("name", &new.name)?;
    let body = to_json(&new.body)?;
    let max = limits.document_bytes_max;
    if body.len() as u64 > max {
        return Err(StoreError::OverLimit { limit: "document_bytes_max", max });
    }
    let before = get(db, user, new.kind, &new.name)?;
    let precondition_holds = match new.precondition {
        DocumentPrecondition::Any => true,
        DocumentPrecondition::Absent => before.is_none(),
        DocumentPrecondition::Version(version) => {
            before.as_ref().is_some_and(|before| before.version == version)
        }
    };
    if !precondition_holds {
        return Ok(PutOutcome::Conflict(before));
    }
    let Some(before) = before else {
        let count: i64 = db
            .prepare_cached("SELECT count(*) FROM document WHERE user_id = ?1 AND kind = ?2")?
            .query_row([user, new.kind.name()], |row| row.get(0))?;
        let max = limits.documents_max;
        if u64::try_from(count).unwrap_or_default() >= max {
            return Err(StoreError::OverLimit { limit: "documents_max", max });
        }
        db.prepare_cached(
            "INSERT INTO document (user_id, kind, name, body, version, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, 1, ?5, ?5)",
        )?
        .execute(params![user, new.kind.name(), new.name, body, new.now])?;
        let (name, body) = (new.name.clone(), new.body.clone());
        return Ok(PutOutcome::Written(StoredDocument {
            name,
            body,
            version: 1,
            created_at: new.now,
            updated_at: new.now,
        }));
    };
    db.prepare_cached(
        "UPDATE document SET body = ?4, version = version + 1, updated_at = ?5
         WHERE user_id = ?1 AND kind = ?2 AND name = ?3",
    )?
    .execute(params![user, new.kind.name(), new.name, body, new.now])?;
    Ok(PutOutcome::Written(StoredDocument {
        body: new.body.clone(),
        version: before.version + 1,
        updated_at: new.now,
        ..before
    }))
}

pub(super) fn remove(
    db: &Connection,
    user: &str,
    kind: DocumentKind,
    name: &str,
) -> Result<Option<StoredDocument>, StoreError> {
    Ok(db
        .prepare_cached("DELETE FROM document WHERE user_id = ?1 AND kind = ?2 AND name = ?3 RETURNING *")?
        .query_row([user, kind.name(), name], document)
        .optional()?)
}

fn document(row: &Row<'_>) -> rusqlite::Result<StoredDocument> {
    Ok(StoredDocument {
        name: row.get("name")?,
        body: json(row, "body")?,
        version: unsigned(row, "version")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

pub(super) fn remembered(
    db: &Connection,
    user: &str,
    conversation_id: Option<&str>,
) -> Result<Vec<RememberedRow>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT * FROM remembered WHERE user_id = ?1 AND (conversation_id IS NULL OR conversation_id = ?2)
         ORDER BY number",
    )?;
    Ok(query.query_map(params![user, conversation_id], remembered_row)?.collect::<Result<_, _>>()?)
}

pub(super) fn remembered_everywhere(db: &Connection, user: &str) -> Result<Vec<RememberedRow>, StoreError> {
    let mut query = db.prepare_cached("SELECT * FROM remembered WHERE user_id = ?1 ORDER BY number")?;
    Ok(query.query_map([user], remembered_row)?.collect::<Result<_, _>>()?)
}

pub(super) fn remember(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    new: &NewRemembered,
) -> Result<Option<RememberedRow>, StoreError> {
    validate_id("user", user)?;
    let body = to_json(&new.answer)?;
    let max = limits.document_bytes_max;
    if body.len().max(new.about.len()) as u64 > max {
        return Err(StoreError::OverLimit { limit: "document_bytes_max", max });
    }
    if let Some(conversation_id) = &new.conversation_id
        && !db
            .prepare_cached("SELECT 1 FROM conversation WHERE id = ?1 AND user_id = ?2")?
            .exists([conversation_id, user])?
    {
        return Ok(None);
    }
    let about = replace_nul(&new.about);
    // What was said about the same before holds no more, whatever it was.
    db.prepare_cached("DELETE FROM remembered WHERE user_id = ?1 AND conversation_id IS ?2 AND about = ?3")?
        .execute(params![user, new.conversation_id, about])?;
    db.prepare_cached(
        "DELETE FROM remembered WHERE number IN (
            SELECT number FROM remembered WHERE user_id = ?1 ORDER BY number DESC LIMIT -1 OFFSET ?2)",
    )?
    .execute(params![user, to_sql("remembered_max", limits.remembered_max.saturating_sub(1))?])?;
    let row = db
        .prepare_cached(
            "INSERT INTO remembered (user_id, conversation_id, about, answer, at) VALUES (?1, ?2, ?3, ?4, ?5)
             RETURNING *",
        )?
        .query_row(params![user, new.conversation_id, about, body, new.at], remembered_row)?;
    Ok(Some(row))
}

pub(super) fn delete_remembered(
    db: &Connection,
    user: &str,
    number: u64,
) -> Result<Option<RememberedRow>, StoreError> {
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    Ok(db
        .prepare_cached("DELETE FROM remembered WHERE number = ?1 AND user_id = ?2 RETURNING *")?
        .query_row(params![number, user], remembered_row)
        .optional()?)
}

fn remembered_row(row: &Row<'_>) -> rusqlite::Result<RememberedRow> {
    Ok(RememberedRow {
        number: unsigned(row, "number")?,
        conversation_id: row.get("conversation_id")?,
        about: row.get("about")?,
        answer: json(row, "answer")?,
        at: row.get("at")?,
    })
}
