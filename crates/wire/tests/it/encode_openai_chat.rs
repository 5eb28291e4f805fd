//! Requests to Chat Completions and its compatible servers.

use crate::history::{self, call, closed, denied, done, done_with_picture, request, tool, user};
use serde_json::{Value, json};
use throughline_wire::{
    ClosedStep, Dialect, Message, ModelRequest, ProviderState, RawArguments, ReasoningEcho, ToolChoice,
    ToolDefinition, ToolIdFormat, ToolSchemaForm, TransferMode, UpstreamProfile, encode,
};

fn body(request: &ModelRequest, profile: &UpstreamProfile) -> Value {
    let encoded = encode(Dialect::OpenaiChat, request, profile, TransferMode::Stream).unwrap();
    assert_eq!(encoded.path, "/chat/completions");
    encoded.body
}

fn check(messages: Vec<Message>, profile: &UpstreamProfile, expect: Value) {
    assert_eq!(body(&request("m", messages), profile)["messages"], expect);
}

fn two_calls() -> ClosedStep {
    closed(
        "Looking.",
        vec![
            (call("t-0", Some("call_a"), "f", json!({"a": 1})), done("one")),
            (call("t-1", None, "g", json!({})), denied()),
        ],
    )
}

// "array too long. Expected an array with maximum length 128" (openai/openai-dotnet#317).
#[test]
fn calls_over_the_message_limit_are_split_into_messages() {
    let calls = (0..300).map(|n| (call(&format!("t-{n}"), None, "f", json!({"n": n})), done("one")));
    let step = ClosedStep { thinking: "All of them.".into(), ..closed("Looking.", calls.collect()) };
    let profile =
        UpstreamProfile { reasoning_echo: ReasoningEcho::ReasoningContent, ..UpstreamProfile::default() };
    let body = body(&request("m", vec![user("Look"), Message::Step(step), user("And?")]), &profile);
    let messages = body["messages"].as_array().unwrap();
    let steps: Vec<(usize, &Value, &Value, usize)> = (messages.iter().enumerate())
        .filter(|(_, message)| message["role"] == "assistant")
        .map(|(at, step)| {
            (at, &step["content"], &step["reasoning_content"], step["tool_calls"].as_array().unwrap().len())
        })
        .collect();
    let (words, thought, none, no_thought) =
        (json!("Looking."), json!("All of them."), Value::Null, json!(" "));
    let expected =
        [(1, &words, &thought, 128), (130, &none, &no_thought, 128), (259, &none, &no_thought, 44)];
    assert_eq!(steps, expected);
    for (at, _, _, calls) in steps {
        let ids = messages[at]["tool_calls"].as_array().unwrap().iter().map(|call| &call["id"]);
        let answered = messages[at + 1..=at + calls].iter().map(|result| &result["tool_call_id"]);
        assert!(ids.eq(answered), "each call is answered right after its message");
    }
}

#[test]
fn full_request_is_encoded() {
    let mut request = request("gpt-5-mini", vec![user("Weather?")]);
    request.instructions = Some("Be brief.".into());
    request.tools = vec![tool("get_weather")];
    request.settings.temperature = Some(0.5);
    request.settings.max_output_tokens = Some(100);
    request.settings.extra = json!({"seed": 7}).as_object().unwrap().clone();
    let tools = json!([{"type": "function", "function": {"name": "get_weather",
        "description": "get_weather of a city", "parameters": history::schema()}}]);
    assert_eq!(
        body(&request, &UpstreamProfile::default()),
        json!({
            "model": "gpt-5-mini",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather?"}],
            "tools": tools, "temperature": 0.5, "max_tokens": 100, "stream": true,
            "stream_options": {"include_usage": true}, "seed": 7,
        })
    );
    request.tool_choice = ToolChoice::None;
    assert_eq!(body(&request, &UpstreamProfile::default())["tool_choice"], "none");
    let plain =
        UpstreamProfile { tool_choice_none: false, include_usage: false, ..UpstreamProfile::default() };
    assert!(body(&request, &plain).get("tools").is_none());
    assert!(body(&request, &plain).get("stream_options").is_none());
    let newer = UpstreamProfile { developer_role: true, ..UpstreamProfile::default() };
    assert_eq!(body(&request, &newer)["messages"][0]["role"], "developer");
    assert_eq!(body(&request, &newer)["max_completion_tokens"], 100);
    let whole =
        encode(Dialect::OpenaiChat, &request, &UpstreamProfile::default(), TransferMode::Whole).unwrap();
    assert!(whole.body.get("stream").is_none());
}

#[test]
fn tool_results_directly_follow_their_message() {
    check(
        vec![user("Go."), Message::Step(two_calls()), user("And?")],
        &UpstreamProfile::default(),
        json!([
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": "Looking.", "tool_calls": [
                {"id": "call_a", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
                {"id": "t-1", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_a", "content": "one"},
            {"role": "tool", "tool_call_id": "t-1", "content": denied().model_text()},
            {"role": "user", "content": "And?"},
        ]),
    );
}

#[test]
fn call_ids_are_unique_and_broken_arguments_are_valid_json() {
    let mut broken = call("t-2", Some("call_a"), "f", json!({}));
    broken.arguments = Err(RawArguments("{\"a".into()));
    let steps =
        vec![user("Go."), Message::Step(two_calls()), Message::Step(closed("", vec![(broken, denied())]))];
    let messages = body(&request("m", steps), &UpstreamProfile::default())["messages"].clone();
    assert_eq!(messages[4]["tool_calls"][0]["id"], "t-2", "the same id again would be ambiguous");
    assert_eq!(messages[4]["content"], Value::Null);
    let arguments = messages[4]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), json!({"unreadable_arguments": "{\"a"}));
}

#[test]
fn mistral_call_ids_are_nine_alphanumerics() {
    let nine =
        UpstreamProfile { tool_id_format: ToolIdFormat::NineAlphanumeric, ..UpstreamProfile::default() };
    let messages =
        body(&request("m", vec![user("Go."), Message::Step(two_calls())]), &nine)["messages"].clone();
    for n in 0..2 {
        let id = messages[1]["tool_calls"][n]["id"].as_str().unwrap();
        assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        assert_eq!(messages[2 + n]["tool_call_id"], id);
    }
    let theirs = closed("", vec![(call("t-0", Some("AbCdEf123"), "f", json!({})), done("x"))]);
    let messages = body(&request("m", vec![user("Go."), Message::Step(theirs)]), &nine)["messages"].clone();
    assert_eq!(messages[1]["tool_calls"][0]["id"], "AbCdEf123");
}

#[test]
fn reasoning_is_echoed_in_the_form_of_each_upstream() {
    let thought = |model: &str| {
        let value = json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]});
        let provider_state = Some(ProviderState { dialect: Dialect::OpenaiChat, value });
        Message::Step(ClosedStep {
            thinking: "Hm".into(),
            model: model.into(),
            provider_state,
            ..two_calls()
        })
    };
    let echo = |echo: ReasoningEcho, step: Message| {
        let profile = UpstreamProfile { reasoning_echo: echo, ..UpstreamProfile::default() };
        body(&request("m", vec![user("Go."), step]), &profile)["messages"][1].clone()
    };
    let none = echo(ReasoningEcho::None, thought("m"));
    assert!(none.get("reasoning_content").is_none() && none.get("reasoning").is_none());
    assert_eq!(echo(ReasoningEcho::ReasoningContent, thought("m"))["reasoning_content"], "Hm");
    assert_eq!(echo(ReasoningEcho::ReasoningContent, Message::Step(two_calls()))["reasoning_content"], " ");
    assert_eq!(echo(ReasoningEcho::Reasoning, thought("m"))["reasoning"], "Hm");
    assert_eq!(echo(ReasoningEcho::ReasoningDetails, thought("m"))["reasoning_details"][0]["data"], "x");
    let foreign = echo(ReasoningEcho::ReasoningDetails, thought("another"));
    assert!(foreign.get("reasoning_details").is_none(), "signatures do not survive a change of model");
    assert_eq!(echo(ReasoningEcho::ThinkingParts, thought("m"))["content"][0]["type"], "thinking");
}

#[test]
fn signature_is_echoed_on_its_own_call() {
    let value = json!({"extra_content": [{"id": "call_a", "value": {"google": {"thought_signature": "s"}}}]});
    let provider_state = Some(ProviderState { dialect: Dialect::OpenaiChat, value });
    let step = ClosedStep { model: "m".into(), provider_state, ..two_calls() };
    let messages =
        body(&request("m", vec![user("Go."), Message::Step(step)]), &UpstreamProfile::default())["messages"]
            .clone();
    assert_eq!(messages[1]["tool_calls"][0]["extra_content"]["google"]["thought_signature"], "s");
    assert!(messages[1]["tool_calls"][1].get("extra_content").is_none());
}

#[test]
fn pictures_follow_all_tool_messages_or_become_a_note() {
    let step = closed(
        "",
        vec![
            (call("t-0", Some("a"), "draw", json!({})), done_with_picture("a cat")),
            (call("t-1", Some("b"), "f", json!({})), done("x")),
        ],
    );
    let messages = body(
        &request("m", vec![user("Go."), Message::Step(step.clone())]),
        &UpstreamProfile::default(),
    )["messages"]
        .clone();
    let roles: Vec<_> = messages.as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
    assert!(
        messages[4]["content"][0]["image_url"]["url"].as_str().unwrap().starts_with("data:image/png;base64,")
    );
    let blind = UpstreamProfile { vision: false, ..UpstreamProfile::default() };
    let messages = body(&request("m", vec![user("Go."), Message::Step(step)]), &blind)["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 4);
    assert_eq!(messages[2]["content"], "a cat\n[image image/png, 1 kB, shown to the user]");
}

#[test]
fn prompt_cache_key_is_sent_only_if_supported() {
    let request = ModelRequest { cache_key: Some("conv_1".into()), ..ModelRequest::default() };
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses] {
        let key = |profile: &UpstreamProfile| {
            let body = encode(dialect, &request, profile, TransferMode::Stream).unwrap().body;
            body.get("prompt_cache_key").cloned()
        };
        assert_eq!(key(&UpstreamProfile::default()), None, "servers that do not know it may refuse it");
        assert_eq!(
            key(&UpstreamProfile { prompt_cache_key: true, ..UpstreamProfile::default() }),
            Some(json!("conv_1"))
        );
        let mut chosen = request.clone();
        chosen.settings.extra.insert("prompt_cache_key".into(), json!("mine"));
        let profile = UpstreamProfile { prompt_cache_key: true, ..UpstreamProfile::default() };
        let body = encode(dialect, &chosen, &profile, TransferMode::Stream).unwrap().body;
        assert_eq!(body["prompt_cache_key"], "mine", "whoever names one means it");
    }
}

#[test]
fn strict_follows_the_declaration_except_in_plain_form() {
    let plain = UpstreamProfile { tool_schemas: ToolSchemaForm::Plain, ..UpstreamProfile::default() };
    let lax = UpstreamProfile { strict_tools: false, ..UpstreamProfile::default() };
    for (strict, chat, responses) in
        [(None, None, false), (Some(false), None, false), (Some(true), Some(true), true)]
    {
        let tool = ToolDefinition { strict, ..ToolDefinition::new("look", "", json!({"type": "object"})) };
        let request = ModelRequest { tools: vec![tool], ..request("m", vec![user("Go.")]) };
        let sent = |dialect, profile: &UpstreamProfile| {
            let body = encode(dialect, &request, profile, TransferMode::Stream).unwrap().body;
            let tool = &body["tools"][0];
            tool.get("function").unwrap_or(tool).get("strict").and_then(Value::as_bool)
        };
        let usual = UpstreamProfile::default();
        assert_eq!(sent(Dialect::OpenaiChat, &usual), chat, "{strict:?}");
        assert_eq!(sent(Dialect::OpenaiResponses, &usual), Some(responses), "{strict:?}");
        for without in [&plain, &lax] {
            assert_eq!(sent(Dialect::OpenaiChat, without), None, "{strict:?}");
            assert_eq!(sent(Dialect::OpenaiResponses, without), Some(false), "{strict:?}");
        }
    }
}
