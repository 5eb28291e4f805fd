//! The events of the log: what they say as JSON, that `docs/events.md` says the same, and that logs of every release
//! still fold. R: E1
//!
//! `logs/every-kind.jsonl` has every type with every field; `logs/<release>/` has logs as that release wrote them, each
//! with the message that they fold to. A release adds a folder and changes none. `THROUGHLINE_BLESS=1` writes messages
//! that are missing.

#![allow(clippy::unwrap_used)]

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use throughline_engine::fold::Message;
use throughline_engine::{Event, EventKind};

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs")
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn events(lines: &[Value]) -> Vec<Event> {
    lines.iter().map(|line| serde_json::from_value(line.clone()).unwrap()).collect()
}

/// The name on the wire. No arm for "the rest": whoever adds a kind comes by here, and then to [`KINDS`].
fn name(kind: &EventKind) -> &'static str {
    use EventKind as E;
    match kind {
        E::StreamStart { .. } => "stream_start",
        E::StepStart { .. } => "step_start",
        E::StepEnd { .. } => "step_end",
        E::BlockStart(_) => "block_start",
        E::BlockEnd => "block_end",
        E::ContentDelta { .. } => "content_delta",
        E::Thinking { .. } => "thinking",
        E::Citation { .. } => "citation",
        E::ToolUse { .. } => "tool_use",
        E::ToolInputDelta { .. } => "tool_input_delta",
        E::ToolInputReset => "tool_input_reset",
        E::ToolInput(_) => "tool_input",
        E::ApprovalRequest { .. } => "approval_request",
        E::ApprovalResolved { .. } => "approval_resolved",
        E::ToolStart { .. } => "tool_start",
        E::ToolProgress(_) => "tool_progress",
        E::ToolResult(_) => "tool_result",
        E::AudioDelta { .. } => "audio_delta",
        E::UserMessage { .. } => "user_message",
        E::Waiting { .. } => "waiting",
        E::Problem { .. } => "problem",
        E::SessionStats(_) => "session_stats",
        E::Error(_) => "error",
        E::TurnResumed { .. } => "turn_resumed",
        E::BlockSuperseded { .. } => "block_superseded",
        E::StreamEnd { .. } => "stream_end",
        E::Unrecognised => "",
    }
}

const KINDS: [&str; 26] = [
    "stream_start",
    "step_start",
    "step_end",
    "block_start",
    "block_end",
    "content_delta",
    "thinking",
    "citation",
    "tool_use",
    "tool_input_delta",
    "tool_input_reset",
    "tool_input",
    "approval_request",
    "approval_resolved",
    "tool_start",
    "tool_progress",
    "tool_result",
    "audio_delta",
    "user_message",
    "waiting",
    "problem",
    "session_stats",
    "error",
    "turn_resumed",
    "block_superseded",
    "stream_end",
];

/// Every kind with every field, as JSON.
fn every_kind() -> Vec<Value> {
    lines(&logs().join("every-kind.jsonl"))
}

#[test]
fn every_field_survives_the_way_to_json_and_back() {
    let lines = every_kind();
    let mut seen = BTreeSet::new();
    for (line, event) in lines.iter().zip(events(&lines)) {
        assert_eq!(name(&event.kind), line["type"], "{line}");
        assert_eq!(serde_json::to_value(&event).unwrap(), *line);
        seen.insert(name(&event.kind));
    }
    assert_eq!(seen, BTreeSet::from(KINDS), "logs/every-kind.jsonl has them all");
}

#[test]
fn what_is_not_known_changes_nothing() {
    let known = every_kind();
    let mut newer = Vec::new();
    for mut line in known.clone() {
        line.as_object_mut().unwrap().insert("of_a_later_release".into(), json!({"x": [1]}));
        newer.push(line);
    }
    let end = newer.pop().unwrap();
    let mut unknown = end.clone();
    unknown["type"] = json!("of_a_later_release");
    let mut last = end;
    last["seq"] = json!(unknown["seq"].as_u64().unwrap() + 1);
    newer.extend([unknown, last]);
    let mut message = Message::of(&events(&newer));
    message.seq = Message::of(&events(&known)).seq;
    assert_eq!(message, Message::of(&events(&known)));
}

/// Everything that `expected` says is in `got`; fields may have been added.
fn contains(got: &Value, expected: &Value, at: &str) -> Result<(), String> {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => expected.iter().try_for_each(|(key, value)| {
            contains(got.get(key).unwrap_or(&Value::Null), value, &format!("{at}/{key}"))
        }),
        (Value::Array(got), Value::Array(expected)) if got.len() == expected.len() => {
            let mut pairs = got.iter().zip(expected).enumerate();
            pairs.try_for_each(|(n, (got, expected))| contains(got, expected, &format!("{at}/{n}")))
        }
        _ if got == expected => Ok(()),
        _ => Err(format!("{at}: {got} instead of {expected}")),
    }
}

#[test]
fn logs_of_every_release_fold_as_they_did() {
    let blesses = std::env::var_os("THROUGHLINE_BLESS").is_some();
    let mut folded = 0;
    let folders = std::fs::read_dir(logs()).unwrap().map(|entry| entry.unwrap().path());
    for folder in folders.filter(|path| path.is_dir()) {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            let message = serde_json::to_value(Message::of(&events(&lines(&path)))).unwrap();
            let expected = path.with_extension("message.json");
            if blesses && !expected.exists() {
                std::fs::write(&expected, format!("{message:#}\n")).unwrap();
            }
            let text = std::fs::read_to_string(&expected).unwrap_or_else(|error| panic!("{path:?}: {error}"));
            let expected: Value = serde_json::from_str(&text).unwrap();
            contains(&message, &expected, "").unwrap_or_else(|what| panic!("{}: {what}", path.display()));
            folded += 1;
        }
    }
    assert!(folded >= 3, "{folded} logs");
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.md");
    std::fs::read_to_string(path).unwrap()
}

/// Names of `value`'s members, at any depth but inside what is not ours (arguments, outputs, sources).
fn fields(value: &Map<String, Value>, found: &mut BTreeSet<String>) {
    const FOREIGN: [&str; 4] = ["arguments", "output_value", "source", "arguments_diff"];
    for (key, value) in value {
        found.insert(key.clone());
        if FOREIGN.contains(&key.as_str()) {
            continue;
        }
        match value {
            Value::Object(members) => fields(members, found),
            Value::Array(items) => items.iter().filter_map(Value::as_object).for_each(|item| fields(item, found)),
            _ => {}
        }
    }
}

// R: D2
#[test]
fn the_page_names_every_type_with_its_fields() {
    let page = page();
    // A row of a table begins with the type.
    let rows: BTreeMap<&str, &str> = page
        .lines()
        .filter_map(|line| Some((line.strip_prefix("| `")?.split_once('`')?.0, line)))
        .collect();
    for line in every_kind() {
        let kind = line["type"].as_str().unwrap();
        let row = rows.get(kind).unwrap_or_else(|| panic!("docs/events.md has no row for {kind}"));
        for key in line.as_object().unwrap().keys() {
            let envelope = ["type", "turn_id", "seq", "timestamp", "step", "block", "tool_id"].contains(&key.as_str());
            // Content of `block_start` is listed by kind.
            let whole = kind == "block_start" || kind == "error";
            assert!(envelope || whole || row.contains(&format!("`{key}`")), "{kind}: `{key}` is not in its row");
        }
        let mut all = BTreeSet::new();
        fields(line.as_object().unwrap(), &mut all);
        for key in all {
            assert!(page.contains(&format!("`{key}`")), "{kind}: `{key}` is not in docs/events.md");
        }
    }
}

// R: D2
#[test]
fn the_log_on_the_page_is_a_real_one() {
    let shown = lines(&logs().join("0.1.0/time.jsonl"));
    let page = page();
    let block = page.split("```jsonl\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let printed: Vec<Value> = block.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let without = |mut line: Value| {
        line.as_object_mut().unwrap().retain(|key, _| key != "turn_id" && key != "timestamp");
        line
    };
    let shown: Vec<Value> = shown.into_iter().map(without).collect();
    assert_eq!(printed, shown);
}
