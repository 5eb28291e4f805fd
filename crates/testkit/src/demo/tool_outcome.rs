//! Reads results: a tool's output, or the reason why there is none.

use serde_json::Value;

/// Outcome of a call, as the conversation has it. The wording of the cases other than an output is Throughline's own
/// (`CallOutcome::model_text`); with another client everything is an output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ParsedOutcome {
    /// The output, and its JSON form if it has one.
    Output(String, Option<Value>),
    Failed(String),
    Denied(Option<String>),
    Cancelled,
    TimedOut,
    NoViewer,
    /// No such tool; with the closest names.
    NoSuchTool(Vec<String>),
    BadArguments(String),
    /// Not run for another reason, with its text.
    NotRun(String),
}

impl ParsedOutcome {
    pub fn parse(text: &str) -> Self {
        let first = text.lines().next().unwrap_or_default();
        let after = |mark: &str| first.split_once(mark).map(|(_, rest)| rest.trim().to_owned());
        if let Some(message) = first.strip_prefix("The tool failed: ") {
            Self::Failed(message.into())
        } else if first.starts_with("Denied:") {
            Self::Denied(after("Reason: "))
        } else if first.starts_with("Cancelled by the user") {
            Self::Cancelled
        } else if first.starts_with("Stopped because it ran longer") || first.starts_with("Timed out after") {
            Self::TimedOut
        } else if first.starts_with("No page or app that can run this tool") {
            Self::NoViewer
        } else if first.starts_with("There is no tool of this name") {
            let names = after("Did you mean ").unwrap_or_default();
            let names = names.trim_end_matches('?').split(", ").filter(|name| !name.is_empty());
            Self::NoSuchTool(names.map(str::to_owned).collect())
        } else if first.starts_with("The arguments are not valid") {
            let why = after("nothing happened. ").unwrap_or_default();
            Self::BadArguments(why.replace(" Correct the arguments and call again.", ""))
        } else if first.ends_with("nothing happened.")
            || first.starts_with("The request could not be read")
            || first.starts_with("The call was started, but its outcome is unknown")
        {
            Self::NotRun(first.into())
        } else {
            Self::Output(text.into(), serde_json::from_str(text).ok().filter(Value::is_object))
        }
    }

    /// A field of a structured output, under the first name that is there, also one level down.
    pub fn field(&self, names: &[&str]) -> Option<String> {
        let Self::Output(_, Some(value)) = self else { return None };
        let nested = value.as_object()?.values().filter(|inner| inner.is_object());
        let found = std::iter::once(value)
            .chain(nested)
            .find_map(|object| names.iter().find_map(|name| object.get(*name)));
        match found? {
            Value::String(text) => Some(text.clone()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
            other => Some(other.to_string()),
        }
    }

    pub fn is_output(&self) -> bool {
        matches!(self, Self::Output(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use throughline_wire::{CallOutcome, NotStarted, StartState, ToolOutput};

    /// The demo understands what Throughline really says.
    #[test]
    fn outcome_texts_are_parsed() {
        for (outcome, expected) in [
            (
                CallOutcome::Failed { message: "boom".into(), partial: None },
                ParsedOutcome::Failed("boom.".into()),
            ),
            (CallOutcome::Denied { reason: None }, ParsedOutcome::Denied(None)),
            (
                CallOutcome::Denied { reason: Some("not now".into()) },
                ParsedOutcome::Denied(Some("not now.".into())),
            ),
            (CallOutcome::Cancelled(StartState::No), ParsedOutcome::Cancelled),
            (CallOutcome::Cancelled(StartState::Yes { ran_ms: 5, partial: None }), ParsedOutcome::Cancelled),
            (CallOutcome::TimedOut { limit_ms: 1_000, partial: None }, ParsedOutcome::TimedOut),
            (CallOutcome::NotStarted(NotStarted::NoViewer), ParsedOutcome::NoViewer),
            (
                CallOutcome::NotStarted(NotStarted::UnknownTool { closest: vec!["a".into(), "b".into()] }),
                ParsedOutcome::NoSuchTool(vec!["a".into(), "b".into()]),
            ),
            (
                CallOutcome::NotStarted(NotStarted::InvalidArguments {
                    message: "/city: expected a string".into(),
                }),
                ParsedOutcome::BadArguments("/city: expected a string.".into()),
            ),
        ] {
            assert_eq!(ParsedOutcome::parse(&outcome.model_text()), expected);
        }
        for outcome in [
            CallOutcome::unknown(),
            CallOutcome::NotStarted(NotStarted::Interrupted),
            CallOutcome::NotStarted(NotStarted::Stopped),
            CallOutcome::NotStarted(NotStarted::Limit { limit: "x".into() }),
        ] {
            assert!(
                matches!(ParsedOutcome::parse(&outcome.model_text()), ParsedOutcome::NotRun(_)),
                "{outcome:?}"
            );
        }
        let output = CallOutcome::Done(ToolOutput::text(r#"{"city":"Oslo","now":{"temp":-3}}"#));
        let outcome = ParsedOutcome::parse(&output.model_text());
        assert_eq!(outcome.field(&["temperature", "temp"]), Some("-3".into()));
        assert_eq!(
            outcome,
            ParsedOutcome::Output(output.model_text(), Some(json!({"city": "Oslo", "now": {"temp": -3}})))
        );
    }
}
