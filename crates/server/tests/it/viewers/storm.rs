//! All viewers reconnect at the same moment.

use super::{View, WAYS, fold, log, seq};
use crate::support::{PATIENCE, Socket, TestServer, answered, saying};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::sync::Arc;
use throughline::config::ServerLimits;
use throughline_testkit::{ModelScript, ReplyPace, ScriptQueue};
use tokio::sync::Barrier;
use tokio::time::timeout;

const VIEWERS: usize = 120;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconnecting_viewers_see_every_event() {
    let limits = ServerLimits { streams_per_key_max: 2 * VIEWERS as u32, ..ServerLimits::default() };
    let pace = ReplyPace { tokens_per_second: Some(100.0), ..ReplyPace::default() };
    let model = ScriptQueue::new([ModelScript::new().say("a word ".repeat(100)).with_pace(pace)]);
    let server = Arc::new(TestServer::start_with(model, |builder| builder, limits).await);
    let turn = server.say("Hi").await;
    let together = Arc::new(Barrier::new(VIEWERS));
    let viewers = (0..VIEWERS).map(|number| {
        let (server, turn, together) = (server.clone(), turn.clone(), together.clone());
        tokio::spawn(async move {
            let by = WAYS[number % WAYS.len()];
            let mut seen: Vec<Value> = Vec::new();
            for glimpse in [3, 5, usize::MAX] {
                let after = seen.last().map_or(0, seq);
                let mut view = View::connect_after(&server, &turn, by, after).await;
                for _ in 0..glimpse {
                    let Some(event) = view.next().await else { break };
                    seen.push(event);
                }
                drop(view);
                together.wait().await;
            }
            seen
        })
    });
    let seen = timeout(PATIENCE, join_all(viewers)).await.expect("all come to the end");
    let whole = log(&server, &turn).await;
    let message = fold(&whole);
    for seen in seen {
        // Who was held up gets neighbors joined; what they add up to is the same.
        let seen = seen.unwrap();
        assert!(seen.windows(2).all(|pair| seq(&pair[0]) < seq(&pair[1])), "each once and in order");
        assert!(seen == whole || (seen.len() < whole.len() && fold(&seen) == message), "{seen:#?}");
    }
}

#[tokio::test]
async fn stream_over_the_limit_is_429_with_retry_after() {
    let limits = ServerLimits { streams_per_key_max: 4, ..ServerLimits::default() };
    let waits = ScriptQueue::new((0..2).map(|_| ModelScript::new().call("queue_wait", json!({}))));
    let server = TestServer::start_with(waits, |builder| builder, limits).await;
    let turn = server.say("Hi").await;
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut viewer = server.follow(&turn, 0).await;
        viewer.until("tool_start").await;
        open.push(viewer);
    }
    let path = format!("/v1/turns/{turn}/events");
    let refused = server.client().get(server.url(&path)).send().await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "1");
    let refused: Value = refused.json().await.unwrap();
    assert_eq!(refused["error"]["code"], "too_many_streams");
    assert_eq!(refused["error"]["param"], "streams_per_key_max");
    assert!(refused["error"]["remedy"].as_str().unwrap().contains("/v1/ws"), "{refused}");
    let mut socket = Socket::connect(&server).await;
    socket.send(json!({"op": "subscribe", "turn_id": turn})).await;
    assert_eq!(socket.next().await.unwrap()["error"]["code"], "too_many_streams");

    // Another user has separate viewer slots.
    let eve = server.client_of("eve").post(server.url("/v1/turns")).json(&saying("Hi"));
    let (_, started) = answered(eve).await;
    let events = server.url(started["events_url"].as_str().unwrap());
    let looks = server.client_of("eve").get(events).send().await.unwrap();
    assert_eq!(looks.status(), 200);

    // A seat that is left is free.
    open.pop();
    let again = timeout(PATIENCE, async {
        loop {
            let viewer = server.follow(&turn, 0).await;
            if viewer.status != 429 {
                return viewer;
            }
        }
    });
    open.push(again.await.expect("a seat is free"));
    assert_eq!(server.post(&format!("/v1/turns/{turn}/cancel"), json!({})).await.0, 202);
    for mut viewer in open {
        assert_eq!(viewer.rest().await.last().unwrap().name, "stream_end");
    }
}
