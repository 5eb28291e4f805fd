//! Text within lines: emphasis, code, links, tags, formulas, emoji.

use super::markup::{RegionEnd, SkippedRegion, TagEffect, is_cut_off_tag, tag_effect};
use super::{ADDRESS_CHARS_MAX, INLINE_CODE_CHARS_MAX, MARKUP_CHARS_MAX};
use super::{SourceChar, SpeechPause, SpokenOutput};
use crate::characters::{is_arrow, is_blank, is_east_asian, is_invisible, is_picture, is_spaceless};

/// Reads the characters of lines.
///
/// Text that turns out not to be markup is read again as plain text, in which nothing is held back: each character is read
/// at most twice.
#[derive(Clone, Debug, Default)]
pub(super) struct InlineReader {
    state: InlineState,
    /// Characters whose meaning is not yet known.
    held: Vec<SourceChar>,
    /// Previous character of the source.
    before: Option<char>,
    /// The last character of the line so far is a blank, and so was the one in front of it.
    trailing_blanks: usize,
    /// A backslash ends the line.
    is_forced_break: bool,
    has_cells: bool,
    is_heading: bool,
    /// Region of which nothing is spoken; the line reader uses it, too.
    pub(super) region: Option<SkippedRegion>,
    #[cfg(test)]
    pub(super) work: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum InlineState {
    #[default]
    Text,
    /// A run of one mark, and the character in front of it.
    Run(MarkRun),
    Backslash,
    /// After a backslash: letters of `begin{`.
    Begin,
    /// After a backquote run, until its code begins.
    Backquotes(usize),
    /// Inline code that opened with this many backquotes, with the number at its end so far.
    Code {
        opened: usize,
        closing: usize,
    },
    LongCode {
        opened: usize,
        closing: usize,
    },
    Angle,
    Tag(TagReading),
    /// A tag that is too long to be held.
    LongTag,
    /// The rest of a marker's `>>>`.
    Angles,
    Dollar,
    Formula(FormulaReading),
    FormulaEnd,
    Bang,
    Bracket,
    Footnote,
    AfterBracket,
    Label,
    Address {
        depth: usize,
    },
    LongAddress,
    /// A word that may begin an address.
    Word,
    Url,
    Entity,
    Shortcode,
    Lenticular,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MarkRun {
    mark: SourceChar,
    count: usize,
    before: Option<char>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TagReading {
    quote: Option<char>,
    has_blank: bool,
    has_equals: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct FormulaReading {
    depth: usize,
    /// Letters of the current word, if it is no command.
    letters: usize,
    in_command: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    Markdown,
    /// Marks are dropped, and none begins anything.
    Plain,
}

/// Longest word of a formula, in letters; a longer one is prose between two amounts of money.
const FORMULA_WORD_LETTERS_MAX: usize = 3;
/// Longest formula that is spoken, in characters: the name of a variable.
const FORMULA_NAME_CHARS_MAX: usize = 8;
/// Signs of equality in a row; more of them are an ornament.
const EQUALS_MAX: usize = 2;
const CITATION_CHARS_MAX: usize = 64;
const SHORTCODE_CHARS_MAX: usize = 32;
const ENTITY_CHARS_MAX: usize = 10;
const LABEL_CHARS_MAX: usize = 128;
const URL_TRAIL_CHARS_MAX: usize = 16;
/// Prefixes of addresses.
const SCHEMES: [&str; 6] = ["https://", "http://", "www.", "mailto:", "ftp://", "file://"];
/// Marker of calls in front of a list in brackets.
const BRACKET_CALLS: &str = "[TOOL_CALLS]";

impl InlineReader {
    pub(super) fn take(&mut self, one: SourceChar, is_heading: bool, out: &mut SpokenOutput) {
        self.is_heading = is_heading;
        self.trailing_blanks = if is_blank(one.character) { self.trailing_blanks + 1 } else { 0 };
        self.step(one, out);
    }

    /// The line had more than one cell.
    pub(super) fn take_cells(&mut self) -> bool {
        std::mem::take(&mut self.has_cells)
    }

    /// Resolves states that cannot continue in the next line.
    pub(super) fn end_line(&mut self, out: &mut SpokenOutput) {
        match self.state {
            InlineState::Text | InlineState::Tag(_) | InlineState::LongTag => {}
            InlineState::Run(run) => self.end_run(run, None, out),
            InlineState::Backslash => {
                self.is_forced_break = true;
                self.state = InlineState::Text;
            }
            InlineState::Code { opened, closing } if opened == closing => self.speak_code(opened, out),
            InlineState::Backquotes(_)
            | InlineState::Code { .. }
            | InlineState::Formula(_)
            | InlineState::Footnote
            | InlineState::Label
            | InlineState::Address { .. } => self.read_plainly(out),
            InlineState::FormulaEnd => self.speak_formula(out),
            InlineState::LongCode { .. } | InlineState::LongAddress => self.state = InlineState::Text,
            InlineState::Angles | InlineState::AfterBracket => self.state = InlineState::Text,
            InlineState::Url => self.end_url(out),
            InlineState::Dollar => self.drop_held(),
            InlineState::Angle
            | InlineState::Bang
            | InlineState::Begin
            | InlineState::Bracket
            | InlineState::Word
            | InlineState::Entity
            | InlineState::Shortcode
            | InlineState::Lenticular => self.speak_held(out),
        }
        self.before = None;
    }

    /// Continues the paragraph in the next line.
    pub(super) fn continue_line(&mut self, out: &mut SpokenOutput) {
        let is_forced = self.trailing_blanks >= 2 || self.is_forced_break;
        (self.trailing_blanks, self.is_forced_break) = (0, false);
        if let InlineState::Tag(mut reading) = self.state {
            reading.has_blank = true;
            self.state = InlineState::Tag(reading);
        } else {
            out.pause(if is_forced { SpeechPause::Clause } else { SpeechPause::Line });
        }
    }

    pub(super) fn end_paragraph(&mut self, out: &mut SpokenOutput) {
        match self.state {
            InlineState::Tag(_) => {
                let held: String = self.held.iter().map(|one| one.character).collect();
                if is_cut_off_tag(&held) {
                    self.drop_held();
                } else {
                    self.read_plainly(out);
                    self.end_line(out);
                }
            }
            InlineState::LongTag => self.state = InlineState::Text,
            _ => {}
        }
        (self.trailing_blanks, self.is_forced_break) = (0, false);
    }

    fn step(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        let character = one.character;
        self.count(1);
        match self.state {
            InlineState::Text => self.read(one, ReadMode::Markdown, out),
            InlineState::Run(mut run) => {
                if run.mark.character == character {
                    run.count += 1;
                    self.state = InlineState::Run(run);
                } else {
                    self.end_run(run, Some(character), out);
                    self.step(one, out);
                }
            }
            InlineState::Backslash => self.after_backslash(one, out),
            InlineState::Begin => {
                self.held.push(one);
                let held: String = self.held.iter().map(|one| one.character).collect();
                if held == "begin{" {
                    self.skip(RegionEnd::Environment);
                } else if !"begin{".starts_with(&held) {
                    self.speak_held(out);
                }
            }
            InlineState::Backquotes(opened) if character == '`' => {
                self.held.push(one);
                self.state = InlineState::Backquotes(opened + 1);
            }
            InlineState::Backquotes(opened) => {
                self.held.push(one);
                self.state = InlineState::Code { opened, closing: 0 };
            }
            InlineState::Code { opened, closing } if character == '`' => {
                self.held.push(one);
                self.state = InlineState::Code { opened, closing: closing + 1 };
            }
            InlineState::Code { opened, closing } if opened == closing => {
                self.speak_code(opened, out);
                self.step(one, out);
            }
            InlineState::Code { opened, .. } => {
                self.held.push(one);
                self.state = InlineState::Code { opened, closing: 0 };
                if self.held.len() > MARKUP_CHARS_MAX {
                    self.held.clear();
                    self.state = InlineState::LongCode { opened, closing: 0 };
                }
            }
            InlineState::LongCode { opened, closing } if character == '`' => {
                self.state = InlineState::LongCode { opened, closing: closing + 1 };
            }
            InlineState::LongCode { opened, closing } if opened == closing => {
                self.state = InlineState::Text;
                self.step(one, out);
            }
            InlineState::LongCode { opened, .. } => self.state = InlineState::LongCode { opened, closing: 0 },
            InlineState::Angle => self.after_angle(one, out),
            InlineState::Tag(reading) => self.read_tag(reading, one, out),
            InlineState::LongTag if character == '>' => self.state = InlineState::Text,
            InlineState::LongTag => {}
            InlineState::Angles if character == '>' => {}
            InlineState::Angles => {
                self.state = InlineState::Text;
                self.step(one, out);
            }
            InlineState::Dollar => self.after_dollar(one, out),
            InlineState::Formula(reading) => self.read_formula(reading, one, out),
            InlineState::FormulaEnd if character.is_ascii_digit() => {
                self.read_plainly(out);
                self.step(one, out);
            }
            InlineState::FormulaEnd => {
                self.speak_formula(out);
                self.step(one, out);
            }
            InlineState::Bang => {
                if character == '[' {
                    self.held.clear();
                } else {
                    self.speak_held(out);
                }
                self.state = InlineState::Text;
                self.step(one, out);
            }
            InlineState::Bracket => self.read_bracket(one, out),
            InlineState::Footnote => {
                if character == ']' {
                    self.drop_held();
                } else {
                    self.hold_up_to(CITATION_CHARS_MAX, one, out);
                }
            }
            InlineState::AfterBracket => match character {
                '(' => self.hold_as(InlineState::Address { depth: 1 }, one),
                '[' => self.hold_as(InlineState::Label, one),
                _ => {
                    self.state = InlineState::Text;
                    self.step(one, out);
                }
            },
            InlineState::Label if character == ']' => self.drop_held(),
            InlineState::Label => self.hold_up_to(LABEL_CHARS_MAX, one, out),
            InlineState::Address { depth } => self.read_address(depth, one, out),
            InlineState::LongAddress if character == ')' => self.state = InlineState::Text,
            InlineState::LongAddress => {}
            InlineState::Word => self.read_word(one, out),
            InlineState::Url => self.read_url(one, out),
            InlineState::Entity => self.read_entity(one, out),
            InlineState::Shortcode => self.read_shortcode(one, out),
            InlineState::Lenticular => self.read_lenticular(one, out),
        }
    }

    /// Takes a character that no markup holds.
    fn read(&mut self, one: SourceChar, mode: ReadMode, out: &mut SpokenOutput) {
        let character = one.character;
        let before = self.before;
        if character != '\\' {
            self.before = Some(character);
        }
        let is_after_word = before.is_some_and(char::is_alphanumeric);
        let is_plain = mode == ReadMode::Plain;
        let run = InlineState::Run(MarkRun { mark: one, count: 1, before });
        match character {
            '*' | '_' | '~' | '-' | '=' => self.state = run,
            '#' if self.is_heading => self.state = run,
            '$' if is_plain => self.state = run,
            '`' | '[' | ']' if is_plain => {}
            '`' => self.hold_as(InlineState::Backquotes(1), one),
            '\\' => self.state = InlineState::Backslash,
            '[' => self.hold_as(InlineState::Bracket, one),
            ']' => self.state = InlineState::AfterBracket,
            '|' => {
                self.has_cells = true;
                out.pause(SpeechPause::Clause);
            }
            '!' if !is_plain => self.hold_as(InlineState::Bang, one),
            '<' if !is_plain => self.hold_as(InlineState::Angle, one),
            '$' => self.hold_as(InlineState::Dollar, one),
            '&' if !is_plain => self.hold_as(InlineState::Entity, one),
            ':' if !is_plain && !is_after_word => self.hold_as(InlineState::Shortcode, one),
            '【' if !is_plain => self.hold_as(InlineState::Lenticular, one),
            'h' | 'w' | 'm' | 'f' | 'H' | 'W' | 'M' | 'F'
                if !before.is_some_and(|before| before.is_alphanumeric() && !is_spaceless(before)) =>
            {
                self.hold_as(InlineState::Word, one);
            }
            _ => self.speak(one, out),
        }
    }

    #[cfg(test)]
    fn count(&mut self, work: usize) {
        self.work += work;
    }

    #[cfg(not(test))]
    fn count(&mut self, _work: usize) {}

    /// Gives out a character that is text.
    fn speak(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        match one.character {
            character if is_arrow(character) => out.pause(SpeechPause::Clause),
            character if is_picture(character) || is_invisible(character) => {}
            character if is_blank(character) => out.speak_as(' ', one),
            _ => out.speak(one),
        }
    }

    fn hold_as(&mut self, state: InlineState, one: SourceChar) {
        self.state = state;
        self.held.clear();
        self.held.push(one);
    }

    fn hold_up_to(&mut self, chars_max: usize, one: SourceChar, out: &mut SpokenOutput) {
        self.held.push(one);
        if self.held.len() > chars_max {
            self.read_plainly(out);
        }
    }

    fn drop_held(&mut self) {
        self.held.clear();
        self.state = InlineState::Text;
    }

    /// The held characters are text, and none of it can be markup.
    fn speak_held(&mut self, out: &mut SpokenOutput) {
        self.count(self.held.len());
        self.state = InlineState::Text;
        for one in std::mem::take(&mut self.held) {
            self.before = Some(one.character);
            self.speak(one, out);
        }
    }

    /// The held characters are no markup as a whole.
    fn read_plainly(&mut self, out: &mut SpokenOutput) {
        self.state = InlineState::Text;
        self.before = None;
        self.count(self.held.len());
        for one in std::mem::take(&mut self.held) {
            // Runs, words and addresses hold a little even now; those states read on as ever.
            if self.state == InlineState::Text {
                self.read(one, ReadMode::Plain, out);
            } else {
                self.step_plainly(one, out);
            }
        }
    }

    fn step_plainly(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        match self.state {
            InlineState::Run(mut run) if run.mark.character == one.character => {
                run.count += 1;
                self.state = InlineState::Run(run);
                return;
            }
            InlineState::Run(run) => self.end_run(run, Some(one.character), out),
            InlineState::Word => {
                self.held.push(one);
                match word_match(&self.held) {
                    WordMatch::Open => {}
                    WordMatch::Address => self.begin_url(),
                    WordMatch::Other => {
                        self.held.pop();
                        self.speak_held(out);
                        self.read(one, ReadMode::Plain, out);
                    }
                }
                return;
            }
            InlineState::Url if !ends_url(one.character) => return self.hold_url_trail(one),
            InlineState::Url => self.end_url(out),
            // A backslash: the next character is literal.
            _ => self.state = InlineState::Text,
        }
        self.read(one, ReadMode::Plain, out);
    }

    fn skip(&mut self, end: RegionEnd) {
        self.drop_held();
        self.region = Some(SkippedRegion::until(end));
    }

    /// A run of marks has ended in front of `next`.
    fn end_run(&mut self, run: MarkRun, next: Option<char>, out: &mut SpokenOutput) {
        self.state = InlineState::Text;
        let mark = run.mark;
        let is_word = |one: Option<char>| one.is_some_and(char::is_alphanumeric);
        let stands_alone = |one: Option<char>| one.is_some_and(|one| is_blank(one) || one.is_ascii_digit());
        match mark.character {
            '*' if run.count == 1 && stands_alone(run.before) && stands_alone(next) => {
                out.speak_as('×', mark);
            }
            '_' if is_word(run.before) && is_word(next) => out.speak_as(' ', mark),
            '~' | '-' if run.count == 1 => out.speak(mark),
            '-' => out.pause(SpeechPause::Clause),
            '=' if run.count <= EQUALS_MAX => {
                (0..run.count).for_each(|nth| out.speak(SourceChar { at: mark.at + nth, ..mark }));
            }
            '#' if is_word(run.before) || is_word(next) => out.speak(mark),
            '$' if next.is_some_and(|next| next.is_ascii_digit()) => out.speak(mark),
            _ => {}
        }
    }

    fn after_backslash(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        self.state = InlineState::Text;
        match one.character {
            '(' => self.skip(RegionEnd::Formula("\\)")),
            '[' => self.skip(RegionEnd::Formula("\\]")),
            'b' => self.hold_as(InlineState::Begin, one),
            '\\' => out.pause(SpeechPause::Clause),
            '`' | '|' | ']' | '~' => {}
            '_' => self.read(one, ReadMode::Markdown, out),
            character if character.is_ascii_punctuation() => {
                self.before = Some(character);
                self.speak(one, out);
            }
            _ => {
                out.speak_as(' ', SourceChar { character: '\\', at: one.at - 1 });
                self.step(one, out);
            }
        }
    }

    /// Short inline code is read as words.
    fn speak_code(&mut self, opened: usize, out: &mut SpokenOutput) {
        self.state = InlineState::Text;
        let held = std::mem::take(&mut self.held);
        let code = &held[opened..held.len() - opened];
        let is_address = code.windows(3).any(|three| three.iter().map(|one| one.character).eq("://".chars()));
        self.before = Some('`');
        if code.len() > INLINE_CODE_CHARS_MAX || is_address {
            return;
        }
        let mut blank = None;
        for one in code {
            let is_spoken = one.character.is_alphanumeric()
                || matches!(one.character, '.' | '-' | '+' | '#' | '%' | '/' | '\'')
                || !one.character.is_ascii();
            if !is_spoken {
                blank = blank.or(Some(*one));
                continue;
            }
            // Brackets and quotation marks at both ends are not even pauses.
            if let Some(blank) = blank.take().filter(|blank| blank.at > code[0].at) {
                out.speak_as(' ', blank);
            }
            self.speak(*one, out);
        }
    }

    fn after_angle(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        let character = one.character;
        if character.is_ascii_alphabetic() || matches!(character, '/' | '!' | '?' | '|' | '｜' | '<') {
            self.held.push(one);
            self.state = InlineState::Tag(TagReading::default());
        } else {
            self.speak_held(out);
            self.step(one, out);
        }
    }

    fn read_tag(&mut self, mut reading: TagReading, one: SourceChar, out: &mut SpokenOutput) {
        let character = one.character;
        let is_markup = match reading.quote {
            Some(quote) => {
                if character == quote {
                    reading.quote = None;
                }
                true
            }
            None if character == '>' => {
                self.held.push(one);
                return self.end_tag(out);
            }
            None if matches!(character, '"' | '\'') => {
                reading.quote = reading.has_equals.then_some(character);
                reading.has_equals
            }
            None if is_blank(character) => {
                reading.has_blank = true;
                true
            }
            // A sentence with a sign in it is no tag.
            None if reading.has_blank => {
                !matches!(character, ',' | ';' | '(' | '<') && !is_spaceless(character)
            }
            None => !is_spaceless(character),
        };
        reading.has_equals |= character == '=';
        self.held.push(one);
        self.state = InlineState::Tag(reading);
        if self.held.len() == 4 && self.held.iter().map(|one| one.character).eq("<!--".chars()) {
            self.skip(RegionEnd::Comment);
        } else if !is_markup {
            self.read_plainly(out);
        } else if self.held.len() > MARKUP_CHARS_MAX {
            if reading.has_equals && reading.has_blank {
                self.held.clear();
                self.state = InlineState::LongTag;
            } else {
                self.read_plainly(out);
            }
        }
    }

    fn end_tag(&mut self, out: &mut SpokenOutput) {
        let tag: String = self.held.iter().map(|one| one.character).collect();
        self.drop_held();
        self.before = Some('>');
        match tag_effect(&tag) {
            TagEffect::Nothing => {}
            TagEffect::Clause => out.pause(SpeechPause::Clause),
            TagEffect::Paragraph => out.pause(SpeechPause::Paragraph),
            TagEffect::Skip(end) => return self.skip(end),
        }
        if tag.starts_with("<<") {
            self.state = InlineState::Angles;
        }
    }

    fn after_dollar(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        if one.character == '$' {
            self.skip(RegionEnd::Formula("$$"));
        } else if is_blank(one.character) {
            self.drop_held();
            self.step(one, out);
        } else {
            self.read_formula(FormulaReading::default(), one, out);
        }
    }

    fn read_formula(&mut self, mut reading: FormulaReading, one: SourceChar, out: &mut SpokenOutput) {
        let character = one.character;
        let before = self.held.last().map_or(' ', |one| one.character);
        if character == '$' && !is_blank(before) && before != '\\' && self.held.len() > 1 {
            self.held.push(one);
            self.state = InlineState::FormulaEnd;
            return;
        }
        match character {
            '{' => reading.depth += 1,
            '}' => reading.depth = reading.depth.saturating_sub(1),
            '\\' => reading.in_command = true,
            _ if character.is_ascii_alphabetic() && !reading.in_command => reading.letters += 1,
            _ if character.is_ascii_alphabetic() => {}
            _ => (reading.letters, reading.in_command) = (0, false),
        }
        let is_prose = reading.depth == 0
            && (reading.letters > FORMULA_WORD_LETTERS_MAX || is_east_asian(character) || character == '$');
        self.held.push(one);
        self.state = InlineState::Formula(reading);
        if is_prose || self.held.len() > MARKUP_CHARS_MAX {
            self.read_plainly(out);
        }
    }

    fn speak_formula(&mut self, out: &mut SpokenOutput) {
        self.state = InlineState::Text;
        let held = std::mem::take(&mut self.held);
        let name = &held[1..held.len() - 1];
        self.before = Some('$');
        if name.len() <= FORMULA_NAME_CHARS_MAX && name.iter().all(|one| one.character.is_alphanumeric()) {
            name.iter().for_each(|one| out.speak(*one));
        }
    }

    /// After `[`: a footnote, the number of a source, or text.
    fn read_bracket(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        let character = one.character;
        let is_first = self.held.len() == 1;
        if is_first && character == '^' {
            self.held.push(one);
            self.state = InlineState::Footnote;
            return;
        }
        let is_number = character.is_ascii_digit()
            || (!is_first && matches!(character, ' ' | ',' | '-' | '–' | ':' | '†' | ';'));
        let numbers = self.held.len() > 1 && self.held[1].character.is_ascii_digit();
        if character == ']' && numbers {
            self.drop_held();
            self.state = InlineState::AfterBracket;
            return;
        }
        let is_call = BRACKET_CALLS.chars().nth(self.held.len()) == Some(character)
            && self.held.iter().map(|one| one.character).eq(BRACKET_CALLS.chars().take(self.held.len()));
        if is_call && character == ']' {
            return self.skip(RegionEnd::BlankLine);
        }
        if self.held.len() < CITATION_CHARS_MAX && (is_call || (is_number && (is_first || numbers))) {
            self.held.push(one);
            return;
        }
        self.held.remove(0);
        self.before = None;
        self.speak_held(out);
        self.step(one, out);
    }

    fn read_address(&mut self, depth: usize, one: SourceChar, out: &mut SpokenOutput) {
        let depth = match one.character {
            '(' => depth + 1,
            ')' => depth - 1,
            _ => depth,
        };
        self.held.push(one);
        self.state = InlineState::Address { depth };
        if depth == 0 {
            if self.is_address() { self.drop_held() } else { self.read_plainly(out) }
        } else if self.held.len() > ADDRESS_CHARS_MAX {
            if self.held.iter().any(|one| is_blank(one.character)) {
                self.read_plainly(out);
            } else {
                self.held.clear();
                self.state = InlineState::LongAddress;
            }
        }
    }

    /// An address has no blanks, except in front of a title and in `<…>`.
    fn is_address(&self) -> bool {
        let inner: String = self.held[1..self.held.len() - 1].iter().map(|one| one.character).collect();
        let inner = inner.trim();
        match inner.split_once(is_blank) {
            None => true,
            Some((_, rest)) => inner.starts_with('<') || rest.trim_start().starts_with(['"', '\'', '(']),
        }
    }

    fn read_word(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        self.held.push(one);
        match word_match(&self.held) {
            WordMatch::Open => {}
            WordMatch::Address => self.begin_url(),
            WordMatch::Other => {
                self.held.pop();
                self.speak_held(out);
                self.step(one, out);
            }
        }
    }

    fn begin_url(&mut self) {
        self.held.clear();
        self.state = InlineState::Url;
    }

    fn read_url(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        if ends_url(one.character) {
            self.end_url(out);
            self.step(one, out);
        } else {
            self.hold_url_trail(one);
        }
    }

    /// Punctuation at the end of an address belongs to the sentence.
    fn hold_url_trail(&mut self, one: SourceChar) {
        let is_trail = matches!(one.character, '.' | ',' | ';' | ':' | '!' | '?' | ')');
        if !is_trail || self.held.len() >= URL_TRAIL_CHARS_MAX {
            self.held.clear();
        }
        if is_trail {
            self.held.push(one);
        }
    }

    fn end_url(&mut self, out: &mut SpokenOutput) {
        self.speak_held(out);
    }

    fn read_entity(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        let character = one.character;
        if character == ';' {
            let name: String = self.held[1..].iter().map(|one| one.character).collect();
            match entity(&name) {
                Some(character) => {
                    let first = self.held[0];
                    self.drop_held();
                    self.before = Some(character);
                    if !is_picture(character) && !is_invisible(character) {
                        out.speak_as(if is_blank(character) { ' ' } else { character }, first);
                    }
                }
                None => {
                    self.held.push(one);
                    self.speak_held(out);
                }
            }
        } else if (character.is_ascii_alphanumeric() || character == '#')
            && self.held.len() <= ENTITY_CHARS_MAX
        {
            self.held.push(one);
        } else {
            self.speak_held(out);
            self.step(one, out);
        }
    }

    fn read_shortcode(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        let character = one.character;
        let is_name =
            character.is_ascii_lowercase() || character.is_ascii_digit() || "_+-".contains(character);
        if character == ':' && self.held.len() > 2 {
            self.drop_held();
            self.before = Some(':');
        } else if is_name && self.held.len() <= SHORTCODE_CHARS_MAX {
            self.held.push(one);
        } else {
            self.read_plainly(out);
            self.step(one, out);
        }
    }

    fn read_lenticular(&mut self, one: SourceChar, out: &mut SpokenOutput) {
        let character = one.character;
        let is_mark = character.is_ascii_digit() || (self.held.len() > 1 && character != '】');
        if is_mark && self.held.len() < CITATION_CHARS_MAX {
            self.held.push(one);
        } else if character == '】' && self.held.iter().any(|one| one.character == '†') {
            self.drop_held();
        } else {
            self.read_plainly(out);
            self.step(one, out);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WordMatch {
    /// May become the prefix of an address.
    Open,
    Address,
    Other,
}

fn word_match(held: &[SourceChar]) -> WordMatch {
    let word: String = held.iter().map(|one| one.character.to_ascii_lowercase()).collect();
    if SCHEMES.contains(&word.as_str()) {
        WordMatch::Address
    } else if SCHEMES.iter().any(|scheme| scheme.starts_with(&word)) {
        WordMatch::Open
    } else {
        WordMatch::Other
    }
}

fn ends_url(character: char) -> bool {
    character.is_whitespace()
        || is_east_asian(character)
        || matches!(character, '<' | '>' | '"' | '`' | '|' | '*' | ']' | '\\')
}

/// The character of `&name;` or `&#number;`.
fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" | "ensp" | "emsp" | "thinsp" => ' ',
        "hellip" => '…',
        "mdash" => '—',
        "ndash" => '–',
        "lsquo" => '‘',
        "rsquo" => '’',
        "ldquo" => '“',
        "rdquo" => '”',
        "deg" => '°',
        "euro" => '€',
        "pound" => '£',
        "yen" => '¥',
        "copy" => '©',
        "reg" => '®',
        "times" => '×',
        _ => return None,
    })
}
