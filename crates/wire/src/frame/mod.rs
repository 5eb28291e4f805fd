//! Bytes to payloads, for any cut of the bytes.

mod event_stream;

pub use event_stream::{EventStreamFrame, EventStreamFramer, EventStreamItem};
