//! A call that is retried: a turn that begins with it, whose model learns the result.

use super::{ask, ask_as, get, post, refused, server, turn};
use crate::support::TestServer;
use reqwest::Method;
use serde_json::{Value, json};
use throughline_testkit::{ModelScript, ScriptQueue};

/// The first call in a turn's message.
async fn first_call(server: &TestServer, turn: &str) -> Value {
    let snapshot = get(server, &format!("/v1/turns/{turn}")).await;
    let blocks = snapshot["message"]["blocks"].as_array().unwrap();
    blocks.iter().find(|block| block["kind"] == "tool_call").unwrap_or_else(|| panic!("{snapshot}")).clone()
}

/// Retries the first call of a turn, and follows the new turn to its end; its id.
async fn retry(server: &TestServer, turn: &str, body: Value) -> String {
    let call = first_call(server, turn).await["tool_id"].as_str().unwrap().to_owned();
    let started = post(server, &format!("/v1/turns/{turn}/calls/{call}/retry"), body).await;
    let id = started["turn_id"].as_str().unwrap().to_owned();
    let path = started["events_url"].as_str().unwrap();
    let events = server.client().get(server.url(path)).send().await.unwrap().text().await.unwrap();
    assert!(events.contains("event: stream_end"), "{events}");
    id
}

#[tokio::test]
async fn retried_call_runs_first_and_the_model_gets_its_result() {
    let server = server().await;
    let first = turn(&server, "What does Paris say?", json!({})).await;
    let asked = server.upstream.requests().len();
    let again = retry(&server, &first, json!({})).await;
    let call = first_call(&server, &again).await;
    assert_eq!((&call["status"], &call["output"]), (&json!("success"), &json!("Paris")), "{call}");
    assert_eq!(server.upstream.requests().len() - asked, 1, "the call itself is asked of no model");
    let told = server.upstream.requests().last().unwrap().body["messages"].to_string();
    for word in ["Paris says hello.", "Run `test.echo` again."] {
        assert!(told.contains(word), "{word}: {told}");
    }
    assert_eq!(told.matches(r#""role":"tool""#).count(), 2, "both results: {told}");
    let snapshot = get(&server, &format!("/v1/turns/{again}")).await;
    assert_eq!(snapshot["message"]["blocks"][1]["text"], "The second answer.", "{snapshot}");
    assert!(call["ended_at"].as_i64() >= call["started_at"].as_i64(), "{call}");
}

#[tokio::test]
async fn retry_accepts_other_arguments_and_text() {
    let server = server().await;
    let first = turn(&server, "What does Paris say?", json!({})).await;
    let body = json!({"arguments": {"text": "Rome"}, "text": "Noch einmal, mit Rom."});
    let again = retry(&server, &first, body).await;
    assert_eq!(first_call(&server, &again).await["output"], "Rome");
    let told = server.upstream.requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("Noch einmal, mit Rom."), "{told}");
}

#[tokio::test]
async fn retried_write_needs_approval_again() {
    let script = || ModelScript::new().call("calendar_add", json!({"title": "first"}));
    let model = [script(), ModelScript::new().say("Denied."), ModelScript::new().say("Done.")];
    let build = |builder: throughline::ThroughlineBuilder| {
        builder.tools(throughline_testkit::tools::all()).approval(throughline::ApprovalMode::Ask)
    };
    let server = TestServer::start_with(ScriptQueue::new(model), build, Default::default()).await;
    let started = post(&server, "/v1/turns", json!({"input": [{"type": "text", "text": "Add it."}]})).await;
    let first = started["turn_id"].as_str().unwrap().to_owned();
    decide(&server, &first, "deny").await;
    wait_for_end(&server, &first).await;
    let call = first_call(&server, &first).await;
    assert_eq!(call["status"], "denied", "{call}");
    let path = format!("/v1/turns/{first}/calls/{}/retry", call["tool_id"].as_str().unwrap());
    let again = post(&server, &path, json!({})).await["turn_id"].as_str().unwrap().to_owned();
    decide(&server, &again, "approve").await;
    wait_for_end(&server, &again).await;
    assert_eq!(first_call(&server, &again).await["status"], "success");
}

/// Answers the open question of a turn as soon as it is asked.
async fn decide(server: &TestServer, turn: &str, decision: &str) {
    let events = server.client().get(server.url(&format!("/v1/turns/{turn}/events"))).send().await.unwrap();
    let mut body = events;
    let mut text = String::new();
    let id = loop {
        let piece = body.chunk().await.unwrap().expect("the stream ended without a question");
        text.push_str(&String::from_utf8_lossy(&piece));
        let line = text.lines().find(|line| {
            line.starts_with("data:") && line.contains("\"approval_request\"") && line.ends_with('}')
        });
        if let Some(event) = line.and_then(|line| serde_json::from_str::<Value>(&line[5..]).ok()) {
            break event["approval_id"].as_str().unwrap().to_owned();
        }
    };
    post(server, &format!("/v1/turns/{turn}/approvals/{id}"), json!({"decision": decision})).await;
}

async fn wait_for_end(server: &TestServer, turn: &str) {
    let path = format!("/v1/turns/{turn}/events");
    let events = server.client().get(server.url(&path)).send().await.unwrap().text().await.unwrap();
    assert!(events.contains("event: stream_end"), "{events}");
}

#[tokio::test]
async fn invalid_retry_is_rejected_without_a_model_call() {
    let server = server().await;
    let first = turn(&server, "What does Paris say?", json!({})).await;
    let call = first_call(&server, &first).await["tool_id"].as_str().unwrap().to_owned();
    let alone = turn(&server, "And now?", json!({"messages": []})).await;
    let retry_at = |turn: &str, call: &str| format!("/v1/turns/{turn}/calls/{call}/retry");
    let refusals = [
        (retry_at("turn_none", &call), json!({}), (404, "not_found")),
        (retry_at(&first, "call_none"), json!({}), (404, "not_found")),
        (retry_at(&alone, "call_none"), json!({}), (409, "no_conversation")),
        (retry_at(&first, &call), json!({"text": "  "}), (400, "empty_input")),
        (retry_at(&first, &call), json!({"arguments": "Rome"}), (400, "invalid_value")),
    ];
    let before = server.upstream.requests().len();
    for (path, body, (status, code)) in refusals {
        let (is, error, _) = refused(&server, Method::POST, &path, Some(body.clone())).await;
        assert_eq!((is, error.as_str()), (status, code), "{path} {body}");
    }
    let (status, body) =
        ask_as("eve", &server, Method::POST, &retry_at(&first, &call), Some(json!({}))).await;
    assert_eq!(status, 404, "another user's turn: {body}");
    assert_eq!(server.upstream.requests().len(), before);
    let (status, _) = ask(&server, Method::GET, &format!("/v1/turns/{first}"), None).await;
    assert_eq!(status, 200);
}
