//! Ollama `/api/chat`: one JSON object a line; whole calls with object arguments; `done: true` at the end.
//!
//! Shapes as recorded from ollama 0.13 (`"tool_calls":[{"id","function":{"index","name","arguments":{…}}}]`).

pub(crate) mod request;

use super::{ReplyEncoder, WholeReply};
use crate::fake_ids::letters;
use crate::parsed_request::ParsedRequest;
use crate::script::{CallMove, ErrorMove, ScriptFinish, TokenCounts};
use serde_json::{Value, json};

/// `created_at` of every line: fixed, so that bytes are the same in every run.
const CREATED_AT: &str = "2025-11-21T00:00:00.000000Z";

pub(crate) struct OllamaReplyWriter {
    number: u64,
    model: String,
    calls: Vec<(CallMove, String)>,
}

impl OllamaReplyWriter {
    pub fn new(seen: &ParsedRequest) -> Self {
        Self { number: seen.number, model: seen.model.clone(), calls: Vec::new() }
    }

    fn message(&self, message: Value, out: &mut Vec<u8>) {
        let line = json!({"model": self.model, "created_at": CREATED_AT, "message": message, "done": false});
        write_line(&line, out);
    }
}

fn write_line(line: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{line}\n").as_bytes());
}

impl ReplyEncoder for OllamaReplyWriter {
    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn open(&mut self, _: &mut Vec<u8>) {}

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        self.message(json!({"role": "assistant", "content": piece}), out);
    }

    fn think(&mut self, piece: &str, out: &mut Vec<u8>) {
        self.message(json!({"role": "assistant", "content": "", "thinking": piece}), out);
    }

    fn call_open(&mut self, _: usize, call: &CallMove, _: &mut Vec<u8>) {
        self.calls.push((call.clone(), String::new()));
    }

    fn call_arguments(&mut self, ordinal: usize, piece: &str, _: &mut Vec<u8>) {
        self.calls[ordinal].1.push_str(piece);
    }

    fn call_close(&mut self, ordinal: usize, out: &mut Vec<u8>) {
        let (call, text) = &self.calls[ordinal];
        let call = call_object(self.number, ordinal, call, text);
        self.message(json!({"role": "assistant", "content": "", "tool_calls": [call]}), out);
    }

    fn ping(&mut self, _: &mut Vec<u8>) {}

    fn finish(&mut self, finish: &ScriptFinish, usage: &TokenCounts, out: &mut Vec<u8>) {
        let message = json!({"role": "assistant", "content": ""});
        write_line(&last_line(&self.model, message, finish, usage), out);
    }

    fn end(&mut self, _: &TokenCounts, _: &mut Vec<u8>) {}

    fn error(&mut self, error: &ErrorMove, out: &mut Vec<u8>) {
        write_line(&error_body(error), out);
    }
}

fn call_object(number: u64, ordinal: usize, call: &CallMove, text: &str) -> Value {
    let id = call.id.clone().unwrap_or_else(|| {
        format!("call_{}", letters(&format!("call/{number}/{ordinal}"), 8).to_ascii_lowercase())
    });
    // Broken JSON as a string: proxies do so (quirk O2).
    let arguments = serde_json::from_str::<Value>(text).unwrap_or_else(|_| text.into());
    json!({"id": id, "function": {"index": ordinal, "name": call.name, "arguments": arguments}})
}

fn last_line(model: &str, message: Value, finish: &ScriptFinish, usage: &TokenCounts) -> Value {
    let done_reason = match finish {
        // The API has no word for calls.
        ScriptFinish::Stop | ScriptFinish::ToolCalls => "stop",
        ScriptFinish::Length => "length",
        ScriptFinish::ContentFilter => "content_filter",
        ScriptFinish::Other(word) => word,
    };
    json!({
        "model": model, "created_at": CREATED_AT, "message": message, "done": true, "done_reason": done_reason,
        "total_duration": 913_140_194, "load_duration": 55_095_250, "prompt_eval_count": usage.input.unwrap_or(0),
        "prompt_eval_duration": 69_671_250, "eval_count": usage.output.unwrap_or(0), "eval_duration": 446_602_545,
    })
}

/// The non-streaming body: the last line with everything in it.
pub(crate) fn whole_reply(seen: &ParsedRequest, reply: &WholeReply, finish: &ScriptFinish) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !reply.thinking.is_empty() {
        message["thinking"] = reply.thinking.as_str().into();
    }
    if !reply.calls.is_empty() {
        let call =
            |(ordinal, call): (usize, &CallMove)| call_object(seen.number, ordinal, call, &call.text());
        message["tool_calls"] = reply.calls.iter().enumerate().map(call).collect();
    }
    last_line(&seen.model, message, finish, &reply.usage)
}

/// `{"error":"…"}`.
pub(crate) fn error_body(error: &ErrorMove) -> Value {
    json!({"error": error.message})
}
