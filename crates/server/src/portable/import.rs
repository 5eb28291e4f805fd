//! A conversation from elsewhere into a store: its logs first, then the rows that name them, so that nothing is named that is
//! not there.

use super::media::extract_media;
use super::{IdMap, LineError, PortableConversation};
use crate::stamps::new_id;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use throughline::MediaStore;
use throughline_store::{Catalog, Durability, Log, LogBatch, LogError, LogRecord, StoreError};

/// Records appended at once.
const RECORDS_PER_APPEND: usize = 1_000;
/// Turns whose logs are written at the same time.
const TURN_CONCURRENCY: usize = 64;

/// Where a conversation goes.
#[derive(Clone, Copy)]
pub struct ImportTarget<'a> {
    /// The events of its turns.
    pub log: &'a dyn Log,
    /// Its rows.
    pub catalog: &'a dyn Catalog,
    /// Store for content that is too large for the log.
    pub media: &'a dyn MediaStore,
}

/// Why a conversation is not taken in.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is not whole.
    #[error(transparent)]
    Unreadable(#[from] LineError),
    /// Its logs cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Its rows cannot be written.
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
    let mut portable = IdMap::new(&portable, new_id).apply(portable);
    log.accepts_new_turns()?;
    extract_media(&mut portable, user, media, log).await?;
    let id = portable.id.clone();
    let logs: Vec<(String, Vec<Value>)> =
        portable.turns.iter().map(|turn| (turn.id.clone(), turn.events.clone())).collect();
    let rows = portable.into_rows(user, now)?;
    // Many at once share the commits of the store.
    let writing = logs.into_iter().map(|(turn, events)| async move { write_log(log, &turn, &events).await });
    let mut written = stream::iter(writing).buffer_unordered(TURN_CONCURRENCY);
    while let Some(done) = written.next().await {
        done?;
    }
    catalog.import(user, rows).await?;
    Ok(id)
}

async fn write_log(log: &dyn Log, turn: &str, events: &[Value]) -> Result<(), LogError> {
    let claim = log.begin(turn).await?;
    for events in events.chunks(RECORDS_PER_APPEND) {
        log.accepts_new_turns()?;
        let records: Vec<LogRecord> = events.iter().map(record_of).collect();
        log.append(turn, claim.epoch, LogBatch::from(records)).await?;
    }
    Ok(())
}

fn record_of(event: &Value) -> LogRecord {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let seq = event.get("seq").and_then(Value::as_u64).unwrap_or_default();
    // The rows that name the turns are written after all of this, and make what was written before them durable as well.
    LogRecord::new(seq, kind, Durability::Process, event.to_string())
}
