//! JSON with lone surrogate escapes, which `serde_json` refuses: each half becomes a private-use character before
//! parsing, and the halves are put together again after all strings have been joined.

use serde_json::Value;

const BASE: u32 = 0xF_0000;

/// Parses JSON; halves of surrogate pairs become private-use characters.
pub fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(&hide(text)).ok()
}

fn hide(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::new();
    let mut at = 0;
    while at < chars.len() {
        if chars[at] == '\\' && chars.get(at + 1) == Some(&'u') {
            let unit = unit_at(&chars, at);
            let paired = unit.is_some_and(|unit| (0xD800..0xDC00).contains(&unit))
                && unit_at(&chars, at + 6).is_some_and(|unit| (0xDC00..0xE000).contains(&unit));
            match unit {
                Some(_) if paired => {
                    out.extend(&chars[at..at + 12]);
                    at += 12;
                    continue;
                }
                Some(unit @ 0xD800..0xE000) => {
                    out.extend(char::from_u32(BASE + unit - 0xD800));
                    at += 6;
                    continue;
                }
                _ => {}
            }
        }
        out.push(chars[at]);
        if chars[at] == '\\' && at + 1 < chars.len() {
            out.push(chars[at + 1]);
            at += 1;
        }
        at += 1;
    }
    out
}

fn unit_at(chars: &[char], at: usize) -> Option<u32> {
    let escape: String = chars.get(at..at + 6)?.iter().collect();
    u32::from_str_radix(escape.strip_prefix("\\u")?, 16).ok()
}

/// Puts halves together; what has no other half becomes U+FFFD.
pub fn join(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    let half = |c: char| (c as u32).checked_sub(BASE).filter(|unit| *unit < 0x800);
    while let Some(c) = chars.next() {
        match (half(c), chars.peek().copied().and_then(half)) {
            (Some(high @ 0..0x400), Some(low @ 0x400..0x800)) => {
                out.extend(char::from_u32(0x1_0000 + (high << 10) + (low - 0x400)));
                chars.next();
            }
            (Some(_), _) => out.push('\u{FFFD}'),
            _ => out.push(c),
        }
    }
    out
}

/// Restores the surrogates in every string of a value.
pub fn join_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(join(&text)),
        Value::Array(items) => items.into_iter().map(join_value).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, value)| (join(&key), join_value(value))).collect()
        }
        other => other,
    }
}
