//! Chat Completions: `data:` events with one delta each, `[DONE]` at the end.
//!
//! Shapes as recorded from api.openai.com (`chat.completion.chunk`); reasoning as DeepSeek sends it
//! (`reasoning_content`).

pub(crate) mod request;

use super::{CREATED, ReplyEncoder, WholeReply, sse, status_message};
use crate::fake_ids::letters;
use crate::parsed_request::ParsedRequest;
use crate::script::{CallMove, ErrorMove, ScriptFinish, TokenCounts};
use crate::server::CallIdRule;
use crate::voice::{SpokenWord, speak_whole};
use serde_json::{Value, json};

pub(crate) struct ChatReplyWriter {
    id: String,
    model: String,
    number: u64,
    wants_usage: bool,
    call_ids: CallIdRule,
    role_sent: bool,
}

impl ChatReplyWriter {
    pub fn new(seen: &ParsedRequest) -> Self {
        let id = response_id(seen);
        Self {
            id,
            model: seen.model.clone(),
            number: seen.number,
            wants_usage: seen.wants_usage,
            call_ids: seen.call_ids,
            role_sent: false,
        }
    }

    fn chunk(&self, choices: Value, usage: Option<Value>, out: &mut Vec<u8>) {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": CREATED, "model": self.model,
            "system_fingerprint": "fp_throughline", "choices": choices,
        });
        if self.wants_usage {
            chunk["usage"] = usage.unwrap_or(Value::Null);
        }
        sse(out, None, &chunk);
    }

    fn delta(&mut self, mut delta: Value, out: &mut Vec<u8>) {
        if !self.role_sent {
            self.role_sent = true;
            let mut first = json!({"role": "assistant", "content": null});
            if let (Some(first), Some(delta)) = (first.as_object_mut(), delta.as_object_mut()) {
                first.append(delta);
            }
            delta = first;
        }
        let choice = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]);
        self.chunk(choice, None, out);
    }
}

impl ReplyEncoder for ChatReplyWriter {
    fn content_type(&self) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        self.delta(json!({"content": "", "refusal": null}), out);
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        self.delta(json!({"content": piece}), out);
    }

    fn think(&mut self, piece: &str, out: &mut Vec<u8>) {
        self.delta(json!({"reasoning_content": piece}), out);
    }

    fn speak(&mut self, word: &SpokenWord<'_>, out: &mut Vec<u8>) {
        let id = format!("audio_{}", letters(&self.id, 24));
        self.delta(json!({"audio": {"id": id, "data": word.data, "transcript": word.text}}), out);
    }

    fn call_open(&mut self, ordinal: usize, call: &CallMove, out: &mut Vec<u8>) {
        let id = call_id(self.call_ids, self.number, ordinal, call);
        let function = json!({"name": call.name, "arguments": ""});
        self.delta(
            json!({"tool_calls": [{"index": ordinal, "id": id, "type": "function", "function": function}]}),
            out,
        );
    }

    fn call_arguments(&mut self, ordinal: usize, piece: &str, out: &mut Vec<u8>) {
        self.delta(json!({"tool_calls": [{"index": ordinal, "function": {"arguments": piece}}]}), out);
    }

    fn call_close(&mut self, _: usize, _: &mut Vec<u8>) {}

    fn ping(&mut self, out: &mut Vec<u8>) {
        // OpenRouter's sign of life (quirk S2).
        out.extend_from_slice(b": OPENROUTER PROCESSING\n\n");
    }

    fn finish(&mut self, finish: &ScriptFinish, _: &TokenCounts, out: &mut Vec<u8>) {
        let choice =
            json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": finish_word(finish)}]);
        self.chunk(choice, None, out);
    }

    fn end(&mut self, usage: &TokenCounts, out: &mut Vec<u8>) {
        if self.wants_usage {
            self.chunk(json!([]), Some(usage_object(usage)), out);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    fn error(&mut self, error: &ErrorMove, out: &mut Vec<u8>) {
        sse(out, None, &error_body(500, error, None));
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}

fn response_id(seen: &ParsedRequest) -> String {
    format!("chatcmpl-{}", letters(&format!("chat/{}", seen.number), 29))
}

fn call_id(ids: CallIdRule, number: u64, ordinal: usize, call: &CallMove) -> String {
    let seed = format!("call/{number}/{ordinal}");
    call.id.clone().unwrap_or_else(|| match ids {
        CallIdRule::Any => format!("call_{}", letters(&seed, 24)),
        CallIdRule::Mistral => letters(&seed, 9),
    })
}

fn finish_word(finish: &ScriptFinish) -> &str {
    match finish {
        ScriptFinish::Stop => "stop",
        ScriptFinish::Length => "length",
        ScriptFinish::ToolCalls => "tool_calls",
        ScriptFinish::ContentFilter => "content_filter",
        ScriptFinish::Other(word) => word,
    }
}

fn usage_object(usage: &TokenCounts) -> Value {
    let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
    json!({
        "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": usage.cached.unwrap_or(0), "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning.unwrap_or(0), "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
    })
}

/// The non-streaming `chat.completion`.
pub(crate) fn whole_reply(seen: &ParsedRequest, reply: &WholeReply, finish: &ScriptFinish) -> Value {
    let content = if reply.text.is_empty() { Value::Null } else { reply.text.as_str().into() };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !reply.thinking.is_empty() {
        message["reasoning_content"] = reply.thinking.as_str().into();
    }
    if !reply.spoken.is_empty() {
        message["audio"] = json!({"id": format!("audio_{}", letters(&response_id(seen), 24)),
            "data": speak_whole(&reply.spoken), "transcript": reply.spoken, "expires_at": CREATED + 3_600});
    }
    if !reply.calls.is_empty() {
        let call = |(ordinal, call): (usize, &CallMove)| {
            json!({"id": call_id(seen.call_ids, seen.number, ordinal, call), "type": "function",
                "function": {"name": call.name, "arguments": call.text()}})
        };
        message["tool_calls"] = reply.calls.iter().enumerate().map(call).collect();
    }
    json!({
        "id": response_id(seen), "object": "chat.completion", "created": CREATED, "model": seen.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_word(finish)}],
        "usage": usage_object(&reply.usage), "system_fingerprint": "fp_throughline",
    })
}

/// `{"error":{message,type,param,code}}`, as both OpenAI APIs answer.
pub(crate) fn error_body(status: u16, error: &ErrorMove, param: Option<&str>) -> Value {
    let kind = error.kind.as_deref().unwrap_or(match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    });
    let code = error.code.as_deref().or(match status {
        401 => Some("invalid_api_key"),
        404 => Some("model_not_found"),
        429 => Some("rate_limit_exceeded"),
        _ => None,
    });
    let message = if error.message.is_empty() { status_message(status) } else { &error.message };
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}
