//! The inside of a JSON string: escapes, and surrogate pairs cut in two.

use std::borrow::Cow;

/// Carries half a surrogate pair from one fragment of a text to the next: `"\ud83d"` then `"\ude00"` is one
/// character that a tokenizer cut in two. One for each text that fragments are joined to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SurrogateCarry {
    high: Option<u16>,
    replaced_lone: bool,
}

impl SurrogateCarry {
    /// Ends the text: half a pair that is still waiting becomes U+FFFD.
    pub fn finish(&mut self) -> Option<char> {
        self.high.take().map(|_| self.replacement())
    }

    /// True if a lone surrogate has been replaced so far.
    pub fn had_lone(&self) -> bool {
        self.replaced_lone
    }

    #[cfg(test)]
    pub(crate) fn is_waiting(&self) -> bool {
        self.high.is_some()
    }

    fn replacement(&mut self) -> char {
        self.replaced_lone = true;
        char::REPLACEMENT_CHARACTER
    }
}

/// A JSON text in which every escaped half of a surrogate pair without its other half is U+FFFD, for parsers that refuse it:
/// a client that shortens a text between the halves of an emoji sends one, and everything else of the text is good. `None` = it
/// has none.
///
/// ```
/// use throughline_wire::json::replace_lone_surrogates;
///
/// let text = br#"{"title":"Hi \ud83d"}"#;
/// assert_eq!(replace_lone_surrogates(text).unwrap(), br#"{"title":"Hi \ufffd"}"#);
/// assert_eq!(replace_lone_surrogates(br#"{"title":"Hi \ud83d\ude00"}"#), None);
/// ```
pub fn replace_lone_surrogates(text: &[u8]) -> Option<Vec<u8>> {
    let unit_at = |at: usize| {
        let escape = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    let mut replaced = None;
    let mut at = 0;
    while let Some(escape) = memchr::memchr(b'\\', &text[at..]) {
        at += escape;
        at += match unit_at(at) {
            Some(0xD800..=0xDBFF) if matches!(unit_at(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                replaced.get_or_insert_with(|| text.to_vec())[at..at + 6].copy_from_slice(b"\\ufffd");
                6
            }
            Some(_) => 6,
            // The escaped character, so that an escaped backslash begins no escape.
            None => 2,
        };
        at = at.min(text.len());
    }
    replaced
}

/// Decodes the body of a JSON string (between the quotes) that is known to be well-formed.
pub(crate) fn decode_string<'a>(body: &'a str, carry: &mut SurrogateCarry) -> Cow<'a, str> {
    if body.is_empty() {
        return Cow::Borrowed(body);
    }
    let bytes = body.as_bytes();
    // Tokens are a few bytes long: setting up the vector search would cost more than the search.
    let first = match bytes.len() {
        0..=32 => bytes.iter().position(|byte| *byte == b'\\'),
        _ => memchr::memchr(b'\\', bytes),
    };
    let Some(first) = first else {
        return match carry.finish() {
            None => Cow::Borrowed(body),
            Some(replacement) => Cow::Owned(format!("{replacement}{body}")),
        };
    };
    let mut out = String::with_capacity(body.len());
    if first > 0 {
        out.extend(carry.finish());
    }
    out.push_str(&body[..first]);
    let mut rest = &body[first..];
    while let Some(escape) = rest.as_bytes().get(1) {
        let plain = match escape {
            b'u' => {
                let unit = rest.get(2..6).and_then(|hex| u16::from_str_radix(hex, 16).ok()).unwrap_or(0xFFFD);
                push_unit(unit, carry, &mut out);
                rest = rest.get(6..).unwrap_or("");
                None
            }
            b'n' => Some('\n'),
            b't' => Some('\t'),
            b'r' => Some('\r'),
            b'b' => Some('\u{8}'),
            b'f' => Some('\u{c}'),
            other => Some(*other as char),
        };
        if let Some(plain) = plain {
            out.extend(carry.finish());
            out.push(plain);
            rest = &rest[2..];
        }
        let run = memchr::memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
        if run > 0 {
            out.extend(carry.finish());
            out.push_str(&rest[..run]);
            rest = &rest[run..];
        }
    }
    Cow::Owned(out)
}

fn push_unit(unit: u16, carry: &mut SurrogateCarry, out: &mut String) {
    match (carry.high.take(), unit) {
        (Some(high), 0xDC00..=0xDFFF) => {
            let code = 0x10000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(unit) - 0xDC00);
            out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        (before, _) => {
            if before.is_some() {
                out.push(carry.replacement());
            }
            match unit {
                0xD800..=0xDBFF => carry.high = Some(unit),
                0xDC00..=0xDFFF => out.push(carry.replacement()),
                _ => out.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fragments: &[&str], expect: &str) {
        let mut carry = SurrogateCarry::default();
        let mut out = String::new();
        for fragment in fragments {
            out.push_str(&decode_string(fragment, &mut carry));
        }
        out.extend(carry.finish());
        assert_eq!(out, expect, "{fragments:?}");
    }

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (text, expected) in [
            (r#"{"a":"x"}"#, None),
            (r#"{"a":"\ud83d\ude00"}"#, None),
            (r#"{"a":"\\ud83d"}"#, None),
            (r#"{"a":"\n\u00e9"}"#, None),
            (r#"{"a":"\ud83d"}"#, Some(r#"{"a":"\ufffd"}"#)),
            (r#"{"a":"\uDE00\uD83D"}"#, Some(r#"{"a":"\ufffd\ufffd"}"#)),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, Some(r#"{"a":"\ufffd\ud83d\ude00"}"#)),
            (r#"{"a":"\\\ud83dx"}"#, Some(r#"{"a":"\\\ufffdx"}"#)),
            (r#"{"a":"\ud8"#, None),
            (r#"{"a":"\"#, None),
        ] {
            let replaced = replace_lone_surrogates(text.as_bytes());
            assert_eq!(replaced.as_deref(), expected.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn escapes_and_surrogates_are_decoded() {
        check(&[r"plain"], "plain");
        check(&[r#"a\"b\\c\/\n\t\r\b\f"#], "a\"b\\c/\n\t\r\u{8}\u{c}");
        check(&[r"\u4f60\u597d"], "你好");
        check(&[r"\ud83d\ude00"], "😀");
        check(&[r"x\ud83d", r"\ude00y"], "x😀y");
        check(&[r"\ud83d", "", r"\ude00"], "😀");
        check(&[r"\ud83d", "z"], "\u{FFFD}z");
        check(&[r"\ud83d"], "\u{FFFD}");
        check(&[r"\ude00"], "\u{FFFD}");
        check(&[r"\ud83d\n"], "\u{FFFD}\n");
        check(&[r"\ud83d\ud83d\ude00"], "\u{FFFD}😀");
    }
}
