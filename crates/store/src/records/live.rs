//! Turns in memory, and the rows of their logs: alike in both databases.

use super::ring::{RecordRing, TurnProgress};
use crate::log::{AppendAck, LogBatch, LogError, OwnerEpoch};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A turn that is in memory, with the append state of its store.
pub(crate) struct LiveTurn<A> {
    pub id: String,
    /// Number of the turn in the database.
    pub n: i64,
    append_state: Mutex<A>,
    ring: Mutex<RecordRing>,
    /// Progress that viewers wait for.
    pub progress: watch::Sender<TurnProgress>,
}

impl<A> LiveTurn<A> {
    pub(crate) fn new(id: String, n: i64, append_state: A, progress: TurnProgress) -> Self {
        Self {
            id,
            n,
            append_state: Mutex::new(append_state),
            ring: Mutex::default(),
            progress: watch::Sender::new(progress),
        }
    }

    pub(crate) fn append_state(&self) -> MutexGuard<'_, A> {
        lock(&self.append_state)
    }

    pub(crate) fn ring(&self) -> MutexGuard<'_, RecordRing> {
        lock(&self.ring)
    }
}

/// A panic of another thread cannot leave these half-written: every change is a push, an insert or one value.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The row of a turn's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogRow {
    pub n: i64,
    pub epoch: u64,
    pub state: LogState,
    pub last_seq: u64,
}

/// State of a turn's log. Stored as its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LogState {
    Open = 0,
    Ended = 1,
    Merged = 2,
}

impl LogState {
    pub(crate) fn from_number(number: i64) -> Self {
        match number {
            0 => Self::Open,
            1 => Self::Ended,
            _ => Self::Merged,
        }
    }
}

/// Error for an append to a turn that is not written here: it has ended, belongs to another server, or never
/// existed.
pub(crate) fn append_to_ended(
    turn: &str,
    row: Option<LogRow>,
    epoch: OwnerEpoch,
    batch: &LogBatch,
) -> Result<AppendAck, LogError> {
    let turn = turn.to_owned();
    match row {
        None => Err(LogError::UnknownTurn { turn }),
        Some(row) if row.epoch != epoch.0 => {
            Err(LogError::Fenced { turn, given: epoch.0, current: row.epoch })
        }
        Some(row) if *batch == LogBatch::default() => Ok(AppendAck { last_seq: row.last_seq }),
        Some(_) => Err(LogError::Ended { turn }),
    }
}
