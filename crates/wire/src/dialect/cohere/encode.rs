//! Request to JSON, in Cohere's format.
//!
//! Format: `docs.cohere.com/v2/reference/chat`. A plan is sent back with the calls that it led to; a result
//! is a text that names its call.

use crate::dialect::call_ids::{CallIdForm, CallIds};
use crate::dialect::{EncodedRequest, TransferMode, call_name, extra};
use crate::profile::UpstreamProfile;
use crate::vocabulary::{ClosedStep, Media, Message, ModelRequest, ToolChoice, ToolDefinition, UserPart};
use serde_json::{Map, Value, json};

/// No limit is documented; other providers put whole signatures into an id.
const CALL_ID_BYTES_MAX: usize = 128;

pub(crate) fn encode(
    request: &ModelRequest,
    offered: &[ToolDefinition],
    profile: &UpstreamProfile,
    transfer: TransferMode,
) -> EncodedRequest {
    let mut messages = Vec::new();
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        messages.push(json!({ "role": "system", "content": instructions }));
    }
    let mut ids = CallIds::new(CallIdForm::Text { bytes_max: CALL_ID_BYTES_MAX });
    for message in &request.messages {
        match message {
            Message::User(parts) => messages.push(user(parts, profile)),
            Message::Step(closed) => step(closed, profile, &mut ids, &mut messages),
        }
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), request.model.as_str().into());
    body.insert("messages".to_owned(), messages.into());
    if !offered.is_empty() {
        let tools = offered.iter().map(|tool| {
            json!({ "type": "function", "function":
                { "name": tool.name, "description": tool.description, "parameters": *tool.parameters } })
        });
        body.insert("tools".to_owned(), tools.collect());
        let choice = match request.tool_choice {
            ToolChoice::None => Some("NONE"),
            ToolChoice::Required | ToolChoice::Tool(_) => Some("REQUIRED"),
            ToolChoice::Auto => None,
        };
        body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice.into())));
    }
    if let Some(temperature) = request.settings.temperature {
        body.insert("temperature".to_owned(), temperature.into());
    }
    if let Some(tokens) = request.settings.max_output_tokens {
        body.insert("max_tokens".to_owned(), tokens.into());
    }
    body.insert("stream".to_owned(), (transfer == TransferMode::Stream).into());
    extra::merge(&mut body, &request.settings.extra);
    EncodedRequest { path: "/v2/chat".to_owned(), body: body.into(), ..EncodedRequest::default() }
}

fn user(parts: &[UserPart], profile: &UpstreamProfile) -> Value {
    if let [UserPart::Text { text }] = parts {
        return json!({ "role": "user", "content": text });
    }
    let text = |text: String| json!({ "type": "text", "text": text });
    let parts = parts.iter().map(|part| match part {
        UserPart::Text { text: words } => text(words.clone()),
        UserPart::Image(media) if profile.vision => image(media),
        UserPart::Image(media) => text(media.unseen_note()),
        UserPart::File { name, media } => text(format!("{name}: {}", media.unseen_note())),
    });
    json!({ "role": "user", "content": parts.collect::<Vec<_>>() })
}

fn step(step: &ClosedStep, profile: &UpstreamProfile, ids: &mut CallIds, messages: &mut Vec<Value>) {
    if step.text.is_empty() && step.calls.is_empty() {
        return;
    }
    let call_ids: Vec<String> = step.calls.iter().map(|(call, _)| ids.assign(call)).collect();
    let mut assistant = json!({ "role": "assistant" });
    if !step.text.is_empty() {
        assistant["content"] = step.text.as_str().into();
    }
    if !step.calls.is_empty() {
        if !step.thinking.is_empty() {
            assistant["tool_plan"] = step.thinking.as_str().into();
        }
        let calls = step.calls.iter().zip(&call_ids).map(|((call, _), id)| {
            let name = call_name::sanitize(call.name.as_str(), &[]);
            let function = json!({ "name": name, "arguments": call.arguments_object().to_string() });
            json!({ "id": id, "type": "function", "function": function })
        });
        assistant["tool_calls"] = calls.collect();
    }
    messages.push(assistant);
    let mut pictures = Vec::new();
    for ((call, outcome), id) in step.calls.iter().zip(&call_ids) {
        let mut text = call.outcome_text(outcome);
        for media in outcome.output().map(|output| output.media.as_slice()).unwrap_or_default() {
            if profile.vision && media.media_type.starts_with("image/") {
                pictures.push(image(media));
            } else {
                text = format!("{text}\n{}", media.note());
            }
        }
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": text }));
    }
    // A result holds text only.
    if !pictures.is_empty() {
        messages.push(json!({ "role": "user", "content": pictures }));
    }
}

fn image(media: &Media) -> Value {
    json!({ "type": "image_url", "image_url": { "url": media.data_url() } })
}
