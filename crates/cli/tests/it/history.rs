//! `throughline history` on the real binary, over a store that is open elsewhere.

use crate::support::throughline;
use throughline_store::{CallRow, Catalog, NewTurnRow, SqliteSettings, SqliteStore, TurnPlacement};

fn call(tool: &str, status: &str, started_at: i64) -> CallRow {
    CallRow {
        turn_id: "turn-1".into(),
        tool_id: format!("turn-1.{started_at}"),
        conversation_id: None,
        step: 1,
        tool_name: tool.into(),
        source: "builtin".into(),
        effect: "read".into(),
        status: status.into(),
        arguments: "{\"path\":\"a.txt\"}".into(),
        output_summary: Some("3 lines".into()),
        error: (status == "error").then(|| "failed: no such file".into()),
        started_at,
        duration_ms: Some(40),
    }
}

#[test]
fn calls_and_turns_are_listed_newest_first() {
    let (_command, folder) = throughline();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = runtime.block_on(async {
        let settings = SqliteSettings { ballast_bytes: 0, ..SqliteSettings::default() };
        let store = SqliteStore::open(&folder.path().join("throughline.db"), settings).await.unwrap();
        let turn = NewTurnRow {
            id: "turn-1".into(),
            message_id: "m".into(),
            placement: TurnPlacement::Standalone,
            idempotency: None,
            stored: "{}".into(),
            agent: "default".into(),
            model: None,
            mode: None,
            input_text: "read a file".into(),
            files: Vec::new(),
            created_at: 1_000,
            charge: Default::default(),
        };
        store.create_turn("me", turn).await.unwrap();
        let calls = vec![call("files.read", "success", 2_000), call("files.list", "error", 3_000)];
        assert_eq!(store.put_calls("me", calls).await.unwrap(), 2);
        store
    });
    let said = |arguments: &[&str]| {
        let (mut command, _own) = throughline();
        let output =
            command.env("THROUGHLINE_DATA", folder.path()).arg("history").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let all = said(&[]);
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines.len(), 2, "{all}");
    assert!(lines[0].contains("✘ files.list") && lines[0].ends_with("→ failed: no such file"), "{all}");
    assert!(lines[1].contains("✔ files.read") && lines[1].ends_with("→ 3 lines"), "{all}");
    assert!(lines[1].contains("40 ms") && lines[1].contains("a.txt"), "{all}");

    assert_eq!(said(&["--status", "error", "--limit", "5"]).lines().count(), 1);
    assert_eq!(said(&["--tool", "files.none"]), "no calls\n");
    assert_eq!(said(&["--user", "you"]), "no calls\n");
    let turns: serde_json::Value = serde_json::from_str(&said(&["--turns", "--json"])).unwrap();
    assert_eq!((&turns[0]["id"], &turns[0]["status"]), (&"turn-1".into(), &"running".into()));
    assert!(said(&["--turns"]).contains("turn-1  running      read a file"), "{}", said(&["--turns"]));

    // A page has a hint to the next one; the last page has none.
    let page = |arguments: &[&str]| {
        let (mut command, _own) = throughline();
        command.env("THROUGHLINE_DATA", folder.path()).arg("history").args(arguments);
        let output = command.output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (first, more) = page(&["--limit", "1"]);
    let cursor = more.trim().strip_prefix("… there are more: --before ").unwrap_or_else(|| panic!("{more}"));
    let (second, no_more) = page(&["--limit", "1", "--before", cursor]);
    assert!(first.contains("files.list") && second.contains("files.read"), "{first}{second}");
    assert_eq!(no_more, "");
    assert_eq!(page(&["--limit", "1", "--before", cursor, "--json"]).1, "");
    let (_, said) = page(&["--before", "yesterday"]);
    assert!(said.contains("`yesterday` is no place in the list"), "{said}");
    runtime.block_on(store.close());
}
