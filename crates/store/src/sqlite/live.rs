//! Turns that have not ended: what the writer knows of each, and their latest records for viewers.

use crate::records::{Progress, Ring};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A turn that is in memory: it has not ended, or only just now.
pub(super) struct Live {
    pub id: String,
    /// Its number in the database.
    pub n: i64,
    writing: Mutex<Writing>,
    ring: Mutex<Ring>,
    /// What viewers wait for.
    pub progress: watch::Sender<Progress>,
}

/// How far a turn is, for the writer thread; nobody else changes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing {
    pub epoch: u64,
    pub last_seq: u64,
    pub ended: bool,
    pub in_database: InDatabase,
}

/// Whether the database has the turn: one that has just begun is written with its first append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InDatabase {
    NotYet,
    Yes,
}

/// The epoch of a turn's first owner.
pub(super) const FIRST_EPOCH: u64 = 1;

/// The epoch of a turn that has been deleted: no claim has it.
pub(super) const FORGOTTEN: u64 = 0;

impl Live {
    pub fn new(id: String, n: i64, epoch: u64, last_seq: u64, in_database: InDatabase) -> Self {
        Self {
            id,
            n,
            writing: Mutex::new(Writing { epoch, last_seq, ended: false, in_database }),
            ring: Mutex::default(),
            progress: watch::Sender::new(Progress { last_seq, ended: false }),
        }
    }

    pub fn writing(&self) -> MutexGuard<'_, Writing> {
        lock(&self.writing)
    }

    pub fn ring(&self) -> MutexGuard<'_, Ring> {
        lock(&self.ring)
    }
}

/// All turns in memory, by id.
#[derive(Default)]
pub(super) struct Lives(Mutex<HashMap<String, Arc<Live>>>);

impl Lives {
    pub fn get(&self, id: &str) -> Option<Arc<Live>> {
        lock(&self.0).get(id).cloned()
    }

    pub fn add(&self, live: Live) -> Arc<Live> {
        let live = Arc::new(live);
        lock(&self.0).insert(live.id.clone(), live.clone());
        live
    }

    /// The same, unless there is one of this id: then false.
    pub fn add_new(&self, live: Live) -> bool {
        match lock(&self.0).entry(live.id.clone()) {
            Entry::Vacant(place) => {
                place.insert(Arc::new(live));
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Takes a turn out, unless another one has come under its id.
    pub fn remove(&self, live: &Arc<Live>) {
        let mut lives = lock(&self.0);
        if lives.get(&live.id).is_some_and(|there| Arc::ptr_eq(there, live)) {
            lives.remove(&live.id);
        }
    }

    /// Ids of those that have not ended.
    pub fn open(&self) -> Vec<String> {
        let lives = lock(&self.0);
        let mut open: Vec<_> =
            lives.values().filter(|live| !live.progress.borrow().ended).map(|live| live.id.clone()).collect();
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
