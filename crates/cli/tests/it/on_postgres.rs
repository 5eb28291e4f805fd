//! The commands that read the history, over a PostgreSQL URL.

#![cfg(all(unix, feature = "postgres"))]

use crate::cluster::Cluster;
use crate::support::throughline;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

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

#[test]
fn import_history_replay_and_export_accept_a_postgres_url() {
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
    assert!(empty.contains("contains no store"), "{empty}");

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

/// The line of a text that begins with this program, run by a shell that finds PostgreSQL's programs.
#[track_caller]
fn run_printed(cluster: &Cluster, text: &str, program: &str) {
    let line = text.lines().find(|line| line.trim().starts_with(program));
    let line = line.unwrap_or_else(|| panic!("no {program} in: {text}"));
    let path = format!("{}:{}", cluster.programs().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh").args(["-c", line.trim()]).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn printed_backup_commands_restore_into_another_database() {
    let Some(cluster) = Cluster::shared() else { return };
    let (url, other, folder) = (cluster.fresh(), cluster.fresh(), tempfile::tempdir().unwrap());
    let (data, restored) = (folder.path().join("data"), folder.path().join("restored"));
    let backup = folder.path().join("backup");
    let shown = backup.display().to_string();
    let file = folder.path().join("messages.json");
    let messages = json!([
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "16 °C."},
    ]);
    std::fs::write(&file, messages.to_string()).unwrap();
    done(&data, &["import", &file.display().to_string(), "--store", &url]);
    let blob = data.join("files/ab/cd/content");
    std::fs::create_dir_all(blob.parent().unwrap()).unwrap();
    std::fs::write(&blob, "a file that was uploaded").unwrap();
    std::fs::write(data.join("upstreams.json"), "{\"v\":1,\"upstreams\":{}}").unwrap();

    let said = done(&data, &["backup", &shown, "--store", &url]);
    assert!(said.contains("the database is not among them"), "{said}");
    assert!(!backup.join("throughline.db").exists(), "there is no file of SQLite");
    run_printed(&cluster, &said, "pg_dump");
    assert!(std::fs::metadata(backup.join("database.dump")).unwrap().len() > 0);

    let said = done(&restored, &["restore", &shown, "--store", &other]);
    run_printed(&cluster, &said, "pg_restore");
    let events = |data: &Path, url: &str| done(data, &["replay", "--events", "--store", url]);
    assert_eq!(events(&restored, &other), events(&data, &url), "every event is there");
    let kept = std::fs::read_to_string(restored.join("files/ab/cd/content")).unwrap();
    assert_eq!(kept, "a file that was uploaded");
    assert!(restored.join("upstreams.json").exists());
    // Into the same database again, which the dump replaces; a present data folder is not replaced by accident.
    let complaint = refused(&restored, &["restore", &shown, "--store", &other]);
    assert!(complaint.contains("--force"), "{complaint}");
    let said = done(&restored, &["restore", &shown, "--force", "--store", &other]);
    run_printed(&cluster, &said, "pg_restore");
    assert_eq!(events(&restored, &other), events(&data, &url));
    // A password is in neither line; the name of the user is.
    let secret = url.replace("tl@", "tl:pa55w0rd@");
    let said =
        done(&data, &["backup", &folder.path().join("more").display().to_string(), "--store", &secret]);
    assert!(said.contains("//tl@") && !said.contains("pa55w0rd"), "{said}");
}
