//! What the writer thread and all handles of a store share.

use super::live::Lives;
use super::place::{self, Lock, Place};
use super::queue::Queue;
use super::readers::Readers;
use super::searchers::Searchers;
use super::settings::SqliteSettings;
use super::writer::Job;
use crate::error::StoreError;
use crate::standing::{Figures, Health};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct Shared {
    pub place: Place,
    pub settings: SqliteSettings,
    /// Which opening of the file this is.
    pub generation: i64,
    pub queue: Queue<Job>,
    pub lives: Lives,
    pub readers: Readers,
    pub searchers: Searchers,
    pub figures: Counters,
    /// The number that was last given to a turn.
    turns: AtomicI64,
    state: Mutex<Standing>,
    /// Let go of when the store is closed, or when nobody has it any more.
    lock: Mutex<Option<Lock>>,
}

struct Standing {
    health: Health,
    /// Whether a commit that succeeds means that all is well.
    heals: Heals,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Heals {
    WithACommit,
    WithRoom,
    Never,
}

#[derive(Default)]
pub(super) struct Counters {
    pub commits: AtomicU64,
    pub fsyncs: AtomicU64,
    pub events: AtomicU64,
    pub segments: AtomicU64,
}

impl Shared {
    /// `turns` is the highest number that a turn of the file ever had.
    pub fn new(place: Place, settings: SqliteSettings, generation: i64, turns: i64, lock: Lock) -> Self {
        Self {
            queue: Queue::new(settings.queue_bytes_max),
            lives: Lives::default(),
            readers: Readers::new(place.file.clone(), settings.readers_max),
            searchers: Searchers::new(place.file.clone(), settings.catalog),
            figures: Counters::default(),
            turns: AtomicI64::new(turns),
            state: Mutex::new(Standing { health: Health::Ok, heals: Heals::WithACommit }),
            place,
            settings,
            generation,
            lock: Mutex::new(Some(lock)),
        }
    }

    pub fn figures(&self) -> Figures {
        let (queue_jobs, queue_bytes) = self.queue.depth();
        Figures {
            commits: self.figures.commits.load(Relaxed),
            fsyncs: self.figures.fsyncs.load(Relaxed),
            events: self.figures.events.load(Relaxed),
            segments: self.figures.segments.load(Relaxed),
            queue_jobs,
            queue_bytes,
            turns: self.lives.count(),
            ring_bytes: self.lives.ring_bytes(),
            searches_abandoned: self.searchers.abandoned(),
        }
    }

    /// What the tables call a turn that is new. Given here, so that its records can be written down before its row is; a
    /// number is never given twice.
    pub fn number_of_new_turn(&self) -> i64 {
        self.turns.fetch_add(1, Relaxed) + 1
    }

    pub fn health(&self) -> Health {
        self.state().health.clone()
    }

    /// Whether a turn that does not exist yet may begin.
    pub fn room_for_new_turn(&self) -> Result<(), StoreError> {
        match self.health() {
            Health::Ok => {}
            Health::ReadOnly { why } => return Err(StoreError::Full { why }),
            Health::Lost { why } => return Err(StoreError::Failed { why }),
        }
        let min = self.settings.free_bytes_min;
        // A disk that does not say how much is free will say when it is full.
        match place::free_bytes(&self.place) {
            Ok(free) if free < min => Err(StoreError::Full {
                why: format!("{} MiB are free; a new turn needs {} MiB", free >> 20, min >> 20),
            }),
            _ => Ok(()),
        }
    }

    /// A commit has failed.
    pub fn failed(&self, error: &StoreError) {
        let mut state = self.state();
        if state.heals == Heals::Never {
            return;
        }
        let heals = match error {
            StoreError::Full { .. } => Heals::WithRoom,
            StoreError::Corrupt { .. } => Heals::Never,
            _ => Heals::WithACommit,
        };
        *state = Standing { health: Health::Lost { why: error.to_string() }, heals };
    }

    /// The disk is full and the ballast has been given up for the turns that run.
    pub fn out_of_room(&self) {
        let why = "the disk is full; running turns finish on what was kept in reserve".to_owned();
        *self.state() = Standing { health: Health::ReadOnly { why }, heals: Heals::WithRoom };
    }

    /// Another server writes this file now.
    pub fn taken_over(&self) {
        let why = "another server has opened this file".to_owned();
        *self.state() = Standing { health: Health::Lost { why }, heals: Heals::Never };
    }

    /// A check in the background has found damage.
    pub fn damaged(&self, why: String) {
        *self.state() = Standing { health: Health::Lost { why }, heals: Heals::Never };
    }

    /// A commit has succeeded.
    pub fn committed(&self) {
        let mut state = self.state();
        if state.heals == Heals::WithACommit && state.health != Health::Ok {
            state.health = Health::Ok;
        }
    }

    /// Whether only room on the disk is missing.
    pub fn waits_for_room(&self) -> bool {
        let state = self.state();
        state.health != Health::Ok && state.heals == Heals::WithRoom
    }

    /// There is room again.
    pub fn has_room(&self) {
        let mut state = self.state();
        if state.heals == Heals::WithRoom {
            *state = Standing { health: Health::Ok, heals: Heals::WithACommit };
        }
    }

    /// Another server may have the file now.
    pub fn unlock(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn state(&self) -> MutexGuard<'_, Standing> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
