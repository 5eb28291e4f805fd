//! Searches have a separate connection pool, so that they never occupy other connections, and an end: when
//! their time is over, or when their caller has stopped waiting. The connection is lent for one step at a
//! time, under the time limit of that step: no statement of a search runs without one.

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

/// Extra time beyond `search_ms_max` for what every page needs in order to advance: a first stretch, and the
/// rows that it shows.
const GRACE: Duration = Duration::from_millis(100);
/// The least that a statement gets, in milliseconds: the next limit is set under it, too, and none at all would be no limit.
const STATEMENT_MS_MIN: u64 = 10;
/// Excess, in milliseconds, by which a limit may be longer than needed and is still left unchanged: setting
/// it costs a round trip.
const SLACK_MS: u64 = 10;

/// A step of a search, of one or two statements, with their time limits and their planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchStep {
    /// First stretch of a page, in half of the time until the deadline: in the rest a smaller one can still
    /// be searched, and shown.
    Begin,
    /// Looks through the least that a page can begin with, as long as it takes: otherwise no page would get on. Only a lock is not
    /// waited for.
    Least,
    /// Asks the index for everything, in half of the time that is left.
    AskIndex,
    /// Looks through more, in the time that is left.
    Continue,
    /// Reads the rows that are shown, with the same limit.
    Show,
    /// Reads as long as a request waits.
    Scan,
}

impl SearchStep {
    /// True if the planner must go along the indexes, row by row. Without statistics it takes a user, or a conversation, for a
    /// 200th of a table, and would rather look through all texts for each of 250 conversations.
    fn goes_by_index(self) -> bool {
        matches!(self, Self::Begin | Self::Least | Self::Continue | Self::Show)
    }
}

/// Limits to which the connection is set.
#[derive(Clone, Copy, PartialEq, Eq)]
struct StatementBounds {
    timeout_ms: u64,
    /// Time limit for waiting for a lock.
    lock_ms: u64,
    goes_by_index: bool,
}

impl StatementBounds {
    /// True if a statement that is to have these may have others.
    fn is_held_by(self, others: Self) -> bool {
        let is_near = |wanted: u64, set: u64| (wanted..=wanted.saturating_add(SLACK_MS)).contains(&set);
        is_near(self.timeout_ms, others.timeout_ms)
            && is_near(self.lock_ms, others.lock_ms)
            && self.goes_by_index == others.goes_by_index
    }
}

const SET_BOUNDS: &str =
    "SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false),
    set_config('enable_seqscan', $3, false), set_config('enable_bitmapscan', $3, false),
    set_config('enable_hashjoin', $3, false), set_config('enable_mergejoin', $3, false)";

pub(super) struct PostgresSearchPool {
    options: PgConnectOptions,
    /// Pool from which a statement is cancelled.
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
    /// Limits of the next statement. `None`: the defaults of a connection.
    bounds: Option<StatementBounds>,
}

impl PostgresSearchPool {
    pub(super) fn new(options: &PgConnectOptions, cancel_pool: PgPool, limits: CatalogLimits) -> Self {
        // The plan depends on the search term: common and rare words need different plans.
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
                SearchConnection { db, backend, bounds: None }
            }
        };
        let deadline = Instant::now() + Duration::from_millis(self.limits.search_ms_max);
        Ok(SearchSession {
            pool: self,
            searcher: Some(connection),
            permit: Some(permit),
            _slot: slot,
            deadline,
        })
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

    /// Closes the pool; later searches are refused.
    pub(super) async fn close(&self) {
        self.running.close();
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(connection) = free {
            // The database also notices the closed connection itself.
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
    /// The connection, for one statement.
    pub(super) async fn db(&mut self, step: SearchStep) -> Result<&mut PgConnection, sqlx::Error> {
        let bounds = self.bounds(step);
        let connection = self.searcher.as_mut().ok_or(sqlx::Error::PoolClosed)?;
        if !connection.bounds.is_some_and(|set| bounds.is_held_by(set)) {
            let [timeout, lock] = [bounds.timeout_ms, bounds.lock_ms].map(|ms| ms.to_string());
            // Scans that the planner may use besides indexes.
            let others = if bounds.goes_by_index { "off" } else { "on" };
            let set = sqlx::query(SET_BOUNDS).bind(timeout).bind(lock).bind(others);
            set.execute(&mut connection.db).await?;
            connection.bounds = Some(bounds);
        }
        Ok(&mut connection.db)
    }

    fn bounds(&self, step: SearchStep) -> StatementBounds {
        let rest = |end: Instant| end.saturating_duration_since(Instant::now());
        let end = self.deadline + GRACE;
        let as_request_waits = Duration::MAX;
        let (timeout, lock) = match step {
            SearchStep::Begin => (rest(end) / 2, rest(end) / 2),
            SearchStep::Least | SearchStep::Show => (as_request_waits, rest(end)),
            SearchStep::AskIndex => (rest(self.deadline) / 2, rest(self.deadline) / 2),
            SearchStep::Continue => (rest(self.deadline), rest(self.deadline)),
            SearchStep::Scan => (as_request_waits, as_request_waits),
        };
        let [timeout_ms, lock_ms] = [timeout, lock].map(|time| {
            let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            ms.min(self.pool.max(WAIT_LIMIT)).max(STATEMENT_MS_MIN)
        });
        StatementBounds { timeout_ms, lock_ms, goes_by_index: step.goes_by_index() }
    }

    /// True if it should end with the hits that it has.
    pub(super) fn is_expired(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Ends a search with this result. A connection on which a statement failed is not reused.
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
                // If the cancellation cannot be sent, `statement_timeout` ends the statement.
                let cancelled = sqlx::query("SELECT pg_cancel_backend($1)").bind(connection.backend);
                let _ = cancelled.execute(&pool).await;
                drop((connection, permit));
            });
        }
    }
}

/// Result of a statement. `None`: it was too much for its time, or a lock was held all the while, and nothing is known of it.
pub(super) fn in_time<T>(result: Result<T, sqlx::Error>) -> Result<Option<T>, StoreError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(sqlx::Error::Database(error))
            if matches!(error.code().as_deref(), Some(connection::CANCELLED | connection::LOCKED)) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}
