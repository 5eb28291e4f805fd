//! Sentences of the server and of turns in Chinese: those of the page, in `zh-server.txt`.
//!
//! A sentence that is always the same has its translation; one with values in it follows the translation of its code.

use crate::messages::UiLanguage;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// A kind, a key and its Chinese in each line, with tabs between them. A test writes it out of the page's table.
const FILE: &str = include_str!("zh-server.txt");

/// The tables of the page.
#[derive(Default)]
struct ServerTexts {
    codes: HashMap<&'static str, &'static str>,
    remedies: HashMap<&'static str, &'static str>,
    sentences: HashMap<&'static str, &'static str>,
    /// Errors whose text has no more information than their code.
    whole: HashSet<&'static str>,
}

static TEXTS: LazyLock<ServerTexts> = LazyLock::new(|| {
    let mut texts = ServerTexts::default();
    for line in FILE.lines() {
        let mut cells = line.split('\t');
        let (kind, key, chinese) = (cells.next(), cells.next().unwrap_or_default(), cells.next());
        let chinese = chinese.unwrap_or_default();
        match kind {
            Some("code") => drop(texts.codes.insert(key, chinese)),
            Some("remedy") => drop(texts.remedies.insert(key, chinese)),
            Some("sentence") => drop(texts.sentences.insert(key, chinese)),
            _ => drop(texts.whole.insert(key)),
        }
    }
    texts
});

/// A sentence of the server in the language of the command.
pub(crate) fn server_text(sentence: &str, code: &str) -> String {
    match UiLanguage::current() {
        UiLanguage::English => sentence.to_owned(),
        UiLanguage::Chinese => chinese_text(sentence, code),
    }
}

/// The remedy of the server for it, likewise.
pub(crate) fn remedy_text(remedy: &str, code: &str) -> String {
    match UiLanguage::current() {
        UiLanguage::English => remedy.to_owned(),
        UiLanguage::Chinese => {
            let known = TEXTS.sentences.get(remedy).or_else(|| TEXTS.remedies.get(code));
            known.map_or_else(|| remedy.to_owned(), |text| (*text).to_owned())
        }
    }
}

fn chinese_text(sentence: &str, code: &str) -> String {
    match (TEXTS.sentences.get(sentence), TEXTS.codes.get(code)) {
        (Some(whole), _) => (*whole).to_owned(),
        (None, None) => sentence.to_owned(),
        (None, Some(heading)) if TEXTS.whole.contains(sentence) || sentence.is_empty() => {
            (*heading).to_owned()
        }
        (None, Some(heading)) => format!("{heading} {sentence}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys and strings of a table of the page: `key: "text"`, `"key": 'text'`, or strings alone.
    fn strings(table: &str) -> Vec<String> {
        let (mut strings, mut chars) = (Vec::new(), table.chars().peekable());
        let mut word = String::new();
        while let Some(c) = chars.next() {
            match c {
                '/' if chars.peek() == Some(&'/') => drop(chars.by_ref().find(|c| *c == '\n')),
                '"' | '\'' => {
                    let mut text = String::new();
                    while let Some(inside) = chars.next().filter(|inside| *inside != c) {
                        text.push(if inside == '\\' { chars.next().unwrap_or_default() } else { inside });
                    }
                    strings.push(text);
                }
                ':' if !word.is_empty() => strings.push(std::mem::take(&mut word)),
                c if c.is_alphanumeric() || c == '_' => word.push(c),
                _ => word.clear(),
            }
        }
        strings
    }

    fn table<'s>(source: &'s str, begin: &str, end: &str) -> &'s str {
        let from = source.find(begin).expect(begin) + begin.len();
        &source[from..from + source[from..].find(end).expect(end)]
    }

    /// One translation for the page and the command: `UPDATE_HELP=1` copies the changes of the page.
    #[test]
    fn server_text_translations_match_the_page() {
        let folder = env!("CARGO_MANIFEST_DIR");
        let page = format!("{folder}/../../web/app/src/i18n/zh-server.ts");
        let source = std::fs::read_to_string(page).expect("the page is in the repository");
        let mut text = String::new();
        for (kind, name) in [("code", "CODES"), ("remedy", "REMEDIES"), ("sentence", "SENTENCES")] {
            let entries = strings(table(&source, &format!("export const {name}: Table = {{"), "\n};"));
            for entry in entries.chunks(2) {
                text.push_str(&format!("{kind}\t{}\t{}\n", entry[0], entry[1]));
            }
        }
        for sentence in strings(table(&source, "new Set([", "\n]);")) {
            text.push_str(&format!("whole\t{sentence}\t\n"));
        }
        if std::env::var_os("UPDATE_HELP").is_some() {
            std::fs::write(format!("{folder}/src/chinese/zh-server.txt"), &text).unwrap();
        }
        let agreed = std::fs::read_to_string(format!("{folder}/src/chinese/zh-server.txt")).unwrap();
        assert_eq!(agreed, text, "UPDATE_HELP=1 cargo test -p throughline-cli writes chinese/zh-server.txt");
    }

    #[test]
    fn server_text_translation_falls_back_to_error_code() {
        assert_eq!(chinese_text("Try again.", ""), "请重试。");
        assert_eq!(chinese_text("The upstream cannot be reached.", "upstream_unreachable"), "连不上上游。");
        assert_eq!(chinese_text("no answer from x", "upstream_unreachable"), "连不上上游。 no answer from x");
        assert_eq!(chinese_text("As it came.", "none_of_ours"), "As it came.");
    }
}
