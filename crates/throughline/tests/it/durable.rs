//! Turns that outlive their process: the driver dies at every event, another process takes over, and the
//! message continues seamlessly.

use crate::support::{self, check_promises, serve, statuses};
use async_trait::async_trait;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use throughline::engine::{ApprovalId, ClientAnswer, ClientStatus, EventSeq, TurnId, WaitReason};
use throughline::store::{
    AppendAck, Log, LogBatch, LogError, LogRecord, LogTail, MemoryLog, MergeFn, OwnerEpoch,
    ProviderStateRecord, TurnClaim,
};
use throughline::tools::{Effect, NoArguments, Tool, tool};
use throughline::wire::{self, CallId, Dialect};
use throughline::{
    ApprovalMode, ApprovalOutcome, ApprovalResponse, AssistantMessage, CallStatus, ClientAnswerResult,
    ClientEvent, ClientToolSpec, Error, Event, EventKind, StoredTurn, Throughline, ThroughlineBuilder,
    TurnHooks, TurnRequest, TurnResult, TurnStatus, TurnWait, Upstream,
};
use throughline_testkit::{self as testkit, FakeUpstreamHandle, HttpAnswer, ModelScript, ParsedRequest};
use tokio::runtime::{self, Runtime};
use tokio::sync::{Notify, mpsc};

/// A log whose process dies after a given event: it accepts everything up to that event, and then blocks
/// forever.
struct Mortal {
    inner: MemoryLog,
    dies_behind: u64,
    dead: Notify,
}

impl Mortal {
    fn new(inner: MemoryLog, dies_behind: u64) -> Arc<Self> {
        Arc::new(Self { inner, dies_behind, dead: Notify::new() })
    }
}

#[async_trait]
impl Log for Mortal {
    async fn claim(&self, turn: &str) -> Result<TurnClaim, LogError> {
        self.inner.claim(turn).await
    }

    async fn append(
        &self,
        turn: &str,
        epoch: OwnerEpoch,
        mut batch: LogBatch,
    ) -> Result<AppendAck, LogError> {
        if batch.records.last().is_none_or(|last| last.seq < self.dies_behind) {
            return self.inner.append(turn, epoch, batch).await;
        }
        batch.records.retain(|record| record.seq <= self.dies_behind);
        self.inner.append(turn, epoch, batch).await?;
        self.dead.notify_one();
        std::future::pending().await
    }

    async fn read(&self, turn: &str, after: u64, records_max: usize) -> Result<Vec<LogRecord>, LogError> {
        self.inner.read(turn, after, records_max).await
    }

    async fn read_provider_state(&self, turn: &str) -> Result<Vec<ProviderStateRecord>, LogError> {
        self.inner.read_provider_state(turn).await
    }

    async fn tail(&self, turn: &str, after: u64) -> Result<Box<dyn LogTail>, LogError> {
        self.inner.tail(turn, after).await
    }

    async fn open_turns(&self) -> Result<Vec<String>, LogError> {
        self.inner.open_turns().await
    }

    async fn compact(&self, turn: &str, merge: MergeFn) -> Result<(), LogError> {
        self.inner.compact(turn, merge).await
    }

    async fn delete(&self, turn: &str) -> Result<(), LogError> {
        self.inner.delete(turn).await
    }
}

/// Real runs of each tool, over all processes.
type Runs = Arc<Mutex<BTreeMap<&'static str, u32>>>;

fn tools(runs: &Runs) -> Vec<Arc<dyn Tool>> {
    let counted = |name: &'static str, effect| {
        let runs = runs.clone();
        let body = move |_: NoArguments, _| {
            *runs.lock().unwrap().entry(name).or_default() += 1;
            async move { format!("{name} done") }
        };
        Arc::new(tool(name, "counts", body).effect(effect).agent_callable()) as Arc<dyn Tool>
    };
    vec![
        counted("note.read", Effect::Read),
        counted("note.put", Effect::Idempotent),
        counted("note.write", Effect::Write),
    ]
}

fn app(server: &FakeUpstreamHandle, log: Arc<dyn Log>, runs: &Runs) -> ThroughlineBuilder {
    support::builder(server, CHAT).tools(tools(runs)).log(log)
}

const CHAT: (Dialect, testkit::FakeDialect) = (Dialect::OpenaiChat, testkit::FakeDialect::OpenaiChat);

/// Answers by the content of the request, so that a request that is repeated after a crash gets the same
/// answer.
fn three_steps(seen: &ParsedRequest) -> ModelScript {
    match seen.answered_calls().len() {
        0 => ModelScript::new()
            .say("Let me ")
            .say("see.")
            .call("note_read", json!({}))
            .call("note_write", json!({})),
        2 => ModelScript::new().say("And again.").call("note_put", json!({})),
        _ => ModelScript::new().say("All ").say("done."),
    }
}

const ALL_OF_IT: &str = "Let me see.\n\nAnd again.\n\nAll done.";

fn request(id: &str) -> TurnRequest {
    TurnRequest { input: "Write it down.".into(), turn_id: Some(TurnId::new(id)), ..TurnRequest::default() }
}

/// A runtime that stands for a process: dropping it ends everything that runs in it, at any point.
fn process() -> Runtime {
    runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The stored form of a turn, after a way through JSON.
fn kept(stored: &StoredTurn) -> StoredTurn {
    serde_json::from_str(&serde_json::to_string(stored).unwrap()).unwrap()
}

/// Starts a turn in a process that dies after a given event.
fn dies(
    build: impl Fn(Arc<dyn Log>) -> ThroughlineBuilder,
    log: &MemoryLog,
    request: TurnRequest,
    behind: u64,
) -> StoredTurn {
    let mortal = Mortal::new(log.clone(), behind);
    process().block_on(async {
        let app = build(mortal.clone()).build().unwrap();
        let prepared = app.prepare(request).await.unwrap();
        let stored = kept(prepared.stored());
        let turn = app.start_prepared(prepared, TurnHooks::default()).await.unwrap();
        tokio::select! {
            () = mortal.dead.notified() => {}
            _ = turn.finish() => {}
        }
        stored
    })
}

/// Takes a turn over in a process that dies, too: `further` events later.
fn dies_again(
    build: impl Fn(Arc<dyn Log>) -> ThroughlineBuilder,
    log: &MemoryLog,
    stored: &StoredTurn,
    further: u64,
) {
    let before = process().block_on(events_of(log, stored)).len() as u64;
    let mortal = Mortal::new(log.clone(), before + further);
    process().block_on(async {
        let app = build(mortal.clone()).build().unwrap();
        let turn = app.resume(stored.clone(), Vec::new(), TurnHooks::default()).await.unwrap();
        tokio::select! {
            () = mortal.dead.notified() => {}
            _ = turn.finish() => {}
        }
    });
}

/// Takes a turn over in a process that lives.
async fn lives(app: &Throughline, stored: &StoredTurn) -> (AssistantMessage, TurnResult) {
    let (sender, mut ended) = mpsc::unbounded_channel();
    let hooks = TurnHooks::default().on_end(move |ended| sender.send(ended).unwrap());
    let turn = app.resume(stored.clone(), Vec::new(), hooks).await.unwrap();
    let message = turn.finish().await;
    (message, ended.recv().await.unwrap())
}

async fn events_of(log: &MemoryLog, stored: &StoredTurn) -> Vec<Event> {
    let Ok(records) = log.read(stored.turn_id().as_str(), 0, usize::MAX).await else { return Vec::new() };
    records.iter().map(|record| serde_json::from_slice(&record.payload).unwrap()).collect()
}

#[test]
fn turn_completes_after_a_crash_at_any_event() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve(three_steps));
    let whole = MemoryLog::default();
    let stored = dies(|log| app(&server, log, &Runs::default()), &whole, request("turn_whole"), u64::MAX);
    let last = runtime.block_on(events_of(&whole, &stored)).len() as u64;
    assert!(last > 25, "{last} events are a turn of three steps");
    for behind in 0..last {
        let (log, runs) = (MemoryLog::default(), Runs::default());
        let build = |log| app(&server, log, &runs);
        let stored = dies(build, &log, request("turn_cut"), behind);
        let (message, ended) = process().block_on(async {
            let app = build(Arc::new(log.clone())).build().unwrap();
            lives(&app, &stored).await
        });
        let events = runtime.block_on(events_of(&log, &stored));
        check_promises(&events);
        let context = format!("behind event {behind}: {message:#?}");
        assert_eq!(message, AssistantMessage::from_events(&events), "{context}");
        assert_eq!(message.status, Some(TurnStatus::Completed), "{context}");
        assert_eq!(message.text(), ALL_OF_IT, "{context}");
        let runs = runs.lock().unwrap().clone();
        assert!(runs.get("note.write").is_none_or(|runs| *runs <= 1), "{runs:?} {context}");
        let write = message.calls().filter(|call| call.seen_by_model == Some(true)).nth(1).unwrap();
        match write.status {
            Some(CallStatus::Success) => assert_eq!(runs["note.write"], 1, "{context}"),
            // Reported as unknown: it had been started, and its effects are unknown.
            Some(CallStatus::Unknown) => {}
            other => panic!("{other:?} {context}"),
        }
        let adds = stored.added_messages(&events, &[], None);
        assert_eq!((ended.status, &ended.added_messages), (message.status, &adds), "{context}");
        assert_eq!(ended.text, ALL_OF_IT, "{context}");
        assert_eq!(adds.len(), 4, "the question and three steps: {adds:#?} {context}");
    }
    assert_eq!(server.violations(), []);
}

#[test]
fn interrupted_reply_is_superseded_and_requested_again() {
    let runtime = Runtime::new().unwrap();
    let server = runtime
        .block_on(serve(|_: &ParsedRequest| ModelScript::new().think("Hm.").say("Once ").say("only.")));
    let (log, runs) = (MemoryLog::default(), Runs::default());
    let build = |log| app(&server, log, &runs);
    let whole = MemoryLog::default();
    let stored = dies(build, &whole, request("turn_whole"), u64::MAX);
    let events = runtime.block_on(events_of(&whole, &stored));
    let shown = events.iter().find(|event| matches!(event.kind, EventKind::ContentDelta { .. })).unwrap();
    let stored = dies(build, &log, request("turn_cut"), shown.seq.0);
    let (message, ended) =
        process().block_on(async { lives(&build(Arc::new(log.clone())).build().unwrap(), &stored).await });
    assert_eq!(message.text(), "Once only.");
    let events = runtime.block_on(events_of(&log, &stored));
    let taken_back = events.iter().filter(|event| matches!(event.kind, EventKind::BlockSuperseded { .. }));
    assert_eq!(taken_back.count(), 2, "thinking and text");
    let [wire::Message::User(_), wire::Message::Step(step)] = &ended.added_messages[..] else {
        panic!("{ended:?}")
    };
    assert_eq!((step.text.as_str(), step.thinking.as_str()), ("Once only.", "Hm."));
}

#[test]
fn turn_that_crashes_its_process_is_interrupted_at_a_limit() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve(three_steps));
    let (log, runs) = (MemoryLog::default(), Runs::default());
    let build = |log| app(&server, log, &runs);
    let stored = dies(build, &log, request("turn_heavy"), 3);
    for _ in 0..stored.setup.limits.takeovers_max {
        dies_again(build, &log, &stored, 2);
    }
    let (message, _) =
        process().block_on(async { lives(&build(Arc::new(log.clone())).build().unwrap(), &stored).await });
    assert_eq!(stored.setup.limits.takeovers_max, 3);
    assert_eq!(message.status, Some(TurnStatus::Interrupted), "{message:#?}");
    check_promises(&runtime.block_on(events_of(&log, &stored)));
}

#[test]
fn on_interrupted_end_ends_the_turn_without_a_request() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve(three_steps));
    let (log, runs) = (MemoryLog::default(), Runs::default());
    let build = |log| app(&server, log, &runs);
    let mut stored = dies(build, &log, request("turn_end"), 5);
    stored.setup.on_interrupted = throughline::engine::OnInterrupted::End;
    let asked = server.requests().len();
    let (message, ended) =
        process().block_on(async { lives(&build(Arc::new(log.clone())).build().unwrap(), &stored).await });
    assert_eq!(message.status, Some(TurnStatus::Interrupted));
    assert_eq!(ended.status, message.status);
    assert_eq!(server.requests().len(), asked, "no model is asked");
}

#[test]
fn resumed_turn_with_a_removed_upstream_ends_with_an_error() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve(three_steps));
    let (log, runs) = (MemoryLog::default(), Runs::default());
    let stored = dies(|log| app(&server, log, &runs), &log, request("turn_gone"), 3);
    let (message, _) = process().block_on(async {
        let elsewhere = Upstream::new("other", CHAT.0, &server.base_url(CHAT.1)).unwrap();
        let app = Throughline::builder().upstream(elsewhere).model("other/m").log(Arc::new(log.clone()));
        lives(&app.build().unwrap(), &stored).await
    });
    assert_eq!(message.status, Some(TurnStatus::Error));
    let fault = message.error.unwrap();
    assert!(fault.why.contains("was removed from the configuration"), "{fault:?}");
    assert!(!fault.retryable, "{fault:?}");
}

/// Reads a turn until `is_there` and gives what it was looking for.
async fn until<T>(
    turn: &mut throughline::TurnHandle,
    is_there: impl Fn(&AssistantMessage) -> Option<T>,
) -> T {
    loop {
        turn.next().await.expect("it comes before the end");
        if let Some(found) = is_there(turn.message()) {
            return found;
        }
    }
}

fn open_question(message: &AssistantMessage) -> Option<ApprovalId> {
    message.calls().find_map(|call| call.approval.as_ref()).map(|approval| approval.approval_id.clone())
}

#[test]
fn pending_approval_is_resolved_once_after_a_restart() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve(three_steps));
    let (log, runs) = (MemoryLog::default(), Runs::default());
    let build = |log| app(&server, log, &runs).approval(ApprovalMode::Ask);
    let whole = MemoryLog::default();
    let turn = TurnRequest { approval: Some(ApprovalMode::Ask), ..request("turn_ask") };
    // The write needs approval: the first process would wait without end, so it is ended when the question is
    // in the log.
    let asks = |events: &[Event]| {
        events
            .iter()
            .find(|event| matches!(event.kind, EventKind::ApprovalRequest { .. }))
            .map(|event| event.seq.0)
    };
    let seq = process().block_on(async {
        let app = build(Arc::new(whole.clone())).build().unwrap();
        let mut turn = app.start_turn(turn.clone()).await.unwrap();
        until(&mut turn, open_question).await;
        turn.message().seq.0
    });
    let stored = dies(build, &log, turn, seq);
    assert_eq!(asks(&runtime.block_on(events_of(&log, &stored))), Some(seq));
    let message = process().block_on(async {
        let app = build(Arc::new(log.clone())).build().unwrap();
        let mut turn = app.resume(stored.clone(), Vec::new(), TurnHooks::default()).await.unwrap();
        let control = turn.control();
        let question = until(&mut turn, open_question).await;
        assert_eq!(
            control.decide(question.clone(), ApprovalResponse::approve()).await,
            ApprovalOutcome::Resolved
        );
        assert_eq!(
            control.decide(question.clone(), ApprovalResponse::approve()).await,
            ApprovalOutcome::AlreadyResolved
        );
        assert_eq!(
            control.decide(question.clone(), ApprovalResponse::deny("no")).await,
            ApprovalOutcome::Conflict
        );
        let first = question;
        let question = until(&mut turn, |message| open_question(message).filter(|open| *open != first)).await;
        let calling = control.decide(question.clone(), ApprovalResponse::approve());
        let other = control.decide(question, ApprovalResponse::deny("no"));
        let (one, two) = tokio::join!(calling, other);
        assert_eq!((one, two), (ApprovalOutcome::Resolved, ApprovalOutcome::Conflict), "of two, the first");
        turn.finish().await
    });
    assert_eq!(message.text(), ALL_OF_IT, "{message:#?}");
    assert_eq!(runs.lock().unwrap()["note.write"], 1);
}

fn press(description: &str) -> Vec<ClientToolSpec> {
    let mut press = ClientToolSpec::new("client.press");
    press.description = description.into();
    vec![press]
}

fn pressed() -> ClientAnswer {
    ClientAnswer { status: ClientStatus::Success, output: json!("ok"), applied: None }
}

/// A model that calls `press` once, and then answers with this text.
async fn serve_press(end: &str) -> FakeUpstreamHandle {
    let scripts = [ModelScript::new().call("client_press", json!({})), ModelScript::new().say(end)];
    support::serve(testkit::ScriptQueue::new(scripts)).await
}

/// Starts a turn in a process that dies once a person is asked about the call of a page's tool, or the page
/// has received the call.
fn dies_pressing(build: impl Fn() -> ThroughlineBuilder, description: &str) -> StoredTurn {
    process().block_on(async {
        let app = build().build().unwrap();
        let mut page = app.connect_client("page", None, press(description)).unwrap();
        let prepared = app.prepare(request("turn_press")).await.unwrap();
        let stored = kept(prepared.stored());
        let mut turn = app.start_prepared(prepared, TurnHooks::default()).await.unwrap();
        tokio::select! {
            _ = until(&mut turn, open_question) => {}
            call = page.next() => assert!(matches!(call, Some(ClientEvent::Call(_))), "{call:?}"),
        }
        stored
    })
}

// No client is connected yet when the next process takes the turn over, and perhaps none when a person
// answers. A client that reconnects with another tool does not receive the call that was approved for the
// first.
#[test]
fn client_call_approved_after_a_restart_is_offered_once() {
    for (comes_back_first, description) in [(true, ""), (false, ""), (false, "Fires a rocket")] {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(serve_press("Pressed."));
        let log = MemoryLog::default();
        // A call that waits for the client continues because the client is back, not because time has passed.
        let build = || {
            let builder = support::builder(&server, CHAT).client_grace(Duration::MAX);
            builder.log(Arc::new(log.clone())).approval(ApprovalMode::Ask)
        };
        let stored = dies_pressing(build, "");
        let message = process().block_on(async {
            let app = build().build().unwrap();
            let mut turn = app.resume(stored, Vec::new(), TurnHooks::default()).await.unwrap();
            let question = until(&mut turn, open_question).await;
            let connect = || app.connect_client("page", None, press(description)).unwrap();
            let early = comes_back_first.then(connect);
            let control = turn.control();
            let approved = control.decide(question.clone(), ApprovalResponse::approve()).await;
            assert_eq!(approved, ApprovalOutcome::Resolved);
            let mut page = early.unwrap_or_else(connect);
            if !description.is_empty() {
                let is_other =
                    |message: &AssistantMessage| open_question(message).filter(|open| *open != question);
                let other = until(&mut turn, is_other).await;
                let _ = control.decide(other, ApprovalResponse::approve()).await;
            }
            let Some(ClientEvent::Call(call)) = page.next().await else { panic!("a call") };
            assert_eq!(page.answer(&call, pressed()).await, ClientAnswerResult::Accepted);
            turn.finish().await
        });
        assert_eq!(message.text(), "Pressed.", "{message:#?}");
        assert_eq!(message.calls().next().unwrap().attempts, 1, "it started once");
    }
}

// Its page is closed for good: the call does not wait forever. The clock of the dead process may have been
// ahead.
#[test]
fn absent_client_is_awaited_for_its_grace_after_a_restart() {
    const GRACE: Duration = Duration::from_secs(60);
    for ahead_ms in [0, 3_600_000] {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(serve_press("Nobody."));
        let build = |log: &MemoryLog| {
            support::builder(&server, CHAT).log(Arc::new(log.clone())).approval(ApprovalMode::Ask)
        };
        let log = MemoryLog::default();
        let stored = dies_pressing(|| build(&log), "");
        let message = process().block_on(async {
            let log = with_another_clock(&log, stored.start.turn_id.as_str(), ahead_ms).await;
            let app = build(&log).build().unwrap();
            let resumed_at = tokio::time::Instant::now();
            let mut turn = app.resume(stored, Vec::new(), TurnHooks::default()).await.unwrap();
            let question = until(&mut turn, open_question).await;
            // A person who changes the arguments does not have to wait.
            let control = turn.control();
            let mut edit = ApprovalResponse::approve();
            edit.arguments = Some(json!({"hard": true}));
            let edited = control.decide(question.clone(), edit).await;
            assert!(matches!(edited, ApprovalOutcome::Invalid { .. }), "{edited:?}");
            let _ = control.decide(question, ApprovalResponse::approve()).await;
            tokio::time::pause();
            let approved_at = tokio::time::Instant::now();
            until(&mut turn, |message| message.waiting.as_ref()?.until).await;
            assert!(approved_at.elapsed() < GRACE / 2, "{:?}", approved_at.elapsed());
            assert_eq!(turn.message().waiting.as_ref().unwrap().reason, WaitReason::Client);
            assert_eq!(
                control.next_wait(None).await,
                Some(Some(TurnWait::Client)),
                "nothing of it runs here"
            );
            until(&mut turn, |message| message.calls().next()?.error.clone()).await;
            assert!(resumed_at.elapsed() >= GRACE, "it was waited for");
            tokio::time::resume();
            turn.finish().await
        });
        let card = message.calls().next().unwrap();
        let code = card.error.as_ref().map(|error| error.code.as_str());
        assert_eq!((code, card.attempts, message.text().as_str()), (Some("no_viewer"), 0, "Nobody."));
    }
}

// It may have been run, so it stays offered; a person has allowed that definition and no other.
#[test]
fn resumed_client_call_requires_the_same_tool_definition() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve_press("Pressed."));
    let log = MemoryLog::default();
    let build = || support::builder(&server, CHAT).log(Arc::new(log.clone()));
    let stored = dies_pressing(build, "Presses");
    let message = process().block_on(async {
        let app = build().build().unwrap();
        let turn = app.resume(stored, Vec::new(), TurnHooks::default()).await.unwrap();
        let mut page = app.connect_client("page", None, press("Fires a rocket")).unwrap();
        // Long enough for the turn to be taken over and the call to be offered again.
        let other = tokio::time::timeout(Duration::from_millis(100), page.next()).await;
        assert!(other.is_err(), "it was allowed to press: {other:?}");
        page.declare(press("Presses")).unwrap();
        let Some(ClientEvent::Call(call)) = page.next().await else { panic!("a call") };
        assert_eq!(page.answer(&call, pressed()).await, ClientAnswerResult::Accepted);
        turn.finish().await
    });
    assert_eq!(message.text(), "Pressed.", "{message:#?}");
}

/// A log written by a process whose clock was this many milliseconds ahead of ours.
async fn with_another_clock(log: &MemoryLog, turn: &str, ahead_ms: i64) -> MemoryLog {
    fn shift(value: &mut serde_json::Value, by: i64) {
        match value {
            serde_json::Value::Object(fields) => fields.values_mut().for_each(|value| shift(value, by)),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|value| shift(value, by)),
            // Times since 1970 are the only numbers as large.
            serde_json::Value::Number(number) => {
                if let Some(at) = number.as_i64().filter(|at| *at > 1_000_000_000_000) {
                    *value = json!(at + by);
                }
            }
            _ => {}
        }
    }
    let shifted = MemoryLog::default();
    let epoch = shifted.claim(turn).await.unwrap().epoch;
    let mut batch = LogBatch {
        provider_state: log.read_provider_state(turn).await.unwrap_or_default(),
        ..LogBatch::default()
    };
    for record in log.read(turn, 0, usize::MAX).await.unwrap_or_default() {
        let mut event: serde_json::Value = serde_json::from_slice(&record.payload).unwrap();
        shift(&mut event, ahead_ms);
        let payload = serde_json::to_vec(&event).unwrap();
        batch.records.push(LogRecord::new(record.seq, record.kind, record.durability, payload));
    }
    shifted.append(turn, epoch, batch).await.unwrap();
    shifted
}

#[test]
fn turn_survives_a_clock_jump_between_processes() {
    const HOUR_MS: i64 = 3_600_000;
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve(three_steps));
    for (behind, ahead_ms) in
        [2, 6, 11, 14, 17, 21, 25].into_iter().flat_map(|n| [(n, HOUR_MS), (n, -HOUR_MS)])
    {
        let (log, runs) = (MemoryLog::default(), Runs::default());
        let build = |log| app(&server, log, &runs);
        let stored = dies(build, &log, request("turn_jump"), behind);
        let log = runtime.block_on(with_another_clock(&log, "turn_jump", ahead_ms));
        let (message, _) = process().block_on(async {
            let app = build(Arc::new(log.clone())).build().unwrap();
            lives(&app, &stored).await
        });
        let events = runtime.block_on(events_of(&log, &stored));
        check_promises(&events);
        let context = format!("behind event {behind}, {ahead_ms} ms ahead: {message:#?}");
        // A clock that was ahead makes the turn look young; one that was late makes it look old, which may be too old.
        assert_eq!(message.status, Some(TurnStatus::Completed), "{context}");
        assert_eq!(message.text(), ALL_OF_IT, "{context}");
        assert!(runs.lock().unwrap().get("note.write").is_none_or(|runs| *runs <= 1), "{context}");
        let times: Vec<_> = events.iter().map(|event| event.timestamp).collect();
        assert!(times.is_sorted(), "time goes on: {times:?} {context}");
        let stats = message.stats.as_ref().unwrap();
        assert!(stats.wall_ms <= 2 * HOUR_MS as u64, "{context}");
    }
}

// An upstream states times by a clock that both processes share, regardless of the log's.
#[test]
fn retry_after_date_is_correct_after_a_clock_jump() {
    const AHEAD_MS: i64 = 3_600_000;
    let runtime = Runtime::new().unwrap();
    let in_20_s = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(20);
    let date = in_20_s.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let server = runtime.block_on(serve(move |_: &ParsedRequest| {
        let headers = [("retry-after".to_owned(), date.clone())].into();
        ModelScript { http: Some(HttpAnswer { status: 429, headers, body: None }), ..ModelScript::new() }
    }));
    let (log, runs) = (MemoryLog::default(), Runs::default());
    let build = |log| app(&server, log, &runs);
    let stored = dies(build, &log, request("turn_date"), 1);
    let log = runtime.block_on(with_another_clock(&log, "turn_date", AHEAD_MS));
    process().block_on(async {
        let app = build(Arc::new(log.clone())).build().unwrap();
        let mut turn = app.resume(stored.clone(), Vec::new(), TurnHooks::default()).await.unwrap();
        let until_ms = until(&mut turn, |message| message.waiting.as_ref()?.until).await;
        let now_ms = jiff::Timestamp::now().as_millisecond() + AHEAD_MS;
        assert!((5_000..=21_000).contains(&(until_ms - now_ms)), "{}", until_ms - now_ms);
    });
}

fn weather() -> ClientToolSpec {
    ClientToolSpec { description: "Weather".into(), ..ClientToolSpec::new("get_weather") }
}

/// Calls the requester's own tool twice and a server's once.
fn mixed(seen: &ParsedRequest) -> ModelScript {
    match seen.answered_calls().len() {
        0 => ModelScript::new()
            .call("get_weather", json!({"city": "Paris"}))
            .call("note_read", json!({}))
            .call("get_weather", json!({"city": "Rome"})),
        _ => ModelScript::new().say("Sunny in both."),
    }
}

fn waits_for_me(message: &AssistantMessage) -> Option<Vec<CallId>> {
    let own = message.calls().filter(|call| call.client_id.is_some());
    message.waits_only_for_requester().then(|| own.filter_map(|call| call.tool_id.clone()).collect())
}

fn sunny() -> ClientAnswer {
    ClientAnswer { status: ClientStatus::Success, output: json!("sunny"), applied: None }
}

#[test]
fn request_tool_calls_wait_in_parallel_and_survive_a_restart() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve(mixed));
    let (log, runs) = (MemoryLog::default(), Runs::default());
    let build = |log| app(&server, log, &runs).approval(ApprovalMode::Ask);
    let asked =
        || TurnRequest { request_tools: vec![weather()], user: Some("ada".into()), ..request("turn_own") };
    let seq = process().block_on(async {
        let app = build(Arc::new(MemoryLog::default())).build().unwrap();
        let mut turn = app.start_turn(asked()).await.unwrap();
        // No approval is needed, and serial execution does not hold the second one back.
        assert_eq!(until(&mut turn, waits_for_me).await.len(), 2);
        turn.message().seq.0
    });
    let stored = dies(build, &log, asked(), seq);
    let message = process().block_on(async {
        let app = build(Arc::new(log.clone())).build().unwrap();
        let mut turn = app.resume(stored.clone(), Vec::new(), TurnHooks::default()).await.unwrap();
        let calls = until(&mut turn, waits_for_me).await;
        let ada = Some("ada".to_owned());
        for call in &calls {
            use throughline::ClientAnswerResult::{Accepted, AlreadyClosed, WrongUser};
            let eve = Some("eve".to_owned());
            assert_eq!(app.answer_client_call(eve, call, sunny()).await, WrongUser);
            assert_eq!(app.answer_client_call(ada.clone(), call, sunny()).await, Accepted);
            assert_eq!(app.answer_client_call(ada.clone(), call, sunny()).await, AlreadyClosed);
        }
        turn.finish().await
    });
    assert_eq!(message.text(), "Sunny in both.", "{message:#?}");
    assert_eq!(statuses(&message), [CallStatus::Success; 3]);
    let offered = server.requests().pop().unwrap().tools;
    assert!(offered.iter().any(|tool| tool.name == "get_weather"), "under exactly its name: {offered:?}");
}

#[tokio::test]
async fn invalid_or_duplicate_request_tool_names_are_rejected() {
    let server = serve(mixed).await;
    let app = app(&server, Arc::new(MemoryLog::default()), &Runs::default()).build().unwrap();
    let ask = |name: &str| {
        let request_tools = vec![ClientToolSpec::new(name)];
        app.prepare(TurnRequest { request_tools, ..request("turn_x") })
    };
    assert!(matches!(ask("not good").await, Err(Error::BadToolName { .. })));
    assert!(ask("note_read").await.is_ok(), "it takes the place of ours");
    assert!(ask("note-read").await.is_ok());
    let twice = TurnRequest { request_tools: vec![weather(), weather()], ..request("turn_x") };
    assert!(matches!(app.prepare(twice).await, Err(Error::ToolNameTaken { .. })));
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn added_messages_can_be_cut_at_any_event() {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(serve(three_steps));
    let log = MemoryLog::default();
    let stored = dies(|log| app(&server, log, &Runs::default()), &log, request("turn_fork"), u64::MAX);
    let events = runtime.block_on(events_of(&log, &stored));
    let whole = stored.added_messages(&events, &[], None);
    for event in &events {
        let adds = stored.added_messages(&events, &[], Some(event.seq));
        let shown = AssistantMessage::from_events(&events[..event.seq.0 as usize]).text().replace("\n\n", "");
        let texts = adds.iter().filter_map(|message| match message {
            wire::Message::Step(step) => Some(step.text.as_str()),
            wire::Message::User(_) => None,
        });
        assert_eq!(texts.collect::<String>(), shown, "the model said what was shown at {}", event.seq.0);
        let closed = adds.len().min(whole.len()) - 1;
        assert_eq!(adds[..closed.min(1)], whole[..closed.min(1)], "closed steps are whole");
    }
    let last = events.last().map(|event| event.seq);
    assert_eq!(stored.added_messages(&events, &[], last), whole);
    assert_eq!(stored.added_messages(&events, &[], Some(EventSeq(0))).len(), 1, "the question alone");
}

/// A turn written by the first release with this format; `THROUGHLINE_BLESS=1` writes the file of the current
/// format if it is missing.
const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stored/v1.json");

#[test]
fn stored_turn_of_version_1_is_read() {
    if std::env::var_os("THROUGHLINE_BLESS").is_some() && !std::path::Path::new(STORED).exists() {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(serve(three_steps));
        let asked = TurnRequest {
            request_tools: vec![weather()],
            user: Some("ada".into()),
            conversation_id: Some("conv_1".into()),
            ..request("turn_v1")
        };
        let build = |log| app(&server, log, &Runs::default());
        let stored = dies(build, &MemoryLog::default(), asked, 1);
        std::fs::write(STORED, serde_json::to_string_pretty(&stored).unwrap() + "\n").unwrap();
    }
    let text = std::fs::read_to_string(STORED).unwrap();
    let stored: StoredTurn = serde_json::from_str(&text).unwrap();
    assert_eq!((stored.v, stored.turn_id().as_str()), (1, "turn_v1"));
    assert_eq!(stored.user.as_deref(), Some("ada"));
    assert_eq!(stored.history, throughline::HistorySource::Conversation);
    assert_eq!(stored.setup.on_interrupted, throughline::engine::OnInterrupted::Continue);
    let tools: Vec<_> = stored.setup.tools.iter().map(|tool| tool.wire_name.as_str()).collect();
    assert!(tools.contains(&"get_weather") && tools.contains(&"note_write"), "{tools:?}");
    let own = stored.setup.tools.iter().find(|tool| tool.wire_name.as_str() == "get_weather").unwrap();
    assert_eq!(own.runs, throughline::engine::CallRunner::Requester);
    // What a later release has added is not there, and that is all right.
    let mut older: serde_json::Value = serde_json::from_str(&text).unwrap();
    older["something_later"] = json!(true);
    for field in ["history", "results", "keep_raw"] {
        older.as_object_mut().unwrap().remove(field);
    }
    assert!(serde_json::from_value::<StoredTurn>(older).is_ok());
}
