//! Counts of each key, however its turns begin.

use crate::guarded_server::{GuardedServer, settings};
use crate::support;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use throughline::config::{ServerLimits, ServerSettings};
use throughline_server::KeyScope;
use throughline_testkit::{ModelScript, ScriptMove, ScriptQueue};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// A model that answers until the test is over.
fn endless() -> ScriptQueue {
    ScriptQueue::new((0..32).map(|_| ModelScript::new().then(ScriptMove::Stall)))
}

const HI: &str = r#"{"input":[{"type":"text","text":"Hi"}]}"#;

async fn start(server: &GuardedServer, key: &str) -> (u16, String) {
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let answer = server.ask("POST", "/v1/turns", &headers, HI).await;
    (answer.status, answer.code())
}

#[tokio::test]
async fn running_turns_are_limited_per_key() {
    let server = GuardedServer::start(endless(), &settings()).await;
    let (one, _) = server.key(&[KeyScope::Chat]).await;
    let (two, _) = server.key(&[KeyScope::Chat]).await;
    for _ in 0..ServerLimits::default().turns_per_key_max {
        assert_eq!(start(&server, &one).await.0, 201);
    }
    assert_eq!(start(&server, &one).await, (429, "too_many_turns".to_owned()));
    assert_eq!(start(&server, &two).await.0, 201, "another key of the same user has its own");
}

#[tokio::test]
async fn turn_started_over_websocket_counts_toward_the_limit() {
    let limits = ServerLimits { turns_per_minute_max: 1, ..ServerLimits::default() };
    let server = GuardedServer::start(endless(), &ServerSettings { limits, ..settings() }).await;
    let (key, _) = server.key(&[KeyScope::Chat]).await;
    let mut request = format!("ws://{}/v1/ws", server.address).into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("authorization", format!("Bearer {key}").parse().unwrap());
    headers.insert("sec-websocket-protocol", "throughline.v1".parse().unwrap());
    let (mut socket, _) = connect_async(request).await.unwrap();
    assert_eq!(start(&server, &key).await.0, 201);
    let mut op: Value = serde_json::from_str(HI).unwrap();
    op["op"] = json!("start");
    op["ref"] = json!("1");
    socket.send(Message::text(op.to_string())).await.unwrap();
    let answer = tokio::time::timeout(support::PATIENCE, socket.next()).await.expect("an answer in time");
    let answer = answer.unwrap().unwrap().into_text().unwrap();
    assert!(answer.contains("turns_per_minute_max"), "{answer}");
}
