//! JSON Schema as Gemini takes it in `parametersJsonSchema`.
//!
//! The older field `parameters` is an OpenAPI subset that refuses `$ref`, `additionalProperties`, `oneOf` and more, so
//! every schema would lose rules; `parametersJsonSchema` takes JSON Schema itself, of which it does not know `const`
//! and wants nothing next to a `$ref`. Fixed values are texts and numbers, and references that lead to themselves are refused
//! where a property is required (<https://ai.google.dev/gemini-api/docs/structured-output#json-schema>).

use crate::dialect::tool_schema::{for_each_subschema, plain, references};
use serde_json::{Value, json};

/// Largest sum of `maxItems` in one tool. About 960 are too many for the API, which does not say why it refuses them
/// (googleapis/python-genai#2170).
const MAX_ITEMS_SUM: u64 = 500;

/// The schema of a function's arguments, or none if it has no arguments: an object without properties is refused.
pub(crate) fn adapt(schema: &Value) -> Option<Value> {
    let takes_something =
        ["properties", "additionalProperties", "anyOf", "oneOf", "allOf", "$ref", "patternProperties"]
            .iter()
            .any(|key| match schema.get(key) {
                None | Some(Value::Bool(false)) => false,
                Some(Value::Object(members)) => !members.is_empty(),
                Some(_) => true,
            });
    let members = schema.as_object().filter(|_| takes_something)?;
    let is_recursive = !references::recursive_names(members).is_empty();
    let mut adapted = Value::Object(if is_recursive { plain::plain(members) } else { members.clone() });
    adapt_schema(&mut adapted);
    if sum_of_max_items(&adapted) > MAX_ITEMS_SUM {
        remove_max_items(&mut adapted);
    }
    Some(adapted)
}

fn sum_of_max_items(schema: &Value) -> u64 {
    let inside = match schema {
        Value::Array(items) => items.iter().map(sum_of_max_items).fold(0, u64::saturating_add),
        Value::Object(members) => members.values().map(sum_of_max_items).fold(0, u64::saturating_add),
        _ => 0,
    };
    inside.saturating_add(schema.get("maxItems").and_then(Value::as_u64).unwrap_or(0))
}

/// Removes `maxItems` from every schema; a property with that name stays, since its value is not a number.
fn remove_max_items(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(remove_max_items),
        Value::Object(members) => {
            if members.get("maxItems").is_some_and(Value::is_number) {
                members.shift_remove("maxItems");
            }
            members.values_mut().for_each(remove_max_items);
        }
        _ => {}
    }
}

/// Fixed values of other types are refused.
fn is_taken(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

fn adapt_schema(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if let Some(value) = members.shift_remove("const") {
        members.insert("enum".to_owned(), json!([value]));
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(is_taken);
        if values.is_empty() {
            members.shift_remove("enum");
        }
    }
    for_each_subschema(members, &mut adapt_schema);
    let has_siblings = members.keys().any(|key| !key.starts_with('$'));
    if has_siblings && let Some(reference) = members.shift_remove("$ref") {
        // The description of the referring schema stays there.
        members.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expect: Option<Value>) {
        assert_eq!(adapt(&schema), expect, "{schema}");
    }

    #[test]
    fn function_schemas_are_rewritten_for_gemini() {
        check(json!({"type": "object"}), None);
        check(json!({"type": "object", "properties": {}, "additionalProperties": false}), None);
        let plain = json!({"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}, "required": ["city"],
            "additionalProperties": false});
        check(plain.clone(), Some(plain));
        check(
            json!({
                "type": "object",
                "properties": {
                    "unit": {"$ref": "#/$defs/Unit", "description": "of the answer"},
                    "kind": {"const": "daily"},
                    "const": {"type": "array", "items": {"const": 1}},
                    "flag": {"type": "boolean", "enum": [true]},
                    "if": {"if": {"const": 1}, "then": {"const": null}},
                },
                "$defs": {"Unit": {"oneOf": [{"const": "C"}, {"const": "F"}]}},
            }),
            Some(json!({
                "type": "object",
                "properties": {
                    "unit": {"description": "of the answer", "anyOf": [{"$ref": "#/$defs/Unit"}]},
                    "kind": {"enum": ["daily"]},
                    "const": {"type": "array", "items": {"enum": [1]}},
                    "flag": {"type": "boolean"},
                    "if": {"if": {"enum": [1]}, "then": {}},
                },
                "$defs": {"Unit": {"oneOf": [{"enum": ["C"]}, {"enum": ["F"]}]}},
            })),
        );
    }
}
