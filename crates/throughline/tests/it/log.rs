//! The turn and its log: nothing is seen or done before the log has it, and a log that refuses ends the turn
//! truthfully.

use crate::support::{self, DIALECTS, at, builder, check_promises, read, serve, statuses};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use throughline::engine::{UpstreamFailure, WaitReason};
use throughline::store::{
    AppendAck, Log, LogBatch, LogError, LogRecord, LogTail, MemoryLog, MergeFn, OwnerEpoch,
    ProviderStateRecord, TurnClaim,
};
use throughline::tools::{Effect, NoArguments, ToolContext, ToolProgress, tool};
use throughline::wire::{CallId, ModelRequest};
use throughline::{
    ApprovalMode, ApprovalOutcome, ApprovalResponse, CallStatus, CancelCallResult, Event, EventKind,
    InProcessModel, ReplySender, Throughline, TurnStatus as T, Upstream, UpstreamTimeouts,
};
use throughline_testkit::{ExchangeEnd, ModelScript, ScriptMove, ScriptQueue};
use tokio::sync::watch;

/// Fate of an append.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Written,
    /// Waits until the gate is opened.
    Held,
    Refused,
    Panics,
    /// The append is acknowledged after this many milliseconds.
    Takes(u64),
}

/// Decides by the number of the append, from 1, and its batch.
type Decide = dyn Fn(usize, &LogBatch) -> Fate + Send + Sync;

/// A log in memory whose appends do what a test wants.
struct Trial {
    log: MemoryLog,
    decide: Box<Decide>,
    appends: AtomicUsize,
    /// Appends that have been held.
    held: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Trial {
    fn new(decide: impl Fn(usize, &LogBatch) -> Fate + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            log: MemoryLog::default(),
            decide: Box::new(decide),
            appends: AtomicUsize::new(0),
            held: watch::Sender::new(0),
            open: watch::Sender::new(false),
        })
    }

    async fn is_holding(&self) {
        self.held.subscribe().wait_for(|held| *held > 0).await.unwrap();
    }

    fn open(&self) {
        self.open.send_replace(true);
    }
}

#[async_trait]
impl Log for Trial {
    async fn claim(&self, turn: &str) -> Result<TurnClaim, LogError> {
        self.log.claim(turn).await
    }
    async fn append(&self, turn: &str, epoch: OwnerEpoch, batch: LogBatch) -> Result<AppendAck, LogError> {
        let number = self.appends.fetch_add(1, Ordering::Relaxed) + 1;
        match (self.decide)(number, &batch) {
            Fate::Written => {}
            Fate::Takes(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Fate::Held => {
                self.held.send_modify(|held| *held += 1);
                self.open.subscribe().wait_for(|open| *open).await.unwrap();
            }
            Fate::Refused => return Err(LogError::StoreFailure { why: "the disk is full".into() }),
            Fate::Panics => panic!("a bug in the log"),
        }
        self.log.append(turn, epoch, batch).await
    }
    async fn read(&self, turn: &str, after: u64, records_max: usize) -> Result<Vec<LogRecord>, LogError> {
        self.log.read(turn, after, records_max).await
    }
    async fn read_provider_state(&self, turn: &str) -> Result<Vec<ProviderStateRecord>, LogError> {
        self.log.read_provider_state(turn).await
    }
    async fn tail(&self, turn: &str, after: u64) -> Result<Box<dyn LogTail>, LogError> {
        self.log.tail(turn, after).await
    }
    async fn open_turns(&self) -> Result<Vec<String>, LogError> {
        self.log.open_turns().await
    }
    async fn compact(&self, turn: &str, merge: MergeFn) -> Result<(), LogError> {
        self.log.compact(turn, merge).await
    }
    async fn delete(&self, turn: &str) -> Result<(), LogError> {
        self.log.delete(turn).await
    }
}

fn holds(batch: &LogBatch, kind: &str) -> bool {
    batch.records.iter().any(|record| record.kind == kind)
}

/// A tool that counts how often it runs.
fn counter() -> (impl throughline::tools::Tool, Arc<AtomicUsize>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let count = move |_: NoArguments, _| {
        let runs = counted.clone();
        async move { format!("run {}", runs.fetch_add(1, Ordering::SeqCst) + 1) }
    };
    (tool("count.up", "Counts", count).effect(Effect::Read).agent_callable(), runs)
}

fn call_and_answer() -> ScriptQueue {
    ScriptQueue::new([
        ModelScript::new().say("So").call("count_up", json!({})),
        ModelScript::new().say("Done."),
    ])
}

#[tokio::test]
async fn model_request_and_events_wait_for_the_first_append() {
    let log = Trial::new(|number, _| if number == 1 { Fate::Held } else { Fate::Written });
    let server = serve(ScriptQueue::new([ModelScript::new().say("Hi")])).await;
    let app = builder(&server, DIALECTS[0]).log(log.clone()).build().unwrap();
    let mut turn = app.ask("Hi").await.unwrap();
    log.is_holding().await;
    // The driver has begun the append and waits: a premature action would have happened by now.
    tokio::select! {
        biased;
        early = turn.next() => panic!("{early:?} is not in the log yet"),
        () = std::future::ready(()) => {}
    }
    // Everything here shares one thread: a request that was sent too early would get there in these turns of it.
    for _ in 0..5_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.exchanges().len(), 0);
    log.open();
    assert_eq!(read(turn).await.1.text(), "Hi");
}

#[tokio::test]
async fn tool_runs_only_after_its_intent_is_appended() {
    let log = Trial::new(|_, batch| if holds(batch, "tool_start") { Fate::Held } else { Fate::Written });
    let (counter, runs) = counter();
    let server = serve(call_and_answer()).await;
    let app = builder(&server, DIALECTS[0]).log(log.clone()).tool(counter).build().unwrap();
    let turn = app.ask("Hi").await.unwrap();
    log.is_holding().await;
    assert_eq!(server.wait_for_end(1).await, ExchangeEnd::Complete);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    log.open();
    assert_eq!(statuses(&read(turn).await.1).len(), 1);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn first_delta_is_logged_at_once_and_no_delta_is_lost() {
    let words = "word ".repeat(2_000);
    let first_seen = Arc::new(Mutex::new(0));
    let seen = first_seen.clone();
    let log = Trial::new(move |_, batch| {
        if holds(batch, "content_delta") && !holds(batch, "stream_end") {
            let mut seen = seen.lock().unwrap();
            *seen += 1;
            return if *seen == 2 { Fate::Held } else { Fate::Written };
        }
        Fate::Written
    });
    // A short pause after the first word, so that it is a delta by itself.
    let script = ModelScript::new().say("first ").then(ScriptMove::Pause(30)).say(words.as_str());
    let server = serve(ScriptQueue::new([script])).await;
    let app = builder(&server, DIALECTS[0]).log(log.clone()).build().unwrap();
    let turn = app.ask("Hi").await.unwrap();
    log.is_holding().await;
    // The whole reply arrives during one append.
    assert_eq!(server.wait_for_end(1).await, ExchangeEnd::Complete);
    log.open();
    let (events, message) = read(turn).await;
    assert_eq!(message.text(), format!("first {words}"));
    // `driver::model` tests that the following deltas are joined.
    let deltas: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ContentDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!("first ".starts_with(deltas[0]), "{:?}", deltas[0]);
}

/// A model that sends a word after each of these pauses, in milliseconds.
struct Pausing(Vec<u64>);

#[async_trait]
impl InProcessModel for Pausing {
    async fn reply(&self, _: ModelRequest, reply: &mut ReplySender) -> Result<(), UpstreamFailure> {
        for pause in &self.0 {
            tokio::time::sleep(Duration::from_millis(*pause)).await;
            reply.text("word ").await;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn silence_of_the_model_is_not_confused_with_a_slow_log() {
    const LOG_MS: u64 = 8_000;
    for (pauses, slow_append, expected) in [
        (vec![10, 6_000, 10, 10], None, [WaitReason::Silence].as_slice()),
        (vec![3_000, 4_000, 4_000], None, &[WaitReason::FirstByte]),
        (vec![500; 30], Some(3), &[WaitReason::Store]),
    ] {
        let log = Trial::new(move |number, _| match slow_append {
            Some(slow) if slow == number => Fate::Held,
            _ => Fate::Written,
        });
        let upstream = Upstream::in_process("local", Pausing(pauses.clone())).unwrap();
        let app = Throughline::builder().upstream(upstream).model("m").log(log.clone()).build().unwrap();
        let turn = app.ask("Hi").await.unwrap();
        if slow_append.is_some() {
            log.is_holding().await;
            tokio::time::sleep(Duration::from_millis(LOG_MS)).await;
            log.open();
        }
        let (events, message) = read(turn).await;
        assert_eq!(message.text(), "word ".repeat(pauses.len()));
        let waits = events.iter().filter_map(|event| match &event.kind {
            EventKind::Waiting { reason, .. } => Some(*reason),
            _ => None,
        });
        assert_eq!(waits.collect::<Vec<_>>(), expected, "{pauses:?}");
    }
}

// A notice that the log is slow is appended, too, and slowly.
#[tokio::test(start_paused = true)]
async fn slow_log_notices_do_not_outnumber_other_events() {
    let log = Trial::new(|_, _| Fate::Takes(1_200));
    let upstream = Upstream::in_process("local", Pausing(vec![120_000])).unwrap();
    let app = Throughline::builder().upstream(upstream).model("m").log(log.clone()).build().unwrap();
    let (events, message) = read(app.ask("Hi").await.unwrap()).await;
    assert_eq!(message.text(), "word ");
    let notices = events.iter().filter(|event| matches!(event.kind, EventKind::Waiting { .. })).count();
    assert!(notices <= events.len() - notices, "{events:#?}");
}

#[derive(Deserialize, JsonSchema)]
struct CountTo {
    to: u32,
}

/// A model that calls a tool, and is silent for a while before it ends.
struct CallsAndPauses;

#[async_trait]
impl InProcessModel for CallsAndPauses {
    async fn reply(&self, request: ModelRequest, reply: &mut ReplySender) -> Result<(), UpstreamFailure> {
        if request.messages.len() > 1 {
            reply.text("Done.").await;
            return Ok(());
        }
        reply.call("count_up", &json!({"to": 100})).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok(())
    }
}

// A running tool reports progress so often that an append is always in flight.
#[tokio::test(start_paused = true)]
async fn silence_is_reported_while_the_log_is_always_busy() {
    let log = Trial::new(|_, _| Fate::Takes(700));
    let upstream = Upstream::in_process("local", CallsAndPauses).unwrap();
    let count = tool("count.up", "Counts", |CountTo { to }, context: ToolContext| async move {
        for n in 0..to {
            tokio::time::sleep(Duration::from_millis(100)).await;
            context.report(ToolProgress::new(f64::from(n)));
        }
        "counted"
    });
    let count = count.effect(Effect::Read).agent_callable();
    let app = Throughline::builder().upstream(upstream).model("m").log(log).tool(count).build().unwrap();
    let (events, _) = read(app.ask("Count").await.unwrap()).await;
    let at = |is_it: &dyn Fn(&EventKind) -> bool| events.iter().position(|event| is_it(&event.kind));
    let silence = at(&|kind| matches!(kind, EventKind::Waiting { reason: WaitReason::Silence, .. }));
    let result = at(&|kind| matches!(kind, EventKind::ToolResult(_)));
    let progress = at(&|kind| matches!(kind, EventKind::ToolProgress(_)));
    assert!(
        progress < silence && silence.is_some() && silence < result,
        "{progress:?} {silence:?} {result:?}"
    );
}

// Nothing is appended after the report, so that no other append notifies the tool.
#[tokio::test(start_paused = true)]
async fn tool_cancelled_during_a_progress_append_stops() {
    let log = Trial::new(|_, batch| if holds(batch, "tool_progress") { Fate::Held } else { Fate::Written });
    let upstream = Upstream::in_process("local", CallsAndPauses).unwrap();
    let wait = tool("count.up", "Waits", |_: CountTo, context: ToolContext| async move {
        context.report(ToolProgress::new(1.0));
        context.cancellation().cancelled().await;
        "stopped"
    });
    let wait = wait.effect(Effect::Write).agent_callable();
    let builder = Throughline::builder().upstream(upstream).model("m").log(log.clone()).tool(wait);
    let turn = builder.approval(ApprovalMode::AllowAll).build().unwrap().ask("Count").await.unwrap();
    log.is_holding().await;
    let started = tokio::time::Instant::now();
    let (control, call) = (turn.control(), call_of(&log, turn.id().as_str()).await);
    let cancelled = tokio::spawn(async move { control.cancel_call(call).await });
    tokio::time::sleep(Duration::from_millis(10)).await;
    log.open();
    assert_eq!(cancelled.await.unwrap(), CancelCallResult::Cancelled);
    let (_, message) = read(turn).await;
    assert_eq!(statuses(&message), [CallStatus::Cancelled]);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

/// A tool that needs approval, counts its runs and returns a text.
struct CountsAndAnswers;

#[async_trait]
impl InProcessModel for CountsAndAnswers {
    async fn reply(&self, request: ModelRequest, reply: &mut ReplySender) -> Result<(), UpstreamFailure> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        if request.messages.len() > 1 {
            reply.text("Done.").await;
        } else {
            reply.call("count_up", &json!({"to": 1})).await;
        }
        Ok(())
    }
}

// For any pace of the log, and any order and distance of the two.
#[tokio::test(start_paused = true)]
async fn approval_racing_a_cancel_is_answered_and_the_turn_ends() {
    for append_ms in [0, 1, 3, 1_200] {
        for (approved_at, stopped_at) in (0..12).flat_map(|one| (0..12).map(move |other| (one, other))) {
            let pace =
                format!("{append_ms} ms an append, approved at {approved_at}, stopped at {stopped_at}");
            let log = Trial::new(move |_, _| Fate::Takes(append_ms));
            let upstream = Upstream::in_process("local", CountsAndAnswers).unwrap();
            let runs = Arc::new(AtomicUsize::new(0));
            let counted = runs.clone();
            let count = tool("count.up", "Counts", move |_: CountTo, _| {
                counted.fetch_add(1, Ordering::SeqCst);
                async {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    "counted"
                }
            });
            let count = count.effect(Effect::Write).agent_callable();
            let builder = Throughline::builder().upstream(upstream).model("m").log(log).tool(count);
            let app = builder.approval(ApprovalMode::Ask).build().unwrap();
            let mut turn = app.ask("Count").await.unwrap();
            let question = loop {
                let event = turn.next().await.expect("a question");
                if let EventKind::ApprovalRequest { approval_id, .. } = event.kind {
                    break approval_id;
                }
            };
            let control = turn.control();
            let approval = async {
                tokio::time::sleep(Duration::from_millis(approved_at)).await;
                control.decide(question, ApprovalResponse::approve()).await
            };
            let stop = async {
                tokio::time::sleep(Duration::from_millis(stopped_at)).await;
                control.cancel().await
            };
            let raced = async {
                let (approval, _) = tokio::join!(approval, stop);
                (approval, turn.finish().await)
            };
            let raced = tokio::time::timeout(Duration::from_secs(30), raced).await;
            let (approval, message) = raced.unwrap_or_else(|_| panic!("it never ends: {pace}"));
            let status = statuses(&message)[0];
            let runs = runs.load(Ordering::SeqCst);
            match approval {
                ApprovalOutcome::Resolved => assert!(runs <= 1, "{pace}"),
                ApprovalOutcome::Expired | ApprovalOutcome::TurnEnded => assert_eq!(runs, 0, "{pace}"),
                other => panic!("{other:?}: {pace}"),
            }
            assert!(status != CallStatus::Success || runs == 1, "{status:?}: {pace}");
        }
    }
}

/// The call of a turn that has begun.
async fn call_of(log: &Trial, turn: &str) -> CallId {
    let records = log.read(turn, 0, 100).await.unwrap();
    let use_of_tool = records.iter().find(|record| record.kind == "tool_use").expect("a call");
    let event: Event = serde_json::from_slice(&use_of_tool.payload).unwrap();
    event.tool_id.expect("the id of a call")
}

#[tokio::test]
async fn refused_append_interrupts_the_turn_at_any_point() {
    for fate in [Fate::Refused, Fate::Panics] {
        let mut interrupted = 0;
        for refused in 1.. {
            let log = Trial::new(move |number, _| if number == refused { fate } else { Fate::Written });
            let (counter, _) = counter();
            let server = serve(call_and_answer()).await;
            let app = builder(&server, DIALECTS[0]).log(log.clone()).tool(counter).build().unwrap();
            let mut conversation = app.conversation();
            let (_, message) = read(conversation.ask("Hi").await.unwrap()).await;
            if message.status == Some(T::Completed) {
                assert!(log.appends.load(Ordering::Relaxed) < refused, "the refused append never came");
                break;
            }
            assert_eq!(message.status, Some(T::Interrupted), "append {refused}: {message:#?}");
            interrupted += 1;
            // The conversation continues from the events that the log holds.
            let (_, again) = read(conversation.ask("And now?").await.unwrap()).await;
            assert_eq!(again.status, Some(T::Completed), "append {refused}: {again:#?}");
            assert_eq!(server.violations(), [], "append {refused}");
        }
        assert!(interrupted >= 4, "a turn with a tool takes several appends, not {interrupted}");
    }
}

#[tokio::test]
async fn lost_log_ends_the_event_stream_and_the_upstream_call() {
    let log = Trial::new(|number, _| if number <= 2 { Fate::Written } else { Fate::Refused });
    let server = serve(ScriptQueue::new([ModelScript::new().say("So").then(ScriptMove::Stall)])).await;
    // If the second append has the text, the third is the one about the stalled upstream.
    let timeouts = UpstreamTimeouts { idle_ms: 200, ..UpstreamTimeouts::default() };
    let upstream = at(&server, DIALECTS[0]).timeouts(timeouts);
    let app = builder(&server, DIALECTS[0]).upstream(upstream).log(log).build().unwrap();
    let mut turn = app.ask("Hi").await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    assert!(!events.is_empty());
    assert_eq!(turn.message().status, None, "nobody could write how it ended");
    assert_eq!(server.wait_for_end(1).await, ExchangeEnd::ClientDisconnected, "the upstream is let go");
}

#[tokio::test]
async fn claimed_turn_is_not_written_by_its_former_owner() {
    let log = Arc::new(MemoryLog::default());
    let server = serve(ScriptQueue::new([ModelScript::new()
        .say("So")
        .then(ScriptMove::Pause(100))
        .say("on")
        .then(ScriptMove::Stall)]))
    .await;
    let app = builder(&server, DIALECTS[0]).log(log.clone()).build().unwrap();
    let mut turn = app.ask("Hi").await.unwrap();
    let mut seen = 0;
    while let Some(event) = turn.next().await {
        if matches!(event.kind, EventKind::ContentDelta { .. }) {
            log.claim(turn.id().as_str()).await.unwrap();
        }
        seen = event.seq.0;
    }
    assert_eq!(server.wait_for_end(1).await, ExchangeEnd::ClientDisconnected);
    let held = log.read(turn.id().as_str(), 0, usize::MAX).await.unwrap();
    assert_eq!(held.len() as u64, seen, "the former owner writes nothing more, not even an end");
    assert!(held.iter().all(|record| record.kind != "stream_end"));
}

#[tokio::test]
async fn log_tail_from_any_cursor_gives_the_same_events() {
    let server = serve(ScriptQueue::new([
        ModelScript::new().think("Hm.").say("Let me look.").call("weather_today", support::city("Oslo")),
        ModelScript::new().say("Sunny."),
    ]))
    .await;
    let app = builder(&server, DIALECTS[2]).build().unwrap();
    let turn = app.ask("Hi").await.unwrap();
    let id = turn.id().clone();
    let (events, _) = read(turn).await;
    for after in [0, 1, 7, events.len() as u64] {
        let mut tail = app.log().tail(id.as_str(), after).await.unwrap();
        let mut late = Vec::new();
        while let Some(records) = tail.next().await.unwrap() {
            late.extend(records.iter().map(|record| {
                let event: throughline::Event = serde_json::from_slice(&record.payload).unwrap();
                let written: serde_json::Value = serde_json::from_slice(&record.payload).unwrap();
                assert_eq!(written["type"], *record.kind, "the kind of a record is the event's type");
                event
            }));
        }
        assert_eq!(late, events[usize::try_from(after).unwrap()..], "after {after}");
    }
    check_promises(&events);
}
