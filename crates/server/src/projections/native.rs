//! The native protocol over SSE: the event's JSON as it is in the log, framed.
//!
//! Frames end with LF only (`@ag-ui/client` 1.0.0 splits on `
//!
//! `), `id:` is the event's number, so that a browser's `EventSource` resumes automatically, and there is no
//! `[DONE]`: the last event is `stream_end`.

use serde_json::json;
use std::fmt::Write;
use std::time::Duration;
use throughline::AssistantMessage;
use throughline_engine::TurnId;
use throughline_store::LogRecord;

/// The first bytes of a stream, sent immediately so that proxies and clients see that it is open. `retry_ms`
/// is the delay before a browser reconnects.
pub(crate) fn stream_opening(retry_ms: u32) -> String {
    format!("retry: {retry_ms}\n: open\n\n")
}

/// Maximum number of bytes that [`event`] appends.
pub(crate) fn event_bytes(record: &LogRecord) -> usize {
    // Three names, three line ends and one more, and a number of up to 20 digits.
    const AROUND: usize = "id: \nevent: \ndata: \n\n".len() + 20;
    AROUND + record.kind.len() + record.payload.len()
}

/// Appends an event.
pub(crate) fn event(frame: &mut Vec<u8>, record: &LogRecord) {
    write_frame(frame, record.seq, &record.kind, &record.payload);
}

/// Appends a whole message that replaces the events up to its `seq`: `snapshot`, or `resync` for a viewer
/// that must discard its state. Its `id:` is the number to continue from.
pub fn snapshot(
    frame: &mut Vec<u8>,
    kind: SnapshotKind,
    message: &AssistantMessage,
) -> Result<(), serde_json::Error> {
    #[derive(serde::Serialize)]
    struct SnapshotBody<'a> {
        r#type: &'static str,
        turn_id: &'a str,
        last_seq: u64,
        message: &'a AssistantMessage,
    }
    let body = SnapshotBody {
        r#type: kind.name(),
        turn_id: message.turn_id.as_str(),
        last_seq: message.seq.0,
        message,
    };
    write_frame(frame, message.seq.0, kind.name(), &serde_json::to_vec(&body)?);
    Ok(())
}

/// A `waiting` event for one viewer while the store is unavailable. It has no number, since it is in no log.
pub fn store_unavailable(turn: &TurnId, now_ms: i64, unavailable_for: Duration) -> String {
    let why = format!("the store has not accepted a write for {} ms", unavailable_for.as_millis());
    json!({"type": "waiting", "turn_id": turn, "timestamp": now_ms, "reason": "store", "why": why})
        .to_string()
}

/// Appends a waiting event as a frame without `id:`, so that a browser resumes from the last event of the
/// log.
pub fn waiting(frame: &mut Vec<u8>, event: &str) {
    frame.extend_from_slice(format!("event: waiting\ndata: {event}\n\n").as_bytes());
}

/// Appends a sign of life.
pub(crate) fn heartbeat(frame: &mut Vec<u8>, now_ms: i64) {
    frame.extend_from_slice(format!(": hb {now_ms}\n\n").as_bytes());
}

/// Kind of the snapshot events, which are sent to one viewer and are not in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotKind {
    /// Requested by the viewer.
    Snapshot,
    /// The viewer's state disagrees with the log.
    Resync,
}

impl SnapshotKind {
    /// The event's `type`.
    pub fn name(self) -> &'static str {
        match self {
            SnapshotKind::Snapshot => "snapshot",
            SnapshotKind::Resync => "resync",
        }
    }
}

fn write_frame(frame: &mut Vec<u8>, id: u64, event: &str, data: &[u8]) {
    frame.reserve(event.len() + data.len() + 40);
    let mut head = String::with_capacity(event.len() + 40);
    // Writing to a string cannot fail.
    let _ = write!(head, "id: {id}\nevent: {event}\ndata: ");
    frame.extend_from_slice(head.as_bytes());
    frame.extend_from_slice(data);
    frame.extend_from_slice(b"\n\n");
}
