//! What a model is told about an outcome. Every sentence is derived from the type, so it cannot say "nothing
//! happened" about a tool that had started.
//!
//! The sentences are in English whatever the user speaks: they are read by models, and stay the same byte for byte so
//! that prompt caches survive.

use super::{Call, NotStarted, Outcome, Output, Started};

impl Outcome {
    /// The text that stands for this outcome in the dialect's tool role. Pictures travel beside it
    /// ([`Outcome::output`]).
    pub fn told_to_model(&self) -> String {
        match self {
            Outcome::Done(output) => done(output),
            Outcome::Failed { message, partial } => {
                with_partial(format!("The tool failed: {}", sentence(message)), partial.as_ref())
            }
            Outcome::Denied { reason: Some(reason) } if !reason.trim().is_empty() => {
                format!(
                    "Denied: the call was not allowed and was not started; nothing happened. Reason: {}",
                    sentence(reason)
                )
            }
            Outcome::Denied { .. } => {
                "Denied: the call was not allowed and was not started; nothing happened.".into()
            }
            Outcome::Cancelled(Started::No) => {
                "Cancelled by the user before it was started; nothing happened.".into()
            }
            Outcome::Cancelled(Started::Yes { ran_ms, partial }) => with_partial(
                format!("Cancelled by the user after running {}; it may have had effects.", seconds(*ran_ms)),
                partial.as_ref(),
            ),
            Outcome::TimedOut { limit_ms, partial } => with_partial(
                format!(
                    "Given up because it did not end within its limit of {}; it may have had effects.",
                    seconds(*limit_ms)
                ),
                partial.as_ref(),
            ),
            Outcome::NotStarted(why) => not_started(why),
            Outcome::Unknown => {
                "The call was started and what became of it is not known; it may have had effects. \
                 Check before trying again."
                    .into()
            }
        }
    }

    /// What the tool produced, whole or in part.
    pub fn output(&self) -> Option<&Output> {
        match self {
            Outcome::Done(output) => Some(output),
            Outcome::Failed { partial, .. }
            | Outcome::TimedOut { partial, .. }
            | Outcome::Cancelled(Started::Yes { partial, .. }) => partial.as_ref(),
            Outcome::Cancelled(Started::No)
            | Outcome::Denied { .. }
            | Outcome::NotStarted(_)
            | Outcome::Unknown => None,
        }
    }

    /// Whether the tool had begun: then it may have had effects.
    pub fn had_started(&self) -> bool {
        match self {
            Outcome::Done(_)
            | Outcome::Failed { .. }
            | Outcome::Cancelled(Started::Yes { .. })
            | Outcome::TimedOut { .. }
            | Outcome::Unknown => true,
            Outcome::Denied { .. } | Outcome::Cancelled(Started::No) | Outcome::NotStarted(_) => false,
        }
    }

    /// True for everything but [`Outcome::Done`]: what dialects with an error flag on results send as `is_error`.
    pub fn is_error(&self) -> bool {
        !matches!(self, Outcome::Done(_))
    }
}

impl Call {
    /// The text that stands for the outcome of this call in the dialect's tool role or text protocol: what every encoder
    /// sends. Where a person changed the arguments it says so first. R: A2
    pub fn told_to_model(&self, outcome: &Outcome) -> String {
        let told = outcome.told_to_model();
        match (&self.ran_with, outcome.had_started()) {
            (None, _) => told,
            (Some(with), true) => {
                format!("The user changed the arguments before it ran: {}\n{told}", with.text)
            }
            (Some(with), false) => format!("The user changed the arguments: {}\n{told}", with.text),
        }
    }
}

fn done(output: &Output) -> String {
    match (output.text.is_empty(), output.media.len()) {
        (false, _) => output.text.clone(),
        (true, 0) => "Done; the tool returned no text.".into(),
        (true, 1) => "Done; the tool returned one picture or sound.".into(),
        (true, n) => format!("Done; the tool returned {n} pictures or sounds."),
    }
}

fn not_started(why: &NotStarted) -> String {
    match why {
        NotStarted::Interrupted => {
            "The reply broke off before the call was complete, so it was not started; nothing happened."
                .into()
        }
        NotStarted::InvalidArguments { message } => format!(
            "The arguments are not valid, so the call was not started; nothing happened. {} \
             Correct the arguments and call again.",
            sentence(message)
        ),
        NotStarted::Refused { message } => format!(
            "The request could not be read, so nothing was started; nothing happened. {} Write it again.",
            sentence(message)
        ),
        NotStarted::UnknownTool { closest } if closest.is_empty() => {
            "There is no tool of this name, so nothing was started; nothing happened.".into()
        }
        NotStarted::UnknownTool { closest } => format!(
            "There is no tool of this name, so nothing was started; nothing happened. Did you mean {}?",
            closest.join(", ")
        ),
        NotStarted::NoViewer => {
            "No page or app that could do this is connected, so it was not started; nothing happened.".into()
        }
        NotStarted::Stopped => {
            "The user stopped the reply before the call was started; nothing happened.".into()
        }
        NotStarted::Limit { limit } => {
            format!("The limit `{limit}` was reached, so the call was not started; nothing happened.")
        }
    }
}

fn with_partial(said: String, partial: Option<&Output>) -> String {
    match partial {
        Some(output) if !output.text.is_empty() => format!("{said}\nOutput so far:\n{}", output.text),
        _ => said,
    }
}

/// A text as a sentence: trimmed, with an end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    match text.chars().last() {
        None => "no reason was given.".into(),
        Some('.' | '!' | '?' | '。' | '！' | '？' | '}' | ']') => text.into(),
        Some(_) => format!("{text}."),
    }
}

/// `1.2 s`, `45 s`, `250 ms`.
fn seconds(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        _ if ms.is_multiple_of(1_000) || ms >= 60_000 => format!("{} s", ms / 1_000),
        _ => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_sentence() {
        let so_far = || Some(Output::text("2 of 3 rows"));
        let table = [
            (Outcome::Done(Output::text("晴, 21°")), "晴, 21°"),
            (Outcome::Done(Output::default()), "Done; the tool returned no text."),
            (
                Outcome::Failed { message: "no such city".into(), partial: None },
                "The tool failed: no such city.",
            ),
            (
                Outcome::Denied { reason: Some("not today".into()) },
                "Denied: the call was not allowed and was not started; nothing happened. Reason: not today.",
            ),
            (
                Outcome::Cancelled(Started::Yes { ran_ms: 1_234, partial: so_far() }),
                "Cancelled by the user after running 1.2 s; it may have had effects.\nOutput so far:\n2 of 3 rows",
            ),
            (
                Outcome::Cancelled(Started::No),
                "Cancelled by the user before it was started; nothing happened.",
            ),
            (
                Outcome::TimedOut { limit_ms: 30_000, partial: None },
                "Given up because it did not end within its limit of 30 s; it may have had effects.",
            ),
            (
                Outcome::NotStarted(NotStarted::UnknownTool { closest: vec!["demo_weather".into()] }),
                "There is no tool of this name, so nothing was started; nothing happened. Did you mean demo_weather?",
            ),
        ];
        for (outcome, told) in table {
            assert_eq!(outcome.told_to_model(), told);
        }
    }

    /// R: T8, M9: the sentence follows from whether the tool had started.
    #[test]
    fn a_tool_that_had_started_is_never_said_to_have_done_nothing() {
        let partial = || Some(Output::text("x"));
        let started = [
            Outcome::Done(Output::text("x")),
            Outcome::Failed { message: "m".into(), partial: partial() },
            Outcome::Cancelled(Started::Yes { ran_ms: 0, partial: partial() }),
            Outcome::TimedOut { limit_ms: 1, partial: None },
            Outcome::Unknown,
        ];
        for outcome in started {
            assert!(!outcome.told_to_model().contains("nothing happened"), "{outcome:?}");
        }
        let not_started = [
            Outcome::Denied { reason: None },
            Outcome::Cancelled(Started::No),
            Outcome::NotStarted(NotStarted::Interrupted),
            Outcome::NotStarted(NotStarted::InvalidArguments { message: "/city: expected a string".into() }),
            Outcome::NotStarted(NotStarted::Refused { message: "the block has no END marker".into() }),
            Outcome::NotStarted(NotStarted::UnknownTool { closest: vec![] }),
            Outcome::NotStarted(NotStarted::NoViewer),
            Outcome::NotStarted(NotStarted::Stopped),
            Outcome::NotStarted(NotStarted::Limit { limit: "iterations_max".into() }),
        ];
        for outcome in not_started {
            assert!(outcome.told_to_model().contains("nothing happened"), "{outcome:?}");
        }
    }
}
