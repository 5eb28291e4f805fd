//! A request by the model to run a tool.

use super::{CallId, UpstreamCallId, WireName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Whether arguments are a JSON document or free text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// Arguments are JSON.
    #[default]
    Function,
    /// A custom (free-form) tool: the input is a plain string (OpenAI `type: "custom"`).
    Custom,
}

/// Argument text exactly as received, not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawArguments(pub String);

/// A change made to argument text so that it could be read. Never silent: each is reported as a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repair {
    /// A finished call with no arguments, `null` or white space reads as `{}` (quirk A1).
    EmptyIsObject,
    /// A leading placeholder `{}` was dropped (quirk A4).
    LeadingPlaceholder,
    /// Every fragment restated the ones before; the last was taken (quirk A5).
    Cumulative,
    /// The same document came twice; one was taken (quirks A8, T15).
    ExactRepetition,
    /// A JSON string that holds a JSON object was unwrapped once (quirk A6).
    DoubleEncoded,
    /// Half a surrogate pair became U+FFFD (quirk S7).
    LoneSurrogate,
}

/// Arguments that are final: valid JSON (or free text of a custom tool).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arguments {
    /// The text that is run, stored and echoed: as received, but for the repairs listed.
    pub text: String,
    /// The same as a value. Integers beyond 64 bits are rounded here and exact in `text`.
    pub value: Value,
    /// What was changed to get here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<Repair>,
}

impl Arguments {
    /// Arguments from a value, as text in its compact form.
    pub fn from_value(value: Value) -> Self {
        Self { text: value.to_string(), value, repairs: Vec::new() }
    }
}

/// A tool call as the model made it, ready to be sent back with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Our id.
    pub id: CallId,
    /// Theirs, if they sent one that is unique in its step.
    pub upstream_id: Option<UpstreamCallId>,
    /// The tool's name on the wire.
    pub name: WireName,
    /// JSON or free text.
    #[serde(default)]
    pub kind: CallKind,
    /// The final arguments, or the raw text of a call that could not be read.
    pub arguments: Result<Arguments, RawArguments>,
}
