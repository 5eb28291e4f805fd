//! Cutting text as a model's tokenizer would.

/// Longest run of Latin letters that comes as one delta, in characters.
const TOKEN_CHARS_MAX: usize = 7;

/// Cuts `text` into deltas: `size` characters each, or about one token each. Joined they are the text.
pub(crate) fn split_deltas(text: &str, size: Option<usize>) -> Vec<&str> {
    match size {
        Some(size) => cut_every(text, size.max(1)),
        None => cut_tokens(text),
    }
}

fn cut_every(text: &str, size: usize) -> Vec<&str> {
    let mut cuts: Vec<usize> = text.char_indices().step_by(size).map(|(at, _)| at).collect();
    cuts.push(text.len());
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// A token is white space with the word after it, a piece of a long word, or up to two wide characters.
fn cut_tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let (mut start, mut length, mut last) = (0, 0, CharClass::Space);
    for (at, c) in text.char_indices() {
        let kind = CharClass::of(c);
        let breaks = match (last, kind) {
            (_, CharClass::Space) => last != CharClass::Space,
            (CharClass::Space, _) => false,
            (CharClass::Wide, CharClass::Wide) => length >= 2,
            (CharClass::Word, CharClass::Word) => length >= TOKEN_CHARS_MAX,
            (CharClass::Mark, CharClass::Mark) => length >= 3,
            (a, b) => a != b,
        };
        if breaks && at > start {
            tokens.push(&text[start..at]);
            (start, length) = (at, 0);
        }
        length += usize::from(kind != CharClass::Space);
        last = kind;
    }
    if start < text.len() {
        tokens.push(&text[start..]);
    }
    tokens
}

#[derive(Clone, Copy, PartialEq)]
enum CharClass {
    Space,
    Word,
    Mark,
    Wide,
}

impl CharClass {
    fn of(c: char) -> Self {
        match c {
            c if c.is_whitespace() => Self::Space,
            '\u{2e80}'.. => Self::Wide,
            c if c.is_alphanumeric() => Self::Word,
            _ => Self::Mark,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_words_or_pairs_of_wide_characters() {
        let check = |text: &str, expected: &[&str]| assert_eq!(split_deltas(text, None), expected, "{text}");
        check("", &[]);
        check("It is 21 °C.", &["It", " is", " 21", " °", "C", "."]);
        check("unbelievable", &["unbelie", "vable"]);
        check("你好，我是演示模型", &["你好", "，我", "是演", "示模", "型"]);
        check("a\n\n# b", &["a", "\n\n#", " b"]);
    }

    #[test]
    fn deltas_of_a_given_size_end_between_characters() {
        assert_eq!(split_deltas("气温 21", Some(2)), ["气温", " 2", "1"]);
        assert_eq!(split_deltas("{}", Some(0)), ["{", "}"], "a size of 0 reads as 1");
        assert!(split_deltas("", Some(3)).iter().all(|p| p.is_empty()));
    }
}
