//! Marks of a model's text that a renderer may take for a tag, a footnote or a definition, changed into what none does.

use std::borrow::Cow;

/// Tags, anywhere in a text, after which chat programs fold the rest of an answer.
const FOLDING_TAGS: [&str; 9] = [
    "think",
    "thinking",
    "thought",
    "reason",
    "reasoning",
    "code_interpreter",
    "begin_of_thought",
    "begin_of_solution",
    "details",
];
const TAG_BYTES_MAX: usize = 24;

/// A `<` in front of this may begin a tag, a comment or the like.
pub(super) fn begins_tag(next: Option<char>) -> bool {
    next.is_some_and(|next| !(next.is_whitespace() || next.is_ascii_digit() || "=-<>".contains(next)))
}

/// Length of a `<` and the name after it, up to the maximum length of a name.
pub(super) fn tag_length(text: &str) -> usize {
    let is_name = |char: char| char.is_ascii_alphabetic() || "_|/".contains(char);
    let length = 1 + text[1..].find(|char| !is_name(char)).unwrap_or(text.len() - 1);
    length.min(TAG_BYTES_MAX)
}

/// The text begins with a tag that chat programs look for without reading Markdown.
pub(super) fn folds(text: &str) -> bool {
    if text.starts_with('◁') {
        return true;
    }
    let name = text[1..tag_length(text)].trim_matches(['/', '|']).to_ascii_lowercase();
    FOLDING_TAGS.contains(&name.as_str())
}

/// JSON with such tags spelled out.
pub(super) fn escape_folding_tags(json: &str) -> String {
    let escaped = map_marks(json, &['<', '◁'], |rest| match rest.chars().next() {
        Some('<') if folds(rest) => Some(("\\u003c", 1)),
        Some('◁') => Some(("\\u25c1", '◁'.len_utf8())),
        _ => None,
    });
    escaped.into_owned()
}

/// Code that is certainly code.
pub(super) fn harmless_code(code: &str) -> Cow<'_, str> {
    map_marks(code, &['<', '◁'], |rest| match rest.as_bytes() {
        // Some readers of HTML look for the end of these in code as well.
        [b'<', b'!' | b'?', ..] if !rest.contains('>') => Some(("&lt;", 1)),
        _ if folds(rest) => {
            rest.chars().next().map(|mark| (if mark == '<' { "< " } else { "◁ " }, mark.len_utf8()))
        }
        _ => None,
    })
}

/// Text that may be code or not.
pub(super) fn harmless_prose(text: &str) -> Cow<'_, str> {
    map_marks(text, &['<', '[', ']', '◁'], |rest| match rest.chars().next() {
        Some('<') if begins_tag(rest[1..].chars().next()) => Some(("&lt;", 1)),
        Some('[') if rest.starts_with("[^") => Some(("[&#94;", 2)),
        Some(']') if rest.starts_with("]:") => Some(("]&#58;", 2)),
        Some('◁') => Some(("◁ ", '◁'.len_utf8())),
        _ => None,
    })
}

/// A formula that is harmless if it is rendered as prose: an added space changes nothing in TeX.
pub(super) fn harmless_maths(text: &str) -> Cow<'_, str> {
    map_marks(text, &['<', '[', ']', '◁', '*'], |rest| match rest.chars().next() {
        Some('<') if begins_tag(rest[1..].chars().next()) => Some(("< ", 1)),
        Some('[') if rest.starts_with("[^") => Some(("[ ", 1)),
        Some(']') if rest.starts_with("]:") => Some(("] ", 1)),
        Some('*') if rest.starts_with("*[") => Some(("* ", 1)),
        Some('◁') => Some(("◁ ", '◁'.len_utf8())),
        _ => None,
    })
}

/// A text with some of these marks replaced: `change` gets the text from a mark on, and returns the
/// replacement and the number of bytes that it replaces.
fn map_marks<'a>(
    text: &'a str,
    marks: &[char],
    change: impl Fn(&str) -> Option<(&'static str, usize)>,
) -> Cow<'a, str> {
    if !text.contains(marks) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(marks) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let mark_length = rest.chars().next().map_or(0, char::len_utf8);
        let (instead, length) = change(rest).unwrap_or((&rest[..0], 0));
        if length == 0 {
            out.push_str(&rest[..mark_length]);
            rest = &rest[mark_length..];
        } else {
            out.push_str(instead);
            rest = &rest[length..];
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaping_folding_tags_preserves_the_json_value() {
        let json = r#"{"a": "<think> <b> ◁think▷ </details>"}"#;
        let escaped = escape_folding_tags(json);
        assert_eq!(escaped, r#"{"a": "\u003cthink> <b> \u25c1think▷ \u003c/details>"}"#);
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&escaped), read(json));
    }
}
