//! The server is killed in mid-turn and started again on the same store: viewers go on where they were. // R: S2, S3, A4

mod support;

use serde_json::json;
use std::time::Duration;
use support::TestServer;
use throughline_testkit::{Queue, Script};

fn asking() -> Queue {
    Queue::new([
        Script::new().say("I will note it.").call("calendar_add", json!({"title": "tea"})),
        Script::new().say("Noted."),
    ])
}

#[tokio::test]
async fn a_question_stays_open_over_a_restart_and_its_viewer_goes_on() {
    let server = TestServer::start_asking(asking()).await;
    let turn = server.say("Hi").await;
    let before = server.follow(&turn, 0).await.until("approval_request").await;
    let (seen, question) = (before.last().unwrap().id, before.last().unwrap().data["approval_id"].clone());

    let server = server.restart().await;
    assert!(server.state.hub.is_ready());
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
    // Asked again, it was answered so before; the other way, differently.
    assert_eq!(server.post(&path, json!({"decision": "approve"})).await.0, 200);
    assert_eq!(server.post(&path, json!({"decision": "deny"})).await.0, 409);
}

// R: O2
#[tokio::test]
async fn a_drained_server_hands_its_turns_over_without_ending_them() {
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
