//! Documents and remembered answers.

use super::DbConnection;
use super::rows::{json, map_rows, sanitize_param, to_json, to_sql, unsigned};
use crate::catalog::texts::{replace_nul, validate_id};
use crate::catalog::{
    CatalogLimits, DocumentKind, DocumentPrecondition, NewDocument, NewRemembered, PutOutcome, RememberedRow,
    StoredDocument,
};
use crate::error::StoreError;
use sqlx::Row;
use sqlx::postgres::PgRow;

pub(super) async fn get(
    db: DbConnection<'_>,
    user: &str,
    kind: DocumentKind,
    name: &str,
) -> Result<Option<StoredDocument>, StoreError> {
    let row = sqlx::query("SELECT * FROM document WHERE user_id = $1 AND kind = $2 AND name = $3")
        .bind(sanitize_param(user))
        .bind(kind.name())
        .bind(sanitize_param(name))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(document).transpose()
}

pub(super) async fn list(
    db: DbConnection<'_>,
    user: &str,
    kind: DocumentKind,
) -> Result<Vec<StoredDocument>, StoreError> {
    let rows = sqlx::query("SELECT * FROM document WHERE user_id = $1 AND kind = $2 ORDER BY name")
        .bind(sanitize_param(user))
        .bind(kind.name())
        .fetch_all(db)
        .await?;
    map_rows(&rows, document)
}

pub(super) async fn put(
    db: DbConnection<'_>,
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
    let before = get(db, user, new.kind, &new.name).await?;
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
    if before.is_none() {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM document WHERE user_id = $1 AND kind = $2")
            .bind(user)
            .bind(new.kind.name())
            .fetch_one(&mut *db)
            .await?;
        let max = limits.documents_max;
        if u64::try_from(count).unwrap_or_default() >= max {
            return Err(StoreError::OverLimit { limit: "documents_max", max });
        }
    }
    let row = sqlx::query(
        "INSERT INTO document AS d (user_id, kind, name, body, version, created_at, updated_at)
         VALUES ($1, $2, $3, $4, 1, $5, $5)
         ON CONFLICT (user_id, kind, name)
            DO UPDATE SET body = excluded.body, version = d.version + 1, updated_at = excluded.updated_at
         RETURNING *",
    )
    .bind(user)
    .bind(new.kind.name())
    .bind(&new.name)
    .bind(body)
    .bind(new.now)
    .fetch_one(db)
    .await?;
    Ok(PutOutcome::Written(document(&row)?))
}

pub(super) async fn remove(
    db: DbConnection<'_>,
    user: &str,
    kind: DocumentKind,
    name: &str,
) -> Result<Option<StoredDocument>, StoreError> {
    let row = sqlx::query("DELETE FROM document WHERE user_id = $1 AND kind = $2 AND name = $3 RETURNING *")
        .bind(sanitize_param(user))
        .bind(kind.name())
        .bind(sanitize_param(name))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(document).transpose()
}

fn document(row: &PgRow) -> Result<StoredDocument, StoreError> {
    Ok(StoredDocument {
        name: row.try_get("name")?,
        body: json(row, "body")?,
        version: unsigned(row, "version")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}

pub(super) async fn remembered(
    db: DbConnection<'_>,
    user: &str,
    conversation_id: Option<&str>,
) -> Result<Vec<RememberedRow>, StoreError> {
    let rows = sqlx::query(
        "SELECT * FROM remembered WHERE user_id = $1 AND (conversation_id IS NULL OR conversation_id = $2)
         ORDER BY number",
    )
    .bind(sanitize_param(user))
    .bind(conversation_id.map(sanitize_param))
    .fetch_all(db)
    .await?;
    map_rows(&rows, remembered_row)
}

pub(super) async fn remembered_everywhere(
    db: DbConnection<'_>,
    user: &str,
) -> Result<Vec<RememberedRow>, StoreError> {
    let rows = sqlx::query("SELECT * FROM remembered WHERE user_id = $1 ORDER BY number");
    map_rows(&rows.bind(sanitize_param(user)).fetch_all(db).await?, remembered_row)
}

pub(super) async fn remember(
    db: DbConnection<'_>,
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
    if let Some(conversation_id) = &new.conversation_id {
        // Kept until the end of the transaction.
        let there = sqlx::query("SELECT 1 FROM conversation WHERE id = $1 AND user_id = $2 FOR KEY SHARE")
            .bind(sanitize_param(conversation_id))
            .bind(user)
            .fetch_optional(&mut *db)
            .await?;
        if there.is_none() {
            return Ok(None);
        }
    }
    let about = replace_nul(&new.about);
    // What was said about the same before holds no more, whatever it was.
    sqlx::query(
        "DELETE FROM remembered WHERE user_id = $1 AND conversation_id IS NOT DISTINCT FROM $2 AND about = $3",
    )
    .bind(user)
    .bind(&new.conversation_id)
    .bind(about.clone())
    .execute(&mut *db)
    .await?;
    sqlx::query(
        "DELETE FROM remembered WHERE number IN (
            SELECT number FROM remembered WHERE user_id = $1 ORDER BY number DESC OFFSET $2)",
    )
    .bind(user)
    .bind(to_sql("remembered_max", limits.remembered_max.saturating_sub(1))?)
    .execute(&mut *db)
    .await?;
    let row = sqlx::query(
        "INSERT INTO remembered (user_id, conversation_id, about, answer, at) VALUES ($1, $2, $3, $4, $5) RETURNING *",
    )
    .bind(user)
    .bind(&new.conversation_id)
    .bind(about)
    .bind(body)
    .bind(new.at)
    .fetch_one(db)
    .await?;
    remembered_row(&row).map(Some)
}

pub(super) async fn delete_remembered(
    db: DbConnection<'_>,
    user: &str,
    number: u64,
) -> Result<Option<RememberedRow>, StoreError> {
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    let row = sqlx::query("DELETE FROM remembered WHERE number = $1 AND user_id = $2 RETURNING *")
        .bind(number)
        .bind(sanitize_param(user))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(remembered_row).transpose()
}

fn remembered_row(row: &PgRow) -> Result<RememberedRow, StoreError> {
    Ok(RememberedRow {
        number: unsigned(row, "number")?,
        conversation_id: row.try_get("conversation_id")?,
        about: row.try_get("about")?,
        answer: json(row, "answer")?,
        at: row.try_get("at")?,
    })
}
