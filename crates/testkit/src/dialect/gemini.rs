//! Gemini `generateContent`: whole candidates with parts, as SSE or as one JSON array that arrives in pieces. No end
//! marker but the finish reason, which is `STOP` for calls too.
//!
//! Shapes as recorded from generativelanguage.googleapis.com (v1beta). The first call of a reply is signed; ids come
//! from models named `gemini-3…` only.

pub(crate) mod request;

use super::{ReplyEncoder, WholeReply, sse, status_message};
use crate::fake_ids::{letters, signature};
use crate::parsed_request::{ParsedRequest, ReplyDelivery};
use crate::script::{CallMove, ErrorMove, ScriptFinish, TokenCounts};
use crate::voice::{SAMPLE_RATE_HZ, SpokenWord, speak_whole};
use serde_json::{Value, json};

pub(crate) struct GeminiReplyWriter {
    number: u64,
    model: String,
    delivery: ReplyDelivery,
    chunks: u64,
    calls: Vec<(CallMove, String)>,
    malformed: Option<String>,
    thought: String,
    signed: bool,
}

impl GeminiReplyWriter {
    pub fn new(seen: &ParsedRequest) -> Self {
        Self {
            number: seen.number,
            model: seen.model.clone(),
            delivery: seen.delivery,
            chunks: 0,
            calls: Vec::new(),
            malformed: None,
            thought: String::new(),
            signed: false,
        }
    }

    fn chunk(&mut self, chunk: &Value, out: &mut Vec<u8>) {
        self.chunks += 1;
        if self.delivery == ReplyDelivery::Array {
            out.extend_from_slice(if self.chunks == 1 { b"[" } else { b",\r\n" });
            out.extend_from_slice(chunk.to_string().as_bytes());
        } else {
            sse(out, None, chunk);
        }
    }

    fn part(&mut self, part: Value, out: &mut Vec<u8>) {
        let candidate = json!({"content": {"parts": [part], "role": "model"}, "index": 0});
        let chunk = json!({
            "candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1},
            "modelVersion": self.model, "responseId": response_id(self.number),
        });
        self.chunk(&chunk, out);
    }
}

impl ReplyEncoder for GeminiReplyWriter {
    fn content_type(&self) -> &'static str {
        if self.delivery == ReplyDelivery::Array {
            "application/json; charset=UTF-8"
        } else {
            "text/event-stream"
        }
    }

    fn open(&mut self, _: &mut Vec<u8>) {}

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        self.part(json!({"text": piece}), out);
    }

    fn think(&mut self, piece: &str, out: &mut Vec<u8>) {
        self.thought.push_str(piece);
        self.part(json!({"text": piece, "thought": true}), out);
    }

    fn speak(&mut self, word: &SpokenWord<'_>, out: &mut Vec<u8>) {
        self.part(audio_part(&word.data), out);
    }

    fn call_open(&mut self, _: usize, call: &CallMove, _: &mut Vec<u8>) {
        self.calls.push((call.clone(), String::new()));
    }

    fn call_arguments(&mut self, ordinal: usize, piece: &str, _: &mut Vec<u8>) {
        self.calls[ordinal].1.push_str(piece);
    }

    fn call_close(&mut self, ordinal: usize, out: &mut Vec<u8>) {
        let (call, text) = self.calls[ordinal].clone();
        match call_part(&self.model, self.number, ordinal, &call, &text, !self.signed) {
            Some(part) => {
                self.signed = true;
                self.part(part, out);
            }
            None => self.malformed = Some(format!("Malformed function call: {}({text})", call.name)),
        }
    }

    fn ping(&mut self, _: &mut Vec<u8>) {}

    fn finish(&mut self, finish: &ScriptFinish, usage: &TokenCounts, out: &mut Vec<u8>) {
        let mut text = json!({"text": ""});
        if !self.thought.is_empty() && !self.signed {
            // The signature of a reply without calls arrives on an empty part.
            text["thoughtSignature"] = signature(&self.thought).into();
        }
        let mut candidate = json!({"content": {"parts": [text], "role": "model"}});
        close(&mut candidate, self.malformed.as_deref(), finish);
        let chunk = json!({
            "candidates": [candidate], "usageMetadata": usage_object(usage), "modelVersion": self.model,
            "responseId": response_id(self.number),
        });
        self.chunk(&chunk, out);
    }

    fn end(&mut self, _: &TokenCounts, out: &mut Vec<u8>) {
        if self.delivery == ReplyDelivery::Array {
            out.extend_from_slice(b"\r\n]");
        }
    }

    fn error(&mut self, error: &ErrorMove, out: &mut Vec<u8>) {
        let body = error_body(ReplyDelivery::Stream, 503, error);
        self.chunk(&body, out);
        self.end(&TokenCounts::default(), out);
    }
}

fn audio_part(data: &str) -> Value {
    json!({"inlineData": {"mimeType": format!("audio/L16;codec=pcm;rate={SAMPLE_RATE_HZ}"), "data": data}})
}

fn response_id(number: u64) -> String {
    letters(&format!("gemini/{number}"), 22)
}

/// The signature that goes with a call: it fits this name and these arguments only.
pub(crate) fn call_signature(name: &str, args: &Value) -> String {
    signature(&format!("{name}{args}"))
}

/// `None` for arguments that are not an object: the API never sends them.
fn call_part(
    model: &str,
    number: u64,
    ordinal: usize,
    call: &CallMove,
    text: &str,
    signs: bool,
) -> Option<Value> {
    let args = serde_json::from_str::<Value>(text).ok().filter(Value::is_object)?;
    let mut function = json!({"name": call.name, "args": args});
    let minted = || model.contains("gemini-3").then(|| letters(&format!("fc/{number}/{ordinal}"), 8));
    if let Some(id) = call.id.clone().or_else(minted) {
        function["id"] = id.into();
    }
    let mut part = json!({"functionCall": function});
    if signs {
        part["thoughtSignature"] = call_signature(&call.name, &args).into();
    }
    Some(part)
}

fn close(candidate: &mut Value, malformed: Option<&str>, finish: &ScriptFinish) {
    let reason = match finish {
        ScriptFinish::Stop | ScriptFinish::ToolCalls => "STOP",
        ScriptFinish::Length => "MAX_TOKENS",
        ScriptFinish::ContentFilter => "SAFETY",
        ScriptFinish::Other(word) => word,
    };
    candidate["finishReason"] = reason.into();
    candidate["index"] = 0.into();
    if let Some(message) = malformed {
        candidate["content"] = json!({});
        candidate["finishReason"] = "MALFORMED_FUNCTION_CALL".into();
        candidate["finishMessage"] = message.into();
    }
}

fn usage_object(usage: &TokenCounts) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    let thoughts = usage.reasoning.unwrap_or(0).min(output);
    let mut object = json!({
        "promptTokenCount": input, "candidatesTokenCount": output - thoughts, "totalTokenCount": input + output,
    });
    if thoughts > 0 {
        object["thoughtsTokenCount"] = thoughts.into();
    }
    if let Some(cached) = usage.cached {
        object["cachedContentTokenCount"] = cached.into();
    }
    object
}

/// The non-streaming response.
pub(crate) fn whole_reply(seen: &ParsedRequest, reply: &WholeReply, finish: &ScriptFinish) -> Value {
    let mut parts = Vec::new();
    if !reply.thinking.is_empty() {
        parts.push(json!({"text": reply.thinking, "thought": true}));
    }
    if !reply.text.is_empty() {
        parts.push(json!({"text": reply.text}));
    }
    if !reply.spoken.is_empty() {
        parts.push(audio_part(&speak_whole(&reply.spoken)));
    }
    let mut malformed = None;
    for (ordinal, call) in reply.calls.iter().enumerate() {
        match call_part(&seen.model, seen.number, ordinal, call, &call.text(), ordinal == 0) {
            Some(part) => parts.push(part),
            None => malformed = Some(format!("Malformed function call: {}({})", call.name, call.text())),
        }
    }
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}});
    close(&mut candidate, malformed.as_deref(), finish);
    json!({
        "candidates": [candidate], "usageMetadata": usage_object(&reply.usage), "modelVersion": seen.model,
        "responseId": response_id(seen.number),
    })
}

/// Error body: `{"error":{code,message,status}}`, in an array if a stream without `alt=sse` was requested.
pub(crate) fn error_body(delivery: ReplyDelivery, status: u16, error: &ErrorMove) -> Value {
    let word = error.kind.as_deref().unwrap_or(match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    });
    let code = error.code.as_deref().and_then(|code| code.parse::<u16>().ok()).unwrap_or(status);
    let message = if error.message.is_empty() { status_message(status) } else { &error.message };
    let body = json!({"error": {"code": code, "message": message, "status": word}});
    if delivery == ReplyDelivery::Array { json!([body]) } else { body }
}
