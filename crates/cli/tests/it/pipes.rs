//! Pipes whose reader has left (`| head -1`), on the real binary: every command ends quietly.
#![cfg(unix)]

#[allow(dead_code, reason = "logs are checked elsewhere")]
use crate::support::played::Played;
use crate::support::serving::{command, run};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use throughline_testkit::{FakeDialect, ModelScript, ScriptMove, ScriptQueue};

const BODY: &str =
    "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// The writing end of a pipe whose reading end is closed.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Exit code of a command with a closed standard output; standard error stays empty.
#[track_caller]
fn quiet(mut command: Command) -> Option<i32> {
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let output = command.stdout(closed_pipe()).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panicked") && !said.contains("Broken pipe"), "{arguments:?}: {said}");
    output.status.code()
}

/// As [`quiet`], with standard error closed as well (`2>&1 | head -1`).
fn mute(mut command: Command) -> Option<i32> {
    command.stdout(closed_pipe()).stderr(closed_pipe()).status().unwrap().code()
}

fn ask(folder: &Path, played: &Played) -> Command {
    let mut command = command(folder);
    command.args(["ask", "go"]).args(played.arguments(FakeDialect::OpenaiChat)).stdin(Stdio::null());
    command
}

#[test]
fn commands_exit_quietly_when_the_pipe_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("reply.txt"), "no call\n").unwrap();
    std::fs::write(folder.join("body.sse"), BODY).unwrap();
    let (done, conversation, said) = run(folder, &["ask", "--events", "What time is it in Tokyo?"]);
    assert!(done, "{said}");
    std::fs::write(folder.join("turn.jsonl"), &conversation).unwrap();
    let id = conversation.lines().next().map(|line| serde_json::from_str::<Value>(line).unwrap()).unwrap();
    let conversation_id = id["conversation_id"].as_str().unwrap_or_default().to_owned();
    let lists: [&[&str]; 15] = [
        &["--help"],
        &["ask", "--help"],
        &["--version"],
        &["completions", "bash"],
        &["history"],
        &["history", "--turns", "--json"],
        &["replay"],
        &["replay", "--events"],
        &["replay", "--from", "turn.jsonl"],
        &["export", &conversation_id],
        &["upstreams"],
        &["tools", "list"],
        &["tools", "prompt"],
        &["parse", "reply.txt"],
        &["doctor"],
    ];
    for arguments in lists {
        let mut open = command(folder);
        let code = open.args(arguments).stdin(Stdio::null()).output().unwrap().status.code();
        let closed = || {
            let mut closed = command(folder);
            closed.args(arguments).stdin(Stdio::null());
            closed
        };
        assert_eq!(quiet(closed()), code, "{arguments:?}");
        assert_eq!(mute(closed()), code, "{arguments:?}, and standard error is closed");
    }
    for arguments in
        [&["decode", "--api", "openai-chat"][..], &["decode", "--api", "openai-chat", "--events"]]
    {
        let mut decode = command(folder);
        decode.args(arguments).stdin(std::fs::File::open(folder.join("body.sse")).unwrap());
        assert_eq!(quiet(decode), Some(0), "{arguments:?}");
    }
    let mut chat = command(folder);
    std::fs::write(folder.join("lines.txt"), "/help\nhello\n/tools\n").unwrap();
    chat.arg("chat").stdin(std::fs::File::open(folder.join("lines.txt")).unwrap());
    assert_eq!(quiet(chat), Some(0), "chat");
    // An error has its exit code, although its output is not read.
    let mut wrong = command(folder);
    wrong.args(["export", "conv_none"]);
    assert_eq!(mute(wrong), Some(1));
}

#[test]
fn ask_into_a_closed_pipe_is_cancelled_and_stored() {
    let script = ModelScript::new().say("The first words").then(ScriptMove::Stall);
    let played = Played::new(ScriptQueue::new([script.clone(), script]));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(quiet(ask(folder.path(), &played)), Some(0));
    assert_eq!(mute(ask(folder.path(), &played)), Some(0));
    let (_, turns, said) = run(folder.path(), &["history", "--turns", "--json"]);
    let turns: Vec<Value> = serde_json::from_str(&turns).unwrap_or_else(|_| panic!("{turns}{said}"));
    assert_eq!(turns.iter().map(|turn| &turn["status"]).collect::<Vec<_>>(), ["cancelled", "cancelled"]);
    let (_, shown, _) = run(folder.path(), &["replay", "--plain"]);
    assert!(shown.starts_with("The"), "as far as it came: {shown}");
}
