//! The one task that appends: whatever waits goes into one statement, and whatever comes meanwhile into the next.
//!
//! An answer that got lost with its connection is no answer: the connection is fenced off, and the row that counted its
//! batches says whether the last one was committed. Nobody is told anything before that is known.

use super::connection::{Outcome, connect, outcome};
use super::live::{Live, Writing};
use super::settings::Commit;
use super::shared::Shared;
use super::{lease, segment, statement};
use crate::error::StoreError;
use crate::log::{Ack, Beside, Durability, Epoch, LogError};
use crate::records::{Piece, Progress, Run};
use bytes::Bytes;
use sqlx::{Connection, PgConnection};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// Appends in one statement at most.
const APPENDS_MAX: usize = 4_096;
/// How long a lost database is left alone between two attempts: at first, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How often a statement is repeated that another transaction was in the way of.
const TRIES: usize = 5;

/// Records of one turn, already framed.
pub(super) struct Append {
    pub live: Arc<Live>,
    pub epoch: Epoch,
    pub durability: Durability,
    /// `None` if only something beside the log is written.
    pub run: Option<Run>,
    pub beside: Vec<Beside>,
    pub answer: oneshot::Sender<Result<Ack, LogError>>,
    /// What it takes of the queue.
    pub room: OwnedSemaphorePermit,
}

/// What one batch appends to one turn.
pub(super) struct Group {
    pub live: Arc<Live>,
    pub epoch: u64,
    /// Nothing but what is beside, if there are no runs.
    pub runs: Vec<Bytes>,
    pub first_seq: u64,
    pub last_seq: u64,
    pub ends: bool,
    pub beside: Vec<Beside>,
    answers: Vec<(oneshot::Sender<Result<Ack, LogError>>, Ack)>,
}

/// The task's own state.
pub(super) struct Writer {
    shared: Arc<Shared>,
    jobs: mpsc::UnboundedReceiver<Append>,
    door: Option<Door>,
    /// Row of the connection that was lost, and the batch of which nothing is known.
    in_doubt: Option<(i64, i64)>,
    batch: i64,
}

/// A connection that may append.
struct Door {
    db: PgConnection,
    /// Its row in `writer`.
    id: i64,
}

impl Writer {
    pub fn new(shared: Arc<Shared>, jobs: mpsc::UnboundedReceiver<Append>) -> Self {
        Self { shared, jobs, door: None, in_doubt: None, batch: 0 }
    }

    /// Works until the queue is closed and empty.
    pub async fn run(mut self) {
        let mut jobs = Vec::new();
        while self.jobs.recv_many(&mut jobs, APPENDS_MAX).await > 0 {
            self.shared.waiting.fetch_sub(jobs.len(), Relaxed);
            self.commit(std::mem::take(&mut jobs)).await;
        }
        if let Some(Door { mut db, id }) = self.door.take() {
            // What is left behind goes with the row of this server.
            let _ = sqlx::query("DELETE FROM writer WHERE id = $1").bind(id).execute(&mut db).await;
            let _ = db.close().await;
        }
    }

    async fn commit(&mut self, jobs: Vec<Append>) {
        let durability = match self.shared.settings.commit {
            Commit::ByClass => jobs.iter().map(|job| job.durability).max().unwrap_or(Durability::Process),
            Commit::Always => Durability::Power,
        };
        let (groups, rooms) = self.groups(jobs);
        if groups.is_empty() {
            return;
        }
        match self.append(&groups, durability).await {
            Ok(taken) => self.succeed(groups, &taken, durability).await,
            Err(error) => {
                for (answer, _) in groups.into_iter().flat_map(|group| group.answers) {
                    // Nobody may be waiting any more.
                    let _ = answer.send(Err(error.clone().into()));
                }
            }
        }
        drop(rooms);
    }

    /// What can be appended, by turn; what cannot is answered.
    fn groups(&self, jobs: Vec<Append>) -> (Vec<Group>, Vec<OwnedSemaphorePermit>) {
        let mut groups: Vec<Group> = Vec::new();
        let mut places: HashMap<(i64, u64), (usize, Writing)> = HashMap::new();
        let mut rooms = Vec::with_capacity(jobs.len());
        for Append { live, epoch, run, beside, answer, room, durability: _ } in jobs {
            rooms.push(room);
            let key = (live.n, epoch.0);
            let known = places.get(&key).map(|(_, writing)| *writing).or(*live.writing());
            let now = match admitted(&live, epoch, known, run.as_ref(), &beside) {
                Ok(now) => now,
                Err(refused) => {
                    let _ = answer.send(Err(refused));
                    continue;
                }
            };
            let place = match places.get_mut(&key) {
                Some((place, writing)) => {
                    *writing = now;
                    *place
                }
                None => {
                    places.insert(key, (groups.len(), now));
                    groups.push(Group {
                        live,
                        epoch: epoch.0,
                        runs: Vec::new(),
                        first_seq: run.as_ref().map_or(now.last_seq, |run| run.first_seq),
                        last_seq: now.last_seq,
                        ends: false,
                        beside: Vec::new(),
                        answers: Vec::new(),
                    });
                    groups.len() - 1
                }
            };
            let group = &mut groups[place];
            if let Some(run) = run {
                if group.runs.is_empty() {
                    group.first_seq = run.first_seq;
                }
                group.runs.push(run.bytes);
                group.last_seq = run.last_seq;
                group.ends |= run.ends;
            }
            group.beside.extend(beside);
            group.answers.push((answer, Ack { last_seq: now.last_seq }));
        }
        (groups, rooms)
    }

    /// Appends until it is known what came of it. Places of the groups that were written.
    async fn append(
        &mut self,
        groups: &[Group],
        durability: Durability,
    ) -> Result<HashSet<usize>, StoreError> {
        let bell = match self.shared.lease.has_others() {
            true => {
                let turns = groups.iter().map(|group| group.live.n);
                statement::bell(self.shared.replica, turns, self.shared.settings.bell_bytes_max)
            }
            false => String::new(),
        };
        let mut tries = 0;
        loop {
            if self.door.is_none()
                && let Some(written) = self.open_door(groups).await
            {
                return Ok(written);
            }
            let Some(door) = self.door.as_mut() else { continue };
            self.batch += 1;
            let sent = statement::append(&mut door.db, door.id, self.batch, groups, durability, &bell).await;
            let error = match sent {
                Ok(done) if done.open => return Ok(done.taken.into_iter().collect()),
                // Somebody has cleared away what they took for dead.
                Ok(_) => {
                    self.door = None;
                    continue;
                }
                Err(error) => error,
            };
            tries += 1;
            match outcome(&error) {
                Outcome::TryAgain if tries < TRIES => {}
                Outcome::Refused | Outcome::TryAgain => return Err(error.into()),
                Outcome::Unknown => {
                    self.shared.set_lost(Some(error.to_string()));
                    self.in_doubt = self.door.take().map(|door| (door.id, self.batch));
                }
            }
        }
    }

    /// Connects, however long it takes, and settles what is in doubt: the groups that were written after all.
    async fn open_door(&mut self, groups: &[Group]) -> Option<HashSet<usize>> {
        let mut pause = AGAIN.0;
        loop {
            let patience = self.shared.settings.connect_wait;
            let tried = tokio::time::timeout(patience, self.try_door(groups)).await;
            match tried {
                Ok(Ok((door, written))) => {
                    self.door = Some(door);
                    self.in_doubt = None;
                    self.shared.set_lost(None);
                    return written;
                }
                Ok(Err(error)) => self.shared.set_lost(Some(error.to_string())),
                Err(_) => self.shared.set_lost(Some("the database does not answer".into())),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(AGAIN.1);
        }
    }

    async fn try_door(&self, groups: &[Group]) -> Result<(Door, Option<HashSet<usize>>), StoreError> {
        let mut db = connect(&self.shared.options).await?;
        let doubted = self.in_doubt.map(|(id, _)| id).unwrap_or_default();
        // Of former connections nothing is in doubt any more. The one that is keeps its row until the next time, so that
        // it can be asked again if this connection breaks, too.
        sqlx::query("DELETE FROM writer WHERE replica = $1 AND fenced AND id <> $2")
            .bind(self.shared.replica)
            .bind(doubted)
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
                written = Some(written_of(&mut db, groups).await?);
            }
        }
        lease::renew(&mut db, &self.shared).await?;
        let id = sqlx::query_scalar("INSERT INTO writer (replica) VALUES ($1) RETURNING id")
            .bind(self.shared.replica)
            .fetch_one(&mut db)
            .await?;
        let mut door = Door { db, id };
        self.restore(&mut door).await?;
        Ok((door, written))
    }

    /// A database that went down may have lost its last moments of what need not survive that. Viewers have seen it, so
    /// it is written again, from memory.
    async fn restore(&self, door: &mut Door) -> Result<(), StoreError> {
        let mut lives = self.shared.lives.of(None);
        lives.retain(|live| live.writing().is_some());
        let numbers: Vec<i64> = lives.iter().map(|live| live.n).collect();
        let mut groups = Vec::new();
        for row in segment::rows(&mut door.db, &numbers).await? {
            let Some(live) = lives.iter().find(|live| live.n == row.n) else { continue };
            let Some(writing) = *live.writing() else { continue };
            if writing.epoch != row.epoch || row.last_seq >= writing.last_seq {
                continue;
            }
            let pieces = live.ring().behind(row.last_seq, usize::MAX).unwrap_or_default();
            let fits = pieces.first().is_some_and(|piece| piece.first_seq == row.last_seq + 1);
            match pieces.last().filter(|_| fits) {
                Some(last) => groups.push(Group {
                    live: live.clone(),
                    epoch: writing.epoch,
                    first_seq: row.last_seq + 1,
                    last_seq: last.last_seq,
                    runs: pieces.iter().map(|piece| piece.run.clone()).collect(),
                    ends: false,
                    beside: Vec::new(),
                    answers: Vec::new(),
                }),
                // Too much is gone: the turn ends where the database says, and viewers ahead of it are told so.
                None => {
                    live.disown();
                    live.progress.send_modify(|now| *now = row.progress());
                }
            }
        }
        if !groups.is_empty() {
            statement::append(&mut door.db, door.id, 0, &groups, Durability::Power, "").await?;
        }
        Ok(())
    }

    async fn succeed(&mut self, groups: Vec<Group>, taken: &HashSet<usize>, durability: Durability) {
        let figures = &self.shared.figures;
        figures.commits.fetch_add(1, Relaxed);
        if durability == Durability::Power {
            figures.fsyncs.fetch_add(1, Relaxed);
        }
        let lost = match durability {
            // Somebody acts on it. If this server has paused, another may own its turns by now.
            Durability::Power if self.shared.lease.until().is_none() => self.check_again(&groups).await,
            _ => HashSet::new(),
        };
        let (now, mut events, mut segments) = (Instant::now(), 0, 0);
        for (place, group) in groups.into_iter().enumerate() {
            if !taken.contains(&place) || lost.contains(&place) {
                self.refuse(group).await;
                continue;
            }
            let Group { live, epoch, runs, first_seq, last_seq, ends, answers, .. } = group;
            let progress = Progress { last_seq, ended: ends };
            if !runs.is_empty() {
                events += last_seq + 1 - first_seq;
                segments += 1;
                let mut writing = live.writing();
                if let Some(writing) = writing.as_mut().filter(|writing| writing.epoch == epoch) {
                    (writing.last_seq, writing.ended) = (last_seq, ends);
                }
                drop(writing);
                let run = match runs.len() {
                    1 => runs.into_iter().next().unwrap_or_default(),
                    _ => runs.concat().into(),
                };
                let mut ring = live.ring();
                ring.push(Piece { first_seq, last_seq, row: epoch as i64, run }, now);
                if let Some(last) = ring.oldest(self.shared.settings.ring_bytes_max).last() {
                    ring.forget(last.last_seq);
                }
                drop(ring);
                live.advance(progress);
                if ends {
                    self.shared.lives.remove(&live);
                }
            }
            for (answer, ack) in answers {
                // Nobody may be waiting any more: whoever dropped the future claims again to find out.
                let _ = answer.send(Ok(ack));
            }
        }
        self.shared.figures.events.fetch_add(events, Relaxed);
        self.shared.figures.segments.fetch_add(segments, Relaxed);
    }

    /// Places of groups whose turns belong to somebody else now; all of them, if that cannot be found out.
    async fn check_again(&mut self, groups: &[Group]) -> HashSet<usize> {
        let all = || (0..groups.len()).collect();
        let Some(door) = self.door.as_mut() else { return all() };
        if lease::renew(&mut door.db, &self.shared).await.is_err() {
            return all();
        }
        match written_of(&mut door.db, groups).await {
            Ok(ours) => (0..groups.len()).filter(|place| !ours.contains(place)).collect(),
            Err(_) => all(),
        }
    }

    /// Says who owns the turn instead.
    async fn refuse(&mut self, group: Group) {
        let turn = || group.live.id.clone();
        let row = match self.door.as_mut() {
            Some(door) => segment::row(&mut door.db, &group.live.id).await,
            None => segment::row(&self.shared.pool, &group.live.id).await,
        };
        let refused = match row {
            Ok(Some(row)) if row.n == group.live.n => {
                let mut writing = group.live.writing();
                if writing.is_some_and(|writing| writing.epoch < row.epoch) {
                    *writing = None;
                }
                LogError::Fenced { turn: turn(), given: group.epoch, current: row.epoch }
            }
            Ok(_) => {
                group.live.disown();
                self.shared.lives.remove(&group.live);
                LogError::UnknownTurn { turn: turn() }
            }
            Err(error) => StoreError::from(error).into(),
        };
        for (answer, _) in group.answers {
            let _ = answer.send(Err(refused.clone()));
        }
    }
}

/// Places of groups that are still of the epoch that owns their turns.
async fn written_of(db: &mut PgConnection, groups: &[Group]) -> Result<HashSet<usize>, sqlx::Error> {
    let numbers: Vec<i64> = groups.iter().map(|group| group.live.n).collect();
    let rows = segment::rows(db, &numbers).await?;
    let is_ours = |group: &Group| rows.iter().any(|row| row.n == group.live.n && row.epoch == group.epoch);
    Ok((0..groups.len()).filter(|place| is_ours(&groups[*place])).collect())
}

/// How far the turn is after this append, or why it is refused.
fn admitted(
    live: &Live,
    epoch: Epoch,
    known: Option<Writing>,
    run: Option<&Run>,
    beside: &[Beside],
) -> Result<Writing, LogError> {
    let turn = || live.id.clone();
    let Some(before) = known else {
        return Err(LogError::Fenced { turn: turn(), given: epoch.0, current: epoch.0 + 1 });
    };
    if epoch.0 != before.epoch {
        return Err(LogError::Fenced { turn: turn(), given: epoch.0, current: before.epoch });
    }
    if before.ended && !(run.is_none() && beside.is_empty()) {
        return Err(LogError::Ended { turn: turn() });
    }
    let Some(run) = run else { return Ok(before) };
    if run.first_seq != before.last_seq + 1 {
        return Err(LogError::NotDense { turn: turn(), expected: before.last_seq + 1, given: run.first_seq });
    }
    if let Some(fault) = &run.fault {
        return Err(fault.clone());
    }
    Ok(Writing { last_seq: run.last_seq, ended: run.ends, ..before })
}
