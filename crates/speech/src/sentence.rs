//! A sentence as it goes to a voice.

use std::ops::Range;

/// A sentence, or a piece of one, with its position in the text that it was taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpokenSentence {
    /// Text for the voice: one line without markup, with something to say in it.
    pub text: String,
    /// Bytes of the source text from its first spoken character to the end of its last one.
    pub source_bytes: Range<usize>,
    /// Runs of the text that are verbatim in the source, in order. Characters between them were inserted.
    pub spans: Vec<SpokenSpan>,
}

/// A run of spoken text that is in the source text, character for character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpokenSpan {
    /// Offset of its first byte in [`SpokenSentence::text`].
    pub text_byte: usize,
    /// Offset of its first byte in the source text.
    pub source_byte: usize,
    /// Length of the run, in bytes.
    pub bytes: usize,
}

impl SpokenSentence {
    /// Offset in the source text of a byte of the spoken text: the reading position when an engine reports a
    /// word. An inserted character belongs to the one before it.
    ///
    /// ```
    /// let sentences = throughline_speech::sentences("A **bold** word.", Default::default());
    /// assert_eq!(sentences[0].text, "A bold word.");
    /// assert_eq!(sentences[0].source_byte_at(2), 4);
    /// ```
    pub fn source_byte_at(&self, text_byte: usize) -> usize {
        let after = self.spans.partition_point(|span| span.text_byte <= text_byte);
        match after.checked_sub(1).map(|at| self.spans[at]) {
            None => self.source_bytes.start,
            Some(span) => span.source_byte + (text_byte - span.text_byte).min(span.bytes),
        }
    }
}
