//! Turns that have not ended: the writer's state of each, and their latest records for viewers.

use crate::records::{LiveTurn, TurnProgress, lock};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};

/// A turn that is in memory: it has not ended, or only just now.
pub(super) type SqliteLiveTurn = LiveTurn<SqliteAppendState>;

/// Progress of a turn as the writer thread has it; no other thread changes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SqliteAppendState {
    pub epoch: u64,
    pub last_seq: u64,
    pub ended: bool,
    pub row: TurnRowState,
}

/// State of the turn's row in the database: that of a new turn is written with its first append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnRowState {
    NotInserted,
    Inserted,
}

/// The epoch of a turn's first owner.
pub(super) const FIRST_EPOCH: u64 = 1;

/// The epoch of a turn that has been deleted: no claim has it.
pub(super) const DELETED_EPOCH: u64 = 0;

impl SqliteLiveTurn {
    pub(crate) fn open(id: String, n: i64, epoch: u64, last_seq: u64, row: TurnRowState) -> Self {
        let append_state = SqliteAppendState { epoch, last_seq, ended: false, row };
        Self::new(id, n, append_state, TurnProgress { last_seq, ended: false })
    }
}

/// All turns in memory, by id.
#[derive(Default)]
pub(super) struct SqliteLiveTurns(Mutex<HashMap<String, Arc<SqliteLiveTurn>>>);

impl SqliteLiveTurns {
    pub(super) fn get(&self, id: &str) -> Option<Arc<SqliteLiveTurn>> {
        lock(&self.0).get(id).cloned()
    }

    pub(super) fn add(&self, live: SqliteLiveTurn) -> Arc<SqliteLiveTurn> {
        let live = Arc::new(live);
        lock(&self.0).insert(live.id.clone(), live.clone());
        live
    }

    /// Adds a turn, unless there is one with this id: then false.
    pub(super) fn add_if_absent(&self, live: SqliteLiveTurn) -> bool {
        match lock(&self.0).entry(live.id.clone()) {
            Entry::Vacant(slot) => {
                slot.insert(Arc::new(live));
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Takes a turn out, unless another one has come under its id.
    pub(super) fn remove(&self, live: &Arc<SqliteLiveTurn>) {
        let mut live_turns = lock(&self.0);
        if live_turns.get(&live.id).is_some_and(|current| Arc::ptr_eq(current, live)) {
            live_turns.remove(&live.id);
        }
    }

    /// Ids of the turns that have not ended.
    pub(super) fn open_turns(&self) -> Vec<String> {
        let live_turns = lock(&self.0);
        let mut open: Vec<_> = live_turns
            .values()
            .filter(|live| !live.progress.borrow().ended)
            .map(|live| live.id.clone())
            .collect();
        open.sort();
        open
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.0).len()
    }

    pub(super) fn ring_bytes(&self) -> usize {
        lock(&self.0).values().map(|live| live.ring().bytes()).sum()
    }
}
