//! Requests to Gemini.

use crate::history::{
    self, call, closed, denied, done, done_with_picture, echoed, failed, request, tool, user,
};
use serde_json::{Value, json};
use std::sync::Arc;
use throughline_wire::{
    Dialect, Message, ModelRequest, RawArguments, ToolChoice, TransferMode, UpstreamProfile, UserPart, encode,
};

fn body(request: &ModelRequest, profile: &UpstreamProfile) -> Value {
    encode(Dialect::Gemini, request, profile, TransferMode::Stream).unwrap().body
}

/// The `contents` that a history becomes.
fn check(model: &str, messages: Vec<Message>, expect: Value) {
    let body = body(&request(model, messages.clone()), &UpstreamProfile::default());
    assert_eq!(history::framed(&messages, &body["contents"]), expect, "{model}");
}

#[test]
fn model_paths_are_encoded() {
    let path = |model: &str, transfer| {
        encode(Dialect::Gemini, &request(model, vec![]), &UpstreamProfile::default(), transfer).unwrap().path
    };
    assert_eq!(
        path("gemini-3-flash", TransferMode::Stream),
        "/models/gemini-3-flash:streamGenerateContent?alt=sse"
    );
    assert_eq!(path("gemini-3-flash", TransferMode::Whole), "/models/gemini-3-flash:generateContent");
    assert_eq!(path("tunedModels/mine", TransferMode::Whole), "/tunedModels/mine:generateContent");
    assert_eq!(path("a b?c", TransferMode::Whole), "/models/a%20b%3Fc:generateContent");
}

#[test]
fn full_request_is_encoded() {
    let mut request = request("gemini-3-flash", vec![user("Weather?")]);
    request.instructions = Some("Be brief.".into());
    request.tools = vec![tool("get_weather")];
    Arc::make_mut(&mut request.tools[0].parameters)["$schema"] =
        json!("https://json-schema.org/draft/2020-12/schema");
    request.settings.temperature = Some(0.5);
    request.settings.max_output_tokens = Some(100);
    request.settings.extra = json!({"generationConfig": {"thinkingConfig": {"includeThoughts": true}}})
        .as_object()
        .unwrap()
        .clone();
    assert_eq!(
        body(&request, &UpstreamProfile::default()),
        json!({
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [{"role": "user", "parts": [{"text": "Weather?"}]}],
            "tools": [{"functionDeclarations": [{"name": "get_weather", "description": "get_weather of a city",
                "parametersJsonSchema": history::schema()}]}],
            "generationConfig": {"temperature": 0.5, "maxOutputTokens": 100, "thinkingConfig": {"includeThoughts": true}},
        })
    );
}

#[test]
fn tool_choice_none_lists_but_forbids_tools() {
    let mut request = request("m", vec![user("x")]);
    request.tools = vec![tool("f")];
    request.tools[0].parameters = Arc::new(json!({"type": "object", "properties": {}}));
    request.tool_choice = ToolChoice::None;
    let forbidden = body(&request, &UpstreamProfile::default());
    assert_eq!(forbidden["toolConfig"], json!({"functionCallingConfig": {"mode": "NONE"}}));
    // A function without arguments has no schema.
    assert_eq!(
        forbidden["tools"],
        json!([{"functionDeclarations": [{"name": "f", "description": "f of a city"}]}])
    );
    let left_out = body(&request, &UpstreamProfile { tool_choice_none: false, ..UpstreamProfile::default() });
    assert!(left_out.get("tools").is_none() && left_out.get("toolConfig").is_none());
}

#[test]
fn parts_are_echoed_with_their_signatures() {
    let parts = json!([
        {"text": "Hm", "thought": true},
        {"functionCall": {"name": "f", "args": {"a": 1}, "id": "x1"}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "g", "args": {}, "id": "x1"}},
        {"text": "", "thoughtSignature": "eA=="},
    ]);
    // The second id repeats the first, so the ledger has none; the echo keeps what the model wrote.
    let step = closed(
        "",
        vec![
            (call("t-0", Some("x1"), "f", json!({"a": 1})), done("one")),
            (call("t-1", None, "g", json!({})), failed("no route")),
        ],
    );
    check(
        "gemini-3-flash",
        vec![user("go"), Message::Step(echoed(Dialect::Gemini, "gemini-3-flash", parts.clone(), step))],
        json!([
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": parts},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "x1", "name": "f", "response": {"output": "one"}}},
                {"functionResponse": {"id": "x1", "name": "g", "response": {"error": "The tool failed: no route."}}},
            ]},
        ]),
    );
}

#[test]
fn foreign_step_gets_the_sentinel_signature_if_required() {
    let step = || {
        closed(
            "Looking.",
            vec![
                (call("t-0", Some("call_a"), "f", json!({"a": 1})), done("one")),
                (call("t-1", Some("call_b"), "g", json!("text")), denied()),
            ],
        )
    };
    let contents = |signature: Option<&str>| {
        let mut first = json!({"functionCall": {"name": "f", "args": {"a": 1}}});
        if let Some(signature) = signature {
            first["thoughtSignature"] = signature.into();
        }
        json!([
            {"role": "model", "parts": [
                {"text": "Looking."}, first, {"functionCall": {"name": "g", "args": {"input": "text"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"output": "one"}}},
                {"functionResponse": {"name": "g", "response": {"error": denied().model_text()}}},
            ]},
        ])
    };
    let sentinel = contents(Some("skip_thought_signature_validator"));
    let signed = json!([{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]);
    for model in [
        "gemini-3-pro-preview",
        "models/gemini-4",
        "gemini-flash-latest",
        "流式/gemini-3-flash",
        "my-deployment",
    ] {
        check(model, vec![Message::Step(step())], sentinel.clone());
        // Signatures do not survive a change of the model, nor count if the calls are not the ledger's.
        check(
            model,
            vec![Message::Step(echoed(Dialect::Gemini, "other", signed.clone(), step()))],
            sentinel.clone(),
        );
        check(
            model,
            vec![Message::Step(echoed(Dialect::Gemini, model, signed.clone(), step()))],
            sentinel.clone(),
        );
    }
    for model in [
        "gemini-2.5-pro",
        "gemini-1.5-flash",
        "gemini-pro",
        "gemini-pro@001",
        "google/gemini-pro-1.5",
        "gemma-3",
    ] {
        check(model, vec![Message::Step(step())], contents(None));
    }
}

#[test]
fn unreadable_arguments_are_sent_as_a_valid_object() {
    let mut broken = call("t-0", None, "f", json!({}));
    broken.arguments = Err(RawArguments("{\"a".into()));
    let step = closed("", vec![(broken, denied())]);
    let signed = json!([{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]);
    check(
        "m",
        vec![Message::Step(echoed(Dialect::Gemini, "m", signed, step))],
        json!([
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"unreadable_arguments": "{\"a"}},
                "thoughtSignature": "c2ln"}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {"error": denied().model_text()}}},
            ]},
        ]),
    );
}

#[test]
fn invented_tool_names_are_sanitized() {
    for (name, expect) in [("default_api.f:g", "default_api.f:g"), ("2 x", "_2_x"), ("", "unnamed")] {
        let parts = json!([{"functionCall": {"name": name, "args": {}}}]);
        let step = closed("", vec![(call("t-0", None, name, json!({})), denied())]);
        check(
            "m",
            vec![Message::Step(echoed(Dialect::Gemini, "m", parts, step))],
            json!([
                {"role": "model", "parts": [{"functionCall": {"name": expect, "args": {}}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": expect, "response": {"error": denied().model_text()}}},
                ]},
            ]),
        );
    }
}

#[test]
fn user_and_tool_media_are_encoded() {
    let parts = vec![
        UserPart::Image(history::picture()),
        UserPart::File { name: "a.pdf".into(), media: history::media("application/pdf", "JVBE") },
    ];
    let step = closed("", vec![(call("t-0", None, "shot", json!({})), done_with_picture("a cat"))]);
    let messages = vec![Message::User(parts), Message::Step(step)];
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}});
    let answers = |model: &str, profile: &UpstreamProfile| {
        body(&request(model, messages.clone()), profile)["contents"][2]["parts"].clone()
    };
    assert_eq!(
        body(&request("gemini-3", messages.clone()), &UpstreamProfile::default())["contents"][0]["parts"],
        json!([inline, {"inlineData": {"mimeType": "application/pdf", "data": "JVBE"}}])
    );
    assert_eq!(
        answers("gemini-3", &UpstreamProfile::default()),
        json!([{"functionResponse": {"name": "shot", "response": {"output": "a cat"}, "parts": [inline]}}])
    );
    assert_eq!(
        answers("gemini-2.5-flash", &UpstreamProfile::default()),
        json!([
            {"functionResponse": {"name": "shot", "response": {"output": "a cat"}}}, {"text": "Output of shot:"}, inline,
        ])
    );
    assert_eq!(
        answers("gemini-3", &UpstreamProfile { vision: false, ..UpstreamProfile::default() }),
        json!([{"functionResponse": {"name": "shot",
            "response": {"output": "a cat\n[image image/png, 1 kB, shown to the user]"}}}])
    );
}

#[test]
fn every_call_is_answered_exactly_once() {
    history::for_histories(Dialect::Gemini, |steps, messages| {
        let body = body(&request("m", messages), &UpstreamProfile::default());
        let contents = body["contents"].as_array().unwrap();
        let count = |content: &Value, key: &str| {
            content["parts"].as_array().unwrap().iter().filter(|part| part.get(key).is_some()).count()
        };
        let mut answered = 0;
        for (at, content) in contents.iter().enumerate() {
            let calls = count(content, "functionCall");
            if calls > 0 {
                assert_eq!(content["role"], "model");
                assert_eq!(count(&contents[at + 1], "functionResponse"), calls);
                answered += calls;
            }
        }
        assert_eq!(
            contents.iter().map(|content| count(content, "functionResponse")).sum::<usize>(),
            answered
        );
        assert_eq!(answered, steps.iter().map(|step| step.calls.len()).sum::<usize>());
    });
}
