//! The one task that appends: all waiting records go into one statement, and those that arrive during it into
//! the next.
//!
//! If a connection breaks before its answer, the connection is fenced off, and the row that counted its
//! batches shows whether the last one was committed. No append is answered before that is known.

use super::connection::{StatementFailure, classify_error, connect};
use super::live::{PostgresAppendState, PostgresLiveTurn};
use super::settings::CommitPolicy;
use super::shared::PostgresShared;
use super::{lease, segment, statement};
use crate::error::StoreError;
use crate::log::{AppendAck, Durability, LogError, OwnerEpoch, ProviderStateRecord};
use crate::records::{AppendedRun, EncodedRun, TurnProgress};
use bytes::Bytes;
use sqlx::{Connection, PgConnection};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// Appends in one statement at most.
const APPENDS_MAX: usize = 4_096;
/// Delay between two attempts to reach a lost database: at first, and at most.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Attempts at a statement that conflicts with another transaction.
const ATTEMPTS_MAX: usize = 5;

/// Records of one turn, already framed.
pub(super) struct PostgresAppend {
    pub live: Arc<PostgresLiveTurn>,
    pub epoch: OwnerEpoch,
    pub durability: Durability,
    /// Records of the append; `None` if only provider state is written.
    pub run: Option<EncodedRun>,
    pub provider_state: Vec<ProviderStateRecord>,
    pub reply: oneshot::Sender<Result<AppendAck, LogError>>,
    /// Permit for its share of the queue.
    pub queue_permit: OwnedSemaphorePermit,
}

/// Records that one batch appends to one turn.
pub(super) struct AppendGroup {
    pub live: Arc<PostgresLiveTurn>,
    pub epoch: u64,
    /// Encoded runs; empty if only provider state is written.
    pub runs: Vec<Bytes>,
    pub first_seq: u64,
    pub last_seq: u64,
    pub ends: bool,
    pub provider_state: Vec<ProviderStateRecord>,
    replies: Vec<(oneshot::Sender<Result<AppendAck, LogError>>, AppendAck)>,
}

/// The task's own state.
pub(super) struct PostgresWriter {
    shared: Arc<PostgresShared>,
    jobs: mpsc::UnboundedReceiver<PostgresAppend>,
    connection: Option<WriterConnection>,
    /// Row of the connection that was lost, and the batch of which nothing is known.
    in_doubt: Option<(i64, i64)>,
    batch: i64,
}

/// A connection that may append.
struct WriterConnection {
    db: PgConnection,
    /// Id of the connection's row in `writer`.
    id: i64,
}

impl PostgresWriter {
    pub(super) fn new(shared: Arc<PostgresShared>, jobs: mpsc::UnboundedReceiver<PostgresAppend>) -> Self {
        Self { shared, jobs, connection: None, in_doubt: None, batch: 0 }
    }

    /// Works until the queue is closed and empty.
    pub(super) async fn run(mut self) {
        let mut jobs = Vec::new();
        while self.jobs.recv_many(&mut jobs, APPENDS_MAX).await > 0 {
            self.shared.queued_jobs.fetch_sub(jobs.len(), Relaxed);
            self.commit(std::mem::take(&mut jobs)).await;
        }
        if let Some(WriterConnection { mut db, id }) = self.connection.take() {
            // A row that remains is removed with the row of this server.
            let _ = sqlx::query("DELETE FROM writer WHERE id = $1").bind(id).execute(&mut db).await;
            let _ = db.close().await;
        }
    }

    async fn commit(&mut self, jobs: Vec<PostgresAppend>) {
        let durability = match self.shared.settings.commit {
            CommitPolicy::ByClass => {
                jobs.iter().map(|job| job.durability).max().unwrap_or(Durability::Process)
            }
            CommitPolicy::Always => Durability::Power,
        };
        let (groups, queue_permits) = self.group_by_turn(jobs);
        if groups.is_empty() {
            return;
        }
        match self.append(&groups, durability).await {
            Ok(written) => self.succeed(groups, &written, durability).await,
            Err(error) => {
                for (reply, _) in groups.into_iter().flat_map(|group| group.replies) {
                    // The caller may have stopped waiting.
                    let _ = reply.send(Err(error.clone().into()));
                }
            }
        }
        drop(queue_permits);
    }

    /// Groups by turn the jobs that can be appended, and answers the others.
    fn group_by_turn(&self, jobs: Vec<PostgresAppend>) -> (Vec<AppendGroup>, Vec<OwnedSemaphorePermit>) {
        let mut groups: Vec<AppendGroup> = Vec::new();
        let mut indexes: HashMap<(i64, u64), (usize, PostgresAppendState)> = HashMap::new();
        let mut queue_permits = Vec::with_capacity(jobs.len());
        for PostgresAppend { live, epoch, run, provider_state, reply, queue_permit, durability: _ } in jobs {
            queue_permits.push(queue_permit);
            let key = (live.n, epoch.0);
            let known = indexes.get(&key).map(|(_, writing)| *writing).or(*live.append_state());
            let now = match admit(&live, epoch, known, run.as_ref(), &provider_state) {
                Ok(now) => now,
                Err(rejection) => {
                    let _ = reply.send(Err(rejection));
                    continue;
                }
            };
            let index = match indexes.get_mut(&key) {
                Some((index, writing)) => {
                    *writing = now;
                    *index
                }
                None => {
                    indexes.insert(key, (groups.len(), now));
                    groups.push(AppendGroup {
                        live,
                        epoch: epoch.0,
                        runs: Vec::new(),
                        first_seq: run.as_ref().map_or(now.last_seq, |run| run.first_seq),
                        last_seq: now.last_seq,
                        ends: false,
                        provider_state: Vec::new(),
                        replies: Vec::new(),
                    });
                    groups.len() - 1
                }
            };
            let group = &mut groups[index];
            if let Some(run) = run {
                if group.runs.is_empty() {
                    group.first_seq = run.first_seq;
                }
                group.runs.push(run.bytes);
                group.last_seq = run.last_seq;
                group.ends |= run.ends;
            }
            group.provider_state.extend(provider_state);
            group.replies.push((reply, AppendAck { last_seq: now.last_seq }));
        }
        (groups, queue_permits)
    }

    /// Appends until it is known what came of it. Places of the groups that were written.
    async fn append(
        &mut self,
        groups: &[AppendGroup],
        durability: Durability,
    ) -> Result<HashSet<usize>, StoreError> {
        let notification = if self.shared.lease.has_others() {
            let turns = groups.iter().map(|group| group.live.n);
            statement::notification_payload(self.shared.replica, turns, self.shared.settings.notify_bytes_max)
        } else {
            String::new()
        };
        let mut attempts = 0;
        loop {
            if self.connection.is_none()
                && let Some(written) = self.reconnect(groups).await
            {
                return Ok(written);
            }
            let Some(connection) = self.connection.as_mut() else { continue };
            self.batch += 1;
            let sent = statement::append(
                &mut connection.db,
                connection.id,
                self.batch,
                groups,
                durability,
                &notification,
            )
            .await;
            let error = match sent {
                Ok(done) if done.open => return Ok(done.written.into_iter().collect()),
                // Another server has removed this one as dead.
                Ok(_) => {
                    self.connection = None;
                    continue;
                }
                Err(error) => error,
            };
            attempts += 1;
            match classify_error(&error) {
                StatementFailure::Retryable if attempts < ATTEMPTS_MAX => {}
                StatementFailure::Refused | StatementFailure::Retryable => return Err(error.into()),
                StatementFailure::Unknown => {
                    self.shared.set_failure(Some(error.to_string()));
                    self.in_doubt = self.connection.take().map(|connection| (connection.id, self.batch));
                }
            }
        }
    }

    /// Connects, with retries without end, and settles batches in doubt: returns the groups that were written
    /// after all.
    async fn reconnect(&mut self, groups: &[AppendGroup]) -> Option<HashSet<usize>> {
        let mut pause = RETRY_DELAYS.0;
        loop {
            let timeout = self.shared.settings.connect_wait;
            let attempt = tokio::time::timeout(timeout, self.try_connect(groups)).await;
            match attempt {
                Ok(Ok((connection, written))) => {
                    self.connection = Some(connection);
                    self.in_doubt = None;
                    self.shared.set_failure(None);
                    return written;
                }
                Ok(Err(error)) => self.shared.set_failure(Some(error.to_string())),
                Err(_) => self.shared.set_failure(Some("the database does not answer".into())),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_DELAYS.1);
        }
    }

    async fn try_connect(
        &self,
        groups: &[AppendGroup],
    ) -> Result<(WriterConnection, Option<HashSet<usize>>), StoreError> {
        let mut db = connect(&self.shared.options).await?;
        let in_doubt_id = self.in_doubt.map(|(id, _)| id).unwrap_or_default();
        // Earlier connections have no batch in doubt any more. The row of the current one stays until the
        // next time, so that it can be checked again if this connection breaks, too.
        sqlx::query("DELETE FROM writer WHERE replica = $1 AND fenced AND id <> $2")
            .bind(self.shared.replica)
            .bind(in_doubt_id)
            .execute(&mut db)
            .await?;
        let mut written = None;
        if let Some((id, batch)) = self.in_doubt {
            // Waits for what that connection still does, and keeps it from doing more.
            let committed: Option<i64> =
                sqlx::query_scalar("UPDATE writer SET fenced = TRUE WHERE id = $1 RETURNING batch")
                    .bind(id)
                    .fetch_optional(&mut db)
                    .await?;
            if committed == Some(batch) {
                written = Some(groups_still_owned(&mut db, groups).await?);
            }
        }
        lease::renew(&mut db, &self.shared).await?;
        let id = sqlx::query_scalar("INSERT INTO writer (replica) VALUES ($1) RETURNING id")
            .bind(self.shared.replica)
            .fetch_one(&mut db)
            .await?;
        let mut connection = WriterConnection { db, id };
        self.restore(&mut connection).await?;
        Ok((connection, written))
    }

    /// A database that went down may have lost its last moments of what need not survive that. Viewers have seen it, so
    /// it is written again, from memory.
    async fn restore(&self, connection: &mut WriterConnection) -> Result<(), StoreError> {
        let mut lives = self.shared.live_turns.select(None);
        lives.retain(|live| live.append_state().is_some());
        let numbers: Vec<i64> = lives.iter().map(|live| live.n).collect();
        let mut groups = Vec::new();
        for row in segment::load_rows(&mut connection.db, &numbers).await? {
            let Some(live) = lives.iter().find(|live| live.n == row.n) else { continue };
            let Some(writing) = *live.append_state() else { continue };
            if writing.epoch != row.epoch || row.last_seq >= writing.last_seq {
                continue;
            }
            let runs = live.ring().read_after(row.last_seq, usize::MAX).unwrap_or_default();
            let fits = runs.first().is_some_and(|run| run.first_seq == row.last_seq + 1);
            match runs.last().filter(|_| fits) {
                Some(last) => groups.push(AppendGroup {
                    live: live.clone(),
                    epoch: writing.epoch,
                    first_seq: row.last_seq + 1,
                    last_seq: last.last_seq,
                    runs: runs.iter().map(|run| run.payload.clone()).collect(),
                    ends: false,
                    provider_state: Vec::new(),
                    replies: Vec::new(),
                }),
                // Too many records are lost: the turn ends where the database has it, and viewers ahead of it
                // get a resync.
                None => {
                    live.disown();
                    live.progress.send_modify(|now| *now = row.progress());
                }
            }
        }
        if !groups.is_empty() {
            statement::append(&mut connection.db, connection.id, 0, &groups, Durability::Power, "").await?;
        }
        Ok(())
    }

    async fn succeed(&mut self, groups: Vec<AppendGroup>, written: &HashSet<usize>, durability: Durability) {
        let figures = &self.shared.counters;
        figures.commits.fetch_add(1, Relaxed);
        if durability == Durability::Power {
            figures.fsyncs.fetch_add(1, Relaxed);
        }
        let lost = match durability {
            // The caller acts on it. If this server has paused, another may own its turns by now.
            Durability::Power if self.shared.lease.valid_until().is_none() => {
                self.recheck_ownership(&groups).await
            }
            _ => HashSet::new(),
        };
        let (now, mut events, mut segments) = (Instant::now(), 0, 0);
        for (index, group) in groups.into_iter().enumerate() {
            if !written.contains(&index) || lost.contains(&index) {
                self.reject(group).await;
                continue;
            }
            let AppendGroup { live, epoch, runs, first_seq, last_seq, ends, replies, .. } = group;
            let progress = TurnProgress { last_seq, ended: ends };
            if !runs.is_empty() {
                events += last_seq + 1 - first_seq;
                segments += 1;
                let mut writing = live.append_state();
                if let Some(writing) = writing.as_mut().filter(|writing| writing.epoch == epoch) {
                    (writing.last_seq, writing.ended) = (last_seq, ends);
                }
                drop(writing);
                let run = match runs.len() {
                    1 => runs.into_iter().next().unwrap_or_default(),
                    _ => runs.concat().into(),
                };
                let mut ring = live.ring();
                ring.push(AppendedRun { first_seq, last_seq, row: epoch as i64, payload: run }, now);
                if let Some(last) = ring.oldest_beyond(self.shared.settings.ring_bytes_max).last() {
                    ring.evict_through(last.last_seq);
                }
                drop(ring);
                live.advance(progress);
                if ends {
                    self.shared.live_turns.remove(&live);
                }
            }
            for (reply, ack) in replies {
                // The caller may have stopped waiting: a caller that dropped the future claims the turn again
                // to learn the result.
                let _ = reply.send(Ok(ack));
            }
        }
        self.shared.counters.events.fetch_add(events, Relaxed);
        self.shared.counters.segments.fetch_add(segments, Relaxed);
    }

    /// Indexes of groups whose turns belong to another server now; all of them, if that cannot be determined.
    async fn recheck_ownership(&mut self, groups: &[AppendGroup]) -> HashSet<usize> {
        let all = || (0..groups.len()).collect();
        let Some(connection) = self.connection.as_mut() else { return all() };
        if lease::renew(&mut connection.db, &self.shared).await.is_err() {
            return all();
        }
        match groups_still_owned(&mut connection.db, groups).await {
            Ok(ours) => (0..groups.len()).filter(|index| !ours.contains(index)).collect(),
            Err(_) => all(),
        }
    }

    /// Answers a group with the present owner of its turn.
    async fn reject(&mut self, group: AppendGroup) {
        let turn = || group.live.id.clone();
        let row = match self.connection.as_mut() {
            Some(connection) => segment::load_row(&mut connection.db, &group.live.id).await,
            None => segment::load_row(&self.shared.pool, &group.live.id).await,
        };
        let rejection = match row {
            Ok(Some(row)) if row.n == group.live.n => {
                let mut writing = group.live.append_state();
                if writing.is_some_and(|writing| writing.epoch < row.epoch) {
                    *writing = None;
                }
                LogError::Fenced { turn: turn(), given: group.epoch, current: row.epoch }
            }
            Ok(_) => {
                group.live.disown();
                self.shared.live_turns.remove(&group.live);
                LogError::UnknownTurn { turn: turn() }
            }
            Err(error) => StoreError::from(error).into(),
        };
        for (reply, _) in group.replies {
            let _ = reply.send(Err(rejection.clone()));
        }
    }
}

/// Places of groups that are still of the epoch that owns their turns.
async fn groups_still_owned(
    db: &mut PgConnection,
    groups: &[AppendGroup],
) -> Result<HashSet<usize>, sqlx::Error> {
    let numbers: Vec<i64> = groups.iter().map(|group| group.live.n).collect();
    let rows = segment::load_rows(db, &numbers).await?;
    let is_ours =
        |group: &AppendGroup| rows.iter().any(|row| row.n == group.live.n && row.epoch == group.epoch);
    Ok((0..groups.len()).filter(|index| is_ours(&groups[*index])).collect())
}

/// State of the turn after this append, or the reason that it is refused.
fn admit(
    live: &PostgresLiveTurn,
    epoch: OwnerEpoch,
    known: Option<PostgresAppendState>,
    run: Option<&EncodedRun>,
    provider_state: &[ProviderStateRecord],
) -> Result<PostgresAppendState, LogError> {
    let turn = || live.id.clone();
    let Some(before) = known else {
        return Err(LogError::Fenced { turn: turn(), given: epoch.0, current: epoch.0 + 1 });
    };
    if epoch.0 != before.epoch {
        return Err(LogError::Fenced { turn: turn(), given: epoch.0, current: before.epoch });
    }
    if before.ended && !(run.is_none() && provider_state.is_empty()) {
        return Err(LogError::Ended { turn: turn() });
    }
    let Some(run) = run else { return Ok(before) };
    if run.first_seq != before.last_seq + 1 {
        return Err(LogError::NonContiguous {
            turn: turn(),
            expected: before.last_seq + 1,
            given: run.first_seq,
        });
    }
    if let Some(fault) = &run.fault {
        return Err(fault.clone());
    }
    Ok(PostgresAppendState { last_seq: run.last_seq, ended: run.ends, ..before })
}
