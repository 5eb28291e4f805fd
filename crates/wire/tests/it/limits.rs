//! Every limit of the decoder: reached, named, and nothing that came before it is lost.

use throughline_wire::json::ARGUMENTS_DEPTH_MAX;
use throughline_wire::{
    BrokenCall, DecodeLimits, DecodeOptions, Dialect, ModelReply, ProblemKind, StepDecoder, StepProblem,
    StreamEnd,
};

fn decode(dialect: Dialect, limits: DecodeLimits, body: &[u8], piece: usize) -> ModelReply {
    let mut decoder = StepDecoder::new(dialect, DecodeOptions { limits, ..DecodeOptions::default() });
    let mut reply = ModelReply::default();
    for bytes in body.chunks(piece) {
        decoder.push(bytes, &mut |event| reply.apply(event));
    }
    decoder.finish(&mut |event| reply.apply(event));
    reply
}

/// Decodes for several cuts; the limit must be reported exactly once, by name. Returns the reply.
fn check(dialect: Dialect, limits: DecodeLimits, body: &str, limit: &str) -> ModelReply {
    let reply = decode(dialect, limits, body.as_bytes(), body.len());
    let reached =
        |problem: &&StepProblem| problem.kind == ProblemKind::LimitReached { limit: limit.to_owned() };
    assert_eq!(reply.problems.iter().filter(reached).count(), 1, "{limit}: {:?}", reply.problems);
    for piece in [1, 7, 64] {
        assert_eq!(decode(dialect, limits, body.as_bytes(), piece), reply, "{limit}, in pieces of {piece}");
    }
    reply
}

fn text(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

fn call(index: usize, arguments: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"c{index}\",\"function\":{{\"name\":\"f\",\"arguments\":\"{arguments}\"}}}}]}}}}]}}\n\n"
    )
}

const DONE: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Asserts that the step failed because of the limit, and reports it.
fn failed_by(reply: &ModelReply, limit: &str) -> bool {
    matches!(&reply.end, Some(StreamEnd::Error(error)) if error.kind.as_deref() == Some(limit))
}

#[test]
fn decode_limits_have_the_required_defaults() {
    let DecodeLimits {
        line_bytes_max,
        event_bytes_max,
        arguments_bytes_max,
        step_bytes_max,
        calls_per_step_max,
    } = DecodeLimits::default();
    assert_eq!((line_bytes_max, event_bytes_max, arguments_bytes_max), (16 << 20, 16 << 20, 4 << 20));
    assert_eq!((step_bytes_max, calls_per_step_max), (64 << 20, 64));
}

#[test]
fn line_bytes_max_drops_the_line_and_fails_the_reply() {
    let body = text("ok") + &text(&"x".repeat(200)) + &text("more") + DONE;
    let limits = DecodeLimits { line_bytes_max: 100, ..DecodeLimits::default() };
    let reply = check(Dialect::OpenaiChat, limits, &body, "line_bytes_max");
    assert_eq!(reply.text, "okmore", "what fits is kept");
    assert!(
        failed_by(&reply, "line_bytes_max"),
        "what was dropped may have been part of a call: {:?}",
        reply.end
    );
    let reply = check(
        Dialect::Ollama,
        limits,
        &format!("{{\"message\":{{\"content\":\"ok\"}}}}\n{}\n", "x".repeat(200)),
        "line_bytes_max",
    );
    assert_eq!(reply.text, "ok");
}

#[test]
fn event_bytes_max_drops_the_event_and_fails_the_reply() {
    let many_lines = format!("{}\n", "data: xxxxxxxxxxxxxxxxxxxx\n".repeat(10));
    let body = text("ok") + &many_lines + &text("more") + DONE;
    let limits = DecodeLimits { event_bytes_max: 100, ..DecodeLimits::default() };
    let reply = check(Dialect::OpenaiChat, limits, &body, "event_bytes_max");
    assert_eq!(reply.text, "okmore");
    assert!(failed_by(&reply, "event_bytes_max"));
    let whole = format!("{{\"choices\":[{{\"message\":{{\"content\":\"{}\"}}}}]}}", "x".repeat(200));
    assert!(failed_by(&check(Dialect::OpenaiChat, limits, &whole, "event_bytes_max"), "event_bytes_max"));
    let array = format!("[{{\"candidates\":[]}},{{\"x\":\"{}\"}}]", "x".repeat(200));
    assert!(failed_by(&check(Dialect::Gemini, limits, &array, "event_bytes_max"), "event_bytes_max"));
}

#[test]
fn arguments_bytes_max_breaks_only_the_larger_call() {
    let limits = DecodeLimits { arguments_bytes_max: 12, ..DecodeLimits::default() };
    let fits = call(0, "{\\\"a\\\":12345}") + DONE;
    let reply = decode(Dialect::OpenaiChat, limits, fits.as_bytes(), 9);
    assert!(matches!(reply.calls[0].ending, Some(Ok(_))), "eleven bytes fit: {reply:?}");
    let body = call(0, "{\\\"a\\\":12345678}") + &call(1, "{}") + DONE;
    let reply = check(Dialect::OpenaiChat, limits, &body, "arguments_bytes_max");
    let too_large = BrokenCall::TooLarge { limit: "arguments_bytes_max".to_owned() };
    assert!(matches!(&reply.calls[0].ending, Some(Err((why, _))) if *why == too_large), "{reply:?}");
    assert!(matches!(reply.calls[1].ending, Some(Ok(_))), "the other call is unharmed");
}

#[test]
fn arguments_depth_is_limited_alike_in_every_encoding() {
    let of = |depth: usize| [r#"{"a":"#.repeat(depth - 1), "{}".to_owned(), "}".repeat(depth - 1)].concat();
    for (depth, is_whole) in [(ARGUMENTS_DEPTH_MAX, true), (ARGUMENTS_DEPTH_MAX + 1, false)] {
        let (arguments, escaped) = (of(depth), of(depth).replace('"', "\\\""));
        let ollama = format!(
            "{{\"message\":{{\"tool_calls\":[{{\"function\":{{\"name\":\"f\",\"arguments\":{arguments}}}}}]}},\"done\":true}}\n"
        );
        let twice = escaped.replace('\\', r"\\").replace('"', r#"\""#);
        for (dialect, body) in [
            (Dialect::OpenaiChat, call(0, &escaped) + DONE),
            (Dialect::OpenaiChat, call(0, &format!("\\\"{twice}\\\"")) + DONE),
            (Dialect::OpenaiChat, call(0, &format!("{{}}{escaped}")) + DONE),
            (Dialect::Ollama, ollama),
        ] {
            let reply = decode(dialect, DecodeLimits::default(), body.as_bytes(), 64);
            let call = &reply.calls[0];
            // A text in a text that is not read as JSON is no object, and no tool takes it.
            let is_object = matches!(&call.ending, Some(Ok(arguments)) if arguments.value.is_object());
            assert_eq!(is_object, is_whole, "{dialect}, {depth}: {call:?}");
        }
    }
}

#[test]
fn calls_per_step_max_keeps_the_first_calls() {
    let limits = DecodeLimits { calls_per_step_max: 3, ..DecodeLimits::default() };
    let body = (0..6).map(|index| call(index, "{}")).collect::<String>() + DONE;
    let reply = check(Dialect::OpenaiChat, limits, &body, "calls_per_step_max");
    assert_eq!(reply.calls.len(), 3);
    assert!(reply.calls.iter().all(|call| matches!(call.ending, Some(Ok(_)))));
}

#[test]
fn huge_call_index_yields_one_call() {
    // Quirk T5: a naive array by index would be gigabytes.
    let body = call(4_000_000_000, "{}") + DONE;
    let reply = decode(Dialect::OpenaiChat, DecodeLimits::default(), body.as_bytes(), body.len());
    assert_eq!(reply.calls.len(), 1);
}

#[test]
fn step_bytes_max_keeps_earlier_text_and_fails_the_reply() {
    let body = text("ok") + &text(&"x".repeat(200)) + DONE;
    let limits = DecodeLimits { step_bytes_max: 100, ..DecodeLimits::default() };
    let reply = check(Dialect::OpenaiChat, limits, &body, "step_bytes_max");
    assert_eq!(reply.text, "ok");
    assert!(failed_by(&reply, "step_bytes_max"));
}
