//! State shared by the writer, the background tasks and all handles of a store.

use super::lease::ServerLease;
use super::live::PostgresLiveTurns;
use super::search_pool::PostgresSearchPool;
use super::segment;
use super::settings::PostgresSettings;
use crate::error::StoreError;
use crate::status::{StoreHealth, StoreStats};
use sqlx::postgres::{PgConnectOptions, PgPool};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::{Semaphore, watch};

pub(super) struct PostgresShared {
    pub options: PgConnectOptions,
    pub settings: PostgresSettings,
    pub pool: PgPool,
    pub search_pool: PostgresSearchPool,
    /// Id of this server.
    pub replica: i32,
    pub lease: ServerLease,
    pub live_turns: PostgresLiveTurns,
    /// Counts notifications of requests and replies between servers.
    pub peer_doorbell: watch::Sender<u64>,
    /// Room in the queue, in KiB.
    pub queue_permits: Arc<Semaphore>,
    pub queued_jobs: AtomicUsize,
    pub counters: PostgresCounters,
    failure: Mutex<Option<String>>,
}

#[derive(Default)]
pub(super) struct PostgresCounters {
    pub commits: AtomicU64,
    pub fsyncs: AtomicU64,
    pub events: AtomicU64,
    pub segments: AtomicU64,
}

/// Unit in which queue space is counted, in bytes.
const PERMIT_BYTES: usize = 1 << 10;
/// A turn that is silent for so long leaves nothing in memory for its viewers: it can be read.
const RING_IDLE: std::time::Duration = std::time::Duration::from_secs(10);

impl PostgresShared {
    pub(super) fn new(
        options: PgConnectOptions,
        settings: PostgresSettings,
        pool: PgPool,
        replica: i32,
    ) -> Self {
        Self {
            search_pool: PostgresSearchPool::new(&options, pool.clone(), settings.catalog),
            options,
            settings,
            pool,
            replica,
            lease: ServerLease::new(),
            live_turns: PostgresLiveTurns::default(),
            peer_doorbell: watch::Sender::default(),
            queue_permits: Arc::new(Semaphore::new(permits(settings.queue_bytes_max) as usize)),
            queued_jobs: AtomicUsize::new(0),
            counters: PostgresCounters::default(),
            failure: Mutex::default(),
        }
    }

    /// Permits for this many bytes: more than the queue holds takes the whole queue.
    pub(super) fn permits_for(&self, bytes: usize) -> u32 {
        permits(bytes).min(permits(self.settings.queue_bytes_max))
    }

    pub(super) fn stats(&self) -> StoreStats {
        let used = permits(self.settings.queue_bytes_max) as usize - self.queue_permits.available_permits();
        StoreStats {
            commits: self.counters.commits.load(Relaxed),
            fsyncs: self.counters.fsyncs.load(Relaxed),
            events: self.counters.events.load(Relaxed),
            segments: self.counters.segments.load(Relaxed),
            queue_jobs: self.queued_jobs.load(Relaxed),
            queue_bytes: used * PERMIT_BYTES,
            turns: self.live_turns.count(),
            ring_bytes: self.live_turns.ring_bytes(),
            searches_abandoned: self.search_pool.abandoned(),
        }
    }

    pub(super) fn health(&self) -> StoreHealth {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match failure {
            Some(why) => StoreHealth::Unavailable { why },
            None if self.lease.valid_until().is_none() => {
                StoreHealth::Unavailable { why: "the lease of this server has expired".into() }
            }
            None => StoreHealth::Healthy,
        }
    }

    pub(super) fn set_failure(&self, why: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Reads the progress of turns from the database for their viewers here: of these turns, or of all in
    /// memory.
    pub(super) async fn refresh(&self, numbers: Option<&[i64]>) {
        let lives = self.live_turns.select(numbers);
        // A look that fails is repeated by the next one.
        let _ = self.refresh_turns(&lives).await;
    }

    /// Looks at what others write.
    pub(super) async fn poll(&self) {
        let mut lives = self.live_turns.select(None);
        lives.retain(|live| live.append_state().is_none() && live.progress.receiver_count() > 0);
        let _ = self.refresh_turns(&lives).await;
        self.live_turns.evict_idle();
    }

    async fn refresh_turns(&self, lives: &[Arc<super::live::PostgresLiveTurn>]) -> Result<(), StoreError> {
        if lives.is_empty() {
            return Ok(());
        }
        let numbers: Vec<i64> = lives.iter().map(|live| live.n).collect();
        let rows = segment::load_rows(&self.pool, &numbers).await?;
        for live in lives {
            let Some(row) = rows.iter().find(|row| row.n == live.n) else {
                // Forgotten: nothing will follow what there was.
                live.disown();
                live.progress.send_modify(|now| now.ended = true);
                continue;
            };
            let append_state = *live.append_state();
            match append_state {
                Some(writing) if writing.epoch < row.epoch => live.disown(),
                // What this server has written, it knows better.
                Some(_) => continue,
                None => {}
            }
            live.advance(row.progress());
        }
        Ok(())
    }

    /// Wakes the tasks that wait for requests and replies of other servers.
    pub(super) fn ring_peers(&self) {
        self.peer_doorbell.send_modify(|rung| *rung += 1);
    }

    /// Lets go of what need not be in memory.
    pub(super) fn evict_idle(&self) {
        let now = Instant::now();
        for live in self.live_turns.select(None) {
            let mut ring = live.ring();
            if ring.last_append().is_some_and(|touched| now.duration_since(touched) > RING_IDLE) {
                ring.evict_through(u64::MAX);
            }
        }
        self.live_turns.evict_idle();
    }
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX >> 4).clamp(1, u32::MAX >> 4)
}
