//! AWS event-stream frames (`application/vnd.amazon.eventstream`), for any cut of the bytes.
//!
//! ```text
//! [total u32][headers u32][crc32 of these 8 bytes][headers …][payload …][crc32 of everything before]
//! header: [name length u8][name][type u8][value]          all numbers big-endian
//! ```
//! Format: `docs.aws.amazon.com/transcribe/latest/dg/event-stream.html`. Two checksums guard a frame: the
//! first is checked before its lengths are used, the second before its content is shown. A wrong one ends the
//! reading, because the start of the next frame is then unknown.
//!
//! No frame under 16 MiB begins with anything but a zero byte, so a body whose first byte is `{`, `[`, `<` or white
//! space is not this format (a JSON or HTML error): look before pushing.

use crate::limits::DecodeLimits;
use crate::vocabulary::ProblemKind;

/// Bytes of both lengths.
const LENGTHS_BYTES: usize = 8;
/// Bytes of both lengths and their checksum.
const PRELUDE_BYTES: usize = LENGTHS_BYTES + CHECKSUM_BYTES;
const CHECKSUM_BYTES: usize = 4;

/// Cuts bytes into frames. Holds at most one frame, and never more than `event_bytes_max` of it.
#[derive(Debug)]
pub struct EventStreamFramer {
    event_bytes_max: usize,
    pending: Vec<u8>,
    /// Offset of the first pending byte, or of the next byte if none is pending.
    offset: u64,
    state: FramingState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FramingState {
    /// Frames are cut out.
    InSync,
    /// An error makes every later border unreliable: bytes are only counted.
    Lost,
}

/// One item of an event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventStreamItem<'a> {
    /// A frame whose checksums are right.
    Frame(EventStreamFrame<'a>),
    /// A problem of the frames.
    Problem {
        /// `BadChecksum`, `LimitReached` and an impossible length end the reading; `InvalidEvent` for headers that
        /// cannot be read skips one frame.
        kind: ProblemKind,
        /// Offset of the frame's first byte.
        offset: u64,
        /// Description of the fault.
        message: &'static str,
    },
}

/// One frame. Headers that are absent are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventStreamFrame<'a> {
    /// Offset of its first byte.
    pub offset: u64,
    /// `:message-type`: `event`, `exception` or `error`.
    pub message_type: &'a str,
    /// `:event-type` of an event: `contentBlockDelta`, `chunk`.
    pub event_type: &'a str,
    /// `:exception-type` of an exception, `:error-code` of an error.
    pub exception_type: &'a str,
    /// `:error-message` of an error, which has no payload.
    pub error_message: &'a str,
    /// Value of the header `:content-type`.
    pub content_type: &'a str,
    /// Raw payload.
    pub payload: &'a [u8],
}

impl EventStreamFrame<'_> {
    /// Does the upstream report a failure with it?
    pub fn is_exception(&self) -> bool {
        matches!(self.message_type, "exception" | "error") || !self.exception_type.is_empty()
    }
}

impl EventStreamFramer {
    /// A framer at offset 0.
    pub fn new(limits: &DecodeLimits) -> Self {
        Self {
            event_bytes_max: limits.event_bytes_max,
            pending: Vec::new(),
            offset: 0,
            state: FramingState::InSync,
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, mut bytes: &[u8], sink: &mut impl FnMut(EventStreamItem<'_>)) {
        while !bytes.is_empty() {
            if self.state == FramingState::Lost {
                self.offset += bytes.len() as u64;
                return;
            }
            if self.pending.is_empty() {
                // The whole frame may be in these bytes: then nothing is copied.
                match self.frame_length(bytes) {
                    Ok(Some(total)) if total <= bytes.len() => {
                        let (frame, rest) = bytes.split_at(total);
                        self.emit_frame(frame, sink);
                        bytes = rest;
                        continue;
                    }
                    Ok(_) => {}
                    Err(lost) => {
                        self.report_lost(lost, sink);
                        continue;
                    }
                }
            }
            bytes = self.fill_pending(bytes, sink);
        }
    }

    /// The bytes have ended. A half frame is reported; it is never shown.
    pub fn finish(&mut self, sink: &mut impl FnMut(EventStreamItem<'_>)) {
        if !self.pending.is_empty() {
            self.pending = Vec::new();
            self.report_lost((ProblemKind::InvalidEvent, "the stream ends inside a frame"), sink);
        }
    }

    /// Moves as much of `bytes` to the pending frame as it needs, and returns the rest.
    fn fill_pending<'b>(&mut self, bytes: &'b [u8], sink: &mut impl FnMut(EventStreamItem<'_>)) -> &'b [u8] {
        // A pending frame has been measured as soon as its prelude was there, so it cannot be found wrong here.
        let wanted = self.frame_length(&self.pending).ok().flatten().unwrap_or(PRELUDE_BYTES);
        let (taken, rest) = bytes.split_at(bytes.len().min(wanted.saturating_sub(self.pending.len())));
        self.pending.extend_from_slice(taken);
        match self.frame_length(&self.pending) {
            Ok(Some(total)) if total == self.pending.len() => {
                let mut frame = std::mem::take(&mut self.pending);
                self.emit_frame(&frame, sink);
                frame.clear();
                self.pending = frame;
            }
            Ok(_) => {}
            Err(lost) => {
                self.pending = Vec::new();
                self.report_lost(lost, sink);
            }
        }
        rest
    }

    /// Length of the frame that `bytes` begins with, once its prelude is there and its checksum is right.
    fn frame_length(&self, bytes: &[u8]) -> Result<Option<usize>, (ProblemKind, &'static str)> {
        let Some(prelude) = bytes.get(..PRELUDE_BYTES) else { return Ok(None) };
        if crc32fast::hash(&prelude[..LENGTHS_BYTES]) != number(&prelude[LENGTHS_BYTES..]) {
            return Err((ProblemKind::BadChecksum, "the prelude checksum of a frame does not match"));
        }
        let (total, headers) = (number(&prelude[..4]) as usize, number(&prelude[4..8]) as usize);
        if total > self.event_bytes_max {
            let limit = "event_bytes_max".to_owned();
            return Err((ProblemKind::LimitReached { limit }, "a frame exceeds the size limit"));
        }
        if total < PRELUDE_BYTES + CHECKSUM_BYTES || headers > total - PRELUDE_BYTES - CHECKSUM_BYTES {
            return Err((ProblemKind::InvalidEvent, "a frame is shorter than its prelude and headers"));
        }
        Ok(Some(total))
    }

    /// Shows a frame of the right length, if its checksum is right.
    fn emit_frame(&mut self, frame: &[u8], sink: &mut impl FnMut(EventStreamItem<'_>)) {
        let (content, checksum) = frame.split_at(frame.len() - CHECKSUM_BYTES);
        if crc32fast::hash(content) != number(checksum) {
            return self.report_lost(
                (ProblemKind::BadChecksum, "the message checksum of a frame does not match"),
                sink,
            );
        }
        let headers = number(&content[4..8]) as usize;
        let (headers, payload) = content[PRELUDE_BYTES..].split_at(headers);
        let offset = self.offset;
        match read_headers(headers) {
            Some(named) => sink(EventStreamItem::Frame(EventStreamFrame { offset, payload, ..named })),
            None => sink(EventStreamItem::Problem {
                kind: ProblemKind::InvalidEvent,
                offset,
                message: "the headers of a frame are invalid",
            }),
        }
        self.offset += frame.len() as u64;
    }

    fn report_lost(
        &mut self,
        (kind, what): (ProblemKind, &'static str),
        sink: &mut impl FnMut(EventStreamItem<'_>),
    ) {
        self.state = FramingState::Lost;
        sink(EventStreamItem::Problem { kind, offset: self.offset, message: what });
    }
}

/// The headers that matter; `None` if their bytes do not add up.
fn read_headers(mut bytes: &[u8]) -> Option<EventStreamFrame<'_>> {
    let mut frame = EventStreamFrame::default();
    while !bytes.is_empty() {
        let name_bytes = usize::from(take(&mut bytes, 1)?[0]);
        let name = take(&mut bytes, name_bytes)?;
        let value_bytes = match take(&mut bytes, 1)?[0] {
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            6 | 7 => {
                let length = take(&mut bytes, 2)?;
                usize::from(u16::from_be_bytes([length[0], length[1]]))
            }
            9 => 16,
            _ => return None,
        };
        let value = take(&mut bytes, value_bytes)?;
        let field = match name {
            b":message-type" => &mut frame.message_type,
            b":event-type" => &mut frame.event_type,
            b":exception-type" | b":error-code" => &mut frame.exception_type,
            b":error-message" => &mut frame.error_message,
            b":content-type" => &mut frame.content_type,
            _ => continue,
        };
        *field = std::str::from_utf8(value).ok()?;
    }
    Some(frame)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// Number of four bytes, big-endian.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header's value with its type number.
    enum Value<'a> {
        Text(&'a str),
        Raw(u8, &'a [u8]),
    }

    fn frame(headers: &[(&str, Value<'_>)], payload: &[u8]) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in headers {
            head.push(name.len() as u8);
            head.extend_from_slice(name.as_bytes());
            match value {
                Value::Text(text) => {
                    head.push(7);
                    head.extend_from_slice(&(text.len() as u16).to_be_bytes());
                    head.extend_from_slice(text.as_bytes());
                }
                Value::Raw(kind, bytes) => {
                    head.push(*kind);
                    head.extend_from_slice(bytes);
                }
            }
        }
        let total = PRELUDE_BYTES + head.len() + payload.len() + CHECKSUM_BYTES;
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(total as u32).to_be_bytes());
        bytes.extend_from_slice(&(head.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    fn event(name: &str, payload: &str) -> Vec<u8> {
        let headers = [(":event-type", Value::Text(name)), (":message-type", Value::Text("event"))];
        frame(&headers, payload.as_bytes())
    }

    /// One line for each item: `offset type/event/exception/error payload` or `offset PROBLEM`.
    fn read(pieces: &[&[u8]], event_bytes_max: usize) -> Vec<String> {
        let mut framer = EventStreamFramer::new(&DecodeLimits { event_bytes_max, ..DecodeLimits::default() });
        let mut lines = Vec::new();
        let mut sink = |item: EventStreamItem<'_>| {
            lines.push(match item {
                EventStreamItem::Frame(f) => {
                    let payload = String::from_utf8_lossy(f.payload);
                    let names = [f.message_type, f.event_type, f.exception_type, f.error_message].join("/");
                    format!("{} {names} {payload}", f.offset)
                }
                EventStreamItem::Problem { kind, offset, .. } => format!("{offset} {kind:?}"),
            });
        };
        for piece in pieces {
            framer.push(piece, &mut sink);
        }
        framer.finish(&mut sink);
        lines
    }

    #[track_caller]
    fn check(bytes: &[u8], expect: &[&str]) {
        let whole = read(&[bytes], 1 << 20);
        assert_eq!(whole, expect);
        for cut in 0..=bytes.len() {
            assert_eq!(read(&[&bytes[..cut], &bytes[cut..]], 1 << 20), expect, "cut at {cut}");
        }
        let singles: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&singles, 1 << 20), expect, "byte by byte");
    }

    // Quirk B1.
    #[test]
    fn frames_are_read_at_any_cut() {
        let bytes = [event("messageStart", "{}"), event("contentBlockDelta", r#"{"x":1}"#), event("end", "")]
            .concat();
        check(
            &bytes,
            &["0 event/messageStart// {}", "67 event/contentBlockDelta// {\"x\":1}", "144 event/end// "],
        );
        check(b"", &[]);
    }

    #[test]
    fn headers_of_every_type_are_skipped() {
        let bytes = frame(
            &[
                ("t", Value::Raw(0, &[])),
                ("f", Value::Raw(1, &[])),
                ("byte", Value::Raw(2, &[9])),
                ("short", Value::Raw(3, &[0, 9])),
                ("int", Value::Raw(4, &[0; 4])),
                ("long", Value::Raw(5, &[0; 8])),
                ("bytes", Value::Raw(6, &[0, 2, 0xFF, 0xFE])),
                ("time", Value::Raw(8, &[0; 8])),
                ("uuid", Value::Raw(9, &[0; 16])),
                (":message-type", Value::Text("exception")),
                (":exception-type", Value::Text("throttlingException")),
            ],
            b"{}",
        );
        check(&bytes, &["0 exception//throttlingException/ {}"]);
    }

    #[test]
    fn error_frame_text_is_read_from_headers() {
        let bytes = frame(
            &[
                (":message-type", Value::Text("error")),
                (":error-code", Value::Text("InternalFailure")),
                (":error-message", Value::Text("try again")),
            ],
            b"",
        );
        check(&bytes, &["0 error//InternalFailure/try again "]);
    }

    // Quirk B1: a frame whose checksum fails is not data, and where the next one begins is a guess.
    #[test]
    fn frames_after_a_bad_checksum_are_dropped() {
        let (first, last) = (event("a", "{}"), event("c", "{}"));
        let mut payload_hit = event("b", r#"{"n":1}"#);
        let middle = payload_hit.len() - 6;
        payload_hit[middle] ^= 1;
        check(&[first.clone(), payload_hit, last.clone()].concat(), &["0 event/a// {}", "56 BadChecksum"]);

        let mut length_hit = event("b", "{}");
        length_hit[3] ^= 4;
        check(&[first.clone(), length_hit, last].concat(), &["0 event/a// {}", "56 BadChecksum"]);
    }

    #[test]
    fn impossible_frame_lengths_are_errors() {
        let prelude = |total: u32, headers: u32| {
            let mut bytes = [total.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
            bytes
        };
        check(&prelude(15, 0), &["0 InvalidEvent"]);
        check(&prelude(16, 1), &["0 InvalidEvent"]);
        check(&prelude(1 << 30, 0), &["0 LimitReached { limit: \"event_bytes_max\" }"]);
        check(&prelude(100, 0), &["0 InvalidEvent"]);
    }

    #[test]
    fn truncated_frame_is_an_error() {
        let bytes = [event("a", "{}"), event("b", "{}")].concat();
        for end in 57..bytes.len() {
            assert_eq!(read(&[&bytes[..end]], 1 << 20), ["0 event/a// {}", "56 InvalidEvent"], "{end}");
        }
    }

    #[test]
    fn event_bytes_max_is_inclusive() {
        let bytes = event("a", "{}");
        assert_eq!(read(&[&bytes], bytes.len()), ["0 event/a// {}"]);
        assert_eq!(read(&[&bytes], bytes.len() - 1), ["0 LimitReached { limit: \"event_bytes_max\" }"]);
    }

    #[test]
    fn unreadable_headers_skip_only_their_frame() {
        let bytes = [frame(&[("x", Value::Raw(77, &[]))], b"{}"), event("b", "{}")].concat();
        check(&bytes, &["0 InvalidEvent", "21 event/b// {}"]);
    }
}
