//! The corpus: recorded and written streams, each with the outcome that a correct decoder arrives at.

use super::{OracleCall, OracleEnd, OracleOutcome};
use crate::fixture;
use serde_json::Value;
use std::path::PathBuf;

/// One stream.
pub struct Stream {
    pub id: String,
    pub api: String,
    pub body: Vec<u8>,
    pub row: Value,
}

/// The folder of shared test vectors, if this machine has it.
pub fn vectors() -> Option<PathBuf> {
    let folder = std::env::var_os("THROUGHLINE_VECTORS");
    if folder.is_none() {
        println!("skipped: THROUGHLINE_VECTORS is not set");
    }
    folder.map(PathBuf::from)
}

/// The project's own fixtures that are decoded without options, and the corpus where this machine has it.
///
/// The expectation of a fixture stands next to it and is checked by `fixtures.rs`; here it has no expectation, and is compared
/// with the independent reader alone.
pub fn streams() -> Vec<Stream> {
    let own = fixture::all().into_iter().filter(|fixture| fixture.expect["options"].is_null());
    let own = own.map(|fixture| Stream {
        api: fixture.api().to_owned(),
        row: Value::Null,
        id: fixture.id,
        body: fixture.body,
    });
    own.chain(corpus().into_iter().flatten()).collect()
}

/// All streams of the corpus.
pub fn corpus() -> Option<Vec<Stream>> {
    let folder = vectors()?.join("corpus");
    let manifest = std::fs::read_to_string(folder.join("manifest.jsonl")).expect("the corpus has a manifest");
    let rows =
        manifest.lines().map(|line| serde_json::from_str::<Value>(line).expect("a manifest row is JSON"));
    let text = |row: &Value, key: &str| row[key].as_str().expect("a manifest row has its keys").to_owned();
    let read = |row: Value| Stream {
        id: text(&row, "id"),
        api: text(&row, "api"),
        body: std::fs::read(folder.join(text(&row, "file"))).expect("the body of a stream is there"),
        row,
    };
    Some(rows.map(read).collect())
}

impl Stream {
    /// The differences between an outcome and the expectation. Alternatives that the corpus accepts where
    /// several answers are valid are not accepted here: only the documented answers are.
    pub fn differences(&self, got: &OracleOutcome) -> Vec<String> {
        if self.row.is_null() { Vec::new() } else { differences(&self.row["expect"], got) }
    }
}

fn differences(want: &Value, got: &OracleOutcome) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, want: &Value, got: Value| {
        if !same(want, &got) {
            found.push(format!("{what}: want {want}, got {got}"));
        }
    };
    compare("text", &want["text"], got.text.clone().into());
    compare("reasoning", &want["reasoning"], got.reasoning.clone().into());
    compare("finish_reason", &want["finish_reason"], got.finish.clone().into());
    let end = match got.end {
        OracleEnd::Complete => "complete",
        OracleEnd::Truncated => "truncated",
        OracleEnd::Error => "error",
    };
    compare("end", &want["end"], end.into());
    compare("calls", &calls_of(&want["tool_calls"]), calls(&got.calls));
    for (key, count) in [("input_tokens", got.usage.0), ("output_tokens", got.usage.1)] {
        if !want["usage"][key].is_null() {
            compare(key, &want["usage"][key], count.into());
        }
    }
    for choice in want["choices"].as_array().into_iter().flatten().skip(1) {
        let index = choice["index"].as_u64().unwrap_or(0);
        let got = got.choices.iter().find(|(number, _)| *number == index).map(|(_, choice)| choice.clone());
        let got = got.unwrap_or_default();
        compare("text of a choice", &choice["text"], got.text.into());
        compare("calls of a choice", &calls_of(&choice["tool_calls"]), calls(&got.calls));
        compare("finish of a choice", &choice["finish_reason"], got.finish.into());
    }
    let message = got.error.as_deref().unwrap_or_default();
    match want["error"]["message"].as_str() {
        Some(part) if !message.contains(part) => found.push(format!("error: want {part:?} in {message:?}")),
        None if want["end"] != "error" && got.error.is_some() => {
            found.push(format!("error: want none, got {message:?}"))
        }
        _ => {}
    }
    found
}

/// Expected calls without the keys that are not compared.
fn calls_of(want: &Value) -> Value {
    let call = |call: &Value| {
        let raw = if call["arguments"].is_null() { call["raw"].clone() } else { Value::Null };
        serde_json::json!({"id": call["id"], "name": call["name"], "arguments": call["arguments"], "raw": raw})
    };
    want.as_array().into_iter().flatten().map(call).collect()
}

fn calls(got: &[OracleCall]) -> Value {
    let call = |call: &OracleCall| {
        let (arguments, raw) = match &call.arguments {
            Ok(value) => (value.clone(), Value::Null),
            Err(raw) => (Value::Null, raw.clone().into()),
        };
        serde_json::json!({"id": call.id, "name": call.name, "arguments": arguments, "raw": raw})
    };
    got.iter().map(call).collect()
}

/// Equality of JSON values as a reader means it: `1` is `1.0`, order of members does not matter.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => a == b,
    }
}
