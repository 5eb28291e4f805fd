//! A store in a PostgreSQL database, for one server or several: the log of turns and everything beside it.
//!
//! One task of a server appends. Whatever all its turns have pending goes into one statement, which is one transaction
//! and one way to the database and back: latency is one commit when little happens, and batches grow under load by
//! themselves. A commit waits for the disk only if something in it must survive a power cut.
//!
//! - What a turn appends in one commit is **one row**, so that readers on any server have it at once. There is no
//!   journal beside it: PostgreSQL has one of its own. After the end [`Log::compact`] makes a few large rows of them.
//! - Each statement holds the rows of its turns against a claim and writes nothing under another epoch: a paused owner
//!   that wakes up is **fenced off** by the statement itself.
//! - A server holds a **lease** by the clock of the database, and a lock that ends with its process. When both say that it
//!   is gone, its turns can be taken.
//! - Viewers here of turns that are written elsewhere are woken by a **notification**, one a commit, or by a look twice a
//!   second.

mod bell;
mod catalog;
mod connection;
mod journal;
mod lease;
mod live;
mod onlooker;
mod schema;
mod searchers;
mod segment;
mod settings;
mod shared;
mod statement;
mod writer;

use crate::error::StoreError;
#[cfg(doc)]
use crate::log::Log;
use crate::standing::{Figures, Health};
pub use onlooker::PostgresOnlooker;
pub use settings::{Commit, PostgresSettings};
use shared::Shared;
use sqlx::Connection;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use writer::{Append, Writer};

/// The store in a database. All clones are one.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    /// `None`: closed.
    jobs: Mutex<Option<mpsc::UnboundedSender<Append>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    beside: Vec<JoinHandle<()>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The writer does what is in the queue and ends by itself.
        self.beside.iter().for_each(JoinHandle::abort);
    }
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It cannot be reached, or refuses.
    #[error("the database cannot be used: {why}")]
    Database {
        /// What it said.
        why: String,
    },
    /// A later release has changed its tables.
    #[error("the tables are of version {found}; this program knows version {known}")]
    Newer {
        /// Theirs.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// It cannot hold every text.
    #[error("the encoding of the database is {found}, not UTF8")]
    Encoding {
        /// Its encoding.
        found: String,
    },
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database { why: error.to_string() }
    }
}

impl PostgresStore {
    /// Opens the store in a database, `postgres://user@host/database`, whose schema `tl` is made or brought to this
    /// version.
    pub async fn open(url: &str, settings: PostgresSettings) -> Result<Self, OpenError> {
        let opening = tokio::time::timeout(settings.connect_wait, open(url, settings));
        opening.await.unwrap_or_else(|_| Err(OpenError::Database { why: "it does not answer".into() }))
    }

    /// Whether a turn that does not exist yet may begin.
    pub fn room_for_new_turn(&self) -> Result<(), StoreError> {
        match self.health() {
            Health::Ok => Ok(()),
            Health::ReadOnly { why } => Err(StoreError::Full { why }),
            Health::Lost { why } => Err(StoreError::Failed { why }),
        }
    }

    /// Until when this server may act on the turns that it owns; `None`: not now. What it has appended with
    /// [`Durability::Power`](crate::Durability::Power) is acknowledged only while it may.
    pub fn may_act_until(&self) -> Option<Instant> {
        self.shared().lease.until()
    }

    /// Finishes what is in the queue, lets go of its turns, and disconnects; everything afterwards is refused.
    pub async fn close(&self) {
        self.jobs().take();
        let writer = self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A panic of it has been printed; there is nothing left to finish.
            let _ = writer.await;
        }
        self.inner.beside.iter().for_each(JoinHandle::abort);
        lease::end(self.shared()).await;
        self.shared().searchers.close().await;
        self.shared().pool.close().await;
    }

    /// Whether the store can be relied on.
    pub fn health(&self) -> Health {
        self.shared().health()
    }

    /// What it has done so far, and what it has to do.
    pub fn figures(&self) -> Figures {
        self.shared().figures()
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    fn jobs(&self) -> MutexGuard<'_, Option<mpsc::UnboundedSender<Append>>> {
        self.inner.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn open(url: &str, settings: PostgresSettings) -> Result<PostgresStore, OpenError> {
    let options = connection::options(url)?;
    let mut db = connection::connect(&options).await?;
    schema::migrate(&mut db).await?;
    let replica = lease::register(&mut db, settings.lease).await?;
    db.close().await?;
    let pool = connection::pool(&options, &settings);
    let shared = Arc::new(Shared::new(options, settings, pool, replica));
    let held = lease::hold(&shared).await?;
    let (jobs, queue) = mpsc::unbounded_channel();
    let writer = tokio::spawn(Writer::new(shared.clone(), queue).run());
    let beside = vec![
        tokio::spawn(lease::keep(shared.clone(), held)),
        tokio::spawn(bell::listen(shared.clone())),
        tokio::spawn(bell::poll(shared.clone())),
    ];
    let (jobs, writer) = (Mutex::new(Some(jobs)), Mutex::new(Some(writer)));
    Ok(PostgresStore { inner: Arc::new(Inner { shared, jobs, writer, beside }) })
}
