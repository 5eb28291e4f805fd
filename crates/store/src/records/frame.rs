//! Encoding of records: compact and cheap.
//!
//! - A **run** is a sequence of records of one turn. A record is a byte of flags, then what the flags
//!   announce: how many numbers were skipped before it (merged deltas), its kind unless it equals the
//!   previous one, and always the length of the payload and the payload. Numbers are LEB128.
//! - A **chunk** of the journal is a run with its turn, epoch and numbers.
//! - A **sealed** blob begins with the CRC-32 of the rest: SQLite detects torn pages, but not flipped bits.

use crate::log::{Durability, LogRecord};
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::OnceLock;

const FLAG_POWER: u8 = 1;
const FLAG_SAME_KIND: u8 = 2;
const FLAG_SKIPPED: u8 = 4;

/// The bytes read are not the bytes written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("records on the disk are damaged")]
pub(crate) struct CorruptRecords;

/// Encodes records as a run; the number of the first one is stored elsewhere.
pub(crate) fn encode_run(records: &[LogRecord]) -> Bytes {
    encode_run_after(records, records.first().map_or(0, |first| first.seq.saturating_sub(1)))
}

/// Encodes records as a run whose numbers begin after `seq`, even if the first record's is a later one.
pub(crate) fn encode_run_after(records: &[LogRecord], mut seq: u64) -> Bytes {
    let size: usize = records.iter().map(|record| record.payload.len() + record.kind.len() + 8).sum();
    let mut out = Vec::with_capacity(size);
    let mut kind: Option<&str> = None;
    for record in records {
        let skipped = record.seq.saturating_sub(seq.saturating_add(1));
        let same_kind = kind == Some(&*record.kind);
        let mut flags = 0;
        if record.durability == Durability::Power {
            flags |= FLAG_POWER;
        }
        if same_kind {
            flags |= FLAG_SAME_KIND;
        }
        if skipped > 0 {
            flags |= FLAG_SKIPPED;
        }
        out.push(flags);
        if skipped > 0 {
            write_varint(&mut out, skipped);
        }
        if !same_kind {
            write_varint(&mut out, record.kind.len() as u64);
            out.extend_from_slice(record.kind.as_bytes());
        }
        write_varint(&mut out, record.payload.len() as u64);
        out.extend_from_slice(&record.payload);
        (seq, kind) = (record.seq, Some(&*record.kind));
    }
    Bytes::from(out)
}

/// Reads a run, or several in sequence. Payloads are slices of it: nothing is copied.
pub(crate) struct RunDecoder {
    run: Bytes,
    offset: usize,
    /// Number of the record before.
    seq: u64,
    kind: Cow<'static, str>,
}

impl RunDecoder {
    /// The run's first record, or the first merged into it, has the number `first_seq`.
    pub(crate) fn new(run: Bytes, first_seq: u64) -> Self {
        Self { run, offset: 0, seq: first_seq.saturating_sub(1), kind: Cow::Borrowed("") }
    }

    /// Number of the record before the next one.
    pub(crate) fn previous_seq(&self) -> u64 {
        self.seq
    }

    fn read_record(&mut self) -> Result<LogRecord, CorruptRecords> {
        let flags = *self.run.get(self.offset).ok_or(CorruptRecords)?;
        self.offset += 1;
        let skipped = if flags & FLAG_SKIPPED == 0 { 0 } else { self.read_varint()? };
        if flags & FLAG_SAME_KIND == 0 {
            let kind = self.read_bytes()?;
            let kind = std::str::from_utf8(&kind).map_err(|_| CorruptRecords)?;
            if self.kind != kind {
                self.kind = intern_kind(kind);
            }
        }
        let payload = self.read_bytes()?;
        let step = skipped.checked_add(1).ok_or(CorruptRecords)?;
        self.seq = self.seq.checked_add(step).ok_or(CorruptRecords)?;
        let durability = if flags & FLAG_POWER == 0 { Durability::Process } else { Durability::Power };
        Ok(LogRecord { seq: self.seq, kind: self.kind.clone(), durability, payload })
    }

    fn read_varint(&mut self) -> Result<u64, CorruptRecords> {
        decode_varint(&self.run, &mut self.offset)
    }

    fn read_bytes(&mut self) -> Result<Bytes, CorruptRecords> {
        let length = usize::try_from(self.read_varint()?).map_err(|_| CorruptRecords)?;
        let end =
            self.offset.checked_add(length).filter(|end| *end <= self.run.len()).ok_or(CorruptRecords)?;
        let piece = self.run.slice(self.offset..end);
        self.offset = end;
        Ok(piece)
    }
}

impl Iterator for RunDecoder {
    type Item = Result<LogRecord, CorruptRecords>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.run.len() {
            return None;
        }
        let record = self.read_record();
        if record.is_err() {
            self.offset = self.run.len();
        }
        Some(record)
    }
}

/// Kinds come from a small vocabulary: each is stored once for the life of the process, and a record points
/// at it. Kinds after the first [`KINDS_MAX`] are copied.
fn intern_kind(kind: &str) -> Cow<'static, str> {
    const KINDS_MAX: usize = 128;
    const KIND_BYTES_MAX: usize = 64;
    static KINDS: [OnceLock<&'static str>; KINDS_MAX] = [const { OnceLock::new() }; KINDS_MAX];
    if kind.len() > KIND_BYTES_MAX {
        return Cow::Owned(kind.to_owned());
    }
    for slot in &KINDS {
        let interned = slot.get_or_init(|| String::leak(kind.to_owned()));
        if *interned == kind {
            return Cow::Borrowed(interned);
        }
    }
    Cow::Owned(kind.to_owned())
}

/// A part of one commit: a run of one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JournalChunk {
    /// The turn's number in the database.
    pub turn_n: i64,
    pub epoch: u64,
    pub first_seq: u64,
    pub last_seq: u64,
    pub run: Bytes,
}

impl JournalChunk {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for value in [self.turn_n as u64, self.epoch, self.first_seq, self.last_seq, self.run.len() as u64] {
            write_varint(out, value);
        }
        out.extend_from_slice(&self.run);
    }

    /// All chunks of a journal row, in order.
    pub(crate) fn read_all(row: &Bytes) -> Result<Vec<Self>, CorruptRecords> {
        let mut chunks = Vec::new();
        let mut offset = 0;
        while offset < row.len() {
            let mut next = || decode_varint(row, &mut offset);
            let (n, epoch, first_seq, last_seq) = (next()?, next()?, next()?, next()?);
            let length = usize::try_from(next()?).map_err(|_| CorruptRecords)?;
            let end = offset.checked_add(length).filter(|end| *end <= row.len()).ok_or(CorruptRecords)?;
            chunks.push(Self { turn_n: n as i64, epoch, first_seq, last_seq, run: row.slice(offset..end) });
            offset = end;
        }
        Ok(chunks)
    }
}

/// Room for the checksum at the head of a blob.
pub(crate) const CHECKSUM_BYTES: usize = 4;

/// Fills in the checksum of a blob that was begun with [`CHECKSUM_BYTES`] bytes of anything.
pub(crate) fn write_checksum(blob: &mut [u8]) {
    if let Some((head, rest)) = blob.split_first_chunk_mut::<CHECKSUM_BYTES>() {
        *head = crc32fast::hash(rest).to_le_bytes();
    }
}

/// The blob without its checksum, if that is right.
pub(crate) fn verify_checksum(blob: Vec<u8>) -> Result<Bytes, CorruptRecords> {
    match blob.split_first_chunk::<CHECKSUM_BYTES>() {
        Some((head, rest)) if u32::from_le_bytes(*head) == crc32fast::hash(rest) => {
            Ok(Bytes::from(blob).slice(CHECKSUM_BYTES..))
        }
        _ => Err(CorruptRecords),
    }
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn decode_varint(bytes: &[u8], offset: &mut usize) -> Result<u64, CorruptRecords> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*offset).ok_or(CorruptRecords)?;
        *offset += 1;
        let bits = u64::from(byte & 0x7F);
        if shift == 63 && bits > 1 {
            return Err(CorruptRecords);
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(CorruptRecords)
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
        fn records_round_trip_and_a_flipped_bit_is_detected(
            parts in proptest::collection::vec(record(), 1..20),
            cut in 0usize..20,
            flip in any::<proptest::sample::Index>(),
        ) {
            let mut seq = 0;
            let records: Vec<LogRecord> = parts
                .into_iter()
                .map(|(skip, kind, power, payload)| {
                    seq += 1 + if seq == 0 { 0 } else { skip };
                    let durability = if power { Durability::Power } else { Durability::Process };
                    LogRecord::new(seq, kind, durability, payload)
                })
                .collect();
            let read: Result<Vec<_>, _> = RunDecoder::new(encode_run(&records), 1).collect();
            prop_assert_eq!(&read.unwrap(), &records);

            // Two chunks in one sealed row, and their runs joined.
            let (head, tail) = records.split_at(cut.min(records.len()));
            let chunk = |part: &[LogRecord]| part.first().map(|first| JournalChunk {
                turn_n: i64::MAX,
                epoch: u64::MAX,
                first_seq: first.seq,
                last_seq: part[part.len() - 1].seq,
                run: encode_run(part),
            });
            let chunks: Vec<JournalChunk> = [chunk(head), chunk(tail)].into_iter().flatten().collect();
            let mut row = vec![0; CHECKSUM_BYTES];
            chunks.iter().for_each(|chunk| chunk.write(&mut row));
            write_checksum(&mut row);
            let opened = verify_checksum(row.clone()).unwrap();
            prop_assert_eq!(JournalChunk::read_all(&opened).unwrap(), chunks);

            let bit = flip.index(row.len() * 8);
            row[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(verify_checksum(row), Err(CorruptRecords));
        }

        #[test]
        fn arbitrary_bytes_never_panic_or_loop_the_decoder(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let bytes = Bytes::from(bytes);
            prop_assert!(RunDecoder::new(bytes.clone(), u64::MAX).count() <= bytes.len() + 1);
            let _ = JournalChunk::read_all(&bytes);
        }
    }
}
