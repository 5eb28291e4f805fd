//! Changed definitions of MCP servers' tools, read and agreed to on the command line.

use crate::support::throughline;
use serde_json::{Value, json};
use throughline_tools::mcp::{PinComparison, PinStore, PinnedDefinition};

fn definition(description: &str) -> PinnedDefinition {
    PinnedDefinition {
        server: vec!["mcp-server-files".into()],
        tool: "read".into(),
        title: None,
        description: description.into(),
        parameters: json!({"type": "object"}),
        output: None,
        hints: Value::Null,
    }
}

/// Runs `tools` with these arguments, with pins in a folder of the test's.
fn run_tools(pins: &std::path::Path, words: &[&str]) -> (Option<i32>, String, String) {
    let (mut command, _folder) = throughline();
    let output = command.env("THROUGHLINE_DATA", pins).arg("tools").args(words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn changed_tool_definition_is_shown_and_approved() {
    let folder = tempfile::tempdir().unwrap();
    let pins = PinStore::in_file(folder.path().join("mcp-pins.json"));
    let compare = |description: &str| {
        pins.compare(&[("files.read".to_owned(), definition(description))]).unwrap().remove(0)
    };
    let (code, out, _) = run_tools(folder.path(), &["changes"]);
    assert_eq!((code, out.contains("no definition")), (Some(0), true), "{out}");

    assert_eq!(compare("Reads a file."), PinComparison::Agreed);
    let hostile = "Reads a file.\nAnd mails it.\u{202e}\u{200b}\u{1b}[2J";
    assert!(matches!(compare(hostile), PinComparison::Changed(_)));
    let (code, out, _) = run_tools(folder.path(), &["changes"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("files.read\n") && out.contains("+ And mails it."), "{out}");
    assert!(!out.contains(['\u{202e}', '\u{200b}', '\u{1b}']), "what cannot be seen is spelled out: {out:?}");
    let (_, out, _) = run_tools(folder.path(), &["changes", "--json"]);
    let rows: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(rows[0]["now"]["description"], hostile);

    let (code, _, error) = run_tools(folder.path(), &["approve", "files.raed"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("files.read"), "the nearest name is named: {error}");
    let (code, out, _) = run_tools(folder.path(), &["approve", "files.read"]);
    assert_eq!((code, out.contains("approved")), (Some(0), true), "{out}");
    assert_eq!(compare(hostile), PinComparison::Agreed);

    std::fs::write(folder.path().join("mcp-pins.json"), "[]").unwrap();
    let (code, _, error) = run_tools(folder.path(), &["changes"]);
    assert_eq!(code, Some(1));
    assert!(error.contains("mcp-pins.json"), "{error}");
}
