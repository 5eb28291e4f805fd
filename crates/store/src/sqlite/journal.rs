//! The log over a SQLite store.

use super::SqliteStore;
use super::live::{FIRST_EPOCH, FORGOTTEN, InDatabase, Live};
use super::segment::{self, Row, State};
use super::shared::Shared;
use super::writer::{Append, Claiming, Job};
use crate::error::StoreError;
use crate::log::{
    Ack, Batch, Beside, Claim, Durability, Epoch, Log, LogError, Merge, Record, Tail, Urgency, check_merge,
};
use crate::records::{Behind, Progress, framed, records_of};
use async_trait::async_trait;
use rusqlite::Connection;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

fn closed() -> LogError {
    LogError::Store { why: "the store has been closed".into() }
}

fn unknown(turn: &str) -> LogError {
    LogError::UnknownTurn { turn: turn.to_owned() }
}

#[async_trait]
impl Log for SqliteStore {
    fn takes_new_turns(&self) -> Result<(), LogError> {
        Ok(self.room_for_new_turn()?)
    }

    async fn probe(&self) -> Result<(), LogError> {
        self.takes_new_turns()?;
        self.read(|db| Ok(db.prepare_cached("SELECT 1 FROM owner LIMIT 1")?.exists([])?)).await?;
        let generation = self.inner.shared.generation;
        let note = move |db: &Connection| {
            let sql = "UPDATE owner SET opened_at = opened_at WHERE generation = ?1";
            Ok(db.prepare_cached(sql)?.execute([generation])?)
        };
        self.write(Durability::Process, note).await?;
        Ok(())
    }

    async fn claim(&self, turn: &str) -> Result<Claim, LogError> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Claim(Claiming { turn: turn.to_owned(), answer, verdict: None });
        self.inner.shared.queue.push(job, turn.len(), Urgency::AtOnce).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    async fn begin(&self, turn: &str) -> Result<Claim, LogError> {
        let shared = &self.inner.shared;
        shared.room_for_new_turn()?;
        let live =
            Live::new(turn.to_owned(), shared.number_of_new_turn(), FIRST_EPOCH, 0, InDatabase::NotYet);
        match shared.lives.add_new(live) {
            true => Ok(Claim { epoch: Epoch(FIRST_EPOCH), last_seq: 0 }),
            // It is not new after all.
            false => self.claim(turn).await,
        }
    }

    async fn append(&self, turn: &str, epoch: Epoch, batch: Batch) -> Result<Ack, LogError> {
        let Some(live) = self.inner.shared.lives.get(turn) else {
            return self.append_to_ended(turn, epoch, &batch).await;
        };
        let Batch { records, beside, urgency } = batch;
        let strongest = records.iter().map(|record| record.durability).max();
        let durability = strongest.unwrap_or(Durability::Process);
        let run = framed(&live.id, &records);
        let bytes = run.as_ref().map_or(0, |run| run.bytes.len())
            + beside.iter().map(|beside| beside.payload.len()).sum::<usize>();
        let (answer, answered) = oneshot::channel();
        let append = Append { live, epoch, durability, run, beside, answer, verdict: None };
        let queue = &self.inner.shared.queue;
        let urgency = match durability {
            Durability::Process => urgency,
            Durability::Power => Urgency::AtOnce,
        };
        queue.push(Job::Append(append), bytes, urgency).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    async fn read(&self, turn: &str, after: u64, records_max: usize) -> Result<Vec<Record>, LogError> {
        let (reader, progress) = self.reader(turn).await?;
        let mut all = Vec::new();
        let mut from = after;
        reader.not_ahead(after, progress)?;
        while from < progress.last_seq && all.len() < records_max {
            let mut more = reader.behind(from, records_max - all.len()).await?;
            from = more.last().map_or(progress.last_seq, |record| record.seq);
            match all.is_empty() {
                true => all = more,
                false => all.append(&mut more),
            }
        }
        Ok(all)
    }

    async fn read_beside(&self, turn: &str) -> Result<Vec<Beside>, LogError> {
        let id = turn.to_owned();
        let read = move |connection: &Connection| -> Result<Option<Vec<Beside>>, StoreError> {
            let Some(row) = segment::row(connection, &id)? else { return Ok(None) };
            let mut find =
                connection.prepare_cached("SELECT step, data FROM beside WHERE n = ?1 ORDER BY id")?;
            let beside = find.query_map([row.n], |row| {
                Ok(Beside { step: row.get(0)?, payload: row.get::<_, Vec<u8>>(1)?.into() })
            })?;
            Ok(Some(beside.collect::<Result<_, _>>()?))
        };
        SqliteStore::read(self, read).await?.ok_or_else(|| unknown(turn))
    }

    async fn tail(&self, turn: &str, after: u64) -> Result<Box<dyn Tail>, LogError> {
        let (reader, progress) = self.reader(turn).await?;
        reader.not_ahead(after, progress)?;
        let watch = reader.live.as_ref().map(|live| live.progress.subscribe());
        let records_max = self.inner.shared.settings.tail_records_max;
        Ok(Box::new(SqliteTail { _store: self.clone(), reader, watch, progress, after, records_max }))
    }

    async fn open_turns(&self) -> Result<Vec<String>, LogError> {
        Ok(self.inner.shared.lives.open())
    }

    async fn compact(&self, turn: &str, merge: Merge) -> Result<(), LogError> {
        let (id, shared) = (turn.to_owned(), self.inner.shared.clone());
        let ready = self.write(Durability::Process, move |connection| {
            let row = segment::row(connection, &id)?;
            if let (Some(row), Some(live)) = (row, shared.lives.get(&id))
                && row.state == State::Ended
            {
                // It is still in memory: what is only in the journal goes before it is merged.
                let pieces = live.ring().oldest(0);
                segment::fold(connection, row.n, &pieces)?;
            }
            Ok(row)
        });
        let Some(row) = ready.await? else { return Err(unknown(turn)) };
        if row.state != State::Ended {
            return Ok(());
        }
        let before = SqliteStore::read(self, move |connection| segment::all(connection, row.n)).await?;
        let merging = before.clone();
        let merged = tokio::task::spawn_blocking(move || merge(merging)).await;
        let merged = merged.map_err(|_| LogError::Store { why: "merging panicked".into() })?;
        check_merge(turn, &before, &merged)?;
        let id = turn.to_owned();
        let replace = move |connection: &Connection| {
            // It may have been forgotten meanwhile.
            match segment::row(connection, &id)? {
                Some(now) if now.n == row.n => Ok(segment::replace(connection, row.n, &merged)?),
                _ => Ok(()),
            }
        };
        self.write(Durability::Process, replace).await?;
        if let Some(live) = self.inner.shared.lives.get(turn) {
            self.inner.shared.lives.remove(&live);
        }
        Ok(())
    }

    async fn forget(&self, turn: &str) -> Result<(), LogError> {
        let id = turn.to_owned();
        self.write(Durability::Power, move |connection| Ok(forget(connection, &id)?)).await?;
        self.forgotten(turn);
        Ok(())
    }
}

/// Deletes what the log has of a turn, in the transaction of whoever deletes the rest of it. Only for turns that have
/// ended: the owner of a running one is refused by [`Log::forget`] alone.
pub(crate) fn forget(connection: &Connection, turn: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM turn_log WHERE turn = ?1")?.execute([turn])?;
    Ok(())
}

impl SqliteStore {
    /// After the commit of [`forget`]: lets go of what is in memory of the turn.
    pub(crate) fn forgotten(&self, turn: &str) {
        if let Some(live) = self.inner.shared.lives.get(turn) {
            live.writing().epoch = FORGOTTEN;
            self.inner.shared.lives.remove(&live);
        }
    }

    /// The answer for a turn that is not in memory: it has ended, or never was.
    async fn append_to_ended(&self, turn: &str, epoch: Epoch, batch: &Batch) -> Result<Ack, LogError> {
        let id = turn.to_owned();
        let row = SqliteStore::read(self, move |connection| Ok(segment::row(connection, &id)?)).await?;
        let turn = turn.to_owned();
        match row {
            None => Err(LogError::UnknownTurn { turn }),
            Some(row) if row.epoch != epoch.0 => {
                Err(LogError::Fenced { turn, given: epoch.0, current: row.epoch })
            }
            Some(row) if *batch == Batch::default() => Ok(Ack { last_seq: row.last_seq }),
            Some(_) => Err(LogError::Ended { turn }),
        }
    }

    async fn reader(&self, turn: &str) -> Result<(Reader, Progress), LogError> {
        let shared = self.inner.shared.clone();
        if let Some(live) = shared.lives.get(turn) {
            let progress = *live.progress.borrow();
            return Ok((Reader { shared, turn: turn.to_owned(), n: live.n, live: Some(live) }, progress));
        }
        let id = turn.to_owned();
        let row = SqliteStore::read(self, move |connection| Ok(segment::row(connection, &id)?)).await?;
        let Row { n, last_seq, .. } = row.ok_or_else(|| unknown(turn))?;
        Ok((Reader { shared, turn: turn.to_owned(), n, live: None }, Progress { last_seq, ended: true }))
    }
}

/// Reads one turn: what is recent from memory, what is older from its segments.
struct Reader {
    shared: Arc<Shared>,
    turn: String,
    n: i64,
    /// `None`: it had ended and left memory when reading began.
    live: Option<Arc<Live>>,
}

impl Reader {
    /// Records behind `after`, of which there is at least one; not necessarily all there are.
    async fn behind(&self, after: u64, records_max: usize) -> Result<Vec<Record>, LogError> {
        let pieces = self.live.as_ref().and_then(|live| live.ring().behind(after, records_max));
        if let Some(pieces) = pieces.filter(|pieces| !pieces.is_empty()) {
            let records = records_of(pieces, after, records_max);
            return records.map_err(|damaged| LogError::Store { why: damaged.to_string() });
        }
        let n = self.n;
        let read = move |connection: &Connection| segment::behind(connection, n, after, records_max);
        match self.shared.readers.read(read).await? {
            Behind::Records(records) if !records.is_empty() => Ok(records),
            // There was more when the caller looked, so the turn has been forgotten since.
            Behind::Records(_) => Err(unknown(&self.turn)),
            Behind::InsideMerged => Err(LogError::Merged { turn: self.turn.clone(), after }),
        }
    }

    fn not_ahead(&self, after: u64, progress: Progress) -> Result<(), LogError> {
        match after > progress.last_seq {
            true => Err(LogError::Ahead { turn: self.turn.clone(), after, last_seq: progress.last_seq }),
            false => Ok(()),
        }
    }
}

struct SqliteTail {
    /// The store stays open while somebody reads.
    _store: SqliteStore,
    reader: Reader,
    watch: Option<watch::Receiver<Progress>>,
    /// As it was when it was last looked at.
    progress: Progress,
    after: u64,
    records_max: usize,
}

#[async_trait]
impl Tail for SqliteTail {
    async fn next(&mut self) -> Result<Option<Vec<Record>>, LogError> {
        let after = self.after;
        if self.progress.last_seq <= after
            && !self.progress.ended
            && let Some(watch) = &mut self.watch
        {
            // The sender lives in `self.reader.live`, so waiting cannot fail before the turn does.
            let Ok(now) = watch.wait_for(|now| now.last_seq > after || now.ended).await else {
                return Ok(None);
            };
            self.progress = *now;
        }
        if self.progress.last_seq <= after {
            return Ok(None);
        }
        let records = self.reader.behind(after, self.records_max).await?;
        self.after = records.last().map_or(after, |record| record.seq);
        Ok(Some(records))
    }
}
