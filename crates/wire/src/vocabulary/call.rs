//! A request by the model to run a tool.

use super::{CallId, UpstreamCallId, WireName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Kind of arguments: a JSON document or free text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// A function whose arguments are JSON.
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
pub enum ArgumentRepair {
    /// A finished call with no arguments, `null` or white space reads as `{}`.
    EmptyIsObject,
    /// A leading placeholder `{}` was dropped.
    LeadingPlaceholder,
    /// Every fragment restated the ones before; the last was taken.
    Cumulative,
    /// The same document came twice; one was taken.
    ExactRepetition,
    /// A JSON string that holds a JSON object was unwrapped once.
    DoubleEncoded,
    /// Half a surrogate pair became U+FFFD.
    LoneSurrogate,
}

/// Arguments that are final: valid JSON (or free text of a custom tool).
///
/// ```
/// use throughline_wire::CallArguments;
///
/// let arguments = CallArguments::from_value(serde_json::json!({"city": "Oslo"}));
/// assert_eq!(arguments.text, r#"{"city":"Oslo"}"#);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallArguments {
    /// The text that is run, stored and echoed: as received, but for the repairs listed.
    pub text: String,
    /// The arguments as a value. Integers beyond 64 bits are rounded here and exact in `text`.
    pub value: Value,
    /// Repairs that led to this value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<ArgumentRepair>,
}

impl CallArguments {
    /// Arguments from a value, as text in its compact form.
    pub fn from_value(value: Value) -> Self {
        Self { text: value.to_string(), value, repairs: Vec::new() }
    }
}

/// A tool call as the model made it, ready to be sent back with its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Our id of the call.
    pub id: CallId,
    /// Theirs, if they sent one that is unique in its step.
    pub upstream_id: Option<UpstreamCallId>,
    /// The tool's name on the wire.
    pub name: WireName,
    /// JSON or free text.
    #[serde(default)]
    pub kind: CallKind,
    /// The final arguments, or the raw text of a call that could not be read.
    pub arguments: Result<CallArguments, RawArguments>,
    /// Arguments that the call ran with, if a person changed them first. The call is echoed as the model made it; the
    /// change is reported with the outcome ([`Call::outcome_text`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_with: Option<CallArguments>,
}

impl Call {
    /// The arguments as an object, for upstreams that take nothing else (Anthropic, Gemini, Ollama): free
    /// text is wrapped as `{"input": text}`, and unreadable arguments as `{"unreadable_arguments": raw}`, so
    /// that the model sees its own text instead of an invented `{}`.
    pub fn arguments_object(&self) -> Value {
        match &self.arguments {
            Ok(arguments) if arguments.value.is_object() => arguments.value.clone(),
            Ok(arguments) => json!({ "input": arguments.value }),
            Err(RawArguments(raw)) => json!({ "unreadable_arguments": raw }),
        }
    }

    /// The arguments as text, for upstreams that take a string: always a JSON document for a function (servers parse
    /// it to fill the chat template), the plain input for a custom tool.
    pub fn arguments_text(&self) -> String {
        match (&self.arguments, self.kind) {
            (Ok(arguments), _) => arguments.text.clone(),
            (Err(RawArguments(raw)), CallKind::Custom) => raw.clone(),
            (Err(_), CallKind::Function) => self.arguments_object().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: CallKind, arguments: Result<CallArguments, RawArguments>, object: Value, text: &str) {
        let call =
            Call { id: "c1".into(), upstream_id: None, name: "f".into(), kind, arguments, ran_with: None };
        assert_eq!(call.arguments_object(), object);
        assert_eq!(call.arguments_text(), text);
    }

    #[test]
    fn arguments_have_a_valid_object_and_text_for_upstreams() {
        let ok =
            |text: &str, value: Value| Ok(CallArguments { text: text.into(), value, repairs: Vec::new() });
        let raw = |text: &str| Err(RawArguments(text.into()));
        check(CallKind::Function, ok(r#"{"a": 1}"#, json!({"a": 1})), json!({"a": 1}), r#"{"a": 1}"#);
        check(CallKind::Custom, ok("ls -l", json!("ls -l")), json!({"input": "ls -l"}), "ls -l");
        check(
            CallKind::Function,
            raw(r#"{"a"#),
            json!({"unreadable_arguments": "{\"a"}),
            r#"{"unreadable_arguments":"{\"a"}"#,
        );
        check(CallKind::Custom, raw("ls"), json!({"unreadable_arguments": "ls"}), "ls");
    }
}
