//! A store in a PostgreSQL database, for one server or several: log and catalog.
//!
//! One task of a server appends. All pending records of all its turns go into one statement, which is one
//! transaction and one round trip: latency is one commit when little happens, and batches grow under load. A
//! commit waits for the disk only if something in it must survive a power cut.
//!
//! - What a turn appends in one commit is **one row**, so that readers on any server see it immediately.
//!   There is no separate journal: PostgreSQL has its own. After the end [`Log::compact`] merges them into a
//!   few large rows.
//! - Each statement holds the rows of its turns against a claim and writes nothing under another epoch: a
//!   paused owner that resumes is **fenced off** by the statement itself.
//! - A server holds a **lease** by the clock of the database, and a lock that ends with its process. When
//!   both are gone, its turns can be taken over.
//! - Viewers here of turns that are written elsewhere are woken by a **notification**, one per commit, or by
//!   a poll twice a second.

mod catalog;
mod connection;
mod lease;
mod live;
mod log;
mod notify;
mod peers;
mod reader;
mod schema;
mod search_pool;
mod segment;
mod settings;
mod shared;
mod statement;
mod statistics;
mod writer;

use crate::error::StoreError;
#[cfg(doc)]
use crate::log::Log;
use crate::status::{StoreHealth, StoreStats};
pub use reader::PostgresReader;
pub use settings::{CommitPolicy, PostgresSettings};
use shared::PostgresShared;
use sqlx::Connection;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use writer::{PostgresAppend, PostgresWriter};

/// The store in a PostgreSQL database. All clones are one.
///
/// ```no_run
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use throughline_store::{Log, PostgresSettings, PostgresStore};
///
/// let store = PostgresStore::open("postgres://me@localhost/chat", PostgresSettings::default()).await?;
/// for turn in store.open_turns().await? {
///     println!("{turn} has not ended");
/// }
/// store.close().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<PostgresInner>,
}

struct PostgresInner {
    shared: Arc<PostgresShared>,
    /// Queue of the writer; `None`: closed.
    jobs: Mutex<Option<mpsc::UnboundedSender<PostgresAppend>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    background_tasks: Vec<JoinHandle<()>>,
}

impl Drop for PostgresInner {
    fn drop(&mut self) {
        // The writer finishes the queue and then ends.
        self.background_tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Reason that a database cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresOpenError {
    /// The database cannot be reached, or refuses the connection.
    #[error("the database cannot be used: {why}")]
    Database { why: String },
    /// No store has been made in it.
    #[error("it contains no store; a server that uses this database creates one")]
    NoStore,
    /// A later release has changed its tables.
    #[error("the tables have version {found}; this program supports version {known}")]
    Newer {
        /// Schema version of the database.
        found: i64,
        /// Newest schema version that this program knows.
        known: i64,
    },
    /// The database encoding cannot represent every text.
    #[error("the encoding of the database is {found}, not UTF8")]
    Encoding {
        /// Encoding of the database.
        found: String,
    },
}

impl From<sqlx::Error> for PostgresOpenError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database { why: error.to_string() }
    }
}

impl PostgresStore {
    /// Opens the store in a database, `postgres://user@host/database`, whose schema `tl` is made or brought to this
    /// version.
    pub async fn open(url: &str, settings: PostgresSettings) -> Result<Self, PostgresOpenError> {
        let opening = tokio::time::timeout(settings.connect_wait, open(url, settings));
        opening
            .await
            .unwrap_or_else(|_| Err(PostgresOpenError::Database { why: "it does not answer".into() }))
    }

    /// Checks that a new turn may begin.
    pub fn check_capacity(&self) -> Result<(), StoreError> {
        match self.health() {
            StoreHealth::Healthy => Ok(()),
            StoreHealth::ReadOnly { why } => Err(StoreError::DiskFull { why }),
            StoreHealth::Unavailable { why } => Err(StoreError::Failed { why }),
        }
    }

    /// Finishes the queue, releases its turns, and disconnects; later requests are refused.
    pub async fn close(&self) {
        self.jobs().take();
        let writer = self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A panic of it has been printed; there is nothing left to finish.
            let _ = writer.await;
        }
        self.inner.background_tasks.iter().for_each(JoinHandle::abort);
        lease::release(self.shared()).await;
        self.shared().search_pool.close().await;
        self.shared().pool.close().await;
    }

    /// Health of the store.
    pub fn health(&self) -> StoreHealth {
        self.shared().health()
    }

    /// Counters since the store was opened, and its backlog.
    pub fn stats(&self) -> StoreStats {
        self.shared().stats()
    }

    fn shared(&self) -> &Arc<PostgresShared> {
        &self.inner.shared
    }

    fn jobs(&self) -> MutexGuard<'_, Option<mpsc::UnboundedSender<PostgresAppend>>> {
        self.inner.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn open(url: &str, settings: PostgresSettings) -> Result<PostgresStore, PostgresOpenError> {
    let options = connection::options(url)?;
    let mut db = connection::connect(&options).await?;
    schema::migrate(&mut db).await?;
    let replica = lease::register(&mut db, settings.lease).await?;
    db.close().await?;
    let pool = connection::pool(&options, &settings);
    let shared = Arc::new(PostgresShared::new(options, settings, pool, replica));
    let lease_connection = lease::acquire(&shared).await?;
    let (jobs, queue) = mpsc::unbounded_channel();
    let writer = tokio::spawn(PostgresWriter::new(shared.clone(), queue).run());
    let background_tasks = vec![
        tokio::spawn(lease::renew_forever(shared.clone(), lease_connection)),
        tokio::spawn(notify::listen(shared.clone())),
        tokio::spawn(notify::poll(shared.clone())),
        tokio::spawn(statistics::refresh_forever(shared.clone())),
    ];
    let (jobs, writer) = (Mutex::new(Some(jobs)), Mutex::new(Some(writer)));
    Ok(PostgresStore { inner: Arc::new(PostgresInner { shared, jobs, writer, background_tasks }) })
}
