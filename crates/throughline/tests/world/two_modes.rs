//! One script, played by a model that calls natively and by models that write their calls.

#![allow(dead_code, reason = "each test file uses its part")]

use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use throughline::config::{Mode, Protocol};
use throughline::engine::{Event, StartRule};
use throughline::tools::{Effect, NoArguments, Tool, ToolError, tool};
use throughline::wire::Dialect;
use throughline::{Approval, Message, Throughline, Upstream};
use throughline_testkit::{self as testkit, Queue, Script};

/// A way for calls to travel.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub mode: Mode,
    pub protocol: Protocol,
    pub dialect: (Dialect, testkit::Dialect),
}

const CHAT: (Dialect, testkit::Dialect) = (Dialect::OpenaiChat, testkit::Dialect::OpenaiChat);

/// Ours and testkit's name of each dialect that can be sent.
pub const DIALECTS: [(Dialect, testkit::Dialect); 5] = [
    CHAT,
    (Dialect::OpenaiResponses, testkit::Dialect::OpenaiResponses),
    (Dialect::Anthropic, testkit::Dialect::Anthropic),
    (Dialect::Gemini, testkit::Dialect::Gemini),
    (Dialect::Ollama, testkit::Dialect::Ollama),
];

/// Natively first, then each text protocol.
pub const WAYS: [Way; 3] = [
    Way { mode: Mode::Native, protocol: Protocol::Vcp, dialect: CHAT },
    Way { mode: Mode::Text, protocol: Protocol::Vcp, dialect: CHAT },
    Way { mode: Mode::Text, protocol: Protocol::Xml, dialect: CHAT },
];

#[derive(Deserialize, JsonSchema)]
struct Say {
    /// What to say
    text: String,
    /// How often
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

/// `say.echo` repeats, `fail.now` fails, `note.write` is denied, `time.now` takes no arguments.
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
    way: &Way,
    base_url: &str,
    tools: Vec<Arc<dyn Tool>>,
    start: StartRule,
    approval: Approval,
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
pub async fn run(way: &Way, scripts: Vec<Script>, start: StartRule) -> (Vec<Event>, Message) {
    let server = testkit::Upstream::start(Queue::new(scripts)).await.unwrap();
    let approval = Approval::DenyAll { reason: "nobody is here".to_owned() };
    let app = app(way, &server.base_url(way.dialect.1), tools(), start, approval);
    let mut turn = app.ask("Do it.").await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    assert_eq!(server.violations(), [], "{way:?}");
    (events, turn.finish().await)
}
