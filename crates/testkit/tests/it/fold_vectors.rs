//! Logs with the messages that they fold to, for folds in other languages: the page's fold is tested against
//! the same files.
//!
//! `THROUGHLINE_BLESS=1` rewrites them.

use crate::optional_fields::OptionalFields;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use throughline_engine::fold::AssistantMessage;
use throughline_engine::{Event, EventKind};
use throughline_testkit::sim;

/// Simulated turns in which much happens and whose logs are short.
const SEEDS: std::ops::Range<u64> = 0..400;
/// Number of vectors.
const KEPT: usize = 12;
/// A log with more events is left out, to keep the files small.
const EVENTS_MAX: usize = 90;

/// The log that has every type of event with every field.
const EVERY_KIND: &str = "every-kind";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn vectors() -> PathBuf {
    repository().join("web/client/specs/vectors")
}

/// Every log that is a vector, by name.
fn logs() -> BTreeMap<String, Vec<Event>> {
    let mut logs = BTreeMap::new();
    for entry in fs::read_dir(repository().join("crates/engine/tests/logs")).expect("the engine's logs") {
        let path = entry.expect("a file").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a log");
        let log = text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
        logs.insert(name, log);
    }
    logs.extend(simulated());
    let beginnings = beginnings(&logs[EVERY_KIND]);
    logs.extend(beginnings);
    logs
}

/// The log's beginnings whose messages have a field that later ones lack: a question is open, a tool reports.
fn beginnings(log: &[Event]) -> BTreeMap<String, Vec<Event>> {
    let mut seen = OptionalFields::default();
    let mut beginnings = BTreeMap::new();
    for len in (1..=log.len()).rev() {
        let before = seen.standing().len();
        seen.read(&AssistantMessage::from_events(&log[..len]));
        if len < log.len() && seen.standing().len() > before {
            beginnings.insert(format!("{EVERY_KIND}-{len}"), log[..len].to_vec());
        }
    }
    beginnings
}

/// Turns that each bring a type of event, or a status of a call, that those before did not, then any.
fn simulated() -> BTreeMap<String, Vec<Event>> {
    let mut vectors = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for seed in SEEDS {
        let Ok(log) = sim::events(seed) else { continue };
        if log.len() > EVENTS_MAX || vectors.len() == KEPT {
            continue;
        }
        let new: Vec<String> = log.iter().map(trait_of).filter(|of| !seen.contains(of)).collect();
        if !new.is_empty() {
            seen.extend(new);
            vectors.insert(format!("sim-{seed}"), log);
        }
    }
    vectors
}

fn trait_of(event: &Event) -> String {
    let value = serde_json::to_value(event).expect("JSON");
    let kind = value["type"].as_str().unwrap_or_default();
    format!("{kind} {}", value.get("status").or(value.get("code")).unwrap_or(&Value::Null))
}

#[test]
fn fold_vectors_match_their_logs() {
    let bless = std::env::var_os("THROUGHLINE_BLESS").is_some();
    let logs = logs();
    assert!(logs.len() > 10, "{:?}", logs.keys());
    if bless {
        let _ = fs::remove_dir_all(vectors());
        fs::create_dir_all(vectors()).expect("a folder");
    }
    for (name, log) in &logs {
        let known: Vec<_> = log.iter().filter(|event| event.kind != EventKind::Unrecognised).collect();
        assert!(!known.is_empty(), "{name}");
        let vector = json!({"log": log, "message": AssistantMessage::from_events(log)});
        let path = vectors().join(format!("{name}.json"));
        if bless {
            // A line an event, so that a difference is one line.
            let events: Vec<_> =
                log.iter().map(|event| serde_json::to_string(event).expect("JSON")).collect();
            let message = serde_json::to_string(&vector["message"]).expect("JSON");
            let text = format!("{{\"log\":[\n{}\n],\"message\":\n{message}}}\n", events.join(",\n"));
            fs::write(&path, text).expect("the vector is written");
        }
        let vectors =
            fs::read_to_string(&path).unwrap_or_else(|_| panic!("{name}: THROUGHLINE_BLESS=1 writes it"));
        let vectors: Value = serde_json::from_str(&vectors).expect("JSON");
        assert_eq!(vectors, vector, "{name}: THROUGHLINE_BLESS=1 writes it anew");
    }
    let files = fs::read_dir(vectors()).expect("the vectors").count();
    assert_eq!(files, logs.len(), "a vector without a log: THROUGHLINE_BLESS=1 takes it away");
}

#[test]
fn every_kind_log_has_each_field_of_each_event() {
    let mut fields = OptionalFields::default();
    let (mut has_step, mut has_block, mut has_call) = (false, false, false);
    for event in &logs()[EVERY_KIND] {
        // Named here one by one, since the content is flattened into them.
        let Event { turn_id: _, seq: _, timestamp: _, step, block, tool_id, kind } = event;
        has_step |= step.is_some();
        has_block |= block.is_some();
        has_call |= tool_id.is_some();
        fields.read(kind);
    }
    assert!(has_step && has_block && has_call);
    assert_eq!(fields.missing(), [""; 0], "add them to crates/engine/tests/logs/{EVERY_KIND}.jsonl");
    for form in ["data", "file_id", "bytes", "url"] {
        assert!(fields.standing().contains(&format!("block_start image.{form}")), "a picture by {form}");
    }
}

#[test]
fn vectors_have_each_field_of_the_message() {
    let mut fields = OptionalFields::default();
    for log in logs().values() {
        fields.read(&AssistantMessage::from_events(log));
    }
    // The fold moves it into the call's output.
    let moved = ["blocks[] tool_call.progress.output_delta"];
    assert_eq!(fields.missing(), moved, "add them to crates/engine/tests/logs/{EVERY_KIND}.jsonl");
}
