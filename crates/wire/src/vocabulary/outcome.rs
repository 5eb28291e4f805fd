//! Outcomes of calls, as the model receives them.

use super::Media;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Output of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// Text for the model: already limited to its head and tail.
    pub text: String,
    /// The structured form, if the tool has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Pictures for models that can see, and for the card.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// Size of the whole output in bytes, before any limit.
    pub size: u64,
    /// Path of the file with the whole output, if it was over the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spilled_to: Option<String>,
}

impl ToolOutput {
    /// Output of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { size: text.len() as u64, text, ..Self::default() }
    }
}

/// Start state of a call that did not finish; it decides which side effects are possible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartState {
    /// The tool never ran: nothing happened.
    No,
    /// The tool ran for a while: it may have had effects.
    Yes {
        /// Running time, in milliseconds.
        ran_ms: u64,
        /// Output so far.
        partial: Option<ToolOutput>,
    },
}

/// Reason why a call never ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotStarted {
    /// The stream broke before the call was complete.
    Interrupted,
    /// The arguments are not valid JSON; `message` names the position.
    InvalidArguments {
        /// The error, with path and expectation.
        message: String,
    },
    /// The model's text is no whole call; `message` gives the reason.
    Refused {
        /// The error and its correction.
        message: String,
    },
    /// No tool of this name is offered.
    UnknownTool {
        /// Closest names of offered tools.
        closest: Vec<String>,
    },
    /// A client-side tool with no client connected.
    NoViewer,
    /// The turn was stopped first.
    Stopped,
    /// A limit was reached first; `limit` is its name.
    Limit {
        /// Name of the limit.
        limit: String,
    },
}

/// The end of a call: exactly one for each call, as a value and never as an exception.
///
/// ```
/// use throughline_wire::{CallOutcome, NotStarted, ToolOutput};
///
/// assert_eq!(CallOutcome::Done(ToolOutput::text("sunny")).model_text(), "sunny");
/// let outcome = CallOutcome::NotStarted(NotStarted::UnknownTool { closest: vec!["files_read".to_owned()] });
/// assert!(outcome.is_error() && !outcome.had_started());
/// assert!(outcome.model_text().contains("Did you mean files_read?"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", remote = "Self")]
pub enum CallOutcome {
    /// The tool finished.
    Done(ToolOutput),
    /// The tool reported that it failed.
    Failed {
        /// The tool's error message.
        message: String,
        /// Output so far.
        partial: Option<ToolOutput>,
    },
    /// A person or a rule refused.
    Denied {
        /// The reason given, if one was.
        reason: Option<String>,
    },
    /// Stopped by the user.
    Cancelled(StartState),
    /// The call exceeded its time limit and was stopped.
    TimedOut {
        /// The limit in milliseconds.
        limit_ms: u64,
        /// Output so far.
        partial: Option<ToolOutput>,
    },
    /// The call never ran.
    NotStarted(NotStarted),
    /// The call was started, and its end is not known: a crash, or a connection that broke before the answer.
    Unknown {
        /// The reason, if one is known.
        message: Option<String>,
        /// Output so far.
        partial: Option<ToolOutput>,
    },
}

impl CallOutcome {
    /// A call that was started, and nothing else is known of it.
    pub fn unknown() -> Self {
        Self::Unknown { message: None, partial: None }
    }
}

// An outcome without a reason is the bare word `unknown`, as before reasons existed: old data is readable
// now, and new data by older releases.
impl Serialize for CallOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unknown { message: None, partial: None } => serializer.serialize_str("unknown"),
            known => Self::serialize(known, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CallOutcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) if word == "unknown" => Ok(Self::unknown()),
            known => Self::deserialize(known).map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_without_details_serializes_as_a_bare_string() {
        let broken = |message: Option<&str>, partial: Option<&str>| CallOutcome::Unknown {
            message: message.map(str::to_owned),
            partial: partial.map(ToolOutput::text),
        };
        let table = [
            (CallOutcome::unknown(), r#""unknown""#),
            (broken(Some("reset"), None), r#"{"unknown":{"message":"reset","partial":null}}"#),
            (
                broken(None, Some("half")),
                r#"{"unknown":{"message":null,"partial":{"text":"half","size":4}}}"#,
            ),
            (CallOutcome::Denied { reason: None }, r#"{"denied":{"reason":null}}"#),
        ];
        for (outcome, json) in table {
            assert_eq!(serde_json::to_string(&outcome).unwrap(), json);
            assert_eq!(serde_json::from_str::<CallOutcome>(json).unwrap(), outcome);
        }
        assert!(serde_json::from_str::<CallOutcome>(r#""done""#).is_err());
    }
}
