//! OpenAI Responses: typed, numbered events; items with their own `output_index`; `response.completed` at the end.
//!
//! Shapes as recorded from api.openai.com, with the events that its SDKs insist on (every item added, then done; every
//! part added, then done; sequence numbers dense from 0).

pub(crate) mod request;

use super::{CREATED, ReplyEncoder, WholeReply, sse};
use crate::fake_ids::{letters, signature};
use crate::parsed_request::ParsedRequest;
use crate::script::{CallMove, ErrorMove, ScriptFinish, TokenCounts};
use serde_json::{Value, json};

pub(crate) struct ResponsesReplyWriter {
    number: u64,
    model: String,
    sequence: u64,
    /// Finished and open items, in order.
    items: Vec<Value>,
    open: Option<OpenOutputItem>,
    /// Item number and text of each call.
    calls: Vec<(usize, String)>,
    finish: ScriptFinish,
}

enum OpenOutputItem {
    Message(usize, String),
    Reasoning(usize, String),
}

impl ResponsesReplyWriter {
    pub fn new(seen: &ParsedRequest) -> Self {
        Self {
            number: seen.number,
            model: seen.model.clone(),
            sequence: 0,
            items: Vec::new(),
            open: None,
            calls: Vec::new(),
            finish: ScriptFinish::Stop,
        }
    }

    fn event(&mut self, name: &str, mut data: Value, out: &mut Vec<u8>) {
        let mut typed = json!({"type": name, "sequence_number": self.sequence});
        self.sequence += 1;
        if let (Some(typed), Some(data)) = (typed.as_object_mut(), data.as_object_mut()) {
            typed.append(data);
        }
        sse(out, Some(name), &typed);
    }

    fn add(&mut self, item: Value, out: &mut Vec<u8>) -> usize {
        let index = self.items.len();
        self.items.push(item.clone());
        self.event("response.output_item.added", json!({"output_index": index, "item": item}), out);
        index
    }

    fn done(&mut self, index: usize, item: Value, out: &mut Vec<u8>) {
        self.items[index] = item.clone();
        self.event("response.output_item.done", json!({"output_index": index, "item": item}), out);
    }

    fn item_id(&self, index: usize) -> Value {
        self.items[index]["id"].clone()
    }

    fn close_open(&mut self, out: &mut Vec<u8>) {
        match self.open.take() {
            None => {}
            Some(OpenOutputItem::Message(index, text)) => {
                let location =
                    json!({"item_id": self.item_id(index), "output_index": index, "content_index": 0});
                let part = text_part(&text);
                self.event(
                    "response.output_text.done",
                    merged(&location, json!({"text": text, "logprobs": []})),
                    out,
                );
                self.event("response.content_part.done", merged(&location, json!({"part": part})), out);
                let item = message_item(self.number, index, "completed", json!([part]));
                self.done(index, item, out);
            }
            Some(OpenOutputItem::Reasoning(index, text)) => {
                let location =
                    json!({"item_id": self.item_id(index), "output_index": index, "summary_index": 0});
                let part = json!({"type": "summary_text", "text": text});
                self.event(
                    "response.reasoning_summary_text.done",
                    merged(&location, json!({"text": text})),
                    out,
                );
                self.event(
                    "response.reasoning_summary_part.done",
                    merged(&location, json!({"part": part})),
                    out,
                );
                let item = reasoning_item(self.number, index, &text);
                self.done(index, item, out);
            }
        }
    }

    fn response(&self, status: &str, usage: Option<&TokenCounts>) -> Value {
        response_object(self.number, &self.model, status, self.items.clone(), &self.finish, usage)
    }
}

fn merged(location: &Value, mut more: Value) -> Value {
    let mut joined = location.clone();
    if let (Some(joined), Some(more)) = (joined.as_object_mut(), more.as_object_mut()) {
        joined.append(more);
    }
    joined
}

impl ReplyEncoder for ResponsesReplyWriter {
    fn content_type(&self) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        for name in ["response.created", "response.in_progress"] {
            let response = self.response("in_progress", None);
            self.event(name, json!({"response": response}), out);
        }
    }

    fn text(&mut self, piece: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenOutputItem::Message(..))) {
            self.close_open(out);
            let index = self.items.len();
            self.add(message_item(self.number, index, "in_progress", json!([])), out);
            let location = json!({"item_id": self.item_id(index), "output_index": index, "content_index": 0});
            self.event("response.content_part.added", merged(&location, json!({"part": text_part("")})), out);
            self.open = Some(OpenOutputItem::Message(index, String::new()));
        }
        if let Some(OpenOutputItem::Message(index, text)) = &mut self.open {
            text.push_str(piece);
            let index = *index;
            let location = json!({"item_id": self.item_id(index), "output_index": index, "content_index": 0});
            self.event(
                "response.output_text.delta",
                merged(&location, json!({"delta": piece, "logprobs": []})),
                out,
            );
        }
    }

    fn think(&mut self, piece: &str, out: &mut Vec<u8>) {
        if !matches!(self.open, Some(OpenOutputItem::Reasoning(..))) {
            self.close_open(out);
            let index = self.items.len();
            let item = json!({"id": reasoning_id(self.number, index), "type": "reasoning", "summary": []});
            self.add(item, out);
            let location = json!({"item_id": self.item_id(index), "output_index": index, "summary_index": 0});
            let part = json!({"part": {"type": "summary_text", "text": ""}});
            self.event("response.reasoning_summary_part.added", merged(&location, part), out);
            self.open = Some(OpenOutputItem::Reasoning(index, String::new()));
        }
        if let Some(OpenOutputItem::Reasoning(index, text)) = &mut self.open {
            text.push_str(piece);
            let index = *index;
            let location = json!({"item_id": self.item_id(index), "output_index": index, "summary_index": 0});
            self.event(
                "response.reasoning_summary_text.delta",
                merged(&location, json!({"delta": piece})),
                out,
            );
        }
    }

    fn call_open(&mut self, ordinal: usize, call: &CallMove, out: &mut Vec<u8>) {
        self.close_open(out);
        let item = call_item(self.number, ordinal, call, "", "in_progress");
        let index = self.add(item, out);
        self.calls.push((index, String::new()));
    }

    fn call_arguments(&mut self, ordinal: usize, piece: &str, out: &mut Vec<u8>) {
        self.calls[ordinal].1.push_str(piece);
        let index = self.calls[ordinal].0;
        let data = json!({"item_id": self.item_id(index), "output_index": index, "delta": piece});
        self.event("response.function_call_arguments.delta", data, out);
    }

    fn call_close(&mut self, ordinal: usize, out: &mut Vec<u8>) {
        let (index, text) = self.calls[ordinal].clone();
        let data = json!({"item_id": self.item_id(index), "output_index": index, "arguments": text});
        self.event("response.function_call_arguments.done", data, out);
        let mut item = self.items[index].clone();
        item["arguments"] = text.into();
        item["status"] = "completed".into();
        self.done(index, item, out);
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b": keep-alive\n\n");
    }

    fn finish(&mut self, finish: &ScriptFinish, _: &TokenCounts, out: &mut Vec<u8>) {
        self.close_open(out);
        self.finish = finish.clone();
    }

    fn end(&mut self, usage: &TokenCounts, out: &mut Vec<u8>) {
        let status = status_word(&self.finish);
        let response = self.response(status, Some(usage));
        self.event(&format!("response.{status}"), json!({"response": response}), out);
    }

    fn error(&mut self, error: &ErrorMove, out: &mut Vec<u8>) {
        let code = error.code.as_deref().unwrap_or("server_error");
        let data = json!({"code": code, "message": error.message, "param": null});
        self.event("error", data, out);
        let mut response = self.response("failed", None);
        response["error"] = json!({"code": code, "message": error.message});
        self.event("response.failed", json!({"response": response}), out);
    }
}

fn status_word(finish: &ScriptFinish) -> &'static str {
    match finish {
        ScriptFinish::Length | ScriptFinish::ContentFilter => "incomplete",
        _ => "completed",
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

fn message_item(number: u64, index: usize, status: &str, content: Value) -> Value {
    let id = format!("msg_{}", letters(&format!("item/{number}/{index}"), 40).to_ascii_lowercase());
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

fn reasoning_id(number: u64, index: usize) -> String {
    format!("rs_{}", letters(&format!("item/{number}/{index}"), 40).to_ascii_lowercase())
}

fn reasoning_item(number: u64, index: usize, text: &str) -> Value {
    json!({
        "id": reasoning_id(number, index), "type": "reasoning", "summary": [{"type": "summary_text", "text": text}],
        "encrypted_content": signature(text),
    })
}

fn call_item(number: u64, ordinal: usize, call: &CallMove, arguments: &str, status: &str) -> Value {
    let seed = format!("call/{number}/{ordinal}");
    let call_id = call.id.clone().unwrap_or_else(|| format!("call_{}", letters(&seed, 24)));
    let id = format!("fc_{}", letters(&format!("item-{seed}"), 40).to_ascii_lowercase());
    json!({"id": id, "type": "function_call", "status": status, "arguments": arguments, "call_id": call_id,
        "name": call.name})
}

fn response_object(
    number: u64,
    model: &str,
    status: &str,
    output: Vec<Value>,
    finish: &ScriptFinish,
    usage: Option<&TokenCounts>,
) -> Value {
    let incomplete = match finish {
        ScriptFinish::Length if status == "incomplete" => json!({"reason": "max_output_tokens"}),
        ScriptFinish::ContentFilter if status == "incomplete" => json!({"reason": "content_filter"}),
        _ => Value::Null,
    };
    let usage = usage.map(|usage| {
        let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": usage.cached.unwrap_or(0)},
            "output_tokens": output, "output_tokens_details": {"reasoning_tokens": usage.reasoning.unwrap_or(0)},
            "total_tokens": input + output})
    });
    json!({
        "id": format!("resp_{}", letters(&format!("response/{number}"), 40).to_ascii_lowercase()),
        "object": "response", "created_at": CREATED, "status": status, "background": false, "error": null,
        "incomplete_details": incomplete, "instructions": null, "max_output_tokens": null, "model": model,
        "output": output, "parallel_tool_calls": true, "previous_response_id": null, "store": false,
        "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0, "usage": usage, "metadata": {},
    })
}

/// The non-streaming response.
pub(crate) fn whole_reply(seen: &ParsedRequest, reply: &WholeReply, finish: &ScriptFinish) -> Value {
    let mut output = Vec::new();
    if !reply.thinking.is_empty() {
        output.push(reasoning_item(seen.number, 0, &reply.thinking));
    }
    if !reply.text.is_empty() {
        output.push(message_item(seen.number, output.len(), "completed", json!([text_part(&reply.text)])));
    }
    for (ordinal, call) in reply.calls.iter().enumerate() {
        output.push(call_item(seen.number, ordinal, call, &call.text(), "completed"));
    }
    response_object(seen.number, &seen.model, status_word(finish), output, finish, Some(&reply.usage))
}
