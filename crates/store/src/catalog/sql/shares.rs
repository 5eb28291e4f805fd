//! Links that show a conversation.

use super::{CatalogDb, CatalogRow, bind, check_count, exists, page_params, query_optional, sql};
use crate::catalog::texts::{normalize_title, replace_nul, validate_id};
use crate::catalog::{CatalogLimits, PagePosition, PageRequest, ResultPage, ShareRow};
use crate::error::StoreError;

pub(crate) async fn add(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    share: &ShareRow,
) -> Result<bool, StoreError> {
    validate_id("share_id", &share.id)?;
    if share.user != user {
        return Err(StoreError::invalid("user", "a link can only be added by its own user"));
    }
    if share.hash.is_empty() {
        return Err(StoreError::invalid("hash", "it is empty"));
    }
    let find = sql!("SELECT 1 FROM turn WHERE id = $1 AND conversation_id = $2 AND user_id = $3");
    if !exists(db, &find, bind![&share.leaf_id, &share.conversation_id, user]).await? {
        return Ok(false);
    }
    let count = sql!("SELECT count(*) AS count FROM share WHERE user_id = $1");
    check_count(db, &count, bind![user], "shares_max", limits.shares_max).await?;
    let insert = sql!(
        "INSERT INTO share (id, user_id, conversation_id, leaf_id, title, hash, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
    )
    .or_exists("share");
    let title = normalize_title(&share.title, limits.title_chars_max);
    let params = bind![
        &share.id,
        user,
        &share.conversation_id,
        &share.leaf_id,
        title,
        replace_nul(&share.hash),
        share.created_at,
        share.expires_at,
    ];
    db.execute(&insert, params).await?;
    Ok(true)
}

/// Share links of a deleted conversation are not listed: they belong to another user.
pub(crate) async fn list(
    db: &mut dyn CatalogDb,
    user: &str,
    conversation_id: Option<&str>,
    page: &PageRequest,
) -> Result<ResultPage<ShareRow>, StoreError> {
    let (at, id, rows) = page_params(page)?;
    let list = sql!(
        "SELECT s.* FROM share s JOIN conversation c ON c.id = s.conversation_id AND c.user_id = s.user_id
         WHERE s.user_id = $1 AND ($2 IS NULL OR s.conversation_id = $2)
            AND ($3 IS NULL OR (s.created_at, s.id) < ($3, $4))
         ORDER BY s.created_at DESC, s.id DESC LIMIT $5"
    );
    let shares = db.query(&list, bind![user, conversation_id, at, id, rows], share).await?;
    Ok(ResultPage::from_rows(shares, page.rows(), |share| PagePosition {
        at: share.created_at,
        id: share.id.clone(),
    }))
}

pub(crate) async fn delete(db: &mut dyn CatalogDb, user: &str, id: &str) -> Result<bool, StoreError> {
    let delete = sql!("DELETE FROM share WHERE id = $1 AND user_id = $2");
    Ok(db.execute(&delete, bind![id, user]).await? > 0)
}

pub(crate) async fn get(db: &mut dyn CatalogDb, id: &str) -> Result<Option<ShareRow>, StoreError> {
    query_optional(db, &sql!("SELECT * FROM share WHERE id = $1"), bind![id], share).await
}

fn share(row: &dyn CatalogRow) -> Result<ShareRow, StoreError> {
    Ok(ShareRow {
        id: row.get("id")?,
        user: row.get("user_id")?,
        conversation_id: row.get("conversation_id")?,
        leaf_id: row.get("leaf_id")?,
        title: row.get("title")?,
        hash: row.get("hash")?,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
    })
}
