//! The wire formats, one folder each with `decode.rs` and `encode.rs`.
//!
//! A dialect's decoder gets framed payloads and talks to a `StepWriter`: it never sees bytes, never assembles arguments
//! and never decides whether a call is complete. To add one: a folder here, a variant of [`Dialect`], fixtures in
//! `crates/wire/tests/fixtures`.

pub(crate) mod anthropic;
pub(crate) mod bedrock;
mod call_ids;
mod call_name;
mod client_reasoning;
pub(crate) mod cohere;
pub(crate) mod extra;
pub(crate) mod gemini;
mod history;
pub(crate) mod ollama;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
mod picture_limits;
mod reply_schema;
mod settings;
pub(crate) mod tool_choice_prompt;
mod tool_schema;

mod pending_seals;
mod text_fragments;

pub use client_reasoning::{ClientReasoning, ReasoningForm, ReasoningTarget};
pub use settings::has_setting;
pub use tool_schema::argument_names::ArgumentNames;
pub(crate) use tool_schema::argument_names::ArgumentRenamer;
pub use tool_schema::normal::needs_backtracking;

use crate::json::JsonRef;
use crate::profile::UpstreamProfile;
use crate::step::StepWriter;
use crate::vocabulary::{HostedToolKind, ModelRequest, ToolChoice, WireName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{borrow::Cow, fmt, str::FromStr};
use tool_schema::AdaptedTools;

/// A wire format. Later releases add some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Dialect {
    /// OpenAI Chat Completions and all compatible servers.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `streamGenerateContent`, SSE or JSON array.
    Gemini,
    /// Ollama `/api/chat`.
    Ollama,
    /// Cohere v2 chat.
    Cohere,
    /// AWS Bedrock `ConverseStream`.
    BedrockConverse,
    /// AWS Bedrock `InvokeModelWithResponseStream` with Anthropic bodies.
    BedrockAnthropic,
}

impl Dialect {
    /// All of them, in the order of the documentation.
    pub const ALL: [Dialect; 8] = [
        Dialect::OpenaiChat,
        Dialect::OpenaiResponses,
        Dialect::Anthropic,
        Dialect::Gemini,
        Dialect::Ollama,
        Dialect::Cohere,
        Dialect::BedrockConverse,
        Dialect::BedrockAnthropic,
    ];

    /// The name used in configuration and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::OpenaiChat => "openai-chat",
            Dialect::OpenaiResponses => "openai-responses",
            Dialect::Anthropic => "anthropic",
            Dialect::Gemini => "gemini",
            Dialect::Ollama => "ollama",
            Dialect::Cohere => "cohere",
            Dialect::BedrockConverse => "bedrock-converse",
            Dialect::BedrockAnthropic => "bedrock-anthropic",
        }
    }

    /// Tools of providers that can be switched on in this dialect.
    pub fn hosted_tools(self) -> &'static [HostedToolKind] {
        match self {
            Dialect::OpenaiResponses | Dialect::Anthropic | Dialect::Gemini => &HostedToolKind::ALL,
            _ => &[],
        }
    }

    pub(crate) fn framing(self) -> FramingKind {
        match self {
            Dialect::Ollama => FramingKind::Lines,
            Dialect::BedrockConverse | Dialect::BedrockAnthropic => FramingKind::EventStream,
            _ => FramingKind::Sse,
        }
    }

    pub(crate) fn decoder(self) -> Box<dyn DialectDecoder> {
        match self {
            Dialect::OpenaiChat => Box::new(openai_chat::ChatDecoder::default()),
            Dialect::OpenaiResponses => Box::new(openai_responses::ResponsesDecoder::default()),
            Dialect::Anthropic => Box::new(anthropic::AnthropicDecoder::default()),
            Dialect::Gemini => Box::new(gemini::GeminiDecoder::default()),
            Dialect::Ollama => Box::new(ollama::OllamaDecoder::default()),
            Dialect::Cohere => Box::new(cohere::CohereDecoder::default()),
            Dialect::BedrockConverse => Box::new(bedrock::ConverseDecoder::default()),
            Dialect::BedrockAnthropic => Box::new(bedrock::BedrockAnthropicDecoder::default()),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dialect {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or_else(|| {
            let names: Vec<_> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
            let meant = names.iter().find(|known| !name.is_empty() && known.starts_with(name));
            let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            format!("unknown API `{name}`; {meant}known APIs: {}", names.join(", "))
        })
    }
}

/// Framing of payloads in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FramingKind {
    /// Server-sent events; a body that begins with `{`, `[` or `<` is read whole (or as a JSON array).
    Sse,
    /// One JSON document a line.
    Lines,
    /// AWS event-stream frames.
    EventStream,
}

/// One framed payload whose data is JSON.
pub(crate) struct PayloadFrame<'a> {
    /// SSE `event:` (empty if none), or `:event-type` / `:exception-type` of a binary frame.
    pub event: &'a str,
    /// Kind of the frame.
    pub kind: FrameKind,
    /// The payload.
    pub json: &'a JsonRef<'a>,
}

/// Kind of the frame that a payload came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Data.
    Data,
    /// `:message-type` `exception` or `error` of a binary frame: [`PayloadFrame::event`] is the exception's type.
    Exception,
}

/// One dialect's decoder. Frames whose payload is not JSON, `[DONE]`, empty data, `error:` fields and
/// non-JSON error events are dealt with before it is called.
pub(crate) trait DialectDecoder: Send {
    /// One payload of a stream.
    fn decode_event(&mut self, frame: &PayloadFrame<'_>, step: &mut StepWriter<'_>);
    /// A whole JSON document that came instead of a stream: a plain reply (decode it and call
    /// [`StepWriter::complete`]); error bodies have been recognized before by [`StepWriter`].
    fn decode_body(&mut self, json: &JsonRef<'_>, step: &mut StepWriter<'_>);
    /// The bytes have ended, or the end marker was seen. For late flushes only (`Opaque` goes here).
    fn finish(&mut self, _step: &mut StepWriter<'_>) {}
    /// For dialects whose fragments do not depend on earlier ones (they change no state of the decoder):
    /// top-level members that are never read, so that events differing only there and in one string may take
    /// the fast path. `None`: no fast path.
    fn ignored_members(&self) -> Option<&'static [&'static str]> {
        None
    }
    /// True if `[DONE]` is the dialect's own end marker. In all others it is added by proxies, after any
    /// other event.
    fn ends_with_done(&self) -> bool {
        false
    }
    /// The dialect also streams as a top-level JSON array (Gemini without `alt=sse`).
    fn streams_json_array(&self) -> bool {
        false
    }
}

/// Form of the reply: streamed or whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferMode {
    /// As a stream.
    #[default]
    Stream,
    /// As one body, for upstreams without streaming.
    Whole,
}

/// A request ready to be sent: everything but the base URL, the key and the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncodedRequest {
    /// To be appended to the base URL, with any query: `/chat/completions`.
    pub path: String,
    /// Headers the dialect needs (not the key).
    pub headers: Vec<(&'static str, String)>,
    /// The JSON body.
    pub body: Value,
    /// Tools that are not in the body, because the upstream takes no more ([`UpstreamProfile::tools_max`]) or not these
    /// ([`UpstreamProfile::refused_tools`]).
    pub tools_left_out: Vec<WireName>,
    /// Settings that are not in the body, because they exclude others or the upstream does not take them
    /// ([`UpstreamProfile::leave_out`]), as its fields are called.
    pub settings_left_out: Vec<String>,
}

/// Reason why a request cannot be written in a dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncodeError {
    /// Only decoding is implemented for this dialect. None at present.
    DecodeOnly(Dialect),
    /// The dialect has no field for a tool of the provider.
    NoHostedTool(Dialect, HostedToolKind),
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::DecodeOnly(dialect) => {
                write!(f, "requests to {dialect} are not supported yet; its streams can be decoded")
            }
            EncodeError::NoHostedTool(dialect, tool) => {
                let able: Vec<_> =
                    Dialect::ALL.iter().filter(|dialect| dialect.hosted_tools().contains(tool)).collect();
                let able: Vec<_> = able.into_iter().map(|dialect| dialect.name()).collect();
                write!(f, "{dialect} has no hosted tool `{tool}`; supported by {}", able.join(", "))
            }
        }
    }
}

impl std::error::Error for EncodeError {}

/// Writes a request in a dialect. Total over every valid history: there is no repair pass because a
/// [`ClosedStep`](crate::ClosedStep) cannot hold an orphan. A history that does
/// not begin with the user, end with the model or hold blank messages is written so that it does not. Pictures are
/// declared as what their bytes are; what no model reads or its provider does not take, and content that is still in a file, becomes a note. Schemas of
/// tools are written as the provider takes them; where that changes names of arguments, a decoder needs
/// [`ArgumentNames::of`] the same tools to give them back.
///
/// ```
/// use throughline_wire::{Dialect, Message, ModelRequest, TransferMode, UpstreamProfile, UserPart, encode};
///
/// let request = ModelRequest {
///     model: "gpt-5".to_owned(),
///     messages: vec![Message::User(vec![UserPart::Text { text: "Hi".to_owned() }])],
///     ..ModelRequest::default()
/// };
/// let encoded = encode(Dialect::OpenaiChat, &request, &UpstreamProfile::default(), TransferMode::Stream)?;
/// assert_eq!(encoded.path, "/chat/completions");
/// assert_eq!(encoded.body["messages"][0]["role"], "user");
/// # Ok::<(), throughline_wire::EncodeError>(())
/// ```
pub fn encode(
    dialect: Dialect,
    request: &ModelRequest,
    profile: &UpstreamProfile,
    transfer: TransferMode,
) -> Result<EncodedRequest, EncodeError> {
    let known = dialect.hosted_tools();
    if let Some(tool) = request.settings.hosted.iter().find(|tool| !known.contains(tool)) {
        return Err(EncodeError::NoHostedTool(dialect, *tool));
    }
    let choice = &request.tool_choice;
    let request =
        if request.has_unfit_media() { Cow::Owned(request.with_fit_media()) } else { Cow::Borrowed(request) };
    let request = &*picture_limits::adapt(dialect, profile, request);
    let prompted;
    let request = if request.tool_choice.is_forced() && !can_force(dialect, request, profile) {
        prompted = request.with_prompted_tool_choice();
        &prompted
    } else {
        request
    };
    let request = &*history::adapt(dialect, request);
    let AdaptedTools { tools, left_out, names } = tool_schema::adapt(dialect, request, choice, profile);
    let request = &*tool_schema::with_wire_arguments(request, &names);
    let encode = match dialect {
        Dialect::OpenaiChat => openai_chat::encode,
        Dialect::OpenaiResponses => openai_responses::encode,
        Dialect::Anthropic => anthropic::encode,
        Dialect::Gemini => gemini::encode,
        Dialect::Ollama => ollama::encode,
        Dialect::Cohere => cohere::encode,
        Dialect::BedrockConverse => bedrock::encode_converse,
        Dialect::BedrockAnthropic => bedrock::encode_anthropic,
    };
    let mut encoded = encode(request, &tools, profile, transfer);
    encoded.tools_left_out = left_out;
    reply_schema::adapt(dialect, profile, &mut encoded.body);
    if let Some(body) = encoded.body.as_object_mut() {
        encoded.settings_left_out.extend(settings::take_out(dialect, profile, &request.model, body));
    }
    Ok(encoded)
}

/// True if a call can be forced. Ollama has no field for it; Anthropic refuses it while the model thinks ("Thinking may not
/// be enabled when tool_choice forces tool use", HTTP 400), and thoughts cannot be switched off within a turn. So do some
/// upstreams of Chat Completions, by their profile.
fn can_force(dialect: Dialect, request: &ModelRequest, profile: &UpstreamProfile) -> bool {
    let asks_for_thoughts = settings::asks_for_thoughts(request, profile);
    match dialect {
        Dialect::Ollama => false,
        // Cohere forces a call, and no particular one.
        Dialect::Cohere if matches!(request.tool_choice, ToolChoice::Tool(_)) => false,
        Dialect::Anthropic | Dialect::BedrockAnthropic if asks_for_thoughts => false,
        _ if asks_for_thoughts && !profile.tool_choice_while_thinking => false,
        _ => profile.tool_choice_required && !request.tools.is_empty(),
    }
}
