//! Two servers over one PostgreSQL: each shows every turn, and none says something untrue about one that it does not run.
//! // R: S1, S2, E2

#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used)]

#[path = "../../store/tests/cluster/mod.rs"]
mod cluster;
mod support;

use cluster::Cluster;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use support::{Socket, TestServer, saying};
use throughline::config::ServerLimits;
use throughline::engine::TurnId;
use throughline_store::catalog::{NewTurnRow, TurnPlacement};
use throughline_store::{Durability, LogRecord};
use throughline_testkit::{ModelScript, ScriptQueue};

/// A database, and how a server is started on it; `None`: there is no PostgreSQL here.
struct Database {
    url: String,
    _cluster: Arc<Cluster>,
}

impl Database {
    fn fresh() -> Option<Self> {
        let cluster = Cluster::shared()?;
        Some(Self { url: cluster.fresh(), _cluster: cluster })
    }

    async fn server(&self, scripts: impl IntoIterator<Item = ModelScript>) -> TestServer {
        let ask = |builder: throughline::ThroughlineBuilder| builder.approval(throughline::ApprovalMode::Ask);
        let url = Some(self.url.clone());
        TestServer::start_in(url, ScriptQueue::new(scripts), ask, ServerLimits::default()).await
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

/// Every command to a turn: method, what stands behind `/v1/turns/{turn}`, body.
fn commands(of: &Asking) -> Vec<(Method, String, Value)> {
    let approve = json!({"decision": "approve"});
    let (question, call) = (&of.question, &of.call);
    vec![
        (Method::POST, "/cancel".into(), json!({})),
        (Method::POST, "/approvals/all".into(), approve.clone()),
        (Method::POST, format!("/approvals/{question}"), approve),
        (Method::POST, "/messages".into(), saying("Hurry")),
        (Method::GET, "/messages".into(), Value::Null),
        (Method::DELETE, "/messages/said_1".into(), Value::Null),
        (Method::POST, format!("/calls/{call}/cancel"), json!({})),
        (Method::POST, format!("/calls/{call}/result"), json!({"status": "success", "output": "x"})),
    ]
}

/// Whether each command is refused because of the turn's owner; what the first refusal says.
async fn refused(server: &TestServer, of: &Asking) -> Value {
    let mut first = Value::Null;
    for (method, path, body) in commands(of) {
        let url = server.url(&format!("/v1/turns/{}{path}", of.turn));
        let response = server.client().request(method.clone(), url).json(&body).send().await.unwrap();
        let at = format!("{method} {path}");
        assert_eq!(response.status(), 503, "{at}");
        assert!(response.headers().contains_key("retry-after"), "{at}");
        let error = response.json::<Value>().await.unwrap()["error"].clone();
        assert_eq!(error["code"], "owned_elsewhere", "{at}: {error}");
        assert!(
            error["message"].as_str().unwrap().contains(error["owner"].as_str().unwrap()),
            "{at}: {error}"
        );
        if first.is_null() {
            first = error;
        }
    }
    first
}

#[tokio::test]
async fn a_command_to_a_turn_of_another_server_names_that_server() {
    let Some(database) = Database::fresh() else { return };
    let (a, b) = (database.server(noting()).await, database.server([]).await);
    let of = asking(&a).await;
    let error = refused(&b, &of).await;
    let owner = error["owner"].as_str().unwrap();
    assert!(owner.contains(&std::process::id().to_string()), "{owner}");
    assert!(error.get("owner_gone_since").is_none(), "{error}");

    // Over a socket it is the same.
    let mut socket = Socket::connect(&b).await;
    for op in [
        json!({"op": "cancel", "turn_id": of.turn}),
        json!({"op": "approve", "turn_id": of.turn, "approval_id": of.question, "decision": "approve"}),
        json!({"op": "say", "turn_id": of.turn, "input": [{"type": "text", "text": "Hurry"}]}),
        json!({"op": "cancel_call", "turn_id": of.turn, "tool_id": of.call}),
        json!({"op": "result", "turn_id": of.turn, "tool_id": of.call, "status": "success"}),
    ] {
        socket.send(op.clone()).await;
        let told = socket.next().await.unwrap();
        assert_eq!(told["error"]["code"], "owned_elsewhere", "{op}: {told}");
    }

    // What it shows is right, and what happens there is seen here.
    let (status, snapshot) = b.get(&format!("/v1/turns/{}", of.turn)).await;
    assert_eq!((status, &snapshot["status"]), (200, &json!("running")));
    let mut viewer = b.follow(&of.turn, of.seen).await;
    let path = format!("/v1/turns/{}/approvals/{}", of.turn, of.question);
    let (status, said) = a.post(&path, json!({"decision": "approve"})).await;
    assert_eq!(status, 200, "{said}");
    assert_eq!(viewer.rest().await.last().unwrap().data["status"], "completed");

    // Of a turn that has ended every server knows what became of it.
    while !b.get(&format!("/v1/conversations/{}", of.conversation)).await.1["running_turn_id"].is_null() {
        tokio::task::yield_now().await;
    }
    assert_eq!(b.post(&path, json!({"decision": "approve"})).await.0, 200);
    assert_eq!(b.post(&path, json!({"decision": "deny"})).await.0, 409);
    assert_eq!(b.post(&format!("/v1/turns/{}/cancel", of.turn), json!({})).await.0, 202);
}

#[tokio::test]
async fn of_a_server_that_is_gone_it_is_said_since_when_until_one_starts() {
    let Some(database) = Database::fresh() else { return };
    let (a, b) = (database.server(noting()).await, database.server([]).await);
    let of = asking(&a).await;
    let mut viewer = b.follow(&of.turn, of.seen).await;
    drop(a);
    let path = format!("/v1/turns/{}/cancel", of.turn);
    let error = loop {
        let (status, said) = b.post(&path, json!({})).await;
        assert_eq!((status, &said["error"]["code"]), (503, &json!("owned_elsewhere")), "{said}");
        if said["error"]["owner_gone_since"].is_i64() {
            break said["error"].clone();
        }
        tokio::task::yield_now().await;
    };
    assert!(error["message"].as_str().unwrap().contains("gone since 20"), "{error}");
    refused(&b, &of).await;
    let mut next = saying("And?");
    next["conversation_id"] = json!(of.conversation);
    let (status, busy) = b.post("/v1/turns", next).await;
    assert_eq!((status, &busy["error"]["code"]), (409, &json!("conversation_busy")), "{busy}");
    assert_eq!(busy["error"]["owner"], error["owner"]);

    // A server that starts goes on with it, and whoever looked on at the other one sees that.
    let c = database.server([ModelScript::new().say("Noted.")]).await;
    let path = format!("/v1/turns/{}/approvals/{}", of.turn, of.question);
    assert_eq!(b.post(&path, json!({"decision": "approve"})).await.0, 503);
    let (status, said) = c.post(&path, json!({"decision": "approve"})).await;
    assert_eq!(status, 200, "{said}");
    assert_eq!(viewer.rest().await.last().unwrap().data["status"], "completed");
}

/// A turn that was accepted and has no event yet, as when its server dies in between.
async fn accepted(server: &TestServer, id: &str) {
    let turn = NewTurnRow {
        id: id.to_owned(),
        message_id: format!("message_of_{id}"),
        placement: TurnPlacement::Standalone,
        idempotency: None,
        stored: "{}".to_owned(),
        agent: "default".to_owned(),
        model: None,
        mode: None,
        input_text: "Hi".to_owned(),
        files: Vec::new(),
        created_at: 1,
    };
    server.state.catalog.create_turn("ada", turn).await.unwrap();
}

#[tokio::test]
async fn events_of_a_turn_that_has_not_begun_are_not_gone() {
    let Some(database) = Database::fresh() else { return };
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

    // Nobody begins it: it is still not gone, and everybody is told to come again.
    accepted(&a, "turn_2").await;
    drop(a);
    for path in ["/v1/turns/turn_2/events", "/v1/turns/turn_2"] {
        let (status, said) = b.get(path).await;
        assert_eq!((status, &said["error"]["code"]), (503, &json!("owned_elsewhere")), "{path}: {said}");
    }
    assert!(
        b.state.hub.wait_for_log("eve", &TurnId::new("turn_2")).await.is_err_and(|error| error.status == 404)
    );
}
