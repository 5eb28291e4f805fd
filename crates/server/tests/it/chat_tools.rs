//! Tools that a chat client allows or forces: the upstream's request, and the client's response.

use crate::support::TestServer;
use crate::support::check_stream::{Answer, check_stream};
use serde_json::{Value, json};
use throughline_testkit::demo::DemoModel;
use throughline_testkit::parsed_request::ParsedToolChoice;
use throughline_testkit::{FakeModel, ModelScript, ParsedRequest, ScriptQueue};

async fn serve(model: impl FakeModel) -> TestServer {
    TestServer::start_with(model, |builder| builder.prompt("You are short."), Default::default()).await
}

fn function(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "The client's",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}}}})
}

fn asking(more: Value) -> Value {
    let mut body =
        json!({"model": "default", "stream": true, "messages": [{"role": "user", "content": "Weather?"}]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

async fn answer(server: &TestServer, more: Value) -> Answer {
    let sent = server.client().post(server.url("/v1/chat/completions")).json(&asking(more));
    let response = sent.send().await.unwrap();
    let status = response.status();
    let bytes = response.bytes().await.unwrap();
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&bytes));
    check_stream(&bytes)
}

fn names(seen: &ParsedRequest) -> Vec<&str> {
    seen.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// The messages with the answer's calls and a result for each.
fn with_results(first: &Answer, more: Value) -> Value {
    let calls: Vec<_> = first.calls.iter().map(|(id, name, arguments)| {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
    }).collect();
    let mut messages = vec![
        json!({"role": "user", "content": "Weather?"}),
        json!({"role": "assistant", "content": null, "tool_calls": calls}),
    ];
    for (id, ..) in &first.calls {
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "12:30"}));
    }
    let mut body = json!({"messages": messages, "tools": [function("clock"), function("answer")]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

const SERVERS: [&str; 3] = ["calendar_add", "queue_wait", "weather_today"];

/// Default requests of pydantic-ai, instructor, smolagents, LlamaIndex, LangChain and Semantic Kernel send by default.
#[tokio::test]
async fn tool_choice_forces_only_the_first_step() {
    for (choice, offered, expected) in [
        (json!("required"), &["clock", "answer"][..], ParsedToolChoice::Required),
        (
            json!({"type": "function", "function": {"name": "answer"}}),
            &["answer"],
            ParsedToolChoice::Named("answer".into()),
        ),
        (
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [function("answer")]}}),
            &["answer"],
            ParsedToolChoice::Required,
        ),
    ] {
        let script =
            [ModelScript::new().call("answer", json!({"zone": "Oslo"})), ModelScript::new().say("Done.")];
        let server = serve(ScriptQueue::new(script)).await;
        let tools = json!({"tools": [function("clock"), function("answer")], "tool_choice": choice});
        let first = answer(&server, tools).await;
        assert_eq!((first.finish.as_deref(), first.calls[0].1.as_str()), (Some("tool_calls"), "answer"));
        let seen = server.upstream.requests();
        assert_eq!((names(&seen[0]), &seen[0].tool_choice), (offered.to_vec(), &expected), "{choice}");

        // The results as every client sends them: now the model decides, and everything is offered again.
        let second = answer(&server, with_results(&first, json!({}))).await;
        assert_eq!((second.content.as_str(), second.finish.as_deref()), ("Done.", Some("stop")));
        let seen = server.upstream.requests();
        assert_eq!(seen[1].tool_choice, ParsedToolChoice::Auto);
        assert_eq!(server.upstream.violations(), []);
    }
}

/// A client without a key gets from the demo model the response that a real model would give.
#[tokio::test]
async fn demo_model_obeys_tool_choice() {
    let room = json!({"type": "string", "enum": ["hall", "kitchen"]});
    let function = |name: &str| {
        json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "required": ["room", "watts"],
            "properties": {"room": room, "watts": {"type": "integer", "minimum": 5}, "note": {"type": "string"}}}}})
    };
    let tools = || json!([function("heat_room"), function("lamp_set")]);
    let fits = json!({"room": "hall", "watts": 5});
    for (choice, expected) in [
        (json!("required"), Some("heat_room")),
        (json!({"type": "function", "function": {"name": "lamp_set"}}), Some("lamp_set")),
        (
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [function("lamp_set")]}}),
            Some("lamp_set"),
        ),
        (json!("none"), None),
    ] {
        let server = serve(DemoModel::instant()).await;
        let first = answer(&server, json!({"tools": tools(), "tool_choice": choice})).await;
        let called: Vec<_> =
            first.calls.iter().map(|(_, name, arguments)| (name.as_str(), arguments)).collect();
        assert_eq!(called, expected.map(|name| (name, &fits)).into_iter().collect::<Vec<_>>(), "{choice}");
        let finish = if expected.is_some() { "tool_calls" } else { "stop" };
        assert_eq!(first.finish.as_deref(), Some(finish), "{choice}");
        if expected.is_some() {
            let second = answer(&server, with_results(&first, json!({"tools": tools()}))).await;
            assert_eq!((second.calls.len(), second.finish.as_deref()), (0, Some("stop")), "{choice}");
            assert!(second.content.contains("> 12:30"), "{choice}: {}", second.content);
        }
        assert_eq!(server.upstream.violations(), []);
    }
}

/// smolagents demands a call with every request, and never gets a text.
#[tokio::test]
async fn tool_choice_sent_with_results_applies_to_the_next_step() {
    let call = |zone: &str| ModelScript::new().call("clock", json!({"zone": zone}));
    let server = serve(ScriptQueue::new([call("Oslo"), call("Rome")])).await;
    let tools = json!({"tools": [function("clock"), function("answer")], "tool_choice": "required"});
    let first = answer(&server, tools).await;
    let second = answer(&server, with_results(&first, json!({"tool_choice": "required"}))).await;
    assert_eq!((second.finish.as_deref(), &second.calls[0].2["zone"]), (Some("tool_calls"), &json!("Rome")));
    let choices: Vec<_> = server.upstream.requests().iter().map(|seen| seen.tool_choice.clone()).collect();
    assert_eq!(choices, [ParsedToolChoice::Required, ParsedToolChoice::Required]);
    assert_eq!(server.upstream.violations(), []);
}

#[tokio::test]
async fn tool_choice_is_auto_in_the_second_step_after_a_restart() {
    let script = [ModelScript::new().call("clock", json!({"zone": "Oslo"})), ModelScript::new().say("Done.")];
    let server = serve(ScriptQueue::new(script)).await;
    let tools = json!({"tools": [function("clock"), function("answer")], "tool_choice": "required"});
    let first = answer(&server, tools).await;
    let server = server.restart().await;
    let second = answer(&server, with_results(&first, json!({}))).await;
    assert_eq!(second.content, "Done.");
    let seen = server.upstream.requests();
    assert_eq!((seen.len(), &seen[1].tool_choice), (2, &ParsedToolChoice::Auto));
    assert_eq!(names(&seen[1]), [&SERVERS[..], &["clock", "answer"]].concat());
}

#[tokio::test]
async fn server_tools_are_not_offered_if_none_are_wanted() {
    for more in [
        json!({"tools": [function("clock")], "tool_choice": "none"}),
        json!({"tool_choice": "none"}),
        json!({"throughline": {"tools": false}}),
        json!({"model": "test/m"}),
        json!({"model": "some-model-that-nobody-knows"}),
    ] {
        let server = serve(ScriptQueue::new([ModelScript::new().say("Hi.")])).await;
        assert_eq!(answer(&server, more.clone()).await.content, "Hi.");
        let seen = &server.upstream.requests()[0];
        assert_eq!(names(seen), Vec::<&str>::new(), "{more}");
    }
}

#[tokio::test]
async fn request_for_a_model_uses_no_agent_prompt_or_tools() {
    let server =
        serve(ScriptQueue::new([ModelScript::new().say("Hi."), ModelScript::new().say("Hi.")])).await;
    answer(
        &server,
        json!({"model": "test/m", "tools": [function("clock")], "messages": [
        {"role": "system", "content": "Speak plainly."}, {"role": "user", "content": "Hi"}]}),
    )
    .await;
    answer(&server, json!({"tools": [function("clock")]})).await;
    let seen = server.upstream.requests();
    assert_eq!((seen[0].instructions.as_deref(), names(&seen[0])), (Some("Speak plainly."), vec!["clock"]));
    assert_eq!(seen[1].instructions.as_deref(), Some("You are short."), "an agent is one with its prompt");
    assert_eq!(names(&seen[1]).len(), SERVERS.len() + 1);
}

#[tokio::test]
async fn client_tool_replaces_the_server_tool_of_the_same_name() {
    let script =
        [ModelScript::new().call("weather_today", json!({"zone": "Oslo"})), ModelScript::new().say("Done.")];
    let server = serve(ScriptQueue::new(script)).await;
    let first = answer(&server, json!({"tools": [function("weather_today")]})).await;
    assert_eq!((first.finish.as_deref(), first.calls[0].1.as_str()), (Some("tool_calls"), "weather_today"));
    let seen = &server.upstream.requests()[0];
    assert_eq!(names(seen), ["calendar_add", "queue_wait", "weather_today"], "once");
    assert_eq!(seen.tools[2].description, "The client's");
}

/// The demand is a line where calls are text.
#[tokio::test]
async fn tool_choice_is_honored_in_text_mode() {
    let script = [ModelScript::new().call("clock", json!({"zone": "Oslo"})), ModelScript::new().say("Done.")];
    let text = |builder: throughline::ThroughlineBuilder| builder.mode(throughline::config::ToolMode::Text);
    let server = TestServer::start_with(ScriptQueue::new(script), text, Default::default()).await;
    let tools = json!({"tools": [function("clock")], "tool_choice": {"type": "function", "function": {"name": "clock"}}});
    let first = answer(&server, tools).await;
    assert_eq!((first.finish.as_deref(), first.calls[0].1.as_str()), (Some("tool_calls"), "clock"));
    assert_eq!(server.upstream.requests()[0].tool_choice, ParsedToolChoice::Named("clock".into()));
    assert_eq!(server.upstream.violations(), []);
}

fn schema() -> Value {
    json!({"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": {"type": "object"}}}})
}

fn look_and_answer() -> ScriptQueue {
    ScriptQueue::new([
        ModelScript::new().say("Let me look it up first.").call("weather_today", json!({})),
        ModelScript::new().say("{\"name\": \"Ada\"}"),
    ])
}

#[tokio::test]
async fn json_answer_is_the_text_of_the_last_step_only() {
    for render in ["none", "text", "details"] {
        let mut more = schema();
        more["throughline"] = json!({"render": render});
        let server = serve(look_and_answer()).await;
        let streamed = answer(&server, more.clone()).await;
        assert_eq!(streamed.content, "{\"name\": \"Ada\"}", "{render}");
        assert!(streamed.reasoning.contains("Let me look it up first."), "{}", streamed.reasoning);

        let server = serve(look_and_answer()).await;
        more["stream"] = json!(false);
        let (status, whole) = server.post("/v1/chat/completions", asking(more)).await;
        let message = &whole["choices"][0]["message"];
        assert_eq!((status, &message["content"]), (200, &json!("{\"name\": \"Ada\"}")), "{whole}");
    }
}

/// A client parses only its own answers.
#[tokio::test]
async fn text_before_a_client_call_stays_in_its_answer() {
    let script =
        [ModelScript::new().say("One moment.").call("clock", json!({})), ModelScript::new().say("{}")];
    let server = serve(ScriptQueue::new(script)).await;
    let mut more = schema();
    more["tools"] = json!([function("clock")]);
    let first = answer(&server, more).await;
    assert_eq!((first.content.as_str(), first.finish.as_deref()), ("One moment.", Some("tool_calls")));
    let mut more = with_results(&first, schema());
    more["messages"][1]["content"] = json!("One moment.");
    assert_eq!(answer(&server, more).await.content, "{}");
}

/// Sends a request: the fields that its answer was given without, and the answer.
async fn ignored(server: &TestServer, body: Value) -> (Option<String>, Answer) {
    let response = server.client().post(server.url("/v1/chat/completions")).json(&body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let named = response.headers().get("throughline-ignored").map(|names| names.to_str().unwrap().to_owned());
    (named, check_stream(&response.bytes().await.unwrap()))
}

#[tokio::test]
async fn ignored_fields_are_named_in_a_response_header() {
    let server = serve(ScriptQueue::new((0..4).map(|_| ModelScript::new().say("Hi.")))).await;
    let mut strict = function("look");
    (strict["function"]["strict"], strict["cache_control"]) = (json!(true), json!({"type": "ephemeral"}));
    for (more, expected) in [
        (json!({"logprobs": true, "top_k": 40, "seed": 1}), Some("logprobs, top_k")),
        (json!({"seed": 1, "stop": "END", "reasoning_effort": "low", "parallel_tool_calls": false}), None),
        (json!({"stop": ["END", "STOP"], "store": true, "metadata": {}}), Some("store")),
        (json!({"tools": [strict], "user": "ada"}), Some("tools.cache_control, user")),
    ] {
        assert_eq!(ignored(&server, asking(more)).await.0.as_deref(), expected);
    }
    // On the wire `stop` is what the client has written.
    let sent = |at: usize| String::from_utf8(server.upstream.exchanges()[at].request.body.to_vec()).unwrap();
    for raw in
        [r#""seed":1"#, r#""stop":"END""#, r#""reasoning_effort":"low""#, r#""parallel_tool_calls":false"#]
    {
        assert!(sent(1).contains(raw), "{raw}: {}", sent(1));
    }
    assert!(sent(2).contains(r#""stop":["END","STOP"]"#), "{}", sent(2));
    assert!(!sent(2).contains("store") && !sent(2).contains("metadata"), "{}", sent(2));
    assert!(sent(3).contains(r#""strict":true"#) && !sent(3).contains("ada"), "{}", sent(3));
}

/// A continued turn uses the sampling of its first request, so a later request's sampling is reported as
/// ignored.
#[tokio::test]
async fn continued_turn_names_ignored_sampling_fields() {
    let script = [ModelScript::new().call("clock", json!({})), ModelScript::new().say("Noon.")];
    let server = serve(ScriptQueue::new(script)).await;
    let more =
        json!({"tools": [function("clock")], "temperature": 0.5, "seed": 1, "stop": "END", "top_k": 4});
    let (named, first) = ignored(&server, asking(more.clone())).await;
    assert_eq!(named.as_deref(), Some("top_k"));
    let (named, rest) = ignored(&server, asking(with_results(&first, more))).await;
    assert_eq!(rest.content, "Noon.");
    assert_eq!(named.as_deref(), Some("top_k, temperature, stop, seed"));
}

/// Requests that were refused once, each of them sent by a real client.
#[tokio::test]
async fn unusual_requests_of_real_clients_are_answered() {
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
    let with_picture = json!([
        {"role": "user", "content": "Draw"},
        {"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "draw", "arguments": {"what": "cat"}}}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "Here"}, picture]},
    ]);
    for more in [
        json!({"max_tokens": -1}),
        json!({"max_tokens": 100.0, "n": 1.0}),
        json!({"functions": []}),
        json!({"messages": [{"role": "system", "content": "Sum up."}]}),
        json!({"messages": with_picture}),
    ] {
        let server = serve(ScriptQueue::new([ModelScript::new().say("Hi.")])).await;
        assert_eq!(answer(&server, more.clone()).await.content, "Hi.", "{more}");
        assert_eq!(server.upstream.violations(), [], "{more}");
    }
}

/// Without tools no step follows, so the text is streamed.
#[tokio::test]
async fn json_answer_streams_if_no_tools_are_offered() {
    let script = ModelScript::new().say("{\"name\":").then(throughline_testkit::ScriptMove::Stall);
    let server = serve(ScriptQueue::new([script])).await;
    let mut more = schema();
    more["model"] = json!("test/m");
    let sent = server.client().post(server.url("/v1/chat/completions")).json(&asking(more));
    let mut response = sent.send().await.unwrap();
    let mut seen = String::new();
    while !seen.contains("name") {
        seen.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().expect("it goes on")));
    }
}
