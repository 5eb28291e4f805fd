//! Requests to Cohere and to AWS Bedrock.

use crate::history::{self, call, closed, denied, done, done_with_picture, request, tool, user};
use serde_json::{Value, json};
use throughline_wire::{
    ClosedStep, Dialect, Message, ModelRequest, ProviderState, ToolChoice, TransferMode, UpstreamProfile,
    encode,
};

fn sent(dialect: Dialect, request: &ModelRequest) -> (String, Value) {
    let encoded = encode(dialect, request, &UpstreamProfile::default(), TransferMode::Stream).unwrap();
    (encoded.path, encoded.body)
}

fn two_steps(model: &str) -> ModelRequest {
    let calls = vec![
        (call("t-0", Some("theirs"), "f", json!({"a": 1})), done("one")),
        (call("t-1", None, "g", json!({})), denied()),
    ];
    let step = ClosedStep { thinking: "First f.".into(), ..closed("Looking.", calls) };
    let mut request = request(model, vec![user("go"), Message::Step(step)]);
    request.instructions = Some("Be brief.".into());
    request.tools = vec![tool("f")];
    request.settings.temperature = Some(0.5);
    request.settings.max_output_tokens = Some(100);
    request
}

#[test]
fn cohere_request_has_plans_calls_and_results() {
    let mut request = two_steps("command-a");
    let (path, body) = sent(Dialect::Cohere, &request);
    assert_eq!(path, "/v2/chat");
    let called = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    assert_eq!(
        body,
        json!({
            "model": "command-a",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": "Looking.", "tool_plan": "First f.",
                 "tool_calls": [called("theirs", "f", r#"{"a":1}"#), called("t-1", "g", "{}")]},
                {"role": "tool", "tool_call_id": "theirs", "content": "one"},
                {"role": "tool", "tool_call_id": "t-1", "content": denied().model_text()},
            ],
            "tools": [{"type": "function", "function":
                {"name": "f", "description": "f of a city", "parameters": history::schema()}}],
            "temperature": 0.5, "max_tokens": 100, "stream": true,
        })
    );
    request.tool_choice = ToolChoice::Required;
    assert_eq!(sent(Dialect::Cohere, &request).1["tool_choice"], "REQUIRED");
    request.tool_choice = ToolChoice::None;
    assert_eq!(sent(Dialect::Cohere, &request).1["tool_choice"], "NONE");
    request.tool_choice = ToolChoice::Tool("f".into());
    let forced = sent(Dialect::Cohere, &request).1;
    assert!(
        forced.get("tool_choice").is_none(),
        "one tool cannot be forced there; the prompt says it: {forced}"
    );
    assert!(forced["messages"].to_string().contains("`f`"), "{forced}");
}

#[test]
fn converse_request_has_blocks_and_statuses() {
    let mut request = two_steps("us.anthropic.claude-sonnet-4-5-20250929-v1:0");
    let (path, body) = sent(Dialect::BedrockConverse, &request);
    assert_eq!(path, "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream");
    let tool_use = |id: &str, name: &str, input: Value| json!({"toolUse": {"toolUseId": id, "name": name, "input": input}});
    let result = |id: &str, text: String, status: &str| json!({"toolResult": {"toolUseId": id, "content": [{"text": text}], "status": status}});
    assert_eq!(
        body,
        json!({
            "messages": [
                {"role": "user", "content": [{"text": "go"}]},
                {"role": "assistant", "content": [
                    {"text": "Looking."}, tool_use("theirs", "f", json!({"a": 1})), tool_use("t-1", "g", json!({}))]},
                {"role": "user", "content": [
                    result("theirs", "one".into(), "success"), result("t-1", denied().model_text(), "error")]},
            ],
            "system": [{"text": "Be brief."}],
            "inferenceConfig": {"maxTokens": 100, "temperature": 0.5},
            "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": history::schema()},
                "description": "f of a city"}}]},
        })
    );
    request.tool_choice = ToolChoice::Tool("f".into());
    let choice = sent(Dialect::BedrockConverse, &request).1["toolConfig"]["toolChoice"].clone();
    assert_eq!(choice, json!({"tool": {"name": "f"}}));
    request.tools.clear();
    request.tool_choice = ToolChoice::Auto;
    let kept = sent(Dialect::BedrockConverse, &request).1["toolConfig"]["tools"].clone();
    let names: Vec<&Value> = kept.as_array().unwrap().iter().map(|tool| &tool["toolSpec"]["name"]).collect();
    assert_eq!(names, ["f", "g"], "history that calls needs its tools");
}

#[test]
fn converse_reasoning_and_images_are_sent_back() {
    let mut step = closed("Yes.", vec![(call("t-0", Some("u"), "f", json!({})), done_with_picture("seen"))]);
    let reasoning = json!({"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "sig"}}});
    let content =
        json!([reasoning, {"text": "Yes."}, {"toolUse": {"toolUseId": "u", "name": "f", "input": {}}}]);
    step.model = "m".into();
    step.provider_state = Some(ProviderState {
        dialect: Dialect::BedrockConverse,
        value: json!({"role": "assistant", "content": content}),
    });
    let same = request("m", vec![user("go"), Message::Step(step.clone())]);
    let body = sent(Dialect::BedrockConverse, &same).1;
    assert_eq!(body["messages"][1]["content"], content);
    let result = &body["messages"][2]["content"][0]["toolResult"]["content"];
    assert_eq!((&result[0]["text"], &result[1]["image"]["format"]), (&json!("seen"), &json!("png")));
    let other = request("n", vec![user("go"), Message::Step(step)]);
    let body = sent(Dialect::BedrockConverse, &other).1;
    assert!(!body.to_string().contains("sig"), "another model's: {body}");
}

#[test]
fn bedrock_anthropic_body_omits_model_and_stream() {
    let mut request = two_steps("anthropic.claude-3-5-haiku-20241022-v1:0");
    let state = json!({"content": [{"type": "thinking", "thinking": "Hm", "signature": "sig"},
        {"type": "text", "text": "Looking."}]});
    let model = request.model.clone();
    if let Some(Message::Step(step)) = request.messages.last_mut() {
        step.model = model;
        step.provider_state = Some(ProviderState { dialect: Dialect::BedrockAnthropic, value: state });
    }
    let (path, body) = sent(Dialect::BedrockAnthropic, &request);
    assert_eq!(path, "/model/anthropic.claude-3-5-haiku-20241022-v1%3A0/invoke-with-response-stream");
    assert_eq!(body["anthropic_version"], "bedrock-2023-05-31");
    assert_eq!((body.get("model"), body.get("stream")), (None, None));
    assert_eq!(body["max_tokens"], 100);
    assert!(body["messages"].to_string().contains("\"signature\":\"sig\""), "{body}");
    let whole = encode(Dialect::BedrockAnthropic, &request, &UpstreamProfile::default(), TransferMode::Whole)
        .unwrap();
    assert!(whole.path.ends_with("/invoke"), "{}", whole.path);
}
