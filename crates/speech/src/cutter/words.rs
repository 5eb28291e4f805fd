//! Full stops that end no sentence.

/// Meaning of a full stop by the word in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FullStop {
    /// Ends a sentence unless the next word is in lower case.
    Plain,
    /// Belongs to the word: a title, an initial, the number of an item.
    OfWord,
    /// Ends a sentence only before a capital letter.
    Either,
    /// Belongs to the word if a number follows.
    OfNumber,
}

/// Titles, and words that introduce something.
const TITLES: [&str; 30] = [
    "mr", "mrs", "ms", "mx", "dr", "prof", "st", "mt", "gen", "col", "lt", "sgt", "capt", "cmdr", "gov",
    "sen", "rep", "rev", "hon", "messrs", "vs", "e.g", "i.e", "cf", "viz", "resp", "incl", "excl", "ca",
    "approx",
];
const EITHER: [&str; 24] = [
    "etc", "al", "inc", "ltd", "co", "corp", "bros", "jr", "sr", "esq", "ave", "blvd", "rd", "dept", "est",
    "min", "max", "a.m", "p.m", "u.s", "u.k", "ph.d", "m.d", "b.c",
];
const NUMBERED: [&str; 27] = [
    "no", "nos", "fig", "figs", "vol", "ch", "sec", "eq", "art", "p", "pp", "pt", "ed", "ver", "jan", "feb",
    "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "tab",
];
/// Longest word of these lists, in characters.
const WORD_CHARS_MAX: usize = 8;

/// The meaning of a full stop after `text`.
pub(super) fn full_stop_after(text: &str) -> FullStop {
    let is_part = |one: &char| one.is_alphanumeric() || *one == '.';
    let reversed: String = text.chars().rev().take_while(is_part).take(WORD_CHARS_MAX + 1).collect();
    let word: String = reversed.chars().rev().collect();
    let last = word.rsplit('.').next().unwrap_or_default();
    let mut letters = last.chars();
    if let (Some(letter), None) = (letters.next(), letters.next())
        && letter.is_ascii_uppercase()
        // "It was I."
        && (letter != 'I' || word.contains('.'))
    {
        return FullStop::OfWord;
    }
    let word = word.to_lowercase();
    let word = word.as_str();
    if TITLES.contains(&word) {
        FullStop::OfWord
    } else if EITHER.contains(&word) {
        FullStop::Either
    } else if NUMBERED.contains(&word) {
        FullStop::OfNumber
    } else {
        FullStop::Plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: FullStop) {
        assert_eq!(full_stop_after(text), expected, "{text}");
    }

    #[test]
    fn full_stop_is_classified_by_the_preceding_word() {
        check("Ask Dr", FullStop::OfWord);
        check("J. R. R", FullStop::OfWord);
        check("the U.S", FullStop::OfWord);
        check("It was I", FullStop::Plain);
        check("and so on, etc", FullStop::Either);
        check("at 5 p.m", FullStop::Either);
        check("see Fig", FullStop::OfNumber);
        check("the doctor", FullStop::Plain);
        check("it is 5", FullStop::Plain);
        check("", FullStop::Plain);
    }
}
