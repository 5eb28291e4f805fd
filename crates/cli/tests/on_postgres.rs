//! The commands that look at the past, over a PostgreSQL URL. R: S1, S4, S5

#![cfg(all(unix, feature = "postgres"))]
#![allow(clippy::unwrap_used)]

#[path = "../../store/tests/cluster/mod.rs"]
mod cluster;
mod support;

use cluster::Cluster;
use serde_json::{Value, json};
use std::path::Path;
use support::throughline;

#[track_caller]
fn done(data: &Path, arguments: &[&str]) -> String {
    let (mut command, _own) = throughline();
    let output = command.env("THROUGHLINE_DATA", data).args(arguments).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {complaint}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn refused(data: &Path, arguments: &[&str]) -> String {
    let (mut command, _own) = throughline();
    let output = command.env("THROUGHLINE_DATA", data).args(arguments).output().unwrap();
    assert_ne!(output.status.code(), Some(0), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

// R: S4, S5
#[test]
fn import_history_replay_and_export_take_a_url() {
    let Some(cluster) = Cluster::shared() else { return };
    let (url, folder) = (cluster.fresh(), tempfile::tempdir().unwrap());
    let (data, file) = (folder.path().join("data"), folder.path().join("messages.json"));
    let messages = json!([
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "16 °C"},
        {"role": "assistant", "content": "16 °C."},
    ]);
    std::fs::write(&file, messages.to_string()).unwrap();
    let empty = refused(&data, &["history", "--store", &url]);
    assert!(empty.contains("no store in it"), "{empty}");

    let said = done(&data, &["import", &file.display().to_string(), "--json", "--store", &url]);
    let imported: Value = serde_json::from_str(&said).unwrap();
    let id = imported["id"].as_str().unwrap();
    let calls: Value = serde_json::from_str(&done(&data, &["history", "--json", "--store", &url])).unwrap();
    assert_eq!(
        (&calls[0]["tool_name"], &calls[0]["status"]),
        (&json!("weather"), &json!("success")),
        "{calls}"
    );
    let turns = done(&data, &["history", "--turns", "--json", "--store", &url]);
    let turns: Value = serde_json::from_str(&turns).unwrap();
    let turn = turns[0]["id"].as_str().unwrap();
    let events = done(&data, &["replay", turn, "--events", "--store", &url]);
    let last: Value = serde_json::from_str(events.lines().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["turn_id"]), (&json!("stream_end"), &json!(turn)));
    assert_eq!(done(&data, &["replay", "--events", "--store", &url]), events, "the latest is meant");
    assert!(done(&data, &["replay", turn, "--plain", "--store", &url]).contains("16 °C."));

    let jsonl = done(&data, &["export", id, "--store", &url]);
    assert_eq!(
        jsonl.lines().filter(|line| line.contains("\"type\":\"event\"")).count(),
        events.lines().count()
    );
    assert!(done(&data, &["export", id, "--format", "markdown", "--store", &url]).contains("16 °C."));
    assert!(done(&data, &["export", id, "--format", "csv", "--store", &url]).contains("weather"));
    let complaint = refused(&data, &["replay", "turn_absent", "--store", &url]);
    assert!(complaint.contains(turn), "what there is: {complaint}");
    // The URL of the configuration is meant where none is named; a password in it is not shown.
    let config = folder.path().join("throughline.toml");
    std::fs::write(&config, format!("[store]\nurl = \"{url}\"\n")).unwrap();
    let (mut command, _own) = throughline();
    let output =
        command.env("THROUGHLINE_DATA", &data).env("THROUGHLINE_CONFIG", &config).args(["history", "--json"]);
    assert_eq!(serde_json::from_slice::<Value>(&output.output().unwrap().stdout).unwrap(), calls);
    let nowhere = refused(&data, &["history", "--store", "postgres://ann:secret@127.0.0.1:1/db"]);
    assert!(nowhere.contains("127.0.0.1:1/db") && !nowhere.contains("secret"), "{nowhere}");
}
