//! A reply as read so far, and its settlement when all has been read.

use super::surrogates::{join, join_value, parse};
use super::{OracleCall, OracleEnd, OracleOutcome};
use serde_json::{Value, json};

#[derive(Default)]
pub struct Draft {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<DraftCall>,
    /// As on the wire.
    pub finish: Option<String>,
    /// The protocol's end marker was seen.
    pub is_complete: bool,
    pub error: Option<String>,
    pub usage: (Option<u64>, Option<u64>),
}

#[derive(Default)]
pub struct DraftCall {
    pub id: Option<String>,
    pub name: String,
    pub fragments: Vec<String>,
    /// The arguments are free text.
    pub is_custom: bool,
    /// True if the upstream reported the call as finished.
    pub is_closed: bool,
}

impl DraftCall {
    pub fn text(&self) -> String {
        self.fragments.concat()
    }

    /// True if the call has a head: fragments alone do not make a call.
    fn has_head(&self) -> bool {
        self.id.is_some() || !self.name.is_empty()
    }

    /// True if more of it may come: it is not a whole object, and was not reported as finished.
    fn is_open(&self) -> bool {
        let text = self.text();
        let is_whole = parse(&text).is_some_and(|value| value.as_object().is_some_and(|it| !it.is_empty()));
        !is_whole && !self.is_closed
    }
}

/// The call that a fragment with a number of no call belongs to: the only open one.
pub fn owner<'c>(calls: impl Iterator<Item = &'c DraftCall>) -> Option<usize> {
    let open: Vec<(usize, &DraftCall)> = calls.enumerate().filter(|(_, call)| call.is_open()).collect();
    match open[..] {
        [(only, call)] if call.has_head() => Some(only),
        _ => None,
    }
}

/// The string of a member; empty and absent are the same.
pub fn string(value: &Value, key: &str) -> Option<String> {
    match &value[key] {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

/// An argument fragment: a string, or any other value as its text.
pub fn fragment(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

impl Draft {
    pub fn failed(message: impl Into<String>) -> Self {
        Draft { error: Some(message.into()), ..Draft::default() }
    }

    /// Keeps the first error.
    pub fn fail(&mut self, message: String) {
        self.error.get_or_insert(message);
    }

    /// Sets token counts: the last ones count, except zeros of an upstream that reports an empty prompt.
    pub fn use_tokens(&mut self, input: &Value, output: &Value) {
        let count = |value: &Value| value.as_u64().or_else(|| value.as_f64().map(|number| number as u64));
        let (input, output) = (count(input), count(output));
        let told = |new: Option<u64>| new.filter(|new| *new > 0 || input != Some(0));
        self.usage = (told(input).or(self.usage.0).or(input), told(output).or(self.usage.1).or(output));
    }

    /// Assigns a fragment with a number of no call; returns the call.
    pub fn stray(&mut self, text: Option<String>) -> usize {
        let at = owner(self.calls.iter()).unwrap_or_else(|| {
            self.calls.push(DraftCall::default());
            self.calls.len() - 1
        });
        self.calls[at].fragments.extend(text);
        at
    }

    /// Settles everything. `reason` normalizes a finish reason; a normal stop is `stop`.
    pub fn settle(self, reason: impl Fn(&str) -> &'static str) -> OracleOutcome {
        let finish = self.finish.as_deref().filter(|raw| !raw.is_empty()).map(&reason);
        let end = match (&self.error, self.is_complete) {
            (Some(_), _) => OracleEnd::Error,
            (None, true) => OracleEnd::Complete,
            (None, false) => OracleEnd::Truncated,
        };
        let finished = finish.is_some_and(|finish| finish != "length")
            || (finish.is_none() && end == OracleEnd::Complete);
        let mut seen = Vec::new();
        let mut calls = Vec::new();
        let has_orphans =
            self.calls.iter().any(|call| call.name.is_empty() && !call.text().trim().is_empty());
        for call in self.calls {
            let id = call.id.as_deref().map(join).filter(|id| !id.is_empty() && !seen.contains(id));
            seen.extend(id.clone());
            let arguments = if call.is_custom {
                Ok(Value::String(join(&call.text())))
            } else if call.name.is_empty() {
                Err(join(&call.text()))
            } else {
                arguments(&call.fragments, finished || call.is_closed)
            };
            // It has no arguments, and there are fragments without an owner.
            let arguments = match arguments {
                Ok(value) if has_orphans && value == json!({}) => Err(join(&call.text())),
                other => other,
            };
            calls.push(OracleCall { id, name: join(&call.name), arguments });
        }
        let finish = finish.map(|finish| match finish {
            "stop" if !calls.is_empty() => "tool_calls",
            other => other,
        });
        OracleOutcome {
            text: join(&self.text),
            reasoning: join(&self.reasoning),
            calls,
            finish: finish.map(str::to_owned),
            end,
            error: self.error,
            usage: self.usage,
            choices: Vec::new(),
        }
    }
}

/// The value of the joined fragments, or their text if they have none.
pub fn arguments(fragments: &[String], finished: bool) -> Result<Value, String> {
    let text = fragments.concat();
    if text.trim().is_empty() {
        return if finished { Ok(json!({})) } else { Err(text) };
    }
    let is_json = |text: &str| parse(text).is_some();
    let nonempty: Vec<&str> = fragments.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    let nests = nonempty.len() > 1 && nonempty.windows(2).all(|pair| pair[1].starts_with(pair[0]));
    let half = text.get(..text.len() / 2).unwrap_or_default();
    let readable = if is_json(&text) {
        text.clone()
    } else if let Some(rest) = text.trim_start().strip_prefix("{}").filter(|rest| is_json(rest)) {
        rest.to_owned()
    } else if let Some(last) = nonempty.last().filter(|last| nests && is_json(last)) {
        (*last).to_owned()
    } else if text == half.repeat(2) && is_json(half) {
        half.to_owned()
    } else {
        return Err(join(&text));
    };
    let inner = |text: &str| parse(text).filter(Value::is_object);
    match parse(&readable) {
        Some(Value::Null) => Ok(json!({})),
        Some(Value::String(text)) => Ok(join_value(inner(&text).unwrap_or(Value::String(text)))),
        Some(value) => Ok(join_value(value)),
        None => Err(join(&text)),
    }
}

/// The message of an error in any of the shapes that servers send.
pub fn error_message(value: &Value) -> Option<String> {
    let error = &value["error"];
    [&error["message"], error, &value["message"], &value["detail"], &value["detail"][0]["msg"]]
        .into_iter()
        .find_map(|message| message.as_str().map(str::to_owned))
        .or_else(|| (!error.is_null()).then(|| error.to_string()))
}
