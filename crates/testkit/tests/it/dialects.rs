//! Each dialect's bytes against ones written by hand from the providers' recordings, and each dialect's refusals.

use crate::client::{self, Over, hello, path, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use throughline_testkit::parsed_request::{ParsedMessage, ParsedToolChoice};
use throughline_testkit::{
    CallIdRule, CallMove, FakeDialect, FakeUpstream, FakeUpstreamHandle, ModelScript, ReasoningEchoRule,
    ReceivedRequest, ScriptFinish, ScriptMove, ScriptQueue, UpstreamBehavior,
};

async fn mock() -> FakeUpstreamHandle {
    FakeUpstream::start(ScriptQueue::new([ModelScript::new().say("ok")])).await.expect("starts")
}

/// A thought, a text, two calls: one whole, one whose fragments are named.
fn script() -> ModelScript {
    ModelScript::new().think("Hm.").say("Hi all").then(ScriptMove::Call(CallMove {
        name: "f".into(),
        arguments: Some(json!({"a": 1})),
        id: Some("call_1".into()),
        fragment_chars: Some(3),
    }))
}

async fn body(dialect: FakeDialect, script: ModelScript, request: Value) -> String {
    let upstream = FakeUpstream::start(ScriptQueue::new([script])).await.expect("starts");
    let reply = post(&upstream, &path(dialect, "mock"), &request).await;
    assert_eq!((reply.status, reply.over), (200, Over::Whole), "{}", reply.text());
    reply.text()
}

/// The parts must occur in this order.
fn check(body: &str, parts: &[&str]) {
    let mut rest = body;
    for part in parts {
        let at =
            rest.find(part).unwrap_or_else(|| panic!("{part}\nis missing, or not in its place, in\n{body}"));
        rest = &rest[at + part.len()..];
    }
}

#[tokio::test]
async fn chat_completions_stream_matches_the_wire_format() {
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": true,
        "stream_options": {"include_usage": true}});
    let body = body(FakeDialect::OpenaiChat, script(), request).await;
    check(
        &body,
        &[
            "data: {\"id\":\"chatcmpl-",
            "\"object\":\"chat.completion.chunk\",\"created\":1763683200,\"model\":\"m\"",
            "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n",
            "\"delta\":{\"reasoning_content\":\"Hm\"}",
            "\"delta\":{\"content\":\"Hi\"}",
            "\"delta\":{\"content\":\" all\"}",
            "\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}",
            "\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\"}}]}",
            "\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\":1\"}}]}",
            "\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]}",
            "\"delta\":{},\"logprobs\":null,\"finish_reason\":\"tool_calls\"}]",
            "\"choices\":[],\"usage\":{\"prompt_tokens\":",
            "\"reasoning_tokens\":2",
            "data: [DONE]\n\n",
        ],
    );
    assert_eq!(body.matches("\"role\"").count(), 1, "the role is sent once");
}

#[tokio::test]
async fn usage_is_sent_only_if_requested() {
    let body = body(FakeDialect::OpenaiChat, script(), hello(FakeDialect::OpenaiChat)).await;
    assert!(!body.contains("usage"));
}

#[tokio::test]
async fn parallel_call_fragments_are_interleaved() {
    let calls =
        ["f", "g"].map(|name| CallMove { fragment_chars: Some(4), ..CallMove::new(name, json!({"a": 1})) });
    let body = body(
        FakeDialect::OpenaiChat,
        ModelScript::new().then(ScriptMove::Parallel(calls.into())),
        hello(FakeDialect::OpenaiChat),
    );
    check(
        &body.await,
        &[
            "\"index\":0,\"id\":\"call_",
            "\"index\":1,\"id\":\"call_",
            "\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\"\"}",
            "\"index\":1,\"function\":{\"arguments\":\"{\\\"a\\\"\"}",
            "\"index\":0,\"function\":{\"arguments\":\":1}\"}",
            "\"index\":1,\"function\":{\"arguments\":\":1}\"}",
        ],
    );
}

#[tokio::test]
async fn responses_stream_matches_the_wire_format() {
    let body = body(FakeDialect::OpenaiResponses, script(), hello(FakeDialect::OpenaiResponses)).await;
    check(
        &body,
        &[
            "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_",
            "event: response.in_progress\n",
            "event: response.output_item.added\n",
            "\"output_index\":0,\"item\":{\"id\":\"rs_",
            "\"type\":\"reasoning\",\"summary\":[]}}",
            "event: response.reasoning_summary_part.added\n",
            "event: response.reasoning_summary_text.delta\n",
            "\"delta\":\"Hm\"",
            "event: response.reasoning_summary_text.done\n",
            "event: response.reasoning_summary_part.done\n",
            "event: response.output_item.done\n",
            "\"encrypted_content\":\"",
            "event: response.output_item.added\n",
            "\"output_index\":1,\"item\":{\"id\":\"msg_",
            "event: response.content_part.added\n",
            "\"content_index\":0,\"part\":{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"\"}",
            "event: response.output_text.delta\n",
            "\"delta\":\"Hi\",\"logprobs\":[]}",
            "event: response.output_text.done\n",
            "\"text\":\"Hi all\"",
            "event: response.content_part.done\n",
            "event: response.output_item.done\n",
            "\"output_index\":2,\"item\":{\"id\":\"fc_",
            "\"type\":\"function_call\",\"status\":\"in_progress\",\"arguments\":\"\",\"call_id\":\"call_1\",\"name\":\"f\"}",
            "event: response.function_call_arguments.delta\n",
            "\"delta\":\"{\\\"a\"",
            "event: response.function_call_arguments.done\n",
            "\"arguments\":\"{\\\"a\\\":1}\"",
            "event: response.output_item.done\n",
            "event: response.completed\n",
            "\"status\":\"completed\"",
            "\"output\":[{\"id\":\"rs_",
        ],
    );
    assert!(!body.contains("[DONE]"));
    let events: Vec<Value> = body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["sequence_number"].as_u64()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>(), "dense from 0");
    let count = |name: &str| events.iter().filter(|event| event["type"] == name).count();
    assert_eq!((count("response.output_item.added"), count("response.output_item.done")), (3, 3));
}

#[tokio::test]
async fn response_cut_by_length_is_incomplete() {
    let script = ModelScript::new().say("Hi").then(ScriptMove::Finish(ScriptFinish::Length));
    let body = body(FakeDialect::OpenaiResponses, script, hello(FakeDialect::OpenaiResponses)).await;
    check(
        &body,
        &["event: response.incomplete\n", "\"incomplete_details\":{\"reason\":\"max_output_tokens\"}"],
    );
}

#[tokio::test]
async fn anthropic_stream_matches_the_wire_format() {
    let body = body(FakeDialect::Anthropic, script(), hello(FakeDialect::Anthropic)).await;
    check(
        &body,
        &[
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"mock\",\"id\":\"msg_01",
            "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Hm\"}}\n\n",
            "{\"type\":\"signature_delta\",\"signature\":\"Eq",
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
            "{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}",
            "{\"type\":\"text_delta\",\"text\":\" all\"}",
            "{\"type\":\"content_block_stop\",\"index\":1}",
            "{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"f\",\"input\":{}}}",
            "\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}",
            "\"index\":2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\"}",
            "{\"type\":\"content_block_stop\",\"index\":2}",
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{\"input_tokens\":",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ],
    );
}

#[tokio::test]
async fn gemini_streams_as_events_or_as_an_array() {
    let body = body(FakeDialect::Gemini, script(), hello(FakeDialect::Gemini)).await;
    check(
        &body,
        &[
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hm\",\"thought\":true}],\"role\":\"model\"},\"index\":0}]",
            "{\"parts\":[{\"text\":\"Hi\"}],\"role\":\"model\"}",
            "{\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{\"a\":1},\"id\":\"call_1\"},\"thoughtSignature\":\"Eq",
            "\"finishReason\":\"STOP\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":",
            "\"thoughtsTokenCount\":2",
        ],
    );
    let upstream = FakeUpstream::start(ScriptQueue::new([script()])).await.expect("starts");
    let reply = post(&upstream, "/v1beta/models/m:streamGenerateContent", &hello(FakeDialect::Gemini)).await;
    assert!(reply.head.contains("application/json"), "{}", reply.head);
    assert_eq!(
        reply.json().as_array().map(Vec::len),
        Some(6),
        "two of the thought, two texts, a call, the finish"
    );
    let reply =
        post(&upstream, "/v1beta/models/tuned%2Fm:generateContent", &hello(FakeDialect::Gemini)).await.json();
    assert_eq!(reply["candidates"][0]["content"]["parts"][2]["functionCall"]["name"], "f");
    assert_eq!(upstream.requests()[1].model, "tuned/m");
}

#[tokio::test]
async fn gemini_never_sends_broken_arguments() {
    let script = ModelScript::new().call("f", "{\"a\":".into());
    let body = body(FakeDialect::Gemini, script, hello(FakeDialect::Gemini)).await;
    assert!(!body.contains("\"functionCall\""), "{body}");
    check(
        &body,
        &["\"content\":{},\"finishReason\":\"MALFORMED_FUNCTION_CALL\"", "Malformed function call: f({"],
    );
}

#[tokio::test]
async fn ollama_stream_matches_the_wire_format() {
    let body = body(FakeDialect::Ollama, script(), hello(FakeDialect::Ollama)).await;
    check(
        &body,
        &[
            "{\"model\":\"mock\",\"created_at\":\"",
            "\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"Hm\"},\"done\":false}\n",
            "\"message\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"done\":false}\n",
            "\"tool_calls\":[{\"id\":\"call_1\",\"function\":{\"index\":0,\"name\":\"f\",\"arguments\":{\"a\":1}}}]},\"done\":false}\n",
            "\"done\":true,\"done_reason\":\"stop\",\"total_duration\":",
            "\"prompt_eval_count\":",
        ],
    );
}

/// One body if no stream was requested; the same content.
#[tokio::test]
async fn whole_bodies_have_the_streamed_content() {
    for (dialect, text, call, finish) in [
        (
            FakeDialect::OpenaiChat,
            "/choices/0/message/content",
            "/choices/0/message/tool_calls/0/function/name",
            "/choices/0/finish_reason",
        ),
        (FakeDialect::OpenaiResponses, "/output/1/content/0/text", "/output/2/name", "/status"),
        (FakeDialect::Anthropic, "/content/1/text", "/content/2/name", "/stop_reason"),
        (FakeDialect::Ollama, "/message/content", "/message/tool_calls/0/function/name", "/done_reason"),
    ] {
        let upstream = FakeUpstream::start(ScriptQueue::new([script()])).await.expect("starts");
        let mut request = hello(dialect);
        request["stream"] = false.into();
        let reply = post(&upstream, &path(dialect, "mock"), &request).await.json();
        assert_eq!(reply.pointer(text), Some(&"Hi all".into()), "{dialect}: {reply}");
        assert_eq!(reply.pointer(call), Some(&"f".into()), "{dialect}: {reply}");
        assert!(reply.pointer(finish).is_some_and(Value::is_string), "{dialect}: {reply}");
    }
}

/// Ids are the provider's in shape, and no two calls of an upstream share one.
#[tokio::test]
async fn call_ids_have_the_provider_prefix_and_are_unique() {
    for (dialect, prefix) in [
        (FakeDialect::OpenaiChat, "call_"),
        (FakeDialect::Anthropic, "toolu_01"),
        (FakeDialect::OpenaiResponses, "call_"),
    ] {
        let script = ModelScript::new().call("f", json!({})).call("f", json!({}));
        let upstream = FakeUpstream::start(ScriptQueue::new([script])).await.expect("starts");
        let mut ids = std::collections::HashSet::new();
        for _ in 0..3 {
            let reply = post(&upstream, &path(dialect, "mock"), &hello(dialect)).await;
            for call in client::talk::read(dialect, &reply).calls {
                assert!(call.id.starts_with(prefix), "{}", call.id);
                ids.insert(call.id);
            }
        }
        assert_eq!(ids.len(), 6, "{dialect}");
    }
}

async fn refused(upstream: &FakeUpstreamHandle, dialect: FakeDialect, body: Value) -> (u16, String) {
    let reply = post(upstream, &path(dialect, "gemini-3-pro"), &body).await;
    if reply.status == 200 {
        return (200, String::new());
    }
    let json = reply.json();
    let message = match dialect {
        FakeDialect::Ollama => &json["error"],
        _ => &json["error"]["message"],
    };
    (reply.status, message.as_str().unwrap_or_default().to_owned())
}

/// Each row: a path and a value to put into a legal request, and words of the refusal.
async fn check_refusals(dialect: FakeDialect, legal: &Value, rows: &[(&str, Value, &str)]) {
    let upstream = mock().await;
    let (status, message) = refused(&upstream, dialect, legal.clone()).await;
    assert_eq!((status, message.as_str()), (200, ""), "{dialect}: the legal request");
    for (i, (pointer, value, words)) in rows.iter().enumerate() {
        let mut body = legal.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        let parent = body.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        match (parent, value) {
            (Value::Object(map), Value::Null) => drop(map.remove(key)),
            (Value::Object(map), value) => drop(map.insert(key.to_owned(), value.clone())),
            (Value::Array(list), Value::Null) => drop(list.remove(key.parse().expect("an index"))),
            (Value::Array(list), value) => list[key.parse::<usize>().expect("an index")] = value.clone(),
            _ => panic!("{pointer}"),
        }
        let (status, message) = refused(&upstream, dialect, body).await;
        assert!((400..500).contains(&status), "{pointer} <- {value}: accepted");
        assert!(message.contains(words), "{pointer} <- {value}: {message}");
        let violations = upstream.violations();
        assert_eq!((violations.len(), violations[i].message.as_str()), (i + 1, message.as_str()));
        assert_eq!(violations[i].dialect, dialect);
    }
}

#[tokio::test]
async fn chat_completions_rejects_invalid_requests() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let legal = json!({
        "model": "m", "stream": true, "tool_choice": "auto",
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
        "messages": [
            {"role": "system", "content": "be brief"}, {"role": "user", "content": "x"},
            {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
            {"role": "tool", "tool_call_id": "a", "content": "1"}, {"role": "tool", "tool_call_id": "b", "content": "2"},
            {"role": "assistant", "content": "done"}, {"role": "user", "content": "y"},
        ],
    });
    check_refusals(
        FakeDialect::OpenaiChat,
        &legal,
        &[
            ("/foo", 1.into(), "Unrecognized request argument supplied: foo"),
            ("/model", Value::Null, "Missing required parameter: 'model'."),
            ("/messages", json!([]), "Invalid 'messages': empty array."),
            ("/messages/3", Value::Null, "did not have response messages: a"),
            ("/messages/3", json!({"role": "user", "content": "z"}), "did not have response messages: a, b"),
            ("/messages/4/tool_call_id", "a".into(), "'a' has been answered already"),
            ("/messages/4/tool_call_id", "c".into(), "must be a response to a preceeding message with 'tool_calls'"),
            ("/messages/2", json!({"role": "assistant", "content": "no calls"}), "must be a response to a preceeding"),
            ("/messages/2/tool_calls", json!([]), "Invalid 'messages[2].tool_calls': empty array."),
            ("/messages/2/tool_calls", (0..129).map(|n| call(&n.to_string())).collect(), "Invalid 'messages[2].tool_calls': array too long. Expected an array with maximum length 128, but got an array with length 129 instead."),
            ("/messages/2/tool_calls/1/id", "a".into(), "ids must be unique"),
            ("/messages/2/tool_calls/0/function/arguments", json!({}), "Invalid 'messages[2].tool_calls[0].function.arguments': expected a string, but got an object"),
            ("/messages/2/tool_calls/0/function/name", "a.b".into(), "does not match pattern"),
            ("/messages/2/tool_calls/0/type", Value::Null, "Missing required parameter: 'messages[2].tool_calls[0].type'."),
            ("/messages/3/content", Value::Null, "Missing required parameter: 'messages[3].content'."),
            ("/messages/1/content", json!([{"type": "image_url", "image_url": {"url": "x"}}]), "Expected a valid URL"),
            ("/messages/1/role", "bot".into(), "'bot' is not one of"),
            ("/messages/1/extra", 1.into(), "Unknown parameter: 'messages[1].extra'."),
            ("/tools", json!([]), "Invalid 'tools': empty array."),
            ("/tools", Value::Null, "'tool_choice' is only allowed when 'tools' are specified"),
            ("/tools/0/function/parameters", json!({"type": "string"}), "schema must be"),
            ("/tool_choice", "maybe".into(), "'maybe' is not one of"),
            ("/stream_options", json!({"usage": true}), "Unknown parameter: 'stream_options.usage'."),
        ],
    )
    .await;
}

#[tokio::test]
async fn habits_of_compatible_servers_are_enforced() {
    let behavior = UpstreamBehavior {
        call_ids: CallIdRule::Mistral,
        reasoning: ReasoningEchoRule::Required,
        ..UpstreamBehavior::default()
    };
    let upstream = FakeUpstream::with_behavior(behavior)
        .serve(ScriptQueue::new([ModelScript::new()]))
        .await
        .expect("starts");
    let body = |id: &str| {
        json!({"model": "m", "messages": [{"role": "user", "content": "x"},
            {"role": "assistant", "content": "", "reasoning_content": "", "tool_calls":
                [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": id, "content": "1"}]})
    };
    assert_eq!(refused(&upstream, FakeDialect::OpenaiChat, body("abcDEF123")).await.0, 200);
    let long = refused(&upstream, FakeDialect::OpenaiChat, body("call_1")).await;
    assert!(
        long.1.contains("Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."),
        "{long:?}"
    );
    let minted = FakeUpstream::with_behavior(behavior)
        .serve(ScriptQueue::new([ModelScript::new().call("f", json!({}))]))
        .await
        .expect("starts");
    let reply = post(&minted, "/v1/chat/completions", &hello(FakeDialect::OpenaiChat)).await;
    assert_eq!(client::talk::read(FakeDialect::OpenaiChat, &reply).calls[0].id.len(), 9);
    let mut silent = body("abcDEF123");
    silent["messages"][1]["reasoning_content"] = Value::Null;
    let silent = refused(&upstream, FakeDialect::OpenaiChat, silent).await;
    assert!(
        silent.1.contains("Missing `reasoning_content` field in the assistant message at message index 1"),
        "{silent:?}"
    );
}

/// Rules of known upstreams of Chat Completions, each by a request that it refuses and that OpenAI takes.
#[test]
fn known_upstreams_reject_unsupported_requests() {
    let user = |content: Value| json!({"role": "user", "content": content});
    let words = |text: &str| json!([{"type": "text", "text": text}]);
    let call = json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls":
        [{"id": "abcDEF123", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let result = json!({"role": "tool", "tool_call_id": "abcDEF123", "content": "1"});
    let answer = json!({"role": "assistant", "content": "Done."});
    let talk = |messages: Value| json!({"model": "m", "messages": messages});
    let user_after_result = talk(json!([user("x".into()), call, result, user("y".into())]));
    let mut streamed = talk(json!([user("x".into())]));
    streamed["stream"] = true.into();
    streamed["stream_options"] = json!({"include_usage": true});
    let forcing = |choice: &str, thinking: Value| {
        let mut body = talk(json!([user("x".into())]));
        let function = json!({"name": "f", "parameters": {"type": "object", "properties": {}}});
        body["tools"] = json!([{"type": "function", "function": function}]);
        body["tool_choice"] = match choice {
            "f" => json!({"type": "function", "function": {"name": "f"}}),
            choice => choice.into(),
        };
        body.as_object_mut().expect("an object").extend(thinking.as_object().expect("an object").clone());
        body
    };
    let thinking = json!({"thinking": {"type": "enabled"}});
    for (name, body, words) in [
        ("deepseek", talk(json!([user(words("x"))])), "invalid type: sequence, expected a string"),
        (
            "deepseek",
            talk(json!([user("x".into()), call, result, answer, user("y".into())])),
            "The `reasoning_content` in the thinking mode must be passed back",
        ),
        ("moonshot", talk(json!([user(" ".into())])), "must not be empty"),
        ("mistral", user_after_result.clone(), "Unexpected role 'user'"),
        ("mistral", talk(json!([user("x".into()), answer])), "Expected last role User or Tool"),
        ("mistral", streamed, "extra_forbidden"),
        ("llama.cpp", talk(json!([user("x".into()), user("y".into())])), "Conversation roles must alternate"),
        ("vllm", talk(json!([answer, user("y".into())])), "Conversation roles must alternate"),
        (
            "dashscope",
            forcing("required", json!({"enable_thinking": true})),
            "does not support being set to required or object in thinking mode",
        ),
        ("deepseek", forcing("f", thinking.clone()), "Thinking mode does not support this tool_choice"),
        (
            "moonshot",
            forcing("required", thinking.clone()),
            "tool_choice 'required' is incompatible with thinking enabled",
        ),
        ("moonshot", forcing("f", thinking), "tool_choice 'specified' is incompatible with thinking enabled"),
        ("zhipu", forcing("required", json!({})), "Tool choice must be auto"),
        ("zhipu", forcing("none", json!({})), "Tool choice must be auto"),
        ("devstral", user_after_result, "must alternate user and assistant roles except for tool calls"),
    ] {
        let request = ReceivedRequest {
            path: "/v1/chat/completions".to_owned(),
            body: body.to_string().into_bytes(),
            ..ReceivedRequest::default()
        };
        let refusal = FakeDialect::OpenaiChat.read(&request, &UpstreamBehavior::of(name)).expect_err(name);
        assert!(refusal.contains(words), "{name}: {refusal}");
        FakeDialect::OpenaiChat.read(&request, &UpstreamBehavior::of("openai")).expect(name);
    }
}

/// Claude accepts the reasoning of the turn where it may think: older models only if thinking is requested,
/// newer ones unless it is off.
#[test]
fn thinking_blocks_are_rejected_if_thinking_is_off() {
    let body = |thinking: Value, question: bool| {
        let thought = json!({"type": "redacted_thinking", "data": "EqoBCkgIARABGAIiQEmwK0h5cG8="});
        let mut messages = json!([
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": [thought, {"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]},
        ]);
        if question {
            let messages = messages.as_array_mut().expect("a list");
            messages.push(json!({"role": "assistant", "content": "Done."}));
            messages.push(json!({"role": "user", "content": "y"}));
        }
        let tools = json!([{"name": "f", "input_schema": {"type": "object"}}]);
        let mut body = json!({"model": "m", "max_tokens": 2000, "messages": messages, "tools": tools});
        if !thinking.is_null() {
            body["thinking"] = thinking;
        }
        body
    };
    let enabled = json!({"type": "enabled", "budget_tokens": 1024});
    for (name, thinking, question, is_refused) in [
        ("anthropic", json!(null), false, false),
        ("anthropic", json!({"type": "adaptive"}), false, false),
        ("anthropic", json!({"type": "disabled"}), false, true),
        ("anthropic", json!({"type": "disabled"}), true, false),
        ("claude-4.5", json!(null), false, true),
        ("claude-4.5", json!(null), true, false),
        ("claude-4.5", enabled, false, false),
    ] {
        let request = ReceivedRequest {
            path: path(FakeDialect::Anthropic, "m"),
            headers: vec![("anthropic-version".to_owned(), "2023-06-01".to_owned())],
            body: body(thinking.clone(), question).to_string().into_bytes(),
            ..ReceivedRequest::default()
        };
        let read = FakeDialect::Anthropic.read(&request, &UpstreamBehavior::of(name));
        let words =
            "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position";
        let refusal = read.err().unwrap_or_default();
        assert_eq!(refusal.contains(words), is_refused, "{name} {thinking}: {refusal}");
        assert_eq!(refusal.is_empty(), !is_refused, "{name} {thinking}: {refusal}");
    }
}

/// Pictures that are one too many, or too large in bytes or pixels, each next to a legal one.
#[test]
fn images_over_the_limits_are_rejected() {
    let png = |width: u32| {
        let header = [b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR", &width.to_be_bytes()[..], b"\0\0\0\x0A"].concat();
        BASE64.encode(header)
    };
    let of_bytes = |length: usize| "A".repeat(length);
    let claude = |pictures: &[String]| {
        let blocks = pictures.iter().map(|data| {
            let source = json!({"type": "base64", "media_type": "image/png", "data": data});
            json!({"type": "image", "source": source})
        });
        json!({"max_tokens": 9, "messages": [{"role": "user", "content": blocks.collect::<Vec<_>>()}]})
    };
    let most = 5 * 1024 * 1024;
    let too_large = "image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes";
    let too_wide = "At least one of the image dimensions exceed max allowed size: 8000 pixels";
    let too_wide_for_many =
        "At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels";
    let [anthropic, invoke, converse] =
        [FakeDialect::Anthropic, FakeDialect::BedrockAnthropic, FakeDialect::BedrockConverse];
    let many_with = |width| [vec![png(2_000); 20], vec![png(width)]].concat();
    let large = |count| vec![of_bytes(most); count];
    for (dialects, taken, refused, words) in [
        (
            &[anthropic, invoke][..],
            vec![png(10); 100],
            vec![png(10); 101],
            "too many images and documents: 101 + 0 > 100",
        ),
        (&[anthropic, invoke, converse], large(1), vec![of_bytes(most + 4)], too_large),
        (&[anthropic, invoke, converse], vec![png(8_000)], vec![png(8_001)], too_wide),
        (&[anthropic, invoke, converse], many_with(2_000), many_with(2_001), too_wide_for_many),
        (&[anthropic, invoke, converse], vec![png(2_001); 20], vec![png(2_001); 21], too_wide_for_many),
        (&[anthropic], large(6), large(7), "Request exceeds the maximum size"),
        (&[invoke], large(4), large(5), "Member must have length less than or equal to 25000000"),
        (&[converse], large(4), large(5), "Input is too long for requested model."),
    ] {
        for dialect in dialects {
            let read = |pictures: &[String]| {
                let body = match dialect {
                    FakeDialect::BedrockConverse => {
                        let image = |data| json!({"image": {"format": "png", "source": {"bytes": data}}});
                        let content: Vec<Value> = pictures.iter().map(image).collect();
                        json!({"messages": [{"role": "user", "content": content}]})
                    }
                    FakeDialect::BedrockAnthropic => {
                        let mut body = claude(pictures);
                        body["anthropic_version"] = "bedrock-2023-05-31".into();
                        body
                    }
                    _ => {
                        let mut body = claude(pictures);
                        body["model"] = "m".into();
                        body
                    }
                };
                let request = ReceivedRequest {
                    path: path(*dialect, "claude"),
                    headers: vec![("anthropic-version".to_owned(), "2023-06-01".to_owned())],
                    body: body.to_string().into_bytes(),
                    ..ReceivedRequest::default()
                };
                dialect.read(&request, &UpstreamBehavior::default())
            };
            read(&taken).unwrap();
            let refusal = read(&refused).unwrap_err();
            assert!(refusal.contains(words), "{dialect}: {refusal}");
        }
    }
}

/// Lists of tools that are one too long.
#[test]
fn too_many_tools_are_rejected() {
    let tool =
        |nth: usize| json!({"name": format!("f_{nth}"), "parameters": {"type": "object", "properties": {}}});
    let chat = |count| {
        let tools: Vec<Value> =
            (0..count).map(|nth| json!({"type": "function", "function": tool(nth)})).collect();
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools})
    };
    let responses = |count| {
        let tools = (0..count).map(|nth| {
            let mut tool = tool(nth);
            tool["type"] = "function".into();
            tool["strict"] = false.into();
            tool
        });
        json!({"model": "m", "input": "x", "tools": tools.collect::<Vec<_>>()})
    };
    let gemini = |count| {
        let functions: Vec<Value> = (0..count).map(|nth| json!({"name": format!("f_{nth}")})).collect();
        json!({"contents": [{"parts": [{"text": "x"}]}], "tools": [{"functionDeclarations": functions}]})
    };
    let openai =
        "array too long. Expected an array with maximum length 128, but got an array with length 129";
    let google = "At most 512 function declarations can be specified.";
    for (dialect, name, most, body, words) in [
        (FakeDialect::OpenaiChat, "openai", 128, &chat as &dyn Fn(usize) -> Value, openai),
        (FakeDialect::OpenaiResponses, "openai-responses", 128, &responses, openai),
        (FakeDialect::Gemini, "gemini", 512, &gemini, google),
    ] {
        let read = |count| {
            let path = path(dialect, "m");
            let (path, query) = path.split_once('?').unwrap_or((&path, ""));
            let request = ReceivedRequest {
                path: path.to_owned(),
                query: query.to_owned(),
                body: body(count).to_string().into_bytes(),
                ..ReceivedRequest::default()
            };
            dialect.read(&request, &UpstreamBehavior::of(name))
        };
        read(most).unwrap();
        let refusal = read(most + 1).unwrap_err();
        assert!(refusal.contains(words), "{name}: {refusal}");
    }
}

#[tokio::test]
async fn responses_rejects_invalid_requests() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "1"});
    let legal = json!({
        "model": "m", "stream": true, "store": false, "instructions": "be brief",
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": false}],
        "input": [{"role": "user", "content": "x"}, call("a"), call("b"), output("a"), output("b"),
            {"role": "assistant", "content": [{"type": "output_text", "text": "done"}]}, {"role": "user", "content": "y"}],
    });
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "forged"});
    check_refusals(
        FakeDialect::OpenaiResponses,
        &legal,
        &[
            ("/messages", json!([]), "Unknown parameter: 'messages'."),
            ("/input/3", Value::Null, "No tool output found for function call a."),
            ("/input/1", Value::Null, "No tool call found for function call output with call_id a."),
            ("/input/4/call_id", "a".into(), "Duplicate output"),
            ("/input/2/call_id", "a".into(), "Duplicate function call"),
            ("/input/1/id", "call_x".into(), "Expected an ID that begins with 'fc'."),
            ("/input/1/arguments", json!({}), "Invalid 'input[1].arguments': expected a string"),
            ("/input/5", reasoning, "The encrypted content for item rs_1 could not be verified."),
            (
                "/input/5",
                json!({"type": "reasoning", "id": "rs_1", "summary": []}),
                "Item with id 'rs_1' not found. Items are not persisted",
            ),
            (
                "/input/5/content/0/type",
                "input_text".into(),
                "Supported values are: 'output_text' and 'refusal'.",
            ),
            ("/input/5/type", "thought".into(), "'thought'. Supported values are:"),
            (
                "/tools/0",
                json!({"type": "function", "function": {"name": "f"}}),
                "Missing required parameter: 'tools[0].name'.",
            ),
            (
                "/tools/0/strict",
                true.into(),
                "'additionalProperties' is required to be supplied and to be false",
            ),
            ("/previous_response_id", "resp_1".into(), "Previous response with id 'resp_1' not found."),
            ("/max_output_tokens", 1.into(), "Expected a value >= 16"),
        ],
    )
    .await;
}

/// Reasoning is sent back unchanged, directly before the item that it led to.
#[tokio::test]
async fn responses_reasoning_must_be_returned_unchanged() {
    let upstream =
        FakeUpstream::start(ScriptQueue::new([ModelScript::new().think("Hm.").call("f", json!({}))]))
            .await
            .expect("starts");
    let reply = post(&upstream, "/v1/responses", &hello(FakeDialect::OpenaiResponses)).await;
    let items: Vec<Value> = reply
        .events()
        .into_iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"].clone())
        .collect();
    let with = |items: Vec<Value>| {
        let mut request = hello(FakeDialect::OpenaiResponses);
        if let Some(input) = request["input"].as_array_mut() {
            input.extend(items);
            input.push(json!({"type": "function_call_output", "call_id": reply.events().last().expect("completed")["response"]["output"][1]["call_id"], "output": "1"}));
        }
        request
    };
    assert_eq!(refused(&upstream, FakeDialect::OpenaiResponses, with(items.clone())).await.0, 200);
    assert!(
        matches!(&upstream.requests()[1].messages[1], ParsedMessage::Assistant { thinking, .. } if thinking == "Hm.")
    );
    let (reasoning, call) = (items[0].clone(), items[1].clone());
    let swapped = refused(&upstream, FakeDialect::OpenaiResponses, with(vec![call, reasoning.clone()])).await;
    assert!(
        swapped.1.contains("of type 'reasoning' was provided without its required following item"),
        "{swapped:?}"
    );
    let mut forged = items;
    forged[0]["summary"][0]["text"] = "Hm!".into();
    let forged = refused(&upstream, FakeDialect::OpenaiResponses, with(forged)).await;
    assert!(forged.1.contains("could not be verified"), "{forged:?}");
}

#[tokio::test]
async fn anthropic_rejects_invalid_requests() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "1"});
    let legal = json!({
        "model": "m", "max_tokens": 64, "temperature": 1, "stream": true,
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [{"type": "text", "text": "t"}, call("a"), call("b")]},
            {"role": "user", "content": [result("a"), result("b"), {"type": "text", "text": "go on"}]}],
    });
    let text = json!({"type": "text", "text": "first"});
    check_refusals(
        FakeDialect::Anthropic,
        &legal,
        &[
            ("/foo", 1.into(), "foo: Extra inputs are not permitted"),
            ("/max_tokens", Value::Null, "max_tokens: Field required"),
            ("/messages/0/role", "system".into(), "messages: Unexpected role \"system\""),
            ("/messages/0", Value::Null, "first message must use the \"user\" role"),
            (
                "/messages/2/content",
                json!([result("a")]),
                "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: b.",
            ),
            (
                "/messages/2",
                Value::Null,
                "`tool_use` ids were found without `tool_result` blocks immediately after: a",
            ),
            (
                "/messages/2/content",
                json!([result("a"), result("b"), result("c")]),
                "unexpected `tool_use_id` found in `tool_result` blocks: c.",
            ),
            (
                "/messages/2/content",
                json!([result("a"), result("b"), result("b")]),
                "Found multiple `tool_result` blocks with id: b",
            ),
            ("/messages/2/content", json!([text, result("a"), result("b")]), "must come first"),
            (
                "/messages/2/content/0",
                json!({"type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}}]}),
                "all content must be type `text` if `is_error` is true",
            ),
            ("/top_p", 0.5.into(), "`temperature` and `top_p` cannot both be specified"),
            ("/temperature", 1.5.into(), "temperature: range: 0..1"),
            (
                "/messages/1/content/2",
                json!({"type": "redacted_thinking", "data": "EqoBCkgIARABGAIiQEmwK0h5cG8="}),
                "messages.1: The final block in an assistant message cannot be `thinking`.",
            ),
            ("/thinking", json!({"type": "enabled", "budget_tokens": 1024}), "`max_tokens` must be greater than"),
            ("/messages/1/content/2/id", "a".into(), "`tool_use` ids must be unique"),
            (
                "/messages/1/content/2/id",
                "a b".into(),
                "messages.1.content.2.id: String should match pattern",
            ),
            (
                "/messages/1/content/2/input",
                "{}".into(),
                "messages.1.content.2.input: Input should be a valid dictionary",
            ),
            ("/messages/1/content/0/text", "".into(), "text content blocks must be non-empty"),
            (
                "/messages/1/content/0",
                json!({"type": "thinking", "thinking": "Hm.", "signature": "x"}),
                "Invalid `signature` in `thinking` block",
            ),
            (
                "/messages/1/content/0",
                json!({"type": "redacted_thinking", "data": "AAAA"}),
                "Invalid `data` in `redacted_thinking` block",
            ),
            (
                "/messages/0/content",
                json!([call("z")]),
                "`tool_use` blocks are not allowed in `user` messages",
            ),
            (
                "/thinking",
                json!({"type": "enabled", "budget_tokens": 32}),
                "Expected `thinking` or `redacted_thinking`, but found `tool_use`",
            ),
            ("/tools", Value::Null, "must define tools"),
            ("/tools/0/name", "a.b".into(), "does not match pattern"),
            ("/tools/0/parameters", json!({}), "tools.0.parameters: Extra inputs are not permitted"),
            ("/tool_choice", "auto".into(), "expected an object"),
        ],
    )
    .await;
}

#[tokio::test]
async fn gemini_rejects_invalid_requests() {
    let call = |name: &str| json!({"functionCall": {"name": name, "args": {}}, "thoughtSignature": "skip_thought_signature_validator"});
    let response = |name: &str| json!({"functionResponse": {"name": name, "response": {"output": "1"}}});
    let legal = json!({
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}]}],
        "contents": [{"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts": [call("f"), call("g")]},
            {"role": "user", "parts": [response("f"), response("g")]}],
    });
    check_refusals(
        FakeDialect::Gemini,
        &legal,
        &[
            ("/foo", 1.into(), "Unknown name \"foo\": Cannot find field."),
            ("/contents", json!([]), "contents is not specified"),
            ("/contents/2/parts", json!([response("f")]), "number of function response parts is equal to the number of function call parts"),
            ("/contents/2", Value::Null, "number of function response parts is equal"),
            ("/contents/2/parts", json!([{"text": "no"}]), "comes immediately after a function call turn"),
            ("/contents/2/parts", json!([response("g"), response("f")]), "does not follow the order of the calls"),
            ("/contents/2/parts/0/functionResponse/name", "".into(), "Name cannot be empty."),
            ("/contents/2/parts/0/functionResponse/response", "1".into(), "expected an object"),
            ("/contents/1/parts/0/thoughtSignature", Value::Null, "is missing a thought_signature in functionCall parts"),
            ("/contents/1/parts/0/thoughtSignature", "forged".into(), "Corrupted thought signature."),
            ("/contents/1/parts/0/thoughtSignature", "no!".into(), "(TYPE_BYTES), Base64 decoding failed"),
            ("/contents/0/role", "system".into(), "Please use a valid role: user, model."),
            ("/contents/0/role", "model".into(), "Please ensure that function call turn comes immediately after a user turn"),
            ("/contents/0/parts", json!([]), "contents.parts must not be empty."),
            ("/contents/0/parts/0", json!({}), "required oneof field 'data' must have one initialized field"),
            ("/tools/0/functionDeclarations/0/parameters/properties/a/additionalProperties", false.into(), "Unknown name \"additionalProperties\" at 'tools[0].functionDeclarations[0].parameters.properties.a'"),
            ("/tools/0/functionDeclarations/0/name", "1f".into(), "Invalid function name"),
        ],
    )
    .await;
}

#[tokio::test]
async fn ollama_rejects_invalid_requests() {
    let call = |name: &str| json!({"function": {"name": name, "arguments": {}}});
    let legal = json!({
        "model": "m", "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
        "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": [call("f"), call("g")]},
            {"role": "tool", "tool_name": "f", "content": "1"}, {"role": "tool", "tool_name": "g", "content": "2"}],
    });
    check_refusals(
        FakeDialect::Ollama,
        &legal,
        &[
            ("/tool_choice", "auto".into(), "json: unknown field \"tool_choice\""),
            ("/messages/0/content", json!([{"type": "text", "text": "x"}]), "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"),
            ("/messages/1/tool_calls/0/function/arguments", "{}".into(), "of type api.ToolCallFunctionArguments"),
            ("/messages/3", Value::Null, "2 tool calls are followed by 1 tool messages"),
            ("/messages/2/tool_name", "g".into(), "does not match call 1 (\"f\")"),
            ("/messages/1", json!({"role": "assistant", "content": "no"}), "must answer a call of the assistant message right before"),
            ("/messages/0/images", json!(["data:image/png;base64,AA"]), "illegal base64 data"),
            ("/messages/0/role", "bot".into(), "invalid role: bot"),
            ("/think", "much".into(), "invalid think value"),
        ],
    )
    .await;
}

/// The content of a legal request arrives in the same neutral form from every dialect.
#[tokio::test]
async fn requests_of_five_dialects_parse_to_the_same_form() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let requests = [
        (
            FakeDialect::OpenaiChat,
            json!({"model": "m", "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"},
            {"role": "assistant", "content": "A", "tool_calls": [{"id": "i", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
            {"role": "tool", "tool_call_id": "i", "content": "R"}],
            "tools": [{"type": "function", "function": {"name": "f", "description": "D", "parameters": schema}}], "tool_choice": "none"}),
        ),
        (
            FakeDialect::OpenaiResponses,
            json!({"model": "m", "instructions": "S", "input": [{"role": "user", "content": [{"type": "input_text", "text": "U"}]},
            {"role": "assistant", "content": "A"}, {"type": "function_call", "call_id": "i", "name": "f", "arguments": "{\"a\":1}"},
            {"type": "function_call_output", "call_id": "i", "output": "R"}],
            "tools": [{"type": "function", "name": "f", "description": "D", "parameters": schema, "strict": false}], "tool_choice": "none"}),
        ),
        (
            FakeDialect::Anthropic,
            json!({"model": "m", "max_tokens": 1, "system": "S", "messages": [{"role": "user", "content": "U"},
            {"role": "assistant", "content": [{"type": "text", "text": "A"}, {"type": "tool_use", "id": "i", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": [{"type": "text", "text": "R"}]}]}],
            "tools": [{"name": "f", "description": "D", "input_schema": schema}], "tool_choice": {"type": "none"}}),
        ),
        (
            FakeDialect::Gemini,
            json!({"systemInstruction": {"parts": [{"text": "S"}]}, "contents": [{"role": "user", "parts": [{"text": "U"}]},
            {"role": "model", "parts": [{"text": "A"}, {"functionCall": {"id": "i", "name": "f", "args": {"a": 1}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "i", "name": "f", "response": {"output": "R"}}}]}],
            "tools": [{"functionDeclarations": [{"name": "f", "description": "D", "parametersJsonSchema": schema}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
        ),
        (
            FakeDialect::Ollama,
            json!({"model": "m", "stream": false, "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"},
            {"role": "assistant", "content": "A", "tool_calls": [{"id": "i", "function": {"name": "f", "arguments": {"a": 1}}}]},
            {"role": "tool", "tool_name": "f", "content": "R"}],
            "tools": [{"type": "function", "function": {"name": "f", "description": "D", "parameters": schema}}]}),
        ),
    ];
    for (dialect, request) in requests {
        let upstream = mock().await;
        let reply = post(&upstream, &path(dialect, "m"), &request).await;
        assert_eq!(reply.status, 200, "{dialect}: {}", reply.text());
        let seen = upstream.requests().remove(0);
        assert_eq!(
            (seen.model.as_str(), seen.instructions.as_deref(), seen.user_text(), seen.step()),
            ("m", Some("S"), "U", 2),
            "{dialect}"
        );
        let answered = seen.answered_calls();
        let (call, result) = answered[0];
        assert_eq!(
            (call.id.as_str(), call.name.as_str(), &call.arguments),
            ("i", "f", &json!({"a": 1})),
            "{dialect}"
        );
        assert_eq!(
            (result.id.as_str(), result.name.as_str(), result.text.as_str()),
            ("i", "f", "R"),
            "{dialect}"
        );
        assert!(
            matches!(&seen.messages[1], ParsedMessage::Assistant { text, .. } if text == "A"),
            "{dialect}"
        );
        let tool = seen.tool("f").expect("offered");
        assert_eq!((tool.description.as_str(), &tool.parameters), ("D", &schema), "{dialect}");
        let choice =
            if dialect == FakeDialect::Ollama { ParsedToolChoice::Auto } else { ParsedToolChoice::None };
        assert_eq!(seen.tool_choice, choice, "{dialect}");
    }
}
