//! Files as rows. Their bytes are elsewhere.

use super::DbConnection;
use super::rows::{exists_error, map_rows, sanitize_param, to_sql, unsigned};
use crate::catalog::texts::{normalize_title, sanitize_file_name, validate_id};
use crate::catalog::{CatalogLimits, FileRow, NewFile, PagePosition, PageRequest, ResultPage};
use crate::error::StoreError;
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::HashSet;

pub(super) async fn add(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    user: &str,
    new: &NewFile,
) -> Result<FileRow, StoreError> {
    validate_id("user", user)?;
    validate_id("file_id", &new.id)?;
    validate_id("hash", &new.hash)?;
    let bytes = to_sql("bytes", new.bytes)?;
    let there: i64 =
        sqlx::query_scalar("SELECT coalesce(sum(bytes), 0)::bigint FROM file WHERE user_id = $1")
            .bind(user)
            .fetch_one(&mut *db)
            .await?;
    let max = limits.user_files_bytes_max;
    if u64::try_from(there).unwrap_or_default().saturating_add(new.bytes) > max {
        return Err(StoreError::OverLimit { limit: "user_files_bytes_max", max });
    }
    let row = sqlx::query(
        "INSERT INTO file (id, user_id, name, media_type, bytes, hash, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *",
    )
    .bind(&new.id)
    .bind(user)
    .bind(sanitize_file_name(&new.name))
    .bind(normalize_title(&new.media_type, limits.title_chars_max))
    .bind(bytes)
    .bind(&new.hash)
    .bind(new.created_at)
    .fetch_one(&mut *db)
    .await
    .map_err(exists_error("file"))?;
    if let Some(turn_id) = &new.made_in
        && !record_use(db, user, turn_id, &new.id).await?
    {
        return Err(StoreError::invalid("made_in", "there is no such turn"));
    }
    file(&row)
}

pub(super) async fn find_or_add(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    user: &str,
    new: &NewFile,
) -> Result<FileRow, StoreError> {
    // One that nobody uses may be swept before the turn that is being prepared uses it.
    let there = sqlx::query(
        "SELECT * FROM file f WHERE hash = $1 AND user_id = $2 AND media_type = $3
            AND EXISTS (SELECT 1 FROM file_use WHERE file_id = f.id) LIMIT 1",
    )
    .bind(sanitize_param(&new.hash))
    .bind(sanitize_param(user))
    .bind(normalize_title(&new.media_type, limits.title_chars_max))
    .fetch_optional(&mut *db)
    .await?;
    let Some(there) = there.as_ref().map(file).transpose()? else { return add(db, limits, user, new).await };
    if let Some(turn_id) = &new.made_in
        && !record_use(db, user, turn_id, &there.id).await?
    {
        return Err(StoreError::invalid("made_in", "there is no such turn"));
    }
    Ok(there)
}

/// `false`: the user does not have both.
pub(super) async fn record_use(
    db: DbConnection<'_>,
    user: &str,
    turn_id: &str,
    file_id: &str,
) -> Result<bool, StoreError> {
    // Once more is as good as once.
    let recorded = sqlx::query(
        "INSERT INTO file_use (turn_id, file_id)
         SELECT t.id, f.id FROM turn t, file f WHERE t.id = $1 AND t.user_id = $3 AND f.id = $2 AND f.user_id = $3
         ON CONFLICT (turn_id, file_id) DO UPDATE SET file_id = excluded.file_id",
    )
    .bind(sanitize_param(turn_id))
    .bind(sanitize_param(file_id))
    .bind(sanitize_param(user))
    .execute(db)
    .await?;
    Ok(recorded.rows_affected() > 0)
}

pub(in crate::postgres) async fn get(
    db: DbConnection<'_>,
    user: &str,
    id: &str,
) -> Result<Option<FileRow>, StoreError> {
    let row = sqlx::query("SELECT * FROM file WHERE id = $1 AND user_id = $2")
        .bind(sanitize_param(id))
        .bind(sanitize_param(user))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(file).transpose()
}

pub(super) async fn list(
    db: DbConnection<'_>,
    user: &str,
    page: &PageRequest,
) -> Result<ResultPage<FileRow>, StoreError> {
    let position = page.position()?;
    let rows = sqlx::query(
        "SELECT * FROM file WHERE user_id = $1 AND ($2::bigint IS NULL OR (created_at, id) < ($2, $3))
         ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .bind(sanitize_param(user))
    .bind(position.as_ref().map(|position| position.at))
    .bind(position.as_ref().map(|position| position.id.clone()))
    .bind(i64::from(page.rows() + 1))
    .fetch_all(db)
    .await?;
    Ok(ResultPage::from_rows(map_rows(&rows, file)?, page.rows(), |file| PagePosition {
        at: file.created_at,
        id: file.id.clone(),
    }))
}

pub(super) async fn remove(
    db: DbConnection<'_>,
    user: &str,
    id: &str,
) -> Result<Option<FileRow>, StoreError> {
    let row = sqlx::query("DELETE FROM file WHERE id = $1 AND user_id = $2 RETURNING *")
        .bind(sanitize_param(id))
        .bind(sanitize_param(user))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(file).transpose()
}

/// Those of these files that no turn uses any more. Returns the hashes of those that are gone.
pub(super) async fn remove_unused(db: DbConnection<'_>, ids: Vec<String>) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar(
        "DELETE FROM file f WHERE id = ANY ($1) AND NOT EXISTS (SELECT 1 FROM file_use WHERE file_id = f.id)
         RETURNING hash",
    )
    .bind(ids)
    .fetch_all(db)
    .await?)
}

/// Returns the hashes of those that are gone.
pub(super) async fn delete_unused(
    db: DbConnection<'_>,
    before: i64,
    files_max: usize,
) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar(
        "DELETE FROM file WHERE id IN (
            SELECT id FROM file f WHERE created_at < $1 AND NOT EXISTS (SELECT 1 FROM file_use WHERE file_id = f.id)
            ORDER BY created_at LIMIT $2)
         RETURNING hash",
    )
    .bind(before)
    .bind(files_max as i64)
    .fetch_all(db)
    .await?)
}

pub(super) async fn blobs_in_use(
    db: DbConnection<'_>,
    hashes: &[String],
) -> Result<HashSet<String>, StoreError> {
    let hashes: Vec<String> = hashes.iter().map(|hash| sanitize_param(hash).into_owned()).collect();
    let used: Vec<String> = sqlx::query_scalar("SELECT DISTINCT hash FROM file WHERE hash = ANY ($1)")
        .bind(hashes)
        .fetch_all(db)
        .await?;
    Ok(used.into_iter().collect())
}

fn file(row: &PgRow) -> Result<FileRow, StoreError> {
    Ok(FileRow {
        id: row.try_get("id")?,
        user: row.try_get("user_id")?,
        name: row.try_get("name")?,
        media_type: row.try_get("media_type")?,
        bytes: unsigned(row, "bytes")?,
        hash: row.try_get("hash")?,
        created_at: row.try_get("created_at")?,
    })
}
