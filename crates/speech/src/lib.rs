//! Text for voices: turns a growing Markdown reply into spoken text, and cuts that into sentences.
//!
//! This crate has no async, no clock, no randomness, no file, no socket and no global. It never fails on
//! input, it reads every character a bounded number of times, and gives the same sentences for any split of
//! the text.
//!
//! ```
//! use throughline_speech::{SentenceLimits, SpeechText};
//!
//! let mut speech = SpeechText::new(SentenceLimits::default());
//! let mut sentences = Vec::new();
//! for delta in ["It is **22", " °C** in [Par", "is](https://example.com). ", "Shall I go on?"] {
//!     sentences.extend(speech.push(delta));
//! }
//! sentences.extend(speech.finish());
//!
//! let texts: Vec<&str> = sentences.iter().map(|sentence| sentence.text.as_str()).collect();
//! assert_eq!(texts, ["It is 22 °C in Paris.", "Shall I go on?"]);
//! assert_eq!(sentences[1].source_bytes, 50..64);
//! ```
//!
//! [`SpeechText`] is [`SpeakableFilter`] and [`SentenceCutter`] in a row; [`sentences`] converts a whole
//! text.

#![warn(clippy::unwrap_used)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod characters;
mod cutter;
mod filter;
mod limits;
mod sentence;
#[cfg(test)]
mod tests;

pub use cutter::SentenceCutter;
pub use filter::{
    ADDRESS_CHARS_MAX, INLINE_CODE_CHARS_MAX, LINE_LEAD_CHARS_MAX, MARKUP_CHARS_MAX, Speakable,
    SpeakableFilter, SpeechPause,
};
pub use limits::SentenceLimits;
pub use sentence::{SpokenSentence, SpokenSpan};

/// A growing text of Markdown as sentences for a voice.
#[derive(Clone, Debug, Default)]
pub struct SpeechText {
    filter: SpeakableFilter,
    cutter: SentenceCutter,
}

impl SpeechText {
    /// For one block of text.
    pub fn new(limits: SentenceLimits) -> Self {
        Self { filter: SpeakableFilter::new(), cutter: SentenceCutter::new(limits) }
    }

    /// Takes the next piece of the text; returns the sentences that are complete.
    pub fn push(&mut self, text: &str) -> Vec<SpokenSentence> {
        let mut sentences = Vec::new();
        for one in self.filter.push(text) {
            self.cutter.push(one, &mut sentences);
        }
        sentences
    }

    /// The text has ended; returns the sentences that were not yet complete.
    pub fn finish(mut self) -> Vec<SpokenSentence> {
        let mut sentences = Vec::new();
        for one in self.filter.finish() {
            self.cutter.push(one, &mut sentences);
        }
        self.cutter.finish(&mut sentences);
        sentences
    }
}

/// The sentences of a whole text of Markdown.
///
/// ```
/// let sentences = throughline_speech::sentences("# 天气\n\n- 北京：晴 ☀️\n- 上海：`22` 度", Default::default());
/// let texts: Vec<&str> = sentences.iter().map(|sentence| sentence.text.as_str()).collect();
/// assert_eq!(texts, ["天气", "北京：晴", "上海：22 度"]);
/// ```
pub fn sentences(markdown: &str, limits: SentenceLimits) -> Vec<SpokenSentence> {
    let mut speech = SpeechText::new(limits);
    let mut sentences = speech.push(markdown);
    sentences.extend(speech.finish());
    sentences
}
