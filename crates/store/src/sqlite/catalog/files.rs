//! Files as rows. Their bytes are elsewhere.

use super::rows::{exists_error, to_sql, unsigned};
use crate::catalog::texts::{normalize_title, sanitize_file_name, validate_id};
use crate::catalog::{CatalogLimits, FileRow, NewFile, PagePosition, PageRequest, ResultPage};
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use std::collections::HashSet;

pub(super) fn add(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    new: &NewFile,
) -> Result<FileRow, StoreError> {
    validate_id("user", user)?;
    validate_id("file_id", &new.id)?;
    validate_id("hash", &new.hash)?;
    let bytes = to_sql("bytes", new.bytes)?;
    let existing: i64 = db
        .prepare_cached("SELECT coalesce(sum(bytes), 0) FROM file WHERE user_id = ?1")?
        .query_row([user], |row| row.get(0))?;
    let max = limits.user_files_bytes_max;
    if u64::try_from(existing).unwrap_or_default().saturating_add(new.bytes) > max {
        return Err(StoreError::OverLimit { limit: "user_files_bytes_max", max });
    }
    let row = db
        .prepare_cached(
            "INSERT INTO file (id, user_id, name, media_type, bytes, hash, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING *",
        )?
        .query_row(
            params![
                new.id,
                user,
                sanitize_file_name(&new.name),
                normalize_title(&new.media_type, limits.title_chars_max),
                bytes,
                new.hash,
                new.created_at,
            ],
            file,
        )
        .map_err(exists_error("file"))?;
    if let Some(turn_id) = &new.made_in
        && !record_use(db, user, turn_id, &new.id)?
    {
        return Err(StoreError::invalid("made_in", "there is no such turn"));
    }
    Ok(row)
}

pub(super) fn find_or_add(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    new: &NewFile,
) -> Result<FileRow, StoreError> {
    // One that nobody uses may be swept before the turn that is being prepared uses it.
    let existing = db
        .prepare_cached(
            "SELECT * FROM file f WHERE hash = ?1 AND user_id = ?2 AND media_type = ?3
                AND EXISTS (SELECT 1 FROM file_use WHERE file_id = f.id) LIMIT 1",
        )?
        .query_row([&new.hash, user, &normalize_title(&new.media_type, limits.title_chars_max)], file)
        .optional()?;
    let Some(existing) = existing else { return add(db, limits, user, new) };
    if let Some(turn_id) = &new.made_in
        && !record_use(db, user, turn_id, &existing.id)?
    {
        return Err(StoreError::invalid("made_in", "there is no such turn"));
    }
    Ok(existing)
}

/// `false`: the user does not have both.
pub(super) fn record_use(
    db: &Connection,
    user: &str,
    turn_id: &str,
    file_id: &str,
) -> Result<bool, StoreError> {
    // Once more is as good as once.
    let recorded = db
        .prepare_cached(
            "INSERT INTO file_use (turn_id, file_id)
             SELECT t.id, f.id FROM turn t, file f WHERE t.id = ?1 AND t.user_id = ?3 AND f.id = ?2 AND f.user_id = ?3
             ON CONFLICT DO UPDATE SET file_id = excluded.file_id",
        )?
        .execute([turn_id, file_id, user])?;
    Ok(recorded > 0)
}

pub(in crate::sqlite) fn get(db: &Connection, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
    Ok(db
        .prepare_cached("SELECT * FROM file WHERE id = ?1 AND user_id = ?2")?
        .query_row([id, user], file)
        .optional()?)
}

pub(super) fn list(
    db: &Connection,
    user: &str,
    page: &PageRequest,
) -> Result<ResultPage<FileRow>, StoreError> {
    let position = page.position()?;
    let mut query = db.prepare_cached(
        "SELECT * FROM file WHERE user_id = :user AND (:at IS NULL OR (created_at, id) < (:at, :id))
         ORDER BY created_at DESC, id DESC LIMIT :rows",
    )?;
    let rows = query.query_map(
        named_params! {
            ":user": user,
            ":at": position.as_ref().map(|position| position.at),
            ":id": position.as_ref().map(|position| &position.id),
            ":rows": page.rows() + 1,
        },
        file,
    )?;
    let files = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(ResultPage::from_rows(files, page.rows(), |file| PagePosition {
        at: file.created_at,
        id: file.id.clone(),
    }))
}

pub(super) fn remove(db: &Connection, user: &str, id: &str) -> Result<Option<FileRow>, StoreError> {
    Ok(db
        .prepare_cached("DELETE FROM file WHERE id = ?1 AND user_id = ?2 RETURNING *")?
        .query_row([id, user], file)
        .optional()?)
}

/// Returns its hash, if it is gone.
pub(super) fn remove_if_unused(db: &Connection, id: &str) -> Result<Option<String>, StoreError> {
    Ok(db
        .prepare_cached(
            "DELETE FROM file WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM file_use WHERE file_id = ?1) RETURNING hash",
        )?
        .query_row([id], |row| row.get(0))
        .optional()?)
}

/// Returns the hashes of those that are gone.
pub(super) fn delete_unused(
    db: &Connection,
    before: i64,
    files_max: usize,
) -> Result<Vec<String>, StoreError> {
    let mut query = db.prepare_cached(
        "DELETE FROM file WHERE id IN (
            SELECT id FROM file f WHERE created_at < ?1 AND NOT EXISTS (SELECT 1 FROM file_use WHERE file_id = f.id)
            ORDER BY created_at LIMIT ?2)
         RETURNING hash",
    )?;
    Ok(query.query_map(params![before, files_max as i64], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

pub(super) fn blobs_in_use(db: &Connection, hashes: &[String]) -> Result<HashSet<String>, StoreError> {
    let mut used = db.prepare_cached("SELECT 1 FROM file WHERE hash = ?1")?;
    let mut in_use = HashSet::new();
    for hash in hashes {
        if used.exists([hash])? {
            in_use.insert(hash.clone());
        }
    }
    Ok(in_use)
}

fn file(row: &Row<'_>) -> rusqlite::Result<FileRow> {
    Ok(FileRow {
        id: row.get("id")?,
        user: row.get("user_id")?,
        name: row.get("name")?,
        media_type: row.get("media_type")?,
        bytes: unsigned(row, "bytes")?,
        hash: row.get("hash")?,
        created_at: row.get("created_at")?,
    })
}
