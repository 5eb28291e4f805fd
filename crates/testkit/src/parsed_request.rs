//! A request as the upstream understood it, independent of the dialect: fake models react to it and tests
//! assert on it.

use crate::dialect::FakeDialect;
use crate::server::CallIdRule;
use crate::text_mode::CallProtocol;
use serde_json::Value;

/// One accepted request.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedRequest {
    /// Number of the request on this upstream, from 1, including refused ones.
    pub number: u64,
    /// The wire format it came in.
    pub dialect: FakeDialect,
    /// Requested model.
    pub model: String,
    /// Streamed or in one piece.
    pub delivery: ReplyDelivery,
    /// System prompt: all of it, joined by blank lines.
    pub instructions: Option<String>,
    /// The conversation, oldest first.
    pub messages: Vec<ParsedMessage>,
    /// Offered tools: those of the request's own field, or those that the system prompt describes.
    pub tools: Vec<ParsedTool>,
    /// The text protocol in which tools are described, if they are.
    pub protocol: Option<CallProtocol>,
    /// Permission or obligation to call tools.
    pub tool_choice: ParsedToolChoice,
    /// Most tokens to generate.
    pub max_output_tokens: Option<u64>,
    /// Usage is wanted in the stream (only Chat Completions asks).
    pub wants_usage: bool,
    /// Form of call ids at this upstream.
    pub call_ids: CallIdRule,
    /// Header names in lower case, with values.
    pub headers: Vec<(String, String)>,
    /// The body as it was.
    pub body: Value,
}

/// Requested form of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyDelivery {
    /// Server-sent events, or NDJSON for Ollama.
    Stream,
    /// One JSON array that arrives in pieces (Gemini without `alt=sse`).
    Array,
    /// One JSON body.
    Whole,
}

/// One item of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum ParsedMessage {
    /// From the user.
    User {
        /// All text, joined.
        text: String,
        /// Pictures.
        images: Vec<ParsedImage>,
        /// Names or types of other files.
        files: Vec<String>,
    },
    /// Message of the model.
    Assistant {
        /// Visible text.
        text: String,
        /// Reasoning that was echoed.
        thinking: String,
        /// Calls, in order.
        calls: Vec<ParsedToolCall>,
    },
    /// Answers to the calls right before, in order of the calls.
    Results(Vec<ParsedToolResult>),
}

/// A call in the history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedToolCall {
    /// Id of the call; empty where the dialect has none.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments: parsed, or the raw text as a JSON string if it is not JSON.
    pub arguments: Value,
}

/// Result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedToolResult {
    /// The call's id; empty where the dialect has none.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Text, as the model would read it.
    pub text: String,
    /// Marked as an error (Anthropic only).
    pub is_error: bool,
    /// Pictures in the result.
    pub images: Vec<ParsedImage>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedImage {
    /// MIME type; empty if the request named only an address.
    pub media_type: String,
    /// The bytes; empty if the request named only an address.
    pub bytes: Vec<u8>,
    /// The address, if it was one.
    pub url: Option<String>,
}

impl ParsedImage {
    /// Longest side of a PNG in pixels; zero for other formats, which providers read as well.
    pub(crate) fn longest_side(&self) -> u32 {
        let Some(header) = self.bytes.strip_prefix(b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR") else { return 0 };
        let side = |at: usize| header[at..].first_chunk().map_or(0, |side| u32::from_be_bytes(*side));
        if header.len() < 8 { 0 } else { side(0).max(side(4)) }
    }
}

/// An offered tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedTool {
    /// Name on the wire.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// Choice of tools in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ParsedToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No calls.
    None,
    /// At least one call.
    Required,
    /// A call of this tool.
    Named(String),
}

/// Beginning of notes that Throughline itself puts into a turn as the user (loop guard, continuation).
const NOTE: &str = "[Note from the system:";

/// Beginning of the text that comes with the pictures of results, where a result cannot hold them.
const PICTURES_OF_RESULTS: [&str; 2] = ["Output of ", "Pictures returned by the tools"];

impl ParsedRequest {
    /// The user's last message: not a note in the user's name, and not the pictures of the results before.
    pub fn last_question(&self) -> Option<&ParsedMessage> {
        self.messages.get(self.last_question_index()?)
    }

    fn last_question_index(&self) -> Option<usize> {
        let is_question = |at: &usize| match &self.messages[*at] {
            ParsedMessage::User { text, images, .. } => {
                let after_results = *at > 0 && matches!(self.messages[*at - 1], ParsedMessage::Results(_));
                let is_picture = !images.is_empty()
                    && (text.is_empty() || PICTURES_OF_RESULTS.iter().any(|mark| text.starts_with(mark)));
                !(text.starts_with(NOTE) || after_results && is_picture)
            }
            _ => false,
        };
        (0..self.messages.len()).rev().find(is_question)
    }

    /// Text of the last user message.
    pub fn user_text(&self) -> &str {
        match self.last_question() {
            Some(ParsedMessage::User { text, .. }) => text,
            _ => "",
        }
    }

    /// Everything after the user's last message.
    pub fn since_user(&self) -> &[ParsedMessage] {
        let start = self.last_question_index().map_or(0, |at| at + 1);
        &self.messages[start..]
    }

    /// Number of this model call in its turn, from 1.
    pub fn step(&self) -> u64 {
        let is_assistant = |message: &&ParsedMessage| matches!(message, ParsedMessage::Assistant { .. });
        1 + self.since_user().iter().filter(is_assistant).count() as u64
    }

    /// Calls of this turn with their results, oldest first.
    pub fn answered_calls(&self) -> Vec<(&ParsedToolCall, &ParsedToolResult)> {
        let mut pairs = Vec::new();
        let mut open: &[ParsedToolCall] = &[];
        for message in self.since_user() {
            match message {
                ParsedMessage::Assistant { calls, .. } => open = calls,
                ParsedMessage::Results(results) => pairs.extend(open.iter().zip(results)),
                ParsedMessage::User { .. } => {}
            }
        }
        pairs
    }

    /// An offered tool by name.
    pub fn tool(&self, name: &str) -> Option<&ParsedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// True if any tool may be called now.
    pub fn may_call(&self) -> bool {
        !self.tools.is_empty() && self.tool_choice != ParsedToolChoice::None
    }

    /// True if any message of the user has a picture.
    pub fn has_image(&self) -> bool {
        let with_image = |message: &ParsedMessage| matches!(message, ParsedMessage::User { images, .. } if !images.is_empty());
        self.messages.iter().any(with_image)
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
