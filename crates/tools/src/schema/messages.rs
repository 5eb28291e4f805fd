//! The words of violations: the same from both validators.

use serde_json::Value;

/// Most characters of a value, a list of choices or a pattern that a message quotes.
pub(super) const QUOTE_CHARS_MAX: usize = 80;

/// Message about an unknown property, with the known ones.
pub(super) fn unknown_property(known: &[String]) -> String {
    if known.is_empty() {
        return "unknown property".to_owned();
    }
    format!("unknown property; known: {}", truncate_chars(&known.join(", "), QUOTE_CHARS_MAX * 2))
}

/// A property that must be there, with its `type`.
pub(super) fn missing(types: Option<&Value>) -> String {
    let expected = match types {
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ => return "missing, but required".to_owned(),
    };
    format!("missing, expected {expected}")
}

pub(super) fn choice_list(options: &Value) -> String {
    let list: Vec<String> = options.as_array().into_iter().flatten().map(quote_value).collect();
    truncate_chars(&list.join(", "), QUOTE_CHARS_MAX * 3)
}

pub(super) fn describe_value(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "an empty object".to_owned(),
        Value::Object(_) => format!("an object ({})", quote_value(value)),
        Value::Array(items) if items.is_empty() => "an empty array".to_owned(),
        Value::Array(_) => format!("an array ({})", quote_value(value)),
        _ => quote_value(value),
    }
}

#[cfg(feature = "json-schema")]
pub(super) fn value_length(value: &Value) -> String {
    match value {
        Value::String(text) => text.chars().count().to_string(),
        Value::Array(items) => items.len().to_string(),
        Value::Object(fields) => fields.len().to_string(),
        other => quote_value(other),
    }
}

pub(super) fn pluralize(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

pub(super) fn quote_value(value: &Value) -> String {
    // Only as much is written out as can be shown: a wrong argument may be megabytes long.
    if let Value::String(text) = value {
        let start: String = text.chars().take(QUOTE_CHARS_MAX + 1).collect();
        return truncate_chars(&Value::String(start).to_string(), QUOTE_CHARS_MAX);
    }
    truncate_chars(&value.to_string(), QUOTE_CHARS_MAX)
}

/// A child's JSON Pointer (RFC 6901 §3).
pub(super) fn child_pointer(parent: &str, name: &str) -> String {
    format!("{parent}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// At most `chars_max` characters, the cut marked.
pub(crate) fn truncate_chars(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}…", &text[..cut]),
    }
}
