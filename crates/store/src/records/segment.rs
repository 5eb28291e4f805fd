//! Records of one turn in a few blobs: read from a number on, and cut anew.

use super::frame::{self, Damaged, Records};
use crate::log::Record;
use bytes::Bytes;

/// Most bytes of one segment that merging writes; of several read at once. 1 MiB.
pub(crate) const BYTES: usize = 1 << 20;

/// What is behind a number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    Records(Vec<Record>),
    /// The number is inside a run of merged records, so there is nothing exactly behind it.
    InsideMerged,
}

/// What is given at once, in bytes of records: a viewer that takes nothing holds no more than this.
const BATCH_BYTES: usize = 64 << 10;

/// Takes records behind a number out of segments that come in order.
pub(crate) struct Gather {
    after: u64,
    records_max: usize,
    bytes: usize,
    found_bytes: usize,
    found: Vec<Record>,
    inside_merged: bool,
}

/// Whether another segment is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum More {
    Wanted,
    Enough,
}

impl Gather {
    pub fn new(after: u64, records_max: usize) -> Self {
        Self { after, records_max, bytes: 0, found_bytes: 0, found: Vec::new(), inside_merged: false }
    }

    /// Takes what is wanted out of a segment.
    pub fn take(&mut self, first_seq: u64, data: Bytes) -> Result<More, Damaged> {
        self.bytes += data.len();
        let mut records = Records::new(data, first_seq);
        loop {
            let before = records.before();
            let Some(record) = records.next() else { break };
            let record = record?;
            if record.seq <= self.after {
                continue;
            }
            if self.found.is_empty() && self.after > before {
                self.inside_merged = true;
                return Ok(More::Enough);
            }
            if self.found.len() >= self.records_max || self.found_bytes >= BATCH_BYTES {
                return Ok(More::Enough);
            }
            self.found_bytes += record.payload.len();
            self.found.push(record);
        }
        Ok(if self.bytes >= BYTES { More::Enough } else { More::Wanted })
    }

    pub fn done(self) -> Behind {
        if self.inside_merged {
            return Behind::InsideMerged;
        }
        // Records are slices of their segment: whoever keeps a few of them would keep all of it.
        let few = self.found_bytes < self.bytes / 2;
        Behind::Records(if few { on_their_own(self.found, self.found_bytes) } else { self.found })
    }
}

/// The same records in a place of their own.
fn on_their_own(mut records: Vec<Record>, bytes: usize) -> Vec<Record> {
    let mut place = Vec::with_capacity(bytes);
    records.iter().for_each(|record| place.extend_from_slice(&record.payload));
    let mut rest = Bytes::from(place);
    for record in &mut records {
        record.payload = rest.split_to(record.payload.len());
    }
    records
}

/// All records of a turn as sealed segments: first number, last number, blob. The first begins at 1.
pub(crate) fn parts(records: &[Record]) -> Vec<(u64, u64, Vec<u8>)> {
    let mut parts = Vec::new();
    let mut before = 0;
    let mut rest = records;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest
            .iter()
            .take_while(|record| {
                bytes += record.payload.len();
                bytes <= BYTES
            })
            .count()
            .max(1);
        let (part, behind) = rest.split_at(fits);
        let run = frame::run_behind(part, before);
        let last = part.last().map_or(before, |record| record.seq);
        parts.push((before + 1, last, sealed([&run])));
        before = last;
        rest = behind;
    }
    parts
}

/// Runs that follow each other as one sealed blob.
pub(crate) fn sealed<'a>(runs: impl IntoIterator<Item = &'a Bytes> + Clone) -> Vec<u8> {
    let mut blob = Vec::with_capacity(frame::SEAL + runs.clone().into_iter().map(Bytes::len).sum::<usize>());
    blob.extend_from_slice(&[0; frame::SEAL]);
    runs.into_iter().for_each(|run| blob.extend_from_slice(run));
    frame::seal(&mut blob);
    blob
}
