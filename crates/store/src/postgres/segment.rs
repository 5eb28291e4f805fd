//! What the database says of a turn, and its records.

use super::connection::sought;
use crate::error::StoreError;
use crate::log::Record;
use crate::records::{Behind, Gather, More, Progress, frame, parts};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, PgExecutor, Row as _};

/// Rows read at once.
const ROWS: i64 = 512;

/// What the database says of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub n: i64,
    pub epoch: u64,
    pub state: State,
    pub last_seq: u64,
}

/// How far a turn has come. Stored as its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    Open = 0,
    Ended = 1,
    Merged = 2,
}

impl Row {
    pub fn progress(&self) -> Progress {
        Progress { last_seq: self.last_seq, ended: self.state != State::Open }
    }

    fn of(row: &PgRow) -> Result<Self, sqlx::Error> {
        let state = match row.try_get::<i16, _>("state")? {
            0 => State::Open,
            1 => State::Ended,
            _ => State::Merged,
        };
        let number = |column| row.try_get::<i64, _>(column).map(|number| number as u64);
        Ok(Self { n: row.try_get("n")?, epoch: number("epoch")?, state, last_seq: number("last_seq")? })
    }
}

pub(super) async fn row(db: impl PgExecutor<'_>, turn: &str) -> Result<Option<Row>, sqlx::Error> {
    let row = sqlx::query(
        "SELECT n, epoch, state, CASE WHEN state > 0 THEN last_seq
            ELSE coalesce((SELECT max(s.last_seq) FROM segment s WHERE s.n = t.n), 0) END AS last_seq
         FROM turn_log t WHERE turn = $1",
    )
    .bind(sought(turn))
    .fetch_optional(db)
    .await?;
    row.as_ref().map(Row::of).transpose()
}

/// Those of several turns that are there.
pub(super) async fn rows(db: impl PgExecutor<'_>, turns: &[i64]) -> Result<Vec<Row>, sqlx::Error> {
    let rows = sqlx::query(
        "SELECT n, epoch, state, CASE WHEN state > 0 THEN last_seq
            ELSE coalesce((SELECT max(s.last_seq) FROM segment s WHERE s.n = t.n), 0) END AS last_seq
         FROM turn_log t WHERE n = ANY ($1)",
    )
    .bind(turns.to_vec())
    .fetch_all(db)
    .await?;
    rows.iter().map(Row::of).collect()
}

/// At most so many records behind `after`, and not much more than [`BYTES`](crate::records::BYTES).
pub(super) async fn behind(
    db: &mut PgConnection,
    n: i64,
    after: u64,
    records_max: usize,
) -> Result<Behind, StoreError> {
    let mut gather = Gather::new(after, records_max);
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
        let Some(last) = rows.last() else { return Ok(gather.done()) };
        from = last.try_get("last_seq")?;
        for row in &rows {
            let damage = |damaged: frame::Damaged| StoreError::Corrupt {
                why: format!("{damaged} (turn_log.n = {n})"),
            };
            let data = frame::unseal(row.try_get("data")?).map_err(damage)?;
            let first_seq: i64 = row.try_get("first_seq")?;
            if gather.take(first_seq as u64, data).map_err(damage)? == More::Enough {
                return Ok(gather.done());
            }
        }
    }
}

/// Every record of a turn.
pub(super) async fn all(db: &mut PgConnection, n: i64) -> Result<Vec<Record>, StoreError> {
    let mut all: Vec<Record> = Vec::new();
    loop {
        let after = all.last().map_or(0, |record| record.seq);
        match behind(db, n, after, usize::MAX).await? {
            Behind::Records(more) if more.is_empty() => return Ok(all),
            Behind::Records(mut more) => all.append(&mut more),
            Behind::InsideMerged => {
                return Err(StoreError::Corrupt { why: format!("segments overlap (turn_log.n = {n})") });
            }
        }
    }
}

/// Writes a turn's records anew instead of all its segments.
pub(super) async fn replace(db: &mut PgConnection, n: i64, records: &[Record]) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM segment WHERE n = $1").bind(n).execute(&mut *db).await?;
    for (first, last, blob) in parts(records) {
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
        .bind(State::Merged as i16)
        .execute(&mut *db)
        .await?;
    Ok(())
}
