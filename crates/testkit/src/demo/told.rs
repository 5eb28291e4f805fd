//! Reading results: what a tool answered, or why it did not.

use serde_json::Value;

/// What the conversation says about a call. The wording of the cases other than an output is Throughline's own
/// (`Outcome::told_to_model`); with another client everything is an output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// The output, and its JSON form if it has one.
    Output(String, Option<Value>),
    Failed(String),
    Denied(Option<String>),
    Cancelled,
    TimedOut,
    NoViewer,
    /// The closest names.
    NoSuchTool(Vec<String>),
    BadArguments(String),
    /// Not run for another reason, in its words.
    NotRun(String),
}

impl Told {
    pub fn read(text: &str) -> Self {
        let first = text.lines().next().unwrap_or_default();
        let after = |mark: &str| first.split_once(mark).map(|(_, rest)| rest.trim().to_owned());
        if let Some(message) = first.strip_prefix("The tool failed: ") {
            Self::Failed(message.into())
        } else if first.starts_with("Denied:") {
            Self::Denied(after("Reason: "))
        } else if first.starts_with("Cancelled by the user") {
            Self::Cancelled
        } else if first.starts_with("Stopped because it ran longer") || first.starts_with("Given up because")
        {
            Self::TimedOut
        } else if first.starts_with("No page or app that could do this") {
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
            || first.starts_with("The call was started and what became")
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
    use throughline_wire::{NotStarted, Outcome, Output, Started};

    /// The demo understands what Throughline really says.
    #[test]
    fn every_outcome_is_understood() {
        for (outcome, expected) in [
            (Outcome::Failed { message: "boom".into(), partial: None }, Told::Failed("boom.".into())),
            (Outcome::Denied { reason: None }, Told::Denied(None)),
            (Outcome::Denied { reason: Some("not now".into()) }, Told::Denied(Some("not now.".into()))),
            (Outcome::Cancelled(Started::No), Told::Cancelled),
            (Outcome::Cancelled(Started::Yes { ran_ms: 5, partial: None }), Told::Cancelled),
            (Outcome::TimedOut { limit_ms: 1_000, partial: None }, Told::TimedOut),
            (Outcome::NotStarted(NotStarted::NoViewer), Told::NoViewer),
            (
                Outcome::NotStarted(NotStarted::UnknownTool { closest: vec!["a".into(), "b".into()] }),
                Told::NoSuchTool(vec!["a".into(), "b".into()]),
            ),
            (
                Outcome::NotStarted(NotStarted::InvalidArguments {
                    message: "/city: expected a string".into(),
                }),
                Told::BadArguments("/city: expected a string.".into()),
            ),
        ] {
            assert_eq!(Told::read(&outcome.told_to_model()), expected);
        }
        for outcome in [
            Outcome::Unknown,
            Outcome::NotStarted(NotStarted::Interrupted),
            Outcome::NotStarted(NotStarted::Stopped),
            Outcome::NotStarted(NotStarted::Limit { limit: "x".into() }),
        ] {
            assert!(matches!(Told::read(&outcome.told_to_model()), Told::NotRun(_)), "{outcome:?}");
        }
        let output = Outcome::Done(Output::text(r#"{"city":"Oslo","now":{"temp":-3}}"#));
        let told = Told::read(&output.told_to_model());
        assert_eq!(told.field(&["temperature", "temp"]), Some("-3".into()));
        assert_eq!(
            told,
            Told::Output(output.told_to_model(), Some(json!({"city": "Oslo", "now": {"temp": -3}})))
        );
    }
}
