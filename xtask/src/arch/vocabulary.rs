//! Names and first words of documentation: words of the field, no name twice, no name of the standard library's.

use crate::rust_text::RustText;
use std::collections::BTreeMap;

/// Words that are not used in names of this field, with the usual ones.
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

/// An identifier with such a word that is allowed in `paths` only.
struct AllowedName {
    name: &'static str,
    /// Files or folders.
    paths: &'static [&'static str],
    #[cfg_attr(not(test), expect(dead_code, reason = "for people, and for the test that each has one"))]
    reason: &'static str,
}

const STAYS: [AllowedName; 3] = [
    AllowedName {
        name: "gone",
        paths: &[
            "crates/server/src/error.rs",
            "crates/server/src/api/approvals.rs",
            "crates/server/src/api/calls.rs",
            "crates/server/src/api/conversations/shares.rs",
            "crates/server/src/api/files.rs",
            "crates/server/src/api/turns.rs",
            "crates/server/src/chat_approvals.rs",
            "crates/server/src/viewer/mod.rs",
        ],
        reason: "410 Gone of HTTP",
    },
    AllowedName {
        name: "block_in_place",
        paths: &["crates/store/src/failpoint.rs"],
        reason: "function of tokio's",
    },
    AllowedName {
        name: "open_world_hint",
        paths: &["crates/tools/src/mcp/definition.rs"],
        reason: "annotation of MCP, as rmcp names it",
    },
];

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

/// First words of doc comments that ask about the item instead of describing it.
const INTERROGATIVE: [&str; 5] = ["Who", "What", "Which", "How", "Whether"];

/// First words of test names that have no subject.
const NO_SUBJECT: [&str; 9] = ["who", "what", "which", "how", "whether", "nobody", "nothing", "of", "so"];
/// Maximum length of a test name, in characters.
const TEST_NAME_MAX: usize = 60;

/// Collects names and comments over all files; [`Self::wrong`] judges them.
#[derive(Default)]
pub(crate) struct Vocabulary {
    public_types: BTreeMap<String, Vec<String>>,
    wrong: Vec<String>,
}

impl Vocabulary {
    pub(crate) fn add(&mut self, path: &str, text: &RustText) {
        self.add_documentation(path, text);
        let mut offset = 0;
        for (number, code) in text.code.lines().enumerate() {
            let start = offset;
            offset += code.len() + 1;
            if text.is_test(start + code.len() - code.trim_start().len()) {
                continue;
            }
            let location = format!("{path}:{}", number + 1);
            self.add_identifiers(path, &location, code);
            self.add_type(&location, code);
        }
        self.add_enums(path, text);
    }

    /// Checks first words of doc comments only, for tests and benchmarks, too.
    pub(crate) fn add_documentation(&mut self, path: &str, text: &RustText) {
        // Sections of rustdoc begin anew.
        const FIRST: [&str; 6] = ["", "///", "//!", "/// # Errors", "//! # Errors", "/// # Panics"];
        let mut before = "";
        for (number, comment) in text.comments.lines().map(str::trim).enumerate() {
            if FIRST.contains(&before) {
                self.add_comment(&format!("{path}:{}", number + 1), comment);
            }
            before = comment;
        }
    }

    /// Checks the names of tests: they are read in lists, far from their module.
    pub(crate) fn add_test_names(&mut self, path: &str, text: &RustText) {
        for attribute in ["#[test]", "#[tokio::test"] {
            for (at, _) in text.code.match_indices(attribute) {
                let Some((_, item)) = text.code[at..].split_once("fn ") else { continue };
                let name =
                    item.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
                let test = format!("{path}:{}: test `{name}`", text.line(at));
                let first = name.split('_').next().unwrap_or_default();
                if NO_SUBJECT.contains(&first) {
                    self.wrong.push(format!("{test} begins with `{first}`; begin with the subject"));
                }
                if name.len() > TEST_NAME_MAX {
                    let length = name.len();
                    self.wrong.push(format!("{test} has {length} characters, not {TEST_NAME_MAX}"));
                }
            }
        }
    }

    /// Names and comments of a TypeScript source.
    pub(crate) fn add_typescript(&mut self, path: &str, source: &str) {
        let mut in_template = false;
        for (number, line) in source.lines().enumerate() {
            let location = format!("{path}:{}", number + 1);
            let line = line.trim();
            let is_comment = ["//", "/*", "* "].iter().any(|mark| line.starts_with(mark));
            if is_comment && !in_template {
                let text = line.strip_prefix("/** ").unwrap_or_default();
                let opens =
                    number > 0 && source.lines().nth(number - 1).is_some_and(|before| before.trim() == "/**");
                let text = if opens { line.trim_start_matches("* ") } else { text };
                self.add_first_word(&location, text);
                continue;
            }
            let code = typescript_code(line, &mut in_template);
            self.add_identifiers(path, &location, &code);
        }
    }

    fn add_identifiers(&mut self, path: &str, location: &str, code: &str) {
        let stays = |name: &str| {
            let allowed = STAYS.iter().filter(|allowed| allowed.name == name);
            allowed.flat_map(|allowed| allowed.paths).any(|prefix| path.starts_with(prefix))
        };
        for name in code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if stays(name) {
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
        self.add_first_word(location, text);
    }

    fn add_first_word(&mut self, location: &str, text: &str) {
        let first = text.split_whitespace().next().unwrap_or_default();
        if INTERROGATIVE.contains(&first) {
            self.wrong.push(format!("{location}: documentation begins with `{first}`; say what the item is"));
        }
    }

    /// Refuses private enums of `Yes` and `No`: a `bool` or an `Option` is equivalent.
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

    /// All problems, one per line.
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

/// A line without its literals and the comment at its end. Templates span lines.
fn typescript_code(line: &str, in_template: &mut bool) -> String {
    let mut code = String::new();
    let mut quote = in_template.then_some('`');
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match quote {
            Some(_) if character == '\\' => {
                characters.next();
            }
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if matches!(character, '"' | '\'' | '`') => quote = Some(character),
            None if character == '/' && matches!(characters.peek(), Some('/' | '*')) => break,
            None => code.push(character),
        }
        if quote.is_some() && !code.ends_with(' ') {
            code.push(' ');
        }
    }
    *in_template = quote == Some('`');
    code
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

    fn check_at(path: &str, source: &str) -> Vec<String> {
        let mut vocabulary = Vocabulary::default();
        vocabulary.add(path, &RustText::read(source));
        vocabulary.wrong()
    }

    fn check(source: &str) -> Vec<String> {
        check_at("a.rs", source)
    }

    #[test]
    fn typescript_is_checked_for_the_same_words() {
        let check = |source: &str| {
            let mut vocabulary = Vocabulary::default();
            vocabulary.add_typescript("a.ts", source);
            vocabulary.wrong()
        };
        for (source, refused) in [
            ("export interface Place {}", "`Place` has `place`"),
            ("x.told(1); // it was said", "`told` has `told`"),
            ("/** How it runs. */", "begins with `How`"),
            ("/**\n * Whether it runs.\n */", "begins with `Whether`"),
        ] {
            let wrong = check(source);
            assert!(wrong.len() == 1 && wrong[0].contains(refused), "{source}: {wrong:?}");
        }
        for source in [
            "const s = \"told\" + 'said \\' told' + `gone ${1} kept`; // behind",
            "text.replace(/a/, `one\ntold\n`);",
            "/** It runs.\n * How it does is said here. */",
        ] {
            assert_eq!(check(source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn test_names_are_short_and_begin_with_a_subject() {
        let check = |source: &str| {
            let mut vocabulary = Vocabulary::default();
            vocabulary.add_test_names("a.rs", &RustText::read(source));
            vocabulary.wrong()
        };
        let long = format!("#[test]\nfn {}() {{}}", "a".repeat(TEST_NAME_MAX + 1));
        for (source, refused) in [
            ("#[test]\nfn nobody_waits() {}", "a.rs:1: test `nobody_waits` begins with `nobody`"),
            ("#[tokio::test(start_paused = true)]\nasync fn what_waits() {}", "begins with `what`"),
            ("proptest! {\n    #[test]\n    fn so_it_ends(x in 0..9) {}\n}", "begins with `so`"),
            (long.as_str(), "has 61 characters, not 60"),
        ] {
            let wrong = check(source);
            assert!(wrong.len() == 1 && wrong[0].contains(refused), "{source}: {wrong:?}");
        }
        let longest = format!("#[test]\nfn {}() {{}}", "a".repeat(TEST_NAME_MAX));
        for source in [longest.as_str(), "#[test]\nfn socket_is_closed() {}", "fn nothing() {}"] {
            assert_eq!(check(source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn allowed_names_have_a_reason_and_only_apply_in_their_files() {
        for AllowedName { name, paths, reason } in STAYS {
            let source = format!("fn {name}() {{}}");
            assert!(reason.len() > 10, "{name}");
            assert_eq!(check(&source).len(), 1, "{name}");
            for path in paths {
                assert_eq!(check_at(path, &source), Vec::<String>::new(), "{name}");
            }
        }
    }

    #[test]
    fn private_words_and_questions_are_rejected() {
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
            ("#[cfg(test)]\nmod tests {\n    /// What it is.\n    fn a() {}\n}", "begins with `What`"),
            ("/// Runs it.\n///\n/// # Errors\n/// What went wrong.\nfn run() {}", "begins with `What`"),
            ("let gone = 1;", "`gone` has `gone`"),
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
            "/// Runs it. The paragraph goes on.\n/// What follows is part of it.",
            "#[cfg(test)]\nmod tests { fn told() {} }",
        ] {
            assert_eq!(check(source), Vec::<String>::new(), "{source}");
        }
    }
}
