//! A store in one SQLite file: log and catalog.
//!
//! One thread owns the one connection that writes. All pending writes of all turns and the catalog go into
//! one transaction, so that latency is one commit when little happens and batches grow under load. A commit
//! waits for the disk (`synchronous = FULL`) only if something in it must survive a power cut.
//!
//! The path of a record:
//!
//! 1. Its turn's append is framed by the caller, and all appends of a commit become **one row of the
//!    journal**. The journal is read only by a restart.
//! 2. After the commit the same bytes are in the turn's **ring** in memory, where its viewers read them, each
//!    by its own sequence number.
//! 3. When the ring is full, or the turn is idle or has ended, its records move to a **segment**: a blob of
//!    one turn. Late viewers read those. Rows of the journal that no ring needs are deleted from its start.
//! 4. After the end, [`Log::compact`] may rewrite the segments, with runs of deltas merged.

mod catalog;
mod connection;
mod editor;
mod housekeeping;
mod live;
mod log;
mod offline;
mod open;
mod paths;
mod queue;
mod reader;
mod reader_pool;
mod schema;
mod search_pool;
mod segment;
mod settings;
mod shared;
mod writer;

use crate::error::StoreError;
#[cfg(doc)]
use crate::log::Log;
use crate::log::{AppendUrgency, Durability};
use crate::status::{StoreHealth, StoreStats};
pub use editor::{SqliteEditor, SqliteFileState};
pub use offline::{SqliteFileLock, copy_sqlite_file, lock_sqlite_file};
pub use open::{LastShutdown, SqliteOpenError};
pub use reader::SqliteReader;
use rusqlite::Connection;
use search_pool::SearchBudget;
pub use settings::{SqliteSettings, SyncPolicy};
use shared::SqliteShared;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;
use writer::{TaskJob, WriteJob, WriteTask};

/// The store in one file. Clones share it; the file is closed by [`close`](Self::close), or when the last
/// clone and the last tail are dropped.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let folder = tempfile::tempdir()?;
/// use throughline_store::{Durability, Log, LogRecord, SqliteSettings, SqliteStore};
///
/// let file = folder.path().join("throughline.db");
/// let store = SqliteStore::open(&file, SqliteSettings::default()).await?;
/// let claim = store.claim("turn_1").await?;
/// let start = LogRecord::new(1, "stream_start", Durability::Power, r#"{"type":"stream_start"}"#);
/// store.append("turn_1", claim.epoch, vec![start.clone()].into()).await?;
/// store.close().await;
///
/// // After a restart, the record is there and the turn is open.
/// let store = SqliteStore::open(&file, SqliteSettings::default()).await?;
/// assert_eq!(store.read("turn_1", 0, 10).await?, [start]);
/// assert_eq!(store.open_turns().await?, ["turn_1"]);
/// # store.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<SqliteInner>,
}

struct SqliteInner {
    shared: Arc<SqliteShared>,
    last_shutdown: LastShutdown,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for SqliteInner {
    fn drop(&mut self) {
        // The thread finishes the queue, writes segments and then ends.
        self.shared.queue.close();
    }
}

impl SqliteStore {
    /// Opens the store in a file, or creates it. Brings it to this version, locks it against other servers, recovers
    /// what an unclean stop has left, and starts the writer thread.
    pub async fn open(path: &Path, settings: SqliteSettings) -> Result<Self, SqliteOpenError> {
        let file = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || start(&file, settings)).await;
        opened.unwrap_or_else(|_| {
            Err(SqliteOpenError::Io { path: path.to_owned(), why: "opening panicked".into() })
        })
    }

    /// Runs a job on the writer thread, in a savepoint of the transaction that is forming. An error undoes
    /// this job and no other. The reply comes when the transaction has the requested durability.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        durability: Durability,
        f: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, reply_rx) = oneshot::channel();
        let task = Box::new(WriteClosure { job: Some(f), result: None, reply });
        let closed = || StoreError::failed("the store has been closed");
        let job = WriteJob::Task(TaskJob::new(durability, task));
        self.inner.shared.queue.push(job, 0, AppendUrgency::Immediate).await.map_err(|_| closed())?;
        reply_rx.await.map_err(|_| closed())?
    }

    /// Reads on one of a few separate connections; sees everything that has been acknowledged.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.inner.shared.reader_pool.read(f).await
    }

    /// Searches on a reader that does nothing else. Ends when its time is over, or when this is dropped.
    async fn run_search<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Connection, &SearchBudget) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.inner.shared.search_pool.run(f).await
    }

    /// Checks that a new turn may begin: the store is healthy and the disk has room for it.
    pub fn check_capacity(&self) -> Result<(), StoreError> {
        self.inner.shared.check_capacity()
    }

    /// Finishes the queue and closes the file; later requests are refused.
    pub async fn close(&self) {
        self.inner.shared.queue.close();
        let thread = self.inner.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread has been printed; there is nothing left to close.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        self.inner.shared.search_pool.close().await;
        self.inner.shared.reader_pool.close(self.inner.shared.settings.readers_max).await;
        self.inner.shared.unlock();
    }

    /// Health of the store.
    pub fn health(&self) -> StoreHealth {
        self.inner.shared.health()
    }

    /// Counters since the store was opened, and its backlog.
    pub fn stats(&self) -> StoreStats {
        self.inner.shared.stats()
    }

    /// State in which the previous owner left the store.
    pub fn last_shutdown(&self) -> LastShutdown {
        self.inner.last_shutdown
    }

    /// Makes a backup unless the newest copy is younger than `age`; `None`: it is. So a server that is
    /// restarted often does not push out the copies of other days.
    ///
    /// # Errors
    ///
    /// As for [`backup`](Self::backup).
    pub async fn backup_if_older(&self, age: Duration) -> Result<Option<PathBuf>, StoreError> {
        let paths = self.inner.shared.paths.clone();
        let newest = tokio::task::spawn_blocking(move || paths.newest_backup_ms()).await;
        let newest = newest.map_err(|_| StoreError::failed("the backup panicked"))?;
        match newest {
            Some(at) if now_ms().saturating_sub(at) < age.as_millis() as i64 => Ok(None),
            _ => self.backup().await.map(Some),
        }
    }

    /// Writes a copy of everything that has been acknowledged, sound and compact, and deletes the oldest
    /// copies beyond [`SqliteSettings::backups_max`]. Returns the path of the copy. Meant for once a day;
    /// writers continue during it.
    pub async fn backup(&self) -> Result<PathBuf, StoreError> {
        let paths = self.inner.shared.paths.clone();
        let backups_max = self.inner.shared.settings.backups_max;
        let copy = move || {
            let io = |error: std::io::Error| StoreError::failed(format!("backup failed: {error}"));
            let folder = paths.backup_folder();
            std::fs::create_dir_all(&folder).map_err(io)?;
            let name = format!("{:013}", now_ms());
            let (unfinished, backup) =
                (folder.join(format!("{name}.part")), folder.join(format!("{name}.db")));
            let to = unfinished
                .to_str()
                .ok_or_else(|| StoreError::failed("the backup's path is not valid UTF-8"))?;
            connection::backup_source(&paths.file)?.execute("VACUUM INTO ?1", [to])?;
            std::fs::File::open(&unfinished).and_then(|file| file.sync_all()).map_err(io)?;
            std::fs::rename(&unfinished, &backup).map_err(io)?;
            for old in paths.backups_newest_first().into_iter().skip(backups_max.max(1)) {
                std::fs::remove_file(old).map_err(io)?;
            }
            Ok(backup)
        };
        tokio::task::spawn_blocking(copy).await.map_err(|_| StoreError::failed("the backup panicked"))?
    }
}

fn start(file: &Path, settings: SqliteSettings) -> Result<SqliteStore, SqliteOpenError> {
    let (shared, writer, last_shutdown) = open::open(file, settings)?;
    let thread = std::thread::Builder::new()
        .name("store-writer".into())
        .spawn(move || writer.run())
        .map_err(|error| SqliteOpenError::Io { path: file.to_owned(), why: error.to_string() })?;
    if matches!(last_shutdown, LastShutdown::ProcessCrash | LastShutdown::PowerLoss) {
        check_in_background(shared.clone(), file);
    }
    let inner = SqliteInner { shared, last_shutdown, thread: Mutex::new(Some(thread)) };
    Ok(SqliteStore { inner: Arc::new(inner) })
}

/// A large file is checked while it is used already.
fn check_in_background(shared: Arc<SqliteShared>, file: &Path) {
    let size = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    if size <= shared.settings.check_first_bytes_max {
        return;
    }
    let check = move || {
        let checked = connection::reader(&shared.paths.file)
            .map_err(StoreError::from)
            .and_then(|connection| open::check_integrity(&connection));
        if let Err(StoreError::Corrupt { why }) = checked {
            shared.mark_damaged(format!("the file is damaged: {why}"));
        }
    };
    // Without a thread the check comes with the next start.
    let _ = std::thread::Builder::new().name("store-check".into()).spawn(check);
}

/// A closure for the writer, and the caller that waits for its result.
struct WriteClosure<F, T> {
    job: Option<F>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<F, T> WriteTask for WriteClosure<F, T>
where
    F: FnOnce(&mut Connection) -> Result<T, StoreError> + Send,
    T: Send,
{
    fn run(&mut self, connection: &mut Connection) -> Result<(), StoreError> {
        let panicked = || StoreError::failed("a job of the store panicked");
        let f = self.job.take().ok_or_else(panicked)?;
        let result = f(connection);
        let savepoint_result = result.as_ref().map(drop).map_err(Clone::clone);
        self.result = Some(result);
        savepoint_result
    }

    fn reply(self: Box<Self>, committed: Result<(), StoreError>) {
        let panicked = || Err(StoreError::failed("a job of the store panicked"));
        let result = match (self.result, committed) {
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (result, Ok(())) => result.unwrap_or_else(panicked),
        };
        // The caller may have stopped waiting.
        let _ = self.reply.send(result);
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn failed_or_panicked_job_alone_is_rolled_back() {
        let folder = tempfile::tempdir().unwrap();
        let settings = SqliteSettings { free_bytes_min: 0, ballast_bytes: 0, ..SqliteSettings::default() };
        let store = SqliteStore::open(&folder.path().join("t.db"), settings).await.unwrap();
        let write = |notes: &'static str| {
            store.write(Durability::Process, move |connection| Ok(connection.execute_batch(notes)?))
        };
        write("CREATE TABLE note (n INTEGER)").await.unwrap();
        // All in the queue together, so that they can share a commit.
        let fails = store.write(Durability::Process, |connection| {
            connection.execute_batch("INSERT INTO note VALUES (2)")?;
            Err::<(), _>(StoreError::failed("as it was asked to"))
        });
        let panics = store.write(Durability::Process, |connection| {
            connection.execute_batch("INSERT INTO note VALUES (3)")?;
            if connection.is_autocommit() { Ok(()) } else { panic!("as it was asked to") }
        });
        let (one, fails, panics, four) = tokio::join!(
            write("INSERT INTO note VALUES (1)"),
            fails,
            panics,
            write("INSERT INTO note VALUES (4)")
        );
        assert!(one.is_ok() && four.is_ok(), "{one:?} {four:?}");
        assert_eq!(fails.unwrap_err().to_string(), StoreError::failed("as it was asked to").to_string());
        assert!(panics.unwrap_err().to_string().contains("panicked"));
        let notes = store.read(|connection| {
            let mut find = connection.prepare("SELECT n FROM note ORDER BY n")?;
            let notes = find.query_map([], |row| row.get::<_, i64>(0))?;
            Ok(notes.collect::<Result<Vec<_>, _>>()?)
        });
        assert_eq!(notes.await.unwrap(), [1, 4]);
        // The thread that writes lives on.
        write("INSERT INTO note VALUES (5)").await.unwrap();
    }

    #[tokio::test]
    async fn searches_and_reads_use_separate_readers() {
        let folder = tempfile::tempdir().unwrap();
        let settings = SqliteSettings {
            free_bytes_min: 0,
            ballast_bytes: 0,
            readers_max: 1,
            ..SqliteSettings::default()
        };
        let store = SqliteStore::open(&folder.path().join("t.db"), settings).await.unwrap();
        let one = |db: &Connection| Ok(db.query_row("SELECT 1", [], |row| row.get::<_, i64>(0))?);
        // Each waits in the middle of its work until it is let go.
        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let reader = store.read(move |db| waits.recv().map_or_else(|_| one(db), |()| one(db)));
        let mut reader = std::pin::pin!(reader);
        assert!(futures_util::poll!(reader.as_mut()).is_pending());
        assert_eq!(store.run_search(move |db, _| one(db)).await, Ok(1), "the only reader is taken");
        go_on.send(()).unwrap();
        assert_eq!(reader.await, Ok(1));

        let (go_on, waits) = std::sync::mpsc::channel::<()>();
        let search = store.run_search(move |db, _| waits.recv().map_or_else(|_| one(db), |()| one(db)));
        let mut search = std::pin::pin!(search);
        assert!(futures_util::poll!(search.as_mut()).is_pending());
        assert_eq!(store.read(move |db| one(db)).await, Ok(1), "the only search is under way");
        go_on.send(()).unwrap();
        assert_eq!(search.await, Ok(1));
    }
}
