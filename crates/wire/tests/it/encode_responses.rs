//! Requests to OpenAI Responses.

use crate::history::{
    self, call, closed, denied, done, done_with_picture, echoed, failed, request, tool, user,
};
use serde_json::{Value, json};
use throughline_wire::{
    CallKind, CallOutcome, ClosedStep, Dialect, Message, ModelRequest, NotStarted, RawArguments, ToolChoice,
    TransferMode, UpstreamProfile, UserPart, encode,
};

fn body(request: &ModelRequest, profile: &UpstreamProfile) -> Value {
    let encoded = encode(Dialect::OpenaiResponses, request, profile, TransferMode::Stream).unwrap();
    assert_eq!(encoded.path, "/responses");
    encoded.body
}

/// The `input` items that a history becomes.
fn check(messages: Vec<Message>, expect: Value) {
    let body = body(&request("m", messages.clone()), &UpstreamProfile::default());
    assert_eq!(history::framed(&messages, &body["input"]), expect);
}

#[test]
fn full_request_is_encoded() {
    let mut request = request("gpt-x", vec![user("Weather in Paris?")]);
    request.instructions = Some("Be brief.".into());
    request.tools = vec![tool("get_weather")];
    request.settings.temperature = Some(0.5);
    request.settings.max_output_tokens = Some(100);
    request.settings.extra = json!({"reasoning": {"effort": "low"}}).as_object().unwrap().clone();
    assert_eq!(
        body(&request, &UpstreamProfile::default()),
        json!({
            "model": "gpt-x",
            "instructions": "Be brief.",
            "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather in Paris?"}]}],
            "tools": [{"type": "function", "name": "get_weather", "description": "get_weather of a city",
                "parameters": history::schema(), "strict": false}],
            "temperature": 0.5,
            "max_output_tokens": 100,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "stream": true,
            "reasoning": {"effort": "low"},
        })
    );
}

#[test]
fn tool_choice_none_lists_but_forbids_tools() {
    let mut request = request("m", vec![user("x")]);
    request.tools = vec![tool("f")];
    request.tool_choice = ToolChoice::None;
    let forbidden = body(&request, &UpstreamProfile::default());
    assert_eq!(
        (&forbidden["tool_choice"], forbidden["tools"].as_array().map(Vec::len)),
        (&json!("none"), Some(1))
    );
    let left_out = body(&request, &UpstreamProfile { tool_choice_none: false, ..UpstreamProfile::default() });
    assert!(left_out.get("tools").is_none() && left_out.get("tool_choice").is_none());
}

#[test]
fn null_in_extra_removes_a_field() {
    let mut request = request("m", vec![user("x")]);
    request.settings.extra.insert("include".into(), Value::Null);
    assert!(body(&request, &UpstreamProfile::default()).get("include").is_none());
    let whole =
        encode(Dialect::OpenaiResponses, &request, &UpstreamProfile::default(), TransferMode::Whole).unwrap();
    assert_eq!(whole.body["stream"], json!(false));
}

#[test]
fn items_are_echoed_without_ids_of_unstored_items() {
    let items = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA", "status": "completed"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "f", "arguments": "{\"a\": 1}", "status": "completed"},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_b", "name": "run", "input": "ls"},
    ]);
    let mut run = call("t-1", Some("call_b"), "run", json!("ls"));
    run.kind = CallKind::Custom;
    run.arguments.as_mut().unwrap().text = "ls".into();
    let step = echoed(
        Dialect::OpenaiResponses,
        "m",
        items,
        closed(
            "Let me look.",
            vec![(call("t-0", Some("call_a"), "f", json!({"a": 1})), done("one")), (run, done("two"))],
        ),
    );
    check(
        vec![Message::Step(step)],
        json!([
            {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
            {"type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
            {"type": "function_call", "call_id": "call_a", "name": "f", "arguments": "{\"a\":1}", "status": "completed"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "custom_tool_call", "call_id": "call_b", "name": "run", "input": "ls"},
            {"type": "function_call_output", "call_id": "call_a", "output": "one"},
            {"type": "custom_tool_call_output", "call_id": "call_b", "output": "two"},
        ]),
    );
}

#[test]
fn unreadable_or_trailing_reasoning_is_not_echoed() {
    let items = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAA"},
    ]);
    check(
        vec![Message::Step(echoed(Dialect::OpenaiResponses, "m", items, closed("Hi", vec![])))],
        json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}]),
    );
}

#[test]
fn foreign_step_is_rebuilt_from_text_and_calls() {
    let rebuilt = json!([
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
        {"type": "function_call", "call_id": "call_a", "name": "f", "arguments": "{\"a\":1}"},
        {"type": "function_call_output", "call_id": "call_a", "output": "one"},
    ]);
    let plain = || closed("Looking.", vec![(call("t-0", Some("call_a"), "f", json!({"a": 1})), done("one"))]);
    let items = |id: &str| json!([{"type": "function_call", "id": "fc_1", "call_id": id, "name": "f", "arguments": "{}"}]);
    // No state, another dialect's, another model's, and one whose calls are not the ledger's.
    check(vec![Message::Step(plain())], rebuilt.clone());
    check(vec![Message::Step(echoed(Dialect::Gemini, "m", json!([]), plain()))], rebuilt.clone());
    check(
        vec![Message::Step(echoed(Dialect::OpenaiResponses, "other", items("call_a"), plain()))],
        rebuilt.clone(),
    );
    check(
        vec![Message::Step(echoed(Dialect::OpenaiResponses, "m", items("call_z"), plain()))],
        rebuilt.clone(),
    );
    check(vec![Message::Step(echoed(Dialect::OpenaiResponses, "m", json!([]), plain()))], rebuilt);
}

#[test]
fn every_outcome_is_an_output_and_arguments_stay_valid() {
    let mut broken = call("t-2", Some("call_c"), "f", json!({}));
    broken.arguments = Err(RawArguments("{\"a".into()));
    let invalid = CallOutcome::NotStarted(NotStarted::InvalidArguments { message: "cut".into() });
    check(
        vec![Message::Step(closed(
            "",
            vec![
                (call("t-0", Some("call_a"), "f", json!({})), denied()),
                (call("t-1", None, "f", json!({})), failed("no route")),
                (broken, invalid.clone()),
            ],
        ))],
        json!([
            {"type": "function_call", "call_id": "call_a", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "t-1", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "call_c", "name": "f", "arguments": "{\"unreadable_arguments\":\"{\\\"a\"}"},
            {"type": "function_call_output", "call_id": "call_a", "output": denied().model_text()},
            {"type": "function_call_output", "call_id": "t-1", "output": "The tool failed: no route."},
            {"type": "function_call_output", "call_id": "call_c", "output": invalid.model_text()},
        ]),
    );
}

#[test]
fn invented_tool_names_are_sanitized() {
    let items = json!([{"type": "function_call", "id": "fc_1", "call_id": "c", "name": "multi_tool_use.parallel", "arguments": "{}"}]);
    let step = closed("", vec![(call("t-0", Some("c"), "multi_tool_use.parallel", json!({})), denied())]);
    let expect = json!([
        {"type": "function_call", "call_id": "c", "name": "multi_tool_use_parallel", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": denied().model_text()},
    ]);
    check(vec![Message::Step(step.clone())], expect.clone());
    check(vec![Message::Step(echoed(Dialect::OpenaiResponses, "m", items, step))], expect);
}

#[test]
fn user_and_tool_media_are_encoded() {
    let parts = vec![
        UserPart::Text { text: "What is this?".into() },
        UserPart::Image(history::picture()),
        UserPart::File { name: "a.pdf".into(), media: history::media("application/pdf", "JVBE") },
        UserPart::File { name: "a.zip".into(), media: history::media("application/zip", "UEsD") },
    ];
    let step = closed("", vec![(call("t-0", Some("c"), "shot", json!({})), done_with_picture("a cat"))]);
    let messages = vec![Message::User(parts), Message::Step(step)];
    check(
        messages.clone(),
        json!([
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
                {"type": "input_text", "text": "a.zip: [application application/zip, 1 kB, sent by the user, which you cannot read]"},
            ]},
            {"type": "function_call", "call_id": "c", "name": "shot", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [
                {"type": "input_text", "text": "a cat"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="},
            ]},
        ]),
    );
    let blind =
        body(&request("m", messages), &UpstreamProfile { vision: false, ..UpstreamProfile::default() })
            .to_string();
    assert!(
        !blind.contains("iVBORw==") && blind.contains("[image image/png, 1 kB, shown to the user]"),
        "{blind}"
    );
}

#[test]
fn every_call_is_answered_exactly_once() {
    history::for_histories(Dialect::OpenaiResponses, |steps: &[ClosedStep], messages| {
        let body = body(&request("m", messages), &UpstreamProfile::default());
        let mut open: Vec<String> = Vec::new();
        let mut answered = 0;
        for item in body["input"].as_array().unwrap() {
            let id = item["call_id"].as_str().map(str::to_owned);
            match item["type"].as_str().unwrap() {
                "function_call" => open.push(id.unwrap()),
                "function_call_output" => {
                    // Answers follow their own step's calls, in their order.
                    assert_eq!(Some(open.remove(0)), id);
                    answered += 1;
                }
                _ => assert!(open.is_empty() || item["type"] != "message" || item["role"] != "user"),
            }
        }
        assert!(open.is_empty(), "unanswered: {open:?}");
        assert_eq!(answered, steps.iter().map(|step| step.calls.len()).sum::<usize>());
    });
}
