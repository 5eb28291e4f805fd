//! The latest records of one turn in memory: its viewers read them, each by its own sequence number.

use super::frame::{CorruptRecords, JournalChunk, RunDecoder};
use crate::log::LogRecord;
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Instant;

/// Progress of a turn as readers see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnProgress {
    pub last_seq: u64,
    pub ended: bool,
}

/// Records that viewers read from here, newest last.
#[derive(Default)]
pub(crate) struct RecordRing {
    runs: VecDeque<AppendedRun>,
    bytes: usize,
    last_append: Option<Instant>,
}

/// Records written by one append.
#[derive(Clone, Debug)]
pub(crate) struct AppendedRun {
    pub first_seq: u64,
    pub last_seq: u64,
    /// In SQLite the row of the journal that holds it, in PostgreSQL the epoch that wrote it.
    pub row: i64,
    pub payload: Bytes,
}

impl AppendedRun {
    pub(crate) fn new(chunk: JournalChunk, row: i64) -> Self {
        Self { first_seq: chunk.first_seq, last_seq: chunk.last_seq, row, payload: chunk.run }
    }

    /// Memory that it uses, in bytes.
    fn memory_bytes(&self) -> usize {
        self.payload.len() + size_of::<Self>()
    }
}

impl RecordRing {
    /// Adds a run; returns true if it is the only one. A ring has no gap: if another writer has written in
    /// between, the records before this run are read from the database.
    pub(crate) fn push(&mut self, run: AppendedRun, now: Instant) -> bool {
        if self.runs.back().is_some_and(|newest| newest.last_seq + 1 != run.first_seq) {
            self.evict_through(u64::MAX);
        }
        self.bytes += run.memory_bytes();
        self.last_append = Some(now);
        self.runs.push_back(run);
        self.runs.len() == 1
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first row of the journal that is still needed for this turn.
    pub(crate) fn first_row(&self) -> Option<i64> {
        self.runs.front().map(|run| run.row)
    }

    /// When something was last appended.
    pub(crate) fn last_append(&self) -> Option<Instant> {
        self.last_append
    }

    /// The oldest runs, as many as needed for the others to have at most `left` bytes.
    pub(crate) fn oldest_beyond(&self, bytes_max: usize) -> Vec<AppendedRun> {
        let mut bytes = self.bytes;
        let too_many = |run: &&AppendedRun| {
            let takes = bytes > bytes_max;
            bytes -= run.memory_bytes();
            takes
        };
        self.runs.iter().take_while(too_many).cloned().collect()
    }

    /// Lets go of everything up to a number: it can be read elsewhere.
    pub(crate) fn evict_through(&mut self, up_to: u64) {
        while self.runs.front().is_some_and(|run| run.last_seq <= up_to) {
            if let Some(run) = self.runs.pop_front() {
                self.bytes -= run.memory_bytes();
            }
        }
        if self.runs.is_empty() {
            self.runs = VecDeque::new();
        }
    }

    /// Runs after `after`, at most `records_max` records or a few more; `None` if older ones are needed
    /// first.
    pub(crate) fn read_after(&self, after: u64, records_max: usize) -> Option<Vec<AppendedRun>> {
        let first = self.runs.front()?.first_seq;
        if after.saturating_add(1) < first {
            return None;
        }
        let from = self.runs.partition_point(|run| run.last_seq <= after);
        let enough = after.saturating_add(u64::try_from(records_max).unwrap_or(u64::MAX));
        let wanted = self.runs.range(from..).take_while(|run| run.first_seq <= enough);
        Some(wanted.cloned().collect())
    }
}

/// At most `records_max` records after `after` from these runs.
pub(crate) fn decode_runs(
    runs: Vec<AppendedRun>,
    after: u64,
    records_max: usize,
) -> Result<Vec<LogRecord>, CorruptRecords> {
    let mut records = Vec::new();
    for run in runs {
        for record in RunDecoder::new(run.payload, run.first_seq) {
            let record = record?;
            if record.seq > after && records.len() < records_max {
                records.push(record);
            }
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(first_seq: u64, last_seq: u64) -> AppendedRun {
        AppendedRun { first_seq, last_seq, row: first_seq as i64, payload: Bytes::from(vec![0; 100]) }
    }

    #[test]
    fn ring_serves_its_records_and_none_for_older_ones() {
        let mut ring = RecordRing::default();
        assert!(ring.read_after(0, 9).is_none(), "an empty ring knows nothing");
        for (first, last) in [(5, 6), (7, 7), (8, 12)] {
            ring.push(piece(first, last), Instant::now());
        }
        let seen = |after, max| {
            ring.read_after(after, max).map(|runs| runs.iter().map(|run| run.first_seq).collect::<Vec<_>>())
        };
        assert_eq!(seen(3, 9), None);
        assert_eq!(seen(4, 9), Some(vec![5, 7, 8]));
        assert_eq!(seen(5, 1), Some(vec![5]));
        assert_eq!(seen(6, 99), Some(vec![7, 8]));
        assert_eq!(seen(12, 9), Some(vec![]));
        assert_eq!(seen(u64::MAX, 9), Some(vec![]));
    }

    #[test]
    fn ring_drops_records_before_a_gap() {
        let mut ring = RecordRing::default();
        let seqs = [1, 2, 5, 6];
        assert_eq!(seqs.map(|seq| ring.push(piece(seq, seq), Instant::now())), [true, false, true, false]);
        assert!(
            ring.read_after(1, 9).is_none(),
            "3 and 4 are read elsewhere, and so is what is in front of them"
        );
        assert_eq!(ring.read_after(4, 9).map(|runs| runs.len()), Some(2));
    }

    // Limit: `ring_bytes_max`.
    #[test]
    fn ring_evicts_oldest_records_beyond_its_limit() {
        let mut ring = RecordRing::default();
        let first: Vec<bool> = (1..=4).map(|seq| ring.push(piece(seq, seq), Instant::now())).collect();
        assert_eq!(first, [true, false, false, false]);
        let one = ring.bytes() / 4;
        for (bytes_max, expected) in [(usize::MAX, 0), (4 * one, 0), (4 * one - 1, 1), (2 * one, 2), (0, 4)] {
            assert_eq!(ring.oldest_beyond(bytes_max).len(), expected, "{bytes_max} bytes");
        }
        ring.evict_through(2);
        assert_eq!((ring.bytes(), ring.first_row()), (2 * one, Some(3)));
        ring.evict_through(9);
        assert_eq!((ring.bytes(), ring.first_row()), (0, None));
    }
}
