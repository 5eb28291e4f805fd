//! One script, played by a model with native calls and by models that write their calls as text.

use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use throughline::config::{TextProtocolKind, ToolMode};
use throughline::engine::{Event, StartRule};
use throughline::tools::{Effect, NoArguments, Tool, ToolError, tool};
use throughline::wire::Dialect;
use throughline::{ApprovalMode, AssistantMessage, Throughline, Upstream};
use throughline_testkit::{self as testkit, ModelScript, ScriptQueue};

/// A way for calls to travel.
#[derive(Clone, Copy, Debug)]
pub struct TestMode {
    pub mode: ToolMode,
    pub protocol: TextProtocolKind,
    pub dialect: (Dialect, testkit::FakeDialect),
}

const CHAT: (Dialect, testkit::FakeDialect) = (Dialect::OpenaiChat, testkit::FakeDialect::OpenaiChat);

/// Ours and testkit's name of each dialect that can be sent.
pub const DIALECTS: [(Dialect, testkit::FakeDialect); 8] = [
    CHAT,
    (Dialect::OpenaiResponses, testkit::FakeDialect::OpenaiResponses),
    (Dialect::Anthropic, testkit::FakeDialect::Anthropic),
    (Dialect::Gemini, testkit::FakeDialect::Gemini),
    (Dialect::Ollama, testkit::FakeDialect::Ollama),
    (Dialect::Cohere, testkit::FakeDialect::Cohere),
    (Dialect::BedrockConverse, testkit::FakeDialect::BedrockConverse),
    (Dialect::BedrockAnthropic, testkit::FakeDialect::BedrockAnthropic),
];

/// Natively first, then each text protocol.
pub const TEST_MODES: [TestMode; 3] = [
    TestMode { mode: ToolMode::Native, protocol: TextProtocolKind::Vcp, dialect: CHAT },
    TestMode { mode: ToolMode::Text, protocol: TextProtocolKind::Vcp, dialect: CHAT },
    TestMode { mode: ToolMode::Text, protocol: TextProtocolKind::Xml, dialect: CHAT },
];

#[derive(Deserialize, JsonSchema)]
struct Say {
    /// The text to say
    text: String,
    /// Number of times
    #[serde(default)]
    times: Option<u32>,
    #[serde(default)]
    loud: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Why {
    why: String,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

/// Tools for the script: `say.echo` repeats, `fail.now` fails, `note.write` is denied, `time.now` takes no
/// arguments.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    let echo = |Say { text, times, loud }: Say, _| async move {
        format!("{}|{times:?}|{loud}", text.repeat(times.unwrap_or(1) as usize))
    };
    let fail = |Why { why }: Why, _| async move { Err::<String, _>(ToolError::new(why)) };
    let write = |Note { text }: Note, _| async move { format!("wrote {text}") };
    vec![
        Arc::new(tool("say.echo", "Says the text again", echo).effect(Effect::Pure).agent_callable()),
        Arc::new(tool("fail.now", "Fails", fail).effect(Effect::Read).agent_callable()),
        Arc::new(tool("note.write", "Writes", write).effect(Effect::Write).agent_callable()),
        Arc::new(
            tool("time.now", "The time", |_: NoArguments, _| async { "noon" })
                .effect(Effect::Read)
                .agent_callable(),
        ),
    ]
}

/// An application that answers in this way, with these tools.
pub fn app(
    way: &TestMode,
    base_url: &str,
    tools: Vec<Arc<dyn Tool>>,
    start: StartRule,
    approval: ApprovalMode,
) -> Throughline {
    Throughline::builder()
        .upstream(Upstream::new("test", way.dialect.0, base_url).unwrap())
        .model("m")
        .prompt("Be brief.")
        .mode(way.mode)
        .protocol(way.protocol)
        .tools(tools)
        .start_rule(start)
        .approval(approval)
        .build()
        .unwrap()
}

/// Plays scripts, one a step, as the answer to one question.
pub async fn run(
    way: &TestMode,
    scripts: Vec<ModelScript>,
    start: StartRule,
) -> (Vec<Event>, AssistantMessage) {
    let server = testkit::FakeUpstream::start(ScriptQueue::new(scripts)).await.unwrap();
    let approval = ApprovalMode::DenyAll { reason: "nobody is here".to_owned() };
    let app = app(way, &server.base_url(way.dialect.1), tools(), start, approval);
    let mut turn = app.ask("Do it.").await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    assert_eq!(server.violations(), [], "{way:?}");
    (events, turn.finish().await)
}
