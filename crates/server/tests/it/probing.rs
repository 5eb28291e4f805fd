//! Measuring an upstream over the API: the same as `throughline probe`, one at a time, and nothing is left of it when its
//! client leaves.

use crate::house::{House, answers};
use crate::support::{self, PATIENCE};
use serde_json::{Value, json};
use throughline::MeasureOptions;
use throughline_testkit::{ModelScript, PlantedQuirk, ScenarioRules, ScriptMove, ScriptQueue};

async fn begun(house: &House, body: Value) -> reqwest::Response {
    let client = support::http_client().build().unwrap();
    let request = client.post(format!("{}/v1/upstreams/test/probe", house.url)).bearer_auth(&house.admin);
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
    let house = House::start(model).await;
    let before = house.done("GET", "/v1/upstreams", Value::Null).await;
    let mut seen = events(begun(&house, json!({"model": "capable"})).await).await;
    let (name, measured) = seen.pop().unwrap();
    assert_eq!(name, "result", "{measured}");
    let numbers: Vec<u64> = seen.iter().map(|(_, step)| step["request"].as_u64().unwrap()).collect();
    let requests = measured["requests"].as_u64().unwrap();
    assert_eq!(numbers, (1..=requests).collect::<Vec<_>>());
    assert!(seen.iter().all(|(name, step)| name == "progress" && step["purpose"].is_string()), "{seen:?}");
    let upstream = house.inner.state.app.upstreams().remove(0);
    let same = upstream.measure("capable", MeasureOptions::default(), &mut |_| {}).await.unwrap();
    assert_eq!(measured, serde_json::to_value(same).unwrap());
    assert!(
        measured["features"].as_array().unwrap().iter().any(|row| row["quirk"].is_string()),
        "{measured}"
    );
    assert_eq!(house.done("GET", "/v1/upstreams", Value::Null).await, before);
}

#[tokio::test]
async fn probes_run_one_at_a_time_and_end_with_their_client() {
    let stalls = || ModelScript::new().say("A").then(ScriptMove::Stall);
    let house = House::start(ScriptQueue::new((0..50).map(|_| stalls()))).await;
    let first = begun(&house, json!({"model": "m"})).await;
    assert_eq!(first.status(), 200);
    house.inner.upstream.wait_for_request(1).await;
    let second = begun(&house, json!({"model": "m"})).await;
    assert_eq!(second.status(), 409);
    let said: Value = second.json().await.unwrap();
    assert_eq!(said["error"]["code"], "probe_running");
    drop(first);
    house.inner.upstream.wait_for_end(1).await;
    let is_free = async || begun(&house, json!({"model": "m"})).await.status() != 409;
    support::eventually("the place is free again", is_free).await;
}

#[tokio::test]
async fn probe_requires_admin_and_validates_its_options() {
    let house = House::start(answers(0)).await;
    house.done("POST", "/v1/users", json!({"name": "bob"})).await;
    let bob = house.key("bob", json!({"scopes": ["chat", "tools", "agents"]})).await;
    assert_eq!(house.ask(&bob, "POST", "/v1/upstreams/test/probe", json!({})).await.0, 403);
    for (path, body, status, code) in [
        ("/v1/upstreams/none/probe", json!({}), 404, "not_found"),
        ("/v1/upstreams/test/probe", json!({"model": ""}), 400, "invalid_value"),
        ("/v1/upstreams/test/probe", json!({"model": "a\u{200b}"}), 400, "invalid_value"),
        ("/v1/upstreams/test/probe", json!({"model": "m".repeat(300)}), 400, "invalid_value"),
        ("/v1/upstreams/test/probe", json!({"tokens_max": 15}), 400, "invalid_value"),
        ("/v1/upstreams/test/probe", json!({"tokens_max": 32_769}), 400, "invalid_value"),
        ("/v1/upstreams/test/probe", json!({"write": true}), 400, "unknown_field"),
    ] {
        let (got, said) = house.ask(&house.admin, "POST", path, body).await;
        assert_eq!((got, &said["error"]["code"]), (status, &json!(code)), "{path}: {said}");
    }
    assert!(house.inner.upstream.requests().is_empty());
}

#[tokio::test]
async fn probe_of_a_refusing_upstream_ends_with_the_reason() {
    let refuses =
        ScenarioRules::parse("models = [\"m\"]\nkey = \"another\"\n[[rules]]\nthen = [{ say = \"x\" }]")
            .unwrap();
    let house = House::start(refuses).await;
    let seen = events(begun(&house, json!({})).await).await;
    let (name, error) = seen.last().unwrap();
    assert_eq!((name.as_str(), &error["error"]["code"]), ("error", &json!("wrong_key")), "{seen:?}");
    // Another one may begin.
    events(begun(&house, json!({})).await).await;
}
