//! Schemas of JSON (draft 2020-12, as OpenAPI 3.1 has them) as types. What a type cannot say (lengths, patterns, ranges) is left
//! to the server; what a schema says and this does not know makes the type wider, never narrower.

use super::name::{self, Names};
use super::text::{self, Field, Type};
use anyhow::Result;
use serde_json::{Map, Value};

/// A named type, with its comment.
pub fn declaration(name: &str, schema: &Value, names: &Names) -> Result<String> {
    Ok(text::declaration(name, about(schema), &of(schema, names)?))
}

/// What a schema says of itself.
pub fn about(schema: &Value) -> Option<&str> {
    schema["description"].as_str().filter(|text| !text.trim().is_empty())
}

/// The type of what a schema takes.
pub fn of(schema: &Value, names: &Names) -> Result<Type> {
    let object = match schema {
        Value::Bool(false) => return Ok(Type::word("never")),
        Value::Object(object) => object,
        _ => return Ok(Type::word("unknown")),
    };
    if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
        return Ok(Type::word(names.of_reference(reference)?));
    }
    if let Some(value) = object.get("const") {
        return Ok(literal(value));
    }
    if let Some(values) = object.get("enum").and_then(Value::as_array) {
        return Ok(Type::union(values.iter().map(literal)));
    }
    let mut parts = Vec::new();
    for key in ["oneOf", "anyOf"] {
        if let Some(choices) = object.get(key).and_then(Value::as_array) {
            let choices = choices.iter().map(|one| of(one, names)).collect::<Result<Vec<_>>>()?;
            parts.push(Type::union(choices));
        }
    }
    for one in object.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        parts.push(of(one, names)?);
    }
    // Beside other words, `type: object` alone says nothing that they do not.
    if parts.is_empty() || has_shape(object) {
        parts.push(plain(object, names)?);
    }
    Ok(Type::both(parts))
}

fn has_shape(object: &Map<String, Value>) -> bool {
    ["properties", "items", "prefixItems"].iter().any(|key| object.contains_key(*key))
}

/// By `type`, or by what gives it away.
fn plain(object: &Map<String, Value>, names: &Names) -> Result<Type> {
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
        _ => return Ok(Type::word("unknown")),
    };
    let types = kinds.into_iter().map(|kind| {
        Ok(match kind {
            "string" if object.get("format").is_some_and(|format| format == "binary") => Type::word("Blob"),
            "string" => Type::word("string"),
            "integer" | "number" => Type::word("number"),
            "boolean" => Type::word("boolean"),
            "null" => Type::word("null"),
            "array" => list(object, names)?,
            "object" => fields(object, names)?,
            _ => Type::word("unknown"),
        })
    });
    Ok(Type::union(types.collect::<Result<Vec<_>>>()?))
}

fn list(object: &Map<String, Value>, names: &Names) -> Result<Type> {
    let item = object.get("items").map(|item| of(item, names)).transpose()?;
    match object.get("prefixItems").and_then(Value::as_array) {
        Some(first) => {
            let first = first.iter().map(|one| of(one, names)).collect::<Result<Vec<_>>>()?;
            let rest = item.unwrap_or(Type::word("unknown"));
            let rest = (rest != Type::word("never")).then(|| Box::new(rest));
            Ok(Type::Tuple(first, rest))
        }
        None => Ok(Type::List(Box::new(item.unwrap_or(Type::word("unknown"))))),
    }
}

fn fields(object: &Map<String, Value>, names: &Names) -> Result<Type> {
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
        fields.push(Field {
            name: format!("{}{mark}", name::field(name)),
            about: about(schema).map(str::to_owned),
            is: of(schema, names)?,
        });
    }
    // What must be there and is not described is anything.
    for name in required.iter().filter(|name| !properties.contains_key(**name)) {
        fields.push(Field { name: name::field(name), about: None, is: Type::word("unknown") });
    }
    let more = object.get("additionalProperties");
    match (more, fields.is_empty()) {
        (Some(Value::Bool(false)), _) => Ok(Type::Fields(fields)),
        (None, true) | (Some(Value::Bool(true)), true) => Ok(Type::Record(Box::new(Type::word("unknown")))),
        (Some(schema), true) => Ok(Type::Record(Box::new(of(schema, names)?))),
        (None, false) => Ok(Type::Fields(fields)),
        (Some(schema), false) => {
            // An index holds for the named fields, too, so it can only be as wide as all of them.
            let about = about(schema).map(str::to_owned);
            fields.push(Field { name: "[name: string]".to_owned(), about, is: Type::word("unknown") });
            Ok(Type::Fields(fields))
        }
    }
}

/// A value as the type that only it has.
fn literal(value: &Value) -> Type {
    match value {
        Value::String(text) => Type::word(name::literal(text)),
        Value::Array(items) => Type::Tuple(items.iter().map(literal).collect(), None),
        Value::Object(object) => Type::Fields(
            object
                .iter()
                .map(|(name, value)| Field { name: name::field(name), about: None, is: literal(value) })
                .collect(),
        ),
        value => Type::word(value.to_string()),
    }
}
