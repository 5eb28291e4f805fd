//! Parts of an answer, and their serialization as chunks.
//!
//! A chunk contains either a role, a text, a call or an end, never two of them: clients handle one part of a
//! chunk and ignore the others (LobeChat handles tool calls before text, and a finish before reasoning before
//! text).

use super::error::ChatErrorBody;
use serde_json::{Value, json};
use std::io::Write as _;
use throughline_wire::Usage;

/// Fields that are equal in all chunks of one answer: LangChain concatenates fields that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHead {
    /// `chatcmpl-…`
    pub id: String,
    /// Time at which the answer began, in seconds since 1970.
    pub created: i64,
    /// The model as the client named it.
    pub model: String,
}

/// One part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChatChunk {
    /// Role of the message: the assistant. Once, first.
    Role,
    /// Visible text, appended.
    Content(String),
    /// Text of a refusal by the model; appended.
    Refusal(String),
    /// Reasoning, appended.
    Reasoning(String),
    /// A call of a tool that the client declared: whole, or its beginning.
    Call(ToolCallChunk),
    /// A fragment of the first call's arguments.
    CallArguments(String),
    /// An event of the turn in a separate field, on an otherwise empty chunk.
    Event {
        /// The event as in `docs/events.md`.
        event: Value,
        /// The event for Open WebUI's status line, whose field is `event`.
        status: Option<Value>,
    },
    /// Reason of the end. Once, last except for the usage.
    Finish(ChatFinish),
    /// Usage of all steps of this answer. Only if the client requests it.
    Usage(Usage),
    /// Failure of the answer; instead of a finish.
    Error(ChatErrorBody),
    /// End of the stream.
    Done,
}

/// A call that the client is to run once its arguments are complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolCallChunk {
    /// Index among the calls of this answer, from 0.
    pub index: usize,
    /// The key of its result.
    pub id: String,
    /// The tool, as the client declared it.
    pub name: String,
    /// JSON text, or its beginning.
    pub arguments: String,
}

/// Reason why an answer ends, as OpenAI names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChatFinish {
    /// The answer is complete.
    Stop,
    /// Cut by the token budget.
    Length,
    /// The client is to run its tools.
    ToolCalls,
    /// Withheld by a filter.
    ContentFilter,
}

impl ChatFinish {
    /// Name in the format.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ChatFinish::Stop => "stop",
            ChatFinish::Length => "length",
            ChatFinish::ToolCalls => "tool_calls",
            ChatFinish::ContentFilter => "content_filter",
        }
    }
}

/// The first bytes of a stream, sent before any event: proxies and clients see that the response has begun.
pub(crate) const STREAM_OPEN: &[u8] = b": open\n\n";

/// A sign of life while nothing else comes: a comment, which every client skips.
pub(crate) fn heartbeat(now_ms: i64) -> Vec<u8> {
    format!(": hb {now_ms}\n\n").into_bytes()
}

/// Writes pieces as server-sent events, framed with LF (some clients split on nothing else).
pub(crate) struct ChunkWriter {
    /// Serialized members of a chunk before its `choices`.
    prefix: String,
}

impl ChunkWriter {
    /// A writer of chunks with this head.
    pub(crate) fn new(head: &ChunkHead) -> Self {
        let whole = json!({
            "id": head.id, "object": "chat.completion.chunk", "created": head.created, "model": head.model,
        });
        let mut prefix = format!("data: {whole}");
        // More members follow.
        prefix.pop();
        Self { prefix }
    }

    /// Appends a piece.
    pub(crate) fn write(&self, chunk: &ChatChunk, out: &mut Vec<u8>) {
        match chunk {
            ChatChunk::Role => self.delta(r#"{"role":"assistant","content":""}"#, "", out),
            // Most chunks are these: written without a tree of values.
            ChatChunk::Content(text) => self.text("content", text, out),
            ChatChunk::Refusal(text) => self.text("refusal", text, out),
            ChatChunk::Reasoning(text) => self.text("reasoning_content", text, out),
            ChatChunk::Call(call) => {
                let ToolCallChunk { index, id, name, arguments } = call;
                let call = json!({
                    "index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments},
                });
                self.delta(&json!({"tool_calls": [call]}).to_string(), "", out);
            }
            ChatChunk::CallArguments(arguments) => {
                let call = json!({"index": 0, "function": {"arguments": arguments}});
                self.delta(&json!({"tool_calls": [call]}).to_string(), "", out);
            }
            ChatChunk::Event { event, status } => {
                let status =
                    status.as_ref().map(|status| format!(r#","event":{status}"#)).unwrap_or_default();
                self.delta("{}", &format!(r#","throughline":{event}{status}"#), out);
            }
            ChatChunk::Finish(finish) => {
                let name = finish.name();
                self.line(
                    format_args!(r#","choices":[{{"index":0,"delta":{{}},"finish_reason":"{name}"}}]}}"#),
                    out,
                );
            }
            ChatChunk::Usage(usage) => {
                self.line(format_args!(r#","choices":[],"usage":{}}}"#, usage_value(usage)), out)
            }
            ChatChunk::Error(error) => {
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(error.to_value().to_string().as_bytes());
                out.extend_from_slice(b"\n\n");
            }
            ChatChunk::Done => out.extend_from_slice(b"data: [DONE]\n\n"),
        }
    }

    fn text(&self, name: &str, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix.as_bytes());
        out.extend_from_slice(br#","choices":[{"index":0,"delta":{""#);
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        // Writing a string to memory does not fail.
        let _ = serde_json::to_writer(&mut *out, text);
        out.extend_from_slice(b"},\"finish_reason\":null}]}\n\n");
    }

    fn delta(&self, delta: &str, extra_fields: &str, out: &mut Vec<u8>) {
        self.line(
            format_args!(
                r#","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]{extra_fields}}}"#
            ),
            out,
        );
    }

    fn line(&self, rest: std::fmt::Arguments<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(self.prefix.as_bytes());
        // Neither does this.
        let _ = out.write_fmt(rest);
        out.extend_from_slice(b"\n\n");
    }
}

/// Tokens as OpenAI writes them. What is not known counts as 0: the fields are required.
pub(super) fn usage_value(usage: &Usage) -> Value {
    let (input, output) = (usage.prompt_tokens().unwrap_or(0), usage.output_tokens.unwrap_or(0));
    json!({
        "prompt_tokens": input,
        "completion_tokens": output,
        "total_tokens": input.saturating_add(output),
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens.unwrap_or(0)},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens.unwrap_or(0)},
    })
}

/// Adds two usages. A figure that neither has stays unknown.
pub(crate) fn add_usage(sum: &mut Usage, more: &Usage) {
    fn plus(sum: &mut Option<u64>, more: Option<u64>) {
        if let Some(more) = more {
            *sum = Some(sum.unwrap_or(0).saturating_add(more));
        }
    }
    plus(&mut sum.input_tokens, more.input_tokens);
    plus(&mut sum.output_tokens, more.output_tokens);
    plus(&mut sum.cached_input_tokens, more.cached_input_tokens);
    plus(&mut sum.cache_written_tokens, more.cache_written_tokens);
    plus(&mut sum.reasoning_tokens, more.reasoning_tokens);
}
