//! Files as rows. Their bytes are in the folder of blobs.

use super::{CatalogDb, CatalogRow, bind, page_params, query_one, query_optional, sql, to_sql};
use crate::catalog::texts::{normalize_title, sanitize_file_name, validate_id};
use crate::catalog::{CatalogLimits, FileRow, NewFile, PagePosition, PageRequest, ResultPage};
use crate::error::StoreError;
use std::collections::HashSet;

pub(crate) async fn add(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    new: &NewFile,
) -> Result<FileRow, StoreError> {
    validate_id("user", user)?;
    validate_id("file_id", &new.id)?;
    validate_id("hash", &new.hash)?;
    let bytes = to_sql("bytes", new.bytes)?;
    let sum = sql!("SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes FROM file WHERE user_id = $1");
    let existing: u64 = query_one(db, &sum, bind![user], |row| row.get("bytes")).await?;
    let max = limits.user_files_bytes_max;
    if existing.saturating_add(new.bytes) > max {
        return Err(StoreError::OverLimit { limit: "user_files_bytes_max", max });
    }
    let insert = sql!(
        "INSERT INTO file (id, user_id, name, media_type, bytes, hash, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *"
    )
    .or_exists("file");
    let params = bind![
        &new.id,
        user,
        sanitize_file_name(&new.name),
        normalize_title(&new.media_type, limits.title_chars_max),
        bytes,
        &new.hash,
        new.created_at,
    ];
    let row = query_one(db, &insert, params, file).await?;
    record_making_turn(db, user, new, &row.id).await?;
    Ok(row)
}

pub(crate) async fn find_or_add(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    new: &NewFile,
) -> Result<FileRow, StoreError> {
    // A file that no turn uses may be deleted before the turn that is being prepared uses it.
    let find = sql!(
        "SELECT * FROM file f WHERE hash = $1 AND user_id = $2 AND media_type = $3
            AND EXISTS (SELECT 1 FROM file_use WHERE file_id = f.id) LIMIT 1"
    );
    let media_type = normalize_title(&new.media_type, limits.title_chars_max);
    let Some(existing) = query_optional(db, &find, bind![&new.hash, user, media_type], file).await? else {
        return add(db, limits, user, new).await;
    };
    record_making_turn(db, user, new, &existing.id).await?;
    Ok(existing)
}

async fn record_making_turn(
    db: &mut dyn CatalogDb,
    user: &str,
    new: &NewFile,
    file_id: &str,
) -> Result<(), StoreError> {
    if let Some(turn_id) = &new.made_in
        && !record_use(db, user, turn_id, file_id).await?
    {
        return Err(StoreError::invalid("made_in", "there is no such turn"));
    }
    Ok(())
}

/// `false`: the user does not have both.
pub(crate) async fn record_use(
    db: &mut dyn CatalogDb,
    user: &str,
    turn_id: &str,
    file_id: &str,
) -> Result<bool, StoreError> {
    // A repeated use counts as recorded.
    let record = sql!(
        "INSERT INTO file_use (turn_id, file_id)
         SELECT t.id, f.id FROM turn t, file f WHERE t.id = $1 AND t.user_id = $3 AND f.id = $2 AND f.user_id = $3
         ON CONFLICT (turn_id, file_id) DO UPDATE SET file_id = excluded.file_id"
    );
    Ok(db.execute(&record, bind![turn_id, file_id, user]).await? > 0)
}

pub(crate) async fn get(db: &mut dyn CatalogDb, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
    query_optional(db, &sql!("SELECT * FROM file WHERE id = $1 AND user_id = $2"), bind![id, user], file)
        .await
}

pub(crate) async fn list(
    db: &mut dyn CatalogDb,
    user: &str,
    page: &PageRequest,
) -> Result<ResultPage<FileRow>, StoreError> {
    let (at, id, rows) = page_params(page)?;
    let list = sql!(
        "SELECT * FROM file WHERE user_id = $1 AND ($2 IS NULL OR (created_at, id) < ($2, $3))
         ORDER BY created_at DESC, id DESC LIMIT $4"
    );
    let files = db.query(&list, bind![user, at, id, rows], file).await?;
    Ok(ResultPage::from_rows(files, page.rows(), |file| PagePosition {
        at: file.created_at,
        id: file.id.clone(),
    }))
}

pub(crate) async fn remove(
    db: &mut dyn CatalogDb,
    user: &str,
    id: &str,
) -> Result<Option<FileRow>, StoreError> {
    let remove = sql!("DELETE FROM file WHERE id = $1 AND user_id = $2 RETURNING *");
    query_optional(db, &remove, bind![id, user], file).await
}

/// One of these turns of the user that uses the file.
pub(crate) async fn turn_using(
    db: &mut dyn CatalogDb,
    user: &str,
    turn_ids: Vec<String>,
    file_id: &str,
) -> Result<Option<String>, StoreError> {
    let find = sql!(
        "SELECT u.turn_id FROM file_use u JOIN turn t ON t.id = u.turn_id
         WHERE u.file_id = $1 AND t.user_id = $2 AND u.turn_id",
        in 3,
        " LIMIT 1"
    );
    query_optional(db, &find, bind![file_id, user, turn_ids], |row| row.get("turn_id")).await
}

/// Deletes those of these files that no turn uses, and returns their hashes.
pub(crate) async fn remove_unused(
    db: &mut dyn CatalogDb,
    ids: Vec<String>,
) -> Result<Vec<String>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let remove = sql!(
        "DELETE FROM file WHERE id",
        in 1,
        " AND NOT EXISTS (SELECT 1 FROM file_use WHERE file_id = file.id) RETURNING hash"
    );
    db.query(&remove, bind![ids], |row| row.get("hash")).await
}

/// Deletes unused files from before a time, and returns their hashes.
pub(crate) async fn delete_unused(
    db: &mut dyn CatalogDb,
    before: i64,
    files_max: usize,
) -> Result<Vec<String>, StoreError> {
    let delete = sql!(
        "DELETE FROM file WHERE id IN (
            SELECT id FROM file f WHERE created_at < $1 AND NOT EXISTS (SELECT 1 FROM file_use WHERE file_id = f.id)
            ORDER BY created_at LIMIT $2)
         RETURNING hash"
    );
    db.query(&delete, bind![before, files_max as i64], |row| row.get("hash")).await
}

pub(crate) async fn blobs_in_use(
    db: &mut dyn CatalogDb,
    hashes: &[String],
) -> Result<HashSet<String>, StoreError> {
    let find = sql!("SELECT DISTINCT hash FROM file WHERE hash", in 1, "");
    let used: Vec<String> = db.query(&find, bind![hashes.to_vec()], |row| row.get("hash")).await?;
    Ok(used.into_iter().collect())
}

fn file(row: &dyn CatalogRow) -> Result<FileRow, StoreError> {
    Ok(FileRow {
        id: row.get("id")?,
        user: row.get("user_id")?,
        name: row.get("name")?,
        media_type: row.get("media_type")?,
        bytes: row.get("bytes")?,
        hash: row.get("hash")?,
        created_at: row.get("created_at")?,
    })
}
