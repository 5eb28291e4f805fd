//! JSON Schema as Gemini takes it in `parametersJsonSchema`.
//!
//! The older field `parameters` is an OpenAPI subset that refuses `$ref`, `additionalProperties`, `oneOf` and more, so
//! every schema would lose rules; `parametersJsonSchema` takes JSON Schema itself, of which it does not know `const`
//! and wants nothing next to a `$ref`.

use serde_json::{Map, Value, json};

/// The schema of a function's arguments, or none if it has no arguments: an object without properties is refused.
pub(super) fn adapt(schema: &Value) -> Option<Value> {
    let takes_something =
        ["properties", "additionalProperties", "anyOf", "oneOf", "allOf", "$ref", "patternProperties"]
            .iter()
            .any(|key| match schema.get(key) {
                None | Some(Value::Bool(false)) => false,
                Some(Value::Object(members)) => !members.is_empty(),
                Some(_) => true,
            });
    takes_something.then(|| subschema(schema))
}

fn subschema(schema: &Value) -> Value {
    let Value::Object(members) = schema else {
        // `true` allows anything, which an empty schema says as well.
        return json!({});
    };
    let mut adapted = Map::new();
    for (key, value) in members {
        match (key.as_str(), value) {
            ("$schema", _) => {}
            ("const", value) => drop(adapted.insert("enum".to_owned(), json!([value]))),
            // Schemas by name.
            ("properties" | "patternProperties" | "$defs" | "definitions", Value::Object(named)) => {
                let named: Map<_, _> =
                    named.iter().map(|(name, schema)| (name.clone(), subschema(schema))).collect();
                adapted.insert(key.clone(), named.into());
            }
            // Lists of schemas.
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                adapted.insert(key.clone(), schemas.iter().map(subschema).collect());
            }
            ("items" | "additionalProperties" | "not" | "contains", Value::Object(_)) => {
                adapted.insert(key.clone(), subschema(value));
            }
            _ => drop(adapted.insert(key.clone(), value.clone())),
        }
    }
    let has_siblings = adapted.keys().any(|key| !key.starts_with('$'));
    if has_siblings && let Some(reference) = adapted.remove("$ref") {
        // The description that belongs to the place stays there.
        adapted.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
    }
    Value::Object(adapted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expect: Option<Value>) {
        assert_eq!(adapt(&schema), expect, "{schema}");
    }

    #[test]
    fn schemas_of_functions() {
        check(json!({"type": "object"}), None);
        check(json!({"type": "object", "properties": {}, "additionalProperties": false}), None);
        let plain = json!({"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}, "required": ["city"],
            "additionalProperties": false});
        check(plain.clone(), Some(plain));
        check(
            json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "unit": {"$ref": "#/$defs/Unit", "description": "of the answer"},
                    "kind": {"const": "daily"},
                    "const": {"type": "array", "items": {"const": 1}},
                    "any": true,
                },
                "$defs": {"Unit": {"oneOf": [{"const": "C"}, {"const": "F"}]}},
            }),
            Some(json!({
                "type": "object",
                "properties": {
                    "unit": {"description": "of the answer", "anyOf": [{"$ref": "#/$defs/Unit"}]},
                    "kind": {"enum": ["daily"]},
                    "const": {"type": "array", "items": {"enum": [1]}},
                    "any": {},
                },
                "$defs": {"Unit": {"oneOf": [{"enum": ["C"]}, {"enum": ["F"]}]}},
            })),
        );
    }
}
