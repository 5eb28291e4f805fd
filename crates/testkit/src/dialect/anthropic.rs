//! Anthropic Messages: named events, content blocks with their own index, `message_stop` at the end.
//!
//! Shapes as recorded from api.anthropic.com (version 2023-06-01).

pub(crate) mod request;

use super::{ReplyEncoder, WholeReply, sse, status_message};
use crate::fake_ids::{letters, signature};
use crate::parsed_request::ParsedRequest;
use crate::script::{CallMove, ErrorMove, ScriptFinish, TokenCounts};
use serde_json::{Value, json};

pub(crate) struct AnthropicReplyWriter {
    number: u64,
    model: String,
    blocks: u64,
    open: Option<OpenContentBlock>,
    /// Block number of each call of the reply.
    calls: Vec<u64>,
    unstopped: Vec<u64>,
}

enum OpenContentBlock {
    Text(u64),
    Thinking(u64, String),
}

impl AnthropicReplyWriter {
    pub fn new(seen: &ParsedRequest) -> Self {
        Self {
            number: seen.number,
            model: seen.model.clone(),
            blocks: 0,
            open: None,
            calls: Vec::new(),
            unstopped: Vec::new(),
        }
    }

    fn start_block(&mut self, block: Value, out: &mut Vec<u8>) -> u64 {
        let index = self.blocks;
        self.blocks += 1;
        event("content_block_start", json!({"index": index, "content_block": block}), out);
        index
    }

    /// Closes the text or thinking block, if one is open.
    fn close_open(&mut self, out: &mut Vec<u8>) {
        let index = match self.open.take() {
            None => return,
            Some(OpenContentBlock::Text(index)) => index,
            Some(OpenContentBlock::Thinking(index, text)) => {
                delta(index, json!({"type": "signature_delta", "signature": signature(&text)}), out);
                index
            }
        };
        event("content_block_stop", json!({"index": index}), out);
    }
}

fn event(name: &str, mut data: Value, out: &mut Vec<u8>) {
    let mut typed = json!({"type": name});
    if let (Some(typed), Some(data)) = (typed.as_object_mut(), data.as_object_mut()) {
        typed.append(data);
    }
    sse(out, Some(name), &typed);
}

fn delta(index: u64, delta: Value, out: &mut Vec<u8>) {
    event("content_block_delta", json!({"index": index, "delta": delta}), out);
}

impl ReplyEncoder for AnthropicReplyWriter {
    fn content_type(&self) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        let message = json!({
            "model": self.model, "id": message_id(self.number), "type": "message", "role": "assistant", "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                "output_tokens": 1, "service_tier": "standard"},
        });
        event("message_start", json!({"message": message}), out);
        self.ping(out);
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        let index = match self.open {
            Some(OpenContentBlock::Text(index)) => index,
            _ => {
                self.close_open(out);
                let index = self.start_block(json!({"type": "text", "text": ""}), out);
                self.open = Some(OpenContentBlock::Text(index));
                index
            }
        };
        delta(index, json!({"type": "text_delta", "text": piece}), out);
    }

    fn think(&mut self, piece: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenContentBlock::Thinking(..))) {
            self.close_open(out);
            let block = json!({"type": "thinking", "thinking": "", "signature": ""});
            let index = self.start_block(block, out);
            self.open = Some(OpenContentBlock::Thinking(index, String::new()));
        }
        if let Some(OpenContentBlock::Thinking(index, text)) = &mut self.open {
            text.push_str(piece);
            delta(*index, json!({"type": "thinking_delta", "thinking": piece}), out);
        }
    }

    fn call_open(&mut self, ordinal: usize, call: &CallMove, out: &mut Vec<u8>) {
        self.close_open(out);
        let id = call_id(self.number, ordinal, call);
        let block = json!({"type": "tool_use", "id": id, "name": call.name, "input": {}});
        let index = self.start_block(block, out);
        self.calls.push(index);
        self.unstopped.push(index);
        // The API begins every input with an empty fragment.
        delta(index, json!({"type": "input_json_delta", "partial_json": ""}), out);
    }

    fn call_arguments(&mut self, ordinal: usize, piece: &str, out: &mut Vec<u8>) {
        delta(self.calls[ordinal], json!({"type": "input_json_delta", "partial_json": piece}), out);
    }

    fn call_close(&mut self, ordinal: usize, out: &mut Vec<u8>) {
        let index = self.calls[ordinal];
        self.unstopped.retain(|open| *open != index);
        event("content_block_stop", json!({"index": index}), out);
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        event("ping", json!({}), out);
    }

    fn finish(&mut self, finish: &ScriptFinish, usage: &TokenCounts, out: &mut Vec<u8>) {
        self.close_open(out);
        let delta = json!({"stop_reason": finish_word(finish), "stop_sequence": null});
        event("message_delta", json!({"delta": delta, "usage": usage_object(usage)}), out);
    }

    fn end(&mut self, _: &TokenCounts, out: &mut Vec<u8>) {
        event("message_stop", json!({}), out);
    }

    fn error(&mut self, error: &ErrorMove, out: &mut Vec<u8>) {
        sse(out, Some("error"), &error_body(529, error));
    }
}

fn message_id(number: u64) -> String {
    format!("msg_01{}", letters(&format!("message/{number}"), 22))
}

fn call_id(number: u64, ordinal: usize, call: &CallMove) -> String {
    call.id
        .clone()
        .unwrap_or_else(|| format!("toolu_01{}", letters(&format!("tool_use/{number}/{ordinal}"), 22)))
}

fn finish_word(finish: &ScriptFinish) -> &str {
    match finish {
        ScriptFinish::Stop => "end_turn",
        ScriptFinish::Length => "max_tokens",
        ScriptFinish::ToolCalls => "tool_use",
        ScriptFinish::ContentFilter => "refusal",
        ScriptFinish::Other(word) => word,
    }
}

fn usage_object(usage: &TokenCounts) -> Value {
    let cached = usage.cached.unwrap_or(0);
    json!({
        "input_tokens": usage.input.unwrap_or(0).saturating_sub(cached), "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached, "output_tokens": usage.output.unwrap_or(0),
    })
}

/// The non-streaming message.
pub(crate) fn whole_reply(seen: &ParsedRequest, reply: &WholeReply, finish: &ScriptFinish) -> Value {
    let mut content = Vec::new();
    if !reply.thinking.is_empty() {
        let signature = signature(&reply.thinking);
        content.push(json!({"type": "thinking", "thinking": reply.thinking, "signature": signature}));
    }
    if !reply.text.is_empty() {
        content.push(json!({"type": "text", "text": reply.text}));
    }
    for (ordinal, call) in reply.calls.iter().enumerate() {
        // A whole body cannot carry broken JSON: the API would answer with an empty input.
        let input = serde_json::from_str::<Value>(&call.text()).unwrap_or_else(|_| json!({}));
        let id = call_id(seen.number, ordinal, call);
        content.push(json!({"type": "tool_use", "id": id, "name": call.name, "input": input}));
    }
    json!({
        "id": message_id(seen.number), "type": "message", "role": "assistant", "model": seen.model,
        "content": content, "stop_reason": finish_word(finish), "stop_sequence": null,
        "usage": usage_object(&reply.usage),
    })
}

/// `{"type":"error","error":{type,message},"request_id"}`.
pub(crate) fn error_body(status: u16, error: &ErrorMove) -> Value {
    let kind = error.kind.as_deref().unwrap_or(match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 | 503 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    });
    let message = if error.message.is_empty() { status_message(status) } else { &error.message };
    let request_id = format!("req_01{}", letters(message, 22));
    json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id})
}
