//! Requests to Anthropic after each kind of step.

use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashSet;
use throughline_wire::{
    Call, CallArguments, CallKind, CallOutcome, ClosedStep, DecodeOptions, Dialect, EncodedRequest, Media,
    Message, ModelReply, ModelRequest, ModelSettings, NotStarted, ProviderState, RawArguments, StartState,
    ToolChoice, ToolDefinition, ToolOutput, TransferMode, UpstreamProfile, UserPart, encode,
};

// --- builders ---

fn user(text: &str) -> Message {
    Message::User(vec![UserPart::Text { text: text.into() }])
}

fn call(id: &str, name: &str, arguments: Value) -> Call {
    Call {
        id: format!("c-{id}").as_str().into(),
        upstream_id: Some(id.into()),
        name: name.into(),
        kind: CallKind::Function,
        arguments: Ok(CallArguments::from_value(arguments)),
        ran_with: None,
    }
}

fn weather(id: &str, city: &str) -> Call {
    call(id, "weather", json!({ "city": city }))
}

fn done(text: &str) -> CallOutcome {
    CallOutcome::Done(ToolOutput::text(text))
}

fn step(text: &str, calls: Vec<(Call, CallOutcome)>) -> ClosedStep {
    ClosedStep { text: text.into(), calls, model: "claude".into(), ..ClosedStep::default() }
}

fn state(content: Value) -> Option<ProviderState> {
    Some(ProviderState {
        dialect: Dialect::Anthropic,
        value: json!({ "role": "assistant", "content": content }),
    })
}

fn picture() -> Media {
    Media::new("image/png".into(), "iVBORw0KGgoAAAAN".into())
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest { model: "claude".into(), messages, ..ModelRequest::default() }
}

/// A profile without cache marks, which have separate tests.
fn unmarked() -> UpstreamProfile {
    UpstreamProfile { cache_control: false, ..UpstreamProfile::default() }
}

fn sent(request: &ModelRequest) -> EncodedRequest {
    encode(Dialect::Anthropic, request, &unmarked(), TransferMode::Stream).expect("Anthropic has an encoder")
}

#[track_caller]
fn check(messages: Vec<Message>, expect: Value) {
    check_with(messages, &unmarked(), expect);
}

#[track_caller]
fn check_with(messages: Vec<Message>, profile: &UpstreamProfile, expect: Value) {
    let sent =
        encode(Dialect::Anthropic, &request(messages), profile, TransferMode::Stream).expect("an encoder");
    assert_eq!(sent.body["messages"], expect, "{:#}", sent.body["messages"]);
}

// --- the request around the messages ---

#[test]
fn full_request_is_encoded() {
    let request = ModelRequest {
        instructions: Some("Be brief.".into()),
        tools: vec![
            ToolDefinition::new(
                "weather",
                "Weather of a city.",
                json!({ "type": "object", "properties": { "city": { "type": "string" } } }),
            ),
            ToolDefinition::new("now", "", Value::Null),
        ],
        settings: ModelSettings { temperature: Some(1.5), ..ModelSettings::default() },
        ..request(vec![user("Hi")])
    };
    let sent = sent(&request);
    assert_eq!(sent.path, "/v1/messages");
    assert_eq!(sent.headers, [("anthropic-version", "2023-06-01".to_owned())]);
    assert_eq!(
        sent.body,
        json!({
            "model": "claude",
            "max_tokens": 4096,
            "system": "Be brief.",
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Hi" }] }],
            "tools": [
                { "name": "weather", "description": "Weather of a city.",
                  "input_schema": { "type": "object", "properties": { "city": { "type": "string" } } } },
                { "name": "now", "input_schema": { "type": "object", "properties": {} } },
            ],
            "temperature": 1.0,
            "stream": true,
        })
    );
}

#[test]
fn tool_choice_none_lists_but_forbids_tools() {
    let tools = vec![ToolDefinition::new("now", "", json!({}))];
    let request = ModelRequest { tools, tool_choice: ToolChoice::None, ..request(vec![user("Hi")]) };
    let body = sent(&request).body;
    assert_eq!(body["tool_choice"], json!({ "type": "none" }));
    assert_eq!(body["tools"][0]["name"], "now");

    let profile = UpstreamProfile { tool_choice_none: false, ..unmarked() };
    let body = encode(Dialect::Anthropic, &request, &profile, TransferMode::Stream).expect("an encoder").body;
    assert_eq!((body.get("tools"), body.get("tool_choice")), (None, None));

    let calls = vec![(call("toolu_1", "now", json!({})), done("1"))];
    let messages = vec![user("Hi"), Message::Step(step("", calls))];
    let request = ModelRequest { messages, ..request };
    let body = encode(Dialect::Anthropic, &request, &profile, TransferMode::Stream).expect("an encoder").body;
    assert_eq!(
        (&body["tools"][0]["name"], body.get("tool_choice")),
        (&json!("now"), None),
        "its call has a tool"
    );
}

/// "Requests which include `tool_use` or `tool_result` blocks must define tools."
#[test]
fn tools_of_history_are_defined_even_if_none_is_offered() {
    let calls = vec![(weather("toolu_1", "Paris"), done("1")), (weather("toolu_2", "Rome"), done("2"))];
    let body = sent(&request(vec![user("x"), Message::Step(step("", calls))])).body;
    assert_eq!(body["tools"], json!([{ "name": "weather", "input_schema": { "type": "object" } }]));
    assert_eq!(body["tool_choice"], json!({ "type": "none" }));
    assert_eq!(sent(&request(vec![user("x")])).body.get("tools"), None);
}

/// A model may call anything; what goes back must match `^[a-zA-Z0-9_-]{1,128}$`.
#[test]
fn invented_tool_names_become_valid() {
    let long = "x".repeat(200);
    for (name, expect) in
        [("live2d.expression", "live2d_expression"), ("天气", "__"), ("", "unnamed"), (&long, &long[..128])]
    {
        let calls = vec![(call("toolu_1", name, json!({})), done("1"))];
        let body = sent(&request(vec![user("x"), Message::Step(step("", calls))])).body;
        assert_eq!(body["messages"][1]["content"][0]["name"], expect);
    }
}

#[test]
fn max_tokens_stream_and_extra_fields_are_encoded() {
    let extra = json!({ "thinking": { "type": "enabled", "budget_tokens": 2000 }, "top_k": 5 });
    let extra = extra.as_object().cloned().unwrap_or_default();
    let mut request = request(vec![user("Hi")]);
    request.settings.extra = extra;
    let whole = encode(Dialect::Anthropic, &request, &unmarked(), TransferMode::Whole).expect("an encoder");
    assert_eq!(whole.body.get("stream"), None);
    assert_eq!((&whole.body["max_tokens"], whole.body.get("top_k")), (&json!(6096), None));
    assert_eq!(whole.settings_left_out, ["top_k"], "it does not go with thinking");
    request.settings.max_output_tokens = Some(100);
    assert_eq!(sent(&request).body["max_tokens"], 2100, "the answer's limit, and its thoughts");
    request.settings.max_output_tokens = Some(3000);
    assert_eq!(sent(&request).body["max_tokens"], 3000);
}

/// A turn that another model began continues without thinking, and without tokens for it.
#[test]
fn omitted_thinking_budget_does_not_count() {
    let calls = vec![(weather("toolu_1", "Paris"), done("sunny"))];
    let mut request = request(vec![user("Hi"), Message::Step(step("", calls))]);
    request.settings.max_output_tokens = Some(100);
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 2000 } });
    request.settings.extra = thinking.as_object().cloned().unwrap_or_default();
    for dialect in [Dialect::Anthropic, Dialect::BedrockAnthropic] {
        let encoded = encode(dialect, &request, &unmarked(), TransferMode::Stream).expect("an encoder");
        assert_eq!((&encoded.body["max_tokens"], encoded.body.get("thinking")), (&json!(100), None));
        assert_eq!(encoded.settings_left_out, ["thinking"], "{dialect}");
    }
}

// --- a tool loop ---

#[test]
fn tool_results_follow_their_calls_in_the_next_request() {
    let calls = vec![
        (weather("toolu_1", "Paris"), done("sunny")),
        (
            weather("toolu_2", "Atlantis"),
            CallOutcome::Failed { message: "no such city".into(), partial: None },
        ),
    ];
    check(
        vec![user("Weather?"), Message::Step(step("Let me see.", calls)), user("Hurry!")],
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "Weather?" }] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "Let me see." },
                { "type": "tool_use", "id": "toolu_1", "name": "weather", "input": { "city": "Paris" } },
                { "type": "tool_use", "id": "toolu_2", "name": "weather", "input": { "city": "Atlantis" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny" },
                { "type": "tool_result", "tool_use_id": "toolu_2", "is_error": true,
                  "content": "The tool failed: no such city." },
                { "type": "text", "text": "Hurry!" },
            ] },
        ]),
    );
}

#[test]
fn every_outcome_but_done_is_sent_as_an_error() {
    let outcomes = [
        CallOutcome::Failed { message: "no".into(), partial: Some(ToolOutput::text("half")) },
        CallOutcome::Denied { reason: Some("not now".into()) },
        CallOutcome::Cancelled(StartState::No),
        CallOutcome::Cancelled(StartState::Yes { ran_ms: 5, partial: None }),
        CallOutcome::TimedOut { limit_ms: 1000, partial: None },
        CallOutcome::NotStarted(NotStarted::NoViewer),
        CallOutcome::unknown(),
    ];
    for outcome in outcomes {
        let expected_text = outcome.model_text();
        let history = vec![user("x"), Message::Step(step("", vec![(weather("toolu_1", "Paris"), outcome)]))];
        let body = sent(&request(history)).body;
        let result = &body["messages"][2]["content"][0];
        assert_eq!((&result["is_error"], &result["content"]), (&json!(true), &json!(expected_text)));
    }
}

#[test]
fn tool_images_are_sent_in_the_tool_result() {
    let output = ToolOutput { text: "A map.".into(), media: vec![picture()], ..ToolOutput::default() };
    let history = || {
        let calls = vec![(weather("toolu_1", "Paris"), CallOutcome::Done(output.clone()))];
        vec![user("Map?"), Message::Step(step("", calls))]
    };
    let around = |content: Value| {
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "Map?" }] },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "toolu_1", "name": "weather", "input": { "city": "Paris" } } ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1", "content": content } ] },
        ])
    };
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAAN" });
    check(
        history(),
        around(json!([{ "type": "text", "text": "A map." }, { "type": "image", "source": source }])),
    );
    let blind = UpstreamProfile { vision: false, ..unmarked() };
    check_with(history(), &blind, around(json!("A map.\n[image image/png, 1 kB, shown to the user]")));
}

#[test]
fn unreadable_call_is_sent_and_answered() {
    let mut broken = weather("toolu_1", "");
    broken.arguments = Err(RawArguments("{\"city\": \"Pa".into()));
    let outcome =
        CallOutcome::NotStarted(NotStarted::InvalidArguments { message: "it ends in a string".into() });
    let expected_text = outcome.model_text();
    check(
        vec![user("x"), Message::Step(step("", vec![(broken, outcome)]))],
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "x" }] },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "toolu_1", "name": "weather",
                  "input": { "unreadable_arguments": "{\"city\": \"Pa" } } ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1", "is_error": true, "content": expected_text } ] },
        ]),
    );
}

// --- what goes back as it came ---

const THINKING_STREAM: &str = r#"
data: {"type":"message_start","message":{"id":"msg_1","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"AAAA"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_stop","index":2}

data: {"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}

data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}

data: {"type":"content_block_stop","index":3}

data: {"type":"content_block_start","index":4,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://example.org","encrypted_content":"e"}]}}

data: {"type":"content_block_stop","index":4}

data: {"type":"content_block_start","index":5,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":5,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://example.org","encrypted_index":"i"}}}

data: {"type":"content_block_delta","index":5,"delta":{"type":"text_delta","text":"Found."}}

data: {"type":"content_block_stop","index":5}

data: {"type":"content_block_start","index":6,"content_block":{"type":"tool_use","id":"toolu_1","name":"weather","input":{},"caller":{"type":"direct"}}}

data: {"type":"content_block_delta","index":6,"delta":{"type":"input_json_delta","partial_json":"{\"city\": \"Par"}}

data: {"type":"content_block_delta","index":6,"delta":{"type":"input_json_delta","partial_json":"is\"}"}}

data: {"type":"content_block_stop","index":6}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use","container":{"id":"container_1"}},"usage":{"output_tokens":9}}

data: {"type":"message_stop"}

"#;

fn reply_of(stream: &str) -> ModelReply {
    ModelReply::decode(stream.as_bytes(), Dialect::Anthropic, DecodeOptions::default())
}

/// The array as it must come back: signatures, redacted thinking, hosted tools, sources and `caller`
/// untouched; the empty text block, which the API itself sends and refuses, is removed.
fn thinking_content() -> Value {
    json!([
        { "type": "thinking", "thinking": "Hmm", "signature": "c2ln" },
        { "type": "redacted_thinking", "data": "AAAA" },
        { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": { "query": "x" } },
        { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
          "content": [{ "type": "web_search_result", "url": "https://example.org", "encrypted_content": "e" }] },
        { "type": "text", "text": "Found.", "citations": [
            { "type": "web_search_result_location", "url": "https://example.org", "encrypted_index": "i" }] },
        { "type": "tool_use", "id": "toolu_1", "name": "weather", "input": { "city": "Paris" },
          "caller": { "type": "direct" } },
    ])
}

#[test]
fn step_is_echoed_verbatim_only_to_its_own_model() {
    let reply = reply_of(THINKING_STREAM);
    let state = reply.provider_state.clone().expect("there is something to echo");
    assert_eq!(
        state.value,
        json!({ "role": "assistant", "content": thinking_content(), "container": "container_1" })
    );

    let calls = vec![(weather("toolu_1", "Paris"), done("sunny"))];
    let mut echoed = step("Found.", calls);
    echoed.provider_state = Some(state);
    let history = |step: &ClosedStep| vec![user("Weather?"), Message::Step(step.clone())];

    let body = sent(&request(history(&echoed))).body;
    assert_eq!(body["messages"][1]["content"], thinking_content());
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "toolu_1");
    assert_eq!(body["container"], "container_1");

    // Another model gets what it can read: no signatures that are not its own.
    echoed.model = "claude-other".into();
    let body = sent(&request(history(&echoed))).body;
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            { "type": "text", "text": "Found." },
            { "type": "tool_use", "id": "toolu_1", "name": "weather", "input": { "city": "Paris" } },
        ])
    );
    assert_eq!(body.get("container"), None);
}

#[test]
fn recorded_calls_override_ids_and_arguments_of_an_echo() {
    let content = json!([
        { "type": "thinking", "thinking": "Hmm", "signature": "c2ln" },
        { "type": "tool_use", "id": "", "name": "weather", "input": {} },
    ]);
    let mut unnamed = weather("x", "Rome");
    unnamed.upstream_id = None;
    let with_state = |calls: Vec<(Call, CallOutcome)>| {
        let step = ClosedStep { provider_state: state(content.clone()), ..step("", calls) };
        sent(&request(vec![user("x"), Message::Step(step)])).body["messages"].clone()
    };
    let messages = with_state(vec![(unnamed, done("1"))]);
    assert_eq!(messages[1]["content"][0]["type"], "thinking");
    assert_eq!(
        messages[1]["content"][1],
        json!({ "type": "tool_use", "id": "c-x", "name": "weather", "input": { "city": "Rome" } })
    );
    assert_eq!(messages[2]["content"][0]["tool_use_id"], "c-x");

    // Calls other than those of the provider state: the reasoning stays, and the recorded calls and results
    // are sent.
    for (calls, types) in [
        (vec![], json!([])),
        (vec![(weather("toolu_9", "Rome"), done("1"))], json!(["thinking", "tool_use"])),
        (vec![(call("a", "other", json!({})), done("1"))], json!(["thinking", "tool_use"])),
    ] {
        let ids: Vec<_> = calls.iter().filter_map(|(call, _)| call.upstream_id.clone()).collect();
        let messages = with_state(calls);
        let blocks = |at: usize| messages[at]["content"].as_array().cloned().unwrap_or_default();
        let sent: Vec<Value> = blocks(1).iter().map(|block| block["type"].clone()).collect();
        assert_eq!(Value::from(sent), types, "{messages:#}");
        let answered: Vec<_> = blocks(2).iter().map(|block| block["tool_use_id"].clone()).collect();
        assert_eq!(answered, ids.iter().map(|id| json!(id)).collect::<Vec<_>>());
    }
}

#[test]
fn truncated_reply_leaves_no_invalid_provider_state() {
    let events: Vec<&str> = THINKING_STREAM.trim().split("\n\n").collect();
    let echoed = |count: usize| {
        let stream: String = events[..count].iter().map(|event| format!("{event}\n\n")).collect();
        reply_of(&stream).provider_state.map(|state| state.value["content"].clone())
    };
    assert_eq!(echoed(3), None, "thinking that is not signed");
    assert_eq!(echoed(6), Some(json!([{ "type": "thinking", "thinking": "Hmm", "signature": "c2ln" }])));
    let unanswered = echoed(12).expect("content");
    assert!(
        !unanswered.to_string().contains("server_tool_use"),
        "a search without its result: {unanswered:#}"
    );
    let answered = echoed(14).expect("content");
    assert!(answered.to_string().contains("server_tool_use"));
}

// --- history of other upstreams ---

#[test]
fn foreign_call_ids_become_valid_and_unique() {
    let foreign = |upstream_id: Option<&str>, ours: &str| {
        let mut call = weather("", "Paris");
        (call.id, call.upstream_id) = (ours.into(), upstream_id.map(Into::into));
        (call, done("sunny"))
    };
    let long = "x".repeat(129);
    let calls = vec![
        foreign(Some("call_1"), "turn.1"),
        foreign(Some("call_1"), "turn.2"),
        foreign(Some("functions.weather:0"), "turn.3"),
        foreign(Some(&long), "turn.4"),
        foreign(None, "turn.5"),
        foreign(None, "turn.5"),
        foreign(None, ""),
    ];
    let mut step = step("", calls);
    step.provider_state =
        Some(ProviderState { dialect: Dialect::OpenaiChat, value: json!({ "content": "x" }) });
    let messages = sent(&request(vec![user("x"), Message::Step(step)])).body["messages"].clone();
    let ids = |message: usize, key: &str| -> Vec<String> {
        let blocks = messages[message]["content"].as_array().expect("an array");
        blocks.iter().map(|block| block[key].as_str().unwrap_or_default().to_owned()).collect()
    };
    let expect = ["call_1", "turn_2", "turn_3", "turn_4", "turn_5", "turn_5-2", "call"];
    assert_eq!(ids(1, "id"), expect);
    assert_eq!(ids(2, "tool_use_id"), expect);
}

#[test]
fn empty_replies_are_dropped_and_user_messages_merged() {
    check(
        vec![user("a"), Message::Step(step(" \n", vec![])), user("b"), user("  "), user("c")],
        json!([{ "role": "user", "content": [
            { "type": "text", "text": "a" }, { "type": "text", "text": "b" }, { "type": "text", "text": "c" } ] }]),
    );
    check(
        vec![Message::Step(step("Hello. \n", vec![]))],
        json!([
            { "role": "user", "content": [
                { "type": "text", "text": "(The beginning of this conversation is not available.)" } ] },
            { "role": "assistant", "content": [{ "type": "text", "text": "Hello. \n" }] },
            { "role": "user", "content": [{ "type": "text",
                "text": "(Continue exactly where your last message ends. Do not repeat any of it.)" }] },
        ]),
    );
}

#[test]
fn user_images_and_files_are_encoded() {
    let file = |name: &str, media_type: &str, data: &str| UserPart::File {
        name: name.into(),
        media: Media::new(media_type.into(), data.into()),
    };
    let parts = || {
        vec![
            UserPart::Image(picture()),
            UserPart::Image(Media::new("image/tiff".into(), "AAAA".into())),
            file("a.pdf", "application/pdf", "JVBERi0="),
            file("a.txt", "text/markdown", "5L2g5aW9"),
            file("a.zip", "application/zip", "UEsDBAAA"),
            file("b.txt", "text/plain", "/w=="),
        ]
    };
    let image = json!({ "type": "image", "source":
        { "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAAN" } });
    let rest = [
        json!({ "type": "text", "text": "[image image/tiff, 1 kB, of a type that models cannot read]" }),
        json!({ "type": "document", "title": "a.pdf", "source":
            { "type": "base64", "media_type": "application/pdf", "data": "JVBERi0=" } }),
        json!({ "type": "document", "title": "a.txt", "source":
            { "type": "text", "media_type": "text/plain", "data": "你好" } }),
        json!({ "type": "text", "text": "a.zip: [application application/zip, 1 kB, sent by the user, which you cannot read]" }),
        json!({ "type": "text", "text": "b.txt: [text text/plain, 1 kB, sent by the user, which you cannot read]" }),
    ];
    let expect = |first: Value| {
        let content: Vec<Value> = std::iter::once(first).chain(rest.clone()).collect();
        json!([{ "role": "user", "content": content }])
    };
    check(vec![Message::User(parts())], expect(image));
    check_with(
        vec![Message::User(parts())],
        &UpstreamProfile { vision: false, ..unmarked() },
        expect(
            json!({ "type": "text", "text": "[image image/png, 1 kB, sent by the user, which you cannot see]" }),
        ),
    );
}

// --- what holds for every history ---

fn any_call() -> impl Strategy<Value = Call> {
    let id = prop_oneof![Just(None), "(call_[0-2]|toolu_[0-9]|a.b|)".prop_map(Some),];
    let arguments = prop_oneof![
        Just(Ok(CallArguments::from_value(json!({ "a": 1 })))),
        Just(Ok(CallArguments::from_value(json!([1])))),
        Just(Err(RawArguments("{\"a".into()))),
    ];
    (id, "(t\\.[0-4]|)", "(f|g)", arguments).prop_map(|(upstream, ours, name, arguments)| Call {
        id: ours.as_str().into(),
        upstream_id: upstream.map(Into::into),
        name: name.as_str().into(),
        kind: CallKind::Function,
        arguments,
        ran_with: None,
    })
}

fn any_outcome() -> impl Strategy<Value = CallOutcome> {
    prop_oneof![
        Just(done("ok")),
        Just(done("")),
        Just(CallOutcome::Done(ToolOutput { media: vec![picture()], ..ToolOutput::default() })),
        Just(CallOutcome::Denied { reason: None }),
        Just(CallOutcome::unknown()),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    let part =
        prop_oneof!["( |hi|\\n)".prop_map(|text| UserPart::Text { text }), Just(UserPart::Image(picture())),];
    let state = prop_oneof![
        Just(None),
        Just(state(json!([{ "type": "thinking", "thinking": "x", "signature": "s" }]))),
        Just(state(json!([{ "type": "tool_use", "id": "call_1", "name": "f", "input": {} }]))),
        Just(state(json!("nonsense"))),
    ];
    let step = ("( |text |)", proptest::collection::vec((any_call(), any_outcome()), 0..4), state).prop_map(
        |(text, calls, provider_state)| Message::Step(ClosedStep { provider_state, ..step(&text, calls) }),
    );
    prop_oneof![proptest::collection::vec(part, 0..3).prop_map(Message::User), step]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Every `tool_use` is answered exactly once, in the message right after it, before anything else.
    #[test]
    fn any_history_is_encoded_validly(messages in proptest::collection::vec(any_message(), 0..6)) {
        let body = sent(&request(messages)).body;
        let sent = body["messages"].as_array().expect("an array");
        let mut used = HashSet::new();
        let mut unanswered: Vec<String> = Vec::new();
        for (at, message) in sent.iter().enumerate() {
            prop_assert_eq!(&message["role"], if at % 2 == 0 { "user" } else { "assistant" });
            let content = message["content"].as_array().expect("an array");
            prop_assert!(!content.is_empty());
            let of_type = |name: &str, key: &str| -> Vec<String> {
                let blocks = content.iter().filter(|block| block["type"] == name);
                blocks.map(|block| block[key].as_str().expect("a text").to_owned()).collect()
            };
            let mut answers = of_type("tool_result", "tool_use_id");
            prop_assert!(content[..answers.len()].iter().all(|block| block["type"] == "tool_result"));
            answers.sort();
            unanswered.sort();
            prop_assert_eq!(&answers, &unanswered);
            unanswered = of_type("tool_use", "id");
            if let Some(last) = content.last() {
                prop_assert!(last["type"] != "thinking");
            }
            for id in &unanswered {
                prop_assert!(!id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
                prop_assert!(used.insert(id.clone()), "{} twice", id);
            }
            for text in of_type("text", "text") {
                prop_assert!(!text.trim().is_empty());
            }
        }
        prop_assert!(unanswered.is_empty());
    }

    /// Prompt caches compare prefixes: what was sent before a step is sent again in front of it.
    #[test]
    fn longer_history_has_the_shorter_one_as_prefix(
        messages in proptest::collection::vec(any_message(), 0..5),
        next in proptest::collection::vec((any_call(), any_outcome()), 1..3),
    ) {
        let mut longer = messages.clone();
        longer.push(user("and?"));
        let before = sent(&request(longer.clone())).body["messages"].clone();
        longer.push(Message::Step(step("more", next)));
        let after = sent(&request(longer)).body["messages"].clone();
        let (before, after) = (before.as_array().expect("an array"), after.as_array().expect("an array"));
        prop_assert_eq!(&after[..before.len()], &before[..]);
    }
}

#[test]
fn long_arguments_use_eager_input_streaming() {
    let number = json!({ "type": "integer" });
    let bound = json!({ "type": "string", "maxLength": 20 });
    let text = json!({ "type": "string" });
    for (schema, is_long) in [
        (json!({ "type": "object" }), false),
        (
            json!({ "type": "object", "properties": { "line": number, "unit": { "enum": ["C", "F"] } } }),
            false,
        ),
        (json!({ "type": "object", "properties": { "name": bound, "string": number } }), false),
        (json!({ "type": "object", "properties": { "path": bound, "content": text } }), true),
        (json!({ "type": "object", "properties": { "edits": { "type": "array", "items": text } } }), true),
        (json!({ "type": "object", "properties": { "note": { "type": ["string", "null"] } } }), true),
    ] {
        let tools = vec![ToolDefinition::new("write", "", schema.clone())];
        let request = ModelRequest { tools, ..request(vec![user("Hi")]) };
        for (eager_arguments, expected) in [(true, is_long), (false, false)] {
            let profile = UpstreamProfile { eager_arguments, ..unmarked() };
            let sent =
                encode(Dialect::Anthropic, &request, &profile, TransferMode::Stream).expect("an encoder");
            assert_eq!(sent.body["tools"][0]["eager_input_streaming"] == true, expected, "{schema}");
        }
    }
}

// --- what a cache may keep ---

/// Everything that is marked, as `messages[1].content[0]`.
fn marked(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("cache_control") {
                found.push(path.to_owned());
            }
            for (name, value) in fields {
                marked(value, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                marked(item, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

fn marks(request: &ModelRequest) -> Vec<String> {
    let body =
        encode(Dialect::Anthropic, request, &UpstreamProfile::default(), TransferMode::Stream).unwrap().body;
    let mut found = Vec::new();
    marked(&body, "", &mut found);
    found.sort();
    found
}

#[test]
fn cache_marks_follow_tools_prompt_turn_and_step() {
    let tool = |name: &str| ToolDefinition::new(name, "", json!({"type": "object"}));
    let first = ModelRequest {
        instructions: Some("Be brief.".into()),
        tools: vec![tool("a"), tool("b")],
        ..request(vec![user("Hi"), Message::Step(step("Hello.", vec![])), user("Weather?")])
    };
    assert_eq!(marks(&first), [".messages[2].content[0]", ".system[0]", ".tools[1]"]);
    let two = vec![(weather("1", "Oslo"), done("rain")), (weather("2", "Rome"), done("sun"))];
    let mut second = first.clone();
    second.messages.push(Message::Step(step("", two)));
    assert_eq!(
        marks(&second),
        [".messages[2].content[0]", ".messages[4].content[1]", ".system[0]", ".tools[1]"],
        "four, and no more are taken"
    );
    assert_eq!(marks(&request(vec![user("Hi")])), [".messages[0].content[0]"]);
    assert!(!sent(&second).body.to_string().contains("cache_control"));
}

/// The marks move on, and the content before them stays the same, or no cache would ever be read.
#[test]
fn each_request_is_a_prefix_of_the_next() {
    let plain = |messages: Vec<Message>| {
        let body =
            encode(Dialect::Anthropic, &request(messages), &UpstreamProfile::default(), TransferMode::Stream)
                .unwrap()
                .body;
        body["messages"].to_string().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
    };
    let mut messages = vec![user("Weather?")];
    let mut before = plain(messages.clone());
    for number in 1..4 {
        messages.push(Message::Step(step("", vec![(weather(&number.to_string(), "Oslo"), done("rain"))])));
        let now = plain(messages.clone());
        assert!(now.starts_with(before.trim_end_matches(']')), "{before}\n{now}");
        before = now;
    }
}
