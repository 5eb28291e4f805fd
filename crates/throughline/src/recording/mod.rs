//! Recorded replies of upstreams: decoded and projected to the events of a turn, or decoded again and
//! compared with a turn's log. Pure; it never validates calls, asks a person or runs a tool.
//!
//! ```
//! use throughline::recording::decode_recording;
//! use throughline::wire::{Dialect, ThinkMode};
//!
//! let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
//! let recording = decode_recording(body, None, ThinkMode::Split);
//! assert_eq!((recording.dialect, recording.reply.text.as_str()), (Dialect::OpenaiChat, "Hi"));
//! ```

mod diagnostics;
pub(crate) mod redecode;
mod texts;

pub use diagnostics::{RecordingDiagnostic, diagnose};
pub use texts::problem_text;

use throughline_engine::{
    Effect, Event, OfferedTool, Turn, TurnInput, TurnOutput, TurnSetup, TurnStart, UpstreamChoice,
};
use throughline_wire::{
    DecodeOptions, Dialect, ModelReply, StepDecoder, StepEvent, StreamEnd, ThinkMode, WireName,
};

/// Largest recording that the server accepts, in bytes: many times the longest reply that models give.
pub const RECORDING_BYTES_MAX: usize = 8 << 20;
/// Most events of a [`Recording`]; its reply is complete in any case.
pub const RECORDING_EVENTS_MAX: usize = 20_000;
/// Size of the chunks into which unframed bytes are cut.
const CHUNK_BYTES: usize = 1_024;

/// Decoded content of a recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The wire format that it was read as.
    pub dialect: Dialect,
    /// The whole reply, with all of its problems.
    pub reply: ModelReply,
    /// Events of the recording, grouped by the chunk that produced them; chunks without events are left out.
    pub chunks: Vec<RecordingChunk>,
    /// True if there are more events than [`RECORDING_EVENTS_MAX`].
    pub is_cut: bool,
}

/// A chunk of a recording, most often a line.
#[derive(Clone, Debug)]
pub struct RecordingChunk {
    /// Offset of the byte after it.
    pub end: usize,
    /// Events that a viewer would have received.
    pub events: Vec<Event>,
}

/// Decodes a recording in this wire format; `None` selects the one that fits best.
///
/// The events are those that a page would have drawn while the reply arrived: the machine does not receive
/// the end of the reply, so no call is validated, asked about or run.
pub fn decode_recording(body: &[u8], dialect: Option<Dialect>, think: ThinkMode) -> Recording {
    let dialect = dialect.unwrap_or_else(|| detect_dialect(body, think));
    let reply = decode_reply(body, dialect, think);
    let names: Vec<String> = reply.calls.iter().map(|call| call.name.as_str().to_owned()).collect();
    let options = DecodeOptions { think, offered: names.clone(), ..DecodeOptions::default() };
    let mut decoder = StepDecoder::new(dialect, options);
    let mut projector = EventProjector::new(names);
    let (mut chunks, mut count, mut end) = (Vec::new(), 0, 0);
    let mut take = |end: usize, events: Vec<Event>| {
        let room = RECORDING_EVENTS_MAX - count;
        count += events.len().min(room);
        let is_cut = events.len() > room;
        if !events.is_empty() && room > 0 {
            chunks.push(RecordingChunk { end, events: events.into_iter().take(room).collect() });
        }
        is_cut
    };
    let mut is_cut = false;
    for piece in body.split_inclusive(|byte| *byte == b'\n').flat_map(|line| line.chunks(CHUNK_BYTES)) {
        end += piece.len();
        decoder.push(piece, &mut |event| projector.push(event));
        is_cut |= take(end, projector.drain_events());
    }
    decoder.finish(&mut |event| projector.push(event));
    is_cut |= take(end, projector.drain_events());
    Recording { dialect, reply, chunks, is_cut }
}

/// Line numbers of a recording.
#[derive(Clone, Debug)]
pub struct LineIndex(Vec<usize>);

impl LineIndex {
    /// Index of these bytes.
    pub fn of(body: &[u8]) -> Self {
        Self(body.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect())
    }

    /// Line, from 1, of a byte.
    pub fn of_byte(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}

/// Wire format of a recording; `None` if it makes sense in none of them.
pub fn guess_dialect(body: &[u8], think: ThinkMode) -> Option<Dialect> {
    let dialect = detect_dialect(body, think);
    let reply = decode_reply(body, dialect, think);
    let is_error = reply.end.as_ref().and_then(StreamEnd::error).is_some();
    (reply.has_content() || reply.finish.is_some() || is_error).then_some(dialect)
}

/// The wire format that fits a recording best: it yields content, reaches its end, and has no problems, in
/// this order of weight. On a tie the format that is documented first wins.
fn detect_dialect(body: &[u8], think: ThinkMode) -> Dialect {
    let score = |dialect: &Dialect| {
        let reply = decode_reply(body, *dialect, think);
        let ends = reply.end == Some(StreamEnd::Complete) || reply.finish.is_some();
        (reply.has_content(), ends, std::cmp::Reverse(reply.problems.len()))
    };
    // The last of equals wins.
    Dialect::ALL.into_iter().rev().max_by_key(score).unwrap_or(Dialect::OpenaiChat)
}

fn decode_reply(body: &[u8], dialect: Dialect, think: ThinkMode) -> ModelReply {
    ModelReply::decode(body, dialect, DecodeOptions { think, ..DecodeOptions::default() })
}

/// Projects the events of a step to events of a turn.
struct EventProjector {
    turn: Turn,
    out: TurnOutput,
}

impl EventProjector {
    /// `tools`: the names that are called, so that none of them is unknown.
    fn new(tools: Vec<String>) -> Self {
        let offered = |name: &String| {
            let tool = OfferedTool::new(name, Effect::External);
            OfferedTool { wire_name: WireName::new(name), source: String::new(), ..tool }
        };
        let setup = TurnSetup {
            upstreams: vec![UpstreamChoice::default()],
            tools: tools.iter().map(offered).collect(),
            // As it came over the wire: text of a text protocol is text here.
            mode: "native".to_owned(),
            ..TurnSetup::default()
        };
        let start = TurnStart { turn_id: "recording".into(), ..TurnStart::default() };
        let mut out = TurnOutput::default();
        Self { turn: Turn::new(setup, start, 0, &mut out), out }
    }

    fn push(&mut self, event: StepEvent<'_>) {
        if !matches!(event, StepEvent::End(_)) {
            let event = event.into_owned();
            self.turn.apply(TurnInput::Model { step: 1, attempt: 1, event }, 0, &mut self.out);
        }
    }

    fn drain_events(&mut self) -> Vec<Event> {
        self.out.actions.clear();
        std::mem::take(&mut self.out.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_engine::fold::AssistantMessage;
    use throughline_engine::{CallStatus, EventKind};

    const CHAT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Let me look.\"}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"weather\",\"arguments\":\"{\\\"city\\\":\"}}]}}]}\n\n\
        data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"Paris\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n\
        data: [DONE]\n\n";
    const ANTHROPIC: &str = "event: content_block_start\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        event: content_block_delta\n\
        data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    const OLLAMA: &str = "{\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"done\":false}\n\
        {\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n";

    fn events(recording: &Recording) -> Vec<Event> {
        recording.chunks.iter().flat_map(|piece| piece.events.clone()).collect()
    }

    #[test]
    fn dialect_is_detected_from_the_bytes() {
        for (body, expected) in [
            (CHAT, Dialect::OpenaiChat),
            (ANTHROPIC, Dialect::Anthropic),
            (OLLAMA, Dialect::Ollama),
            ("", Dialect::OpenaiChat),
            ("hello", Dialect::OpenaiChat),
        ] {
            assert_eq!(
                decode_recording(body.as_bytes(), None, ThinkMode::Verbatim).dialect,
                expected,
                "{body}"
            );
        }
    }

    #[test]
    fn dialect_guess_is_none_for_unknown_bytes() {
        for (body, expected) in [(ANTHROPIC, Some(Dialect::Anthropic)), ("hello", None), ("", None)] {
            assert_eq!(guess_dialect(body.as_bytes(), ThinkMode::Verbatim), expected, "{body}");
        }
        let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        assert!(guess_dialect(error.as_bytes(), ThinkMode::Verbatim).is_some());
    }

    #[test]
    fn recording_events_fold_to_the_decoded_reply() {
        let recording = decode_recording(CHAT.as_bytes(), None, ThinkMode::Verbatim);
        let message = AssistantMessage::from_events(&events(&recording));
        assert_eq!(message.text(), "Let me look.");
        let call = message.calls().next().expect("a call");
        assert_eq!(
            (call.tool_name.as_ref().map(ToString::to_string), call.status),
            (Some("weather".to_owned()), Some(CallStatus::Queued))
        );
        assert_eq!(call.arguments, Some(serde_json::json!({"city": "Paris"})));
        assert_eq!(recording.reply.calls.len(), 1);
        // Each chunk is one line, and has the events of that line.
        let lines = LineIndex::of(CHAT.as_bytes());
        let lines: Vec<usize> = recording.chunks.iter().map(|piece| lines.of_byte(piece.end - 1)).collect();
        assert_eq!(lines, [1, 2, 4, 6], "the turn begins, and an event ends with its blank line");
        assert!(!events(&recording).iter().any(|event| matches!(event.kind, EventKind::ToolStart { .. })));
    }

    #[test]
    fn recording_events_are_bounded_and_the_reply_is_whole() {
        let line = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
        let body = line.repeat(RECORDING_EVENTS_MAX + 10);
        let recording = decode_recording(body.as_bytes(), Some(Dialect::OpenaiChat), ThinkMode::Verbatim);
        assert!(recording.is_cut);
        assert_eq!(events(&recording).len(), RECORDING_EVENTS_MAX);
        assert_eq!(recording.reply.text.len(), RECORDING_EVENTS_MAX + 10);
        assert!(!decode_recording(line.as_bytes(), None, ThinkMode::Verbatim).is_cut);
    }

    #[test]
    fn any_bytes_are_decoded_without_panic() {
        for body in [&b"\x00\x00\x00"[..], b"\x1f\x8b\x08", b"\xff\xfed\x00", b"[", b"{", b"<html>", b"data:"]
        {
            for dialect in Dialect::ALL {
                decode_recording(body, Some(dialect), ThinkMode::Split);
            }
            decode_recording(body, None, ThinkMode::Verbatim);
        }
    }
}
