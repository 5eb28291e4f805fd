//! Gemini `streamGenerateContent`.

use super::OracleOutcome;
use super::draft::{Draft, DraftCall, error_message, string};
use super::frames::{Body, Event, sse};
use super::surrogates::parse;
use serde_json::{Value, json};

#[derive(Default)]
struct Reader {
    draft: Draft,
    /// The call whose arguments are still coming, with the value built so far.
    open: Option<(usize, Value)>,
}

pub fn read(body: &[u8]) -> OracleOutcome {
    let mut reader = Reader::default();
    match sse(body) {
        Body::Junk(text) => match cut_array(&text) {
            chunks if chunks.is_empty() => reader.draft = Draft::failed(text),
            chunks => chunks.iter().for_each(|chunk| reader.chunk(chunk)),
        },
        Body::Document(Value::Array(chunks)) => chunks.iter().for_each(|chunk| reader.chunk(chunk)),
        Body::Document(chunk) => reader.chunk(&chunk),
        Body::Events(events) => {
            for event in events {
                match event {
                    Event::Done => {}
                    Event::Error(text) => reader.draft.fail(text),
                    Event::Json(_, chunk) => reader.chunk(&chunk),
                }
            }
        }
    }
    reader.close();
    reader.draft.is_complete = reader.draft.finish.is_some();
    reader.draft.settle(|raw| match raw {
        "STOP" => "stop",
        "MAX_TOKENS" => "length",
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => "error",
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY"
        | "BLOCKED" => "content_filter",
        _ => "other",
    })
}

/// The whole elements of an array that was cut: the longest prefix that is an array when closed.
fn cut_array(text: &str) -> Vec<Value> {
    let borders = text.char_indices().rev().filter(|(_, c)| *c == '}').map(|(at, _)| at + 1);
    borders
        .map(|end| format!("{}]", &text[..end]))
        .find_map(|array| parse(&array)?.as_array().cloned())
        .unwrap_or_default()
}

impl Reader {
    fn chunk(&mut self, chunk: &Value) {
        let chunk = if chunk["response"].is_object() { &chunk["response"] } else { chunk };
        if !chunk["error"].is_null() {
            self.draft.fail(error_message(chunk).unwrap_or_default());
        }
        if chunk["usageMetadata"].is_object() {
            let usage = &chunk["usageMetadata"];
            let count = |key: &str| usage[key].as_u64().unwrap_or(0);
            self.draft.use_tokens(
                &usage["promptTokenCount"],
                &json!(count("candidatesTokenCount") + count("thoughtsTokenCount")),
            );
        }
        if chunk["promptFeedback"]["blockReason"].is_string() {
            self.draft.finish = Some("BLOCKED".to_owned());
        }
        let candidate = &chunk["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            let text = part["text"].as_str().unwrap_or_default();
            if part["thought"] == true {
                self.draft.reasoning += text;
            } else {
                self.draft.text += text;
            }
            if part["functionCall"].is_object() {
                self.call(&part["functionCall"]);
            }
        }
        // The enum's numbers, in the order of the API's definition.
        let names = ["", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"];
        match &candidate["finishReason"] {
            Value::String(reason) => self.draft.finish = Some(reason.clone()),
            Value::Number(reason) => {
                let name = reason.as_u64().and_then(|at| names.get(at as usize)).unwrap_or(&"OTHER");
                self.draft.finish = Some((*name).to_owned());
            }
            _ => {}
        }
    }

    fn call(&mut self, call: &Value) {
        let name = string(call, "name");
        if let Some(name) = name.clone() {
            self.close();
            let at = self.draft.calls.len();
            self.draft.calls.push(DraftCall { id: string(call, "id"), name, ..DraftCall::default() });
            let value = if call["args"].is_object() { call["args"].clone() } else { json!({}) };
            self.open = Some((at, value));
        }
        let pieces = call["partialArgs"].as_array().filter(|pieces| !pieces.is_empty());
        if let (None, None, Some(_)) = (&name, &self.open, pieces) {
            let fragments = vec![call["partialArgs"].to_string()];
            self.draft.calls.push(DraftCall { fragments, ..DraftCall::default() });
        }
        for argument in call["partialArgs"].as_array().into_iter().flatten() {
            if let Some((_, value)) = &mut self.open {
                apply(value, argument);
            }
        }
        if call["willContinue"] != true {
            self.close();
        }
    }

    /// Half a call whose stream was cut keeps what it has: no terminator is ever promised.
    fn close(&mut self) {
        if let Some((at, value)) = self.open.take() {
            self.draft.calls[at].is_closed = true;
            self.draft.calls[at].fragments = vec![value.to_string()];
        }
    }
}

/// Sets the value at a path such as `$.guests[0].age`; strings append.
fn apply(value: &mut Value, argument: &Value) {
    let path = argument["jsonPath"].as_str().unwrap_or_default().replace('[', ".[").replace(']', "");
    let mut target = value;
    for step in path.trim_start_matches('$').split('.').filter(|step| !step.is_empty()) {
        target = match step.strip_prefix('[') {
            Some(at) => {
                let at: usize = at.trim_matches(['\'', '"']).parse().unwrap_or(0);
                if !target.is_array() {
                    *target = json!([]);
                }
                let Value::Array(items) = target else { return };
                items.resize(items.len().max(at + 1), Value::Null);
                &mut items[at]
            }
            None => {
                if !target.is_object() {
                    *target = json!({});
                }
                &mut target[step]
            }
        };
    }
    if let Some(text) = argument["stringValue"].as_str() {
        *target = json!(target.as_str().unwrap_or_default().to_owned() + text);
    } else if let Some(scalar) =
        ["numberValue", "boolValue"].iter().map(|key| &argument[*key]).find(|it| !it.is_null())
    {
        *target = scalar.clone();
    }
}
