//! The log over a SQLite store.

use super::SqliteStore;
use super::live::{DELETED_EPOCH, FIRST_EPOCH, SqliteLiveTurn, TurnRowState};
use super::segment::{self, SqliteLogRow, SqliteLogState};
use super::shared::SqliteShared;
use super::writer::{ClaimJob, SqliteAppend, WriteJob};
use crate::error::StoreError;
use crate::log::{
    AppendAck, AppendUrgency, Durability, Log, LogBatch, LogError, LogRecord, LogTail, MergeFn, OwnerEpoch,
    ProviderStateRecord, TurnClaim, check_merge,
};
use crate::records::{SegmentRead, TurnProgress, decode_runs, encode_batch};
use async_trait::async_trait;
use rusqlite::Connection;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

fn store_closed() -> LogError {
    LogError::StoreFailure { why: "the store has been closed".into() }
}

fn unknown_turn(turn: &str) -> LogError {
    LogError::UnknownTurn { turn: turn.to_owned() }
}

#[async_trait]
impl Log for SqliteStore {
    fn accepts_new_turns(&self) -> Result<(), LogError> {
        Ok(self.check_capacity()?)
    }

    async fn probe(&self) -> Result<(), LogError> {
        self.accepts_new_turns()?;
        self.read(|db| Ok(db.prepare_cached("SELECT 1 FROM owner LIMIT 1")?.exists([])?)).await?;
        let generation = self.inner.shared.generation;
        let note = move |db: &Connection| {
            let sql = "UPDATE owner SET opened_at = opened_at WHERE generation = ?1";
            Ok(db.prepare_cached(sql)?.execute([generation])?)
        };
        self.write(Durability::Process, note).await?;
        Ok(())
    }

    async fn claim(&self, turn: &str) -> Result<TurnClaim, LogError> {
        let (reply, reply_rx) = oneshot::channel();
        let job = WriteJob::Claim(ClaimJob { turn: turn.to_owned(), reply, outcome: None });
        self.inner
            .shared
            .queue
            .push(job, turn.len(), AppendUrgency::Immediate)
            .await
            .map_err(|_| store_closed())?;
        reply_rx.await.map_err(|_| store_closed())?
    }

    async fn begin(&self, turn: &str) -> Result<TurnClaim, LogError> {
        let shared = &self.inner.shared;
        shared.check_capacity()?;
        let live = SqliteLiveTurn::new(
            turn.to_owned(),
            shared.next_turn_n(),
            FIRST_EPOCH,
            0,
            TurnRowState::NotInserted,
        );
        if shared.live_turns.add_if_absent(live) {
            return Ok(TurnClaim { epoch: OwnerEpoch(FIRST_EPOCH), last_seq: 0 });
        }
        // It is not new after all.
        self.claim(turn).await
    }

    async fn append(&self, turn: &str, epoch: OwnerEpoch, batch: LogBatch) -> Result<AppendAck, LogError> {
        let Some(live) = self.inner.shared.live_turns.get(turn) else {
            return self.append_to_ended(turn, epoch, &batch).await;
        };
        let LogBatch { records, provider_state, urgency } = batch;
        let strongest = records.iter().map(|record| record.durability).max();
        let durability = strongest.unwrap_or(Durability::Process);
        let run = encode_batch(&live.id, &records);
        let bytes = run.as_ref().map_or(0, |run| run.bytes.len())
            + provider_state.iter().map(|provider_state| provider_state.payload.len()).sum::<usize>();
        let (reply, reply_rx) = oneshot::channel();
        let append = SqliteAppend { live, epoch, durability, run, provider_state, reply, outcome: None };
        let queue = &self.inner.shared.queue;
        let urgency = match durability {
            Durability::Process => urgency,
            Durability::Power => AppendUrgency::Immediate,
        };
        queue.push(WriteJob::Append(append), bytes, urgency).await.map_err(|_| store_closed())?;
        reply_rx.await.map_err(|_| store_closed())?
    }

    async fn read(&self, turn: &str, after: u64, records_max: usize) -> Result<Vec<LogRecord>, LogError> {
        let (reader, progress) = self.turn_reader(turn).await?;
        let mut all = Vec::new();
        let mut from = after;
        reader.check_not_ahead(after, progress)?;
        while from < progress.last_seq && all.len() < records_max {
            let mut more = reader.read_after(from, records_max - all.len()).await?;
            from = more.last().map_or(progress.last_seq, |record| record.seq);
            if all.is_empty() {
                all = more;
            } else {
                all.append(&mut more);
            }
        }
        Ok(all)
    }

    async fn read_provider_state(&self, turn: &str) -> Result<Vec<ProviderStateRecord>, LogError> {
        let id = turn.to_owned();
        let read = move |connection: &Connection| -> Result<Option<Vec<ProviderStateRecord>>, StoreError> {
            let Some(row) = segment::load_row(connection, &id)? else { return Ok(None) };
            let mut find = connection
                .prepare_cached("SELECT step, data FROM provider_state WHERE n = ?1 ORDER BY id")?;
            let provider_state = find.query_map([row.n], |row| {
                Ok(ProviderStateRecord { step: row.get(0)?, payload: row.get::<_, Vec<u8>>(1)?.into() })
            })?;
            Ok(Some(provider_state.collect::<Result<_, _>>()?))
        };
        SqliteStore::read(self, read).await?.ok_or_else(|| unknown_turn(turn))
    }

    async fn tail(&self, turn: &str, after: u64) -> Result<Box<dyn LogTail>, LogError> {
        let (reader, progress) = self.turn_reader(turn).await?;
        reader.check_not_ahead(after, progress)?;
        let watch = reader.live.as_ref().map(|live| live.progress.subscribe());
        let records_max = self.inner.shared.settings.tail_records_max;
        Ok(Box::new(SqliteTail { _store: self.clone(), reader, watch, progress, after, records_max }))
    }

    async fn open_turns(&self) -> Result<Vec<String>, LogError> {
        Ok(self.inner.shared.live_turns.open_turns())
    }

    async fn compact(&self, turn: &str, merge: MergeFn) -> Result<(), LogError> {
        let (id, shared) = (turn.to_owned(), self.inner.shared.clone());
        let flushed = self.write(Durability::Process, move |connection| {
            let row = segment::load_row(connection, &id)?;
            if let (Some(row), Some(live)) = (row, shared.live_turns.get(&id))
                && row.state == SqliteLogState::Ended
            {
                // It is still in memory: what is only in the journal goes before it is merged.
                let runs = live.ring().oldest_beyond(0);
                segment::fold(connection, row.n, &runs)?;
            }
            Ok(row)
        });
        let Some(row) = flushed.await? else { return Err(unknown_turn(turn)) };
        if row.state != SqliteLogState::Ended {
            return Ok(());
        }
        let before = SqliteStore::read(self, move |connection| segment::read_all(connection, row.n)).await?;
        let merging = before.clone();
        let merged = tokio::task::spawn_blocking(move || merge(merging)).await;
        let merged = merged.map_err(|_| LogError::StoreFailure { why: "merging panicked".into() })?;
        check_merge(turn, &before, &merged)?;
        let id = turn.to_owned();
        let replace = move |connection: &Connection| {
            // It may have been forgotten meanwhile.
            match segment::load_row(connection, &id)? {
                Some(now) if now.n == row.n => Ok(segment::replace_all(connection, row.n, &merged)?),
                _ => Ok(()),
            }
        };
        self.write(Durability::Process, replace).await?;
        if let Some(live) = self.inner.shared.live_turns.get(turn) {
            self.inner.shared.live_turns.remove(&live);
        }
        Ok(())
    }

    async fn delete(&self, turn: &str) -> Result<(), LogError> {
        let id = turn.to_owned();
        self.write(Durability::Power, move |connection| Ok(delete(connection, &id)?)).await?;
        self.evict_turn(turn);
        Ok(())
    }
}

/// Deletes what the log has of a turn, in the transaction of whoever deletes the rest of it. Only for turns that have
/// ended: the owner of a running one is refused by [`Log::delete`] alone.
pub(crate) fn delete(connection: &Connection, turn: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM turn_log WHERE turn = ?1")?.execute([turn])?;
    Ok(())
}

impl SqliteStore {
    /// After the commit of [`delete`]: lets go of what is in memory of the turn.
    pub(crate) fn evict_turn(&self, turn: &str) {
        if let Some(live) = self.inner.shared.live_turns.get(turn) {
            live.append_state().epoch = DELETED_EPOCH;
            self.inner.shared.live_turns.remove(&live);
        }
    }

    /// The answer for a turn that is not in memory: it has ended, or never was.
    async fn append_to_ended(
        &self,
        turn: &str,
        epoch: OwnerEpoch,
        batch: &LogBatch,
    ) -> Result<AppendAck, LogError> {
        let id = turn.to_owned();
        let row = SqliteStore::read(self, move |connection| Ok(segment::load_row(connection, &id)?)).await?;
        let turn = turn.to_owned();
        match row {
            None => Err(LogError::UnknownTurn { turn }),
            Some(row) if row.epoch != epoch.0 => {
                Err(LogError::Fenced { turn, given: epoch.0, current: row.epoch })
            }
            Some(row) if *batch == LogBatch::default() => Ok(AppendAck { last_seq: row.last_seq }),
            Some(_) => Err(LogError::Ended { turn }),
        }
    }

    async fn turn_reader(&self, turn: &str) -> Result<(SqliteTurnReader, TurnProgress), LogError> {
        let shared = self.inner.shared.clone();
        if let Some(live) = shared.live_turns.get(turn) {
            let progress = *live.progress.borrow();
            return Ok((
                SqliteTurnReader { shared, turn: turn.to_owned(), n: live.n, live: Some(live) },
                progress,
            ));
        }
        let id = turn.to_owned();
        let row = SqliteStore::read(self, move |connection| Ok(segment::load_row(connection, &id)?)).await?;
        let SqliteLogRow { n, last_seq, .. } = row.ok_or_else(|| unknown_turn(turn))?;
        Ok((
            SqliteTurnReader { shared, turn: turn.to_owned(), n, live: None },
            TurnProgress { last_seq, ended: true },
        ))
    }
}

/// Reads one turn: what is recent from memory, what is older from its segments.
struct SqliteTurnReader {
    shared: Arc<SqliteShared>,
    turn: String,
    n: i64,
    /// `None`: it had ended and left memory when reading began.
    live: Option<Arc<SqliteLiveTurn>>,
}

impl SqliteTurnReader {
    /// Records behind `after`, of which there is at least one; not necessarily all there are.
    async fn read_after(&self, after: u64, records_max: usize) -> Result<Vec<LogRecord>, LogError> {
        let runs = self.live.as_ref().and_then(|live| live.ring().read_after(after, records_max));
        if let Some(runs) = runs.filter(|runs| !runs.is_empty()) {
            let records = decode_runs(runs, after, records_max);
            return records.map_err(|damaged| LogError::StoreFailure { why: damaged.to_string() });
        }
        let n = self.n;
        let read = move |connection: &Connection| segment::read_after(connection, n, after, records_max);
        match self.shared.reader_pool.read(read).await? {
            SegmentRead::Records(records) if !records.is_empty() => Ok(records),
            // There was more when the caller looked, so the turn has been forgotten since.
            SegmentRead::Records(_) => Err(unknown_turn(&self.turn)),
            SegmentRead::InsideMerged => Err(LogError::CursorInsideMerge { turn: self.turn.clone(), after }),
        }
    }

    fn check_not_ahead(&self, after: u64, progress: TurnProgress) -> Result<(), LogError> {
        if after > progress.last_seq {
            return Err(LogError::Ahead { turn: self.turn.clone(), after, last_seq: progress.last_seq });
        }
        Ok(())
    }
}

struct SqliteTail {
    /// The store stays open while somebody reads.
    _store: SqliteStore,
    reader: SqliteTurnReader,
    watch: Option<watch::Receiver<TurnProgress>>,
    /// As it was when it was last looked at.
    progress: TurnProgress,
    after: u64,
    records_max: usize,
}

#[async_trait]
impl LogTail for SqliteTail {
    async fn next(&mut self) -> Result<Option<Vec<LogRecord>>, LogError> {
        let after = self.after;
        if self.progress.last_seq <= after
            && !self.progress.ended
            && let Some(watch) = &mut self.watch
        {
            // The sender lives in `self.turn_reader.live`, so waiting cannot fail before the turn does.
            let Ok(now) = watch.wait_for(|now| now.last_seq > after || now.ended).await else {
                return Ok(None);
            };
            self.progress = *now;
        }
        if self.progress.last_seq <= after {
            return Ok(None);
        }
        let records = self.reader.read_after(after, self.records_max).await?;
        self.after = records.last().map_or(after, |record| record.seq);
        Ok(Some(records))
    }
}
