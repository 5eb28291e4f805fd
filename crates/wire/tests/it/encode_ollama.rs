//! Requests to Ollama's `/api/chat`.

use crate::history::{self, call, closed, denied, done, done_with_picture, request, tool, user};
use serde_json::{Value, json};
use throughline_wire::{
    ClosedStep, Dialect, Message, ModelRequest, RawArguments, ToolChoice, TransferMode, UpstreamProfile,
    UserPart, encode,
};

fn body(request: &ModelRequest, profile: &UpstreamProfile) -> Value {
    let encoded = encode(Dialect::Ollama, request, profile, TransferMode::Stream).unwrap();
    assert_eq!(encoded.path, "/api/chat");
    encoded.body
}

fn check(messages: Vec<Message>, expect: Value) {
    assert_eq!(body(&request("m", messages), &UpstreamProfile::default())["messages"], expect);
}

#[test]
fn full_request_is_encoded() {
    let mut request = request("qwen3", vec![user("Weather?")]);
    request.instructions = Some("Be brief.".into());
    request.tools = vec![tool("get_weather")];
    request.settings.temperature = Some(0.5);
    request.settings.max_output_tokens = Some(100);
    request.settings.extra =
        json!({"think": true, "options": {"num_ctx": 8192}}).as_object().unwrap().clone();
    assert_eq!(
        body(&request, &UpstreamProfile::default()),
        json!({
            "model": "qwen3",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather?"}],
            "tools": [{"type": "function", "function": {"name": "get_weather", "description": "get_weather of a city",
                "parameters": history::schema()}}],
            "stream": true,
            "options": {"temperature": 0.5, "num_predict": 100, "num_ctx": 8192},
            "think": true,
        })
    );
    request.tool_choice = ToolChoice::None;
    assert!(body(&request, &UpstreamProfile::default()).get("tools").is_none());
    let whole = encode(Dialect::Ollama, &request, &UpstreamProfile::default(), TransferMode::Whole).unwrap();
    assert_eq!(whole.body["stream"], json!(false));
}

#[test]
fn second_step_has_object_arguments_names_and_own_thinking() {
    let mut broken = call("t-1", None, "g", json!({}));
    broken.arguments = Err(RawArguments("{\"a".into()));
    let calls = vec![(call("t-0", Some("call_a"), "f", json!({"a": 1})), done("one")), (broken, denied())];
    let step = ClosedStep { thinking: "Hm".into(), ..closed("Looking.", calls) };
    let messages = |thinking: Option<&str>| {
        let mut assistant = json!({"role": "assistant", "content": "Looking.", "tool_calls": [
            {"id": "call_a", "function": {"name": "f", "arguments": {"a": 1}}},
            {"id": "t-1", "function": {"name": "g", "arguments": {"unreadable_arguments": "{\"a"}}},
        ]});
        if let Some(thinking) = thinking {
            assistant["thinking"] = thinking.into();
        }
        json!([
            {"role": "user", "content": "go"},
            assistant,
            {"role": "tool", "tool_name": "f", "tool_call_id": "call_a", "content": "one"},
            {"role": "tool", "tool_name": "g", "tool_call_id": "t-1", "content": denied().model_text()},
        ])
    };
    check(vec![user("go"), Message::Step(step.clone())], messages(Some("Hm")));
    let foreign = ClosedStep { model: "other".into(), ..step };
    check(vec![user("go"), Message::Step(foreign)], messages(None));
}

#[test]
fn user_and_tool_media_are_encoded() {
    let parts = vec![
        UserPart::Text { text: "What is this?".into() },
        UserPart::Image(history::picture()),
        UserPart::File { name: "a.zip".into(), media: history::media("application/zip", "UEsD") },
    ];
    let step = closed("", vec![(call("t-0", None, "shot", json!({})), done_with_picture("a cat"))]);
    let messages = vec![Message::User(parts), Message::Step(step)];
    check(
        messages.clone(),
        json!([
            {"role": "user", "content": "What is this?\na.zip: [application application/zip, 1 kB, sent by the user, which you cannot read]",
                "images": ["iVBORw=="]},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "t-0", "function": {"name": "shot", "arguments": {}}}]},
            {"role": "tool", "tool_name": "shot", "tool_call_id": "t-0", "content": "a cat"},
            {"role": "user", "content": "Pictures returned by the tools above.", "images": ["iVBORw=="]},
        ]),
    );
    let blind =
        body(&request("m", messages), &UpstreamProfile { vision: false, ..UpstreamProfile::default() })
            .to_string();
    assert!(
        !blind.contains("iVBORw==") && blind.contains("a cat\\n[image image/png, 1 kB, shown to the user]"),
        "{blind}"
    );
}

#[test]
fn every_call_is_answered_exactly_once() {
    history::for_histories(Dialect::Ollama, |steps, messages| {
        let body = body(&request("m", messages), &UpstreamProfile::default());
        let mut open: Vec<String> = Vec::new();
        let mut answered = 0;
        for message in body["messages"].as_array().unwrap() {
            if message["role"] == "tool" {
                assert_eq!(open.remove(0), message["tool_call_id"].as_str().unwrap());
                answered += 1;
                continue;
            }
            assert!(open.is_empty(), "unanswered: {open:?}");
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                assert!(call["function"]["arguments"].is_object());
                open.push(call["id"].as_str().unwrap().to_owned());
            }
        }
        assert!(open.is_empty(), "unanswered: {open:?}");
        assert_eq!(answered, steps.iter().map(|step| step.calls.len()).sum::<usize>());
    });
}
