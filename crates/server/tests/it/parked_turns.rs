//! Turns that only wait for a person or a client are parked: they block no other turns, and their number is
//! limited.

use crate::multi_user_server::MultiUserServer;
use crate::support::check_stream::{Answer, check_stream};
use crate::support::{self, Socket, TestServer, eventually};
use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use throughline::config::{ServerLimits, ServerSettings};
use throughline::tools::{Effect, NoArguments, ToolContext, ToolQuestion, tool};
use throughline::{ApprovalMode, ThroughlineBuilder};
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{ModelScript, ParsedRequest, ScriptMove};

/// A model that calls the client's clock if it is asked for the time, reports the result, and stalls on
/// request.
fn clockmaker(seen: &ParsedRequest) -> ModelScript {
    match seen.messages.last() {
        Some(ParsedMessage::User { text, .. }) if text == "Time?" => {
            ModelScript::new().call("local_time", json!({"zone": "Oslo"}))
        }
        Some(ParsedMessage::User { text, .. }) if text == "Wait" => {
            ModelScript::new().then(ScriptMove::Stall)
        }
        Some(ParsedMessage::Results(results)) if results[0].text == "wait" => {
            ModelScript::new().then(ScriptMove::Stall)
        }
        Some(ParsedMessage::Results(results)) => {
            ModelScript::new().say(format!("It is {}.", results[0].text))
        }
        _ => ModelScript::new().say("Hello."),
    }
}

async fn serve(limits: ServerLimits) -> TestServer {
    TestServer::start_with(clockmaker, |builder| builder, limits).await
}

fn chat(messages: Value) -> Value {
    let clock =
        json!([{"type": "function", "function": {"name": "local_time", "parameters": {"type": "object"}}}]);
    json!({"model": "default", "stream": true, "tools": clock, "messages": messages})
}

fn user(text: &str) -> Value {
    json!([{"role": "user", "content": text}])
}

async fn post(server: &TestServer, body: Value) -> reqwest::Response {
    server.client().post(server.url("/v1/chat/completions")).json(&body).send().await.unwrap()
}

/// One whole answer, and its turn.
async fn answer(server: &TestServer, messages: Value) -> (String, Answer) {
    let response = post(server, chat(messages)).await;
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = response.bytes().await.unwrap();
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&bytes));
    (headers["throughline-turn-id"].to_str().unwrap().to_owned(), check_stream(&bytes))
}

/// An answer that ended with a call of the client's, whose result never comes.
async fn unanswered(server: &TestServer) -> (String, Answer) {
    let (turn, answer) = answer(server, user("Time?")).await;
    assert_eq!(answer.finish.as_deref(), Some("tool_calls"));
    (turn, answer)
}

/// The client's next request when it has run its tool.
fn with_result(answer: &Answer, result: &str) -> Value {
    let (id, name, arguments) = &answer.calls[0];
    json!([
        {"role": "user", "content": "Time?"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}}]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ])
}

/// The turns that have not ended: their ids, and what they wait for.
async fn open_turns(server: &TestServer) -> Vec<(String, Option<String>)> {
    let (status, list) = server.get("/v1/turns").await;
    assert_eq!(status, 200, "{list}");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let turns = list["items"].as_array().unwrap().iter();
    turns.map(|turn| (text(&turn["turn_id"]).unwrap(), text(&turn["waits_for"]))).collect()
}

/// End of a turn, and the text of its notice.
async fn end_of(server: &TestServer, turn: &str) -> (String, String) {
    let events = server.follow(turn, 0).await.rest().await;
    let notice = events.iter().find(|event| event.data["kind"] == "notice");
    let notice = notice.map_or(String::new(), |notice| notice.data["text"].as_str().unwrap().to_owned());
    (events.last().unwrap().data["status"].as_str().unwrap().to_owned(), notice)
}

#[tokio::test]
async fn parked_turns_do_not_count_as_running() {
    let server = serve(ServerLimits::default()).await;
    let mut parked = Vec::new();
    for _ in 0..12 {
        parked.push(unanswered(&server).await);
    }
    let (answered, hello) = answer(&server, user("Hi")).await;
    assert_eq!(hello.content, "Hello.");

    // They can be seen, and stopped. The row of a turn ends after its answer has.
    eventually("the answered turn has ended", async || {
        open_turns(&server).await.iter().all(|(turn, _)| *turn != answered)
    })
    .await;
    let open = open_turns(&server).await;
    assert_eq!(open.len(), 12, "{open:?}");
    assert!(open.iter().all(|(_, waits)| waits.as_deref() == Some("tool_results")), "{open:?}");
    assert!(parked.iter().all(|(turn, _)| open.iter().any(|(id, _)| id == turn)));
    let (first, _) = &parked[0];
    assert_eq!(server.post(&format!("/v1/turns/{first}/cancel"), json!({})).await.0, 202);
    assert_eq!(end_of(&server, first).await.0, "cancelled");

    // Each of the others continues from its state.
    let (turn, asked) = &parked[11];
    let (went_on, answer) = answer(&server, with_result(asked, "12:30")).await;
    assert_eq!((&went_on, answer.content.as_str()), (turn, "It is 12:30."));
}

#[tokio::test]
async fn oldest_parked_turn_over_the_limit_is_cancelled() {
    let limits = ServerLimits { parked_turns_per_key_max: 2, ..ServerLimits::default() };
    let server = serve(limits).await;
    let (oldest, asked) = unanswered(&server).await;
    let (second, _) = unanswered(&server).await;
    assert_eq!(open_turns(&server).await.len(), 2, "as many as may wait");
    let (third, _) = unanswered(&server).await;
    let (status, notice) = end_of(&server, &oldest).await;
    assert_eq!(status, "cancelled");
    assert!(notice.contains("parked_turns_per_key_max"), "{notice}");
    let (_, call) = server.get(&format!("/v1/turns/{oldest}")).await;
    assert!(!call.to_string().contains("by the user"), "{call}");

    let (anew, answer) = answer(&server, with_result(&asked, "12:30")).await;
    assert_eq!(answer.content, "It is 12:30.");
    assert!(![oldest, second.clone(), third.clone()].contains(&anew));
    let mut open: Vec<_> = open_turns(&server).await.into_iter().map(|(turn, _)| turn).collect();
    open.retain(|turn| *turn != anew);
    assert_eq!(open, [second, third]);
}

#[tokio::test]
async fn parked_text_bytes_are_limited_per_key() {
    let limits = ServerLimits { parked_text_bytes_per_key_max: 50_000, ..ServerLimits::default() };
    let server = serve(limits).await;
    let long = async |bytes: usize| {
        let talk =
            json!([{"role": "system", "content": "x".repeat(bytes)}, {"role": "user", "content": "Time?"}]);
        answer(&server, talk).await
    };
    let (one, _) = long(60_000).await;
    assert_eq!(open_turns(&server).await.len(), 1, "what a client has sent it may also answer");
    let (two, _) = long(1_000).await;
    let (status, notice) = end_of(&server, &one).await;
    assert_eq!(status, "cancelled");
    assert!(notice.contains("parked_text_bytes_per_key_max"), "{notice}");
    // One of these replaces several.
    let (three, asked) = long(1_000).await;
    let (four, _) = long(49_000).await;
    for ended in [&two, &three] {
        assert_eq!(end_of(&server, ended).await.0, "cancelled");
    }
    let (anew, answer) = answer(&server, with_result(&asked, "12:30")).await;
    assert_eq!(answer.content, "It is 12:30.");
    let open: Vec<_> = open_turns(&server).await.into_iter().map(|(turn, _)| turn).collect();
    assert!(open.contains(&four) && !open.contains(&three) && anew != three, "{open:?}");
}

#[tokio::test]
async fn continued_turn_counts_as_running_again() {
    let limits = ServerLimits { turns_per_key_max: 1, ..ServerLimits::default() };
    let server = serve(limits).await;
    let (_, one) = unanswered(&server).await;
    let (two, other) = unanswered(&server).await;
    let running = post(&server, chat(with_result(&one, "wait"))).await;
    assert_eq!(running.status(), 200);
    for refused in [chat(user("Hi")), chat(with_result(&other, "12:30"))] {
        let response = post(&server, refused).await;
        assert_eq!(response.status(), 429);
        assert_eq!(response.json::<Value>().await.unwrap()["error"]["code"], "too_many_turns");
    }
    // The refused one still waits, and continues when there is room.
    let turn = running.headers()["throughline-turn-id"].to_str().unwrap().to_owned();
    drop(running);
    assert_eq!(end_of(&server, &turn).await.0, "cancelled");
    eventually("one turn is left", async || open_turns(&server).await.len() <= 1).await;
    let (went_on, answer) = answer(&server, with_result(&other, "12:30")).await;
    assert_eq!((went_on, answer.content.as_str()), (two, "It is 12:30."));
}

#[tokio::test]
async fn turn_answered_over_the_api_counts_as_running_again() {
    let limits = ServerLimits { turns_per_key_max: 1, ..ServerLimits::default() };
    let server = serve(limits).await;
    let (turn, _) = unanswered(&server).await;
    let events = server.follow(&turn, 0).await.until("tool_start").await;
    let call = events.last().unwrap().data["tool_id"].as_str().unwrap().to_owned();
    let result = json!({"status": "success", "output": "wait"});
    let (status, said) = server.post(&format!("/v1/turns/{turn}/calls/{call}/result"), result).await;
    assert_eq!(status, 200, "{said}");
    eventually("it runs again", async || open_turns(&server).await == [(turn.clone(), None)]).await;
    assert_eq!(post(&server, chat(user("Hi"))).await.status(), 429);
}

#[tokio::test]
async fn concurrent_starts_do_not_exceed_the_running_limit() {
    let server = serve(ServerLimits::default()).await;
    let turns_max = ServerLimits::default().turns_per_key_max as usize;
    let starts = join_all((0..12).map(|_| server.post("/v1/turns", support::saying("Wait")))).await;
    let count = |status: u16| starts.iter().filter(|(given, _)| *given == status).count();
    assert_eq!((count(201), count(429)), (turns_max, 12 - turns_max), "{starts:?}");
    // A slot that was reserved and not used is released.
    let (_, open) = server.get("/v1/turns").await;
    let turn = open["items"][0]["turn_id"].as_str().unwrap().to_owned();
    server.post(&format!("/v1/turns/{turn}/cancel"), json!({})).await;
    eventually("one has ended", async || open_turns(&server).await.len() < turns_max).await;
    let nobody = json!({"input": [{"type": "text", "text": "Hi"}], "agent": "nobody"});
    for _ in 0..3 {
        assert_eq!(server.post("/v1/turns", nobody.clone()).await.0, 400);
    }
    assert_eq!(server.post("/v1/turns", support::saying("Wait")).await.0, 201);
}

#[tokio::test]
async fn drain_does_not_wait_for_parked_turns() {
    let server = serve(ServerLimits::default()).await;
    let (turn, asked) = unanswered(&server).await;
    // Longer than a test may take.
    let drained = tokio::time::timeout(support::PATIENCE, server.drain(support::PATIENCE * 60)).await;
    assert_eq!(drained.expect("it stops").handed_over, 1);
    let server = server.restart().await;
    let (went_on, answer) = answer(&server, with_result(&asked, "12:30")).await;
    assert_eq!((went_on, answer.content.as_str()), (turn, "It is 12:30."));
}

#[tokio::test]
async fn parked_turns_stay_parked_after_a_restart() {
    let limits =
        ServerLimits { turns_per_key_max: 2, parked_turns_per_key_max: 3, ..ServerLimits::default() };
    let server = serve(limits).await;
    let mut parked = Vec::new();
    for _ in 0..3 {
        parked.push(unanswered(&server).await);
    }
    let server = server.restart().await;
    let open = open_turns(&server).await;
    assert_eq!(open.iter().filter(|(_, waits)| waits.is_some()).count(), 3, "{open:?}");
    assert_eq!(answer(&server, user("Hi")).await.1.content, "Hello.");
    let (turn, asked) = &parked[2];
    let (went_on, answer) = answer(&server, with_result(asked, "12:30")).await;
    assert_eq!((&went_on, answer.content.as_str()), (turn, "It is 12:30."));
    // The limit holds over it: of three and two more, two are ended.
    for _ in 0..3 {
        unanswered(&server).await;
    }
    eventually("three are left", async || open_turns(&server).await.len() <= 3).await;
}

// --- waits of every route ---

/// As [`clockmaker`], and with notes that need approval, and a tool with an elicitation.
fn asker(seen: &ParsedRequest) -> ModelScript {
    match seen.messages.last() {
        Some(ParsedMessage::User { text, .. }) if text == "Note" => {
            ModelScript::new().say("I will note it.").call("note_write", json!({"text": "milk"}))
        }
        Some(ParsedMessage::User { text, .. }) if text == "Form" => {
            ModelScript::new().call("form_fill", json!({}))
        }
        Some(ParsedMessage::User { text, .. }) if text == "Press" => {
            ModelScript::new().call("client_press", json!({}))
        }
        _ => clockmaker(seen),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

async fn serve_asking(limits: ServerLimits) -> TestServer {
    let build = |builder: ThroughlineBuilder| {
        let note = tool("note.write", "Writes a note", |note: Note, _| async move { note.text });
        let form = tool("form.fill", "Asks", |_: NoArguments, context: ToolContext| async move {
            let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            format!("{:?}", context.ask(ToolQuestion::form("Who?", schema)).await)
        });
        builder
            .tool(note.effect(Effect::Write).agent_callable())
            .tool(form.effect(Effect::Read).agent_callable())
            .approval(ApprovalMode::Ask)
    };
    let server = TestServer::start_with(asker, build, limits).await;
    let manual = json!({"name": "manual", "settings": {"model": "test/m", "tool_call": {"enabled": true, "mode": "manual"}}});
    assert_eq!(server.post("/v1/agents", manual).await.0, 201);
    server
}

fn turn_with(text: &str, more: Value) -> Value {
    let mut body = support::saying(text);
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// A standalone turn with a question about a note; its id and its question.
async fn asking_turn(server: &TestServer, more: Value) -> (String, Value) {
    let (status, started) = server.post("/v1/turns", turn_with("Note", more)).await;
    assert_eq!(status, 201, "{started}");
    let turn = started["turn_id"].as_str().unwrap().to_owned();
    let asked = server.follow(&turn, 0).await.until("approval_request").await.last().unwrap().data.clone();
    (turn, asked)
}

/// Waits until all turns that have not ended wait.
async fn all_wait(server: &TestServer, count: usize) {
    eventually("all turns wait", async || {
        let open = open_turns(server).await;
        open.len() == count && open.iter().all(|(_, waits)| waits.is_some())
    })
    .await;
}

#[tokio::test]
async fn waiting_turns_of_every_api_do_not_count_as_running() {
    let limits = ServerLimits::default();
    assert_eq!((limits.turns_per_key_max, limits.parked_turns_per_key_max), (8, 64));
    let server = serve_asking(limits).await;
    let mut socket = Socket::connect(&server).await;
    let mut streams = Vec::new();
    for round in 1..=8 {
        // An answer that ended with calls of the client's, one that ended with a question, and one that is open.
        unanswered(&server).await;
        let body = |more: Value| {
            let mut body = json!({"model": "default", "stream": true, "messages": user("Note")});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            body
        };
        let asked = post(&server, body(json!({"model": "default:text"}))).await.text().await.unwrap();
        assert!(asked.contains("tlq_"), "{asked}");
        streams.push(post(&server, body(json!({"throughline": {"approval": "ask"}}))).await);
        // Standalone turns, in a conversation, over a socket, in manual mode; and one with an elicitation.
        asking_turn(&server, json!({"conversation_id": null})).await;
        asking_turn(&server, json!({})).await;
        socket.send(json!({"op": "start", "input": [{"type": "text", "text": "Note"}]})).await;
        socket.until(|message| message.to_string().contains("approval_request")).await;
        asking_turn(&server, json!({"agent": "manual"})).await;
        assert_eq!(server.post("/v1/turns", support::saying("Form")).await.0, 201);
        all_wait(&server, 8 * round).await;
    }
    // With all of them open, an active client is not affected.
    for _ in 0..3 {
        assert_eq!(answer(&server, user("Hi")).await.1.content, "Hello.");
        assert_eq!(server.post("/v1/turns", support::saying("Hi")).await.0, 201);
    }
    let open = open_turns(&server).await;
    let waits = |kind: &str| open.iter().filter(|(_, waits)| waits.as_deref() == Some(kind)).count();
    assert_eq!((waits("tool_results"), waits("approval")), (8, 56), "{open:?}");
}

#[tokio::test]
async fn approved_parked_turn_completes_and_the_other_is_cancelled() {
    let limits = ServerLimits { turns_per_key_max: 1, ..ServerLimits::default() };
    let server = serve_asking(limits).await;
    let (turn, asked) = asking_turn(&server, json!({})).await;
    all_wait(&server, 1).await;
    let (other, _) = asking_turn(&server, json!({})).await;
    all_wait(&server, 2).await;
    // Also after a restart.
    let server = server.restart().await;
    all_wait(&server, 2).await;
    let path = format!("/v1/turns/{turn}/approvals/{}", asked["approval_id"].as_str().unwrap());
    assert_eq!(server.post(&path, json!({"decision": "approve"})).await.0, 200);
    assert_eq!(server.follow(&turn, 0).await.rest().await.last().unwrap().data["status"], "completed");
    eventually("one is left", async || open_turns(&server).await.len() == 1).await;
    // A cancelled turn is removed immediately.
    assert_eq!(server.post(&format!("/v1/turns/{other}/cancel"), json!({})).await.0, 202);
    eventually("none is left", async || open_turns(&server).await.is_empty()).await;
}

#[tokio::test]
async fn approved_turn_waiting_for_a_client_is_parked_again() {
    let server = serve_asking(ServerLimits { turns_per_key_max: 1, ..ServerLimits::default() }).await;
    let tools = json!({"tools": [{"name": "client.press", "effect": "write"}]});
    let declared =
        server.client().put(server.url("/v1/clients/page-1/tools")).json(&tools).send().await.unwrap();
    assert_eq!(declared.status(), 200);
    let text = |messages: Value| json!({"model": "default:text", "stream": true, "messages": messages});
    let asked = check_stream(&post(&server, text(user("Press"))).await.bytes().await.unwrap()).content;
    assert!(asked.contains("tlq_"), "{asked}");
    let yes = json!([{"role": "user", "content": "Press"}, {"role": "assistant", "content": asked},
        {"role": "user", "content": "yes"}]);
    // Its answer is open, and nothing of it runs here.
    let went_on = post(&server, text(yes)).await;
    let turn = went_on.headers()["throughline-turn-id"].to_str().unwrap().to_owned();
    let waits = [(turn.clone(), Some("tool_results".to_owned()))];
    eventually("it waits for the page", async || open_turns(&server).await == waits).await;
    assert_eq!(answer(&server, user("Hi")).await.1.content, "Hello.");
    let events = server.follow(&turn, 0).await.until("tool_start").await;
    let call = events.last().unwrap().data["tool_id"].as_str().unwrap().to_owned();
    let result = json!({"status": "success", "output": "12:30"});
    assert_eq!(server.post(&format!("/v1/turns/{turn}/calls/{call}/result"), result).await.0, 200);
    assert!(check_stream(&went_on.bytes().await.unwrap()).content.ends_with("It is 12:30."));
}

#[tokio::test]
async fn limit_cancels_parked_client_calls_before_approvals() {
    let limits = ServerLimits { parked_turns_per_key_max: 2, ..ServerLimits::default() };
    let server = serve_asking(limits).await;
    let (first, _) = asking_turn(&server, json!({})).await;
    all_wait(&server, 1).await;
    let (call, _) = unanswered(&server).await;
    let (second, _) = asking_turn(&server, json!({})).await;
    // Older than the call, and still there.
    assert_eq!(end_of(&server, &call).await.0, "cancelled");
    all_wait(&server, 2).await;
    let open: Vec<_> = open_turns(&server).await.into_iter().map(|(turn, _)| turn).collect();
    assert_eq!(open, [first, second]);
}

#[tokio::test]
async fn newest_turn_yields_if_approvals_fill_the_limit() {
    let by_count = ServerLimits { parked_turns_per_key_max: 2, ..ServerLimits::default() };
    let by_text = ServerLimits { parked_text_bytes_per_key_max: 50_000, ..ServerLimits::default() };
    for (limits, limit, bytes) in
        [(by_count, "parked_turns_per_key_max", 0), (by_text, "parked_text_bytes_per_key_max", 20_000)]
    {
        let server = serve_asking(limits).await;
        let long = json!({"instructions": "x".repeat(bytes)});
        let (first, _) = asking_turn(&server, long.clone()).await;
        all_wait(&server, 1).await;
        let (second, _) = asking_turn(&server, long.clone()).await;
        all_wait(&server, 2).await;
        // What was read from the log counts as what was begun here.
        let server = server.restart().await;
        all_wait(&server, 2).await;

        let (third, _) = asking_turn(&server, long).await;
        let events = server.follow(&third, 0).await.rest().await;
        let denied = events.iter().find(|event| event.name == "tool_result").unwrap();
        assert_eq!(denied.data["status"], "denied");
        assert!(denied.data["error"]["message"].as_str().unwrap().contains(limit), "{denied:?}");
        all_wait(&server, 2).await;

        let talk =
            json!([{"role": "system", "content": "x".repeat(bytes)}, {"role": "user", "content": "Time?"}]);
        let (call, asked) = answer(&server, talk).await;
        let (status, notice) = end_of(&server, &call).await;
        assert_eq!(status, "cancelled");
        assert!(notice.contains(limit), "{notice}");
        let (anew, answer) = answer(&server, with_result(&asked, "12:30")).await;
        assert_eq!(answer.content, "It is 12:30.");
        assert_ne!(anew, call);
        all_wait(&server, 2).await;
        let open: Vec<_> = open_turns(&server).await.into_iter().map(|(turn, _)| turn).collect();
        assert_eq!(open, [first, second]);
    }
}

/// Unanswered calls never exceed the limit of waiting turns, not even briefly.
#[tokio::test]
async fn parked_turns_never_exceed_their_limit_for_long() {
    let limits = ServerLimits { parked_turns_per_key_max: 4, ..ServerLimits::default() };
    let server = serve(limits).await;
    for _ in 0..20 {
        unanswered(&server).await;
        eventually("no more wait than may", async || open_turns(&server).await.len() <= 4).await;
    }
}

/// The wait of a conversation's turn ends truthfully if the user continues without it.
#[tokio::test]
async fn waits_for_is_reported_and_a_new_turn_ends_the_wait() {
    let multi_user_server =
        MultiUserServer::around(serve_asking(ServerLimits::default()).await, ServerSettings::default()).await;
    let server = &multi_user_server.inner;
    multi_user_server.done("POST", "/v1/users", json!({"name": "ada"})).await;
    let key = async |limits: Value| multi_user_server.key("ada", json!({"limits": limits})).await;
    let free = &key(json!({})).await;
    let one_token = &key(json!({"tokens_per_day_max": 1})).await;
    let no_turn = &key(json!({"turns_per_day_max": 0})).await;
    let (_, started) = multi_user_server.ask(one_token, "POST", "/v1/turns", support::saying("Note")).await;
    let (turn, conversation) =
        (started["turn_id"].as_str().unwrap(), started["conversation_id"].as_str().unwrap());
    all_wait(server, 1).await;
    let path = format!("/v1/conversations/{conversation}");
    assert_eq!(server.get(&path).await.1["waits_for"], "approval");
    assert_eq!(server.get("/v1/conversations").await.1["items"][0]["waits_for"], "approval");

    // What cannot be started ends nothing.
    for (key, wrong, expected) in [
        (free, json!({"agent": "nobody"}), (400, "unknown_agent")),
        (free, json!({"parent_id": "turn_0"}), (404, "not_found")),
        (free, json!({"parent_id": turn, "parent_seq": 9_999}), (400, "no_such_event")),
        (no_turn, json!({}), (429, "usage_limit")),
        // The tokens of the turn that waits are counted when it ends: it would be in its own way.
        (one_token, json!({}), (429, "usage_limit")),
    ] {
        let mut body = turn_with("Hi", json!({"conversation_id": conversation}));
        body.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
        let (status, error) = multi_user_server.ask(key, "POST", "/v1/turns", body).await;
        assert_eq!((status, error["error"]["code"].as_str().unwrap()), expected, "{wrong}: {error}");
        assert_eq!(server.get(&path).await.1["waits_for"], "approval", "after {wrong}: {error}");
    }
    let next = turn_with("Hi", json!({"conversation_id": conversation}));
    let (status, went_on) = server.post("/v1/turns", next).await;
    assert_eq!(status, 201, "{went_on}");
    let (status, notice) = end_of(server, turn).await;
    assert_eq!(status, "cancelled");
    assert!(notice.contains("Ended by a new message"), "{notice}");
    let (_, ended) = server.get(&format!("/v1/turns/{turn}")).await;
    assert!(ended.to_string().contains(r#""status":"cancelled""#), "{ended}");
    let went_on = server.follow(went_on["turn_id"].as_str().unwrap(), 0).await.rest().await;
    let said: String = went_on.iter().filter_map(|event| event.data["text"].as_str()).collect();
    assert_eq!(said, "Hello.");
    assert!(server.get(&path).await.1.get("waits_for").is_none());
}

#[tokio::test]
async fn yes_in_a_conversation_answers_its_open_question() {
    let server = serve_asking(ServerLimits::default()).await;
    let (_, made) = server.post("/v1/conversations", json!({})).await;
    let conversation = made["id"].as_str().unwrap();
    let say = async |text: &str| {
        let body = json!({"model": "default:text", "stream": true, "messages": user(text),
            "throughline": {"conversation_id": conversation}});
        let response = post(&server, body).await;
        let (status, bytes) = (response.status(), response.bytes().await.unwrap());
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&bytes));
        check_stream(&bytes).content
    };
    assert!(say("Note").await.contains("tlq_"));
    let went_on = say("yes").await;
    assert!(
        went_on.contains("**note.write** (text: milk): milk") && went_on.ends_with("It is milk."),
        "{went_on}"
    );
    // Another question, and a message instead of an answer: a no, with the message as its reason.
    assert!(say("Note").await.contains("tlq_"));
    let denied = say("Hi").await;
    assert!(denied.contains("denied") && !denied.contains("): milk"), "{denied}");
    // An unanswered call ends with the next message.
    let body = json!({"model": "default", "stream": true, "messages": user("Time?"),
        "tools": [{"type": "function", "function": {"name": "local_time", "parameters": {"type": "object"}}}],
        "throughline": {"conversation_id": conversation}});
    let unanswered = post(&server, body).await.text().await.unwrap();
    assert!(unanswered.contains("tool_calls"), "{unanswered}");
    assert_eq!(server.get(&format!("/v1/conversations/{conversation}")).await.1["waits_for"], "tool_results");
    assert_eq!(say("Hi").await, "Hello.");
}
