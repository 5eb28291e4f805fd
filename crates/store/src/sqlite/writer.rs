//! The one thread that writes: all waiting jobs go into one transaction.
//!
//! A refused job leaves no change and affects no other. Viewers see nothing, and no caller gets a reply,
//! before the commit; if the commit fails, the writer's changes in memory are undone.

use super::housekeeping::{HousekeepingState, RingRetention};
use super::live::{DELETED_EPOCH, FIRST_EPOCH, SqliteAppendState, SqliteLiveTurn, TurnRowState};
use super::queue::{CommitPacer, NextWork};
use super::segment;
use super::shared::SqliteShared;
use super::{Durability, SyncPolicy};
use crate::error::StoreError;
use crate::failpoint::{SafetyRule, stands_still};
use crate::log::{AppendAck, LogError, OwnerEpoch, ProviderStateRecord, TurnClaim};
use crate::records::{
    AppendedRun, EncodedRun, JournalChunk, LogState, SEGMENT_BYTES_MAX, TurnProgress, frame,
};
use rusqlite::{Connection, ErrorCode, params};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::sync::oneshot;

/// A job of the writer.
pub(super) enum WriteJob {
    Append(SqliteAppend),
    Claim(ClaimJob),
    Task(TaskJob),
}

/// Records of one turn, already framed.
pub(super) struct SqliteAppend {
    pub live: Arc<SqliteLiveTurn>,
    pub epoch: OwnerEpoch,
    pub durability: Durability,
    /// Records of the append; `None` if only provider state is written.
    pub run: Option<EncodedRun>,
    pub provider_state: Vec<ProviderStateRecord>,
    pub reply: oneshot::Sender<Result<AppendAck, LogError>>,
    /// Outcome of the append, until the commit.
    pub outcome: Option<Result<AppendAck, LogError>>,
}

/// Becoming the owner of a turn.
pub(super) struct ClaimJob {
    pub turn: String,
    pub reply: oneshot::Sender<Result<TurnClaim, LogError>>,
    pub outcome: Option<Result<TurnClaim, LogError>>,
}

/// Any other write. It runs once, in its own savepoint.
pub(super) struct TaskJob {
    durability: Durability,
    task: Box<dyn WriteTask>,
    stage: TaskStage,
}

/// Progress of a task.
enum TaskStage {
    Pending,
    Done,
    /// Its changes were rolled back with their transaction.
    RolledBack(StoreError),
}

/// A closure, with the caller that waits for its reply.
pub(super) trait WriteTask: Send {
    /// Runs the closure and stores its reply; an error if its changes are to be undone.
    fn run(&mut self, connection: &mut Connection) -> Result<(), StoreError>;

    /// Sends the stored reply, or the error of the commit.
    fn reply(self: Box<Self>, committed: Result<(), StoreError>);
}

impl TaskJob {
    pub(super) fn new(durability: Durability, task: Box<dyn WriteTask>) -> Self {
        Self { durability, task, stage: TaskStage::Pending }
    }

    fn reply(self, committed: Result<(), StoreError>) {
        self.task.reply(match self.stage {
            TaskStage::RolledBack(error) => Err(error),
            TaskStage::Pending | TaskStage::Done => committed,
        });
    }
}

impl WriteJob {
    fn durability(&self) -> Durability {
        match self {
            Self::Append(append) => append.durability,
            Self::Claim(_) => Durability::Process,
            Self::Task(call) => call.durability,
        }
    }
}

/// The writer's own state. Lives on its thread.
pub(super) struct SqliteWriter {
    pub connection: Connection,
    pub shared: Arc<SqliteShared>,
    /// Row of the journal that is written next.
    pub next_row: i64,
    pub housekeeping: HousekeepingState,
    /// The `synchronous` setting that the connection has now.
    synchronous: Option<Durability>,
    /// Bytes of the next row of the journal.
    journal_blob: Vec<u8>,
    unpublished: Vec<UnpublishedAppend>,
    undo: Vec<MemoryUndo>,
}

/// An append that was taken, to be shown after the commit.
struct UnpublishedAppend {
    live: Arc<SqliteLiveTurn>,
    run: Option<AppendedRun>,
    progress: TurnProgress,
}

/// Reverts a change in memory.
enum MemoryUndo {
    AppendState(Arc<SqliteLiveTurn>, SqliteAppendState),
    AddedTurn(Arc<SqliteLiveTurn>),
}

/// Reason that a transaction failed as a whole.
#[derive(Debug)]
pub(super) enum CommitFailure {
    /// Another connection holds the write lock.
    Locked(StoreError),
    /// Another server has opened this file: this one is fenced off.
    TakenOver,
    Store(StoreError),
}

impl From<rusqlite::Error> for CommitFailure {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked(error.into()),
            _ => Self::Store(error.into()),
        }
    }
}

impl From<StoreError> for CommitFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl CommitFailure {
    pub(super) fn error(&self) -> StoreError {
        match self {
            Self::Locked(error) | Self::Store(error) => error.clone(),
            Self::TakenOver => StoreError::failed("another server has opened this file"),
        }
    }
}

impl SqliteWriter {
    pub(super) fn new(connection: Connection, shared: Arc<SqliteShared>) -> Self {
        Self {
            connection,
            shared,
            next_row: 1,
            housekeeping: HousekeepingState::default(),
            synchronous: None,
            journal_blob: Vec::new(),
            unpublished: Vec::new(),
            undo: Vec::new(),
        }
    }

    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        let settings = self.shared.settings;
        let mut pacer =
            CommitPacer::new(settings.commits_per_second_max, settings.commit_burst, Instant::now());
        let mut spare = Vec::new();
        loop {
            match self.shared.queue.next(spare, &mut pacer, self.tick_after()) {
                NextWork::Jobs(mut jobs) => {
                    self.commit(&mut jobs);
                    spare = jobs;
                    self.housekeep_under_load();
                }
                NextWork::Tick => {
                    spare = Vec::new();
                    self.housekeep();
                }
                NextWork::Closed => break,
            }
        }
        self.stop();
    }

    /// One transaction for all jobs; all of them are answered.
    fn commit(&mut self, jobs: &mut Vec<WriteJob>) {
        let mut outcome = self.attempt(jobs);
        if matches!(outcome, Err(CommitFailure::Locked(_))) {
            // The connection itself has waited for five seconds; a person with a shell deserves five more.
            outcome = self.attempt(jobs);
        }
        if matches!(outcome, Err(CommitFailure::Store(StoreError::DiskFull { .. }))) && self.release_ballast()
        {
            outcome = self.attempt(jobs);
        }
        match outcome {
            Ok(()) => self.succeed(jobs),
            Err(failed) => self.fail(jobs, failed),
        }
    }

    fn attempt(&mut self, jobs: &mut [WriteJob]) -> Result<(), CommitFailure> {
        let result = self.transaction(jobs);
        if let Err(failed) = &result {
            if !self.connection.is_autocommit() {
                // If even this fails, the next BEGIN does, too, and reports the reason.
                let _ = self.connection.execute_batch("ROLLBACK");
            }
            for job in jobs {
                if let WriteJob::Task(call @ TaskJob { stage: TaskStage::Done, .. }) = job {
                    call.stage = TaskStage::RolledBack(failed.error());
                }
            }
            self.unpublished.clear();
            self.journal_blob.clear();
            self.housekeeping.on_fold_rolled_back();
            for undo in self.undo.drain(..).rev() {
                match undo {
                    MemoryUndo::AppendState(live, before) => *live.append_state() = before,
                    MemoryUndo::AddedTurn(live) => self.shared.live_turns.remove(&live),
                }
            }
        }
        result
    }

    fn transaction(&mut self, jobs: &mut [WriteJob]) -> Result<(), CommitFailure> {
        let durability = jobs.iter().map(WriteJob::durability).max().unwrap_or(Durability::Process);
        self.begin(durability)?;
        if !jobs.iter().all(|job| matches!(job, WriteJob::Append(_))) {
            self.check_ownership()?;
        }
        for job in &mut *jobs {
            match job {
                WriteJob::Append(append) => append.outcome = Some(self.append(append)?),
                WriteJob::Claim(claim) => claim.outcome = Some(self.claim(claim)?),
                WriteJob::Task(call) => self.run_task(call)?,
            }
        }
        self.flush_row()?;
        self.fold_overflow(RingRetention::Newest)?;
        // Left out by a test, which must see what viewers then lose.
        if SafetyRule::LogFirst.is_disabled() && (durability == Durability::Process || stands_still()) {
            return Ok(());
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// Begins a transaction of the requested durability.
    pub(super) fn begin(&mut self, durability: Durability) -> Result<(), CommitFailure> {
        let durability = match self.shared.settings.sync {
            SyncPolicy::ByClass => durability,
            SyncPolicy::Always => Durability::Power,
        };
        if !self.connection.is_autocommit() && SafetyRule::LogFirst.is_disabled() {
            return Ok(());
        }
        if self.synchronous != Some(durability) {
            // Takes effect when it is compiled, so it cannot be prepared; and never inside a transaction.
            self.connection.execute_batch(match durability {
                Durability::Process => "PRAGMA synchronous = NORMAL",
                Durability::Power => "PRAGMA synchronous = FULL",
            })?;
            self.synchronous = Some(durability);
        }
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(())
    }

    /// Fails if another server has opened the file. An append checks this itself.
    pub(super) fn check_ownership(&self) -> Result<(), CommitFailure> {
        let mut find = self
            .connection
            .prepare_cached("SELECT 1 FROM owner WHERE generation = ?1 AND closed_at IS NULL")?;
        if find.exists([self.shared.generation])? { Ok(()) } else { Err(CommitFailure::TakenOver) }
    }

    fn append(&mut self, append: &SqliteAppend) -> Result<Result<AppendAck, LogError>, CommitFailure> {
        let live = &append.live;
        let before = *live.append_state();
        let turn = || live.id.clone();
        if before.epoch == DELETED_EPOCH {
            return Ok(Err(LogError::UnknownTurn { turn: turn() }));
        }
        if append.epoch.0 != before.epoch {
            let (given, current) = (append.epoch.0, before.epoch);
            return Ok(Err(LogError::Fenced { turn: turn(), given, current }));
        }
        if before.ended && !(append.run.is_none() && append.provider_state.is_empty()) {
            return Ok(Err(LogError::Ended { turn: turn() }));
        }
        if before.row == TurnRowState::NotInserted && !self.insert_turn(&live.id, live.n, before.epoch)? {
            // Another process has taken a turn of this id, which cannot have been new.
            let (turn, given) = (turn(), append.epoch.0);
            return Ok(Err(LogError::Fenced { turn, given, current: given + 1 }));
        }
        let mut now = SqliteAppendState { row: TurnRowState::Inserted, ..before };
        let mut appended_run = None;
        if let Some(run) = &append.run {
            if run.first_seq != before.last_seq + 1 {
                let (expected, given) = (before.last_seq + 1, run.first_seq);
                return Ok(Err(LogError::NonContiguous { turn: turn(), expected, given }));
            }
            if let Some(fault) = &run.fault {
                return Ok(Err(fault.clone()));
            }
            let chunk = JournalChunk {
                turn_n: live.n,
                epoch: before.epoch,
                first_seq: run.first_seq,
                last_seq: run.last_seq,
                run: run.bytes.clone(),
            };
            if self.journal_blob.is_empty() {
                self.journal_blob.extend_from_slice(&[0; frame::CHECKSUM_BYTES]);
            }
            chunk.write(&mut self.journal_blob);
            appended_run = Some(AppendedRun::new(chunk, self.next_row));
            now = SqliteAppendState { last_seq: run.last_seq, ended: run.ends, ..now };
            if self.journal_blob.len() >= SEGMENT_BYTES_MAX {
                self.flush_row()?;
            }
        }
        for provider_state in &append.provider_state {
            self.connection
                // Nothing, if the turn has been forgotten in this very transaction.
                .prepare_cached(
                    "INSERT INTO provider_state (n, step, data) SELECT n, ?2, ?3 FROM turn_log WHERE n = ?1",
                )?
                .execute(params![live.n, provider_state.step, &*provider_state.payload])?;
        }
        if now.ended && !before.ended {
            self.connection
                .prepare_cached("UPDATE turn_log SET state = ?2, last_seq = ?3 WHERE n = ?1")?
                .execute(params![live.n, LogState::Ended as i64, now.last_seq as i64])?;
        }
        self.undo.push(MemoryUndo::AppendState(live.clone(), before));
        *live.append_state() = now;
        let progress = TurnProgress { last_seq: now.last_seq, ended: now.ended };
        self.unpublished.push(UnpublishedAppend { live: live.clone(), run: appended_run, progress });
        Ok(Ok(AppendAck { last_seq: now.last_seq }))
    }

    /// Writes the pending appends of all turns as one row. The statement itself is the fence: it writes
    /// nothing when another server has opened the file, so no turn of this one, at any epoch, can be written
    /// by two.
    fn flush_row(&mut self) -> Result<(), CommitFailure> {
        if self.journal_blob.is_empty() {
            return Ok(());
        }
        frame::write_checksum(&mut self.journal_blob);
        let written = self
            .connection
            .prepare_cached(
                "INSERT INTO journal (id, data) SELECT ?1, ?2 FROM owner \
                 WHERE generation = ?3 AND closed_at IS NULL",
            )?
            .execute(params![self.next_row, self.journal_blob, self.shared.generation])?;
        self.next_row += 1;
        self.journal_blob.clear();
        if self.journal_blob.capacity() > 4 * SEGMENT_BYTES_MAX {
            self.journal_blob = Vec::new();
        }
        if written == 0 { Err(CommitFailure::TakenOver) } else { Ok(()) }
    }

    fn claim(&mut self, claim: &ClaimJob) -> Result<Result<TurnClaim, LogError>, CommitFailure> {
        let turn = &claim.turn;
        let generation = self.shared.generation;
        let Some(row) = segment::load_row(&self.connection, turn)? else {
            if let Err(error) = self.shared.check_capacity() {
                return Ok(Err(error.into()));
            }
            return self.claim_new(turn).map(Ok);
        };
        let epoch = row.epoch + 1;
        self.connection
            .prepare_cached("UPDATE turn_log SET epoch = ?2, owner = ?3 WHERE n = ?1")?
            .execute(params![row.n, epoch as i64, generation])?;
        let Some(live) = self.shared.live_turns.get(turn) else {
            return Ok(Ok(TurnClaim { epoch: OwnerEpoch(epoch), last_seq: row.last_seq }));
        };
        let before = *live.append_state();
        live.append_state().epoch = epoch;
        let last_seq = before.last_seq;
        self.undo.push(MemoryUndo::AppendState(live, before));
        Ok(Ok(TurnClaim { epoch: OwnerEpoch(epoch), last_seq }))
    }

    fn claim_new(&mut self, turn: &str) -> Result<TurnClaim, CommitFailure> {
        // One that has begun in memory has an owner, who is fenced off.
        if let Some(live) = self.shared.live_turns.get(turn) {
            let before = *live.append_state();
            if before.row == TurnRowState::NotInserted && before.epoch != DELETED_EPOCH {
                let epoch = before.epoch + 1;
                self.insert_turn(turn, live.n, epoch)?;
                *live.append_state() = SqliteAppendState { epoch, row: TurnRowState::Inserted, ..before };
                self.undo.push(MemoryUndo::AppendState(live, before));
                return Ok(TurnClaim { epoch: OwnerEpoch(epoch), last_seq: 0 });
            }
        }
        let n = self.shared.next_turn_n();
        self.insert_turn(turn, n, FIRST_EPOCH)?;
        let live = SqliteLiveTurn::open(turn.to_owned(), n, FIRST_EPOCH, 0, TurnRowState::Inserted);
        self.undo.push(MemoryUndo::AddedTurn(self.shared.live_turns.add(live)));
        Ok(TurnClaim { epoch: OwnerEpoch(FIRST_EPOCH), last_seq: 0 })
    }

    /// False if there is a turn of this id.
    fn insert_turn(&self, turn: &str, n: i64, epoch: u64) -> Result<bool, CommitFailure> {
        let inserted = self
            .connection
            .prepare_cached(
                "INSERT INTO turn_log (n, turn, epoch, owner) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (turn) DO NOTHING",
            )?
            .execute(params![n, turn, epoch as i64, self.shared.generation])?;
        Ok(inserted == 1)
    }

    fn run_task(&mut self, call: &mut TaskJob) -> Result<(), CommitFailure> {
        let TaskStage::Pending = call.stage else { return Ok(()) };
        let execute = |db: &Connection, sql| db.prepare_cached(sql).and_then(|mut found| found.execute([]));
        execute(&self.connection, "SAVEPOINT job")?;
        call.stage = TaskStage::Done;
        let ran = catch_unwind(AssertUnwindSafe(|| call.task.run(&mut self.connection)));
        match ran.unwrap_or_else(|_| Err(StoreError::failed("a job of the store panicked"))) {
            Ok(()) => {
                execute(&self.connection, "RELEASE job")?;
            }
            // SQLite has rolled back everything, not only this job: the disk is full, or worse.
            Err(error) if self.connection.is_autocommit() => return Err(CommitFailure::Store(error)),
            Err(_) => {
                execute(&self.connection, "ROLLBACK TO job")?;
                execute(&self.connection, "RELEASE job")?;
            }
        }
        Ok(())
    }

    fn succeed(&mut self, jobs: &mut Vec<WriteJob>) {
        let figures = &self.shared.counters;
        figures.commits.fetch_add(1, Relaxed);
        if self.synchronous == Some(Durability::Power) {
            figures.fsyncs.fetch_add(1, Relaxed);
        }
        self.undo.clear();
        self.housekeeping.on_fold_committed(&self.shared);
        let now = Instant::now();
        let mut events = 0;
        for UnpublishedAppend { live, run: appended_run, progress } in self.unpublished.drain(..) {
            if let Some(appended_run) = appended_run {
                events += appended_run.last_seq + 1 - appended_run.first_seq;
                let (is_first, bytes) = {
                    let mut ring = live.ring();
                    (ring.push(appended_run, now), ring.bytes())
                };
                live.progress.send_replace(progress);
                self.housekeeping.on_append(live, is_first, bytes, &self.shared.settings);
            }
        }
        figures.events.fetch_add(events, Relaxed);
        self.shared.committed();
        for job in jobs.drain(..) {
            match job {
                // The caller may have stopped waiting: a caller that dropped the future claims the turn again
                // to learn the result.
                WriteJob::Append(SqliteAppend { reply, outcome, .. }) => {
                    if let Some(outcome) = outcome {
                        let _ = reply.send(outcome);
                    }
                }
                WriteJob::Claim(ClaimJob { reply, outcome, .. }) => {
                    if let Some(outcome) = outcome {
                        let _ = reply.send(outcome);
                    }
                }
                WriteJob::Task(call) => {
                    self.housekeeping.mark_index_stale();
                    call.reply(Ok(()));
                }
            }
        }
    }

    fn fail(&mut self, jobs: &mut Vec<WriteJob>, failed: CommitFailure) {
        if matches!(failed, CommitFailure::TakenOver) {
            self.shared.taken_over();
        }
        let error = failed.error();
        self.shared.commit_failed(&error);
        for job in jobs.drain(..) {
            match job {
                WriteJob::Append(SqliteAppend { reply, .. }) => drop(reply.send(Err(error.clone().into()))),
                WriteJob::Claim(ClaimJob { reply, .. }) => drop(reply.send(Err(error.clone().into()))),
                WriteJob::Task(call) => call.reply(Err(error.clone())),
            }
        }
    }
}
