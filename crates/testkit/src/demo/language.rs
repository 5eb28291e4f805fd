//! Language of the answer: the one that the user wrote in.

use crate::parsed_request::{ParsedMessage, ParsedRequest};

/// A language of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoLanguage {
    English,
    Chinese,
}

impl DemoLanguage {
    /// Language of the last user message that has text in one of the two.
    pub fn of(seen: &ParsedRequest) -> Self {
        let texts = seen.messages.iter().rev().filter_map(|message| match message {
            ParsedMessage::User { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let texts = std::iter::once(seen.user_text()).chain(texts);
        texts.filter_map(of_text).next().unwrap_or(Self::English)
    }

    /// One of two texts.
    pub fn choose<T>(self, english: T, chinese: T) -> T {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }
}

/// A few Chinese characters outweigh a name in Latin letters, a Chinese name in an English sentence does not.
fn of_text(text: &str) -> Option<DemoLanguage> {
    let chinese = text.chars().filter(|c| matches!(c, '\u{4e00}'..='\u{9fff}')).count();
    // Names of files and tools are in no language.
    let is_word = |word: &&str| !word.is_empty() && !word.contains(['.', '_', '/']);
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/');
    let words = text.split(|c| !part(c)).map(|word| word.trim_matches(|c: char| !c.is_ascii_alphabetic()));
    let words = words.filter(is_word).count();
    match (chinese, words) {
        (0, 0) => None,
        _ if chinese >= 2 * words => Some(DemoLanguage::Chinese),
        _ => Some(DemoLanguage::English),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_that_of_most_words() {
        for (text, expected) in [
            ("What is the weather in 北京?", Some(DemoLanguage::English)),
            ("北京天气怎么样？", Some(DemoLanguage::Chinese)),
            ("用 files_list 看看有哪些文件", Some(DemoLanguage::Chinese)),
            ("读一下 README.md", Some(DemoLanguage::Chinese)),
            ("Read it. Now.", Some(DemoLanguage::English)),
            ("17 * 23", None),
            ("你好", Some(DemoLanguage::Chinese)),
        ] {
            assert_eq!(of_text(text), expected, "{text}");
        }
    }
}
