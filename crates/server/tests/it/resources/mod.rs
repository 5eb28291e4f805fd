//! Conversations, files, agents, tools, history and the description of the API, over real sockets.

mod agents;
mod conversations;
mod decode;
mod files;
mod filing;
mod going_on;
mod history;
mod openapi;
mod ownership;
mod rating;
mod required;
mod retry;
mod saved_prompts;
mod shares;
mod tools;

use crate::support::TestServer;
use reqwest::Method;
use serde_json::{Value, json};
use throughline_server::{read_messages, write_jsonl};
use throughline_testkit::{ModelScript, ScriptQueue};

/// Two turns, the first with a call.
fn talk() -> ScriptQueue {
    ScriptQueue::new([
        ModelScript::new().say("Let me look. ").call("test_echo", json!({"text": "Paris"})),
        ModelScript::new().say("Paris says hello."),
        ModelScript::new().say("The second answer."),
        ModelScript::new().say("The third answer."),
    ])
}

/// A server whose model talks as in [`talk`], with tools.
async fn server() -> TestServer {
    server_with(talk()).await
}

async fn server_with(model: ScriptQueue) -> TestServer {
    let build = |builder: throughline::ThroughlineBuilder| builder.tools(throughline_testkit::tools::all());
    TestServer::start_with(model, build, Default::default()).await
}

/// Sends a request as this user; returns its status and its body as JSON (as a string, if it is not JSON).
async fn ask_as(
    user: &str,
    server: &TestServer,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let mut request = server.client_of(user).request(method, server.url(path));
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

async fn ask(server: &TestServer, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    ask_as("ada", server, method, path, body).await
}

async fn get(server: &TestServer, path: &str) -> Value {
    let (status, body) = ask(server, Method::GET, path, None).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

async fn post(server: &TestServer, path: &str, body: Value) -> Value {
    let (status, said) = ask(server, Method::POST, path, Some(body)).await;
    assert!((200..300).contains(&status), "{path}: {status} {said}");
    said
}

/// Starts a turn and follows it to its end; its id.
async fn turn(server: &TestServer, text: &str, more: Value) -> String {
    let mut body = json!({"input": [{"type": "text", "text": text}]});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let started = post(server, "/v1/turns", body).await;
    let id = started["turn_id"].as_str().unwrap().to_owned();
    let events = server.client().get(server.url(&format!("/v1/turns/{id}/events"))).send().await.unwrap();
    let events = events.text().await.unwrap();
    assert!(events.contains("event: stream_end"), "{events}");
    id
}

/// An imported conversation: a turn with a call, one that continues it, and an edit as another branch, which
/// is the current one. Returns its id and those of the turns.
async fn conversation(server: &TestServer) -> (String, Vec<String>) {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "test.echo", "arguments": "{\"text\":\"Paris\"}"}});
    let said = json!([
        {"role": "user", "content": "What does Paris say?"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Paris"},
        {"role": "assistant", "content": "Paris says hello."},
        {"role": "user", "content": "And Rome?"}, {"role": "assistant", "content": "The second answer."},
        {"role": "user", "content": "And Oslo?"}, {"role": "assistant", "content": "The third answer."},
    ]);
    let mut portable = read_messages(&said.to_string(), 1_763_683_200_000, u64::MAX).unwrap();
    portable.turns[2].parent = portable.turns[1].parent.clone();
    let text = write_jsonl(&portable, 0);
    let request = server.client().post(server.url("/v1/conversations/import"));
    let made: Value = request
        .header("content-type", "application/jsonl")
        .body(text)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let id = made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let tree = get(server, &format!("/v1/conversations/{id}")).await;
    let turns = tree["tree"].as_array().unwrap().iter();
    let mut turns: Vec<(String, String)> = turns
        .map(|turn| (turn["answer"].as_str().unwrap().to_owned(), turn["id"].as_str().unwrap().to_owned()))
        .collect();
    // "Let me look …", "The second …", "The third …".
    turns.sort();
    (id, turns.into_iter().map(|(_, id)| id).collect())
}

/// `error.code` of a refusal, with its status.
async fn refused(
    server: &TestServer,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (u16, String, String) {
    let (status, said) = ask(server, method, path, body).await;
    let error = &said["error"];
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    assert!(!text("message").is_empty(), "{path}: {status} {said}");
    (status, text("code"), text("param"))
}
