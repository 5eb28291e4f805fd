//! The log of turns: the appended records define what happened, and every viewer of a turn is a cursor in its
//! log.
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
#![warn(unreachable_pub)]

mod blobs;
mod catalog;
mod error;
mod failpoint;
mod log;
mod memory;
mod peers;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod reader;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod records;
#[cfg(feature = "sqlite")]
mod sqlite;
mod status;

// The log of turns: the trait, its records and its errors.
pub use error::StoreError;
pub use log::{
    AppendAck, AppendUrgency, Durability, Log, LogBatch, LogError, LogRecord, LogTail, MergeFn, OwnerEpoch,
    OwnerLease, ProviderStateRecord, STREAM_END, TurnClaim, TurnOwner,
};
pub use status::{LoggedTurn, StoreHealth, StoreStats};

// The catalog: everything that is stored except the log.
pub use catalog::{
    CallCounts, CallFilter, CallRow, CallSample, Catalog, CatalogLimits, ConversationChange,
    ConversationFilter, ConversationLabels, ConversationRow, ConversationSummary, ConversationUsage,
    DocumentKind, DocumentPrecondition, FileRow, IDEMPOTENCY_MS, IdempotencyKey, ImportedConversation,
    KeyLimits, KeyRow, LAST_USED_INTERVAL_MS, MetricSamples, NamedCount, NewConversation, NewDocument,
    NewFile, NewRemembered, NewTurnRow, NextTurn, OpenTurn, PAGE_ROWS_DEFAULT, PAGE_ROWS_MAX, PagePosition,
    PageRequest, PathTurn, PersonChange, PersonRow, PutOutcome, RatingValue, RawExtent, RawId, RawRow,
    RememberedRow, RemovalOutcome, RemovalSummary, ResultPage, RetentionCutoffs, STATUS_RUNNING, SampleRange,
    SampleRows, SearchHit, SearchHitPart, ShareRow, StoredDocument, TitleSource, TurnCharge, TurnCounts,
    TurnCreation, TurnEnd, TurnFilter, TurnHistoryRow, TurnParent, TurnPlacement, TurnRating, TurnRefusal,
    TurnRow, TurnSample, TurnSummary, TurnTiming, UsageCount, UsageExceeded, UsageLimits, UsageOwner,
    UsagePeriod, UsageReport,
};

// The bytes of files, by their hash.
pub use blobs::{BlobError, BlobFolder, BlobLimits, BlobWriter, ScratchFile, StoredBlob};

// The log in memory.
pub use memory::{MemoryLimits, MemoryLog};

// Log and catalog in one SQLite file, and commands that work on it while a server has it open.
#[cfg(feature = "sqlite")]
pub use sqlite::{
    LastShutdown, SqliteEditor, SqliteFileLock, SqliteFileState, SqliteOpenError, SqliteReader,
    SqliteSettings, SqliteStore, SyncPolicy, copy_sqlite_file, lock_sqlite_file,
};

// Log and catalog in a PostgreSQL database.
#[cfg(feature = "postgres")]
pub use postgres::{CommitPolicy, PostgresOpenError, PostgresReader, PostgresSettings, PostgresStore};

// Looking into a store without writing to it, and reaching the other servers of a database.
pub use peers::{PeerRequest, PeerRequestId, PeerServers};
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub use reader::StoreReader;

// Points at which a test lets the process die. Without the feature `failpoints` they are empty.
pub use failpoint::{BatchFailpoints, SafetyRule, hit_failpoint};
