//! Body fields that a user set by hand.

use serde_json::{Map, Value};

/// Merges `extra` into a body: objects member by member (`generationConfig`, `options`), so that one field of them can
/// be set and the others stay; `null` takes a field out (`{"include": null}`); anything else replaces.
pub(crate) fn merge(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        match (body.get_mut(key), value) {
            (Some(Value::Object(present)), Value::Object(value)) => merge(present, value),
            (_, Value::Null) => drop(body.shift_remove(key)),
            _ => drop(body.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_merge_and_null_removes() {
        let mut body = json!({"a": {"x": 1, "y": 2}, "b": 1, "c": [1]});
        let extra = json!({"a": {"y": 3, "z": 4}, "b": null, "c": [2], "d": {"e": 5}});
        merge(body.as_object_mut().unwrap(), extra.as_object().unwrap());
        assert_eq!(body, json!({"a": {"x": 1, "y": 3, "z": 4}, "c": [2], "d": {"e": 5}}));
    }
}
