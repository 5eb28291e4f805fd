//! An answer without streaming: the fold of the same pieces.

use super::chunk::{ChatChunk, ChatFinish, ChunkHead, ToolCallChunk, usage_value};
use super::error::ChatErrorBody;
use serde_json::{Map, Value, json};
use throughline_wire::Usage;

/// Accumulator of chunks.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChatCompletion {
    content: String,
    refusal: String,
    reasoning: String,
    calls: Vec<ToolCallChunk>,
    events: Vec<Value>,
    finish: Option<ChatFinish>,
    usage: Option<Usage>,
    error: Option<ChatErrorBody>,
}

impl ChatCompletion {
    /// Takes the next piece.
    pub(crate) fn push(&mut self, chunk: ChatChunk) {
        match chunk {
            ChatChunk::Content(text) => self.content.push_str(&text),
            ChatChunk::Refusal(text) => self.refusal.push_str(&text),
            ChatChunk::Reasoning(text) => self.reasoning.push_str(&text),
            ChatChunk::Call(call) => self.calls.push(call),
            ChatChunk::CallArguments(more) => {
                if let Some(call) = self.calls.first_mut() {
                    call.arguments.push_str(&more);
                }
            }
            ChatChunk::Event { event, .. } => self.events.push(event),
            ChatChunk::Finish(finish) => self.finish = Some(finish),
            ChatChunk::Usage(usage) => self.usage = Some(usage),
            ChatChunk::Error(error) => self.error = Some(error),
            ChatChunk::Role | ChatChunk::Done => {}
        }
    }

    /// The `chat.completion`, or the error in its place. `None` = the parts ended without either.
    pub(crate) fn into_body(self, head: &ChunkHead) -> Option<Result<Value, ChatErrorBody>> {
        if let Some(error) = self.error {
            return Some(Err(error));
        }
        let finish = self.finish?;
        let text = |text: String| if text.is_empty() { Value::Null } else { Value::String(text) };
        let mut message = Map::new();
        message.insert("role".into(), json!("assistant"));
        // Null only with calls or a refusal: clients print the content as it is.
        let has_else = !self.calls.is_empty() || !self.refusal.is_empty();
        let content = if has_else { text(self.content) } else { Value::String(self.content) };
        message.insert("content".into(), content);
        message.insert("refusal".into(), text(self.refusal));
        if !self.reasoning.is_empty() {
            message.insert("reasoning_content".into(), Value::String(self.reasoning));
        }
        if !self.calls.is_empty() {
            let calls = self.calls.into_iter().map(|call| {
                json!({
                    "id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                })
            });
            message.insert("tool_calls".into(), calls.collect());
        }
        Some(Ok(json!({
            "id": head.id,
            "object": "chat.completion",
            "created": head.created,
            "model": head.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish.name(), "logprobs": null}],
            "usage": usage_value(&self.usage.unwrap_or_default()),
            "throughline": {"events": self.events},
        })))
    }
}
