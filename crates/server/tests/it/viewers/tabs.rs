//! Two tabs on one turn: both see the same, one may answer what the other watches, and of two answers one counts.

use super::{By, View, log};
use crate::support::{TestServer, answered};
use serde_json::{Value, json};
use throughline_testkit::{ModelScript, ParsedRequest, ScriptQueue, parsed_request::ParsedMessage};

/// A model whose write needs approval, and which then reports the result.
fn asks(seen: &ParsedRequest) -> ModelScript {
    match seen.messages.last() {
        Some(ParsedMessage::Results(_)) => ModelScript::new().say("So be it."),
        _ => ModelScript::new().say("I will note it.").call("calendar_add", json!({"title": "tea"})),
    }
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Takes events until one of this kind.
async fn until(view: &mut View, kind: &str) -> Vec<Value> {
    let mut seen = Vec::new();
    loop {
        let event = view.next().await.expect("it comes");
        let found = event["type"] == kind;
        seen.push(event);
        if found {
            return seen;
        }
    }
}

/// A turn with an open question, and two tabs that both show it.
async fn two_tabs(server: &TestServer) -> (String, [View; 2], [Vec<Value>; 2], String) {
    let turn = server.say("Hi").await;
    let mut one = View::connect_after(server, &turn, By::Header, 0).await;
    let mut two = View::connect_after(server, &turn, By::Socket, 0).await;
    let seen = [until(&mut one, "approval_request").await, until(&mut two, "approval_request").await];
    assert_eq!(seen[0], seen[1]);
    let question = seen[0].last().unwrap()["approval_id"].as_str().unwrap();
    let path = format!("/v1/turns/{turn}/approvals/{question}");
    (turn, [one, two], seen, path)
}

#[tokio::test]
async fn approval_in_one_tab_is_seen_in_the_other() {
    let server = TestServer::start_asking(asks).await;
    let (turn, [mut one, mut two], [mut seen_in_one, mut seen_in_two], path) = two_tabs(&server).await;
    // The second tab answers over its WebSocket, and the first one sees what came of it.
    let View::Socket(socket) = &mut two else { panic!("a socket") };
    let question = path.rsplit('/').next().unwrap();
    socket
        .send(json!({"op": "approve", "ref": "mine", "turn_id": turn, "approval_id": question, "decision": "approve"}))
        .await;
    let resolved = until(&mut one, "approval_resolved").await;
    let last = resolved.last().unwrap();
    assert_eq!((&last["decision"], &last["by"]), (&json!("approve"), &json!("ada")));
    seen_in_one.extend(resolved);
    seen_in_one.extend(one.rest().await);
    let rest = two.rest().await;
    assert_eq!(of_kind(&rest, "tool_start").len(), 1);
    // The answer to the answer is of this tab alone.
    assert_eq!(rest.iter().filter(|said| said["ref"] == "mine" && said["op"] == "done").count(), 1);
    seen_in_two.extend(rest.into_iter().filter(|said| said["op"].is_null()));
    assert_eq!(seen_in_one, seen_in_two);
    assert_eq!(seen_in_one, log(&server, &turn).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_decisions_first_wins() {
    let server = TestServer::start_asking(asks).await;
    let (mut approved, mut denied) = (0, 0);
    for round in 0..12 {
        let (turn, [mut one, mut two], _, path) = two_tabs(&server).await;
        let post = |decision: &str| {
            answered(server.client().post(server.url(&path)).json(&json!({"decision": decision})))
        };
        let (yes, no) = match round % 2 {
            0 => tokio::join!(post("approve"), post("deny")),
            _ => {
                let (no, yes) = tokio::join!(post("deny"), post("approve"));
                (yes, no)
            }
        };
        let (rest, other) = (one.rest().await, two.rest().await);
        assert_eq!(rest, other);
        let [resolved] = of_kind(&rest, "approval_resolved")[..] else { panic!("one answer: {rest:#?}") };
        let (winner, loser, starts) = match resolved["decision"].as_str() {
            Some("approve") => (yes, no, 1),
            _ => (no, yes, 0),
        };
        assert_eq!((winner.0, &winner.1["status"]), (200, &json!("resolved")), "{resolved}");
        let code = loser.1["error"]["code"].as_str();
        assert_eq!((loser.0, code), (409, Some("answered_differently")), "{resolved}");
        assert_eq!(of_kind(&rest, "tool_start").len(), starts, "{rest:#?}");
        match starts {
            1 => approved += 1,
            _ => denied += 1,
        }
        // Afterwards every client still gets the same reply.
        let again = json!({"decision": resolved["decision"]});
        assert_eq!(server.post(&path, again).await.0, 200, "{turn}");
    }
    println!("{approved} approved, {denied} denied");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approval_racing_a_cancel_matches_the_log() {
    let server = TestServer::start_asking(asks).await;
    for round in 0..12 {
        let (turn, [mut one, mut two], _, path) = two_tabs(&server).await;
        let approve = answered(server.client().post(server.url(&path)).json(&json!({"decision": "approve"})));
        let stop = answered(server.client().post(server.url(&format!("/v1/turns/{turn}/cancel"))));
        let (answer, stopped) = match round % 2 {
            0 => tokio::join!(approve, stop),
            _ => {
                let (stopped, answer) = tokio::join!(stop, approve);
                (answer, stopped)
            }
        };
        assert_eq!(stopped.0, 202);
        let (rest, other) = (one.rest().await, two.rest().await);
        assert_eq!(rest, other);
        let [resolved] = of_kind(&rest, "approval_resolved")[..] else { panic!("one answer: {rest:#?}") };
        match answer.0 {
            200 => assert_eq!((&resolved["decision"], &resolved["by"]), (&json!("approve"), &json!("ada"))),
            410 => {
                assert_ne!(resolved["by"], "ada", "{resolved}");
                assert_eq!(of_kind(&rest, "tool_start").len(), 0, "what was not approved does not run");
            }
            status => panic!("{status} {}", answer.1),
        }
        assert_eq!(of_kind(&rest, "stream_end").len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_racing_the_end_yields_one_end_for_all_viewers() {
    let model = ScriptQueue::new((0..12).map(|_| ModelScript::new().say("Short.")));
    let server = TestServer::start(model).await;
    for round in 0..12 {
        let turn = server.say("Hi").await;
        let mut one = View::connect_after(&server, &turn, By::Query, 0).await;
        let mut two = View::connect_after(&server, &turn, By::Socket, 0).await;
        // From almost the beginning to almost the end.
        let mut seen = Vec::new();
        for _ in 0..round % 6 {
            seen.extend(one.next().await);
        }
        let cancel = format!("/v1/turns/{turn}/cancel");
        assert_eq!(server.post(&cancel, json!({})).await.0, 202);
        seen.extend(one.rest().await);
        assert_eq!(seen, two.rest().await);
        let [end] = of_kind(&seen, "stream_end")[..] else { panic!("one end: {seen:#?}") };
        assert!(["cancelled", "completed"].contains(&end["status"].as_str().unwrap()), "{end}");
        assert_eq!(server.post(&cancel, json!({})).await.0, 202, "also when it is over");
        let (_, snapshot) = server.get(&format!("/v1/turns/{turn}")).await;
        assert_eq!(snapshot["status"], end["status"]);
    }
}
