//! Every route of the document, requested by a user who does not own the resource, and without a key.

use super::{ask_as, conversation, post};
use crate::support::{self, Events, TestServer, eventually, saying};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use throughline::ApprovalMode;
use throughline_store::NewRemembered;
use throughline_testkit::{CallMove, ModelScript, ScriptMove, ScriptQueue};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Ada's own: two turns that were, one that runs, waits for her answer and for her page, and more.
struct Adas {
    server: TestServer,
    conversation: String,
    turn: String,
    running: String,
    /// The conversation of the turn that runs.
    talk: String,
    question: String,
    call: String,
    said: String,
    file: String,
    remembered: u64,
    /// A link to her conversation.
    share: String,
    /// A conversation that she has deleted.
    deleted: String,
}

impl Adas {
    async fn new() -> Self {
        let both = ScriptMove::Parallel(vec![
            CallMove::new("calendar_add", json!({"title": "tea"})),
            CallMove::new("client_open", json!({})),
        ]);
        let model = ScriptQueue::new([
            ModelScript::new().call("calendar_add", json!({"title": "first"})),
            ModelScript::new().then(both),
            ModelScript::new().say("Done."),
            ModelScript::new().say("Eve's own."),
        ]);
        let build = |builder: throughline::ThroughlineBuilder| {
            builder.tools(throughline_testkit::tools::all()).approval(ApprovalMode::Ask)
        };
        let server = TestServer::start_with(model, build, Default::default()).await;
        let (conversation, turns) = conversation(&server).await;
        let open = json!({"tools": [{"name": "client.open", "description": "Opens it", "effect": "read"}]});
        let (status, said) =
            ask_as("ada", &server, Method::PUT, "/v1/clients/page-1/tools", Some(open)).await;
        assert_eq!(status, 200, "{said}");
        post(&server, "/v1/agents", json!({"name": "mine", "settings": {"model": "test/m"}})).await;
        let prompt = Some(json!({"text": "canary"}));
        assert_eq!(ask_as("ada", &server, Method::PUT, "/v1/saved-prompts/hers", prompt).await.0, 200);
        let file =
            server.client().post(server.url("/v1/files?name=a.txt")).body("secret").send().await.unwrap();
        let file: Value = file.json().await.unwrap();

        let started = post(&server, "/v1/turns", saying("Plan the day, canary")).await;
        let running = started["turn_id"].as_str().unwrap().to_owned();
        let talk = started["conversation_id"].as_str().unwrap().to_owned();
        let mut events = server.follow(&running, 0).await;
        let asked = question(&mut events).await;
        let approve = json!({"decision": "approve"});
        post(&server, &format!("/v1/turns/{running}/approvals/{asked}"), approve).await;
        let answer = NewRemembered {
            conversation_id: Some(conversation.clone()),
            about: "x".to_owned(),
            answer: json!({"tool": "x"}),
            at: 1,
        };
        let remembered = server.state.catalog.remember("ada", answer).await.unwrap().unwrap();
        let (mut asked, mut call) = (None, None);
        while asked.is_none() || call.is_none() {
            let event = events.next().await.expect("it waits for ada");
            let text = |name: &str| event.data[name].as_str().map(str::to_owned);
            match event.name.as_str() {
                "approval_request" => asked = text("approval_id"),
                "tool_start" if event.data["client_id"] == "page-1" => call = text("tool_id"),
                _ => {}
            }
        }
        let said = post(&server, &format!("/v1/turns/{running}/messages"), saying("And quickly")).await;
        let share = post(&server, &format!("/v1/conversations/{conversation}/shares"), json!({})).await;
        let filed = json!({"folder": "canary folder", "tags": ["canary tag"], "pinned": true});
        let path = format!("/v1/conversations/{conversation}");
        assert_eq!(ask_as("ada", &server, Method::PATCH, &path, Some(filed)).await.0, 200);
        let deleted = post(&server, "/v1/conversations", json!({"title": "canary"})).await;
        let deleted = deleted["id"].as_str().unwrap().to_owned();
        let path = format!("/v1/conversations/{deleted}");
        assert_eq!(ask_as("ada", &server, Method::DELETE, &path, None).await.0, 204);
        Self {
            conversation,
            turn: turns[0].clone(),
            running,
            talk,
            question: asked.unwrap(),
            call: call.unwrap(),
            said: said["id"].as_str().unwrap().to_owned(),
            file: file["id"].as_str().unwrap().to_owned(),
            remembered: remembered.number,
            share: share["id"].as_str().unwrap().to_owned(),
            deleted,
            server,
        }
    }

    /// Waits until the turn that ran is over, and recorded.
    async fn turn_has_ended(&self) {
        let catalog = &self.server.state.catalog;
        let has_ended = async || catalog.turn("ada", &self.running).await.unwrap().unwrap().end.is_some();
        eventually("the turn is over, and recorded", has_ended).await;
    }

    fn filled(&self, path: &str) -> String {
        path.replace("{conversation_id}", &self.conversation)
            .replace("{turn}", &self.turn)
            .replace("{turn_id}", &self.running)
            .replace("{talk}", &self.talk)
            .replace("{approval_id}", &self.question)
            .replace("{tool_id}", &self.call)
            .replace("{message_id}", &self.said)
            .replace("{file_id}", &self.file)
            .replace("{number}", &self.remembered.to_string())
            .replace("{share_id}", &self.share)
            .replace("{deleted}", &self.deleted)
            .replace("{agent}", "mine")
    }
}

async fn question(events: &mut Events) -> String {
    let asked = events.until("approval_request").await;
    asked.last().unwrap().data["approval_id"].as_str().unwrap().to_owned()
}

/// Owner of a route's resource.
enum Whose {
    /// One user's: not found for others. With request bodies that refer to it.
    Theirs(Vec<(&'static str, Value)>),
    /// Lists and creates resources of the requesting user.
    Own,
    /// The same for all users.
    Everybodys,
    /// Tested in this file.
    Elsewhere(&'static str),
}

/// Every route, in an order in which ada can use them all: those that end or delete a resource come last.
fn routes() -> Vec<(&'static str, &'static str, Whose)> {
    use Whose::{Elsewhere, Everybodys, Own, Theirs};
    let plain = |path: &'static str| Theirs(vec![(path, Value::Null)]);
    let with = |path: &'static str, body: Value| Theirs(vec![(path, body)]);
    let settings = json!({"settings": {"model": "test/m"}});
    vec![
        ("GET", "/healthz", Everybodys),
        ("GET", "/readyz", Everybodys),
        ("GET", "/v1/openapi.json", Everybodys),
        ("GET", "/metrics", Everybodys),
        ("GET", "/v1/metrics/thresholds", Everybodys),
        ("POST", "/v1/telemetry/frames", Everybodys),
        ("GET", "/v1/agent-fields", Everybodys),
        ("GET", "/v1/upstreams", Everybodys),
        ("GET", "/v1/upstreams/known", Elsewhere("crates/server/tests/it/upstream_connect.rs")),
        ("POST", "/v1/upstreams/{upstream}/connect", Elsewhere("crates/server/tests/it/upstream_connect.rs")),
        ("POST", "/v1/upstreams/{upstream}/probe", Elsewhere("crates/server/tests/it/upstream_probe.rs")),
        ("DELETE", "/v1/upstreams/{upstream}/key", Elsewhere("crates/server/tests/it/upstream_connect.rs")),
        ("GET", "/v1/keys", Elsewhere("crates/server/tests/it/request_guard.rs")),
        ("POST", "/v1/keys", Elsewhere("crates/server/tests/it/request_guard.rs")),
        ("DELETE", "/v1/keys/{key_id}", Elsewhere("crates/server/tests/it/request_guard.rs")),
        ("PATCH", "/v1/keys/{key_id}", Elsewhere("crates/server/tests/it/users.rs")),
        ("GET", "/v1/users", Elsewhere("crates/server/tests/it/users.rs")),
        ("POST", "/v1/users", Elsewhere("crates/server/tests/it/users.rs")),
        ("GET", "/v1/users/{user}", Elsewhere("crates/server/tests/it/users.rs")),
        ("PATCH", "/v1/users/{user}", Elsewhere("crates/server/tests/it/users.rs")),
        ("DELETE", "/v1/users/{user}", Elsewhere("crates/server/tests/it/users.rs")),
        ("GET", "/v1/me", Own),
        ("POST", "/v1/tickets", Elsewhere("crates/server/tests/it/request_guard.rs")),
        ("GET", "/v1/sign-in", Elsewhere("crates/server/tests/it/provider_sign_in.rs")),
        ("POST", "/v1/sign-in", Elsewhere("crates/server/tests/it/request_guard.rs")),
        ("POST", "/v1/sign-out", Elsewhere("crates/server/tests/it/provider_sign_in.rs")),
        ("GET", "/render/{render}/v1/models", Elsewhere("crates/server/tests/it/chat.rs")),
        ("GET", "/render/{render}/v1/models/{id}", Elsewhere("crates/server/tests/it/chat.rs")),
        ("POST", "/render/{render}/v1/chat/completions", Elsewhere("crates/server/tests/it/chat.rs")),
        ("POST", "/render/{render}/v1/audio/speech", Elsewhere("crates/server/tests/it/speech.rs")),
        ("POST", "/render/{render}/v1/audio/transcriptions", Elsewhere("crates/server/tests/it/speech.rs")),
        ("POST", "/render/{render}/v1/completions", Elsewhere("crates/server/tests/it/passthrough.rs")),
        ("POST", "/render/{render}/v1/embeddings", Elsewhere("crates/server/tests/it/passthrough.rs")),
        ("POST", "/v1/question-links", Elsewhere("crates/server/tests/it/chat_approvals.rs")),
        ("POST", "/v1/question-links/answer", Elsewhere("crates/server/tests/it/chat_approvals.rs")),
        ("GET", "/v1/ws", Elsewhere("websocket_does_not_expose_other_users_resources")),
        ("GET", "/v1/models", Own),
        ("GET", "/v1/models/{id}", Everybodys),
        ("POST", "/v1/chat/completions", Elsewhere("chat_completions_do_not_expose_other_users_resources")),
        ("GET", "/v1/voices", Everybodys),
        ("POST", "/v1/audio/speech", Elsewhere("crates/server/tests/it/speech.rs")),
        ("POST", "/v1/audio/transcriptions", Elsewhere("crates/server/tests/it/speech.rs")),
        // They have no resources: the request is forwarded to an upstream of the configuration.
        ("POST", "/v1/completions", Elsewhere("crates/server/tests/it/passthrough.rs")),
        ("POST", "/v1/embeddings", Elsewhere("crates/server/tests/it/passthrough.rs")),
        ("GET", "/v1/conversations", Own),
        ("POST", "/v1/conversations", Own),
        ("POST", "/v1/conversations/import", Own),
        ("GET", "/v1/search", Own),
        ("GET", "/v1/conversations/labels", Own),
        ("GET", "/v1/shares", Own),
        // The credential is a secret in the body, without an owner.
        ("POST", "/v1/shared", Elsewhere("crates/server/tests/it/resources/shares.rs")),
        ("POST", "/v1/shared/file", Elsewhere("crates/server/tests/it/resources/shares.rs")),
        (
            "GET",
            "/v1/conversations/{conversation_id}/usage",
            plain("/v1/conversations/{conversation_id}/usage"),
        ),
        (
            "POST",
            "/v1/conversations/{conversation_id}/restore",
            with("/v1/conversations/{deleted}/restore", json!({})),
        ),
        (
            "POST",
            "/v1/conversations/{conversation_id}/shares",
            with("/v1/conversations/{conversation_id}/shares", json!({})),
        ),
        ("GET", "/v1/conversations/{conversation_id}", plain("/v1/conversations/{conversation_id}")),
        (
            "GET",
            "/v1/conversations/{conversation_id}/messages",
            Theirs(vec![
                ("/v1/conversations/{conversation_id}/messages", Value::Null),
                ("/v1/conversations/{conversation_id}/messages?around={turn}", Value::Null),
            ]),
        ),
        (
            "GET",
            "/v1/conversations/{conversation_id}/export",
            Theirs(vec![
                ("/v1/conversations/{conversation_id}/export", Value::Null),
                ("/v1/conversations/{conversation_id}/export?format=markdown", Value::Null),
            ]),
        ),
        (
            "POST",
            "/v1/conversations/{conversation_id}/fork",
            with("/v1/conversations/{conversation_id}/fork", json!({"turn_id": "{turn}"})),
        ),
        (
            "PATCH",
            "/v1/conversations/{conversation_id}",
            with("/v1/conversations/{conversation_id}", json!({"title": "What does Paris say?"})),
        ),
        ("GET", "/v1/files", Own),
        ("POST", "/v1/files", Own),
        ("GET", "/v1/files/{file_id}", plain("/v1/files/{file_id}")),
        ("GET", "/v1/files/{file_id}/content", plain("/v1/files/{file_id}/content")),
        ("GET", "/v1/files/{file_id}/text", plain("/v1/files/{file_id}/text")),
        ("GET", "/v1/saved-prompts", Own),
        ("PUT", "/v1/saved-prompts/{name}", Own),
        ("GET", "/v1/agents", Own),
        ("POST", "/v1/agents", Own),
        ("GET", "/v1/agents/{agent}", plain("/v1/agents/{agent}")),
        ("GET", "/v1/agents/{agent}/prompt", plain("/v1/agents/{agent}/prompt")),
        ("GET", "/v1/agents/{agent}/tools", plain("/v1/agents/{agent}/tools")),
        ("POST", "/v1/agents/{agent}/preview", with("/v1/agents/{agent}/preview", settings.clone())),
        ("PUT", "/v1/agents/{agent}", with("/v1/agents/{agent}", settings)),
        (
            "POST",
            "/v1/agents/{agent}/duplicate",
            with("/v1/agents/{agent}/duplicate", json!({"name": "copy"})),
        ),
        ("PATCH", "/v1/agents/{agent}/toggles", with("/v1/agents/{agent}/toggles", json!({}))),
        ("GET", "/v1/tools", plain("/v1/tools?agent=mine")),
        ("GET", "/v1/tools/{tool}", Everybodys),
        ("POST", "/v1/tools/{tool}/call", Elsewhere("ids_in_a_body_do_not_bypass_ownership")),
        ("GET", "/v1/prompts", plain("/v1/prompts?agent=mine")),
        ("POST", "/v1/parse", with("/v1/parse", json!({"text": "x", "agent": "mine"}))),
        ("POST", "/v1/decode", Everybodys),
        ("GET", "/v1/history/calls", Own),
        ("GET", "/v1/history/counts", Own),
        ("GET", "/v1/history/export", Own),
        ("GET", "/v1/history/turns", Own),
        ("GET", "/v1/history/turn-counts", Own),
        ("GET", "/v1/history/metrics", Own),
        ("GET", "/v1/history/calls/{tool_id}", plain("/v1/history/calls/{turn}.1")),
        ("GET", "/v1/turns/{turn_id}/waterfall", plain("/v1/turns/{turn}/waterfall")),
        ("GET", "/v1/remembered", Own),
        ("PUT", "/v1/clients/{client_id}/tools", Elsewhere("ids_in_a_body_do_not_bypass_ownership")),
        (
            "POST",
            "/v1/turns",
            Theirs(vec![
                (
                    "/v1/turns",
                    json!({"input": [{"type": "text", "text": "x"}], "conversation_id": "{conversation_id}"}),
                ),
                ("/v1/turns", json!({"input": [{"type": "file", "file_id": "{file_id}"}]})),
                (
                    "/v1/turns",
                    json!({"input": [{"type": "text", "text": "x"}], "conversation_id": "{conversation_id}",
                        "parent_id": "{turn}"}),
                ),
            ]),
        ),
        ("GET", "/v1/turns", Own),
        ("GET", "/v1/turns/{turn_id}", plain("/v1/turns/{turn_id}")),
        (
            "GET",
            "/v1/turns/{turn_id}/events",
            Theirs(vec![
                ("/v1/turns/{turn_id}/events", Value::Null),
                ("/v1/turns/{turn_id}/events?after=1", Value::Null),
                ("/v1/turns/{turn_id}/events?from=snapshot", Value::Null),
            ]),
        ),
        ("GET", "/v1/turns/{turn_id}/messages", plain("/v1/turns/{turn_id}/messages")),
        ("POST", "/v1/turns/{turn_id}/messages", with("/v1/turns/{turn_id}/messages", saying("Me too"))),
        (
            "DELETE",
            "/v1/turns/{turn_id}/messages/{message_id}",
            plain("/v1/turns/{turn_id}/messages/{message_id}"),
        ),
        (
            "POST",
            "/v1/turns/{turn_id}/approvals/{approval_id}",
            with("/v1/turns/{turn_id}/approvals/{approval_id}", json!({"decision": "deny"})),
        ),
        (
            "POST",
            "/v1/turns/{turn_id}/calls/{tool_id}/result",
            with(
                "/v1/turns/{turn_id}/calls/{tool_id}/result",
                json!({"status": "success", "output": "open"}),
            ),
        ),
        (
            "POST",
            "/v1/turns/{turn_id}/calls/{tool_id}/cancel",
            with("/v1/turns/{turn_id}/calls/{tool_id}/cancel", json!({})),
        ),
        (
            "POST",
            "/v1/turns/{turn_id}/calls/{tool_id}/retry",
            with("/v1/turns/{turn_id}/calls/{tool_id}/retry", json!({})),
        ),
        ("PUT", "/v1/turns/{turn_id}/rating", with("/v1/turns/{turn}/rating", json!({"value": "up"}))),
        ("DELETE", "/v1/turns/{turn_id}/rating", plain("/v1/turns/{turn}/rating")),
        ("POST", "/v1/turns/{turn_id}/cancel", with("/v1/turns/{turn_id}/cancel", json!({}))),
        ("DELETE", "/v1/remembered/{number}", plain("/v1/remembered/{number}")),
        ("DELETE", "/v1/saved-prompts/{name}", plain("/v1/saved-prompts/hers")),
        ("DELETE", "/v1/files/{file_id}", plain("/v1/files/{file_id}")),
        ("DELETE", "/v1/agents/{agent}", plain("/v1/agents/{agent}")),
        ("DELETE", "/v1/shares/{share_id}", plain("/v1/shares/{share_id}")),
        ("DELETE", "/v1/conversations/{conversation_id}", plain("/v1/conversations/{conversation_id}")),
    ]
}

/// A body with ada's ids in it.
fn filled(adas: &Adas, body: &Value) -> Option<Value> {
    (!body.is_null()).then(|| serde_json::from_str(&adas.filled(&body.to_string())).unwrap())
}

fn method(name: &str) -> Method {
    name.parse().unwrap()
}

#[tokio::test]
async fn every_documented_route_has_an_ownership_row() {
    let document = throughline_server::openapi_document();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for name in ["get", "put", "post", "delete", "patch"] {
            if item.get(name).is_some() {
                described.insert((name.to_uppercase(), path.clone()));
            }
        }
    }
    let rows: Vec<_> =
        routes().into_iter().map(|(method, path, _)| (method.to_owned(), path.to_owned())).collect();
    let set: BTreeSet<_> = rows.iter().cloned().collect();
    assert_eq!(set.len(), rows.len(), "a row twice");
    let open: Vec<_> = described.difference(&set).collect();
    assert!(open.is_empty(), "routes without a row: whose is what they are about? {open:?}");
    let gone: Vec<_> = set.difference(&described).filter(|row| row.1.starts_with("/v1")).collect();
    assert!(gone.is_empty(), "rows without a route: {gone:?}");
    for (_, path, whose) in routes() {
        if let Whose::Elsewhere(place) = whose {
            let here = include_str!("ownership.rs").contains(&format!("async fn {place}("));
            let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(place).exists();
            assert!(here || file, "{path}: {place}");
        }
    }
}

#[tokio::test]
async fn other_users_resource_is_404() {
    let adas = Adas::new().await;
    let nobody = support::http_client().build().unwrap();
    let mut asked = 0;
    for (name, path, whose) in routes() {
        // The credential of a single-use link is in the body.
        let takes_links = path.starts_with("/v1/question-links") || path.starts_with("/v1/shared");
        let is_open = takes_links
            || path == "/v1/sign-in"
            || path == "/healthz"
            || path == "/readyz"
            || path == "/v1/openapi.json";
        // A request without a key is refused with 401, and nothing else is revealed.
        if !is_open && !matches!(whose, Whose::Elsewhere("crates/server/tests/it/request_guard.rs")) {
            let request = nobody.request(method(name), adas.server.url(&adas.filled(path))).json(&json!({}));
            assert_eq!(request.send().await.unwrap().status(), 401, "{name} {path}");
        }
        let Whose::Theirs(requests) = whose else { continue };
        for (path, body) in requests {
            let (path, body) = (adas.filled(path), filled(&adas, &body));
            let (status, said) = ask_as("eve", &adas.server, method(name), &path, body).await;
            assert_eq!(status, 404, "{name} {path}: {said}");
            assert_eq!(said["error"]["type"], "not_found_error", "{name} {path}: {said}");
            let text = said.to_string();
            assert!(!text.contains("canary") && !text.contains("Paris"), "{name} {path}: {said}");
            asked += 1;
        }
    }
    assert!(asked >= 35, "{asked}");

    // Her lists hold what is hers: nothing.
    for list in [
        "/v1/conversations",
        "/v1/files",
        "/v1/history/calls",
        "/v1/history/turns",
        "/v1/search?q=Paris",
        "/v1/search?q=canary",
        "/v1/remembered",
        "/v1/saved-prompts",
        "/v1/shares",
        "/v1/turns",
    ] {
        let (status, said) = ask_as("eve", &adas.server, Method::GET, list, None).await;
        assert_eq!((status, &said["items"]), (200, &json!([])), "{list}");
    }
    let remembered = format!("/v1/remembered?conversation_id={}", adas.talk);
    assert_eq!(ask_as("eve", &adas.server, Method::GET, &remembered, None).await.1["items"], json!([]));
    let (_, agents) = ask_as("eve", &adas.server, Method::GET, "/v1/agents", None).await;
    assert_eq!(agents["items"].as_array().unwrap().len(), 1, "only the configuration's");
    for list in [
        "/v1/models",
        "/v1/conversations/labels",
        "/v1/history/counts",
        "/v1/history/turn-counts",
        "/v1/history/metrics?from=1",
        "/v1/history/export",
        "/v1/history/export?format=csv",
    ] {
        let (_, said) = ask_as("eve", &adas.server, Method::GET, list, None).await;
        let said = said.to_string();
        assert!(
            !said.contains("mine")
                && !said.contains("echo")
                && !said.contains("calendar")
                && !said.contains("canary"),
            "{list}: {said}"
        );
    }

    // All of it is there for her whose it is, so that the ids were right: nothing that eve tried has changed it.
    for (name, _, whose) in routes() {
        let Whose::Theirs(requests) = whose else { continue };
        for (path, body) in requests {
            if path.ends_with("/events") || path.contains("/events?") {
                let stream =
                    adas.server.client().get(adas.server.url(&adas.filled(path))).send().await.unwrap();
                assert_eq!(stream.status(), 200, "{path}");
                continue;
            }
            // Her file is no PDF; that it is found is seen above.
            if path.ends_with("/text") {
                continue;
            }
            // A turn in ada's conversation would take the model's next reply; that it is found is seen above.
            if (name, path) == ("POST", "/v1/turns") || path.ends_with("/retry") {
                continue;
            }
            if path.ends_with("/rating") {
                adas.turn_has_ended().await;
            }
            let (path, body) = (adas.filled(path), filled(&adas, &body));
            if let Some(turn) = path.strip_suffix("/rating") {
                // A request before this one has stopped it; it is rated when it has ended.
                let events = adas.server.url(&format!("{turn}/events"));
                let stream = adas.server.client().get(events).header("accept", "text/event-stream");
                stream.send().await.unwrap().text().await.unwrap();
            }
            let (status, said) = ask_as("ada", &adas.server, method(name), &path, body).await;
            assert!((200..300).contains(&status), "{name} {path}: {status} {said}");
        }
    }
}

#[tokio::test]
async fn ids_in_a_body_do_not_bypass_ownership() {
    let adas = Adas::new().await;
    let eve = |method, path: String, body| {
        let server = &adas.server;
        async move { ask_as("eve", server, method, &path, Some(body)).await }
    };
    // A turn cannot name her agent, nor a manual call use its rules.
    let start = json!({"input": [{"type": "text", "text": "x"}], "agent": "mine"});
    assert_eq!(eve(Method::POST, "/v1/turns".into(), start).await.0, 400);
    let by_hand = json!({"arguments": {"text": "x"}, "agent": "mine"});
    assert_eq!(eve(Method::POST, "/v1/tools/test.echo/call".into(), by_hand).await.0, 400);
    // The same name for another agent is no conflict between users.
    let agent = json!({"name": "mine", "settings": {"model": "test/m"}});
    assert_eq!(eve(Method::POST, "/v1/agents".into(), agent).await.0, 201);
    // The same id for another page is separate: ada's page receives the call as before, and the other user's
    // tool runs for no other user.
    let tools = json!({"tools": [{"name": "client.open", "description": "Steals", "effect": "read"}]});
    let (status, said) = eve(Method::PUT, "/v1/clients/page-1/tools".into(), tools).await;
    assert_eq!(status, 200, "{said}");
    // Under a turn of her own, too, ada's call, question and message are not there.
    let own = eve(Method::POST, "/v1/turns".into(), saying("Mine")).await.1;
    let own = own["turn_id"].as_str().unwrap().to_owned();
    let result = json!({"status": "success", "output": "stolen"});
    let (status, said) =
        eve(Method::POST, format!("/v1/turns/{own}/calls/{}/result", adas.call), result).await;
    assert_eq!(status, 404, "{said}");
    let (status, _) =
        eve(Method::POST, format!("/v1/turns/{own}/calls/{}/cancel", adas.call), json!({})).await;
    assert!([202, 404].contains(&status));
    let allow = json!({"decision": "approve"});
    eve(Method::POST, format!("/v1/turns/{own}/approvals/{}", adas.question), allow).await;
    // Both still wait for ada.
    let result = json!({"status": "success", "output": "open"});
    let path = format!("/v1/turns/{}/calls/{}/result", adas.running, adas.call);
    assert_eq!(post(&adas.server, &path, result).await["status"], "accepted");
    let path = format!("/v1/turns/{}/approvals/{}", adas.running, adas.question);
    assert_eq!(post(&adas.server, &path, json!({"decision": "deny"})).await["status"], "resolved");
    let events = adas.server.follow(&adas.running, 0).await.rest().await;
    let events =
        serde_json::to_string(&events.into_iter().map(|event| event.data).collect::<Vec<_>>()).unwrap();
    assert!(!events.contains("stolen") && !events.contains("eve"), "{events}");
}

#[tokio::test]
async fn chat_completions_do_not_expose_other_users_resources() {
    let adas = Adas::new().await;
    let user = |text: &str| json!({"role": "user", "content": text});
    let ask = |body: Value| {
        let server = &adas.server;
        async move { ask_as("eve", server, Method::POST, "/v1/chat/completions", Some(body)).await }
    };
    let inside =
        json!({"model": "test/m", "messages": [user("x")], "throughline": {"conversation_id": adas.talk}});
    let (status, said) = ask(inside).await;
    assert_eq!(status, 404, "{said}");
    let request = adas.server.client_of("eve").post(adas.server.url("/v1/chat/completions"));
    let request = request.header("throughline-conversation-id", &adas.talk);
    let request = request.json(&json!({"model": "test/m", "messages": [user("x")]}));
    assert_eq!(request.send().await.unwrap().status(), 404);
    // An unknown name goes to the only upstream as a model's: the agent is the server's own.
    let (status, said) = ask(json!({"model": "mine", "messages": [user("x")]})).await;
    let agent = &said["throughline"]["events"][0]["agent"];
    assert!(status == 404 || *agent == json!("default"), "{status} {said}");
    let part = json!({"type": "file", "file": {"file_id": adas.file}});
    let (status, said) =
        ask(json!({"model": "test/m", "messages": [{"role": "user", "content": [part]}]})).await;
    assert!([400, 404].contains(&status) && !said.to_string().contains("secret"), "{said}");
    // A result for ada's call, under every form of its id: it begins a turn of eve's own, and ada's waits on.
    for id in [adas.call.clone(), format!("call_{}", adas.call.replace('.', "_"))] {
        let call =
            json!({"id": id, "type": "function", "function": {"name": "client_open", "arguments": "{}"}});
        let messages = json!([
            user("Open it"),
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": "stolen"},
        ]);
        let (_, said) = ask(json!({"model": "test/m", "messages": messages})).await;
        assert!(!said.to_string().contains("canary"), "{said}");
    }
    let result = json!({"status": "success", "output": "open"});
    let path = format!("/v1/turns/{}/calls/{}/result", adas.running, adas.call);
    assert_eq!(post(&adas.server, &path, result).await["status"], "accepted", "it waited for ada");
}

#[tokio::test]
async fn websocket_does_not_expose_other_users_resources() {
    use futures_util::{SinkExt, StreamExt};
    let adas = Adas::new().await;
    let url = adas.server.url("/v1/ws").replace("http://", "ws://");
    let nobody = tokio_tungstenite::connect_async(&url).await.expect_err("nobody asks");
    assert!(nobody.to_string().contains("401"), "{nobody}");
    let mut request = url.into_client_request().unwrap();
    request.headers_mut().insert("x-test-user", "eve".parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    for (op, code) in [
        (json!({"op": "subscribe", "turn_id": "{turn_id}"}), "not_found"),
        (json!({"op": "subscribe", "turn_id": "{turn_id}", "from": "snapshot"}), "not_found"),
        (json!({"op": "subscribe", "turn_id": "{turn}"}), "not_found"),
        (
            json!({"op": "approve", "turn_id": "{turn_id}", "approval_id": "{approval_id}", "decision": "approve"}),
            "not_found",
        ),
        (
            json!({"op": "answer", "turn_id": "{turn_id}", "approval_id": "{approval_id}", "decision": "approve"}),
            "not_found",
        ),
        (json!({"op": "cancel", "turn_id": "{turn_id}"}), "not_found"),
        (json!({"op": "cancel_call", "turn_id": "{turn_id}", "tool_id": "{tool_id}"}), "not_found"),
        (json!({"op": "say", "turn_id": "{turn_id}", "input": [{"type": "text", "text": "x"}]}), "not_found"),
        (
            json!({"op": "result", "turn_id": "{turn_id}", "tool_id": "{tool_id}", "status": "success", "output": "x"}),
            "not_found",
        ),
        (
            json!({"op": "tools", "client_id": "requester", "tools": [{"name": "client.open"}]}),
            "client_id_reserved",
        ),
        (
            json!({"op": "start", "input": [{"type": "text", "text": "x"}], "conversation_id": "{talk}"}),
            "not_found",
        ),
        (json!({"op": "start", "input": [{"type": "file", "file_id": "{file_id}"}]}), "not_found"),
    ] {
        let op = adas.filled(&op.to_string());
        socket.send(Message::text(op.clone())).await.unwrap();
        let answer = loop {
            match tokio::time::timeout(crate::support::PATIENCE, socket.next())
                .await
                .unwrap()
                .unwrap()
                .unwrap()
            {
                Message::Text(text) => break text,
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{op}: {other:?}"),
            }
        };
        let said: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&said["op"], &said["error"]["code"]), (&json!("error"), &json!(code)), "{op}: {said}");
    }
}
