//! `throughline backup` while turns run, and `restore` into an empty folder.

#![cfg(unix)]

use crate::support::serving::{PATIENCE, Serving, command, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const CONFIG: &str = "[agents.default]\nmodel = \"demo\"\ntool_call = { enabled = true }\n";

/// A server with the demo model in this folder, and its first key.
fn serve(folder: &Path) -> (Serving, String) {
    std::fs::write(folder.join("throughline.toml"), CONFIG).unwrap();
    let serving = Serving::start(folder, &[]);
    let key = serving.token().expect("the first start shows a key").to_owned();
    (serving, key)
}

fn begin_turn(serving: &Serving, key: &str, text: &str) -> String {
    let body = format!("{{\"input\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}");
    let (status, answer) = serving.ask("POST", "/v1/turns", Some(key), &body);
    assert!((200..300).contains(&status), "{status} {answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["turn_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The turns of a folder's store by id, with their events.
fn turns(folder: &Path) -> BTreeMap<String, Vec<String>> {
    let (ok, listed, error) = run(folder, &["history", "--turns", "--json"]);
    assert!(ok, "{error}");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let rows = listed["data"].as_array().or(listed.as_array()).unwrap_or_else(|| panic!("{listed}")).clone();
    let ids = rows.iter().map(|row| row["id"].as_str().or(row["turn_id"].as_str()).unwrap().to_owned());
    ids.map(|id| {
        let (ok, events, error) = run(folder, &["replay", &id, "--events"]);
        assert!(ok, "{id}: {error}");
        (id, events.lines().map(str::to_owned).collect())
    })
    .collect()
}

fn is_over(events: &[String]) -> bool {
    events.last().is_some_and(|event| event.contains("\"stream_end\""))
}

/// Waits until this many turns are over.
fn wait_until_over(folder: &Path, count: usize) -> BTreeMap<String, Vec<String>> {
    let until = Instant::now() + PATIENCE;
    loop {
        let turns = turns(folder);
        if turns.values().filter(|events| is_over(events)).count() >= count {
            return turns;
        }
        assert!(Instant::now() < until, "the turns do not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode()
        & 0o777
}

#[test]
fn backup_while_turns_run_restores_every_recorded_event() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (serving, key) = serve(here.path());
    for n in 0..3 {
        begin_turn(&serving, &key, &format!("What is the weather in Paris? {n}"));
    }
    let finished = wait_until_over(here.path(), 3);
    let data = here.path().join("data");
    let blob = data.join("files/ab/cd/content");
    std::fs::create_dir_all(blob.parent().unwrap()).unwrap();
    std::fs::write(&blob, "a file that was uploaded").unwrap();
    std::fs::write(data.join("upstreams.json"), "{\"v\":1,\"upstreams\":{}}").unwrap();
    std::fs::write(data.join("remembered.json"), "{\"v\":1,\"next\":1,\"answers\":[]}").unwrap();
    let running: Vec<String> =
        (0..3).map(|n| begin_turn(&serving, &key, &format!("Weather in Oslo and Rome? {n}"))).collect();
    let backup = there.path().join("backup");
    let (ok, said, error) = run(here.path(), &["backup", &backup.display().to_string()]);
    assert!(ok && said.contains("files saved"), "{said}{error}");
    for name in ["upstreams.json", "throughline.db", "admin-token"] {
        assert_eq!(mode(&backup.join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&backup), 0o700);
    let everything = wait_until_over(here.path(), 6);
    drop(serving);

    let (ok, said, error) = run(there.path(), &["restore", &backup.display().to_string()]);
    assert!(ok && said.contains("restored into"), "{said}{error}");
    let restored = turns(there.path());
    for (id, events) in &finished {
        assert_eq!(&restored[id], events, "a turn that was over is what it was");
    }
    for id in &running {
        // One that ran is as far as it had come.
        let Some(events) = restored.get(id) else { continue };
        assert_eq!(events[..], everything[id][..events.len()], "{id}");
    }
    assert_eq!(
        std::fs::read_to_string(there.path().join("data/files/ab/cd/content")).unwrap(),
        "a file that was uploaded"
    );
    assert_eq!(mode(&there.path().join("data/upstreams.json")), 0o600);
    assert_eq!(std::fs::read_to_string(there.path().join("throughline.toml")).unwrap(), CONFIG);

    // The restored server accepts the same key, and resumes the turns that ran.
    let resumed = Serving::start(there.path(), &[]);
    let (status, _) = resumed.get("/v1/conversations", Some(&key));
    assert_eq!(status, 200);
    let after = wait_until_over(there.path(), restored.len());
    assert_eq!(after.len(), restored.len());
}

#[test]
fn restore_replaces_existing_data_only_with_force() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (serving, key) = serve(here.path());
    begin_turn(&serving, &key, "What time is it?");
    wait_until_over(here.path(), 1);
    let backup = there.path().join("backup");
    let path = backup.display().to_string();
    assert!(run(here.path(), &["backup", &path]).0);
    let (ok, _, error) = run(here.path(), &["backup", &path]);
    assert!(!ok && error.contains("not empty"), "{error}");

    let (ok, _, error) = run(here.path(), &["restore", &path, "--force"]);
    assert!(!ok && error.contains("in use") && error.contains("stop the server"), "{error}");
    assert_eq!(serving.stop(), Some(0));
    let (ok, _, error) = run(here.path(), &["restore", &path]);
    assert!(!ok && error.contains("there is already") && error.contains("--force"), "{error}");
    let before = turns(here.path());
    let (ok, said, error) = run(here.path(), &["restore", &path, "--force"]);
    assert!(ok && said.contains("replaced-"), "{said}{error}");
    assert_eq!(turns(here.path()), before);
    let set_aside = std::fs::read_dir(here.path().join("data")).unwrap();
    let set_aside = set_aside
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("replaced-"));
    assert!(set_aside.unwrap().join("throughline.db").exists(), "what was there is not lost");

    // A damaged backup changes nothing, nor does one that was never completed, nor a list that leads elsewhere.
    let empty = there.path().join("elsewhere");
    std::fs::create_dir(&empty).unwrap();
    let restore = || {
        let output = command(&empty).args(["restore", &path]).output().unwrap();
        assert!(!output.status.success() && !empty.join("data/throughline.db").exists());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let manifest = std::fs::read_to_string(backup.join("manifest.json")).unwrap();
    std::fs::write(backup.join("manifest.json"), manifest.replace("\"admin-token\"", "\"../admin-token\""))
        .unwrap();
    assert!(restore().contains("no path in it"));
    std::fs::write(backup.join("manifest.json"), &manifest).unwrap();
    let token = std::fs::read(backup.join("admin-token")).unwrap();
    std::fs::write(backup.join("admin-token"), "tl_x").unwrap();
    assert!(restore().contains("is damaged"));
    std::fs::write(backup.join("admin-token"), token).unwrap();
    std::fs::remove_file(backup.join("manifest.json")).unwrap();
    assert!(restore().contains("manifest.json"));
}
