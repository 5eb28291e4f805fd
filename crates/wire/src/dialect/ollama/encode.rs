//! Request to JSON.
//!
//! Arguments are objects, pictures are base64 next to the text, and a result names its tool. There is no tool choice,
//! so a step that must not call gets no tools; `think` and single `options` come from the settings' `extra`.

use crate::dialect::{EncodedRequest, TransferMode, extra};
use crate::profile::UpstreamProfile;
use crate::vocabulary::{ClosedStep, Media, Message, ModelRequest, ToolChoice, ToolDefinition, UserPart};
use serde_json::{Map, Value, json};

pub(crate) fn encode(
    request: &ModelRequest,
    offered: &[ToolDefinition],
    profile: &UpstreamProfile,
    transfer: TransferMode,
) -> EncodedRequest {
    let mut messages = Vec::new();
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.is_empty()) {
        messages.push(json!({ "role": "system", "content": instructions }));
    }
    for message in &request.messages {
        match message {
            Message::User(parts) => messages.push(user(parts, profile)),
            Message::Step(closed) => step(closed, request, profile, &mut messages),
        }
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), request.model.as_str().into());
    body.insert("messages".to_owned(), messages.into());
    if request.tool_choice != ToolChoice::None && !offered.is_empty() {
        body.insert("tools".to_owned(), offered.iter().map(tool).collect());
    }
    body.insert("stream".to_owned(), (transfer == TransferMode::Stream).into());
    let mut options = Map::new();
    if let Some(temperature) = request.settings.temperature {
        options.insert("temperature".to_owned(), temperature.into());
    }
    if let Some(tokens) = request.settings.max_output_tokens {
        options.insert("num_predict".to_owned(), tokens.into());
    }
    if !options.is_empty() {
        body.insert("options".to_owned(), options.into());
    }
    extra::merge(&mut body, &request.settings.extra);
    EncodedRequest { path: "/api/chat".to_owned(), body: body.into(), ..EncodedRequest::default() }
}

fn tool(tool: &ToolDefinition) -> Value {
    let function =
        json!({ "name": tool.name, "description": tool.description, "parameters": *tool.parameters });
    json!({ "type": "function", "function": function })
}

fn user(parts: &[UserPart], profile: &UpstreamProfile) -> Value {
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for part in parts {
        match part {
            UserPart::Text { text } => texts.push(text.clone()),
            UserPart::Image(media) if profile.vision && is_picture(media) => {
                images.push(media.data().to_owned())
            }
            UserPart::Image(media) => texts.push(media.unseen_note()),
            UserPart::File { media, .. } if profile.vision && is_picture(media) => {
                images.push(media.data().to_owned());
            }
            UserPart::File { name, media } => texts.push(format!("{name}: {}", media.unseen_note())),
        }
    }
    with_images("user", texts.join("\n"), images)
}

fn step(step: &ClosedStep, request: &ModelRequest, profile: &UpstreamProfile, messages: &mut Vec<Value>) {
    // Reasoning is sent back to the model that wrote it: templates of reasoning models insert that of the
    // running turn.
    let thinking = if step.model == request.model { step.thinking.as_str() } else { "" };
    if step.text.is_empty() && step.calls.is_empty() {
        return;
    }
    let mut assistant = json!({ "role": "assistant", "content": step.text });
    if !thinking.is_empty() {
        assistant["thinking"] = thinking.into();
    }
    if !step.calls.is_empty() {
        assistant["tool_calls"] = step
            .calls
            .iter()
            .map(|(call, _)| {
                let id = call.upstream_id.as_ref().map_or(call.id.as_str(), |id| id.as_str());
                json!({ "id": id, "function": { "name": call.name, "arguments": call.arguments_object() } })
            })
            .collect();
    }
    messages.push(assistant);
    let mut pictures: Vec<&Media> = Vec::new();
    for (call, outcome) in &step.calls {
        let mut text = call.outcome_text(outcome);
        let media = outcome.output().map(|output| output.media.as_slice()).unwrap_or_default();
        if profile.vision {
            pictures.extend(media.iter().filter(|media| is_picture(media)));
        }
        for media in media.iter().filter(|media| !profile.vision || !is_picture(media)) {
            text = format!("{text}\n{}", media.note());
        }
        let id = call.upstream_id.as_ref().map_or(call.id.as_str(), |id| id.as_str());
        messages.push(json!({ "role": "tool", "tool_name": call.name, "tool_call_id": id, "content": text }));
    }
    if !pictures.is_empty() {
        // A tool message holds text only.
        let images = pictures.into_iter().map(|media| media.data().to_owned()).collect();
        messages.push(with_images("user", "Pictures returned by the tools above.".to_owned(), images));
    }
}

/// With its bytes: addresses are not looked up there.
fn is_picture(media: &Media) -> bool {
    media.media_type.starts_with("image/") && media.url().is_none()
}

fn with_images(role: &str, content: String, images: Vec<String>) -> Value {
    let mut message = json!({ "role": role, "content": content });
    if !images.is_empty() {
        message["images"] = images.into();
    }
    message
}
