//! The text of an outcome for models. Every sentence is derived from the type, so it cannot claim that
//! nothing happened for a tool that had started.
//!
//! The sentences are in English for every language of the user: models read them, and they stay the same byte
//! for byte so that prompt caches remain valid.

use super::{Call, CallOutcome, NotStarted, StartState, ToolOutput};

impl CallOutcome {
    /// Text of this outcome in the dialect's tool role. Pictures travel separately ([`CallOutcome::output`]).
    pub fn model_text(&self) -> String {
        match self {
            CallOutcome::Done(output) => done_text(output),
            CallOutcome::Failed { message, partial } => {
                with_partial(format!("The tool failed: {}", sentence(message)), partial.as_ref())
            }
            CallOutcome::Denied { reason: Some(reason) } if !reason.trim().is_empty() => {
                format!(
                    "Denied: the call was not allowed and was not started; nothing happened. Reason: {}",
                    sentence(reason)
                )
            }
            CallOutcome::Denied { .. } => {
                "Denied: the call was not allowed and was not started; nothing happened.".into()
            }
            CallOutcome::Cancelled(StartState::No) => {
                "Cancelled by the user before it was started; nothing happened.".into()
            }
            CallOutcome::Cancelled(StartState::Yes { ran_ms, partial }) => with_partial(
                format!(
                    "Cancelled by the user after running {}; it may have had effects.",
                    duration_text(*ran_ms)
                ),
                partial.as_ref(),
            ),
            CallOutcome::TimedOut { limit_ms, partial } => with_partial(
                format!(
                    "Timed out after its limit of {}; it may have had effects.",
                    duration_text(*limit_ms)
                ),
                partial.as_ref(),
            ),
            CallOutcome::NotStarted(why) => not_started_text(why),
            CallOutcome::Unknown { message: Some(message), partial } if !message.trim().is_empty() => {
                let why = sentence(message);
                let text = format!(
                    "The call was started, but its outcome is unknown: {why} It may have had effects. Check \
                     before trying again."
                );
                with_partial(text, partial.as_ref())
            }
            CallOutcome::Unknown { partial, .. } => with_partial(
                "The call was started, but its outcome is unknown; it may have had effects. Check before trying again."
                    .into(),
                partial.as_ref(),
            ),
        }
    }

    /// Output of the tool, whole or in part.
    pub fn output(&self) -> Option<&ToolOutput> {
        match self {
            CallOutcome::Done(output) => Some(output),
            CallOutcome::Failed { partial, .. }
            | CallOutcome::TimedOut { partial, .. }
            | CallOutcome::Unknown { partial, .. }
            | CallOutcome::Cancelled(StartState::Yes { partial, .. }) => partial.as_ref(),
            CallOutcome::Cancelled(StartState::No)
            | CallOutcome::Denied { .. }
            | CallOutcome::NotStarted(_) => None,
        }
    }

    /// True if the tool had begun: it may have had side effects.
    pub fn had_started(&self) -> bool {
        match self {
            CallOutcome::Done(_)
            | CallOutcome::Failed { .. }
            | CallOutcome::Cancelled(StartState::Yes { .. })
            | CallOutcome::TimedOut { .. }
            | CallOutcome::Unknown { .. } => true,
            CallOutcome::Denied { .. }
            | CallOutcome::Cancelled(StartState::No)
            | CallOutcome::NotStarted(_) => false,
        }
    }

    /// True for everything but [`CallOutcome::Done`]: dialects with an error flag on results send it as `is_error`.
    pub fn is_error(&self) -> bool {
        !matches!(self, CallOutcome::Done(_))
    }
}

impl Call {
    /// Text of the outcome of this call in the dialect's tool role or text protocol: every encoder sends it.
    /// If a person changed the arguments it begins with that.
    pub fn outcome_text(&self, outcome: &CallOutcome) -> String {
        let text = outcome.model_text();
        match (&self.ran_with, outcome.had_started()) {
            (None, _) => text,
            (Some(with), true) => {
                format!("The user changed the arguments before it ran: {}\n{text}", with.text)
            }
            (Some(with), false) => format!("The user changed the arguments: {}\n{text}", with.text),
        }
    }
}

fn done_text(output: &ToolOutput) -> String {
    match (output.text.trim().is_empty(), output.media.len()) {
        (false, _) => output.text.clone(),
        (true, 0) => "Done; the tool returned no text.".into(),
        (true, 1) => "Done; the tool returned one picture or sound.".into(),
        (true, n) => format!("Done; the tool returned {n} pictures or sounds."),
    }
}

fn not_started_text(why: &NotStarted) -> String {
    match why {
        NotStarted::Interrupted => {
            "The reply ended before the call was complete, so it was not started; nothing happened.".into()
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
            "No page or app that can run this tool is connected, so it was not started; nothing happened."
                .into()
        }
        NotStarted::Stopped => {
            "The user stopped the reply before the call was started; nothing happened.".into()
        }
        NotStarted::Limit { limit } => {
            format!("The limit `{limit}` was reached, so the call was not started; nothing happened.")
        }
    }
}

fn with_partial(text: String, partial: Option<&ToolOutput>) -> String {
    match partial {
        Some(output) if !output.text.is_empty() => format!("{text}\nOutput so far:\n{}", output.text),
        _ => text,
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
fn duration_text(ms: u64) -> String {
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
        let so_far = || Some(ToolOutput::text("2 of 3 rows"));
        let table = [
            (CallOutcome::Done(ToolOutput::text("晴, 21°")), "晴, 21°"),
            (CallOutcome::Done(ToolOutput::default()), "Done; the tool returned no text."),
            (
                CallOutcome::Failed { message: "no such city".into(), partial: None },
                "The tool failed: no such city.",
            ),
            (
                CallOutcome::Denied { reason: Some("not today".into()) },
                "Denied: the call was not allowed and was not started; nothing happened. Reason: not today.",
            ),
            (
                CallOutcome::Cancelled(StartState::Yes { ran_ms: 1_234, partial: so_far() }),
                "Cancelled by the user after running 1.2 s; it may have had effects.\nOutput so far:\n2 of 3 rows",
            ),
            (
                CallOutcome::Cancelled(StartState::No),
                "Cancelled by the user before it was started; nothing happened.",
            ),
            (
                CallOutcome::TimedOut { limit_ms: 30_000, partial: None },
                "Timed out after its limit of 30 s; it may have had effects.",
            ),
            (
                CallOutcome::unknown(),
                "The call was started, but its outcome is unknown; it may have had effects. Check before trying again.",
            ),
            (
                CallOutcome::Unknown {
                    message: Some("the MCP server `x` ended before it had answered".into()),
                    partial: so_far(),
                },
                "The call was started, but its outcome is unknown: the MCP server `x` ended before it had \
                 answered. It may have had effects. Check before trying again.\nOutput so far:\n2 of 3 rows",
            ),
            (
                CallOutcome::NotStarted(NotStarted::UnknownTool { closest: vec!["demo_weather".into()] }),
                "There is no tool of this name, so nothing was started; nothing happened. Did you mean demo_weather?",
            ),
        ];
        for (outcome, text) in table {
            assert_eq!(outcome.model_text(), text);
        }
    }

    // The sentence follows from whether the tool had started.
    #[test]
    fn only_unstarted_calls_claim_that_nothing_happened() {
        let partial = || Some(ToolOutput::text("x"));
        let started = [
            CallOutcome::Done(ToolOutput::text("x")),
            CallOutcome::Failed { message: "m".into(), partial: partial() },
            CallOutcome::Cancelled(StartState::Yes { ran_ms: 0, partial: partial() }),
            CallOutcome::TimedOut { limit_ms: 1, partial: None },
            CallOutcome::unknown(),
            CallOutcome::Unknown { message: Some("the line broke".into()), partial: partial() },
        ];
        for outcome in started {
            assert!(!outcome.model_text().contains("nothing happened"), "{outcome:?}");
        }
        let not_started = [
            CallOutcome::Denied { reason: None },
            CallOutcome::Cancelled(StartState::No),
            CallOutcome::NotStarted(NotStarted::Interrupted),
            CallOutcome::NotStarted(NotStarted::InvalidArguments {
                message: "/city: expected a string".into(),
            }),
            CallOutcome::NotStarted(NotStarted::Refused { message: "the block has no END marker".into() }),
            CallOutcome::NotStarted(NotStarted::UnknownTool { closest: vec![] }),
            CallOutcome::NotStarted(NotStarted::NoViewer),
            CallOutcome::NotStarted(NotStarted::Stopped),
            CallOutcome::NotStarted(NotStarted::Limit { limit: "iterations_max".into() }),
        ];
        for outcome in not_started {
            assert!(outcome.model_text().contains("nothing happened"), "{outcome:?}");
        }
    }
}
