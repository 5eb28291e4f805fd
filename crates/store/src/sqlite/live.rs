//! Turns that have not ended: what the writer knows of each, and their latest records for viewers.

use crate::records::{RecordRing, TurnProgress};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A turn that is in memory: it has not ended, or only just now.
pub(super) struct SqliteLiveTurn {
    pub id: String,
    /// Its number in the database.
    pub n: i64,
    append_state: Mutex<SqliteAppendState>,
    ring: Mutex<RecordRing>,
    /// Progress that viewers wait for.
    pub progress: watch::Sender<TurnProgress>,
}

/// Progress of a turn as the writer thread has it; no other thread changes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SqliteAppendState {
    pub epoch: u64,
    pub last_seq: u64,
    pub ended: bool,
    pub row: TurnRowState,
}

/// Tells if the database has the turn's row: that of a new turn is written with its first append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnRowState {
    NotInserted,
    Inserted,
}

/// The epoch of a turn's first owner.
pub(super) const FIRST_EPOCH: u64 = 1;

/// The epoch of a turn that has been deleted: no claim has it.
pub(super) const DELETED_EPOCH: u64 = 0;

impl SqliteLiveTurn {
    pub fn new(id: String, n: i64, epoch: u64, last_seq: u64, row: TurnRowState) -> Self {
        Self {
            id,
            n,
            append_state: Mutex::new(SqliteAppendState { epoch, last_seq, ended: false, row }),
            ring: Mutex::default(),
            progress: watch::Sender::new(TurnProgress { last_seq, ended: false }),
        }
    }

    pub fn append_state(&self) -> MutexGuard<'_, SqliteAppendState> {
        lock(&self.append_state)
    }

    pub fn ring(&self) -> MutexGuard<'_, RecordRing> {
        lock(&self.ring)
    }
}

/// All turns in memory, by id.
#[derive(Default)]
pub(super) struct SqliteLiveTurns(Mutex<HashMap<String, Arc<SqliteLiveTurn>>>);

impl SqliteLiveTurns {
    pub fn get(&self, id: &str) -> Option<Arc<SqliteLiveTurn>> {
        lock(&self.0).get(id).cloned()
    }

    pub fn add(&self, live: SqliteLiveTurn) -> Arc<SqliteLiveTurn> {
        let live = Arc::new(live);
        lock(&self.0).insert(live.id.clone(), live.clone());
        live
    }

    /// The same, unless there is one of this id: then false.
    pub fn add_if_absent(&self, live: SqliteLiveTurn) -> bool {
        match lock(&self.0).entry(live.id.clone()) {
            Entry::Vacant(slot) => {
                slot.insert(Arc::new(live));
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Takes a turn out, unless another one has come under its id.
    pub fn remove(&self, live: &Arc<SqliteLiveTurn>) {
        let mut live_turns = lock(&self.0);
        if live_turns.get(&live.id).is_some_and(|current| Arc::ptr_eq(current, live)) {
            live_turns.remove(&live.id);
        }
    }

    /// Ids of those that have not ended.
    pub fn open_turns(&self) -> Vec<String> {
        let live_turns = lock(&self.0);
        let mut open: Vec<_> = live_turns
            .values()
            .filter(|live| !live.progress.borrow().ended)
            .map(|live| live.id.clone())
            .collect();
        open.sort();
        open
    }

    pub fn count(&self) -> usize {
        lock(&self.0).len()
    }

    pub fn ring_bytes(&self) -> usize {
        lock(&self.0).values().map(|live| live.ring().bytes()).sum()
    }
}

/// A panic of another thread cannot leave these half-written: every change is a push, an insert or one value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
