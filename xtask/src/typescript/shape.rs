//! Schemas of JSON (draft 2020-12, as OpenAPI 3.1 has them) as types. What a type cannot say (lengths, patterns, ranges) is left
//! to the server; what a schema says and this does not know makes the type wider, never narrower.

use super::name::{self, SchemaNames};
use super::text::{self, TsField, TsType};
use anyhow::Result;
use serde_json::{Map, Value};

/// A named type, with its comment.
pub(crate) fn declaration(name: &str, schema: &Value, names: &SchemaNames) -> Result<String> {
    Ok(text::declaration(name, description_of(schema), &type_of(schema, names)?))
}

pub(crate) fn description_of(schema: &Value) -> Option<&str> {
    schema["description"].as_str().filter(|text| !text.trim().is_empty())
}

/// The type of what a schema takes.
pub(crate) fn type_of(schema: &Value, names: &SchemaNames) -> Result<TsType> {
    let object = match schema {
        Value::Bool(false) => return Ok(TsType::word("never")),
        Value::Object(object) => object,
        _ => return Ok(TsType::word("unknown")),
    };
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        return Ok(TsType::word(names.of_reference(reference)?));
    }
    if let Some(value) = object.get("const") {
        return Ok(literal(value));
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array) {
        return Ok(TsType::union(values.iter().map(literal)));
    }
    let mut parts = Vec::new();
    for key in ["oneOf", "anyOf"] {
        if let Some(choices) = object.get(key).and_then(Value::as_array) {
            let choices = choices.iter().map(|one| type_of(one, names)).collect::<Result<Vec<_>>>()?;
            parts.push(TsType::union(choices));
        }
    }
    for one in object.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        parts.push(type_of(one, names)?);
    }
    // Beside other words, `type: object` alone says nothing that they do not.
    if parts.is_empty() || has_shape(object) {
        parts.push(plain(object, names)?);
    }
    Ok(TsType::intersection(parts))
}

fn has_shape(object: &Map<String, Value>) -> bool {
    ["properties", "items", "prefixItems"].iter().any(|key| object.contains_key(*key))
}

/// By `type`, or by what gives it away.
fn plain(object: &Map<String, Value>, names: &SchemaNames) -> Result<TsType> {
    let kinds: Vec<&str> = match object.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if ["properties", "additionalProperties", "required"]
            .iter()
            .any(|key| object.contains_key(*key)) =>
        {
            vec!["object"]
        }
        _ if has_shape(object) => vec!["array"],
        _ => return Ok(TsType::word("unknown")),
    };
    let types = kinds.into_iter().map(|kind| {
        Ok(match kind {
            "string" if object.get("format").is_some_and(|format| format == "binary") => TsType::word("Blob"),
            "string" => TsType::word("string"),
            "integer" | "number" => TsType::word("number"),
            "boolean" => TsType::word("boolean"),
            "null" => TsType::word("null"),
            "array" => list(object, names)?,
            "object" => fields(object, names)?,
            _ => TsType::word("unknown"),
        })
    });
    Ok(TsType::union(types.collect::<Result<Vec<_>>>()?))
}

fn list(object: &Map<String, Value>, names: &SchemaNames) -> Result<TsType> {
    let item = object.get("items").map(|item| type_of(item, names)).transpose()?;
    match object.get("prefixItems").and_then(Value::as_array) {
        Some(first) => {
            let first = first.iter().map(|one| type_of(one, names)).collect::<Result<Vec<_>>>()?;
            let rest = item.unwrap_or(TsType::word("unknown"));
            let rest = (rest != TsType::word("never")).then(|| Box::new(rest));
            Ok(TsType::Tuple(first, rest))
        }
        None => Ok(TsType::List(Box::new(item.unwrap_or(TsType::word("unknown"))))),
    }
}

fn fields(object: &Map<String, Value>, names: &SchemaNames) -> Result<TsType> {
    let required: Vec<&str> = object
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let none = Map::new();
    let properties = object.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let mut fields = Vec::new();
    for (name, schema) in properties {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        fields.push(TsField {
            name: format!("{}{mark}", name::field(name)),
            comment: description_of(schema).map(str::to_owned),
            ty: type_of(schema, names)?,
        });
    }
    // What must be there and is not described is anything.
    for name in required.iter().filter(|name| !properties.contains_key(**name)) {
        fields.push(TsField { name: name::field(name), comment: None, ty: TsType::word("unknown") });
    }
    let more = object.get("additionalProperties");
    match (more, fields.is_empty()) {
        (Some(Value::Bool(false)), _) => Ok(TsType::Fields(fields)),
        (None, true) | (Some(Value::Bool(true)), true) => {
            Ok(TsType::Record(Box::new(TsType::word("unknown"))))
        }
        (Some(schema), true) => Ok(TsType::Record(Box::new(type_of(schema, names)?))),
        (None, false) => Ok(TsType::Fields(fields)),
        (Some(schema), false) => {
            // An index holds for the named fields, too, so it can only be as wide as all of them.
            let about = description_of(schema).map(str::to_owned);
            fields.push(TsField {
                name: "[name: string]".to_owned(),
                comment: about,
                ty: TsType::word("unknown"),
            });
            Ok(TsType::Fields(fields))
        }
    }
}

/// A value as the type that only it has.
fn literal(value: &Value) -> TsType {
    match value {
        Value::String(text) => TsType::word(name::literal(text)),
        Value::Array(items) => TsType::Tuple(items.iter().map(literal).collect(), None),
        Value::Object(object) => TsType::Fields(
            object
                .iter()
                .map(|(name, value)| TsField { name: name::field(name), comment: None, ty: literal(value) })
                .collect(),
        ),
        value => TsType::word(value.to_string()),
    }
}
