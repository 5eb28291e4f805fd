//! One line about arguments or output, for a folded card.

use serde_json::Value;

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

/// The first non-empty line, cut.
pub(crate) fn of_text(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_short_line() {
        let table = [
            (json!({"city": "北京", "days": 3}), "city: 北京, days: 3".to_owned()),
            (json!({"a": [1, 2], "b": {"c": 1}}), "a: [2], b: {…}".to_owned()),
            (json!({}), String::new()),
            (json!("free text\nmore"), "free text".to_owned()),
            (json!({"t": "长".repeat(200)}), format!("t: {}…", "长".repeat(77))),
        ];
        for (value, line) in table {
            assert_eq!(of_value(&value), line);
        }
    }
}
