//! Text mode in a step: the visible text goes through the protocol's scanner, and the calls that it finds
//! become the same events as native ones, through the same assembly. When the step ends, the independent
//! parser reads the whole text again.

use super::{EventSink, excerpt_of};
use crate::assemble::CallAssembler;
use crate::json::JsonRef;
use crate::text_calls::{MarkupFinding, ParsedCall, ParsedText, ScanEvent, TextCalls, TextScanner};
use crate::vocabulary::{BrokenCall, CallSlot, ProblemKind, StepEvent, StepProblem};
use std::borrow::Cow;

/// Completeness of the reply at its end: normal or cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyEnding {
    Complete,
    /// The stream or the token budget ended inside it: open calls were not refused but cut.
    Cut,
}

pub(super) struct TextMode {
    format: TextCalls,
    scanner: Box<dyn TextScanner>,
    /// All text given to the scanner: the parser reads it again.
    visible_text: String,
    tracker: CallTracker,
}

/// Calls that the scanner has found so far.
#[derive(Default)]
struct CallTracker {
    /// Calls whose END marker came, in the order of the text.
    sealed: Vec<CallSlot>,
    /// The block that is being read.
    open: Option<CallSlot>,
    /// Blocks so far, refused ones included.
    blocks: usize,
    /// The reply was cut inside a block: what else is held of it is its torn end, not text.
    is_cut: bool,
}

impl TextMode {
    pub(super) fn new(format: TextCalls) -> Self {
        let scanner = format.protocol.scanner(format.tools.clone());
        Self { format, scanner, visible_text: String::new(), tracker: CallTracker::default() }
    }

    /// Scans more visible text.
    pub(super) fn push(&mut self, text: &str, calls: &mut CallAssembler, out: EventSink<'_>, at: u64) {
        self.visible_text.push_str(text);
        let Self { scanner, visible_text, tracker, .. } = self;
        let mut sink = ScanSink { visible_text, ending: ReplyEnding::Complete, tracker, calls, out, at };
        scanner.push(visible_text, &mut |scanned| sink.apply(scanned));
    }

    /// Ends the reply: held text is plain text or an unfinished block.
    pub(super) fn finish(
        &mut self,
        ending: ReplyEnding,
        calls: &mut CallAssembler,
        out: EventSink<'_>,
        at: u64,
    ) {
        let Self { scanner, visible_text, tracker, .. } = self;
        let mut sink = ScanSink { visible_text, ending, tracker, calls, out, at };
        scanner.finish(visible_text, &mut |scanned| sink.apply(scanned));
    }

    /// The upstream restarts the reply: everything written so far is void.
    pub(super) fn restart(&mut self, calls: &mut CallAssembler, out: EventSink<'_>, at: u64) {
        self.finish(ReplyEnding::Cut, calls, out, at);
        *self = Self::new(self.format.clone());
    }

    /// The model has written blocks, so its text as the provider has it holds their markup.
    pub(super) fn has_calls(&self) -> bool {
        self.tracker.blocks > 0
    }

    /// Compares the scanner's result with the parser's at the end of the step. If both read the text
    /// differently the calls never run, and that is reported. Returns the text without blocks.
    pub(super) fn check_against_parser(
        &mut self,
        ending: ReplyEnding,
        calls: &mut CallAssembler,
        out: EventSink<'_>,
        at: u64,
    ) -> String {
        let ParsedText { calls: parsed, .. } =
            self.format.protocol.parse(&self.visible_text, &self.format.tools);
        let text = self.without_blocks(&parsed);
        if ending == ReplyEnding::Cut {
            return text;
        }
        let mut parsed = parsed.iter().filter_map(|call| {
            let arguments = call.arguments.as_ref().ok()?;
            Some((call.name.as_str(), arguments.as_str(), call.span.clone()))
        });
        for slot in self.tracker.sealed.drain(..) {
            let same = parsed.next();
            // A call over a limit does not run anyway.
            let Some((name, arguments)) = calls.sealed_call(slot) else { continue };
            let agrees = same.is_some_and(|(parsed_name, parsed_arguments, _)| {
                parsed_name == name && is_same_value(parsed_arguments, arguments)
            });
            if !agrees {
                report(out, ProblemKind::Ambiguous, at, name, Some(slot));
                let message = "parsing the complete text gives a different result than parsing it as it \
                 arrived"
                    .to_owned();
                calls.break_call(slot, BrokenCall::Ambiguous { message }, None, out);
            }
        }
        for (name, _, span) in parsed {
            let message = "this call was found only when the complete text was parsed".to_owned();
            let raw = self.visible_text.get(span).unwrap_or_default();
            let slot = calls.open_text_block(name, out, at);
            report(out, ProblemKind::Ambiguous, at, raw, Some(slot));
            calls.break_call(slot, BrokenCall::Ambiguous { message }, Some(raw), out);
        }
        text
    }

    /// The text as it was written, without blocks: data that the model quotes still has its tildes there, so nothing in it
    /// looks like a call.
    fn without_blocks(&self, calls: &[ParsedCall]) -> String {
        let (mut text, mut from) = (String::new(), 0);
        for ParsedCall { span, .. } in calls {
            text += self.visible_text.get(from..span.start).unwrap_or_default();
            from = from.max(span.end);
        }
        text + self.visible_text.get(from..).unwrap_or_default()
    }
}

/// Receiver of the scanner's findings in a piece of text.
struct ScanSink<'a, 'o> {
    visible_text: &'a str,
    ending: ReplyEnding,
    tracker: &'a mut CallTracker,
    calls: &'a mut CallAssembler,
    out: EventSink<'o>,
    at: u64,
}

impl ScanSink<'_, '_> {
    fn apply(&mut self, scanned: ScanEvent<'_>) {
        match scanned {
            ScanEvent::Text(_) if self.tracker.is_cut => {}
            ScanEvent::Text(text) => (self.out)(StepEvent::Text(Cow::Borrowed(text))),
            ScanEvent::Opened { name } => self.open(name),
            ScanEvent::Arguments(text) => {
                if let Some(slot) = self.tracker.open {
                    self.calls.append(slot, text, self.out, self.at);
                }
            }
            ScanEvent::Restarted => {
                if let Some(slot) = self.tracker.open {
                    self.calls.restart_arguments(slot, self.out);
                }
            }
            ScanEvent::Sealed => {
                if let Some(slot) = self.tracker.open.take() {
                    self.tracker.sealed.push(slot);
                    self.calls.seal_explicit(slot, self.out, self.at);
                }
            }
            ScanEvent::Refused { reason, raw } => self.refuse(reason, raw),
            ScanEvent::Finding(finding) => self.report_finding(finding),
        }
    }

    fn open(&mut self, name: &str) {
        self.tracker.open = Some(self.calls.open_text_block(name, self.out, self.at));
        self.tracker.blocks += 1;
    }

    fn refuse(&mut self, message: String, raw: &str) {
        if self.tracker.open.is_none() {
            self.open("");
        }
        let why = match self.ending {
            ReplyEnding::Complete => BrokenCall::Refused { message },
            ReplyEnding::Cut => {
                self.tracker.is_cut = true;
                BrokenCall::Cut
            }
        };
        if let Some(slot) = self.tracker.open.take() {
            self.calls.break_call(slot, why, Some(raw), self.out);
        }
    }

    fn report_finding(&mut self, finding: MarkupFinding) {
        let MarkupFinding { kind, offset, line, column, message } = finding;
        let finding = format!("line {line}, column {column}: {message}");
        let excerpt = self.visible_text.get(offset..).unwrap_or_default().lines().next().unwrap_or_default();
        report(self.out, ProblemKind::CallMarkup { finding, kind }, self.at, excerpt, None);
    }
}

fn is_same_value(a: &str, b: &str) -> bool {
    // No argument text at all is `{}` once it is sealed.
    let value = |text: &str| {
        JsonRef::parse(if text.trim_ascii().is_empty() { "{}" } else { text }).map(|json| json.to_value())
    };
    matches!((value(a), value(b)), (Ok(a), Ok(b)) if a == b)
}

fn report(out: EventSink<'_>, kind: ProblemKind, at: u64, excerpt: &str, slot: Option<CallSlot>) {
    out(StepEvent::Problem(StepProblem { kind, at, excerpt: excerpt_of(excerpt), slot }));
}
