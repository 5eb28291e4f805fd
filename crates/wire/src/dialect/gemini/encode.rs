//! Request to JSON.
//!
//! Rules that the API enforces with HTTP 400: as many `functionResponse` parts as `functionCall`
//! parts, in the one content right after; and from Gemini 3 on a `thoughtSignature` on the first call of each step,
//! the model's own or the sentinel for steps that another model wrote.

use super::schema;
use crate::dialect::{Dialect, EncodedRequest, TransferMode, call_name, extra};
use crate::profile::UpstreamProfile;
use crate::vocabulary::{
    Call, CallOutcome, ClosedStep, HostedToolKind, Media, Message, ModelRequest, ToolChoice, ToolDefinition,
    UserPart,
};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Placeholder for the signature of a call that this model did not write.
const SIGNATURE_PLACEHOLDER: &str = "skip_thought_signature_validator";

/// Member of the state of a step that a client has sent: signatures by the call's id.
const CLIENT_SIGNATURES: &str = "thought_signatures";

pub(crate) fn encode(
    request: &ModelRequest,
    offered: &[ToolDefinition],
    profile: &UpstreamProfile,
    transfer: TransferMode,
) -> EncodedRequest {
    let history = HistoryEncoder { request, profile, generation: ModelGeneration::of(&request.model) };
    let mut contents = Vec::new();
    for message in &request.messages {
        match message {
            Message::User(parts) => push(&mut contents, "user", history.user(parts)),
            Message::Step(step) => {
                let (model_parts, answers) = history.step(step);
                push(&mut contents, "model", model_parts);
                push(&mut contents, "user", answers);
            }
        }
    }
    let mut body = Map::new();
    if let Some(instructions) = request.instructions.as_deref().filter(|text| !text.is_empty()) {
        body.insert("systemInstruction".to_owned(), json!({ "parts": [{ "text": instructions }] }));
    }
    body.insert("contents".to_owned(), contents.into());
    tools(request, offered, profile, &mut body);
    let mut config = Map::new();
    if let Some(temperature) = request.settings.temperature {
        config.insert("temperature".to_owned(), temperature.into());
    }
    if let Some(tokens) = request.settings.max_output_tokens {
        config.insert("maxOutputTokens".to_owned(), tokens.into());
    }
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), config.into());
    }
    extra::merge(&mut body, &request.settings.extra);
    EncodedRequest { path: path(&request.model, transfer), body: body.into(), ..EncodedRequest::default() }
}

/// `/models/{model}:streamGenerateContent?alt=sse`; a model may be given with its collection (`tunedModels/x`).
fn path(model: &str, transfer: TransferMode) -> String {
    let collection = if model.contains('/') { "" } else { "models/" };
    let method = match transfer {
        TransferMode::Stream => "streamGenerateContent?alt=sse",
        TransferMode::Whole => "generateContent",
    };
    let mut escaped = String::with_capacity(model.len());
    for byte in model.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b'@' => {
                escaped.push(byte as char)
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("/{collection}{escaped}:{method}")
}

fn push(contents: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if !parts.is_empty() {
        contents.push(json!({ "role": role, "parts": parts }));
    }
}

fn tools(
    request: &ModelRequest,
    offered: &[ToolDefinition],
    profile: &UpstreamProfile,
    body: &mut Map<String, Value>,
) {
    let may_call = request.tool_choice != ToolChoice::None;
    let hosted = &request.settings.hosted;
    let offers_functions = !offered.is_empty() && (may_call || profile.tool_choice_none);
    // There is no way to list one and to forbid it.
    let offers_hosted = !hosted.is_empty() && may_call;
    let mut tools = Vec::new();
    if offers_functions {
        let declarations: Vec<Value> = offered.iter().map(declaration).collect();
        tools.push(json!({ "functionDeclarations": declarations }));
    }
    if offers_hosted {
        tools.extend(hosted.iter().copied().map(hosted_tool));
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    let choice = match &request.tool_choice {
        _ if !offers_functions => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "mode": "NONE" })),
        ToolChoice::Required => Some(json!({ "mode": "ANY" })),
        ToolChoice::Tool(name) => Some(json!({ "mode": "ANY", "allowedFunctionNames": [name] })),
    };
    let mut config = Map::new();
    config.extend(choice.map(|choice| ("functionCallingConfig".to_owned(), choice)));
    if offers_functions && offers_hosted {
        // Without it both kinds together are refused.
        config.insert("includeServerSideToolInvocations".to_owned(), true.into());
    }
    if !config.is_empty() {
        body.insert("toolConfig".to_owned(), config.into());
    }
}

fn hosted_tool(kind: HostedToolKind) -> Value {
    match kind {
        HostedToolKind::WebSearch => json!({ "googleSearch": {} }),
        HostedToolKind::CodeExecution => json!({ "codeExecution": {} }),
    }
}

fn declaration(tool: &ToolDefinition) -> Value {
    let mut declaration = json!({ "name": tool.name, "description": tool.description });
    if let Some(schema) = schema::adapt(&tool.parameters) {
        declaration["parametersJsonSchema"] = schema;
    }
    declaration
}

/// True for models of the first two generations and the open ones.
pub(in crate::dialect) fn is_before_three(model: &str) -> bool {
    ModelGeneration::of(model) == ModelGeneration::BeforeThree
}

/// Generation of the model. Gemini 3 demands signatures and accepts pictures in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelGeneration {
    BeforeThree,
    Three,
}

impl ModelGeneration {
    /// Generation by the model's name, since no other field has it. Only names of the first two generations
    /// and of the open models are known for certain, so a name without a number (`gemini-flash-latest`, that
    /// of a deployment) counts as a later one.
    fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let Some((_, rest)) = name.split_once("gemini-") else {
            let is_open = ["gemma", "learnlm"].iter().any(|open| name.starts_with(open));
            return if is_open { Self::BeforeThree } else { Self::Three };
        };
        let (rest, _) = rest.split_once('@').unwrap_or((rest, ""));
        let mut words = rest.split(|c: char| !c.is_ascii_digit() && c != '.');
        let is_version = |word: &&str| word.contains('.') || (!word.is_empty() && rest.starts_with(*word));
        let version = words.find(is_version).unwrap_or_default();
        // The first ones had no number.
        let is_old =
            ["1.", "2."].iter().any(|old| version.starts_with(old)) || rest == "pro" || rest == "pro-vision";
        if is_old { Self::BeforeThree } else { Self::Three }
    }
}

struct HistoryEncoder<'a> {
    request: &'a ModelRequest,
    profile: &'a UpstreamProfile,
    generation: ModelGeneration,
}

impl HistoryEncoder<'_> {
    fn user(&self, parts: &[UserPart]) -> Vec<Value> {
        let part = |part: &UserPart| match part {
            UserPart::Text { text } => json!({ "text": text }),
            UserPart::Image(media) => self.picture(media),
            UserPart::File { name, media }
                if media.media_type.starts_with("image/") && !self.profile.vision =>
            {
                json!({ "text": format!("{name}: {}", media.unseen_note()) })
            }
            UserPart::File { media, .. } => inline(media),
        };
        parts.iter().map(part).collect()
    }

    fn picture(&self, media: &Media) -> Value {
        if self.profile.vision { inline(media) } else { json!({ "text": media.unseen_note() }) }
    }

    /// The model's own parts, and the responses to its calls.
    fn step(&self, step: &ClosedStep) -> (Vec<Value>, Vec<Value>) {
        let model_parts = self.provider_state_items(step).unwrap_or_else(|| self.rebuild(step));
        let ids: Vec<Value> = model_parts
            .iter()
            .filter_map(|part| part.get("functionCall"))
            .map(|call| call.get("id").cloned().unwrap_or(Value::Null))
            .collect();
        let mut answers = Vec::new();
        let mut extra_parts = Vec::new();
        for ((call, outcome), id) in step.calls.iter().zip(ids) {
            answers.push(self.answer(call, outcome, id, &mut extra_parts));
        }
        answers.append(&mut extra_parts);
        (model_parts, answers)
    }

    /// The state of a step that this model wrote.
    fn own_state<'s>(&self, step: &'s ClosedStep) -> Option<&'s Value> {
        let state = step.provider_state.as_ref()?;
        (state.dialect == Dialect::Gemini && step.model == self.request.model).then_some(&state.value)
    }

    /// The parts as the model wrote them, if this model wrote them and the calls are those of the step.
    fn provider_state_items(&self, step: &ClosedStep) -> Option<Vec<Value>> {
        let mut parts = self.own_state(step)?.as_array()?.clone();
        let mut calls = step.calls.iter();
        for echoed in parts.iter_mut().filter_map(|part| part.get_mut("functionCall")) {
            let (call, _) = calls.next()?;
            let same_id = call.upstream_id.as_ref().is_none_or(|id| id.as_str() == echoed["id"]);
            if !same_id || echoed["name"] != call.name.as_str() {
                return None;
            }
            echoed["name"] = name_of(call).into();
            if call.arguments.is_err() {
                echoed["args"] = call.arguments_object();
            }
        }
        calls.next().is_none().then_some(parts)
    }

    /// A step of another model: its text and its calls, without its reasoning. Signatures are those that a
    /// client has sent.
    fn rebuild(&self, step: &ClosedStep) -> Vec<Value> {
        let signatures = self.own_state(step).and_then(|state| state.get(CLIENT_SIGNATURES));
        let mut parts = Vec::new();
        if !step.text.is_empty() {
            parts.push(json!({ "text": step.text }));
        }
        for (nth, (call, _)) in step.calls.iter().enumerate() {
            let mut part =
                json!({ "functionCall": { "name": name_of(call), "args": call.arguments_object() } });
            let is_signed = nth == 0 && self.generation == ModelGeneration::Three;
            let signature = signatures.and_then(|known| known.get(call.id.as_str())?.as_str());
            if let Some(signature) = signature.or(is_signed.then_some(SIGNATURE_PLACEHOLDER)) {
                part["thoughtSignature"] = signature.into();
            }
            parts.push(part);
        }
        parts
    }

    /// The answer to one call. Pictures go with it, or (before Gemini 3) into a separate part with a sentence.
    fn answer(&self, call: &Call, outcome: &CallOutcome, id: Value, extra_parts: &mut Vec<Value>) -> Value {
        let mut text = call.outcome_text(outcome);
        let mut pictures = Vec::new();
        for media in outcome.output().map(|output| output.media.as_slice()).unwrap_or_default() {
            if self.profile.vision || !media.media_type.starts_with("image/") {
                pictures.push(inline(media));
            } else {
                text = format!("{text}\n{}", media.note());
            }
        }
        let key = if outcome.is_error() { "error" } else { "output" };
        let mut response = json!({ "name": name_of(call), "response": { key: text } });
        if !id.is_null() {
            response["id"] = id;
        }
        if !pictures.is_empty() {
            match self.generation {
                ModelGeneration::Three => response["parts"] = pictures.into(),
                ModelGeneration::BeforeThree => {
                    extra_parts.push(json!({ "text": format!("Output of {}:", call.name) }));
                    extra_parts.append(&mut pictures);
                }
            }
        }
        json!({ "functionResponse": response })
    }
}

/// The state of a step whose parts are not known, but the signatures of its calls, by id.
pub(crate) fn state_of_signatures(signatures: Vec<(String, String)>) -> Value {
    let signatures: Map<String, Value> =
        signatures.into_iter().map(|(id, signature)| (id, signature.into())).collect();
    json!({ CLIENT_SIGNATURES: signatures })
}

/// Letters, digits and `_-.:`, with a letter or `_` in front.
fn name_of(call: &Call) -> Cow<'_, str> {
    let name = call_name::sanitize(call.name.as_str(), &['.', ':']);
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => name,
        _ => Cow::Owned(call_name::sanitize(&format!("_{name}"), &['.', ':']).into_owned()),
    }
}

fn inline(media: &Media) -> Value {
    if let Some(url) = media.url() {
        return json!({ "fileData": { "mimeType": media.media_type, "fileUri": url } });
    }
    json!({ "inlineData": { "mimeType": media.media_type, "data": media.data() } })
}
