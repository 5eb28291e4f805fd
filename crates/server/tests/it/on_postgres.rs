//! The server with its turns in PostgreSQL: what it does over SQLite it does here.

#![cfg(feature = "postgres")]

use crate::cluster::Cluster;
use crate::support::{PostgresDatabase, TestServer, answered, eventually, saying};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline::config::ServerLimits;
use throughline_store::PostgresSettings;
use throughline_testkit::{ModelScript, ScriptQueue};

/// A server on a new database; `None` if PostgreSQL is not available.
async fn server(scripts: impl IntoIterator<Item = ModelScript>) -> Option<(TestServer, Arc<Cluster>)> {
    let cluster = Cluster::shared()?;
    // After a restart the new process takes over when the lease of the old one has ended.
    let database = Some(PostgresDatabase { url: cluster.fresh(), lease: PostgresSettings::default().lease });
    let ask = |builder: throughline::ThroughlineBuilder| builder.approval(throughline::ApprovalMode::Ask);
    let server =
        TestServer::start_in(database, ScriptQueue::new(scripts), ask, ServerLimits::default()).await;
    Some((server, cluster))
}

fn noting() -> [ModelScript; 2] {
    [
        ModelScript::new().say("I will note it.").call("calendar_add", json!({"title": "tea"})),
        ModelScript::new().say("Noted."),
    ]
}

async fn approve(server: &TestServer, turn: &str, question: &Value) {
    let path = format!("/v1/turns/{turn}/approvals/{}", question["approval_id"].as_str().unwrap());
    let (status, answer) = server.post(&path, json!({"decision": "approve"})).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn turn_and_viewer_continue_in_another_process() {
    let Some((server, _cluster)) = server(noting()).await else { return };
    let (status, started) = server.post("/v1/turns", saying("Hi")).await;
    assert_eq!(status, 201, "{started}");
    let turn = started["turn_id"].as_str().unwrap().to_owned();
    let before = server.follow(&turn, 0).await.until("approval_request").await;
    let (seen, question) = (before.last().unwrap().id, before.last().unwrap().data.clone());
    let said = json!({"input": [{"type": "text", "text": "Hurry"}], "id": "a"});
    assert_eq!(server.post(&format!("/v1/turns/{turn}/messages"), said).await.0, 202);

    let server = server.restart().await;
    let mut viewer = server.follow(&turn, seen).await;
    approve(&server, &turn, &question).await;
    let after = viewer.rest().await;
    assert_eq!(after[0].id, seen + 1, "nothing is lost and nothing comes twice");
    assert_eq!(after.last().unwrap().data["status"], "completed", "{after:?}");
    assert_eq!(after.iter().filter(|event| event.name == "tool_start").count(), 1, "the write runs once");
    assert_eq!(
        after.iter().filter(|event| event.name == "user_message").count(),
        1,
        "what was said is heard"
    );
    let whole = server.follow(&turn, 0).await.rest().await;
    assert_eq!(whole, before.into_iter().chain(after).collect::<Vec<_>>());
}

#[tokio::test]
async fn conversations_files_export_and_import_work() {
    let scripts = [
        ModelScript::new().say("A cat."),
        ModelScript::new().say("Still a cat."),
        ModelScript::new().say("Yes."),
    ];
    let Some((server, _cluster)) = server(scripts).await else { return };
    let mut picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01".to_vec();
    picture.resize(40_000, 1);
    let upload = server.client().post(server.url("/v1/files")).header("content-type", "image/png");
    let (status, file) = answered(upload.body(picture.clone())).await;
    assert_eq!(status, 201, "{file}");
    let input = json!({"input": [{"type": "text", "text": "Look: 50%_of it"}, {"type": "image", "file_id": file["id"]}]});
    let (_, started) = server.post("/v1/turns", input).await;
    let (turn, id) = (started["turn_id"].as_str().unwrap(), started["conversation_id"].as_str().unwrap());
    server.follow(turn, 0).await.rest().await;
    let next = json!({"input": [{"type": "text", "text": "And now?"}], "conversation_id": id});
    let second = server.turn(next).await;
    server.follow(&second, 0).await.rest().await;

    let path = format!("/v1/conversations/{id}");
    let (_, tree) = server.get(&path).await;
    assert_eq!(tree["tree"].as_array().unwrap().len(), 2, "{tree}");
    let (_, found) = server.get("/v1/search?q=50%25_OF").await;
    assert_eq!(
        found["items"].as_array().unwrap().len(),
        2,
        "in the input, and in the title made of it: {found}"
    );
    let (_, messages) = server.get(&format!("{path}/messages")).await;
    assert_eq!(messages["messages"][1]["message"]["blocks"][0]["text"], "Still a cat.", "{messages}");
    let export = server.client().get(server.url(&format!("{path}/export"))).send().await.unwrap();
    let text = export.text().await.unwrap();
    let (status, forked) = server.post(&format!("{path}/fork"), json!({"turn_id": turn})).await;
    assert_eq!(status, 201, "{forked}");
    let import = server.client_of("bob").post(server.url("/v1/conversations/import"));
    let (status, imported) = answered(import.header("content-type", "application/jsonl").body(text)).await;
    assert_eq!(status, 201, "{imported}");

    assert_eq!(server.client().delete(server.url(&path)).send().await.unwrap().status(), 204);
    assert_eq!(server.get(&path).await.0, 404);
    let content = format!("/v1/files/{}/content", file["id"].as_str().unwrap());
    let kept = server.client().get(server.url(&content)).send().await.unwrap();
    assert_eq!(kept.bytes().await.unwrap(), picture, "the fork uses it");
    let body = json!({"input": [{"type": "text", "text": "Sure?"}], "conversation_id": forked["id"]});
    let turn = server.turn(body).await;
    let told = server.follow(&turn, 0).await.rest().await;
    assert_eq!(told.last().unwrap().data["status"], "completed");
    assert_eq!(server.upstream.violations(), []);
}

#[tokio::test]
async fn chat_completions_and_idempotency_keys_work() {
    let Some((server, _cluster)) =
        server([ModelScript::new().say("Hello."), ModelScript::new().say("Hi.")]).await
    else {
        return;
    };
    let body = json!({"model": "test/m", "messages": [{"role": "user", "content": "Hello?"}]});
    let (status, answer) = server.post("/v1/chat/completions", body).await;
    assert_eq!((status, &answer["choices"][0]["message"]["content"]), (200, &json!("Hello.")), "{answer}");
    let ask =
        || server.client().post(server.url("/v1/turns")).header("idempotency-key", "k").json(&saying("Hi"));
    let (first, again) = (answered(ask()).await, answered(ask()).await);
    assert_eq!((first.0, again.0, &first.1["turn_id"]), (201, 200, &again.1["turn_id"]));
    let path = format!("/v1/turns/{}", first.1["turn_id"].as_str().unwrap());
    assert_eq!(answered(server.client_of("eve").get(server.url(&path))).await.0, 404);
}

#[tokio::test]
async fn search_is_cancelled_when_its_client_disconnects() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = cluster.fresh();
    let (_, database) = url.rsplit_once('/').unwrap();
    let lasting = PostgresDatabase { url: url.clone(), lease: PostgresDatabase::LASTING };
    let limits = ServerLimits::default();
    let server = TestServer::start_in(Some(lasting), ScriptQueue::new([]), |builder| builder, limits).await;
    let held = cluster.hold(database, "LOCK TABLE tl.search_text IN ACCESS EXCLUSIVE MODE");
    let waiting =
        || cluster.sql(database, "SELECT count(*) FROM pg_locks WHERE NOT granted AND database <> 0");
    let asking = tokio::spawn(server.client().get(server.url("/v1/search?q=anything")).send());
    eventually("the search waits", async || waiting() != "0").await;
    assert_eq!(server.get("/v1/conversations").await.0, 200);
    asking.abort();
    eventually("it waits no more", async || waiting() == "0").await;
    assert!(cluster.log().contains("canceling statement due to user request"), "{}", cluster.log());
    drop(held);
    assert_eq!(server.get("/v1/search?q=anything").await, (200, json!({"items": []})));
}
