//! Searches have a separate reader, so that they never occupy the others, and an end: when their time is
//! over, or when their caller has stopped waiting.

use super::reader_pool::ReaderPool;
use crate::catalog::CatalogLimits;
use crate::error::StoreError;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// One at a time: a search is work for a processor, and others want one, too.
const CONCURRENT_SEARCHES: usize = 1;

/// Operations of SQLite between two checks whether the caller still waits: some ten microseconds.
const PROGRESS_CHECK_OPS: i32 = 1_000;

pub(super) struct SqliteSearchPool {
    readers: ReaderPool,
    /// One for each search that runs or waits.
    slots: Semaphore,
    limits: CatalogLimits,
    abandoned: AtomicU64,
}

impl SqliteSearchPool {
    pub(super) fn new(file: PathBuf, limits: CatalogLimits) -> Self {
        Self {
            readers: ReaderPool::new(file, CONCURRENT_SEARCHES),
            slots: Semaphore::new(CONCURRENT_SEARCHES + limits.searches_waiting_max),
            limits,
            abandoned: AtomicU64::new(0),
        }
    }

    /// Runs a search. If this is dropped before its end, what SQLite does for it is interrupted.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Connection, &SearchBudget) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let max = self.limits.searches_waiting_max as u64;
        let _slot =
            self.slots.try_acquire().map_err(|_| StoreError::Busy { limit: "searches_waiting_max", max })?;
        let search = Arc::new(SearchBudget::new(Duration::from_millis(self.limits.search_ms_max)));
        let mut guard = AbandonGuard { search: Some(search.clone()), abandoned: &self.abandoned };
        let reading = self.readers.read(move |db| {
            search.start(db)?;
            let result = f(db, &search);
            db.progress_handler(0, None::<fn() -> bool>)?;
            result
        });
        let max = self.limits.search_wait_ms_max;
        match tokio::time::timeout(Duration::from_millis(max), reading).await {
            Ok(result) => {
                guard.search = None;
                result
            }
            Err(_) => Err(StoreError::Busy { limit: "search_wait_ms_max", max }),
        }
    }

    /// Searches that were given up before their end.
    pub(super) fn abandoned(&self) -> u64 {
        self.abandoned.load(Relaxed)
    }

    /// Closes the pool; waits for searches that are under way.
    pub(super) async fn close(&self) {
        self.readers.close(CONCURRENT_SEARCHES).await;
    }
}

/// A search that waits or runs.
pub(super) struct SearchBudget {
    time: Duration,
    /// Known when it begins.
    deadline: OnceLock<Instant>,
    is_abandoned: AtomicBool,
}

impl SearchBudget {
    fn new(time: Duration) -> Self {
        Self { time, deadline: OnceLock::new(), is_abandoned: AtomicBool::new(false) }
    }

    /// True if it should end with the hits that it has.
    pub(super) fn is_expired(&self) -> bool {
        self.is_abandoned() || self.deadline.get().is_some_and(|deadline| Instant::now() >= *deadline)
    }

    /// True when a part of the search's time is over.
    pub(super) fn is_expired_within(&self, part: u32) -> bool {
        let rest = self.time - self.time / part;
        self.is_abandoned() || self.deadline.get().is_some_and(|deadline| Instant::now() + rest >= *deadline)
    }

    /// Installs a progress handler by which SQLite periodically checks the budget: an interruption from
    /// outside would be lost if it came just before a statement, and would hit the next search if it came
    /// just after the last one.
    fn start(self: &Arc<Self>, db: &Connection) -> Result<(), StoreError> {
        let search = self.clone();
        db.progress_handler(PROGRESS_CHECK_OPS, Some(move || search.is_abandoned()))?;
        let _ = self.deadline.set(Instant::now() + self.time);
        Ok(())
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Relaxed)
    }
}

/// Marks a search as abandoned when it is dropped before its end.
struct AbandonGuard<'a> {
    /// `None`: it has ended.
    search: Option<Arc<SearchBudget>>,
    abandoned: &'a AtomicU64,
}

impl Drop for AbandonGuard<'_> {
    fn drop(&mut self) {
        if let Some(search) = &self.search {
            search.is_abandoned.store(true, Relaxed);
            self.abandoned.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::Pin;
    use tokio::sync::oneshot;

    type SearchFuture<'a> = Pin<Box<dyn Future<Output = Result<i64, StoreError>> + Send + 'a>>;

    /// A query that counts without end.
    const ENDLESS: &str =
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

    fn searchers(limits: CatalogLimits) -> (SqliteSearchPool, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.db");
        Connection::open(&file).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        (SqliteSearchPool::new(file, limits), folder)
    }

    /// A search without end, and when it has begun.
    fn endless(pool: &SqliteSearchPool) -> (SearchFuture<'_>, oneshot::Receiver<()>) {
        let (begins, begun) = oneshot::channel();
        let search = pool.run(move |db, _| {
            begins.send(()).unwrap();
            Ok(db.query_row(ENDLESS, [], |row| row.get(0))?)
        });
        (Box::pin(search), begun)
    }

    async fn one(pool: &SqliteSearchPool) -> Result<i64, StoreError> {
        pool.run(|db, _| Ok(db.query_row("SELECT 1", [], |row| row.get(0))?)).await
    }

    #[tokio::test]
    async fn dropped_search_is_interrupted() {
        let (pool, _folder) = searchers(CatalogLimits::default());
        let (mut search, begun) = endless(&pool);
        assert!(futures_util::poll!(search.as_mut()).is_pending());
        begun.await.unwrap();
        assert_eq!(pool.abandoned(), 0);
        drop(search);
        // There is one reader: this search waits until the other one is over, and is not interrupted instead
        // of it.
        assert_eq!(one(&pool).await, Ok(1));
        assert_eq!(pool.abandoned(), 1);
    }

    #[tokio::test]
    async fn search_dropped_while_queued_never_starts() {
        let (pool, _folder) = searchers(CatalogLimits::default());
        let (mut first, begun) = endless(&pool);
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        begun.await.unwrap();
        let (mut second, never) = endless(&pool);
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        drop(second);
        assert!(never.await.is_err(), "its work has been dropped");
        drop(first);
        assert_eq!(one(&pool).await, Ok(1));
        assert_eq!(pool.abandoned(), 2);
    }

    // Limit: `searches_waiting_max`.
    #[tokio::test]
    async fn search_queue_is_bounded() {
        let limits = CatalogLimits { searches_waiting_max: 2, ..CatalogLimits::default() };
        let (pool, _folder) = searchers(limits);
        let (mut first, begun) = endless(&pool);
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        begun.await.unwrap();
        let mut waiting: Vec<SearchFuture<'_>> =
            (0..2).map(|_| Box::pin(one(&pool)) as SearchFuture<'_>).collect();
        for search in &mut waiting {
            assert!(futures_util::poll!(search.as_mut()).is_pending());
        }
        let busy = Err(StoreError::Busy { limit: "searches_waiting_max", max: 2 });
        assert_eq!(one(&pool).await, busy);
        drop(first);
        for search in waiting {
            assert_eq!(search.await, Ok(1));
        }
        assert_eq!(one(&pool).await, Ok(1));
    }

    // Limit: `search_wait_ms_max`.
    #[tokio::test]
    async fn search_wait_time_is_limited() {
        let limits = CatalogLimits { search_wait_ms_max: 20, ..CatalogLimits::default() };
        let (pool, _folder) = searchers(limits);
        let (search, _begun) = endless(&pool);
        assert_eq!(search.await, Err(StoreError::Busy { limit: "search_wait_ms_max", max: 20 }));
        assert_eq!(pool.abandoned(), 1, "and SQLite has been told");
        pool.close().await;
    }

    // Limit: `search_ms_max`.
    #[tokio::test]
    async fn search_reports_its_expired_time_limit() {
        let (short, _folder) = searchers(CatalogLimits { search_ms_max: 0, ..CatalogLimits::default() });
        assert_eq!(short.run(|_, search| Ok(search.is_expired())).await, Ok(true));
        let hour = CatalogLimits { search_ms_max: 3_600_000, ..CatalogLimits::default() };
        let (long, _folder) = searchers(hour);
        let state = long.run(|_, search| Ok((search.is_expired(), search.is_expired_within(2)))).await;
        assert_eq!(state, Ok((false, false)));
    }
}
