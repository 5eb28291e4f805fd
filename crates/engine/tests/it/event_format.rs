//! Every type of event with every field: its JSON, and its agreement with `docs/events.md`.
//!
//! `logs/every-kind.jsonl` has them all; `logs/demo-time.jsonl` is what a turn of the demo model wrote, shown on the page.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
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

/// Every kind with every field, as JSON.
fn every_kind() -> Vec<Value> {
    lines(&logs().join("every-kind.jsonl"))
}

#[test]
fn every_event_field_round_trips_through_json() {
    let lines = every_kind();
    let mut seen = BTreeSet::new();
    for (line, event) in lines.iter().zip(events(&lines)) {
        assert_eq!(event.kind.name(), line["type"], "{line}");
        assert_eq!(serde_json::to_value(&event).unwrap(), *line);
        seen.insert(event.kind.name());
    }
    assert_eq!(seen, BTreeSet::from(EventKind::NAMES), "logs/every-kind.jsonl has them all");
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.md");
    std::fs::read_to_string(path).unwrap()
}

/// Names of `value`'s members, at any depth except inside foreign values (arguments, outputs, sources).
fn fields(value: &Map<String, Value>, found: &mut BTreeSet<String>) {
    const FOREIGN: [&str; 6] = ["arguments", "output_value", "source", "arguments_diff", "schema", "content"];
    for (key, value) in value {
        found.insert(key.clone());
        if FOREIGN.contains(&key.as_str()) {
            continue;
        }
        match value {
            Value::Object(members) => fields(members, found),
            Value::Array(items) => {
                items.iter().filter_map(Value::as_object).for_each(|item| fields(item, found))
            }
            _ => {}
        }
    }
}

#[test]
fn events_page_documents_every_type_and_field() {
    let page = page();
    // A row of a table begins with the type.
    let rows: BTreeMap<&str, &str> =
        page.lines().filter_map(|line| Some((line.strip_prefix("| `")?.split_once('`')?.0, line))).collect();
    for line in every_kind() {
        let kind = line["type"].as_str().unwrap();
        let row = rows.get(kind).unwrap_or_else(|| panic!("docs/events.md has no row for {kind}"));
        for key in line.as_object().unwrap().keys() {
            let envelope =
                ["type", "turn_id", "seq", "timestamp", "step", "block", "tool_id"].contains(&key.as_str());
            // Content of `block_start` is listed by kind.
            let whole = kind == "block_start" || kind == "error";
            assert!(
                envelope || whole || row.contains(&format!("`{key}`")),
                "{kind}: `{key}` is not in its row"
            );
        }
        let mut all = BTreeSet::new();
        fields(line.as_object().unwrap(), &mut all);
        for key in all {
            assert!(page.contains(&format!("`{key}`")), "{kind}: `{key}` is not in docs/events.md");
        }
    }
}

#[test]
fn events_page_example_is_a_recorded_log() {
    let shown = lines(&logs().join("demo-time.jsonl"));
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
