//! JSON text on its way through: printed as it came, on one line, readable by strict parsers.

use serde_json::value::RawValue;

/// Valid JSON text as a raw value, so that numbers keep every digit: white space between tokens is dropped (one
/// line), and an escape that is half a surrogate pair becomes `\ufffd` (strict parsers refuse it). `None` if the
/// text is not JSON after all.
pub(crate) fn raw_value(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(on_one_line(text)).ok()
}

fn on_one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', ' ', '\t', '\n', '\r']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('"') {
            let length = string_length(rest);
            copy_string(&rest[..length], &mut out);
            rest = &rest[length..];
        } else {
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    out
}

/// Bytes of the string literal that `text` begins with, both quotes counted.
fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn copy_string(literal: &str, out: &mut String) {
    let mut rest = literal;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str("\\ufffd");
                rest = &rest[6..];
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
        let length = if rest.is_char_boundary(length) { length } else { rest.len() };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out.push_str(rest);
}

/// The UTF-16 unit of the `\uXXXX` escape that `text` begins with.
fn unit(text: &str) -> Option<u16> {
    let hex = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(hex, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(raw_value(text).map(|raw| raw.get().to_owned()).as_deref(), Some(expect), "{text:?}");
    }

    #[test]
    fn json_text_is_preserved_except_spaces_and_lone_surrogates() {
        check(" { \"a\" : [ 1 , 2.50 ] }\n", r#"{"a":[1,2.50]}"#);
        check("12345678901234567890123456789", "12345678901234567890123456789");
        check(r#"{"a  b":" x\n\" y ","c":"\\"}"#, r#"{"a  b":" x\n\" y ","c":"\\"}"#);
        check(r#""\ud83d\ude00""#, r#""\ud83d\ude00""#);
        check(r#""\ud83d""#, r#""\ufffd""#);
        check(r#""\ude00x\ud83d\u0041""#, r#""\ufffdx\ufffd\u0041""#);
        check(r#""\\ud83d""#, r#""\\ud83d""#);
        check("\"你好 \\\\\"", "\"你好 \\\\\"");
    }

    #[test]
    fn invalid_json_is_rejected() {
        for text in ["", "{", "\"a", "\"\\", "\"\\é", "{}{}", "nul"] {
            assert!(raw_value(text).is_none(), "{text:?}");
        }
    }
}
