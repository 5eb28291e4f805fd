//! How records are written down: as few bytes and as little work for each as will do.
//!
//! - A **run** is records of one turn, one behind the other. A record is a byte of flags, then what the flags announce:
//!   how many numbers were skipped in front of it (merged deltas), its kind unless it is the kind before, and always
//!   the length of the payload and the payload. Numbers are LEB128.
//! - A **chunk** of the journal is a run with the turn, the epoch and the numbers it is for.
//! - A **sealed** blob begins with the CRC-32 of the rest: SQLite finds torn pages, not turned bits.

use crate::log::{Durability, Record};
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::OnceLock;

const POWER: u8 = 1;
const SAME_KIND: u8 = 2;
const SKIPS: u8 = 4;

/// What was read is not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records on the disk are damaged")]
pub(crate) struct Damaged;

/// Records as a run; the first one's number is kept elsewhere.
pub(crate) fn run(records: &[Record]) -> Bytes {
    run_behind(records, records.first().map_or(0, |first| first.seq.saturating_sub(1)))
}

/// Records as a run whose numbers begin behind `seq`, even if the first record's is a later one.
pub(crate) fn run_behind(records: &[Record], mut seq: u64) -> Bytes {
    let size: usize = records.iter().map(|record| record.payload.len() + record.kind.len() + 8).sum();
    let mut out = Vec::with_capacity(size);
    let mut kind: Option<&str> = None;
    for record in records {
        let skipped = record.seq.saturating_sub(seq.saturating_add(1));
        let same_kind = kind == Some(&*record.kind);
        let mut flags = 0;
        if record.durability == Durability::Power {
            flags |= POWER;
        }
        if same_kind {
            flags |= SAME_KIND;
        }
        if skipped > 0 {
            flags |= SKIPS;
        }
        out.push(flags);
        if skipped > 0 {
            number(&mut out, skipped);
        }
        if !same_kind {
            number(&mut out, record.kind.len() as u64);
            out.extend_from_slice(record.kind.as_bytes());
        }
        number(&mut out, record.payload.len() as u64);
        out.extend_from_slice(&record.payload);
        (seq, kind) = (record.seq, Some(&*record.kind));
    }
    Bytes::from(out)
}

/// Reads a run, or several behind each other. Payloads are slices of it: nothing is copied.
pub(crate) struct Records {
    run: Bytes,
    at: usize,
    /// Number of the record before.
    seq: u64,
    kind: Cow<'static, str>,
}

impl Records {
    /// The run's first record, or the first merged into it, has the number `first_seq`.
    pub fn new(run: Bytes, first_seq: u64) -> Self {
        Self { run, at: 0, seq: first_seq.saturating_sub(1), kind: Cow::Borrowed("") }
    }

    /// Number of the record before the next one.
    pub fn before(&self) -> u64 {
        self.seq
    }

    fn read(&mut self) -> Result<Record, Damaged> {
        let flags = *self.run.get(self.at).ok_or(Damaged)?;
        self.at += 1;
        let skipped = if flags & SKIPS == 0 { 0 } else { self.number()? };
        if flags & SAME_KIND == 0 {
            let kind = self.piece()?;
            let kind = std::str::from_utf8(&kind).map_err(|_| Damaged)?;
            if self.kind != kind {
                self.kind = known(kind);
            }
        }
        let payload = self.piece()?;
        let step = skipped.checked_add(1).ok_or(Damaged)?;
        self.seq = self.seq.checked_add(step).ok_or(Damaged)?;
        let durability = if flags & POWER == 0 { Durability::Process } else { Durability::Power };
        Ok(Record { seq: self.seq, kind: self.kind.clone(), durability, payload })
    }

    fn number(&mut self) -> Result<u64, Damaged> {
        read_number(&self.run, &mut self.at)
    }

    fn piece(&mut self) -> Result<Bytes, Damaged> {
        let length = usize::try_from(self.number()?).map_err(|_| Damaged)?;
        let end = self.at.checked_add(length).filter(|end| *end <= self.run.len()).ok_or(Damaged)?;
        let piece = self.run.slice(self.at..end);
        self.at = end;
        Ok(piece)
    }
}

impl Iterator for Records {
    type Item = Result<Record, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.run.len() {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.at = self.run.len();
        }
        Some(record)
    }
}

/// Kinds come from a small vocabulary: each is kept once for the life of the process, and a record points at it. What
/// comes after the first [`KINDS_MAX`] kinds is copied.
fn known(kind: &str) -> Cow<'static, str> {
    const KINDS_MAX: usize = 128;
    const KIND_BYTES_MAX: usize = 64;
    static KINDS: [OnceLock<&'static str>; KINDS_MAX] = [const { OnceLock::new() }; KINDS_MAX];
    if kind.len() > KIND_BYTES_MAX {
        return Cow::Owned(kind.to_owned());
    }
    for place in &KINDS {
        let known = place.get_or_init(|| String::leak(kind.to_owned()));
        if *known == kind {
            return Cow::Borrowed(known);
        }
    }
    Cow::Owned(kind.to_owned())
}

/// A part of one commit: a run of one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The turn's number in the database.
    pub n: i64,
    pub epoch: u64,
    pub first_seq: u64,
    pub last_seq: u64,
    pub run: Bytes,
}

impl Chunk {
    pub fn write(&self, out: &mut Vec<u8>) {
        for value in [self.n as u64, self.epoch, self.first_seq, self.last_seq, self.run.len() as u64] {
            number(out, value);
        }
        out.extend_from_slice(&self.run);
    }

    /// All chunks of a journal row, in order.
    pub fn read_all(row: &Bytes) -> Result<Vec<Self>, Damaged> {
        let mut chunks = Vec::new();
        let mut at = 0;
        while at < row.len() {
            let mut next = || read_number(row, &mut at);
            let (n, epoch, first_seq, last_seq) = (next()?, next()?, next()?, next()?);
            let length = usize::try_from(next()?).map_err(|_| Damaged)?;
            let end = at.checked_add(length).filter(|end| *end <= row.len()).ok_or(Damaged)?;
            chunks.push(Self { n: n as i64, epoch, first_seq, last_seq, run: row.slice(at..end) });
            at = end;
        }
        Ok(chunks)
    }
}

/// Room for the checksum at the head of a blob.
pub(crate) const SEAL: usize = 4;

/// Fills in the checksum of a blob that was begun with [`SEAL`] bytes of anything.
pub(crate) fn seal(blob: &mut [u8]) {
    if let Some((head, rest)) = blob.split_first_chunk_mut::<SEAL>() {
        *head = crc32fast::hash(rest).to_le_bytes();
    }
}

/// The blob without its checksum, if that is right.
pub(crate) fn unseal(blob: Vec<u8>) -> Result<Bytes, Damaged> {
    match blob.split_first_chunk::<SEAL>() {
        Some((head, rest)) if u32::from_le_bytes(*head) == crc32fast::hash(rest) => {
            Ok(Bytes::from(blob).slice(SEAL..))
        }
        _ => Err(Damaged),
    }
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_number(bytes: &[u8], at: &mut usize) -> Result<u64, Damaged> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(Damaged)?;
        *at += 1;
        let bits = u64::from(byte & 0x7F);
        if shift == 63 && bits > 1 {
            return Err(Damaged);
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record() -> impl Strategy<Value = (u64, String, bool, Vec<u8>)> {
        (0u64..4, "[a-z_]{0,70}", any::<bool>(), proptest::collection::vec(any::<u8>(), 0..300))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_was_written_is_read_and_a_turned_bit_is_found(
            parts in proptest::collection::vec(record(), 1..20),
            cut in 0usize..20,
            flip in any::<proptest::sample::Index>(),
        ) {
            let mut seq = 0;
            let records: Vec<Record> = parts
                .into_iter()
                .map(|(skip, kind, power, payload)| {
                    seq += 1 + if seq == 0 { 0 } else { skip };
                    let durability = if power { Durability::Power } else { Durability::Process };
                    Record::new(seq, kind, durability, payload)
                })
                .collect();
            let read: Result<Vec<_>, _> = Records::new(run(&records), 1).collect();
            prop_assert_eq!(&read.unwrap(), &records);

            // Two chunks in one sealed row, and their runs joined.
            let (head, tail) = records.split_at(cut.min(records.len()));
            let chunk = |part: &[Record]| part.first().map(|first| Chunk {
                n: i64::MAX,
                epoch: u64::MAX,
                first_seq: first.seq,
                last_seq: part[part.len() - 1].seq,
                run: run(part),
            });
            let chunks: Vec<Chunk> = [chunk(head), chunk(tail)].into_iter().flatten().collect();
            let mut row = vec![0; SEAL];
            chunks.iter().for_each(|chunk| chunk.write(&mut row));
            seal(&mut row);
            let opened = unseal(row.clone()).unwrap();
            prop_assert_eq!(Chunk::read_all(&opened).unwrap(), chunks);

            let bit = flip.index(row.len() * 8);
            row[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(unseal(row), Err(Damaged));
        }

        #[test]
        fn no_bytes_make_the_reader_panic_or_spin(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let bytes = Bytes::from(bytes);
            prop_assert!(Records::new(bytes.clone(), u64::MAX).count() <= bytes.len() + 1);
            let _ = Chunk::read_all(&bytes);
        }
    }
}
