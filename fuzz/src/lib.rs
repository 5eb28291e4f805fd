//! Properties that each fuzz target checks: no panic on any input, every cut of the bytes says the same, and the events of a step
//! keep their contract.

use std::collections::BTreeMap;
use throughline_wire::frame::{SseFramer, SseItem};
use throughline_wire::json::{ArgumentsReader, JsonRef};
use throughline_wire::text_calls::{
    CallFormat, MarkupFinding, PROTOCOLS, ResultRole, ScanEvent, TextCalls, TextProtocol,
};
use throughline_wire::{
    ArgumentNames, CallSlot, DecodeLimits, DecodeOptions, Dialect, LeakedCalls, ModelReply, StepDecoder,
    StepEvent, ThinkMode, ToolDefinition, UpstreamProfile,
};

/// Small limits, so that they are reached.
fn limits() -> DecodeLimits {
    DecodeLimits {
        line_bytes_max: 4096,
        event_bytes_max: 4096,
        arguments_bytes_max: 256,
        step_bytes_max: 8192,
        calls_per_step_max: 4,
    }
}

/// Cuts of the input, derived from its first byte.
fn pieces(seed: u8, body: &[u8]) -> Vec<&[u8]> {
    let mut state = u64::from(seed) | 1;
    let mut rest = body;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let longest = if seed.is_multiple_of(3) { 2 } else { 64 };
        let len = 1 + (state >> 33) as usize % longest;
        let (piece, tail) = rest.split_at(len.min(rest.len()));
        pieces.push(piece);
        rest = tail;
    }
    pieces
}

/// Decodes in the given pieces and checks the contract of the events on the way.
fn decode(dialect: Dialect, options: &DecodeOptions, pieces: &[&[u8]]) -> ModelReply {
    let mut decoder = StepDecoder::new(dialect, options.clone());
    let mut reply = ModelReply::default();
    let mut contract = Contract::default();
    let mut take = |event: StepEvent<'_>| {
        contract.take(&event);
        reply.apply(event);
    };
    for piece in pieces {
        decoder.push(piece, &mut take);
    }
    decoder.finish(&mut take);
    contract.finish();
    reply
}

/// Order of events as `StepEvent` documents it.
#[derive(Default)]
struct Contract {
    calls: BTreeMap<CallSlot, bool>,
    finishes: u32,
    ended: bool,
}

impl Contract {
    fn take(&mut self, event: &StepEvent<'_>) {
        assert!(!self.ended, "an event after the end: {event:?}");
        match event {
            StepEvent::CallOpened { slot, .. } => {
                assert!(self.calls.insert(*slot, true).is_none(), "a call opened twice: {slot:?}");
            }
            StepEvent::CallArguments { slot, delta } => {
                assert!(!delta.is_empty(), "an empty fragment");
                assert_eq!(self.calls.get(slot), Some(&true), "a fragment of a call that is not open");
            }
            StepEvent::CallSealed { slot, .. } | StepEvent::CallBroken { slot, .. } => {
                assert_eq!(
                    self.calls.insert(*slot, false),
                    Some(true),
                    "a call ended twice or before it opened"
                );
            }
            StepEvent::CallReopened { slot } => {
                assert!(self.calls.insert(*slot, true).is_some(), "an unknown call reopened");
            }
            StepEvent::Finish { .. } => self.finishes += 1,
            StepEvent::End(_) => self.ended = true,
            _ => {}
        }
    }

    fn finish(self) {
        assert!(self.ended, "no end");
        assert!(self.finishes <= 1, "several finish reasons");
        assert!(self.calls.values().all(|open| !open), "a call without an ending");
    }
}

/// Text mode, in one of the protocols.
fn written_calls(seed: u8) -> CallFormat {
    let tool =
        |name: &str| ToolDefinition::new(name, "", r#"{"type": "object"}"#.parse().unwrap_or_default());
    let Some(protocol) = PROTOCOLS.get(usize::from(seed & 0x04 != 0)) else { return CallFormat::Native };
    let tools = [tool("get_weather"), tool("f")].into();
    CallFormat::Text(TextCalls { protocol: *protocol, tools, results: ResultRole::User })
}

/// Names that are others on the wire, whatever the dialect.
fn renamed_arguments() -> ArgumentNames {
    let schema = serde_json::json!({"properties": {"ci ty": {}, "城市": {}}});
    let tools = ["get_weather", "f"].map(|name| ToolDefinition::new(name, "", schema.clone()));
    ArgumentNames::of(Dialect::Anthropic, &tools)
}

/// One dialect: whole and cut in pieces must be the same reply.
pub fn dialect(dialect: Dialect, data: &[u8]) {
    let Some(([seed], body)) = data.split_first_chunk::<1>() else { return };
    let run = seed & 0x80 != 0;
    let options = DecodeOptions {
        limits: limits(),
        profile: UpstreamProfile {
            leaked_calls: if run { LeakedCalls::Run } else { LeakedCalls::Report },
            sequential_calls: seed & 0x40 != 0,
            finish_reason_ends: seed & 0x50 == 0x50,
            cumulative_arguments: seed & 0x60 == 0x60,
            ..UpstreamProfile::default()
        },
        think: if seed & 0x20 != 0 { ThinkMode::Split } else { ThinkMode::Verbatim },
        offered: if seed & 0x10 != 0 { vec!["get_weather".to_owned(), "f".to_owned()] } else { Vec::new() },
        calls: if seed & 0x08 != 0 { written_calls(*seed) } else { CallFormat::Native },
        argument_names: if seed & 0x02 != 0 { renamed_arguments() } else { ArgumentNames::default() },
    };
    let whole = decode(dialect, &options, &[body]);
    let cut = decode(dialect, &options, &pieces(*seed, body));
    if whole != cut {
        let (whole, cut) = (format!("{whole:#?}"), format!("{cut:#?}"));
        let differing: Vec<_> = whole
            .lines()
            .zip(cut.lines())
            .filter(|(a, b)| a != b)
            .take(4)
            .map(|(a, b)| format!("{a} | {b}"))
            .collect();
        panic!("the reply depends on how the bytes were cut:\n{}", differing.join("\n"));
    }
}

/// The SSE framer: any cut gives the same events.
pub fn sse(data: &[u8]) {
    let Some(([seed], body)) = data.split_first_chunk::<1>() else { return };
    let events = |pieces: &[&[u8]]| {
        let mut framer =
            SseFramer::new(&DecodeLimits { line_bytes_max: 64, event_bytes_max: 96, ..limits() });
        let mut events = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while let Some(item) = framer.next(&mut input) {
                events.push(match item {
                    SseItem::Event(event) => {
                        format!("{}|{}|{}|{}", event.offset, event.event, event.data, event.id)
                    }
                    SseItem::Comment => ":".to_owned(),
                    SseItem::Unknown { offset, name, value } => format!("{offset}?{name}={value}"),
                    SseItem::TooLarge { offset, limit } => format!("{offset} {limit}"),
                });
            }
        }
        events.extend(framer.finish().map(|event| format!("last {}|{}", event.event, event.data)));
        (events, framer.retry())
    };
    assert_eq!(events(&[body]), events(&pieces(*seed, body)));
}

/// The arguments reader agrees with the reader of whole documents, and its partial value with the whole one.
pub fn arguments(data: &[u8]) {
    let Some(([seed], body)) = data.split_first_chunk::<1>() else { return };
    let text = String::from_utf8_lossy(body);
    let mut reader = ArgumentsReader::default();
    let mut rest = text.as_ref();
    let mut step = usize::from(*seed % 7) + 1;
    while !rest.is_empty() {
        let mut len = step.min(rest.len());
        while !rest.is_char_boundary(len) {
            len += 1;
        }
        reader.push(&rest[..len]);
        if seed & 0x80 != 0 {
            let _ = reader.partial();
        }
        rest = &rest[len..];
        step = step % 11 + 1;
    }
    let whole = JsonRef::parse(&text);
    match (&whole, reader.check_complete()) {
        (Ok(json), Ok(())) => {
            if json.is_object() || json.is_array() || json.is_string() {
                assert!(reader.is_closed());
                assert_eq!(reader.partial().cloned(), Some(json.to_value()), "{text}");
            }
        }
        (Err(_), Err(_)) => {}
        (whole, checked) => panic!("{text:?}: {:?} against {checked:?}", whole.as_ref().map(|_| ())),
    }
}

/// Leaked-call grammars: no panic, spans inside the text.
pub fn leaked(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for call in throughline_wire::text_calls::find_leaked(&text, &[]) {
        assert!(text.get(call.span.clone()).is_some(), "a span outside the text");
        assert!(
            JsonRef::parse(&call.arguments).is_ok(),
            "arguments that are no document: {}",
            call.arguments
        );
    }
}

const INDEXES: [&str; 6] =
    ["", "\"index\":0,", "\"index\":1,", "\"index\":\"1\",", "\"index\":-1,", "\"index\":7,"];
const IDS: [&str; 5] = ["", "\"id\":\"a\",", "\"id\":\"b\",", "\"id\":\"\",", "\"id\":null,"];
const NAMES: [&str; 6] = [
    "",
    "\"name\":\"f\",",
    "\"name\":\"get_\",",
    "\"name\":\"weather\",",
    "\"name\":\"\",",
    "\"name\":null,",
];
const ARGUMENTS: [&str; 12] = [
    "",
    "\"\"",
    "\"{}\"",
    "\"{\\\"a\\\":\"",
    "\"1}\"",
    "\"{\\\"a\\\":1}\"",
    "null",
    "{\"a\":1}",
    "\"null\"",
    "\"\\ud83d\"",
    "\" \"",
    "\"\\\"{\\\\\\\"a\\\\\\\":1}\\\"\"",
];
const FINISHES: [&str; 4] = ["null", "\"tool_calls\"", "\"length\"", "\"stop\""];

/// Call assembly, without waiting for the fuzzer to write JSON: each byte picks a field of a Chat Completions entry.
pub fn assembly(data: &[u8]) {
    let Some((seed, picks)) = data.split_first() else { return };
    let mut body = vec![*seed];
    for pick in picks.chunks(3).take(40) {
        let at = |n: usize| usize::from(pick.get(n).copied().unwrap_or(0));
        let (index, id) = (INDEXES[at(0) % 6], IDS[at(0) / 6 % 5]);
        let (name, arguments) = (NAMES[at(1) % 6], ARGUMENTS[at(1) / 6 % 12]);
        let arguments =
            if arguments.is_empty() { String::new() } else { format!("\"arguments\":{arguments}") };
        let function = format!("{name}{arguments}");
        let function = function.trim_end_matches(',');
        let finish = if at(2) < 240 { "null" } else { FINISHES[at(2) % 4] };
        body.extend_from_slice(
            format!(
                "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{{index}{id}\"function\":{{{function}}}}}]}},\"finish_reason\":{finish}}}]}}\n\n"
            )
            .as_bytes(),
        );
    }
    body.extend_from_slice(b"data: [DONE]\n\n");
    dialect(Dialect::OpenaiChat, &body);
}

/// The report of a reader of a text protocol: the visible text, each call with its arguments or the reason why it is
/// refused, and findings.
#[derive(Debug, Default, PartialEq)]
struct Told {
    text: String,
    calls: Vec<(String, Result<String, String>)>,
    findings: Vec<MarkupFinding>,
}

fn scan(protocol: &dyn TextProtocol, tools: &[ToolDefinition], pieces: &[&str]) -> Told {
    let mut told = Told::default();
    let mut open: Option<(String, String)> = None;
    let mut scanner = protocol.scanner(tools.into());
    let mut take = |scanned: ScanEvent<'_>| match scanned {
        ScanEvent::Text(text) => {
            assert!(open.is_none() && !text.is_empty(), "text inside a call, or none");
            told.text.push_str(text);
        }
        ScanEvent::Opened { name } => {
            assert!(open.replace((name.to_owned(), String::new())).is_none(), "a call inside a call");
        }
        ScanEvent::Arguments(text) => open.as_mut().expect("no call is open").1.push_str(text),
        ScanEvent::Restarted => open.as_mut().expect("no call is open").1.clear(),
        ScanEvent::Sealed => {
            let (name, arguments) = open.take().expect("no call is open");
            told.calls.push((name, Ok(arguments)));
        }
        ScanEvent::Refused { reason, .. } => {
            told.calls.push((open.take().map(|(name, _)| name).unwrap_or_default(), Err(reason)));
        }
        ScanEvent::Finding(finding) => told.findings.push(finding),
    };
    let mut text = String::new();
    for piece in pieces {
        text += piece;
        scanner.push(&text, &mut take);
    }
    scanner.finish(&text, &mut take);
    assert!(open.is_none(), "a call without an ending");
    told
}

/// Pieces that mean something to a text protocol: half of the inputs are picks of these, not text.
const PIECES: [&str; 64] = [
    "<<<[TOOL_REQUEST]>>>",
    "<<<[TOOL_REQUEST]>>>\n",
    "<<<[END_TOOL_REQUEST]>>>",
    "<<[tool_request ]>>>>",
    "<<<[TOOL_REQUEST_ESCAPE]>>>",
    "<<<[END_TOOL_REQUEST_ESCAPE]>>>",
    "tool_name:「始」T「末」",
    "tool_name:「始」Files「末」",
    "TOOL_NAME ：{始}x{末}",
    "command:「始」Read「末」",
    "command1:「始」Write「末」",
    "command2:「始」Read「末」",
    "command:「始」",
    "p:「始」",
    "p1:「始」",
    "n:「始」7「末」",
    "b:「始」true「末」",
    "e:「始」 x「末」",
    "「末」",
    "{末}",
    "「始」",
    "{始}",
    "q:「始ESCAPE」",
    "「始ESCAPE」",
    "「末ESCAPE」",
    "river:「始」x「末」",
    "tool_name: T",
    "p: 1",
    "「",
    "始",
    "ESCAPE",
    "」",
    "<tool_call>",
    "<tool_call>\n",
    "</tool_call>",
    "{\"name\":\"T\",",
    "\"arguments\":{\"p\":\"x\"}}",
    "{\"name\":\"T\"}",
    "\"parameters\":{",
    "\"function\":{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "<tool_",
    "<think>",
    "</think>",
    "```",
    "\n```\n",
    "`",
    "~~~\n",
    "~",
    "> ",
    "\n",
    "\r\n",
    " ",
    "<<<",
    "<",
    ">",
    ":",
    ",",
    "你",
    "text",
];

/// Text protocols: the scanner agrees with the simple parser for any cut, arguments are objects, and data that is
/// escaped holds no marker and comes back.
pub fn text_protocol(data: &[u8]) {
    let Some(([seed], body)) = data.split_first_chunk::<1>() else { return };
    let protocol = PROTOCOLS[usize::from(*seed) % PROTOCOLS.len()];
    let text = match seed & 0x80 {
        0 => String::from_utf8_lossy(body),
        _ => body.iter().take(200).map(|pick| PIECES[usize::from(*pick) % PIECES.len()]).collect(),
    };
    let parameters = serde_json::json!({ "type": "object", "properties": {
        "p": { "type": "string" }, "n": { "type": "integer" }, "b": { "type": ["boolean", "null"] }, "e": { "enum": ["x", "y"] },
    }});
    let tools =
        ["T", "Files_Read", "Files_Write"].map(|name| ToolDefinition::new(name, "", parameters.clone()));
    let parsed = protocol.parse(&text, &tools);
    let calls: Vec<_> = parsed.calls.into_iter().map(|call| (call.name, call.arguments)).collect();
    for arguments in calls.iter().filter_map(|(_, arguments)| arguments.as_ref().ok()) {
        assert!(JsonRef::parse(arguments).is_ok_and(|json| json.is_object()), "no object: {arguments}");
    }
    let parsed = Told { text: parsed.text, calls, findings: parsed.findings };
    assert_eq!(scan(protocol, &tools, &[&text]), parsed, "{text:?}");
    let mut pieces = Vec::new();
    let mut rest = text.as_ref();
    let mut step = usize::from(*seed % 7) + 1;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(rest.ceil_char_boundary(step.min(rest.len())));
        pieces.push(piece);
        rest = tail;
        step = step % 11 + 1;
    }
    assert_eq!(scan(protocol, &tools, &pieces), parsed, "in pieces: {text:?}");
    let escaped = protocol.escape(&text);
    assert_eq!(protocol.unescape(&escaped), text);
    let quoted = protocol.parse(&(escaped + "."), &tools);
    assert_eq!((quoted.text, quoted.calls.len()), (format!("{text}."), 0));
}
