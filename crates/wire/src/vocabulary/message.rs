//! Messages to a model: history that is valid by construction, and one request.

use super::{Call, CallOutcome, HostedToolKind, Media, ToolDefinition, WireName};
use crate::dialect::{Dialect, extra};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A part of the user's message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image(Media),
    /// Any other file; upstreams that cannot take it get a note.
    File {
        /// Name of the file.
        name: String,
        /// Content of the file.
        #[serde(flatten)]
        media: Media,
    },
}

impl UserPart {
    /// Length of the text, in bytes. Pictures and files have none.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::Image(_) | Self::File { .. } => 0,
        }
    }
}

/// State that an upstream wants back verbatim on the next call: reasoning, signatures, item ids. Opaque to everything but
/// the dialect that made it; used only when the next request goes to the same dialect and model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderState {
    /// The dialect that can read it.
    pub dialect: Dialect,
    /// The raw assistant message or items, in the dialect's own form.
    pub value: Value,
}

impl ProviderState {
    /// Visits the visible text in it, which may be changed: not reasoning, which is signed, and not calls.
    pub fn for_each_text(&mut self, visit: &mut dyn FnMut(&mut String)) {
        visit_text(&mut self.value, visit);
    }
}

/// Texts are `{"text": …}` in lists of parts, possibly of a `message` or under `content`.
fn visit_text(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| visit_text(item, visit)),
        Value::Object(part) => {
            let kind = part.get("type").and_then(Value::as_str).map(str::to_owned);
            let is_thought = part.get("thought").and_then(Value::as_bool).unwrap_or_default();
            match kind.as_deref() {
                _ if is_thought => {}
                None | Some("text" | "output_text") => {
                    if let Some(Value::String(text)) = part.get_mut("text") {
                        visit(text);
                    }
                    if let Some(content) = part.get_mut("content").filter(|_| kind.is_none()) {
                        visit_text(content, visit);
                    }
                }
                Some("message") => {
                    if let Some(content) = part.get_mut("content") {
                        visit_text(content, visit);
                    }
                }
                Some(_) => {}
            }
        }
        _ => {}
    }
}

/// A step that can be sent to a model. Every call has exactly one outcome because they are one value, so an orphan
/// call or result cannot be written down. Built by the engine's ledger only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClosedStep {
    /// Reasoning as shown, for upstreams that take it as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thinking: String,
    /// The visible text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Calls in the order of the message, each with how it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(Call, CallOutcome)>,
    /// Provider state to be sent back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
    /// The model that wrote this step: a provider state is only valid for the same one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
}

/// One item of history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// Message of the user.
    User(Vec<UserPart>),
    /// One model step with its calls and outcomes.
    Step(ClosedStep),
}

/// Choice of tools in this step: free, forced or forbidden.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// Tools are listed (history needs them) but must not be called: the last step after the limit.
    None,
    /// The model must call at least one tool.
    Required,
    /// The model must call this tool. Upstreams refuse a name that is not offered.
    Tool(WireName),
}

impl ToolChoice {
    /// True if a reply without a call breaks the request.
    pub fn is_forced(&self) -> bool {
        matches!(self, ToolChoice::Required | ToolChoice::Tool(_))
    }

    /// True for the default.
    pub fn is_auto(&self) -> bool {
        *self == ToolChoice::Auto
    }
}

/// Sampling and limits of a request. Absent = the upstream's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelSettings {
    /// Sampling temperature, 0 to 2.
    pub temperature: Option<f64>,
    /// Most tokens to generate.
    pub max_output_tokens: Option<u32>,
    /// Permission for several calls in one reply. Sent only if tools are offered: upstreams refuse it otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Tools of the provider that it runs itself. Refused by [`encode`](crate::encode) for dialects without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosted: Vec<HostedToolKind>,
    /// Further body fields, merged at the top level as they are. For Responses, Gemini and Ollama objects merge member
    /// by member (`generationConfig`, `options`) and `null` takes a field out.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

impl ModelSettings {
    /// These settings, with absent ones taken from `base`. Hosted tools are those of both. Objects of `extra`
    /// are joined member by member.
    ///
    /// ```
    /// use throughline_wire::ModelSettings;
    ///
    /// let base = ModelSettings { temperature: Some(0.2), max_output_tokens: Some(512), ..ModelSettings::default() };
    /// let settings = ModelSettings { temperature: Some(1.0), ..ModelSettings::default() }.with_defaults(&base);
    /// assert_eq!((settings.temperature, settings.max_output_tokens), (Some(1.0), Some(512)));
    /// ```
    pub fn with_defaults(self, base: &ModelSettings) -> ModelSettings {
        let mut joined = base.extra.clone();
        extra::merge(&mut joined, &self.extra);
        let mut hosted = base.hosted.clone();
        hosted.extend(self.hosted);
        hosted.sort_unstable();
        hosted.dedup();
        ModelSettings {
            temperature: self.temperature.or(base.temperature),
            max_output_tokens: self.max_output_tokens.or(base.max_output_tokens),
            parallel_tool_calls: self.parallel_tool_calls.or(base.parallel_tool_calls),
            hosted,
            extra: joined,
        }
    }
}

/// One model call, in no dialect's form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// The upstream's name of the model.
    pub model: String,
    /// System prompt.
    pub instructions: Option<String>,
    /// History, oldest first.
    pub messages: Vec<Message>,
    /// Offered tools, in stable order (prompt caches depend on it).
    pub tools: Vec<ToolDefinition>,
    /// Permission or obligation to call tools.
    pub tool_choice: ToolChoice,
    /// Sampling and limits.
    pub settings: ModelSettings,
    /// Key common to the requests of one conversation, for caches that ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_key: Option<String>,
}
