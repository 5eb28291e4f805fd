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
const CONCURRENT_SEARCHES: usize = 1;

const WAIT_LIMIT: &str = "search_wait_ms_max";
const QUEUE_LIMIT: &str = "searches_waiting_max";

pub(super) struct PostgresSearchPool {
    options: PgConnectOptions,
    /// Where a statement is cancelled from.
    cancel_pool: PgPool,
    limits: CatalogLimits,
    /// One for each search that runs or waits.
    slots: Semaphore,
    running: Arc<Semaphore>,
    free: Mutex<Option<SearchConnection>>,
    abandoned: Arc<AtomicU64>,
}

/// A connection that searches.
struct SearchConnection {
    db: PgConnection,
    /// The process of the database that serves it.
    backend: i32,
    /// Time limit of one of its statements, in milliseconds.
    timeout_ms: u64,
}

impl PostgresSearchPool {
    pub(super) fn new(options: &PgConnectOptions, cancel_pool: PgPool, limits: CatalogLimits) -> Self {
        // The plan is made for what is looked for: common words and rare ones have different ones.
        let options = options.clone().options([("plan_cache_mode", "force_custom_plan")]);
        Self {
            options,
            cancel_pool,
            limits,
            slots: Semaphore::new(CONCURRENT_SEARCHES + limits.searches_waiting_max),
            running: Arc::new(Semaphore::new(CONCURRENT_SEARCHES)),
            free: Mutex::default(),
            abandoned: Arc::default(),
        }
    }

    /// A search. It waits until it is its turn.
    pub(super) async fn begin(&self) -> Result<SearchSession<'_>, StoreError> {
        let closed = |_| StoreError::failed("the store has been closed");
        let slot = self.slots.try_acquire().map_err(|_| self.busy(QUEUE_LIMIT))?;
        let acquiring = tokio::time::timeout(
            Duration::from_millis(self.limits.search_wait_ms_max),
            Arc::clone(&self.running).acquire_owned(),
        );
        let permit = acquiring.await.map_err(|_| self.busy(WAIT_LIMIT))?.map_err(closed)?;
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).take();
        let connection = match free {
            Some(connection) => connection,
            None => {
                let mut db = connection::connect(&self.options).await?;
                let backend = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut db).await?;
                SearchConnection { db, backend, timeout_ms: 0 }
            }
        };
        let deadline = Instant::now() + Duration::from_millis(self.limits.search_ms_max);
        let mut session = SearchSession {
            pool: self,
            searcher: Some(connection),
            permit: Some(permit),
            _slot: slot,
            deadline,
        };
        session.use_wait_timeout().await?;
        Ok(session)
    }

    fn max(&self, limit: &str) -> u64 {
        match limit {
            WAIT_LIMIT => self.limits.search_wait_ms_max,
            _ => self.limits.searches_waiting_max as u64,
        }
    }

    fn busy(&self, limit: &'static str) -> StoreError {
        StoreError::Busy { limit, max: self.max(limit) }
    }

    /// Searches that were given up before their end.
    pub(super) fn abandoned(&self) -> u64 {
        self.abandoned.load(Relaxed)
    }

    /// No more searching.
    pub(super) async fn close(&self) {
        self.running.close();
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(connection) = free {
            // The database notices by itself, too.
            let _ = connection.db.close().await;
        }
    }
}

/// A search that runs. Dropped before its end, its statement is cancelled.
pub(super) struct SearchSession<'a> {
    pool: &'a PostgresSearchPool,
    searcher: Option<SearchConnection>,
    permit: Option<OwnedSemaphorePermit>,
    _slot: SemaphorePermit<'a>,
    deadline: Instant,
}

impl SearchSession<'_> {
    pub(super) fn db(&mut self) -> Result<&mut PgConnection, StoreError> {
        let connection = self.searcher.as_mut().ok_or_else(|| StoreError::failed("the search has ended"))?;
        Ok(&mut connection.db)
    }

    /// Limits the following statements to one of so many parts of the time that is left: what they do not find is found
    /// in another way, or by the next page.
    pub(super) async fn use_rest_timeout(&mut self, parts: u32) -> Result<(), StoreError> {
        let rest = self.deadline.saturating_duration_since(Instant::now()) / parts;
        self.set_timeout(u64::try_from(rest.as_millis()).unwrap_or(u64::MAX)).await
    }

    /// Result of a statement under such a limit. `None`: it was too much for the time, and nothing is known of it.
    pub(super) async fn in_time<T>(
        &mut self,
        result: Result<T, sqlx::Error>,
    ) -> Result<Option<T>, StoreError> {
        self.use_wait_timeout().await?;
        match result {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_timeout(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets the following statements run as long as a request waits.
    pub(super) async fn use_wait_timeout(&mut self) -> Result<(), StoreError> {
        self.set_timeout(self.pool.max(WAIT_LIMIT)).await
    }

    async fn set_timeout(&mut self, ms: u64) -> Result<(), StoreError> {
        // No time at all would be no limit.
        let ms = ms.max(1);
        if let Some(connection) = self.searcher.as_mut().filter(|connection| connection.timeout_ms != ms) {
            let limit = sqlx::query("SELECT set_config('statement_timeout', $1, false)").bind(ms.to_string());
            limit.execute(&mut connection.db).await?;
            connection.timeout_ms = ms;
        }
        Ok(())
    }

    /// True if it should end with the hits that it has.
    pub(super) fn is_expired(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// It has ended like this. What is left of a connection on which something failed is not used again.
    pub(super) fn finish<T>(mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        let connection = self.searcher.take();
        if result.is_ok() {
            *self.pool.free.lock().unwrap_or_else(PoisonError::into_inner) = connection;
        }
        result.map_err(|error| match error {
            StoreError::Busy { .. } => self.pool.busy(WAIT_LIMIT),
            error => error,
        })
    }
}

impl Drop for SearchSession<'_> {
    fn drop(&mut self) {
        let Some(connection) = self.searcher.take() else { return };
        self.pool.abandoned.fetch_add(1, Relaxed);
        let (pool, permit) = (self.pool.cancel_pool.clone(), self.permit.take());
        // Without a runtime the database notices when it writes to a connection that is closed.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // If nobody can say so, `statement_timeout` ends it.
                let cancelled = sqlx::query("SELECT pg_cancel_backend($1)").bind(connection.backend);
                let _ = cancelled.execute(&pool).await;
                drop((connection, permit));
            });
        }
    }
}

/// True if a statement was cancelled because it took too long.
fn is_timeout(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some(connection::CANCELLED))
}
