//! The row of a turn's log, and its records.

use super::connection::sanitize_param;
use crate::error::StoreError;
use crate::log::LogRecord;
use crate::records::{
    CollectStatus, LogRow, LogState, RecordCollector, SegmentRead, TurnProgress, frame, split_segments,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgExecutor, Row as _};

/// Rows per query.
const ROWS: i64 = 512;

impl LogRow {
    pub(crate) fn progress(&self) -> TurnProgress {
        TurnProgress { last_seq: self.last_seq, ended: self.state != LogState::Open }
    }
}

fn log_row(row: &PgRow) -> Result<LogRow, sqlx::Error> {
    let number = |column| row.try_get::<i64, _>(column).map(|number| number as u64);
    let state = LogState::from_number(row.try_get::<i16, _>("state")?.into());
    Ok(LogRow { n: row.try_get("n")?, epoch: number("epoch")?, state, last_seq: number("last_seq")? })
}

pub(super) async fn load_row(db: impl PgExecutor<'_>, turn: &str) -> Result<Option<LogRow>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT n, epoch, state, CASE WHEN state > 0 THEN last_seq
            ELSE coalesce((SELECT max(s.last_seq) FROM segment s WHERE s.n = t.n), 0) END AS last_seq
         FROM turn_log t WHERE turn = $1",
    )
    .bind(sanitize_param(turn))
    .fetch_optional(db)
    .await?;
    row.as_ref().map(log_row).transpose()
}

/// Segment rows of several turns.
pub(super) async fn load_rows(db: impl PgExecutor<'_>, turns: &[i64]) -> Result<Vec<LogRow>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT n, epoch, state, CASE WHEN state > 0 THEN last_seq
            ELSE coalesce((SELECT max(s.last_seq) FROM segment s WHERE s.n = t.n), 0) END AS last_seq
         FROM turn_log t WHERE n = ANY ($1)",
    )
    .bind(turns.to_vec())
    .fetch_all(db)
    .await?;
    rows.iter().map(log_row).collect()
}

/// At most `records_max` records after `after`, and not much more than [`BYTES`](crate::records::BYTES).
pub(super) async fn read_after(
    db: &mut PgConnection,
    n: i64,
    after: u64,
    records_max: usize,
) -> Result<SegmentRead, StoreError> {
    let mut collector = RecordCollector::new(after, records_max);
    let mut from = i64::try_from(after).unwrap_or(i64::MAX);
    loop {
        let rows = sqlx::query(
            "SELECT first_seq, last_seq, data FROM segment WHERE n = $1 AND last_seq > $2 ORDER BY last_seq LIMIT $3",
        )
        .bind(n)
        .bind(from)
        .bind(ROWS.min(i64::try_from(records_max).unwrap_or(ROWS)).max(1))
        .fetch_all(&mut *db)
        .await?;
        let Some(last) = rows.last() else { return Ok(collector.finish()) };
        from = last.try_get("last_seq")?;
        for row in &rows {
            let damage = |error: frame::CorruptRecords| StoreError::Corrupt {
                why: format!("{error} (turn_log.n = {n})"),
            };
            let data = frame::verify_checksum(row.try_get("data")?).map_err(damage)?;
            let first_seq: i64 = row.try_get("first_seq")?;
            if collector.push_segment(first_seq as u64, data).map_err(damage)? == CollectStatus::Done {
                return Ok(collector.finish());
            }
        }
    }
}

/// Every record of a turn.
pub(super) async fn read_all(db: &mut PgConnection, n: i64) -> Result<Vec<LogRecord>, StoreError> {
    let mut all: Vec<LogRecord> = Vec::new();
    loop {
        let after = all.last().map_or(0, |record| record.seq);
        match read_after(db, n, after, usize::MAX).await? {
            SegmentRead::Records(more) if more.is_empty() => return Ok(all),
            SegmentRead::Records(mut more) => all.append(&mut more),
            SegmentRead::InsideMerged => {
                return Err(StoreError::Corrupt { why: format!("segments overlap (turn_log.n = {n})") });
            }
        }
    }
}

/// Replaces all segments of a turn by newly written ones.
pub(super) async fn replace_all(
    db: &mut PgConnection,
    n: i64,
    records: &[LogRecord],
) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM segment WHERE n = $1").bind(n).execute(&mut *db).await?;
    for (first, last, blob) in split_segments(records) {
        sqlx::query("INSERT INTO segment (n, first_seq, last_seq, data) VALUES ($1, $2, $3, $4)")
            .bind(n)
            .bind(first as i64)
            .bind(last as i64)
            .bind(blob)
            .execute(&mut *db)
            .await?;
    }
    sqlx::query("UPDATE turn_log SET state = $2 WHERE n = $1")
        .bind(n)
        .bind(LogState::Merged as i16)
        .execute(&mut *db)
        .await?;
    Ok(())
}
