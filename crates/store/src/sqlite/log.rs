//! The log over a SQLite store.

use super::SqliteStore;
use super::live::{DELETED_EPOCH, FIRST_EPOCH, SqliteAppendState, SqliteLiveTurn, TurnRowState};
use super::segment;
use super::writer::{ClaimJob, SqliteAppend, WriteJob};
use crate::error::StoreError;
use crate::log::{
    AppendAck, AppendUrgency, Durability, Log, LogBatch, LogError, LogRecord, LogTail, MergeFn, OwnerEpoch,
    ProviderStateRecord, TurnClaim, merge_records, store_closed, unknown_turn,
};
use crate::records::{
    LogRow, LogState, SegmentRead, SegmentStore, TurnProgress, TurnReader, TurnTail, append_to_ended,
    encode_batch,
};
use async_trait::async_trait;
use rusqlite::Connection;
use tokio::sync::oneshot;

#[async_trait]
impl Log for SqliteStore {
    fn accepts_new_turns(&self) -> Result<(), LogError> {
        Ok(self.check_capacity()?)
    }

    async fn probe(&self) -> Result<(), LogError> {
        self.accepts_new_turns()?;
        self.read(|db| Ok(db.prepare_cached("SELECT 1 FROM owner LIMIT 1")?.exists([])?)).await?;
        let generation = self.inner.shared.generation;
        let note = move |db: &mut Connection| {
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
        let live = SqliteLiveTurn::open(
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
            let id = turn.to_owned();
            let row = SqliteStore::read(self, move |connection| Ok(segment::load_row(connection, &id)?));
            return append_to_ended(turn, row.await?, epoch, &batch);
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
        reader.read(progress, after, records_max).await
    }

    async fn read_provider_state(&self, turn: &str) -> Result<Vec<ProviderStateRecord>, LogError> {
        let id = turn.to_owned();
        let read =
            move |connection: &mut Connection| -> Result<Option<Vec<ProviderStateRecord>>, StoreError> {
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
        let watch = reader.live.as_ref().map(|live| live.progress.subscribe());
        let records_max = self.inner.shared.settings.tail_records_max;
        Ok(Box::new(TurnTail::new(reader, watch, progress, after, records_max)?))
    }

    async fn open_turns(&self) -> Result<Vec<String>, LogError> {
        Ok(self.inner.shared.live_turns.open_turns())
    }

    async fn compact(&self, turn: &str, merge: MergeFn) -> Result<(), LogError> {
        let (id, shared) = (turn.to_owned(), self.inner.shared.clone());
        let flushed = self.write(Durability::Process, move |connection| {
            let row = segment::load_row(connection, &id)?;
            if let (Some(row), Some(live)) = (row, shared.live_turns.get(&id))
                && row.state == LogState::Ended
            {
                // The turn is still in memory: records that are only in the journal are moved before the
                // merge.
                let runs = live.ring().oldest_beyond(0);
                segment::fold(connection, row.n, &runs)?;
            }
            Ok(row)
        });
        let Some(row) = flushed.await? else { return Err(unknown_turn(turn)) };
        if row.state != LogState::Ended {
            return Ok(());
        }
        let before = SqliteStore::read(self, move |connection| segment::read_all(connection, row.n)).await?;
        let merged = merge_records(turn, before, merge).await?;
        let id = turn.to_owned();
        let replace = move |connection: &mut Connection| {
            // The turn may have been deleted in the meantime.
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

/// Deletes the log of a turn, in the transaction that deletes the rest of the turn. Only for ended turns:
/// only [`Log::delete`] refuses the owner of a running one.
pub(crate) fn delete(connection: &Connection, turn: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM turn_log WHERE turn = ?1")?.execute([turn])?;
    Ok(())
}

impl SqliteStore {
    /// Drops the turn from memory, after the commit of [`delete`].
    pub(crate) fn evict_turn(&self, turn: &str) {
        if let Some(live) = self.inner.shared.live_turns.get(turn) {
            live.append_state().epoch = DELETED_EPOCH;
            self.inner.shared.live_turns.remove(&live);
        }
    }

    async fn turn_reader(&self, turn: &str) -> Result<(TurnReader<Self>, TurnProgress), LogError> {
        let reader = |n, live| TurnReader { store: self.clone(), turn: turn.to_owned(), n, live };
        if let Some(live) = self.inner.shared.live_turns.get(turn) {
            let progress = *live.progress.borrow();
            return Ok((reader(live.n, Some(live)), progress));
        }
        let id = turn.to_owned();
        let row = SqliteStore::read(self, move |connection| Ok(segment::load_row(connection, &id)?)).await?;
        let LogRow { n, last_seq, .. } = row.ok_or_else(|| unknown_turn(turn))?;
        Ok((reader(n, None), TurnProgress { last_seq, ended: true }))
    }
}

#[async_trait]
impl SegmentStore for SqliteStore {
    type AppendState = SqliteAppendState;

    async fn read_segments(&self, n: i64, after: u64, records_max: usize) -> Result<SegmentRead, StoreError> {
        SqliteStore::read(self, move |db| segment::read_after(db, n, after, records_max)).await
    }
}
