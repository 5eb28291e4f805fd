//! JSON as servers write it, not only as it should be.
//!
//! Writers in Python put `NaN` and lone surrogates where strict parsers refuse the whole message, and hand-made ones put line
//! breaks into strings. All of it has one obvious meaning.

use serde_json::Value;
use throughline_wire::json::{JsonError, JsonRef};

/// Tokens for numbers that JSON does not have. They become `null`, as in JavaScript.
const NO_NUMBERS: [&str; 5] = ["NaN", "nan", "Infinity", "inf", "undefined"];

/// Reads a document. Lone surrogates become U+FFFD, `NaN` and `Infinity` become `null`.
///
/// # Errors
/// The first mistake that has no obvious meaning, at its byte of `text`.
pub(super) fn parse(text: &str) -> Result<Value, JsonError> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    if let Ok(json) = JsonRef::parse(text) {
        return Ok(json.to_value());
    }
    let repaired = RepairedText::new(text);
    match JsonRef::parse(&repaired.text) {
        Ok(json) => Ok(json.to_value()),
        Err(error) => Err(JsonError { offset: repaired.original_offset(error.offset), ..error }),
    }
}

/// A text whose obvious mistakes are corrected.
struct RepairedText {
    text: String,
    /// Offsets after each correction: here, and in the original.
    offsets: Vec<(usize, usize)>,
}

impl RepairedText {
    fn new(original: &str) -> Self {
        let mut repaired = Self { text: String::with_capacity(original.len()), offsets: Vec::new() };
        let (mut at, mut in_string) = (0, false);
        while let Some(c) = original[at..].chars().next() {
            let (length, correction) = correction(&original[at..], c, in_string);
            match correction {
                None => repaired.text.push_str(&original[at..at + length]),
                Some(correction) => {
                    repaired.text.push_str(&correction);
                    repaired.offsets.push((repaired.text.len(), at + length));
                }
            }
            in_string ^= c == '"';
            at += length;
        }
        repaired
    }

    fn original_offset(&self, offset: usize) -> usize {
        match self.offsets.iter().rev().find(|(here, _)| *here <= offset) {
            Some((here, original)) => original + (offset - here),
            None => offset,
        }
    }
}

/// Length of what begins with `c`, and its correction if it needs one.
fn correction(rest: &str, c: char, in_string: bool) -> (usize, Option<String>) {
    match c {
        '\\' if in_string => match rest.as_bytes().get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => (2, None),
            Some(b'u') if rest.get(2..6).is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit())) => {
                (6, None)
            }
            // No escape of JSON (`\x41`, `\U`): a backslash.
            _ => (1, Some("\\\\".to_owned())),
        },
        '\0'..='\u{1f}' if in_string => (1, Some(format!("\\u{:04x}", u32::from(c)))),
        'N' | 'n' | 'I' | 'i' | '-' | 'u' if !in_string => {
            let word = rest.trim_start_matches('-');
            let is_word = |name: &&&str| {
                word.strip_prefix(**name)
                    .is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric()))
            };
            match NO_NUMBERS.iter().find(is_word) {
                Some(name) => (rest.len() - word.len() + name.len(), Some("null".to_owned())),
                None => (1, None),
            }
        }
        _ => (c.len_utf8(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn invalid_json_with_an_obvious_meaning_is_read() {
        for (text, expected) in [
            (r#"{"a":"caf\udce9"}"#, json!({"a": "caf\u{fffd}"})),
            (r#"{"a":"\ud83d\ude00"}"#, json!({"a": "😀"})),
            (r#"{"a":NaN,"b":[Infinity,-Infinity]}"#, json!({"a": null, "b": [null, null]})),
            (r#"{"a":"NaN, \"-Infinity\"","b":-1}"#, json!({"a": "NaN, \"-Infinity\"", "b": -1})),
            (r#"{"a":1e999}"#, json!({"a": f64::MAX})),
            ("{\"a\":\"one\ttwo\"}", json!({"a": "one\ttwo"})),
            (r#"{"a":"C:\Users\x"}"#, json!({"a": "C:\\Users\\x"})),
            (r#"{"NaN":NaN,"c":"\udce9"}"#, json!({"NaN": null, "c": "\u{fffd}"})),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn unreadable_json_is_refused_at_its_original_byte() {
        for (text, offset) in [
            (r#"{"a":NaN,"b":oops}"#, 13),
            (r#"{"a":-Infinity,"b":}"#, 19),
            (r#"{"a":NaNs}"#, 5),
            (r#"{"a":1"#, 6),
            (r#"{"a":1} trailing"#, 8),
            ("{'a': 1}", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().offset, offset, "{text}");
        }
    }
}
