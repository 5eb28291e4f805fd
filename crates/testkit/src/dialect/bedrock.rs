//! AWS Bedrock: `ConverseStream` in its own words, and `InvokeModelWithResponseStream`, whose chunks hold Anthropic's events.
//! Both come in event-stream frames.
//!
//! Shapes as in the API reference of Bedrock Runtime.

pub(crate) mod frames;
pub(crate) mod request;

use super::anthropic::AnthropicReplyWriter;
use super::{ReplyEncoder, WholeReply, status_message};
use crate::fake_ids::{letters, signature};
use crate::parsed_request::ParsedRequest;
use crate::script::{CallMove, ErrorMove, ScriptFinish, TokenCounts};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const EVENT_STREAM: &str = "application/vnd.amazon.eventstream";

/// A reply of `ConverseStream`.
pub(crate) struct ConverseReplyWriter {
    number: u64,
    blocks: u64,
    open: Option<OpenConverseBlock>,
    /// Block number of each call of the reply.
    calls: Vec<u64>,
}

enum OpenConverseBlock {
    Text(u64),
    Reasoning(u64, String),
}

impl ConverseReplyWriter {
    pub fn new(seen: &ParsedRequest) -> Self {
        Self { number: seen.number, blocks: 0, open: None, calls: Vec::new() }
    }

    fn next_block(&mut self) -> u64 {
        self.blocks += 1;
        self.blocks - 1
    }

    fn close_open(&mut self, out: &mut Vec<u8>) {
        let index = match self.open.take() {
            None => return,
            Some(OpenConverseBlock::Text(index)) => index,
            Some(OpenConverseBlock::Reasoning(index, text)) => {
                block_delta(index, json!({"reasoningContent": {"signature": signature(&text)}}), out);
                index
            }
        };
        event("contentBlockStop", json!({"contentBlockIndex": index}), out);
    }
}

/// One frame; each payload is padded with letters, as AWS does against reading along by length.
fn event(name: &str, mut payload: Value, out: &mut Vec<u8>) {
    payload["p"] = letters(name, 5).to_ascii_lowercase().into();
    frames::write_event(name, &payload, out);
}

fn block_delta(index: u64, delta: Value, out: &mut Vec<u8>) {
    event("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}), out);
}

impl ReplyEncoder for ConverseReplyWriter {
    fn content_type(&self) -> &'static str {
        EVENT_STREAM
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        event("messageStart", json!({"role": "assistant"}), out);
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        let index = match self.open {
            Some(OpenConverseBlock::Text(index)) => index,
            _ => {
                // A text block begins with its first delta.
                self.close_open(out);
                self.next_block()
            }
        };
        self.open = Some(OpenConverseBlock::Text(index));
        block_delta(index, json!({"text": piece}), out);
    }

    fn think(&mut self, piece: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenConverseBlock::Reasoning(..))) {
            self.close_open(out);
            self.open = Some(OpenConverseBlock::Reasoning(self.next_block(), String::new()));
        }
        if let Some(OpenConverseBlock::Reasoning(index, text)) = &mut self.open {
            text.push_str(piece);
            block_delta(*index, json!({"reasoningContent": {"text": piece}}), out);
        }
    }

    fn call_open(&mut self, ordinal: usize, call: &CallMove, out: &mut Vec<u8>) {
        self.close_open(out);
        let index = self.next_block();
        self.calls.push(index);
        let id = call_id(self.number, ordinal, call);
        let start = json!({"toolUse": {"toolUseId": id, "name": call.name}});
        event("contentBlockStart", json!({"contentBlockIndex": index, "start": start}), out);
    }

    fn call_arguments(&mut self, ordinal: usize, piece: &str, out: &mut Vec<u8>) {
        block_delta(self.calls[ordinal], json!({"toolUse": {"input": piece}}), out);
    }

    fn call_close(&mut self, ordinal: usize, out: &mut Vec<u8>) {
        event("contentBlockStop", json!({"contentBlockIndex": self.calls[ordinal]}), out);
    }

    fn ping(&mut self, _: &mut Vec<u8>) {}

    fn finish(&mut self, finish: &ScriptFinish, _: &TokenCounts, out: &mut Vec<u8>) {
        self.close_open(out);
        event("messageStop", json!({"stopReason": stop_reason(finish)}), out);
    }

    fn end(&mut self, usage: &TokenCounts, out: &mut Vec<u8>) {
        event("metadata", json!({"usage": usage_object(usage), "metrics": {"latencyMs": 913}}), out);
    }

    fn error(&mut self, error: &ErrorMove, out: &mut Vec<u8>) {
        write_exception(error, out);
    }
}

/// A reply of `InvokeModelWithResponseStream`: Anthropic's events, each in base64 in a `chunk`.
pub(crate) struct InvokeReplyWriter {
    inner: AnthropicReplyWriter,
}

impl InvokeReplyWriter {
    pub fn new(seen: &ParsedRequest) -> Self {
        Self { inner: AnthropicReplyWriter::new(seen) }
    }

    /// Anthropic's events as frames. There are no pings here.
    fn wrap(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut AnthropicReplyWriter, &mut Vec<u8>)) {
        let mut sent = Vec::new();
        write(&mut self.inner, &mut sent);
        let sent = String::from_utf8_lossy(&sent);
        let payloads = sent.split("\n\n").filter_map(|event| event.split_once("data: "));
        for (_, data) in payloads.filter(|(head, _)| !head.contains("event: ping")) {
            let chunk = json!({"bytes": STANDARD.encode(data), "p": letters(data, 5).to_ascii_lowercase()});
            frames::write_event("chunk", &chunk, out);
        }
    }
}

impl ReplyEncoder for InvokeReplyWriter {
    fn content_type(&self) -> &'static str {
        EVENT_STREAM
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        self.wrap(out, |inner, sent| inner.open(sent));
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        self.wrap(out, |inner, sent| inner.text(piece, sent));
    }

    fn think(&mut self, piece: &str, out: &mut Vec<u8>) {
        self.wrap(out, |inner, sent| inner.think(piece, sent));
    }

    fn call_open(&mut self, ordinal: usize, call: &CallMove, out: &mut Vec<u8>) {
        self.wrap(out, |inner, sent| inner.call_open(ordinal, call, sent));
    }

    fn call_arguments(&mut self, ordinal: usize, piece: &str, out: &mut Vec<u8>) {
        self.wrap(out, |inner, sent| inner.call_arguments(ordinal, piece, sent));
    }

    fn call_close(&mut self, ordinal: usize, out: &mut Vec<u8>) {
        self.wrap(out, |inner, sent| inner.call_close(ordinal, sent));
    }

    fn ping(&mut self, _: &mut Vec<u8>) {}

    fn finish(&mut self, finish: &ScriptFinish, usage: &TokenCounts, out: &mut Vec<u8>) {
        self.wrap(out, |inner, sent| inner.finish(finish, usage, sent));
    }

    fn end(&mut self, usage: &TokenCounts, out: &mut Vec<u8>) {
        self.wrap(out, |inner, sent| inner.end(usage, sent));
    }

    fn error(&mut self, error: &ErrorMove, out: &mut Vec<u8>) {
        write_exception(error, out);
    }
}

fn write_exception(error: &ErrorMove, out: &mut Vec<u8>) {
    let kind = error.kind.as_deref().unwrap_or("modelStreamErrorException");
    let message = if error.message.is_empty() { status_message(500) } else { &error.message };
    frames::write_exception(kind, &json!({"message": message, "originalStatusCode": 500}), out);
}

fn call_id(number: u64, ordinal: usize, call: &CallMove) -> String {
    let made = || format!("tooluse_{}", letters(&format!("tooluse/{number}/{ordinal}"), 22));
    call.id.clone().unwrap_or_else(made)
}

fn stop_reason(finish: &ScriptFinish) -> &str {
    match finish {
        ScriptFinish::Stop => "end_turn",
        ScriptFinish::Length => "max_tokens",
        ScriptFinish::ToolCalls => "tool_use",
        ScriptFinish::ContentFilter => "content_filtered",
        ScriptFinish::Other(word) => word,
    }
}

fn usage_object(usage: &TokenCounts) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    json!({
        "inputTokens": input, "outputTokens": output, "totalTokens": input + output,
        "cacheReadInputTokens": usage.cached.unwrap_or(0), "cacheWriteInputTokens": 0,
    })
}

/// The body of `Converse`.
pub(crate) fn whole_reply(seen: &ParsedRequest, reply: &WholeReply, finish: &ScriptFinish) -> Value {
    let mut content = Vec::new();
    if !reply.thinking.is_empty() {
        let reasoning = json!({"text": reply.thinking, "signature": signature(&reply.thinking)});
        content.push(json!({"reasoningContent": {"reasoningText": reasoning}}));
    }
    if !reply.text.is_empty() {
        content.push(json!({"text": reply.text}));
    }
    for (ordinal, call) in reply.calls.iter().enumerate() {
        // A whole body cannot carry broken JSON: the API would answer with an empty input.
        let input = serde_json::from_str::<Value>(&call.text()).unwrap_or_else(|_| json!({}));
        let id = call_id(seen.number, ordinal, call);
        content.push(json!({"toolUse": {"toolUseId": id, "name": call.name, "input": input}}));
    }
    json!({
        "output": {"message": {"role": "assistant", "content": content}}, "stopReason": stop_reason(finish),
        "usage": usage_object(&reply.usage), "metrics": {"latencyMs": 913},
    })
}

/// `{"message"}`.
pub(crate) fn error_body(status: u16, error: &ErrorMove) -> Value {
    let message = if error.message.is_empty() { status_message(status) } else { &error.message };
    json!({"message": message})
}
