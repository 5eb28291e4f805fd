//! Request to JSON.
//!
//! Stateless: `store: false`, and the provider state travels with every request. So `include:
//! ["reasoning.encrypted_content"]` is requested for every model, unless the profile excludes it: only the
//! answer shows if a model reasons. One that does not refuses the field with an HTTP 400 that names it; the
//! driver learns from that and sends the request again without.

use crate::dialect::call_ids::{CallIdForm, CallIds};
use crate::dialect::{Dialect, EncodedRequest, TransferMode, call_name, extra};
use crate::profile::UpstreamProfile;
use crate::vocabulary::{
    Call, CallKind, CallOutcome, ClosedStep, HostedToolKind, Media, Message, ModelRequest, ToolChoice,
    ToolDefinition, UserPart,
};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// "string too long. Expected a string with maximum length 64" (HTTP 400).
const CALL_IDS: CallIdForm = CallIdForm::Text { bytes_max: 64 };

pub(crate) fn encode(
    request: &ModelRequest,
    offered: &[ToolDefinition],
    profile: &UpstreamProfile,
    transfer: TransferMode,
) -> EncodedRequest {
    let mut input = InputEncoder { request, profile, ids: CallIds::new(CALL_IDS), items: Vec::new() };
    for message in &request.messages {
        match message {
            Message::User(parts) => input.user(parts),
            Message::Step(step) => input.step(step),
        }
    }
    let items = input.items;
    let mut body = Map::new();
    body.insert("model".to_owned(), request.model.as_str().into());
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.is_empty()) {
        body.insert("instructions".to_owned(), instructions.into());
    }
    body.insert("input".to_owned(), items.into());
    let may_call = request.tool_choice != ToolChoice::None;
    let hosted = &request.settings.hosted;
    if !(offered.is_empty() && hosted.is_empty()) && (may_call || profile.tool_choice_none) {
        let tools = offered.iter().map(tool).chain(hosted.iter().copied().map(hosted_tool));
        body.insert("tools".to_owned(), tools.collect());
        let choice = match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some("none".into()),
            ToolChoice::Required => Some("required".into()),
            ToolChoice::Tool(name) => Some(json!({ "type": "function", "name": name })),
        };
        body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
        let parallel = request.settings.parallel_tool_calls;
        body.extend(parallel.map(|parallel| ("parallel_tool_calls".to_owned(), parallel.into())));
    }
    if let Some(temperature) = request.settings.temperature {
        body.insert("temperature".to_owned(), temperature.into());
    }
    if let Some(tokens) = request.settings.max_output_tokens {
        body.insert("max_output_tokens".to_owned(), tokens.into());
    }
    body.insert("store".to_owned(), false.into());
    let included: Vec<&str> = profile
        .encrypted_reasoning
        .then_some("reasoning.encrypted_content")
        .into_iter()
        .chain(hosted.iter().copied().map(hosted_details))
        .collect();
    if !included.is_empty() {
        body.insert("include".to_owned(), json!(included));
    }
    body.insert("stream".to_owned(), (transfer == TransferMode::Stream).into());
    if let Some(key) = request.cache_key.as_deref().filter(|_| profile.prompt_cache_key) {
        body.insert("prompt_cache_key".to_owned(), key.into());
    }
    extra::merge(&mut body, &request.settings.extra);
    EncodedRequest { path: "/responses".to_owned(), body: body.into(), ..EncodedRequest::default() }
}

/// `strict` would refuse most schemas (every property required, nothing optional), and is on if it is left out: only who asks for
/// it gets it.
fn tool(tool: &ToolDefinition) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": *tool.parameters,
        "strict": tool.strict.unwrap_or(false),
    })
}

fn hosted_tool(kind: HostedToolKind) -> Value {
    match kind {
        HostedToolKind::WebSearch => json!({ "type": "web_search" }),
        HostedToolKind::CodeExecution => {
            json!({ "type": "code_interpreter", "container": { "type": "auto" } })
        }
    }
}

/// Details that the answer only has on request: the sources of a search, the output of code.
fn hosted_details(kind: HostedToolKind) -> &'static str {
    match kind {
        HostedToolKind::WebSearch => "web_search_call.action.sources",
        HostedToolKind::CodeExecution => "code_interpreter_call.outputs",
    }
}

struct InputEncoder<'a> {
    request: &'a ModelRequest,
    profile: &'a UpstreamProfile,
    ids: CallIds,
    items: Vec<Value>,
}

impl InputEncoder<'_> {
    fn user(&mut self, parts: &[UserPart]) {
        let content: Vec<Value> = parts.iter().map(|part| self.user_part(part)).collect();
        if !content.is_empty() {
            self.items.push(json!({ "type": "message", "role": "user", "content": content }));
        }
    }

    fn user_part(&self, part: &UserPart) -> Value {
        match part {
            UserPart::Text { text } => input_text(text),
            UserPart::Image(media) => self.picture(media).unwrap_or_else(|| input_text(&media.unseen_note())),
            UserPart::File { media, .. } if media.media_type.starts_with("image/") => {
                self.picture(media).unwrap_or_else(|| input_text(&media.unseen_note()))
            }
            UserPart::File { name, media } if media.media_type == "application/pdf" => {
                json!({ "type": "input_file", "filename": name, "file_data": media.data_url() })
            }
            UserPart::File { name, media } => input_text(&format!("{name}: {}", media.unseen_note())),
        }
    }

    fn picture(&self, media: &Media) -> Option<Value> {
        let is_seen = self.profile.vision && media.media_type.starts_with("image/");
        is_seen.then(|| json!({ "type": "input_image", "image_url": media.data_url() }))
    }

    /// One step: its items, then one output for each call.
    fn step(&mut self, step: &ClosedStep) {
        let ids: Vec<String> = step.calls.iter().map(|(call, _)| self.ids.assign(call)).collect();
        let items = self.provider_state_items(step, &ids).unwrap_or_else(|| rebuild(step, &ids));
        self.items.extend(items);
        for ((call, outcome), id) in step.calls.iter().zip(&ids) {
            let output = self.output(call, outcome);
            self.items.push(json!({ "type": output_type(call), "call_id": id, "output": output }));
        }
    }

    /// The items as the model wrote them, if this model wrote them and the calls are those of the step. Calls take id
    /// and arguments from the ledger: ids may have been missing or repeated, arguments repaired.
    fn provider_state_items(&self, step: &ClosedStep, ids: &[String]) -> Option<Vec<Value>> {
        let state = step.provider_state.as_ref()?;
        if state.dialect != Dialect::OpenaiResponses || step.model != self.request.model {
            return None;
        }
        let mut calls = step.calls.iter().zip(ids);
        let mut items = Vec::new();
        for item in state.value.as_array()? {
            let mut item = item.as_object()?.clone();
            match item.get("type").and_then(Value::as_str).unwrap_or_default() {
                "function_call" | "custom_tool_call" => {
                    let ((call, _), id) = calls.next()?;
                    let wire_id = item.get("call_id").or_else(|| item.get("id")).and_then(Value::as_str);
                    let same_id =
                        call.upstream_id.as_ref().is_none_or(|known| wire_id == Some(known.as_str()));
                    if !same_id || item.get("name").and_then(Value::as_str) != Some(call.name.as_str()) {
                        return None;
                    }
                    let key = if call.kind == CallKind::Custom { "input" } else { "arguments" };
                    item.insert(key.to_owned(), call.arguments_text().into());
                    item.insert("name".to_owned(), name_of(call).into());
                    item.insert("call_id".to_owned(), id.as_str().into());
                    // Nothing is stored, so the upstream would not find the id (HTTP 404 "Item not found").
                    item.shift_remove("id");
                }
                "reasoning" => {
                    let has = |key: &str| match item.get(key) {
                        Some(Value::String(text)) => !text.is_empty(),
                        Some(Value::Array(parts)) => !parts.is_empty(),
                        _ => false,
                    };
                    // A summary alone is of no use to the model, and is refused without the item that it sums up.
                    if !has("encrypted_content") && !has("content") {
                        continue;
                    }
                    item.shift_remove("id");
                    // "Unknown parameter: 'input[3].status'" (HTTP 400; digitallyinduced/haskell-agent#689).
                    item.shift_remove("status");
                }
                "message" => drop(item.shift_remove("id")),
                _ => {}
            }
            items.push(Value::Object(item));
        }
        if calls.next().is_some() {
            return None;
        }
        // "reasoning was provided without its required following item" (HTTP 400).
        while items.last().is_some_and(|item| item["type"] == "reasoning") {
            items.pop();
        }
        Some(items)
    }

    fn output(&self, call: &Call, outcome: &CallOutcome) -> Value {
        let text = call.outcome_text(outcome);
        let media = outcome.output().map(|output| output.media.as_slice()).unwrap_or_default();
        if media.is_empty() {
            return text.into();
        }
        let pictures =
            media.iter().map(|media| self.picture(media).unwrap_or_else(|| input_text(&media.note())));
        std::iter::once(input_text(&text)).chain(pictures).collect()
    }
}

/// A step of another model: its text and its calls, without its thoughts.
fn rebuild(step: &ClosedStep, ids: &[String]) -> Vec<Value> {
    let mut items = Vec::new();
    if !step.text.is_empty() {
        let content = json!([{ "type": "output_text", "text": step.text }]);
        items.push(json!({ "type": "message", "role": "assistant", "content": content }));
    }
    for ((call, _), id) in step.calls.iter().zip(ids) {
        items.push(match call.kind {
            CallKind::Function => json!({
                "type": "function_call", "call_id": id, "name": name_of(call), "arguments": call.arguments_text(),
            }),
            CallKind::Custom => json!({
                "type": "custom_tool_call", "call_id": id, "name": name_of(call), "input": call.arguments_text(),
            }),
        });
    }
    items
}

/// `^[a-zA-Z0-9_-]+$`, also in history.
fn name_of(call: &Call) -> Cow<'_, str> {
    call_name::sanitize(call.name.as_str(), &[])
}

fn output_type(call: &Call) -> &'static str {
    match call.kind {
        CallKind::Function => "function_call_output",
        CallKind::Custom => "custom_tool_call_output",
    }
}

fn input_text(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}
