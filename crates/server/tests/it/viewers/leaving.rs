//! Clients that go away: the turn is not theirs.

use super::log;
use crate::support::{Events, PATIENCE, TestServer, saying};
use serde_json::json;
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{ModelScript, ParsedRequest, ReplyPace};
use tokio::time::{Duration, sleep, timeout};

fn talks(seen: &ParsedRequest) -> ModelScript {
    let pace = ReplyPace { tokens_per_second: Some(500.0), ..ReplyPace::default() };
    let script = match seen.messages.last() {
        Some(ParsedMessage::Results(_)) => ModelScript::new().say("It is sunny."),
        _ => ModelScript::new().say("Let me look.").call("weather_today", json!({})),
    };
    script.with_pace(pace)
}

/// End of a turn for those who did not see it.
async fn ended(server: &TestServer, turn: &str) -> String {
    let ends = async {
        loop {
            let (_, snapshot) = server.get(&format!("/v1/turns/{turn}")).await;
            if snapshot["status"] != "running" {
                return snapshot["status"].as_str().unwrap().to_owned();
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, ends).await.expect("it ends")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turn_completes_when_its_client_leaves_at_any_event() {
    let server = TestServer::start(talks).await;
    let turn = server.say("Hi").await;
    let length = log(&server, &turn).await.len();
    for leaves_after in 0..length {
        // The answer to the request that starts it is the stream that is left.
        let request = server.client().post(server.url("/v1/turns")).header("accept", "text/event-stream");
        let response = request.json(&saying("Hi")).send().await.unwrap();
        let turn = response.headers()["location"].to_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let mut stream = Events::of(response);
        for _ in 0..leaves_after {
            if stream.next().await.is_none() {
                break;
            }
        }
        drop(stream);
        assert_eq!(ended(&server, &turn).await, "completed", "left after {leaves_after}");
        let whole = log(&server, &turn).await;
        let numbers: Vec<_> = whole.iter().map(super::seq).collect();
        assert_eq!(numbers, (1..=whole.len() as u64).collect::<Vec<_>>());
    }
}
