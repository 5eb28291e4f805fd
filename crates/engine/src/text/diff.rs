//! Changes of a person to arguments: a small list of JSON pointers.

use serde_json::{Map, Value};
use throughline_wire::display_escape;

/// Most changes that are listed; more of them are one change of the whole.
const CHANGES_MAX: usize = 64;

/// `[{path, from, to, text}]` with JSON pointers; `from` or `to` is left out where there was or is nothing. Lists of another
/// length are one change. `text` is the change for people: nothing in it is invisible.
pub(crate) fn changes(from: &Value, to: &Value) -> Value {
    let mut list = Vec::new();
    compare("", Some(from), Some(to), &mut list);
    if list.len() > CHANGES_MAX {
        list = vec![change("", Some(from), Some(to))];
    }
    Value::Array(list)
}

fn compare(path: &str, from: Option<&Value>, to: Option<&Value>, list: &mut Vec<Value>) {
    if from == to || list.len() > CHANGES_MAX {
        return;
    }
    match (from, to) {
        (Some(Value::Object(from)), Some(Value::Object(to))) => {
            let added = to.keys().filter(|key| !from.contains_key(*key));
            for key in from.keys().chain(added) {
                let child_path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                compare(&child_path, from.get(key), to.get(key), list);
            }
        }
        (Some(Value::Array(from)), Some(Value::Array(to))) if from.len() == to.len() => {
            for (at, (from, to)) in from.iter().zip(to).enumerate() {
                compare(&format!("{path}/{at}"), Some(from), Some(to), list);
            }
        }
        (from, to) => list.push(change(path, from, to)),
    }
}

fn change(path: &str, from: Option<&Value>, to: Option<&Value>) -> Value {
    let mut change = Map::from_iter([("path".to_owned(), path.into())]);
    let sides = [("from", from), ("to", to)];
    change.extend(sides.into_iter().filter_map(|(side, value)| Some((side.to_owned(), value?.clone()))));
    let values = match (from.map(display_escape::json), to.map(display_escape::json)) {
        (Some(from), Some(to)) => format!("{from} → {to}"),
        (None, Some(to)) => format!("{to}, added"),
        (Some(from), None) => format!("{from}, removed"),
        (None, None) => String::new(),
    };
    let text =
        if path.is_empty() { values } else { format!("{}: {values}", display_escape::escape_once(path)) };
    change.insert("text".to_owned(), text.into());
    Value::Object(change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn diff_lists_only_changed_paths() {
        let table = [
            (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), json!([])),
            (
                json!({"a": 1, "b": {"c/d": "x"}, "gone": 0}),
                json!({"a": 2, "b": {"c/d": "y"}, "new": null}),
                json!([
                    {"path": "/a", "from": 1, "to": 2, "text": "/a: 1 → 2"},
                    {"path": "/b/c~1d", "from": "x", "to": "y", "text": "/b/c~1d: \"x\" → \"y\""},
                    {"path": "/gone", "from": 0, "text": "/gone: 0, removed"},
                    {"path": "/new", "to": null, "text": "/new: null, added"},
                ]),
            ),
            (
                json!({"l": [1, 2]}),
                json!({"l": [1, 3]}),
                json!([{"path": "/l/1", "from": 2, "to": 3, "text": "/l/1: 2 → 3"}]),
            ),
            (
                json!({"l": [1]}),
                json!({"l": [1, 3]}),
                json!([{"path": "/l", "from": [1], "to": [1, 3], "text": "/l: [1] → [1,3]"}]),
            ),
            (
                json!("ls"),
                json!("ls -l"),
                json!([{"path": "", "from": "ls", "to": "ls -l", "text": "\"ls\" → \"ls -l\""}]),
            ),
            (
                json!({"when": "x"}),
                json!({"when": "\u{202e}x"}),
                json!([{"path": "/when", "from": "x", "to": "\u{202e}x", "text": "/when: \"x\" → \"\\u202ex\""}]),
            ),
        ];
        for (from, to, expected) in table {
            assert_eq!(changes(&from, &to), expected, "{from} {to}");
        }
        let many = |value: i32| Value::from_iter((0..CHANGES_MAX + 1).map(|at| (at.to_string(), value)));
        assert_eq!(changes(&many(1), &many(2)).as_array().unwrap().len(), 1);
    }
}
