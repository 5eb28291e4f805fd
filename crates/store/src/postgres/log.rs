//! The log over a PostgreSQL store.

use super::PostgresStore;
use super::connection::sanitize_param;
use super::live::{PostgresAppendState, PostgresLiveTurn};
use super::segment;
use super::writer::PostgresAppend;
use crate::error::StoreError;
use crate::log::{
    AppendAck, Durability, Log, LogBatch, LogError, LogRecord, LogTail, MergeFn, OwnerEpoch, OwnerLease,
    ProviderStateRecord, TurnClaim, TurnOwner, merge_records, store_closed, unknown_turn,
};
use crate::peers::PeerServers;
use crate::records::{
    LogRow, LogState, SegmentRead, SegmentStore, TurnProgress, TurnReader, TurnTail, append_to_ended,
    encode_batch,
};
use async_trait::async_trait;
use sqlx::{PgConnection, Row as _};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::oneshot;

fn log_error(error: sqlx::Error) -> LogError {
    StoreError::from(error).into()
}

#[async_trait]
impl Log for PostgresStore {
    fn accepts_new_turns(&self) -> Result<(), LogError> {
        Ok(self.check_capacity()?)
    }

    async fn probe(&self) -> Result<(), LogError> {
        self.accepts_new_turns()?;
        let shared = self.shared();
        let mut db = shared.pool.begin().await.map_err(log_error)?;
        sqlx::query("SET LOCAL synchronous_commit = off").execute(&mut *db).await.map_err(log_error)?;
        let note = sqlx::query("UPDATE replica SET name = name WHERE id = $1").bind(shared.replica);
        note.execute(&mut *db).await.map_err(log_error)?;
        db.commit().await.map_err(log_error)
    }

    // Waits for the disk: an epoch that a crash takes back would be given twice.
    async fn claim(&self, turn: &str) -> Result<TurnClaim, LogError> {
        if turn.contains('\0') {
            return Err(LogError::StoreFailure { why: "the id of a turn cannot contain NUL".into() });
        }
        let shared = self.shared();
        let claimed = sqlx::query(
            "INSERT INTO turn_log (turn, epoch, owner) VALUES ($1, 1, $2)
             ON CONFLICT (turn) DO UPDATE SET epoch = turn_log.epoch + 1, owner = $2 RETURNING n, epoch",
        )
        .bind(turn)
        .bind(shared.replica)
        .fetch_one(&shared.pool)
        .await
        .map_err(log_error)?;
        let (n, epoch): (i64, i64) =
            (claimed.try_get("n").map_err(log_error)?, claimed.try_get("epoch").map_err(log_error)?);
        self.finish_claim(turn, n, epoch as u64).await
    }

    async fn append(&self, turn: &str, epoch: OwnerEpoch, batch: LogBatch) -> Result<AppendAck, LogError> {
        let shared = self.shared();
        let live = match shared.live_turns.get(turn) {
            Some(live) if live.append_state().is_some_and(|writing| writing.epoch >= epoch.0) => live,
            _ => match self.adopt_turn(turn, epoch).await? {
                Ok(live) => live,
                Err(row) => return append_to_ended(turn, row, epoch, &batch),
            },
        };
        let LogBatch { records, provider_state, urgency: _ } = batch;
        let strongest = records.iter().map(|record| record.durability).max();
        // Provider state is not held in memory, from where it could be written again.
        let durability = match strongest {
            Some(strongest) if provider_state.is_empty() => strongest,
            None if provider_state.is_empty() => Durability::Process,
            _ => Durability::Power,
        };
        let run = encode_batch(turn, &records);
        let bytes = run.as_ref().map_or(0, |run| run.bytes.len())
            + provider_state.iter().map(|provider_state| provider_state.payload.len()).sum::<usize>();
        let permit = shared
            .queue_permits
            .clone()
            .acquire_many_owned(shared.permits_for(bytes))
            .await
            .map_err(|_| store_closed())?;
        let (reply, reply_rx) = oneshot::channel();
        self.push(PostgresAppend {
            live,
            epoch,
            durability,
            run,
            provider_state,
            reply,
            queue_permit: permit,
        })?;
        reply_rx.await.map_err(|_| store_closed())?
    }

    async fn read(&self, turn: &str, after: u64, records_max: usize) -> Result<Vec<LogRecord>, LogError> {
        let (reader, progress) = self.turn_reader(turn).await?;
        reader.read(progress, after, records_max).await
    }

    async fn read_provider_state(&self, turn: &str) -> Result<Vec<ProviderStateRecord>, LogError> {
        let pool = &self.shared().pool;
        let row =
            segment::load_row(pool, turn).await.map_err(log_error)?.ok_or_else(|| unknown_turn(turn))?;
        let rows = sqlx::query("SELECT step, data FROM provider_state WHERE n = $1 ORDER BY id").bind(row.n);
        let rows = rows.fetch_all(pool).await.map_err(log_error)?;
        let provider_state = |row: &sqlx::postgres::PgRow| -> Result<ProviderStateRecord, sqlx::Error> {
            let (step, data): (i32, Vec<u8>) = (row.try_get("step")?, row.try_get("data")?);
            Ok(ProviderStateRecord { step: step as u32, payload: data.into() })
        };
        rows.iter().map(provider_state).collect::<Result<_, _>>().map_err(log_error)
    }

    async fn tail(&self, turn: &str, after: u64) -> Result<Box<dyn LogTail>, LogError> {
        let (mut reader, mut progress) = self.turn_reader(turn).await?;
        let mut watch = None;
        if !progress.ended {
            let (live, receiver) = self.shared().live_turns.watch(turn, reader.n, progress);
            // It may know less than the database does.
            live.advance(progress);
            progress = *receiver.borrow();
            (reader.live, watch) = (Some(live), Some(receiver));
        }
        let records_max = self.shared().settings.tail_records_max;
        Ok(Box::new(TurnTail::new(reader, watch, progress, after, records_max)?))
    }

    /// Turns of this server, and turns without an owner: a turn that another server runs must not be resumed
    /// here.
    async fn open_turns(&self) -> Result<Vec<String>, LogError> {
        let open = format!(
            "SELECT turn FROM turn_log t WHERE state = 0
                AND (owner = $1 OR NOT EXISTS (SELECT 1 FROM replica r WHERE r.id = t.owner AND {})) ORDER BY turn",
            super::lease::alive_condition()
        );
        let open = sqlx::query_scalar(sqlx::AssertSqlSafe(open)).bind(self.shared().replica);
        open.fetch_all(&self.shared().pool).await.map_err(log_error)
    }

    async fn remote_owner(&self, turn: &str) -> Result<Option<TurnOwner>, LogError> {
        // The server that claimed the turn last; before its first claim, the one that accepted it.
        let owner = format!(
            "SELECT coalesce(r.name, 'server') || '-' || o.id AS name, coalesce({}, FALSE) AS alive,
                CASE WHEN r.id IS NOT NULL THEN
                    (extract(epoch FROM least(r.lease_until, clock_timestamp())) * 1000)::bigint END AS until
             FROM (SELECT coalesce((SELECT owner FROM turn_log WHERE turn = $1),
                                   (SELECT replica FROM turn WHERE id = $1)) AS id) o
             LEFT JOIN replica r ON r.id = o.id WHERE o.id <> $2",
            super::lease::alive_condition()
        );
        let shared = self.shared();
        let owner = sqlx::query(sqlx::AssertSqlSafe(owner)).bind(sanitize_param(turn)).bind(shared.replica);
        let Some(row) = owner.fetch_optional(&shared.pool).await.map_err(log_error)? else { return Ok(None) };
        let name = row.try_get("name").map_err(log_error)?;
        let lease = if row.try_get("alive").map_err(log_error)? {
            OwnerLease::Held
        } else {
            OwnerLease::Expired { since: row.try_get("until").map_err(log_error)? }
        };
        Ok(Some(TurnOwner { name, lease }))
    }

    fn peers(&self) -> Option<Arc<dyn PeerServers>> {
        Some(Arc::new(self.clone()))
    }

    async fn compact(&self, turn: &str, merge: MergeFn) -> Result<(), LogError> {
        let pool = &self.shared().pool;
        let row =
            segment::load_row(pool, turn).await.map_err(log_error)?.ok_or_else(|| unknown_turn(turn))?;
        if row.state != LogState::Ended {
            return Ok(());
        }
        let before = segment::read_all(&mut *pool.acquire().await.map_err(log_error)?, row.n).await?;
        let merged = merge_records(turn, before, merge).await?;
        let mut transaction = pool.begin().await.map_err(log_error)?;
        // The turn may have been deleted in the meantime, or merged by another server.
        let ended_row: Option<i64> =
            sqlx::query_scalar("SELECT n FROM turn_log WHERE n = $1 AND state = 1 FOR UPDATE")
                .bind(row.n)
                .fetch_optional(&mut *transaction)
                .await
                .map_err(log_error)?;
        if ended_row.is_some() {
            segment::replace_all(&mut transaction, row.n, &merged).await?;
        }
        transaction.commit().await.map_err(log_error)
    }

    async fn delete(&self, turn: &str) -> Result<(), LogError> {
        let mut transaction = self.shared().pool.begin().await.map_err(log_error)?;
        delete(&mut transaction, turn).await.map_err(log_error)?;
        transaction.commit().await.map_err(log_error)?;
        self.evict_turn(turn);
        Ok(())
    }
}

/// Deletes the log of a turn, in the transaction that deletes the rest of the turn. Waits for appends to it.
pub(super) async fn delete(db: &mut PgConnection, turn: &str) -> Result<(), sqlx::Error> {
    let n: Option<i64> = sqlx::query_scalar("DELETE FROM turn_log WHERE turn = $1 RETURNING n")
        .bind(sanitize_param(turn))
        .fetch_optional(&mut *db)
        .await?;
    if let Some(n) = n {
        sqlx::query("DELETE FROM segment WHERE n = $1").bind(n).execute(&mut *db).await?;
        sqlx::query("DELETE FROM provider_state WHERE n = $1").bind(n).execute(&mut *db).await?;
    }
    Ok(())
}

impl PostgresStore {
    /// Takes over the oldest turn whose owner has died; `None`: there is none. Servers that call this at the
    /// same time get different turns. For the takeover across servers.
    pub async fn claim_orphan(&self) -> Result<Option<(String, TurnClaim)>, LogError> {
        let shared = self.shared();
        let claim = format!(
            "UPDATE turn_log SET epoch = epoch + 1, owner = $1 WHERE n = (
                SELECT t.n FROM turn_log t WHERE t.state = 0 AND t.owner <> $1
                    AND NOT EXISTS (SELECT 1 FROM replica r WHERE r.id = t.owner AND {})
                ORDER BY t.n LIMIT 1 FOR UPDATE SKIP LOCKED)
             RETURNING turn, n, epoch",
            super::lease::alive_condition()
        );
        let claimed = sqlx::query(sqlx::AssertSqlSafe(claim)).bind(shared.replica);
        let Some(row) = claimed.fetch_optional(&shared.pool).await.map_err(log_error)? else {
            return Ok(None);
        };
        let turn: String = row.try_get("turn").map_err(log_error)?;
        let (n, epoch): (i64, i64) =
            (row.try_get("n").map_err(log_error)?, row.try_get("epoch").map_err(log_error)?);
        let claim = self.finish_claim(&turn, n, epoch as u64).await?;
        Ok(Some((turn, claim)))
    }

    /// All records of a turn after its claim. The previous owner can no longer write, so this is complete.
    async fn finish_claim(&self, turn: &str, n: i64, epoch: u64) -> Result<TurnClaim, LogError> {
        let rows = segment::load_rows(&self.shared().pool, &[n]).await.map_err(log_error)?;
        let Some(row) = rows.first() else { return Err(unknown_turn(turn)) };
        let TurnProgress { last_seq, ended } = row.progress();
        if !ended {
            self.shared().live_turns.own(turn, n, PostgresAppendState { epoch, last_seq, ended });
        }
        Ok(TurnClaim { epoch: OwnerEpoch(epoch), last_seq })
    }

    /// Drops the turn from memory, after the commit of [`delete`].
    pub(super) fn evict_turn(&self, turn: &str) {
        if let Some(live) = self.shared().live_turns.get(turn) {
            live.disown();
            self.shared().live_turns.remove(&live);
            live.progress.send_modify(|now| now.ended = true);
        }
    }

    /// A turn that this epoch owns, though it was not claimed by this server since it started; or its row, if nothing
    /// can be appended.
    async fn adopt_turn(
        &self,
        turn: &str,
        epoch: OwnerEpoch,
    ) -> Result<Result<Arc<PostgresLiveTurn>, Option<LogRow>>, LogError> {
        let shared = self.shared();
        let row = segment::load_row(&shared.pool, turn).await.map_err(log_error)?;
        match row {
            Some(row) if row.epoch != epoch.0 => {
                Err(LogError::Fenced { turn: turn.to_owned(), given: epoch.0, current: row.epoch })
            }
            Some(LogRow { n, state: LogState::Open, last_seq, .. }) => {
                let writing = PostgresAppendState { epoch: epoch.0, last_seq, ended: false };
                Ok(Ok(shared.live_turns.own(turn, n, writing)))
            }
            row => Ok(Err(row)),
        }
    }

    async fn turn_reader(&self, turn: &str) -> Result<(TurnReader<Self>, TurnProgress), LogError> {
        let reader = |n, live| TurnReader { store: self.clone(), turn: turn.to_owned(), n, live };
        let shared = self.shared();
        if let Some(live) = shared.live_turns.get(turn)
            && live.append_state().is_some()
        {
            let progress = *live.progress.borrow();
            return Ok((reader(live.n, Some(live)), progress));
        }
        let row = segment::load_row(&shared.pool, turn).await.map_err(log_error)?;
        let row = row.ok_or_else(|| unknown_turn(turn))?;
        Ok((reader(row.n, None), row.progress()))
    }

    fn push(&self, append: PostgresAppend) -> Result<(), LogError> {
        self.shared().queued_jobs.fetch_add(1, Relaxed);
        let sent = self.jobs().as_ref().is_some_and(|jobs| jobs.send(append).is_ok());
        if sent { Ok(()) } else { Err(store_closed()) }
    }
}

#[async_trait]
impl SegmentStore for PostgresStore {
    type AppendState = Option<PostgresAppendState>;

    async fn read_segments(&self, n: i64, after: u64, records_max: usize) -> Result<SegmentRead, StoreError> {
        let mut db = self.shared().pool.acquire().await?;
        segment::read_after(&mut db, n, after, records_max).await
    }
}
