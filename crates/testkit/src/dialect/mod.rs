//! The eight wire formats, each with its own encoder of replies and its own strict reader of requests.
//!
//! Nothing here comes from `throughline-wire`: if both sides shared a misunderstanding, no test would see it.

pub(crate) mod anthropic;
pub(crate) mod bedrock;
pub(crate) mod cohere;
pub(crate) mod gemini;
pub(crate) mod ollama;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
mod tool_schema;

use crate::http::ReceivedRequest;
use crate::parsed_request::{ParsedRequest, ReplyDelivery};
use crate::script::{CallMove, ErrorMove, ScriptFinish, TokenCounts};
use crate::server::UpstreamBehavior;
use crate::strict_json::{RequestRefusal, RequestResult};
use crate::voice::SpokenWord;
use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use tool_schema::ToolSchemaRule;

/// A wire format that this crate speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FakeDialect {
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `streamGenerateContent` and `generateContent`.
    Gemini,
    /// Ollama `/api/chat`.
    Ollama,
    /// Cohere v2 chat.
    Cohere,
    /// AWS Bedrock `ConverseStream` and `Converse`.
    BedrockConverse,
    /// AWS Bedrock `InvokeModelWithResponseStream` and `InvokeModel` with Anthropic bodies.
    BedrockAnthropic,
}

impl FakeDialect {
    /// All dialects.
    pub const ALL: [Self; 8] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Ollama,
        Self::Cohere,
        Self::BedrockConverse,
        Self::BedrockAnthropic,
    ];

    /// The name in scenario files and logs, as in the corpus.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Cohere => "cohere",
            Self::BedrockConverse => "bedrock-converse",
            Self::BedrockAnthropic => "bedrock-anthropic",
        }
    }

    /// True where a streamed reply is binary frames, not text.
    pub(crate) fn streams_frames(self) -> bool {
        matches!(self, Self::BedrockConverse | Self::BedrockAnthropic)
    }

    /// Path between the host and the endpoint in this provider's base URL.
    pub fn base_path(self) -> &'static str {
        match self {
            Self::OpenaiChat | Self::OpenaiResponses | Self::Anthropic => "/v1",
            Self::Gemini => "/v1beta",
            Self::Ollama | Self::Cohere | Self::BedrockConverse | Self::BedrockAnthropic => "",
        }
    }
}

impl FakeDialect {
    /// Reads a request as strictly as a provider of this format does, without a server.
    ///
    /// # Errors
    /// The provider's words, if it would refuse the request.
    ///
    /// ```
    /// use throughline_testkit::{FakeDialect, ReceivedRequest, UpstreamBehavior};
    ///
    /// let body = br#"{"model": "m", "messages": []}"#.to_vec();
    /// let request = ReceivedRequest { path: "/v1/chat/completions".into(), body, ..ReceivedRequest::default() };
    /// let refusal = FakeDialect::OpenaiChat.read(&request, &UpstreamBehavior::default()).unwrap_err();
    /// assert!(refusal.contains("empty array"), "{refusal}");
    /// ```
    pub fn read(
        self,
        request: &ReceivedRequest,
        behavior: &UpstreamBehavior,
    ) -> Result<ParsedRequest, String> {
        let route = ModelRoute::of(&request.path, &request.query).filter(|route| route.dialect == self);
        let route = route.ok_or_else(|| format!("{self} has no {}", request.path))?;
        read(&route, request, 1, behavior).map_err(|refusal| refusal.message)
    }
}

impl std::fmt::Display for FakeDialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Route of a model call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelRoute {
    pub dialect: FakeDialect,
    /// Gemini and Bedrock name the model in the path.
    pub model: Option<String>,
    /// Gemini and Bedrock ask for the stream in the path; the others in the body.
    pub delivery: Option<ReplyDelivery>,
}

impl ModelRoute {
    /// Finds the endpoint. OpenAI-compatible servers are reached with and without `/v1`.
    pub fn of(path: &str, query: &str) -> Option<Self> {
        let plain = |dialect| Some(Self { dialect, model: None, delivery: None });
        match path {
            "/v1/chat/completions" | "/chat/completions" => return plain(FakeDialect::OpenaiChat),
            "/v1/responses" | "/responses" => return plain(FakeDialect::OpenaiResponses),
            "/v1/messages" => return plain(FakeDialect::Anthropic),
            "/api/chat" => return plain(FakeDialect::Ollama),
            "/v2/chat" => return plain(FakeDialect::Cohere),
            _ => {}
        }
        if let Some((model, method)) = path.strip_prefix("/model/").and_then(|rest| rest.split_once('/')) {
            let (dialect, delivery) = match method {
                "converse" => (FakeDialect::BedrockConverse, ReplyDelivery::Whole),
                "converse-stream" => (FakeDialect::BedrockConverse, ReplyDelivery::Stream),
                "invoke" => (FakeDialect::BedrockAnthropic, ReplyDelivery::Whole),
                "invoke-with-response-stream" => (FakeDialect::BedrockAnthropic, ReplyDelivery::Stream),
                _ => return None,
            };
            return Some(Self { dialect, model: Some(percent_decode(model)), delivery: Some(delivery) });
        }
        let rest = path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"))?;
        let (model, method) = rest.split_once(':')?;
        let delivery = match method {
            "generateContent" => ReplyDelivery::Whole,
            "streamGenerateContent" if query.split('&').any(|pair| pair == "alt=sse") => {
                ReplyDelivery::Stream
            }
            "streamGenerateContent" => ReplyDelivery::Array,
            _ => return None,
        };
        Some(Self {
            dialect: FakeDialect::Gemini,
            model: Some(percent_decode(model)),
            delivery: Some(delivery),
        })
    }
}

/// Undoes `%41`; anything else with a `%` stays.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => (bytes.push(byte), rest = &tail[2..]),
            None => (bytes.push(*first), rest = tail),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads and checks a request.
pub(crate) fn read(
    route: &ModelRoute,
    request: &ReceivedRequest,
    number: u64,
    behavior: &UpstreamBehavior,
) -> RequestResult<ParsedRequest> {
    check_size(route.dialect, request.body.len())?;
    let body: Value = serde_json::from_slice(&request.body).map_err(|error| {
        RequestRefusal::new(format!(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP \
             library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON: {error})"
        ))
    })?;
    let blank = ParsedRequest {
        number,
        dialect: route.dialect,
        model: route.model.clone().unwrap_or_default(),
        delivery: route.delivery.unwrap_or(ReplyDelivery::Whole),
        instructions: None,
        messages: Vec::new(),
        tools: Vec::new(),
        protocol: None,
        tool_choice: Default::default(),
        max_output_tokens: None,
        wants_usage: false,
        call_ids: behavior.call_ids,
        headers: request.headers.clone(),
        body: Value::Null,
    };
    let mut seen = match route.dialect {
        FakeDialect::OpenaiChat => openai_chat::request::read(&body, blank, behavior),
        FakeDialect::OpenaiResponses => openai_responses::request::read(&body, blank, behavior),
        FakeDialect::Anthropic => anthropic::request::read(&body, blank, behavior),
        FakeDialect::Gemini => gemini::request::read(&body, blank),
        FakeDialect::Ollama => ollama::request::read(&body, blank),
        FakeDialect::Cohere => cohere::request::read(&body, blank),
        FakeDialect::BedrockConverse => bedrock::request::read(&body, blank, behavior),
        FakeDialect::BedrockAnthropic => anthropic::request::read_invocation(&body, blank, behavior),
    }?;
    if let Some(at) = seen.tools.iter().position(|tool| behavior.refused_tools.contains(&tool.name.as_str()))
    {
        return Err(tool_schema::refuse_always(route.dialect, at, &seen.tools[at].name));
    }
    seen.body = body;
    Ok(seen)
}

fn check_size(dialect: FakeDialect, bytes: usize) -> RequestResult<()> {
    match dialect {
        // anthropics/anthropic-sdk-python#938
        FakeDialect::Anthropic if bytes > 32_000_000 => {
            Err(RequestRefusal::new("Request exceeds the maximum size").status(413))
        }
        // langchain-ai/langchain-aws#419
        FakeDialect::BedrockAnthropic if bytes > 25_000_000 => Err(RequestRefusal::new(
            "1 validation error detected: Value at 'body' failed to satisfy constraint: Member must have length less than \
             or equal to 25000000",
        )),
        // Somewhere between 19.1 and 27.7 MB (aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#994).
        FakeDialect::BedrockConverse if bytes > 25_000_000 => {
            Err(RequestRefusal::new("Input is too long for requested model."))
        }
        _ => Ok(()),
    }
}

/// Writes a streamed reply, one event after the other, into a buffer.
pub(crate) trait ReplyEncoder {
    fn content_type(&self) -> &'static str;
    fn open(&mut self, out: &mut Vec<u8>);
    fn text(&mut self, piece: &str, out: &mut Vec<u8>);
    fn think(&mut self, piece: &str, out: &mut Vec<u8>);
    /// Sound with its transcript; text where the dialect has no sound.
    fn speak(&mut self, word: &SpokenWord<'_>, out: &mut Vec<u8>) {
        self.text(word.text, out);
    }
    /// A call of the reply's own number `ordinal`, from 0. Several may be open.
    fn call_open(&mut self, ordinal: usize, call: &CallMove, out: &mut Vec<u8>);
    fn call_arguments(&mut self, ordinal: usize, piece: &str, out: &mut Vec<u8>);
    fn call_close(&mut self, ordinal: usize, out: &mut Vec<u8>);
    fn ping(&mut self, out: &mut Vec<u8>);
    fn finish(&mut self, finish: &ScriptFinish, usage: &TokenCounts, out: &mut Vec<u8>);
    /// The end marker, after `finish`.
    fn end(&mut self, usage: &TokenCounts, out: &mut Vec<u8>);
    /// An error in mid-stream; nothing follows.
    fn error(&mut self, error: &ErrorMove, out: &mut Vec<u8>);
}

pub(crate) fn encoder(seen: &ParsedRequest) -> Box<dyn ReplyEncoder> {
    match seen.dialect {
        FakeDialect::OpenaiChat => Box::new(openai_chat::ChatReplyWriter::new(seen)),
        FakeDialect::OpenaiResponses => Box::new(openai_responses::ResponsesReplyWriter::new(seen)),
        FakeDialect::Anthropic => Box::new(anthropic::AnthropicReplyWriter::new(seen)),
        FakeDialect::Gemini => Box::new(gemini::GeminiReplyWriter::new(seen)),
        FakeDialect::Ollama => Box::new(ollama::OllamaReplyWriter::new(seen)),
        FakeDialect::Cohere => Box::new(cohere::CohereReplyWriter::new(seen)),
        FakeDialect::BedrockConverse => Box::new(bedrock::ConverseReplyWriter::new(seen)),
        FakeDialect::BedrockAnthropic => Box::new(bedrock::InvokeReplyWriter::new(seen)),
    }
}

/// A reply gathered for a request without streaming.
#[derive(Clone, Debug, Default)]
pub(crate) struct WholeReply {
    pub text: String,
    pub thinking: String,
    /// Transcript of its sound.
    pub spoken: String,
    pub calls: Vec<CallMove>,
    pub usage: TokenCounts,
}

pub(crate) fn whole_reply(seen: &ParsedRequest, reply: &WholeReply, finish: &ScriptFinish) -> Value {
    let has_sound = matches!(seen.dialect, FakeDialect::OpenaiChat | FakeDialect::Gemini);
    let as_text = (!has_sound && !reply.spoken.is_empty())
        .then(|| WholeReply { text: format!("{}{}", reply.text, reply.spoken), ..reply.clone() });
    let reply = as_text.as_ref().unwrap_or(reply);
    match seen.dialect {
        FakeDialect::OpenaiChat => openai_chat::whole_reply(seen, reply, finish),
        FakeDialect::OpenaiResponses => openai_responses::whole_reply(seen, reply, finish),
        FakeDialect::Anthropic | FakeDialect::BedrockAnthropic => anthropic::whole_reply(seen, reply, finish),
        FakeDialect::Gemini => gemini::whole_reply(seen, reply, finish),
        FakeDialect::Ollama => ollama::whole_reply(seen, reply, finish),
        FakeDialect::Cohere => cohere::whole_reply(seen, reply, finish),
        FakeDialect::BedrockConverse => bedrock::whole_reply(seen, reply, finish),
    }
}

/// The provider's error body for an HTTP status. `delivery` matters to Gemini only, which wraps it in an
/// array when a stream without `alt=sse` was requested.
pub(crate) fn error_body(
    dialect: FakeDialect,
    delivery: ReplyDelivery,
    status: u16,
    error: &ErrorMove,
) -> Value {
    match dialect {
        FakeDialect::OpenaiChat | FakeDialect::OpenaiResponses => {
            openai_chat::error_body(status, error, None)
        }
        FakeDialect::Anthropic => anthropic::error_body(status, error),
        FakeDialect::Gemini => gemini::error_body(delivery, status, error),
        FakeDialect::Ollama => ollama::error_body(error),
        FakeDialect::Cohere => cohere::error_body(status, error),
        FakeDialect::BedrockConverse | FakeDialect::BedrockAnthropic => bedrock::error_body(status, error),
    }
}

/// The provider's answer to a request that it refuses.
pub(crate) fn refusal_body(dialect: FakeDialect, delivery: ReplyDelivery, refusal: &RequestRefusal) -> Value {
    let error =
        ErrorMove { message: refusal.message.clone(), kind: None, code: refusal.code.map(str::to_owned) };
    match dialect {
        FakeDialect::OpenaiChat | FakeDialect::OpenaiResponses => {
            openai_chat::error_body(refusal.status, &error, refusal.param.as_deref())
        }
        _ => error_body(dialect, delivery, refusal.status, &error),
    }
}

/// Message of a generic error of this status, for scripts without one.
pub(crate) fn status_message(status: u16) -> &'static str {
    match status {
        400 => "The request is invalid.",
        401 => "Incorrect API key provided.",
        403 => "Your account does not have access to this model.",
        404 => "The model does not exist or you do not have access to it.",
        408 => "The request timed out.",
        413 => "The request is too large.",
        429 => "Rate limit reached. Please try again later.",
        500 => "The server had an error while processing your request. Sorry about that!",
        502 => "Bad gateway.",
        503 => "The engine is currently overloaded, please try again later.",
        529 => "Overloaded",
        _ => "The request could not be answered.",
    }
}

/// Writes one server-sent event.
pub(crate) fn sse(out: &mut Vec<u8>, event: Option<&str>, data: &Value) {
    if let Some(event) = event {
        out.extend_from_slice(format!("event: {event}\n").as_bytes());
    }
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}

/// Seconds since 1970 that `created` fields carry: fixed, so that bytes are the same in every run.
pub(crate) const CREATED: u64 = 1_763_683_200;
