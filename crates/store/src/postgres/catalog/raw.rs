//! Bytes of upstreams, in chunks.

use super::DbConnection;
use super::rows::{map_rows, sanitize_param, to_sql, unsigned, unsigned_32};
use crate::catalog::{CatalogLimits, RawExtent, RawId, RawRow};
use crate::error::StoreError;
use sqlx::Row;
use sqlx::postgres::PgRow;

pub(super) async fn append(
    db: DbConnection<'_>,
    limits: &CatalogLimits,
    user: &str,
    id: &RawId,
    bytes: &[u8],
    now: i64,
) -> Result<Option<RawExtent>, StoreError> {
    let is_owned = sqlx::query("SELECT 1 FROM turn WHERE id = $1 AND user_id = $2 FOR KEY SHARE")
        .bind(sanitize_param(&id.turn_id))
        .bind(sanitize_param(user))
        .fetch_optional(&mut *db)
        .await?;
    if is_owned.is_none() {
        return Ok(None);
    }
    sqlx::query(
        "INSERT INTO raw (turn_id, step, attempt, bytes, extent, created_at) VALUES ($1, $2, $3, 0, 0, $4)
         ON CONFLICT DO NOTHING",
    )
    .bind(&id.turn_id)
    .bind(i64::from(id.step))
    .bind(i64::from(id.attempt))
    .bind(now)
    .execute(&mut *db)
    .await?;
    let row = sqlx::query("SELECT * FROM raw WHERE turn_id = $1 AND step = $2 AND attempt = $3 FOR UPDATE")
        .bind(&id.turn_id)
        .bind(i64::from(id.step))
        .bind(i64::from(id.attempt))
        .fetch_one(&mut *db)
        .await?;
    let (n, stored_bytes, previous): (i64, u64, RawExtent) =
        (row.try_get("n")?, unsigned(&row, "bytes")?, extent(&row)?);
    if previous == RawExtent::Truncated {
        // A gap in the middle would be worse than an end.
        return Ok(Some(previous));
    }
    let of_turn: i64 =
        sqlx::query_scalar("SELECT coalesce(sum(bytes), 0)::bigint FROM raw WHERE turn_id = $1")
            .bind(&id.turn_id)
            .fetch_one(&mut *db)
            .await?;
    let room = limits
        .raw_attempt_bytes_max
        .saturating_sub(stored_bytes)
        .min(limits.raw_turn_bytes_max.saturating_sub(u64::try_from(of_turn).unwrap_or_default()));
    let fits = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
    let extent = if fits == bytes.len() { RawExtent::Complete } else { RawExtent::Truncated };
    if fits > 0 {
        sqlx::query("INSERT INTO raw_chunk (raw_n, data) VALUES ($1, $2)")
            .bind(n)
            .bind(bytes[..fits].to_vec())
            .execute(&mut *db)
            .await?;
    }
    sqlx::query("UPDATE raw SET bytes = $2, extent = $3 WHERE n = $1")
        .bind(n)
        .bind(to_sql("bytes", stored_bytes.saturating_add(fits as u64))?)
        .bind(match extent {
            RawExtent::Complete => 0i16,
            RawExtent::Truncated => 1,
        })
        .execute(db)
        .await?;
    Ok(Some(extent))
}

/// From now on it is a beginning. `false`: there is no such turn.
pub(super) async fn mark_truncated(
    db: DbConnection<'_>,
    user: &str,
    id: &RawId,
    now: i64,
) -> Result<bool, StoreError> {
    let cut = sqlx::query(
        "INSERT INTO raw (turn_id, step, attempt, bytes, extent, created_at)
         SELECT id, $3, $4, 0, 1, $5 FROM turn WHERE id = $1 AND user_id = $2
         ON CONFLICT (turn_id, step, attempt) DO UPDATE SET extent = 1",
    )
    .bind(sanitize_param(&id.turn_id))
    .bind(sanitize_param(user))
    .bind(i64::from(id.step))
    .bind(i64::from(id.attempt))
    .bind(now)
    .execute(db)
    .await?;
    Ok(cut.rows_affected() > 0)
}

pub(in crate::postgres) async fn of_turn(
    db: DbConnection<'_>,
    user: &str,
    turn_id: &str,
) -> Result<Vec<RawRow>, StoreError> {
    let rows = sqlx::query(
        "SELECT r.* FROM raw r JOIN turn t ON t.id = r.turn_id WHERE t.id = $1 AND t.user_id = $2
         ORDER BY r.step, r.attempt",
    )
    .bind(sanitize_param(turn_id))
    .bind(sanitize_param(user))
    .fetch_all(db)
    .await?;
    map_rows(&rows, |row| {
        let id = RawId {
            turn_id: row.try_get("turn_id")?,
            step: unsigned_32(row, "step")?,
            attempt: unsigned_32(row, "attempt")?,
        };
        Ok(RawRow {
            id,
            bytes: unsigned(row, "bytes")?,
            extent: extent(row)?,
            created_at: row.try_get("created_at")?,
        })
    })
}

pub(in crate::postgres) async fn get(
    db: DbConnection<'_>,
    user: &str,
    id: &RawId,
) -> Result<Option<Vec<u8>>, StoreError> {
    let n: Option<i64> = sqlx::query_scalar(
        "SELECT r.n FROM raw r JOIN turn t ON t.id = r.turn_id
         WHERE t.id = $1 AND t.user_id = $2 AND r.step = $3 AND r.attempt = $4",
    )
    .bind(sanitize_param(&id.turn_id))
    .bind(sanitize_param(user))
    .bind(i64::from(id.step))
    .bind(i64::from(id.attempt))
    .fetch_optional(&mut *db)
    .await?;
    let Some(n) = n else { return Ok(None) };
    let chunks: Vec<Vec<u8>> = sqlx::query_scalar("SELECT data FROM raw_chunk WHERE raw_n = $1 ORDER BY id")
        .bind(n)
        .fetch_all(db)
        .await?;
    Ok(Some(chunks.concat()))
}

fn extent(row: &PgRow) -> Result<RawExtent, StoreError> {
    Ok(match row.try_get::<i16, _>("extent")? {
        0 => RawExtent::Complete,
        _ => RawExtent::Truncated,
    })
}
