//! OpenAI Chat Completions and compatible servers.

use super::draft::{Draft, DraftCall, arguments, error_message, fragment, owner, string};
use super::frames::{Body, Event, sse};
use super::surrogates::parse;
use super::{OracleEnd, OracleOutcome};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Default)]
struct Choice {
    /// Something has come in a `delta`.
    has_deltas: bool,
    draft: Draft,
    /// For each call of the draft, the number it came with.
    numbers: Vec<Option<i64>>,
}

#[derive(Default)]
struct Reader {
    choices: BTreeMap<u64, Choice>,
    usages: Vec<Value>,
    done: bool,
    error: Option<String>,
}

pub fn read(body: &[u8]) -> OracleOutcome {
    let mut reader = Reader::default();
    match sse(body) {
        Body::Junk(text) => reader.error = Some(text),
        Body::Document(value) => {
            let value = if value.is_array() { value[0].clone() } else { value };
            if value["choices"].is_null() {
                reader.error = Some(error_message(&value).unwrap_or_else(|| value.to_string()));
            } else {
                reader.chunk(&value);
            }
        }
        Body::Events(events) => {
            for event in events {
                match event {
                    Event::Done => {
                        reader.done = true;
                        break;
                    }
                    Event::Error(text) => {
                        let message = parse(&text).and_then(|value| error_message(&value)).unwrap_or(text);
                        reader.error.get_or_insert(message);
                    }
                    Event::Json(name, value) if name == "error" || !value["error"].is_null() => {
                        let message = error_message(&value).unwrap_or_else(|| value.to_string());
                        reader.error.get_or_insert(message);
                        reader.chunk(&value);
                    }
                    Event::Json(_, value) => reader.chunk(&value),
                }
            }
        }
    }
    reader.settle()
}

impl Reader {
    fn chunk(&mut self, chunk: &Value) {
        for usage in [&chunk["x_groq"]["usage"], &chunk["usage"], &chunk["choices"][0]["usage"]] {
            if usage.is_object() {
                self.usages.push(usage.clone());
            }
        }
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            let number = choice["index"].as_u64().unwrap_or(0);
            self.choices.entry(number).or_default().read(choice);
            if number == 0 && choice["error"].is_object() {
                self.error.get_or_insert(error_message(choice).unwrap_or_default());
            }
        }
    }

    fn settle(mut self) -> OracleOutcome {
        let mut first = self.choices.remove(&0).unwrap_or_default();
        first.draft.error = self.error;
        for usage in &self.usages {
            first.draft.use_tokens(&usage["prompt_tokens"], &usage["completion_tokens"]);
        }
        let mut outcome = first.settle(self.done);
        outcome.choices =
            self.choices.into_iter().map(|(number, choice)| (number, choice.settle(self.done))).collect();
        for (_, choice) in &mut outcome.choices {
            choice.end = OracleEnd::Truncated;
        }
        outcome
    }
}

impl Choice {
    fn read(&mut self, choice: &Value) {
        let is_delta = choice["delta"].is_object();
        let delta = if is_delta { &choice["delta"] } else { &choice["message"] };
        let says_something = !self.draft.text.is_empty() || !self.draft.calls.is_empty();
        let content = delta["content"].as_str();
        let finish = string(choice, "finish_reason").or(self.draft.finish.clone());
        let extends =
            content.filter(|text| !self.draft.text.is_empty() && text.starts_with(&self.draft.text));
        if !is_delta && self.has_deltas && says_something && (finish.is_some() || extends.is_some()) {
            // The whole message, once more: its text counts instead of what was streamed.
            match (extends, content) {
                (Some(text), _) => self.draft.text = text.to_owned(),
                (None, Some(text)) if self.draft.text.is_empty() => self.draft.text = text.to_owned(),
                _ => {}
            }
            self.draft.finish = finish;
            let streamed = self.draft.calls.len();
            for (nth, entry) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
                if !self.is_repeated(streamed, nth, entry) {
                    self.entry(entry);
                }
            }
            return;
        }
        self.has_deltas |= is_delta;
        self.reasoning(delta);
        match &delta["content"] {
            Value::String(text) => self.draft.text += text,
            Value::Array(parts) => parts.iter().for_each(|part| self.part(part)),
            _ => {}
        }
        match &delta["tool_calls"] {
            Value::Array(entries) => entries.iter().for_each(|entry| self.entry(entry)),
            entry @ Value::Object(_) => self.entry(entry),
            _ => {}
        }
        if delta["function_call"].is_object() {
            self.legacy(&delta["function_call"]);
        }
        if let Some(reason) = string(choice, "finish_reason") {
            self.draft.finish = Some(reason);
        }
    }

    /// A call of a whole message was streamed before: under its id, or in its place with the same arguments or without
    /// an id.
    fn is_repeated(&mut self, streamed: usize, nth: usize, entry: &Value) -> bool {
        let id = string(entry, "id");
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        let text = fragment(&entry["function"]["arguments"]).unwrap_or_default();
        let by_id = self.draft.calls[..streamed].iter().position(|call| id.is_some() && call.id == id);
        let Some(at) = by_id.or((nth < streamed).then_some(nth)) else { return false };
        let call = &mut self.draft.calls[at];
        let same = value(&call.text()).is_some_and(|known| value(&text) == Some(known));
        let other_id = by_id.is_none() && id.is_some() && call.id.is_some();
        if string(&entry["function"], "name").is_some_and(|name| name != call.name) || other_id && !same {
            return false;
        }
        if !same && !text.is_empty() {
            call.fragments = vec![text];
        }
        true
    }

    /// The first non-empty field; the others repeat it.
    fn reasoning(&mut self, delta: &Value) {
        let fields = ["reasoning_content", "reasoning", "reasoning_text", "thinking"];
        if let Some(text) = fields.iter().find_map(|field| string(delta, field)) {
            self.draft.reasoning += &text;
            return;
        }
        for detail in delta["reasoning_details"].as_array().into_iter().flatten() {
            let text = string(detail, "text").or_else(|| string(detail, "summary"));
            self.draft.reasoning += &text.unwrap_or_default();
        }
    }

    fn part(&mut self, part: &Value) {
        match part["type"].as_str() {
            Some("thinking") => {
                for thought in part["thinking"].as_array().into_iter().flatten() {
                    self.draft.reasoning += thought["text"].as_str().unwrap_or_default();
                }
                self.draft.reasoning += part["thinking"].as_str().unwrap_or_default();
            }
            _ => self.draft.text += part["text"].as_str().unwrap_or_default(),
        }
    }

    fn legacy(&mut self, call: &Value) {
        if self.draft.calls.is_empty() {
            self.open(None, DraftCall::default());
        }
        self.add(0, string(call, "name"), fragment(&call["arguments"]));
    }

    fn open(&mut self, number: Option<i64>, call: DraftCall) -> usize {
        self.numbers.push(number);
        self.draft.calls.push(call);
        self.draft.calls.len() - 1
    }

    /// Joins a name and a fragment to a call.
    fn add(&mut self, at: usize, name: Option<String>, text: Option<String>) {
        let call = &mut self.draft.calls[at];
        if let Some(name) = name {
            if call.text().is_empty() && name.starts_with(&call.name) {
                call.name = name;
            } else if call.text().is_empty() && name != call.name {
                call.name += &name;
            }
        }
        call.fragments.extend(text);
    }

    /// One entry of `tool_calls`: opens a call or continues one.
    fn entry(&mut self, entry: &Value) {
        let number = entry["index"].as_i64().or_else(|| entry["index"].as_str()?.parse().ok());
        let id = string(entry, "id").or_else(|| entry["id"].as_i64().map(|id| id.to_string()));
        let is_custom = entry["custom"].is_object();
        let function = if is_custom { &entry["custom"] } else { &entry["function"] };
        let name = string(function, "name");
        let text = fragment(&function[if is_custom { "input" } else { "arguments" }])
            .filter(|text| !text.is_empty());
        if id.is_none() && name.is_none() && text.is_none() {
            return;
        }
        let open = |choice: &mut Self| {
            let call = DraftCall { id: id.clone(), is_custom, ..DraftCall::default() };
            let at = choice.open(number, call);
            choice.add(at, name.clone(), text.clone());
        };
        let known = match number {
            Some(_) => self.numbers.iter().rposition(|known| *known == number),
            None => self.draft.calls.len().checked_sub(1),
        };
        let Some(at) = known else {
            let last = self.numbers.len().checked_sub(1);
            if let (None, None, Some(last)) = (&id, &name, last.filter(|last| self.numbers[*last].is_none()))
            {
                // A number that first shows on a continuation belongs to the call just opened.
                self.numbers[last] = number;
                return self.add(last, None, text);
            }
            // Without a name, an id names its call, and what has neither belongs to the only open one.
            let by_id = || self.draft.calls.iter().rposition(|call| call.id == id);
            let own = if id.is_some() { by_id() } else { owner(self.draft.calls.iter()) };
            match own.filter(|_| name.is_none()) {
                Some(at) => self.add(at, None, text),
                None => open(self),
            }
            return;
        };
        let call = &self.draft.calls[at];
        let so_far = call.text();
        let is_whole = arguments(std::slice::from_ref(&so_far), false).is_ok_and(|value| value.is_object());
        let same_id = id.is_some() && id == call.id;
        let other_id = id.is_some() && call.id.is_some() && id != call.id;
        let opens = match &name {
            None => false,
            Some(name) if !call.name.is_empty() && *name == call.name => {
                if same_id && is_whole && text.as_ref() == Some(&so_far) {
                    return;
                }
                is_whole && text.is_some()
            }
            Some(_) if call.name.is_empty() => false,
            Some(_) => other_id || is_whole || number.is_none() && (id.is_some() || !so_far.is_empty()),
        };
        if opens {
            return open(self);
        }
        let call = &mut self.draft.calls[at];
        call.id = call.id.take().or(id);
        call.is_custom |= is_custom;
        self.add(at, name, text);
    }

    fn settle(mut self, done: bool) -> OracleOutcome {
        self.draft.is_complete = done || self.draft.finish.is_some();
        let mut numbers: Vec<_> = self.numbers.iter().flatten().collect();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() == self.draft.calls.len() {
            let mut calls: Vec<_> = self.numbers.iter().zip(self.draft.calls).collect();
            calls.sort_by_key(|(number, _)| **number);
            self.draft.calls = calls.into_iter().map(|(_, call)| call).collect();
        }
        self.draft.settle(|raw| match raw {
            "stop" | "tool_calls" | "function_call" => "stop",
            "length" => "length",
            "content_filter" => "content_filter",
            "error" => "error",
            _ => "other",
        })
    }
}
