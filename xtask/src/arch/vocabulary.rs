//! Names and first words of documentation: words of the field, no name twice, no name of the standard library's.
// R: D3

use crate::rust_text::RustText;
use std::collections::BTreeMap;

/// Words that engineers of this field do not use in names, with the words they use.
const DIALECT: [(&str, &str); 8] = [
    ("said", "sent, queued, message"),
    ("told", "reported, emitted, notified"),
    ("kept", "stored, retained"),
    ("place", "position, offset, path, slot"),
    ("behind", "after, parent, backlog"),
    ("beside", "sidecar, extra, provider_state"),
    ("gone", "disconnected, removed, expired"),
    ("world", "context, deps, environment"),
];

/// Identifiers that have such a word and stay, with the reason.
const STAYS: [(&str, &str); 2] =
    [("gone", "410 Gone of HTTP"), ("open_world_hint", "annotation of MCP, as rmcp names it")];

/// Names that every module has from the standard library. Aliases such as `type Result<T>` only fill in parameters.
const PRELUDE: [&str; 30] = [
    "AsMut",
    "AsRef",
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Drop",
    "Eq",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Future",
    "Hash",
    "Into",
    "IntoIterator",
    "Iterator",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Result",
    "Send",
    "String",
    "Sync",
    "ToString",
    "Vec",
];

/// First words of documentation that asks about the item instead of stating what it is.
const INTERROGATIVE: [&str; 5] = ["Who", "What", "Which", "How", "Whether"];

/// Collects names and comments over all files; [`Self::wrong`] judges them.
#[derive(Default)]
pub(crate) struct Vocabulary {
    public_types: BTreeMap<String, Vec<String>>,
    wrong: Vec<String>,
}

impl Vocabulary {
    pub(crate) fn add(&mut self, path: &str, text: &RustText) {
        let (mut offset, mut before) = (0, "");
        for (number, (code, comment)) in text.code.lines().zip(text.comments.lines()).enumerate() {
            let start = offset;
            offset += code.len() + 1;
            let begins = ["", "///", "//!"].contains(&before);
            before = comment.trim();
            if text.is_test(start + code.len() - code.trim_start().len()) {
                continue;
            }
            let location = format!("{path}:{}", number + 1);
            self.add_identifiers(&location, code);
            self.add_type(&location, code);
            if begins {
                self.add_comment(&location, before);
            }
        }
        self.add_enums(path, text);
    }

    fn add_identifiers(&mut self, location: &str, code: &str) {
        for name in code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if STAYS.iter().any(|(stays, _)| *stays == name) {
                continue;
            }
            for (word, instead) in DIALECT {
                if parts(name).any(|part| part.eq_ignore_ascii_case(word)) {
                    self.wrong.push(format!("{location}: `{name}` has `{word}`; the field says {instead}"));
                }
            }
        }
    }

    fn add_type(&mut self, location: &str, code: &str) {
        let mut words = code.split_whitespace();
        if words.next() == Some("pub")
            && let Some(kind @ ("struct" | "enum" | "trait" | "type")) = words.next()
            && let Some(name) = words.next()
        {
            let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
            let name = &name[..end];
            // `$name` of a macro.
            if name.is_empty() {
                return;
            }
            if kind != "type" && PRELUDE.contains(&name) {
                self.wrong.push(format!("{location}: `{name}` hides a name of the standard library"));
            }
            self.public_types.entry(name.to_owned()).or_default().push(location.to_owned());
        }
    }

    fn add_comment(&mut self, location: &str, comment: &str) {
        let Some(text) = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!")) else { return };
        let first = text.split_whitespace().next().unwrap_or_default();
        if INTERROGATIVE.contains(&first) {
            self.wrong.push(format!("{location}: documentation begins with `{first}`; say what the item is"));
        }
    }

    /// Refuses private enums of `Yes` and `No`: a `bool` or an `Option` says the same.
    fn add_enums(&mut self, path: &str, text: &RustText) {
        let mut rest = 0;
        while let Some(found) = text.code[rest..].find("enum ").map(|found| rest + found) {
            rest = found + "enum ".len();
            let line_start = text.code[..found].rfind('\n').map_or(0, |newline| newline + 1);
            let public = text.code[line_start..found].trim_start().starts_with("pub ");
            let Some((name, body)) = text.code[rest..].split_once('{') else { continue };
            let Some((body, _)) = body.split_once('}') else { continue };
            let mut variants: Vec<&str> = body
                .split(',')
                .map(|variant| variant.trim().trim_start_matches("#[default]").trim_start())
                .filter(|variant| !variant.is_empty())
                .collect();
            variants.sort_unstable();
            if !public && !text.is_test(found) && variants == ["No", "Yes"] {
                let (name, line) = (name.trim(), text.line(found));
                self.wrong.push(format!("{path}:{line}: `{name}` is `Yes` or `No`; a `bool` says the same"));
            }
        }
    }

    /// Everything that is wrong, a line each.
    pub(crate) fn wrong(mut self) -> Vec<String> {
        for (name, locations) in self.public_types {
            if let [first, others @ ..] = &locations[..]
                && !others.is_empty()
            {
                self.wrong.push(format!("{first}: `{name}` is defined again at {}", others.join(", ")));
            }
        }
        self.wrong
    }
}

/// Words of a name: `TurnPlace` and `turn_place` have `turn` and `place`.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    let mut starts: Vec<usize> = Vec::new();
    let bytes = name.as_bytes();
    for at in 0..bytes.len() {
        let begins = bytes[at].is_ascii_uppercase() || at == 0 || !bytes[at - 1].is_ascii_alphabetic();
        if bytes[at].is_ascii_alphabetic() && begins {
            starts.push(at);
        }
    }
    starts.into_iter().map(move |start| {
        let rest = &name[start..];
        let end = rest.bytes().skip(1).position(|byte| !byte.is_ascii_lowercase());
        &rest[..end.map_or(rest.len(), |end| end + 1)]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str) -> Vec<String> {
        let mut vocabulary = Vocabulary::default();
        vocabulary.add("a.rs", &RustText::read(source));
        vocabulary.wrong()
    }

    #[test]
    fn names_and_comments_of_the_field_pass_and_others_are_refused() {
        for (source, refused) in [
            ("struct PlaceHolder; fn placeholder() {}", "`PlaceHolder` has `place`"),
            ("fn turn_place() {}", "`turn_place` has `place`"),
            ("let told2 = 1;", "`told2` has `told`"),
            ("/// Whether it runs.\npub runs: bool,", "begins with `Whether`"),
            ("pub struct Turn;\nmod b {\n    pub enum Turn {}\n}", "`Turn` is defined again at a.rs:3"),
            ("enum Stopped {\n    #[default]\n    No,\n    Yes,\n}", "`Stopped` is `Yes` or `No`"),
            ("pub(crate) enum Stopped { Yes, No }", "`Stopped` is `Yes` or `No`"),
            ("pub enum From { Start }", "`From` hides"),
            ("//! How it runs.", "begins with `How`"),
        ] {
            let wrong = check(source);
            assert!(wrong.iter().any(|line| line.contains(refused)), "{source}: {wrong:?}");
        }
        for source in [
            "let s = \"said and told\"; // what was said",
            "fn placeholder() {}",
            "/// True while it runs.\npub runs: bool,",
            "pub enum Replayed { No, Yes }",
            "pub struct A; struct B; pub(crate) struct A2;",
            "pub type Result<T> = std::result::Result<T, Fault>;",
            "fn open_world_hint() {}",
            "/// Runs it. The paragraph goes on.\n/// What follows is part of it.",
            "#[cfg(test)]\nmod tests { fn told() {} }",
        ] {
            assert_eq!(check(source), Vec::<String>::new(), "{source}");
        }
    }
}
