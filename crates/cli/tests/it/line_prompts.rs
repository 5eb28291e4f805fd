//! Answers typed as lines at a terminal, on the real binary: without the chat's screen every kind of answer
//! is possible, too.
#![cfg(unix)]

use crate::support::played::{Played, check_log};
use crate::support::terminal::Terminal;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use throughline_testkit::{FakeDialect, ModelScript, ScriptQueue};

fn throughline(folder: &Path, data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("throughline"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THROUGHLINE_")) {
        command.env_remove(name);
    }
    command.args(arguments).current_dir(folder).env("LC_ALL", "C.UTF-8").env("THROUGHLINE_DATA", data);
    command
}

fn entry(title: &str) -> ModelScript {
    ModelScript::new().call("demo_calendar", json!({"title": title, "when": "2026-11-22T12:00:00"}))
}

#[test]
fn approvals_are_answered_by_typed_lines() {
    let steps =
        [entry("lunch"), entry("tee"), entry("dinner"), entry("dinner"), ModelScript::new().say("Done.")];
    let played = Played::new(ScriptQueue::new(steps));
    let folder = tempfile::tempdir().unwrap();
    let mut command = throughline(folder.path(), folder.path(), &["ask", "--events", "go"]);
    let mut terminal = Terminal::start(command.args(played.arguments(FakeDialect::OpenaiChat)));

    terminal.until("Allow this call?  demo.calendar");
    terminal.until("\"title\": \"lunch\"");
    terminal.until("a approve · A approve all");
    for unclear in ["perhaps", "A question first: which one?", "all of this looks wrong"] {
        terminal.line(unclear);
        terminal.until("Answer not recognized.");
    }
    terminal.line("d too early for me");

    terminal.until("\"title\": \"tee\"");
    terminal.until("› ");
    terminal.line("e {\"title\": 5}");
    terminal.until("✘ ");
    terminal.line("e {\"title\": \"tea\", \"when\": \"2026-11-22T16:00:00\"}");

    terminal.until("\"title\": \"dinner\"");
    terminal.until("› ");
    terminal.line("r turn");
    terminal.until("remembered for this turn");
    terminal.line("yes but not today");
    terminal.until("Answer not recognized.");
    terminal.line("OK!");

    let (code, log, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    let events = check_log(&log);
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<&Value>>();
    let statuses: Vec<&Value> = of("tool_result").iter().map(|event| &event["status"]).collect();
    assert_eq!(statuses, ["denied", "success", "success", "success"]);
    assert_eq!(of("approval_request").len(), 3, "the second dinner is not asked about");
    assert_eq!(shown.matches("Allow this call?").count(), 3, "{shown}");
    let changed = &of("approval_resolved")[1]["arguments"];
    assert_eq!(*changed, json!({"title": "tea", "when": "2026-11-22T16:00:00"}));
    let told: Vec<String> = played.upstream.requests().iter().map(|sent| sent.body.to_string()).collect();
    assert!(told[1].contains("too early for me"), "{}", told[1]);
    assert!(told[2].contains("16:00"), "{}", told[2]);
}

#[test]
fn typed_denial_can_stop_the_turn() {
    let played = Played::new(ScriptQueue::new([entry("lunch")]));
    let folder = tempfile::tempdir().unwrap();
    let mut command = throughline(folder.path(), folder.path(), &["ask", "--events", "go"]);
    let mut terminal = Terminal::start(command.args(played.arguments(FakeDialect::OpenaiChat)));
    terminal.until("\"title\": \"lunch\"");
    terminal.until("s [reason] deny and stop");
    terminal.line("s not any of this");
    let (_, log, shown) = terminal.end();
    let events = check_log(&log);
    let last = |kind: &str| events.iter().rfind(|event| event["type"] == kind).unwrap();
    let answer = last("approval_resolved");
    assert_eq!((&answer["reason"], &answer["stop"]), (&json!("not any of this"), &json!(true)), "{shown}");
    assert_eq!(last("tool_result")["status"], "denied");
    assert_eq!(last("stream_end")["status"], "cancelled");
    assert_eq!(played.upstream.requests().len(), 1, "the model is not asked again");
}

#[test]
fn plain_chat_asks_and_reports_an_unsaved_approval() {
    let steps =
        [entry("lunch"), ModelScript::new().say("One."), entry("tea"), ModelScript::new().say("Two.")];
    let played = Played::new(ScriptQueue::new(steps));
    let folder = tempfile::tempdir().unwrap();
    // Nothing is there to be read, and nothing can be written.
    let data = folder.path().join("data");
    std::os::unix::fs::symlink(folder.path().join("gone/away"), &data).unwrap();
    let mut command = throughline(folder.path(), &data, &["chat", "--plain"]);
    let mut terminal = Terminal::start(command.args(played.arguments(FakeDialect::Anthropic)));

    terminal.line("go");
    terminal.until("\"title\": \"lunch\"");
    terminal.until("› ");
    terminal.line("r always any");
    terminal.until("always remembered");
    terminal.line("y");
    terminal.until("your answer was not remembered");
    terminal.line("go on");
    terminal.until("\"title\": \"tea\"");
    terminal.until("› ");
    terminal.line("A");
    terminal.until_output("Two.");
    terminal.line("/quit");
    let (code, said, shown) = terminal.end();
    assert_eq!(code, Some(0), "{said}{shown}");
    assert!(said.contains("One.") && said.contains("Two."), "{said}");
    assert_eq!(said.matches("[✔ demo.calendar").count(), 2, "{said}");
    assert_eq!(shown.matches("was not remembered").count(), 1, "{shown}");
}

/// An MCP server in a few lines of shell: its one tool has an elicitation with a name and one with an
/// address.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"method":"tools/list"'*)
      echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}}' ;;
    *'"method":"tools/call"'*)
      call=$id
      echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","required":["name","age"],"properties":{"name":{"type":"string","minLength":2},"age":{"type":"integer","minimum":1}}}}}' ;;
    *'"id":"q"'*)
      said=$(printf '%s' "$line" | sed 's/\\/\\\\/g; s/"/\\"/g')
      echo '{"jsonrpc":"2.0","id":'"$call"',"result":{"content":[{"type":"text","text":"'"$said"'"}]}}' ;;
    *'"id":'*)
      echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"unknown"}}' ;;
  esac
done
"#;

#[test]
fn approval_escapes_hidden_characters_and_runs_exact_input() {
    let turned = json!({"title": "tea", "when": "\u{202e}2026-11-24"});
    let steps = [ModelScript::new().call("demo_calendar", turned.clone()), ModelScript::new().say("Done.")];
    let played = Played::new(ScriptQueue::new(steps));
    let folder = tempfile::tempdir().unwrap();
    let mut command = throughline(folder.path(), folder.path(), &["ask", "--events", "go"]);
    let mut terminal = Terminal::start(command.args(played.arguments(FakeDialect::OpenaiChat)));
    terminal.until(r#""when": "\u202e2026-11-24""#);
    terminal.until("› ");
    terminal.line("a");
    let (code, log, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains('\u{202e}'), "{shown:?}");
    let events = check_log(&log);
    let input = events.iter().find(|event| event["type"] == "tool_input").unwrap();
    assert_eq!(input["arguments"], turned, "what runs is exact");
}

fn with_server() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("server.sh"), SERVER).unwrap();
    let configuration = "[mcp.sh]\ncommand = [\"/bin/sh\", \"server.sh\"]\n";
    std::fs::write(folder.path().join("throughline.toml"), configuration).unwrap();
    folder
}

const BY_HAND: [&str; 5] = ["tools", "call", "sh.greet", "{}", "--approve"];

#[test]
fn manual_call_elicits_input_at_the_terminal() {
    let folder = with_server();
    let mut terminal = Terminal::start(&mut throughline(folder.path(), folder.path(), &BY_HAND));
    terminal.until("The tool asks  sh.greet");
    terminal.until("Who are you?");
    terminal.until("name");
    terminal.line("A");
    terminal.until("✘ at least 2 characters");
    terminal.line("Ada");
    terminal.until("age (a number, ≥ 1)");
    terminal.line("7");
    let (code, said, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(said.contains(r#""action":"accept""#), "{said}");
    assert!(said.contains(r#""name":"Ada""#) && said.contains(r#""age":7"#), "{said}");
}

#[test]
fn manual_call_without_a_terminal_declines_elicitation() {
    let folder = with_server();
    let output = throughline(folder.path(), folder.path(), &BY_HAND).output().unwrap();
    let (said, why) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(r#""action":"decline""#), "{said}{why}");
    assert!(why.contains("Who are you?\n  declined: there is no terminal"), "{why}");
    assert!(why.contains("  try: run it in a terminal"), "{why}");
}
