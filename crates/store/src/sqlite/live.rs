//! Turns that have not ended: what the writer knows of each, and their latest records for viewers.

use super::frame::Chunk;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// A turn that is in memory: it has not ended, or only just now.
pub(super) struct Live {
    pub id: String,
    /// Its number in the database.
    pub n: i64,
    writing: Mutex<Writing>,
    ring: Mutex<Ring>,
    /// What viewers wait for.
    pub progress: watch::Sender<Progress>,
}

/// How far a turn is, for whoever reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub last_seq: u64,
    pub ended: bool,
}

/// How far a turn is, for the writer thread; nobody else changes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing {
    pub epoch: u64,
    pub last_seq: u64,
    pub ended: bool,
}

/// The epoch of a turn that has been deleted: no claim has it.
pub(super) const FORGOTTEN: u64 = 0;

/// Records that are in the journal and in no segment yet, newest last. Viewers read them from here.
#[derive(Default)]
pub(super) struct Ring {
    pieces: VecDeque<Piece>,
    bytes: usize,
    touched: Option<Instant>,
}

/// What one append wrote.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub first_seq: u64,
    pub last_seq: u64,
    /// Row of the journal that holds it.
    pub row: i64,
    pub run: Bytes,
}

impl Piece {
    pub fn new(chunk: Chunk, row: i64) -> Self {
        Self { first_seq: chunk.first_seq, last_seq: chunk.last_seq, row, run: chunk.run }
    }

    /// What it costs to keep.
    fn bytes(&self) -> usize {
        self.run.len() + size_of::<Self>()
    }
}

impl Live {
    pub fn new(id: String, n: i64, epoch: u64, last_seq: u64) -> Self {
        Self {
            id,
            n,
            writing: Mutex::new(Writing { epoch, last_seq, ended: false }),
            ring: Mutex::default(),
            progress: watch::Sender::new(Progress { last_seq, ended: false }),
        }
    }

    pub fn writing(&self) -> MutexGuard<'_, Writing> {
        lock(&self.writing)
    }

    pub fn ring(&self) -> MutexGuard<'_, Ring> {
        lock(&self.ring)
    }
}

impl Ring {
    /// Keeps a piece; whether it is the only one.
    pub fn push(&mut self, piece: Piece, now: Instant) -> bool {
        self.bytes += piece.bytes();
        self.touched = Some(now);
        self.pieces.push_back(piece);
        self.pieces.len() == 1
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first row of the journal that is still needed for this turn.
    pub fn first_row(&self) -> Option<i64> {
        self.pieces.front().map(|piece| piece.row)
    }

    /// When something was last appended.
    pub fn touched(&self) -> Option<Instant> {
        self.touched
    }

    /// The oldest pieces, so many that those left have at most `left` bytes.
    pub fn oldest(&self, left: usize) -> Vec<Piece> {
        let mut bytes = self.bytes;
        let too_many = |piece: &&Piece| {
            let takes = bytes > left;
            bytes -= piece.bytes();
            takes
        };
        self.pieces.iter().take_while(too_many).cloned().collect()
    }

    /// Lets go of everything up to a number: it can be read elsewhere.
    pub fn forget(&mut self, up_to: u64) {
        while self.pieces.front().is_some_and(|piece| piece.last_seq <= up_to) {
            if let Some(piece) = self.pieces.pop_front() {
                self.bytes -= piece.bytes();
            }
        }
        if self.pieces.is_empty() {
            self.pieces = VecDeque::new();
        }
    }

    /// Pieces behind `after`, at most so many records or a little more; `None` if older ones are needed first.
    pub fn behind(&self, after: u64, records_max: usize) -> Option<Vec<Piece>> {
        let first = self.pieces.front()?.first_seq;
        if after.saturating_add(1) < first {
            return None;
        }
        let from = self.pieces.partition_point(|piece| piece.last_seq <= after);
        let enough = after.saturating_add(u64::try_from(records_max).unwrap_or(u64::MAX));
        let wanted = self.pieces.range(from..).take_while(|piece| piece.first_seq <= enough);
        Some(wanted.cloned().collect())
    }
}

/// All turns in memory, by id.
#[derive(Default)]
pub(super) struct Lives(Mutex<HashMap<String, Arc<Live>>>);

impl Lives {
    pub fn get(&self, id: &str) -> Option<Arc<Live>> {
        lock(&self.0).get(id).cloned()
    }

    pub fn add(&self, live: Live) -> Arc<Live> {
        let live = Arc::new(live);
        lock(&self.0).insert(live.id.clone(), live.clone());
        live
    }

    /// Takes a turn out, unless another one has come under its id.
    pub fn remove(&self, live: &Arc<Live>) {
        let mut lives = lock(&self.0);
        if lives.get(&live.id).is_some_and(|there| Arc::ptr_eq(there, live)) {
            lives.remove(&live.id);
        }
    }

    /// Ids of those that have not ended.
    pub fn open(&self) -> Vec<String> {
        let lives = lock(&self.0);
        let mut open: Vec<_> =
            lives.values().filter(|live| !live.progress.borrow().ended).map(|live| live.id.clone()).collect();
        open.sort();
        open
    }

    pub fn count(&self) -> usize {
        lock(&self.0).len()
    }

    pub fn ring_bytes(&self) -> usize {
        lock(&self.0).values().map(|live| live.ring().bytes()).sum()
    }
}

/// A panic of another thread cannot leave these half-written: every change is a push, an insert or one value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(first_seq: u64, last_seq: u64) -> Piece {
        Piece { first_seq, last_seq, row: first_seq as i64, run: Bytes::from(vec![0; 100]) }
    }

    #[test]
    fn a_ring_gives_what_it_has_and_says_when_older_records_are_needed() {
        let mut ring = Ring::default();
        assert!(ring.behind(0, 9).is_none(), "an empty ring knows nothing");
        for (first, last) in [(5, 6), (7, 7), (8, 12)] {
            ring.push(piece(first, last), Instant::now());
        }
        let seen = |after, max| {
            ring.behind(after, max)
                .map(|pieces| pieces.iter().map(|piece| piece.first_seq).collect::<Vec<_>>())
        };
        assert_eq!(seen(3, 9), None);
        assert_eq!(seen(4, 9), Some(vec![5, 7, 8]));
        assert_eq!(seen(5, 1), Some(vec![5]));
        assert_eq!(seen(6, 99), Some(vec![7, 8]));
        assert_eq!(seen(12, 9), Some(vec![]));
        assert_eq!(seen(u64::MAX, 9), Some(vec![]));
    }

    // R: R2 `ring_bytes_max`
    #[test]
    fn the_oldest_leave_until_what_is_left_is_small_enough() {
        let mut ring = Ring::default();
        let first: Vec<bool> = (1..=4).map(|seq| ring.push(piece(seq, seq), Instant::now())).collect();
        assert_eq!(first, [true, false, false, false]);
        let one = ring.bytes() / 4;
        for (left, expected) in [(usize::MAX, 0), (4 * one, 0), (4 * one - 1, 1), (2 * one, 2), (0, 4)] {
            assert_eq!(ring.oldest(left).len(), expected, "{left} bytes");
        }
        ring.forget(2);
        assert_eq!((ring.bytes(), ring.first_row()), (2 * one, Some(3)));
        ring.forget(9);
        assert_eq!((ring.bytes(), ring.first_row()), (0, None));
    }
}
