//! Request to JSON, in the format of Chat Completions.

use crate::dialect::call_ids::{CallIdForm, CallIds};
use crate::dialect::{Dialect, EncodedRequest, TransferMode, call_name, extra};
use crate::profile::{ReasoningEcho, ToolIdFormat, UpstreamProfile};
use crate::vocabulary::{
    Call, CallKind, CallOutcome, ClosedStep, Media, Message, ModelRequest, ProviderState, ToolChoice,
    ToolDefinition, UserPart,
};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// "string too long. Expected a string with maximum length 40" (HTTP 400).
const CALL_ID_BYTES_MAX: usize = 40;
/// "Invalid 'messages[2].tool_calls': array too long. Expected an array with maximum length 128" (HTTP 400; openai/openai-dotnet#317,
/// github/copilot-cli#669, gptscript-ai/gptscript#547).
const CALLS_PER_MESSAGE_MAX: usize = 128;

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
            let mut function = json!({
                "name": tool.name, "description": tool.description, "parameters": *tool.parameters,
            });
            if let Some(strict) = tool.strict {
                function["strict"] = strict.into();
            }
            json!({"type": "function", "function": function})
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
        let is_newer = profile.developer_role || profile.max_completion_tokens;
        let name = if is_newer { "max_completion_tokens" } else { "max_tokens" };
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
        body: Value::Object(body),
        ..EncodedRequest::default()
    }
}

fn messages(request: &ModelRequest, profile: &UpstreamProfile) -> Vec<Value> {
    let mut out = Vec::new();
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.is_empty()) {
        let role = if profile.developer_role { "developer" } else { "system" };
        out.push(json!({"role": role, "content": instructions}));
    }
    let mut ids = CallIds::new(match profile.tool_id_format {
        ToolIdFormat::Any => CallIdForm::Text { bytes_max: CALL_ID_BYTES_MAX },
        ToolIdFormat::NineAlphanumeric => CallIdForm::NineAlphanumeric,
    });
    let turns = request.messages.split_inclusive(|message| matches!(message, Message::User(_)));
    for turn in turns {
        let has_calls =
            turn.iter().any(|message| matches!(message, Message::Step(step) if !step.calls.is_empty()));
        for message in turn {
            match message {
                Message::User(parts) => push_user(user(parts, profile), &mut out),
                Message::Step(step) => push_step(step, has_calls, request, profile, &mut ids, &mut out),
            }
        }
    }
    if profile.user_after_tool { out } else { part_users_from_tools(out) }
}

/// Separates users from results for Mistral, and for servers with its templates: "Unexpected role 'user'
/// after role 'tool'" (HTTP 400). Its own client inserts the same text (mistralai/mistral-vibe,
/// `_ensure_assistant_after_tools`).
fn part_users_from_tools(messages: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::with_capacity(messages.len());
    for message in messages {
        if message["role"] == "user" && out.last().is_some_and(|last| last["role"] == "tool") {
            out.push(json!({"role": "assistant", "content": "Understood."}));
        }
        out.push(message);
    }
    out
}

/// Appends a user message. It may directly follow the pictures of tools, which are a user message here: then
/// both become one.
fn push_user(content: Value, out: &mut Vec<Value>) {
    match out.last_mut().filter(|last| last["role"] == "user").map(|last| &mut last["content"]) {
        Some(Value::Array(parts)) => match content {
            Value::Array(more) => parts.extend(more),
            text => parts.push(json!({"type": "text", "text": text})),
        },
        _ => out.push(json!({"role": "user", "content": content})),
    }
}

/// The content of a message of the user. Words alone are a text and no list of parts, which models without eyes do not
/// take ("invalid type: sequence, expected a string", "'array' not in 'string'").
fn user(parts: &[UserPart], profile: &UpstreamProfile) -> Value {
    let parts = parts.iter().map(|part| match part {
        UserPart::Text { text } => ChatPart::Text(text.into()),
        UserPart::Image(media) if profile.vision => ChatPart::Other(image(media)),
        UserPart::Image(media) => ChatPart::Text(media.unseen_note().into()),
        UserPart::File { name, media } => match audio_format(media).filter(|_| profile.audio) {
            Some(format) => {
                let audio = json!({"data": media.data(), "format": format});
                ChatPart::Other(json!({"type": "input_audio", "input_audio": audio}))
            }
            None => ChatPart::Text(format!("{name}: {}", media.unseen_note()).into()),
        },
    });
    let parts: Vec<ChatPart<'_>> = parts.collect();
    let texts = parts.iter().map(|part| match part {
        ChatPart::Text(text) => Some(text.as_ref()),
        ChatPart::Other(_) => None,
    });
    match texts.collect::<Option<Vec<_>>>() {
        Some(texts) => texts.join("\n\n").into(),
        None => parts.into_iter().map(ChatPart::into_value).collect(),
    }
}

/// A part of the user's content.
enum ChatPart<'a> {
    Text(Cow<'a, str>),
    Other(Value),
}

impl ChatPart<'_> {
    fn into_value(self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Other(part) => part,
        }
    }
}

/// The assistant's message, one tool message for each call directly after it, and only then anything else (a call
/// and its outcome may not be parted: surfaces of every server refuse it). More calls than a message may have follow as a
/// further message of calls alone.
fn push_step(
    step: &ClosedStep,
    turn_has_calls: bool,
    request: &ModelRequest,
    profile: &UpstreamProfile,
    ids: &mut CallIds,
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

    let mut pictures = Vec::new();
    let mut push_message = |words: &ClosedStep, state_of_words, calls: &[(String, &(Call, CallOutcome))]| {
        let mut assistant = Map::new();
        assistant.insert("role".into(), json!("assistant"));
        assistant.insert("content".into(), content(words, profile));
        echo_reasoning(words, turn_has_calls, state_of_words, profile, &mut assistant);
        if !calls.is_empty() {
            let calls = calls.iter().map(|(id, (call, _))| tool_call(id, call, state));
            assistant.insert("tool_calls".into(), calls.collect());
        }
        out.push(Value::Object(assistant));
        for (id, (call, outcome)) in calls {
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
    };
    // Gemini and Claude behind this API sign the message as a whole, and have no such limit.
    let is_signed = state.is_some_and(|state| {
        ["extra_content", "reasoning_details"].iter().any(|signed| state.value.get(signed).is_some())
    });
    let most = if is_signed { usize::MAX } else { CALLS_PER_MESSAGE_MAX };
    let (first, further) = calls_with_ids.split_at(calls_with_ids.len().min(most));
    push_message(step, state, first);
    for calls in further.chunks(CALLS_PER_MESSAGE_MAX) {
        push_message(&ClosedStep::default(), None, calls);
    }
    // A tool message holds text only, so pictures follow as the user's, after all of them.
    if !pictures.is_empty() {
        out.push(json!({"role": "user", "content": pictures}));
    }
}

fn content(step: &ClosedStep, profile: &UpstreamProfile) -> Value {
    if profile.reasoning_echo == ReasoningEcho::ThinkingParts && !step.thinking.is_empty() {
        let thinking = json!([{"type": "text", "text": step.thinking}]);
        let mut parts = vec![json!({"type": "thinking", "thinking": thinking, "closed": true})];
        if !step.text.is_empty() {
            parts.push(json!({"type": "text", "text": step.text}));
        }
        return parts.into();
    }
    if step.text.is_empty() { Value::Null } else { json!(step.text) }
}

fn echo_reasoning(
    step: &ClosedStep,
    turn_has_calls: bool,
    state: Option<&ProviderState>,
    profile: &UpstreamProfile,
    assistant: &mut Map<String, Value>,
) {
    match profile.reasoning_echo {
        ReasoningEcho::None | ReasoningEcho::ThinkingParts => {}
        ReasoningEcho::ReasoningContent => {
            // Needed on messages with calls even if the model thought nothing, empty text is refused by some; and on every
            // message of a turn with calls, also in later turns (https://api-docs.deepseek.com/guides/thinking_mode,
            // MoonshotAI/kimi-cli#2141).
            if turn_has_calls {
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
    // `^[a-zA-Z0-9_-]+$`, also in history.
    let name = call_name::sanitize(call.name.as_str(), &[]);
    let mut entry = match call.kind {
        CallKind::Function => {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": text}})
        }
        CallKind::Custom => json!({"id": id, "type": "custom", "custom": {"name": name, "input": text}}),
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

/// The state of a step with these `reasoning_details`.
pub(crate) fn state_of_details(details: Vec<Value>) -> Value {
    json!({ "reasoning_details": details })
}

/// The state of a step whose calls have these signatures of Gemini's, by id.
pub(crate) fn state_of_signatures(signatures: Vec<(String, String)>) -> Value {
    let extra = |(id, signature)| json!({"id": id, "value": {"google": {"thought_signature": signature}}});
    json!({ "extra_content": signatures.into_iter().map(extra).collect::<Vec<_>>() })
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
