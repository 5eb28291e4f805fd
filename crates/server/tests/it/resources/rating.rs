//! Ratings of answers.

use super::{ask, ask_as, get, post, refused, server, server_with, turn};
use crate::support::saying;
use reqwest::Method;
use serde_json::{Value, json};
use throughline_testkit::{ModelScript, ScriptQueue};

async fn rating(server: &crate::support::TestServer, turn: &str) -> Value {
    get(server, &format!("/v1/turns/{turn}")).await["rating"].clone()
}

#[tokio::test]
async fn rating_is_set_changed_counted_and_removed() {
    let server = server().await;
    let turn = turn(&server, "What does Paris say?", json!({})).await;
    let path = &format!("/v1/turns/{turn}/rating");
    assert_eq!(rating(&server, &turn).await, Value::Null);

    let (status, given) = ask(&server, Method::PUT, path, Some(json!({"value": "up"}))).await;
    assert_eq!((status, &given["value"], given.get("reason")), (200, &json!("up"), None), "{given}");
    let body = json!({"value": "down", "reason": " Too short\u{202e}. "});
    let (status, given) = ask(&server, Method::PUT, path, Some(body)).await;
    assert_eq!((status, &given["reason"]), (200, &json!("Too short\\u202e.")), "shown as it is: {given}");
    assert_eq!(rating(&server, &turn).await, given);

    // It is in the tree of the conversation, in the figures and in the metrics.
    let conversation = get(&server, "/v1/conversations").await["items"][0]["id"].clone();
    let conversation = conversation.as_str().unwrap();
    let tree = get(&server, &format!("/v1/conversations/{conversation}")).await;
    assert_eq!(tree["tree"][0]["rating"], given, "{tree}");
    let turns = get(&server, "/v1/history/metrics").await["turns"].clone();
    assert_eq!((&turns["rated_up"], &turns["rated_down"]), (&json!(0), &json!(1)), "{turns}");
    assert_eq!(turns["positive_rate"], 0.0, "{turns}");

    // An export has it, and an import brings it back.
    let export = format!("/v1/conversations/{conversation}/export?format=jsonl");
    let export = server.client().get(server.url(&export)).send().await.unwrap().text().await.unwrap();
    let turn_line = export.lines().nth(1).unwrap();
    assert!(turn_line.contains(r#""rating":{"value":"down""#), "{turn_line}");

    assert_eq!(ask(&server, Method::DELETE, path, None).await.0, 204);
    assert_eq!(rating(&server, &turn).await, Value::Null);
    assert_eq!(ask(&server, Method::DELETE, path, None).await.0, 204, "nothing is there, and that is fine");
}

/// Viewers see the last event before the history has the end.
#[tokio::test]
async fn ended_turn_is_rated_or_deleted_at_once() {
    const TURNS: usize = 40;
    let server = server_with(ScriptQueue::new(vec![ModelScript::new().say("Hello."); TURNS])).await;
    for nth in 0..TURNS {
        let started = post(&server, "/v1/turns", saying("Hi")).await;
        let (turn, conversation) = (&started["turn_id"], &started["conversation_id"]);
        let (turn, conversation) = (turn.as_str().unwrap(), conversation.as_str().unwrap());
        let mut events = server.follow(turn, 0).await;
        events.until("stream_end").await;
        let (status, answer) = if nth % 2 == 0 {
            let body = Some(json!({"value": "up"}));
            ask(&server, Method::PUT, &format!("/v1/turns/{turn}/rating"), body).await
        } else {
            ask(&server, Method::DELETE, &format!("/v1/conversations/{conversation}"), None).await
        };
        assert!(matches!(status, 200 | 204), "{nth}: {status} {answer}");
    }
}

#[tokio::test]
async fn invalid_and_foreign_ratings_are_rejected() {
    let server = server().await;
    let turn = turn(&server, "What does Paris say?", json!({})).await;
    let path = &format!("/v1/turns/{turn}/rating");
    for (body, param) in [
        (json!({"value": "perhaps"}), "value"),
        (json!({}), "value"),
        (json!({"value": "up", "reason": "x".repeat(2_001)}), "reason"),
        (json!({"value": "up", "stars": 5}), "stars"),
    ] {
        let (status, answer) = ask(&server, Method::PUT, path, Some(body.clone())).await;
        assert_eq!(status, 400, "{body}: {answer}");
        assert!(answer.to_string().contains(param), "{body}: {answer}");
    }
    let body = Some(json!({"value": "up"}));
    let (status, code, _) = refused(&server, Method::PUT, "/v1/turns/nothing/rating", body.clone()).await;
    assert_eq!((status, code.as_str()), (404, "not_found"));
    let (status, _) = ask_as("grace", &server, Method::PUT, path, body).await;
    assert_eq!(status, 404, "another person's turn");
    assert_eq!(rating(&server, &turn).await, Value::Null);
}
