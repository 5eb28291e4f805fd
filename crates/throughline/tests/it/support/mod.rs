//! Shared parts of the turn tests: an upstream in each dialect, tools that behave well and badly, and the
//! checks that hold for every turn.

pub mod test_rng;
pub mod two_modes;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline::engine::{RetryPolicy, TurnLimits};
use throughline::tools::{Effect, NoArguments, Tool, ToolContext, ToolError, tool};
use throughline::wire::Dialect;
use throughline::{
    ApprovalMode, AssistantMessage, CallStatus, Event, EventKind, Throughline, ThroughlineBuilder,
    TurnHandle, TurnStatus, Upstream,
};
use throughline_testkit::{self as testkit, FakeModel, FakeUpstreamHandle};
use tokio::sync::Barrier;

/// Ours and testkit's name of each dialect that can be sent.
pub const DIALECTS: [(Dialect, testkit::FakeDialect); 8] = [
    (Dialect::OpenaiChat, testkit::FakeDialect::OpenaiChat),
    (Dialect::OpenaiResponses, testkit::FakeDialect::OpenaiResponses),
    (Dialect::Anthropic, testkit::FakeDialect::Anthropic),
    (Dialect::Gemini, testkit::FakeDialect::Gemini),
    (Dialect::Ollama, testkit::FakeDialect::Ollama),
    (Dialect::Cohere, testkit::FakeDialect::Cohere),
    (Dialect::BedrockConverse, testkit::FakeDialect::BedrockConverse),
    (Dialect::BedrockAnthropic, testkit::FakeDialect::BedrockAnthropic),
];

#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

#[derive(Deserialize, JsonSchema)]
struct Entry {
    title: String,
}

/// `weather.today` reads, `meet.other` reads and needs another call in parallel, `calendar.add` writes,
/// `door.open` reads and always fails, `bomb.tick` reads and panics, `queue.wait` reads and waits until it is
/// stopped.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    let barrier = Arc::new(Barrier::new(2));
    let meet = move |_: City, _| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            "met"
        }
    };
    let wait = |_: NoArguments, context: ToolContext| async move {
        context.write("waiting…").await;
        context.cancellation().cancelled().await;
        "stopped"
    };
    let door = |_: NoArguments, _| async { Err::<String, _>(ToolError::new("the door is locked")) };
    let bomb = |_: NoArguments, _| async {
        if true {
            panic!("boom");
        }
        "never"
    };
    let weather = |args: City, _| async move { format!("{}: sunny", args.city) };
    let add = |args: Entry, _| async move { format!("added {}", args.title) };
    vec![
        Arc::new(tool("weather.today", "Weather", weather).effect(Effect::Read).agent_callable()),
        Arc::new(tool("meet.other", "Meets another call", meet).effect(Effect::Read).agent_callable()),
        Arc::new(tool("calendar.add", "Adds an entry", add).effect(Effect::Write).agent_callable()),
        Arc::new(tool("door.open", "Opens the door", door).effect(Effect::Read).agent_callable()),
        Arc::new(tool("bomb.tick", "Ticks", bomb).effect(Effect::Read).agent_callable()),
        Arc::new(tool("queue.wait", "Waits", wait).effect(Effect::Read).agent_callable()),
    ]
}

pub fn at(server: &FakeUpstreamHandle, (ours, theirs): (Dialect, testkit::FakeDialect)) -> Upstream {
    Upstream::new("test", ours, &server.base_url(theirs)).unwrap()
}

/// An application on `server` with all tools, everything allowed and short pauses.
pub fn builder(server: &FakeUpstreamHandle, dialect: (Dialect, testkit::FakeDialect)) -> ThroughlineBuilder {
    Throughline::builder()
        .upstream(at(server, dialect))
        .model("m")
        .tools(tools())
        .approval(ApprovalMode::AllowAll)
        .retry(RetryPolicy { backoff_ms: 5, ..RetryPolicy::default() })
        .limits(TurnLimits { cancel_grace_ms: 1_000, ..TurnLimits::default() })
}

pub async fn serve(model: impl FakeModel) -> FakeUpstreamHandle {
    testkit::FakeUpstream::start(model).await.unwrap()
}

/// Reads a turn to its end and checks what every turn promises.
pub async fn read(mut turn: TurnHandle) -> (Vec<Event>, AssistantMessage) {
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    check_promises(&events);
    let message = turn.finish().await;
    assert_eq!(message, AssistantMessage::from_events(&events), "the message is the fold of what was read");
    (events, message)
}

/// One message, one start, one end, every call exactly one outcome, numbers dense, blocks opened before they grow.
pub fn check_promises(events: &[Event]) {
    for (expected, event) in (1..).zip(events) {
        assert_eq!(event.seq.0, expected, "dense: {event:?}");
    }
    assert!(
        matches!(events.first().map(|event| &event.kind), Some(EventKind::StreamStart { .. })),
        "{events:#?}"
    );
    let ends = events.iter().filter(|event| matches!(event.kind, EventKind::StreamEnd { .. })).count();
    assert!(ends == 1, "{ends} ends");
    assert!(
        matches!(events.last().map(|event| &event.kind), Some(EventKind::StreamEnd { .. })),
        "the end is last"
    );
    let mut outcomes = BTreeMap::new();
    for event in events {
        let Some(call) = &event.tool_id else { continue };
        match event.kind {
            EventKind::ToolUse { .. } => {
                assert_eq!(outcomes.insert(call.clone(), 0), None, "{call} appears twice")
            }
            EventKind::ToolResult(_) => {
                *outcomes.get_mut(call).expect("a result of a call that never appeared") += 1
            }
            _ => {}
        }
    }
    assert!(outcomes.values().all(|count| *count == 1), "every call has exactly one outcome: {outcomes:?}");
}

/// Status of each call, in order.
pub fn statuses(message: &AssistantMessage) -> Vec<CallStatus> {
    message.calls().filter_map(|call| call.status).collect()
}

/// The results that the model received for each call of a request's last turn.
pub fn tool_results_sent(server: &FakeUpstreamHandle, request: usize) -> Vec<String> {
    let requests = server.requests();
    requests[request].answered_calls().iter().map(|(_, result)| result.text.clone()).collect()
}

/// Outcome of a turn: status of its calls, status, and text.
#[derive(Debug)]
pub struct Expected {
    pub calls: Vec<CallStatus>,
    pub status: TurnStatus,
    pub text: &'static str,
}

pub fn check(what: &str, message: &AssistantMessage, expected: &Expected) {
    let context = format!("{what}: {message:#?}");
    assert_eq!(statuses(message), expected.calls, "{context}");
    assert_eq!(message.status, Some(expected.status), "{context}");
    assert_eq!(message.text(), expected.text, "{context}");
}

pub fn city(name: &str) -> serde_json::Value {
    json!({"city": name})
}
