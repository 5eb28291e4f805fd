//! OpenAI Responses.

use super::OracleOutcome;
use super::draft::{Draft, DraftCall, error_message, owner, string};
use super::frames::{Body, Event, sse};
use super::surrogates::parse;
use serde_json::Value;
use std::collections::BTreeMap;

/// One item of the output, by `output_index`.
#[derive(Default)]
struct Item {
    kind: String,
    text: String,
    reasoning: String,
    call: DraftCall,
}

pub fn read(body: &[u8]) -> OracleOutcome {
    let mut draft = Draft::default();
    let mut items: BTreeMap<u64, Item> = BTreeMap::new();
    let mut ids: Vec<(String, u64)> = Vec::new();
    let mut last = None;
    match sse(body) {
        Body::Junk(text) => draft = Draft::failed(text),
        Body::Document(value) if value["output"].is_array() => last = Some(value),
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
                        if kind == "error" {
                            draft.fail(error_message(&value).unwrap_or_else(|| value.to_string()));
                        } else if ["response.completed", "response.incomplete", "response.failed"]
                            .contains(&kind.as_str())
                            || kind == "response.done" && value["response"]["status"].is_string()
                        {
                            last = Some(value["response"].clone());
                        } else {
                            read_item(&kind, &value, &mut items, &mut ids);
                        }
                    }
                }
            }
        }
    }
    if let Some(response) = &last {
        finish(response, &mut draft, &mut items);
    }
    let mut strays = Vec::new();
    for item in items.into_values() {
        if item.kind.is_empty() && !item.call.text().is_empty() {
            strays.push(item.call.text());
        }
        draft.text += &item.text;
        draft.reasoning += &item.reasoning;
        if ["function_call", "custom_tool_call"].contains(&item.kind.as_str()) {
            draft.calls.push(item.call);
        }
    }
    let is_known = |text: &str, draft: &Draft| draft.calls.iter().any(|call| is_same(&call.text(), text));
    if !is_known(&strays.concat(), &draft) {
        let nobodys: Vec<String> = strays.into_iter().filter(|stray| !is_known(stray, &draft)).collect();
        draft.calls.extend(
            nobodys.into_iter().map(|text| DraftCall { fragments: vec![text], ..DraftCall::default() }),
        );
    }
    draft.settle(|raw| match raw {
        "completed" => "stop",
        "max_output_tokens" => "length",
        "content_filter" => "content_filter",
        "failed" => "error",
        _ => "other",
    })
}

fn read_item(kind: &str, event: &Value, items: &mut BTreeMap<u64, Item>, ids: &mut Vec<(String, u64)>) {
    if event["output_index"].is_null() {
        return;
    }
    let mut number = event["output_index"].as_u64().unwrap_or(0);
    if let Some(id) = string(&event["item"], "id") {
        ids.push((id, number));
    }
    let known = ids.iter().rfind(|(id, _)| string(event, "item_id").as_ref() == Some(id));
    if let Some((_, own)) = known.filter(|_| !items.contains_key(&number)) {
        number = *own;
    }
    let is_call = |item: &Item| item.kind == "function_call" || item.kind == "custom_tool_call";
    let is_stray = !items.contains_key(&number) && event["name"].is_null();
    if is_stray && kind.starts_with("response.function_call_arguments.") {
        let text = string(event, "delta").or(string(event, "arguments")).unwrap_or_default();
        let says_it = |item: &Item| is_call(item) && is_same(&item.call.text(), &text);
        if kind.ends_with("done") && (text.is_empty() || items.values().any(says_it)) {
            return;
        }
        let calls: Vec<u64> = items.iter().filter(|(_, item)| is_call(item)).map(|(own, _)| *own).collect();
        if let Some(at) = owner(calls.iter().map(|own| &items[own].call)) {
            number = calls[at];
        }
    }
    let item = items.entry(number).or_default();
    let delta = event["delta"].as_str().unwrap_or_default();
    match kind {
        "response.output_item.added" | "response.output_item.done" => {
            snapshot(&event["item"], item);
            item.call.is_closed |= kind.ends_with("done");
        }
        "response.output_text.delta" => item.text += delta,
        "response.output_text.done" if item.text.is_empty() => {
            item.text += event["text"].as_str().unwrap_or_default()
        }
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => item.reasoning += delta,
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            item.call.fragments.push(delta.to_owned());
        }
        "response.function_call_arguments.done" => settled(item, &event["arguments"]),
        "response.custom_tool_call_input.done" => settled(item, &event["input"]),
        _ => {}
    }
}

/// True for equal texts, or equal documents.
fn is_same(a: &str, b: &str) -> bool {
    a == b || parse(a).is_some_and(|value| parse(b) == Some(value))
}

/// A snapshot replaces; an empty one has no effect.
fn settled(item: &mut Item, text: &Value) {
    item.call.is_closed = true;
    if let Some(text) = text.as_str().filter(|text| !text.is_empty()) {
        item.call.fragments = vec![text.to_owned()];
    }
}

fn snapshot(value: &Value, item: &mut Item) {
    item.kind = string(value, "type").unwrap_or_default();
    if item.text.is_empty() {
        for part in value["content"].as_array().into_iter().flatten() {
            if part["type"] == "output_text" {
                item.text += part["text"].as_str().unwrap_or_default();
            } else if part["type"] == "reasoning_text" && item.reasoning.is_empty() {
                item.reasoning += part["text"].as_str().unwrap_or_default();
            }
        }
    }
    if item.reasoning.is_empty() {
        for part in value["summary"].as_array().into_iter().flatten() {
            item.reasoning += part["text"].as_str().unwrap_or_default();
        }
    }
    if item.kind == "function_call" || item.kind == "custom_tool_call" {
        let call = &mut item.call;
        call.is_custom = item.kind == "custom_tool_call";
        call.id = call.id.take().or_else(|| string(value, "call_id")).or_else(|| string(value, "id"));
        call.name = string(value, "name").unwrap_or(std::mem::take(&mut call.name));
        let text = string(value, if call.is_custom { "input" } else { "arguments" });
        // A placeholder contains no information about earlier arguments.
        if let Some(text) = text.filter(|text| text != "{}" || call.fragments.is_empty()) {
            call.fragments = vec![text];
        }
    }
}

fn finish(response: &Value, draft: &mut Draft, items: &mut BTreeMap<u64, Item>) {
    draft.is_complete = true;
    draft.use_tokens(&response["usage"]["input_tokens"], &response["usage"]["output_tokens"]);
    let status = response["status"].as_str().unwrap_or("completed");
    let why = response["incomplete_details"]["reason"].as_str();
    draft.finish = Some(if status == "incomplete" { why.unwrap_or(status) } else { status }.to_owned());
    if status == "failed" {
        draft.fail(error_message(response).unwrap_or_default());
    }
    if items.is_empty() {
        for (at, value) in response["output"].as_array().into_iter().flatten().enumerate() {
            snapshot(value, items.entry(at as u64).or_default());
        }
    }
}
