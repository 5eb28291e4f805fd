//! Request to JSON.

use crate::dialect::{Dialect, EncodedRequest, TransferMode, extra};
use crate::profile::{ReasoningEcho, ToolIdFormat, UpstreamProfile};
use crate::vocabulary::{
    Call, CallKind, CallOutcome, ClosedStep, Media, Message, ModelRequest, ProviderState, ToolChoice,
    ToolDefinition, UserPart,
};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

pub(crate) fn encode(
    request: &ModelRequest,
    offered: &[ToolDefinition],
    profile: &UpstreamProfile,
    transfer: TransferMode,
) -> EncodedRequest {
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model));
    body.insert("messages".into(), Value::Array(messages(request, profile)));
    // Without `tool_choice: none` the last step goes without tools at all.
    let offers_tools = request.tool_choice != ToolChoice::None || profile.tool_choice_none;
    if !offered.is_empty() && offers_tools {
        let tools = offered.iter().map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": *tool.parameters,
            }})
        });
        body.insert("tools".into(), tools.collect());
        let choice = match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!("none")),
            ToolChoice::Required => Some(json!("required")),
            ToolChoice::Tool(name) => Some(json!({"type": "function", "function": {"name": name}})),
        };
        body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
        let parallel = request.settings.parallel_tool_calls;
        body.extend(parallel.map(|parallel| ("parallel_tool_calls".to_owned(), parallel.into())));
    }
    if let Some(temperature) = request.settings.temperature {
        body.insert("temperature".into(), json!(temperature));
    }
    if let Some(tokens) = request.settings.max_output_tokens {
        // OpenAI's reasoning models know only the newer name, compatible servers often only the older.
        let name = if profile.developer_role { "max_completion_tokens" } else { "max_tokens" };
        body.insert(name.into(), json!(tokens));
    }
    if transfer == TransferMode::Stream {
        body.insert("stream".into(), json!(true));
        if profile.include_usage {
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
    }
    if let Some(key) = request.cache_key.as_deref().filter(|_| profile.prompt_cache_key) {
        body.insert("prompt_cache_key".to_owned(), key.into());
    }
    extra::merge(&mut body, &request.settings.extra);
    EncodedRequest {
        path: "/chat/completions".into(),
        headers: Vec::new(),
        body: Value::Object(body),
        tools_left_out: Vec::new(),
    }
}

fn messages(request: &ModelRequest, profile: &UpstreamProfile) -> Vec<Value> {
    let mut out = Vec::new();
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.is_empty()) {
        let role = if profile.developer_role { "developer" } else { "system" };
        out.push(json!({"role": role, "content": instructions}));
    }
    let mut ids = CallIdMap { used: HashSet::new(), format: profile.tool_id_format };
    for message in &request.messages {
        match message {
            Message::User(parts) => out.push(user(parts, profile)),
            Message::Step(step) => push_step(step, request, profile, &mut ids, &mut out),
        }
    }
    out
}

fn user(parts: &[UserPart], profile: &UpstreamProfile) -> Value {
    if let [UserPart::Text { text }] = parts {
        return json!({"role": "user", "content": text});
    }
    let parts = parts.iter().map(|part| match part {
        UserPart::Text { text } => json!({"type": "text", "text": text}),
        UserPart::Image(media) if profile.vision => image(media),
        UserPart::Image(media) => json!({"type": "text", "text": media.note()}),
        UserPart::File { name, media } => match audio_format(media).filter(|_| profile.audio) {
            Some(format) => {
                json!({"type": "input_audio", "input_audio": {"data": media.data(), "format": format}})
            }
            None => json!({"type": "text", "text": format!("{name}: {}", media.note())}),
        },
    });
    json!({"role": "user", "content": parts.collect::<Vec<_>>()})
}

/// The assistant's message, one tool message for each call directly after it, and only then anything else (a call
/// and its outcome may not be parted: surfaces of every server refuse it).
fn push_step(
    step: &ClosedStep,
    request: &ModelRequest,
    profile: &UpstreamProfile,
    ids: &mut CallIdMap,
    out: &mut Vec<Value>,
) {
    if step.text.is_empty() && step.calls.is_empty() {
        return;
    }
    let state = step
        .provider_state
        .as_ref()
        .filter(|state| state.dialect == Dialect::OpenaiChat && step.model == request.model);
    let calls_with_ids: Vec<(String, &(Call, CallOutcome))> =
        step.calls.iter().map(|pair| (ids.assign(&pair.0), pair)).collect();

    let mut assistant = Map::new();
    assistant.insert("role".into(), json!("assistant"));
    assistant.insert("content".into(), content(step, profile));
    echo_reasoning(step, state, profile, &mut assistant);
    if !calls_with_ids.is_empty() {
        let calls = calls_with_ids.iter().map(|(id, (call, _))| tool_call(id, call, state));
        assistant.insert("tool_calls".into(), calls.collect());
    }
    out.push(Value::Object(assistant));

    let mut pictures = Vec::new();
    for (id, (call, outcome)) in &calls_with_ids {
        let mut text = call.outcome_text(outcome);
        for media in outcome.output().map(|output| output.media.as_slice()).unwrap_or_default() {
            if profile.vision && media.media_type.starts_with("image/") {
                text.push_str("\n[The picture follows in the next user message.]");
                pictures.push(image(media));
            } else {
                text.push('\n');
                text.push_str(&media.note());
            }
        }
        out.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
    }
    // A tool message holds text only, so pictures follow as the user's, after all of them.
    if !pictures.is_empty() {
        out.push(json!({"role": "user", "content": pictures}));
    }
}

fn content(step: &ClosedStep, profile: &UpstreamProfile) -> Value {
    if profile.reasoning_echo == ReasoningEcho::ThinkingParts && !step.thinking.is_empty() {
        let thinking = json!([{"type": "text", "text": step.thinking}]);
        return json!([
            {"type": "thinking", "thinking": thinking, "closed": true},
            {"type": "text", "text": step.text},
        ]);
    }
    if step.text.is_empty() { Value::Null } else { json!(step.text) }
}

fn echo_reasoning(
    step: &ClosedStep,
    state: Option<&ProviderState>,
    profile: &UpstreamProfile,
    assistant: &mut Map<String, Value>,
) {
    match profile.reasoning_echo {
        ReasoningEcho::None | ReasoningEcho::ThinkingParts => {}
        ReasoningEcho::ReasoningContent => {
            // Needed on messages with calls even if the model thought nothing; empty text is refused by some.
            if !step.calls.is_empty() {
                let text = if step.thinking.is_empty() { " " } else { step.thinking.as_str() };
                assistant.insert("reasoning_content".into(), json!(text));
            }
        }
        ReasoningEcho::Reasoning => {
            if !step.thinking.is_empty() {
                assistant.insert("reasoning".into(), json!(step.thinking));
            }
        }
        ReasoningEcho::ReasoningDetails => {
            if let Some(details) = state.and_then(|state| state.value.get("reasoning_details")) {
                assistant.insert("reasoning_details".into(), details.clone());
            }
        }
    }
}

fn tool_call(id: &str, call: &Call, state: Option<&ProviderState>) -> Value {
    let text = call.arguments_text();
    let mut entry = match call.kind {
        CallKind::Function => {
            json!({"id": id, "type": "function", "function": {"name": call.name, "arguments": text}})
        }
        CallKind::Custom => json!({"id": id, "type": "custom", "custom": {"name": call.name, "input": text}}),
    };
    // Gemini's compatible endpoint wants its thought signature back on the call that carried it.
    let theirs = call.upstream_id.as_ref().map(|id| id.as_str()).unwrap_or_default();
    let extras = state.and_then(|state| state.value.get("extra_content")).and_then(Value::as_array);
    if let Some(extra) =
        extras.into_iter().flatten().find(|extra| extra["id"] == theirs && !theirs.is_empty())
    {
        entry["extra_content"] = extra["value"].clone();
    }
    entry
}

/// The two formats that the API takes.
fn audio_format(media: &Media) -> Option<&'static str> {
    match media.media_type.as_str() {
        "audio/wav" | "audio/x-wav" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

fn image(media: &Media) -> Value {
    json!({"type": "image_url", "image_url": {"url": media.data_url()}})
}

/// Ids for one request: theirs verbatim where they are unique in it, else ours.
struct CallIdMap {
    used: HashSet<String>,
    format: ToolIdFormat,
}

impl CallIdMap {
    fn assign(&mut self, call: &Call) -> String {
        let theirs = call.upstream_id.as_ref().map(|id| id.as_str().to_owned());
        let free = |id: &String| !self.used.contains(id);
        let mut id = theirs.filter(free).unwrap_or_else(|| call.id.as_str().to_owned());
        if self.format == ToolIdFormat::NineAlphanumeric {
            id = nine_alphanumeric(&id);
        }
        self.used.insert(id.clone());
        id
    }
}

/// The same nine letters and digits for the same id, always (Mistral: `a-z, A-Z, 0-9, with a length of 9`).
fn nine_alphanumeric(id: &str) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    // FNV-1a; 62^9 is about 2^53.6, so two ids of one request practically never meet.
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (0..9)
        .map(|_| {
            let digit = DIGITS[(hash % 62) as usize];
            hash /= 62;
            digit as char
        })
        .collect()
}
