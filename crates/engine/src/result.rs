//! An outcome as a `tool_result` event, and back: nothing of it is lost in the log.

use crate::event::{CallStatus, ToolError, ToolInput, ToolResult};
use crate::id::Millis;
use crate::summary;
use throughline_wire::{Arguments, BrokenCall, NotStarted, Outcome, Output, RawArguments, Started};

/// When a call ran: from when, and for how long in milliseconds.
pub(crate) type Ran = (Millis, u64);

impl ToolResult {
    /// The event's content for an outcome. `ran` is `None` if the tool never started.
    pub(crate) fn new(outcome: &Outcome, ran: Option<Ran>, seen_by_model: Option<bool>) -> Self {
        let output = outcome.output();
        let (started_at, duration_ms) = match (outcome, ran) {
            // What the tool says about its own running time wins; it is told to the model.
            (Outcome::Cancelled(Started::Yes { ran_ms, .. }), Some((at, _))) => (Some(at), Some(*ran_ms)),
            (_, ran) => (ran.map(|(at, _)| at), ran.map(|(_, ms)| ms)),
        };
        Self {
            status: status_of(outcome),
            output: output.map(|output| output.text.clone()),
            output_value: output.and_then(|output| output.value.clone()),
            output_media: output.map(|output| output.media.clone()).unwrap_or_default(),
            output_size: output.map(|output| output.size),
            output_spilled_to: output.and_then(|output| output.spilled_to.clone()),
            output_summary: output.map(|output| summary::of_text(&output.text)).unwrap_or_default(),
            error: error_of(outcome),
            rule: None,
            started_at,
            duration_ms,
            applied: None,
            seen_by_model,
        }
    }

    /// The outcome as a value.
    pub fn outcome(&self) -> Outcome {
        let output = || {
            self.output.as_ref().map(|text| Output {
                text: text.clone(),
                value: self.output_value.clone(),
                media: self.output_media.clone(),
                size: self.output_size.unwrap_or(text.len() as u64),
                spilled_to: self.output_spilled_to.clone(),
            })
        };
        let error = self.error.clone().unwrap_or_default();
        let message = || error.message.clone().unwrap_or_default();
        match self.status {
            CallStatus::Success => Outcome::Done(output().unwrap_or_default()),
            CallStatus::Error => Outcome::Failed { message: message(), partial: output() },
            CallStatus::Denied => Outcome::Denied { reason: error.message },
            CallStatus::Cancelled if error.code == "cancelled_before_start" => {
                Outcome::Cancelled(Started::No)
            }
            CallStatus::Cancelled => Outcome::Cancelled(Started::Yes {
                ran_ms: self.duration_ms.unwrap_or_default(),
                partial: output(),
            }),
            CallStatus::TimedOut => {
                Outcome::TimedOut { limit_ms: error.limit_ms.unwrap_or_default(), partial: output() }
            }
            CallStatus::NotStarted => Outcome::NotStarted(match error.code.as_str() {
                "invalid_arguments" => NotStarted::InvalidArguments { message: message() },
                "refused" => NotStarted::Refused { message: message() },
                "unknown_tool" => NotStarted::UnknownTool { closest: error.closest },
                "no_viewer" => NotStarted::NoViewer,
                "stopped" => NotStarted::Stopped,
                "limit" => NotStarted::Limit { limit: error.limit.unwrap_or_default() },
                _ => NotStarted::Interrupted,
            }),
            // A status that cannot end a call can only come from a log that is not ours.
            CallStatus::Unknown
            | CallStatus::Preparing
            | CallStatus::Queued
            | CallStatus::AwaitingApproval
            | CallStatus::Running => Outcome::Unknown,
        }
    }
}

fn status_of(outcome: &Outcome) -> CallStatus {
    match outcome {
        Outcome::Done(_) => CallStatus::Success,
        Outcome::Failed { .. } => CallStatus::Error,
        Outcome::Denied { .. } => CallStatus::Denied,
        Outcome::Cancelled(_) => CallStatus::Cancelled,
        Outcome::TimedOut { .. } => CallStatus::TimedOut,
        Outcome::NotStarted(_) => CallStatus::NotStarted,
        Outcome::Unknown => CallStatus::Unknown,
    }
}

fn error_of(outcome: &Outcome) -> Option<ToolError> {
    let code = |code: &str| ToolError { code: code.into(), ..ToolError::default() };
    Some(match outcome {
        Outcome::Done(_) => return None,
        Outcome::Failed { message, .. } => ToolError { message: Some(message.clone()), ..code("failed") },
        Outcome::Denied { reason } => ToolError { message: reason.clone(), ..code("denied") },
        Outcome::Cancelled(Started::No) => code("cancelled_before_start"),
        Outcome::Cancelled(Started::Yes { .. }) => code("cancelled"),
        Outcome::TimedOut { limit_ms, .. } => ToolError { limit_ms: Some(*limit_ms), ..code("timed_out") },
        Outcome::Unknown => code("unknown"),
        Outcome::NotStarted(why) => match why {
            NotStarted::InvalidArguments { message } => {
                ToolError { message: Some(message.clone()), ..code("invalid_arguments") }
            }
            NotStarted::Refused { message } => {
                ToolError { message: Some(message.clone()), ..code("refused") }
            }
            NotStarted::UnknownTool { closest } => {
                ToolError { closest: closest.clone(), ..code("unknown_tool") }
            }
            NotStarted::NoViewer => code("no_viewer"),
            NotStarted::Stopped => code("stopped"),
            NotStarted::Limit { limit } => ToolError { limit: Some(limit.clone()), ..code("limit") },
            _ => code("interrupted"),
        },
    })
}

impl ToolInput {
    /// Final arguments.
    pub(crate) fn sealed(arguments: &Arguments, seal: throughline_wire::Seal) -> Self {
        // The text is what is run and echoed; it is repeated only where the value does not give it back.
        let compact = arguments.value.to_string();
        let text = (compact != arguments.text).then(|| arguments.text.clone());
        Self {
            input_summary: summary::of_value(&arguments.value),
            arguments: Some(arguments.value.clone()),
            text,
            repairs: arguments.repairs.clone(),
            seal: Some(seal),
            ..Self::default()
        }
    }

    /// Arguments as a person left them: shown as any others are. R: A2
    pub fn edited(arguments: &serde_json::Value) -> Self {
        let input_summary = summary::of_value(arguments);
        Self { input_summary, arguments: Some(arguments.clone()), ..Self::default() }
    }

    /// A call that must not run. `shown` is the argument text so far, as its card has shown it: of a call that was written
    /// as text, `raw` holds the markup, which nobody is shown.
    pub(crate) fn broken(why: BrokenCall, raw: RawArguments, shown: &str) -> Self {
        let shown = match &why {
            BrokenCall::Refused { .. } | BrokenCall::Cut => shown,
            // Never announced, so nothing of it was shown before.
            _ if shown.is_empty() => &raw.0,
            _ => shown,
        };
        Self {
            input_summary: summary::of_text(shown),
            raw: Some(raw.0),
            problem: Some(broken_sentence(&why)),
            broken: Some(why),
            ..Self::default()
        }
    }

    /// What the event says: the final arguments, or why there are none.
    pub fn arguments(&self) -> Result<Arguments, (BrokenCall, RawArguments)> {
        match &self.arguments {
            Some(value) => Ok(Arguments {
                text: self.text.clone().unwrap_or_else(|| value.to_string()),
                value: value.clone(),
                repairs: self.repairs.clone(),
            }),
            None => Err((
                self.broken.clone().unwrap_or(BrokenCall::Cut),
                RawArguments(self.raw.clone().unwrap_or_default()),
            )),
        }
    }
}

fn broken_sentence(why: &BrokenCall) -> String {
    match why {
        BrokenCall::Cut => "The reply broke off inside this call.".into(),
        BrokenCall::InvalidJson { message } => format!("The arguments are not valid JSON: {message}"),
        BrokenCall::Ambiguous { message } => format!("The arguments can be read in two ways: {message}"),
        BrokenCall::TooLarge { limit } => format!("The arguments are over the limit `{limit}`."),
        BrokenCall::Nameless => "The model sent arguments and no name.".into(),
        BrokenCall::Refused { message } => message.clone(),
        _ => "The call cannot be read.".into(),
    }
}

/// How a call that cannot be read ends.
pub(crate) fn outcome_of_broken(why: &BrokenCall) -> Outcome {
    Outcome::NotStarted(match why {
        BrokenCall::Cut => NotStarted::Interrupted,
        BrokenCall::TooLarge { limit } => NotStarted::Limit { limit: limit.clone() },
        BrokenCall::Refused { message } => NotStarted::Refused { message: message.clone() },
        other => NotStarted::InvalidArguments { message: broken_sentence(other) },
    })
}

/// The outcome with at most `bytes_max` of output text: head and tail stay, the middle is counted.
pub(crate) fn limit_output(mut outcome: Outcome, bytes_max: usize) -> Outcome {
    if let Some(output) = outcome.output_mut().filter(|output| output.text.len() > bytes_max) {
        let text = &output.text;
        let (mut head, mut tail) = (bytes_max / 2, text.len() - bytes_max / 2);
        while !text.is_char_boundary(head) {
            head -= 1;
        }
        while !text.is_char_boundary(tail) {
            tail += 1;
        }
        output.text = format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..]);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use throughline_wire::{Media, Repair, Seal};

    fn all_outcomes() -> Vec<Outcome> {
        let output = Output {
            text: "晴".into(),
            value: Some(json!({"sky": "clear"})),
            media: vec![Media::new("image/png".into(), "AA==".into())],
            size: 9,
            spilled_to: Some("out.txt".into()),
        };
        vec![
            Outcome::Done(output.clone()),
            Outcome::Done(Output::default()),
            Outcome::Failed { message: "no".into(), partial: None },
            Outcome::Failed { message: String::new(), partial: Some(output.clone()) },
            Outcome::Denied { reason: None },
            Outcome::Denied { reason: Some("no".into()) },
            Outcome::Cancelled(Started::No),
            Outcome::Cancelled(Started::Yes { ran_ms: 7, partial: Some(output.clone()) }),
            Outcome::Cancelled(Started::Yes { ran_ms: 0, partial: None }),
            Outcome::TimedOut { limit_ms: 30_000, partial: Some(output) },
            Outcome::NotStarted(NotStarted::Interrupted),
            Outcome::NotStarted(NotStarted::InvalidArguments { message: "m".into() }),
            Outcome::NotStarted(NotStarted::Refused { message: "m".into() }),
            Outcome::NotStarted(NotStarted::UnknownTool { closest: vec!["a".into(), "b".into()] }),
            Outcome::NotStarted(NotStarted::NoViewer),
            Outcome::NotStarted(NotStarted::Stopped),
            Outcome::NotStarted(NotStarted::Limit { limit: "l".into() }),
            Outcome::Unknown,
        ]
    }

    #[test]
    fn every_outcome_survives_the_log() {
        for outcome in all_outcomes() {
            let event = ToolResult::new(&outcome, Some((100, 50)), Some(true));
            let json = serde_json::to_string(&event).unwrap();
            let back: ToolResult = serde_json::from_str(&json).unwrap();
            assert_eq!(back.outcome(), outcome, "{json}");
        }
    }

    #[test]
    fn argument_text_survives_the_log_to_the_byte() {
        for text in [
            r#"{"a":1}"#,
            r#"{ "a" : 1.0e5 }"#,
            "{}",
            r#"{"b":1,"a":2}"#,
            r#"{"n":123456789012345678901234567890}"#,
        ] {
            let value = serde_json::from_str(text).unwrap();
            let arguments = Arguments { text: text.into(), value, repairs: vec![Repair::Cumulative] };
            let json = serde_json::to_string(&ToolInput::sealed(&arguments, Seal::Explicit)).unwrap();
            let back: ToolInput = serde_json::from_str(&json).unwrap();
            assert_eq!(back.arguments().unwrap().text, text);
            assert_eq!(back.arguments().unwrap(), arguments);
        }
    }

    #[test]
    fn long_output_keeps_head_and_tail() {
        let outcome = limit_output(Outcome::Done(Output::text("好".repeat(1_000))), 100);
        let text = outcome.told_to_model();
        assert!(text.starts_with("好") && text.ends_with("好") && text.contains("bytes left out"), "{text}");
        assert!(text.len() < 160);
        assert_eq!(outcome.output().unwrap().size, 3_000);
    }
}
