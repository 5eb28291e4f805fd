//! Reasoning that a client sends back, as the request of each upstream has it.

use crate::history::{call, closed, done, request, user};
use serde_json::{Value, json};
use throughline_wire::{
    ClientReasoning, ClosedStep, Dialect, Message, ReasoningEcho, ReasoningTarget, TransferMode,
    UpstreamProfile, encode,
};

fn reasoning() -> ClientReasoning {
    ClientReasoning {
        details: vec![json!({"type": "reasoning.text", "text": "Hm", "signature": "s", "index": 0})],
        blocks: vec![json!({"type": "thinking", "thinking": "Hm", "signature": "s"})],
        thought_signatures: vec![("a".into(), "s".into())],
    }
}

/// The step as it is sent to the model that it is taken for, or to another one.
fn sent(dialect: Dialect, reasoning_echo: ReasoningEcho, asked: &str, model: &str, at: &str) -> Value {
    let profile = UpstreamProfile { reasoning_echo, cache_control: false, ..UpstreamProfile::default() };
    let target = ReasoningTarget::new(dialect, &profile, model);
    let step = closed("Well.", vec![(call("a", Some("a"), "f", json!({"x": 1})), done("one"))]);
    let provider_state = target.provider_state(reasoning(), &step.text);
    let step = ClosedStep { provider_state, model: model.into(), ..step };
    let body = encode(
        dialect,
        &request(asked, vec![user("Go."), Message::Step(step)]),
        &profile,
        TransferMode::Stream,
    );
    body.unwrap().body.pointer(at).cloned().unwrap_or_default()
}

#[test]
fn client_reasoning_is_sent_only_to_its_own_model() {
    let none = ReasoningEcho::None;
    let details = ReasoningEcho::ReasoningDetails;
    let google = json!({"google": {"thought_signature": "s"}});
    let thinking = json!({"type": "thinking", "thinking": "Hm", "signature": "s"});
    for (dialect, echo, model, at, own, foreign) in [
        (
            Dialect::OpenaiChat,
            details,
            "m",
            "/messages/1/reasoning_details/0/signature",
            json!("s"),
            Value::Null,
        ),
        (
            Dialect::OpenaiChat,
            details,
            "gemini-3",
            "/messages/1/tool_calls/0/extra_content",
            Value::Null,
            Value::Null,
        ),
        (
            Dialect::OpenaiChat,
            none,
            "gemini-3",
            "/messages/1/tool_calls/0/extra_content",
            google,
            Value::Null,
        ),
        (Dialect::OpenaiChat, none, "m", "/messages/1/tool_calls/0/extra_content", Value::Null, Value::Null),
        (Dialect::OpenaiChat, none, "m", "/messages/1/reasoning_details", Value::Null, Value::Null),
        (
            Dialect::Anthropic,
            none,
            "m",
            "/messages/1/content/0",
            thinking.clone(),
            json!({"type": "text", "text": "Well."}),
        ),
        (
            Dialect::BedrockAnthropic,
            none,
            "m",
            "/messages/1/content/0",
            thinking,
            json!({"type": "text", "text": "Well."}),
        ),
        (
            Dialect::Gemini,
            none,
            "gemini-3",
            "/contents/1/parts/1/thoughtSignature",
            json!("s"),
            json!("skip_thought_signature_validator"),
        ),
        (
            Dialect::Gemini,
            none,
            "gemini-2.5",
            "/contents/1/parts/1/thoughtSignature",
            json!("s"),
            Value::Null,
        ),
    ] {
        assert_eq!(sent(dialect, echo, model, model, at), own, "{dialect}: {model} {at}");
        let other = format!("{model}.0");
        assert_eq!(sent(dialect, echo, &other, model, at), foreign, "{dialect}: {other} {at}");
    }
    for dialect in Dialect::ALL {
        let target = ReasoningTarget::new(dialect, &UpstreamProfile::default(), "m");
        assert_eq!(target.provider_state(ClientReasoning::default(), "Well."), None, "{dialect}");
    }
}
