//! The log of turns: what has been appended is what happened, and whoever watches a turn is a cursor in it.
//!
//! This crate never interprets an event. It knows a record's sequence number, its kind (to know the last one) and its
//! [`Durability`]; the payload is bytes. It never repairs: a gap, a repetition or a former owner is refused.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! use throughline_store::{Durability, Log, MemoryLog, LogRecord};
//!
//! let log = MemoryLog::default();
//! let claim = log.claim("turn_1").await?;
//! log.append("turn_1", claim.epoch, vec![
//!     LogRecord::new(1, "stream_start", Durability::Power, r#"{"type":"stream_start"}"#),
//!     LogRecord::new(2, "stream_end", Durability::Power, r#"{"type":"stream_end"}"#),
//! ].into()).await?;
//!
//! let mut tail = log.tail("turn_1", 0).await?;
//! assert_eq!(tail.next().await?.map(|records| records.len()), Some(2));
//! assert_eq!(tail.next().await?, None); // the turn is over
//! # Ok::<(), throughline_store::LogError>(()) }).unwrap();
//! ```

#![allow(missing_docs, reason = "a crate of this workspace: only what needs words has them")]

pub mod blobs;
pub mod catalog;
mod error;
pub mod failpoint;
mod log;
mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod records;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod status;

pub use blobs::{BlobError, BlobFolder, BlobLimits, StoredBlob};
pub use catalog::Catalog;
pub use error::StoreError;
pub use log::{
    AppendAck, AppendUrgency, Durability, Log, LogBatch, LogError, LogRecord, LogTail, MergeFn, OwnerEpoch,
    OwnerLease, ProviderStateRecord, STREAM_END, TurnClaim, TurnOwner,
};
pub use memory::{MemoryLimits, MemoryLog};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresSettings, PostgresStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteSettings, SqliteStore};
pub use status::{LoggedTurn, StoreHealth, StoreStats};
