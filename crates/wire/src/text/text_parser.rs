//! The other reader of the text protocols: over a whole text, line by line, as plainly as it can be written. It shares
//! no decision with the scanner, so each is a check on the other.

use super::escape::{MarkerPrefix, unescape};
use super::protocol::{FINDINGS_MAX, FindingKind, MarkupFinding, ParsedCall, ParsedText, line_and_column};

/// Token at a position of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerToken {
    Nothing,
    /// The text ends inside a marker.
    Torn,
    /// A start marker of this length.
    Start(usize),
    End(usize),
    /// A marker that says itself that it begins an example.
    Example(usize),
    /// The end of such an example.
    ExampleEnd(usize),
    /// Possible leftover of a block that was refused inside a value.
    Leftover(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockOpening {
    Nothing,
    /// The text ends too early to say.
    Torn,
    Block,
}

/// A block, read.
pub(super) struct ParsedBlock {
    /// Names and arguments, or why it is refused.
    pub(super) calls: Vec<(String, Result<String, String>)>,
    /// Where the text continues.
    pub(super) end: usize,
    /// A value did not close: nothing after it may run.
    pub(super) tainted: bool,
    /// Fields without effect.
    pub(super) notes: Vec<(FindingKind, String)>,
}

pub(super) trait ParserGrammar {
    fn prefixes(&self) -> &'static [MarkerPrefix];
    /// Characters at which something may stand, besides `<`.
    fn leftover_characters(&self) -> &'static [char];
    fn marker_at(&self, text: &str) -> MarkerToken;
    /// Does a start marker, followed by `after`, begin a block?
    fn block_opening(&self, after: &str, at_line_start: bool) -> BlockOpening;
    /// Reads the block whose marker ends at `body`.
    fn block(&self, text: &str, body: usize, tainted: bool) -> ParsedBlock;
}

/// Reads a whole text.
pub(super) fn parse(grammar: &dyn ParserGrammar, text: &str) -> ParsedText {
    let mut parser = TextParser { grammar, text, parsed: ParsedText::default(), blocks: 0, tainted: false };
    let mut from = parser.page(ShownSegment { from: 0, blank_to: 0 });
    while let Some(at) = from {
        from = parser.skip_after_block(at).and_then(|segment| parser.page(segment));
    }
    parser.parsed
}

struct TextParser<'t> {
    grammar: &'t dyn ParserGrammar,
    text: &'t str,
    parsed: ParsedText,
    blocks: usize,
    tainted: bool,
}

/// Text that will be shown, from its beginning. If nothing but its blank beginning comes of it, it is not.
#[derive(Clone, Copy)]
struct ShownSegment {
    from: usize,
    blank_to: usize,
}

struct LineFence {
    mark: char,
    length: usize,
}

impl TextParser<'_> {
    /// Behind a block: passes what still belongs to it.
    fn skip_after_block(&self, end: usize) -> Option<ShownSegment> {
        const EXTRA_ANGLES_MAX: usize = 5;
        const SPACES_MAX: usize = 64;
        let angles = self.text[end..].bytes().take(EXTRA_ANGLES_MAX).take_while(|byte| *byte == b'>').count();
        let start = end + angles;
        let spaces = self.text[start..].bytes().take_while(|byte| b" \t\r\n".contains(byte)).count();
        let space_count = spaces.min(SPACES_MAX);
        if start + space_count == self.text.len() {
            return None;
        }
        let from =
            self.text[start..start + space_count].rfind('\n').map_or(start, |newline| start + newline + 1);
        let blank_to = if spaces > SPACES_MAX { from } else { start + space_count };
        Some(ShownSegment { from, blank_to })
    }

    fn emit_text(&mut self, segment: ShownSegment, to: usize) {
        let is_blank = to <= segment.blank_to;
        if !is_blank {
            self.parsed.text += &unescape(self.grammar.prefixes(), &self.text[segment.from..to]);
        }
    }

    fn push_finding(&mut self, kind: FindingKind, at: usize, message: &str) {
        if self.parsed.findings.len() < FINDINGS_MAX {
            let (line, column) = line_and_column(self.text, at);
            self.parsed.findings.push(MarkupFinding {
                kind,
                offset: at,
                line,
                column,
                message: message.to_owned(),
            });
        }
    }

    fn report_kind(&mut self, kind: FindingKind, at: usize) {
        self.push_finding(kind, at, kind.sentence());
    }

    /// Reads a page until something that is not shown ends it; where the text continues after that.
    fn page(&mut self, mut segment: ShownSegment) -> Option<usize> {
        let text = self.text;
        let mut line_start = segment.from;
        let mut fence: Option<LineFence> = None;
        let mut thinking: Option<&str> = None;
        while line_start < text.len() {
            if let Some(closing) = thinking.take() {
                let end = text[line_start..].find(closing).map(|at| line_start + at);
                self.report_examples(line_start, end.unwrap_or(text.len()), FindingKind::InThinking);
                line_start = end.map_or(text.len(), |end| end + closing.len());
                continue;
            }
            let line_end = text[line_start..].find('\n').map_or(text.len(), |at| line_start + at + 1);
            let line = &text[line_start..line_end];
            if let Some(open) = &fence {
                self.report_examples(line_start, line_end, FindingKind::InCodeFence);
                if closes_fence(open, line) {
                    fence = None;
                }
                line_start = line_end;
                continue;
            }
            if is_quotation(line) {
                self.report_examples(line_start, line_end, FindingKind::InQuotation);
                line_start = line_end;
                continue;
            }
            let mut ticks = BacktickRuns::new(line);
            let mut at = line_start;
            let mut next_line = line_end;
            while let Some(stop) = self.next_stop(at, line_end) {
                let before = &text[line_start..stop];
                let starts_line = before.bytes().all(|byte| b" \t\r".contains(&byte));
                let tags = [("<think>", "</think>"), ("<thinking>", "</thinking>")];
                let tag = tags.iter().find(|(opening, _)| text[stop..].starts_with(opening));
                if let Some((opening, closing)) = tag
                    && starts_line
                {
                    thinking = Some(closing);
                    next_line = stop + opening.len();
                    break;
                }
                at = stop + text[stop..].chars().next().map_or(1, char::len_utf8);
                let token = self.grammar.marker_at(&text[stop..]);
                if token == MarkerToken::Nothing {
                    continue;
                }
                let example = ticks.example_at(stop - line_start);
                match token {
                    MarkerToken::Nothing => {}
                    MarkerToken::Torn => {
                        if example.is_none() {
                            self.emit_text(segment, stop);
                            self.report_kind(FindingKind::TornMarker, stop);
                            return None;
                        }
                    }
                    MarkerToken::Example(length) => {
                        if example.is_none() {
                            self.report_kind(FindingKind::MarkedInert, stop);
                        }
                        at = stop + length;
                    }
                    MarkerToken::ExampleEnd(length) => at = stop + length,
                    MarkerToken::Leftover(length) => {
                        if example.is_none() && self.tainted {
                            self.emit_text(segment, stop);
                            at = stop + length;
                            segment = ShownSegment { from: at, blank_to: at };
                        }
                    }
                    MarkerToken::End(length) => {
                        at = stop + length;
                        if example.is_none() && (starts_line || self.tainted) {
                            self.emit_text(segment, stop);
                            if !self.tainted {
                                self.report_kind(FindingKind::StrayEnd, stop);
                            }
                            return Some(at);
                        }
                    }
                    MarkerToken::Start(length) => {
                        at = stop + length;
                        let opens = |at_line_start| self.grammar.block_opening(&text[at..], at_line_start);
                        match example {
                            Some(FindingKind::InInlineCode) if opens(false) != BlockOpening::Block => {}
                            Some(kind) => self.report_kind(kind, stop),
                            None => match opens(starts_line) {
                                BlockOpening::Nothing => {}
                                BlockOpening::Torn => {
                                    self.emit_text(segment, stop);
                                    self.report_kind(FindingKind::TornMarker, stop);
                                    return None;
                                }
                                BlockOpening::Block => {
                                    self.emit_text(segment, stop);
                                    return Some(self.block(stop, at));
                                }
                            },
                        }
                    }
                }
            }
            if thinking.is_none() {
                fence = opened_fence(line);
            }
            line_start = next_line;
        }
        self.emit_text(segment, text.len());
        None
    }

    fn block(&mut self, start: usize, body: usize) -> usize {
        let ParsedBlock { calls, end, tainted, notes } = self.grammar.block(self.text, body, self.tainted);
        self.tainted |= tainted;
        for (name, arguments) in calls {
            self.parsed.calls.push(ParsedCall { name, arguments, span: start..end, block: self.blocks });
        }
        self.blocks += 1;
        for (kind, note) in notes {
            self.push_finding(kind, start, &note);
        }
        end
    }

    /// The next position from `offset` where something may begin.
    fn next_stop(&self, at: usize, end: usize) -> Option<usize> {
        let ahead = &self.text[at.min(end)..end];
        let mark = memchr::memchr(b'<', ahead.as_bytes());
        let leftovers = if self.tainted { self.grammar.leftover_characters() } else { &[] };
        let leftover = match leftovers {
            [] => None,
            leftovers => ahead[..mark.unwrap_or(ahead.len())].find(leftovers),
        };
        leftover.or(mark).map(|offset| at + offset)
    }

    /// Start markers in a stretch where nothing runs.
    fn report_examples(&mut self, from: usize, to: usize, kind: FindingKind) {
        let mut at = from;
        while let Some(offset) = self.text[at..to].find('<') {
            at += offset;
            match self.grammar.marker_at(&self.text[at..]) {
                MarkerToken::Start(length) => {
                    self.report_kind(kind, at);
                    at += length;
                }
                MarkerToken::End(length) | MarkerToken::Example(length) | MarkerToken::ExampleEnd(length) => {
                    at += length;
                }
                _ => at += 1,
            }
            at = at.min(to);
        }
    }
}

/// Spaces that may stand before a fence or a quotation; what follows them.
fn strip_indent(line: &str) -> Option<&str> {
    let body = line.trim_start_matches(' ');
    (line.len() - body.len() <= 3).then_some(body)
}

fn is_quotation(line: &str) -> bool {
    strip_indent(line).is_some_and(|body| body.starts_with('>'))
}

/// The run of fence marks at the beginning of a line.
fn fence_marks(line: &str) -> Option<(LineFence, &str)> {
    let body = strip_indent(line)?;
    let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = body.trim_start_matches(mark);
    let length = body.len() - info.len();
    (length >= 3).then_some((LineFence { mark, length }, info))
}

fn opened_fence(line: &str) -> Option<LineFence> {
    // A fence holds for the lines behind it.
    if !line.ends_with('\n') {
        return None;
    }
    let (fence, info) = fence_marks(line)?;
    (fence.mark == '~' || !info.contains('`')).then_some(fence)
}

fn closes_fence(open: &LineFence, line: &str) -> bool {
    fence_marks(line).is_some_and(|(fence, info)| {
        fence.mark == open.mark
            && fence.length >= open.length
            && info.bytes().all(|byte| b" \t\r\n".contains(&byte))
    })
}

/// The backticks of a line so far.
struct BacktickRuns<'t> {
    line: &'t str,
    at: usize,
    /// Length of the run that is open.
    open: usize,
    runs: usize,
}

impl<'t> BacktickRuns<'t> {
    fn new(line: &'t str) -> Self {
        Self { line, at: 0, open: 0, runs: 0 }
    }

    /// Reason why the text at this position of the line is an example. Reasons are checked in order.
    fn example_at(&mut self, position: usize) -> Option<FindingKind> {
        while let Some(offset) = self.line[self.at..position].find('`') {
            let run = &self.line[self.at + offset..position];
            let length = run.len() - run.trim_start_matches('`').len();
            self.at += offset + length;
            self.runs += 1;
            if self.open == 0 {
                self.open = length;
            } else if self.open == length {
                self.open = 0;
            }
        }
        self.at = position;
        match fence_marks(self.line) {
            Some((fence, _)) if fence.mark == '~' || self.runs == 1 => Some(FindingKind::InCodeFence),
            _ => (self.open > 0).then_some(FindingKind::InInlineCode),
        }
    }
}
