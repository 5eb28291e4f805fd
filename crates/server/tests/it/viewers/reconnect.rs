//! A viewer that reconnects sees the same events as one that never left.

use super::{By, View, WAYS, log, seq};
use crate::support::{TestServer, saying};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_server::merge_deltas;
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{ModelScript, ParsedRequest, ReplyPace, ScriptQueue};

/// A reply of text, a call, and text again, slow enough for viewers to reconnect while it runs.
fn talks(seen: &ParsedRequest) -> ModelScript {
    let pace = ReplyPace { tokens_per_second: Some(300.0), ..ReplyPace::default() };
    let script = match seen.messages.last() {
        Some(ParsedMessage::Results(_)) => {
            ModelScript::new().say("It is sunny, and it will stay so all day.")
        }
        _ => ModelScript::new().think("Hm.").say("Let me look it up.").call("weather_today", json!({})),
    };
    script.with_pace(pace)
}

/// Follows a turn, losing the connection after every `k` events; what was seen altogether, and how often it came back.
async fn seen_in_glimpses(server: &TestServer, turn: &str, by: By, k: usize) -> (Vec<Value>, usize) {
    let (mut seen, mut connections): (Vec<Value>, _) = (Vec::new(), 0);
    if k == 0 {
        // The connection is closed before any event.
        for _ in 0..3 {
            drop(View::connect_after(server, turn, by, 0).await);
            connections += 1;
        }
    }
    let k = if k == 0 { usize::MAX } else { k };
    while seen.last().is_none_or(|event| event["type"] != "stream_end") {
        let after = seen.last().map_or(0, seq);
        let mut view = View::connect_after(server, turn, by, after).await;
        connections += 1;
        for _ in 0..k {
            let Some(event) = view.next().await else { break };
            seen.push(event);
        }
    }
    let after = seen.last().map_or(0, seq);
    assert_eq!(
        View::connect_after(server, turn, by, after).await.next().await,
        None,
        "there is nothing more"
    );
    (seen, connections)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewer_resumes_exactly_after_any_number_of_events() {
    let server = TestServer::start(talks).await;
    let turn = server.say("Hi").await;
    let length = log(&server, &turn).await.len();
    assert!(length > 20, "{length} events");
    let all = WAYS.map(|by| {
        let server = &server;
        async move {
            for k in 0..=length {
                let turn = server.say("Hi").await;
                let (seen, connections) = seen_in_glimpses(server, &turn, by, k).await;
                let whole = log(server, &turn).await;
                assert_eq!(seen, whole, "by {by:?}, lost after every {k}");
                // How many events a turn has is also up to how fast the machine is.
                assert_eq!(
                    connections > 1,
                    k < whole.len(),
                    "by {by:?}, {connections} connections, lost after every {k}"
                );
            }
        }
    });
    futures_util::future::join_all(all).await;
}

#[tokio::test]
async fn cursor_in_merged_deltas_or_ahead_of_the_log_resyncs() {
    let words = ["Every ", "word ", "is ", "one ", "piece. "];
    let say = |script: ModelScript| words.iter().fold(script, |script, word| script.say(*word));
    let queue =
        ScriptQueue::new([say(ModelScript::new()).call("weather_today", json!({})), say(ModelScript::new())]);
    let server = TestServer::start(queue).await;
    let turn = server.say("Hi").await;
    let before = log(&server, &turn).await;
    // As the server does it a while after the end.
    server.state.log.compact(&turn, Arc::new(merge_deltas)).await.unwrap();
    let merged = log(&server, &turn).await;
    let events: Vec<throughline::Event> =
        before.iter().map(|event| serde_json::from_value(event.clone()).unwrap()).collect();
    let whole = serde_json::to_value(throughline::AssistantMessage::from_events(&events)).unwrap();
    let last = seq(before.last().unwrap());
    let (mut plainly, mut anew) = (0, 0);
    for by in WAYS {
        for after in (0..=last + 1).chain([last + 1_000, u64::MAX]) {
            let seen = View::connect_after(&server, &turn, by, after).await.rest().await;
            let at = merged.iter().position(|event| seq(event) == after);
            if after == 0 || at.is_some() {
                assert_eq!(seen, merged[at.map_or(0, |at| at + 1)..], "by {by:?} behind {after}");
                plainly += 1;
                continue;
            }
            assert_eq!(seen.len(), 1, "by {by:?} behind {after}: {seen:#?}");
            assert_eq!((&seen[0]["type"], &seen[0]["last_seq"]), (&json!("resync"), &json!(last)));
            assert_eq!(seen[0]["message"], whole, "by {by:?} behind {after}");
            anew += 1;
        }
    }
    assert!(plainly > 10 && anew > 10, "{plainly} places of the log and {anew} that it does not have");
}

#[tokio::test]
async fn cursor_ahead_of_a_running_turn_resyncs_and_continues() {
    for by in WAYS {
        let model = ScriptQueue::new([
            ModelScript::new().say("I will.").call("calendar_add", json!({"title": "tea"})),
            ModelScript::new().say("Noted."),
        ]);
        let server = TestServer::start_asking(model).await;
        let turn = server.say("Hi").await;
        let asked = server.follow(&turn, 0).await.until("approval_request").await;
        let (last, question) = (asked.last().unwrap().id, &asked.last().unwrap().data["approval_id"]);
        // As after a power cut: it has seen what the log has lost.
        let mut view = View::connect_after(&server, &turn, by, last + 30).await;
        let anew = view.next().await.unwrap();
        assert_eq!((&anew["type"], &anew["last_seq"]), (&json!("resync"), &json!(last)), "by {by:?}");
        let (_, snapshot) = server.get(&format!("/v1/turns/{turn}")).await;
        assert_eq!(anew["message"], snapshot["message"]);
        let path = format!("/v1/turns/{turn}/approvals/{}", question.as_str().unwrap());
        assert_eq!(server.post(&path, json!({"decision": "approve"})).await.0, 200);
        let rest = view.rest().await;
        assert_eq!(rest, log(&server, &turn).await[last as usize..], "by {by:?}");
    }
}

#[tokio::test]
async fn idle_stream_sends_heartbeats() {
    let limits = throughline::config::ServerLimits { heartbeat_ms: 40, ..Default::default() };
    let waits = ScriptQueue::new([ModelScript::new().call("queue_wait", json!({}))]);
    let server = TestServer::start_with(waits, |builder| builder, limits).await;
    let turn = server.turn(saying("Hi")).await;
    let mut viewer = server.follow(&turn, 0).await;
    // Progress of a running tool follows a moment after its start.
    let mut last = viewer.until_any(&["tool_start"]).await.last().unwrap().id;
    let signs = viewer.alive(3).await;
    assert!(signs.iter().all(|sign| sign.starts_with(": hb 1")), "{signs:?}");
    assert_eq!(server.post(&format!("/v1/turns/{turn}/cancel"), json!({})).await.0, 202);
    for event in viewer.rest().await {
        assert_eq!(event.id, last + 1, "a sign of life is no event");
        last = event.id;
    }
}
