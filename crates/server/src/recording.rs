//! A recorded reply of an upstream: decoded by the decoder that turns use, and told by the machine that turns are. Pure. // R: U3, W1
//!
//! The machine is never told that the reply has ended, so nothing of it is checked, asked or run: what comes of it are the
//! events that a page would have drawn while it came.

mod mistakes;
mod words;

pub use mistakes::{Mistake, mistakes};
pub use words::problem;

use throughline_engine::{
    Effect, Event, Input, OfferedTool, Out, Turn, TurnSetup, TurnStart, UpstreamChoice,
};
use throughline_wire::{DecodeOptions, Dialect, End, Reply, StepDecoder, StepEvent, Think, WireName};

/// Largest recording, in bytes: many times the longest reply that models give.
pub const RECORDING_BYTES_MAX: usize = 8 << 20;
/// Most events of one recording that are told one by one; the rest is in what comes of it as a whole.
pub const RECORDING_EVENTS_MAX: usize = 20_000;
/// What is not cut into lines comes in pieces of so many bytes.
const PIECE_BYTES: usize = 1_024;

/// What a recording holds.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The wire format that it was read as.
    pub dialect: Dialect,
    /// The whole reply, with everything that was wrong with it.
    pub reply: Reply,
    /// Its events, by the piece of the recording that they came of; pieces that say nothing are left out.
    pub pieces: Vec<Piece>,
    /// There are more events than [`RECORDING_EVENTS_MAX`].
    pub is_cut: bool,
}

/// A piece of a recording: a line, most often.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The byte behind it.
    pub until: usize,
    /// What a viewer would have been told.
    pub events: Vec<Event>,
}

/// Reads a recording as this wire format; `None`: as the one that fits best.
pub fn read(body: &[u8], dialect: Option<Dialect>, think: Think) -> Recording {
    let dialect = dialect.unwrap_or_else(|| best(body, think));
    let reply = whole(body, dialect, think);
    let names: Vec<String> = reply.calls.iter().map(|call| call.name.as_str().to_owned()).collect();
    let options = DecodeOptions { think, offered: names.clone(), ..DecodeOptions::default() };
    let mut decoder = StepDecoder::new(dialect, options);
    let mut teller = Teller::new(names);
    let (mut pieces, mut told, mut until) = (Vec::new(), 0, 0);
    let mut take = |until: usize, events: Vec<Event>| {
        let room = RECORDING_EVENTS_MAX - told;
        told += events.len().min(room);
        let is_cut = events.len() > room;
        if !events.is_empty() && room > 0 {
            pieces.push(Piece { until, events: events.into_iter().take(room).collect() });
        }
        is_cut
    };
    let mut is_cut = false;
    for piece in body.split_inclusive(|byte| *byte == b'\n').flat_map(|line| line.chunks(PIECE_BYTES)) {
        until += piece.len();
        decoder.push(piece, &mut |event| teller.take(event));
        is_cut |= take(until, teller.told());
    }
    decoder.finish(&mut |event| teller.take(event));
    is_cut |= take(until, teller.told());
    Recording { dialect, reply, pieces, is_cut }
}

/// Where the lines of a recording end.
#[derive(Clone, Debug)]
pub struct Lines(Vec<usize>);

impl Lines {
    /// Of these bytes.
    pub fn of(body: &[u8]) -> Self {
        Self(body.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect())
    }

    /// The line, from 1, that a byte is in.
    pub fn of_byte(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}

/// The wire format as which a recording makes most sense: it says something, comes to its end, and nothing is wrong with it,
/// in this order. What fits several is the one that is documented first.
fn best(body: &[u8], think: Think) -> Dialect {
    let sense = |dialect: &Dialect| {
        let reply = whole(body, *dialect, think);
        let says = !reply.text.is_empty()
            || !reply.thinking.is_empty()
            || !reply.refusal.is_empty()
            || !reply.calls.is_empty()
            || !reply.hosted.is_empty();
        let ends = reply.end == Some(End::Complete) || reply.finish.is_some();
        (says, ends, std::cmp::Reverse(reply.problems.len()))
    };
    // The last of equals wins.
    Dialect::ALL.into_iter().rev().max_by_key(sense).unwrap_or(Dialect::OpenaiChat)
}

fn whole(body: &[u8], dialect: Dialect, think: Think) -> Reply {
    let mut decoder = StepDecoder::new(dialect, DecodeOptions { think, ..DecodeOptions::default() });
    let mut reply = Reply::default();
    decoder.push(body, &mut |event| reply.apply(event));
    decoder.finish(&mut |event| reply.apply(event));
    reply
}

/// Tells what a step says as events of a turn.
struct Teller {
    turn: Turn,
    out: Out,
}

impl Teller {
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
        let mut out = Out::default();
        Self { turn: Turn::new(setup, start, 0, &mut out), out }
    }

    fn take(&mut self, event: StepEvent<'_>) {
        if !matches!(event, StepEvent::End(_)) {
            let event = event.into_owned();
            self.turn.apply(Input::Model { step: 1, attempt: 1, event }, 0, &mut self.out);
        }
    }

    fn told(&mut self) -> Vec<Event> {
        self.out.actions.clear();
        std::mem::take(&mut self.out.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_engine::fold::Message;
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
        recording.pieces.iter().flat_map(|piece| piece.events.clone()).collect()
    }

    // R: U3
    #[test]
    fn the_wire_format_is_told_from_the_bytes() {
        for (body, expected) in [
            (CHAT, Dialect::OpenaiChat),
            (ANTHROPIC, Dialect::Anthropic),
            (OLLAMA, Dialect::Ollama),
            ("", Dialect::OpenaiChat),
            ("hello", Dialect::OpenaiChat),
        ] {
            assert_eq!(read(body.as_bytes(), None, Think::Verbatim).dialect, expected, "{body}");
        }
    }

    // R: U3
    #[test]
    fn the_events_are_those_of_a_turn_and_fold_to_what_the_reply_says() {
        let recording = read(CHAT.as_bytes(), None, Think::Verbatim);
        let message = Message::of(&events(&recording));
        assert_eq!(message.text(), "Let me look.");
        let call = message.calls().next().expect("a call");
        assert_eq!(
            (call.tool_name.as_ref().map(ToString::to_string), call.status),
            (Some("weather".to_owned()), Some(CallStatus::Queued))
        );
        assert_eq!(call.arguments, Some(serde_json::json!({"city": "Paris"})));
        assert_eq!(recording.reply.calls.len(), 1);
        // Each piece is a line, and says what that line said.
        let lines = Lines::of(CHAT.as_bytes());
        let lines: Vec<usize> = recording.pieces.iter().map(|piece| lines.of_byte(piece.until - 1)).collect();
        assert_eq!(lines, [1, 2, 4, 6], "the turn begins, and an event ends with its blank line");
        assert!(!events(&recording).iter().any(|event| matches!(event.kind, EventKind::ToolStart { .. })));
    }

    // R: U3, R2
    #[test]
    fn so_many_events_are_told_one_by_one_and_the_whole_all_the_same() {
        let line = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
        let body = line.repeat(RECORDING_EVENTS_MAX + 10);
        let recording = read(body.as_bytes(), Some(Dialect::OpenaiChat), Think::Verbatim);
        assert!(recording.is_cut);
        assert_eq!(events(&recording).len(), RECORDING_EVENTS_MAX);
        assert_eq!(recording.reply.text.len(), RECORDING_EVENTS_MAX + 10);
        assert!(!read(line.as_bytes(), None, Think::Verbatim).is_cut);
    }

    #[test]
    fn any_bytes_are_read() {
        for body in [&b"\x00\x00\x00"[..], b"\x1f\x8b\x08", b"\xff\xfed\x00", b"[", b"{", b"<html>", b"data:"]
        {
            for dialect in Dialect::ALL {
                read(body, Some(dialect), Think::Split);
            }
            read(body, None, Think::Verbatim);
        }
    }
}
