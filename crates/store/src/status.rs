//! Health and counters of a store.

/// Health of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreHealth {
    /// All requests are accepted.
    Healthy,
    /// Running turns continue while space is left; new turns are refused.
    ReadOnly { why: String },
    /// Writes fail; stored data may be readable.
    Unavailable { why: String },
}

/// A turn in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedTurn {
    pub id: String,
    /// True once it has its last record.
    pub ended: bool,
}

/// Counters of a store since it was opened, and its backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions that waited for the disk.
    pub fsyncs: u64,
    /// Records appended.
    pub events: u64,
    /// Segments written for records that left the journal.
    pub segments: u64,
    /// Jobs that wait for the writer now.
    pub queue_jobs: usize,
    pub queue_bytes: usize,
    /// Turns in memory now.
    pub turns: usize,
    /// Bytes that viewers can read from memory.
    pub ring_bytes: usize,
    /// Searches that were interrupted because their caller stopped waiting, or because they took too long.
    pub searches_abandoned: u64,
}
