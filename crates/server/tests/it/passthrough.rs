//! A request that is no chat is passed on to the upstream that the model names, and nothing is made of it here.

use crate::support::TestServer;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use throughline::wire::Dialect;
use throughline::{ThroughlineBuilder, Upstream};
use throughline_testkit::ScriptQueue;
use tokio::sync::mpsc;

const KEY: &str = "sk-of-the-upstream";

/// A request that an upstream received.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<Asked>>>);

/// Path, key and body.
type Asked = (String, Option<String>, Value);

#[derive(Clone)]
struct Raw {
    sent: Sent,
    /// Notified when a stream is dropped.
    gone: mpsc::UnboundedSender<()>,
}

struct DropSignal(mpsc::UnboundedSender<()>);

impl Drop for DropSignal {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

async fn raw(State(raw): State<Raw>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let key = headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
    raw.sent.0.lock().unwrap().push((uri.path().to_owned(), key, body.clone()));
    let refused = |status, more: &[(&str, &str)]| {
        let said = json!({"error": {"message": format!("no, {KEY}"), "type": "x"}}).to_string();
        let mut response = (StatusCode::from_u16(status).unwrap(), said).into_response();
        for (name, value) in more {
            let name = axum::http::HeaderName::try_from(*name).unwrap();
            response.headers_mut().insert(name, value.parse().unwrap());
        }
        response
    };
    match body["model"].as_str().unwrap() {
        "busy" => refused(429, &[("retry-after", "7")]),
        "wrong-key" => refused(401, &[]),
        "refuses" => refused(400, &[]),
        "slow" => refused(408, &[]),
        "early" => refused(425, &[]),
        "empty" => (
            StatusCode::FORBIDDEN,
            r#"{"code":"INSUFFICIENT_BALANCE","message":"Insufficient account balance"}"#,
        )
            .into_response(),
        "missing" => (StatusCode::NOT_FOUND, r#"{"error":{"message":"The model `missing` does not exist"}}"#)
            .into_response(),
        "endless" => {
            let told = DropSignal(raw.gone.clone());
            let pieces = stream::once(async { Ok::<_, std::io::Error>(Bytes::from("data: {}\n\n")) })
                .chain(stream::pending())
                .map(move |piece| {
                    let _ = &told;
                    piece
                });
            ([("content-type", "text/event-stream")], Body::from_stream(pieces)).into_response()
        }
        _ => ([("content-type", "application/json")], r#"{"object":"list",  "data":[1.50]}"#).into_response(),
    }
}

async fn server() -> (TestServer, Sent, mpsc::UnboundedReceiver<()>) {
    let (gone, told) = mpsc::unbounded_channel();
    let sent = Sent::default();
    let app = Router::new().fallback(raw).with_state(Raw { sent: sent.clone(), gone });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let with = move |builder: ThroughlineBuilder| {
        let at = |name: &str, dialect| Upstream::new(name, dialect, &base).unwrap().key(KEY.to_owned());
        builder
            .upstream(at("raw", Dialect::OpenaiChat))
            .upstream(at("claude", Dialect::Anthropic))
            .model("test/m")
    };
    (TestServer::start_with(ScriptQueue::new([]), with, Default::default()).await, sent, told)
}

#[tokio::test]
async fn request_and_response_are_forwarded_unchanged() {
    let (server, sent, _told) = server().await;
    // Clients that choose how tools are shown by the address send these there, too.
    for path in [
        "/v1/embeddings",
        "/v1/completions",
        "/render/details/v1/embeddings",
        "/render/details/v1/completions",
    ] {
        let body = json!({"model": "raw/vendor/small", "input": ["a", "b"], "some_future_field": {"x": 1.5}});
        let response = server.client().post(server.url(path)).json(&body).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"application/json".parse().unwrap())
        );
        assert_eq!(response.text().await.unwrap(), r#"{"object":"list",  "data":[1.50]}"#, "byte for byte");
        let (to, key, got) = sent.0.lock().unwrap().pop().unwrap();
        let expected = path.trim_start_matches("/render/details");
        assert_eq!((to.as_str(), key), (expected, Some(format!("Bearer {KEY}"))));
        assert_eq!(
            got,
            json!({"model": "vendor/small", "input": ["a", "b"], "some_future_field": {"x": 1.5}})
        );
    }
}

#[tokio::test]
async fn upstream_errors_keep_their_class_and_leak_no_key() {
    let (server, _sent, _told) = server().await;
    for (model, status, code, retry_after) in [
        ("raw/busy", 429, "rate_limit_exceeded", Some("7")),
        ("raw/wrong-key", 502, "upstream_error", None),
        ("raw/refuses", 400, "upstream_error", None),
        ("raw/empty", 429, "insufficient_quota", None),
        ("raw/missing", 404, "model_not_found", None),
        ("raw/slow", 503, "upstream_error", None),
        ("raw/early", 503, "upstream_error", None),
    ] {
        let body = json!({"model": model, "prompt": "Once"});
        let response = server.client().post(server.url("/v1/completions")).json(&body).send().await.unwrap();
        let after = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!((response.status().as_u16(), after.as_deref()), (status, retry_after), "{model}");
        let may_retry = !response.headers().contains_key("x-should-retry");
        assert_eq!(may_retry, code != "insufficient_quota", "{model}");
        let said: Value = response.json().await.unwrap();
        assert_eq!(said["error"]["code"], code, "{said}");
        assert!(!said.to_string().contains(KEY), "{said}");
    }
}

#[tokio::test]
async fn requests_that_cannot_be_forwarded_name_the_parameter() {
    let (server, sent, _told) = server().await;
    for (body, param) in [
        (json!({"input": "a"}), "model"),
        (json!({"model": "claude/c", "input": "a"}), "model"),
        (json!({"model": "nosuch/x", "input": "a"}), "model"),
    ] {
        let (status, said) = server.post("/v1/embeddings", body.clone()).await;
        assert!([400, 404].contains(&status), "{body} {status}");
        assert_eq!(said["error"]["param"], param, "{said}");
        assert!(!said.to_string().contains("Write `upstream"), "{said}");
    }
    for path in ["/render/html/v1/embeddings", "/render/html/v1/completions"] {
        assert_eq!(server.post(path, json!({"model": "raw/x", "input": "a"})).await.0, 404, "{path}");
    }
    assert!(sent.0.lock().unwrap().is_empty());
}

/// The same error as in a chat, for any base URL.
#[tokio::test]
async fn unknown_model_is_the_same_error_on_every_route() {
    let (server, sent, _told) = server().await;
    let mut errors = Vec::new();
    for base in ["/v1", "/render/details/v1"] {
        for path in ["/chat/completions", "/completions", "/embeddings"] {
            let body = json!({"model": "nosuch/x", "input": "a", "prompt": "a", "messages": [{"role": "user", "content": "a"}]});
            let (status, said) = server.post(&format!("{base}{path}"), body).await;
            assert_eq!((status, &said["error"]["code"]), (404, &json!("model_not_found")), "{base}{path}");
            errors.push(said);
        }
    }
    assert!(errors.iter().all(|said| *said == errors[0]), "{errors:?}");
    assert!(sent.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn client_disconnect_ends_the_upstream_stream() {
    let (server, _sent, mut told) = server().await;
    let body = json!({"model": "raw/endless", "prompt": "Once", "stream": true});
    let mut response = server.client().post(server.url("/v1/completions")).json(&body).send().await.unwrap();
    assert_eq!(&response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.chunk().await.unwrap().unwrap(), "data: {}\n\n");
    drop(response);
    told.recv().await.expect("the upstream's stream was given up");
}
