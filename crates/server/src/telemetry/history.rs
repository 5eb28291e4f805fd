//! Writes the history of tool calls, and raw bytes of upstreams, in the background: turns do not wait for it,
//! and nothing is lost, since rows that do not fit into the queue are read from the log again.

use super::calls::{CallChange, CallFold};
use super::meter::TelemetryMeter;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use throughline_engine::{Event, TurnId};
use throughline_store::{CallRow, Catalog, Log, RawId};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// Maximum number of rows that wait to be written; the turns of further ones are read from the log later.
pub(super) const CALLS_WAITING_MAX: usize = 4_096;
/// Bytes of upstreams that may wait to be written; of a reply that exceeds the limit, the beginning is
/// stored.
pub(super) const RAW_BYTES_WAITING_MAX: usize = 16 << 20;
/// Maximum number of replies remembered as truncated; the oldest is dropped first. They are also dropped with
/// their turns, so that the limit is reached only by as many concurrent model calls.
pub(super) const RAW_TRUNCATED_MAX: usize = 4_096;
/// Delay for collecting rows before they are written: a call of a fast tool is written once, and not between the
/// appends that its turn waits for.
const WRITE_DELAY: Duration = Duration::from_millis(25);
/// Rows of one write.
const CALLS_PER_WRITE: usize = 256;
/// Records per read of the log.
const RECORDS_PER_READ: usize = 1_024;
/// Pause after a store that failed; it doubles up to [`RETRY_PAUSE_MAX`].
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Queue of rows to write. All clones share it.
#[derive(Clone)]
pub struct CallHistory(Arc<HistoryShared>);

struct HistoryShared {
    queue: Mutex<HistoryQueue>,
    queued: Notify,
    idle: Notify,
    /// Notified after a write.
    written: Notify,
    /// Notified when a task waits for the queue to be flushed.
    hurry: Notify,
    meter: Arc<TelemetryMeter>,
}

#[derive(Default)]
struct HistoryQueue {
    /// The last state of each row, by user, turn and call.
    rows: BTreeMap<(String, String, String), CallRow>,
    /// Turns, by user, whose rows must be read from the log.
    stale: BTreeSet<(String, String)>,
    raw: VecDeque<(String, RawId, Vec<u8>)>,
    /// Replies, with their users, whose truncation must still be recorded.
    pending_truncations: VecDeque<(String, RawId)>,
    raw_bytes: usize,
    /// Replies that did not fit: nothing is stored after the gap.
    truncated: VecDeque<RawId>,
    writing: bool,
    /// Turns, by user, of which rows are being written.
    in_flight: BTreeSet<(String, String)>,
}

/// Ends the writing when it is dropped.
pub struct HistoryWriterTask(#[allow(dead_code, reason = "held for its drop")] AbortOnDropHandle<()>);

impl CallHistory {
    /// An empty history, and the task that writes it.
    pub fn start(
        catalog: Arc<dyn Catalog>,
        log: Arc<dyn Log>,
        meter: Arc<TelemetryMeter>,
    ) -> (Self, HistoryWriterTask) {
        let shared = HistoryShared {
            queue: Mutex::default(),
            queued: Notify::new(),
            idle: Notify::new(),
            written: Notify::new(),
            hurry: Notify::new(),
            meter,
        };
        let history = Self(Arc::new(shared));
        let writer = history.clone();
        let task = tokio::spawn(async move { writer.write_loop(&*catalog, &*log).await });
        (history, HistoryWriterTask(AbortOnDropHandle::new(task)))
    }

    pub(crate) fn record_change(&self, user: &str, turn: &TurnId, change: CallChange) {
        let mut queue = self.queue();
        match change {
            CallChange::Row(row) if queue.rows.len() < CALLS_WAITING_MAX => {
                let key = (user.to_owned(), row.turn_id.clone(), row.tool_id.clone());
                queue.rows.insert(key, *row);
            }
            CallChange::Row(_) | CallChange::UnknownCall => {
                queue.stale.insert((user.to_owned(), turn.as_str().to_owned()));
            }
        }
        drop(queue);
        self.0.queued.notify_one();
    }

    /// Turns whose rows may be old: those that were open when the server started.
    pub fn rebuild(&self, turns: impl IntoIterator<Item = (String, String)>) {
        self.queue().stale.extend(turns);
        self.0.queued.notify_one();
    }

    /// Bytes of an upstream, as they came.
    pub(crate) fn record_raw(&self, user: &str, id: RawId, bytes: &[u8]) {
        let mut queue = self.queue();
        if queue.truncated.contains(&id) {
            return;
        }
        let room = RAW_BYTES_WAITING_MAX.saturating_sub(queue.raw_bytes);
        let (fits, rest) = bytes.split_at(bytes.len().min(room));
        if !fits.is_empty() {
            queue.raw_bytes += fits.len();
            match queue.raw.back_mut().filter(|(_, last, _)| *last == id) {
                Some((_, _, waiting)) => waiting.extend_from_slice(fits),
                None => queue.raw.push_back((user.to_owned(), id.clone(), fits.to_vec())),
            }
        }
        if !rest.is_empty() {
            tracing::warn!(turn_id = id.turn_id.as_str(), step = id.step, "raw_bytes_cut");
            queue.truncate(user.to_owned(), id);
        }
        drop(queue);
        self.0.queued.notify_one();
    }

    /// Reports that a turn has no further calls.
    pub fn turn_ended(&self, turn: &TurnId) {
        self.queue().truncated.retain(|id| id.turn_id != turn.as_str());
    }

    /// Waits until all reported calls of this turn are written: before the turn counts as ended, so that the
    /// history of an ended turn is complete even if the process dies.
    pub(crate) async fn wait_written(&self, user: &str, turn: &TurnId) {
        let turn_key = (user.to_owned(), turn.as_str().to_owned());
        loop {
            let written = self.0.written.notified();
            if !self.queue().has_of(&turn_key) {
                return;
            }
            self.0.hurry.notify_one();
            written.await;
        }
    }

    /// Waits until everything reported is written. For an orderly shutdown.
    pub async fn wait_flushed(&self) {
        loop {
            let idle = self.0.idle.notified();
            if self.queue().is_empty() {
                return;
            }
            self.0.hurry.notify_one();
            idle.await;
        }
    }

    /// Marks the batch as written, or returns it to the queue.
    fn finish_write(&self) {
        let mut queue = self.queue();
        queue.writing = false;
        queue.in_flight.clear();
        drop(queue);
        self.0.written.notify_waiters();
    }

    fn queue(&self) -> MutexGuard<'_, HistoryQueue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write_loop(&self, catalog: &dyn Catalog, log: &dyn Log) {
        let mut pause = RETRY_PAUSE;
        loop {
            let next_write = self.queue().take();
            self.0.meter.history_queue(self.queue().rows.len());
            let done = match next_write {
                HistoryWrite::Nothing => {
                    self.0.idle.notify_waiters();
                    self.0.queued.notified().await;
                    let _ = tokio::time::timeout(WRITE_DELAY, self.0.hurry.notified()).await;
                    continue;
                }
                HistoryWrite::Rows(user, rows) => match catalog.put_calls(&user, rows.clone()).await {
                    Ok(_) => Ok(()),
                    Err(error) => {
                        let mut queue = self.queue();
                        for row in rows {
                            let key = (user.clone(), row.turn_id.clone(), row.tool_id.clone());
                            // A row that was queued since is newer.
                            queue.rows.entry(key).or_insert(row);
                        }
                        Err(error.to_string())
                    }
                },
                HistoryWrite::Turn(user, turn) => match call_rows_of(log, &turn).await {
                    Ok(rows) => {
                        let mut queue = self.queue();
                        for row in rows {
                            let key = (user.clone(), row.turn_id.clone(), row.tool_id.clone());
                            queue.rows.entry(key).or_insert(row);
                        }
                        Ok(())
                    }
                    // The log was deleted, and with it the calls.
                    Err(throughline_store::LogError::UnknownTurn { .. }) => Ok(()),
                    Err(error) => {
                        self.queue().stale.insert((user, turn));
                        Err(error.to_string())
                    }
                },
                HistoryWrite::Raw(user, id, bytes) => {
                    let stored = catalog.append_raw(&user, &id, &bytes, now()).await;
                    // Of an answer nothing may follow a hole.
                    stored.map(|_| ()).map_err(|error| {
                        let mut queue = self.queue();
                        queue.drop_raw(&id);
                        queue.truncate(user, id);
                        error.to_string()
                    })
                }
                HistoryWrite::Truncate(user, id) => match catalog.mark_raw_truncated(&user, &id, now()).await
                {
                    Ok(_) => Ok(()),
                    Err(error) => {
                        self.queue().pending_truncations.push_front((user, id));
                        Err(error.to_string())
                    }
                },
            };
            self.finish_write();
            match done {
                Ok(()) => pause = RETRY_PAUSE,
                Err(why) => {
                    tracing::warn!(why = why.as_str(), "call_history_waits");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(RETRY_PAUSE_MAX);
                }
            }
        }
    }
}

enum HistoryWrite {
    Nothing,
    Rows(String, Vec<CallRow>),
    Turn(String, String),
    Raw(String, RawId, Vec<u8>),
    Truncate(String, RawId),
}

impl HistoryQueue {
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.stale.is_empty()
            && self.raw.is_empty()
            && self.pending_truncations.is_empty()
            && !self.writing
    }

    fn has_of(&self, turn_key: &(String, String)) -> bool {
        let first = (turn_key.0.clone(), turn_key.1.clone(), String::new());
        let row = self.rows.range(first..).next();
        self.stale.contains(turn_key)
            || self.in_flight.contains(turn_key)
            || row.is_some_and(|((user, turn, _), _)| (user, turn) == (&turn_key.0, &turn_key.1))
    }

    /// Forgets what waits of this answer.
    fn drop_raw(&mut self, id: &RawId) {
        self.raw.retain(|(_, of, _)| of != id);
        self.raw_bytes = self.raw.iter().map(|(_, _, bytes)| bytes.len()).sum();
    }

    /// Stops storing a reply, and records that it was truncated.
    fn truncate(&mut self, user: String, id: RawId) {
        if self.truncated.contains(&id) {
            return;
        }
        if self.truncated.len() >= RAW_TRUNCATED_MAX {
            self.truncated.pop_front();
        }
        self.truncated.push_back(id.clone());
        self.pending_truncations.push_back((user, id));
    }

    /// The next thing to write: rows of one user in one go.
    fn take(&mut self) -> HistoryWrite {
        let next_write = self.next();
        self.writing = !matches!(next_write, HistoryWrite::Nothing);
        self.in_flight = match &next_write {
            HistoryWrite::Rows(user, rows) => {
                rows.iter().map(|row| (user.clone(), row.turn_id.clone())).collect()
            }
            HistoryWrite::Turn(user, turn) => BTreeSet::from([(user.clone(), turn.clone())]),
            HistoryWrite::Nothing | HistoryWrite::Raw(..) | HistoryWrite::Truncate(..) => BTreeSet::new(),
        };
        next_write
    }

    fn next(&mut self) -> HistoryWrite {
        if let Some((user, _, _)) = self.rows.keys().next().cloned() {
            let keys: Vec<_> = self
                .rows
                .keys()
                .take_while(|(other, _, _)| *other == user)
                .take(CALLS_PER_WRITE)
                .cloned()
                .collect();
            let rows = keys.iter().filter_map(|key| self.rows.remove(key)).collect();
            return HistoryWrite::Rows(user, rows);
        }
        if let Some((user, turn)) = self.stale.pop_first() {
            return HistoryWrite::Turn(user, turn);
        }
        match self.raw.pop_front() {
            Some((user, id, bytes)) => {
                self.raw_bytes = self.raw_bytes.saturating_sub(bytes.len());
                HistoryWrite::Raw(user, id, bytes)
            }
            // After the bytes before the truncation.
            None => match self.pending_truncations.pop_front() {
                Some((user, id)) => HistoryWrite::Truncate(user, id),
                None => HistoryWrite::Nothing,
            },
        }
    }
}

/// The rows that a turn's log adds up to.
///
/// # Errors
/// The log cannot be read.
pub(super) async fn call_rows_of(
    log: &dyn Log,
    turn: &str,
) -> Result<Vec<CallRow>, throughline_store::LogError> {
    let (mut fold, mut rows, mut after) = (CallFold::default(), BTreeMap::new(), 0);
    loop {
        let records = log.read(turn, after, RECORDS_PER_READ).await?;
        let Some(last) = records.last() else { return Ok(rows.into_values().collect()) };
        after = last.seq;
        for record in &records {
            // Readers ignore unknown events.
            let Ok(event) = serde_json::from_slice::<Event>(&record.payload) else { continue };
            if let Some(CallChange::Row(row)) = fold.apply(&event) {
                rows.insert(row.tool_id.clone(), *row);
            }
        }
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
