//! The one thread that writes: whatever waits goes into one transaction.
//!
//! A refused job leaves nothing and disturbs no other. Nothing is shown to viewers, and nobody is answered, before the
//! commit; if the commit fails, what the writer had noted in memory is taken back.

use super::housekeeping::{Housekeeping, Leave};
use super::live::{FIRST_EPOCH, FORGOTTEN, InDatabase, Live, Writing};
use super::queue::{Next, Pace};
use super::segment::{self, State};
use super::shared::Shared;
use super::{Durability, Sync};
use crate::error::StoreError;
use crate::failpoint::{self, Rule};
use crate::log::{Ack, Beside, Claim, Epoch, LogError};
use crate::records::{BYTES, Chunk, Piece, Progress, Run, frame};
use rusqlite::{Connection, ErrorCode, params};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::sync::oneshot;

/// What the writer is asked for.
pub(super) enum Job {
    Append(Append),
    Claim(Claiming),
    Call(Call),
}

/// Records of one turn, already framed.
pub(super) struct Append {
    pub live: Arc<Live>,
    pub epoch: Epoch,
    pub durability: Durability,
    /// `None` if only something beside the log is written.
    pub run: Option<Run>,
    pub beside: Vec<Beside>,
    pub answer: oneshot::Sender<Result<Ack, LogError>>,
    /// What came of it, until the commit.
    pub verdict: Option<Result<Ack, LogError>>,
}

/// Becoming the owner of a turn.
pub(super) struct Claiming {
    pub turn: String,
    pub answer: oneshot::Sender<Result<Claim, LogError>>,
    pub verdict: Option<Result<Claim, LogError>>,
}

/// Anything else that writes. It runs once, in a savepoint of its own.
pub(super) struct Call {
    durability: Durability,
    task: Box<dyn Task>,
    stage: Stage,
}

/// Whether a call has been run.
enum Stage {
    NotYet,
    Done,
    /// Its changes have gone with their transaction.
    Undone(StoreError),
}

/// A closure and whoever waits for its answer.
pub(super) trait Task: Send {
    /// Runs the closure and keeps its answer; an error if its changes are to be undone.
    fn run(&mut self, connection: &Connection) -> Result<(), StoreError>;

    /// Answers, if the transaction could be committed with what was kept.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

impl Call {
    pub fn new(durability: Durability, task: Box<dyn Task>) -> Self {
        Self { durability, task, stage: Stage::NotYet }
    }

    fn answer(self, committed: Result<(), StoreError>) {
        self.task.answer(match self.stage {
            Stage::Undone(error) => Err(error),
            Stage::NotYet | Stage::Done => committed,
        });
    }
}

impl Job {
    fn durability(&self) -> Durability {
        match self {
            Self::Append(append) => append.durability,
            Self::Claim(_) => Durability::Process,
            Self::Call(call) => call.durability,
        }
    }
}

/// The writer's own state. Lives on its thread.
pub(super) struct Writer {
    pub connection: Connection,
    pub shared: Arc<Shared>,
    /// Row of the journal that is written next.
    pub next_row: i64,
    pub housekeeping: Housekeeping,
    /// The `synchronous` setting that the connection has now.
    synchronous: Option<Durability>,
    /// What becomes a row of the journal.
    blob: Vec<u8>,
    written: Vec<Wrote>,
    undo: Vec<Undo>,
}

/// An append that was taken, to be shown after the commit.
struct Wrote {
    live: Arc<Live>,
    piece: Option<Piece>,
    progress: Progress,
}

/// How to take a note back.
enum Undo {
    Writing(Arc<Live>, Writing),
    Added(Arc<Live>),
}

/// Why a transaction failed as a whole.
#[derive(Debug)]
pub(super) enum Failed {
    /// Someone else holds the write lock.
    Locked(StoreError),
    /// Another server has opened this file: this one is fenced off.
    TakenOver,
    Store(StoreError),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked(error.into()),
            _ => Self::Store(error.into()),
        }
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failed {
    pub fn error(&self) -> StoreError {
        match self {
            Self::Locked(error) | Self::Store(error) => error.clone(),
            Self::TakenOver => StoreError::failed("another server has opened this file"),
        }
    }
}

impl Writer {
    pub fn new(connection: Connection, shared: Arc<Shared>) -> Self {
        Self {
            connection,
            shared,
            next_row: 1,
            housekeeping: Housekeeping::default(),
            synchronous: None,
            blob: Vec::new(),
            written: Vec::new(),
            undo: Vec::new(),
        }
    }

    /// Works until the queue is closed and empty.
    pub fn run(mut self) {
        let settings = self.shared.settings;
        let mut pace = Pace::new(settings.commits_per_second_max, settings.commit_burst, Instant::now());
        let mut spare = Vec::new();
        loop {
            match self.shared.queue.next(spare, &mut pace, self.tick_after()) {
                Next::Jobs(mut jobs) => {
                    self.commit(&mut jobs);
                    spare = jobs;
                    self.keep_house_under_load();
                }
                Next::Tick => {
                    spare = Vec::new();
                    self.keep_house();
                }
                Next::Over => break,
            }
        }
        self.stop();
    }

    /// One transaction for all jobs; all of them are answered.
    fn commit(&mut self, jobs: &mut Vec<Job>) {
        let mut outcome = self.attempt(jobs);
        if matches!(outcome, Err(Failed::Locked(_))) {
            // The connection itself has waited for five seconds; a person with a shell deserves five more.
            outcome = self.attempt(jobs);
        }
        if matches!(outcome, Err(Failed::Store(StoreError::Full { .. }))) && self.drop_ballast() {
            outcome = self.attempt(jobs);
        }
        match outcome {
            Ok(()) => self.succeed(jobs),
            Err(failed) => self.fail(jobs, failed),
        }
    }

    fn attempt(&mut self, jobs: &mut [Job]) -> Result<(), Failed> {
        let done = self.transaction(jobs);
        if let Err(failed) = &done {
            if !self.connection.is_autocommit() {
                // If even this fails, the next BEGIN does, too, and says why.
                let _ = self.connection.execute_batch("ROLLBACK");
            }
            for job in jobs {
                if let Job::Call(call @ Call { stage: Stage::Done, .. }) = job {
                    call.stage = Stage::Undone(failed.error());
                }
            }
            self.written.clear();
            self.blob.clear();
            self.housekeeping.not_folded();
            for undo in self.undo.drain(..).rev() {
                match undo {
                    Undo::Writing(live, before) => *live.writing() = before,
                    Undo::Added(live) => self.shared.lives.remove(&live),
                }
            }
        }
        done
    }

    fn transaction(&mut self, jobs: &mut [Job]) -> Result<(), Failed> {
        let durability = jobs.iter().map(Job::durability).max().unwrap_or(Durability::Process);
        self.begin(durability)?;
        if !jobs.iter().all(|job| matches!(job, Job::Append(_))) {
            self.still_ours()?;
        }
        for job in &mut *jobs {
            match job {
                Job::Append(append) => append.verdict = Some(self.append(append)?),
                Job::Claim(claiming) => claiming.verdict = Some(self.claim(claiming)?),
                Job::Call(call) => self.call(call)?,
            }
        }
        self.flush_row()?;
        self.fold_overflow(Leave::Newest)?;
        // Left out by a test, which must see what viewers then lose.
        if durability == Durability::Process && failpoint::leaves_out(Rule::LogFirst) {
            return Ok(());
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// Begins a transaction that will be as durable as asked.
    pub fn begin(&mut self, durability: Durability) -> Result<(), Failed> {
        let durability = match self.shared.settings.sync {
            Sync::ByClass => durability,
            Sync::Always => Durability::Power,
        };
        if !self.connection.is_autocommit() && failpoint::leaves_out(Rule::LogFirst) {
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

    /// Fails if another server has opened the file. An append checks it by itself.
    pub fn still_ours(&self) -> Result<(), Failed> {
        let mut find = self
            .connection
            .prepare_cached("SELECT 1 FROM owner WHERE generation = ?1 AND closed_at IS NULL")?;
        if find.exists([self.shared.generation])? { Ok(()) } else { Err(Failed::TakenOver) }
    }

    fn append(&mut self, append: &Append) -> Result<Result<Ack, LogError>, Failed> {
        let live = &append.live;
        let before = *live.writing();
        let turn = || live.id.clone();
        if before.epoch == FORGOTTEN {
            return Ok(Err(LogError::UnknownTurn { turn: turn() }));
        }
        if append.epoch.0 != before.epoch {
            let (given, current) = (append.epoch.0, before.epoch);
            return Ok(Err(LogError::Fenced { turn: turn(), given, current }));
        }
        if before.ended && !(append.run.is_none() && append.beside.is_empty()) {
            return Ok(Err(LogError::Ended { turn: turn() }));
        }
        if before.in_database == InDatabase::NotYet && !self.insert_turn(&live.id, live.n, before.epoch)? {
            // Another process has taken a turn of this id, which cannot have been new.
            let (turn, given) = (turn(), append.epoch.0);
            return Ok(Err(LogError::Fenced { turn, given, current: given + 1 }));
        }
        let mut now = Writing { in_database: InDatabase::Yes, ..before };
        let mut piece = None;
        if let Some(run) = &append.run {
            if run.first_seq != before.last_seq + 1 {
                let (expected, given) = (before.last_seq + 1, run.first_seq);
                return Ok(Err(LogError::NotDense { turn: turn(), expected, given }));
            }
            if let Some(fault) = &run.fault {
                return Ok(Err(fault.clone()));
            }
            let chunk = Chunk {
                n: live.n,
                epoch: before.epoch,
                first_seq: run.first_seq,
                last_seq: run.last_seq,
                run: run.bytes.clone(),
            };
            if self.blob.is_empty() {
                self.blob.extend_from_slice(&[0; frame::SEAL]);
            }
            chunk.write(&mut self.blob);
            piece = Some(Piece::new(chunk, self.next_row));
            now = Writing { last_seq: run.last_seq, ended: run.ends, ..now };
            if self.blob.len() >= BYTES {
                self.flush_row()?;
            }
        }
        for beside in &append.beside {
            self.connection
                // Nothing, if the turn has been forgotten in this very transaction.
                .prepare_cached(
                    "INSERT INTO beside (n, step, data) SELECT n, ?2, ?3 FROM turn_log WHERE n = ?1",
                )?
                .execute(params![live.n, beside.step, &*beside.payload])?;
        }
        if now.ended && !before.ended {
            self.connection
                .prepare_cached("UPDATE turn_log SET state = ?2, last_seq = ?3 WHERE n = ?1")?
                .execute(params![live.n, State::Ended as i64, now.last_seq as i64])?;
        }
        self.undo.push(Undo::Writing(live.clone(), before));
        *live.writing() = now;
        let progress = Progress { last_seq: now.last_seq, ended: now.ended };
        self.written.push(Wrote { live: live.clone(), piece, progress });
        Ok(Ok(Ack { last_seq: now.last_seq }))
    }

    /// What all turns have appended becomes one row. The statement itself is the fence: it writes nothing when another
    /// server has opened the file, so no turn of this one, whatever its epoch, can be written by two.
    fn flush_row(&mut self) -> Result<(), Failed> {
        if self.blob.is_empty() {
            return Ok(());
        }
        frame::seal(&mut self.blob);
        let written = self
            .connection
            .prepare_cached(
                "INSERT INTO journal (id, data) SELECT ?1, ?2 FROM owner \
                 WHERE generation = ?3 AND closed_at IS NULL",
            )?
            .execute(params![self.next_row, self.blob, self.shared.generation])?;
        self.next_row += 1;
        self.blob.clear();
        if self.blob.capacity() > 4 * BYTES {
            self.blob = Vec::new();
        }
        if written == 0 { Err(Failed::TakenOver) } else { Ok(()) }
    }

    fn claim(&mut self, claiming: &Claiming) -> Result<Result<Claim, LogError>, Failed> {
        let turn = &claiming.turn;
        let generation = self.shared.generation;
        let Some(row) = segment::row(&self.connection, turn)? else {
            if let Err(error) = self.shared.room_for_new_turn() {
                return Ok(Err(error.into()));
            }
            return self.claim_new(turn).map(Ok);
        };
        let epoch = row.epoch + 1;
        self.connection
            .prepare_cached("UPDATE turn_log SET epoch = ?2, owner = ?3 WHERE n = ?1")?
            .execute(params![row.n, epoch as i64, generation])?;
        let Some(live) = self.shared.lives.get(turn) else {
            return Ok(Ok(Claim { epoch: Epoch(epoch), last_seq: row.last_seq }));
        };
        let before = *live.writing();
        live.writing().epoch = epoch;
        let last_seq = before.last_seq;
        self.undo.push(Undo::Writing(live, before));
        Ok(Ok(Claim { epoch: Epoch(epoch), last_seq }))
    }

    fn claim_new(&mut self, turn: &str) -> Result<Claim, Failed> {
        // One that has begun in memory has an owner, who is fenced off.
        if let Some(live) = self.shared.lives.get(turn) {
            let before = *live.writing();
            if before.in_database == InDatabase::NotYet && before.epoch != FORGOTTEN {
                let epoch = before.epoch + 1;
                self.insert_turn(turn, live.n, epoch)?;
                *live.writing() = Writing { epoch, in_database: InDatabase::Yes, ..before };
                self.undo.push(Undo::Writing(live, before));
                return Ok(Claim { epoch: Epoch(epoch), last_seq: 0 });
            }
        }
        let n = self.shared.number_of_new_turn();
        self.insert_turn(turn, n, FIRST_EPOCH)?;
        let live = Live::new(turn.to_owned(), n, FIRST_EPOCH, 0, InDatabase::Yes);
        self.undo.push(Undo::Added(self.shared.lives.add(live)));
        Ok(Claim { epoch: Epoch(FIRST_EPOCH), last_seq: 0 })
    }

    /// False if there is a turn of this id.
    fn insert_turn(&self, turn: &str, n: i64, epoch: u64) -> Result<bool, Failed> {
        let inserted = self
            .connection
            .prepare_cached(
                "INSERT INTO turn_log (n, turn, epoch, owner) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (turn) DO NOTHING",
            )?
            .execute(params![n, turn, epoch as i64, self.shared.generation])?;
        Ok(inserted == 1)
    }

    fn call(&self, call: &mut Call) -> Result<(), Failed> {
        let Stage::NotYet = call.stage else { return Ok(()) };
        let sql = |sql| self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        sql("SAVEPOINT job")?;
        call.stage = Stage::Done;
        let ran = catch_unwind(AssertUnwindSafe(|| call.task.run(&self.connection)));
        match ran.unwrap_or_else(|_| Err(StoreError::failed("a job of the store panicked"))) {
            Ok(()) => {
                sql("RELEASE job")?;
            }
            // SQLite has rolled back everything, not only this job: the disk is full, or worse.
            Err(error) if self.connection.is_autocommit() => return Err(Failed::Store(error)),
            Err(_) => {
                sql("ROLLBACK TO job")?;
                sql("RELEASE job")?;
            }
        }
        Ok(())
    }

    fn succeed(&mut self, jobs: &mut Vec<Job>) {
        let figures = &self.shared.figures;
        figures.commits.fetch_add(1, Relaxed);
        if self.synchronous == Some(Durability::Power) {
            figures.fsyncs.fetch_add(1, Relaxed);
        }
        self.undo.clear();
        self.housekeeping.folded(&self.shared);
        let now = Instant::now();
        let mut events = 0;
        for Wrote { live, piece, progress } in self.written.drain(..) {
            if let Some(piece) = piece {
                events += piece.last_seq + 1 - piece.first_seq;
                let (is_first, bytes) = {
                    let mut ring = live.ring();
                    (ring.push(piece, now), ring.bytes())
                };
                live.progress.send_replace(progress);
                self.housekeeping.appended(live, is_first, bytes, &self.shared.settings);
            }
        }
        figures.events.fetch_add(events, Relaxed);
        self.shared.committed();
        for job in jobs.drain(..) {
            match job {
                // Nobody may be waiting any more: whoever dropped the future claims again to find out.
                Job::Append(Append { answer, verdict, .. }) => {
                    if let Some(verdict) = verdict {
                        let _ = answer.send(verdict);
                    }
                }
                Job::Claim(Claiming { answer, verdict, .. }) => {
                    if let Some(verdict) = verdict {
                        let _ = answer.send(verdict);
                    }
                }
                Job::Call(call) => {
                    self.housekeeping.called();
                    call.answer(Ok(()));
                }
            }
        }
    }

    fn fail(&mut self, jobs: &mut Vec<Job>, failed: Failed) {
        if matches!(failed, Failed::TakenOver) {
            self.shared.taken_over();
        }
        let error = failed.error();
        self.shared.failed(&error);
        for job in jobs.drain(..) {
            match job {
                Job::Append(Append { answer, .. }) => drop(answer.send(Err(error.clone().into()))),
                Job::Claim(Claiming { answer, .. }) => drop(answer.send(Err(error.clone().into()))),
                Job::Call(call) => call.answer(Err(error.clone())),
            }
        }
    }
}
