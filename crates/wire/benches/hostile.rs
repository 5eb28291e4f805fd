//! Replies made to burn a processor: many small pieces beside something large. `cargo xtask bench decode` counts the
//! instructions of each at two sizes and judges their ratio: no piece may cost what lies beside it.
//!
//! ```text
//! cargo bench -p throughline-wire --bench hostile -- count SHAPE PIECES     to run under callgrind
//! cargo bench -p throughline-wire --bench hostile -- list
//! ```

use std::fmt::Write;
use std::process::ExitCode;
use throughline_wire::{DecodeOptions, Dialect, ModelReply, StepDecoder};

/// One hostile reply: so many pieces, and beside them so many bytes for each piece.
struct HostileShape {
    name: &'static str,
    dialect: Dialect,
    body: fn(pieces: usize) -> String,
}

/// Bytes of the large thing for each piece.
const BYTES_PER_PIECE: usize = 100;

const SHAPES: [HostileShape; 18] = [
    HostileShape {
        name: "responses.deltas-of-nobody",
        dialect: Dialect::OpenaiResponses,
        body: |pieces| {
            let mut body = open_item(0) + &arguments_delta(0, &object(pieces)) + &open_item(1);
            (0..pieces).for_each(|piece| body += &arguments_delta(100 + piece, "{\\\"a\\\":1}"));
            body + RESPONSE_END
        },
    },
    HostileShape {
        name: "responses.ends-of-nobody",
        dialect: Dialect::OpenaiResponses,
        body: |pieces| {
            let mut body = open_item(0) + &arguments_done(0, &object(pieces)) + &open_item(1) + &open_item(2);
            (0..pieces).for_each(|piece| body += &arguments_done(100 + piece, "{\\\"a\\\":1}"));
            body + RESPONSE_END
        },
    },
    HostileShape {
        name: "responses.ends-that-repeat",
        dialect: Dialect::OpenaiResponses,
        body: |pieces| {
            let mut body = open_item(0) + &arguments_delta(0, &spaced("{\\\"a\\\":1", pieces, "}"));
            (0..pieces).for_each(|piece| body += &arguments_done(100 * (piece % 2), "{\\\"a\\\":1}"));
            body + RESPONSE_END
        },
    },
    HostileShape {
        name: "responses.deltas-behind-messages",
        dialect: Dialect::OpenaiResponses,
        body: |pieces| {
            let mut body = String::new();
            for piece in 0..pieces {
                let item = format!("{{\"type\":\"message\",\"id\":\"m{piece}\"}}");
                let _ = write!(
                    body,
                    "data: {{\"type\":\"response.output_item.added\",\"output_index\":{piece},\"item\":{item}}}\n\n"
                );
            }
            body += &open_item(pieces);
            (0..pieces).for_each(|piece| body += &arguments_delta(2 * pieces + piece, "x"));
            body + RESPONSE_END
        },
    },
    HostileShape {
        name: "responses.snapshot-of-nameless-items",
        dialect: Dialect::OpenaiResponses,
        body: |pieces| {
            let mut body = open_item(pieces) + &open_item(pieces + 1);
            (0..pieces).rev().for_each(|piece| body += &arguments_delta(piece, "1"));
            let item = "{\"type\":\"function_call\",\"arguments\":\"1\"}";
            let output = vec![item; pieces].join(",");
            let response = format!("{{\"status\":\"completed\",\"output\":[{output}]}}");
            body + &format!("data: {{\"type\":\"response.completed\",\"response\":{response}}}\n\n")
        },
    },
    HostileShape {
        name: "chat.strays-beside-calls",
        dialect: Dialect::OpenaiChat,
        body: |pieces| {
            let mut body: String = (0..32).map(|call| chat(call, "f", "{}")).collect();
            body += &chat(32, "f", &object(pieces));
            (0..pieces).for_each(|piece| body += &chat(100 + piece, "", "1"));
            body + CHAT_END
        },
    },
    HostileShape {
        name: "chat.calls-beyond-the-limit",
        dialect: Dialect::OpenaiChat,
        body: |pieces| {
            let mut body = chat(0, "f", &object(pieces));
            (1..pieces).for_each(|piece| body += &chat(piece, "f", "{}"));
            body + CHAT_END
        },
    },
    HostileShape {
        name: "chat.repetitions-of-a-blank-call",
        dialect: Dialect::OpenaiChat,
        body: |pieces| {
            let mut body = chat(0, "f", &spaced("{}", pieces, ""));
            (0..pieces).for_each(|_| body += &chat(0, "f", "{}"));
            body + CHAT_END
        },
    },
    HostileShape {
        name: "chat.blank-behind-an-empty-object",
        dialect: Dialect::OpenaiChat,
        body: |pieces| {
            let mut body = chat(0, "f", &spaced("{", pieces, "}"));
            (0..pieces).for_each(|_| body += &chat(0, "", " "));
            body + CHAT_END
        },
    },
    HostileShape {
        name: "chat.blank-of-nobody",
        dialect: Dialect::OpenaiChat,
        body: |pieces| {
            let mut body = chat(0, "", &spaced("", pieces, ""));
            (0..pieces).for_each(|_| body += &chat(0, "", " "));
            body + CHAT_END
        },
    },
    HostileShape {
        name: "chat.blank-behind-a-sealed-call",
        dialect: Dialect::OpenaiChat,
        body: |pieces| {
            let mut body = chat(0, "f", &object(pieces));
            (0..pieces).for_each(|_| body += &chat(0, "", " "));
            body + CHAT_END
        },
    },
    HostileShape {
        name: "chat.bytes-behind-a-sealed-call",
        dialect: Dialect::OpenaiChat,
        body: |pieces| {
            let mut body = chat(0, "f", &object(pieces));
            (0..pieces).for_each(|_| body += &chat(0, "", "x"));
            body + CHAT_END
        },
    },
    HostileShape {
        name: "chat.names-in-pieces",
        dialect: Dialect::OpenaiChat,
        body: |pieces| (0..pieces).map(|_| chat(0, "xy", "")).collect::<String>() + CHAT_END,
    },
    HostileShape {
        name: "anthropic.deltas-of-nobody",
        dialect: Dialect::Anthropic,
        body: |pieces| {
            let mut body = anthropic_call(0) + &anthropic_delta(0, &object(pieces)) + &anthropic_call(1);
            (0..pieces).for_each(|piece| body += &anthropic_delta(100 + piece, "1"));
            body + ANTHROPIC_END
        },
    },
    HostileShape {
        name: "anthropic.calls-beyond-the-limit",
        dialect: Dialect::Anthropic,
        body: |pieces| {
            let mut body = anthropic_call(0) + &anthropic_delta(0, &object(pieces));
            (1..pieces).for_each(|piece| body += &anthropic_call(piece));
            (1..pieces).for_each(|piece| body += &anthropic_delta(piece, "1"));
            body + ANTHROPIC_END
        },
    },
    HostileShape {
        name: "gemini.calls",
        dialect: Dialect::Gemini,
        body: |pieces| {
            let call = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{}}}]}}]}\n\n";
            call.repeat(pieces) + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n"
        },
    },
    HostileShape {
        name: "gemini.pieces-of-nobody",
        dialect: Dialect::Gemini,
        body: |pieces| {
            let part = |call: &str| {
                format!(
                    "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{call}}}]}}}}]}}\n\n"
                )
            };
            let whole =
                format!("{{\"name\":\"f\",\"args\":{{\"a\":\"{}\"}}}}", "x".repeat(pieces * BYTES_PER_PIECE));
            let piece = part("{\"partialArgs\":[{\"jsonPath\":\"$.a\",\"stringValue\":\"x\"}]}");
            part(&whole) + &piece.repeat(pieces) + "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n"
        },
    },
    HostileShape {
        name: "cohere.deltas-of-nobody",
        dialect: Dialect::Cohere,
        body: |pieces| {
            let start = |index: usize| {
                format!(
                    "data: {{\"type\":\"tool-call-start\",\"index\":{index},\"delta\":{{\"message\":{{\"tool_calls\":\
                     {{\"id\":\"c{index}\",\"function\":{{\"name\":\"f\",\"arguments\":\"\"}}}}}}}}}}\n\n"
                )
            };
            let delta = |index: usize, text: &str| {
                format!(
                    "data: {{\"type\":\"tool-call-delta\",\"index\":{index},\"delta\":{{\"message\":{{\"tool_calls\":\
                     {{\"function\":{{\"arguments\":\"{text}\"}}}}}}}}}}\n\n"
                )
            };
            let mut body = start(0) + &delta(0, &object(pieces)) + &start(1);
            (0..pieces).for_each(|piece| body += &delta(100 + piece, "1"));
            body + "data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"TOOL_CALL\"}}\n\n"
        },
    },
];

const RESPONSE_END: &str =
    "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
const CHAT_END: &str =
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
const ANTHROPIC_END: &str = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n\
                             data: {\"type\":\"message_stop\"}\n\n";

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

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => SHAPES.iter().for_each(|shape| println!("{}", shape.name)),
        ["count", name, pieces] => {
            let shape = SHAPES.iter().find(|shape| shape.name == *name);
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
fn decode(shape: &HostileShape, pieces: usize) {
    let body = (shape.body)(pieces);
    let mut decoder = StepDecoder::new(shape.dialect, DecodeOptions::default());
    let mut end = ModelReply::default();
    decoder.push(body.as_bytes(), &mut |event| end.apply(event));
    decoder.finish(&mut |event| end.apply(event));
    assert!(end.end.is_some(), "{}: no end", shape.name);
}
