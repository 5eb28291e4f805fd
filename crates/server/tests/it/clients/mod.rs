//! Unmodified clients against the server over real sockets: each script runs the typical use of a client, in
//! its language, and prints what it received. The scripts are in `clients/`, together with the pins of their
//! packages.
//!
//! `cargo xtask test --only clients` installs the packages and names their folder in `THROUGHLINE_CLIENTS`.

mod renderers;
mod server;

use serde_json::json;
use server::{Server, TOKENS_OF_A_TURN, packages};
use std::collections::BTreeSet;
use throughline::EventKind;
use throughline_testkit::script::TokenCounts;
use throughline_testkit::{CallMove, ErrorMove, ModelScript, ScriptMove, ScriptQueue};

/// Two steps with a tool of the server's between them. Every client is to see one message.
fn turn() -> [ModelScript; 2] {
    let tokens = |input, output| {
        ScriptMove::Usage(TokenCounts { input: Some(input), output: Some(output), ..TokenCounts::default() })
    };
    [
        ModelScript::new()
            .say("Let me look. ")
            .call("weather_today", json!({"city": "Paris"}))
            .then(tokens(500, 20)),
        ModelScript::new().say("Sunny in Paris.").then(tokens(600, 15)),
    ]
}

fn turns(count: usize) -> ScriptQueue {
    assert_eq!(TOKENS_OF_A_TURN, 500 + 20 + 600 + 15);
    ScriptQueue::new((0..count).flat_map(|_| turn()))
}

/// A model that breaks off with an error, `count` times.
fn errors(count: usize) -> ScriptQueue {
    let error = || {
        ModelScript::new()
            .say("Well, ")
            .then(ScriptMove::Error(ErrorMove::new("the upstream is out of cheese")))
    };
    ScriptQueue::new((0..count).map(|_| error()))
}

/// A tool of the client's and one of the server's in one step.
fn mixed() -> ScriptQueue {
    let both = ScriptMove::Parallel(vec![
        CallMove::new("weather_today", json!({"city": "Paris"})),
        CallMove::new("local_time", json!({"zone": "Paris"})),
    ]);
    ScriptQueue::new([
        ModelScript::new().say("Two things. ").then(both),
        ModelScript::new().say("Sunny at 12:30."),
    ])
}

/// Runs one check of one client against a server with this model, and checks the server's side.
async fn check(script: &str, name: &str, model: ScriptQueue, weather_runs: usize) {
    let Some(packages) = packages() else { return };
    let server = Server::start(model).await;
    server.run(&packages, script, &[name], &[]).await;
    assert_eq!(server.weather_runs(), weather_runs, "{script} {name}: runs of the server's tool");
    assert_eq!(server.upstream.violations(), [], "{script} {name}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_python() {
    check("openai_python.py", "raw", turns(1), 1).await;
    check("openai_python.py", "helper", turns(1), 1).await;
    check("openai_python.py", "whole", turns(1), 1).await;
    check("openai_python.py", "rendered", turns(1), 1).await;
    check("openai_python.py", "error", errors(2), 0).await;
    check("openai_python.py", "models", turns(0), 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_python_with_a_client_tool() {
    check("openai_python.py", "own_tool", mixed(), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_node() {
    check("openai_node.mjs", "raw", turns(1), 1).await;
    check("openai_node.mjs", "helper", turns(1), 1).await;
    check("openai_node.mjs", "server_tool", turns(1), 1).await;
    check("openai_node.mjs", "same_name", turns(1), 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_node_with_a_client_tool() {
    check("openai_node.mjs", "own_tool", mixed(), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openai_node_reports_a_cut_stream() {
    let Some(packages) = packages() else { return };
    let server = Server::start(turns(1)).await;
    let address = server::cut_after(server.address, r#""content":"Let"#).await;
    let base = format!("http://{address}");
    server.run(&packages, "openai_node.mjs", &["cut"], &[("BASE_URL", &base)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn langchain() {
    check("langchain_chat.py", "stream", turns(1), 1).await;
    check("langchain_chat.py", "invoke", turns(1), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_llm_command() {
    check("llm_command.py", "text", turns(2), 2).await;
    check("llm_command.py", "error", errors(1), 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_source_reads_every_event_across_cuts() {
    let Some(packages) = packages() else { return };
    for every in [1, 3, 7, 1_000] {
        let server = Server::start(turns(1)).await;
        let (turn, events) = server.turn().await;
        let kind = |event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned();
        let kinds: BTreeSet<String> = events.iter().map(kind).collect();
        assert!(matches!(events.last().unwrap().kind, EventKind::StreamEnd { .. }));
        let path = format!("/v1/turns/{turn}/events");
        let kinds = serde_json::to_string(&kinds).unwrap();
        let words = [every.to_string(), events.len().to_string()];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        server.run(&packages, "event_source.mjs", &words, &[("EVENTS", &path), ("TYPES", &kinds)]).await;
    }
}
