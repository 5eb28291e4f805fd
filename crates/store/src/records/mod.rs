//! Records as bytes, for every persistent store: in memory for viewers, in a table for late readers.

pub(crate) mod frame;
mod live;
mod reader;
mod ring;
mod run;
mod segment;

pub(crate) use frame::JournalChunk;
pub(crate) use live::{LiveTurn, LogRow, LogState, append_to_ended, lock};
pub(crate) use reader::{SegmentStore, TurnReader, TurnTail};
pub(crate) use ring::{AppendedRun, TurnProgress};
pub(crate) use run::{EncodedRun, encode_batch};
pub(crate) use segment::{
    CollectStatus, RecordCollector, SEGMENT_BYTES_MAX, SegmentRead, encode_segment, split_segments,
};
