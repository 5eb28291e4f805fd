//! The one rule for markup that is only quoted: is what comes next in a text an example, or meant?
//!
//! Leaked calls and both text protocols ask here, so nothing runs in one form that would be an example in another.
//! [`QuotationReader`] takes a text from its beginning, cut anywhere, and answers for the position it has reached; only
//! what has arrived decides, so an answer never changes afterwards. It follows CommonMark where that is certain. Where it
//! is not (a quotation mark that may never close, a list item that may have ended), the markup counts as quoted: a
//! call that was missed is a nuisance, an example that runs is a breach.

mod fences;
mod line_start;
mod quote_marks;
mod regions;
mod state;

use super::markdown::CodeSpans;
use super::protocol::FindingKind;
use quote_marks::QuoteState;
use regions::{RegionExtent, TagPrefix};
use state::{LineLead, LineState, MarkRun, TextZone};

/// A position in a text.
#[derive(Debug, Default)]
pub(super) struct QuotationReader {
    zone: TextZone,
    line: LineState,
    /// The line before this one is a paragraph that an indented line would continue.
    continues_paragraph: bool,
    /// The line before this one is quoted, and this one continues it unless it is blank.
    continues_quotation: bool,
    /// Rows of a table follow each other until a blank line.
    in_table: bool,
    /// Column at which the content of the last list item begins. A list ends at an unindented line.
    list: Option<usize>,
    /// Length of the open run of backticks in this paragraph; 0 = none.
    code: usize,
    /// A run of backticks or tildes that may continue.
    run: Option<MarkRun>,
    quote: QuoteState,
    /// `quote` as it is if the inline code turns out to be none.
    quote_without_code: QuoteState,
    /// The start marker of a quoted request was passed, and its end marker was not.
    in_request: bool,
    /// The request is inside quotation marks: its own ones count for nothing.
    holds_quote: bool,
    /// A tag that has begun.
    tag: Option<TagPrefix>,
    /// The character before this position.
    previous: Option<char>,
    /// An odd number of backslashes precedes this position.
    escaped: bool,
    /// A `/` or a `#` after white space precedes this position: a comment may begin.
    comment_mark: Option<char>,
    /// Bytes taken so far, from the beginning of the text.
    offset: usize,
    /// Inline code of the whole text, where it is known.
    spans: Option<CodeSpans>,
    /// In the middle of a line where nothing has begun, so that most text changes nothing: [`Self::is_calm`] after the last
    /// part that did.
    calm: bool,
}

impl QuotationReader {
    /// For a text that is known whole: a backtick that no other one answers opens no inline code.
    pub(super) fn of_whole(text: &str) -> Self {
        let spans = memchr::memchr(b'`', text.as_bytes()).map(|_| CodeSpans::of(text));
        Self { spans: Some(spans.unwrap_or_default()), ..Self::default() }
    }

    /// Begins at this offset of a text that is known whole.
    pub(super) fn seek(&mut self, offset: usize) {
        *self = Self { offset, spans: self.spans.take(), ..Self::default() };
    }

    /// Passes text without effect: a call inside a quotation.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.finish_run();
        if self.line.lead == LineLead::Indent {
            self.begin_text();
        }
        (self.previous, self.escaped, self.tag, self.comment_mark) = (Some('>'), false, None, None);
        self.offset += bytes;
    }

    /// Reason why a request that begins here is only an example.
    pub(super) fn quotation(&mut self) -> Option<FindingKind> {
        self.finish_run();
        match self.zone {
            TextZone::Fence(_) => return Some(FindingKind::InCodeFence),
            TextZone::Until(region) => return Some(region.kind),
            TextZone::Page => {}
        }
        if !matches!(self.line.lead, LineLead::Indent | LineLead::Text) {
            // A marker follows, which makes the beginning of the line no list item and no comment.
            self.begin_text();
        }
        let line = &self.line;
        let would_be_indented = line.lead == LineLead::Indent && self.is_code_indentation();
        let reasons = [
            (
                line.quoted || line.continues_quotation || self.would_continue_quotation(),
                FindingKind::InQuotation,
            ),
            (line.opens.is_some(), FindingKind::InCodeFence),
            (line.indented || would_be_indented, FindingKind::InIndentedCode),
            (self.code > 0, FindingKind::InInlineCode),
            (line.row || (self.in_table && !self.is_unindented_start()), FindingKind::InTable),
            (line.comment || line.heading, FindingKind::InComment),
            (self.quote.is_open() || self.holds_quote || self.escaped, FindingKind::InQuotationMarks),
            (self.is_in_list(), FindingKind::InList),
        ];
        reasons.into_iter().find_map(|(holds, kind)| holds.then_some(kind))
    }

    /// True if only white space precedes this position on its line.
    pub(super) fn is_at_line_start(&self) -> bool {
        self.line.lead == LineLead::Indent && self.line.item.is_none() && self.run.is_none()
    }

    /// A start marker that is only quoted, or mentioned, begins here.
    pub(super) fn pass_quoted_marker(&mut self) {
        self.in_request = true;
    }

    /// A request begins here that is only quoted: until its end marker, quotation marks are its own.
    pub(super) fn begin_quoted_request(&mut self) {
        self.in_request = true;
        self.holds_quote = self.quote.is_open() && matches!(self.zone, TextZone::Page);
    }

    /// The end marker of a request was passed.
    pub(super) fn end_quoted_request(&mut self) {
        (self.in_request, self.holds_quote) = (false, false);
    }

    /// An end marker belongs to a request that is only quoted.
    pub(super) fn is_in_quoted_request(&self) -> bool {
        self.in_request
    }

    /// Takes the next part of the text.
    #[inline]
    pub(super) fn push(&mut self, text: &str) {
        let last = text.as_bytes().last();
        if self.calm
            && let Some(last) = last
            && text.bytes().all(|byte| !EVENTFUL[usize::from(byte)])
        {
            self.previous = if last.is_ascii() { Some(char::from(*last)) } else { text.chars().next_back() };
            self.offset += text.len();
            return;
        }
        self.push_parts(text);
        self.calm = self.is_calm();
    }

    fn is_calm(&self) -> bool {
        let Self { line, quote, quote_without_code, .. } = self;
        let expects_more =
            self.run.is_some() || self.tag.is_some() || self.comment_mark.is_some() || self.escaped;
        let in_beginning = line.lead != LineLead::Text || line.closes || line.opens.is_some();
        let has_shape = line.shape.only_rule || line.shape.only_delimiters;
        let is_settled = !(quote.may_be_closed || quote_without_code.may_be_closed);
        let is_shown = !line.quoted || line.has_text;
        let in_region = matches!(self.zone, TextZone::Until(_));
        // In a fence the shape of a line has no effect.
        let in_fence = matches!(self.zone, TextZone::Fence(_));
        !(expects_more || in_beginning || in_region) && (in_fence || (!has_shape && is_settled && is_shown))
    }

    fn push_parts(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let length = match self.zone {
                TextZone::Until(region) => self.push_region(rest, region),
                TextZone::Fence(_) => self.push_fence(rest),
                TextZone::Page => self.push_page(rest),
            };
            self.offset += length;
            rest = &rest[length..];
        }
    }

    fn push_page(&mut self, text: &str) -> usize {
        self.settle_apostrophe(text);
        let skipped = self.uneventful(text);
        if skipped > 0 {
            self.finish_run();
            self.previous = text[..skipped].chars().next_back();
            (self.escaped, self.comment_mark) = (false, None);
            return skipped;
        }
        let Some(character) = text.chars().next() else { return 0 };
        self.push_character(character);
        character.len_utf8()
    }

    /// Length of the text that changes nothing, from here on.
    fn uneventful(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let shape = &self.line.shape;
        let expects_more = self.tag.is_some() || self.comment_mark.is_some();
        let is_plain = self.line.lead == LineLead::Text && !shape.only_rule && !shape.only_delimiters;
        if !is_plain || expects_more || (self.line.quoted && !self.line.has_text) {
            return 0;
        }
        let end = if self.line.quoted || self.line.indented {
            memchr::memchr(b'\n', bytes)
        } else {
            bytes.iter().position(|byte| EVENTFUL[usize::from(*byte)])
        };
        end.unwrap_or(bytes.len())
    }

    fn push_character(&mut self, character: char) {
        if character == '\n' {
            return self.end_line();
        }
        if let '`' | '~' = character {
            self.tag = None;
            self.push_mark(character);
            return self.take_as_previous(character);
        }
        self.finish_run();
        self.take_shape(character);
        if self.line.lead == LineLead::Text {
            self.push_text(character);
        } else {
            self.push_lead(character);
        }
        if matches!(self.zone, TextZone::Page) {
            self.take_as_previous(character);
        }
    }

    fn take_as_previous(&mut self, character: char) {
        // A marker may begin at each `<` of several.
        self.escaped = if self.escaped { character == '<' } else { character == '\\' };
        self.previous = Some(character);
    }

    fn would_continue_quotation(&self) -> bool {
        self.continues_quotation && self.line.lead == LineLead::Indent && self.line.item.is_none()
    }

    fn is_in_list(&self) -> bool {
        self.list.is_some() && !self.is_unindented_start()
    }

    /// Models begin calls on a new line, also right after a list or a table.
    fn is_unindented_start(&self) -> bool {
        self.line.item.is_none() && self.line.lead == LineLead::Indent && self.line.column == 0
    }

    /// A row may begin here: the line before belongs to a table.
    pub(super) fn may_begin_row(&self) -> bool {
        self.in_table && self.is_unindented_start()
    }

    // --- inside a line ---

    fn push_text(&mut self, character: char) {
        if self.line.quoted {
            self.line.has_text |= !is_blank(character) && character != '>';
            return;
        }
        if self.line.indented {
            return;
        }
        self.push_tag(character);
        if !matches!(self.zone, TextZone::Page) {
            return;
        }
        let is_after_space = self.previous.is_none_or(|previous| previous.is_whitespace());
        let comment_mark = self.comment_mark.take();
        match character {
            '|' if is_after_space && self.code == 0 => self.line.row = true,
            '/' if comment_mark == Some('/') && self.code == 0 => self.line.comment = true,
            '*' if comment_mark == Some('/') && self.code == 0 => {
                self.begin_region("*/", FindingKind::InComment, RegionExtent::Line);
            }
            '/' | '#' if is_after_space => self.comment_mark = Some(character),
            ' ' | '\t' if comment_mark == Some('#') && self.code == 0 => self.line.comment = true,
            _ => self.push_quote(character),
        }
    }

    fn push_quote(&mut self, character: char) {
        if self.holds_quote {
            return;
        }
        let quote = if self.code > 0 { &mut self.quote_without_code } else { &mut self.quote };
        quote.push(character, self.previous, self.escaped);
    }

    /// Decides about a held apostrophe, which `text` follows.
    fn settle_apostrophe(&mut self, text: &str) {
        let is_letter = || text.chars().next().is_some_and(char::is_alphanumeric);
        for quote in [&mut self.quote, &mut self.quote_without_code] {
            if quote.may_be_closed {
                quote.may_be_closed = false;
                if !is_letter() {
                    quote.open = None;
                }
            }
        }
    }

    // --- the end of a line ---

    fn end_line(&mut self) {
        self.finish_run();
        if let TextZone::Page = self.zone {
            match self.line.lead {
                LineLead::Bullet(_) | LineLead::Number => self.begin_item(),
                LineLead::Digits(_) | LineLead::Dashes | LineLead::Slash => self.begin_text(),
                LineLead::Indent | LineLead::Text => {}
            }
        }
        let line = std::mem::take(&mut self.line);
        (self.tag, self.escaped, self.comment_mark, self.previous) = (None, false, None, Some('\n'));
        if let TextZone::Fence(_) = self.zone {
            if line.closes {
                self.zone = TextZone::Page;
            } else if let Some(fence) = line.opens {
                self.zone = TextZone::Fence(fence);
            }
            return;
        }
        let is_blank = line.lead == LineLead::Indent && line.item.is_none();
        if let Some(fence) = line.opens {
            self.code = 0;
            self.zone = TextZone::Fence(fence);
        }
        if is_blank || line.opens.is_some() {
            self.end_paragraph();
            (self.continues_paragraph, self.continues_quotation, self.in_table) = (false, false, false);
            return;
        }
        let is_rule = line.shape.only_rule;
        self.continues_quotation =
            (line.quoted && line.has_text) || (line.continues_quotation && !line.quoted);
        self.continues_paragraph = !(line.indented || line.heading || is_rule);
        self.in_table |= line.shape.only_delimiters && line.shape.has_dash && line.shape.has_bar;
    }

    fn end_paragraph(&mut self) {
        if self.code > 0 {
            // The backticks did not form inline code.
            self.quote = self.quote_without_code;
            self.code = 0;
        }
        self.quote.may_be_closed = false;
        if !self.holds_quote {
            self.quote.open = self.quote.open.filter(|open| open.is_sure);
        }
    }
}

/// True if the reader must know whether the markup is a request before it reports it as an example: in these places text
/// often only mentions a marker.
pub(super) fn may_be_mention(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::InInlineCode
            | FindingKind::InQuotationMarks
            | FindingKind::InList
            | FindingKind::InTable
            | FindingKind::InComment
    )
}

/// White space within a line.
pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r')
}

/// Bytes inside a line at which something may change.
const EVENTFUL: [bool; 256] = {
    let mut eventful = [false; 256];
    let bytes = b"\n`~\"'\\<|/#";
    let mut at = 0;
    while at < bytes.len() {
        eventful[bytes[at] as usize] = true;
        at += 1;
    }
    // First bytes of quotation marks that are not ASCII.
    eventful[0xc2] = true;
    eventful[0xe2] = true;
    eventful[0xe3] = true;
    eventful
};
