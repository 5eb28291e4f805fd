//! Bytes of upstreams, in chunks.

use super::rows::{to_sql, unsigned};
use crate::catalog::{CatalogLimits, RawExtent, RawId, RawRow};
use crate::error::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};

pub(super) fn append(
    db: &Connection,
    limits: &CatalogLimits,
    user: &str,
    id: &RawId,
    bytes: &[u8],
    now: i64,
) -> Result<Option<RawExtent>, StoreError> {
    let is_owned = db
        .prepare_cached("SELECT 1 FROM turn WHERE id = ?1 AND user_id = ?2")?
        .exists([&id.turn_id, user])?;
    if !is_owned {
        return Ok(None);
    }
    db.prepare_cached(
        "INSERT OR IGNORE INTO raw (turn_id, step, attempt, bytes, extent, created_at) VALUES (?1, ?2, ?3, 0, 0, ?4)",
    )?
    .execute(params![id.turn_id, id.step, id.attempt, now])?;
    let (n, stored_bytes, previous): (i64, u64, RawExtent) = db
        .prepare_cached("SELECT * FROM raw WHERE turn_id = ?1 AND step = ?2 AND attempt = ?3")?
        .query_row(params![id.turn_id, id.step, id.attempt], |row| {
            Ok((row.get("n")?, unsigned(row, "bytes")?, extent(row)?))
        })?;
    if previous == RawExtent::Truncated {
        // A gap in the middle would be worse than an end.
        return Ok(Some(previous));
    }
    let of_turn: i64 = db
        .prepare_cached("SELECT sum(bytes) FROM raw WHERE turn_id = ?1")?
        .query_row([&id.turn_id], |row| row.get(0))?;
    let room = limits
        .raw_attempt_bytes_max
        .saturating_sub(stored_bytes)
        .min(limits.raw_turn_bytes_max.saturating_sub(u64::try_from(of_turn).unwrap_or_default()));
    let fits = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
    let extent = if fits == bytes.len() { RawExtent::Complete } else { RawExtent::Truncated };
    if fits > 0 {
        db.prepare_cached("INSERT INTO raw_chunk (raw_n, data) VALUES (?1, ?2)")?
            .execute(params![n, &bytes[..fits]])?;
    }
    db.prepare_cached("UPDATE raw SET bytes = ?2, extent = ?3 WHERE n = ?1")?.execute(params![
        n,
        to_sql("bytes", stored_bytes.saturating_add(fits as u64))?,
        match extent {
            RawExtent::Complete => 0,
            RawExtent::Truncated => 1,
        }
    ])?;
    Ok(Some(extent))
}

/// From now on it is a beginning. `false`: there is no such turn.
pub(super) fn mark_truncated(db: &Connection, user: &str, id: &RawId, now: i64) -> Result<bool, StoreError> {
    let cut = db
        .prepare_cached(
            "INSERT INTO raw (turn_id, step, attempt, bytes, extent, created_at)
             SELECT id, ?3, ?4, 0, 1, ?5 FROM turn WHERE id = ?1 AND user_id = ?2
             ON CONFLICT (turn_id, step, attempt) DO UPDATE SET extent = 1",
        )?
        .execute(params![id.turn_id, user, id.step, id.attempt, now])?;
    Ok(cut > 0)
}

pub(in crate::sqlite) fn of_turn(
    db: &Connection,
    user: &str,
    turn_id: &str,
) -> Result<Vec<RawRow>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT r.* FROM raw r JOIN turn t ON t.id = r.turn_id WHERE t.id = ?1 AND t.user_id = ?2
         ORDER BY r.step, r.attempt",
    )?;
    let rows = query.query_map([turn_id, user], |row| {
        Ok(RawRow {
            id: RawId { turn_id: row.get("turn_id")?, step: row.get("step")?, attempt: row.get("attempt")? },
            bytes: unsigned(row, "bytes")?,
            extent: extent(row)?,
            created_at: row.get("created_at")?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(in crate::sqlite) fn get(db: &Connection, user: &str, id: &RawId) -> Result<Option<Vec<u8>>, StoreError> {
    let n: Option<i64> = db
        .prepare_cached(
            "SELECT r.n FROM raw r JOIN turn t ON t.id = r.turn_id
             WHERE t.id = ?1 AND t.user_id = ?2 AND r.step = ?3 AND r.attempt = ?4",
        )?
        .query_row(params![id.turn_id, user, id.step, id.attempt], |row| row.get(0))
        .optional()?;
    let Some(n) = n else { return Ok(None) };
    let mut bytes = Vec::new();
    let mut chunks = db.prepare_cached("SELECT data FROM raw_chunk WHERE raw_n = ?1 ORDER BY id")?;
    let mut rows = chunks.query([n])?;
    while let Some(row) = rows.next()? {
        let chunk = row.get_ref(0)?.as_blob().map_err(StoreError::failed)?;
        bytes.extend_from_slice(chunk);
    }
    Ok(Some(bytes))
}

fn extent(row: &Row<'_>) -> rusqlite::Result<RawExtent> {
    Ok(match row.get::<_, i64>("extent")? {
        0 => RawExtent::Complete,
        _ => RawExtent::Truncated,
    })
}
