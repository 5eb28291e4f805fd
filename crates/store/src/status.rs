//! Health and counters of a store.

/// Health of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreHealth {
    /// It takes whatever comes.
    Healthy,
    /// Running turns go on while there is room for them; nothing new is taken.
    ReadOnly { why: String },
    /// Nothing can be written; what is there may be readable.
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
    /// Of these, those that waited for the disk.
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
    /// Searches that were interrupted because nobody waited for them any more, or for too long.
    pub searches_abandoned: u64,
}
