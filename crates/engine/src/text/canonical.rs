//! One text and one hash for arguments that mean the same.

use serde_json::Value;
use std::fmt::Write;
use throughline_wire::CallArguments;

/// Compact JSON with the members of every object in order of their keys.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (i, (key, value)) in members.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                let _ = write!(out, "{}", Value::String(key.clone()));
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

/// FNV-1a over several texts, each closed by a separator so that `("a", "bc")` and `("ab", "c")` differ.
pub(crate) fn hash(texts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for text in texts {
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// BLAKE3, in hex, of arguments that mean the same: what an answer is given for, and bound to. Numbers that a value may
/// have rounded are distinguished by their text.
pub(crate) fn arguments_hash(arguments: &CallArguments) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(text(&arguments.value).as_bytes());
    if has_fractions(&arguments.value) {
        hasher.update(&[0xff]).update(arguments.text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// BLAKE3 hash of a value's JSON text, in hex.
pub(crate) fn hash_of(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_vec(value).unwrap_or_default();
    blake3::hash(&json).to_hex().to_string()
}

/// True if a number is stored as a floating point number, as too large ones are.
fn has_fractions(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fractions),
        Value::Object(members) => members.values().any(has_fractions),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// A pseudo-random number: SplitMix64 of a nonce and a counter.
pub(crate) fn pseudo_random(nonce: u64, counter: u64) -> u64 {
    let mut z = nonce.wrapping_add(counter.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_text_ignores_key_order_and_whitespace() {
        let a: Value = serde_json::from_str(r#"{"b": {"y":1,"x":[2,"\""]}, "a": null}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"a":null,"b":{"x":[2,"\""],"y":1}}"#).unwrap();
        assert_eq!(text(&a), text(&b));
        assert_eq!(text(&a), r#"{"a":null,"b":{"x":[2,"\""],"y":1}}"#);
        assert_ne!(hash(&["a", "bc"]), hash(&["ab", "c"]));
    }
}
