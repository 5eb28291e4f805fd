//! A turn over a real socket: started, followed, looked at.

mod support;

use serde_json::{Value, json};
use support::TestServer;
use throughline_testkit::{Queue, Script};

#[tokio::test]
async fn a_turn_is_started_and_followed_to_its_end() {
    let server = TestServer::start(Queue::new([Script::new().say("Hello.")])).await;
    let client = server.client();
    let started =
        client.post(server.url("/v1/turns")).json(&json!({"input": [{"type": "text", "text": "Hi"}]}));
    let started = started.send().await.unwrap();
    assert_eq!(started.status(), 201);
    let started: Value = started.json().await.unwrap();
    let events = client.get(server.url(started["events_url"].as_str().unwrap())).send().await.unwrap();
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    let body = events.text().await.unwrap();
    assert!(body.starts_with("retry: 1"), "{body}");
    assert_eq!(body.matches("event: stream_end\n").count(), 1, "{body}");
    assert!(body.contains(r#""text":"Hello.""#), "{body}");
}
