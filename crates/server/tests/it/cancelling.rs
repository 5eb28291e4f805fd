//! A turn is cancelled over HTTP in every phase, and its conversation continues.

use crate::support::{TestServer, saying};
use serde_json::{Value, json};
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{CallMove, ExchangeEnd, ModelScript, ParsedRequest, ScriptMove};

/// A point in a turn.
struct Phase {
    what: &'static str,
    /// The model's behaviour in the turn that is stopped, first and after the results.
    replies: [ModelScript; 2],
    /// The event that marks the point, and its number of occurrences until then.
    reached: (&'static str, usize),
    /// The request that the model is in the middle of, by its number.
    asked: Option<u64>,
    /// End of the calls.
    calls: &'static [&'static str],
}

fn phases() -> Vec<Phase> {
    let silent = || ModelScript { first_byte_ms: 60_000, ..ModelScript::new() };
    let write = || ModelScript::new().call("calendar_add", json!({"title": "tea"}));
    let half = CallMove::new("calendar_add", json!("{\"title\": \"te"));
    let phase = |what, first: ModelScript, reached, asked, calls| {
        let replies = [first, silent()];
        Phase { what, replies, reached: (reached, 1), asked, calls }
    };
    vec![
        phase("before the first byte", silent(), "step_start", Some(1), &[]),
        phase("in text", ModelScript::new().say("So").then(ScriptMove::Stall), "content_delta", Some(1), &[]),
        phase(
            "in arguments",
            ModelScript::new().then(ScriptMove::HalfCall(half)).then(ScriptMove::Stall),
            "tool_input_delta",
            Some(1),
            &["not_started"],
        ),
        phase(
            "while a tool runs",
            ModelScript::new().call("queue_wait", json!({})),
            "tool_start",
            None,
            &["cancelled"],
        ),
        phase("while a person is asked", write(), "approval_request", None, &["cancelled"]),
        phase("while it waits to try again", ModelScript::rate_limited(25), "waiting", None, &[]),
        Phase {
            reached: ("step_start", 2),
            ..phase(
                "between two steps",
                ModelScript::new().call("weather_today", json!({})),
                "",
                Some(2),
                &["success"],
            )
        },
    ]
}

#[tokio::test]
async fn cancel_ends_a_turn_in_every_phase() {
    for Phase { what, replies, reached, asked, calls } in phases() {
        let model = move |seen: &ParsedRequest| match seen.messages.last() {
            Some(ParsedMessage::Results(_)) => replies[1].clone(),
            Some(ParsedMessage::User { text, .. }) if text.contains("again") => {
                ModelScript::new().say("Still here.")
            }
            _ => replies[0].clone(),
        };
        let server = TestServer::start_asking(model).await;
        let (_, started) = server.post("/v1/turns", saying("Hi")).await;
        let turn = started["turn_id"].as_str().unwrap();
        let mut viewer = server.follow(turn, 0).await;
        let mut events = Vec::new();
        for _ in 0..reached.1 {
            events.extend(viewer.until(reached.0).await);
        }
        if let Some(number) = asked {
            server.upstream.wait_for_request(number).await;
        }
        let cancel = format!("/v1/turns/{turn}/cancel");
        assert_eq!(server.post(&cancel, json!({})).await.0, 202, "{what}");
        events.extend(viewer.rest().await);
        let end = events.last().unwrap();
        assert_eq!((end.name.as_str(), &end.data["status"]), ("stream_end", &json!("cancelled")), "{what}");
        assert_eq!(events.iter().filter(|event| event.name == "stream_end").count(), 1, "{what}");
        let ended: Vec<&Value> = events
            .iter()
            .filter(|event| event.name == "tool_result")
            .map(|event| &event.data["status"])
            .collect();
        // A call whose start has not left yet when the turn is stopped never runs.
        let is_in_time = ended == ["not_started"] && calls == ["cancelled"] && what == "while a tool runs";
        assert!(ended == calls || is_in_time, "{what}: every call has its outcome: {ended:?}");
        assert!(
            events
                .iter()
                .all(|event| event.data["tool_name"] != "calendar.add" || event.name != "tool_start")
        );
        if let Some(number) = asked {
            assert_eq!(
                server.upstream.wait_for_end(number).await,
                ExchangeEnd::ClientDisconnected,
                "{what}: nothing more is paid for"
            );
        }
        assert_eq!(server.post(&cancel, json!({})).await.0, 202, "{what}: a second time");
        let (_, snapshot) = server.get(&format!("/v1/turns/{turn}")).await;
        assert_eq!(snapshot["status"], "cancelled", "{what}");

        let mut more = saying("And again");
        more["conversation_id"] = started["conversation_id"].clone();
        let next = server.turn(more).await;
        let events = server.follow(&next, 0).await.rest().await;
        assert_eq!(events.last().unwrap().data["status"], "completed", "{what}: the conversation goes on");
        assert_eq!(server.upstream.violations(), [], "{what}");
    }
}
