//! Commands to a running turn over HTTP: answers, messages, results of client-side tools.

use crate::support::{Events, PATIENCE, TestServer, accepted_turn, answered, interrupted_end, saying};
use serde_json::{Value, json};
use throughline::engine::TurnLimits;
use throughline::tools::{Effect, NoArguments, ToolContext, ToolQuestion, tool};
use throughline::{ApprovalMode, ThroughlineBuilder};
use throughline_store::{Durability, LogRecord};
use throughline_testkit::{ModelScript, ParsedRequest, ScriptQueue, parsed_request::ParsedMessage};
use tokio::time::{Duration, sleep, timeout};

#[tokio::test]
async fn approval_is_resolved_once_and_seen_by_both_viewers() {
    let asking = ScriptQueue::new([
        ModelScript::new().call("calendar_add", json!({"title": "tea"})),
        ModelScript::new().say("Noted."),
    ]);
    let server = TestServer::start_asking(asking).await;
    let turn = server.say("Hi").await;
    let (mut one, mut two) = (server.follow(&turn, 0).await, server.follow(&turn, 0).await);
    let asked = one.until("approval_request").await;
    let question = asked.last().unwrap().data["approval_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/turns/{turn}/approvals/{question}");
    let deny = json!({"decision": "deny", "reason": "not today"});
    let eve = server.client_of("eve").post(server.url(&path)).json(&deny);
    assert_eq!(answered(eve).await.0, 404, "another user cannot answer");
    assert_eq!(server.post(&path, json!({"decision": "perhaps"})).await.0, 400);
    assert_eq!(server.post(&format!("/v1/turns/{turn}/approvals/none"), deny.clone()).await.0, 404);
    assert_eq!(server.post(&path, deny.clone()).await.0, 200);
    assert_eq!(server.post(&path, deny).await.0, 200, "the same again");
    assert_eq!(server.post(&path, json!({"decision": "approve"})).await.0, 409);
    let (one, two) = (one.rest().await, two.rest().await);
    let resolved =
        two.iter().find(|event| event.name == "approval_resolved").expect("seen in the other window");
    assert_eq!((&resolved.data["decision"], &resolved.data["by"]), (&json!("deny"), &json!("ada")));
    assert_eq!(one, two[two.len() - one.len()..]);
}

#[tokio::test]
async fn queued_messages_are_listed_retracted_and_delivered() {
    let waits =
        ScriptQueue::new([ModelScript::new().call("queue_wait", json!({})), ModelScript::new().say("Both.")]);
    let server = TestServer::start(waits).await;
    let (_, started) = server.post("/v1/turns", saying("Hi")).await;
    let (turn, conversation) =
        (started["turn_id"].as_str().unwrap(), started["conversation_id"].as_str().unwrap());
    let mut viewer = server.follow(turn, 0).await;
    let call = viewer.until("tool_start").await.last().unwrap().data["tool_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/turns/{turn}/messages");
    let (status, first) = server.post(&path, saying("And this")).await;
    assert_eq!(status, 202, "{first}");
    let (_, second) = server.post(&path, saying("Not this")).await;
    let (_, queued) = server.get(&path).await;
    assert_eq!(queued["messages"].as_array().unwrap().len(), 2);
    let second = format!("{path}/{}", second["id"].as_str().unwrap());
    let (status, back) = answered(server.client().delete(server.url(&second))).await;
    assert_eq!((status, &back["input"][0]["text"]), (200, &json!("Not this")));
    assert_eq!(answered(server.client().delete(server.url(&second))).await.0, 409);
    let mut last = saying("And then this");
    last["when"] = json!("after_turn");
    assert_eq!(server.post(&path, last).await.0, 202);
    let cancelled = server.post(&format!("/v1/turns/{turn}/calls/{call}/cancel"), json!({})).await;
    assert_eq!((cancelled.0, cancelled.1["status"].as_str()), (202, Some("cancelling")));
    assert_eq!(server.post(&format!("/v1/turns/{turn}/calls/none/cancel"), json!({})).await.0, 404);
    let rest = viewer.rest().await;
    let said: Vec<_> = rest.iter().filter(|event| event.name == "user_message").collect();
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].data["id"], first["id"]);
    // A message for after the turn begins the next turn of the conversation.
    let next = timeout(PATIENCE, async {
        loop {
            let (_, found) = server.get(&format!("/v1/conversations/{conversation}")).await;
            if let Some(next) = found["tree"].as_array().expect("a tree").get(1) {
                return next.clone();
            }
            sleep(Duration::from_millis(20)).await;
        }
    });
    let next = next.await.expect("a next turn");
    assert_eq!((&next["input"], &next["parent"]["turn_id"]), (&json!("And then this"), &json!(turn)));
    server.follow(next["id"].as_str().unwrap(), 0).await.until("stream_end").await;
    assert_eq!(server.post(&path, saying("Too late")).await.0, 409);
}

#[tokio::test]
async fn client_tool_is_declared_called_and_answered_once() {
    let calls = ScriptQueue::new([
        ModelScript::new().call("client_open", json!({})),
        ModelScript::new().say("Open."),
    ]);
    let server = TestServer::start(calls).await;
    let declare = |name: &str| {
        let tools = json!({"tools": [{"name": name, "description": "Opens it", "effect": "read"}]});
        server.client().put(server.url("/v1/clients/page-1/tools")).json(&tools)
    };
    assert_eq!(answered(declare("rm")).await.0, 400, "not a client's name");
    assert_eq!(answered(declare("client.open")).await.0, 200);
    let turn = server.say("Hi").await;
    let mut viewer = server.follow(&turn, 0).await;
    let offered = viewer.until("tool_start").await.last().unwrap().clone();
    assert_eq!(offered.data["client_id"], "page-1");
    let path = format!("/v1/turns/{turn}/calls/{}/result", offered.data["tool_id"].as_str().unwrap());
    let result = json!({"status": "success", "output": "it is open"});
    let eve = server.client_of("eve").post(server.url(&path)).json(&result);
    assert_eq!(answered(eve).await.0, 404);
    assert_eq!(server.post(&path, result.clone()).await.0, 200);
    assert_eq!(server.post(&path, result.clone()).await.0, 409, "the first one counts");
    let unknown = format!("/v1/turns/{turn}/calls/none/result");
    assert_eq!(server.post(&unknown, result).await.0, 404);
    let rest = viewer.rest().await;
    let ended = rest.iter().find(|event| event.name == "tool_result").unwrap();
    assert_eq!(ended.data["output"], "it is open");
}

#[tokio::test]
async fn remembered_approval_applies_only_to_its_user() {
    let asks = |seen: &ParsedRequest| match seen.messages.last() {
        Some(ParsedMessage::Results(_)) => ModelScript::new().say("Noted."),
        _ => ModelScript::new().call("calendar_add", json!({"title": "tea"})),
    };
    let server = TestServer::start_asking(asks).await;
    let turn = server.say("Hi").await;
    let mut viewer = server.follow(&turn, 0).await;
    let asked = viewer.until("approval_request").await;
    let question = asked.last().unwrap().data["approval_id"].as_str().unwrap();
    let always = json!({"decision": "approve", "remember": "always"});
    assert_eq!(server.post(&format!("/v1/turns/{turn}/approvals/{question}"), always).await.0, 200);
    viewer.until("stream_end").await;

    let again = server.say("Hi").await;
    let events = server.follow(&again, 0).await.until("stream_end").await;
    assert!(events.iter().all(|event| event.name != "approval_request"), "it holds: {events:#?}");
    let eve = server.client_of("eve").post(server.url("/v1/turns")).header("accept", "text/event-stream");
    let mut eve = Events::of(eve.json(&saying("Hi")).send().await.unwrap());
    eve.until("approval_request").await;
}

/// A model that needs two approvals, and then reports the results.
fn asks_twice(seen: &ParsedRequest) -> ModelScript {
    match seen.messages.last() {
        Some(ParsedMessage::Results(_)) => ModelScript::new().say("So be it."),
        _ => ModelScript::new()
            .call("calendar_add", json!({"title": "tea"}))
            .call("calendar_add", json!({"title": "cake"})),
    }
}

#[tokio::test]
async fn approval_responses_have_distinct_statuses() {
    let server = TestServer::start_asking(asks_twice).await;
    let turn = server.say("Hi").await;
    let mut viewer = server.follow(&turn, 0).await;
    let (mut questions, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let asked = viewer.until("approval_request").await;
        questions.push(asked.last().unwrap().data["approval_id"].as_str().unwrap().to_owned());
        calls.push(asked.last().unwrap().data["tool_id"].as_str().unwrap().to_owned());
    }
    let of = |question: &str| format!("/v1/turns/{turn}/approvals/{question}");
    let (one, next) = (of(&questions[0]), of(&format!("{}.a2", calls[0])));
    let approve = || json!({"decision": "approve"});
    for (path, answer, status, word) in [
        (&of("turn_none.1.a1"), approve(), 404, "not_found"),
        (&one, json!({"decision": "perhaps"}), 400, "unknown_value"),
        (&one, json!({"decision": "approve", "arguments": {"title": 7}}), 422, "does_not_fit"),
        // Not open yet: the answer is stored for it.
        (&next, approve(), 202, "queued"),
        (&next, json!({"decision": "deny"}), 409, "answered_differently"),
        (&one, json!({"decision": "approve", "arguments": {"title": "coffee"}}), 200, "resolved"),
        (&one, json!({"decision": "deny"}), 409, "answered_differently"),
        (&one, approve(), 409, "answered_differently"),
        (&one, json!({"decision": "approve", "arguments": {"title": "coffee"}}), 200, "resolved"),
        (&of("all"), approve(), 202, "queued"),
    ] {
        let (got, told) = server.post(path, answer.clone()).await;
        let said = told["status"].as_str().or(told["error"]["code"].as_str()).unwrap_or_default();
        assert_eq!((got, said), (status, word), "{answer} to {path}: {told}");
    }
    let rest = viewer.rest().await;
    let outputs: Vec<_> = rest.iter().filter(|event| event.name == "tool_result").collect();
    let outputs: Vec<_> = outputs.iter().map(|event| event.data["output"].as_str().unwrap()).collect();
    assert_eq!(outputs, ["added coffee", "added cake"], "`all` has answered the second one");
    for (path, answer, status, word) in [
        // As before: the end of the turn changes nothing of what was answered.
        (&one, approve(), 409, "answered_differently"),
        (&one, json!({"decision": "approve", "arguments": {"title": "coffee"}}), 200, "resolved"),
        (&one, json!({"decision": "deny"}), 409, "answered_differently"),
        (&of("all"), approve(), 410, "turn_is_over"),
        (&of("turn_none.1.a1"), approve(), 404, "not_found"),
    ] {
        let (got, told) = server.post(path, answer.clone()).await;
        let said = told["status"].as_str().or(told["error"]["code"].as_str()).unwrap_or_default();
        assert_eq!((got, said), (status, word), "afterwards {answer} to {path}: {told}");
    }
}

/// A form has defaults: an answer that leaves one out equals one that sets it, while the turn runs and after
/// its end.
#[tokio::test]
async fn form_answer_without_defaults_counts_as_the_same_answer() {
    let build = |builder: ThroughlineBuilder| {
        let sign = |_: NoArguments, context: ToolContext| async move {
            let schema = json!({"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "copies": {"type": "integer", "default": 1}}});
            format!("{:?}", context.ask(ToolQuestion::form("Who?", schema)).await)
        };
        builder.tool(tool("desk.sign", "Signs", sign).effect(Effect::Read).agent_callable())
    };
    let signs = ScriptQueue::new([
        ModelScript::new().call("desk_sign", json!({})),
        ModelScript::new().call("queue_wait", json!({})),
    ]);
    let server = TestServer::start_with(signs, build, Default::default()).await;
    let turn = server.say("Hi").await;
    let mut viewer = server.follow(&turn, 0).await;
    let asked = viewer.until("approval_request").await.last().unwrap().data.clone();
    let path = format!("/v1/turns/{turn}/approvals/{}", asked["approval_id"].as_str().unwrap());
    let answers = [
        (json!({"name": "Ada"}), 200),
        (json!({"name": "Ada"}), 200),
        (json!({"name": "Ada", "copies": 1}), 200),
        (json!({"name": "Ada", "copies": 2}), 409),
        (json!({"name": "Eve"}), 409),
    ];
    for ended in [false, true] {
        for (content, status) in &answers {
            let answer = json!({"decision": "approve", "arguments": content});
            assert_eq!(server.post(&path, answer).await.0, *status, "{content}, ended: {ended}");
        }
        if !ended {
            assert_eq!(server.post(&format!("/v1/turns/{turn}/cancel"), json!({})).await.0, 202);
            viewer.rest().await;
        }
    }
}

#[tokio::test]
async fn denial_with_stop_cancels_the_turn() {
    for target in ["one", "all"] {
        let server = TestServer::start_asking(asks_twice).await;
        let turn = server.say("Hi").await;
        let mut viewer = server.follow(&turn, 0).await;
        let mut questions = Vec::new();
        for _ in 0..2 {
            let asked = viewer.until("approval_request").await;
            questions.push(asked.last().unwrap().data["approval_id"].as_str().unwrap().to_owned());
        }
        let of = |question: &str| format!("/v1/turns/{turn}/approvals/{question}");
        let (path, by_all) = if target == "one" { (of(&questions[0]), false) } else { (of("all"), true) };
        let contradiction = json!({"decision": "approve", "stop": true});
        let (status, told) = server.post(&path, contradiction).await;
        assert_eq!((status, &told["error"]["code"]), (400, &json!("contradiction")), "{told}");
        let stop = json!({"decision": "deny", "reason": "never", "stop": true});
        assert_eq!(server.post(&path, stop.clone()).await.0, if by_all { 202 } else { 200 });
        let rest = viewer.rest().await;
        let of_kind = |name: &str| rest.iter().filter(|event| event.name == name).collect::<Vec<_>>();
        let statuses: Vec<_> =
            of_kind("tool_result").iter().map(|event| event.data["status"].clone()).collect();
        assert_eq!(statuses, if by_all { ["denied", "denied"] } else { ["denied", "cancelled"] });
        assert_eq!(of_kind("approval_resolved")[0].data["stop"], true);
        assert_eq!(of_kind("stream_end")[0].data["status"], "cancelled");
        assert_eq!(server.upstream.requests().len(), 1, "the model is not asked again");
        // The same again succeeds; a denial that was to stop nothing is another answer.
        let one = of(&questions[0]);
        assert_eq!(server.post(&one, stop).await.0, 200);
        assert_eq!(server.post(&one, json!({"decision": "deny"})).await.0, 409);
        // The conversation continues, and the model learns what was denied.
        let (_, turns) = server.get("/v1/conversations").await;
        let conversation = turns["items"][0]["id"].as_str().unwrap();
        let mut next = saying("Why?");
        next["conversation_id"] = json!(conversation);
        let (_, started) = server.post("/v1/turns", next).await;
        server
            .follow(started["turn_id"].as_str().unwrap(), 0)
            .await
            .until_any(&["approval_request", "stream_end"])
            .await;
        let sent = server.upstream.requests();
        assert!(sent.last().unwrap().body.to_string().contains("never"), "{:?}", sent.last().unwrap().body);
    }
}

#[tokio::test]
async fn unanswered_approval_is_denied_and_then_410() {
    let limits = TurnLimits { approval_ms_max: Some(80), ..TurnLimits::default() };
    let build = move |builder: ThroughlineBuilder| builder.approval(ApprovalMode::Ask).limits(limits);
    let server = TestServer::start_with(asks_twice, build, Default::default()).await;
    let turn = server.say("Hi").await;
    let events = server.follow(&turn, 0).await.rest().await;
    let asked = events.iter().find(|event| event.name == "approval_request").unwrap();
    let by: Vec<_> = events.iter().filter(|event| event.name == "approval_resolved").collect();
    assert!(by.iter().all(|event| event.data["by"] == "timer" && event.data["decision"] == "deny"), "{by:?}");
    assert!(events.iter().all(|event| event.name != "tool_start"));
    assert_eq!(events.last().unwrap().data["status"], "completed", "the model was told");
    let path = format!("/v1/turns/{turn}/approvals/{}", asked.data["approval_id"].as_str().unwrap());
    let (status, told) = server.post(&path, json!({"decision": "approve"})).await;
    assert_eq!((status, told["error"]["code"].as_str()), (410, Some("question_closed")), "{told}");
}

#[tokio::test]
async fn client_timeout_is_unknown_outcome_and_late_result_is_410() {
    let calls = ScriptQueue::new([
        ModelScript::new().call("client_open", json!({})),
        ModelScript::new().say("No answer."),
    ]);
    let server = TestServer::start(calls).await;
    let tools = json!({"tools": [{"name": "client.open", "effect": "write", "timeout_ms": 80}]});
    let declared = server.client().put(server.url("/v1/clients/page-1/tools")).json(&tools);
    assert_eq!(answered(declared).await.0, 200);
    let turn = server.say("Hi").await;
    let events = server.follow(&turn, 0).await.rest().await;
    let ended = events.iter().find(|event| event.name == "tool_result").unwrap();
    assert_eq!(
        (&ended.data["status"], &ended.data["error"]["code"]),
        (&json!("unknown"), &json!("client_gone"))
    );
    assert_eq!(events.last().unwrap().data["status"], "completed");
    let asked = server.upstream.requests();
    let Some(ParsedMessage::Results(told)) = asked[1].messages.last() else { panic!("{asked:#?}") };
    assert!(told[0].text.contains("may have had effects"), "{told:?}");
    let path = format!("/v1/turns/{turn}/calls/{}/result", ended.data["tool_id"].as_str().unwrap());
    let (status, told) = server.post(&path, json!({"status": "success", "output": "open"})).await;
    assert_eq!((status, told["error"]["code"].as_str()), (410, Some("too_late")), "{told}");
}

/// The server is stopping, or has lost the turn: an answer sent meanwhile is not too late. An end is in the
/// turn's log or, if that cannot be written, in its row.
#[tokio::test]
async fn command_to_an_unfinished_turn_not_running_here_is_503() {
    let server = TestServer::start(ScriptQueue::new([])).await;
    let record = |turn: &str, seq, kind: &'static str, mut event: Value| {
        event["turn_id"] = json!(turn);
        (event["seq"], event["timestamp"], event["type"]) = (json!(seq), json!(1), json!(kind));
        LogRecord::new(seq, kind, Durability::Power, event.to_string())
    };
    let check = async |turn: &str, is_over: bool| {
        let answer = json!({"decision": "approve"});
        let commands = [
            ("approvals/q1", &answer, (410, "question_closed")),
            ("approvals/all", &answer, (410, "turn_is_over")),
            ("calls/c1/cancel", &json!({}), (202, "ended")),
            ("calls/c1/result", &json!({"status": "success"}), (404, "not_found")),
            ("messages", &saying("And this"), (409, "turn_is_over")),
            ("cancel", &json!({}), (202, "")),
        ];
        for (command, body, over) in commands {
            let (status, answer) = server.post(&format!("/v1/turns/{turn}/{command}"), body.clone()).await;
            let word = answer["error"]["code"].as_str().or(answer["status"].as_str()).unwrap_or_default();
            let expected = if is_over { over } else { (503, "turn_not_running") };
            assert_eq!((status, word), expected, "{turn} {command}: {answer}");
        }
    };
    for (turn, is_in_log) in [("turn_1", true), ("turn_2", false)] {
        server.state.catalog.create_turn("ada", accepted_turn(turn)).await.unwrap();
        let epoch = server.state.log.claim(turn).await.unwrap().epoch;
        let question = json!({"step": 1, "block": 1, "tool_id": "c1", "approval_id": "q1", "kind": "tool",
            "question": "Allow it?", "rule": "effect:write", "arguments_text": "{}"});
        let asked = record(turn, 1, "approval_request", question);
        server.state.log.append(turn, epoch, vec![asked].into()).await.unwrap();
        check(turn, false).await;
        if is_in_log {
            let end = record(turn, 2, "stream_end", json!({"status": "cancelled"}));
            server.state.log.append(turn, epoch, vec![end].into()).await.unwrap();
        } else {
            server.state.catalog.end_turn("ada", turn, interrupted_end()).await.unwrap();
        }
        check(turn, true).await;
    }
}
