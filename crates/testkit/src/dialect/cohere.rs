//! Cohere v2 chat: named events in server-sent frames, one object per call event, `message-end` with reason and usage.
//!
//! Shapes as in `docs.cohere.com/v2/docs/streaming` and recorded from api.cohere.com.

pub(crate) mod request;

use super::{ReplyEncoder, WholeReply, sse, status_message};
use crate::fake_ids::letters;
use crate::parsed_request::ParsedRequest;
use crate::script::{CallMove, ErrorMove, ScriptFinish, TokenCounts};
use serde_json::{Value, json};

pub(crate) struct CohereReplyWriter {
    number: u64,
    blocks: u64,
    /// Number of the open content block.
    open: Option<u64>,
}

impl CohereReplyWriter {
    pub fn new(seen: &ParsedRequest) -> Self {
        Self { number: seen.number, blocks: 0, open: None }
    }

    fn close_open(&mut self, out: &mut Vec<u8>) {
        if let Some(index) = self.open.take() {
            event("content-end", json!({"index": index}), out);
        }
    }
}

fn event(name: &str, mut data: Value, out: &mut Vec<u8>) {
    data["type"] = name.into();
    sse(out, Some(name), &data);
}

impl ReplyEncoder for CohereReplyWriter {
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        let message =
            json!({"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []});
        event("message-start", json!({"id": reply_id(self.number), "delta": {"message": message}}), out);
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        let index = self.open.unwrap_or_else(|| {
            let index = self.blocks;
            let content = json!({"type": "text", "text": ""});
            event("content-start", json!({"index": index, "delta": {"message": {"content": content}}}), out);
            self.blocks += 1;
            index
        });
        self.open = Some(index);
        let content = json!({"text": piece});
        event("content-delta", json!({"index": index, "delta": {"message": {"content": content}}}), out);
    }

    fn think(&mut self, piece: &str, out: &mut Vec<u8>) {
        self.close_open(out);
        event("tool-plan-delta", json!({"delta": {"message": {"tool_plan": piece}}}), out);
    }

    fn call_open(&mut self, ordinal: usize, call: &CallMove, out: &mut Vec<u8>) {
        self.close_open(out);
        let id = call_id(self.number, ordinal, call);
        let call = json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": ""}});
        event("tool-call-start", json!({"index": ordinal, "delta": {"message": {"tool_calls": call}}}), out);
    }

    fn call_arguments(&mut self, ordinal: usize, piece: &str, out: &mut Vec<u8>) {
        let call = json!({"function": {"arguments": piece}});
        event("tool-call-delta", json!({"index": ordinal, "delta": {"message": {"tool_calls": call}}}), out);
    }

    fn call_close(&mut self, ordinal: usize, out: &mut Vec<u8>) {
        event("tool-call-end", json!({"index": ordinal}), out);
    }

    fn ping(&mut self, _: &mut Vec<u8>) {}

    fn finish(&mut self, finish: &ScriptFinish, usage: &TokenCounts, out: &mut Vec<u8>) {
        self.close_open(out);
        let delta = json!({"finish_reason": finish_word(finish), "usage": usage_object(usage)});
        event("message-end", json!({"delta": delta}), out);
    }

    fn end(&mut self, _: &TokenCounts, _: &mut Vec<u8>) {}

    fn error(&mut self, error: &ErrorMove, out: &mut Vec<u8>) {
        let delta = json!({"finish_reason": "ERROR", "error": error.message});
        event("message-end", json!({"delta": delta}), out);
    }
}

fn reply_id(number: u64) -> String {
    let part = |name: &str, length| letters(&format!("{name}/{number}"), length).to_ascii_lowercase();
    format!("{}-{}-{}", part("reply", 8), part("of", 4), part("cohere", 12))
}

fn call_id(number: u64, ordinal: usize, call: &CallMove) -> String {
    let made =
        || format!("{}_{}", call.name, letters(&format!("call/{number}/{ordinal}"), 12).to_ascii_lowercase());
    call.id.clone().unwrap_or_else(made)
}

fn finish_word(finish: &ScriptFinish) -> &str {
    match finish {
        ScriptFinish::Stop => "COMPLETE",
        ScriptFinish::Length => "MAX_TOKENS",
        ScriptFinish::ToolCalls => "TOOL_CALL",
        // The API has no word for it.
        ScriptFinish::ContentFilter => "ERROR",
        ScriptFinish::Other(word) => word,
    }
}

fn usage_object(usage: &TokenCounts) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    json!({
        "billed_units": {"input_tokens": input, "output_tokens": output},
        "tokens": {"input_tokens": input, "output_tokens": output},
        "cached_tokens": usage.cached.unwrap_or(0),
    })
}

/// The non-streaming body.
pub(crate) fn whole_reply(seen: &ParsedRequest, reply: &WholeReply, finish: &ScriptFinish) -> Value {
    let mut message = json!({"role": "assistant"});
    if !reply.thinking.is_empty() {
        message["tool_plan"] = reply.thinking.as_str().into();
    }
    if !reply.text.is_empty() {
        message["content"] = json!([{"type": "text", "text": reply.text}]);
    }
    if !reply.calls.is_empty() {
        let calls = reply.calls.iter().enumerate().map(|(ordinal, call)| {
            let function = json!({"name": call.name, "arguments": call.text()});
            json!({"id": call_id(seen.number, ordinal, call), "type": "function", "function": function})
        });
        message["tool_calls"] = calls.collect();
    }
    json!({
        "id": reply_id(seen.number), "message": message, "finish_reason": finish_word(finish),
        "usage": usage_object(&reply.usage),
    })
}

/// `{"id","message"}`.
pub(crate) fn error_body(status: u16, error: &ErrorMove) -> Value {
    let message = if error.message.is_empty() { status_message(status) } else { &error.message };
    json!({"id": letters(message, 12).to_ascii_lowercase(), "message": message})
}
