//! Chat completions over real sockets: requests of clients, their responses, and the turns of the server.

use crate::guarded_server::{self, GuardedServer};
use crate::support::check_stream::{Answer, check_stream};
use crate::support::{self, TestServer};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use throughline::config::{ServerLimits, ToolRendering};
use throughline::engine::{CallStatus, TurnId};
use throughline::tools::{Effect, NoArguments, tool};
use throughline::{ApprovalMode, EventKind, ThroughlineBuilder, TurnStatus};
use throughline_server::{AppState, KeyScope, Principal, ResumeFrom, ViewerItem};
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::{
    CallMove, ErrorMove, FakeModel, ModelScript, ParsedRequest, ScriptMove, ScriptQueue,
};

/// `note.write` writes; `weather.today` is there already.
fn tools(builder: ThroughlineBuilder) -> ThroughlineBuilder {
    let note = tool("note.write", "Writes a note", |_: NoArguments, _| async { "written" });
    builder.prompt("You are short.").tool(note.effect(Effect::Write).agent_callable())
}

async fn serve(model: impl FakeModel) -> TestServer {
    TestServer::start_with(model, tools, Default::default()).await
}

fn asking(more: Value) -> Value {
    let mut body =
        json!({"model": "default", "stream": true, "messages": [{"role": "user", "content": "Weather?"}]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

async fn post(server: &TestServer, body: Value) -> reqwest::Response {
    server.client().post(server.url("/v1/chat/completions")).json(&body).send().await.unwrap()
}

/// A streamed answer that breaks no rule.
async fn answer(server: &TestServer, more: Value) -> Answer {
    let response = post(server, asking(more)).await;
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = response.bytes().await.unwrap();
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&bytes));
    assert_eq!(headers["content-type"], "text/event-stream");
    assert!(headers["throughline-turn-id"].to_str().unwrap().starts_with("turn_"));
    check_stream(&bytes)
}

/// Clients that shorten a text leave half an emoji at its end, and send it with every request from then on.
#[tokio::test]
async fn lone_surrogate_in_history_becomes_a_replacement_character() {
    let server = serve(ScriptQueue::new([ModelScript::new().say("Hi.")])).await;
    let body = r#"{"model":"default","stream":true,"messages":[{"role":"user","content":"cut \ud83d here \ud83d\ude00"}]}"#;
    let request = server.client().post(server.url("/v1/chat/completions"));
    let response = request.header("content-type", "application/json").body(body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    response.bytes().await.unwrap();
    let sent = String::from_utf8(server.upstream.exchanges()[0].request.body.clone()).unwrap();
    assert!(sent.contains("cut \u{fffd} here 😀"), "{sent}");
}

/// A refused request.
async fn refused(server: &TestServer, more: Value) -> (u16, Value) {
    let response = post(server, asking(more)).await;
    (response.status().as_u16(), response.json::<Value>().await.unwrap()["error"].clone())
}

fn weather_and_answer() -> ScriptQueue {
    ScriptQueue::new([
        ModelScript::new().say("Let me look. ").call("weather_today", json!({})),
        ModelScript::new().say("Sunny."),
    ])
}

#[tokio::test]
async fn one_request_is_one_answer_with_its_tool_calls() {
    let server = serve(weather_and_answer()).await;
    let answer = answer(
        &server,
        json!({"stream_options": {"include_usage": true}, "messages": [
        {"role": "system", "content": "Speak plainly."}, {"role": "user", "content": "Weather?"}]}),
    )
    .await;
    assert_eq!(answer.content, "Let me look. \n\nSunny.");
    assert_eq!(
        (answer.finish.as_deref(), answer.model.as_str(), answer.calls.len()),
        (Some("stop"), "default", 0)
    );
    assert!(answer.usage.unwrap()["total_tokens"].as_u64().unwrap() > 0);
    let results: Vec<_> = answer.events.iter().filter(|event| event["type"] == "tool_result").collect();
    assert_eq!((results.len(), &results[0]["output"]), (1, &json!("sunny")));
    let seen = server.upstream.requests();
    assert_eq!(seen[0].instructions.as_deref(), Some("You are short.\n\nSpeak plainly."));
    assert_eq!(server.upstream.violations(), []);
}

#[tokio::test]
async fn non_streaming_answer_includes_tool_rendering() {
    let server = serve(weather_and_answer()).await;
    let response = post(&server, asking(json!({"stream": false, "throughline": {"render": "text"}}))).await;
    assert_eq!(response.status(), 200);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(
        body["choices"][0]["message"]["content"],
        "Let me look. \n\n> **weather.today** …\n\n> **weather.today**: sunny\n\nSunny."
    );
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert!(body["usage"]["total_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn model_suffix_selects_the_tool_rendering() {
    let server = serve(weather_and_answer()).await;
    let answer = answer(&server, json!({"model": "default:text"})).await;
    assert_eq!(
        answer.content,
        "Let me look. \n\n> **weather.today** …\n\n> **weather.today**: sunny\n\nSunny."
    );
    assert_eq!(answer.model, "default:text");
}

/// A client whose only setting is an address chooses with it.
#[tokio::test]
async fn base_url_selects_the_tool_rendering() {
    let scripts = || weather_and_answer();
    for (path, model, shown) in [
        ("/render/text/v1", "default", true),
        ("/render/text/v1", "default:reasoning", false),
        ("/render/none/v1", "default", false),
    ] {
        let server = serve(scripts()).await;
        let request = server.client().post(server.url(&format!("{path}/chat/completions")));
        let response = request.json(&asking(json!({"model": model}))).send().await.unwrap();
        let content = check_stream(&response.bytes().await.unwrap()).content;
        assert_eq!(content.contains("> **weather.today** …"), shown, "{path} {model}: {content}");
    }
    let server = serve(ScriptQueue::new([])).await;
    let (status, list) = server.get("/render/details/v1/models").await;
    assert_eq!((status, &list["data"][0]["id"]), (200, &json!("default")));
    for model in ["default", "test/m"] {
        let (status, found) = server.get(&format!("/render/details/v1/models/{model}")).await;
        assert_eq!((status, &found["id"]), (200, &json!(model)));
    }
    for path in [
        "/render/html/v1/models",
        "/render/html/v1/models/default",
        "/render/details/v1/models/x",
        "/render/details/v1/nothing",
    ] {
        assert_eq!(server.get(path).await.0, 404, "{path}");
    }
    let (status, error) = server.post("/render/html/v1/chat/completions", asking(json!({}))).await;
    assert_eq!(
        (status, error["error"]["remedy"].as_str().unwrap().contains("details")),
        (404, true),
        "{error}"
    );
}

/// A model that read our cards in its own answers would soon write such cards itself.
#[tokio::test]
async fn start_cards_are_not_sent_to_the_model() {
    let script = ScriptQueue::new([
        ModelScript::new().say("Let me look.").call("weather_today", json!({})),
        ModelScript::new().say("It is sunny."),
        ModelScript::new().say("Yes."),
    ]);
    let server = serve(script).await;
    let first = answer(&server, json!({"model": "default:details"})).await;
    assert!(first.content.contains("…</summary>"), "{}", first.content);
    let messages = json!([
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": "Really?"},
    ]);
    answer(&server, json!({"model": "default:details", "messages": messages})).await;
    let seen = format!("{:?}", server.upstream.requests()[2]);
    assert!(seen.contains("Let me look.") && seen.contains("It is sunny."), "{seen}");
    assert!(!seen.contains("…</summary>"), "{seen}");
}

/// Clients whose people choose from a list find the renderings there.
#[tokio::test]
async fn listed_renderings_appear_as_models() {
    let renders = vec![ToolRendering::Details, ToolRendering::Text];
    let listing = move |state: AppState| state.with_listed_renders(renders);
    let model = ScriptQueue::new([]);
    let server =
        GuardedServer::start_as(model, &guarded_server::settings(), std::future::ready(()), listing).await;
    let (key, _) = server.key(&[KeyScope::Chat]).await;
    let bearer = format!("Bearer {key}");
    let names = async |path: &str| {
        let answer = server.ask("GET", path, &[("Authorization", &bearer)], "").await;
        let list: Value = serde_json::from_str(&answer.body).unwrap();
        let names = list["data"].as_array().unwrap().iter().map(|model| model["id"].clone());
        names.collect::<Vec<Value>>()
    };
    assert_eq!(names("/v1/models").await, ["default", "default:details", "default:text", "test/m"]);
    assert_eq!(names("/render/text/v1/models").await, ["default", "test/m"], "there it is chosen already");
}

/// Known properties of a model, so that clients need not guess them.
#[tokio::test]
async fn known_model_reports_context_length_and_vision() {
    let build = |builder: ThroughlineBuilder| tools(builder).model("test/gpt-5-2025-08-07");
    let server = TestServer::start_with(ScriptQueue::new([]), build, Default::default()).await;
    for name in ["default", "default:details", "test/gpt-5-2025-08-07"] {
        let (status, model) = server.get(&format!("/v1/models/{name}")).await;
        assert_eq!(
            (status, &model["context_length"], &model["vision"]),
            (200, &json!(400_000), &json!(true)),
            "{name}"
        );
        assert_eq!(model.get("audio"), None, "what is not known is not there");
    }
    let (_, upstreams) = server.get("/v1/upstreams").await;
    let facts = &upstreams["items"][0]["model_facts"]["gpt-5-2025-08-07"];
    assert_eq!(facts["output_tokens"], 128_000, "{upstreams}");
}

#[tokio::test]
async fn model_list_contains_agents_and_models() {
    let server = serve(ScriptQueue::new([ModelScript::new().say("Hi.")])).await;
    let get = async |path: &str| {
        let response = server.client().get(server.url(path)).send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (_, list) = get("/v1/models").await;
    let names: Vec<_> =
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!((&list["object"], names), (&json!("list"), vec!["default", "test/m"]));
    for (name, status) in
        [("default", 200), ("test/m", 200), ("default:details", 200), ("default:x", 404), ("gpt", 404)]
    {
        assert_eq!(get(&format!("/v1/models/{name}")).await.0, status, "{name}");
    }
    // A model by its own name, where there is one upstream.
    assert_eq!(answer(&server, json!({"model": "vendor/some-model"})).await.content, "Hi.");
    assert_eq!(server.upstream.requests()[0].model, "vendor/some-model");
}

#[tokio::test]
async fn upstream_error_is_stream_error_or_502() {
    let broken = || ModelScript::new().say("Well, ").then(ScriptMove::Error(ErrorMove::new("out of cheese")));
    let server = serve(ScriptQueue::new([broken(), broken()])).await;
    let streamed = answer(&server, json!({})).await;
    assert_eq!((streamed.content.as_str(), streamed.finish), ("Well, ", None));
    assert!(streamed.error.unwrap()["message"].as_str().unwrap().contains("out of cheese"));

    let (status, error) = refused(&server, json!({"stream": false})).await;
    assert_eq!(status, 502);
    assert!(error["message"].as_str().unwrap().contains("out of cheese"), "{error}");
}

#[tokio::test]
async fn invalid_request_is_rejected_before_the_upstream_call() {
    let server = serve(ScriptQueue::new([])).await;
    for (more, code, param) in [
        (json!({"n": 2}), "unsupported", "n"),
        (
            json!({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}),
            "orphan_result",
            "messages[0]",
        ),
    ] {
        let (status, error) = refused(&server, more.clone()).await;
        assert_eq!(
            (status, &error["code"], &error["param"]),
            (400, &json!(code), &json!(param)),
            "{more}: {error}"
        );
        assert_eq!(error["type"], "invalid_request_error");
    }
    assert_eq!(server.upstream.requests(), []);
}

fn clock() -> Value {
    json!([{"type": "function", "function": {"name": "local_time", "description": "The user's clock",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}}}}])
}

/// Two calls of the client's and one of the server's in one step.
fn mixed() -> [ModelScript; 2] {
    let calls = ScriptMove::Parallel(vec![
        CallMove::new("local_time", json!({"zone": "Oslo"})),
        CallMove::new("weather_today", json!({})),
        CallMove::new("local_time", json!({"zone": "Rome"})),
    ]);
    [ModelScript::new().say("Three things.").then(calls), ModelScript::new().say("Done.")]
}

/// The assistant's message as the client keeps it, and the results.
fn with_results(first: &Answer, results: &[&str]) -> Value {
    let calls: Vec<_> = first.calls.iter().map(|(id, name, arguments)| {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
    }).collect();
    let mut messages = vec![
        json!({"role": "user", "content": "Weather?"}),
        json!({"role": "assistant", "content": first.content, "tool_calls": calls}),
    ];
    for ((id, ..), result) in first.calls.iter().zip(results) {
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
    }
    json!({"messages": messages, "tools": clock()})
}

#[tokio::test]
async fn turn_waits_for_results_of_client_tools() {
    let server = serve(ScriptQueue::new(mixed())).await;
    let first = answer(&server, json!({"tools": clock()})).await;
    assert_eq!((first.content.as_str(), first.finish.as_deref()), ("Three things.", Some("tool_calls")));
    let calls: Vec<_> = first
        .calls
        .iter()
        .map(|(_, name, arguments)| (name.as_str(), arguments["zone"].as_str().unwrap()))
        .collect();
    assert_eq!(calls, [("local_time", "Oslo"), ("local_time", "Rome")]);
    assert!(first.calls.iter().all(|(id, ..)| id.len() <= 40), "{:?}", first.calls);

    let second = answer(&server, with_results(&first, &["12:30", "13:30"])).await;
    assert_eq!(
        (second.content.as_str(), second.finish.as_deref(), second.calls.len()),
        ("Done.", Some("stop"), 0)
    );
    assert_ne!(second.id, first.id);

    // The model sees what the client has never seen: the server's call between its own.
    let seen = server.upstream.requests();
    assert_eq!(seen.len(), 2, "one turn of two steps");
    let Some(ParsedMessage::Results(results)) = seen[1].messages.last() else {
        panic!("{:?}", seen[1].messages)
    };
    let texts: Vec<_> = results.iter().map(|result| result.text.as_str()).collect();
    assert_eq!(texts, ["12:30", "sunny", "13:30"]);
    assert_eq!(server.upstream.violations(), []);
}

#[tokio::test]
async fn missing_results_are_named_and_the_turn_keeps_waiting() {
    let server = serve(ScriptQueue::new(mixed())).await;
    let first = answer(&server, json!({"tools": clock()})).await;
    // The client has cut its own message down to one call.
    let mut half = first.clone();
    half.calls.truncate(1);
    let (status, error) = refused(&server, with_results(&half, &["12:30"])).await;
    assert_eq!((status, &error["code"]), (400, &json!("missing_results")));
    assert!(error["message"].as_str().unwrap().contains(&first.calls[1].0), "{error}");
    let second = answer(&server, with_results(&first, &["12:30", "13:30"])).await;
    assert_eq!(second.content, "Done.");
}

#[tokio::test]
async fn results_of_a_foreign_or_unknown_turn_start_a_new_turn() {
    let server =
        serve(ScriptQueue::new(mixed().into_iter().chain([ModelScript::new().say("As given.")]))).await;
    let first = answer(&server, json!({"tools": clock()})).await;
    // Another user can neither continue it nor learn that it exists.
    let response = server
        .client_of("eve")
        .post(server.url("/v1/chat/completions"))
        .json(&asking(with_results(&first, &["1", "2"])));
    let theirs = check_stream(&response.send().await.unwrap().bytes().await.unwrap());
    assert_eq!(theirs.content, "Done.", "the next reply of the model, in a turn of its own");

    let mut foreign = first.clone();
    foreign.calls.iter_mut().for_each(|(id, ..)| id.insert(5, 'f'));
    let answered = answer(&server, with_results(&foreign, &["1", "2"])).await;
    assert_eq!(answered.content, "As given.");
    let seen = server.upstream.requests();
    let Some(ParsedMessage::Results(results)) = seen[2].messages.last() else {
        panic!("{:?}", seen[2].messages)
    };
    assert_eq!(results.iter().map(|result| result.text.as_str()).collect::<Vec<_>>(), ["1", "2"]);
}

#[tokio::test]
async fn user_message_after_tool_results_reaches_the_model() {
    let server = serve(ScriptQueue::new(mixed())).await;
    let first = answer(&server, json!({"tools": clock()})).await;
    let mut more = with_results(&first, &["12:30", "13:30"]);
    more["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "Be quick."}));
    assert_eq!(answer(&server, more).await.content, "Done.");
    let seen = server.upstream.requests();
    assert_eq!(seen.len(), 2);
    assert!(
        matches!(seen[1].messages.last(), Some(ParsedMessage::User { text, .. }) if text == "Be quick."),
        "{:?}",
        seen[1].messages
    );
}

/// End of a turn, when it comes.
async fn end_of(server: &TestServer, turn: &str) -> TurnStatus {
    let turn = TurnId::new(turn);
    let mut viewer = server
        .state
        .turn_manager
        .viewer(&Principal::local("ada"), &turn, ResumeFrom::After(0))
        .await
        .unwrap();
    loop {
        let Some(ViewerItem::Records(records)) = viewer.next().await.unwrap() else { continue };
        for record in records {
            let event: throughline::Event = serde_json::from_slice(&record.payload).unwrap();
            if let EventKind::StreamEnd { status, .. } = event.kind {
                return status;
            }
        }
    }
}

/// Reads until this text has arrived.
async fn until(words: &str, response: reqwest::Response) -> impl Sized {
    let mut body = response.bytes_stream();
    let mut seen = String::new();
    while !seen.contains(words) {
        let bytes = body.next().await.unwrap_or_else(|| panic!("ended before `{words}`: {seen}")).unwrap();
        seen.push_str(&String::from_utf8_lossy(&bytes));
    }
    body
}

#[tokio::test]
async fn client_disconnect_cancels_its_turn() {
    let server =
        serve(ScriptQueue::new([ModelScript::new().say("Once upon a time").then(ScriptMove::Stall)])).await;
    let response = post(&server, asking(json!({}))).await;
    let turn = response.headers()["throughline-turn-id"].to_str().unwrap().to_owned();
    let connection = until("Once", response).await;
    drop(connection);
    assert_eq!(end_of(&server, &turn).await, TurnStatus::Cancelled);
}

#[tokio::test]
async fn heartbeats_are_sent_while_the_model_is_silent() {
    let limits = ServerLimits { heartbeat_ms: 20, head_hold_ms: 1, ..ServerLimits::default() };
    let server =
        TestServer::start_with(ScriptQueue::new([ModelScript::new().then(ScriptMove::Stall)]), tools, limits)
            .await;
    let response = post(&server, asking(json!({}))).await;
    until(": hb ", response).await;
}

/// Proxies close a connection that carries nothing for a minute. JSON may begin with empty lines.
#[tokio::test]
async fn non_streaming_answer_sends_blank_lines_while_waiting() {
    let limits = ServerLimits { heartbeat_ms: 20, whole_head_hold_ms: 1, ..ServerLimits::default() };
    let slow = ModelScript::new().then(ScriptMove::Pause(200)).say("Hello.");
    let server = TestServer::start_with(ScriptQueue::new([slow]), tools, limits).await;
    let response = post(&server, asking(json!({"stream": false}))).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    let body = response.text().await.unwrap();
    assert!(body.starts_with("\n\n"), "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(answer["choices"][0]["message"]["content"], "Hello.", "{answer}");
}

#[tokio::test]
async fn client_disconnect_cancels_a_non_streaming_turn() {
    let limits = ServerLimits { heartbeat_ms: 20, whole_head_hold_ms: 1, ..ServerLimits::default() };
    let stalls = ModelScript::new().then(ScriptMove::Stall);
    let server = TestServer::start_with(ScriptQueue::new([stalls]), tools, limits).await;
    let response = post(&server, asking(json!({"stream": false}))).await;
    let turn = response.headers()["throughline-turn-id"].to_str().unwrap().to_owned();
    drop(until("\n\n", response).await);
    assert_eq!(end_of(&server, &turn).await, TurnStatus::Cancelled);
}

/// A model that calls `note.write`, and then reports the result.
fn writer() -> impl FakeModel {
    writer_of("note_write", json!({}))
}

fn writer_of(tool: &'static str, arguments: Value) -> impl FakeModel {
    move |seen: &ParsedRequest| match seen.messages.last() {
        Some(ParsedMessage::Results(results)) => ModelScript::new().say(results[0].text.clone()),
        _ => ModelScript::new().call(tool, arguments.clone()),
    }
}

#[tokio::test]
async fn turn_waits_for_approval_if_the_client_can_ask() {
    let server = TestServer::start_with(
        writer(),
        |builder| tools(builder).approval(ApprovalMode::Ask),
        Default::default(),
    )
    .await;
    let response = post(&server, asking(json!({"throughline": {"approval": "ask"}}))).await;
    let mut body = response.bytes_stream();
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("approval_request") {
        bytes.extend(body.next().await.unwrap().unwrap());
    }
    let text = String::from_utf8(bytes.clone()).unwrap();
    let at = text.find(r#""answer_url":""#).unwrap() + r#""answer_url":""#.len();
    let url = &text[at..at + text[at..].find('"').unwrap()];
    let answered =
        server.client().post(server.url(url)).json(&json!({"decision": "approve"})).send().await.unwrap();
    assert!(answered.status().is_success(), "{url}: {}", answered.status());
    while let Some(more) = body.next().await {
        bytes.extend(more.unwrap());
    }
    let answer = check_stream(&bytes);
    assert_eq!((answer.content.as_str(), answer.finish.as_deref()), ("written", Some("stop")));
}

#[tokio::test]
async fn call_is_denied_if_the_client_cannot_ask() {
    let server = TestServer::start_with(
        writer(),
        |builder| tools(builder).approval(ApprovalMode::Ask),
        Default::default(),
    )
    .await;
    for render in ["none", "reasoning", "owui_event"] {
        let streamed = answer(&server, json!({"throughline": {"render": render}})).await;
        assert!(streamed.content.contains("approval is not possible"), "{render}: {}", streamed.content);
    }
    let response = post(&server, asking(json!({"stream": false}))).await;
    let body: Value = response.json().await.unwrap();
    let said = body["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(said.contains("approval is not possible"), "{said}");
    let result = body["throughline"]["events"]
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["type"] == "tool_result")
        .unwrap();
    assert_eq!(result["status"], serde_json::to_value(CallStatus::Denied).unwrap());

    let (status, error) =
        refused(&server, json!({"stream": false, "throughline": {"approval": "ask"}})).await;
    assert_eq!((status, &error["code"]), (400, &json!("approval_needs_stream")));
    let denied = answer(&server, json!({"throughline": {"approval": "deny"}})).await;
    assert!(denied.content.contains("the request disables approvals"), "{}", denied.content);
    let denied = answer(&server, json!({"throughline": {"approval": "deny", "render": "text"}})).await;
    assert!(denied.content.contains("the request disables approvals"), "{}", denied.content);
}

#[tokio::test]
async fn approval_header_is_read_and_validated() {
    let server = TestServer::start_asking(writer_of("calendar_add", json!({"title": "Tea"}))).await;
    let request = |wish: &str| {
        let request = server.client().post(server.url("/v1/chat/completions")).json(&asking(json!({})));
        request.header("throughline-approval", wish).send()
    };
    until("approval_request", request("ask").await.unwrap()).await;
    let refused = request("maybe").await.unwrap();
    assert_eq!(refused.status(), 400);
    assert!(refused.text().await.unwrap().contains("Throughline-Approval"));
}

/// A call that is approved in advance needs no approver.
#[tokio::test]
async fn allowed_call_runs_without_streaming() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let build = move |builder: ThroughlineBuilder| {
        let runs = counted.clone();
        let note = tool("note.write", "Writes a note", move |_: NoArguments, _| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { "written" }
        });
        builder.tool(note.effect(Effect::Write).agent_callable())
    };
    let server = TestServer::start_with(writer(), build, Default::default()).await;
    let body: Value = post(&server, asking(json!({"stream": false}))).await.json().await.unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], "written");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

/// The wait is in the log: a server that was killed in the meantime resumes it.
#[tokio::test]
async fn turn_waits_for_client_results_across_a_restart() {
    let server = serve(ScriptQueue::new(mixed())).await;
    let first = answer(&server, json!({"tools": clock()})).await;
    let server = server.restart().await;
    let second = answer(&server, with_results(&first, &["12:30", "13:30"])).await;
    assert_eq!((second.content.as_str(), second.finish.as_deref()), ("Done.", Some("stop")));
    assert_eq!(server.upstream.requests().len(), 2, "one turn of two steps");
}

#[tokio::test]
async fn conversation_id_continues_a_stored_conversation() {
    let server =
        serve(ScriptQueue::new([ModelScript::new().say("Hi, Ada."), ModelScript::new().say("Ada.")])).await;
    let (status, started) = server.post("/v1/turns", support::saying("I am Ada.")).await;
    assert_eq!(status, 201, "{started}");
    let conversation = started["conversation_id"].as_str().unwrap();
    assert_eq!(end_of(&server, started["turn_id"].as_str().unwrap()).await, TurnStatus::Completed);
    let more = json!({"throughline": {"conversation_id": conversation}, "messages": [{"role": "user", "content": "Who am I?"}]});
    assert_eq!(answer(&server, more).await.content, "Ada.");
    assert_eq!(server.upstream.requests()[1].messages.len(), 3);
}
