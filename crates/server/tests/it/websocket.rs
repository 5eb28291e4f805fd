//! Several turns over one WebSocket.

use crate::guarded_server::{self, GuardedServer};
use crate::support::{Socket, TestServer};
use futures_util::SinkExt;
use serde_json::{Value, json};
use std::time::Duration;
use throughline::ApprovalMode;
use throughline_server::KeyScope;
use throughline_testkit::{ModelScript, ScriptMove, ScriptQueue, SpeechMove};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};

fn has(name: &'static str, value: &'static str) -> impl Fn(&Value) -> bool {
    move |message| message[name] == value
}

/// The events of one turn among these.
fn of<'a>(turn: &Value, messages: &'a [Value]) -> Vec<&'a Value> {
    messages.iter().filter(|message| message["turn_id"] == *turn && message.get("seq").is_some()).collect()
}

fn asking() -> ScriptQueue {
    let asks = || ModelScript::new().call("calendar_add", json!({"title": "tea"}));
    ScriptQueue::new([asks(), asks(), ModelScript::new().say("Noted.")])
}

fn start(text: &str, reference: u32) -> Value {
    json!({"op": "start", "ref": reference, "input": [{"type": "text", "text": text}]})
}

#[tokio::test]
async fn two_turns_run_and_are_approved_over_one_socket() {
    let server = TestServer::start_asking(asking()).await;
    let mut socket = Socket::connect(&server).await;
    let mut seen = Vec::new();
    for reference in 1..=2 {
        socket.send(start("Hi", reference)).await;
        seen.extend(socket.until(has("type", "approval_request")).await);
    }
    let started: Vec<&Value> = seen.iter().filter(|message| message["op"] == "started").collect();
    assert_eq!(started.iter().map(|message| &message["ref"]).collect::<Vec<_>>(), [&json!(1), &json!(2)]);
    let turns = [started[0]["turn_id"].clone(), started[1]["turn_id"].clone()];
    for question in seen.clone().iter().filter(|message| message["type"] == "approval_request") {
        let (turn, id) = (&question["turn_id"], &question["approval_id"]);
        socket
            .send(json!({"op": "approve", "turn_id": turn, "approval_id": id, "decision": "approve"}))
            .await;
        let mut rest = socket.until(has("op", "unsubscribed")).await;
        assert_eq!(rest.last().unwrap()["ended"], true);
        seen.append(&mut rest);
    }
    for turn in &turns {
        let whole = server.follow(turn.as_str().unwrap(), 0).await.rest().await;
        let whole: Vec<&Value> = whole.iter().map(|event| &event.data).collect();
        assert_eq!(of(turn, &seen), whole, "the same objects as over SSE");
    }
}

#[tokio::test]
async fn denial_with_stop_over_the_socket_cancels_the_turn() {
    let server = TestServer::start_asking(asking()).await;
    let mut socket = Socket::connect(&server).await;
    socket.send(start("Hi", 1)).await;
    let asked = socket.until(has("type", "approval_request")).await;
    let question = asked.last().unwrap();
    let answer = |decision: &str| {
        json!({"op": "approve", "turn_id": question["turn_id"], "approval_id": question["approval_id"],
            "decision": decision, "stop": true})
    };
    socket.send(answer("approve")).await;
    let refused = socket.until(has("op", "error")).await;
    assert_eq!(refused.last().unwrap()["error"]["code"], "contradiction");
    socket.send(answer("deny")).await;
    let rest = socket.until(has("op", "unsubscribed")).await;
    let ended = rest.iter().find(|message| message["type"] == "stream_end").unwrap();
    assert_eq!(ended["status"], "cancelled");
}

#[tokio::test]
async fn socket_resumes_after_its_last_event_across_a_restart() {
    let server = TestServer::start_asking(asking()).await;
    let mut socket = Socket::connect(&server).await;
    socket.send(start("Hi", 1)).await;
    let before = socket.until(has("type", "approval_request")).await;
    let question = before.last().unwrap();
    let (turn, seen) = (question["turn_id"].clone(), question["seq"].as_u64().unwrap());

    let server = server.restart().await;
    let mut socket = Socket::connect(&server).await;
    socket.send(json!({"op": "subscribe", "turn_id": turn, "after": seen})).await;
    assert_eq!(socket.next().await.unwrap()["op"], "subscribed");
    socket.send(json!({"op": "cancel", "turn_id": turn})).await;
    let after = socket.until(has("op", "unsubscribed")).await;
    let events = of(&turn, &after);
    assert_eq!(events[0]["seq"], seen + 1);
    assert_eq!(events.last().unwrap()["status"], "cancelled");
    // After a snapshot of the end no more events follow.
    socket.send(json!({"op": "subscribe", "turn_id": turn, "from": "snapshot"})).await;
    let whole = socket.until(has("op", "unsubscribed")).await;
    assert_eq!(
        whole.iter().map(|message| message["type"].as_str()).collect::<Vec<_>>(),
        [None, Some("snapshot"), None]
    );
}

#[tokio::test]
async fn invalid_operation_is_an_error_and_the_socket_stays_open() {
    let server = TestServer::start(ScriptQueue::new([ModelScript::new().say("Hello.")])).await;
    let mut socket = Socket::connect(&server).await;
    for (op, code, remedy) in [
        (json!({"op": "subscrbe"}), "unknown_op", "did you mean `subscribe`?"),
        (json!({"opp": "ping"}), "missing_field", "one of start"),
        (json!({"op": "subscribe", "turn_id": "turn_none"}), "not_found", ""),
        (json!({"op": "start", "inptu": []}), "unknown_field", "did you mean `input`?"),
        (json!({"op": "unsubscribe", "turn_id": "turn_none"}), "not_found", ""),
        (json!([1]), "invalid_value", "one JSON object"),
        (json!({"op": "tools", "tools": [{"name": "rm"}]}), "invalid_tool", ""),
    ] {
        let mut asked = op.clone();
        if let Some(fields) = asked.as_object_mut() {
            fields.insert("ref".into(), json!("r"));
        }
        socket.send(asked).await;
        let told = socket.next().await.unwrap();
        assert_eq!(
            (&told["op"], told["error"]["code"].as_str()),
            (&json!("error"), Some(code)),
            "{op} {told}"
        );
        assert!(told["error"]["remedy"].as_str().unwrap_or_default().contains(remedy), "{op} {told}");
        let status = told["status"].as_u64().unwrap();
        assert!((400..500).contains(&status) && (status == 404) == (code == "not_found"), "{op} {told}");
        assert_eq!(told.get("ref").is_some(), op.is_object());
    }
    socket.send(json!({"op": "ping", "ref": 7})).await;
    let pong = socket.next().await.unwrap();
    assert_eq!((&pong["op"], &pong["ref"]), (&json!("pong"), &json!(7)));
}

#[tokio::test]
async fn socket_errors_carry_http_status_and_retry_after() {
    let limits = throughline::config::ServerLimits { streams_per_key_max: 1, ..Default::default() };
    let server =
        TestServer::start_with(asking(), |builder| builder.approval(ApprovalMode::Ask), limits).await;
    let mut socket = Socket::connect(&server).await;
    socket.send(start("Hi", 1)).await;
    socket.until(has("type", "approval_request")).await;
    socket.send(start("Hi again", 2)).await;
    let refused = socket.until(has("op", "error")).await.pop().unwrap();
    assert_eq!(
        (&refused["status"], &refused["retry_after_s"], &refused["error"]["code"]),
        (&json!(429), &json!(1), &json!("too_many_streams"))
    );
}

#[tokio::test]
async fn outgoing_message_may_exceed_the_incoming_limit() {
    let limits = throughline::config::ServerLimits { socket_message_bytes_max: 1_000, ..Default::default() };
    let text = "x".repeat(1 << 20);
    let whole = SpeechMove { text: text.clone(), chunk_chars: Some(usize::MAX), tokens_per_second: None };
    let model = ScriptQueue::new([ModelScript::new().then(ScriptMove::Say(whole))]);
    let server = TestServer::start_with(model, |builder| builder, limits).await;
    let mut socket = Socket::connect(&server).await;
    socket.send(start("Hi", 1)).await;
    let ended = socket.until(has("op", "unsubscribed")).await.pop().unwrap();
    socket.send(json!({"op": "subscribe", "turn_id": ended["turn_id"], "from": "snapshot"})).await;
    let whole = socket.until(has("type", "snapshot")).await.pop().unwrap();
    assert_eq!(whole["message"]["blocks"][0]["text"], text);
}

#[tokio::test]
async fn socket_close_codes_name_the_reason() {
    let limits = throughline::config::ServerLimits {
        socket_message_bytes_max: 1_000,
        socket_frame_bytes_max: 1_000,
        ..Default::default()
    };
    let server = TestServer::start_with(
        ScriptQueue::new([ModelScript::new().say("Hello.")]),
        |builder| builder,
        limits,
    )
    .await;
    for (message, code) in
        [(Message::binary(Bytes::from_static(b"{}")), 1003), (Message::text("x".repeat(1_001)), 1009)]
    {
        let mut socket = Socket::connect(&server).await;
        socket.0.send(message).await.unwrap();
        assert_eq!(socket.next().await, Err(code));
    }
    let mut socket = Socket::connect(&server).await;
    socket.send(json!({"op": "ping"})).await;
    socket.next().await.unwrap();
    assert!(
        Socket::offering(&server, None).await.is_ok(),
        "without a subprotocol there is one way to read it"
    );
    assert!(
        matches!(Socket::offering(&server, Some("chat")).await, Err(Error::Http(refused)) if refused.status() == 400)
    );
    server.drain(Duration::ZERO).await;
    assert_eq!(socket.next().await, Err(1001));
}

#[tokio::test]
async fn revoked_key_closes_sockets_with_4401() {
    let server = GuardedServer::start(
        ScriptQueue::new([ModelScript::new().then(ScriptMove::Stall)]),
        &guarded_server::settings(),
    )
    .await;
    let (key, pass) = server.key(&[KeyScope::Chat]).await;
    let bearer = format!("Bearer {key}");
    let open = async || {
        let headers = [("authorization", bearer.as_str())];
        Socket(Socket::asking(server.address, &headers, Some("throughline.v1")).await.unwrap())
    };
    let (mut silent, mut following) = (open().await, open().await);
    following.send(start("Hi", 1)).await;
    following.until(has("type", "step_start")).await;
    silent.send(json!({"op": "ping"})).await;
    silent.next().await.unwrap();
    server.request_guard.revoke("local", &pass.id).await.unwrap();
    assert_eq!(silent.next().await, Err(4401));
    let last = loop {
        if let Err(code) = following.next().await {
            break code;
        }
    };
    assert_eq!(last, 4401, "also in the middle of a turn");
    assert!(Socket::asking(server.address, &[("authorization", &bearer)], None).await.is_err());
}

#[tokio::test]
async fn socket_client_runs_its_own_tool() {
    let calls = ScriptQueue::new([
        ModelScript::new().call("client_open", json!({})),
        ModelScript::new().say("Open."),
    ]);
    let server = TestServer::start(calls).await;
    let mut socket = Socket::connect(&server).await;
    let tools = json!([{"name": "client.open", "description": "Opens it", "effect": "read"}]);
    socket.send(json!({"op": "tools", "tools": tools})).await;
    let declared = socket.next().await.unwrap();
    assert_eq!((&declared["op"], &declared["tools"]), (&json!("tools_declared"), &json!(1)));
    socket.send(start("Hi", 1)).await;
    let offered = socket.until(has("type", "tool_start")).await.pop().unwrap();
    assert_eq!(offered["client_id"], declared["client_id"]);
    let (turn, call) = (&offered["turn_id"], &offered["tool_id"]);
    socket
        .send(
            json!({"op": "result", "turn_id": turn, "tool_id": call, "status": "success", "output": "open"}),
        )
        .await;
    let rest = socket.until(has("op", "unsubscribed")).await;
    let ended = rest.iter().find(|message| message["type"] == "tool_result").unwrap();
    assert_eq!(ended["output"], "open");
}
