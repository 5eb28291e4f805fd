//! `chat` and `ask` are stored in the server's store: continued, resumed after a kill, and through the server
//! that has it open.
#![cfg(unix)]

use crate::support::played::{Played, check_log};
use crate::support::serving::{Serving, command, run};
use crate::support::terminal::Terminal;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use throughline_testkit::script::ScriptMove;
use throughline_testkit::{FakeDialect, ModelScript, ScriptQueue};

fn ask(folder: &Path, played: &Played, arguments: &[&str]) -> Command {
    let mut command = command(folder);
    command.arg("ask").args(arguments).args(played.arguments(FakeDialect::OpenaiChat)).stdin(Stdio::null());
    command
}

#[track_caller]
fn printed(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn turns(folder: &Path) -> Vec<Value> {
    let (_, said, _) = run(folder, &["history", "--turns", "--json"]);
    serde_json::from_str(&said).unwrap_or_default()
}

#[test]
fn conversation_is_stored_replayed_and_continued() {
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().call("demo_weather", json!({"city": "Paris"})),
        ModelScript::new().say("Sunny, Ada."),
        ModelScript::new().say("You are Ada."),
        ModelScript::new().say("Not kept."),
        ModelScript::new().say("A new one."),
        ModelScript::new().say("The old one."),
    ]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(printed(ask(folder, &played, &["I am Ada. The weather?"])), "Sunny, Ada.\n");
    let (done, replayed, said) = run(folder, &["replay"]);
    assert!(
        done && replayed.contains("✔ demo.weather") && replayed.contains("Sunny, Ada."),
        "{replayed}{said}"
    );
    let (_, calls, _) = run(folder, &["history"]);
    assert!(calls.contains("✔ demo.weather"), "{calls}");

    assert_eq!(printed(ask(folder, &played, &["-c", "Who am I?"])), "You are Ada.\n");
    let sent = played.upstream.requests().last().unwrap().body.to_string();
    assert!(sent.contains("I am Ada. The weather?") && sent.contains("Sunny, Ada."), "{sent}");
    let first = turns(folder);
    assert_eq!(first.len(), 2);
    assert!(first.iter().all(|turn| turn["status"] == "completed"), "{first:?}");

    assert_eq!(printed(ask(folder, &played, &["--no-log", "Hush."])), "Not kept.\n");
    assert_eq!(turns(folder).len(), 2, "nothing is kept of it");

    printed(ask(folder, &played, &["-s", "Be brief.", "Hello."]));
    let sent = played.upstream.requests().last().unwrap().body.to_string();
    assert!(sent.contains("Be brief.") && !sent.contains("Ada"), "{sent}");
    let conversation = first[0]["conversation_id"].as_str().unwrap();
    printed(ask(folder, &played, &["--resume", conversation, "And now?"]));
    let sent = played.upstream.requests().last().unwrap().body.to_string();
    assert!(sent.contains("You are Ada."), "{sent}");
}

#[test]
fn continuing_a_missing_conversation_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (done, _, said) = run(folder.path(), &["ask", "-c", "hello"]);
    assert!(!done && said.contains("no conversation to continue"), "{said}");
    let (done, _, said) = run(folder.path(), &["ask", "--resume", "conv_none", "hello"]);
    assert!(!done && said.contains("there is no conversation `conv_none`"), "{said}");
}

#[test]
fn stdin_and_files_follow_the_prompt() {
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().say("Looks good."),
        ModelScript::new().say("Fine.").call("demo_weather", json!({"city": "Paris"})),
        ModelScript::new().say("Done."),
    ]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("notes.txt"), "Buy milk.\n").unwrap();
    std::fs::write(folder.join("diff"), "+ let a = 1;\n").unwrap();
    let piped = || Stdio::from(std::fs::File::open(folder.join("diff")).unwrap());
    let mut asking = ask(folder, &played, &["review this", "-f", "notes.txt"]);
    asking.stdin(piped());
    printed(asking);
    let sent = played.upstream.requests().last().unwrap().body.to_string();
    assert!(sent.contains(r"review this\n\n+ let a = 1;\n\nnotes.txt:\n\nBuy milk."), "{sent}");

    let output = ask(folder, &played, &["--quiet", "go"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Fine.\n\nDone.\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing is said about the turn");

    std::fs::write(folder.join("diff"), "a".repeat((1 << 20) + 1)).unwrap();
    let mut asking = ask(folder, &played, &["review this"]);
    let output = asking.stdin(piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("standard input is too long"), "{said}");
}

#[test]
fn turn_of_a_killed_process_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let go = folder.join("go");
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().call("demo_weather", json!({"city": "Paris"})),
        ModelScript::new().say("It is ").then(ScriptMove::WaitFor(go.clone())).say("never finished."),
        ModelScript::new().say("It is sunny."),
        ModelScript::new().say("You are welcome."),
    ]));
    let mut killed = ask(folder, &played, &["The weather?"]);
    let mut terminal = Terminal::start(&mut killed);
    terminal.until_output("It is ");
    terminal.kill();
    assert_eq!(turns(folder)[0]["status"], "running");

    let said = printed(ask(folder, &played, &["-c", "Thanks."]));
    assert!(said.contains("It is sunny.") && said.contains("You are welcome."), "{said}");
    let kept = turns(folder);
    assert_eq!(kept.len(), 2, "the same turn has gone on");
    assert!(kept.iter().all(|turn| turn["status"] == "completed"), "{kept:?}");
    let (_, log, _) = run(folder, &["replay", "--events", kept[1]["id"].as_str().unwrap()]);
    let events = check_log(&log);
    let calls = events.iter().filter(|event| event["type"] == "tool_start").count();
    assert_eq!(calls, 1, "the call that had run did not run again");
    std::fs::write(go, "").unwrap();
}

fn serving(folder: &Path, played: &Played) -> Serving {
    let config = format!(
        "[upstreams.fake]\nbase_url = \"{}\"\ndialect = \"openai-chat\"\n\n[agents.default]\nmodel = \"fake/mock\"\ntool_call = {{ enabled = true }}\n",
        played.upstream.base_url(FakeDialect::OpenaiChat)
    );
    std::fs::write(folder.join("throughline.toml"), config).unwrap();
    Serving::start(folder, &["--demo-tools"])
}

fn entry(title: &str) -> ModelScript {
    ModelScript::new().call("demo_calendar", json!({"title": title, "when": "2026-11-22T12:00:00"}))
}

#[test]
fn ask_and_chat_use_the_server_that_has_the_store_open() {
    let played = Played::new(ScriptQueue::new([
        entry("lunch"),
        ModelScript::new().say("Lunch is in."),
        entry("tea"),
        ModelScript::new().say("No tea."),
        entry("dinner"),
        ModelScript::new().say("Dinner is in."),
        ModelScript::new().say("Three things."),
    ]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let server = serving(folder, &played);

    // At a terminal the user is asked for approval.
    let mut terminal = Terminal::start(command(folder).args(["ask", "Put lunch in."]));
    terminal.until("Allow this call?  demo.calendar");
    terminal.until("\"title\": \"lunch\"");
    terminal.line("y");
    let (code, said, shown) = terminal.end();
    assert_eq!((code, said.as_str()), (Some(0), "Lunch is in.\n"), "{shown}");

    // Without one the call is denied, and with --approve it runs.
    let mut unasked = command(folder);
    unasked.args(["ask", "-c", "And tea."]).stdin(Stdio::null());
    assert_eq!(printed(unasked), "No tea.\n");
    let denied = played.upstream.requests().last().unwrap().body.to_string();
    assert!(denied.contains("cannot ask without a terminal"), "{denied}");
    let mut approved = command(folder);
    approved.args(["ask", "-c", "--approve", "And dinner."]).stdin(Stdio::null());
    assert_eq!(printed(approved), "Dinner is in.\n");

    // The chat continues the same conversation.
    let mut terminal = Terminal::start(command(folder).args(["chat", "--plain", "-c"]));
    terminal.until_output("through the server at http://");
    terminal.until_output("Dinner is in.");
    terminal.line("What did I plan?");
    terminal.until_output("Three things.");
    terminal.line("/quit");
    let (code, said, shown) = terminal.end();
    assert_eq!(code, Some(0), "{said}{shown}");
    let sent = played.upstream.requests().last().unwrap().body.to_string();
    assert!(sent.contains("Put lunch in.") && sent.contains("No tea."), "{sent}");

    let kept = turns(folder);
    assert_eq!(kept.len(), 4);
    assert!(kept.iter().all(|turn| turn["conversation_id"] == kept[0]["conversation_id"]), "{kept:?}");
    let (done, _, said) = run(folder, &["ask", "--base-url", "http://127.0.0.1:9", "--api", "ollama", "x"]);
    assert!(!done && said.contains("--base-url cannot be used while a server"), "{said}");
    assert_eq!(server.stop(), Some(0));
    assert_eq!(turns(folder).len(), 4, "nothing was started beside it");
}

#[test]
fn chat_commands_new_resume_retry_save_and_system_work() {
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().say("First."),
        ModelScript::new().say("Second."),
        ModelScript::new().say("Second again."),
        ModelScript::new().say("Another talk."),
        ModelScript::new().say("Back."),
    ]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut chat = command(folder);
    let mut terminal =
        Terminal::start(chat.args(["chat", "--plain"]).args(played.arguments(FakeDialect::OpenaiChat)));
    terminal.line("one");
    terminal.until_output("First.");
    terminal.line("two");
    terminal.until_output("Second.");
    terminal.line("/retry");
    terminal.until_output("Second again.");
    terminal.line("/save talk.md");
    terminal.until_output("saved to talk.md");
    terminal.line("/system Speak like a pirate.");
    terminal.until_output("hold from the next message on");
    terminal.line("/new");
    terminal.until_output("A new conversation begins");
    terminal.line("three");
    terminal.until_output("Another talk.");
    terminal.line("/resume");
    terminal.until_output("●  1  three");
    terminal.until_output("2  one");
    terminal.line("/resume 2");
    terminal.until_output("Continuing: one");
    terminal.until_output("Second again.");
    terminal.line("four");
    terminal.until_output("Back.");
    terminal.line("/agent");
    terminal.until_output("Agents: default");
    terminal.line("/quit");
    let (code, said, shown) = terminal.end();
    assert_eq!(code, Some(0), "{said}{shown}");

    let sent: Vec<String> =
        played.upstream.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(sent[2].contains("First.") && !sent[2].contains("Second."), "a retry stands beside: {}", sent[2]);
    assert!(sent[3].contains("pirate") && !sent[3].contains("First."), "{}", sent[3]);
    assert!(sent[4].contains("Second again.") && !sent[4].contains("Another"), "{}", sent[4]);
    let saved = std::fs::read_to_string(folder.join("talk.md")).unwrap();
    assert!(saved.contains("one") && saved.contains("Second again."), "{saved}");
}

/// Two agents, one upstream with two models. The second agent has instructions.
fn two_agents(played: &Played) -> String {
    format!(
        "[upstreams.fake]\nbase_url = \"{}\"\ndialect = \"openai-chat\"\n\n[agents.default]\nmodel = \"fake/small\"\n\n\
         [agents.poet]\nmodel = \"fake/large\"\nprompt = \"Answer in verse.\"\n",
        played.upstream.base_url(FakeDialect::OpenaiChat)
    )
}

/// The model and the whole text of the last request.
fn last_request(played: &Played) -> (String, String) {
    let request = played.upstream.requests().pop().unwrap();
    (request.body["model"].as_str().unwrap().to_owned(), request.body.to_string())
}

#[test]
fn chat_commands_agent_model_and_copy_work() {
    let replies = ["In prose: ☀.", "In verse.", "Another model."];
    let played = Played::new(ScriptQueue::new(replies.map(|text| ModelScript::new().say(text))));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("throughline.toml"), two_agents(&played)).unwrap();
    // The terminal has to be standard output: an escape sequence in a pipe would reach no clipboard.
    let mut terminal = Terminal::on_one_screen(command(folder.path()).args(["chat", "--plain"]));
    terminal.line("/copy");
    terminal.until("There is no answer to copy yet.");
    terminal.line("one");
    terminal.until("In prose: ☀.");
    assert_eq!(last_request(&played).0, "small");
    terminal.line("/copy");
    // OSC 52 with the text in base64.
    terminal.until("\u{1b}]52;c;SW4gcHJvc2U6IOKYgC4=\u{7}");
    terminal.until("12 characters copied");
    terminal.line("/agent nobody");
    terminal.until("there is no agent `nobody`");
    terminal.until("one of default, poet");
    terminal.line("/agent poet");
    terminal.until("Model: fake/large");
    terminal.line("two");
    terminal.until("In verse.");
    let (model, sent) = last_request(&played);
    assert_eq!(model, "large");
    assert!(
        sent.contains("Answer in verse.") && sent.contains("In prose"),
        "the conversation goes on: {sent}"
    );
    terminal.line("/model fake/other");
    terminal.until("Model: fake/other");
    terminal.line("three");
    terminal.until("Another model.");
    let (model, sent) = last_request(&played);
    assert_eq!(model, "other");
    assert!(sent.contains("Answer in verse."), "a model does not change the agent: {sent}");
    terminal.line("/quit");
    let (code, _, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn ask_and_chat_options_work_through_a_server() {
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().say("In prose."),
        ModelScript::new().say("In verse."),
        ModelScript::new().say("A red dot."),
        ModelScript::new().say("Reviewed."),
        ModelScript::new().say("She is seven."),
        ModelScript::new().say("{\"name\": \"Ada\", \"age\": 7}"),
    ]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("throughline.toml"), two_agents(&played)).unwrap();
    let server = Serving::start(folder, &[]);
    let mut terminal = Terminal::start(command(folder).args(["chat", "--plain"]));
    terminal.until_output("through the server at http://");
    terminal.line("one");
    terminal.until_output("In prose.");
    assert_eq!(last_request(&played).0, "small");
    terminal.line("/agent poet");
    terminal.until_output("Model: ");
    terminal.line("two");
    terminal.until_output("In verse.");
    let (model, sent) = last_request(&played);
    assert_eq!(model, "large");
    assert!(sent.contains("Answer in verse.") && sent.contains("In prose."), "{sent}");
    terminal.line("/quit");
    let (code, said, shown) = terminal.end();
    assert_eq!(code, Some(0), "{said}{shown}");

    let asked = |arguments: &[&str]| {
        let mut ask = command(folder);
        ask.arg("ask").args(arguments).stdin(Stdio::null());
        printed(ask)
    };
    // The smallest picture that a model takes, and a text.
    std::fs::write(folder.join("dot.png"), b"\x89PNG\r\n\x1a\n and no more").unwrap();
    std::fs::write(folder.join("notes.txt"), "Buy milk.\n").unwrap();
    assert_eq!(asked(&["-a", "dot.png", "-f", "notes.txt", "What is it?"]), "A red dot.\n");
    let sent = last_request(&played).1;
    assert!(sent.contains("notes.txt:\\n\\nBuy milk."), "{sent}");
    assert!(sent.contains("data:image/png;base64,iVBORw0KGgog"), "{sent}");
    std::fs::create_dir(folder.join("prompts")).unwrap();
    std::fs::write(folder.join("prompts/review.md"), "Review this {{ language }} code:\n\n{{input}}\n")
        .unwrap();
    assert_eq!(asked(&["-t", "review", "-p", "language=Rust", "fn f() {}"]), "Reviewed.\n");
    assert!(last_request(&played).1.contains("Review this Rust code:\\n\\nfn f() {}"));
    // The first answer does not fit the schema, and the model is called once more.
    let schema =
        r#"{"type": "object", "required": ["name", "age"], "properties": {"age": {"type": "integer"}}}"#;
    let answer: Value = serde_json::from_str(&asked(&["--schema", schema, "Who?"])).unwrap();
    assert_eq!(answer, json!({"name": "Ada", "age": 7}));
    assert!(last_request(&played).1.contains("She is seven."), "the correction follows the answer");
    assert_eq!(played.upstream.requests().len(), 6);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn ask_during_a_chat_is_stored_when_the_chat_ends() {
    let played = Played::new(ScriptQueue::new([
        ModelScript::new().say("In the chat."),
        ModelScript::new().say("Beside it."),
        ModelScript::new().say("Still in the chat."),
        ModelScript::new().say("Continued."),
    ]));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut terminal = Terminal::start(
        command(folder).args(["chat", "--plain"]).args(played.arguments(FakeDialect::OpenaiChat)),
    );
    terminal.line("one");
    terminal.until_output("In the chat.");
    let output = ask(folder, &played, &["two"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Beside it.\n", "{said}");
    assert!(said.contains("this conversation is in the history when that one has ended"), "{said}");
    // It cannot be continued yet, and the error gives the reason.
    let output = ask(folder, &played, &["-c", "three"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("the store is in use"), "{said}");
    terminal.line("four");
    terminal.until_output("Still in the chat.");
    terminal.line("/quit");
    let (code, said, shown) = terminal.end();
    assert_eq!(code, Some(0), "{said}{shown}");

    let inputs: Vec<String> =
        turns(folder).iter().map(|turn| turn["input"].as_str().unwrap().to_owned()).collect();
    assert_eq!(inputs.len(), 3, "{inputs:?}");
    assert!(inputs.contains(&"two".to_owned()), "{inputs:?}");
    assert_eq!(std::fs::read_dir(folder.join("data/pending")).unwrap().count(), 0, "nothing is left over");
    let conversation =
        turns(folder).iter().find(|turn| turn["input"] == "two").unwrap()["conversation_id"].clone();
    let mut resumed = ask(folder, &played, &["--resume", conversation.as_str().unwrap(), "five"]);
    assert_eq!(String::from_utf8_lossy(&resumed.output().unwrap().stdout), "Continued.\n");
    let sent = played.upstream.requests().last().unwrap().body.to_string();
    assert!(sent.contains("Beside it.") && !sent.contains("In the chat."), "{sent}");
}

#[test]
fn concurrent_asks_are_all_stored() {
    let played = Played::new(ScriptQueue::new((0..4).map(|_| ModelScript::new().say("Yes."))));
    let folder = tempfile::tempdir().unwrap();
    let running: Vec<_> = (0..4)
        .map(|number| {
            let mut command = ask(folder.path(), &played, &[&format!("question {number}")]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in running {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "Yes.\n", "{said}");
    }
    // The next command moves the store that the last one could not.
    let mut last = ask(folder.path(), &played, &["-c"]);
    let _ = last.stdin(Stdio::null()).output().unwrap();
    assert_eq!(turns(folder.path()).len(), 4);
}

/// A store that cannot be opened is reported, and the answer is printed.
#[test]
fn ask_answers_even_if_it_cannot_be_stored() {
    let played = Played::new(ScriptQueue::new([ModelScript::new().say("Here I am.")]));
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(folder.path().join("gone/away"), folder.path().join("data")).unwrap();
    let output = ask(folder.path(), &played, &["hello"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Here I am.\n", "{said}");
    assert!(output.status.success() && said.contains("this conversation is not kept"), "{said}");
}
