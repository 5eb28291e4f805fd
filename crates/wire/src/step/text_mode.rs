//! Text mode in a step: the visible text goes through the protocol's scanner, and what it finds becomes the same events
//! as native calls, through the same assembly. When the step ends, the independent parser reads the whole text again.
//! // R: X3, X4

use super::{Sink, excerpt_of};
use crate::assemble::Assembly;
use crate::json::Json;
use crate::text::{Finding, Parsed, Scanned, TextCalls, TextScanner};
use crate::vocabulary::{BrokenCall, Problem, ProblemKind, Slot, StepEvent};
use std::borrow::Cow;

/// Whether the reply ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Whole,
    /// The stream or the token budget ended inside it: what is open was never refused, it was cut.
    Cut,
}

pub(super) struct TextMode {
    format: TextCalls,
    scanner: Box<dyn TextScanner>,
    /// Everything that the scanner was given: the parser reads it again.
    said: String,
    found: Found,
}

/// What the scanner has found so far.
#[derive(Default)]
struct Found {
    /// Calls whose END marker came, in the order of the text.
    whole: Vec<Slot>,
    /// The block that is being read.
    open: Option<Slot>,
    /// Blocks so far, refused ones included.
    blocks: usize,
    /// The reply was cut inside a block: what else is held of it is its torn end, not text.
    is_cut: bool,
}

impl TextMode {
    pub(super) fn new(format: TextCalls) -> Self {
        let scanner = format.protocol.scanner(format.tools.clone());
        Self { format, scanner, said: String::new(), found: Found::default() }
    }

    /// Visible text follows.
    pub(super) fn push(&mut self, text: &str, calls: &mut Assembly, out: Sink<'_>, at: u64) {
        self.said.push_str(text);
        let Self { scanner, said, found, .. } = self;
        scanner.push(text, &mut |scanned| found.take(scanned, said, Ending::Whole, calls, out, at));
    }

    /// The reply is over: what was held back is text or an unfinished block.
    pub(super) fn finish(&mut self, ending: Ending, calls: &mut Assembly, out: Sink<'_>, at: u64) {
        let Self { scanner, said, found, .. } = self;
        scanner.finish(&mut |scanned| found.take(scanned, said, ending, calls, out, at));
    }

    /// The upstream begins the reply again: all that was written so far is void.
    pub(super) fn begin_again(&mut self, calls: &mut Assembly, out: Sink<'_>, at: u64) {
        self.finish(Ending::Cut, calls, out, at);
        *self = Self::new(self.format.clone());
    }

    /// The model has written blocks, so its text as the provider has it holds their markup.
    pub(super) fn has_calls(&self) -> bool {
        self.found.blocks > 0
    }

    /// The parser has the last word on everything that waits for the end of the step. What it reads otherwise than the
    /// scanner is two readings of one text: it never runs, and it is reported. Returns the text without markup.
    pub(super) fn judge(&mut self, ending: Ending, calls: &mut Assembly, out: Sink<'_>, at: u64) -> String {
        let Parsed { text, calls: parsed, .. } = self.format.protocol.parse(&self.said, &self.format.tools);
        if ending == Ending::Cut {
            return text;
        }
        let mut parsed = parsed.iter().filter_map(|call| {
            let arguments = call.arguments.as_ref().ok()?;
            Some((call.name.as_str(), arguments.as_str(), call.span.clone()))
        });
        for slot in self.found.whole.drain(..) {
            let same = parsed.next();
            // A call over a limit does not run anyway.
            let Some((name, arguments)) = calls.sealed(slot) else { continue };
            let agrees = same.is_some_and(|(parsed_name, parsed_arguments, _)| {
                parsed_name == name && is_same_value(parsed_arguments, arguments)
            });
            if !agrees {
                report(out, ProblemKind::Ambiguous, at, name, Some(slot));
                let message = "the whole text reads otherwise than it did while it arrived".to_owned();
                calls.break_call(slot, BrokenCall::Ambiguous { message }, None, out);
            }
        }
        for (name, _, span) in parsed {
            let message = "this call was seen only when the whole text was read".to_owned();
            let raw = self.said.get(span).unwrap_or_default();
            let slot = calls.open_text_block(name, out, at);
            report(out, ProblemKind::Ambiguous, at, raw, Some(slot));
            calls.break_call(slot, BrokenCall::Ambiguous { message }, Some(raw), out);
        }
        text
    }
}

impl Found {
    fn take(
        &mut self,
        scanned: Scanned<'_>,
        said: &str,
        ending: Ending,
        calls: &mut Assembly,
        out: Sink<'_>,
        at: u64,
    ) {
        match scanned {
            Scanned::Text(_) if self.is_cut => {}
            Scanned::Text(text) => out(StepEvent::Text(Cow::Borrowed(text))),
            Scanned::Opened { name } => self.open(name, calls, out, at),
            Scanned::Arguments(text) => {
                if let Some(slot) = self.open {
                    calls.append(slot, text, out, at);
                }
            }
            Scanned::Restarted => {
                if let Some(slot) = self.open {
                    calls.begin_again(slot, out);
                }
            }
            Scanned::Sealed => {
                if let Some(slot) = self.open.take() {
                    self.whole.push(slot);
                    calls.seal_explicit(slot, out, at);
                }
            }
            Scanned::Refused { why, raw } => {
                if self.open.is_none() {
                    self.open("", calls, out, at);
                }
                let why = match ending {
                    Ending::Whole => BrokenCall::Refused { message: why },
                    Ending::Cut => {
                        self.is_cut = true;
                        BrokenCall::Cut
                    }
                };
                if let Some(slot) = self.open.take() {
                    calls.break_call(slot, why, Some(raw), out);
                }
            }
            Scanned::Remark(finding) => {
                let Finding { kind, at: place, line, column, message } = finding;
                let finding = format!("line {line}, column {column}: {message}");
                let excerpt = said.get(place..).unwrap_or_default().lines().next().unwrap_or_default();
                report(out, ProblemKind::CallMarkup { finding, kind }, at, excerpt, None);
            }
        }
    }

    fn open(&mut self, name: &str, calls: &mut Assembly, out: Sink<'_>, at: u64) {
        self.open = Some(calls.open_text_block(name, out, at));
        self.blocks += 1;
    }
}

fn is_same_value(a: &str, b: &str) -> bool {
    // No argument text at all is `{}` once it is sealed.
    let value = |text: &str| {
        Json::parse(if text.trim_ascii().is_empty() { "{}" } else { text }).map(|json| json.to_value())
    };
    matches!((value(a), value(b)), (Ok(a), Ok(b)) if a == b)
}

fn report(out: Sink<'_>, kind: ProblemKind, at: u64, excerpt: &str, slot: Option<Slot>) {
    out(StepEvent::Problem(Problem { kind, at, excerpt: excerpt_of(excerpt), slot }));
}
