//! Markdown to characters that are spoken, one character at a time.
//!
//! Lines are read here: headings, lists, tables, fences, rules. The content of a line is read by [`inline`].
//! Both hold a limited number of characters back, only until their meaning is clear, and emit them at most
//! twice, so the time is linear in the length of the text.

mod inline;
mod markup;

use crate::characters::is_blank;
use inline::InlineReader;
use markup::RegionStep;

/// Longest inline code that is spoken, in characters. A name is read aloud, a command line is not.
pub const INLINE_CODE_CHARS_MAX: usize = 40;
/// Characters of one piece of inline markup (code, a tag, a formula) that are held back until it closes.
pub const MARKUP_CHARS_MAX: usize = 512;
/// Characters of a link's address that are held back; a longer one without a blank is an address in any case.
pub const ADDRESS_CHARS_MAX: usize = 2048;
/// Characters at the beginning of a line that are held back until it is clear what kind of line it is.
pub const LINE_LEAD_CHARS_MAX: usize = 256;

/// A piece of a text for a voice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speakable {
    /// A spoken character.
    Character {
        /// The character as it is spoken.
        character: char,
        /// Offset in the source text of the character that it comes from.
        source_byte: usize,
        /// Length of that character in the source text, in bytes.
        source_len: usize,
    },
    /// A pause in speech.
    Pause(SpeechPause),
}

/// Length of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpeechPause {
    /// A line break inside of a paragraph: a blank, or nothing between Chinese characters.
    Line,
    /// Between cells of a table, and at a forced line break.
    Clause,
    /// Between paragraphs, items and rows.
    Paragraph,
}

/// Converts Markdown text, given in pieces, to spoken characters and pauses.
///
/// Not spoken are: markup, code except short inline code, addresses of links and pictures, formulas, HTML tags, blocks
/// that call tools, thinking in tags, emoji and their names, and marks of footnotes and citations. Text of links,
/// descriptions of pictures and cells of tables are spoken.
///
/// ```
/// use throughline_speech::{Speakable, SpeakableFilter};
///
/// let mut filter = SpeakableFilter::new();
/// let mut all = filter.push("**Done** :tada: – see [the re");
/// all.extend(filter.push("port](/r/1)[^1]"));
/// all.extend(filter.finish());
/// let text: String = all
///     .into_iter()
///     .filter_map(|one| match one {
///         Speakable::Character { character, .. } => Some(character),
///         Speakable::Pause(_) => None,
///     })
///     .collect();
/// assert_eq!(text, "Done  – see the report");
/// ```
#[derive(Clone, Debug, Default)]
pub struct SpeakableFilter {
    /// Bytes of the source that were taken.
    source_bytes: usize,
    line: LineState,
    /// Characters of the line's beginning that are not yet decided.
    lead: Vec<SourceChar>,
    lead_state: LineLead,
    /// Blanks in front of the line, and depth of quotation.
    indent: usize,
    quotes: usize,
    quotes_before: usize,
    /// False if the previous line was blank, or there is none.
    follows_text: bool,
    /// An item of a list was begun and not left: indented lines are text.
    in_list: bool,
    /// An item was begun on this line.
    begins_item: bool,
    /// True if the line that ended last ends its block.
    ends_block: bool,
    inline: InlineReader,
    out: SpokenOutput,
    #[cfg(test)]
    lead_work: usize,
}

/// A character with its first byte in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SourceChar {
    character: char,
    at: usize,
}

/// Collects spoken characters. Of consecutive pauses the longest one counts, and the output never begins with
/// one.
#[derive(Clone, Debug)]
struct SpokenOutput {
    events: Vec<Speakable>,
    pause: Option<SpeechPause>,
}

impl Default for SpokenOutput {
    fn default() -> Self {
        Self { events: Vec::new(), pause: Some(SpeechPause::Paragraph) }
    }
}

impl SpokenOutput {
    fn speak(&mut self, one: SourceChar) {
        self.speak_as(one.character, one);
    }

    fn speak_as(&mut self, character: char, source: SourceChar) {
        let source_len = source.character.len_utf8();
        self.events.push(Speakable::Character { character, source_byte: source.at, source_len });
        self.pause = None;
    }

    fn pause(&mut self, pause: SpeechPause) {
        if self.pause < Some(pause) {
            self.pause = Some(pause);
            self.events.push(Speakable::Pause(pause));
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineState {
    #[default]
    Lead,
    Text(LineKind),
    /// Code by indentation, or the definition of a link's address.
    Silent,
    Fence(OpenFence),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    Plain,
    Heading,
    Row,
}

/// Undecided beginning of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineLead {
    #[default]
    Indent,
    /// Only marks that may be a rule, an underline, a bullet or a row's border.
    Marks,
    Hashes,
    Digits,
    DigitsEnd,
    Bracket,
    BracketEnd,
    /// After `[…]:`, the first characters of what may be an address.
    Definition,
    Fence,
    FenceInfo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenFence {
    mark: char,
    length: usize,
    quotes: usize,
    line: FenceLine,
}

/// The current line inside of a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FenceLine {
    Lead,
    /// This many fence marks and only blanks after them.
    Marks(usize),
    Code,
}

impl SpeakableFilter {
    /// For one block of text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of the text.
    pub fn push(&mut self, text: &str) -> Vec<Speakable> {
        for character in text.chars() {
            let at = self.source_bytes;
            self.source_bytes += character.len_utf8();
            // Line ends of Windows.
            if character != '\r' {
                self.take(SourceChar { character, at });
            }
        }
        std::mem::take(&mut self.out.events)
    }

    /// Ends the text: resolves the held characters.
    pub fn finish(mut self) -> Vec<Speakable> {
        if self.inline.region.is_none() && self.line == LineState::Lead {
            match self.lead_state {
                LineLead::Indent | LineLead::Marks | LineLead::Hashes => {}
                LineLead::Fence if self.lead.len() >= FENCE_LENGTH_MIN => {}
                LineLead::FenceInfo => {}
                _ => self.begin_text(LineKind::Plain),
            }
        }
        self.inline.end_line(&mut self.out);
        self.inline.end_paragraph(&mut self.out);
        std::mem::take(&mut self.out.events)
    }

    fn take(&mut self, one: SourceChar) {
        self.count();
        if let Some(region) = &mut self.inline.region {
            match region.take(one.character) {
                RegionStep::Inside => {}
                RegionStep::Ended => self.inline.region = None,
                RegionStep::EndedByBlankLine => {
                    self.inline.region = None;
                    self.end_paragraph();
                    self.follows_text = false;
                    self.begin_line();
                }
            }
            return;
        }
        match self.line {
            LineState::Lead => self.take_lead(one),
            LineState::Text(kind) if one.character == '\n' => {
                self.inline.end_line(&mut self.out);
                self.ends_block = kind != LineKind::Plain || self.inline.take_cells();
                if kind == LineKind::Heading {
                    self.end_paragraph();
                }
                self.begin_line();
            }
            LineState::Text(kind) => self.inline.take(one, kind == LineKind::Heading, &mut self.out),
            LineState::Silent if one.character == '\n' => self.begin_line(),
            LineState::Silent => {}
            LineState::Fence(fence) => self.take_fenced(fence, one),
        }
    }

    fn begin_line(&mut self) {
        self.line = LineState::Lead;
        self.lead_state = LineLead::Indent;
        self.lead.clear();
        self.quotes_before = self.quotes;
        (self.indent, self.quotes, self.begins_item) = (0, 0, false);
    }

    fn take_lead(&mut self, one: SourceChar) {
        let character = one.character;
        if character == '\n' {
            return self.end_lead();
        }
        match self.lead_state {
            LineLead::Indent => self.take_indent(one),
            LineLead::Marks if is_lead_mark(character) || is_blank(character) => self.hold_lead(one),
            LineLead::Marks => self.resolve_marks(one),
            LineLead::Hashes if character == '#' && self.lead.len() < HEADING_DEPTH_MAX => {
                self.lead.push(one)
            }
            LineLead::Hashes if is_blank(character) => {
                self.lead.clear();
                self.begin_text(LineKind::Heading);
            }
            LineLead::Digits if character.is_ascii_digit() && self.lead.len() < LIST_DIGITS_MAX => {
                self.lead.push(one);
            }
            LineLead::Digits if matches!(character, '.' | ')') => {
                self.lead.push(one);
                self.lead_state = LineLead::DigitsEnd;
            }
            LineLead::Digits if character == '、' => self.begin_numbered(one),
            LineLead::DigitsEnd if is_blank(character) => self.begin_numbered(one),
            LineLead::Bracket => {
                self.hold_lead(one);
                if character == ']' && self.line == LineState::Lead {
                    self.lead_state = LineLead::BracketEnd;
                }
            }
            LineLead::BracketEnd => self.resolve_bracket(one),
            LineLead::Definition => self.resolve_definition(one),
            LineLead::Fence if character == self.lead[0].character => self.hold_lead(one),
            LineLead::Fence if self.lead.len() >= FENCE_LENGTH_MIN => {
                self.lead_state = LineLead::FenceInfo;
                self.take_fence_info(one);
            }
            LineLead::FenceInfo => self.take_fence_info(one),
            LineLead::Hashes | LineLead::Digits | LineLead::DigitsEnd | LineLead::Fence => {
                self.begin_text(LineKind::Plain);
                self.take(one);
            }
        }
    }

    fn take_indent(&mut self, one: SourceChar) {
        let character = one.character;
        match character {
            '\t' => self.indent += TAB_WIDTH - self.indent % TAB_WIDTH,
            _ if is_blank(character) => self.indent += 1,
            _ if self.indent >= CODE_INDENT && !self.in_list && !self.follows_text && !self.begins_item => {
                self.line = LineState::Silent;
            }
            '>' => {
                self.quotes += 1;
                self.indent = 0;
            }
            '#' => self.hold_lead_as(LineLead::Hashes, one),
            '0'..='9' => self.hold_lead_as(LineLead::Digits, one),
            '[' => self.hold_lead_as(LineLead::Bracket, one),
            '`' | '~' => self.hold_lead_as(LineLead::Fence, one),
            _ if is_lead_mark(character) => self.hold_lead_as(LineLead::Marks, one),
            _ => {
                self.begin_text(LineKind::Plain);
                self.take(one);
            }
        }
    }

    fn hold_lead_as(&mut self, state: LineLead, one: SourceChar) {
        self.lead_state = state;
        self.lead.push(one);
    }

    fn hold_lead(&mut self, one: SourceChar) {
        self.lead.push(one);
        if self.lead.len() > LINE_LEAD_CHARS_MAX {
            self.begin_text(LineKind::Plain);
        }
    }

    /// A line break in the undecided beginning of a line.
    fn end_lead(&mut self) {
        match self.lead_state {
            LineLead::Indent => {
                self.end_paragraph();
                self.follows_text = false;
            }
            // Rules, underlines, borders of tables, empty items and headings.
            LineLead::Marks | LineLead::Hashes => self.end_paragraph(),
            LineLead::Fence | LineLead::FenceInfo if self.lead.len() >= FENCE_LENGTH_MIN => {
                return self.open_fence();
            }
            _ => {
                self.begin_text(LineKind::Plain);
                self.take(SourceChar { character: '\n', at: self.source_bytes });
                return;
            }
        }
        self.begin_line();
    }

    /// `next` is the first character that is no mark.
    fn resolve_marks(&mut self, next: SourceChar) {
        let mut items = 0;
        while let [bullet, blank, ..] = self.lead[items..]
            && matches!(bullet.character, '-' | '*' | '+')
            && is_blank(blank.character)
        {
            items += 2;
            while self.lead.get(items).is_some_and(|one| is_blank(one.character)) {
                items += 1;
            }
        }
        self.lead.drain(..items);
        if items > 0 {
            self.begin_item();
        }
        match self.lead.first().map(|one| one.character) {
            // Headings, fences and numbers may be inside an item.
            None => {
                self.lead_state = LineLead::Indent;
                self.take(next);
            }
            first => {
                self.begin_text(if first == Some('|') { LineKind::Row } else { LineKind::Plain });
                self.take(next);
            }
        }
    }

    fn begin_item(&mut self) {
        self.end_paragraph();
        (self.in_list, self.begins_item, self.indent) = (true, true, 0);
    }

    fn begin_numbered(&mut self, one: SourceChar) {
        self.begin_item();
        self.begin_text(LineKind::Plain);
        self.take(one);
    }

    /// After `[…]` at the beginning of a line.
    fn resolve_bracket(&mut self, next: SourceChar) {
        let is_note = self.lead.get(1).is_some_and(|one| one.character == '^');
        let is_box =
            self.lead.len() == 3 && matches!(self.lead[1].character, ' ' | 'x' | 'X') && self.begins_item;
        if next.character == ':' && is_note {
            self.lead.clear();
            self.end_paragraph();
            self.begin_text(LineKind::Plain);
        } else if next.character == ':' {
            self.lead.push(next);
            self.lead_state = LineLead::Definition;
        } else if is_box && is_blank(next.character) {
            self.lead.clear();
            self.begin_text(LineKind::Plain);
        } else {
            self.begin_text(LineKind::Plain);
            self.take(next);
        }
    }

    /// After `[…]:`. An address begins in one of few ways; anything else is a sentence.
    fn resolve_definition(&mut self, next: SourceChar) {
        let start = self.lead.iter().rposition(|one| one.character == ':').map_or(0, |colon| colon + 1);
        if is_blank(next.character) && self.lead[start..].iter().all(|one| is_blank(one.character)) {
            return self.hold_lead(next);
        }
        self.lead.push(next);
        let mut address = self.lead[start..].iter().map(|one| one.character).filter(|one| !is_blank(*one));
        let first = address.next();
        let rest = address.count();
        match first {
            Some('<' | '/' | '#' | '.') => self.line = LineState::Silent,
            Some('h' | 'w' | 'm' | 'f') if rest < DEFINITION_LOOK_CHARS => {}
            Some('h' | 'w' | 'm' | 'f') => {
                let word: String = self.lead[start..].iter().map(|one| one.character).collect();
                if ["http", "www.", "mail", "ftp:", "file"].iter().any(|begin| word.trim().starts_with(begin))
                {
                    self.line = LineState::Silent;
                } else {
                    self.begin_text(LineKind::Plain);
                }
            }
            _ => self.begin_text(LineKind::Plain),
        }
    }

    fn take_fence_info(&mut self, one: SourceChar) {
        // Three backticks with others on the same line are inline code.
        let is_inline = one.character == '`' && self.lead[0].character == '`';
        if is_inline || self.lead.len() >= LINE_LEAD_CHARS_MAX {
            self.begin_text(LineKind::Plain);
            self.take(one);
        } else {
            self.lead.push(one);
        }
    }

    fn open_fence(&mut self) {
        self.end_paragraph();
        let mark = self.lead[0].character;
        let length = self.lead.iter().take_while(|one| one.character == mark).count();
        let quotes = self.quotes;
        self.begin_line();
        self.line = LineState::Fence(OpenFence { mark, length, quotes, line: FenceLine::Lead });
    }

    fn take_fenced(&mut self, mut fence: OpenFence, one: SourceChar) {
        let character = one.character;
        fence.line = match (fence.line, character) {
            (FenceLine::Marks(count), '\n') if count >= fence.length => {
                self.quotes = fence.quotes;
                return self.begin_line();
            }
            (_, '\n') => {
                self.quotes = 0;
                FenceLine::Lead
            }
            (FenceLine::Lead, '>') if self.quotes < fence.quotes => {
                self.quotes += 1;
                FenceLine::Lead
            }
            (FenceLine::Lead, _) if is_blank(character) => FenceLine::Lead,
            // A quotation ends with everything in it.
            (FenceLine::Lead, _) if self.quotes < fence.quotes => {
                self.begin_line();
                return self.take(one);
            }
            (FenceLine::Lead, _) if character == fence.mark => FenceLine::Marks(1),
            (FenceLine::Marks(count), _) if character == fence.mark => FenceLine::Marks(count + 1),
            (FenceLine::Marks(count), _) if count >= fence.length && is_blank(character) => {
                FenceLine::Marks(count)
            }
            _ => FenceLine::Code,
        };
        self.line = LineState::Fence(fence);
    }

    /// Begins a line of text: emits the pause before it and the held characters.
    fn begin_text(&mut self, kind: LineKind) {
        if self.indent == 0 && !self.begins_item {
            self.in_list = false;
        }
        if self.ends_block || kind != LineKind::Plain || self.quotes != self.quotes_before {
            self.end_paragraph();
        } else if self.follows_text && !self.begins_item {
            self.inline.continue_line(&mut self.out);
        }
        (self.follows_text, self.ends_block) = (true, false);
        self.line = LineState::Text(kind);
        self.lead_state = LineLead::Indent;
        for one in std::mem::take(&mut self.lead) {
            self.take(one);
        }
    }

    fn end_paragraph(&mut self) {
        self.inline.end_paragraph(&mut self.out);
        self.ends_block = false;
        self.out.pause(SpeechPause::Paragraph);
    }

    #[cfg(test)]
    fn count(&mut self) {
        self.lead_work += 1;
    }

    /// Steps so far: characters taken by the lines and by the readers in them.
    #[cfg(test)]
    pub(crate) fn work(&self) -> usize {
        self.lead_work + self.inline.work
    }

    #[cfg(not(test))]
    fn count(&mut self) {}
}

const FENCE_LENGTH_MIN: usize = 3;
const HEADING_DEPTH_MAX: usize = 6;
const LIST_DIGITS_MAX: usize = 9;
const TAB_WIDTH: usize = 4;
const CODE_INDENT: usize = 4;
/// Characters after the first one by which the scheme of an address is known.
const DEFINITION_LOOK_CHARS: usize = 3;

/// True for characters that may be in a line without spoken text.
fn is_lead_mark(character: char) -> bool {
    matches!(character, '-' | '*' | '_' | '=' | '+' | '|' | ':')
}
