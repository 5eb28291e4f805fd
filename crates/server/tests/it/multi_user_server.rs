//! A server of several people with its request_guard, over real sockets, and a walk over all of its routes.

use crate::support::{self, PATIENCE, TestServer, answered, eventually, saying};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use throughline::config::ServerSettings;
use throughline_server::{HttpServer, KeyScopes, LOCAL_USER, NewApiKey, RequestGuard, router};
use throughline_testkit::{FakeModel, ModelScript, ScriptQueue};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Header in which a proxy names the user.
pub const PROXY_HEADER: &str = "x-forwarded-user";

/// Text that all data of Ann contain, and none of Bob's.
pub const CANARY: &str = "canary";

/// A server with its request_guard, as `throughline serve` puts it together.
pub struct MultiUserServer {
    pub inner: TestServer,
    pub url: String,
    /// A key of the first person with all scopes.
    pub admin: String,
    _wish: mpsc::Sender<()>,
    tasks: [JoinHandle<()>; 2],
}

impl MultiUserServer {
    pub async fn start(model: impl FakeModel) -> Self {
        Self::start_with(model, ServerSettings::default()).await
    }

    pub async fn start_with(model: impl FakeModel, settings: ServerSettings) -> Self {
        Self::around(TestServer::start(model).await, settings).await
    }

    /// The request guard of this server.
    pub async fn around(inner: TestServer, settings: ServerSettings) -> Self {
        let settings = ServerSettings { listen: ([127, 0, 0, 1], 0).into(), ..settings };
        let request_guard = RequestGuard::new(&settings, Arc::new(inner.state.catalog.clone()));
        let bound = HttpServer::bind(&settings).unwrap();
        let url = format!("http://{}", bound.address());
        let (wish, wishes) = mpsc::channel(2);
        let app = request_guard.wrap(router(inner.state.clone()));
        let serving = tokio::spawn(async move {
            bound.serve(app, wishes, std::future::ready(())).await;
        });
        let tended = request_guard.clone();
        let tending = tokio::spawn(async move { tended.watch_live_keys().await });
        let new = NewApiKey { name: "first".to_owned(), scopes: KeyScopes::all(), ..NewApiKey::default() };
        let (key, _) = request_guard.mint(LOCAL_USER, new).await.unwrap();
        Self { inner, url, admin: key.reveal(), _wish: wish, tasks: [serving, tending] }
    }

    /// Sends a request with this key, or with this name in the proxy's header.
    pub async fn ask(&self, key: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
        let client = support::http_client().timeout(PATIENCE).build().unwrap();
        let method: Method = method.parse().unwrap();
        let request = client.request(method, format!("{}{path}", self.url));
        let request =
            if key.starts_with("tl_") { request.bearer_auth(key) } else { request.header(PROXY_HEADER, key) };
        answered(if body.is_null() { request } else { request.json(&body) }).await
    }

    /// Sends a request as the admin, and expects success.
    pub async fn done(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, said) = self.ask(&self.admin, method, path, body).await;
        assert!((200..300).contains(&status), "{method} {path}: {status} {said}");
        said
    }

    pub async fn key(&self, user: &str, more: Value) -> String {
        let mut body = json!({"name": "k", "user": user, "scopes": ["chat", "tools"]});
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        self.done("POST", "/v1/keys", body).await["key"].as_str().unwrap().to_owned()
    }

    /// Starts a turn and waits until it has ended.
    pub async fn turn(&self, key: &str, text: &str) -> (u16, Value) {
        let (status, started) = self.ask(key, "POST", "/v1/turns", saying(text)).await;
        if status == 201 {
            let path = format!("/v1/turns/{}/events", started["turn_id"].as_str().unwrap());
            self.ask(key, "GET", &path, Value::Null).await;
            self.settled(key, started["turn_id"].as_str().unwrap()).await;
        }
        (status, started)
    }

    /// Waits until the catalog has the end of a turn, which its last event precedes.
    pub async fn settled(&self, key: &str, turn: &str) {
        let path = format!("/v1/turns/{turn}");
        let has_ended = async || self.ask(key, "GET", &path, Value::Null).await.1["status"] != "running";
        eventually("the turn ends", has_ended).await;
    }
}

impl Drop for MultiUserServer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

pub fn answers(count: usize) -> ScriptQueue {
    ScriptQueue::new((0..count).map(|_| ModelScript::new().say("An answer.")))
}

/// Requests every route of the document as Bob, who is not an admin, for data of Ann, who is one.
pub async fn walk_every_route(multi_user_server: &MultiUserServer, ann: &str, bob: &str) {
    let (_, started) = multi_user_server.turn(ann, &format!("What about the {CANARY}?")).await;
    let (turn, conversation) =
        (started["turn_id"].as_str().unwrap(), started["conversation_id"].as_str().unwrap());
    let client = support::http_client().build().unwrap();
    let upload = client
        .post(format!("{}/v1/files?name={CANARY}.txt", multi_user_server.url))
        .header("content-type", "application/octet-stream")
        .body(CANARY);
    let upload = if ann.starts_with("tl_") {
        upload.bearer_auth(ann)
    } else {
        upload.header(PROXY_HEADER, ann).header("origin", &multi_user_server.url)
    };
    let (_, file) = answered(upload).await;
    let agent = json!({"name": CANARY, "settings": {"model": "test/m", "prompt": CANARY}});
    let (status, said) = multi_user_server.ask(ann, "POST", "/v1/agents", agent).await;
    assert_eq!(status, 201, "{said}");
    let answer = throughline_store::NewRemembered {
        conversation_id: None,
        about: CANARY.to_owned(),
        answer: json!({"tool": CANARY}),
        at: 1,
    };
    let remembered = multi_user_server
        .inner
        .state
        .catalog
        .remember("ann", answer)
        .await
        .unwrap()
        .unwrap()
        .number
        .to_string();
    let filled = |path: &str| {
        let call = format!("{turn}.1");
        let named = [
            ("{conversation_id}", conversation),
            ("{turn_id}", turn),
            ("{file_id}", file["id"].as_str().unwrap()),
            ("{number}", &remembered),
            ("{agent}", CANARY),
            ("{tool_id}", &call),
            ("{approval_id}", &call),
            ("{message_id}", "queued"),
            ("{client_id}", "page"),
            ("{tool}", "test.echo"),
            ("{upstream}", "test"),
            ("{user}", "ann"),
            ("{key_id}", "none"),
            ("{render}", "text"),
            ("{id}", CANARY),
        ];
        named.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value))
    };
    let state = async || {
        let mut seen = Vec::new();
        for path in ["/v1/conversations", "/v1/files", "/v1/agents", "/v1/remembered", "/v1/turns"] {
            seen.push(multi_user_server.ask(ann, "GET", path, Value::Null).await);
        }
        seen
    };
    let before = state().await;
    assert!(format!("{before:?}").matches(CANARY).count() >= 4, "{before:?}");
    let document = throughline_server::openapi_document();
    let mut walked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in ["GET", "PUT", "PATCH", "POST", "DELETE"] {
            let description = &item[method.to_lowercase()];
            // A WebSocket has a separate test; the credential of a link is in the body; the key is still
            // needed.
            if description.is_null()
                || path == "/v1/ws"
                || path == "/v1/sign-out"
                || path.starts_with("/v1/question-links")
            {
                continue;
            }
            let place = filled(path);
            let body = if method == "GET" { Value::Null } else { json!({}) };
            let (status, said) = multi_user_server.ask(bob, method, &place, body).await;
            let is_personal = ["{conversation_id}", "{turn_id}", "{file_id}", "{number}", "{agent}"]
                .iter()
                .any(|name| path.contains(name));
            if is_personal && method == "GET" {
                assert_eq!(status, 404, "{method} {path}: {said}");
            } else if is_personal {
                assert!((400..500).contains(&status), "{method} {path}: {status} {said}");
            } else if description["tags"][0] == "users" && path != "/v1/me" {
                assert_eq!(status, 403, "{method} {path}: {said}");
            }
            // A refusal may name the requested id, and reveals nothing else.
            if status < 400 {
                assert!(!said.to_string().contains(CANARY), "{method} {path}: {said}");
            }
            walked += 1;
        }
    }
    assert!(walked > 50, "{walked}");
    for query in ["/v1/search?q=canary", "/v1/conversations?q=canary"] {
        let (status, said) = multi_user_server.ask(bob, "GET", query, Value::Null).await;
        assert_eq!((status, &said["items"]), (200, &json!([])), "{query}");
    }
    assert_eq!(state().await, before, "nothing of hers has changed");
}
