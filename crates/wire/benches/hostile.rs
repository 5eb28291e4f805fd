//! Replies made to burn a processor: many small pieces next to a large one. `cargo xtask bench decode` counts
//! the instructions of each at two sizes and judges their ratio: the cost of a piece must not depend on the
//! large one.
//!
//! ```text
//! cargo bench -p throughline-wire --bench hostile -- count SHAPE PIECES     to run under callgrind
//! cargo bench -p throughline-wire --bench hostile -- list
//! ```

use std::process::ExitCode;
use throughline_wire::{DecodeOptions, Dialect, ModelReply, StepDecoder};

/// One hostile reply: its name, dialect and end; before the end many small pieces next to a large one.
struct HostileShape(&'static str, Dialect, &'static str, fn(pieces: usize) -> String);

/// Bytes of the large thing for each piece.
const BYTES_PER_PIECE: usize = 100;

const SHAPES: [HostileShape; 18] = [
    HostileShape("responses.deltas-of-nobody", Dialect::OpenaiResponses, RESPONSE_END, |n| {
        let open = open_item(0) + &arguments_delta(0, &object(n)) + &open_item(1);
        open + &each(0..n, |piece| arguments_delta(100 + piece, "{\\\"a\\\":1}"))
    }),
    HostileShape("responses.ends-of-nobody", Dialect::OpenaiResponses, RESPONSE_END, |n| {
        let open = open_item(0) + &arguments_done(0, &object(n)) + &open_item(1) + &open_item(2);
        open + &each(0..n, |piece| arguments_done(100 + piece, "{\\\"a\\\":1}"))
    }),
    HostileShape("responses.ends-that-repeat", Dialect::OpenaiResponses, RESPONSE_END, |n| {
        let open = open_item(0) + &arguments_delta(0, &spaced("{\\\"a\\\":1", n, "}"));
        open + &each(0..n, |piece| arguments_done(100 * (piece % 2), "{\\\"a\\\":1}"))
    }),
    HostileShape("responses.deltas-behind-messages", Dialect::OpenaiResponses, RESPONSE_END, |n| {
        let open = each(0..n, open_message) + &open_item(n);
        open + &each(0..n, |piece| arguments_delta(2 * n + piece, "x"))
    }),
    HostileShape("responses.snapshot-of-nameless-items", Dialect::OpenaiResponses, "", |n| {
        let pieces =
            open_item(n) + &open_item(n + 1) + &each((0..n).rev(), |piece| arguments_delta(piece, "1"));
        pieces + &nameless_snapshot(n)
    }),
    HostileShape("chat.strays-beside-calls", Dialect::OpenaiChat, CHAT_END, |n| {
        let calls = each(0..32, |call| chat(call, "f", "{}")) + &chat(32, "f", &object(n));
        calls + &each(0..n, |piece| chat(100 + piece, "", "1"))
    }),
    HostileShape("chat.calls-beyond-the-limit", Dialect::OpenaiChat, CHAT_END, |n| {
        chat(0, "f", &object(n)) + &each(1..n, |piece| chat(piece, "f", "{}"))
    }),
    HostileShape("chat.repetitions-of-a-blank-call", Dialect::OpenaiChat, CHAT_END, |n| {
        chat(0, "f", &spaced("{}", n, "")) + &chat(0, "f", "{}").repeat(n)
    }),
    HostileShape("chat.blank-behind-an-empty-object", Dialect::OpenaiChat, CHAT_END, |n| {
        chat(0, "f", &spaced("{", n, "}")) + &chat(0, "", " ").repeat(n)
    }),
    HostileShape("chat.blank-of-nobody", Dialect::OpenaiChat, CHAT_END, |n| {
        chat(0, "", &spaced("", n, "")) + &chat(0, "", " ").repeat(n)
    }),
    HostileShape("chat.blank-behind-a-sealed-call", Dialect::OpenaiChat, CHAT_END, |n| {
        chat(0, "f", &object(n)) + &chat(0, "", " ").repeat(n)
    }),
    HostileShape("chat.bytes-behind-a-sealed-call", Dialect::OpenaiChat, CHAT_END, |n| {
        chat(0, "f", &object(n)) + &chat(0, "", "x").repeat(n)
    }),
    HostileShape("chat.names-in-pieces", Dialect::OpenaiChat, CHAT_END, |n| chat(0, "xy", "").repeat(n)),
    HostileShape("anthropic.deltas-of-nobody", Dialect::Anthropic, ANTHROPIC_END, |n| {
        let open = anthropic_call(0) + &anthropic_delta(0, &object(n)) + &anthropic_call(1);
        open + &each(0..n, |piece| anthropic_delta(100 + piece, "1"))
    }),
    HostileShape("anthropic.calls-beyond-the-limit", Dialect::Anthropic, ANTHROPIC_END, |n| {
        let calls = anthropic_call(0) + &anthropic_delta(0, &object(n)) + &each(1..n, anthropic_call);
        calls + &each(1..n, |piece| anthropic_delta(piece, "1"))
    }),
    HostileShape("gemini.calls", Dialect::Gemini, GEMINI_END, |n| {
        gemini_call("{\"name\":\"f\",\"args\":{}}").repeat(n)
    }),
    HostileShape("gemini.pieces-of-nobody", Dialect::Gemini, GEMINI_END, |n| {
        let piece = gemini_call("{\"partialArgs\":[{\"jsonPath\":\"$.a\",\"stringValue\":\"x\"}]}");
        let large = "x".repeat(n * BYTES_PER_PIECE);
        gemini_call(&format!("{{\"name\":\"f\",\"args\":{{\"a\":\"{large}\"}}}}")) + &piece.repeat(n)
    }),
    HostileShape("cohere.deltas-of-nobody", Dialect::Cohere, COHERE_END, |n| {
        let open = cohere_call(0) + &cohere_delta(0, &object(n)) + &cohere_call(1);
        open + &each(0..n, |piece| cohere_delta(100 + piece, "1"))
    }),
];

const RESPONSE_END: &str =
    "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
const CHAT_END: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
const ANTHROPIC_END: &str = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n\
                             data: {\"type\":\"message_stop\"}\n\n";
const GEMINI_END: &str = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n";
const COHERE_END: &str = "data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"TOOL_CALL\"}}\n\n";

fn each(numbers: impl Iterator<Item = usize>, piece: impl Fn(usize) -> String) -> String {
    numbers.map(piece).collect()
}

fn object(pieces: usize) -> String {
    format!("{{\\\"text\\\":\\\"{}\\\"}}", "x".repeat(pieces * BYTES_PER_PIECE))
}

fn spaced(before: &str, pieces: usize, after: &str) -> String {
    format!("{before}{}{after}", " ".repeat(pieces * BYTES_PER_PIECE))
}

fn open_item(index: usize) -> String {
    format!(
        "data: {{\"type\":\"response.output_item.added\",\"output_index\":{index},\"item\":{{\"type\":\"function_call\",\
         \"id\":\"fc{index}\",\"call_id\":\"c{index}\",\"name\":\"f\",\"arguments\":\"\"}}}}\n\n"
    )
}

fn open_message(index: usize) -> String {
    let item = format!("{{\"type\":\"message\",\"id\":\"m{index}\"}}");
    format!("data: {{\"type\":\"response.output_item.added\",\"output_index\":{index},\"item\":{item}}}\n\n")
}

/// The end of a response, with its items all over again: none has a name.
fn nameless_snapshot(items: usize) -> String {
    let output = vec!["{\"type\":\"function_call\",\"arguments\":\"1\"}"; items].join(",");
    let response = format!("{{\"status\":\"completed\",\"output\":[{output}]}}");
    format!("data: {{\"type\":\"response.completed\",\"response\":{response}}}\n\n")
}

fn arguments_delta(index: usize, text: &str) -> String {
    format!(
        "data: {{\"type\":\"response.function_call_arguments.delta\",\"output_index\":{index},\
         \"item_id\":\"fc{index}\",\"delta\":\"{text}\"}}\n\n"
    )
}

fn arguments_done(index: usize, text: &str) -> String {
    format!(
        "data: {{\"type\":\"response.function_call_arguments.done\",\"output_index\":{index},\
         \"item_id\":\"fc{index}\",\"arguments\":\"{text}\"}}\n\n"
    )
}

fn chat(index: usize, name: &str, arguments: &str) -> String {
    let head =
        if name.is_empty() { String::new() } else { format!("\"id\":\"c{index}\",\"type\":\"function\",") };
    let name = if name.is_empty() { String::new() } else { format!("\"name\":\"{name}\",") };
    format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},{head}\
         \"function\":{{{name}\"arguments\":\"{arguments}\"}}}}]}}}}]}}\n\n"
    )
}

fn anthropic_call(index: usize) -> String {
    format!(
        "data: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{\"type\":\"tool_use\",\
         \"id\":\"c{index}\",\"name\":\"f\",\"input\":{{}}}}}}\n\n"
    )
}

fn anthropic_delta(index: usize, text: &str) -> String {
    format!(
        "data: {{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"input_json_delta\",\
         \"partial_json\":\"{text}\"}}}}\n\n"
    )
}

fn gemini_call(call: &str) -> String {
    format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{call}}}]}}}}]}}\n\n")
}

fn cohere_call(index: usize) -> String {
    format!(
        "data: {{\"type\":\"tool-call-start\",\"index\":{index},\"delta\":{{\"message\":{{\"tool_calls\":\
         {{\"id\":\"c{index}\",\"function\":{{\"name\":\"f\",\"arguments\":\"\"}}}}}}}}}}\n\n"
    )
}

fn cohere_delta(index: usize, text: &str) -> String {
    format!(
        "data: {{\"type\":\"tool-call-delta\",\"index\":{index},\"delta\":{{\"message\":{{\"tool_calls\":\
         {{\"function\":{{\"arguments\":\"{text}\"}}}}}}}}}}\n\n"
    )
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => SHAPES.iter().for_each(|shape| println!("{}", shape.0)),
        ["count", name, pieces] => {
            let shape = SHAPES.iter().find(|shape| shape.0 == *name);
            let (Some(shape), Ok(pieces)) = (shape, pieces.parse()) else { return usage() };
            decode(shape, pieces);
        }
        // `cargo test --benches` without words: that it runs.
        [] => SHAPES.iter().for_each(|shape| decode(shape, 8)),
        _ => return usage(),
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: list | count SHAPE PIECES");
    ExitCode::FAILURE
}

/// Decodes a reply of this shape, which must come to its end.
fn decode(HostileShape(name, dialect, end_text, body): &HostileShape, pieces: usize) {
    let body = body(pieces) + end_text;
    let mut decoder = StepDecoder::new(*dialect, DecodeOptions::default());
    let mut end = ModelReply::default();
    decoder.push(body.as_bytes(), &mut |event| end.apply(event));
    decoder.finish(&mut |event| end.apply(event));
    assert!(end.end.is_some(), "{name}: no end");
}
