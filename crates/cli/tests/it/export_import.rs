//! `throughline export` and `throughline import` on the real binary: what goes out of one store comes into another.

use crate::support::throughline;
use serde_json::json;
use std::path::Path;
use throughline_server::{IdMap, PortableConversation, read_jsonl};
use throughline_store::{SqliteSettings, SqliteStore};

/// Exit code, output and complaints of the command with this data folder.
fn run(data: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let (mut command, _own) = throughline();
    let output = command.env("THROUGHLINE_DATA", data).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[track_caller]
fn done(data: &Path, arguments: &[&str]) -> String {
    let (code, said, complaint) = run(data, arguments);
    assert_eq!(code, Some(0), "{arguments:?}: {complaint}");
    said
}

/// A conversation in OpenAI's format, as a file.
fn messages(folder: &Path) -> String {
    let path = folder.join("messages.json");
    let messages = json!([
        {"role": "user", "content": "巴黎天气如何？"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Paris\"}"}},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "=16 °C"},
        {"role": "assistant", "content": "16 °C."},
        {"role": "user", "content": "And tomorrow?"},
        {"role": "assistant", "content": "The same."},
    ]);
    std::fs::write(&path, messages.to_string()).unwrap();
    path.display().to_string()
}

/// Imports, and gives the id of what is there now.
fn imported(data: &Path, file: &str) -> String {
    let said: serde_json::Value = serde_json::from_str(&done(data, &["import", file, "--json"])).unwrap();
    said["id"].as_str().unwrap().to_owned()
}

/// Replaces ids by canonical ones, so that conversations can be compared.
fn renamed(jsonl: &str) -> PortableConversation {
    let portable = read_jsonl(jsonl, u64::MAX).unwrap();
    let mut n = 0;
    let renaming = IdMap::new(&portable, |prefix| {
        n += 1;
        format!("{prefix}{n}")
    });
    PortableConversation { created_at: 0, ..renaming.apply(portable).unwrap() }
}

#[test]
fn exported_conversation_is_imported_under_new_ids() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    let first = imported(&one, &messages(folder.path()));
    let jsonl = done(&one, &["export", &first]);
    let file = folder.path().join("talk.jsonl");
    let path = file.display().to_string();
    assert_eq!(done(&one, &["export", &first, "-o", &path]), "", "the file has it");
    let without_time = |text: &str| -> Vec<String> { text.lines().skip(1).map(str::to_owned).collect() };
    assert_eq!(without_time(&std::fs::read_to_string(&file).unwrap()), without_time(&jsonl));

    let second = imported(&other, &path);
    assert_ne!(first, second);
    let again = done(&other, &["export", &second]);
    assert!(!again.contains(&first), "a name of the old store");
    assert_eq!(renamed(&again), renamed(&jsonl));
    // Twice into one store: two conversations that have nothing to do with each other.
    let third = imported(&other, &path);
    assert_ne!(second, third);
    assert_eq!(done(&other, &["history", "--turns"]).lines().count(), 4);

    for (at, conversation) in [(&one, &first), (&other, &second)] {
        let page = done(at, &["export", conversation, "--format", "markdown"]);
        for part in ["# ", "巴黎天气如何？", "✔ weather", "16 °C.", "And tomorrow?", "The same."] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let table = done(at, &["export", conversation, "--format", "csv"]);
        assert!(table.starts_with("tool_id,turn_id,") && table.lines().count() == 2, "{table}");
        assert!(table.contains(",'=16 °C"), "no formula: {table}");
    }
    let table = folder.path().join("calls.csv");
    done(&one, &["export", &first, "-o", &table.display().to_string()]);
    assert!(std::fs::read_to_string(table).unwrap().starts_with("tool_id,"), "as the file is called");
}

#[test]
fn store_open_elsewhere_allows_export_but_not_import() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), messages(folder.path()));
    let id = imported(&data, &file);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() };
    let store = runtime.block_on(SqliteStore::open(&data.join("throughline.db"), settings)).unwrap();
    assert!(done(&data, &["export", &id]).starts_with("{\"type\":\"conversation\""));
    let (code, _, said) = run(&data, &["import", &file]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("cannot be imported now") && said.contains("POST /v1/conversations/import"),
        "{said}"
    );
    runtime.block_on(store.close());
}

#[test]
fn export_and_import_errors_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let id = imported(&data, &messages(folder.path()));
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let header = r#"{"type":"conversation","format":"throughline.conversation","v":1,"id":"c"}"#;
    for (arguments, expected) in [
        (vec!["export", "conv_none"], vec!["no conversation `conv_none`", &id, "巴黎天气如何？"]),
        (vec!["export", &id, "--format", "markdown", "--leaf", "turn_none"], vec!["no turn `turn_none`"]),
        (vec!["export", &id, "-o", "no/such/folder/file"], vec!["cannot be written"]),
        (vec!["import", "none.jsonl"], vec!["none.jsonl cannot be read"]),
        (
            vec!["import", &file("broken.jsonl", &format!("{header}\n{{"))],
            vec!["cannot be imported", "line 2"],
        ),
        (vec!["import", &file("empty.jsonl", "")], vec!["nothing in it"]),
    ] {
        let (code, _, said) = run(&data, &arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {said}");
        for part in expected {
            assert!(said.contains(part), "{arguments:?}: {part}: {said}");
        }
    }
}
