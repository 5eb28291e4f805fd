//! Background work of the writer, in small pieces: records move from the journal to segments, unneeded rows
//! are deleted, the write-ahead log is emptied, and the ballast is restored.

use super::catalog::search::{self, INDEX_BATCH_BYTES, IndexState};
use super::live::SqliteLiveTurn;
use super::segment;
use super::settings::SqliteSettings;
use super::shared::SqliteShared;
use super::writer::{CommitFailure, SqliteWriter};
use super::{Durability, paths};
use crate::error::StoreError;
use crate::records::AppendedRun;
use rusqlite::params;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Idle time of the writer before it starts background work.
const TICK: Duration = Duration::from_secs(1);

/// Interval of housekeeping if work was left over the last time.
const BACKLOG_TICK: Duration = Duration::from_millis(50);

/// Age in rows at which a turn's records leave the journal: otherwise a turn that waits for a person would
/// hold back everything that others wrote since.
const JOURNAL_LAG_ROWS_MAX: i64 = 10_000;

/// Bytes folded, and rows deleted, in one transaction of housekeeping: appends wait for it.
const FOLD_BYTES: usize = 1 << 20;
const DELETE_ROWS: i64 = 2_000;

/// State of the background work.
#[derive(Default)]
pub(super) struct HousekeepingState {
    /// Turns with records that are only in the journal.
    unfolded: HashMap<i64, Arc<SqliteLiveTurn>>,
    /// Turns with more of them than they should keep in memory.
    overflow: HashMap<i64, Arc<SqliteLiveTurn>>,
    /// Written as segments in the transaction that is open.
    folding: Vec<(Arc<SqliteLiveTurn>, u64)>,
    /// Journal rows below this one are deleted.
    deleted_below: i64,
    checkpoint: CheckpointState,
    index: IndexState,
    backlog: HousekeepingBacklog,
    last: Option<Instant>,
}

/// Remaining work, if more is due than fits one transaction.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum HousekeepingBacklog {
    #[default]
    None,
    Remaining,
}

impl HousekeepingBacklog {
    fn tick(self) -> Duration {
        match self {
            Self::None => TICK,
            Self::Remaining => BACKLOG_TICK,
        }
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum CheckpointState {
    #[default]
    Done,
    Due,
}

/// Records that stay in memory of a turn that holds too many; none of a turn that rests or has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RingRetention {
    /// The records that viewers are about to read.
    Newest,
    Nothing,
}

impl HousekeepingState {
    /// A turn has more records in the journal.
    pub(super) fn on_append(
        &mut self,
        live: Arc<SqliteLiveTurn>,
        is_first: bool,
        bytes: usize,
        settings: &SqliteSettings,
    ) {
        self.checkpoint = CheckpointState::Due;
        if bytes > settings.ring_bytes_max {
            self.overflow.insert(live.n, live.clone());
        }
        if is_first {
            self.unfolded.insert(live.n, live);
        }
    }

    /// Marks that another write was committed: a text may wait for the index.
    pub(super) fn mark_index_stale(&mut self) {
        self.index = IndexState::Stale;
    }

    /// The transaction with the segments has been committed: memory can let go.
    pub(super) fn on_fold_committed(&mut self, shared: &SqliteShared) {
        for (live, up_to) in self.folding.drain(..) {
            let mut ring = live.ring();
            ring.evict_through(up_to);
            let is_empty = ring.first_row().is_none();
            drop(ring);
            if is_empty {
                self.unfolded.remove(&live.n);
                if live.progress.borrow().ended {
                    shared.live_turns.remove(&live);
                }
            }
            shared.counters.segments.fetch_add(1, Relaxed);
        }
    }

    /// The transaction was rolled back.
    pub(super) fn on_fold_rolled_back(&mut self) {
        self.overflow.extend(self.folding.drain(..).map(|(live, _)| (live.n, live)));
    }

    fn is_idle(&self, next_row: i64) -> bool {
        self.unfolded.is_empty()
            && self.overflow.is_empty()
            && self.deleted_below >= next_row
            && self.checkpoint == CheckpointState::Done
            && self.index == IndexState::Complete
    }
}

impl SqliteWriter {
    /// Time after which the writer starts background work although nothing comes in.
    pub(super) fn tick_after(&self) -> Option<Duration> {
        if !self.housekeeping.overflow.is_empty() {
            return Some(Duration::ZERO);
        }
        let idle = self.housekeeping.is_idle(self.next_row) && !self.shared.awaits_space();
        (!idle).then_some(self.housekeeping.backlog.tick())
    }

    /// Runs one piece of housekeeping when the writer has nothing else to do.
    pub(super) fn housekeep(&mut self) {
        self.housekeep_now();
        if self.housekeeping.checkpoint == CheckpointState::Due && self.housekeeping.overflow.is_empty() {
            self.housekeeping.checkpoint = CheckpointState::Done;
            // Pages that a reader still uses are left to a later checkpoint.
            let _ = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    }

    /// Jobs keep coming: look around only once in a while.
    pub(super) fn housekeep_under_load(&mut self) {
        let now = Instant::now();
        let last = *self.housekeeping.last.get_or_insert(now);
        if now.duration_since(last) >= self.housekeeping.backlog.tick() {
            self.housekeep_now();
        }
    }

    fn housekeep_now(&mut self) {
        self.housekeeping.last = Some(Instant::now());
        if self.shared.awaits_space() {
            self.restore_ballast();
        }
        if let Err(failed) = self.trim_journal().and_then(|()| self.update_index()) {
            if !self.connection.is_autocommit() {
                // If even this fails, the next BEGIN does, too, and reports the reason.
                let _ = self.connection.execute_batch("ROLLBACK");
            }
            self.housekeeping.on_fold_rolled_back();
            self.housekeeping.overflow.clear();
            let error = failed.error();
            if !(matches!(error, StoreError::DiskFull { .. }) && self.release_ballast()) {
                self.shared.commit_failed(&error);
            }
        }
    }

    fn trim_journal(&mut self) -> Result<(), CommitFailure> {
        self.select_due();
        let needed = self.first_needed_row();
        let from = self.housekeeping.deleted_below;
        let below = needed.min(from + DELETE_ROWS);
        if below < needed {
            self.housekeeping.backlog = HousekeepingBacklog::Remaining;
        }
        if self.housekeeping.overflow.is_empty() && below <= from {
            return Ok(());
        }
        self.begin(Durability::Process)?;
        self.check_ownership()?;
        self.fold_overflow(RingRetention::Newest)?;
        if below > from {
            self.connection
                .prepare_cached("DELETE FROM journal WHERE id >= ?1 AND id < ?2")?
                .execute(params![from, below])?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.housekeeping.deleted_below = below.max(from);
        self.housekeeping.on_fold_committed(&self.shared);
        Ok(())
    }

    /// Texts that wait for the index, some of them.
    fn update_index(&mut self) -> Result<(), CommitFailure> {
        if self.housekeeping.index == IndexState::Complete {
            return Ok(());
        }
        if search::index_state(&self.connection)? == IndexState::Stale {
            self.begin(Durability::Process)?;
            self.check_ownership()?;
            self.housekeeping.index = search::index(&self.connection, INDEX_BATCH_BYTES)?;
            self.connection.prepare_cached("COMMIT")?.execute([])?;
        } else {
            self.housekeeping.index = IndexState::Complete;
        }
        match self.housekeeping.index {
            IndexState::Complete => self.housekeeping.checkpoint = CheckpointState::Due,
            IndexState::Stale => self.housekeeping.backlog = HousekeepingBacklog::Remaining,
        }
        Ok(())
    }

    /// Turns that have ended, rest, or hold too much back.
    fn select_due(&mut self) {
        let idle = self.shared.settings.ring_idle;
        let oldest_row = self.next_row - JOURNAL_LAG_ROWS_MAX;
        let (mut bytes, mut backlog) = (0, HousekeepingBacklog::None);
        let due = self.housekeeping.unfolded.values().filter(|live| {
            let ring = live.ring();
            let is_idle = ring.last_append().is_some_and(|last_append| last_append.elapsed() >= idle);
            let holds_back = ring.first_row().is_some_and(|row| row < oldest_row);
            let is_due = is_idle || holds_back || live.progress.borrow().ended;
            if is_due && bytes >= FOLD_BYTES {
                backlog = HousekeepingBacklog::Remaining;
                return false;
            }
            bytes += if is_due { ring.bytes() } else { 0 };
            is_due
        });
        let due: Vec<_> = due.map(|live| (live.n, live.clone())).collect();
        self.housekeeping.overflow.extend(due);
        self.housekeeping.backlog = backlog;
    }

    fn first_needed_row(&self) -> i64 {
        let rows = self.housekeeping.unfolded.values().filter_map(|live| live.ring().first_row());
        rows.min().unwrap_or(self.next_row)
    }

    /// Writes segments for turns that hold too much, inside the open transaction.
    pub(super) fn fold_overflow(&mut self, retention: RingRetention) -> Result<(), CommitFailure> {
        let max = self.shared.settings.ring_bytes_max;
        for (_, live) in std::mem::take(&mut self.housekeeping.overflow) {
            let runs: Vec<AppendedRun> = {
                let ring = live.ring();
                let is_busy = ring.bytes() > max && !live.progress.borrow().ended;
                ring.oldest_beyond(if is_busy && retention == RingRetention::Newest { max / 4 } else { 0 })
            };
            let Some(last) = runs.last() else { continue };
            let up_to = last.last_seq;
            let done = segment::fold(&self.connection, live.n, &runs);
            self.housekeeping.folding.push((live, up_to));
            done?;
        }
        Ok(())
    }

    /// Frees the ballast. False if there is none.
    pub(super) fn release_ballast(&mut self) -> bool {
        let released = std::fs::remove_file(self.shared.paths.sibling(".ballast")).is_ok();
        if released {
            self.shared.out_of_space();
        }
        released
    }

    fn restore_ballast(&mut self) {
        let settings = self.shared.settings;
        let wanted = settings.free_bytes_min.saturating_add(settings.ballast_bytes);
        let has_room = paths::free_bytes(&self.shared.paths).is_ok_and(|free| free >= wanted);
        if has_room && write_ballast(&self.shared.paths.sibling(".ballast"), settings.ballast_bytes).is_ok() {
            self.shared.space_recovered();
        }
    }

    /// The queue is closed: leaves as little as possible for the next start to do.
    pub(super) fn stop(mut self) {
        // Failures here are repaired by the recovery of the next start: the journal still has the records.
        let _ = self.close();
    }

    fn close(&mut self) -> Result<(), CommitFailure> {
        self.begin(Durability::Power)?;
        self.check_ownership()?;
        self.housekeeping.overflow = self.housekeeping.unfolded.clone();
        self.fold_overflow(RingRetention::Nothing)?;
        self.connection.execute_batch("DELETE FROM journal")?;
        self.connection.execute(
            "UPDATE owner SET closed_at = ?2 WHERE generation = ?1",
            [self.shared.generation, super::now_ms()],
        )?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        self.housekeeping.on_fold_committed(&self.shared);
        Ok(())
    }
}

/// Writes a file of `bytes` bytes, so that space can be freed when the disk is full. Does nothing for 0.
pub(super) fn write_ballast(path: &Path, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let file = File::options().write(true).create(true).truncate(false).open(path)?;
    if file.metadata()?.len() == bytes {
        return Ok(());
    }
    file.set_len(0)?;
    reserve(file, bytes)
}

#[cfg(target_os = "linux")]
fn reserve(file: File, bytes: u64) -> io::Result<()> {
    match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP) => fill(file, bytes),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn reserve(file: File, bytes: u64) -> io::Result<()> {
    fill(file, bytes)
}

fn fill(mut file: File, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all(&zeros[..part])?;
        left -= part as u64;
    }
    Ok(())
}
