//! Two servers over one PostgreSQL: each serves every turn, and neither reports a wrong state of the other's
//! turns.

#![cfg(feature = "postgres")]

use crate::cluster::Cluster;
use crate::support::{self, PostgresDatabase, Socket, TestServer, accepted_turn, eventually, saying};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use throughline::config::ServerLimits;
use throughline::engine::{TurnId, TurnLimits};
use throughline_store::{Durability, LogRecord, PostgresSettings};
use throughline_testkit::{ModelScript, ScriptQueue};

/// A database, with the settings of a server on it; `None`: PostgreSQL is not available.
struct Database {
    postgres: PostgresDatabase,
    _cluster: Arc<Cluster>,
}

impl Database {
    fn fresh() -> Option<Self> {
        let cluster = Cluster::shared()?;
        let postgres = PostgresDatabase { url: cluster.fresh(), lease: PostgresDatabase::LASTING };
        Some(Self { postgres, _cluster: cluster })
    }

    /// A database in which one server takes over from another that dies.
    fn changing_hands() -> Option<Self> {
        let Self { postgres, _cluster } = Self::fresh()?;
        let lease = PostgresSettings::default().lease;
        Some(Self { postgres: PostgresDatabase { lease, ..postgres }, _cluster })
    }

    async fn server(&self, scripts: impl IntoIterator<Item = ModelScript>) -> TestServer {
        let ask = |builder: throughline::ThroughlineBuilder| builder.approval(throughline::ApprovalMode::Ask);
        TestServer::start_in(
            Some(self.postgres.clone()),
            ScriptQueue::new(scripts),
            ask,
            ServerLimits::default(),
        )
        .await
    }
}

fn noting() -> [ModelScript; 2] {
    [
        ModelScript::new().say("I will note it.").call("calendar_add", json!({"title": "tea"})),
        ModelScript::new().say("Noted."),
    ]
}

/// A turn of the server that waits for an answer: its id, its conversation, its question, and the call it is about.
struct Asking {
    turn: String,
    conversation: String,
    question: String,
    call: String,
    seen: u64,
}

async fn asking(server: &TestServer) -> Asking {
    let (status, started) = server.post("/v1/turns", saying("Hi")).await;
    assert_eq!(status, 201, "{started}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let turn = text(&started["turn_id"]);
    let question = server.follow(&turn, 0).await.until("approval_request").await.pop().unwrap();
    Asking {
        conversation: text(&started["conversation_id"]),
        question: text(&question.data["approval_id"]),
        call: text(&question.data["tool_id"]),
        seen: question.id,
        turn,
    }
}

/// Commands to a turn that waits for an answer, in an order in which each status occurs: method, path after
/// `/v1/turns/{turn}`, body.
fn commands(of: &Asking) -> Vec<(Method, String, Value)> {
    let (approve, deny) = (json!({"decision": "approve"}), json!({"decision": "deny"}));
    let (question, call) = (&of.question, &of.call);
    vec![
        (
            Method::POST,
            "/messages".into(),
            json!({"id": "msg_1", "input": [{"type": "text", "text": "Hurry"}]}),
        ),
        (Method::GET, "/messages".into(), Value::Null),
        (Method::DELETE, "/messages/msg_1".into(), Value::Null),
        (Method::DELETE, "/messages/msg_1".into(), Value::Null),
        (Method::POST, "/messages".into(), json!({"input": []})),
        (Method::POST, format!("/calls/{call}/result"), json!({"status": "success", "output": "x"})),
        (Method::POST, "/calls/call_none/cancel".into(), json!({})),
        (Method::POST, "/approvals/approval_none".into(), approve.clone()),
        (Method::POST, format!("/approvals/{question}"), approve.clone()),
        (Method::POST, format!("/approvals/{question}"), approve),
        (Method::POST, format!("/approvals/{question}"), deny.clone()),
        (Method::POST, "/approvals/all".into(), deny),
        (Method::POST, format!("/calls/{call}/cancel"), json!({})),
        (Method::POST, "/cancel".into(), json!({})),
        (Method::POST, format!("/approvals/{question}"), json!({"decision": "maybe"})),
    ]
}

/// Answers of a server to these commands: status, and the error's code or the body's names.
async fn answers(server: &TestServer, of: &Asking) -> Vec<String> {
    let mut answers = Vec::new();
    for (method, path, body) in commands(of) {
        let url = server.url(&format!("/v1/turns/{}{path}", of.turn));
        let request = server.client().request(method.clone(), url);
        let request = if body.is_null() { request } else { request.json(&body) };
        let response = request.send().await.unwrap();
        let (status, kind) = (response.status().as_u16(), response.headers().get("content-type").cloned());
        let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap_or(Value::Null);
        let names: Vec<&String> = body.as_object().into_iter().flatten().map(|(name, _)| name).collect();
        let path = path.replace(&of.question, "{question}").replace(&of.call, "{call}");
        answers.push(format!("{method} {path}: {status} {kind:?} {names:?} {}", body["error"]["code"]));
    }
    answers
}

#[tokio::test]
async fn commands_get_the_same_answer_from_any_server() {
    let Some(database) = Database::fresh() else { return };
    let waiting = || {
        // The second call waits when the first has been answered, so that the turn still runs.
        let both =
            ModelScript::new().call("calendar_add", json!({"title": "tea"})).call("queue_wait", json!({}));
        [both.clone(), both]
    };
    let (a, b) = (database.server(waiting()).await, database.server([]).await);
    let by_owner = answers(&a, &asking(&a).await).await;
    let by_other = answers(&b, &asking(&a).await).await;
    assert_eq!(by_other, by_owner);
    let all = by_owner.join("\n");
    for status in [": 200 ", ": 202 ", ": 404 ", ": 409 ", ": 400 "] {
        assert!(all.contains(status), "{status} does not occur in\n{all}");
    }
}

#[tokio::test]
async fn websocket_commands_reach_the_owning_server() {
    let Some(database) = Database::fresh() else { return };
    let (a, b) = (database.server(noting()).await, database.server([]).await);
    let of = asking(&a).await;
    let mut viewer = b.follow(&of.turn, of.seen).await;

    // Its conversation cannot be deleted anywhere, and who must cancel it first is named.
    let conversation = b.url(&format!("/v1/conversations/{}", of.conversation));
    let (status, error) = support::answered(b.client().delete(conversation)).await;
    assert_eq!((status, &error["error"]["code"]), (409, &json!("turn_running")), "{error}");
    assert!(error["error"]["owner"].is_string(), "{error}");

    let mut socket = Socket::connect(&b).await;
    for (op, expected) in [
        (
            json!({"op": "say", "turn_id": of.turn, "id": "msg_9", "input": [{"type": "text", "text": "Hurry"}]}),
            json!({"op": "queued", "id": "msg_9"}),
        ),
        (
            json!({"op": "result", "turn_id": of.turn, "tool_id": of.call, "status": "success"}),
            json!("not_found"),
        ),
        (
            json!({"op": "approve", "turn_id": of.turn, "approval_id": of.question, "decision": "approve"}),
            json!({"op": "done", "status": "resolved"}),
        ),
    ] {
        socket.send(op.clone()).await;
        let mut reply = socket.next().await.unwrap();
        if expected.is_string() {
            reply = reply["error"]["code"].clone();
        }
        assert_eq!(reply, expected, "{op}");
    }
    assert_eq!(viewer.rest().await.last().unwrap().data["status"], "completed");
    socket.send(json!({"op": "cancel", "turn_id": of.turn})).await;
    assert_eq!(socket.next().await.unwrap()["status"], "cancelling");
}

#[tokio::test]
async fn turn_is_taken_over_when_its_server_dies() {
    let Some(database) = Database::changing_hands() else { return };
    let (a, b) = (database.server(noting()).await, database.server([ModelScript::new().say("Noted.")]).await);
    let of = asking(&a).await;
    let mut viewer = b.follow(&of.turn, of.seen).await;
    drop(a);
    // An answer sent before the other server has noticed waits until it has.
    let path = format!("/v1/turns/{}/approvals/{}", of.turn, of.question);
    let (status, reply) = b.post(&path, json!({"decision": "approve"})).await;
    assert_eq!(status, 200, "{reply}");
    let rest = viewer.rest().await;
    assert_eq!(rest.last().unwrap().data["status"], "completed");
    assert_eq!(rest.iter().filter(|event| event.name == "turn_resumed").count(), 1);
    assert_eq!(rest.iter().filter(|event| event.name == "tool_start").count(), 1);
}

#[tokio::test]
async fn turn_is_interrupted_after_takeovers_max() {
    let Some(database) = Database::changing_hands() else { return };
    let mut server = database.server(noting()).await;
    let of = asking(&server).await;
    let mut seen = of.seen;
    for _ in 0..TurnLimits::default().takeovers_max {
        let next = database.server([]).await;
        let mut viewer = next.follow(&of.turn, seen).await;
        drop(server);
        seen = viewer.until("turn_resumed").await.last().unwrap().id;
        server = next;
    }
    let last = database.server([]).await;
    let mut viewer = last.follow(&of.turn, seen).await;
    drop(server);
    let rest = viewer.rest().await;
    assert_eq!(rest.last().unwrap().data["status"], "interrupted", "{rest:?}");
}

/// An answer over chat.
async fn chat(server: &TestServer, messages: &Value, tools: &Value) -> (u16, Value) {
    let body = json!({"model": "default:text", "messages": messages, "tools": tools});
    let (status, answer) = server.post("/v1/chat/completions", body).await;
    let choice = &answer["choices"][0]["message"];
    (status, if choice.is_null() { answer["error"]["code"].clone() } else { choice.clone() })
}

/// A chat that ended with a question.
struct ChatAsking {
    link: String,
    messages: Vec<Value>,
}

async fn asking_in_chat(server: &TestServer) -> ChatAsking {
    let asks = json!({"role": "user", "content": "Hi"});
    let (status, message) = chat(server, &json!([asks]), &json!([])).await;
    let text = message["content"].as_str().unwrap_or_default().to_owned();
    assert!(status == 200 && text.contains("`tlq_"), "{status} {message}");
    let link = text.split('#').nth(1).and_then(|link| link.split(')').next()).unwrap().to_owned();
    ChatAsking { link, messages: vec![asks, json!({"role": "assistant", "content": text})] }
}

impl ChatAsking {
    fn then(&self, words: &str) -> Value {
        let mut messages = self.messages.clone();
        messages.push(json!({"role": "user", "content": words}));
        json!(messages)
    }
}

/// A code is used up where its turn runs, and nowhere else.
#[tokio::test]
async fn chat_question_is_answered_only_at_the_owning_server() {
    let Some(database) = Database::fresh() else { return };
    let (a, b) = (database.server(noting()).await, database.server([ModelScript::new().say("New.")]).await);
    let asked = asking_in_chat(&a).await;
    for words in ["yes", "no", "yes, but tomorrow"] {
        let (status, code) = chat(&b, &asked.then(words), &json!([])).await;
        assert_eq!((status, code), (503, json!("owned_elsewhere")), "{words}");
    }
    assert!(b.upstream.requests().is_empty(), "no second turn");
    let (status, message) = chat(&a, &asked.then("yes"), &json!([])).await;
    assert_eq!(status, 200);
    assert!(message["content"].as_str().unwrap().ends_with("Noted."), "{message}");
}

#[tokio::test]
async fn question_link_stays_valid_until_the_owner_has_the_answer() {
    let Some(database) = Database::fresh() else { return };
    let (a, b) = (database.server(noting()).await, database.server([]).await);
    let asked = asking_in_chat(&a).await;
    let approve = json!({"link": asked.link, "decision": "approve"});
    assert_eq!(b.post("/v1/question-links", json!({"link": asked.link})).await.0, 200, "shown everywhere");
    let (status, error) = b.post("/v1/question-links/answer", approve.clone()).await;
    assert_eq!((status, &error["error"]["code"]), (503, &json!("owned_elsewhere")), "{error}");
    assert_eq!(a.post("/v1/question-links/answer", approve).await.0, 200);
    let (_, message) = chat(&a, &asked.then("yes"), &json!([])).await;
    assert!(message["content"].as_str().unwrap().ends_with("Noted."), "{message}");
}

#[tokio::test]
async fn results_for_a_turn_owned_elsewhere_are_503() {
    let Some(database) = Database::fresh() else { return };
    let scripts = [
        ModelScript::new().call("local_time", json!({"zone": "Oslo"})),
        ModelScript::new().say("It is noon."),
    ];
    let (a, b) = (database.server(scripts).await, database.server([ModelScript::new().say("New.")]).await);
    let tools =
        json!([{"type": "function", "function": {"name": "local_time", "parameters": {"type": "object"}}}]);
    let asks = json!({"role": "user", "content": "Time?"});
    let (_, message) = chat(&a, &json!([asks]), &tools).await;
    let id = message["tool_calls"][0]["id"].clone();
    let messages = json!([asks, message, {"role": "tool", "tool_call_id": id, "content": "12:00"}]);
    assert_eq!(chat(&b, &messages, &tools).await, (503, json!("owned_elsewhere")));
    assert!(b.upstream.requests().is_empty(), "no second turn");
    let (status, message) = chat(&a, &messages, &tools).await;
    assert_eq!((status, &message["content"]), (200, &json!("It is noon.")));
}

/// Stores an accepted turn without starting it, as if its server had died in between.
async fn accepted(server: &TestServer, id: &str) {
    server.state.catalog.create_turn("ada", accepted_turn(id)).await.unwrap();
}

#[tokio::test]
async fn events_of_an_accepted_turn_are_awaited_not_410() {
    let Some(database) = Database::changing_hands() else { return };
    let (a, b) = (database.server([]).await, database.server([]).await);
    accepted(&a, "turn_1").await;
    let (early, ()) = tokio::join!(b.follow("turn_1", 0), async {
        let claim = a.state.log.claim("turn_1").await.unwrap();
        let end =
            r#"{"v":1,"turn_id":"turn_1","seq":1,"timestamp":1,"type":"stream_end","status":"completed"}"#;
        let end = LogRecord::new(1, "stream_end", Durability::Power, end);
        a.state.log.append("turn_1", claim.epoch, vec![end].into()).await.unwrap();
    });
    let mut early = early;
    assert_eq!(early.rest().await.last().unwrap().name, "stream_end");

    // Its server dies before it begins: another one takes it over, and ends what it cannot read.
    accepted(&a, "turn_2").await;
    drop(a);
    let mut end = None;
    eventually("the other server ends it", async || {
        end = b.state.catalog.turn("ada", "turn_2").await.unwrap().unwrap().end;
        end.is_some()
    })
    .await;
    assert_eq!(end.unwrap().status, "interrupted");
    assert!(
        b.state
            .turn_manager
            .wait_for_log("eve", &TurnId::new("turn_2"))
            .await
            .is_err_and(|error| error.status == 404)
    );
}

#[tokio::test]
async fn file_stored_at_another_server_is_503_not_404() {
    let Some(database) = Database::fresh() else { return };
    let (a, b) = (database.server([]).await, database.server([]).await);
    let request = a.client().post(a.url("/v1/files")).header("content-type", "text/plain");
    let file: Value = request.body("milk").send().await.unwrap().json().await.unwrap();
    let path = format!("/v1/files/{}/content", file["id"].as_str().unwrap());
    let elsewhere = b.client().get(b.url(&path)).send().await.unwrap();
    assert_eq!(
        (elsewhere.status().as_u16(), &elsewhere.headers()["retry-after"]),
        (503, &"2".parse().unwrap())
    );
    let error: Value = elsewhere.json().await.unwrap();
    assert_eq!(error["error"]["code"], "stored_elsewhere");
    let here = a.client().get(a.url(&path)).send().await.unwrap();
    assert_eq!(here.text().await.unwrap(), "milk");
}
