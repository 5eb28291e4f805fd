//! Request to JSON, in Anthropic's format.

use super::echo;
use super::thinking::{TurnThinking, is_thought};
use crate::dialect::call_ids::{CallIdForm, CallIds};
use crate::dialect::call_name::{self, LONG_NAME_BYTES_MAX};
use crate::dialect::{Dialect, EncodedRequest, TransferMode, extra};
use crate::profile::UpstreamProfile;
use crate::vocabulary::{
    Call, CallOutcome, ClosedStep, HostedToolKind, Media, Message, ModelRequest, ToolChoice, ToolDefinition,
    UserPart,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The version of the API that all of this is written for.
const API_VERSION: &str = "2023-06-01";
/// Beta that code execution needs; where it is generally available, the header has no effect.
const CODE_EXECUTION_BETA: &str = "code-execution-2025-08-25";
/// Most tokens to generate if the request does not say: the field is mandatory. A thinking budget comes on top.
const MAX_TOKENS_DEFAULT: u64 = 4096;
/// Higher temperatures are refused.
const TEMPERATURE_MAX: f64 = 1.0;
/// Other providers put whole signatures into an id.
const CALL_IDS: CallIdForm = CallIdForm::Plain { bytes_max: 128 };
/// Pictures that the API takes.
const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(crate) fn encode(
    request: &ModelRequest,
    offered: &[ToolDefinition],
    profile: &UpstreamProfile,
    transfer: TransferMode,
) -> EncodedRequest {
    let mut conversation = ConversationEncoder {
        request,
        profile,
        ids: CallIds::new(CALL_IDS),
        messages: Vec::new(),
        container: None,
        last_turn: None,
    };
    for message in &request.messages {
        match message {
            Message::User(parts) => conversation.user(parts),
            Message::Step(step) => conversation.step(step),
        }
    }
    let container = conversation.container;
    let mut messages = conversation.into_messages();
    let thinking = TurnThinking::adapt(request, profile, &mut messages);

    let mut body = Map::new();
    body.insert("model".to_owned(), request.model.as_str().into());
    body.insert("max_tokens".to_owned(), max_tokens(request, thinking.budget).into());
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.trim().is_empty()) {
        let mut text = text_block(instructions);
        body.insert(
            "system".to_owned(),
            if profile.cache_control {
                set_cache_control(&mut text);
                json!([text])
            } else {
                instructions.into()
            },
        );
    }
    body.insert("messages".to_owned(), messages.into());
    tools(request, offered, profile, &mut body);
    if let Some(temperature) = request.settings.temperature {
        body.insert("temperature".to_owned(), temperature.min(TEMPERATURE_MAX).into());
    }
    if let Some(container) = container {
        body.insert("container".to_owned(), container.clone());
    }
    if transfer == TransferMode::Stream {
        body.insert("stream".to_owned(), true.into());
    }
    extra::merge(&mut body, &request.settings.extra);
    let mut settings_left_out = Vec::new();
    if thinking.is_left_out {
        body.shift_remove("thinking");
        settings_left_out.push("thinking".to_owned());
    }
    let mut headers = vec![("anthropic-version", API_VERSION.to_owned())];
    if request.settings.hosted.contains(&HostedToolKind::CodeExecution) {
        headers.push(("anthropic-beta", CODE_EXECUTION_BETA.to_owned()));
    }
    EncodedRequest {
        path: "/v1/messages".to_owned(),
        headers,
        body: Value::Object(body),
        settings_left_out,
        ..EncodedRequest::default()
    }
}

fn max_tokens(request: &ModelRequest, budget: u64) -> u64 {
    match request.settings.max_output_tokens.map(u64::from) {
        // "`max_tokens` must be greater than `thinking.budget_tokens`" (HTTP 400): it is meant for the answer.
        Some(tokens) if tokens <= budget => tokens + budget,
        Some(tokens) => tokens,
        None => MAX_TOKENS_DEFAULT + budget,
    }
}

fn tools(
    request: &ModelRequest,
    offered: &[ToolDefinition],
    profile: &UpstreamProfile,
    body: &mut Map<String, Value>,
) {
    let hosted = &request.settings.hosted;
    let may_call = request.tool_choice != ToolChoice::None && !(offered.is_empty() && hosted.is_empty());
    if !may_call && !profile.tool_choice_none && called_tool_names(request).next().is_none() {
        return;
    }
    // Names must be unique: the provider's own tool is the one that was requested by name.
    let is_free = |name: &str| !hosted.iter().any(|hosted| hosted.name() == name);
    let mut tools: Vec<Value> = hosted.iter().copied().map(hosted_tool).collect();
    if offered.is_empty() {
        let called = called_tool_names(request).filter(|name| is_free(name));
        tools.extend(called.map(|name| json!({ "name": name, "input_schema": any_object() })));
    } else {
        let offered = offered.iter().filter(|tool| is_free(tool.name.as_str()));
        tools.extend(offered.map(|definition| tool(definition, profile)));
    }
    if tools.is_empty() {
        return;
    }
    if profile.cache_control
        && let Some(last) = tools.last_mut()
    {
        set_cache_control(last);
    }
    body.insert("tools".to_owned(), tools.into());
    let one_call = request.settings.parallel_tool_calls == Some(false);
    let mut choice = match &request.tool_choice {
        _ if !may_call => profile.tool_choice_none.then(|| json!({ "type": "none" })),
        ToolChoice::Auto | ToolChoice::None => one_call.then(|| json!({ "type": "auto" })),
        ToolChoice::Required => Some(json!({ "type": "any" })),
        ToolChoice::Tool(name) => Some(json!({ "type": "tool", "name": name })),
    };
    if let Some(choice) = choice.as_mut().filter(|_| one_call && may_call) {
        choice["disable_parallel_tool_use"] = true.into();
    }
    body.extend(choice.map(|choice| ("tool_choice".to_owned(), choice)));
}

fn hosted_tool(kind: HostedToolKind) -> Value {
    let version = match kind {
        HostedToolKind::WebSearch => "web_search_20250305",
        HostedToolKind::CodeExecution => "code_execution_20250825",
    };
    json!({ "type": version, "name": kind.name() })
}

/// Names of the tools that history calls. "Requests which include `tool_use` or `tool_result` blocks must define tools"
/// (HTTP 400), even if none is offered any more.
fn called_tool_names(request: &ModelRequest) -> impl Iterator<Item = String> {
    let steps = request.messages.iter().filter_map(|message| match message {
        Message::Step(step) => Some(step),
        Message::User(_) => None,
    });
    let names = steps.flat_map(|step| &step.calls).map(|(call, _)| name_of(call).into_owned());
    names.collect::<BTreeSet<_>>().into_iter()
}

fn any_object() -> Value {
    json!({ "type": "object" })
}

fn tool(definition: &ToolDefinition, profile: &UpstreamProfile) -> Value {
    let mut tool = Map::new();
    tool.insert("name".to_owned(), definition.name.as_str().into());
    if !definition.description.is_empty() {
        tool.insert("description".to_owned(), definition.description.as_str().into());
    }
    tool.insert("input_schema".to_owned(), (*definition.parameters).clone());
    if profile.eager_arguments && has_long_text(&definition.parameters) {
        tool.insert("eager_input_streaming".to_owned(), true.into());
    }
    Value::Object(tool)
}

/// True if the schema has a text without any bound.
fn has_long_text(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let is_bound =
                ["enum", "const", "format", "maxLength"].iter().any(|word| members.contains_key(*word));
            let is_text = members.get("type").is_some_and(|kind| {
                kind == "string"
                    || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "string"))
            });
            (is_text && !is_bound) || members.values().any(has_long_text)
        }
        Value::Array(items) => items.iter().any(has_long_text),
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AnthropicRole {
    User,
    Assistant,
}

/// Messages as they are written: roles alternate, and no content is empty.
struct ConversationEncoder<'a> {
    request: &'a ModelRequest,
    profile: &'a UpstreamProfile,
    ids: CallIds,
    messages: Vec<(AnthropicRole, Vec<Value>)>,
    /// The container that the last step ran code in.
    container: Option<&'a Value>,
    /// The last block of the user's last message: message and position in it.
    last_turn: Option<(usize, usize)>,
}

impl<'a> ConversationEncoder<'a> {
    fn user(&mut self, parts: &[UserPart]) {
        let blocks: Vec<Value> = parts.iter().filter_map(|part| self.user_block(part)).collect();
        if blocks.is_empty() {
            return;
        }
        self.push(AnthropicRole::User, blocks);
        let last = self.messages.len() - 1;
        self.last_turn = Some((last, self.messages[last].1.len() - 1));
    }

    /// Marks cache points besides tools and prompt: after the user's last message, with which the next turn
    /// begins, and after the last step, with which the next step begins. Together these are four, the maximum
    /// (<https://platform.claude.com/docs/en/build-with-claude/prompt-caching>).
    fn mark_cache_points(&mut self) {
        let turn = self.last_turn;
        if let Some((message, block)) = turn
            && let Some(block) =
                self.messages.get_mut(message).and_then(|(_, content)| content.get_mut(block))
        {
            set_cache_control(block);
        }
        if let Some((AnthropicRole::User, content)) = self.messages.last_mut()
            && let Some(block) = content.last_mut()
        {
            set_cache_control(block);
        }
    }

    /// One step: the model's output, immediately followed by the outcomes of its calls. Results come before anything else in the
    /// user message, one for each `tool_use`.
    fn step(&mut self, step: &'a ClosedStep) {
        let ids: Vec<String> = step.calls.iter().map(|(call, _)| self.ids.assign(call)).collect();
        let content = self.echo_content(step, &ids).unwrap_or_else(|| rebuild_content(step, &ids));
        self.push(AnthropicRole::Assistant, content);
        let results =
            step.calls.iter().zip(&ids).map(|((call, outcome), id)| self.result(id, call, outcome)).collect();
        self.push(AnthropicRole::User, results);
    }

    fn push(&mut self, role: AnthropicRole, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        match self.messages.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => self.messages.push((role, blocks)),
        }
    }

    /// The content array as this model wrote it, its reasoning untouched. Which calls there are, their ids and their
    /// arguments is for the ledger to say: ids may have been missing or repeated, arguments repaired, calls over a
    /// limit dropped, calls of an abandoned generation retained. `None` for another model's step.
    fn echo_content(&mut self, step: &'a ClosedStep, ids: &[String]) -> Option<Vec<Value>> {
        let state = step.provider_state.as_ref()?;
        if state.dialect != Dialect::Anthropic || step.model != self.request.model {
            return None;
        }
        let mut missing: Vec<(&Call, &String)> = step.calls.iter().map(|(call, _)| call).zip(ids).collect();
        let mut content = Vec::new();
        for block in echo::content(&state.value)? {
            if block["type"] != "tool_use" {
                content.push(block.clone());
                continue;
            }
            let is_this = |call: &Call| {
                block["name"] == call.name.as_str()
                    && call.upstream_id.as_ref().is_none_or(|known| block["id"] == known.as_str())
            };
            if let Some(at) = missing.iter().position(|(call, _)| is_this(call)) {
                let (call, id) = missing.remove(at);
                let mut block = block.clone();
                block["id"] = id.as_str().into();
                block["name"] = name_of(call).into();
                block["input"] = call.arguments_object();
                content.push(block);
            }
        }
        content.extend(missing.into_iter().map(|(call, id)| tool_use(call, id)));
        // "The final block in an assistant message cannot be `thinking`" (HTTP 400): a reply cut before its answer.
        content.truncate(content.iter().rposition(|block| !is_thought(block)).map_or(0, |last| last + 1));
        if let Some(container) = echo::container(&state.value) {
            self.container = Some(container);
        }
        Some(content)
    }

    fn result(&self, id: &str, call: &Call, outcome: &CallOutcome) -> Value {
        let mut blocks = Vec::new();
        let mut text = call.outcome_text(outcome);
        for media in outcome.output().map(|output| &output.media[..]).unwrap_or_default() {
            match self.picture(media) {
                Some(block) => blocks.push(block),
                None => text = format!("{text}\n{}", media.note()),
            }
        }
        // "all content must be type `text` if `is_error` is true" (HTTP 400): the text reports the failure.
        let has_pictures = !blocks.is_empty();
        let content = if blocks.is_empty() {
            Value::from(text)
        } else {
            if !text.trim().is_empty() {
                blocks.insert(0, text_block(&text));
            }
            blocks.into()
        };
        let mut result = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
        if outcome.is_error() && !has_pictures {
            result["is_error"] = true.into();
        }
        result
    }

    fn user_block(&self, part: &UserPart) -> Option<Value> {
        match part {
            // "text content blocks must contain non-whitespace text" (HTTP 400).
            UserPart::Text { text } => Some(text_block(text)).filter(|_| !text.trim().is_empty()),
            UserPart::Image(media) => {
                Some(self.picture(media).unwrap_or_else(|| text_block(&media.unseen_note())))
            }
            UserPart::File { name, media } => {
                let unread = || text_block(&format!("{name}: {}", media.unseen_note()));
                Some(self.picture(media).or_else(|| document(name, media)).unwrap_or_else(unread))
            }
        }
    }

    fn picture(&self, media: &Media) -> Option<Value> {
        if let Some(url) = media.url().filter(|_| self.profile.vision) {
            return Some(json!({ "type": "image", "source": { "type": "url", "url": url } }));
        }
        let known = self.profile.vision && PICTURES.contains(&media.media_type.as_str());
        known.then(|| json!({ "type": "image", "source": base64_source(media) }))
    }

    fn into_messages(mut self) -> Vec<Value> {
        if self.profile.cache_control {
            self.mark_cache_points();
        }
        let role = |role| if role == AnthropicRole::User { "user" } else { "assistant" };
        self.messages
            .into_iter()
            .map(|(who, content)| json!({ "role": role(who), "content": content }))
            .collect()
    }
}

/// A step of another model, or one whose provider state is missing: text and calls. Its reasoning is left out, because
/// only signed reasoning is accepted.
fn rebuild_content(step: &ClosedStep, ids: &[String]) -> Vec<Value> {
    let text = Some(text_block(&step.text)).filter(|_| !step.text.trim().is_empty());
    let calls = step.calls.iter().zip(ids).map(|((call, _), id)| tool_use(call, id));
    text.into_iter().chain(calls).collect()
}

/// The state of a step of these blocks and this text. Its calls are added as it is written.
pub(crate) fn state_of_blocks(mut blocks: Vec<Value>, text: &str) -> Value {
    blocks.extend(Some(text_block(text)).filter(|_| !text.trim().is_empty()));
    echo::write(blocks, None)
}

fn name_of(call: &Call) -> Cow<'_, str> {
    call_name::sanitize_to(call.name.as_str(), &[], LONG_NAME_BYTES_MAX)
}

fn tool_use(call: &Call, id: &str) -> Value {
    let name = name_of(call);
    json!({ "type": "tool_use", "id": id, "name": name, "input": call.arguments_object() })
}

/// A cache may keep everything up to here.
fn set_cache_control(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn base64_source(media: &Media) -> Value {
    json!({ "type": "base64", "media_type": media.media_type, "data": media.data() })
}

/// A file as a document, if it is PDF or text.
fn document(name: &str, media: &Media) -> Option<Value> {
    let source = if media.media_type == "application/pdf" {
        base64_source(media)
    } else if media.media_type.starts_with("text/") || media.media_type == "application/json" {
        let text = String::from_utf8(BASE64.decode(media.data()).ok()?)
            .ok()
            .filter(|text| !text.trim().is_empty())?;
        json!({ "type": "text", "media_type": "text/plain", "data": text })
    } else {
        return None;
    };
    Some(json!({ "type": "document", "source": source, "title": name }))
}
