//! Bytes of upstreams, in chunks.

use super::{CatalogDb, CatalogRow, bind, exists, query_one, query_optional, sql, to_sql};
use crate::catalog::{CatalogLimits, RawExtent, RawId, RawRow};
use crate::error::StoreError;

pub(crate) async fn append(
    db: &mut dyn CatalogDb,
    limits: &CatalogLimits,
    user: &str,
    id: &RawId,
    bytes: &[u8],
    now: i64,
) -> Result<Option<RawExtent>, StoreError> {
    let find = sql!("SELECT 1 FROM turn WHERE id = $1 AND user_id = $2", lock "FOR KEY SHARE");
    if !exists(db, &find, bind![&id.turn_id, user]).await? {
        return Ok(None);
    }
    db.execute(
        &sql!(
            "INSERT INTO raw (turn_id, step, attempt, bytes, extent, created_at) VALUES ($1, $2, $3, 0, 0, $4)
             ON CONFLICT DO NOTHING"
        ),
        bind![&id.turn_id, id.step, id.attempt, now],
    )
    .await?;
    let get = sql!("SELECT * FROM raw WHERE turn_id = $1 AND step = $2 AND attempt = $3", lock "FOR UPDATE");
    let (n, stored_bytes, previous): (i64, u64, RawExtent) =
        query_one(db, &get, bind![&id.turn_id, id.step, id.attempt], |row| {
            Ok((row.get("n")?, row.get("bytes")?, extent(row)?))
        })
        .await?;
    if previous == RawExtent::Truncated {
        // A gap in the middle would be worse than an end.
        return Ok(Some(previous));
    }
    let sum = sql!("SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes FROM raw WHERE turn_id = $1");
    let of_turn: u64 = query_one(db, &sum, bind![&id.turn_id], |row| row.get("bytes")).await?;
    let room = limits
        .raw_attempt_bytes_max
        .saturating_sub(stored_bytes)
        .min(limits.raw_turn_bytes_max.saturating_sub(of_turn));
    let fits = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
    let extent = if fits == bytes.len() { RawExtent::Complete } else { RawExtent::Truncated };
    if fits > 0 {
        let insert = sql!("INSERT INTO raw_chunk (raw_n, data) VALUES ($1, $2)");
        db.execute(&insert, bind![n, &bytes[..fits]]).await?;
    }
    let extent_number = match extent {
        RawExtent::Complete => 0i64,
        RawExtent::Truncated => 1,
    };
    let total = to_sql("bytes", stored_bytes.saturating_add(fits as u64))?;
    let update = sql!("UPDATE raw SET bytes = $2, extent = $3 WHERE n = $1");
    db.execute(&update, bind![n, total, extent_number]).await?;
    Ok(Some(extent))
}

/// From now on it is a beginning. `false`: there is no such turn.
pub(crate) async fn mark_truncated(
    db: &mut dyn CatalogDb,
    user: &str,
    id: &RawId,
    now: i64,
) -> Result<bool, StoreError> {
    let mark = sql!(
        "INSERT INTO raw (turn_id, step, attempt, bytes, extent, created_at)
         SELECT id, $3, $4, 0, 1, $5 FROM turn WHERE id = $1 AND user_id = $2
         ON CONFLICT (turn_id, step, attempt) DO UPDATE SET extent = 1"
    );
    Ok(db.execute(&mark, bind![&id.turn_id, user, id.step, id.attempt, now]).await? > 0)
}

pub(crate) async fn of_turn(
    db: &mut dyn CatalogDb,
    user: &str,
    turn_id: &str,
) -> Result<Vec<RawRow>, StoreError> {
    let list = sql!(
        "SELECT r.* FROM raw r JOIN turn t ON t.id = r.turn_id WHERE t.id = $1 AND t.user_id = $2
         ORDER BY r.step, r.attempt"
    );
    db.query(&list, bind![turn_id, user], |row| {
        let (turn_id, step, attempt) = (row.get("turn_id")?, row.get("step")?, row.get("attempt")?);
        Ok(RawRow {
            id: RawId { turn_id, step, attempt },
            bytes: row.get("bytes")?,
            extent: extent(row)?,
            created_at: row.get("created_at")?,
        })
    })
    .await
}

pub(crate) async fn get(
    db: &mut dyn CatalogDb,
    user: &str,
    id: &RawId,
) -> Result<Option<Vec<u8>>, StoreError> {
    let find = sql!(
        "SELECT r.n FROM raw r JOIN turn t ON t.id = r.turn_id
         WHERE t.id = $1 AND t.user_id = $2 AND r.step = $3 AND r.attempt = $4"
    );
    let params = bind![&id.turn_id, user, id.step, id.attempt];
    let n: Option<i64> = query_optional(db, &find, params, |row| row.get("n")).await?;
    let Some(n) = n else { return Ok(None) };
    let read = sql!("SELECT data FROM raw_chunk WHERE raw_n = $1 ORDER BY id");
    let chunks: Vec<Vec<u8>> = db.query(&read, bind![n], |row| row.get("data")).await?;
    Ok(Some(chunks.concat()))
}

fn extent(row: &dyn CatalogRow) -> Result<RawExtent, StoreError> {
    Ok(match row.get::<i64>("extent")? {
        0 => RawExtent::Complete,
        _ => RawExtent::Truncated,
    })
}
