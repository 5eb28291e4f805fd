//! The decoder under test, seen from outside: its outcome in the oracle's words, and a digest of its events that does
//! not depend on how text is divided into fragments.

use super::{OracleCall, OracleEnd, OracleOutcome};
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use throughline_wire as wire;
use wire::{DecodeOptions, Dialect, FinishReason, ModelReply, StepDecoder, StepEvent};

/// A decoder between pieces of input; the mutants in the tests are others of its kind.
pub trait Feed {
    fn push(&mut self, piece: &[u8], sink: &mut dyn FnMut(StepEvent<'_>));
    fn finish(&mut self, sink: &mut dyn FnMut(StepEvent<'_>));
}

impl Feed for StepDecoder {
    fn push(&mut self, piece: &[u8], sink: &mut dyn FnMut(StepEvent<'_>)) {
        StepDecoder::push(self, piece, sink);
    }
    fn finish(&mut self, sink: &mut dyn FnMut(StepEvent<'_>)) {
        StepDecoder::finish(self, sink);
    }
}

/// A fresh decoder.
pub fn decoder(api: &str) -> StepDecoder {
    let dialect: Dialect = api.parse().expect("the corpus and the product name the APIs alike");
    StepDecoder::new(dialect, DecodeOptions::default())
}

/// Decodes a body in pieces that end at the given places.
pub fn run(mut feed: impl Feed, body: &[u8], cuts: &[usize], sink: &mut dyn FnMut(StepEvent<'_>)) {
    let mut start = 0;
    for end in cuts.iter().copied().chain([body.len()]) {
        feed.push(&body[start..end], sink);
        start = end;
    }
    feed.finish(sink);
}

/// The whole reply.
pub fn reply(feed: impl Feed, body: &[u8], cuts: &[usize]) -> ModelReply {
    let mut reply = ModelReply::default();
    run(feed, body, cuts, &mut |event| reply.apply(event));
    reply
}

/// The digest of all events.
pub fn digest(feed: impl Feed, body: &[u8], cuts: &[usize]) -> u64 {
    let mut digest = Digest::default();
    run(feed, body, cuts, &mut |event| digest.event(0, &event));
    digest.hasher.finish()
}

/// Hashes events so that adjacent fragments of one text count as one.
#[derive(Default)]
struct Digest {
    hasher: DefaultHasher,
    /// The text being continued: what it is, and of which choice and call.
    text: Option<(u32, &'static str, u32)>,
}

impl Digest {
    fn event(&mut self, choice: u32, event: &StepEvent<'_>) {
        match event {
            StepEvent::Text(text) => self.fragment((choice, "text", 0), text),
            StepEvent::Thinking(text) => self.fragment((choice, "thinking", 0), text),
            StepEvent::Refusal(text) => self.fragment((choice, "refusal", 0), text),
            StepEvent::CallArguments { slot, delta } => self.fragment((choice, "arguments", slot.0), delta),
            StepEvent::Choice { index, event } => self.event(index + 1, event),
            other => {
                self.text = None;
                self.hasher.write_u32(choice);
                let _ = write!(self, "{other:?}");
            }
        }
    }

    fn fragment(&mut self, text: (u32, &'static str, u32), fragment: &str) {
        if self.text != Some(text) {
            self.text = Some(text);
            let _ = write!(self, "\0{text:?}\0");
        }
        self.hasher.write(fragment.as_bytes());
    }
}

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.hasher.write(text.as_bytes());
        Ok(())
    }
}

/// A reply of the product in the oracle's form.
pub fn outcome(reply: &ModelReply) -> OracleOutcome {
    let call = |call: &wire::ReplyCall| OracleCall {
        id: call.upstream_id.as_ref().map(|id| id.as_str().to_owned()),
        name: call.name.as_str().to_owned(),
        arguments: match &call.ending {
            Some(Ok(arguments)) => Ok(arguments.value.clone()),
            Some(Err((_, raw))) => Err(raw.0.clone()),
            None => Err(format!("the call never ended: {}", call.text)),
        },
    };
    let reason = |reason: FinishReason| match reason {
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Pause => "pause",
        FinishReason::Error => "error",
        _ => "other",
    };
    let (end, error) = match &reply.end {
        Some(wire::StreamEnd::Complete) => (OracleEnd::Complete, None),
        Some(wire::StreamEnd::Error(error)) => (OracleEnd::Error, Some(error.message.clone())),
        _ => (OracleEnd::Truncated, None),
    };
    OracleOutcome {
        text: reply.text.clone(),
        reasoning: reply.thinking.clone(),
        calls: reply.calls.iter().map(call).collect(),
        finish: reply.finish.as_ref().map(|(finish, _)| reason(*finish).to_owned()),
        end,
        error,
        usage: reply.usage.map_or((None, None), |usage| (usage.input_tokens, usage.output_tokens)),
        choices: reply.choices.iter().map(|(number, choice)| (u64::from(*number), outcome(choice))).collect(),
    }
}
