//! Bytes to payloads, for any cut of the bytes.

mod event_stream;
mod json_array;
mod lines;
mod sse;

pub use event_stream::{EventStreamFrame, EventStreamFramer, EventStreamItem};
pub use json_array::{ArrayEnd, JsonArrayFramer};
pub use lines::{LineFramer, LineItem};
pub use sse::{SseEvent, SseFramer, SseItem};
