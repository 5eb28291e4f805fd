//! `throughline replay` on the real binary, of turns that were really run.

use crate::support::throughline;

/// A turn with tools of the demo model, as its events.
fn recorded() -> String {
    let (mut command, _folder) = throughline();
    let output = command.args(["ask", "--events", "What is the weather in Paris?"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    String::from_utf8(output.stdout).unwrap()
}

fn replayed(events: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let (mut command, folder) = throughline();
    std::fs::write(folder.path().join("turn.jsonl"), events).unwrap();
    let output = command.args(["replay", "--from", "turn.jsonl"]).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn replay_reproduces_the_recorded_turn() {
    let events = recorded();
    let (code, said, _) = replayed(&events, &["--events"]);
    assert_eq!((code, said.as_str()), (Some(0), events.as_str()), "the same events, byte for byte");

    let (code, said, _) = replayed(&events, &[]);
    assert_eq!(code, Some(0));
    assert!(said.contains("✔ demo.weather"), "{said}");
    assert!(said.contains("Paris") && said.contains("1 tool call"), "{said}");
}

#[test]
fn replay_at_shows_the_message_after_that_event() {
    let events = recorded();
    let parsed: Vec<serde_json::Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seq_of = |kind: &str| parsed.iter().find(|event| event["type"] == kind).unwrap()["seq"].to_string();

    let (_, said, _) = replayed(&events, &["--at", "1"]);
    assert_eq!(said.trim_end(), "› What is the weather in Paris?");
    let (_, said, _) = replayed(&events, &["--at", &seq_of("tool_start")]);
    assert!(said.contains("demo.weather") && !said.contains('✔'), "it still runs: {said}");
    let (_, said, _) = replayed(&events, &["--at", &seq_of("stream_end")]);
    assert!(said.contains('✔') && said.contains("1 tool call"), "{said}");

    let (_, said, _) = replayed(&events, &["--at", &seq_of("tool_result"), "--json"]);
    let message: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(message["status"], serde_json::Value::Null, "the turn goes on");
    let blocks = message["blocks"].as_array().unwrap();
    assert!(blocks.iter().any(|block| block["status"] == "success"), "{message}");
}

#[test]
fn replay_reports_invalid_arguments_and_recordings() {
    let events = recorded();
    for (events, arguments, expected) in [
        (events.as_str(), &["--at", "0"][..], "no event 0"),
        (&events, &["--at", "100000"], "from 1 to"),
        (&events, &["--speed", "fast"], "4x"),
        (&events, &["--step"], "needs a terminal"),
        ("", &[], "no events"),
        ("{}\n", &[], "record 1 is not an event"),
    ] {
        let (code, _, said) = replayed(events, arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn replay_reads_a_store_that_is_open_elsewhere() {
    use throughline_store::{Durability, Log, LogRecord, SqliteSettings, SqliteStore};
    let events = recorded();
    let (mut command, folder) = throughline();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    // The store as a server would have it: open, the turn written event by event.
    let store = runtime.block_on(async {
        let settings = SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() };
        let store = SqliteStore::open(&folder.path().join("throughline.db"), settings).await.unwrap();
        let epoch = store.claim("turn-7").await.unwrap().epoch;
        for (at, line) in events.lines().enumerate() {
            let kind =
                serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].as_str().unwrap().to_owned();
            let record = LogRecord::new(at as u64 + 1, kind, Durability::Process, line.to_owned());
            store.append("turn-7", epoch, vec![record].into()).await.unwrap();
        }
        store
    });
    let output = command
        .env("THROUGHLINE_DATA", folder.path())
        .args(["replay", "turn-7", "--events"])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        events,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let (mut command, _own) = throughline();
    let output = command.env("THROUGHLINE_DATA", folder.path()).args(["replay"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("✔ demo.weather"), "the latest one");

    let (mut command, _own) = throughline();
    let output = command.env("THROUGHLINE_DATA", folder.path()).args(["replay", "turn-8"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("turn-7"), "{said}");
    runtime.block_on(store.close());
}
