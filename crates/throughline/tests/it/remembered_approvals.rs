//! Remembered approvals: the calls that ask again, and the content of the file.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use throughline::approval_store::{
    ApprovalStore, ApprovalStoreError, FileApprovalStore, InMemoryApprovalStore, STORED_APPROVALS_MAX,
};
use throughline::engine::{ApprovalDecision, ApprovalScope, RememberRequest, RememberedDecision};
use throughline::tools::{Effect, tool};
use throughline::wire::Dialect;
use throughline::{ApprovalResponse, CallStatus, Throughline, TurnRequest, Upstream};
use throughline_testkit as testkit;

#[derive(Deserialize, JsonSchema)]
struct Entry {
    title: String,
}

/// A program whose model calls the calendar in each turn, and in which questions to a person are answered and
/// counted.
struct Program {
    app: Throughline,
    asked: Arc<AtomicUsize>,
    _server: testkit::FakeUpstreamHandle,
}

async fn program(memory: Arc<dyn ApprovalStore>, answer: ApprovalResponse, description: &str) -> Program {
    program_with(|builder| builder.approval_store(memory), answer, description).await
}

async fn program_with(
    memory: impl FnOnce(throughline::ThroughlineBuilder) -> throughline::ThroughlineBuilder,
    answer: ApprovalResponse,
    description: &str,
) -> Program {
    let turn = || {
        [
            testkit::ModelScript::new().call("calendar_add", json!({"title": "lunch"})),
            testkit::ModelScript::new().say("Done."),
        ]
    };
    let server =
        testkit::FakeUpstream::start(testkit::ScriptQueue::new((0..6).flat_map(|_| turn()))).await.unwrap();
    let upstream =
        Upstream::new("a", Dialect::OpenaiChat, &server.base_url(testkit::FakeDialect::OpenaiChat)).unwrap();
    let add =
        tool("calendar.add", description, |entry: Entry, _| async move { entry.title }).effect(Effect::Write);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let app = memory(Throughline::builder())
        .upstream(upstream.proxy(throughline::UpstreamProxy::Off))
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

fn approve(scope: ApprovalScope) -> ApprovalResponse {
    ApprovalResponse::approve().remember(RememberRequest::exactly(scope))
}

#[tokio::test]
async fn always_approval_applies_in_other_programs_until_removed() {
    let folder = tempfile::tempdir().unwrap();
    let file = || Arc::new(FileApprovalStore::at(folder.path().join("data/remembered.json")));
    let first = program(file(), approve(ApprovalScope::Always), "Adds an entry").await;
    assert_eq!((first.ask().await, first.asked()), (CallStatus::Success, 1));
    assert_eq!((first.ask().await, first.asked()), (CallStatus::Success, 1));
    assert_eq!(first.app.approval_store_error(), None);

    let second = program(file(), ApprovalResponse::deny("no"), "Adds an entry").await;
    assert_eq!((second.ask().await, second.asked()), (CallStatus::Success, 0));

    let redefined = program(file(), ApprovalResponse::deny("no"), "Adds an entry, and tells everybody").await;
    assert_eq!(
        (redefined.ask().await, redefined.asked()),
        (CallStatus::Denied, 1),
        "another definition asks"
    );

    let number = file().all().unwrap()[0].number;
    assert_eq!(file().remove(number).unwrap().unwrap().answer.tool.as_str(), "calendar.add");
    assert_eq!((second.ask().await, second.asked()), (CallStatus::Denied, 1), "taken back is asked");
}

#[tokio::test]
async fn always_denial_is_stored_and_applied() {
    let memory = Arc::new(InMemoryApprovalStore::default());
    let answer = ApprovalResponse::deny("never lunch").remember(RememberRequest::any(ApprovalScope::Always));
    let program = program(memory.clone(), answer, "").await;
    assert_eq!((program.ask().await, program.asked()), (CallStatus::Denied, 1));
    assert_eq!((program.ask().await, program.asked()), (CallStatus::Denied, 1));
    assert_eq!(memory.all().unwrap()[0].answer.decision, ApprovalDecision::Deny);
}

#[tokio::test]
async fn conversation_approval_does_not_apply_elsewhere() {
    let memory = Arc::new(InMemoryApprovalStore::default());
    let program = program(memory.clone(), approve(ApprovalScope::Conversation), "").await;
    let mut conversation = program.app.conversation();
    conversation.ask("lunch").await.unwrap().finish().await;
    conversation.ask("lunch").await.unwrap().finish().await;
    assert_eq!((program.asked(), conversation.remembered().len()), (1, 1));
    let mut other = program.app.conversation();
    other.ask("lunch").await.unwrap().finish().await;
    assert_eq!((program.asked(), other.remembered().len()), (2, 1));
    assert_eq!(memory.all().unwrap(), []);
    conversation.forget_approvals();
    conversation.ask("lunch").await.unwrap().finish().await;
    assert_eq!(program.asked(), 3);
}

#[tokio::test]
async fn unreadable_approval_store_prevents_the_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("remembered.json");
    let program = program(Arc::new(FileApprovalStore::at(&path)), approve(ApprovalScope::Always), "").await;
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

fn remembered(tool: &str, decision: ApprovalDecision) -> RememberedDecision {
    serde_json::from_value(json!({
        "decision": decision, "scope": "always", "tool": tool, "fingerprint": "f", "arguments_hash": "h",
    }))
    .unwrap()
}

fn check_memory(memory: &dyn ApprovalStore) {
    let said = || -> Vec<(u64, String, ApprovalDecision)> {
        let kept = memory.all().unwrap().into_iter();
        kept.map(|kept| (kept.number, kept.answer.tool.into_string(), kept.answer.decision)).collect()
    };
    memory.save(remembered("a.b", ApprovalDecision::Approve), 10).unwrap();
    memory.save(remembered("c.d", ApprovalDecision::Approve), 20).unwrap();
    memory.save(remembered("a.b", ApprovalDecision::Deny), 30).unwrap();
    assert_eq!(
        said(),
        [(2, "c.d".into(), ApprovalDecision::Approve), (3, "a.b".into(), ApprovalDecision::Deny)],
        "the last word"
    );
    assert_eq!(memory.remove(1).unwrap(), None);
    assert_eq!(memory.remove(3).unwrap().unwrap().at_ms, 30);
    memory.save(remembered("a.b", ApprovalDecision::Approve), 40).unwrap();
    assert_eq!(said()[1].0, 4, "numbers are not used again");
}

#[test]
fn approval_stores_keep_the_latest_decision_until_removed() {
    check_memory(&InMemoryApprovalStore::default());
    let folder = tempfile::tempdir().unwrap();
    check_memory(&FileApprovalStore::at(folder.path().join("remembered.json")));
}

#[test]
fn stored_approvals_are_limited_to_the_newest() {
    let memory = InMemoryApprovalStore::default();
    for number in 0..STORED_APPROVALS_MAX + 2 {
        memory.save(remembered(&format!("a.b{number}"), ApprovalDecision::Approve), 0).unwrap();
    }
    let kept = memory.all().unwrap();
    assert_eq!((kept.len(), kept[0].answer.tool.as_str()), (STORED_APPROVALS_MAX, "a.b2"), "the oldest go");
}

#[cfg(unix)]
#[test]
fn approval_file_is_private_and_keeps_concurrent_saves() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("remembered.json");
    std::thread::scope(|scope| {
        for program in 0..4 {
            let path = path.clone();
            scope.spawn(move || {
                let memory = FileApprovalStore::at(path);
                for number in 0..5 {
                    memory
                        .save(remembered(&format!("p{program}.n{number}"), ApprovalDecision::Approve), 0)
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(FileApprovalStore::at(&path).all().unwrap().len(), 20);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let error = FileApprovalStore::at(folder.path()).all().unwrap_err();
    assert!(matches!(error, ApprovalStoreError::File { .. }), "{error}");
}

#[tokio::test]
async fn remembered_approvals_are_per_user() {
    let program = program_with(|as_it_is| as_it_is, approve(ApprovalScope::Always), "").await;
    let ask = async |user: Option<&str>| {
        let request = TurnRequest {
            input: "lunch, please".into(),
            user: user.map(Into::into),
            ..TurnRequest::default()
        };
        program.app.start_turn(request).await.unwrap().finish().await;
        program.asked()
    };
    assert_eq!((ask(Some("ann")).await, ask(Some("ann")).await), (1, 1));
    assert_eq!((ask(Some("bob")).await, ask(Some("bob")).await), (2, 2));
    assert_eq!((ask(None).await, ask(None).await), (3, 3));
    assert_eq!(program.app.approval_store().all().unwrap().len(), 1);
}
