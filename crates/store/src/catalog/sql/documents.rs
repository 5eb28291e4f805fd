//! Documents and remembered answers.

use super::{
    CatalogDb, CatalogRow, bind, check_count, exists, query_one, query_optional, sql, to_json, to_sql,
};
use crate::catalog::texts::{replace_nul, validate_id};
use crate::catalog::{
    CatalogLimits, DocumentKind, DocumentPrecondition, NewDocument, NewRemembered, PutOutcome, RememberedRow,
    StoredDocument,
};
use crate::error::StoreError;

pub(crate) async fn get(
    db: &mut dyn CatalogDb,
    user: &str,
    kind: DocumentKind,
    name: &str,
) -> Result<Option<StoredDocument>, StoreError> {
    let get = sql!("SELECT * FROM document WHERE user_id = $1 AND kind = $2 AND name = $3");
    query_optional(db, &get, bind![user, kind.name(), name], document).await
}

pub(crate) async fn list(
    db: &mut dyn CatalogDb,
    user: &str,
    kind: DocumentKind,
) -> Result<Vec<StoredDocument>, StoreError> {
    let list = sql!("SELECT * FROM document WHERE user_id = $1 AND kind = $2 ORDER BY name");
    db.query(&list, bind![user, kind.name()], document).await
}

pub(crate) async fn put(
    db: &mut dyn CatalogDb,
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
        let count = sql!("SELECT count(*) AS count FROM document WHERE user_id = $1 AND kind = $2");
        check_count(db, &count, bind![user, new.kind.name()], "documents_max", limits.documents_max).await?;
    }
    let put = sql!(
        "INSERT INTO document (user_id, kind, name, body, version, created_at, updated_at)
         VALUES ($1, $2, $3, $4, 1, $5, $5)
         ON CONFLICT (user_id, kind, name) DO UPDATE
            SET body = excluded.body, version = document.version + 1, updated_at = excluded.updated_at
         RETURNING *"
    );
    let written =
        query_one(db, &put, bind![user, new.kind.name(), &new.name, body, new.now], document).await?;
    Ok(PutOutcome::Written(written))
}

pub(crate) async fn remove(
    db: &mut dyn CatalogDb,
    user: &str,
    kind: DocumentKind,
    name: &str,
) -> Result<Option<StoredDocument>, StoreError> {
    let remove = sql!("DELETE FROM document WHERE user_id = $1 AND kind = $2 AND name = $3 RETURNING *");
    query_optional(db, &remove, bind![user, kind.name(), name], document).await
}

fn document(row: &dyn CatalogRow) -> Result<StoredDocument, StoreError> {
    Ok(StoredDocument {
        name: row.get("name")?,
        body: row.json("body")?,
        version: row.get("version")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
    })
}

pub(crate) async fn remembered(
    db: &mut dyn CatalogDb,
    user: &str,
    conversation_id: Option<&str>,
) -> Result<Vec<RememberedRow>, StoreError> {
    let list = sql!(
        "SELECT * FROM remembered WHERE user_id = $1 AND (conversation_id IS NULL OR conversation_id = $2)
         ORDER BY number"
    );
    db.query(&list, bind![user, conversation_id], remembered_row).await
}

pub(crate) async fn all_remembered(
    db: &mut dyn CatalogDb,
    user: &str,
) -> Result<Vec<RememberedRow>, StoreError> {
    let list = sql!("SELECT * FROM remembered WHERE user_id = $1 ORDER BY number");
    db.query(&list, bind![user], remembered_row).await
}

pub(crate) async fn remember(
    db: &mut dyn CatalogDb,
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
        // It stays until the end of the transaction.
        let find = sql!("SELECT 1 FROM conversation WHERE id = $1 AND user_id = $2", lock "FOR KEY SHARE");
        if !exists(db, &find, bind![conversation_id, user]).await? {
            return Ok(None);
        }
    }
    let about = replace_nul(&new.about);
    // An earlier answer about the same no longer holds.
    db.execute(
        &sql!(
            "DELETE FROM remembered WHERE user_id = $1 AND conversation_id IS NOT DISTINCT FROM $2 AND about = $3"
        ),
        bind![user, &new.conversation_id, about.as_ref()],
    )
    .await?;
    db.execute(
        &sql!(
            "DELETE FROM remembered WHERE user_id = $1 AND number NOT IN (
                SELECT number FROM remembered WHERE user_id = $1 ORDER BY number DESC LIMIT $2)"
        ),
        bind![user, to_sql("remembered_max", limits.remembered_max.saturating_sub(1))?],
    )
    .await?;
    let insert = sql!(
        "INSERT INTO remembered (user_id, conversation_id, about, answer, at) VALUES ($1, $2, $3, $4, $5)
         RETURNING *"
    );
    let params = bind![user, &new.conversation_id, about.as_ref(), body, new.at];
    query_one(db, &insert, params, remembered_row).await.map(Some)
}

pub(crate) async fn delete_remembered(
    db: &mut dyn CatalogDb,
    user: &str,
    number: u64,
) -> Result<Option<RememberedRow>, StoreError> {
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    let delete = sql!("DELETE FROM remembered WHERE number = $1 AND user_id = $2 RETURNING *");
    query_optional(db, &delete, bind![number, user], remembered_row).await
}

fn remembered_row(row: &dyn CatalogRow) -> Result<RememberedRow, StoreError> {
    Ok(RememberedRow {
        number: row.get("number")?,
        conversation_id: row.get("conversation_id")?,
        about: row.get("about")?,
        answer: row.json("answer")?,
        at: row.get("at")?,
    })
}
