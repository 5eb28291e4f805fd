//! Separates Rust sources into code, comments, literals and tests, without a parser.

use std::ops::Range;

/// One source file in layers of equal length: an offset means the same position in each.
pub(crate) struct RustText {
    /// Code; comments and the insides of literals are spaces.
    pub(crate) code: String,
    /// Comments; everything else is spaces.
    pub(crate) comments: String,
    /// Items under `#[cfg(test)]` or `#[test]`.
    tests: Vec<Range<usize>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextLayer {
    Code,
    Comment,
    Literal,
}

impl RustText {
    pub(crate) fn read(text: &str) -> Self {
        let layers = layers(text.as_bytes());
        let only = |wanted: TextLayer| {
            let bytes = text.bytes().zip(&layers);
            let bytes = bytes
                .map(|(byte, layer)| if *layer == wanted || byte == b'\n' { byte } else { b' ' })
                .collect();
            // Layers change at ASCII characters only, so what stays is whole characters.
            String::from_utf8(bytes).unwrap_or_default()
        };
        let code = only(TextLayer::Code);
        let tests = tests(&code);
        Self { code, comments: only(TextLayer::Comment), tests }
    }

    /// True if the byte at `at` belongs to a test.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// Line of an offset, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.code.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

fn layers(text: &[u8]) -> Vec<TextLayer> {
    let mut layers = Vec::with_capacity(text.len());
    while layers.len() < text.len() {
        let at = layers.len();
        let rest = &text[at..];
        let after_word = at > 0 && is_word(text[at - 1]);
        let (layer, length) = match rest[0] {
            b'/' if rest.starts_with(b"//") => {
                (TextLayer::Comment, rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()))
            }
            b'/' if rest.starts_with(b"/*") => (TextLayer::Comment, block_comment(rest)),
            b'"' => (TextLayer::Literal, quoted(rest, b'"')),
            b'\'' => match char_literal(rest) {
                Some(length) => (TextLayer::Literal, length),
                None => (TextLayer::Code, 1),
            },
            b'r' | b'b' | b'c' if !after_word => match raw_string(rest) {
                Some(length) => (TextLayer::Literal, length),
                None => (TextLayer::Code, 1),
            },
            _ => (TextLayer::Code, 1),
        };
        layers.resize(at + length.max(1), layer);
    }
    layers.truncate(text.len());
    layers
}

fn block_comment(text: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while at < text.len() && depth > 0 {
        match &text[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    at
}

/// Length of a literal that begins and ends with this quote.
fn quoted(text: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// Length of a character literal; `None` for a lifetime.
fn char_literal(text: &[u8]) -> Option<usize> {
    if text.get(1) == Some(&b'\\') {
        return Some(quoted(text, b'\''));
    }
    let end = 1 + text[1..].iter().take(5).position(|byte| *byte == b'\'')?;
    let inside = std::str::from_utf8(&text[1..end]).ok()?;
    (inside.chars().count() == 1).then_some(end + 1)
}

/// Length of `r"…"`, `r#"…"#`, `br"…"` or `cr"…"`; `None` for anything else.
fn raw_string(text: &[u8]) -> Option<usize> {
    let prefix = text.iter().take(2).position(|byte| *byte == b'r')? + 1;
    let hashes = text[prefix..].iter().take_while(|byte| **byte == b'#').count();
    let open = prefix + hashes;
    if text.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let inside = &text[open + 1..];
    let end = inside.windows(close.len()).position(|window| window == close);
    Some(end.map_or(text.len(), |end| open + 1 + end + close.len()))
}

/// Ranges from each test attribute to the end of its item.
fn tests(code: &str) -> Vec<Range<usize>> {
    let mut tests = Vec::new();
    for attribute in ["#[cfg(test)]", "#[test]", "#[tokio::test"] {
        for (from, _) in code.match_indices(attribute) {
            tests.push(from..item_end(code, from));
        }
    }
    tests
}

/// End of the item after an attribute: the brace that closes its body, or its semicolon.
fn item_end(code: &str, from: usize) -> usize {
    let (mut brackets, mut braces) = (0_i32, 0_i32);
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'[' | b'(' => brackets += 1,
            b']' | b')' => brackets -= 1,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces <= 0 {
                    return at + 1;
                }
            }
            b';' if braces == 0 && brackets == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// True if the whole file is tests: `tests.rs` and `x_tests.rs` are declared under `#[cfg(test)]`.
pub(crate) fn is_test_file(path: &str) -> bool {
    path.ends_with("tests.rs")
        || path.starts_with("fuzz/")
        || path.contains("/tests/")
        || path.contains("/benches/")
}

/// True if a byte belongs to an identifier.
pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Offsets at which `needle` occurs in `text` as whole words.
pub(crate) fn words<'a>(text: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    let is_border = |inside: Option<u8>, outside: Option<u8>| {
        !(inside.is_some_and(is_word) && outside.is_some_and(is_word))
    };
    text.match_indices(needle).map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        is_border(needle.bytes().next(), before)
            && is_border(needle.bytes().last(), bytes.get(at + needle.len()).copied())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, code: &str, comments: &str) {
        let read = RustText::read(text);
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeeze(&read.code), code, "code of {text}");
        assert_eq!(squeeze(&read.comments), comments, "comments of {text}");
        assert_eq!(read.code.len(), text.len());
    }

    #[test]
    fn comments_and_literals_are_separated_from_code() {
        check("a // b\nc", "a c", "// b");
        check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
        check(r#"a("// no \" comment") // b"#, "a( )", "// b");
        check(r##"a(r#"x " // y"#); b"##, "a( ); b", "");
        check(r#"let bar = br"\"; // c"#, "let bar = ;", "// c");
        check("fn f<'a>(x: &'a str) { '\"'; '\\''; '字'; } // z", "fn f<'a>(x: &'a str) { ; ; ; }", "// z");
    }

    #[test]
    fn items_of_test_modules_are_recognized() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { c([1; 2]) }\n}\nfn d() {}\n#[cfg(test)]\nmod e;\nfn f() {}";
        let read = RustText::read(text);
        for (name, is_test) in [("a()", false), ("b()", true), ("d()", false), ("e;", true), ("f()", false)] {
            let at = text.find(name).unwrap();
            assert_eq!(read.is_test(at), is_test, "{name}");
        }
        assert_eq!(read.line(text.find("fn b").unwrap()), 4);
    }

    #[test]
    fn only_whole_words_are_found() {
        let found: Vec<_> = words("rand operand rand::x grand rand", "rand").collect();
        assert_eq!(found, [0, 13, 27]);
        assert_eq!(words("x.await; x.awaited", ".await").count(), 1);
    }
}
