//! State that an upstream wants back on the next call survives the decoder, and comes back in the next request.

use serde_json::{Value, json};
use throughline_wire::{
    Call, CallArguments, CallOutcome, ClosedStep, DecodeOptions, Dialect, Message, ModelReply, ModelRequest,
    RawArguments, ToolOutput, TransferMode, UpstreamProfile, UserPart, encode,
};

fn decode(dialect: Dialect, events: &[Value]) -> ModelReply {
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ModelReply::decode(body.as_bytes(), dialect, DecodeOptions::default())
}

/// The next request to the same model after this reply, each call answered with `ok`.
fn next(dialect: Dialect, reply: &ModelReply) -> Value {
    let calls = reply.calls.iter().enumerate().map(|(nth, call)| {
        let arguments: Result<CallArguments, RawArguments> = match call.ending.clone() {
            Some(Ok(arguments)) => Ok(arguments),
            Some(Err((_, raw))) => Err(raw),
            None => panic!("a call without an end"),
        };
        let call = Call {
            id: format!("t-{nth}").into(),
            upstream_id: call.upstream_id.clone(),
            name: call.name.clone(),
            kind: call.kind,
            arguments,
            ran_with: None,
        };
        (call, CallOutcome::Done(ToolOutput::text("ok")))
    });
    let step = ClosedStep {
        text: reply.text.clone(),
        thinking: reply.thinking.clone(),
        calls: calls.collect(),
        provider_state: reply.provider_state.clone(),
        model: "gemini-3-m".into(),
    };
    let request = ModelRequest {
        model: "gemini-3-m".into(),
        messages: vec![Message::User(vec![UserPart::Text { text: "Go.".into() }]), Message::Step(step)],
        ..ModelRequest::default()
    };
    encode(dialect, &request, &UpstreamProfile::default(), TransferMode::Stream).unwrap().body
}

fn gemini(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}}]})
}

fn stop(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
}

#[track_caller]
fn check_gemini(events: &[Value], echoed: Value) {
    let reply = decode(Dialect::Gemini, events);
    assert_eq!(next(Dialect::Gemini, &reply)["contents"][1]["parts"], echoed);
}

#[test]
fn gemini_texts_join_but_never_across_a_signature() {
    check_gemini(
        &[
            gemini(json!([{"text": "Hm", "thought": true}])),
            gemini(json!([{"text": ".", "thought": true}])),
            gemini(json!([{"text": "Lo"}])),
            gemini(json!([{"text": "ok"}, {"text": ""}])),
            gemini(json!([{"text": " here", "thoughtSignature": "YQ=="}])),
            gemini(json!([{"text": " and"}])),
            gemini(
                json!([{"functionCall": {"name": "f", "args": {"a": 1}, "id": "x1"}, "thoughtSignature": "Yg=="}]),
            ),
            gemini(json!([{"functionCall": {"name": "g"}}])),
            stop(json!([{"text": "", "thoughtSignature": "Yw=="}])),
        ],
        json!([
            {"text": "Hm.", "thought": true},
            {"text": "Look"},
            {"text": " here", "thoughtSignature": "YQ=="},
            {"text": " and"},
            {"functionCall": {"name": "f", "args": {"a": 1}, "id": "x1"}, "thoughtSignature": "Yg=="},
            {"functionCall": {"name": "g", "args": {}}},
            {"text": "", "thoughtSignature": "Yw=="},
        ]),
    );
}

#[test]
fn gemini_partial_calls_are_echoed_whole_with_signature() {
    check_gemini(
        &[
            gemini(
                json!([{"functionCall": {"name": "f", "willContinue": true}, "thoughtSignature": "YQ=="}]),
            ),
            gemini(
                json!([{"functionCall": {"partialArgs": [{"jsonPath": "$.a[0]", "stringValue": "x", "willContinue": true}],
                "willContinue": true}}]),
            ),
            gemini(json!([{"functionCall": {"partialArgs": [{"jsonPath": "$.a[0]", "stringValue": "y"}],
                "willContinue": true}}])),
            stop(json!([{"functionCall": {}}])),
        ],
        json!([{"functionCall": {"name": "f", "args": {"a": ["xy"]}}, "thoughtSignature": "YQ=="}]),
    );
}

#[test]
fn gemini_provider_parts_are_echoed_verbatim() {
    let parts = json!([
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "YQ=="},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
        {"futurePart": {"x": 1}},
        {"text": "ok"},
    ]);
    let events = [stop(parts.clone())];
    check_gemini(&events, parts);
    let reply = decode(Dialect::Gemini, &events);
    assert_eq!((reply.images.len(), reply.images[0].data()), (1, "iVBORw=="));
    let [hosted] = reply.hosted.as_slice() else { panic!("one tool ran: {:?}", reply.hosted) };
    assert_eq!(hosted.name, "code_execution");
    assert_eq!(hosted.input, Some(json!({"language": "PYTHON", "code": "1"})));
    assert_eq!(hosted.output, Some(json!({"outcome": "OUTCOME_OK", "output": "1"})));
}

#[test]
fn plain_gemini_text_has_no_provider_state() {
    let reply = decode(
        Dialect::Gemini,
        &[gemini(json!([{"text": "Hm", "thought": true}])), stop(json!([{"text": "Hi"}]))],
    );
    assert_eq!(reply.provider_state, None);
    assert_eq!(next(Dialect::Gemini, &reply)["contents"][1]["parts"], json!([{"text": "Hi"}]));
}

#[test]
fn truncated_gemini_call_is_echoed_validly_and_answered() {
    let events = [
        gemini(json!([{"functionCall": {"name": "f", "willContinue": true}, "thoughtSignature": "YQ=="}])),
        gemini(
            json!([{"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x", "willContinue": true}],
            "willContinue": true}}]),
        ),
    ];
    let body = next(Dialect::Gemini, &decode(Dialect::Gemini, &events));
    assert_eq!(
        body["contents"][1]["parts"],
        json!([{"functionCall": {"name": "f", "args": {"unreadable_arguments": "{\"a\":\"x"}}, "thoughtSignature": "YQ=="}])
    );
    assert_eq!(body["contents"][2]["parts"].as_array().map(Vec::len), Some(1));
}

fn item(kind: &str, index: u64, item: Value) -> Value {
    json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item})
}

fn completed(output: Value) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output}})
}

#[track_caller]
fn check_responses(events: &[Value], expect: Value) {
    assert_eq!(
        next(Dialect::OpenaiResponses, &decode(Dialect::OpenaiResponses, events))["input"]
            .as_array()
            .unwrap()[1..],
        expect.as_array().unwrap()[..]
    );
}

#[test]
fn responses_items_are_echoed_in_response_order() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"});
    let message = json!({"type": "message", "id": "m_1", "role": "assistant", "phase": "commentary",
        "content": [{"type": "output_text", "text": "Look", "annotations": []}]});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "f", "arguments": "{\"a\": 1}"});
    let expect = json!([
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"type": "message", "role": "assistant", "phase": "commentary",
            "content": [{"type": "output_text", "text": "Look", "annotations": []}]},
        {"type": "function_call", "call_id": "call_a", "name": "f", "arguments": "{\"a\": 1}"},
        {"type": "function_call_output", "call_id": "call_a", "output": "ok"},
    ]);
    // The items end in another order than they stand in; the snapshot is empty, or the only thing there is.
    let streamed =
        [item("done", 2, call.clone()), item("done", 0, reasoning.clone()), item("done", 1, message.clone())];
    let all = json!([reasoning, message, call]);
    check_responses(&[&streamed[..], &[completed(json!([]))]].concat(), expect.clone());
    check_responses(&[&streamed[..], &[completed(all.clone())]].concat(), expect.clone());
    check_responses(&[completed(all)], expect);
}

#[test]
fn a_responses_call_without_its_item_is_rebuilt() {
    let head =
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "f", "arguments": ""});
    check_responses(
        &[
            item(
                "done",
                0,
                json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}),
            ),
            item("added", 1, head),
            json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{\"a\":"}),
        ],
        json!([
            {"type": "function_call", "call_id": "call_a", "name": "f",
                "arguments": "{\"unreadable_arguments\":\"{\\\"a\\\":\"}"},
            {"type": "function_call_output", "call_id": "call_a", "output": "ok"},
        ]),
    );
}

#[test]
fn responses_hosted_tools_and_pictures_are_shown_once() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "x"}});
    let mcp =
        json!({"type": "mcp_call", "id": "mcp_1", "name": "get_time", "arguments": "{}", "output": "noon"});
    let image =
        json!({"type": "image_generation_call", "id": "ig_1", "output_format": "webp", "result": "UklG"});
    let reply = decode(
        Dialect::OpenaiResponses,
        &[
            item("done", 0, search.clone()),
            item("done", 1, mcp.clone()),
            item("done", 2, image.clone()),
            item("done", 2, image.clone()),
            completed(json!([search, mcp, image])),
        ],
    );
    let names: Vec<_> = reply.hosted.iter().map(|hosted| hosted.name.as_str()).collect();
    assert_eq!(names, ["web_search", "get_time", "image_generation"]);
    assert_eq!(reply.hosted[1].output, Some(json!({"output": "noon"})));
    let [picture] = reply.images.as_slice() else { panic!("one picture: {:?}", reply.images) };
    assert_eq!((picture.media_type.as_str(), picture.data()), ("image/webp", "UklG"));
    assert!(reply.calls.is_empty());
}
