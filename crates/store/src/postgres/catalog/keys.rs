//! API keys.

use super::DbConnection;
use super::rows::{exists_error, json, map_rows, sanitize_param, to_json};
use crate::catalog::texts::{normalize_title, replace_nul, validate_id};
use crate::catalog::{CatalogLimits, KeyRow, LAST_USED_INTERVAL_MS};
use crate::error::StoreError;
use sqlx::Row;
use sqlx::postgres::PgRow;

pub(super) async fn add(
    db: DbConnection<'_>,
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
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM api_key WHERE user_id = $1 AND revoked_at IS NULL")
            .bind(user)
            .fetch_one(&mut *db)
            .await?;
    let max = limits.keys_max;
    if u64::try_from(count).unwrap_or_default() >= max {
        return Err(StoreError::OverLimit { limit: "keys_max", max });
    }
    sqlx::query(
        "INSERT INTO api_key (id, user_id, name, hash, scopes, created_at, expires_at, last_used_at, revoked_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(&key.id)
    .bind(user)
    .bind(normalize_title(&key.name, limits.title_chars_max))
    .bind(replace_nul(&key.hash))
    .bind(to_json(&key.scopes)?)
    .bind(key.created_at)
    .bind(key.expires_at)
    .bind(key.last_used_at)
    .bind(key.revoked_at)
    .execute(db)
    .await
    .map_err(exists_error("key"))?;
    Ok(())
}

pub(super) async fn list(db: DbConnection<'_>, user: &str) -> Result<Vec<KeyRow>, StoreError> {
    let rows = sqlx::query("SELECT * FROM api_key WHERE user_id = $1 ORDER BY created_at DESC, id DESC")
        .bind(sanitize_param(user))
        .fetch_all(db)
        .await?;
    map_rows(&rows, key)
}

pub(super) async fn revoke(db: DbConnection<'_>, user: &str, id: &str, now: i64) -> Result<bool, StoreError> {
    let revoked = sqlx::query(
        "UPDATE api_key SET revoked_at = $3 WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL",
    )
    .bind(sanitize_param(id))
    .bind(sanitize_param(user))
    .bind(now)
    .execute(db)
    .await?;
    Ok(revoked.rows_affected() > 0)
}

pub(super) async fn get(db: DbConnection<'_>, id: &str) -> Result<Option<KeyRow>, StoreError> {
    let row = sqlx::query("SELECT * FROM api_key WHERE id = $1")
        .bind(sanitize_param(id))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(key).transpose()
}

/// True if the last use is so long ago that this one is to be written.
pub(super) async fn needs_touch(db: DbConnection<'_>, id: &str, now: i64) -> Result<bool, StoreError> {
    let row = sqlx::query("SELECT 1 FROM api_key WHERE id = $1 AND coalesce(last_used_at <= $2, TRUE)")
        .bind(sanitize_param(id))
        .bind(now.saturating_sub(LAST_USED_INTERVAL_MS))
        .fetch_optional(db)
        .await?;
    Ok(row.is_some())
}

pub(super) async fn touch(db: DbConnection<'_>, id: &str, now: i64) -> Result<bool, StoreError> {
    let touched = sqlx::query(
        "UPDATE api_key SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at <= $3, TRUE)",
    )
    .bind(sanitize_param(id))
    .bind(now)
    .bind(now.saturating_sub(LAST_USED_INTERVAL_MS))
    .execute(db)
    .await?;
    Ok(touched.rows_affected() > 0)
}

fn key(row: &PgRow) -> Result<KeyRow, StoreError> {
    Ok(KeyRow {
        id: row.try_get("id")?,
        user: row.try_get("user_id")?,
        name: row.try_get("name")?,
        hash: row.try_get("hash")?,
        scopes: json(row, "scopes")?,
        created_at: row.try_get("created_at")?,
        expires_at: row.try_get("expires_at")?,
        last_used_at: row.try_get("last_used_at")?,
        revoked_at: row.try_get("revoked_at")?,
    })
}
