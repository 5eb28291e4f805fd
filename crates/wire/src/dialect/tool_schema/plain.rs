//! The least that every server of tools understands: typed values, objects and lists of them, lists of texts, `anyOf`.
//!
//! For servers with their own flavor. Moonshot refuses a schema without `type`, `type` next to `anyOf` or
//! `$ref`, and two `if`s that meet (MoonshotAI/kimi-cli#1595, MoonshotAI/kimi-code#2661,
//! earendil-works/pi#5822). llama.cpp makes a grammar of every schema and refuses patterns without anchors,
//! large bounds, and schemas without a type (ggml-org/llama.cpp#26930, ggml-org/llama.cpp#14227,
//! unslothai/unsloth#7512); LM Studio and Ollama's models run on it.

use super::copies::CopyBudget;
use super::{SCHEMA_DEPTH_MAX, references, top};
use serde_json::{Map, Value, json};

/// Most schemas that are written for one tool; what comes after may be any object.
const SCHEMAS_WRITTEN_MAX: usize = 1_000;
/// Keywords that say as much anywhere as here.
const PRESERVED: [&str; 3] = ["description", "required", "default"];
/// Keywords next to a union that apply to each of its alternatives.
const BESIDE_UNION: [&str; 5] = ["type", "properties", "items", "enum", "required"];

/// The plain form of a schema that [`super::standard`] has made.
pub(in crate::dialect) fn plain(schema: &Map<String, Value>) -> Map<String, Value> {
    let none = Map::new();
    let definitions = schema.get("$defs").and_then(Value::as_object).unwrap_or(&none);
    let mut writer = PlainWriter { definitions, open: Vec::new(), written: 0, copies: CopyBudget::new() };
    let mut plain = writer.members(schema);
    plain.insert("type".to_owned(), "object".into());
    plain.entry("properties").or_insert_with(|| json!({}));
    plain
}

struct PlainWriter<'a> {
    definitions: &'a Map<String, Value>,
    /// Definitions that are being written: one inside itself may be any object.
    open: Vec<String>,
    /// Schemas written so far.
    written: usize,
    copies: CopyBudget,
}

impl PlainWriter<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        self.written += 1;
        let Value::Object(members) = schema else { return anything(depth) };
        if depth > SCHEMA_DEPTH_MAX || self.written > SCHEMAS_WRITTEN_MAX {
            return json!({ "type": "object", "properties": {} });
        }
        self.value(members, depth).into()
    }

    fn members(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        self.typed(schema, "object", 0)
    }

    fn value(&mut self, schema: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        if let Some(name) = references::name_of(schema) {
            return self.referenced(schema, &name, depth);
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(alternatives)) = schema.get(keyword) {
                return self.alternatives(schema, alternatives.iter(), depth);
            }
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            let is_object = |part: &Value| part.get("properties").is_some() || part.get("$ref").is_some();
            let mut merged = schema.clone();
            if schema.contains_key("properties") || parts.iter().any(is_object) {
                top::flatten_object(&mut merged, self.definitions, &mut self.copies);
            } else {
                merged.shift_remove("allOf");
                for part in parts.iter().filter_map(Value::as_object) {
                    part.iter().for_each(|(keyword, value)| {
                        merged.entry(keyword).or_insert_with(|| value.clone());
                    });
                }
            }
            merged.shift_remove("allOf");
            return self.value(&merged, depth);
        }
        match types_of(schema).as_slice() {
            [] => with_description(schema, anything(depth)),
            [one] => self.typed(schema, one, depth),
            several => {
                let typed = several.iter().map(|one| self.typed(schema, one, depth));
                let typed = typed.map(|mut typed| {
                    typed.shift_remove("description");
                    Value::Object(typed)
                });
                let alternatives: Vec<Value> = typed.collect();
                with_description(schema, json!({ "anyOf": alternatives }))
            }
        }
    }

    fn referenced(&mut self, schema: &Map<String, Value>, name: &str, depth: usize) -> Map<String, Value> {
        let definition = self.definitions.get(name).and_then(Value::as_object);
        let definition = definition.filter(|_| !self.open.iter().any(|open| open == name));
        let Some(definition) = definition.filter(|definition| self.copies.take_members(definition)) else {
            return with_description(schema, json!({ "type": "object", "properties": {} }));
        };
        self.open.push(name.to_owned());
        let written = self.schema(&Value::Object(definition.clone()), depth + 1);
        self.open.pop();
        with_description(schema, written)
    }

    fn alternatives<'v>(
        &mut self,
        schema: &Map<String, Value>,
        alternatives: impl Iterator<Item = &'v Value>,
        depth: usize,
    ) -> Map<String, Value> {
        let mut written: Vec<Value> = Vec::new();
        for alternative in alternatives {
            // Members next to the union apply to each alternative.
            let mut members = alternative.as_object().cloned().unwrap_or_default();
            for keyword in BESIDE_UNION {
                if let Some(value) = schema.get(keyword)
                    && !members.contains_key(keyword)
                    && self.copies.take(value)
                {
                    members.insert(keyword.to_owned(), value.clone());
                }
            }
            match self.schema(&Value::Object(members), depth + 1) {
                // A union in a union.
                Value::Object(mut union) if union.contains_key("anyOf") => {
                    if let Some(Value::Array(inner)) = union.shift_remove("anyOf") {
                        written.extend(inner);
                    }
                }
                one => written.push(one),
            }
        }
        let mut different: Vec<Value> = Vec::new();
        written.into_iter().for_each(|one| {
            if !different.contains(&one) {
                different.push(one);
            }
        });
        match different.len() {
            1 => with_description(schema, different.remove(0)),
            _ => with_description(schema, json!({ "anyOf": different })),
        }
    }

    /// A schema of one type.
    fn typed(&mut self, schema: &Map<String, Value>, name: &str, depth: usize) -> Map<String, Value> {
        let mut typed = Map::new();
        typed.insert("type".to_owned(), name.into());
        for keyword in PRESERVED {
            let is_here = match keyword {
                "required" => name == "object",
                "default" => schema.get("default").is_some_and(|value| is_of_type(value, name)),
                _ => true,
            };
            if let Some(value) = schema.get(keyword).filter(|_| is_here) {
                typed.insert(keyword.to_owned(), value.clone());
            }
        }
        let values = match (schema.get("const"), schema.get("enum")) {
            (Some(value), _) => vec![value.clone()],
            (None, Some(Value::Array(values))) => values.clone(),
            _ => Vec::new(),
        };
        let values: Vec<Value> = values.into_iter().filter(|value| is_of_type(value, name)).collect();
        if !values.is_empty() {
            typed.insert("enum".to_owned(), values.into());
        }
        match name {
            "object" => {
                let properties = schema.get("properties").and_then(Value::as_object);
                let properties: Map<String, Value> = properties
                    .into_iter()
                    .flatten()
                    .map(|(name, schema)| (name.clone(), self.schema(schema, depth + 1)))
                    .collect();
                typed.insert("properties".to_owned(), properties.into());
                if let Some(closed @ Value::Bool(_)) = schema.get("additionalProperties") {
                    typed.insert("additionalProperties".to_owned(), closed.clone());
                }
            }
            "array" => {
                let items = match (schema.get("prefixItems"), schema.get("items")) {
                    (Some(Value::Array(prefix)), _) => {
                        self.alternatives(&Map::new(), prefix.iter(), depth).into()
                    }
                    (_, Some(items)) => self.schema(items, depth + 1),
                    _ => anything(depth + 1),
                };
                typed.insert("items".to_owned(), items);
            }
            _ => {}
        }
        typed
    }
}

/// Types of a schema: those that it names, else those implied by its other members.
fn types_of(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(one)) => return vec![one],
        Some(Value::Array(several)) => return several.iter().filter_map(Value::as_str).collect(),
        _ => {}
    }
    if schema.contains_key("properties") || schema.contains_key("required") {
        return vec!["object"];
    }
    if schema.contains_key("items") || schema.contains_key("prefixItems") {
        return vec!["array"];
    }
    if schema.contains_key("pattern") || schema.contains_key("format") {
        return vec!["string"];
    }
    let values = match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => vec![value],
        (None, Some(Value::Array(values))) => values.iter().collect(),
        _ => Vec::new(),
    };
    let mut types = Vec::new();
    for value in values {
        let name = type_of(value);
        if !types.contains(&name) {
            types.push(name);
        }
    }
    types
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_of_type(value: &Value, name: &str) -> bool {
    type_of(value) == name || (name == "integer" && value.is_i64() | value.is_u64())
}

/// Any value, with a type for each form of it.
fn anything(depth: usize) -> Value {
    let mut forms =
        vec![json!({ "type": "string" }), json!({ "type": "number" }), json!({ "type": "boolean" })];
    forms.push(json!({ "type": "object", "properties": {} }));
    if depth < SCHEMA_DEPTH_MAX {
        let items = json!({ "anyOf": forms });
        forms.push(json!({ "type": "array", "items": items }));
    }
    json!({ "anyOf": forms })
}

/// The description of the referring schema comes before that of the referenced one.
fn with_description(schema: &Map<String, Value>, written: Value) -> Map<String, Value> {
    let Value::Object(mut written) = written else { return Map::new() };
    if let Some(description) = schema.get("description") {
        written.insert("description".to_owned(), description.clone());
    }
    written
}
