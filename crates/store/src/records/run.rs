//! A batch of records in the form that is written.

use super::frame;
use crate::log::{LogError, LogRecord, STREAM_END};
use bytes::Bytes;

/// Records that follow each other, or the first that does not.
pub(crate) struct EncodedRun {
    pub first_seq: u64,
    pub last_seq: u64,
    pub ends: bool,
    pub bytes: Bytes,
    /// Contradiction inside the batch.
    pub fault: Option<LogError>,
}

/// Encodes the records of a batch as one run, or reports why they are invalid.
pub(crate) fn encode_batch(turn: &str, records: &[LogRecord]) -> Option<EncodedRun> {
    let first_seq = records.first()?.seq;
    let (mut ends, mut fault) = (false, None);
    for (expected, record) in (first_seq..).zip(records) {
        if ends {
            fault = Some(LogError::Ended { turn: turn.to_owned() });
            break;
        }
        if record.seq != expected {
            fault = Some(LogError::NonContiguous { turn: turn.to_owned(), expected, given: record.seq });
            break;
        }
        ends = record.kind == STREAM_END;
    }
    let last_seq = records.last()?.seq;
    let bytes = if fault.is_none() { frame::encode_run(records) } else { Bytes::new() };
    Some(EncodedRun { first_seq, last_seq, ends, bytes, fault })
}
