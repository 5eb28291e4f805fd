//! Token counts of texts: an estimate by script, or exact with the feature `exact-tokens`.
//!
//! The estimate is made for the vocabularies of 150,000 to 260,000 entries that current models use, and the tests
//! compare it with one of them (o200k_base): see the table in docs/prompts.md. It never reads a table and never
//! allocates.

/// Origin of a number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenCounting {
    /// Estimated from the characters of the text; see docs/prompts.md for the error of the estimate.
    Estimated,
    /// Counted with the o200k_base tables, exact for the models that use them.
    Exact,
}

/// The method of [`count`] in this build.
pub fn counting() -> TokenCounting {
    if cfg!(feature = "exact-tokens") { TokenCounting::Exact } else { TokenCounting::Estimated }
}

/// The tokens of a text.
#[cfg(feature = "exact-tokens")]
pub fn count(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().count_ordinary(text)
}

/// The tokens of a text.
#[cfg(not(feature = "exact-tokens"))]
pub fn count(text: &str) -> usize {
    estimate(text)
}

/// An estimate of the tokens of a text.
pub fn estimate(text: &str) -> usize {
    let mut hundredths = 0;
    let mut run: Option<(TokenClass, usize)> = None;
    for c in text.chars() {
        let class = TokenClass::of(c);
        run = match run {
            Some((before, length)) if before == class => Some((class, length + 1)),
            other => {
                hundredths += other.map_or(0, |(before, length)| before.cost(length, Some(class)));
                Some((class, 1))
            }
        };
    }
    hundredths += run.map_or(0, |(class, length)| class.cost(length, None));
    hundredths.div_ceil(100)
}

/// Classes of characters that vocabularies treat alike.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TokenClass {
    /// Latin letters: words, including the space before them.
    Latin,
    /// Cyrillic, Greek, Arabic, Hebrew and other alphabets: words in shorter pieces.
    Alphabet,
    /// Han characters.
    Han,
    /// Hiragana and katakana.
    Kana,
    /// Hangul syllables.
    Hangul,
    /// Digits, three in a token.
    Digit,
    /// A single space, which belongs to the following word; several are one token.
    Space,
    /// Line ends, with the punctuation before them.
    Newline,
    /// Punctuation of ASCII: markup, code.
    Punctuation,
    /// Punctuation of Chinese and Japanese.
    WidePunctuation,
    /// Emoji and other rare characters.
    Rare,
}

impl TokenClass {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' => TokenClass::Latin,
            '0'..='9' => TokenClass::Digit,
            ' ' | '\t' => TokenClass::Space,
            '\n' | '\r' => TokenClass::Newline,
            '!'..='~' | '\u{2500}'..='\u{257f}' => TokenClass::Punctuation,
            '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{f900}'..='\u{faff}' => TokenClass::Han,
            '\u{3040}'..='\u{30ff}' => TokenClass::Kana,
            '\u{ac00}'..='\u{d7af}' | '\u{1100}'..='\u{11ff}' => TokenClass::Hangul,
            '\u{2010}'..='\u{2027}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}' => {
                TokenClass::WidePunctuation
            }
            c if c.is_alphabetic() => TokenClass::Alphabet,
            _ => TokenClass::Rare,
        }
    }

    /// The cost of a run in front of `next`, in hundredths of a token. The figures were fitted to Markdown, source code,
    /// JSON and prose in English and Chinese, and to shorter texts in the other scripts.
    fn cost(self, length: usize, next: Option<TokenClass>) -> usize {
        match self {
            TokenClass::Latin => 100 + length.saturating_sub(7) * 18,
            TokenClass::Alphabet => 100 + length.saturating_sub(4) * 28,
            TokenClass::Han => length * 70,
            TokenClass::Kana => length * 72,
            TokenClass::Hangul => length * 75,
            TokenClass::Digit => length.div_ceil(3) * 100,
            // Words and punctuation take one space with them, digits do not.
            TokenClass::Space if length == 1 && next != Some(TokenClass::Digit) => 0,
            TokenClass::Space if length > 1 && next == Some(TokenClass::Digit) => 200,
            TokenClass::Space => 100,
            TokenClass::Newline => 70,
            TokenClass::Punctuation if next == Some(TokenClass::Digit) => 90 + length.saturating_sub(1) * 32,
            TokenClass::Punctuation => 64 + length.saturating_sub(1) * 32,
            TokenClass::WidePunctuation => length * 90,
            TokenClass::Rare => length * 150,
        }
    }
}
