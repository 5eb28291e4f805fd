//! API keys.

use super::rows::{exists_error, json, to_json};
use crate::catalog::texts::{normalize_title, validate_id};
use crate::catalog::{CatalogLimits, KeyRow, LAST_USED_INTERVAL_MS};
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};

pub(super) fn add(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    key: &KeyRow,
) -> Result<(), StoreError> {
    validate_id("user", user)?;
    validate_id("key_id", &key.id)?;
    if key.user != user {
        return Err(StoreError::invalid("user", "a key is added by its own user"));
    }
    if key.hash.is_empty() {
        return Err(StoreError::invalid("hash", "it is empty"));
    }
    let count: i64 = db
        .prepare_cached("SELECT count(*) FROM api_key WHERE user_id = ?1 AND revoked_at IS NULL")?
        .query_row([user], |row| row.get(0))?;
    let max = limits.keys_max;
    if u64::try_from(count).unwrap_or_default() >= max {
        return Err(StoreError::OverLimit { limit: "keys_max", max });
    }
    db.prepare_cached(
        "INSERT INTO api_key (id, user_id, name, hash, scopes, created_at, expires_at, last_used_at, revoked_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![
        key.id,
        user,
        normalize_title(&key.name, limits.title_chars_max),
        key.hash,
        to_json(&key.scopes)?,
        key.created_at,
        key.expires_at,
        key.last_used_at,
        key.revoked_at,
    ])
    .map_err(exists_error("key"))?;
    Ok(())
}

pub(super) fn list(db: &Connection, user: &str) -> Result<Vec<KeyRow>, StoreError> {
    let mut query =
        db.prepare_cached("SELECT * FROM api_key WHERE user_id = ?1 ORDER BY created_at DESC, id DESC")?;
    Ok(query.query_map([user], key)?.collect::<Result<_, _>>()?)
}

pub(super) fn revoke(db: &Connection, user: &str, id: &str, now: i64) -> Result<bool, StoreError> {
    let revoked = db
        .prepare_cached(
            "UPDATE api_key SET revoked_at = ?3 WHERE id = ?1 AND user_id = ?2 AND revoked_at IS NULL",
        )?
        .execute(params![id, user, now])?;
    Ok(revoked > 0)
}

pub(super) fn get(db: &Connection, id: &str) -> Result<Option<KeyRow>, StoreError> {
    Ok(db.prepare_cached("SELECT * FROM api_key WHERE id = ?1")?.query_row([id], key).optional()?)
}

/// True if the last use is so long ago that this one is to be written.
pub(super) fn needs_touch(db: &Connection, id: &str, now: i64) -> Result<bool, StoreError> {
    Ok(db
        .prepare_cached("SELECT 1 FROM api_key WHERE id = ?1 AND coalesce(last_used_at <= ?2, TRUE)")?
        .exists(params![id, now.saturating_sub(LAST_USED_INTERVAL_MS)])?)
}

pub(super) fn touch(db: &Connection, id: &str, now: i64) -> Result<bool, StoreError> {
    let touched = db
        .prepare_cached(
            "UPDATE api_key SET last_used_at = ?2 WHERE id = ?1 AND coalesce(last_used_at <= ?3, TRUE)",
        )?
        .execute(params![id, now, now.saturating_sub(LAST_USED_INTERVAL_MS)])?;
    Ok(touched > 0)
}

fn key(row: &Row<'_>) -> rusqlite::Result<KeyRow> {
    Ok(KeyRow {
        id: row.get("id")?,
        user: row.get("user_id")?,
        name: row.get("name")?,
        hash: row.get("hash")?,
        scopes: json(row, "scopes")?,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        last_used_at: row.get("last_used_at")?,
        revoked_at: row.get("revoked_at")?,
    })
}
