//! A conversation from elsewhere into a store: its logs first, then the rows that name them, so that nothing is named that is
//! not there.

use super::media::extract_media;
use super::{EventJson, IdMap, LineError, PortableConversation, PortableTurn};
use crate::stamps::new_id;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use throughline::MediaStore;
use throughline_store::{Catalog, Durability, Log, LogBatch, LogError, LogRecord, StoreError};
use tokio::task::spawn_blocking;

/// Records per append.
const RECORDS_PER_APPEND: usize = 1_000;
/// Turns whose logs are written at the same time.
const TURN_CONCURRENCY: usize = 64;

/// Stores that a conversation is imported to.
#[derive(Clone, Copy)]
pub struct ImportTarget<'a> {
    /// The events of its turns.
    pub log: &'a dyn Log,
    /// Store of the rows.
    pub catalog: &'a dyn Catalog,
    /// Store for content that is too large for the log.
    pub media: &'a dyn MediaStore,
}

/// Reason why a conversation is not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The text cannot be parsed.
    #[error(transparent)]
    Unreadable(#[from] LineError),
    /// The logs cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The rows cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes a conversation for `user` under new names, and gives the conversation's.
///
/// # Errors
/// It is not whole, or the store takes no more. What was written of its logs until then is named by nothing.
pub async fn import_conversation(
    destination: ImportTarget<'_>,
    user: &str,
    portable: PortableConversation,
    now: i64,
) -> Result<String, ImportError> {
    let ImportTarget { log, catalog, media } = destination;
    // Both take long for a long conversation, so they run on a blocking thread.
    let renamed = spawn_blocking(move || IdMap::new(&portable, new_id).apply(portable)).await;
    let mut portable = renamed.map_err(StoreError::failed)??;
    log.accepts_new_turns()?;
    extract_media(&mut portable, user, media, log).await?;
    let id = portable.id.clone();
    let owner = user.to_owned();
    let made = spawn_blocking(move || (portable.rows(&owner, now), portable.turns)).await;
    let (rows, turns) = made.map_err(StoreError::failed)?;
    let rows = rows?;
    // Concurrent writes share the commits of the store.
    let writing = turns.into_iter().map(|turn| async move { write_log(log, turn).await });
    let mut written = stream::iter(writing).buffer_unordered(TURN_CONCURRENCY);
    while let Some(done) = written.next().await {
        done?;
    }
    catalog.import(user, rows).await?;
    Ok(id)
}

async fn write_log(log: &dyn Log, turn: PortableTurn) -> Result<(), LogError> {
    let claim = log.begin(&turn.id).await?;
    let mut events = turn.events.into_iter();
    loop {
        let records: Vec<LogRecord> = events.by_ref().take(RECORDS_PER_APPEND).map(record_of).collect();
        if records.is_empty() {
            return Ok(());
        }
        log.accepts_new_turns()?;
        log.append(&turn.id, claim.epoch, LogBatch::from(records)).await?;
    }
}

fn record_of(event: EventJson) -> LogRecord {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct EventHead {
        seq: u64,
        #[serde(rename = "type")]
        kind: String,
    }
    let EventHead { seq, kind } = event.parse().unwrap_or_default();
    // The rows that name the turns are written after all of this, and make what was written before them durable as well.
    LogRecord::new(seq, kind, Durability::Process, event.into_string())
}
