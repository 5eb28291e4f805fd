//! The script of a fake model for one request: a list of moves, its pace, and its failures.

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

pub use crate::text_mode::{CallProtocol, CallStyle};
pub use crate::vendor_refusal::UpstreamVendor;

/// The answer to one request. Written in any dialect by [`crate::dialect`], played over a socket by
/// [`crate::server`].
///
/// A script without a [`ScriptMove::Finish`] gets one: `tool_calls` if it called, else `stop`. In a scenario
/// file a script is a table with these fields, or just the list of moves.
///
/// ```
/// use serde_json::json;
/// use throughline_testkit::{BodyBreak, ModelScript};
///
/// let script = ModelScript::new().say("Let me look. ").call("weather", json!({"city": "Oslo"}));
/// assert!(script.calls());
/// let broken = script.broken_at(120, BodyBreak::Reset);
/// assert_eq!(broken.cut.map(|cut| cut.byte), Some(120));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelScript {
    /// The model's moves, in order.
    pub moves: Vec<ScriptMove>,
    /// Pace of the reply.
    pub pace: ReplyPace,
    /// Silence before the first byte of the response, in milliseconds.
    pub first_byte_ms: u64,
    /// Breaks the body at a byte offset, independently of the moves.
    pub cut: Option<BodyCut>,
    /// Answer with this instead of a generation.
    pub http: Option<HttpAnswer>,
    /// Answer as this server does when it cannot call tools, if the request has any.
    pub refuse_tools: Option<UpstreamVendor>,
    /// Form of its calls.
    pub calls: CallStyle,
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct ScriptTable {
    moves: Vec<ScriptMove>,
    pace: ReplyPace,
    first_byte_ms: u64,
    cut: Option<BodyCut>,
    http: Option<HttpAnswer>,
    refuse_tools: Option<UpstreamVendor>,
    calls: CallStyle,
}

impl<'de> Deserialize<'de> for ModelScript {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScriptVisitor;
        impl<'de> Visitor<'de> for ScriptVisitor {
            type Value = ModelScript;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a list of moves, or a table with `moves`, `pace`, `first_byte_ms`, `cut`, `http`, `calls`",
                )
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<ModelScript, A::Error> {
                let moves = Vec::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(ModelScript { moves, ..ModelScript::default() })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModelScript, A::Error> {
                let table = ScriptTable::deserialize(MapAccessDeserializer::new(map))?;
                let ScriptTable { moves, pace, first_byte_ms, cut, http, refuse_tools, calls } = table;
                Ok(ModelScript { moves, pace, first_byte_ms, cut, http, refuse_tools, calls })
            }
        }
        deserializer.deserialize_any(ScriptVisitor)
    }
}

/// One thing that the model does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScriptMove {
    /// Visible text.
    Say(SpeechMove),
    /// Reasoning, signed where the dialect signs it.
    Think(SpeechMove),
    /// Sound with its transcript, a word at a time; text where the dialect has no sound. The sound is a hum.
    Speak(SpeechMove),
    /// One tool call, complete before the next move.
    Call(CallMove),
    /// A call that is opened, gets these arguments and is never closed: usually half of them, before a break.
    /// Nothing where the dialect sends calls whole.
    HalfCall(CallMove),
    /// Several calls whose fragments come in turns; one after the other where the dialect has no fragments.
    Parallel(Vec<CallMove>),
    /// Token counts; without it they are estimated. Comes before `finish`.
    Usage(TokenCounts),
    /// The finish reason, here.
    Finish(ScriptFinish),
    /// Bytes of the body as they are, framing included.
    Raw(String),
    /// This many bytes of noise: not UTF-8, not JSON, no line ends; the same every time.
    Garbage(u32),
    /// A sign of life: SSE comment, Anthropic `ping`, or nothing where the dialect has none.
    Ping,
    /// Silence, in milliseconds.
    Pause(u64),
    /// Silence until this file exists: the test decides when to continue, and no time has to be guessed.
    WaitFor(PathBuf),
    /// An error object inside the 200 stream, which ends the reply.
    Error(ErrorMove),
    /// The body ends here, cleanly and without any end marker.
    End,
    /// The connection is closed here in mid-body (FIN without the last chunk).
    Cut,
    /// No more data; the connection stays open until the client closes it.
    Stall,
    /// The connection is reset here (RST).
    Reset,
}

/// Text with its own pace. In a scenario file just the text, or a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpeechMove {
    /// The text.
    pub text: String,
    /// Characters per delta; absent = the script's pace.
    pub chunk_chars: Option<usize>,
    /// Deltas per second; absent = the script's pace.
    pub tokens_per_second: Option<f64>,
}

impl From<&str> for SpeechMove {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for SpeechMove {
    fn from(text: String) -> Self {
        Self { text, chunk_chars: None, tokens_per_second: None }
    }
}

impl<'de> Deserialize<'de> for SpeechMove {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct SpeechTable {
            text: String,
            chunk_chars: Option<usize>,
            tokens_per_second: Option<f64>,
        }
        struct SpeechVisitor;
        impl<'de> Visitor<'de> for SpeechVisitor {
            type Value = SpeechMove;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a table with `text`, `chunk_chars`, `tokens_per_second`")
            }
            fn visit_str<E>(self, text: &str) -> Result<SpeechMove, E> {
                Ok(text.into())
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SpeechMove, A::Error> {
                let SpeechTable { text, chunk_chars, tokens_per_second } =
                    SpeechTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(SpeechMove { text, chunk_chars, tokens_per_second })
            }
        }
        deserializer.deserialize_any(SpeechVisitor)
    }
}

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallMove {
    /// The tool's name on the wire.
    pub name: String,
    /// A string is sent as argument text as it is; anything else is written as compact JSON. Absent = `{}`.
    #[serde(default)]
    pub arguments: Option<Value>,
    /// The id; absent = minted in the dialect's style, unique on this upstream.
    #[serde(default)]
    pub id: Option<String>,
    /// Characters per argument fragment; absent = the script's pace.
    #[serde(default)]
    pub fragment_chars: Option<usize>,
}

impl CallMove {
    /// A call with a JSON value (or raw text, as a JSON string) for arguments.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self { name: name.into(), arguments: Some(arguments), ..Self::default() }
    }

    /// The argument text as it goes over the wire.
    pub fn text(&self) -> String {
        match &self.arguments {
            None => "{}".into(),
            Some(Value::String(raw)) => raw.clone(),
            Some(value) => value.to_string(),
        }
    }
}

/// Token counts; what is absent is estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenCounts {
    /// Prompt tokens.
    pub input: Option<u64>,
    /// Generated tokens, including reasoning.
    pub output: Option<u64>,
    /// Prompt tokens read from a cache.
    pub cached: Option<u64>,
    /// Generated reasoning tokens.
    pub reasoning: Option<u64>,
}

/// Finish reason in neutral words; each dialect has its own spelling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScriptFinish {
    /// A normal end.
    Stop,
    /// The token budget is used up.
    Length,
    /// A normal end with calls.
    ToolCalls,
    /// Withheld by a filter.
    ContentFilter,
    /// Anything else, sent as it is.
    #[serde(untagged)]
    Other(String),
}

/// An error in the provider's own shape.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorMove {
    /// Message for people.
    pub message: String,
    /// `type` (or `status`) on the wire; absent = what fits the dialect.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
    /// `code` on the wire.
    #[serde(default)]
    pub code: Option<String>,
}

impl ErrorMove {
    /// An error with a message only.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

/// Pace of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReplyPace {
    /// Deltas per second; absent = as fast as the socket takes them.
    pub tokens_per_second: Option<f64>,
    /// Characters per text delta; absent = about one token: a word, or one to two Chinese characters.
    pub chunk_chars: Option<usize>,
    /// Characters per argument fragment; absent = 6.
    pub fragment_chars: Option<usize>,
}

impl ReplyPace {
    /// No pauses.
    pub const INSTANT: Self = Self { tokens_per_second: None, chunk_chars: None, fragment_chars: None };
    /// A lively model of the day: 70 tokens a second.
    pub const LIVELY: Self = Self { tokens_per_second: Some(70.0), chunk_chars: None, fragment_chars: None };
}

/// A break in the body at a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BodyCut {
    /// Bytes of the body that are still sent.
    pub byte: u64,
    /// The break itself.
    #[serde(default)]
    pub how: BodyBreak,
}

/// Ways a body breaks off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BodyBreak {
    /// The connection is closed in mid-body.
    #[default]
    Cut,
    /// Silence on an open connection.
    Stall,
    /// Connection reset (RST).
    Reset,
    /// The body ends as if it were complete.
    End,
}

/// An HTTP response instead of a generation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// Further headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// A string is sent as it is, anything else as JSON; absent = the dialect's own error object for this status.
    #[serde(default)]
    pub body: Option<Value>,
}

impl HttpAnswer {
    /// A status with the dialect's own error body.
    pub fn status(status: u16) -> Self {
        Self { status, headers: BTreeMap::new(), body: None }
    }
}

impl ModelScript {
    /// An empty reply, to be built on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text.
    pub fn say(self, text: impl Into<String>) -> Self {
        self.then(ScriptMove::Say(text.into().into()))
    }

    /// Adds reasoning.
    pub fn think(self, text: impl Into<String>) -> Self {
        self.then(ScriptMove::Think(text.into().into()))
    }

    /// Sound with its transcript.
    pub fn speak(self, text: impl Into<String>) -> Self {
        self.then(ScriptMove::Speak(text.into().into()))
    }

    /// A call with a JSON value (or raw text, as a JSON string) for arguments.
    pub fn call(self, name: impl Into<String>, arguments: Value) -> Self {
        self.then(ScriptMove::Call(CallMove::new(name, arguments)))
    }

    /// Adds any move.
    pub fn then(mut self, next: ScriptMove) -> Self {
        self.moves.push(next);
        self
    }

    /// Sets the way in which the reply's calls are written.
    pub fn with_call_style(mut self, calls: CallStyle) -> Self {
        self.calls = calls;
        self
    }

    /// Sets the pace of the reply.
    pub fn with_pace(mut self, pace: ReplyPace) -> Self {
        self.pace = pace;
        self
    }

    /// Breaks the reply at a byte of its body.
    pub fn broken_at(mut self, byte: u64, how: BodyBreak) -> Self {
        self.cut = Some(BodyCut { byte, how });
        self
    }

    /// A status with the dialect's own error body.
    pub fn status(status: u16) -> Self {
        Self { http: Some(HttpAnswer::status(status)), ..Self::default() }
    }

    /// A 429 response with `Retry-After`.
    pub fn rate_limited(retry_after_s: u64) -> Self {
        let headers = BTreeMap::from([("retry-after".into(), retry_after_s.to_string())]);
        Self { http: Some(HttpAnswer { status: 429, headers, body: None }), ..Self::default() }
    }

    /// A proxy's HTML page where an API was expected.
    pub fn html(status: u16) -> Self {
        let page = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1>\
                    </center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";
        let http = HttpAnswer { status, headers: BTreeMap::new(), body: Some(page.into()) };
        Self { http: Some(http), ..Self::default() }
    }

    /// The recorded refusal of a server that cannot call tools.
    pub fn tools_unsupported(vendor: UpstreamVendor) -> Self {
        Self { refuse_tools: Some(vendor), ..Self::default() }
    }

    /// True if any move is a call.
    pub fn calls(&self) -> bool {
        self.moves
            .iter()
            .any(|m| matches!(m, ScriptMove::Call(_) | ScriptMove::HalfCall(_) | ScriptMove::Parallel(_)))
    }
}
