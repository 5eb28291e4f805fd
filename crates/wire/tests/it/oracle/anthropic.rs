//! Anthropic Messages.

use super::OracleOutcome;
use super::draft::{Draft, DraftCall, error_message, owner, string};
use super::frames::{Body, Event, sse};
use serde_json::{Value, json};

struct Block {
    number: Value,
    kind: String,
    text: String,
    call: DraftCall,
    input: Value,
}

#[derive(Default)]
pub struct Reader {
    draft: Draft,
    message: Option<String>,
    blocks: Vec<Block>,
}

pub fn read(body: &[u8]) -> OracleOutcome {
    let mut reader = Reader::default();
    match sse(body) {
        Body::Junk(text) => reader.draft = Draft::failed(text),
        Body::Document(value) if value["content"].is_array() => reader.whole(&value),
        Body::Document(value) => reader.fail(&value),
        Body::Events(events) => {
            for event in events {
                match event {
                    // The marker of a gateway: it counts after a stop reason.
                    Event::Done => reader.draft.is_complete |= reader.draft.finish.is_some(),
                    Event::Error(text) => reader.draft.fail(text),
                    Event::Json(name, value) => reader.event(&name, &value),
                }
            }
        }
    }
    reader.settle()
}

impl Reader {
    pub fn fail(&mut self, value: &Value) {
        self.draft.fail(error_message(value).unwrap_or_else(|| value.to_string()));
    }

    fn whole(&mut self, message: &Value) {
        self.event("message_start", &json!({"message": message}));
        self.event("message_stop", &json!({}));
    }

    pub fn event(&mut self, name: &str, value: &Value) {
        let kind = string(value, "type").unwrap_or_else(|| name.to_owned());
        match kind.as_str() {
            "message_start" => {
                let id = string(&value["message"], "id");
                if self.message.is_some() && self.message != id {
                    self.blocks.clear();
                }
                self.message = id;
                self.usage(&value["message"]["usage"]);
                // A reply that was complete at the start comes whole in the start event.
                for (at, block) in value["message"]["content"].as_array().into_iter().flatten().enumerate() {
                    self.event("content_block_start", &json!({"index": at, "content_block": block}));
                    self.event("content_block_stop", &json!({"index": at}));
                }
                self.draft.finish = string(&value["message"], "stop_reason");
            }
            "content_block_start" => {
                let block = &value["content_block"];
                let call = DraftCall {
                    id: string(block, "id"),
                    name: string(block, "name").unwrap_or_default(),
                    ..DraftCall::default()
                };
                let text = string(block, "text").or_else(|| string(block, "thinking")).unwrap_or_default();
                let kind = string(block, "type").unwrap_or_default();
                self.blocks.push(Block {
                    number: value["index"].clone(),
                    kind,
                    text,
                    call,
                    input: block["input"].clone(),
                });
            }
            "content_block_delta" => self.delta(&value["index"], &value["delta"]),
            "content_block_stop" => {
                if let Some(block) = self.blocks.iter_mut().rfind(|block| block.number == value["index"]) {
                    block.call.is_closed = true;
                }
            }
            "message_delta" => {
                self.draft.finish = string(&value["delta"], "stop_reason").or(self.draft.finish.take());
                self.usage(&value["usage"]);
                self.usage(&value["delta"]["usage"]);
            }
            "message_stop" => self.draft.is_complete = true,
            "error" => self.fail(value),
            _ => {}
        }
    }

    fn usage(&mut self, usage: &Value) {
        let from_cache = ["cache_read_input_tokens", "cache_creation_input_tokens"];
        let is_cached = from_cache.iter().any(|name| usage[*name].as_u64().is_some_and(|tokens| tokens > 0));
        if is_cached && usage["input_tokens"] == 0 {
            self.draft.usage.0 = Some(0);
            self.draft.use_tokens(&Value::Null, &usage["output_tokens"]);
        } else {
            self.draft.use_tokens(&usage["input_tokens"], &usage["output_tokens"]);
        }
    }

    fn delta(&mut self, number: &Value, delta: &Value) {
        let kind = delta["type"].as_str().unwrap_or_default();
        if kind == "input_json_delta" {
            return self.input(number, string(delta, "partial_json"));
        }
        if !self.blocks.iter().any(|block| block.number == *number) {
            let kind = kind.trim_end_matches("_delta").to_owned();
            let (text, call, input) = (String::new(), DraftCall::default(), Value::Null);
            self.blocks.push(Block { number: number.clone(), kind, text, call, input });
        }
        let Some(block) = self.blocks.iter_mut().rfind(|block| block.number == *number) else { return };
        match kind {
            "text_delta" => block.text += delta["text"].as_str().unwrap_or_default(),
            "thinking_delta" => block.text += delta["thinking"].as_str().unwrap_or_default(),
            _ => {}
        }
    }

    fn input(&mut self, number: &Value, text: Option<String>) {
        let takes_input = |block: &Block| block.kind.ends_with("tool_use");
        let of_number = self.blocks.iter().rposition(|block| block.number == *number);
        let calls = || self.blocks.iter().enumerate().filter(|(_, block)| block.kind == "tool_use");
        let own = of_number.filter(|at| takes_input(&self.blocks[*at]));
        let only = || Some(calls().nth(owner(calls().map(|(_, block)| &block.call))?)?.0);
        let at = own.or_else(only).unwrap_or_else(|| {
            let (kind, input) = ("tool_use".to_owned(), Value::Null);
            let (text, call) = (String::new(), DraftCall::default());
            self.blocks.push(Block { number: number.clone(), kind, text, call, input });
            self.blocks.len() - 1
        });
        self.blocks[at].call.fragments.extend(text);
    }

    pub fn settle(mut self) -> OracleOutcome {
        for block in self.blocks {
            match block.kind.as_str() {
                "text" => self.draft.text += &block.text,
                "thinking" => self.draft.reasoning += &block.text,
                "tool_use" => {
                    let mut call = block.call;
                    if call.fragments.is_empty()
                        && block.input.as_object().is_some_and(|input| !input.is_empty())
                    {
                        call.fragments.push(block.input.to_string());
                    }
                    self.draft.calls.push(call);
                }
                _ => {}
            }
        }
        self.draft.settle(|raw| match raw {
            "end_turn" | "tool_use" | "stop_sequence" => "stop",
            "max_tokens" | "model_context_window_exceeded" => "length",
            "refusal" => "content_filter",
            "pause_turn" => "pause",
            _ => "other",
        })
    }
}
