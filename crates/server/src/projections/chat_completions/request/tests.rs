//! Requests for chat completions as they come from clients: what is understood, and what is refused by which name.

use super::super::InvalidRequestError;
use super::{
    AccountFields, ApprovalPreference, ChatRequest, DeliveryMode, InputModalities, UploadedFile, UpstreamApi,
    referenced_files,
};
use serde_json::{Value, json};
use throughline::tools::ToolToggle;
use throughline::wire::{
    CallOutcome, ClosedStep, Dialect, Media, Message, ReasoningEcho, ReasoningTarget, ToolChoice,
    UpstreamProfile, UserPart,
};

fn read(body: &Value) -> Result<ChatRequest, InvalidRequestError> {
    read_for(body, InputModalities::default(), None)
}

fn read_for(
    body: &Value,
    senses: InputModalities,
    target: Option<&ReasoningTarget>,
) -> Result<ChatRequest, InvalidRequestError> {
    let file = |id: &str| {
        (id == "file_1").then(|| UploadedFile {
            name: "cat.png".into(),
            media: Media::new("image/png".into(), "aGk=".into()),
        })
    };
    ChatRequest::read(body, &file, senses, target)
}

fn understood(more: Value) -> ChatRequest {
    read(&with(more)).unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

/// A request with further or other fields.
fn with(more: Value) -> Value {
    let mut body = json!({"model": "default", "messages": [{"role": "user", "content": "Hi"}]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn text(text: &str) -> UserPart {
    UserPart::Text { text: text.into() }
}

#[test]
fn minimal_request_gets_defaults() {
    let request = understood(json!({}));
    assert_eq!((request.model.as_str(), request.delivery), ("default", DeliveryMode::Complete));
    assert_eq!((request.transcript.input, request.transcript.history), (vec![text("Hi")], vec![]));
    assert_eq!((request.instructions, request.render, request.approval), (None, None, None));
}

/// A reply that was stopped during its reasoning has no content: the user message before it is still to be
/// answered.
#[test]
fn message_with_only_thinking_is_dropped() {
    for thought in [
        json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]}),
        json!({"role": "assistant", "content": "", "reasoning_content": "Hm."}),
    ] {
        let request = understood(json!({"messages": [{"role": "user", "content": "Well?"}, thought]}));
        assert_eq!((request.transcript.input, request.transcript.history), (vec![text("Well?")], vec![]));
    }
}

fn target(dialect: Dialect, reasoning_echo: ReasoningEcho, model: &str) -> ReasoningTarget {
    let profile = UpstreamProfile { reasoning_echo, ..UpstreamProfile::default() };
    ReasoningTarget::new(dialect, &profile, model)
}

/// The step that the assistant's message is for a model, and the names of what is left out of it.
fn step_for(target: &ReasoningTarget, message: &Value) -> (ClosedStep, Vec<String>) {
    let mut messages = vec![json!({"role": "user", "content": "Well?"}), message.clone()];
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        messages.push(json!({"role": "tool", "tool_call_id": call["id"], "content": "42"}));
    }
    messages.push(json!({"role": "user", "content": "Sure?"}));
    let body = with(json!({"messages": messages}));
    let request = read_for(&body, InputModalities::default(), Some(target)).expect("it is taken");
    let Some(Message::Step(step)) = request.transcript.history.last() else { panic!("{message}") };
    (step.clone(), request.omitted_of_messages)
}

/// Content of an assistant's message as Mistral, Anthropic and others write it, sent back by a client that
/// has used them.
#[test]
fn thinking_parts_are_read_and_unknown_kinds_named() {
    for (content, thinking, text, omitted) in [
        (
            json!([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}, {"type": "text", "text": "."}]},
            {"type": "text", "text": "Yes."}]),
            "Hm.",
            "Yes.",
            &[][..],
        ),
        (
            json!([{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Yes."}]),
            "Hm.",
            "Yes.",
            &["messages.content.thinking.signature"],
        ),
        (
            json!([{"type": "reasoning", "text": "Hm."}, {"type": "output_text", "text": "Yes."}]),
            "Hm.",
            "Yes.",
            &[],
        ),
        (json!([{"type": "refusal", "refusal": "No."}]), "", "No.", &[]),
        (
            json!([{"type": "redacted_thinking", "data": "x"}, {"type": "server-call"}, {"type": "a b"}, {"type": "text", "text": "Yes."}]),
            "",
            "Yes.",
            &["messages.content.redacted_thinking", "messages.content.server-call"],
        ),
    ] {
        let deepseek = target(Dialect::OpenaiChat, ReasoningEcho::ReasoningContent, "m");
        let (step, named) = step_for(&deepseek, &json!({"role": "assistant", "content": content}));
        assert_eq!((step.thinking.as_str(), step.text.as_str()), (thinking, text), "{content}");
        assert_eq!(named, omitted, "{content}");
    }
}

/// The form that the model reads becomes the state that its encoder echoes; the others are named.
#[test]
fn signed_reasoning_goes_to_the_model_that_reads_it() {
    let openrouter = target(Dialect::OpenaiChat, ReasoningEcho::ReasoningDetails, "google/gemini-3-pro");
    let compatible = target(Dialect::OpenaiChat, ReasoningEcho::None, "Gemini-3-pro");
    let openai = target(Dialect::OpenaiChat, ReasoningEcho::None, "gpt");
    let vllm = target(Dialect::OpenaiChat, ReasoningEcho::Reasoning, "qwen");
    let gemini = target(Dialect::Gemini, ReasoningEcho::None, "gemini-3-pro");
    let claude = target(Dialect::Anthropic, ReasoningEcho::None, "claude");
    let bedrock = target(Dialect::BedrockAnthropic, ReasoningEcho::None, "claude");
    let block = json!({"type": "thinking", "thinking": "Hm.", "signature": "s"});
    let text = json!({"type": "text", "text": "Yes."});
    let content = json!([block, text]);
    let detailed = json!({"content": "Yes.", "reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]});
    let plain = json!({"content": "Yes.", "reasoning_content": "Hm."});
    let in_parts = json!({ "content": content });
    let lite = json!({"content": "Yes.", "reasoning_content": "Hm.", "thinking_blocks": [
        {"type": "thinking", "thinking": "Hm.", "signature": "s", "cache_control": null}, {"type": "redacted_thinking", "data": "A"}]});
    let unsigned = json!({"content": [{"type": "thinking", "thinking": "Hm."}, text]});
    let partly =
        json!({"content": "Yes.", "thinking_blocks": [block, {"type": "thinking", "thinking": "Hm."}]});
    let between = json!({"content": [block, text, block, text]});
    let twice = json!({"content": [block, text, block, text], "thinking_blocks": [block, block]});
    let half = json!({"content": [block, {"type": "thinking", "thinking": "Hm."}, text]});
    let mut deep = json!({"type": "reasoning.text"});
    for _ in 0..40 {
        deep = json!({"type": "reasoning.text", "in": deep});
    }
    let with_detail =
        |detail: Value| json!({"content": "Yes.", "reasoning_details": [{"type": "reasoning.text"}, detail]});
    let call = |extra: Value| json!({"content": null, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}]});
    let signed = call(json!({"google": {"thought_signature": "c2ln"}}));
    let by_id = json!({"thought_signatures": {"a": "c2ln"}});
    let on_call = json!({"extra_content": [{"id": "a", "value": {"google": {"thought_signature": "c2ln"}}}]});
    let details = json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]});
    let blocks = json!({ "role": "assistant", "content": content });
    let lite_blocks =
        json!({"role": "assistant", "content": [block, {"type": "redacted_thinking", "data": "A"}, text]});
    for (target, message, state, named) in [
        (&openrouter, &detailed, Some(&details), &[][..]),
        (&openai, &detailed, None, &["messages.reasoning", "messages.reasoning_details"]),
        (&claude, &detailed, None, &["messages.reasoning", "messages.reasoning_details"]),
        (&vllm, &detailed, None, &["messages.reasoning_details"]),
        (&vllm, &plain, None, &[]),
        (&openrouter, &plain, None, &["messages.reasoning_content"]),
        (&gemini, &plain, None, &["messages.reasoning_content"]),
        (&claude, &in_parts, Some(&blocks), &[]),
        (&bedrock, &in_parts, Some(&blocks), &[]),
        (&vllm, &in_parts, None, &["messages.content.thinking.signature"]),
        (&gemini, &in_parts, None, &["messages.content.thinking"]),
        (&claude, &unsigned, None, &["messages.content.thinking"]),
        (&claude, &partly, None, &["messages.thinking_blocks"]),
        (&claude, &between, None, &["messages.content.thinking"]),
        (&claude, &twice, None, &["messages.content.thinking", "messages.thinking_blocks"]),
        (&claude, &half, None, &["messages.content.thinking"]),
        (&openrouter, &with_detail(json!(null)), None, &["messages.reasoning_details"]),
        (&openrouter, &with_detail(json!({"type": "thinking"})), None, &["messages.reasoning_details"]),
        (&openrouter, &with_detail(deep), None, &["messages.reasoning_details"]),
        (&claude, &lite, Some(&lite_blocks), &[]),
        (&vllm, &lite, None, &["messages.thinking_blocks"]),
        (&gemini, &signed, Some(&by_id), &[]),
        (&compatible, &signed, Some(&on_call), &[]),
        (&openrouter, &signed, None, &["messages.tool_calls.extra_content"]),
        (&claude, &signed, None, &["messages.tool_calls.extra_content"]),
        (
            &gemini,
            &call(json!({"google": {"thought_signature": ""}})),
            None,
            &["messages.tool_calls.extra_content"],
        ),
        (
            &gemini,
            &call(json!({"google": {"thought_signature": "abc!"}})),
            None,
            &["messages.tool_calls.extra_content"],
        ),
        (&gemini, &call(json!({"other": 1})), None, &["messages.tool_calls.extra_content"]),
        (&gemini, &call(json!({})), None, &[]),
    ] {
        let mut message = message.clone();
        message["role"] = "assistant".into();
        let (step, omitted) = step_for(target, &message);
        let of_target = step.provider_state.as_ref().map(|state| &state.value);
        assert_eq!((of_target, step.model.as_str()), (state, target.model()), "{target:?}: {message}");
        assert_eq!(omitted, named, "{target:?}: {message}");
    }
}

#[test]
fn codes_are_stripped_from_text_and_provider_state() {
    let claude = target(Dialect::Anthropic, ReasoningEcho::None, "claude");
    let code = format!("tlq_{}", "ab".repeat(16));
    let said = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": format!("May I? {code}")}]});
    let body = with(json!({"messages": [said, {"role": "user", "content": "Hi"}]}));
    let mut request = read_for(&body, InputModalities::default(), Some(&claude)).unwrap();
    let shown = |request: &ChatRequest| serde_json::to_string(&request.transcript.history).unwrap();
    assert_eq!(shown(&request).matches(&code).count(), 2, "as text, and in the state");
    request.strip_codes();
    assert!(!shown(&request).contains(&code), "{}", shown(&request));
}

/// The question would be a different one without it.
#[test]
fn unknown_user_part_is_rejected_with_the_known_kinds() {
    let part = json!({"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}});
    let refusal = read(&with(json!({"messages": [{"role": "user", "content": [part]}]}))).unwrap_err();
    assert_eq!((refusal.code, refusal.param.as_str()), ("unsupported", "messages[0].content[0].type"));
    for kind in ["`text`", "`image_url`", "`input_audio`", "`file`"] {
        assert!(refusal.message.contains(kind), "{}", refusal.message);
    }
    assert!(refusal.remedy.is_some());
}

#[test]
fn unread_message_fields_are_named_except_echoes() {
    let message = json!({
        "role": "assistant", "content": "Yes.", "id": "msg_1", "name": "x", "index": 0, "status": "completed", "parsed": {"a": 1},
        "refusal": "No.", "annotations": [{}], "audio": {"id": "a"}, "prefix": true, "a b": 1,
        "images": [], "usage": {}, "logprobs": null, "weight": 0, "note": "",
        "tool_calls": [{"id": "a", "index": 0, "type": "function", "function": {"name": "f"}, "caller": "x"}],
    });
    let openai = target(Dialect::OpenaiChat, ReasoningEcho::None, "gpt");
    let (_, named) = step_for(&openai, &message);
    let named: Vec<_> = named.iter().map(|name| name.trim_start_matches("messages.")).collect();
    assert_eq!(named, ["annotations", "audio", "prefix", "refusal", "tool_calls.caller"]);
    let refused = json!({"role": "assistant", "content": "", "refusal": "No."});
    let (step, named) = step_for(&openai, &refused);
    assert_eq!((step.text.as_str(), named), ("No.", vec![]));
    let other_roles = understood(json!({"messages": [
        {"role": "system", "content": "Be short.", "cache_control": {"type": "ephemeral"}},
        {"role": "user", "content": "Hi", "createdAt": 7},
    ]}));
    assert_eq!(other_roles.omitted_of_messages, ["messages.cache_control", "messages.createdAt"]);
    // A header has its limits.
    let mut many = json!({"role": "user", "content": "Hi"});
    for n in 0..1_000 {
        many[format!("{n}-{}", "x".repeat(50))] = 1.into();
    }
    assert_eq!(understood(json!({"messages": [many]})).omitted_of_messages.len(), 16);
}

#[test]
fn instructions_are_joined_and_calls_paired_with_results() {
    let request = understood(json!({"messages": [
        {"role": "system", "content": "One."},
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
        {"role": "developer", "content": [{"type": "text", "text": "Two."}]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}},
            {"id": "b", "type": "function", "function": {"name": "weather", "arguments": "{broken"}},
        ]},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "sun"}]},
        {"role": "tool", "tool_call_id": "a", "content": "rain"},
        {"role": "assistant", "content": "Rain and sun. ![image](data:image/png;base64,aGk=) So it is."},
        {"role": "user", "content": "Thanks"},
    ]}));
    assert_eq!(request.instructions.as_deref(), Some("One.\n\nTwo."));
    assert_eq!(request.transcript.input, [text("Thanks")]);
    assert_eq!(request.transcript.tool_results, []);
    let [Message::User(asked), Message::Step(calls), Message::Step(said)] =
        request.transcript.history.as_slice()
    else {
        panic!("{:?}", request.transcript.history)
    };
    assert_eq!(asked, &[text("Weather?")]);
    let pairs: Vec<_> = calls
        .calls
        .iter()
        .map(|(call, outcome)| {
            let CallOutcome::Done(output) = outcome else { panic!("{outcome:?}") };
            (call.id.as_str(), call.arguments.is_ok(), output.text.as_str())
        })
        .collect();
    assert_eq!(pairs, [("a", true, "rain"), ("b", false, "sun")]);
    assert_eq!(said.text, "Rain and sun. [image] So it is.");
}

#[test]
fn trailing_tool_results_are_separated_from_input() {
    let call = json!({"role": "assistant", "content": "", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "42"});
    let user = json!({"role": "user", "content": "Hi"});
    for (messages, input) in [
        (json!([user, call, result]), vec![]),
        (json!([user, call, result, {"role": "user", "content": "and then?"}]), vec![text("and then?")]),
    ] {
        let talk = understood(json!({"messages": messages})).transcript;
        assert_eq!((talk.tool_results.len(), talk.input), (1, input));
        assert_eq!((talk.tool_results[0].0.as_str(), talk.tool_results[0].1.text.as_str()), ("a", "42"));
    }
}

#[test]
fn images_and_files_become_input_parts() {
    let parts = |content: Value| {
        understood(json!({"messages": [{"role": "user", "content": content}]})).transcript.input
    };
    let picture = Media::new("image/png".into(), "aGk=".into());
    for url in [
        json!({"url": "data:image/png;base64,aGk=", "detail": "low"}),
        json!("data:image/png;base64,aGk="),
        json!({"url": "file_1"}),
        json!({"file_id": "file_1"}),
        json!({"url": "http://127.0.0.1:8787/v1/files/file_1/content"}),
    ] {
        let content = json!([{"type": "image_url", "image_url": url}]);
        assert_eq!(parts(content.clone()), [UserPart::Image(picture.clone())], "{content}");
        let wanted = referenced_files(&json!({"messages": [{"content": content}]}));
        assert_eq!(wanted.is_empty(), url.to_string().contains("data:"), "{url}: {wanted:?}");
    }
    assert_eq!(parts(json!([{"type": "file", "file": {"file_id": "file_1"}}])), [UserPart::Image(picture)]);
    let text_file = Media::new("text/plain".into(), "aGk=".into());
    assert_eq!(
        parts(
            json!([{"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}}])
        ),
        [UserPart::File { name: "a.txt".into(), media: text_file }]
    );
}

#[test]
fn throughline_fields_are_read() {
    let request = understood(json!({
        "stream": true, "stream_options": {"include_usage": true}, "some_future_field": 1,
        "throughline": {"render": "owui_event", "conversation_id": "conv_1", "approval": "deny"},
    }));
    assert_eq!(request.render, throughline::config::ToolRendering::from_name("owui_event"));
    assert_eq!(
        (request.conversation_id.as_deref(), request.approval),
        (Some("conv_1"), Some(ApprovalPreference::Deny))
    );
    assert_eq!(request.delivery, DeliveryMode::Stream);
}

#[test]
fn invalid_and_unsupported_fields_are_rejected_by_name() {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    let call = json!({"role": "assistant", "tool_calls": [
        {"id": "a", "function": {"name": "f", "arguments": "{}"}}, {"id": "b", "function": {"name": "f", "arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "1"});
    for (more, code, param) in [
        (json!({"model": null}), "invalid_request", "model"),
        (json!({"messages": []}), "invalid_request", "messages"),
        (json!({"messages": [{"role": "robot", "content": "x"}]}), "invalid_request", "messages[0].role"),
        (
            json!({"messages": [{"role": "function", "name": "f", "content": "x"}]}),
            "unsupported",
            "messages[0].role",
        ),
        (json!({"messages": [result]}), "orphan_result", "messages[0]"),
        (json!({"messages": [call, result]}), "missing_results", "messages[0]"),
        (json!({"messages": [call, result, result]}), "second_result", "messages[2].tool_call_id"),
        (
            user(json!([{"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}])),
            "remote_image",
            "messages[0].content[0].image_url.url",
        ),
        (
            user(json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}])),
            "invalid_request",
            "messages[0].content[0].image_url.url",
        ),
        (
            user(json!([{"type": "file", "file": {"file_id": "file_2"}}])),
            "invalid_request",
            "messages[0].content[0].file.file_id",
        ),
        (
            user(json!([{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}])),
            "unsupported",
            "messages[0].content[0].input_audio",
        ),
        (json!({"n": 2}), "unsupported", "n"),
        (json!({"stream": "yes"}), "invalid_request", "stream"),
        (json!({"max_tokens": -2}), "invalid_request", "max_tokens"),
        (json!({"max_tokens": 1.5}), "invalid_request", "max_tokens"),
        (json!({"temperature": "hot"}), "invalid_request", "temperature"),
        (json!({"modalities": ["text", "audio"]}), "unsupported", "modalities"),
        (json!({"functions": [{"name": "f"}]}), "unsupported", "functions"),
        (json!({"function_call": {"name": "f"}}), "unsupported", "function_call"),
        (json!({"tools": [{"type": "custom", "custom": {"name": "x"}}]}), "unsupported", "tools[0].type"),
        (json!({"tools": [tool("a b")]}), "invalid_request", "tools[0].function.name"),
        (json!({"tools": [tool("a"), tool("a")]}), "invalid_request", "tools"),
        (json!({"tool_choice": "required"}), "invalid_request", "tool_choice"),
        (json!({"tools": [tool("a")], "tool_choice": "maybe"}), "invalid_request", "tool_choice"),
        (
            json!({"tools": [tool("a")], "tool_choice": {"type": "function", "function": {"name": "b"}}}),
            "invalid_request",
            "tool_choice.function.name",
        ),
        (
            json!({"tools": [tool("a")], "tool_choice": {"type": "custom", "custom": {"name": "a"}}}),
            "unsupported",
            "tool_choice.type",
        ),
        (json!({"throughline": {"tools": "off"}}), "invalid_request", "throughline.tools"),
        (
            json!({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}]}),
            "unsupported",
            "messages[0].content[0].type",
        ),
        (json!({"response_format": {"type": "grammar"}}), "unsupported", "response_format.type"),
        (json!({"throughline": {"render": "blink"}}), "invalid_request", "throughline.render"),
        (json!({"throughline": {"approval": "maybe"}}), "invalid_request", "throughline.approval"),
    ] {
        let refusal = read(&with(more.clone())).expect_err(&more.to_string());
        assert_eq!((refusal.code, refusal.param.as_str()), (code, param), "{more}: {}", refusal.message);
    }
    let missing = read(&with(json!({"messages": [call, result]}))).unwrap_err();
    assert!(missing.message.contains("`b`") && !missing.message.contains("`a`"), "{}", missing.message);
}

#[test]
fn tool_choice_none_offers_no_client_tools() {
    let tools =
        json!([{"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}]);
    let request = understood(json!({"tools": tools}));
    assert_eq!(
        (request.tools[0].name.as_str(), &request.tools[0].parameters),
        ("clock", &json!({"type": "object"}))
    );
    let none = understood(json!({"tools": tools, "tool_choice": "none"}));
    assert_eq!((none.tools.as_slice(), none.server_tools), ([].as_slice(), ToolToggle::Off));
    let off = understood(json!({"tools": tools, "throughline": {"tools": false}}));
    assert_eq!((off.tools.len(), off.server_tools), (1, ToolToggle::Off));
}

/// Forms that frameworks send: with and without a type, and in the form of either API.
#[test]
fn tool_choice_is_read_in_every_form() {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    let named = ToolChoice::Tool("b".into());
    let allowed =
        |mode: &str| json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [tool("b")]}});
    let all = &["a", "b"][..];
    for (choice, expected, tools, server_tools) in [
        (json!("auto"), ToolChoice::Auto, all, ToolToggle::On),
        (json!("required"), ToolChoice::Required, all, ToolToggle::On),
        (tool("b"), named.clone(), all, ToolToggle::On),
        (json!({"function": {"name": "b"}}), named.clone(), all, ToolToggle::On),
        (json!({"type": "function", "name": "b"}), named, all, ToolToggle::On),
        (allowed("auto"), ToolChoice::Auto, &["b"], ToolToggle::Off),
        (allowed("required"), ToolChoice::Required, &["b"], ToolToggle::Off),
        (
            json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "b"}]}),
            ToolChoice::Auto,
            &["b"],
            ToolToggle::Off,
        ),
    ] {
        let request = understood(json!({"tools": [tool("a"), tool("b")], "tool_choice": choice}));
        let names: Vec<_> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            (request.tool_choice, names.as_slice(), request.server_tools),
            (expected, tools, server_tools),
            "{choice}"
        );
    }
}

/// Defaults that clients write out, and behavior of other servers.
#[test]
fn explicit_default_values_are_accepted() {
    let tokens =
        |more: Value| understood(more).sampling.settings(api(Dialect::OpenaiChat)).unwrap().max_output_tokens;
    for (more, expected) in [
        (json!({"max_tokens": -1}), None),
        (json!({"max_tokens": 0}), None),
        (json!({"max_tokens": -1.0}), None),
        (json!({"max_tokens": 100.0}), Some(100)),
        (json!({"max_completion_tokens": 7}), Some(7)),
    ] {
        assert_eq!(tokens(more.clone()), expected, "{more}");
    }
    for more in [
        json!({"n": 1}),
        json!({"n": 1.0}),
        json!({"functions": []}),
        json!({"functions": [], "function_call": "auto"}),
        json!({"function_call": "none"}),
    ] {
        assert_eq!(understood(more).transcript.input, [text("Hi")]);
    }
    let only_system = understood(json!({"messages": [
        {"role": "system", "content": "Be short."}, {"role": "system", "content": "Sum up: a, b."}]}));
    assert_eq!(only_system.transcript.input, [text("Sum up: a, b.")]);
    assert_eq!(only_system.instructions.as_deref(), Some("Be short."));
}

#[test]
fn tool_results_accept_images_and_arguments_objects() {
    let picture = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}});
    let request = understood(json!({"messages": [
        {"role": "user", "content": "Draw"},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "draw", "arguments": {"what": "cat"}}}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "Here:"}, picture]},
    ]}));
    let Message::Step(step) = &request.transcript.history[1] else {
        panic!("{:?}", request.transcript.history)
    };
    let (call, CallOutcome::Done(output)) = &step.calls[0] else { panic!("{step:?}") };
    assert_eq!(call.arguments.as_ref().unwrap().value, json!({"what": "cat"}));
    assert_eq!(
        (output.text.as_str(), output.media.as_slice()),
        ("Here:", [Media::new("image/png".into(), "aGk=".into())].as_slice())
    );
}

/// The server looks nothing up; an upstream that does is given the address.
#[test]
fn image_urls_and_audio_require_upstream_support() {
    let said = |part: Value, senses| {
        let body = with(json!({"messages": [{"role": "user", "content": [part]}]}));
        read_for(&body, senses, None).map(|request| request.transcript.input)
    };
    let address = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let fetches = InputModalities { image_urls: true, ..InputModalities::default() };
    let url = "https://example.com/cat.png?size=2";
    assert_eq!(
        said(address(url), fetches).unwrap(),
        [UserPart::Image(Media::from_url("image/png".into(), url.into()))]
    );
    assert_eq!(said(address(url), InputModalities::default()).unwrap_err().code, "remote_image");
    for inside in [
        "http://example.com/cat.png",
        "https://localhost/cat.png",
        "https://127.0.0.1/cat.png",
        "https://[::1]/cat.png",
        "https://2130706433/cat.png",
        "https://router.local/cat.png",
        "https://metadata.google.internal/",
        "https://intranet/cat.png",
        "https://a:b@example.com/cat.png",
        "file:///etc/passwd",
        "ftp://example.com/cat.png",
        "cat.png",
    ] {
        assert_eq!(said(address(inside), fetches).unwrap_err().code, "remote_image", "{inside}");
    }
    let sound = json!({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}});
    let hears = InputModalities { audio: true, ..InputModalities::default() };
    assert_eq!(
        said(sound, hears).unwrap(),
        [UserPart::File { name: "sound.mp3".into(), media: Media::new("audio/mpeg".into(), "aGk=".into()) }]
    );
}

/// An answer that silently is another one is worse than none.
#[test]
fn unsent_fields_are_named_per_dialect() {
    let request = understood(json!({
        "seed": 7, "reasoning_effort": "low", "parallel_tool_calls": false, "top_p": 1, "logprobs": true, "top_logprobs": 3,
        "top_k": 40, "prediction": null, "user": null, "store": false, "metadata": {}, "stream": false, "x y": 1,
    }));
    assert_eq!(request.unknown_fields, ["logprobs", "top_logprobs", "top_k"]);
    for (dialect, expected) in [
        (Dialect::OpenaiChat, &[][..]),
        (Dialect::OpenaiResponses, &["seed"]),
        (Dialect::Anthropic, &["seed", "reasoning_effort"]),
        (Dialect::Gemini, &["reasoning_effort", "parallel_tool_calls"]),
        (Dialect::Ollama, &["reasoning_effort", "parallel_tool_calls"]),
        (Dialect::Cohere, &["reasoning_effort", "parallel_tool_calls"]),
        (Dialect::BedrockConverse, &["seed", "reasoning_effort", "parallel_tool_calls"]),
        (Dialect::BedrockAnthropic, &["seed", "reasoning_effort"]),
    ] {
        let mut left_out = request.sampling.ignored_fields(api(dialect));
        left_out.sort_unstable_by_key(|name| expected.iter().position(|known| known == name));
        assert_eq!(left_out, expected, "{dialect}");
    }
}

/// OpenAI's fields about the request are sent to OpenAI, and not to other servers with its dialect.
#[test]
fn account_fields_reach_openai_and_are_named_elsewhere() {
    let account = json!({
        "metadata": {"team": "x"}, "store": true, "service_tier": "flex", "safety_identifier": "u1", "user": "ada",
        "prompt_cache_key": "k", "prompt_cache_retention": "24h",
    });
    let request = understood(account.clone());
    assert!(request.unknown_fields.is_empty());
    let names: Vec<&str> = account.as_object().unwrap().keys().map(String::as_str).collect();
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses] {
        let openai = UpstreamApi { dialect, account_fields: AccountFields::Sent };
        assert_eq!(Value::Object(request.sampling.settings(openai).unwrap().extra), account, "{dialect}");
        assert!(request.sampling.ignored_fields(openai).is_empty(), "{dialect}");
    }
    for dialect in Dialect::ALL {
        assert!(request.sampling.settings(api(dialect)).unwrap().extra.is_empty(), "{dialect}");
        assert_eq!(request.sampling.ignored_fields(api(dialect)), names, "{dialect}");
    }
}

/// A function with `strict` is sent with it, if the upstream supports that; other members of a tool are
/// reported.
#[test]
fn tool_fields_are_forwarded_or_named() {
    let tool = |more: Value| {
        let mut function = json!({"name": "look", "parameters": {"type": "object"}});
        function.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": "function", "function": function})
    };
    for (more, strict) in [
        (json!({}), None),
        (json!({"strict": null}), None),
        (json!({"strict": false}), Some(false)),
        (json!({"strict": true}), Some(true)),
    ] {
        let request = understood(json!({"tools": [tool(more.clone())]}));
        assert_eq!(request.tools[0].strict, strict, "{more}");
        assert!(request.omitted_of_tools.is_empty(), "{more}");
        for dialect in Dialect::ALL {
            let sends_it = matches!(dialect, Dialect::OpenaiChat | Dialect::OpenaiResponses);
            let is_named = request.ignored_fields(api(dialect)) == ["tools.function.strict"];
            assert_eq!(is_named, strict == Some(true) && !sends_it, "{dialect}: {more}");
        }
    }
    let mut marked = tool(json!({"examples": [{}], "deferred": false}));
    marked["cache_control"] = json!({"type": "ephemeral"});
    let request = understood(json!({"tools": [marked]}));
    assert_eq!(request.omitted_of_tools, ["tools.cache_control", "tools.function.examples"]);
}

/// An upstream that is not OpenAI itself.
fn api(dialect: Dialect) -> UpstreamApi {
    UpstreamApi { dialect, account_fields: AccountFields::Omitted }
}

/// The requested limit, in the field of each upstream.
#[test]
fn sampling_is_forwarded_or_rejected_per_dialect() {
    let all = json!({
        "temperature": 0.5, "max_tokens": 100, "max_completion_tokens": 50, "top_p": 0.9, "seed": 7, "stop": "END",
        "presence_penalty": 0.1, "user": "ada",
    });
    let schema = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}});
    let settings = |more: &Value, dialect| understood(more.clone()).sampling.settings(api(dialect));
    for (dialect, extra) in [
        (Dialect::OpenaiChat, json!({"top_p": 0.9, "seed": 7, "presence_penalty": 0.1, "stop": "END"})),
        (Dialect::Anthropic, json!({"top_p": 0.9, "stop_sequences": ["END"]})),
        (
            Dialect::Gemini,
            json!({"generationConfig": {
            "topP": 0.9, "seed": 7, "presencePenalty": 0.1, "stopSequences": ["END"]}}),
        ),
        (
            Dialect::Ollama,
            json!({"options": {"top_p": 0.9, "seed": 7, "presence_penalty": 0.1, "stop": ["END"]}}),
        ),
        (Dialect::Cohere, json!({"p": 0.9, "seed": 7, "presence_penalty": 0.1, "stop_sequences": ["END"]})),
        (Dialect::BedrockConverse, json!({"inferenceConfig": {"topP": 0.9, "stopSequences": ["END"]}})),
        (Dialect::BedrockAnthropic, json!({"top_p": 0.9, "stop_sequences": ["END"]})),
    ] {
        let settings = settings(&all, dialect).unwrap();
        assert_eq!((settings.temperature, settings.max_output_tokens), (Some(0.5), Some(50)), "{dialect:?}");
        assert_eq!(Value::Object(settings.extra), extra, "{dialect:?}");
    }
    let form = json!({"response_format": schema});
    for (dialect, extra) in [
        (Dialect::OpenaiChat, form.clone()),
        (
            Dialect::OpenaiResponses,
            json!({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}}}}),
        ),
        (
            Dialect::Gemini,
            json!({"generationConfig": {
            "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}}),
        ),
        (Dialect::Ollama, json!({"format": {"type": "object"}})),
        (
            Dialect::Cohere,
            json!({"response_format": {"type": "json_object", "json_schema": {"type": "object"}}}),
        ),
        (
            Dialect::Anthropic,
            json!({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}),
        ),
    ] {
        assert_eq!(Value::Object(settings(&form, dialect).unwrap().extra), extra, "{dialect:?}");
    }
    for (more, dialect, param) in [
        (json!({"stop": ["END"]}), Dialect::OpenaiResponses, "stop"),
        (json!({"logit_bias": {"1": 2}}), Dialect::Gemini, "logit_bias"),
        (json!({"logit_bias": {"1": 2}}), Dialect::Cohere, "logit_bias"),
        (form.clone(), Dialect::BedrockConverse, "response_format"),
        (form.clone(), Dialect::BedrockAnthropic, "response_format"),
    ] {
        assert_eq!(settings(&more, dialect).unwrap_err().param, param, "{dialect:?}");
    }
    // What changes nothing is no reason to refuse.
    let plain = json!({"response_format": {"type": "text"}, "parallel_tool_calls": true, "logit_bias": null});
    assert!(settings(&plain, Dialect::Anthropic).unwrap().extra.is_empty());
    // A sentence for upstreams without a field.
    let any_json = understood(json!({"response_format": {"type": "json_object"}})).sampling;
    for dialect in [Dialect::Anthropic, Dialect::BedrockConverse, Dialect::BedrockAnthropic] {
        assert!(any_json.settings(api(dialect)).unwrap().extra.is_empty());
        assert!(any_json.json_instruction(dialect).unwrap().contains("one JSON object"));
    }
    assert_eq!(any_json.json_instruction(Dialect::OpenaiChat), None);
}
