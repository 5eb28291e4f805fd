//! The interface of every log, in memory or on disk.

use crate::error::StoreError;
use crate::peers::PeerServers;
use async_trait::async_trait;
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

/// The kind of a turn's last record. The only kind that a log knows.
pub const STREAM_END: &str = "stream_end";

/// Failure that a record must survive before it is acknowledged. Ordered: a batch is as durable as its strongest record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// The death of the process: deltas, borders, intents and results of tools that can run again.
    Process,
    /// A power cut: the accepted message, intents and results of tools that write, decisions, the end.
    Power,
}

/// Epoch of a turn's owner. Grows with each [`Log::claim`]; appends of an older one are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerEpoch(pub u64);

/// One event as the log sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Number in its turn: dense, from 1.
    pub seq: u64,
    /// The event's `type`.
    pub kind: Cow<'static, str>,
    pub durability: Durability,
    /// The event as JSON on one line. Never looked into.
    pub payload: Bytes,
}

impl LogRecord {
    /// Makes a record.
    pub fn new(
        seq: u64,
        kind: impl Into<Cow<'static, str>>,
        durability: Durability,
        payload: impl Into<Bytes>,
    ) -> Self {
        Self { seq, kind: kind.into(), durability, payload: payload.into() }
    }
}

/// State that must be echoed to an upstream verbatim; stored next to the log and never served to viewers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderStateRecord {
    /// The step that it belongs to.
    pub step: u32,
    /// Opaque to the store.
    pub payload: Bytes,
}

/// Records that are appended together: all of them or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogBatch {
    /// Dense, continuing the log. May be empty.
    pub records: Vec<LogRecord>,
    /// Written in the same transaction.
    pub provider_state: Vec<ProviderStateRecord>,
    /// Lets a busy log delay the batch for a moment.
    pub urgency: AppendUrgency,
}

/// Urgency of an append: a deferrable one waits for others, so that a busy log writes many of them together.
/// Ordered: a group is as urgent as the most urgent append in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AppendUrgency {
    /// More of a text that is being shown: a delay of some milliseconds does not matter.
    Batched,
    /// A caller waits for the acknowledgement, or an action follows it.
    #[default]
    Immediate,
}

impl From<Vec<LogRecord>> for LogBatch {
    fn from(records: Vec<LogRecord>) -> Self {
        Self { records, ..Self::default() }
    }
}

/// The right to append to a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnClaim {
    /// To be shown with each append.
    pub epoch: OwnerEpoch,
    /// Number of the last record; 0 = none. The next append begins after it.
    pub last_seq: u64,
}

/// Acknowledges that the records up to `last_seq` have the durability that they requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendAck {
    /// Number of the last record of the batch.
    pub last_seq: u64,
}

/// Refusal of a log. Nothing of a refused batch has been written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The turn does not exist, or has been deleted.
    #[error("there is no turn `{turn}` in the log")]
    UnknownTurn {
        /// Id of the requested turn.
        turn: String,
    },
    /// Another owner has claimed the turn since: stop all side effects and discard the machine.
    #[error("turn `{turn}` now belongs to epoch {current}; epoch {given} has been fenced off")]
    Fenced {
        turn: String,
        /// The epoch of the refused append.
        given: u64,
        /// The epoch that may append.
        current: u64,
    },
    /// The batch does not continue the log: a gap or a repetition.
    #[error("turn `{turn}` continues at seq {expected}, not at {given}")]
    NonContiguous {
        turn: String,
        /// The number that would continue the log.
        expected: u64,
        /// The number found instead.
        given: u64,
    },
    /// The turn already has its last record.
    #[error("turn `{turn}` has ended; no events can be appended")]
    Ended { turn: String },
    /// The cursor is ahead of the log: after a power cut the last records of class [`Durability::Process`]
    /// may be lost although a viewer has seen them. It needs a snapshot.
    #[error("turn `{turn}` ends at seq {last_seq}; there are no events after {after}")]
    Ahead {
        turn: String,
        /// Cursor position of the reader.
        after: u64,
        /// The last number there is.
        last_seq: u64,
    },
    /// The cursor is inside a run of records that have been merged into one. It needs a snapshot.
    #[error("records of turn `{turn}` around seq {after} have been merged")]
    CursorInsideMerge {
        turn: String,
        /// Cursor position of the reader.
        after: u64,
    },
    /// The records that should replace those of a turn do not cover the same numbers.
    #[error("the compacted records of turn `{turn}` do not match its log: {why}")]
    InvalidMerge { turn: String, why: &'static str },
    /// Too little space for a new turn. Running turns can finish.
    #[error("there is no room for a new turn: {why}")]
    NoRoom { why: String },
    /// The turn is over a limit of this log.
    #[error("turn `{turn}` exceeds the limit {limit}")]
    TurnTooLarge {
        turn: String,
        /// Name of the limit.
        limit: &'static str,
    },
    /// The store itself failed.
    #[error("cannot read or write the log: {why}")]
    StoreFailure { why: String },
}

/// Another server that a turn belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnOwner {
    /// Machine, process, and number in the database.
    pub name: String,
    pub lease: OwnerLease,
}

/// State of the lease of a [`TurnOwner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerLease {
    /// The lease is valid.
    Held,
    /// The lease ran out at this time, in milliseconds since 1970; `None` = more than a day ago.
    Expired {
        /// Time by the clock of the database.
        since: Option<i64>,
    },
}

/// Merges records that have ended into fewer: each record that is left has the number of the last one in it, and the
/// last number stays.
pub type MergeFn = Arc<dyn Fn(Vec<LogRecord>) -> Vec<LogRecord> + Send + Sync>;

/// The log of all turns of a process or a database.
///
/// - `append` must be atomic: all records of the batch or none, acknowledged only when they are as durable as they
///   ask, and visible to readers only then.
/// - `append` must refuse an epoch other than the latest and a batch that does not continue the log at exactly
///   `last_seq + 1`.
/// - An append whose future is dropped may or may not have happened; the turn must be claimed again to find out.
/// - Readers never slow an append down.
///
/// A new claim fences off the former owner:
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use throughline_store::{Durability, Log, LogError, LogRecord, MemoryLog};
///
/// let log: &dyn Log = &MemoryLog::default();
/// let start = || vec![LogRecord::new(1, "stream_start", Durability::Power, "{}")].into();
/// let former = log.claim("turn_1").await?;
/// let current = log.claim("turn_1").await?;
/// assert!(matches!(log.append("turn_1", former.epoch, start()).await, Err(LogError::Fenced { .. })));
/// log.append("turn_1", current.epoch, start()).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[async_trait]
pub trait Log: Send + Sync {
    /// Becomes the owner of a turn, new or old, and fences off the owner before.
    async fn claim(&self, turn: &str) -> Result<TurnClaim, LogError>;

    /// Becomes the first owner of a turn whose id the caller has just minted, so that no other process can
    /// know it. A log may record this together with the first append; until then the turn does not survive a
    /// restart.
    async fn begin(&self, turn: &str) -> Result<TurnClaim, LogError> {
        self.claim(turn).await
    }

    /// Appends a batch. An empty one is acknowledged without effect.
    async fn append(&self, turn: &str, epoch: OwnerEpoch, batch: LogBatch) -> Result<AppendAck, LogError>;

    /// At most `records_max` records with a number above `after` (0 = from the beginning), oldest first. Does
    /// not wait. A number after the end is [`LogError::Ahead`]; one inside a merged run is
    /// [`LogError::CursorInsideMerge`].
    async fn read(&self, turn: &str, after: u64, records_max: usize) -> Result<Vec<LogRecord>, LogError>;

    /// All provider-state records of the turn, oldest first.
    async fn read_provider_state(&self, turn: &str) -> Result<Vec<ProviderStateRecord>, LogError>;

    /// A cursor after `after` that follows the turn to its end. A number after the end is
    /// [`LogError::Ahead`].
    async fn tail(&self, turn: &str, after: u64) -> Result<Box<dyn LogTail>, LogError>;

    /// Checks that a new turn may begin: [`LogError::NoRoom`] or [`LogError::StoreFailure`] if the log has no
    /// room for it. Running turns continue in either case. Called before each turn, so it must be cheap.
    fn accepts_new_turns(&self) -> Result<(), LogError> {
        Ok(())
    }

    /// Reads something and writes something, to check that both work: an error, or a missing answer, shows
    /// that they do not. Waits for no disk.
    async fn probe(&self) -> Result<(), LogError> {
        self.accepts_new_turns()
    }

    /// Turns that have been claimed and have not ended, in order of their ids.
    async fn open_turns(&self) -> Result<Vec<String>, LogError>;

    /// Other server that a turn without an end belongs to; `None`: the turn belongs to this server, or has no
    /// owner. A log of one process has no others.
    async fn remote_owner(&self, _turn: &str) -> Result<Option<TurnOwner>, LogError> {
        Ok(None)
    }

    /// The other servers of the same database. A log of one process has none.
    fn peers(&self) -> Option<Arc<dyn PeerServers>> {
        None
    }

    /// Replaces the records of a turn that has ended by what `merge` makes of them. A turn that has not ended is left
    /// as it is. Which records belong together only the caller knows; that nothing got lost at the end or out of order
    /// is checked.
    async fn compact(&self, turn: &str, merge: MergeFn) -> Result<(), LogError>;

    /// Deletes all records of a turn and its provider state; later appends by its owner are refused. An
    /// unknown turn is not an error.
    async fn delete(&self, turn: &str) -> Result<(), LogError>;
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn unknown_turn(turn: &str) -> LogError {
    LogError::UnknownTurn { turn: turn.to_owned() }
}

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn store_closed() -> LogError {
    LogError::StoreFailure { why: "the store has been closed".into() }
}

/// Merges the records of a turn, and checks the result.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) async fn merge_records(
    turn: &str,
    before: Vec<LogRecord>,
    merge: MergeFn,
) -> Result<Vec<LogRecord>, LogError> {
    let merging = before.clone();
    let merged = tokio::task::spawn_blocking(move || merge(merging)).await;
    let merged = merged.map_err(|_| LogError::StoreFailure { why: "merging panicked".into() })?;
    check_merge(turn, &before, &merged)?;
    Ok(merged)
}

/// Checks that merged records cover exactly the numbers of a turn.
pub(crate) fn check_merge(turn: &str, before: &[LogRecord], after: &[LogRecord]) -> Result<(), LogError> {
    let invalid = |why| Err(LogError::InvalidMerge { turn: turn.to_owned(), why });
    if before.last().map(|record| record.seq) != after.last().map(|record| record.seq) {
        return invalid("the last record differs");
    }
    let mut numbers = before.iter().map(|record| record.seq);
    if !after.iter().all(|record| numbers.any(|seq| seq == record.seq)) {
        return invalid("a number is new or out of order");
    }
    Ok(())
}

impl From<StoreError> for LogError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::DiskFull { why } => Self::NoRoom { why },
            error => Self::StoreFailure { why: error.to_string() },
        }
    }
}

/// One viewer's position in a turn. It holds no queue: it reads from its own number on, even if it is far
/// back.
#[async_trait]
pub trait LogTail: Send {
    /// Waits for at least one record after the last one returned; `None` after the last record of the turn.
    /// Dropping the future loses nothing.
    async fn next(&mut self) -> Result<Option<Vec<LogRecord>>, LogError>;
}
