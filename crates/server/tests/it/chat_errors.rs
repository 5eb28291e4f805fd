//! Errors of the upstream, as clients of chat completions learn of it: a status of the same class, before anything is
//! sent, and tries that do not multiply.

use crate::support::TestServer;
use crate::support::check_stream::check_stream;
use futures_util::StreamExt;
use reqwest::StatusCode;
use serde_json::{Value, json};
use throughline::config::ServerLimits;
use throughline::wire::Dialect;
use throughline::{ThroughlineBuilder, Upstream};
use throughline_testkit::{ErrorMove, HttpAnswer, ModelScript, ScriptMove, ScriptQueue};

fn failing(status: u16, headers: &[(&str, &str)], body: Value) -> ModelScript {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ModelScript { http: Some(HttpAnswer { status, headers, body: Some(body) }), ..ModelScript::default() }
}

fn error(message: &str, code: &str) -> Value {
    json!({"error": {"message": message, "type": "x", "param": null, "code": code}})
}

/// A request as OpenAI's SDKs send it.
async fn post(server: &TestServer, more: Value) -> reqwest::Response {
    let mut body = json!({"model": "default", "messages": [{"role": "user", "content": "Hi"}]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    let request = server.client().post(server.url("/v1/chat/completions")).json(&body);
    request.header("x-stainless-retry-count", "0").send().await.unwrap()
}

#[tokio::test]
async fn upstream_failures_map_to_openai_statuses_and_codes() {
    let table = [
        (
            failing(429, &[("retry-after", "7")], error("Slow down", "x")),
            429,
            "rate_limit_exceeded",
            Some("7"),
        ),
        (failing(429, &[], error("Slow down", "x")), 429, "rate_limit_exceeded", Some("1")),
        (failing(503, &[("retry-after", "2")], error("Busy", "x")), 503, "upstream_error", Some("2")),
        (failing(500, &[], error("Oops", "x")), 502, "upstream_error", None),
        (failing(429, &[], error("Pay first", "insufficient_quota")), 429, "insufficient_quota", None),
        (
            failing(404, &[], error("The model `m` does not exist", "model_not_found")),
            404,
            "model_not_found",
            None,
        ),
        (
            failing(
                400,
                &[],
                error("This model's maximum context length is 8 tokens", "context_length_exceeded"),
            ),
            400,
            "context_length_exceeded",
            None,
        ),
        (failing(400, &[], error("`temperature` is too high", "x")), 400, "upstream_error", None),
        (failing(401, &[], error("Incorrect API key", "invalid_api_key")), 502, "unauthorized", None),
        (failing(403, &[], error("No", "unsupported_country_region_territory")), 502, "access_denied", None),
        (failing(400, &[], error("No", "content_filter")), 400, "content_filter", None),
        (failing(529, &[], error("Busy", "overloaded_error")), 503, "upstream_error", Some("1")),
        (failing(408, &[], error("Too slow", "timeout")), 503, "upstream_error", Some("1")),
        (failing(425, &[], error("Too early", "x")), 503, "upstream_error", Some("1")),
    ];
    for (script, status, code, retry_after) in table {
        for stream in [true, false] {
            // A history that is too long is shortened and sent once more, if it has removable parts; this one
            // has none.
            let server = TestServer::start(ScriptQueue::new([script.clone()])).await;
            let response = post(&server, json!({"stream": stream})).await;
            let what = format!("{status} {code}, stream: {stream}");
            assert_eq!(response.status().as_u16(), status, "{what}");
            let header =
                |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(header("retry-after").as_deref(), retry_after, "{what}");
            assert_eq!(header("x-should-retry").is_some(), code == "insufficient_quota", "{what}");
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["error"]["code"], code, "{what}: {body}");
            assert_eq!(server.upstream.requests().len(), 1, "{what}: the client tries again by itself");
        }
    }
}

#[tokio::test]
async fn error_sentences_are_joined_by_one_full_stop() {
    for (words, joined) in [
        ("nope", "HTTP 429: nope. Try again"),
        ("Nope.", "HTTP 429: Nope. Try again"),
        ("Nope!", "HTTP 429: Nope! Try again"),
        ("请求过于频繁。", "HTTP 429: 请求过于频繁。 Try again"),
        ("请求过于频繁", "HTTP 429: 请求过于频繁. Try again"),
        ("wait…", "HTTP 429: wait… Try again"),
        ("See:", "HTTP 429: See: Try again"),
    ] {
        let server = TestServer::start(ScriptQueue::new([failing(429, &[], error(words, "x"))])).await;
        let body: Value = post(&server, json!({})).await.json().await.unwrap();
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains(joined), "{message}");
    }
}

/// As a status or inside a 200, in every provider's wording, streamed or not, and for a client that never
/// retries itself.
#[tokio::test]
async fn insufficient_quota_is_not_retried() {
    let bodies = [
        (429, json!({"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}})),
        (
            500,
            json!({"type": "error", "error": {"type": "api_error", "message": "insufficient balance (1008)"}}),
        ),
        (403, json!({"code": "INSUFFICIENT_BALANCE", "message": "Insufficient account balance"})),
        (402, json!({"error": {"message": "Pay first"}})),
        (200, json!({"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}})),
        (
            200,
            json!({"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}, "choices": null}),
        ),
        (200, json!({"code": "Arrearage", "message": "Your account is in arrears", "request_id": "r"})),
    ];
    for (status, body) in bodies {
        for stream in [true, false] {
            let headers = [("content-type", "application/json")];
            let server = TestServer::start(ScriptQueue::new([failing(status, &headers, body.clone())])).await;
            let request = json!({"model": "default", "stream": stream, "messages": [{"role": "user", "content": "Hi"}]});
            let response =
                server.client().post(server.url("/v1/chat/completions")).json(&request).send().await.unwrap();
            assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS, "{status} {body}");
            assert_eq!(response.headers()["x-should-retry"], "false", "{status} {body}");
            let refused: Value = response.json().await.unwrap();
            assert_eq!(refused["error"]["code"], "insufficient_quota", "{status} {body}: {refused}");
            assert_eq!(server.upstream.requests().len(), 1, "{status} {body}");
        }
    }
}

#[tokio::test]
async fn transient_failures_are_retried_for_clients_without_retry() {
    let scripts = [ModelScript::rate_limited(0), ModelScript::status(503), ModelScript::new().say("Hi.")];
    let server = TestServer::start(ScriptQueue::new(scripts)).await;
    let body = json!({"model": "default", "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let response = server.client().post(server.url("/v1/chat/completions")).json(&body).send().await.unwrap();
    assert_eq!(check_stream(&response.bytes().await.unwrap()).content, "Hi.");
    assert_eq!(server.upstream.requests().len(), 3);
}

/// Once a tool has run, a client cannot simply repeat the request: there the server retries.
#[tokio::test]
async fn later_step_is_retried_for_every_client() {
    let scripts = [
        ModelScript::new().call("weather_today", json!({})),
        ModelScript::status(503),
        ModelScript::new().say("Sunny."),
    ];
    let server = TestServer::start(ScriptQueue::new(scripts)).await;
    let response = post(&server, json!({"stream": true})).await;
    assert_eq!(check_stream(&response.bytes().await.unwrap()).content, "Sunny.");
}

#[tokio::test]
async fn error_before_any_output_becomes_a_status() {
    let mut limited = ErrorMove::new("Too many");
    limited.code = Some("rate_limit_exceeded".to_owned());
    let server =
        TestServer::start(ScriptQueue::new([ModelScript::new().then(ScriptMove::Error(limited))])).await;
    assert_eq!(post(&server, json!({"stream": true})).await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn response_head_is_held_until_head_hold_ms() {
    // The model never answers: the head is sent nevertheless.
    let limits = ServerLimits { head_hold_ms: 1, ..ServerLimits::default() };
    let server = TestServer::start_with(
        ScriptQueue::new([ModelScript::new().then(ScriptMove::Stall)]),
        |builder| builder,
        limits,
    )
    .await;
    assert_eq!(post(&server, json!({"stream": true})).await.status(), StatusCode::OK);
    // A head that is held is not sent before the failure is known, regardless of earlier events.
    let limits = ServerLimits { head_hold_ms: 60_000, ..ServerLimits::default() };
    let slow = failing(503, &[], error("Busy", "x"));
    let slow = ModelScript { moves: vec![ScriptMove::Pause(50)], ..slow };
    let server = TestServer::start_with(ScriptQueue::new([slow]), |builder| builder, limits).await;
    assert_eq!(post(&server, json!({"stream": true})).await.status(), StatusCode::SERVICE_UNAVAILABLE);
}

/// The head is sent while the client waits, so the failure is in the body.
#[tokio::test]
async fn non_streaming_failure_is_a_status_until_the_head_is_sent() {
    for (fails_with, whole_head_hold_ms, status, is_whole) in
        [(400, 1, 200, true), (503, 1, 200, false), (503, 60_000, 503, true)]
    {
        let limits = ServerLimits { whole_head_hold_ms, ..ServerLimits::default() };
        let slow = failing(fails_with, &[], error("Busy", "x"));
        let slow = ModelScript { moves: vec![ScriptMove::Pause(50)], ..slow };
        let server = TestServer::start_with(ScriptQueue::new([slow]), |builder| builder, limits).await;
        let response = post(&server, json!({"stream": false})).await;
        assert_eq!(response.status().as_u16(), status, "{fails_with}");
        let (mut body, mut pieces, mut has_ended) = (Vec::new(), response.bytes_stream(), true);
        while let Some(piece) = pieces.next().await {
            match piece {
                Ok(piece) => body.extend(piece),
                Err(_) => has_ended = false,
            }
        }
        // Broken off, clients try again as they do at the status.
        assert_eq!(has_ended, is_whole, "{fails_with}");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body["error"]["message"].as_str().unwrap().contains("Busy"), "{body}");
    }
}

#[tokio::test]
async fn unknown_model_is_404() {
    // With one upstream every name is taken for one of its models.
    let other = || Upstream::new("other", Dialect::OpenaiChat, "http://127.0.0.1:9/v1").unwrap();
    let build = move |builder: ThroughlineBuilder| builder.upstream(other()).model("test/m");
    let server = TestServer::start_with(ScriptQueue::new([]), build, ServerLimits::default()).await;
    let response = post(&server, json!({"model": "nosuch/x"})).await;
    let (status, body) = (response.status(), response.json::<Value>().await.unwrap());
    assert_eq!((status.as_u16(), &body["error"]["code"]), (404, &json!("model_not_found")), "{body}");
}
