//! What the writer, the tasks beside it and all handles of a store share.

use super::lease::Lease;
use super::live::Lives;
use super::searchers::Searchers;
use super::segment;
use super::settings::PostgresSettings;
use crate::error::StoreError;
use crate::standing::{Figures, Health};
use sqlx::postgres::{PgConnectOptions, PgPool};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::Semaphore;

pub(super) struct Shared {
    pub options: PgConnectOptions,
    pub settings: PostgresSettings,
    pub pool: PgPool,
    pub searchers: Searchers,
    /// Which server this is.
    pub replica: i32,
    pub lease: Lease,
    pub lives: Lives,
    /// Room in the queue, in KiB.
    pub room: Arc<Semaphore>,
    pub waiting: AtomicUsize,
    pub figures: Counters,
    lost: Mutex<Option<String>>,
}

#[derive(Default)]
pub(super) struct Counters {
    pub commits: AtomicU64,
    pub fsyncs: AtomicU64,
    pub events: AtomicU64,
    pub segments: AtomicU64,
}

/// Room that is counted at once.
const ROOM_UNIT: usize = 1 << 10;
/// A turn that is silent for so long leaves nothing in memory for its viewers: it can be read.
const RING_IDLE: std::time::Duration = std::time::Duration::from_secs(10);

impl Shared {
    pub fn new(options: PgConnectOptions, settings: PostgresSettings, pool: PgPool, replica: i32) -> Self {
        Self {
            searchers: Searchers::new(&options, pool.clone(), settings.catalog),
            options,
            settings,
            pool,
            replica,
            lease: Lease::new(),
            lives: Lives::default(),
            room: Arc::new(Semaphore::new(room(settings.queue_bytes_max) as usize)),
            waiting: AtomicUsize::new(0),
            figures: Counters::default(),
            lost: Mutex::default(),
        }
    }

    /// Room that so many bytes take: something larger than the queue takes all of it.
    pub fn room_for(&self, bytes: usize) -> u32 {
        room(bytes).min(room(self.settings.queue_bytes_max))
    }

    pub fn figures(&self) -> Figures {
        let used = room(self.settings.queue_bytes_max) as usize - self.room.available_permits();
        Figures {
            commits: self.figures.commits.load(Relaxed),
            fsyncs: self.figures.fsyncs.load(Relaxed),
            events: self.figures.events.load(Relaxed),
            segments: self.figures.segments.load(Relaxed),
            queue_jobs: self.waiting.load(Relaxed),
            queue_bytes: used * ROOM_UNIT,
            turns: self.lives.count(),
            ring_bytes: self.lives.ring_bytes(),
            searches_abandoned: self.searchers.abandoned(),
        }
    }

    pub fn health(&self) -> Health {
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match lost {
            Some(why) => Health::Lost { why },
            None if self.lease.until().is_none() => {
                Health::Lost { why: "the lease of this server has run out".into() }
            }
            None => Health::Ok,
        }
    }

    pub fn set_lost(&self, why: Option<String>) {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Looks at turns in the database on behalf of their viewers here: of these, or of all that are in memory.
    pub async fn look_at(&self, numbers: Option<&[i64]>) {
        let lives = self.lives.of(numbers);
        // A look that fails is repeated by the next one.
        let _ = self.look(&lives).await;
    }

    /// Looks at what others write.
    pub async fn poll(&self) {
        let mut lives = self.lives.of(None);
        lives.retain(|live| live.writing().is_none() && live.progress.receiver_count() > 0);
        let _ = self.look(&lives).await;
        self.lives.sweep();
    }

    async fn look(&self, lives: &[Arc<super::live::Live>]) -> Result<(), StoreError> {
        if lives.is_empty() {
            return Ok(());
        }
        let numbers: Vec<i64> = lives.iter().map(|live| live.n).collect();
        let rows = segment::rows(&self.pool, &numbers).await?;
        for live in lives {
            let Some(row) = rows.iter().find(|row| row.n == live.n) else {
                // Forgotten: nothing will follow what there was.
                live.disown();
                live.progress.send_modify(|now| now.ended = true);
                continue;
            };
            let ours = *live.writing();
            match ours {
                Some(writing) if writing.epoch < row.epoch => live.disown(),
                // What this server has written, it knows better.
                Some(_) => continue,
                None => {}
            }
            live.advance(row.progress());
        }
        Ok(())
    }

    /// Lets go of what need not be in memory.
    pub fn tidy(&self) {
        let now = Instant::now();
        for live in self.lives.of(None) {
            let mut ring = live.ring();
            if ring.touched().is_some_and(|touched| now.duration_since(touched) > RING_IDLE) {
                ring.forget(u64::MAX);
            }
        }
        self.lives.sweep();
    }
}

fn room(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(ROOM_UNIT)).unwrap_or(u32::MAX >> 4).clamp(1, u32::MAX >> 4)
}
