//! Measuring an upstream over the API: the same as `throughline probe`, one at a time, and nothing is left of it when its
//! client leaves.

use crate::multi_user_server::{MultiUserServer, answers};
use crate::support::{self, PATIENCE};
use serde_json::{Value, json};
use throughline::MeasureOptions;
use throughline_testkit::{ModelScript, PlantedQuirk, ScenarioRules, ScriptMove, ScriptQueue};

async fn begun(multi_user_server: &MultiUserServer, body: Value) -> reqwest::Response {
    let client = support::http_client().build().unwrap();
    let request = client
        .post(format!("{}/v1/upstreams/test/probe", multi_user_server.url))
        .bearer_auth(&multi_user_server.admin);
    request.json(&body).send().await.unwrap()
}

/// All events of a measurement, by name.
async fn events(response: reqwest::Response) -> Vec<(String, Value)> {
    assert_eq!(response.status(), 200);
    let text = tokio::time::timeout(PATIENCE, response.text()).await.unwrap().unwrap();
    let frames = text.split("\n\n").filter(|frame| frame.starts_with("event: "));
    frames
        .map(|frame| {
            let (name, data) = frame["event: ".len()..].split_once("\ndata: ").unwrap();
            (name.to_owned(), serde_json::from_str(data).unwrap())
        })
        .collect()
}

#[tokio::test]
async fn probe_matches_the_library_and_changes_nothing() {
    let mut model = ScenarioRules::capable();
    model.quirks = vec![PlantedQuirk::ALL[0]];
    let multi_user_server = MultiUserServer::start(model).await;
    let before = multi_user_server.done("GET", "/v1/upstreams", Value::Null).await;
    let mut seen = events(begun(&multi_user_server, json!({"model": "capable"})).await).await;
    let (name, measured) = seen.pop().unwrap();
    assert_eq!(name, "result", "{measured}");
    let numbers: Vec<u64> = seen.iter().map(|(_, step)| step["request"].as_u64().unwrap()).collect();
    let requests = measured["requests"].as_u64().unwrap();
    assert_eq!(numbers, (1..=requests).collect::<Vec<_>>());
    assert!(seen.iter().all(|(name, step)| name == "progress" && step["purpose"].is_string()), "{seen:?}");
    let upstream = multi_user_server.inner.state.app.upstreams().remove(0);
    let same = upstream.measure("capable", MeasureOptions::default(), &mut |_| {}).await.unwrap();
    assert_eq!(measured, serde_json::to_value(same).unwrap());
    assert!(
        measured["features"].as_array().unwrap().iter().any(|row| row["quirk"].is_string()),
        "{measured}"
    );
    assert_eq!(multi_user_server.done("GET", "/v1/upstreams", Value::Null).await, before);
}

#[tokio::test]
async fn probes_run_one_at_a_time_and_end_with_their_client() {
    let stalls = || ModelScript::new().say("A").then(ScriptMove::Stall);
    let multi_user_server = MultiUserServer::start(ScriptQueue::new((0..50).map(|_| stalls()))).await;
    let first = begun(&multi_user_server, json!({"model": "m"})).await;
    assert_eq!(first.status(), 200);
    multi_user_server.inner.upstream.wait_for_request(1).await;
    let second = begun(&multi_user_server, json!({"model": "m"})).await;
    assert_eq!(second.status(), 409);
    let said: Value = second.json().await.unwrap();
    assert_eq!(said["error"]["code"], "probe_running");
    drop(first);
    multi_user_server.inner.upstream.wait_for_end(1).await;
    let is_free = async || begun(&multi_user_server, json!({"model": "m"})).await.status() != 409;
    support::eventually("the place is free again", is_free).await;
}

#[tokio::test]
async fn probe_requires_admin_and_validates_its_options() {
    let multi_user_server = MultiUserServer::start(answers(0)).await;
    multi_user_server.done("POST", "/v1/users", json!({"name": "bob"})).await;
    let bob = multi_user_server.key("bob", json!({"scopes": ["chat", "tools", "agents"]})).await;
    assert_eq!(multi_user_server.ask(&bob, "POST", "/v1/upstreams/test/probe", json!({})).await.0, 403);
    for (path, body, status, code) in [
        ("/v1/upstreams/none/probe", json!({}), 404, "not_found"),
        ("/v1/upstreams/test/probe", json!({"model": ""}), 400, "invalid_value"),
        ("/v1/upstreams/test/probe", json!({"model": "a\u{200b}"}), 400, "invalid_value"),
        ("/v1/upstreams/test/probe", json!({"model": "m".repeat(300)}), 400, "invalid_value"),
        ("/v1/upstreams/test/probe", json!({"tokens_max": 15}), 400, "invalid_value"),
        ("/v1/upstreams/test/probe", json!({"tokens_max": 32_769}), 400, "invalid_value"),
        ("/v1/upstreams/test/probe", json!({"write": true}), 400, "unknown_field"),
    ] {
        let (got, said) = multi_user_server.ask(&multi_user_server.admin, "POST", path, body).await;
        assert_eq!((got, &said["error"]["code"]), (status, &json!(code)), "{path}: {said}");
    }
    assert!(multi_user_server.inner.upstream.requests().is_empty());
}

#[tokio::test]
async fn probe_of_a_refusing_upstream_ends_with_the_reason() {
    let refuses =
        ScenarioRules::parse("models = [\"m\"]\nkey = \"another\"\n[[rules]]\nthen = [{ say = \"x\" }]")
            .unwrap();
    let multi_user_server = MultiUserServer::start(refuses).await;
    let seen = events(begun(&multi_user_server, json!({})).await).await;
    let (name, error) = seen.last().unwrap();
    assert_eq!((name.as_str(), &error["error"]["code"]), ("error", &json!("wrong_key")), "{seen:?}");
    // Another one may begin.
    events(begun(&multi_user_server, json!({})).await).await;
}
