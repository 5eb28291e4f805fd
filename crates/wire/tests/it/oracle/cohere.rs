//! Cohere v2 chat.

use super::OracleOutcome;
use super::draft::{Draft, DraftCall, error_message, string};
use super::frames::{Body, Event, sse};
use serde_json::Value;

pub fn read(body: &[u8]) -> OracleOutcome {
    let mut draft = Draft::default();
    let mut numbers: Vec<Value> = Vec::new();
    match sse(body) {
        Body::Junk(text) => draft = Draft::failed(text),
        Body::Document(value) => {
            draft = Draft::failed(error_message(&value).unwrap_or_else(|| value.to_string()))
        }
        Body::Events(events) => {
            for event in events {
                match event {
                    Event::Done => {}
                    Event::Error(text) => draft.fail(text),
                    Event::Json(name, value) => {
                        let kind = string(&value, "type").unwrap_or(name);
                        read_event(&kind, &value, &mut draft, &mut numbers);
                    }
                }
            }
        }
    }
    draft.settle(|raw| match raw {
        "COMPLETE" | "STOP_SEQUENCE" | "TOOL_CALL" => "stop",
        "MAX_TOKENS" => "length",
        "ERROR" => "error",
        _ => "other",
    })
}

fn read_event(kind: &str, event: &Value, draft: &mut Draft, numbers: &mut Vec<Value>) {
    let message = &event["delta"]["message"];
    let call = &message["tool_calls"];
    match kind {
        "content-start" | "content-delta" => {
            draft.text += message["content"]["text"].as_str().unwrap_or_default();
            draft.reasoning += message["content"]["thinking"].as_str().unwrap_or_default();
        }
        "tool-plan-delta" => draft.reasoning += message["tool_plan"].as_str().unwrap_or_default(),
        "tool-call-start" => {
            numbers.push(event["index"].clone());
            draft.calls.push(DraftCall {
                id: string(call, "id"),
                name: string(&call["function"], "name").unwrap_or_default(),
                fragments: string(&call["function"], "arguments").into_iter().collect(),
                ..DraftCall::default()
            });
        }
        "tool-call-delta" | "tool-call-end" => {
            if let Some(at) = numbers.iter().rposition(|number| *number == event["index"]) {
                draft.calls[at].fragments.extend(string(&call["function"], "arguments"));
                draft.calls[at].is_closed |= kind == "tool-call-end";
            } else if kind == "tool-call-delta" {
                let known = draft.calls.len();
                draft.stray(string(&call["function"], "arguments"));
                if draft.calls.len() > known {
                    numbers.push(event["index"].clone());
                }
            }
        }
        "message-end" => {
            draft.is_complete = true;
            draft.finish = string(&event["delta"], "finish_reason");
            let tokens = &event["delta"]["usage"]["tokens"];
            draft.use_tokens(&tokens["input_tokens"], &tokens["output_tokens"]);
            if draft.finish.as_deref() == Some("ERROR") || !event["delta"]["error"].is_null() {
                draft.fail(error_message(&event["delta"]).unwrap_or_default());
            }
        }
        _ => {}
    }
}
