//! A log that lives as long as the process: for one-off commands, embedding without a database, and tests.

use crate::log::{
    AppendAck, Log, LogBatch, LogError, LogRecord, LogTail, MergeFn, OwnerEpoch, ProviderStateRecord,
    STREAM_END, TurnClaim, check_merge,
};
use async_trait::async_trait;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Limits of a [`MemoryLog`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Ended turns that are held for late readers; the one that ended first is dropped first. A reader that
    /// is already following a turn still reads it to the end. Default 1,024.
    pub ended_turns_max: usize,
    /// Payload of one turn, in bytes. Default 256 MiB.
    pub turn_bytes_max: usize,
    /// Records per read of a tail, so that a late viewer does not clone a whole turn. Default 512.
    pub tail_records_max: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { ended_turns_max: 1024, turn_bytes_max: 256 << 20, tail_records_max: 512 }
    }
}

/// The log in memory. Cloning gives another handle to the same log.
#[derive(Clone, Default)]
pub struct MemoryLog {
    limits: MemoryLimits,
    turns: Arc<Mutex<MemoryTurns>>,
}

#[derive(Default)]
struct MemoryTurns {
    by_id: HashMap<String, Arc<MemoryTurn>>,
    ended: VecDeque<String>,
}

struct MemoryTurn {
    id: String,
    state: Mutex<MemoryTurnState>,
    /// The last number and whether the turn has ended: what readers wait for.
    progress: watch::Sender<MemoryProgress>,
}

#[derive(Default)]
struct MemoryTurnState {
    epoch: u64,
    records: Vec<LogRecord>,
    provider_state: Vec<ProviderStateRecord>,
    bytes: usize,
}

#[derive(Clone, Copy, Default)]
struct MemoryProgress {
    last_seq: u64,
    ended: bool,
}

impl MemoryLog {
    /// A log with other limits than the defaults.
    pub fn with_limits(limits: MemoryLimits) -> Self {
        Self { limits, turns: Arc::default() }
    }

    fn turn(&self, id: &str) -> Result<Arc<MemoryTurn>, LogError> {
        lock(&self.turns).by_id.get(id).cloned().ok_or_else(|| LogError::UnknownTurn { turn: id.to_owned() })
    }

    fn retire(&self, id: &str) {
        let mut turns = lock(&self.turns);
        turns.ended.push_back(id.to_owned());
        while turns.ended.len() > self.limits.ended_turns_max {
            if let Some(oldest) = turns.ended.pop_front() {
                turns.by_id.remove(&oldest);
            }
        }
    }
}

#[async_trait]
impl Log for MemoryLog {
    async fn claim(&self, id: &str) -> Result<TurnClaim, LogError> {
        let turn = Arc::clone(lock(&self.turns).by_id.entry(id.to_owned()).or_insert_with(|| {
            Arc::new(MemoryTurn {
                id: id.to_owned(),
                state: Mutex::default(),
                progress: watch::Sender::new(MemoryProgress::default()),
            })
        }));
        let mut state = lock(&turn.state);
        state.epoch += 1;
        Ok(TurnClaim { epoch: OwnerEpoch(state.epoch), last_seq: state.last_seq() })
    }

    async fn append(&self, id: &str, epoch: OwnerEpoch, batch: LogBatch) -> Result<AppendAck, LogError> {
        let turn = self.turn(id)?;
        let progress = turn.append(epoch, batch, self.limits.turn_bytes_max)?;
        let previous = turn.progress.send_replace(progress);
        if progress.ended && !previous.ended {
            self.retire(id);
        }
        Ok(AppendAck { last_seq: progress.last_seq })
    }

    async fn read(&self, id: &str, after: u64, records_max: usize) -> Result<Vec<LogRecord>, LogError> {
        self.turn(id)?.read(after, records_max)
    }

    async fn read_provider_state(&self, id: &str) -> Result<Vec<ProviderStateRecord>, LogError> {
        Ok(lock(&self.turn(id)?.state).provider_state.clone())
    }

    async fn tail(&self, id: &str, after: u64) -> Result<Box<dyn LogTail>, LogError> {
        let turn = self.turn(id)?;
        let progress = turn.progress.subscribe();
        turn.check_not_ahead(after, progress.borrow().last_seq)?;
        Ok(Box::new(MemoryTail { turn, progress, after, records_max: self.limits.tail_records_max }))
    }

    async fn open_turns(&self) -> Result<Vec<String>, LogError> {
        let turns = lock(&self.turns);
        let is_open = |turn: &&Arc<MemoryTurn>| !turn.progress.borrow().ended;
        let mut open: Vec<_> = turns.by_id.values().filter(is_open).map(|turn| turn.id.clone()).collect();
        open.sort();
        Ok(open)
    }

    async fn compact(&self, id: &str, merge: MergeFn) -> Result<(), LogError> {
        let turn = self.turn(id)?;
        if !turn.progress.borrow().ended {
            return Ok(());
        }
        let before = lock(&turn.state).records.clone();
        let merged = merge(before.clone());
        check_merge(id, &before, &merged)?;
        let mut state = lock(&turn.state);
        let bytes = |records: &[LogRecord]| records.iter().map(|record| record.payload.len()).sum::<usize>();
        state.bytes = (state.bytes + bytes(&merged)).saturating_sub(bytes(&before));
        state.records = merged;
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), LogError> {
        let mut turns = lock(&self.turns);
        turns.ended.retain(|ended| ended != id);
        if let Some(turn) = turns.by_id.remove(id) {
            lock(&turn.state).epoch = DELETED_EPOCH;
        }
        Ok(())
    }
}

/// No claim has this epoch.
const DELETED_EPOCH: u64 = 0;

impl MemoryTurn {
    fn append(
        &self,
        epoch: OwnerEpoch,
        batch: LogBatch,
        bytes_max: usize,
    ) -> Result<MemoryProgress, LogError> {
        let LogBatch { records, provider_state, urgency: _ } = batch;
        let turn = || self.id.clone();
        let mut state = lock(&self.state);
        if state.epoch == DELETED_EPOCH {
            return Err(LogError::UnknownTurn { turn: turn() });
        }
        if epoch.0 != state.epoch {
            return Err(LogError::Fenced { turn: turn(), given: epoch.0, current: state.epoch });
        }
        let mut ended = state.records.last().is_some_and(|record| record.kind == STREAM_END);
        if ended && !provider_state.is_empty() {
            return Err(LogError::Ended { turn: turn() });
        }
        let provider_state_bytes: usize =
            provider_state.iter().map(|provider_state| provider_state.payload.len()).sum();
        let mut bytes = state.bytes.saturating_add(provider_state_bytes);
        let mut last_seq = state.last_seq();
        for (expected, record) in (last_seq + 1..).zip(&records) {
            if ended {
                return Err(LogError::Ended { turn: turn() });
            }
            if record.seq != expected {
                return Err(LogError::NonContiguous { turn: turn(), expected, given: record.seq });
            }
            bytes = bytes.saturating_add(record.payload.len());
            last_seq = expected;
            ended = record.kind == STREAM_END;
        }
        // The last record is always taken: a turn over its limit must still be able to say so.
        if bytes > bytes_max && !ended {
            return Err(LogError::TurnTooLarge { turn: turn(), limit: "turn_bytes_max" });
        }
        state.bytes = bytes;
        state.records.extend(records);
        state.provider_state.extend(provider_state);
        Ok(MemoryProgress { last_seq, ended })
    }

    fn read(&self, after: u64, records_max: usize) -> Result<Vec<LogRecord>, LogError> {
        let state = lock(&self.state);
        self.check_not_ahead(after, state.last_seq())?;
        let from = state.records.partition_point(|record| record.seq <= after);
        // Numbers are dense until records are merged: then only the last number of each merged run is a valid
        // position.
        let before = from.checked_sub(1).map_or(0, |last| state.records[last].seq);
        if before != after {
            return Err(LogError::CursorInsideMerge { turn: self.id.clone(), after });
        }
        Ok(state.records[from..].iter().take(records_max).cloned().collect())
    }

    fn check_not_ahead(&self, after: u64, last_seq: u64) -> Result<(), LogError> {
        if after > last_seq {
            return Err(LogError::Ahead { turn: self.id.clone(), after, last_seq });
        }
        Ok(())
    }
}

impl MemoryTurnState {
    fn last_seq(&self) -> u64 {
        self.records.last().map_or(0, |record| record.seq)
    }
}

struct MemoryTail {
    turn: Arc<MemoryTurn>,
    progress: watch::Receiver<MemoryProgress>,
    after: u64,
    records_max: usize,
}

#[async_trait]
impl LogTail for MemoryTail {
    async fn next(&mut self) -> Result<Option<Vec<LogRecord>>, LogError> {
        let after = self.after;
        // The sender lives in `self.turn`, so waiting cannot fail before the turn does.
        let Ok(progress) =
            self.progress.wait_for(|now| now.last_seq > after || now.ended).await.map(|now| *now)
        else {
            return Ok(None);
        };
        if progress.last_seq <= after {
            return Ok(None);
        }
        let records = self.turn.read(after, self.records_max)?;
        self.after = records.last().map_or(after, |record| record.seq);
        Ok(Some(records))
    }
}

/// A panic of another thread cannot leave these maps half-written: every change is one push or one insert.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
