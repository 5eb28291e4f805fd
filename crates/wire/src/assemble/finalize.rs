//! The meaning of a call's argument text once the text is complete.
//!
//! The text as received is judged first; only if it is not one JSON document are the few repairs tried, each of
//! which has exactly one reading. A text that was cut is never completed.

use super::{CallInProgress, StepEnding};
use crate::json::{ArgumentsReader, JsonRef};
use crate::profile::UpstreamProfile;
use crate::vocabulary::{ArgumentRepair, BrokenCall, CallArguments, CallKind};
use serde_json::Value;

pub(super) fn finalize_arguments(
    call: &CallInProgress,
    cut: StepEnding,
    profile: &UpstreamProfile,
) -> Result<CallArguments, BrokenCall> {
    if call.name.is_empty() {
        return Err(BrokenCall::Nameless);
    }
    if call.too_large {
        return Err(BrokenCall::TooLarge { limit: "arguments_bytes_max".to_owned() });
    }
    let text = call.text();
    if call.kind == CallKind::Custom {
        return match cut {
            StepEnding::Cut => Err(BrokenCall::Cut),
            StepEnding::Whole => Ok(CallArguments {
                text: text.to_owned(),
                value: Value::String(text.to_owned()),
                repairs: vec![],
            }),
        };
    }
    // Nothing received is `{}` for a finished call (A1) and unusable for a cut one (A2).
    if text.trim_ascii().is_empty() {
        return match cut {
            StepEnding::Cut => Err(BrokenCall::Cut),
            StepEnding::Whole => Ok(empty_object()),
        };
    }
    let as_received = if profile.cumulative_arguments && call.fragments > 1 && call.cumulative {
        Err(())
    } else {
        call.reader.check_complete().map_err(drop)
    };
    match (as_received, cut) {
        // A number at the top level may have had more digits.
        (Ok(()), StepEnding::Cut) if !call.reader.is_closed() => Err(BrokenCall::Cut),
        (Ok(()), _) => Ok(parse_arguments(text, vec![])),
        (Err(()), _) => repair_arguments(call).ok_or_else(|| match (cut, call.reader.check_complete()) {
            (StepEnding::Whole, Err(error)) => BrokenCall::InvalidJson { message: error.to_string() },
            _ => BrokenCall::Cut,
        }),
    }
}

fn repair_arguments(call: &CallInProgress) -> Option<CallArguments> {
    let text = call.text();
    // A5: every fragment extends the one before, and together they are no document.
    if call.cumulative && call.fragments > 1 {
        let last = &text[call.last_fragment_at..];
        if is_object(last) {
            return Some(parse_arguments(last, vec![ArgumentRepair::Cumulative]));
        }
    }
    let first_len = call.reader.closed_len()?;
    let (first, rest) = (text[..first_len].trim_ascii(), text[first_len..].trim_ascii());
    // A4: a placeholder, then the arguments.
    if super::is_empty_object(first) && is_object(rest) && !super::is_empty_object(rest) {
        return Some(parse_arguments(rest, vec![ArgumentRepair::LeadingPlaceholder]));
    }
    // A8: the same document once more, to the letter.
    (first == rest && is_object(first)).then(|| parse_arguments(first, vec![ArgumentRepair::ExactRepetition]))
}

/// Turns a document's text into arguments.
fn parse_arguments(text: &str, mut repairs: Vec<ArgumentRepair>) -> CallArguments {
    let Ok(json) = JsonRef::parse(text) else { return empty_object() };
    if json.is_null() {
        repairs.push(ArgumentRepair::EmptyIsObject);
        return CallArguments { repairs, ..empty_object() };
    }
    // A6: a string whose content is an object.
    if let Some(inner) = json.as_str() {
        if is_object(&inner) {
            repairs.push(ArgumentRepair::DoubleEncoded);
            return parse_arguments(&inner, repairs);
        }
        if inner.trim_ascii() == "null" || inner.trim_ascii().is_empty() {
            repairs.push(ArgumentRepair::EmptyIsObject);
            return CallArguments { repairs, ..empty_object() };
        }
    }
    CallArguments { text: text.to_owned(), value: json.to_value(), repairs }
}

fn is_object(text: &str) -> bool {
    text.trim_ascii_start().starts_with('{') && {
        let mut reader = ArgumentsReader::default();
        reader.push(text);
        reader.check_complete().is_ok()
    }
}

fn empty_object() -> CallArguments {
    CallArguments {
        text: "{}".to_owned(),
        value: Value::Object(serde_json::Map::new()),
        repairs: vec![ArgumentRepair::EmptyIsObject],
    }
}
