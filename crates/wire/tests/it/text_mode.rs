//! Text mode: blocks in the text become the same events as native calls, for any cut of the bytes; and when
//! the two readers of a text disagree, no call of it runs.

use crate::lines::{LINES, LinesProtocol, MISSES_A_CALL, READS_MORE, READS_OTHER_ARGUMENTS};
use serde_json::{Value, json};
use throughline_wire::text_calls::{CallFormat, FindingKind, PROTOCOLS, ResultRole, TextCalls, TextProtocol};
use throughline_wire::{
    BrokenCall, Call, CallArguments, CallKind, DecodeLimits, DecodeOptions, Dialect, FinishReason,
    ModelReply, ProblemKind, SealEvidence, StepDecoder, StepEvent, StreamEnd, ThinkMode, ToolDefinition,
};

const DIALECTS: [Dialect; 5] =
    [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini, Dialect::Ollama];

fn tools() -> Vec<ToolDefinition> {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    vec![ToolDefinition::new("weather_today", "Weather", schema)]
}

fn options(protocol: &'static dyn TextProtocol) -> DecodeOptions {
    DecodeOptions {
        think: ThinkMode::Split,
        offered: vec!["weather_today".into()],
        calls: CallFormat::Text(TextCalls { protocol, tools: tools().into(), results: ResultRole::User }),
        ..DecodeOptions::default()
    }
}

/// End of a reply on the wire.
#[derive(Clone, Copy, PartialEq)]
enum Stop {
    Normally,
    ByLength,
    /// The connection is lost.
    Never,
}

/// A streamed reply with these deltas.
fn body(dialect: Dialect, deltas: &[&str], stop: Stop) -> Vec<u8> {
    let sse = |event: &str, data: Value| match event {
        "" => format!("data: {data}\n\n"),
        _ => format!("event: {event}\ndata: {data}\n\n"),
    };
    let mut out = String::new();
    match dialect {
        Dialect::OpenaiChat => {
            for text in deltas {
                out += &sse("", json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
            }
            let reason = if stop == Stop::ByLength { "length" } else { "stop" };
            if stop != Stop::Never {
                out += &sse("", json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}));
                out += "data: [DONE]\n\n";
            }
        }
        Dialect::OpenaiResponses => {
            let text = deltas.concat();
            let item = json!({"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
            let reasoning =
                json!({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "c2VjcmV0"});
            out +=
                &sse("", json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}));
            out += &sse(
                "",
                json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "id": "m", "role": "assistant", "content": []}}),
            );
            for text in deltas {
                out += &sse(
                    "",
                    json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 1, "content_index": 0, "delta": text}),
                );
            }
            let end = match stop {
                Stop::Normally => {
                    json!({"type": "response.completed", "response": {"status": "completed", "output": [reasoning, item]}})
                }
                _ => {
                    json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [reasoning, item]}})
                }
            };
            if stop != Stop::Never {
                out +=
                    &sse("", json!({"type": "response.output_item.done", "output_index": 1, "item": item}));
                out += &sse("", end);
            }
        }
        Dialect::Anthropic => {
            out += &sse(
                "message_start",
                json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}}),
            );
            out += &sse(
                "content_block_start",
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
            );
            out += &sse(
                "content_block_delta",
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
            );
            out += &sse(
                "content_block_delta",
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}}),
            );
            out += &sse("content_block_stop", json!({"type": "content_block_stop", "index": 0}));
            out += &sse(
                "content_block_start",
                json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
            );
            for text in deltas {
                out += &sse(
                    "content_block_delta",
                    json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}}),
                );
            }
            let reason = if stop == Stop::ByLength { "max_tokens" } else { "end_turn" };
            if stop != Stop::Never {
                out += &sse("content_block_stop", json!({"type": "content_block_stop", "index": 1}));
                out += &sse(
                    "message_delta",
                    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}),
                );
                out += &sse("message_stop", json!({"type": "message_stop"}));
            }
        }
        Dialect::Gemini => {
            for text in deltas {
                out += &sse(
                    "",
                    json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]}),
                );
            }
            let reason = if stop == Stop::ByLength { "MAX_TOKENS" } else { "STOP" };
            if stop != Stop::Never {
                out += &sse(
                    "",
                    json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "", "thoughtSignature": "c2ln"}]}, "finishReason": reason}]}),
                );
            }
        }
        _ => {
            for text in deltas {
                out += &format!(
                    "{}\n",
                    json!({"model": "m", "message": {"role": "assistant", "content": text}, "done": false})
                );
            }
            let reason = if stop == Stop::ByLength { "length" } else { "stop" };
            if stop != Stop::Never {
                out += &format!(
                    "{}\n",
                    json!({"model": "m", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason})
                );
            }
        }
    }
    out.into_bytes()
}

fn events(dialect: Dialect, options: DecodeOptions, pieces: &[&[u8]]) -> Vec<StepEvent<'static>> {
    let mut decoder = StepDecoder::new(dialect, options);
    let mut all = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut |event| add(&mut all, event));
    }
    decoder.finish(&mut |event| add(&mut all, event));
    all
}

/// Fragments of the same thing joined: how text is divided is no meaning.
fn add(all: &mut Vec<StepEvent<'static>>, event: StepEvent<'_>) {
    match (all.last_mut(), event) {
        (Some(StepEvent::Text(known)), StepEvent::Text(text)) => known.to_mut().push_str(&text),
        (Some(StepEvent::Thinking(known)), StepEvent::Thinking(text)) => known.to_mut().push_str(&text),
        (
            Some(StepEvent::CallArguments { slot: known_slot, delta: known }),
            StepEvent::CallArguments { slot, delta },
        ) if *known_slot == slot => known.to_mut().push_str(&delta),
        (_, event) => all.push(event.into_owned()),
    }
}

fn reply(dialect: Dialect, options: DecodeOptions, body: &[u8]) -> ModelReply {
    let mut reply = ModelReply::default();
    for event in events(dialect, options, &[body]) {
        reply.apply(event);
    }
    reply
}

/// A chat reply of one delta that ends normally.
fn decode_text(protocol: &'static LinesProtocol, text: &str) -> ModelReply {
    reply(Dialect::OpenaiChat, options(protocol), &body(Dialect::OpenaiChat, &[text], Stop::Normally))
}

/// Name of each call, and its arguments or why it never runs.
fn calls(reply: &ModelReply) -> Vec<(String, Result<Value, BrokenCall>)> {
    let ending = |call: &throughline_wire::ReplyCall| match &call.ending {
        Some(Ok(arguments)) => Ok(arguments.value.clone()),
        Some(Err((why, _))) => Err(why.clone()),
        None => panic!("an open call at the end: {call:?}"),
    };
    reply.calls.iter().map(|call| (call.name.as_str().to_owned(), ending(call))).collect()
}

fn weather(city: &str) -> (String, Result<Value, BrokenCall>) {
    ("weather_today".to_owned(), Ok(json!({ "city": city })))
}

fn broken(name: &str, why: BrokenCall) -> (String, Result<Value, BrokenCall>) {
    (name.to_owned(), Err(why))
}

const PARIS: &str = "@weather_today {\"city\": \"Paris\"}\n";

// --- the same events as native ones ---

#[test]
fn block_is_a_call_with_explicit_seal_and_not_shown() {
    for dialect in DIALECTS {
        let text = ["Let me", " look.\n@weather_to", "day {\"city\": \"Paris\"}\nDone", "."];
        let body = body(dialect, &text, Stop::Normally);
        let all = events(dialect, options(&LINES), &[&body]);
        let sealed: Vec<_> = all
            .iter()
            .filter_map(|event| match event {
                StepEvent::CallSealed { seal, arguments, .. } => Some((*seal, arguments.text.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!(sealed, [(SealEvidence::Explicit, "{\"city\": \"Paris\"}")], "{dialect}");
        let position_of = |wanted: fn(&StepEvent<'_>) -> bool| all.iter().position(wanted);
        let sealed_at = position_of(|event| matches!(event, StepEvent::CallSealed { .. }));
        let done_at = position_of(|event| matches!(event, StepEvent::Text(text) if text.contains("Done")));
        assert!(
            sealed_at < done_at,
            "{dialect}: it is sealed where its marker stands, not at the end: {all:#?}"
        );

        let mut reply = ModelReply::default();
        all.into_iter().for_each(|event| reply.apply(event));
        assert_eq!(reply.text, "Let me look.\nDone.", "{dialect}");
        assert_eq!(calls(&reply), [weather("Paris")], "{dialect}");
        let finish = reply.finish.as_ref().map(|(reason, _)| *reason);
        assert_eq!(finish, Some(FinishReason::ToolCalls), "{dialect}: a stop with calls");
        assert_eq!(reply.end, Some(StreamEnd::Complete), "{dialect}");
        assert_eq!(reply.problems, [], "{dialect}");
    }
}

/// The provider state holds the blocks as text: sent with the calls themselves it would repeat them.
#[test]
fn provider_state_is_dropped_for_steps_with_text_calls() {
    for dialect in [Dialect::OpenaiResponses, Dialect::Anthropic, Dialect::Gemini] {
        let state = |text: &str| {
            reply(dialect, options(&LINES), &body(dialect, &[text], Stop::Normally)).provider_state.is_some()
        };
        assert!(state("No call."), "{dialect}: else this test proves nothing");
        assert!(!state(PARIS), "{dialect}: a call");
        assert!(!state("@ {}\n"), "{dialect}: a refused block is markup, too");
    }
}

#[test]
fn a_stop_without_blocks_stays_a_stop() {
    let reply = decode_text(&LINES, "Just text.");
    assert_eq!(reply.finish.map(|(reason, _)| reason), Some(FinishReason::Stop));
    assert_eq!(reply.text, "Just text.");
}

// --- what does not run ---

#[test]
fn calls_in_thinking_never_run() {
    let reply = decode_text(&LINES, &format!("<think>{PARIS}</think>{PARIS}"));
    assert_eq!(calls(&reply), [weather("Paris")]);
    assert_eq!(reply.thinking, PARIS);

    let thinking = json!({"choices": [{"delta": {"reasoning_content": PARIS}}]});
    let body =
        [format!("data: {thinking}\n\n").into_bytes(), body(Dialect::OpenaiChat, &["Ok."], Stop::Normally)];
    let reply = self::reply(Dialect::OpenaiChat, options(&LINES), &body.concat());
    assert_eq!((calls(&reply), reply.thinking.as_str()), (vec![], PARIS));
}

#[test]
fn refused_block_is_a_broken_call_with_its_reason() {
    let reply = decode_text(&LINES, &format!("@weather_today oops\n@ {{}}\n{PARIS}"));
    let refused = |message: &str| BrokenCall::Refused { message: message.to_owned() };
    assert_eq!(
        calls(&reply),
        [
            broken("weather_today", refused("the arguments are no JSON object")),
            broken("", refused("the line names no tool")),
            weather("Paris"),
        ]
    );
    let raw = reply.calls[0]
        .ending
        .as_ref()
        .and_then(|ending| ending.as_ref().err())
        .map(|(_, raw)| raw.0.as_str());
    assert_eq!(raw, Some("@weather_today oops"));
    assert_eq!(reply.text, "", "markup is not shown");
    assert_eq!(reply.finish.map(|(reason, _)| reason), Some(FinishReason::ToolCalls), "the turn goes on");
}

#[test]
fn reply_truncated_inside_a_block_runs_no_call() {
    for dialect in DIALECTS {
        for stop in [Stop::ByLength, Stop::Never] {
            for (text, name) in [("Hm.\n@weather_today {\"city\": \"Pa", "weather_today"), ("Hm.\n@", "")] {
                let reply = reply(dialect, options(&LINES), &body(dialect, &[text], stop));
                assert_eq!(calls(&reply), [broken(name, BrokenCall::Cut)], "{dialect}: {text:?}");
                assert_eq!(reply.text, "Hm.\n", "{dialect}");
            }
        }
    }
    // A reply that ends normally is complete: its open block has no end.
    let whole = decode_text(&LINES, "@weather_today {\"city\": \"Paris\"}");
    let refused = BrokenCall::Refused { message: "the line has no end".to_owned() };
    assert_eq!(calls(&whole), [broken("weather_today", refused)]);
}

/// For any cut of a block of a real protocol, none of its markup is shown.
#[test]
fn markup_of_a_truncated_block_is_not_shown() {
    for protocol in PROTOCOLS {
        let whole = replies(*protocol).remove(0);
        let before = "Let me look.\n\n";
        for (at, _) in whole.char_indices().filter(|(at, _)| *at >= before.len()) {
            let body = body(Dialect::OpenaiChat, &[&whole[..at]], Stop::ByLength);
            let reply = reply(Dialect::OpenaiChat, options(*protocol), &body);
            let shown = reply.text.trim_end();
            let is_text = shown.starts_with("Let me look.\n\nSo it is.")
                || "Let me look.\n\nSo it is.".starts_with(shown);
            // One or two signs may be text as well.
            assert!(
                is_text || shown.len() <= before.len() + 2,
                "{}: {:?} shows {shown:?}",
                protocol.name(),
                &whole[..at]
            );
            assert!(reply.calls.len() <= 1, "{}", protocol.name());
        }
    }
}

/// The readers are made to disagree, which the real ones must never do.
#[test]
fn calls_that_the_readers_disagree_on_never_run() {
    let rome = "@weather_today {\"city\": \"Rome\"}\n";
    for protocol in [&READS_MORE, &READS_OTHER_ARGUMENTS, &MISSES_A_CALL] {
        let reply = decode_text(protocol, &format!("{PARIS}Well.\n{rome}"));
        let runnable: Vec<_> = calls(&reply).into_iter().filter(|(_, ending)| ending.is_ok()).collect();
        let trusted: &[_] = if protocol.reads_more() {
            // What both have read alike is trusted.
            &[weather("Paris"), weather("Rome")]
        } else {
            &[]
        };
        assert_eq!(runnable, trusted, "{protocol:?}");
        let ambiguous =
            reply.problems.iter().filter(|problem| problem.kind == ProblemKind::Ambiguous).count();
        let broken = calls(&reply)
            .iter()
            .filter(|(_, ending)| matches!(ending, Err(BrokenCall::Ambiguous { .. })))
            .count();
        assert!(ambiguous > 0 && ambiguous == broken, "{protocol:?}: each is told: {:#?}", reply.problems);
    }
}

#[test]
fn markup_findings_are_reported_with_their_position() {
    let reply = decode_text(&LINES, "One.\n#note\n");
    let [problem] = &reply.problems[..] else { panic!("{:?}", reply.problems) };
    let finding = "line 2, column 1: a line that begins with # means nothing".to_owned();
    assert_eq!(problem.kind, ProblemKind::CallMarkup { finding, kind: FindingKind::Directive });
    assert_eq!(problem.excerpt, "#note");
}

// --- text mode together with other features ---

#[test]
fn text_mode_limits_are_enforced() {
    let limits = DecodeLimits { arguments_bytes_max: 24, calls_per_step_max: 2, ..DecodeLimits::default() };
    let rome = "@weather_today {\"city\": \"Rome\"}\n";
    let long = "@weather_today {\"city\": \"Llanfairpwllgwyngyll\"}\n";
    let body = body(Dialect::OpenaiChat, &[long, rome, rome, rome], Stop::Normally);
    let reply = reply(Dialect::OpenaiChat, DecodeOptions { limits, ..options(&LINES) }, &body);
    let too_large = BrokenCall::TooLarge { limit: "arguments_bytes_max".to_owned() };
    assert_eq!(calls(&reply), [broken("weather_today", too_large), weather("Rome")]);
    let reached: Vec<_> = reply.problems.iter().map(|problem| problem.kind.clone()).collect();
    let reached_limit = |limit: &str| ProblemKind::LimitReached { limit: limit.to_owned() };
    assert_eq!(reached, [reached_limit("arguments_bytes_max"), reached_limit("calls_per_step_max")]);
}

#[test]
fn native_calls_in_text_mode_do_not_affect_blocks() {
    let native =
        |delta: Value| format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [delta]}}]}));
    let text = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": PARIS}}]}));
    let head =
        native(json!({"id": "n1", "function": {"name": "weather_today", "arguments": "{\"city\": \"O"}}));
    // Without number and id: it continues the last call that came this way, not the block.
    let rest = native(json!({"function": {"arguments": "slo\"}"}}));
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
    for order in [[&head, &text, &rest], [&text, &head, &rest]] {
        let body = order.map(String::as_str).concat() + end;
        let reply = reply(Dialect::OpenaiChat, options(&LINES), body.as_bytes());
        let mut found = calls(&reply);
        found.sort_by_key(|(_, ending)| format!("{ending:?}"));
        assert_eq!(found, [weather("Oslo"), weather("Paris")]);
        assert_eq!(reply.problems, []);
    }
    let stray = text.clone() + &rest + end;
    let reply = reply(Dialect::OpenaiChat, options(&LINES), stray.as_bytes());
    assert_eq!(calls(&reply), [weather("Paris"), broken("", BrokenCall::Nameless)]);
}

#[test]
fn leaked_calls_of_other_formats_are_reported() {
    let hermes = "<tool_call>{\"name\": \"weather_today\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call>";
    let reply = decode_text(&LINES, &format!("{PARIS}{hermes}"));
    assert_eq!(calls(&reply), [weather("Paris")]);
    assert_eq!(reply.problems.len(), 1, "{:?}", reply.problems);
    assert_eq!(reply.problems[0].kind, ProblemKind::LeakedCall { format: "hermes".to_owned() });
}

#[test]
fn restarted_reply_voids_earlier_calls() {
    let first = body(Dialect::Anthropic, &[PARIS, "@weather_today {\"city\""], Stop::Never);
    let second = body(Dialect::Anthropic, &["@weather_today {\"city\": \"Rome\"}\n"], Stop::Normally);
    let reply = reply(Dialect::Anthropic, options(&LINES), &[first, second].concat());
    let runnable: Vec<_> = calls(&reply).into_iter().filter(|(_, ending)| ending.is_ok()).collect();
    assert_eq!(runnable, [weather("Rome")]);
    assert_eq!(reply.calls.len(), 3, "and what was shown stays told: {:#?}", reply.calls);
}

// --- any cut, any protocol ---

/// Replies in a protocol: what a model writes, torn, refused, quoted and repeated.
fn replies(protocol: &'static dyn TextProtocol) -> Vec<String> {
    let block = |city: &str| {
        let call = Call {
            id: "c".into(),
            upstream_id: None,
            name: "weather_today".into(),
            kind: CallKind::Function,
            arguments: Ok(CallArguments::from_value(json!({ "city": city }))),
            ran_with: None,
        };
        protocol.format_call(&call, &tools())
    };
    let whole = block("Paris, 巴黎 🌦 <b>\n»");
    let torn: String = whole.chars().take(whole.chars().count() * 2 / 3).collect();
    vec![
        format!("Let me look.\n\n{whole}\n\nSo it is."),
        format!("{whole}\n{}\n{}", block("Rome"), block("Oslo")),
        format!("Like this:\n```\n{whole}\n```\nor `{whole}`.\n"),
        format!("First {torn}\n\n{whole}\n"),
        format!("<think>I could say\n{whole}\n</think>\nNo."),
        format!("Well. {torn}"),
        "Nothing < at all <<, only [text] «and» @ some\n> signs\n".to_owned(),
    ]
}

#[test]
fn every_cut_of_every_body_gives_the_same_events() {
    let protocols: Vec<&'static dyn TextProtocol> =
        PROTOCOLS.iter().copied().chain([&LINES as &dyn TextProtocol]).collect();
    let mut cuts = 0;
    for protocol in protocols {
        for (text, dialect) in
            replies(protocol).iter().flat_map(|text| DIALECTS.map(|dialect| (text, dialect)))
        {
            let characters: Vec<char> = text.chars().collect();
            let deltas: Vec<String> = characters.chunks(5).map(|piece| piece.iter().collect()).collect();
            let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
            let body = body(dialect, &deltas, Stop::Normally);
            let whole = events(dialect, options(protocol), &[&body]);
            let check = |pieces: &[&[u8]], how: &str| {
                let cut = events(dialect, options(protocol), pieces);
                assert_eq!(cut, whole, "{} in {dialect}, cut {how}: {text}", protocol.name());
            };
            // Every cut of one dialect, a selection of them in the others: the scanner is the same.
            let step = if dialect == Dialect::OpenaiChat { 7 } else { 97 };
            for at in (0..=body.len()).step_by(step) {
                check(&[&body[..at], &body[at..]], &at.to_string());
                cuts += 1;
            }
            let bytes: Vec<&[u8]> = body.chunks(1).collect();
            check(&bytes, "at every byte");
        }
    }
    assert!(cuts > 500, "{cuts} cuts are no proof");
}

/// The provider's division of the text into deltas changes where events stand in the stream, never what they say.
#[test]
fn every_division_into_deltas_gives_the_same_reply() {
    for protocol in PROTOCOLS.iter().copied().chain([&LINES as &dyn TextProtocol]) {
        for text in replies(protocol) {
            let read = |size: usize| {
                let characters: Vec<char> = text.chars().collect();
                let deltas: Vec<String> =
                    characters.chunks(size).map(|piece| piece.iter().collect()).collect();
                let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
                let body = body(Dialect::OpenaiChat, &deltas, Stop::Normally);
                let mut reply = reply(Dialect::OpenaiChat, options(protocol), &body);
                for problem in &mut reply.problems {
                    // The place in the body, and how much of the line had come, do depend on it.
                    (problem.at, problem.excerpt) = (0, String::new());
                }
                reply
            };
            let whole = read(usize::MAX);
            for size in [1, 2, 3, 5, 8, 13, 64] {
                assert_eq!(read(size), whole, "{} in pieces of {size}: {text}", protocol.name());
            }
        }
    }
}
