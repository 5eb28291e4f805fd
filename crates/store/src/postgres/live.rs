//! Turns that have not ended and that are written or watched on this server.

use crate::records::{LiveTurn, TurnProgress, lock};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// A turn that is in memory, with the state of this server as its owner; `None`: another server writes it, or none.
pub(super) type PostgresLiveTurn = LiveTurn<Option<PostgresAppendState>>;

/// Progress of a turn that this server writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PostgresAppendState {
    pub epoch: u64,
    pub last_seq: u64,
    pub ended: bool,
}

impl PostgresLiveTurn {
    /// Becomes its owner here, unless a later claim of this server was faster.
    pub(crate) fn own(&self, writing: PostgresAppendState) {
        {
            let mut now = self.append_state();
            if now.is_some_and(|now| now.epoch > writing.epoch) {
                return;
            }
            *now = Some(writing);
        }
        self.advance(TurnProgress { last_seq: writing.last_seq, ended: writing.ended });
    }

    /// Another server owns the turn now. The records in memory may differ from those that follow.
    pub(crate) fn disown(&self) {
        *self.append_state() = None;
        self.ring().evict_through(u64::MAX);
    }

    /// Announces progress to viewers, which never goes back.
    pub(crate) fn advance(&self, progress: TurnProgress) {
        self.progress.send_if_modified(|now| {
            let more = progress.last_seq > now.last_seq || (progress.ended && !now.ended);
            if more {
                now.last_seq = now.last_seq.max(progress.last_seq);
                now.ended |= progress.ended;
            }
            more
        });
    }
}

/// All turns in memory.
#[derive(Default)]
pub(super) struct PostgresLiveTurns(Mutex<PostgresTurnMap>);

#[derive(Default)]
struct PostgresTurnMap {
    by_id: HashMap<String, Arc<PostgresLiveTurn>>,
    by_n: HashMap<i64, Arc<PostgresLiveTurn>>,
}

impl PostgresTurnMap {
    /// The turn of this number, made if it is not there; another one under the same id has been forgotten.
    fn entry(&mut self, id: &str, n: i64, progress: TurnProgress) -> Arc<PostgresLiveTurn> {
        if let Some(live) = self.by_n.get(&n) {
            return live.clone();
        }
        let live = Arc::new(PostgresLiveTurn::new(id.to_owned(), n, None, progress));
        if let Some(replaced) = self.by_id.insert(id.to_owned(), live.clone()) {
            self.by_n.remove(&replaced.n);
        }
        self.by_n.insert(n, live.clone());
        live
    }
}

impl PostgresLiveTurns {
    pub(super) fn get(&self, id: &str) -> Option<Arc<PostgresLiveTurn>> {
        lock(&self.0).by_id.get(id).cloned()
    }

    /// Becomes the owner of a turn.
    pub(super) fn own(&self, id: &str, n: i64, writing: PostgresAppendState) -> Arc<PostgresLiveTurn> {
        let mut turns = lock(&self.0);
        let live = turns.entry(id, n, TurnProgress { last_seq: writing.last_seq, ended: writing.ended });
        live.own(writing);
        live
    }

    /// Watches a turn, before it can be removed as unwatched.
    pub(super) fn watch(
        &self,
        id: &str,
        n: i64,
        progress: TurnProgress,
    ) -> (Arc<PostgresLiveTurn>, watch::Receiver<TurnProgress>) {
        let mut turns = lock(&self.0);
        let live = turns.entry(id, n, progress);
        let receiver = live.progress.subscribe();
        (live, receiver)
    }

    pub(super) fn remove(&self, live: &PostgresLiveTurn) {
        let mut turns = lock(&self.0);
        if turns.by_n.remove(&live.n).is_some()
            && turns.by_id.get(&live.id).is_some_and(|current| current.n == live.n)
        {
            turns.by_id.remove(&live.id);
        }
    }

    /// Takes out what neither is written here nor has viewers or more to tell them.
    pub(super) fn evict_idle(&self) {
        let mut turns = lock(&self.0);
        let idle: Vec<Arc<PostgresLiveTurn>> =
            turns.by_n.values().filter(|live| is_idle(live)).cloned().collect();
        for live in idle {
            turns.by_n.remove(&live.n);
            if turns.by_id.get(&live.id).is_some_and(|current| current.n == live.n) {
                turns.by_id.remove(&live.id);
            }
        }
    }

    /// The turns with these numbers, or all.
    pub(super) fn select(&self, numbers: Option<&[i64]>) -> Vec<Arc<PostgresLiveTurn>> {
        let turns = lock(&self.0);
        match numbers {
            None => turns.by_n.values().cloned().collect(),
            Some(numbers) => numbers.iter().filter_map(|n| turns.by_n.get(n).cloned()).collect(),
        }
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.0).by_n.len()
    }

    pub(super) fn ring_bytes(&self) -> usize {
        lock(&self.0).by_n.values().map(|live| live.ring().bytes()).sum()
    }
}

fn is_idle(live: &PostgresLiveTurn) -> bool {
    live.append_state().is_none() && (live.progress.receiver_count() == 0 || live.progress.borrow().ended)
}
