//! The key of an upstream, and errors that contain it, searched for in every response that a client can get.
//!
//! `telemetry.rs` searches the output of telemetry.

use crate::support::{self, TestServer};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use throughline::Upstream;
use throughline::wire::Dialect;
use throughline_testkit::{
    self as testkit, ErrorMove, FakeModel, HttpAnswer, ModelScript, ParsedRequest, ScriptMove,
};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

const CANARY: &str = "sk-canary/7+x=\"q\"";

/// An upstream that shows the key that it was given, in the forms in which keys travel.
#[derive(Clone, Copy, Debug)]
enum Telltale {
    AtOnce,
    BehindSomeText,
    AsRedirect,
    AsGarbage,
}

impl FakeModel for Telltale {
    fn reply(&self, _: &ParsedRequest) -> ModelScript {
        let output = format!(
            "wrong key {CANARY} ?key=sk-canary%2F7%2Bx%3D%22q%22 Basic dXNlcjpzay1jYW5hcnkvNyt4PSJxIg=="
        );
        let answer = |status, body: Value| {
            let answer = HttpAnswer { body: Some(body), ..HttpAnswer::status(status) };
            ModelScript { http: Some(answer), ..ModelScript::default() }
        };
        match self {
            Telltale::AtOnce => {
                answer(401, json!({"error": {"message": output, "type": CANARY, "code": CANARY}}))
            }
            Telltale::BehindSomeText => {
                let error = ErrorMove { kind: Some(CANARY.into()), ..ErrorMove::new(output) };
                ModelScript::new().say("Let me see.").then(ScriptMove::Error(error))
            }
            Telltale::AsRedirect => answer(302, json!(output)),
            Telltale::AsGarbage => answer(500, json!([output])),
        }
    }
}

fn check(what: &str, output: &str) {
    // In plain, in an address, and in Base64 at two of its offsets.
    for form in ["canary", "Y2FuYXJ5", "jYW5hcn"] {
        assert!(!output.contains(form), "{form} in {what}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upstream_key_echoed_by_an_upstream_reaches_no_client() {
    for tells in [Telltale::AtOnce, Telltale::BehindSomeText, Telltale::AsRedirect, Telltale::AsGarbage] {
        let upstream = testkit::FakeUpstream::start(tells).await.unwrap();
        let address = upstream.base_url(testkit::FakeDialect::OpenaiChat);
        let build = move |builder: throughline::ThroughlineBuilder| {
            let keyed = Upstream::new("keyed", Dialect::OpenaiChat, &address).unwrap();
            builder.upstream(keyed.key(CANARY)).model("keyed/m")
        };
        let server = TestServer::start_with(testkit::ScriptQueue::new([]), build, Default::default()).await;
        let agent = json!({"name": "keyed", "settings": {"model": "keyed/m"}});
        assert_eq!(server.post("/v1/agents", agent).await.0, 201);

        // A turn over SSE, with all that is left of it.
        let start = json!({"model": "keyed/m", "input": [{"type": "text", "text": "hello"}]});
        let (status, started) = server.post("/v1/turns", start.clone()).await;
        assert_eq!(status, 201, "{started}");
        let (turn, conversation) = (&started["turn_id"], &started["conversation_id"]);
        let (turn, conversation) = (turn.as_str().unwrap(), conversation.as_str().unwrap());
        let events = server.follow(turn, 0).await.rest().await;
        assert!(events.iter().any(|event| event.name == "error"), "{tells:?}: it fails: {events:#?}");
        check("events", &format!("{events:?}"));
        for path in [
            format!("/v1/turns/{turn}"),
            format!("/v1/turns/{turn}/events?from=snapshot"),
            format!("/v1/turns/{turn}/waterfall"),
            format!("/v1/turns/{turn}/messages"),
            format!("/v1/conversations/{conversation}"),
            format!("/v1/conversations/{conversation}/messages"),
            format!("/v1/conversations/{conversation}/export"),
            format!("/v1/conversations/{conversation}/export?format=markdown"),
            "/v1/agents".to_owned(),
            "/v1/agents/keyed".to_owned(),
            "/v1/agents/keyed/prompt".to_owned(),
            "/v1/agents/keyed/tools".to_owned(),
            "/v1/upstreams".to_owned(),
            "/v1/models".to_owned(),
            "/v1/models/keyed/m".to_owned(),
            "/v1/tools".to_owned(),
            "/v1/history/calls".to_owned(),
            "/v1/history/export".to_owned(),
            "/v1/search?q=wrong".to_owned(),
            "/v1/openapi.json".to_owned(),
        ] {
            let response = server.client().get(server.url(&path)).send().await.unwrap();
            let head = format!("{:?}", response.headers());
            assert!(
                response.status().is_success() || response.status() == 404,
                "{path}: {}",
                response.status()
            );
            check(&path, &head);
            check(&path, &response.text().await.unwrap());
        }

        // The same over a WebSocket.
        let mut request = server.url("/v1/ws").replace("http://", "ws://").into_client_request().unwrap();
        request.headers_mut().insert("x-test-user", "ada".parse().unwrap());
        let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
        let mut op = start.clone();
        op["op"] = json!("start");
        socket.send(Message::text(op.to_string())).await.unwrap();
        let mut has_failed = false;
        while !has_failed {
            let message =
                tokio::time::timeout(support::PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
            check("the WebSocket", &message.to_string());
            has_failed = message.to_string().contains(r#""type":"stream_end""#);
        }

        // As OpenAI's clients see it, streamed and whole.
        for stream in [true, false] {
            let messages = json!([{"role": "user", "content": "hello"}]);
            let body = json!({"model": "keyed/m", "stream": stream, "messages": messages});
            let asked = server.client().post(server.url("/v1/chat/completions")).json(&body);
            let response = asked.send().await.unwrap();
            check("chat completions", &format!("{:?}", response.headers()));
            let output = response.text().await.unwrap();
            assert!(output.contains("error"), "{tells:?}: {output}");
            check("chat completions", &output);
        }
    }
}
