//! One line about arguments or output, for a folded card. Nothing in it is invisible.

use serde_json::Value;
use throughline_wire::display_escape;

/// Longest summary, in characters.
const CHARS_MAX: usize = 80;

/// `city: 北京, days: 3`.
pub(crate) fn of_value(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut line = String::new();
            for (key, value) in members {
                if !line.is_empty() {
                    line.push_str(", ");
                }
                line.push_str(key);
                line.push_str(": ");
                match value {
                    Value::String(text) => line.extend(text.chars().take(CHARS_MAX + 1)),
                    Value::Array(items) => line.push_str(&format!("[{}]", items.len())),
                    Value::Object(_) => line.push_str("{…}"),
                    other => line.push_str(&other.to_string()),
                }
                if line.len() > CHARS_MAX * 4 {
                    break;
                }
            }
            of_text(&line)
        }
        Value::String(text) => of_text(text),
        other => of_text(&other.to_string()),
    }
}

/// The first non-empty line, cut. Where hidden characters make it longer, more of it is cut, and none of them in two.
pub(crate) fn of_text(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut chars = CHARS_MAX;
    loop {
        let end = line.char_indices().nth(chars).map(|(at, _)| at);
        let shown = display_escape::escape_once(&line[..end.unwrap_or(line.len())]);
        let over = shown.chars().count().saturating_sub(CHARS_MAX);
        if over == 0 {
            return format!("{shown}{}", if end.is_some() { "…" } else { "" });
        }
        // A character becomes twelve at most.
        chars = chars.min(line.chars().count()) - over.div_ceil(12).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn summary_is_one_short_escaped_line() {
        let table = [
            (json!({"city": "北京", "days": 3}), "city: 北京, days: 3".to_owned()),
            (json!({"a": [1, 2], "b": {"c": 1}}), "a: [2], b: {…}".to_owned()),
            (json!({}), String::new()),
            (json!("free text\nmore"), "free text".to_owned()),
            (json!({"t": "长".repeat(200)}), format!("t: {}…", "长".repeat(77))),
            (json!({"when": "\u{202e}2026-11-24"}), "when: \\u202e2026-11-24".into()),
            (json!({"when\u{200b}": "\\u202e"}), "when\\u200b: \\\\u202e".into()),
            (json!("\u{1b}[2J\rx"), "\\u001b[2J\\u000dx".into()),
            (json!("\u{e0041}".repeat(90)), format!("{}…", "\\udb40\\udc41".repeat(6))),
            (json!("\u{ad}".repeat(13) + "ab"), format!("{}ab", "\\u00ad".repeat(13))),
            (json!("\u{ad}".repeat(13) + "abc"), format!("{}ab…", "\\u00ad".repeat(13))),
        ];
        for (value, line) in table {
            assert_eq!(of_value(&value), line);
        }
    }
}
