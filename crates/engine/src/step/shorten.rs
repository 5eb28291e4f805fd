//! A history that an upstream refuses for its length, with the results of tools shortened: head and tail of each old
//! result stay. Messages of people and models stay whole, and so does the log.

use crate::event::tool_result::limit_output;
use throughline_wire::{CallOutcome, Message};

/// Saying how much is left out takes no more than this, so a text that is over the limit by less is not worth cutting; nor is one
/// that was cut before.
const NOTICE_BYTES_MAX: usize = 64;

/// Cuts results to `bytes_max` of text: those of all steps but the last or, if these are short already, of the last, too.
/// Returns the number of results that became shorter.
pub(crate) fn shorten_outputs(messages: &mut [Message], bytes_max: usize) -> usize {
    let last =
        messages.iter().rposition(|message| matches!(message, Message::Step(step) if !step.calls.is_empty()));
    let (old, latest) = messages.split_at_mut(last.unwrap_or(0));
    match cut_outputs(old, bytes_max) {
        0 => cut_outputs(latest, bytes_max),
        shorter => shorter,
    }
}

fn cut_outputs(messages: &mut [Message], bytes_max: usize) -> usize {
    let mut shorter = 0;
    for message in messages {
        let Message::Step(step) = message else { continue };
        for (_, outcome) in &mut step.calls {
            if output_bytes(outcome) > bytes_max + NOTICE_BYTES_MAX {
                *outcome = limit_output(outcome.clone(), bytes_max);
                shorter += 1;
            }
        }
    }
    shorter
}

fn output_bytes(outcome: &CallOutcome) -> usize {
    outcome.output().map_or(0, |output| output.text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use throughline_wire::{Call, CallKind, ClosedStep, RawArguments, ToolOutput, UserPart};

    fn step(texts: &[&str]) -> Message {
        let call = |text: &&str| {
            let call = Call {
                id: "c".into(),
                upstream_id: None,
                name: "t".into(),
                kind: CallKind::Function,
                arguments: Err(RawArguments(String::new())),
                ran_with: None,
            };
            (call, CallOutcome::Done(ToolOutput::text(*text)))
        };
        Message::Step(ClosedStep { calls: texts.iter().map(call).collect(), ..ClosedStep::default() })
    }

    fn lengths(messages: &[Message]) -> Vec<usize> {
        let steps = messages.iter().filter_map(|message| match message {
            Message::Step(step) => Some(step),
            Message::User(_) => None,
        });
        steps.flat_map(|step| &step.calls).map(|(_, outcome)| output_bytes(outcome)).collect()
    }

    #[test]
    fn old_results_are_shortened_before_the_last_ones() {
        let long = "x".repeat(1_000);
        let user = || Message::User(vec![UserPart::Text { text: "y".repeat(1_000) }]);
        let mut messages = vec![user(), step(&[&long, "short"]), user(), step(&[&long]), user()];
        assert_eq!(shorten_outputs(&mut messages, 100), 1);
        let [old, short, last] = lengths(&messages)[..] else { panic!("{messages:?}") };
        assert!((100..140).contains(&old) && short == 5 && last == 1_000, "{messages:?}");
        assert_eq!(messages[0], user(), "what people say stays whole");

        assert_eq!(shorten_outputs(&mut messages, 100), 1, "the last one");
        assert!(lengths(&messages)[2] < 140);
        assert_eq!(shorten_outputs(&mut messages, 140), 0, "there is nothing left");
        assert_eq!(shorten_outputs(&mut [], 0), 0);
    }

    #[test]
    fn results_within_the_limit_are_not_shortened() {
        let mut messages = vec![step(&[&"x".repeat(100)]), step(&[])];
        assert_eq!(shorten_outputs(&mut messages, 100), 0);
        let long = "x".repeat(400 + NOTICE_BYTES_MAX);
        let mut messages = vec![step(&[&long]), step(&[])];
        assert_eq!(shorten_outputs(&mut messages, 400), 0, "saying what is left out takes as much");
        assert_eq!(shorten_outputs(&mut messages, 399), 1);
        assert!(lengths(&messages)[0] <= 399 + NOTICE_BYTES_MAX);
    }
}
