//! Single characters and pairs of a text, encoded as words that FTS5 accepts for every script: search terms
//! are often shorter than a trigram, above all in Chinese.

use crate::catalog::fold::fold_char;
use std::collections::HashSet;
use std::fmt::Write;

/// All of a text, each once. Blanks are not looked for at the edge of anything.
pub(super) fn grams(text: &str) -> String {
    let mut seen = HashSet::new();
    let mut words = String::new();
    let mut before = None;
    for c in text.chars().map(fold_char) {
        if c.is_whitespace() {
            before = None;
            continue;
        }
        if seen.insert((c, None)) {
            push(&mut words, c, None);
        }
        if let Some(before) = before
            && seen.insert((before, Some(c)))
        {
            push(&mut words, before, Some(c));
        }
        before = Some(c);
    }
    words
}

/// Word for a search term of one or two characters.
pub(super) fn gram(term: &str) -> String {
    let mut chars = term.chars().map(fold_char);
    let mut word = String::new();
    if let Some(first) = chars.next() {
        push(&mut word, first, chars.next());
    }
    word
}

/// Encodes as letters and digits only, which the tokenizer takes as one word.
fn push(words: &mut String, first: char, second: Option<char>) {
    if !words.is_empty() {
        words.push(' ');
    }
    // Writing into a text cannot fail.
    let _ = match second {
        None => write!(words, "u{:x}", u32::from(first)),
        Some(second) => write!(words, "u{:x}u{:x}", u32::from(first), u32::from(second)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grams_are_single_characters_and_pairs() {
        assert_eq!(grams("Aa b"), "u61 u61u61 u62");
        assert_eq!(grams("天氣"), "u5929 u6c23 u5929u6c23");
        assert_eq!(grams(" \n"), "");
        assert_eq!(grams("%_"), "u25 u5f u25u5f");
        for text in ["a", "A", "天氣", "%_", "Ж!"] {
            assert!(grams(text).split(' ').any(|word| word == gram(text)), "{text}");
        }
    }
}
