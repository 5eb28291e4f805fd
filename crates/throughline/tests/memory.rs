//! Answers that hold for longer than a turn: who is asked again, and what is on disk. R: A2, A3

#![allow(clippy::unwrap_used)]

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use throughline::engine::{Decision, Remember, Remembered, Scope};
use throughline::memory::{InFile, InMemory, Memory, MemoryError, REMEMBERED_MAX};
use throughline::tools::{Effect, tool};
use throughline::wire::Dialect;
use throughline::{Answer, CallStatus, Throughline, TurnRequest, Upstream};
use throughline_testkit as testkit;

#[derive(Deserialize, JsonSchema)]
struct Entry {
    title: String,
}

/// A program whose model asks for the calendar in each turn, and in which a person answers and is counted.
struct Program {
    app: Throughline,
    asked: Arc<AtomicUsize>,
    _server: testkit::UpstreamHandle,
}

async fn program(memory: Arc<dyn Memory>, answer: Answer, description: &str) -> Program {
    program_with(|builder| builder.memory(memory), answer, description).await
}

async fn program_with(
    memory: impl FnOnce(throughline::Builder) -> throughline::Builder,
    answer: Answer,
    description: &str,
) -> Program {
    let turn = || {
        [
            testkit::Script::new().call("calendar_add", json!({"title": "lunch"})),
            testkit::Script::new().say("Done."),
        ]
    };
    let server = testkit::Upstream::start(testkit::Queue::new((0..6).flat_map(|_| turn()))).await.unwrap();
    let upstream =
        Upstream::new("a", Dialect::OpenaiChat, &server.base_url(testkit::Dialect::OpenaiChat)).unwrap();
    let add =
        tool("calendar.add", description, |entry: Entry, _| async move { entry.title }).effect(Effect::Write);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let app = memory(Throughline::builder())
        .upstream(upstream.proxy(throughline::Proxy::Off))
        .model("m")
        .tool(add.agent_callable())
        .on_approval(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            let answer = answer.clone();
            async move { answer }
        })
        .build()
        .unwrap();
    Program { app, asked, _server: server }
}

impl Program {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    async fn ask(&self) -> CallStatus {
        let message = self.app.ask("lunch, please").await.unwrap().finish().await;
        message.calls().next().unwrap().status.unwrap()
    }
}

fn approve(scope: Scope) -> Answer {
    Answer::approve().remember(Remember::exactly(scope))
}

#[tokio::test]
async fn what_always_holds_is_not_asked_again_even_by_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = || Arc::new(InFile::at(folder.path().join("data/remembered.json")));
    let first = program(file(), approve(Scope::Always), "Adds an entry").await;
    assert_eq!((first.ask().await, first.asked()), (CallStatus::Success, 1));
    assert_eq!((first.ask().await, first.asked()), (CallStatus::Success, 1));
    assert_eq!(first.app.memory_fault(), None);

    let second = program(file(), Answer::deny("no"), "Adds an entry").await;
    assert_eq!((second.ask().await, second.asked()), (CallStatus::Success, 0));

    let redefined = program(file(), Answer::deny("no"), "Adds an entry, and tells everybody").await;
    assert_eq!(
        (redefined.ask().await, redefined.asked()),
        (CallStatus::Denied, 1),
        "another definition asks"
    );

    let number = file().all().unwrap()[0].number;
    assert_eq!(file().forget(number).unwrap().unwrap().answer.tool.as_str(), "calendar.add");
    assert_eq!((second.ask().await, second.asked()), (CallStatus::Denied, 1), "taken back is asked");
}

#[tokio::test]
async fn a_denial_is_kept_like_an_approval() {
    let memory = Arc::new(InMemory::default());
    let answer = Answer::deny("never lunch").remember(Remember::any(Scope::Always));
    let program = program(memory.clone(), answer, "").await;
    assert_eq!((program.ask().await, program.asked()), (CallStatus::Denied, 1));
    assert_eq!((program.ask().await, program.asked()), (CallStatus::Denied, 1));
    assert_eq!(memory.all().unwrap()[0].answer.decision, Decision::Deny);
}

#[tokio::test]
async fn what_holds_for_a_conversation_ends_with_it() {
    let memory = Arc::new(InMemory::default());
    let program = program(memory.clone(), approve(Scope::Conversation), "").await;
    let mut conversation = program.app.conversation();
    conversation.ask("lunch").await.unwrap().finish().await;
    conversation.ask("lunch").await.unwrap().finish().await;
    assert_eq!((program.asked(), conversation.remembered().len()), (1, 1));
    let mut other = program.app.conversation();
    other.ask("lunch").await.unwrap().finish().await;
    assert_eq!((program.asked(), other.remembered().len()), (2, 1));
    assert_eq!(memory.all().unwrap(), []);
    conversation.forget();
    conversation.ask("lunch").await.unwrap().finish().await;
    assert_eq!(program.asked(), 3);
}

#[tokio::test]
async fn without_its_memory_no_turn_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("remembered.json");
    let program = program(Arc::new(InFile::at(&path)), approve(Scope::Always), "").await;
    for (text, expected) in [
        ("", "EOF while parsing"),
        ("{\"v\":1,\"next\":1,\"answers\":[],\"more\":1}", "unknown field `more`"),
        ("{\"v\":2,\"next\":1,\"answers\":[]}", "its version is 2, and this program knows 1"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = program.app.ask("hi").await.err().unwrap().to_string();
        assert!(error.contains(expected) && error.contains("remembered.json"), "{text}: {error}");
    }
    assert_eq!(program.asked(), 0);
}

fn remembered(tool: &str, decision: Decision) -> Remembered {
    serde_json::from_value(json!({
        "decision": decision, "scope": "always", "tool": tool, "fingerprint": "f", "arguments_hash": "h",
    }))
    .unwrap()
}

fn check_memory(memory: &dyn Memory) {
    let said = || -> Vec<(u64, String, Decision)> {
        let kept = memory.all().unwrap().into_iter();
        kept.map(|kept| (kept.number, kept.answer.tool.into_string(), kept.answer.decision)).collect()
    };
    memory.keep(remembered("a.b", Decision::Approve), 10).unwrap();
    memory.keep(remembered("c.d", Decision::Approve), 20).unwrap();
    memory.keep(remembered("a.b", Decision::Deny), 30).unwrap();
    assert_eq!(
        said(),
        [(2, "c.d".into(), Decision::Approve), (3, "a.b".into(), Decision::Deny)],
        "the last word"
    );
    assert_eq!(memory.forget(1).unwrap(), None);
    assert_eq!(memory.forget(3).unwrap().unwrap().at_ms, 30);
    memory.keep(remembered("a.b", Decision::Approve), 40).unwrap();
    assert_eq!(said()[1].0, 4, "numbers are not used again");
}

#[test]
fn memories_keep_the_last_word_and_take_it_back() {
    check_memory(&InMemory::default());
    let folder = tempfile::tempdir().unwrap();
    check_memory(&InFile::at(folder.path().join("remembered.json")));
}

// R: R2
#[test]
fn no_more_than_the_limit_is_kept() {
    let memory = InMemory::default();
    for number in 0..REMEMBERED_MAX + 2 {
        memory.keep(remembered(&format!("a.b{number}"), Decision::Approve), 0).unwrap();
    }
    let kept = memory.all().unwrap();
    assert_eq!((kept.len(), kept[0].answer.tool.as_str()), (REMEMBERED_MAX, "a.b2"), "the oldest go");
}

// R: R4
#[cfg(unix)]
#[test]
fn the_file_is_for_its_owner_only_and_two_programs_lose_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("remembered.json");
    std::thread::scope(|scope| {
        for program in 0..4 {
            let path = path.clone();
            scope.spawn(move || {
                let memory = InFile::at(path);
                for number in 0..5 {
                    memory.keep(remembered(&format!("p{program}.n{number}"), Decision::Approve), 0).unwrap();
                }
            });
        }
    });
    assert_eq!(InFile::at(&path).all().unwrap().len(), 20);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let error = InFile::at(folder.path()).all().unwrap_err();
    assert!(matches!(error, MemoryError::File { .. }), "{error}");
}

// R: A2, R3
#[tokio::test]
async fn what_one_user_has_said_holds_for_no_other() {
    let program = program_with(|as_it_is| as_it_is, approve(Scope::Always), "").await;
    let ask = async |user: Option<&str>| {
        let request = TurnRequest {
            input: "lunch, please".into(),
            user: user.map(Into::into),
            ..TurnRequest::default()
        };
        program.app.start(request).await.unwrap().finish().await;
        program.asked()
    };
    assert_eq!((ask(Some("ann")).await, ask(Some("ann")).await), (1, 1));
    assert_eq!((ask(Some("bob")).await, ask(Some("bob")).await), (2, 2));
    assert_eq!((ask(None).await, ask(None).await), (3, 3));
    assert_eq!(program.app.memory().all().unwrap().len(), 1);
}
