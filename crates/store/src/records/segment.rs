//! Records of one turn in a few blobs: read from a number on, and rewritten in new sizes.

use super::frame::{self, CorruptRecords, RunDecoder};
use crate::log::LogRecord;
use bytes::Bytes;

/// Limit in bytes of one segment that merging writes, and of several that are read together. 1 MiB.
pub(crate) const SEGMENT_BYTES_MAX: usize = 1 << 20;

/// Records that follow a number.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SegmentRead {
    Records(Vec<LogRecord>),
    /// The number is inside a run of merged records, so no record begins exactly after it.
    InsideMerged,
}

/// Bytes of records returned at once: a viewer that stalls holds no more than this.
const READ_BYTES_MAX: usize = 64 << 10;

/// Collects records after a number from segments that come in order.
pub(crate) struct RecordCollector {
    after: u64,
    records_max: usize,
    bytes: usize,
    record_bytes: usize,
    records: Vec<LogRecord>,
    inside_merged: bool,
}

/// Asks for another segment, or has enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectStatus {
    NeedsMore,
    Done,
}

impl RecordCollector {
    pub(crate) fn new(after: u64, records_max: usize) -> Self {
        Self { after, records_max, bytes: 0, record_bytes: 0, records: Vec::new(), inside_merged: false }
    }

    /// Adds the wanted records of a segment.
    pub(crate) fn push_segment(
        &mut self,
        first_seq: u64,
        data: Bytes,
    ) -> Result<CollectStatus, CorruptRecords> {
        self.bytes += data.len();
        let mut records = RunDecoder::new(data, first_seq);
        loop {
            let before = records.previous_seq();
            let Some(record) = records.next() else { break };
            let record = record?;
            if record.seq <= self.after {
                continue;
            }
            if self.records.is_empty() && self.after > before {
                self.inside_merged = true;
                return Ok(CollectStatus::Done);
            }
            if self.records.len() >= self.records_max || self.record_bytes >= READ_BYTES_MAX {
                return Ok(CollectStatus::Done);
            }
            self.record_bytes += record.payload.len();
            self.records.push(record);
        }
        Ok(if self.bytes >= SEGMENT_BYTES_MAX { CollectStatus::Done } else { CollectStatus::NeedsMore })
    }

    pub(crate) fn finish(self) -> SegmentRead {
        if self.inside_merged {
            return SegmentRead::InsideMerged;
        }
        // Records are slices of their segment: a reader that holds a few of them would hold all of it.
        let is_sparse = self.record_bytes < self.bytes / 2;
        SegmentRead::Records(if is_sparse {
            detach_payloads(self.records, self.record_bytes)
        } else {
            self.records
        })
    }
}

/// The same records in a separate buffer.
fn detach_payloads(mut records: Vec<LogRecord>, bytes: usize) -> Vec<LogRecord> {
    let mut buffer = Vec::with_capacity(bytes);
    records.iter().for_each(|record| buffer.extend_from_slice(&record.payload));
    let mut rest = Bytes::from(buffer);
    for record in &mut records {
        record.payload = rest.split_to(record.payload.len());
    }
    records
}

/// All records of a turn as sealed segments: first number, last number, blob. The first begins at 1.
pub(crate) fn split_segments(records: &[LogRecord]) -> Vec<(u64, u64, Vec<u8>)> {
    let mut parts = Vec::new();
    let mut before = 0;
    let mut rest = records;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest
            .iter()
            .take_while(|record| {
                bytes += record.payload.len();
                bytes <= SEGMENT_BYTES_MAX
            })
            .count()
            .max(1);
        let (part, remaining) = rest.split_at(fits);
        let run = frame::encode_run_after(part, before);
        let last = part.last().map_or(before, |record| record.seq);
        parts.push((before + 1, last, encode_segment([&run])));
        before = last;
        rest = remaining;
    }
    parts
}

/// Runs that follow each other as one sealed blob.
pub(crate) fn encode_segment<'a>(runs: impl IntoIterator<Item = &'a Bytes> + Clone) -> Vec<u8> {
    let mut blob =
        Vec::with_capacity(frame::CHECKSUM_BYTES + runs.clone().into_iter().map(Bytes::len).sum::<usize>());
    blob.extend_from_slice(&[0; frame::CHECKSUM_BYTES]);
    runs.into_iter().for_each(|run| blob.extend_from_slice(run));
    frame::write_checksum(&mut blob);
    blob
}
