//! An outcome as a `tool_result` event, and back, without loss.

use crate::event::{CallError, CallStatus, ToolInput, ToolResult};
use crate::id::UnixMillis;
use crate::text::summary;
use throughline_wire::{
    BrokenCall, CallArguments, CallOutcome, NotStarted, RawArguments, StartState, ToolOutput,
};

/// Start of a run, and its length in milliseconds.
pub(crate) type RunSpan = (UnixMillis, u64);

impl ToolResult {
    /// The event's content for an outcome. `ran` is `None` if the tool never started.
    pub(crate) fn new(outcome: &CallOutcome, ran: Option<RunSpan>, seen_by_model: Option<bool>) -> Self {
        let output = outcome.output();
        let (started_at, duration_ms) = match (outcome, ran) {
            // The running time that the tool itself reports wins; the model is sent that figure.
            (CallOutcome::Cancelled(StartState::Yes { ran_ms, .. }), Some((at, _))) => {
                (Some(at), Some(*ran_ms))
            }
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
    pub fn outcome(&self) -> CallOutcome {
        let output = || {
            self.output.as_ref().map(|text| ToolOutput {
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
            CallStatus::Success => CallOutcome::Done(output().unwrap_or_default()),
            CallStatus::Error => CallOutcome::Failed { message: message(), partial: output() },
            CallStatus::Denied => CallOutcome::Denied { reason: error.message },
            CallStatus::Cancelled if error.code == "cancelled_before_start" => {
                CallOutcome::Cancelled(StartState::No)
            }
            CallStatus::Cancelled => CallOutcome::Cancelled(StartState::Yes {
                ran_ms: self.duration_ms.unwrap_or_default(),
                partial: output(),
            }),
            CallStatus::TimedOut => {
                CallOutcome::TimedOut { limit_ms: error.limit_ms.unwrap_or_default(), partial: output() }
            }
            CallStatus::NotStarted => CallOutcome::NotStarted(match error.code.as_str() {
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
            | CallStatus::Running => CallOutcome::Unknown { message: error.message, partial: output() },
        }
    }
}

fn status_of(outcome: &CallOutcome) -> CallStatus {
    match outcome {
        CallOutcome::Done(_) => CallStatus::Success,
        CallOutcome::Failed { .. } => CallStatus::Error,
        CallOutcome::Denied { .. } => CallStatus::Denied,
        CallOutcome::Cancelled(_) => CallStatus::Cancelled,
        CallOutcome::TimedOut { .. } => CallStatus::TimedOut,
        CallOutcome::NotStarted(_) => CallStatus::NotStarted,
        CallOutcome::Unknown { .. } => CallStatus::Unknown,
    }
}

fn error_of(outcome: &CallOutcome) -> Option<CallError> {
    let code = |code: &str| CallError { code: code.into(), ..CallError::default() };
    Some(match outcome {
        CallOutcome::Done(_) => return None,
        CallOutcome::Failed { message, .. } => CallError { message: Some(message.clone()), ..code("failed") },
        CallOutcome::Denied { reason } => CallError { message: reason.clone(), ..code("denied") },
        CallOutcome::Cancelled(StartState::No) => code("cancelled_before_start"),
        CallOutcome::Cancelled(StartState::Yes { .. }) => code("cancelled"),
        CallOutcome::TimedOut { limit_ms, .. } => {
            CallError { limit_ms: Some(*limit_ms), ..code("timed_out") }
        }
        CallOutcome::Unknown { message, .. } => CallError { message: message.clone(), ..code("unknown") },
        CallOutcome::NotStarted(why) => match why {
            NotStarted::InvalidArguments { message } => {
                CallError { message: Some(message.clone()), ..code("invalid_arguments") }
            }
            NotStarted::Refused { message } => {
                CallError { message: Some(message.clone()), ..code("refused") }
            }
            NotStarted::UnknownTool { closest } => {
                CallError { closest: closest.clone(), ..code("unknown_tool") }
            }
            NotStarted::NoViewer => code("no_viewer"),
            NotStarted::Stopped => code("stopped"),
            NotStarted::Limit { limit } => CallError { limit: Some(limit.clone()), ..code("limit") },
            _ => code("interrupted"),
        },
    })
}

impl ToolInput {
    /// Final arguments.
    pub(crate) fn sealed(arguments: &CallArguments, seal: throughline_wire::SealEvidence) -> Self {
        // The text is what is run and sent back; it is stored only where the value does not reproduce it.
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

    /// Arguments as a person left them: shown as any others are.
    pub fn edited(arguments: &serde_json::Value) -> Self {
        let input_summary = summary::of_value(arguments);
        Self { input_summary, arguments: Some(arguments.clone()), ..Self::default() }
    }

    /// A call that must not run. `shown` is the argument text so far, as its card has shown it: for a call
    /// that was written as text, `raw` holds the markup, which is never shown.
    pub(crate) fn broken(why: BrokenCall, raw: RawArguments, shown: &str) -> Self {
        let shown = match &why {
            BrokenCall::Refused { .. } | BrokenCall::Cut => shown,
            // Never announced, so no argument text was shown before.
            _ if shown.is_empty() => &raw.0,
            _ => shown,
        };
        Self {
            input_summary: summary::of_text(shown),
            raw: Some(raw.0),
            problem: Some(describe_broken(&why)),
            broken: Some(why),
            ..Self::default()
        }
    }

    /// The final arguments, or the reason why they are missing.
    pub fn arguments(&self) -> Result<CallArguments, (BrokenCall, RawArguments)> {
        match &self.arguments {
            Some(value) => Ok(CallArguments {
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

fn describe_broken(why: &BrokenCall) -> String {
    match why {
        BrokenCall::Cut => "The reply ended inside this call.".into(),
        BrokenCall::InvalidJson { message } => format!("The arguments are not valid JSON: {message}"),
        BrokenCall::Ambiguous { message } => format!("The arguments are ambiguous: {message}"),
        BrokenCall::TooLarge { limit } => format!("The arguments exceed the limit `{limit}`."),
        BrokenCall::Nameless => "The model sent arguments without a tool name.".into(),
        BrokenCall::Refused { message } => message.clone(),
        _ => "The call could not be parsed.".into(),
    }
}

/// Outcome of a call that cannot be read.
pub(crate) fn broken_outcome(why: &BrokenCall) -> CallOutcome {
    CallOutcome::NotStarted(match why {
        BrokenCall::Cut => NotStarted::Interrupted,
        BrokenCall::TooLarge { limit } => NotStarted::Limit { limit: limit.clone() },
        BrokenCall::Refused { message } => NotStarted::Refused { message: message.clone() },
        other => NotStarted::InvalidArguments { message: describe_broken(other) },
    })
}

/// The outcome with at most `bytes_max` of output text: head and tail stay, the middle is counted.
pub(crate) fn limit_output(mut outcome: CallOutcome, bytes_max: usize) -> CallOutcome {
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
    use throughline_wire::{ArgumentRepair, Media, SealEvidence};

    fn all_outcomes() -> Vec<CallOutcome> {
        let output = ToolOutput {
            text: "晴".into(),
            value: Some(json!({"sky": "clear"})),
            media: vec![Media::new("image/png".into(), "AA==".into())],
            size: 9,
            spilled_to: Some("out.txt".into()),
        };
        vec![
            CallOutcome::Done(output.clone()),
            CallOutcome::Done(ToolOutput::default()),
            CallOutcome::Failed { message: "no".into(), partial: None },
            CallOutcome::Failed { message: String::new(), partial: Some(output.clone()) },
            CallOutcome::Denied { reason: None },
            CallOutcome::Denied { reason: Some("no".into()) },
            CallOutcome::Cancelled(StartState::No),
            CallOutcome::Cancelled(StartState::Yes { ran_ms: 7, partial: Some(output.clone()) }),
            CallOutcome::Cancelled(StartState::Yes { ran_ms: 0, partial: None }),
            CallOutcome::TimedOut { limit_ms: 30_000, partial: Some(output.clone()) },
            CallOutcome::NotStarted(NotStarted::Interrupted),
            CallOutcome::NotStarted(NotStarted::InvalidArguments { message: "m".into() }),
            CallOutcome::NotStarted(NotStarted::Refused { message: "m".into() }),
            CallOutcome::NotStarted(NotStarted::UnknownTool { closest: vec!["a".into(), "b".into()] }),
            CallOutcome::NotStarted(NotStarted::NoViewer),
            CallOutcome::NotStarted(NotStarted::Stopped),
            CallOutcome::NotStarted(NotStarted::Limit { limit: "l".into() }),
            CallOutcome::unknown(),
            CallOutcome::Unknown { message: Some("the line broke".into()), partial: None },
            CallOutcome::Unknown { message: Some("the line broke".into()), partial: Some(output) },
        ]
    }

    #[test]
    fn every_outcome_round_trips_through_json() {
        for outcome in all_outcomes() {
            let event = ToolResult::new(&outcome, Some((100, 50)), Some(true));
            let json = serde_json::to_string(&event).unwrap();
            let back: ToolResult = serde_json::from_str(&json).unwrap();
            assert_eq!(back.outcome(), outcome, "{json}");
        }
    }

    #[test]
    fn unknown_outcome_without_a_reason_is_read() {
        let event: ToolResult =
            serde_json::from_value(json!({"status": "unknown", "error": {"code": "unknown"}})).unwrap();
        assert_eq!(event.outcome(), CallOutcome::unknown());
    }

    #[test]
    fn argument_text_round_trips_byte_for_byte() {
        for text in [
            r#"{"a":1}"#,
            r#"{ "a" : 1.0e5 }"#,
            "{}",
            r#"{"b":1,"a":2}"#,
            r#"{"n":123456789012345678901234567890}"#,
        ] {
            let value = serde_json::from_str(text).unwrap();
            let arguments =
                CallArguments { text: text.into(), value, repairs: vec![ArgumentRepair::Cumulative] };
            let json = serde_json::to_string(&ToolInput::sealed(&arguments, SealEvidence::Explicit)).unwrap();
            let back: ToolInput = serde_json::from_str(&json).unwrap();
            assert_eq!(back.arguments().unwrap().text, text);
            assert_eq!(back.arguments().unwrap(), arguments);
        }
    }

    #[test]
    fn long_output_keeps_head_and_tail() {
        let outcome = limit_output(CallOutcome::Done(ToolOutput::text("好".repeat(1_000))), 100);
        let text = outcome.model_text();
        assert!(text.starts_with("好") && text.ends_with("好") && text.contains("bytes left out"), "{text}");
        assert!(text.len() < 160);
        assert_eq!(outcome.output().unwrap().size, 3_000);
    }
}
