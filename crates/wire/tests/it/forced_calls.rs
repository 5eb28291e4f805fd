//! A forced call: in every dialect's own field, and by a prompt where there is none.

use crate::history::{request, tool, user};
use serde_json::{Value, json};
use throughline_wire::{Dialect, ModelRequest, ToolChoice, TransferMode, UpstreamProfile, encode};

const REQUIRED: &str = "[Note from the system: this reply must call at least one of your tools; a reply \
 without a call cannot be used.]";
const NAMED: &str =
    "[Note from the system: this reply must call the tool `f`; a reply without a call cannot be used.]";

fn asking(choice: ToolChoice) -> ModelRequest {
    ModelRequest { tools: vec![tool("f")], tool_choice: choice, ..request("m", vec![user("Go")]) }
}

fn body(dialect: Dialect, request: &ModelRequest, profile: &UpstreamProfile) -> Value {
    encode(dialect, request, profile, TransferMode::Stream).unwrap().body
}

fn choice_of(body: &Value) -> Value {
    body.get("tool_choice").or(body.get("toolConfig")).cloned().unwrap_or_default()
}

#[test]
fn forced_call_uses_the_field_of_the_dialect() {
    let config = |config: Value| json!({ "functionCallingConfig": config });
    for (dialect, required, named) in [
        (Dialect::OpenaiChat, json!("required"), json!({"type": "function", "function": {"name": "f"}})),
        (Dialect::OpenaiResponses, json!("required"), json!({"type": "function", "name": "f"})),
        (Dialect::Anthropic, json!({"type": "any"}), json!({"type": "tool", "name": "f"})),
        (
            Dialect::Gemini,
            config(json!({"mode": "ANY"})),
            config(json!({"mode": "ANY", "allowedFunctionNames": ["f"]})),
        ),
    ] {
        for (choice, expected) in [
            (ToolChoice::Auto, Value::Null),
            (ToolChoice::Required, required),
            (ToolChoice::Tool("f".into()), named),
        ] {
            let body = body(dialect, &asking(choice.clone()), &UpstreamProfile::default());
            assert_eq!(choice_of(&body), expected, "{dialect} {choice:?}");
            assert!(!body.to_string().contains("Note from the system"), "{dialect} {body}");
        }
    }
}

/// Ollama has no field, a profile may say so, and Claude refuses it while it thinks.
#[test]
fn forced_call_without_a_field_is_requested_in_the_prompt() {
    let unable = UpstreamProfile { tool_choice_required: false, ..UpstreamProfile::default() };
    let mut thinking = asking(ToolChoice::Required);
    thinking.settings.extra = json!({"thinking": {"type": "adaptive"}}).as_object().unwrap().clone();
    for (dialect, request, profile, words) in [
        (Dialect::Ollama, asking(ToolChoice::Required), UpstreamProfile::default(), REQUIRED),
        (Dialect::Ollama, asking(ToolChoice::Tool("f".into())), UpstreamProfile::default(), NAMED),
        (Dialect::OpenaiChat, asking(ToolChoice::Required), unable.clone(), REQUIRED),
        (Dialect::Gemini, asking(ToolChoice::Tool("f".into())), unable, NAMED),
        (Dialect::Anthropic, thinking, UpstreamProfile::default(), REQUIRED),
    ] {
        let body = body(dialect, &request, &profile);
        assert_eq!(choice_of(&body), Value::Null, "{dialect}");
        assert!(body.to_string().contains(words), "{dialect} {body}");
        assert!(body.get("tools").is_some(), "{dialect} {body}");
    }
}

/// DeepSeek, Kimi and DashScope refuse it while they think. Others that have the same switch take the field.
#[test]
fn forced_call_moves_to_prompt_only_if_thinking_forbids_it() {
    let refuses = UpstreamProfile { tool_choice_while_thinking: false, ..UpstreamProfile::default() };
    let leaves_out = UpstreamProfile { leave_out: ["thinking".to_owned()].into(), ..refuses.clone() };
    let enabled = json!({"thinking": {"type": "enabled"}});
    for (settings, profile, is_forced) in [
        (&enabled, &refuses, false),
        (&json!({"enable_thinking": true}), &refuses, false),
        (&json!({"thinking": {"type": "disabled"}}), &refuses, true),
        (&json!({"thinking": null}), &refuses, true),
        (&json!({"enable_thinking": false}), &refuses, true),
        (&enabled, &leaves_out, true),
        (&enabled, &UpstreamProfile::default(), true),
        (&json!({"enable_thinking": true}), &UpstreamProfile::default(), true),
    ] {
        let mut asking = asking(ToolChoice::Required);
        asking.settings.extra = settings.as_object().unwrap().clone();
        let body = body(Dialect::OpenaiChat, &asking, profile);
        assert_eq!(choice_of(&body) == "required", is_forced, "{settings}");
        assert_eq!(body.to_string().contains(REQUIRED), !is_forced, "{settings}");
    }
}

/// The prompt comes last, so that everything before it stays a prefix of the next request.
#[test]
fn forced_call_prompt_is_the_last_text() {
    let body = body(Dialect::Ollama, &asking(ToolChoice::Required), &UpstreamProfile::default());
    assert_eq!(body["messages"], json!([{"role": "user", "content": format!("Go\n{REQUIRED}")}]));
}

#[test]
fn parallel_calls_are_disabled_only_if_tools_are_offered() {
    let one = |choice: ToolChoice| {
        let mut request = asking(choice);
        request.settings.parallel_tool_calls = Some(false);
        request
    };
    for (dialect, pointer, expected) in [
        (Dialect::OpenaiChat, "/parallel_tool_calls", json!(false)),
        (Dialect::OpenaiResponses, "/parallel_tool_calls", json!(false)),
        (Dialect::Anthropic, "/tool_choice", json!({"type": "auto", "disable_parallel_tool_use": true})),
    ] {
        let auto_body = body(dialect, &one(ToolChoice::Auto), &UpstreamProfile::default());
        assert_eq!(auto_body.pointer(pointer), Some(&expected), "{dialect}");
        let bare = ModelRequest { tools: Vec::new(), ..one(ToolChoice::Auto) };
        assert_eq!(body(dialect, &bare, &UpstreamProfile::default()).pointer(pointer), None, "{dialect}");
    }
    let forced = body(Dialect::Anthropic, &one(ToolChoice::Required), &UpstreamProfile::default());
    assert_eq!(forced["tool_choice"], json!({"type": "any", "disable_parallel_tool_use": true}));
}
