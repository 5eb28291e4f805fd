//! Bounds of a sentence.

/// Bounds of a sentence. Widths: a letter counts 1, a Chinese, Japanese or Korean character 2, as on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentenceLimits {
    /// Width from which on the first sentence ends at the first clause mark, so that speech begins early.
    /// Shorter pieces sound chopped off.
    pub first_clause_width_min: usize,
    /// Largest width of a sentence; a longer one is cut at a clause mark, a space or, without both, anywhere.
    /// Speech engines lose their intonation or refuse beyond this, and produce no sound before they have read
    /// all of it.
    pub sentence_width_max: usize,
}

impl SentenceLimits {
    /// Least [`sentence_width_max`](Self::sentence_width_max): room for one word.
    pub const SENTENCE_WIDTH_MIN: usize = 20;
}

impl Default for SentenceLimits {
    fn default() -> Self {
        Self { first_clause_width_min: 24, sentence_width_max: 280 }
    }
}
