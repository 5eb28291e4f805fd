//! Searches have a reader of their own, so that none of them takes the others' readers, and an end: when their time is
//! over, or when nobody waits for them any more.

use super::readers::Readers;
use crate::catalog::CatalogLimits;
use crate::error::StoreError;
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// One at a time: a search is work for a processor, and others want one, too.
const AT_ONCE: usize = 1;

/// Operations of SQLite between two questions whether anybody still waits: some ten microseconds.
const OPERATIONS: i32 = 1_000;

pub(super) struct Searchers {
    readers: Readers,
    /// One for each search that runs or waits.
    room: Semaphore,
    limits: CatalogLimits,
    abandoned: AtomicU64,
}

impl Searchers {
    pub fn new(file: PathBuf, limits: CatalogLimits) -> Self {
        Self {
            readers: Readers::new(file, AT_ONCE),
            room: Semaphore::new(AT_ONCE + limits.searches_waiting_max),
            limits,
            abandoned: AtomicU64::new(0),
        }
    }

    /// Runs a search. If this is dropped before its end, what SQLite does for it is interrupted.
    pub async fn search<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection, &Search) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let max = self.limits.searches_waiting_max as u64;
        let _room =
            self.room.try_acquire().map_err(|_| StoreError::Busy { limit: "searches_waiting_max", max })?;
        let search = Arc::new(Search::new(Duration::from_millis(self.limits.search_ms_max)));
        let mut waits = Waits { search: Some(search.clone()), abandoned: &self.abandoned };
        let reading = self.readers.read(move |db| {
            search.begin(db)?;
            let result = f(db, &search);
            db.progress_handler(0, None::<fn() -> bool>)?;
            result
        });
        let max = self.limits.search_wait_ms_max;
        match tokio::time::timeout(Duration::from_millis(max), reading).await {
            Ok(result) => {
                waits.search = None;
                result
            }
            Err(_) => Err(StoreError::Busy { limit: "search_wait_ms_max", max }),
        }
    }

    /// Searches that were given up before their end.
    pub fn abandoned(&self) -> u64 {
        self.abandoned.load(Relaxed)
    }

    /// No more searching; waits for what is under way.
    pub async fn close(&self) {
        self.readers.close(AT_ONCE).await;
    }
}

/// A search that waits or runs.
pub(super) struct Search {
    time: Duration,
    /// Known when it begins.
    until: OnceLock<Instant>,
    is_abandoned: AtomicBool,
}

impl Search {
    fn new(time: Duration) -> Self {
        Self { time, until: OnceLock::new(), is_abandoned: AtomicBool::new(false) }
    }

    /// Whether it should end with what it has.
    pub fn is_over(&self) -> bool {
        self.is_abandoned() || self.until.get().is_some_and(|until| Instant::now() >= *until)
    }

    /// The same when a part of its time is over.
    pub fn is_partly_over(&self, part: u32) -> bool {
        let rest = self.time - self.time / part;
        self.is_abandoned() || self.until.get().is_some_and(|until| Instant::now() + rest >= *until)
    }

    /// From now on SQLite asks every now and then whether to go on: an interruption from outside would be lost if it came
    /// just before a statement, and would meet the next search if it came just after the last one.
    fn begin(self: &Arc<Self>, db: &Connection) -> Result<(), StoreError> {
        let search = self.clone();
        db.progress_handler(OPERATIONS, Some(move || search.is_abandoned()))?;
        let _ = self.until.set(Instant::now() + self.time);
        Ok(())
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Relaxed)
    }
}

/// Somebody waits for a search; dropped before its end, nobody does.
struct Waits<'a> {
    /// `None`: it has ended.
    search: Option<Arc<Search>>,
    abandoned: &'a AtomicU64,
}

impl Drop for Waits<'_> {
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

    type Searching<'a> = Pin<Box<dyn Future<Output = Result<i64, StoreError>> + Send + 'a>>;

    /// Counts for ever.
    const ENDLESS: &str =
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

    fn searchers(limits: CatalogLimits) -> (Searchers, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.db");
        Connection::open(&file).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
        (Searchers::new(file, limits), folder)
    }

    /// A search without end, and when it has begun.
    fn endless(searchers: &Searchers) -> (Searching<'_>, oneshot::Receiver<()>) {
        let (begins, begun) = oneshot::channel();
        let search = searchers.search(move |db, _| {
            begins.send(()).unwrap();
            Ok(db.query_row(ENDLESS, [], |row| row.get(0))?)
        });
        (Box::pin(search), begun)
    }

    async fn one(searchers: &Searchers) -> Result<i64, StoreError> {
        searchers.search(|db, _| Ok(db.query_row("SELECT 1", [], |row| row.get(0))?)).await
    }

    // R: R2
    #[tokio::test]
    async fn a_search_that_nobody_waits_for_any_more_is_interrupted() {
        let (searchers, _folder) = searchers(CatalogLimits::default());
        let (mut search, begun) = endless(&searchers);
        assert!(futures_util::poll!(search.as_mut()).is_pending());
        begun.await.unwrap();
        assert_eq!(searchers.abandoned(), 0);
        drop(search);
        // There is one reader: this waits until the other search is over, and is not interrupted in its place.
        assert_eq!(one(&searchers).await, Ok(1));
        assert_eq!(searchers.abandoned(), 1);
    }

    // R: R2
    #[tokio::test]
    async fn one_that_is_given_up_before_its_turn_never_begins() {
        let (searchers, _folder) = searchers(CatalogLimits::default());
        let (mut first, begun) = endless(&searchers);
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        begun.await.unwrap();
        let (mut second, never) = endless(&searchers);
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        drop(second);
        assert!(never.await.is_err(), "its work has been dropped");
        drop(first);
        assert_eq!(one(&searchers).await, Ok(1));
        assert_eq!(searchers.abandoned(), 2);
    }

    // R: R2 `searches_waiting_max`
    #[tokio::test]
    async fn so_many_wait_and_no_more() {
        let limits = CatalogLimits { searches_waiting_max: 2, ..CatalogLimits::default() };
        let (searchers, _folder) = searchers(limits);
        let (mut first, begun) = endless(&searchers);
        assert!(futures_util::poll!(first.as_mut()).is_pending());
        begun.await.unwrap();
        let mut waiting: Vec<Searching<'_>> =
            (0..2).map(|_| Box::pin(one(&searchers)) as Searching<'_>).collect();
        for search in &mut waiting {
            assert!(futures_util::poll!(search.as_mut()).is_pending());
        }
        let busy = Err(StoreError::Busy { limit: "searches_waiting_max", max: 2 });
        assert_eq!(one(&searchers).await, busy);
        drop(first);
        for search in waiting {
            assert_eq!(search.await, Ok(1));
        }
        assert_eq!(one(&searchers).await, Ok(1));
    }

    // R: R2 `search_wait_ms_max`
    #[tokio::test]
    async fn nobody_waits_longer_than_that() {
        let limits = CatalogLimits { search_wait_ms_max: 20, ..CatalogLimits::default() };
        let (searchers, _folder) = searchers(limits);
        let (search, _begun) = endless(&searchers);
        assert_eq!(search.await, Err(StoreError::Busy { limit: "search_wait_ms_max", max: 20 }));
        assert_eq!(searchers.abandoned(), 1, "and SQLite has been told");
        searchers.close().await;
    }

    // R: R2 `search_ms_max`
    #[tokio::test]
    async fn a_search_knows_when_its_time_is_over() {
        let (short, _folder) = searchers(CatalogLimits { search_ms_max: 0, ..CatalogLimits::default() });
        assert_eq!(short.search(|_, search| Ok(search.is_over())).await, Ok(true));
        let hour = CatalogLimits { search_ms_max: 3_600_000, ..CatalogLimits::default() };
        let (long, _folder) = searchers(hour);
        let state = long.search(|_, search| Ok((search.is_over(), search.is_partly_over(2)))).await;
        assert_eq!(state, Ok((false, false)));
    }
}
