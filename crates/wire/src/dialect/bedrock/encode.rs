//! Requests to JSON: `Converse` in its own form, and Anthropic's body as `InvokeModel` takes it.
//!
//! Format: `docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html`. The sender adds
//! the signature or the bearer token.

use crate::dialect::call_ids::{CallIdForm, CallIds};
use crate::dialect::{Dialect, EncodedRequest, TransferMode, anthropic, call_name, extra};
use crate::profile::UpstreamProfile;
use crate::vocabulary::{
    Call, CallOutcome, ClosedStep, Media, Message, ModelRequest, ToolChoice, ToolDefinition, UserPart,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// "Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+", of 64 characters at most.
const CALL_IDS: CallIdForm = CallIdForm::Plain { bytes_max: 64 };
/// Version of Anthropic's body that Bedrock takes.
const ANTHROPIC_VERSION: &str = "bedrock-2023-05-31";

/// Anthropic's body: the model and the form of the reply are in the path.
pub(crate) fn encode_anthropic(
    request: &ModelRequest,
    offered: &[ToolDefinition],
    profile: &UpstreamProfile,
    transfer: TransferMode,
) -> EncodedRequest {
    let mut request = request.clone();
    for message in &mut request.messages {
        if let Message::Step(ClosedStep { provider_state: Some(state), .. }) = message
            && state.dialect == Dialect::BedrockAnthropic
        {
            state.dialect = Dialect::Anthropic;
        }
    }
    let mut encoded = anthropic::encode(&request, offered, profile, transfer);
    if let Some(body) = encoded.body.as_object_mut() {
        body.shift_remove("model");
        body.shift_remove("stream");
        body.entry("anthropic_version").or_insert_with(|| ANTHROPIC_VERSION.into());
    }
    let method = if transfer == TransferMode::Stream { "invoke-with-response-stream" } else { "invoke" };
    EncodedRequest { path: path(&request.model, method), headers: Vec::new(), ..encoded }
}

/// Encodes a request for `Converse` or `ConverseStream`.
pub(crate) fn encode_converse(
    request: &ModelRequest,
    offered: &[ToolDefinition],
    profile: &UpstreamProfile,
    transfer: TransferMode,
) -> EncodedRequest {
    let mut conversation =
        ConverseMessages { request, profile, ids: CallIds::new(CALL_IDS), messages: Vec::new() };
    for message in &request.messages {
        match message {
            Message::User(parts) => {
                let blocks = parts.iter().filter_map(|part| conversation.user_block(part)).collect();
                conversation.push("user", blocks);
            }
            Message::Step(step) => conversation.step(step),
        }
    }
    let mut body = Map::new();
    body.insert("messages".to_owned(), conversation.into_value());
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        body.insert("system".to_owned(), json!([{ "text": instructions }]));
    }
    let mut inference = Map::new();
    if let Some(tokens) = request.settings.max_output_tokens {
        inference.insert("maxTokens".to_owned(), tokens.into());
    }
    if let Some(temperature) = request.settings.temperature {
        inference.insert("temperature".to_owned(), temperature.into());
    }
    if !inference.is_empty() {
        body.insert("inferenceConfig".to_owned(), inference.into());
    }
    body.extend(tool_config(request, offered).map(|config| ("toolConfig".to_owned(), config)));
    extra::merge(&mut body, &request.settings.extra);
    let method = if transfer == TransferMode::Stream { "converse-stream" } else { "converse" };
    EncodedRequest { path: path(&request.model, method), body: body.into(), ..EncodedRequest::default() }
}

/// Model ids have colons, and those of inference profiles slashes, which are no part of the path here.
fn path(model: &str, method: &str) -> String {
    let mut id = String::new();
    for byte in model.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => id.push(char::from(byte)),
            // Writing into a text cannot fail.
            _ => drop(write!(id, "%{byte:02X}")),
        }
    }
    format!("/model/{id}/{method}")
}

/// "The toolConfig field must be defined when using toolUse and toolResult content blocks" (HTTP 400), even if none is
/// offered any more; there is no choice that forbids calls.
fn tool_config(request: &ModelRequest, offered: &[ToolDefinition]) -> Option<Value> {
    let may_call = request.tool_choice != ToolChoice::None && !offered.is_empty();
    let called = called_names(request);
    let tools: Vec<Value> = if offered.is_empty() {
        called.iter().map(|name| tool_spec(name, "", json!({ "type": "object" }))).collect()
    } else if may_call || !called.is_empty() {
        let tools = offered.iter();
        tools
            .map(|tool| tool_spec(tool.name.as_str(), &tool.description, (*tool.parameters).clone()))
            .collect()
    } else {
        Vec::new()
    };
    if tools.is_empty() {
        return None;
    }
    let mut config = json!({ "tools": tools });
    match &request.tool_choice {
        ToolChoice::Required if may_call => config["toolChoice"] = json!({ "any": {} }),
        ToolChoice::Tool(name) if may_call => config["toolChoice"] = json!({ "tool": { "name": name } }),
        _ => {}
    }
    Some(config)
}

fn tool_spec(name: &str, description: &str, schema: Value) -> Value {
    let mut spec = json!({ "name": name, "inputSchema": { "json": schema } });
    if !description.is_empty() {
        spec["description"] = description.into();
    }
    json!({ "toolSpec": spec })
}

fn called_names(request: &ModelRequest) -> BTreeSet<String> {
    let steps = request.messages.iter().filter_map(|message| match message {
        Message::Step(step) => Some(step),
        Message::User(_) => None,
    });
    steps
        .flat_map(|step| &step.calls)
        .map(|(call, _)| call_name::sanitize(call.name.as_str(), &[]).into_owned())
        .collect()
}

/// Messages as they are written: roles alternate, and no content is empty.
struct ConverseMessages<'a> {
    request: &'a ModelRequest,
    profile: &'a UpstreamProfile,
    ids: CallIds,
    messages: Vec<(&'static str, Vec<Value>)>,
}

impl ConverseMessages<'_> {
    fn push(&mut self, role: &'static str, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => self.messages.push((role, blocks)),
        }
    }

    fn step(&mut self, step: &ClosedStep) {
        let ids: Vec<String> = step.calls.iter().map(|(call, _)| self.ids.assign(call)).collect();
        let mut content = self.provider_state_items(step).unwrap_or_else(|| {
            Some(json!({ "text": step.text })).filter(|_| !step.text.trim().is_empty()).into_iter().collect()
        });
        content.extend(step.calls.iter().zip(&ids).map(|((call, _), id)| {
            let name = call_name::sanitize(call.name.as_str(), &[]);
            json!({ "toolUse": { "toolUseId": id, "name": name, "input": call.arguments_object() } })
        }));
        self.push("assistant", content);
        let results = step.calls.iter().zip(&ids);
        let results = results.map(|((call, outcome), id)| self.result(id, call, outcome)).collect();
        self.push("user", results);
    }

    /// The step as this model wrote it, without its calls: reasoning with its signatures. `None` for another model's step.
    fn provider_state_items(&self, step: &ClosedStep) -> Option<Vec<Value>> {
        let state = step.provider_state.as_ref()?;
        if state.dialect != Dialect::BedrockConverse || step.model != self.request.model {
            return None;
        }
        let is_own_call = |block: &Value| {
            block.get("toolUse").is_some_and(|call| call["type"].as_str() != Some("server_tool_use"))
        };
        let content = state.value.get("content")?.as_array()?;
        Some(content.iter().filter(|block| !is_own_call(block)).cloned().collect())
    }

    fn result(&self, id: &str, call: &Call, outcome: &CallOutcome) -> Value {
        let mut text = call.outcome_text(outcome);
        let mut pictures = Vec::new();
        for media in outcome.output().map(|output| output.media.as_slice()).unwrap_or_default() {
            match self.picture(media) {
                Some(picture) => pictures.push(picture),
                None => text = format!("{text}\n{}", media.note()),
            }
        }
        let content: Vec<Value> = std::iter::once(json!({ "text": text })).chain(pictures).collect();
        let status = if outcome.is_error() { "error" } else { "success" };
        json!({ "toolResult": { "toolUseId": id, "content": content, "status": status } })
    }

    fn user_block(&self, part: &UserPart) -> Option<Value> {
        let text = |text: String| json!({ "text": text });
        match part {
            UserPart::Text { text: words } => Some(text(words.clone())).filter(|_| !words.trim().is_empty()),
            UserPart::Image(media) => Some(self.picture(media).unwrap_or_else(|| text(media.unseen_note()))),
            UserPart::File { name, media } => {
                Some(self.picture(media).unwrap_or_else(|| text(format!("{name}: {}", media.unseen_note()))))
            }
        }
    }

    fn picture(&self, media: &Media) -> Option<Value> {
        let format = media.media_type.strip_prefix("image/")?;
        let known = self.profile.vision && media.url().is_none();
        let known = known && ["png", "jpeg", "gif", "webp"].contains(&format);
        known.then(|| json!({ "image": { "format": format, "source": { "bytes": media.data() } } }))
    }

    fn into_value(self) -> Value {
        let messages = self.messages.into_iter();
        messages.map(|(role, content)| json!({ "role": role, "content": content })).collect()
    }
}
