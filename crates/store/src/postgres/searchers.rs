//! Searches have a connection of their own, so that none of them takes those of others, and an end: when their time is
//! over, or when nobody waits for them any more.

use super::connection;
use crate::catalog::CatalogLimits;
use crate::error::StoreError;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::{Connection, PgConnection};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// One at a time: a search is work for a processor of the database, and others want one, too.
const AT_ONCE: usize = 1;

const LOOK: &str = "search_ms_max";
const WAIT: &str = "search_wait_ms_max";
const WAITING: &str = "searches_waiting_max";

pub(super) struct Searchers {
    options: PgConnectOptions,
    /// Where a statement is cancelled from.
    pool: PgPool,
    limits: CatalogLimits,
    /// One for each search that runs or waits.
    room: Semaphore,
    turn: Arc<Semaphore>,
    free: Mutex<Option<Searcher>>,
    abandoned: Arc<AtomicU64>,
}

/// A connection that searches.
struct Searcher {
    db: PgConnection,
    /// The process of the database that serves it.
    backend: i32,
    /// How long one of its statements may take, in milliseconds.
    timeout_ms: u64,
}

impl Searchers {
    pub fn new(options: &PgConnectOptions, pool: PgPool, limits: CatalogLimits) -> Self {
        // The plan is made for what is looked for: common words and rare ones have different ones.
        let options = options.clone().options([("plan_cache_mode", "force_custom_plan")]);
        Self {
            options,
            pool,
            limits,
            room: Semaphore::new(AT_ONCE + limits.searches_waiting_max),
            turn: Arc::new(Semaphore::new(AT_ONCE)),
            free: Mutex::default(),
            abandoned: Arc::default(),
        }
    }

    /// A search. It waits until it is its turn.
    pub async fn begin(&self) -> Result<Searching<'_>, StoreError> {
        let closed = |_| StoreError::failed("the store has been closed");
        let room = self.room.try_acquire().map_err(|_| self.busy(WAITING))?;
        let waiting = tokio::time::timeout(
            Duration::from_millis(self.limits.search_wait_ms_max),
            Arc::clone(&self.turn).acquire_owned(),
        );
        let turn = waiting.await.map_err(|_| self.busy(WAIT))?.map_err(closed)?;
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).take();
        let searcher = match free {
            Some(searcher) => searcher,
            None => {
                let mut db = connection::connect(&self.options).await?;
                let backend = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut db).await?;
                Searcher { db, backend, timeout_ms: 0 }
            }
        };
        let until = Instant::now() + Duration::from_millis(self.limits.search_ms_max);
        let mut searching =
            Searching { of: self, searcher: Some(searcher), turn: Some(turn), _room: room, until };
        searching.take_time().await?;
        Ok(searching)
    }

    fn max(&self, limit: &str) -> u64 {
        match limit {
            LOOK => self.limits.search_ms_max,
            WAIT => self.limits.search_wait_ms_max,
            _ => self.limits.searches_waiting_max as u64,
        }
    }

    fn busy(&self, limit: &'static str) -> StoreError {
        StoreError::Busy { limit, max: self.max(limit) }
    }

    /// Searches that were given up before their end.
    pub fn abandoned(&self) -> u64 {
        self.abandoned.load(Relaxed)
    }

    /// No more searching.
    pub async fn close(&self) {
        self.turn.close();
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(searcher) = free {
            // The database notices by itself, too.
            let _ = searcher.db.close().await;
        }
    }
}

/// A search that runs. Dropped before its end, its statement is cancelled.
pub(super) struct Searching<'a> {
    of: &'a Searchers,
    searcher: Option<Searcher>,
    turn: Option<OwnedSemaphorePermit>,
    _room: SemaphorePermit<'a>,
    until: Instant,
}

impl Searching<'_> {
    pub fn db(&mut self) -> Result<&mut PgConnection, StoreError> {
        let searcher = self.searcher.as_mut().ok_or_else(|| StoreError::failed("the search has ended"))?;
        Ok(&mut searcher.db)
    }

    /// What follows may take [`CatalogLimits::search_ms_max`] and no longer: there is another way.
    pub async fn hurry(&mut self) -> Result<(), StoreError> {
        self.limit(self.of.max(LOOK)).await
    }

    /// What follows may take as long as somebody waits.
    pub async fn take_time(&mut self) -> Result<(), StoreError> {
        self.limit(self.of.max(WAIT)).await
    }

    async fn limit(&mut self, ms: u64) -> Result<(), StoreError> {
        // No time at all would be no limit.
        let ms = ms.max(1);
        if let Some(searcher) = self.searcher.as_mut().filter(|searcher| searcher.timeout_ms != ms) {
            let limit = sqlx::query("SELECT set_config('statement_timeout', $1, false)").bind(ms.to_string());
            limit.execute(&mut searcher.db).await?;
            searcher.timeout_ms = ms;
        }
        Ok(())
    }

    /// Whether it should end with what it has.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// It has ended like this. What is left of a connection on which something failed is not used again.
    pub fn end<T>(mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        let searcher = self.searcher.take();
        if result.is_ok() {
            *self.of.free.lock().unwrap_or_else(PoisonError::into_inner) = searcher;
        }
        result.map_err(|error| match error {
            StoreError::Busy { .. } => self.of.busy(WAIT),
            error => error,
        })
    }
}

impl Drop for Searching<'_> {
    fn drop(&mut self) {
        let Some(searcher) = self.searcher.take() else { return };
        self.of.abandoned.fetch_add(1, Relaxed);
        let (pool, turn) = (self.of.pool.clone(), self.turn.take());
        // Without a runtime the database notices when it writes to a connection that is closed.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // If nobody can say so, `statement_timeout` ends it.
                let cancelled = sqlx::query("SELECT pg_cancel_backend($1)").bind(searcher.backend);
                let _ = cancelled.execute(&pool).await;
                drop((searcher, turn));
            });
        }
    }
}

/// Whether a statement was ended because it took too long.
pub(super) fn took_too_long(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some(connection::CANCELLED))
}
