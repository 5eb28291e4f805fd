//! Spoken characters to sentences.

mod words;

use crate::characters::{is_combining, is_east_asian, is_spaceless, width};
use crate::filter::{Speakable, SpeechPause};
use crate::limits::SentenceLimits;
use crate::sentence::{SpokenSentence, SpokenSpan};
use words::{FullStop, full_stop_after};

/// Cuts the output of a [`SpeakableFilter`](crate::SpeakableFilter) into sentences.
///
/// The first one may end early, at a clause, so that a voice can begin. A sentence ends at a mark that ends sentences,
/// with the quotation marks and brackets that close after it, and at the end of a paragraph, an item, a row or a heading.
/// Full stops of decimals, versions, abbreviations, initials and numbers of items end none.
///
/// ```
/// use throughline_speech::{SentenceCutter, SentenceLimits, SpeakableFilter};
///
/// let mut cutter = SentenceCutter::new(SentenceLimits::default());
/// let mut sentences = Vec::new();
/// for one in SpeakableFilter::new().push("Dr. Wu wrote v1.2. 他说：“好！”然后走了。 Bye") {
///     cutter.push(one, &mut sentences);
/// }
/// cutter.finish(&mut sentences);
/// let texts: Vec<&str> = sentences.iter().map(|sentence| sentence.text.as_str()).collect();
/// assert_eq!(texts, ["Dr. Wu wrote v1.2.", "他说：“好！”", "然后走了。", "Bye"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct SentenceCutter {
    limits: SentenceLimits,
    text: String,
    spans: Vec<SpokenSpan>,
    width: usize,
    /// Text between the last character and the next one.
    gap: Gap,
    /// The piece may end here, depending on what follows.
    ending: Option<Ending>,
    /// The last character is a mark between clauses, if what follows is like that.
    clause: Option<char>,
    /// Positions after the last mark between clauses and after the last blank, in bytes.
    clause_end: usize,
    blank_end: usize,
    /// A straight quotation mark is open.
    is_quoting: bool,
    /// False while there are only digits and punctuation: the number of an item.
    has_words: bool,
    has_cut: bool,
    #[cfg(test)]
    pub(crate) work: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gap {
    #[default]
    None,
    /// A blank, with its position in the source.
    Blank {
        source_byte: usize,
    },
    Line,
    Clause,
}

#[derive(Clone, Copy, Debug)]
struct Ending {
    mark: EndMark,
    /// Quotation marks or brackets close after it.
    is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndMark {
    /// `。！？` and others that need no blank.
    Full,
    /// An exclamation mark `!` or a question mark `?`.
    Exclamation,
    Stop(FullStop),
    Ellipsis,
}

/// Characters beyond [`SentenceLimits::sentence_width_max`] that are attached to the last one.
const COMBINING_MAX: usize = 32;

impl SentenceCutter {
    /// For one block of text.
    pub fn new(limits: SentenceLimits) -> Self {
        let least = SentenceLimits::SENTENCE_WIDTH_MIN;
        let limits = SentenceLimits { sentence_width_max: limits.sentence_width_max.max(least), ..limits };
        Self { limits, ..Self::default() }
    }

    /// Adds the next spoken item; appends the sentences that are complete.
    pub fn push(&mut self, next: Speakable, sentences: &mut Vec<SpokenSentence>) {
        self.count(1);
        match next {
            Speakable::Pause(SpeechPause::Paragraph) => {
                self.cut(self.text.len(), sentences);
                self.is_quoting = false;
            }
            Speakable::Pause(SpeechPause::Clause) => self.widen_gap(Gap::Clause),
            Speakable::Pause(SpeechPause::Line) => self.widen_gap(Gap::Line),
            Speakable::Character { character, source_byte, .. } if character.is_whitespace() => {
                self.widen_gap(Gap::Blank { source_byte });
            }
            Speakable::Character { character, source_byte, source_len } => {
                let span =
                    SpokenSpan { text_byte: 0, source_byte, bytes: source_len.min(character.len_utf8()) };
                self.take(character, span, sentences);
            }
        }
    }

    /// The text has ended.
    pub fn finish(mut self, sentences: &mut Vec<SpokenSentence>) {
        self.cut(self.text.len(), sentences);
    }

    fn widen_gap(&mut self, gap: Gap) {
        let rank = |gap: Gap| match gap {
            Gap::None => 0,
            Gap::Blank { .. } => 1,
            Gap::Line => 2,
            Gap::Clause => 3,
        };
        if !self.text.is_empty() && rank(self.gap) < rank(gap) {
            self.gap = gap;
        }
    }

    fn take(&mut self, character: char, span: SpokenSpan, sentences: &mut Vec<SpokenSentence>) {
        if self.text.is_empty()
            && (is_clause_mark(character) || is_end_mark(character) || is_closer(character))
        {
            return;
        }
        if self.gap != Gap::None {
            self.tighten_stop();
        }
        if let Some(ending) = self.ending {
            if self.gap == Gap::None && self.belongs_to_ending(character) {
                self.write(character, Some(span));
                self.extend_ending(ending, character);
                return;
            }
            self.ending = None;
            if self.ends(ending, character) {
                self.cut(self.text.len(), sentences);
            }
        }
        if let Some(mark) = self.clause.take() {
            let is_apart = self.gap != Gap::None || is_east_asian(mark) || is_spaceless(character);
            if is_apart && !is_clause_mark(character) && !is_end_mark(character) && !is_closer(character) {
                self.end_clause(mark != '、', sentences);
            }
        }
        self.fill_gap(character, sentences);
        if self.text.ends_with(opener_of(character)) {
            // Nothing is left in these brackets.
            self.unwrite();
            return;
        }
        self.write(character, Some(span));
        self.begin_ending(character);
        if is_clause_mark(character) {
            self.clause = Some(character);
        }
        if self.width > self.limits.sentence_width_max {
            self.cut_too_wide(character, sentences);
        }
    }

    /// Closing marks after the end of a sentence, and more marks of its kind.
    fn belongs_to_ending(&self, character: char) -> bool {
        match character {
            '"' => self.is_quoting,
            '.' | '…' => true,
            _ => is_closer(character) || is_end_mark(character),
        }
    }

    fn extend_ending(&mut self, ending: Ending, character: char) {
        let mark = match (ending.mark, character) {
            (EndMark::Stop(_) | EndMark::Ellipsis, '.' | '…') if !ending.is_closed => EndMark::Ellipsis,
            (_, '!' | '?') => EndMark::Exclamation,
            (_, character) if is_full_mark(character) => EndMark::Full,
            (mark, _) => mark,
        };
        let is_closed = ending.is_closed || character == '"' || is_closer(character);
        self.ending = Some(Ending { mark, is_closed });
    }

    fn begin_ending(&mut self, character: char) {
        let mark = match character {
            '.' => {
                let before = &self.text[..self.text.len() - 1];
                EndMark::Stop(if self.has_words { full_stop_after(before) } else { FullStop::OfWord })
            }
            '!' | '?' => EndMark::Exclamation,
            '…' => EndMark::Ellipsis,
            _ if is_full_mark(character) => EndMark::Full,
            _ => return,
        };
        self.ending = Some(Ending { mark, is_closed: false });
    }

    /// The sentence ends in front of `next`.
    fn ends(&self, ending: Ending, next: char) -> bool {
        if is_clause_mark(next) {
            return false;
        }
        let is_apart = self.gap != Gap::None;
        let is_new = !next.is_lowercase();
        match ending.mark {
            EndMark::Full => true,
            EndMark::Exclamation => (is_apart && (is_new || !ending.is_closed)) || is_spaceless(next),
            EndMark::Ellipsis => {
                is_apart && (next.is_uppercase() || is_spaceless(next) || self.gap == Gap::Clause)
            }
            EndMark::Stop(_) if !is_apart && !is_spaceless(next) => false,
            EndMark::Stop(FullStop::OfWord) => false,
            EndMark::Stop(_) if self.gap == Gap::Clause => true,
            EndMark::Stop(FullStop::Plain) => is_new,
            EndMark::Stop(FullStop::Either) => is_new && !next.is_numeric(),
            EndMark::Stop(FullStop::OfNumber) => next.is_uppercase() || is_spaceless(next),
        }
    }

    /// The text so far ends a clause.
    fn end_clause(&mut self, may_cut: bool, sentences: &mut Vec<SpokenSentence>) {
        self.clause_end = self.text.len();
        if may_cut && !self.has_cut && self.width >= self.limits.first_clause_width_min {
            self.cut(self.text.len(), sentences);
        }
    }

    /// Writes the gap between the last character and `next`.
    fn fill_gap(&mut self, next: char, sentences: &mut Vec<SpokenSentence>) {
        let gap = std::mem::take(&mut self.gap);
        let Some(last) = self.text.chars().next_back() else { return };
        let is_tight =
            is_clause_mark(next) || matches!(next, '!' | '?' | ')' | ']' | '}') || is_full_mark(next);
        match gap {
            Gap::None => {}
            Gap::Blank { source_byte } => {
                if !is_tight && !is_opener(last) {
                    self.write(' ', Some(SpokenSpan { text_byte: 0, source_byte, bytes: 1 }));
                }
            }
            Gap::Line if is_east_asian(last) && is_east_asian(next) => {}
            Gap::Line => self.write(' ', None),
            Gap::Clause => {
                let is_marked = is_clause_mark(last) || is_end_mark(last) || last == '.' || is_opener(last);
                if !is_marked && !is_tight {
                    self.write(if is_east_asian(last) { '，' } else { ',' }, None);
                    self.end_clause(true, sentences);
                }
                if !self.text.is_empty() && !is_east_asian(last) {
                    self.write(' ', None);
                }
            }
        }
    }

    fn write(&mut self, character: char, span: Option<SpokenSpan>) {
        if let Some(span) = span {
            let text_byte = self.text.len();
            match self.spans.last_mut() {
                Some(last)
                    if last.text_byte + last.bytes == text_byte
                        && last.source_byte + last.bytes == span.source_byte =>
                {
                    last.bytes += span.bytes;
                }
                _ => self.spans.push(SpokenSpan { text_byte, ..span }),
            }
        }
        self.text.push(character);
        self.width += width(character);
        self.has_words |= character.is_alphabetic();
        if character == ' ' {
            self.blank_end = self.text.len();
        }
        if character == '"' {
            self.is_quoting = !self.is_quoting;
        }
    }

    /// Removes the blank before a full stop, left by unspoken text.
    fn tighten_stop(&mut self) {
        if self.text.ends_with(" .")
            && let Some(span) = self.spans.last().copied()
        {
            let end = SpokenSpan { text_byte: 0, source_byte: span.source_byte + span.bytes - 1, bytes: 1 };
            let gap = self.gap;
            self.unwrite();
            self.write('.', Some(end));
            self.gap = gap;
        }
    }

    /// Takes back the last character.
    fn unwrite(&mut self) {
        let Some(character) = self.text.pop() else { return };
        self.width -= width(character);
        if let Some(last) = self.spans.last_mut() {
            last.bytes = last.bytes.saturating_sub(character.len_utf8());
            if last.bytes == 0 {
                self.spans.pop();
            }
        }
        if self.text.ends_with(' ') {
            self.unwrite();
            self.widen_gap(Gap::Line);
        }
    }

    /// Cuts a sentence that has become too wide.
    fn cut_too_wide(&mut self, last: char, sentences: &mut Vec<SpokenSentence>) {
        if is_combining(last) && self.width <= self.limits.sentence_width_max + COMBINING_MAX {
            return;
        }
        let half = self.text.len() / 2;
        let last_start = self.text.len() - last.len_utf8();
        let at = [self.clause_end, self.blank_end, last_start];
        let at = at.into_iter().find(|at| (half..=last_start).contains(at)).unwrap_or(last_start);
        self.cut(at, sentences);
    }

    /// Emits the first `at` bytes of the text and continues with the rest.
    fn cut(&mut self, at: usize, sentences: &mut Vec<SpokenSentence>) {
        self.count(self.text.len());
        if at == self.text.len() {
            self.tighten_stop();
        }
        let at = at.min(self.text.len());
        let at = self.text.len() - self.text[at..].trim_start().len();
        let rest = self.text.split_off(at);
        let text = std::mem::replace(&mut self.text, rest);
        let mut spans = std::mem::take(&mut self.spans);
        for span in &spans {
            let end = span.text_byte + span.bytes;
            if end > at {
                let passed = at.saturating_sub(span.text_byte);
                self.spans.push(SpokenSpan {
                    text_byte: (span.text_byte + passed) - at,
                    source_byte: span.source_byte + passed,
                    bytes: span.bytes - passed,
                });
            }
        }
        // Blanks are at the end only where a piece was cut in the middle.
        let text = text.trim_end();
        spans.retain_mut(|span| {
            span.bytes = span.bytes.min(text.len().saturating_sub(span.text_byte));
            span.bytes > 0
        });
        if let (Some(first), Some(last)) = (spans.first(), spans.last())
            && text.chars().any(char::is_alphanumeric)
        {
            let source_bytes = first.source_byte..last.source_byte + last.bytes;
            sentences.push(SpokenSentence { text: text.to_owned(), source_bytes, spans });
            self.has_cut = true;
        }
        self.width = self.text.chars().map(width).sum();
        self.has_words = self.text.chars().any(char::is_alphabetic);
        self.clause_end = 0;
        self.blank_end = self.blank_end.saturating_sub(at);
        if self.text.is_empty() {
            (self.gap, self.ending, self.clause) = (Gap::None, None, None);
        }
    }

    #[cfg(test)]
    fn count(&mut self, work: usize) {
        self.work += work;
    }

    #[cfg(not(test))]
    fn count(&mut self, _work: usize) {}
}

/// Ends a sentence without a blank after it.
fn is_full_mark(character: char) -> bool {
    matches!(character, '。' | '！' | '？' | '．' | '｡' | '‼' | '⁇' | '⁈' | '⁉' | '।' | '؟' | '۔')
}

fn is_end_mark(character: char) -> bool {
    is_full_mark(character) || matches!(character, '!' | '?' | '…')
}

fn is_clause_mark(character: char) -> bool {
    matches!(character, ',' | ';' | ':' | '，' | '；' | '：' | '、' | '—' | '،' | '؛')
}

fn is_closer(character: char) -> bool {
    matches!(
        character,
        ')' | ']'
            | '}'
            | '\''
            | '”'
            | '’'
            | '」'
            | '』'
            | '）'
            | '］'
            | '】'
            | '》'
            | '〉'
            | '»'
            | '｣'
            | '﹂'
    )
}

fn is_opener(character: char) -> bool {
    matches!(
        character,
        '(' | '[' | '{' | '“' | '‘' | '「' | '『' | '（' | '［' | '【' | '《' | '〈' | '«' | '¿' | '¡'
    )
}

/// The bracket that `closer` closes; for anything else, a character that is never written.
fn opener_of(closer: char) -> char {
    match closer {
        ')' => '(',
        ']' => '[',
        '）' => '（',
        '】' => '【',
        '》' => '《',
        _ => '\0',
    }
}
