//! Files as rows. Their bytes are elsewhere.

use super::Db;
use super::rows::{each, exists, sought, to_sql, unsigned};
use crate::catalog::texts::{check_id, file_name, title};
use crate::catalog::{CatalogLimits, FileRow, NewFile, Page, PageRequest, Place};
use crate::error::StoreError;
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::HashSet;

pub(super) async fn add(
    db: Db<'_>,
    limits: &CatalogLimits,
    user: &str,
    new: &NewFile,
) -> Result<FileRow, StoreError> {
    check_id("user", user)?;
    check_id("file_id", &new.id)?;
    check_id("hash", &new.hash)?;
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
    .bind(file_name(&new.name))
    .bind(title(&new.media_type, limits.title_chars_max))
    .bind(bytes)
    .bind(&new.hash)
    .bind(new.created_at)
    .fetch_one(&mut *db)
    .await
    .map_err(exists("file"))?;
    if let Some(turn_id) = &new.made_in
        && !note_use(db, user, turn_id, &new.id).await?
    {
        return Err(StoreError::invalid("made_in", "there is no such turn"));
    }
    file(&row)
}

pub(super) async fn keep(
    db: Db<'_>,
    limits: &CatalogLimits,
    user: &str,
    new: &NewFile,
) -> Result<FileRow, StoreError> {
    // One that nobody uses may be swept before the turn that is being prepared uses it.
    let there = sqlx::query(
        "SELECT * FROM file f WHERE hash = $1 AND user_id = $2 AND media_type = $3
            AND EXISTS (SELECT 1 FROM file_use WHERE file_id = f.id) LIMIT 1",
    )
    .bind(sought(&new.hash))
    .bind(sought(user))
    .bind(title(&new.media_type, limits.title_chars_max))
    .fetch_optional(&mut *db)
    .await?;
    let Some(there) = there.as_ref().map(file).transpose()? else { return add(db, limits, user, new).await };
    if let Some(turn_id) = &new.made_in
        && !note_use(db, user, turn_id, &there.id).await?
    {
        return Err(StoreError::invalid("made_in", "there is no such turn"));
    }
    Ok(there)
}

/// `false`: the user does not have both.
pub(super) async fn note_use(
    db: Db<'_>,
    user: &str,
    turn_id: &str,
    file_id: &str,
) -> Result<bool, StoreError> {
    // Once more is as good as once.
    let noted = sqlx::query(
        "INSERT INTO file_use (turn_id, file_id)
         SELECT t.id, f.id FROM turn t, file f WHERE t.id = $1 AND t.user_id = $3 AND f.id = $2 AND f.user_id = $3
         ON CONFLICT (turn_id, file_id) DO UPDATE SET file_id = excluded.file_id",
    )
    .bind(sought(turn_id))
    .bind(sought(file_id))
    .bind(sought(user))
    .execute(db)
    .await?;
    Ok(noted.rows_affected() > 0)
}

pub(in crate::postgres) async fn get(
    db: Db<'_>,
    user: &str,
    id: &str,
) -> Result<Option<FileRow>, StoreError> {
    let row = sqlx::query("SELECT * FROM file WHERE id = $1 AND user_id = $2")
        .bind(sought(id))
        .bind(sought(user))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(file).transpose()
}

pub(super) async fn list(db: Db<'_>, user: &str, page: &PageRequest) -> Result<Page<FileRow>, StoreError> {
    let place = page.place()?;
    let rows = sqlx::query(
        "SELECT * FROM file WHERE user_id = $1 AND ($2::bigint IS NULL OR (created_at, id) < ($2, $3))
         ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .bind(sought(user))
    .bind(place.as_ref().map(|place| place.at))
    .bind(place.as_ref().map(|place| place.id.clone()))
    .bind(i64::from(page.rows() + 1))
    .fetch_all(db)
    .await?;
    Ok(Page::of(each(&rows, file)?, page.rows(), |file| Place { at: file.created_at, id: file.id.clone() }))
}

pub(super) async fn remove(db: Db<'_>, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
    let row = sqlx::query("DELETE FROM file WHERE id = $1 AND user_id = $2 RETURNING *")
        .bind(sought(id))
        .bind(sought(user))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(file).transpose()
}

/// Those of these files that no turn uses any more. Returns the hashes of those that are gone.
pub(super) async fn remove_unused(db: Db<'_>, ids: Vec<String>) -> Result<Vec<String>, StoreError> {
    Ok(sqlx::query_scalar(
        "DELETE FROM file f WHERE id = ANY ($1) AND NOT EXISTS (SELECT 1 FROM file_use WHERE file_id = f.id)
         RETURNING hash",
    )
    .bind(ids)
    .fetch_all(db)
    .await?)
}

/// Returns the hashes of those that are gone.
pub(super) async fn forget_unused(
    db: Db<'_>,
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

pub(super) async fn blobs_in_use(db: Db<'_>, hashes: &[String]) -> Result<HashSet<String>, StoreError> {
    let hashes: Vec<String> = hashes.iter().map(|hash| sought(hash).into_owned()).collect();
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
