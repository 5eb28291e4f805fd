//! The thresholds for streaming tool calls over the API: each with its value, its limit and whether it holds.

use crate::multi_user_server::{MultiUserServer, answers};
use crate::support::{PATIENCE, saying};
use serde_json::{Value, json};
use throughline_testkit::{ModelScript, ScriptQueue};

async fn thresholds(multi_user_server: &MultiUserServer) -> Vec<Value> {
    multi_user_server.done("GET", "/v1/metrics/thresholds", Value::Null).await["items"]
        .as_array()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn thresholds_report_value_and_state_to_admins_only() {
    let call = || ModelScript::new().call("weather_today", json!({}));
    let model = ScriptQueue::new((0..20).flat_map(|_| [call(), ModelScript::new().say("Done.")]));
    let multi_user_server = MultiUserServer::start(model).await;
    let names =
        |rows: &[Value]| rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let quiet = thresholds(&multi_user_server).await;
    assert_eq!(
        names(&quiet),
        [
            "streaming_tool_detection_rate",
            "streaming_tool_execution_latency_p50",
            "streaming_tool_execution_latency_p95",
            "streaming_ui_jank_frames",
            "streaming_rollback_count",
            "feedback_positive_rate"
        ]
    );
    assert!(quiet[..3].iter().all(|row| row["value"].is_null() && row["holds"].is_null()), "{quiet:?}");
    assert!(quiet[3..5].iter().all(|row| row["value"] == 0.0 && row["holds"] == true), "{quiet:?}");
    for number in 0..20 {
        assert_eq!(
            multi_user_server.turn(&multi_user_server.admin, &format!("Question {number}")).await.0,
            201
        );
    }
    let frames = json!({"jank_frames": 60, "window_ms": 10_000});
    multi_user_server.ask(&multi_user_server.admin, "POST", "/v1/telemetry/frames", frames).await;
    let counted = async {
        loop {
            let rows = thresholds(&multi_user_server).await;
            if rows[0]["samples"] == 20 && rows[1]["samples"] == 20 {
                return rows;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let rows = tokio::time::timeout(PATIENCE, counted).await.expect("all calls are counted");
    assert_eq!((&rows[0]["value"], &rows[0]["holds"]), (&json!(1.0), &json!(true)));
    assert!(rows[1]["value"].is_number() && rows[2]["value"].is_number(), "{rows:?}");
    assert_eq!((&rows[3]["value"], &rows[3]["holds"]), (&json!(12.0), &json!(false)));
    // Answers are rated, one of them again.
    let turns = multi_user_server.done("GET", "/v1/conversations", Value::Null).await["items"].clone();
    for (number, conversation) in turns.as_array().unwrap().iter().enumerate() {
        let turn = conversation["leaf_id"].as_str().unwrap();
        let path = format!("/v1/turns/{turn}/rating");
        for value in ["down", if number < 5 { "down" } else { "up" }] {
            assert_eq!(
                multi_user_server
                    .ask(&multi_user_server.admin, "PUT", &path, json!({"value": value}))
                    .await
                    .0,
                200
            );
        }
    }
    let rated = thresholds(&multi_user_server).await.pop().unwrap();
    assert_eq!(
        (&rated["value"], &rated["holds"], &rated["samples"]),
        (&json!(0.75), &json!(false), &json!(20))
    );
    // What happens on the whole server is for those who look after it.
    multi_user_server.done("POST", "/v1/users", json!({"name": "bob"})).await;
    let bob = multi_user_server.key("bob", json!({"scopes": ["chat", "tools", "agents"]})).await;
    assert_eq!(multi_user_server.ask(&bob, "GET", "/v1/metrics/thresholds", Value::Null).await.0, 403);
    assert_eq!(multi_user_server.ask(&bob, "POST", "/v1/turns", saying("x")).await.0, 201);
}

#[tokio::test]
async fn threshold_limits_match_the_alerts() {
    let multi_user_server = MultiUserServer::start(answers(0)).await;
    let alerts =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/alerts.yml")).unwrap();
    let sides = [" < ", " > ", " > ", " > ", " > ", " < "];
    let alert = ["DetectionRateLow", "SlowP50", "SlowP95", "UiJank", "Rollbacks", "FeedbackPositiveRateLow"];
    for ((row, side), alert) in thresholds(&multi_user_server).await.iter().zip(sides).zip(alert) {
        let rule =
            alerts.split("- alert: ").find(|rule| rule.lines().next().unwrap().ends_with(alert)).unwrap();
        let wanted = format!("{side}{}", row["limit"]);
        let wanted = wanted.trim_end_matches(".0");
        assert!(rule.contains(wanted), "{alert}: {wanted}");
        assert_eq!(row["side"], if side == " < " { "at_least" } else { "at_most" });
    }
}
