//! The events as JSON, and logs of earlier releases.

use crate::script::{self, ScriptedTurn};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use throughline_engine::fold::{AssistantMessage, MessageBlock};
use throughline_engine::{Event, EventKind, EventSeq, ToolInput, Turn};
use throughline_wire::json::ARGUMENTS_DEPTH_MAX;
use throughline_wire::{CallId, CallSlot, WireName};

/// The types that a turn of this release writes, each at least once in the logs below.
const WRITTEN: [&str; 20] = [
    "stream_start",
    "step_start",
    "step_end",
    "block_start",
    "block_end",
    "content_delta",
    "thinking",
    "tool_use",
    "tool_input_delta",
    "tool_input",
    "approval_request",
    "approval_resolved",
    "tool_start",
    "tool_progress",
    "tool_result",
    "waiting",
    "problem",
    "session_stats",
    "error",
    "stream_end",
];

const LOGS: [(&str, &str); 3] = [
    (
        "v1-tools",
        r#"tools weather:read calendar:write face:cosmetic; eager; serial; ask
        http 429 1000
        timer retry
        think 嗯
        text 好的
        open A weather
        args A {"city":"北京"}
        balanced A {"city":"北京"}
        +50
        progress A 1/2
        +100
        ok A 晴
        open B face
        seal B {"name":"smile"}
        ok B applied
        open C calendar
        seal C {"at":"9:00"}
        finish tool_calls
        +3000
        approve C
        +20
        ok C saved
        text 好了
        finish stop"#,
    ),
    (
        "v1-broken",
        r#"tools weather:read; eager
        text so far
        open A weather
        balanced A {"a":1}
        ok A 1
        reopen A
        seal A {"a":2}
        ok A 2
        open B weather
        args B {"half
        cut"#,
    ),
    (
        "v1-stopped",
        r#"tools note:write; parallel; approve
        open A note
        seal A {}
        open B wether
        seal B {}
        open C note
        broken C {"x
        finish tool_calls
        progress A half
        +1200
        cancel
        grace A"#,
    ),
];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn lines(log: &[Event]) -> String {
    log.iter().map(|event| serde_json::to_string(event).expect("JSON") + "\n").collect()
}

/// The message as release 0.1 knew it: calls had no end.
fn without_later_fields(mut message: Value) -> Value {
    for block in message["blocks"].as_array_mut().into_iter().flatten() {
        if block["kind"] == "tool_call" {
            block.as_object_mut().expect("a block").remove("ended_at");
        }
    }
    message
}

/// A log written by release 0.1 folds to what it folded to then: the files are never rewritten. `WRITE_LOGS=1` writes
/// those that do not exist yet.
#[test]
fn logs_of_release_0_1_fold_unchanged() {
    for (name, script) in LOGS {
        let (log_path, message_path) =
            (folder("logs").join(format!("{name}.jsonl")), folder("vectors").join(format!("{name}.json")));
        if std::env::var_os("WRITE_LOGS").is_some() && !log_path.exists() {
            let scripted = ScriptedTurn::run(script);
            let message = serde_json::to_string_pretty(&scripted.message()).expect("JSON") + "\n";
            std::fs::write(&log_path, lines(&scripted.log)).expect("the log is written");
            std::fs::write(&message_path, message).expect("the vector is written");
        }
        let text = std::fs::read_to_string(&log_path).expect("a log");
        let log: Vec<Event> =
            text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
        let unknown = log.iter().filter(|event| event.kind == EventKind::Unrecognised).count();
        assert_eq!(unknown, 0, "{name}");
        let expected = std::fs::read_to_string(&message_path).expect("a vector");
        let expected: Value = serde_json::from_str(&expected).expect("JSON");
        assert_eq!(
            without_later_fields(serde_json::to_value(AssistantMessage::from_events(&log)).expect("JSON")),
            expected,
            "{name}"
        );
        // And the machine of this release restores from it.
        let setup = script::setup(script.lines().next().unwrap_or_default());
        assert!(Turn::restore(setup, script::start(), &log, &[]).is_over(), "{name}");
    }
}

#[test]
fn fixture_logs_contain_the_listed_event_types() {
    let logs: String = LOGS
        .iter()
        .map(|(name, _)| {
            std::fs::read_to_string(folder("logs").join(format!("{name}.jsonl"))).expect("a log")
        })
        .collect();
    for kind in WRITTEN {
        assert!(logs.contains(&format!("\"type\":\"{kind}\"")), "{kind} is in no log");
    }
}

#[test]
fn event_json_is_one_flat_object() {
    let scripted = ScriptedTurn::run("tools t:read\ntext hi\nfinish stop");
    let all: Vec<Value> =
        scripted.log.iter().map(|event| serde_json::to_value(event).expect("JSON")).collect();
    let t = script::START;
    assert_eq!(
        all[..6],
        [
            json!({"type": "stream_start", "turn_id": "t", "seq": 1, "timestamp": t, "v": 1, "message_id": "m",
                   "agent": "default", "mode": "native", "input": [{"type": "text", "text": "hi"}]}),
            json!({"type": "step_start", "turn_id": "t", "seq": 2, "timestamp": t, "step": 1, "upstream": "up",
                   "model": "m", "attempt": 1, "tools_offered": ["t"]}),
            json!({"type": "block_start", "turn_id": "t", "seq": 3, "timestamp": t, "step": 1, "block": 0, "kind": "text"}),
            json!({"type": "content_delta", "turn_id": "t", "seq": 4, "timestamp": t, "step": 1, "block": 0, "text": "hi"}),
            json!({"type": "block_end", "turn_id": "t", "seq": 5, "timestamp": t, "step": 1, "block": 0}),
            json!({"type": "step_end", "turn_id": "t", "seq": 6, "timestamp": t, "step": 1, "finish": "stop", "finish_raw": "stop"}),
        ]
    );
    assert_eq!(
        all[7],
        json!({"type": "stream_end", "turn_id": "t", "seq": 8, "timestamp": t, "status": "completed"})
    );
}

/// Readers ignore types, kinds and fields that they do not know.
#[test]
fn unknown_event_types_kinds_and_fields_are_ignored() {
    let log = [
        json!({"type": "stream_start", "turn_id": "t", "seq": 1, "timestamp": 1, "v": 2, "message_id": "m", "agent": "a",
               "mode": "native", "input": [], "mood": "new field"}),
        json!({"type": "hologram", "turn_id": "t", "seq": 2, "timestamp": 2, "depth": {"of": "field"}}),
        json!({"type": "block_start", "turn_id": "t", "seq": 3, "timestamp": 3, "block": 0, "kind": "smell", "data": 1}),
        json!({"type": "block_start", "turn_id": "t", "seq": 4, "timestamp": 4, "block": 1, "kind": "text"}),
        json!({"type": "content_delta", "turn_id": "t", "seq": 5, "timestamp": 5, "block": 1, "text": "hi"}),
    ];
    let log: Vec<Event> =
        log.into_iter().map(|event| serde_json::from_value(event).expect("an event")).collect();
    assert_eq!(log[1].kind, EventKind::Unrecognised);
    let message = AssistantMessage::from_events(&log);
    assert_eq!(message.text(), "hi");
    assert_eq!(message.blocks[0], MessageBlock::Unrecognised, "places stay right");
    assert_eq!(message.seq.0, 5);
}

/// A log has the kind of each record; an event read with it is the same one.
#[test]
fn reading_an_event_by_kind_equals_plain_json() {
    for (name, _) in LOGS {
        let log = std::fs::read_to_string(folder("logs").join(format!("{name}.jsonl"))).expect("a log");
        for line in log.lines() {
            let kind: Value = serde_json::from_str(line).expect("JSON");
            let read = Event::from_json(kind["type"].as_str().expect("a type"), line.as_bytes());
            assert_eq!(read.expect(line), serde_json::from_str::<Event>(line).expect(line));
        }
    }
    let later = r#"{"type":"content_delta","turn_id":"t","seq":5,"timestamp":5,"block":1,"text":"h\u00e9","mood":[1]}"#;
    let read = Event::from_json("content_delta", later.as_bytes()).expect("an event");
    assert_eq!(read.kind, EventKind::content_delta("hé"));
    assert!(Event::from_json("content_delta", b"{}").is_err());
}

/// The parser of JSON takes 127 levels.
#[test]
fn arguments_at_the_depth_limit_are_read_back() {
    let arguments = (1..ARGUMENTS_DEPTH_MAX).fold(json!({}), |inner, _| json!({"a": inner}));
    let event = |seq, kind| Event {
        turn_id: "t".into(),
        seq: EventSeq(seq),
        timestamp: 0,
        step: Some(1),
        block: Some(0),
        tool_id: Some(CallId::new("t.1")),
        kind,
    };
    let log = [
        event(1, EventKind::tool_use("f".into(), WireName::new("f"), "builtin", None, CallSlot(0))),
        event(2, EventKind::ToolInput(ToolInput::edited(&arguments))),
    ];
    let json = log[1].to_json().expect("JSON");
    assert_eq!(Event::from_json("tool_input", &json).expect("an event"), log[1]);
    let message = serde_json::to_string(&AssistantMessage::from_events(&log)).expect("JSON");
    let message: Value = serde_json::from_str(&message).expect("a message");
    assert_eq!(message["blocks"][0]["arguments"], arguments);
}

fn piece_of_text() -> impl Strategy<Value = Event> {
    let text = || prop_oneof!["[ -~]{0,12}", any::<String>(), "[\"\\\\\u{0}-\u{1f}\u{7f}é中🦀]{0,6}"];
    let event = (text(), any::<u64>(), any::<i64>(), any::<Option<u32>>(), any::<Option<u32>>());
    (event, proptest::option::of(text()), text(), any::<bool>()).prop_map(
        |((turn, seq, timestamp, step, block), call, text, is_thought)| Event {
            turn_id: turn.into(),
            seq: EventSeq(seq),
            timestamp,
            step,
            block,
            tool_id: call.map(CallId::new),
            kind: if is_thought { EventKind::thinking(text) } else { EventKind::content_delta(text) },
        },
    )
}

proptest! {
    /// Text deltas have a separate writer and reader, with the same result.
    #[test]
    fn text_delta_fast_path_equals_plain_json(event in piece_of_text(), at in any::<usize>(), byte in any::<u8>()) {
        let kind = if matches!(event.kind, EventKind::Thinking { .. }) { "thinking" } else { "content_delta" };
        let mut json = event.to_json().expect("JSON");
        prop_assert_eq!(String::from_utf8_lossy(&json), serde_json::to_string(&event).expect("JSON"));
        prop_assert_eq!(Event::from_json(kind, &json).expect("an event"), event.clone());

        // One byte is another one: it reads as any event, or not at all.
        let at = at % json.len();
        json[at] = byte;
        let (read, any) = (Event::from_json(kind, &json).ok(), serde_json::from_slice::<Event>(&json).ok());
        prop_assert_eq!(read, any, "{}", String::from_utf8_lossy(&json));
    }
}
