//! Each requirement names the files with its tests, and those files have tests.

use super::{links, path_of};
use crate::fault::fault;
use crate::repository;
use crate::rust_text::RustText;
use anyhow::Result;
use std::collections::BTreeSet;

const DOCUMENT: &str = "docs/internal/requirements.md";
const REMEDY: &str =
    "link the files whose tests hold the requirement, or move it to the list of those that come later";

/// Checks the document; returns the number of its requirements that hold.
pub(super) fn check() -> Result<usize> {
    let read = |path: &str| repository::read(path).ok();
    let (rows, problems) = problems_of(&repository::read(DOCUMENT)?, read);
    if problems.is_empty() { Ok(rows) } else { Err(fault(problems.join("\n"), REMEDY)) }
}

/// Number of rows, and the problems of the document. `read` gives the text of a file by its path from the root.
fn problems_of(document: &str, read: impl Fn(&str) -> Option<String>) -> (usize, Vec<String>) {
    let mut problems = Vec::new();
    let mut ids = BTreeSet::new();
    let mut rows = 0;
    for line in document.lines() {
        let Some(id) = id_of(line) else { continue };
        if !ids.insert(id) {
            problems.push(format!("{DOCUMENT}: {id} is there twice"));
        }
        if !line.starts_with('|') {
            continue;
        }
        rows += 1;
        let files = links(line);
        if files.is_empty() {
            problems.push(format!("{DOCUMENT}: {id} names no file with a test"));
        }
        for link in files {
            let path = path_of(DOCUMENT, &link).unwrap_or_else(|| link.clone());
            match read(&path) {
                None => problems.push(format!("{DOCUMENT}: {id} names `{path}`, which does not exist")),
                Some(source) if !has_test(&path, &source) => {
                    problems.push(format!("{DOCUMENT}: {id} names `{path}`, which has no test"));
                }
                Some(_) => {}
            }
        }
    }
    if rows == 0 {
        problems.push(format!("{DOCUMENT}: no requirement is there"));
    }
    (rows, problems)
}

/// The id at the start of a row (`| W1 | …`) or of an item of the list (`- W1: …`).
fn id_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("| ").or_else(|| line.strip_prefix("- "))?;
    let id = &rest[..rest.find([' ', ':'])?];
    let number = id.strip_prefix(|letter: char| letter.is_ascii_uppercase())?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(id)
}

/// True if a source in Rust or TypeScript has a test.
fn has_test(path: &str, source: &str) -> bool {
    const RUST: [&str; 3] = ["#[test]", "#[tokio::test", "proptest!"];
    const TYPESCRIPT: [&str; 4] = ["test(", "test.each", "it(", "it.each"];
    if path.ends_with(".rs") {
        let code = RustText::read(source).code;
        return RUST.iter().any(|mark| code.contains(mark));
    }
    source.lines().any(|line| TYPESCRIPT.iter().any(|call| line.trim_start().starts_with(call)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 4] = [
        ("crates/a/tests/it/b.rs", "#[tokio::test(start_paused = true)]\nasync fn runs() {}"),
        ("crates/a/src/c.rs", "// #[test]\nconst A: &str = \"#[test]\";"),
        ("web/app/tests/d.test.ts", "describe(\"d\", () => {\n  test.each([1])(\"%s\", () => {});\n});"),
        ("web/app/src/e.ts", "// it(\nif (/a/.test(a)) submit(a);"),
    ];

    #[track_caller]
    fn check(rows: &str, expected: &[&str]) {
        let document = format!("| id | meaning | tests |\n|---|---|---|\n{rows}");
        let read = |path: &str| FILES.iter().find(|file| file.0 == path).map(|file| file.1.to_owned());
        let (_, problems) = problems_of(&document, read);
        let expected: Vec<String> = expected.iter().map(|problem| format!("{DOCUMENT}: {problem}")).collect();
        assert_eq!(problems, expected, "{rows}");
    }

    #[test]
    fn row_with_files_that_have_tests_passes() {
        check("| W1 | a | [b](../../crates/a/tests/it/b.rs), [d](../../web/app/tests/d.test.ts) |", &[]);
        check("| W1 | a | [b](../../crates/a/tests/it/b.rs) |\n\n- W2: later, without tests", &[]);
    }

    #[test]
    fn row_without_files_is_refused_by_its_id() {
        check("| W1 | a | |", &["W1 names no file with a test"]);
        check("", &["no requirement is there"]);
    }

    #[test]
    fn file_that_is_missing_or_has_no_test_is_refused() {
        check("| W1 | a | [f](../../f.rs) |", &["W1 names `f.rs`, which does not exist"]);
        check("| W1 | a | [f](../../../f.rs) |", &["W1 names `../../../f.rs`, which does not exist"]);
        for path in ["crates/a/src/c.rs", "web/app/src/e.ts"] {
            let refused = format!("W1 names `{path}`, which has no test");
            check(&format!("| W1 | a | [c](../../{path}) |"), &[&refused]);
        }
    }

    #[test]
    fn id_that_is_used_twice_is_refused() {
        let row = "| W1 | a | [b](../../crates/a/tests/it/b.rs) |";
        check(&format!("{row}\n{row}"), &["W1 is there twice"]);
        check(&format!("{row}\n- W1: later"), &["W1 is there twice"]);
    }
}
