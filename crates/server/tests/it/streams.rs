//! A turn over a real socket: started, followed from every position, and abandoned.

use crate::support::{self, Event, Events, PATIENCE, TestServer, answered, saying};
use serde_json::{Value, json};
use throughline::config::ServerLimits;
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{ModelScript, ParsedRequest, ScriptQueue};
use tokio::time::{Duration, sleep, timeout};

/// Text, a call, and text again.
fn with_a_call() -> ScriptQueue {
    ScriptQueue::new([
        ModelScript::new().say("Let me look.").call("weather_today", json!({})),
        ModelScript::new().say("It is sunny."),
    ])
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

#[tokio::test]
async fn turn_is_started_and_followed_to_its_end() {
    let server = TestServer::start(with_a_call()).await;
    let response = server.client().post(server.url("/v1/turns")).json(&saying("Hi")).send().await.unwrap();
    assert_eq!(response.status(), 201);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let started: Value = response.json().await.unwrap();
    assert_eq!(location, format!("/v1/turns/{}", started["turn_id"].as_str().unwrap()));
    let response =
        server.client().get(server.url(started["events_url"].as_str().unwrap())).send().await.unwrap();
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store, no-transform"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(response.headers()[name], value);
    }
    let mut stream = Events::of(response);
    let events = stream.rest().await;
    assert!(stream.comments[0].starts_with("retry: 1"), "{:?}", stream.comments);
    assert_eq!(stream.comments[1], ": open");
    let numbers: Vec<u64> = events.iter().map(|event| event.id).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "dense");
    assert_eq!(events.iter().filter(|event| event.name == "stream_end").count(), 1);
    assert_eq!(names(&events).last(), Some(&"stream_end"));
    assert_eq!(events[0].data["message_id"], started["message_id"]);

    let mut at_once = Events::of(
        server
            .client()
            .post(server.url("/v1/turns"))
            .header("accept", "text/event-stream")
            .json(&saying("Hi"))
            .send()
            .await
            .unwrap(),
    );
    assert_eq!(at_once.status, 200);
    assert_eq!(names(&at_once.rest().await).last(), Some(&"stream_end"));
}

#[tokio::test]
async fn stream_resumes_after_any_event_and_snapshot_is_the_fold() {
    let server = TestServer::start(with_a_call()).await;
    let turn = server.say("Hi").await;
    let whole = server.follow(&turn, 0).await.rest().await;
    for event in &whole[..whole.len() - 1] {
        let rest = server.follow(&turn, event.id).await.rest().await;
        assert_eq!(rest, whole[event.id as usize..], "behind {}", event.id);
        // A browser sends the position in a header.
        let request = server.client().get(server.url(&format!("/v1/turns/{turn}/events")));
        let mut again = Events::of(request.header("last-event-id", event.id).send().await.unwrap());
        assert_eq!(again.rest().await, rest);
    }
    let (_, snapshot) = server.get(&format!("/v1/turns/{turn}")).await;
    assert_eq!(snapshot["status"], "completed");
    assert_eq!(snapshot["last_seq"], whole.len());
    let request = server.client().get(server.url(&format!("/v1/turns/{turn}/events?from=snapshot")));
    let first = Events::of(request.send().await.unwrap()).rest().await;
    assert_eq!(names(&first), ["snapshot"]);
    assert_eq!((&first[0].data["message"], first[0].id), (&snapshot["message"], whole.len() as u64));
    let events: Vec<throughline::Event> =
        whole.iter().map(|event| serde_json::from_value(event.data.clone()).unwrap()).collect();
    let folded = serde_json::to_value(throughline::AssistantMessage::from_events(&events)).unwrap();
    assert_eq!(snapshot["message"], folded);
}

#[tokio::test]
async fn invalid_stream_positions_have_distinct_statuses() {
    let server = TestServer::start(with_a_call()).await;
    let turn = server.say("Hi").await;
    let whole = server.follow(&turn, 0).await.rest().await;
    let last = whole.len() as u64;
    let events = |query: &str| server.url(&format!("/v1/turns/{turn}/events{query}"));
    for (url, header, status, code) in [
        (events(&format!("?after={last}")), "", 204, ""),
        (events("?after=x"), "", 400, "invalid_value"),
        (events("?afte=1"), "", 400, "unknown_field"),
        (events(""), "x", 400, "invalid_position"),
        (events("?after=1"), "x", 400, "invalid_position"),
        (server.url("/v1/turns/turn_none/events"), "", 404, "not_found"),
        (server.url("/v1/turns/turn_none"), "", 404, "not_found"),
    ] {
        let mut request = server.client().get(&url);
        if !header.is_empty() {
            request = request.header("last-event-id", header);
        }
        let (got, body) = answered(request).await;
        assert_eq!((got, body["error"]["code"].as_str().unwrap_or_default()), (status, code), "{url} {body}");
    }
    let (status, _) = answered(server.client_of("eve").get(events(""))).await;
    assert_eq!(status, 404, "another user's turn is not there");
    let (status, _) = answered(support::http_client().build().unwrap().get(events(""))).await;
    assert_eq!(status, 401);
    // After the end of the log, as after a power cut: the whole message, and the number to continue from.
    let ahead = server.follow(&turn, last + 7).await.rest().await;
    assert_eq!(names(&ahead), ["resync"]);
    assert_eq!(ahead[0].id, last);
}

#[tokio::test]
async fn idempotency_key_makes_a_hundred_posts_one_turn() {
    // All but the first are repetitions: none of them counts against the limit, however slowly the first one starts.
    let limits = ServerLimits { turns_per_key_max: 1, ..ServerLimits::default() };
    let server = TestServer::start_with(with_a_call(), |builder| builder, limits).await;
    let post = |text: &str| {
        server.client().post(server.url("/v1/turns")).header("idempotency-key", "k").json(&saying(text))
    };
    let answers = futures_util::future::join_all((0..100).map(|_| answered(post("Hi")))).await;
    let turn = answers[0].1["turn_id"].clone();
    assert!(
        answers.iter().all(|(status, body)| matches!(status, 200 | 201) && body["turn_id"] == turn),
        "{answers:?}"
    );
    assert_eq!(answers.iter().filter(|(status, _)| *status == 201).count(), 1);
    let (status, body) = answered(post("Hello")).await;
    assert_eq!((status, body["error"]["code"].as_str()), (422, Some("idempotency_key_reused")));
    server.follow(turn.as_str().unwrap(), 0).await.until("stream_end").await;
    assert_eq!(server.upstream.requests().len(), 2, "one turn of two steps");
}

#[tokio::test]
async fn on_disconnect_cancel_ends_a_turn_without_viewers() {
    let server =
        TestServer::start(|_: &ParsedRequest| ModelScript::new().call("queue_wait", json!({}))).await;
    let turn =
        server.turn(json!({"input": [{"type": "text", "text": "Hi"}], "on_disconnect": "cancel"})).await;
    let (mut one, mut two) = (server.follow(&turn, 0).await, server.follow(&turn, 0).await);
    one.until("tool_start").await;
    two.until("tool_start").await;
    drop(one);
    drop(two);
    // There is no viewer, and a snapshot does not count as one: the turn is cancelled.
    let status = timeout(PATIENCE, async {
        loop {
            let (_, snapshot) = server.get(&format!("/v1/turns/{turn}")).await;
            if snapshot["status"] != "running" {
                return snapshot["status"].clone();
            }
            sleep(Duration::from_millis(20)).await;
        }
    });
    assert_eq!(status.await.expect("it ends"), "cancelled");

    let turn = server.say("Hi").await;
    server.follow(&turn, 0).await.until("tool_start").await;
    let (_, snapshot) = server.get(&format!("/v1/turns/{turn}")).await;
    assert_eq!(snapshot["status"], "running");
    let (status, _) = server.post(&format!("/v1/turns/{turn}/cancel"), json!({})).await;
    assert_eq!(status, 202);
    let events = server.follow(&turn, 0).await.until("stream_end").await;
    assert_eq!(events.last().unwrap().data["status"], "cancelled");
    assert_eq!(server.post(&format!("/v1/turns/{turn}/cancel"), json!({})).await.0, 202, "again");
}

#[tokio::test]
async fn conversation_is_continued_edited_and_forked() {
    let server = TestServer::start(|seen: &ParsedRequest| {
        // Consecutive user messages are one message.
        let count = seen.messages.iter().map(|message| match message {
            ParsedMessage::User { text, .. } => text.split("\n\n").count(),
            _ => 1,
        });
        ModelScript::new().say(format!("heard {}", count.sum::<usize>()))
    })
    .await;
    let (_, first) = server.post("/v1/turns", saying("One")).await;
    let conversation = first["conversation_id"].as_str().unwrap().to_owned();
    let text = |events: &[Event]| -> String {
        events
            .iter()
            .filter(|event| event.name == "content_delta")
            .filter_map(|event| event.data["text"].as_str())
            .collect()
    };
    let say = async |more: Value| {
        let mut body = saying("More");
        body["conversation_id"] = json!(conversation);
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let turn = server.turn(body).await;
        let events = server.follow(&turn, 0).await.until("stream_end").await;
        (turn, text(&events))
    };
    let first = first["turn_id"].as_str().unwrap().to_owned();
    let events = server.follow(&first, 0).await.until("stream_end").await;
    let alone = text(&events);
    let (_, second) = say(json!({})).await;
    assert_ne!(second, alone, "the second turn knows of the first");
    let (_, edited) = say(json!({"parent_id": null})).await;
    assert_eq!(edited, alone, "an edit of the first message knows of nothing");
    let (_, regenerated) = say(json!({"parent_id": first})).await;
    assert_eq!(regenerated, second);
    let opened = events.iter().find(|event| event.name == "step_start").unwrap().id;
    let (_, forked) = say(json!({"parent_id": first, "parent_seq": opened})).await;
    assert_ne!(forked, alone, "the message of the user is known");
    for (body, status, code) in [
        (json!({"parent_id": "turn_none"}), 404, "not_found"),
        (json!({"parent_id": first, "parent_seq": 9_999}), 400, "no_such_event"),
        (json!({"parent_seq": 1}), 400, "contradiction"),
        (json!({"messages": []}), 400, "contradiction"),
        (json!({"conversation_id": "conv_none"}), 404, "not_found"),
        (json!({"inptu": []}), 400, "unknown_field"),
        (json!({"input": []}), 400, "empty_input"),
        (json!({"agent": "nobody"}), 400, "unknown_agent"),
    ] {
        let mut whole = saying("More");
        whole["conversation_id"] = json!(conversation);
        for (name, value) in body.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let (got, answer) = server.post("/v1/turns", whole).await;
        assert_eq!((got, answer["error"]["code"].as_str()), (status, Some(code)), "{body} {answer}");
    }
}

#[tokio::test]
async fn turns_are_limited_per_conversation_and_per_key() {
    let limits = ServerLimits { turns_per_key_max: 2, ..ServerLimits::default() };
    let waits = ScriptQueue::new([ModelScript::new().call("queue_wait", json!({}))]);
    let server = TestServer::start_with(waits, |builder| builder, limits).await;
    let (_, first) = server.post("/v1/turns", saying("One")).await;
    let mut again = saying("Two");
    again["conversation_id"] = first["conversation_id"].clone();
    let (status, body) = server.post("/v1/turns", again).await;
    assert_eq!((status, body["error"]["code"].as_str()), (409, Some("conversation_busy")));
    assert_eq!(body["error"]["turn_id"], first["turn_id"]);
    server.say("Three").await;
    let (status, body) = server.post("/v1/turns", saying("Four")).await;
    assert_eq!((status, body["error"]["code"].as_str()), (429, Some("too_many_turns")));
}
