//! A conversation as a hand-written client would hold it, in each dialect: reads the stream by its bytes, runs tools by
//! a closure, and puts calls and results back the way the provider's documents say.

use super::{Reply, path, post};
use serde_json::{Value, json};
use throughline_testkit::{FakeDialect, FakeUpstreamHandle};

/// Dialects that this client supports. The others of [`FakeDialect::ALL`] meet `throughline-wire` in
/// `against_wire.rs`.
pub const SPOKEN: [FakeDialect; 5] = [
    FakeDialect::OpenaiChat,
    FakeDialect::OpenaiResponses,
    FakeDialect::Anthropic,
    FakeDialect::Gemini,
    FakeDialect::Ollama,
];

/// A tool offered to the model.
#[derive(Clone)]
pub struct Offer {
    pub name: &'static str,
    pub parameters: Value,
}

pub fn offer(name: &'static str, properties: Value, required: &[&str]) -> Offer {
    Offer { name, parameters: json!({"type": "object", "properties": properties, "required": required}) }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// One model step, as read from the wire.
#[derive(Clone, Debug, Default)]
pub struct Step {
    pub text: String,
    pub thinking: String,
    pub calls: Vec<Call>,
    pub finish: String,
    /// True if text came after the first call.
    pub text_after_call: bool,
    /// The state that has to be sent back.
    raw: Vec<Value>,
}

pub struct Talk<'a> {
    upstream: &'a FakeUpstreamHandle,
    dialect: FakeDialect,
    offers: Vec<Offer>,
    history: Vec<Value>,
}

impl<'a> Talk<'a> {
    pub fn new(upstream: &'a FakeUpstreamHandle, dialect: FakeDialect, offers: &[Offer]) -> Self {
        Self { upstream, dialect, offers: offers.to_vec(), history: Vec::new() }
    }

    /// Asks, and runs tools until the model is done or has had `steps_max` steps with tools.
    pub async fn ask(
        &mut self,
        text: &str,
        steps_max: usize,
        tool: impl AsyncFn(&Call) -> String,
    ) -> Vec<Step> {
        self.history.push(match self.dialect {
            FakeDialect::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            _ => json!({"role": "user", "content": text}),
        });
        let mut steps = Vec::new();
        loop {
            let reply =
                post(self.upstream, &path(self.dialect, "demo"), &self.body(steps.len() < steps_max)).await;
            assert_eq!(reply.status, 200, "{}: {}", self.dialect, reply.text());
            let step = read(self.dialect, &reply);
            let mut results = Vec::new();
            for call in &step.calls {
                results.push((call.clone(), tool(call).await));
            }
            self.record(&step, &results);
            let over = step.calls.is_empty();
            steps.push(step);
            if over {
                return steps;
            }
            assert!(steps.len() < 20, "it never stops");
        }
    }

    fn body(&self, may_call: bool) -> Value {
        let history = Value::Array(self.history.clone());
        let mut body = match self.dialect {
            FakeDialect::OpenaiChat => json!({"model": "demo", "messages": history, "stream": true}),
            FakeDialect::OpenaiResponses => {
                json!({"model": "demo", "input": history, "stream": true, "store": false})
            }
            FakeDialect::Anthropic => {
                json!({"model": "demo", "messages": history, "stream": true, "max_tokens": 1000})
            }
            FakeDialect::Gemini => json!({"contents": history}),
            FakeDialect::Ollama => json!({"model": "demo", "messages": history}),
            other => panic!("{other} is read by wire only"),
        };
        if self.offers.is_empty() || (!may_call && self.dialect == FakeDialect::Ollama) {
            return body;
        }
        let none = |value: Value| if may_call { Value::Null } else { value };
        let tool = |offer: &Offer| match self.dialect {
            FakeDialect::OpenaiChat | FakeDialect::Ollama => {
                json!({"type": "function", "function": {"name": offer.name, "parameters": offer.parameters}})
            }
            FakeDialect::OpenaiResponses => {
                json!({"type": "function", "name": offer.name, "parameters": offer.parameters, "strict": false})
            }
            FakeDialect::Anthropic => json!({"name": offer.name, "input_schema": offer.parameters}),
            FakeDialect::Gemini => json!({"name": offer.name, "parametersJsonSchema": offer.parameters}),
            other => panic!("{other} is read by wire only"),
        };
        let tools: Vec<Value> = self.offers.iter().map(tool).collect();
        match self.dialect {
            FakeDialect::Gemini => {
                body["tools"] = json!([{"functionDeclarations": tools}]);
                body["toolConfig"] = none(json!({"functionCallingConfig": {"mode": "NONE"}}));
            }
            FakeDialect::Anthropic => {
                body["tools"] = tools.into();
                body["tool_choice"] = none(json!({"type": "none"}));
            }
            FakeDialect::Ollama => body["tools"] = tools.into(),
            _ => {
                body["tools"] = tools.into();
                body["tool_choice"] = none("none".into());
            }
        }
        body
    }

    fn record(&mut self, step: &Step, results: &[(Call, String)]) {
        let each = results.iter();
        match self.dialect {
            FakeDialect::OpenaiChat => {
                let mut message = json!({"role": "assistant", "content": step.text});
                if !step.calls.is_empty() {
                    let call = |call: &Call| {
                        json!({"id": call.id, "type": "function",
                            "function": {"name": call.name, "arguments": call.arguments}})
                    };
                    message["tool_calls"] = step.calls.iter().map(call).collect();
                }
                self.history.push(message);
                self.history.extend(each.map(
                    |(call, output)| json!({"role": "tool", "tool_call_id": call.id, "content": output}),
                ));
            }
            FakeDialect::OpenaiResponses => {
                self.history.extend(step.raw.clone());
                self.history.extend(each.map(|(call, output)| {
                    json!({"type": "function_call_output", "call_id": call.id, "output": output})
                }));
            }
            FakeDialect::Anthropic => {
                self.history.push(json!({"role": "assistant", "content": step.raw}));
                if !results.is_empty() {
                    let result = |(call, output): &(Call, String)| json!({"type": "tool_result", "tool_use_id": call.id, "content": output});
                    self.history
                        .push(json!({"role": "user", "content": each.map(result).collect::<Value>()}));
                }
            }
            FakeDialect::Gemini => {
                self.history.push(json!({"role": "model", "parts": step.raw}));
                if !results.is_empty() {
                    let response = |(call, output): &(Call, String)| json!({"functionResponse": {"name": call.name, "response": {"output": output}}});
                    self.history
                        .push(json!({"role": "user", "parts": each.map(response).collect::<Value>()}));
                }
            }
            FakeDialect::Ollama => {
                self.history.push(json!({"role": "assistant", "content": step.text, "tool_calls": step.raw}));
                self.history.extend(each.map(
                    |(call, output)| json!({"role": "tool", "tool_name": call.name, "content": output}),
                ));
            }
            other => panic!("{other} is read by wire only"),
        }
    }
}

fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Step {
    fn say(&mut self, text: &str) {
        self.text.push_str(text);
        self.text_after_call |= !text.is_empty() && !self.calls.is_empty();
    }
}

pub fn read(dialect: FakeDialect, reply: &Reply) -> Step {
    let mut step = Step::default();
    for event in reply.events() {
        match dialect {
            FakeDialect::OpenaiChat => chat(&mut step, &event),
            FakeDialect::OpenaiResponses => responses(&mut step, &event),
            FakeDialect::Anthropic => anthropic(&mut step, &event),
            FakeDialect::Gemini => gemini(&mut step, &event),
            FakeDialect::Ollama => ollama(&mut step, &event),
            other => panic!("{other} is read by wire only"),
        }
    }
    step
}

fn chat(step: &mut Step, event: &Value) {
    step.say(text_at(event, "/choices/0/delta/content"));
    step.thinking.push_str(text_at(event, "/choices/0/delta/reasoning_content"));
    for entry in event.pointer("/choices/0/delta/tool_calls").and_then(Value::as_array).into_iter().flatten()
    {
        let index = entry["index"].as_u64().expect("an index") as usize;
        if index == step.calls.len() {
            let (id, name) = (text_at(entry, "/id").into(), text_at(entry, "/function/name").into());
            step.calls.push(Call { id, name, arguments: String::new() });
        }
        step.calls[index].arguments.push_str(text_at(entry, "/function/arguments"));
    }
    step.finish.push_str(text_at(event, "/choices/0/finish_reason"));
}

fn responses(step: &mut Step, event: &Value) {
    match text_at(event, "/type") {
        "response.output_text.delta" => step.say(text_at(event, "/delta")),
        "response.reasoning_summary_text.delta" => step.thinking.push_str(text_at(event, "/delta")),
        "response.output_item.done" => {
            let mut item = event["item"].clone();
            if item["type"] == "function_call" {
                let get = |key| item[key].as_str().expect(key).to_owned();
                let (id, name, arguments) = (get("call_id"), get("name"), get("arguments"));
                step.calls.push(Call { id, name, arguments });
            }
            if let Some(item) = item.as_object_mut() {
                item.remove("id");
            }
            step.raw.push(item);
        }
        "response.completed" => step.finish = "completed".into(),
        _ => {}
    }
}

fn anthropic(step: &mut Step, event: &Value) {
    match text_at(event, "/type") {
        "content_block_start" => {
            let block = event["content_block"].clone();
            if block["type"] == "tool_use" {
                let (id, name) = (text_at(&block, "/id").into(), text_at(&block, "/name").into());
                step.calls.push(Call { id, name, arguments: String::new() });
            }
            step.raw.push(block);
        }
        "content_block_delta" => {
            let block = event["index"].as_u64().expect("an index") as usize;
            let delta = &event["delta"];
            step.say(text_at(delta, "/text"));
            step.thinking.push_str(text_at(delta, "/thinking"));
            for key in ["text", "thinking", "signature"] {
                if let Some(more) = delta[key].as_str() {
                    step.raw[block][key] =
                        format!("{}{more}", text_at(&step.raw[block], &format!("/{key}"))).into();
                }
            }
            if let Some(fragment) = delta["partial_json"].as_str() {
                let call = step.calls.last_mut().expect("a call");
                call.arguments.push_str(fragment);
                if let Ok(input) = serde_json::from_str(&call.arguments) {
                    step.raw[block]["input"] = input;
                }
            }
        }
        "message_delta" => step.finish = text_at(event, "/delta/stop_reason").into(),
        _ => {}
    }
}

fn gemini(step: &mut Step, event: &Value) {
    for part in event.pointer("/candidates/0/content/parts").and_then(Value::as_array).into_iter().flatten() {
        if let Some(call) = part.get("functionCall") {
            let (id, name) = (text_at(call, "/id").into(), text_at(call, "/name").into());
            step.calls.push(Call { id, name, arguments: call["args"].to_string() });
        } else if part["thought"] == true {
            step.thinking.push_str(text_at(part, "/text"));
        } else {
            step.say(text_at(part, "/text"));
        }
        step.raw.push(part.clone());
    }
    step.finish.push_str(text_at(event, "/candidates/0/finishReason"));
}

fn ollama(step: &mut Step, event: &Value) {
    step.say(text_at(event, "/message/content"));
    step.thinking.push_str(text_at(event, "/message/thinking"));
    for call in event.pointer("/message/tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let (id, name) = (text_at(call, "/id").into(), text_at(call, "/function/name").into());
        step.calls.push(Call { id, name, arguments: call["function"]["arguments"].to_string() });
        step.raw.push(call.clone());
    }
    step.finish.push_str(text_at(event, "/done_reason"));
}
