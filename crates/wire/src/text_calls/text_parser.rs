//! The second reader of the text protocols: over a whole text, line by line, as simple as possible. It shares
//! only the rule for quotations with the scanner, so each is a check on the other.

use super::escape::{MarkerPrefix, unescape};
use super::protocol::{FINDINGS_MAX, FindingKind, MarkupFinding, ParsedCall, ParsedText, line_and_column};
use super::quotation::{QuotationReader, may_be_mention};

/// Token at a position of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerToken {
    Nothing,
    /// The text ends inside a marker.
    Torn,
    /// A start marker of this length.
    Start(usize),
    End(usize),
    /// A marker that declares its block an example.
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

/// A parsed block.
pub(super) struct ParsedBlock {
    /// Names and arguments, or why it is refused.
    pub(super) calls: Vec<(String, Result<String, String>)>,
    /// Offset of the text after the block.
    pub(super) end: usize,
    /// A value did not close: nothing after it may run.
    pub(super) tainted: bool,
    /// Ignored fields.
    pub(super) notes: Vec<(FindingKind, String)>,
}

pub(super) trait ParserGrammar {
    fn prefixes(&self) -> &'static [MarkerPrefix];
    /// Characters at which a leftover marker may begin, besides `<`.
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

impl TextParser<'_> {
    /// Skips text after a block that still belongs to it.
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

    fn push_finding(&mut self, kind: FindingKind, offset: usize, message: &str) {
        if self.parsed.findings.len() < FINDINGS_MAX {
            let (line, column) = line_and_column(self.text, offset);
            self.parsed.findings.push(MarkupFinding {
                kind,
                offset,
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
        let mut reader = QuotationReader::default();
        let (mut read, mut at) = (segment.from, segment.from);
        while let Some(stop) = self.next_stop(at) {
            at = stop + text[stop..].chars().next().map_or(1, char::len_utf8);
            let token = self.grammar.marker_at(&text[stop..]);
            if token == MarkerToken::Nothing {
                continue;
            }
            reader.push(&text[read..stop]);
            read = stop;
            let example = reader.quotation();
            let starts_line = reader.is_at_line_start();
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
                    let is_stray = starts_line && !reader.is_in_quoted_request();
                    if example.is_none() && (is_stray || self.tainted) {
                        self.emit_text(segment, stop);
                        if !self.tainted {
                            self.report_kind(FindingKind::StrayEnd, stop);
                        }
                        return Some(at);
                    }
                    reader.end_quoted_request();
                }
                MarkerToken::Start(length) => {
                    at = stop + length;
                    let opens = |at_line_start| self.grammar.block_opening(&text[at..], at_line_start);
                    match example {
                        Some(kind) if !may_be_mention(kind) || opens(false) == BlockOpening::Block => {
                            reader.begin_quoted_request();
                            self.report_kind(kind, stop);
                        }
                        Some(_) => reader.pass_quoted_marker(),
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
    fn next_stop(&self, at: usize) -> Option<usize> {
        let ahead = &self.text[at.min(self.text.len())..];
        let mark = memchr::memchr(b'<', ahead.as_bytes());
        let leftovers = if self.tainted { self.grammar.leftover_characters() } else { &[] };
        let leftover = match leftovers {
            [] => None,
            leftovers => ahead[..mark.unwrap_or(ahead.len())].find(leftovers),
        };
        leftover.or(mark).map(|offset| at + offset)
    }
}
