//! Permanent approvals: one store for all commands that add, show or revoke one.
#![cfg(unix)]

use crate::support::played::Played;
use crate::support::serving::{Serving, command, run};
use crate::support::terminal::Terminal;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use throughline_testkit::{FakeDialect, ModelScript, ScriptQueue};

fn entry(title: &str) -> [ModelScript; 2] {
    [
        ModelScript::new().call("demo_calendar", json!({"title": title, "when": "2026-11-22T12:00:00"})),
        ModelScript::new().say("Noted."),
    ]
}

fn configure(folder: &Path, played: &Played) {
    let config = format!(
        "[upstreams.fake]\nbase_url = \"{}\"\ndialect = \"openai-chat\"\n\n[agents.default]\nmodel = \"fake/mock\"\ntool_call = {{ enabled = true }}\n",
        played.upstream.base_url(FakeDialect::OpenaiChat)
    );
    std::fs::write(folder.join("throughline.toml"), config).unwrap();
}

fn listed(folder: &Path) -> Vec<Value> {
    let (done, said, error) = run(folder, &["tools", "remembered", "--json"]);
    assert!(done, "{error}");
    serde_json::from_str(&said).unwrap()
}

fn forget(folder: &Path, number: &Value) {
    let (done, said, error) = run(folder, &["tools", "remembered", "--forget", &number.to_string()]);
    assert!(done && said.contains("such calls ask again"), "{said}{error}");
}

/// Runs `ask` in a terminal, and approves the call permanently.
fn allow_always(folder: &Path, arguments: &[&str]) {
    let mut terminal = Terminal::start(command(folder).args(["ask", "--demo-tools"]).args(arguments));
    terminal.until("Allow this call?  demo.calendar");
    terminal.until("› ");
    terminal.line("r always any");
    terminal.until("always remembered");
    terminal.line("y");
    let (code, _, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("was not remembered"), "{shown}");
}

/// Without a person a call that needs approval is denied: `true` if it ran.
fn runs_unasked(folder: &Path, arguments: &[&str]) -> bool {
    let mut asking = command(folder);
    asking.args(["ask", "--events", "--demo-tools"]).args(arguments).stdin(Stdio::null());
    let output = asking.output().unwrap();
    let events = String::from_utf8(output.stdout).unwrap();
    assert!(events.contains("stream_end"), "{events}{}", String::from_utf8_lossy(&output.stderr));
    !events.contains(r#""status":"denied""#)
}

#[test]
fn permanent_approval_holds_with_and_without_a_log() {
    let played = Played::new(ScriptQueue::new(["a", "b", "c", "d", "e"].into_iter().flat_map(entry)));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    configure(folder, &played);
    assert_eq!(listed(folder), [] as [Value; 0]);
    assert!(!folder.join("data/throughline.db").exists(), "looking makes nothing");

    // Given where nothing is logged; it holds in a conversation that is, and the list names the question.
    allow_always(folder, &["--no-log", "Put it in."]);
    let [given] = &listed(folder)[..] else { panic!("one is listed") };
    assert_eq!(
        (&given["answer"]["tool"], &given["answer"]["decision"]),
        (&json!("demo.calendar"), &json!("approve"))
    );
    assert!(given["answer"]["asked"].as_str().unwrap().contains("demo.calendar"), "{given}");
    assert!(runs_unasked(folder, &["And this."]));
    let (_, rows, _) = run(folder, &["tools", "list", "--demo-tools"]);
    let row = rows.lines().find(|line| line.contains("demo.calendar")).unwrap();
    assert!(!row.contains("asks"), "{row}");

    // Revoked while a chat has the store open, which asks from then on.
    let mut chat = Terminal::start(command(folder).args(["chat", "--plain", "--demo-tools"]));
    chat.line("go");
    chat.until_output("Noted.");
    forget(folder, &given["number"]);
    chat.line("go on");
    chat.until("Allow this call?  demo.calendar");
    chat.until("› ");
    chat.line("r always any");
    chat.until("always remembered");
    chat.line("y");
    chat.until_output("Noted.");
    let [second] = &listed(folder)[..] else { panic!("one is listed") };
    assert_ne!(second["number"], given["number"], "a number is never used again");
    chat.line("/quit");
    assert_eq!(chat.end().0, Some(0));
    forget(folder, &second["number"]);
    assert!(!runs_unasked(folder, &["--no-log", "And this?"]));
}

#[test]
fn server_approval_is_listed_and_revoked_by_the_cli() {
    let played = Played::new(ScriptQueue::new(["a", "b", "c"].into_iter().flat_map(entry)));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    configure(folder, &played);
    let server = Serving::start(folder, &["--demo-tools"]);
    let key = server.token().unwrap().to_owned();
    let of_api = || -> Vec<Value> {
        let (status, body) = server.get("/v1/remembered?everywhere=true", Some(&key));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["items"].as_array().unwrap().clone()
    };

    let mut terminal = Terminal::start(command(folder).args(["ask", "Put it in."]));
    terminal.until("Allow this call?  demo.calendar");
    terminal.until("› ");
    terminal.line("r always any");
    terminal.until("always remembered");
    terminal.line("y");
    assert_eq!(terminal.end().0, Some(0));
    let ([here], [there]) = (&listed(folder)[..], &of_api()[..]) else { panic!("one is listed by each") };
    assert_eq!((&here["number"], &here["answer"]), (&there["number"], &there["answer"]));
    let question = there["rule"]["question"].as_str().unwrap();
    assert!(question.contains("Run demo.calendar"), "{there}");
    let (_, text, _) = run(folder, &["tools", "remembered"]);
    assert!(text.contains("allow  demo.calendar"), "{text}");

    forget(folder, &here["number"]);
    assert_eq!(of_api(), [] as [Value; 0]);
    // The server reads them anew after half a second.
    std::thread::sleep(std::time::Duration::from_millis(600));
    let mut asking = command(folder);
    asking.args(["ask", "--events", "And this?"]).stdin(Stdio::null());
    let events = String::from_utf8(asking.output().unwrap().stdout).unwrap();
    assert!(events.contains(r#""status":"denied""#), "{events}");

    // What was given where nothing is logged is the server's, too.
    allow_always(
        folder,
        &[
            "--no-log",
            "--base-url",
            &played.upstream.base_url(FakeDialect::OpenaiChat),
            "--api",
            "openai-chat",
            "go",
        ],
    );
    let [given] = &of_api()[..] else { panic!("one is listed") };
    let path = format!("/v1/remembered/{}", given["number"]);
    assert_eq!(server.ask("DELETE", &path, Some(&key), "").0, 204);
    assert_eq!(listed(folder), [] as [Value; 0]);
    assert_eq!(server.stop(), Some(0));
}
