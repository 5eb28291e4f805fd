//! API keys.

use super::{CatalogDb, CatalogRow, bind, check_count, exists, query_optional, sql, to_json};
use crate::catalog::texts::{normalize_title, replace_nul, validate_id};
use crate::catalog::{CatalogLimits, KeyRow, LAST_USED_INTERVAL_MS};
use crate::error::StoreError;

pub(crate) async fn add(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    key: &KeyRow,
) -> Result<(), StoreError> {
    validate_id("user", user)?;
    validate_id("key_id", &key.id)?;
    if key.user != user {
        return Err(StoreError::invalid("user", "a key can only be added by its own user"));
    }
    if key.hash.is_empty() {
        return Err(StoreError::invalid("hash", "it is empty"));
    }
    let count = sql!("SELECT count(*) AS count FROM api_key WHERE user_id = $1 AND revoked_at IS NULL");
    check_count(db, &count, bind![user], "keys_max", limits.keys_max).await?;
    db.execute(
        &sql!(
            "INSERT INTO api_key (id, user_id, name, hash, scopes, created_at, expires_at, last_used_at, revoked_at,
                limits)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
        )
        .or_exists("key"),
        bind![
            &key.id,
            user,
            normalize_title(&key.name, limits.title_chars_max),
            replace_nul(&key.hash),
            to_json(&key.scopes)?,
            key.created_at,
            key.expires_at,
            key.last_used_at,
            key.revoked_at,
            to_json(&key.limits)?,
        ],
    )
    .await?;
    Ok(())
}

pub(crate) async fn list(db: &mut dyn CatalogDb, user: &str) -> Result<Vec<KeyRow>, StoreError> {
    let list = sql!("SELECT * FROM api_key WHERE user_id = $1 ORDER BY created_at DESC, id DESC");
    db.query(&list, bind![user], key).await
}

pub(crate) async fn revoke(
    db: &mut dyn CatalogDb,
    user: &str,
    id: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let revoke =
        sql!("UPDATE api_key SET revoked_at = $3 WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL");
    Ok(db.execute(&revoke, bind![id, user, now]).await? > 0)
}

pub(crate) async fn get(db: &mut dyn CatalogDb, id: &str) -> Result<Option<KeyRow>, StoreError> {
    query_optional(db, &sql!("SELECT * FROM api_key WHERE id = $1"), bind![id], key).await
}

/// True if the stored last use is old enough to be updated.
pub(crate) async fn needs_touch(db: &mut dyn CatalogDb, id: &str, now: i64) -> Result<bool, StoreError> {
    let find = sql!("SELECT 1 FROM api_key WHERE id = $1 AND coalesce(last_used_at <= $2, TRUE)");
    exists(db, &find, bind![id, now.saturating_sub(LAST_USED_INTERVAL_MS)]).await
}

pub(crate) async fn touch(db: &mut dyn CatalogDb, id: &str, now: i64) -> Result<bool, StoreError> {
    let touch =
        sql!("UPDATE api_key SET last_used_at = $2 WHERE id = $1 AND coalesce(last_used_at <= $3, TRUE)");
    Ok(db.execute(&touch, bind![id, now, now.saturating_sub(LAST_USED_INTERVAL_MS)]).await? > 0)
}

pub(super) fn key(row: &dyn CatalogRow) -> Result<KeyRow, StoreError> {
    Ok(KeyRow {
        id: row.get("id")?,
        user: row.get("user_id")?,
        name: row.get("name")?,
        hash: row.get("hash")?,
        scopes: row.json("scopes")?,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        last_used_at: row.get("last_used_at")?,
        revoked_at: row.get("revoked_at")?,
        limits: row.optional_json("limits")?.unwrap_or_default(),
    })
}
