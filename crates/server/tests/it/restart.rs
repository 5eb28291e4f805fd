//! The server is killed in the middle of a turn and started again on the same store: viewers continue from
//! their cursors.

use crate::support::{self, TestServer, eventually};
use serde_json::json;
use std::time::Duration;
use throughline::config::ServerLimits;
use throughline_testkit::{ModelScript, ScriptQueue};

fn asking() -> ScriptQueue {
    ScriptQueue::new([
        ModelScript::new().say("I will note it.").call("calendar_add", json!({"title": "tea"})),
        ModelScript::new().say("Noted."),
    ])
}

#[tokio::test]
async fn approval_and_viewer_survive_a_restart() {
    let server = TestServer::start_asking(asking()).await;
    let turn = server.say("Hi").await;
    let before = server.follow(&turn, 0).await.until("approval_request").await;
    let (seen, question) = (before.last().unwrap().id, before.last().unwrap().data["approval_id"].clone());

    let server = server.restart().await;
    assert!(server.state.turn_manager.is_ready());
    let mut viewer = server.follow(&turn, seen).await;
    let path = format!("/v1/turns/{turn}/approvals/{}", question.as_str().unwrap());
    let (status, answer) = server.post(&path, json!({"decision": "approve"})).await;
    assert_eq!((status, answer["status"].as_str()), (200, Some("resolved")), "{answer}");
    let after = viewer.rest().await;
    assert_eq!(after[0].id, seen + 1, "nothing is lost and nothing comes twice");
    assert_eq!(after.last().unwrap().name, "stream_end");
    assert_eq!(after.last().unwrap().data["status"], "completed");
    let starts = after.iter().filter(|event| event.name == "tool_start").count();
    assert_eq!(starts, 1, "the write runs once");
    let whole = server.follow(&turn, 0).await.rest().await;
    let joined: Vec<_> = before.into_iter().chain(after).collect();
    assert_eq!(whole, joined);
    // The same answer again is accepted as such; a different one is a conflict.
    assert_eq!(server.post(&path, json!({"decision": "approve"})).await.0, 200);
    assert_eq!(server.post(&path, json!({"decision": "deny"})).await.0, 409);
}

#[tokio::test]
async fn drain_hands_turns_over_without_ending_them() {
    let server = TestServer::start_asking(asking()).await;
    let turn = server.say("Hi").await;
    let mut viewer = server.follow(&turn, 0).await;
    let seen = viewer.until("approval_request").await.last().unwrap().id;
    let drained = server.drain(Duration::from_millis(1)).await;
    assert_eq!(drained.handed_over, 1);
    assert_eq!(viewer.rest().await, [], "closed cleanly, and without an end");
    assert!(!viewer.broken);

    let server = server.restart().await;
    let (status, _) = server.post(&format!("/v1/turns/{turn}/cancel"), json!({})).await;
    assert_eq!(status, 202);
    let events = server.follow(&turn, seen).await.rest().await;
    assert_eq!(events.last().unwrap().data["status"], "cancelled");
}

fn message_body(text: &str, when: &str, id: &str) -> serde_json::Value {
    json!({"input": [{"type": "text", "text": text}], "when": when, "id": id})
}

#[tokio::test]
async fn queued_messages_survive_a_restart() {
    let server = TestServer::start_asking(ScriptQueue::new([
        ModelScript::new().say("I will note it.").call("calendar_add", json!({"title": "tea"})),
        ModelScript::new().say("Noted, and hurried."),
        ModelScript::new().say("You are welcome."),
    ]))
    .await;
    let (_, started) = server.post("/v1/turns", support::saying("Hi")).await;
    let turn = started["turn_id"].as_str().unwrap().to_owned();
    let question = server.follow(&turn, 0).await.until("approval_request").await.pop().unwrap();
    let messages = format!("/v1/turns/{turn}/messages");
    for (text, when, id) in
        [("Hurry", "next_step", "a"), ("Thanks", "after_turn", "b"), ("Wait", "next_step", "c")]
    {
        assert_eq!(server.post(&messages, message_body(text, when, id)).await.0, 202);
    }
    let taken_back = server.client().delete(server.url(&format!("{messages}/c"))).send().await.unwrap();
    assert_eq!(taken_back.status(), 200);

    // Twice, so that a message that was sent again is stored again.
    let server = server.restart().await.restart().await;
    let (_, waiting) = server.get(&messages).await;
    let ids: Vec<_> = waiting["messages"].as_array().unwrap().iter().map(|message| &message["id"]).collect();
    assert_eq!(ids, ["a", "b"], "{waiting}");
    let mut viewer = server.follow(&turn, question.id).await;
    let path = format!("/v1/turns/{turn}/approvals/{}", question.data["approval_id"].as_str().unwrap());
    assert_eq!(server.post(&path, json!({"decision": "approve"})).await.0, 200);
    let rest = viewer.rest().await;
    let heard: Vec<_> = rest.iter().filter(|event| event.name == "user_message").collect();
    assert_eq!(heard.len(), 1, "{rest:?}");
    assert_eq!((&heard[0].data["id"], &heard[0].data["input"][0]["text"]), (&json!("a"), &json!("Hurry")));

    // What waited for the end begins the next turn, once.
    let tree = format!("/v1/conversations/{}", started["conversation_id"].as_str().unwrap());
    let mut next = None;
    eventually("the next turn has begun", async || {
        let (_, conversation) = server.get(&tree).await;
        let nodes = conversation["tree"].as_array().unwrap();
        next = nodes.iter().find_map(|node| node["id"].as_str().filter(|id| *id != turn)).map(str::to_owned);
        next.is_some()
    })
    .await;
    let next = next.unwrap();
    let next = server.follow(&next, 0).await.rest().await;
    assert_eq!(next[0].data["input"][0]["text"], "Thanks");
    let server = server.restart().await;
    let (_, conversation) = server.get(&tree).await;
    assert_eq!(conversation["tree"].as_array().unwrap().len(), 2, "{conversation}");
    assert_eq!(server.upstream.violations(), []);
}

#[tokio::test]
async fn on_disconnect_cancel_applies_after_a_restart() {
    let limits = ServerLimits { reconnect_ms: 200, ..ServerLimits::default() };
    let ask = |builder: throughline::ThroughlineBuilder| builder.approval(throughline::ApprovalMode::Ask);
    let script = || ModelScript::new().call("calendar_add", json!({"title": "tea"}));
    let server = TestServer::start_with(ScriptQueue::new([script(), script(), script()]), ask, limits).await;
    let own =
        server.turn(json!({"input": [{"type": "text", "text": "Hi"}], "on_disconnect": "cancel"})).await;
    let mut own_stream = server.follow(&own, 0).await;
    own_stream.until("approval_request").await;
    let body = json!({"model": "default", "stream": true, "messages": [{"role": "user", "content": "Hi"}],
        "throughline": {"approval": "ask"}});
    let chat = server.client().post(server.url("/v1/chat/completions")).json(&body).send().await.unwrap();
    let chat_turn = chat.headers()["throughline-turn-id"].to_str().unwrap().to_owned();
    server.follow(&chat_turn, 0).await.until("approval_request").await;
    let goes_on = server.say("Hi").await;
    server.follow(&goes_on, 0).await.until("approval_request").await;

    let server = server.restart().await;
    for turn in [&own, &chat_turn] {
        let ended = async {
            loop {
                let (_, standing) = server.get(&format!("/v1/turns/{turn}")).await;
                if standing["status"] != "running" {
                    break standing;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let ended = tokio::time::timeout(support::PATIENCE, ended).await.unwrap();
        assert_eq!(ended["status"], "cancelled", "{ended}");
    }
    assert_eq!(server.get(&format!("/v1/turns/{goes_on}")).await.1["status"], "running");
}
