//! State shared by the writer thread and all handles of a store.

use super::live::SqliteLiveTurns;
use super::paths::{self, StoreLock, StorePaths};
use super::queue::JobQueue;
use super::reader_pool::ReaderPool;
use super::search_pool::SqliteSearchPool;
use super::settings::SqliteSettings;
use super::writer::WriteJob;
use crate::error::StoreError;
use crate::status::{StoreHealth, StoreStats};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) struct SqliteShared {
    pub paths: StorePaths,
    pub settings: SqliteSettings,
    /// Number of this opening of the file.
    pub generation: i64,
    pub queue: JobQueue<WriteJob>,
    pub live_turns: SqliteLiveTurns,
    pub reader_pool: ReaderPool,
    pub search_pool: SqliteSearchPool,
    pub counters: SqliteCounters,
    /// The number that was last given to a turn.
    last_turn_n: AtomicI64,
    health_state: Mutex<HealthState>,
    /// Released when the store is closed, or when the last reference is dropped.
    lock: Mutex<Option<StoreLock>>,
}

struct HealthState {
    health: StoreHealth,
    /// Decides if a commit that succeeds clears a failure.
    recovers: RecoveryTrigger,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RecoveryTrigger {
    NextCommit,
    FreeSpace,
    Never,
}

#[derive(Default)]
pub(super) struct SqliteCounters {
    pub commits: AtomicU64,
    pub fsyncs: AtomicU64,
    pub events: AtomicU64,
    pub segments: AtomicU64,
}

impl SqliteShared {
    /// `last_turn_n` is the highest number that a turn of the file ever had.
    pub(super) fn new(
        paths: StorePaths,
        settings: SqliteSettings,
        generation: i64,
        last_turn_n: i64,
        lock: StoreLock,
    ) -> Self {
        Self {
            queue: JobQueue::new(settings.queue_bytes_max),
            live_turns: SqliteLiveTurns::default(),
            reader_pool: ReaderPool::new(paths.file.clone(), settings.readers_max),
            search_pool: SqliteSearchPool::new(paths.file.clone(), settings.catalog),
            counters: SqliteCounters::default(),
            last_turn_n: AtomicI64::new(last_turn_n),
            health_state: Mutex::new(HealthState {
                health: StoreHealth::Healthy,
                recovers: RecoveryTrigger::NextCommit,
            }),
            paths,
            settings,
            generation,
            lock: Mutex::new(Some(lock)),
        }
    }

    pub(super) fn stats(&self) -> StoreStats {
        let (queue_jobs, queue_bytes) = self.queue.depth();
        StoreStats {
            commits: self.counters.commits.load(Relaxed),
            fsyncs: self.counters.fsyncs.load(Relaxed),
            events: self.counters.events.load(Relaxed),
            segments: self.counters.segments.load(Relaxed),
            queue_jobs,
            queue_bytes,
            turns: self.live_turns.count(),
            ring_bytes: self.live_turns.ring_bytes(),
            searches_abandoned: self.search_pool.abandoned(),
        }
    }

    /// Number of a new turn in the tables. Assigned here, so that its records can be written before its row; a
    /// number is never given twice.
    pub(super) fn next_turn_n(&self) -> i64 {
        self.last_turn_n.fetch_add(1, Relaxed) + 1
    }

    pub(super) fn health(&self) -> StoreHealth {
        self.health_state().health.clone()
    }

    /// Checks that a new turn may begin.
    pub(super) fn check_capacity(&self) -> Result<(), StoreError> {
        match self.health() {
            StoreHealth::Healthy => {}
            StoreHealth::ReadOnly { why } => return Err(StoreError::DiskFull { why }),
            StoreHealth::Unavailable { why } => return Err(StoreError::Failed { why }),
        }
        let min = self.settings.free_bytes_min;
        // A disk that does not say how much is free will say when it is full.
        match paths::free_bytes(&self.paths) {
            Ok(free) if free < min => Err(StoreError::DiskFull {
                why: format!("{} MiB are free; a new turn needs {} MiB", free >> 20, min >> 20),
            }),
            _ => Ok(()),
        }
    }

    /// A commit has failed.
    pub(super) fn commit_failed(&self, error: &StoreError) {
        let mut state = self.health_state();
        if state.recovers == RecoveryTrigger::Never {
            return;
        }
        let recovers = match error {
            StoreError::DiskFull { .. } => RecoveryTrigger::FreeSpace,
            StoreError::Corrupt { .. } => RecoveryTrigger::Never,
            _ => RecoveryTrigger::NextCommit,
        };
        *state = HealthState { health: StoreHealth::Unavailable { why: error.to_string() }, recovers };
    }

    /// The disk is full and the ballast has been given up for the turns that run.
    pub(super) fn out_of_space(&self) {
        let why = "the disk is full; running turns finish on reserved space".to_owned();
        *self.health_state() =
            HealthState { health: StoreHealth::ReadOnly { why }, recovers: RecoveryTrigger::FreeSpace };
    }

    /// Another server writes this file now.
    pub(super) fn taken_over(&self) {
        let why = "another server has opened this file".to_owned();
        *self.health_state() =
            HealthState { health: StoreHealth::Unavailable { why }, recovers: RecoveryTrigger::Never };
    }

    /// A check in the background has found damage.
    pub(super) fn mark_damaged(&self, why: String) {
        *self.health_state() =
            HealthState { health: StoreHealth::Unavailable { why }, recovers: RecoveryTrigger::Never };
    }

    /// A commit has succeeded.
    pub(super) fn committed(&self) {
        let mut state = self.health_state();
        if state.recovers == RecoveryTrigger::NextCommit && state.health != StoreHealth::Healthy {
            state.health = StoreHealth::Healthy;
        }
    }

    /// True if only disk space is missing.
    pub(super) fn awaits_space(&self) -> bool {
        let state = self.health_state();
        state.health != StoreHealth::Healthy && state.recovers == RecoveryTrigger::FreeSpace
    }

    /// Accepts new turns again: the disk has space.
    pub(super) fn space_recovered(&self) {
        let mut state = self.health_state();
        if state.recovers == RecoveryTrigger::FreeSpace {
            *state = HealthState { health: StoreHealth::Healthy, recovers: RecoveryTrigger::NextCommit };
        }
    }

    /// Another server may have the file now.
    pub(super) fn unlock(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn health_state(&self) -> MutexGuard<'_, HealthState> {
        self.health_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
