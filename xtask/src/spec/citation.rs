//! Citations of requirements: `R: W3, T5` in a comment.
// R: D3

use crate::rust_text::{RustText, is_test_file, is_word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CitationKind {
    /// It fulfills the requirement.
    Code,
    /// It proves it.
    Test,
}

/// One id, cited in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Citation {
    pub(crate) id: String,
    pub(crate) kind: CitationKind,
    pub(crate) path: String,
    pub(crate) line: usize,
    /// The function that follows the comment, or that it is in.
    pub(crate) item: Option<String>,
}

/// Letters that ids begin with; `M10` and the like name something else.
const LETTERS: &[u8] = b"WTXLAESUVOPRD";

/// Citations in a Rust source.
pub(crate) fn in_rust(path: &str, source: &str) -> Vec<Citation> {
    let text = RustText::read(source);
    let is_test_file = is_test_file(path);
    let mut found = Vec::new();
    for (at, ids) in requirement_marks(&text.comments) {
        let is_test = is_test_file || text.is_test(at) || precedes_a_test(&text, at);
        let kind = if is_test { CitationKind::Test } else { CitationKind::Code };
        let item = item_after(&text, at);
        let line = text.line(at);
        found.extend(ids.into_iter().map(|id| Citation {
            id,
            kind,
            path: path.to_owned(),
            line,
            item: item.clone(),
        }));
    }
    found
}

/// Citations in a source of the page. Its tests are known by where they are.
pub(crate) fn in_typescript(path: &str, source: &str) -> Vec<Citation> {
    let is_test = path.contains("/tests/") || path.contains("/specs/") || path.contains(".test.");
    let kind = if is_test { CitationKind::Test } else { CitationKind::Code };
    let mut found = Vec::new();
    for (number, line) in source.lines().enumerate() {
        let begin = line.find("//").or_else(|| line.find("/*")).or_else(|| line.find(" * "));
        let comment = begin.map_or("", |at| &line[at..]);
        for (_, ids) in requirement_marks(comment) {
            let cite = |id| Citation { id, kind, path: path.to_owned(), line: number + 1, item: None };
            found.extend(ids.into_iter().map(cite));
        }
    }
    found
}

/// Citations in a document, in HTML comments: a document can fulfill a requirement, but it proves nothing.
pub(crate) fn in_markdown(path: &str, document: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for (number, line) in document.lines().enumerate() {
        let comment =
            line.split_once("<!--").map_or("", |(_, rest)| rest.split("-->").next().unwrap_or_default());
        for (_, ids) in requirement_marks(comment) {
            let cite = |id| Citation {
                id,
                kind: CitationKind::Code,
                path: path.to_owned(),
                line: number + 1,
                item: None,
            };
            found.extend(ids.into_iter().map(cite));
        }
    }
    found
}

/// True if a comment cites a requirement.
pub(crate) fn cites(comment: &str) -> bool {
    !requirement_marks(comment).is_empty()
}

/// Each `R:` with its ids.
fn requirement_marks(comments: &str) -> Vec<(usize, Vec<String>)> {
    let bytes = comments.as_bytes();
    let mut found = Vec::new();
    for (at, _) in comments.match_indices("R: ") {
        if at > 0 && (is_word(bytes[at - 1]) || bytes[at - 1] == b'`') {
            continue;
        }
        let line = comments[at + 2..].lines().next().unwrap_or_default();
        let words = line.split([',', ' ']).filter(|word| !word.is_empty());
        // A sentence may follow: ids end where something else begins, or at the first word that ends with punctuation.
        let mut ids = Vec::new();
        for word in words {
            let bare = word.trim_end_matches(['.', ':', ';', ')']);
            if is_id(bare) {
                ids.push(bare.to_owned());
            } else if !is_foreign(bare) {
                break;
            }
            if bare != word {
                break;
            }
        }
        if !ids.is_empty() {
            found.push((at, ids));
        }
    }
    found
}

fn is_id(word: &str) -> bool {
    let letter = word.bytes().next().filter(|letter| LETTERS.contains(letter));
    let number = word.get(1..).unwrap_or_default();
    letter.is_some() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Ids of other lists, which may stand among ours.
fn is_foreign(word: &str) -> bool {
    word.starts_with('M') && is_id(&word.replacen('M', "W", 1))
}

/// True if only comments and white space separate `at` from a test's attribute.
fn precedes_a_test(text: &RustText, at: usize) -> bool {
    let next = text.code[at..].find(|c: char| !c.is_whitespace());
    next.is_some_and(|next| text.code[at + next..].starts_with("#[") && text.is_test(at + next))
}

fn item_after(text: &RustText, at: usize) -> Option<String> {
    let name = |from: usize| {
        let rest = text.code[from..].strip_prefix("fn ")?;
        let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        Some(rest[..end].to_owned())
    };
    // Above an item: attributes and comments only until its `fn`.
    let rest = &text.code[at..];
    let mut from = 0;
    loop {
        from += rest[from..].find(|c: char| !c.is_whitespace())?;
        if !rest[from..].starts_with("#[") {
            break;
        }
        from += rest[from..].find(']')? + 1;
    }
    let head = rest[from..].lines().next().unwrap_or_default();
    if let Some(function) = head.find("fn ")
        && head[..function]
            .split_whitespace()
            .all(|word| matches!(word, "pub" | "const" | "async") || word.starts_with("pub("))
    {
        return name(at + from + function);
    }
    // Inside of one: indented, below it.
    let line = text.code[..at].rfind('\n').map_or(0, |line| line + 1);
    let comment_is_indented = text.comments[line..].starts_with(' ');
    let before =
        text.code[..at].rfind("fn ").filter(|_| comment_is_indented && before_is_open(&text.code[..at]));
    before.and_then(name)
}

/// True if the last function of `code` is still open at its end.
fn before_is_open(code: &str) -> bool {
    let Some(function) = code.rfind("fn ") else { return false };
    let depth = code[function..].bytes().fold(0_i32, |depth, byte| match byte {
        b'{' => depth + 1,
        b'}' => depth - 1,
        _ => depth,
    });
    depth > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, source: &str, expected: &[(&str, CitationKind, usize, Option<&str>)]) {
        let found = in_rust(path, source);
        let found: Vec<_> =
            found.iter().map(|one| (one.id.as_str(), one.kind, one.line, one.item.as_deref())).collect();
        assert_eq!(found, expected, "{source}");
    }

    // R: D3
    #[test]
    fn ids_are_read_in_every_way_that_they_are_written() {
        let code = |id, item| (id, CitationKind::Code, 1, item);
        check("src/a.rs", "// R: W3, T5\nfn a() {}", &[code("W3", Some("a")), code("T5", Some("a"))]);
        check("src/a.rs", "//! What it is. // R: R2 W2", &[code("R2", None), code("W2", None)]);
        check("src/a.rs", "/// May stop. R: T8\npub(crate) fn b<T>() {}", &[code("T8", Some("b"))]);
        check("src/a.rs", "// R: T3: it says why and T4 not", &[code("T3", None)]);
        check("src/a.rs", "// R: T9, M10", &[code("T9", None)]);
        check("src/a.rs", "// R: M10, R2", &[code("R2", None)]);
        check("src/a.rs", "// R: U5. See W1.", &[code("U5", None)]);
    }

    // R: D3
    #[test]
    fn what_is_no_citation_is_none() {
        for source in
            ["let s = \"// R: W3\";", "// ERROR: W3", "// write `R: W3`", "// R: see W3", "// R:W3", "R: W3"]
        {
            check("src/a.rs", source, &[]);
        }
    }

    // R: D3
    #[test]
    fn tests_are_told_from_code() {
        check("crates/a/tests/b.rs", "//! R: W1\nfn a() {}", &[("W1", CitationKind::Test, 1, Some("a"))]);
        let source = "fn a() {\n    // R: W1\n}\n#[cfg(test)]\nmod tests {\n    // R: W2\n    #[test]\n    fn b() {}\n}";
        check(
            "src/a.rs",
            source,
            &[("W1", CitationKind::Code, 2, Some("a")), ("W2", CitationKind::Test, 6, Some("b"))],
        );
        check("src/a.rs", "// R: W2\n#[cfg(test)]\nmod tests {}", &[("W2", CitationKind::Test, 1, None)]);
    }

    #[test]
    fn documents_cite_in_comments_only() {
        let found = in_markdown("a.md", "<!-- R: D3 -->\nR: D2 `<!--` <!-- x --> R: D1\n");
        let found: Vec<_> = found.iter().map(|one| (one.id.as_str(), one.line)).collect();
        assert_eq!(found, [("D3", 1)]);
    }
}
