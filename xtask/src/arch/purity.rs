//! Forbidden names in the sources of a pure crate.

use crate::rust_text::{RustText, is_word, words};

/// Forbidden words with the reason. Paths are found in `use std::{…}` groups, too.
const FORBIDDEN: [(&str, &str); 22] = [
    ("async", "async"),
    (".await", "async"),
    ("std::time", "a clock"),
    ("SystemTime", "a clock"),
    ("Instant", "a clock"),
    ("std::fs", "a file"),
    ("std::io", "IO"),
    ("std::net", "a socket"),
    ("std::process", "a process"),
    ("std::thread", "a thread"),
    ("std::env", "the environment"),
    ("std::random", "chance"),
    ("RandomState", "chance"),
    ("rand", "chance"),
    ("static mut", "a global"),
    ("thread_local", "a global"),
    ("OnceLock", "a global"),
    ("LazyLock", "a global"),
    ("println", "output"),
    ("eprintln", "output"),
    ("print", "output"),
    ("eprint", "output"),
];

/// Provider names that the engine must not contain.
const PROVIDERS: [&str; 13] = [
    "openai",
    "anthropic",
    "gemini",
    "ollama",
    "bedrock",
    "cohere",
    "deepseek",
    "mistral",
    "claude",
    "openrouter",
    "dashscope",
    "siliconflow",
    "moonshot",
];

/// Impurities outside tests: the line and what it is.
pub(crate) fn impurities(text: &RustText) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (word, what) in FORBIDDEN {
        let plain = words(&text.code, word);
        let in_groups =
            word.strip_prefix("std::").into_iter().flat_map(|module| in_group(&text.code, module));
        for at in plain.chain(in_groups).filter(|at| !text.is_test(*at)) {
            found.push((text.line(at), format!("`{word}`: a pure crate has no such thing ({what})")));
        }
    }
    found.sort();
    found
}

/// Offsets of a module in groups such as `std::{fmt, time::Instant}`.
fn in_group(code: &str, module: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (group, _) in code.match_indices("std::{") {
        let open = group + "std::{".len();
        let mut depth = 1;
        let mut begins_item = true;
        for (at, byte) in code.bytes().enumerate().skip(open) {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b',' => begins_item = true,
                _ if byte.is_ascii_whitespace() => {}
                _ => {
                    let ends = !code.as_bytes().get(at + module.len()).copied().is_some_and(is_word);
                    if depth == 1 && begins_item && ends && code[at..].starts_with(module) {
                        found.push(at);
                    }
                    begins_item = false;
                }
            }
            if depth == 0 {
                break;
            }
        }
    }
    found
}

/// Provider names anywhere in a source: code, comments, literals and tests.
pub(crate) fn provider_names(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.to_lowercase();
        for name in PROVIDERS.into_iter().filter(|name| line.contains(name)) {
            found.push((number + 1, format!("`{name}`: the engine knows no provider")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &[(usize, &str)]) {
        let found = impurities(&RustText::read(source));
        let found: Vec<_> =
            found.iter().map(|(line, what)| (*line, what.split('`').nth(1).unwrap_or_default())).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn impure_code_is_reported() {
        check("fn f() {}\nasync fn g() { h().await }", &[(2, ".await"), (2, "async")]);
        check("use std::time::Duration;", &[(1, "std::time")]);
        check("use std::{fmt,\n time::{self, Instant}};", &[(2, "Instant"), (2, "std::time")]);
        check("use std::{collections::{BTreeMap, time}, fmt};", &[]);
        check("let x = rand::random::<u8>();", &[(1, "rand")]);
        check("static mut X: u8 = 0;", &[(1, "static mut")]);
        check("fn f() { std::env::var(\"A\"); println!(); }", &[(1, "println"), (1, "std::env")]);
    }

    #[test]
    fn comments_literals_and_tests_are_not_checked() {
        check("// async, std::fs\nfn operand() -> &'static str { \"Instant\" }", &[]);
        check("#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n", &[]);
        check("#[cfg(test)]\nmod tests {\n    use std::fs;\n}\nuse std::fs;", &[(5, "std::fs")]);
    }

    #[test]
    fn provider_names_are_found_in_comments_and_strings() {
        assert_eq!(provider_names("a\n/// As OpenAI does\n\"ollama\"").len(), 2);
        assert!(provider_names("open ai").is_empty());
    }
}
