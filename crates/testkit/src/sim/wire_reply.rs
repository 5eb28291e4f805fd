//! Replies that the real decoder reads from bytes, with the truth about them: calls whose fragments have
//! other numbers, fragments of no call, streams that are cut and end with the marker of another format.

use super::SimMutant;
use super::check::{BrokenInvariant, ensure};
use super::rng::SimRng;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use throughline_wire::{CallSlot, DecodeOptions, Dialect, ModelRequest, StepDecoder, StepEvent};

/// The truth about one reply.
#[derive(Debug, Default)]
pub(super) struct ReplyTruth {
    /// Calls that were made completely: name on the wire and arguments.
    calls: Vec<(String, Value)>,
    /// The format's own end was sent.
    is_whole: bool,
    /// Fragments were sent that no rule gives to a call.
    has_orphans: bool,
}

impl ReplyTruth {
    /// The rule: a tool with effects runs only for a complete call that was really made.
    pub(super) fn check_start(&self, name: &str, arguments: &Value) -> Result<(), BrokenInvariant> {
        ensure(self.is_whole, || format!("{name} runs, and its reply is torn"))?;
        ensure(!self.has_orphans, || format!("{name} runs beside fragments that belong to no call"))?;
        let made = self.calls.iter().any(|(made, with)| made == name && with == arguments);
        ensure(made, || format!("{name} runs with {arguments}, which nobody sent: {:?}", self.calls))
    }
}

/// Faults of a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ReplyFault {
    None,
    /// Fragments have numbers that are no call's, while one call is open.
    OtherNumbers,
    /// A fragment has the number of no call, while two are open.
    Orphan,
    /// After a call without arguments is complete, a fragment of no call arrives.
    LateOrphan,
    /// Everything except the end arrived; a marker of another format replaces it.
    ForeignEnd,
    /// Everything except the end arrived.
    Torn,
}

/// A part of a reply, independent of the format.
enum ReplyPart {
    Open { number: u64, id: String, name: String },
    Fragment { number: u64, text: String },
    Close { number: u64, name: String },
    End,
    ForeignEnd,
}

const DIALECTS: [Dialect; 3] = [Dialect::OpenaiChat, Dialect::Anthropic, Dialect::OpenaiResponses];
/// Numbers from here on are no call's.
const STRAY_NUMBERS: u64 = 50;

/// A reply with calls, as the decoder reads it.
pub(super) fn draw(
    rng: &mut SimRng,
    request: &ModelRequest,
    mutant: Option<SimMutant>,
) -> (Vec<StepEvent<'static>>, ReplyTruth) {
    let dialect = *rng.pick(&DIALECTS).unwrap_or(&Dialect::OpenaiChat);
    let fault = match rng.below(12) {
        0..3 => ReplyFault::OtherNumbers,
        3 => ReplyFault::Orphan,
        // Chat Completions never reports a call as complete, so the only open call would take it.
        4 if dialect != Dialect::OpenaiChat => ReplyFault::LateOrphan,
        5 | 6 if dialect != Dialect::OpenaiChat => ReplyFault::ForeignEnd,
        7 => ReplyFault::Torn,
        _ => ReplyFault::None,
    };
    let (mut parts, truth) = draw_parts(rng, request, fault);
    match mutant {
        Some(SimMutant::StraysDropped) => parts
            .retain(|part| !matches!(part, ReplyPart::Fragment { number, .. } if *number >= STRAY_NUMBERS)),
        Some(SimMutant::ForeignEndTaken) => parts.iter_mut().for_each(|part| {
            if matches!(part, ReplyPart::ForeignEnd) {
                *part = ReplyPart::End;
            }
        }),
        _ => {}
    }
    let mut body = String::new();
    write_start(dialect, &mut body);
    for part in &parts {
        write_part(dialect, part, &mut body);
    }
    let mut events = decode(rng, dialect, request, body.as_bytes());
    if mutant == Some(SimMutant::OrphansHidden) {
        hide_orphans(&mut events);
    }
    (events, truth)
}

fn draw_parts(rng: &mut SimRng, request: &ModelRequest, fault: ReplyFault) -> (Vec<ReplyPart>, ReplyTruth) {
    let mut truth = ReplyTruth {
        is_whole: !matches!(fault, ReplyFault::ForeignEnd | ReplyFault::Torn),
        has_orphans: matches!(fault, ReplyFault::Orphan | ReplyFault::LateOrphan),
        calls: Vec::new(),
    };
    let mut parts = Vec::new();
    let mut strays = STRAY_NUMBERS;
    let count = if truth.has_orphans { 2 } else { 1 + rng.below(3) };
    for number in 0..count {
        let name = rng.pick(&request.tools).map_or("nothing", |tool| tool.name.as_str()).to_owned();
        let is_empty = match fault {
            ReplyFault::OtherNumbers | ReplyFault::Orphan => false,
            ReplyFault::LateOrphan => number == 0,
            _ => rng.chance(15),
        };
        let text =
            if is_empty { String::new() } else { json!({ "q": rng.below(3).to_string() }).to_string() };
        let arguments = serde_json::from_str(&text).unwrap_or_else(|_| json!({}));
        truth.calls.push((name.clone(), arguments));
        parts.push(ReplyPart::Open { number, id: format!("call_{number}"), name: name.clone() });
        let cut = 1 + rng.below((text.len() as u64).max(2) - 1) as usize;
        let (beginning, rest) = text.split_at(cut.min(text.len()));
        for (nth, piece) in [beginning, rest].into_iter().filter(|piece| !piece.is_empty()).enumerate() {
            let has_other_number = fault == ReplyFault::OtherNumbers && (nth > 0 || rng.chance(50));
            strays += u64::from(has_other_number && rng.chance(70));
            let number = if has_other_number { strays } else { number };
            parts.push(ReplyPart::Fragment { number, text: piece.to_owned() });
        }
        parts.push(ReplyPart::Close { number, name });
    }
    let orphan = ReplyPart::Fragment { number: STRAY_NUMBERS, text: r#"{"q":"nobody's"}"#.to_owned() };
    match fault {
        ReplyFault::Orphan => interleave(&mut parts, orphan),
        ReplyFault::LateOrphan => parts.push(orphan),
        _ => {}
    }
    match fault {
        ReplyFault::ForeignEnd => parts.push(ReplyPart::ForeignEnd),
        ReplyFault::Torn => {}
        _ => parts.push(ReplyPart::End),
    }
    (parts, truth)
}

/// Both calls begin, then comes the orphaned fragment, then both continue.
fn interleave(parts: &mut Vec<ReplyPart>, orphan: ReplyPart) {
    let second = parts.iter().rposition(|part| matches!(part, ReplyPart::Open { .. })).unwrap_or_default();
    let open = parts.remove(second);
    parts.insert(1, open);
    parts.insert(2, orphan);
}

// --- as bytes ---

fn write_start(dialect: Dialect, body: &mut String) {
    if dialect == Dialect::Anthropic {
        let message = json!({"id": "msg", "role": "assistant", "content": []});
        write_event(body, &json!({"type": "message_start", "message": message}));
    }
}

fn write_event(body: &mut String, event: &Value) {
    let _ = write!(body, "data: {event}\n\n");
}

fn write_part(dialect: Dialect, part: &ReplyPart, body: &mut String) {
    if matches!(part, ReplyPart::ForeignEnd) {
        return body.push_str("data: [DONE]\n\n");
    }
    let event = match dialect {
        Dialect::Anthropic => anthropic(part),
        Dialect::OpenaiResponses => responses(part),
        _ => chat(part),
    };
    event.iter().for_each(|event| write_event(body, event));
}

fn chat(part: &ReplyPart) -> Vec<Value> {
    let delta = |entry: Value| vec![json!({"choices": [{"index": 0, "delta": {"tool_calls": [entry]}}]})];
    match part {
        ReplyPart::Open { number, id, name } => {
            delta(json!({"index": number, "id": id, "function": {"name": name, "arguments": ""}}))
        }
        ReplyPart::Fragment { number, text } => {
            delta(json!({"index": number, "function": {"arguments": text}}))
        }
        ReplyPart::End => {
            vec![json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})]
        }
        ReplyPart::Close { .. } | ReplyPart::ForeignEnd => Vec::new(),
    }
}

fn anthropic(part: &ReplyPart) -> Vec<Value> {
    match part {
        ReplyPart::Open { number, id, name } => {
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            vec![json!({"type": "content_block_start", "index": number, "content_block": block})]
        }
        ReplyPart::Fragment { number, text } => {
            let delta = json!({"type": "input_json_delta", "partial_json": text});
            vec![json!({"type": "content_block_delta", "index": number, "delta": delta})]
        }
        ReplyPart::Close { number, .. } => vec![json!({"type": "content_block_stop", "index": number})],
        ReplyPart::End => vec![
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ],
        ReplyPart::ForeignEnd => Vec::new(),
    }
}

fn responses(part: &ReplyPart) -> Vec<Value> {
    let item = |number: &u64, name: &str| json!({"type": "function_call", "call_id": format!("call_{number}"), "name": name, "arguments": ""});
    match part {
        ReplyPart::Open { number, name, .. } => vec![
            json!({"type": "response.output_item.added", "output_index": number, "item": item(number, name)}),
        ],
        ReplyPart::Fragment { number, text } => vec![
            json!({"type": "response.function_call_arguments.delta", "output_index": number, "delta": text}),
        ],
        ReplyPart::Close { number, name } => vec![
            json!({"type": "response.output_item.done", "output_index": number, "item": item(number, name)}),
        ],
        ReplyPart::End => vec![json!({"type": "response.completed", "response": {"status": "completed"}})],
        ReplyPart::ForeignEnd => Vec::new(),
    }
}

fn decode(
    rng: &mut SimRng,
    dialect: Dialect,
    request: &ModelRequest,
    body: &[u8],
) -> Vec<StepEvent<'static>> {
    let offered = request.tools.iter().map(|tool| tool.name.as_str().to_owned()).collect();
    let mut decoder = StepDecoder::new(dialect, DecodeOptions { offered, ..DecodeOptions::default() });
    let mut events = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(1 + rng.below(400) as usize));
        decoder.push(piece, &mut |event| events.push(event.into_owned()));
        rest = after;
    }
    decoder.finish(&mut |event| events.push(event.into_owned()));
    events
}

/// A mutant: orphaned fragments are not reported.
fn hide_orphans(events: &mut Vec<StepEvent<'static>>) {
    let nameless: BTreeSet<CallSlot> = events
        .iter()
        .filter_map(|event| match event {
            StepEvent::CallOpened { slot, name, .. } if name.as_str().is_empty() => Some(*slot),
            _ => None,
        })
        .collect();
    events.retain(|event| match event {
        StepEvent::CallOpened { slot, .. }
        | StepEvent::CallArguments { slot, .. }
        | StepEvent::CallBroken { slot, .. } => !nameless.contains(slot),
        _ => true,
    });
}
