//! Records that have left the journal: a few blobs of each turn, oldest first.

use crate::error::StoreError;
use crate::log::LogRecord;
use crate::records::{
    AppendedRun, CollectStatus, LogRow, LogState, RecordCollector, SegmentRead, encode_segment, frame,
    split_segments,
};
use rusqlite::{Connection, OptionalExtension, params};

pub(super) fn load_row(connection: &Connection, turn: &str) -> rusqlite::Result<Option<LogRow>> {
    let mut find =
        connection.prepare_cached("SELECT n, epoch, state, last_seq FROM turn_log WHERE turn = ?1")?;
    let row = |row: &rusqlite::Row<'_>| {
        let number = |at| row.get::<_, i64>(at).map(|number| number as u64);
        Ok(LogRow {
            n: row.get(0)?,
            epoch: number(1)?,
            state: LogState::from_number(row.get(2)?),
            last_seq: number(3)?,
        })
    };
    find.query_row([turn], row).optional()
}

/// Writes runs of the journal as one segment after the existing ones, without records that are stored
/// already; does nothing if the turn has been deleted.
pub(super) fn fold(connection: &Connection, n: i64, runs: &[AppendedRun]) -> rusqlite::Result<()> {
    let folded = connection
        .prepare_cached("SELECT folded_seq FROM turn_log WHERE n = ?1")?
        .query_row([n], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(folded) = folded else { return Ok(()) };
    let runs = &runs[runs.partition_point(|run| run.last_seq <= folded as u64)..];
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return Ok(()) };
    connection
        .prepare_cached("UPDATE turn_log SET folded_seq = ?2 WHERE n = ?1")?
        .execute(params![n, last.last_seq as i64])?;
    let blob = encode_segment(runs.iter().map(|run| &run.payload));
    insert(connection, n, first.first_seq, last.last_seq, &blob)
}

fn insert(connection: &Connection, n: i64, first: u64, last: u64, blob: &[u8]) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO segment (n, first_seq, last_seq, data) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![n, first as i64, last as i64, blob])?;
    Ok(())
}

/// At most `records_max` records after `after`, and not much more than [`BYTES`](crate::records::BYTES).
pub(super) fn read_after(
    connection: &Connection,
    n: i64,
    after: u64,
    records_max: usize,
) -> Result<SegmentRead, StoreError> {
    let mut find = connection.prepare_cached(
        "SELECT first_seq, data FROM segment WHERE n = ?1 AND last_seq > ?2 ORDER BY last_seq",
    )?;
    let mut rows = find.query(params![n, i64::try_from(after).unwrap_or(i64::MAX)])?;
    let mut collector = RecordCollector::new(after, records_max);
    while let Some(row) = rows.next()? {
        let data = frame::verify_checksum(row.get(1)?).map_err(|error| corrupt_segment(n, error))?;
        let more = collector
            .push_segment(row.get::<_, i64>(0)? as u64, data)
            .map_err(|error| corrupt_segment(n, error))?;
        if more == CollectStatus::Done {
            break;
        }
    }
    Ok(collector.finish())
}

/// Every record of a turn.
pub(super) fn read_all(connection: &Connection, n: i64) -> Result<Vec<LogRecord>, StoreError> {
    let mut all: Vec<LogRecord> = Vec::new();
    loop {
        let after = all.last().map_or(0, |record| record.seq);
        match read_after(connection, n, after, usize::MAX)? {
            SegmentRead::Records(more) if more.is_empty() => return Ok(all),
            SegmentRead::Records(mut more) => all.append(&mut more),
            SegmentRead::InsideMerged => return Err(corrupt_segment(n, frame::CorruptRecords)),
        }
    }
}

/// Replaces all segments of a turn by newly written ones.
pub(super) fn replace_all(connection: &Connection, n: i64, records: &[LogRecord]) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM segment WHERE n = ?1")?.execute([n])?;
    for (first, last, blob) in split_segments(records) {
        insert(connection, n, first, last, &blob)?;
    }
    connection
        .prepare_cached("UPDATE turn_log SET state = ?2 WHERE n = ?1")?
        .execute(params![n, LogState::Merged as i64])?;
    Ok(())
}

fn corrupt_segment(n: i64, error: frame::CorruptRecords) -> StoreError {
    StoreError::Corrupt { why: format!("{error} (turn_log.n = {n})") }
}
