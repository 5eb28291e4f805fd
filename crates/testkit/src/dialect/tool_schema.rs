//! Schemas of tools, refused as their providers refuse them and in their words.

use crate::dialect::FakeDialect;
use crate::strict_json::{RequestRefusal, RequestResult};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use throughline_tools::CompiledSchema;

/// Sum of `maxItems` in one tool that Gemini takes (googleapis/python-genai#2170).
const GEMINI_MAX_ITEMS_SUM: u64 = 960;
/// Most repetitions of a grammar's rule in llama.cpp.
const LLAMA_CPP_REPETITIONS_MAX: u64 = 2_000;
/// Longest name of an argument at Anthropic, in characters.
const ANTHROPIC_NAME_CHARS_MAX: usize = 64;

/// Rules of a Chat Completions server for the schemas of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolSchemaRule {
    /// Rule of OpenAI.
    #[default]
    Openai,
    /// "Moonshot flavored json schema".
    Moonshot,
    /// Rule of a server that makes a grammar of each schema.
    LlamaCpp,
}

/// Refuses a tool that is refused in every form, by its position among the functions.
pub(crate) fn refuse_always(dialect: FakeDialect, at: usize, name: &str) -> RequestRefusal {
    let message = match dialect {
        FakeDialect::OpenaiChat | FakeDialect::OpenaiResponses => {
            format!("Invalid schema for function '{name}': [] is not of type 'object', 'boolean'.")
        }
        FakeDialect::Anthropic | FakeDialect::BedrockAnthropic => {
            format!(
                "tools.{at}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12"
            )
        }
        FakeDialect::Gemini => {
            format!(
                "* GenerateContentRequest.tools[0].function_declarations[{at}].parameters.required[0]: property is not \
                 defined\n"
            )
        }
        FakeDialect::BedrockConverse => {
            format!(
                "The value at toolConfig.tools.{at}.toolSpec.inputSchema.json.type must be one of the following: object."
            )
        }
        // These name no tool.
        FakeDialect::Ollama => {
            "json: cannot unmarshal array into Go struct field ChatRequest.tools.function.parameters"
                .to_owned()
        }
        FakeDialect::Cohere => "invalid request: invalid type of the parameters of a tool".to_owned(),
    };
    RequestRefusal::new(message)
}

/// OpenAI: `Invalid schema for function 'x': …`.
pub(crate) fn check_openai(name: &str, schema: &Value) -> RequestResult<()> {
    let refuse = |why: String| {
        RequestRefusal::new(format!("Invalid schema for function '{name}': {why}"))
            .code("invalid_function_parameters")
    };
    let refused_at_top = ["oneOf", "anyOf", "allOf", "enum", "not"];
    if schema["type"] != "object" || refused_at_top.iter().any(|keyword| schema.get(keyword).is_some()) {
        return Err(refuse(
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
                .to_owned(),
        ));
    }
    if !schema["properties"].is_object() {
        return Err(refuse("In context=(), object schema missing properties.".to_owned()));
    }
    check_metaschema(schema).map_err(&refuse)?;
    walk(schema, "()", &mut |at, schema| {
        let is_list = has_type(schema, "array");
        if is_list && !schema.get("items").is_some_and(|items| items.is_object() || items.is_boolean()) {
            return Err(refuse(format!("In context={at}, array schema missing items.")));
        }
        Ok(())
    })
}

/// Anthropic: `tools.N.custom.input_schema: …`.
pub(crate) fn check_anthropic(path: &str, schema: &Value) -> RequestResult<()> {
    let refuse = |why: &str| RequestRefusal::new(format!("{path}.custom.input_schema{why}"));
    if ["oneOf", "anyOf", "allOf"].iter().any(|keyword| schema.get(keyword).is_some()) {
        return Err(refuse(": input_schema does not support oneOf, allOf, or anyOf at the top level"));
    }
    if check_metaschema(schema).is_err() {
        return Err(refuse(
            ": JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12).",
        ));
    }
    let is_taken = |name: &String| {
        (1..=ANTHROPIC_NAME_CHARS_MAX).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    if properties.is_some_and(|properties| !properties.keys().all(is_taken)) {
        return Err(refuse(".properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"));
    }
    Ok(())
}

/// Anthropic: the schema of a structured reply.
pub(crate) fn check_anthropic_reply(schema: &Value) -> RequestResult<()> {
    const UNSUPPORTED: [&str; 14] = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "patternProperties",
        "propertyNames",
        "not",
    ];
    let refuse = |why: String| RequestRefusal::new(format!("output_config.format.schema: {why}"));
    check_metaschema(schema).map_err(&refuse)?;
    walk(schema, "", &mut |_, schema| {
        if has_type(schema, "object") && schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Err(refuse(
                "For 'object' type, 'additionalProperties' must be explicitly set to false".to_owned(),
            ));
        }
        match UNSUPPORTED.iter().find(|keyword| schema.contains_key(**keyword)) {
            Some(keyword) => Err(refuse(format!("property '{keyword}' is not supported"))),
            None => Ok(()),
        }
    })?;
    match recursive_reference(schema) {
        Some(name) => Err(refuse(format!("the recursive reference {name} is not supported"))),
        None => Ok(()),
    }
}

/// Gemini, `parametersJsonSchema`.
pub(crate) fn check_gemini(path: &str, schema: &Value) -> RequestResult<()> {
    let refuse = |why: String| RequestRefusal::new(format!("* GenerateContentRequest.{path}: {why}"));
    check_metaschema(schema).map_err(&refuse)?;
    if schema["properties"].as_object().is_some_and(Map::is_empty)
        && schema.as_object().map(Map::len) == Some(2)
    {
        return Err(refuse("parameters.properties: should be non-empty for OBJECT type".to_owned()));
    }
    let mut items = 0_u64;
    walk(schema, "parametersJsonSchema", &mut |at, schema| {
        if schema.contains_key("const") {
            return Err(RequestRefusal::new(format!(
                "Invalid JSON payload received. Unknown name \"const\" at '{path}.{at}': Cannot find field."
            )));
        }
        if schema.contains_key("$ref") && schema.keys().any(|keyword| !keyword.starts_with('$')) {
            return Err(refuse(format!("{at}: a schema with $ref may have no other fields")));
        }
        if has_type(schema, "array") && !schema.contains_key("items") {
            return Err(refuse(format!("{at}.items: missing field.")));
        }
        let mut values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        if let Some(value) = values.find(|value| !value.is_string() && !value.is_number()) {
            return Err(RequestRefusal::new(format!(
                "Invalid value at '{path}.{at}.enum' (TYPE_STRING), {value}"
            )));
        }
        items = items.saturating_add(schema.get("maxItems").and_then(Value::as_u64).unwrap_or(0));
        Ok(())
    })?;
    if items > GEMINI_MAX_ITEMS_SUM {
        return Err(RequestRefusal::new("Request contains an invalid argument."));
    }
    match recursive_reference(schema) {
        Some(name) => Err(refuse(format!("the reference {name} leads to itself in a required property"))),
        None => Ok(()),
    }
}

/// The struct `api.ToolFunctionParameters` of Ollama, and `api.ToolProperty` inside it.
pub(crate) fn check_ollama(schema: &Value) -> RequestResult<()> {
    let of = |field: &str, go: &str, value: &Value| {
        let got = match value {
            Value::Array(_) => "array",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::Object(_) => "object",
            _ => "string",
        };
        Err(RequestRefusal::new(format!(
            "json: cannot unmarshal {got} into Go struct field ChatRequest.tools.function.parameters.{field} of type {go}"
        )))
    };
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !name.is_string() {
            return of("required", "string", name);
        }
    }
    for key in ["properties", "required"] {
        match (key, schema.get(key)) {
            ("properties", Some(value)) if !value.is_object() => {
                return of(key, "map[string]api.ToolProperty", value);
            }
            ("required", Some(value)) if !value.is_array() => return of(key, "[]string", value),
            _ => {}
        }
    }
    let mut open: Vec<&Value> = schema["properties"].as_object().into_iter().flat_map(Map::values).collect();
    while let Some(property) = open.pop() {
        let Some(members) = property.as_object() else {
            return of("properties", "api.ToolProperty", property);
        };
        if let Some(value) = members.get("description").filter(|value| !value.is_string()) {
            return of("properties.description", "string", value);
        }
        if let Some(value) = members.get("enum").filter(|value| !value.is_array()) {
            return of("properties.enum", "[]interface {}", value);
        }
        if let Some(value) = members.get("type").filter(|value| !value.is_string() && !value.is_array()) {
            return of("properties.type", "api.PropertyType", value);
        }
        match members.get("anyOf") {
            Some(Value::Array(alternatives)) => open.extend(alternatives),
            Some(other) => return of("properties.anyOf", "[]api.ToolProperty", other),
            None => {}
        }
        match members.get("properties") {
            Some(Value::Object(inside)) => open.extend(inside.values()),
            Some(other) => return of("properties.properties", "map[string]api.ToolProperty", other),
            None => {}
        }
    }
    Ok(())
}

/// Moonshot: `tools.function.parameters is not a valid moonshot flavored json schema, details: <At path '…': …>`.
pub(crate) fn check_moonshot(schema: &Value) -> RequestResult<()> {
    walk(schema, "root", &mut |at, schema| {
        let refuse = |why: &str| {
            Err(RequestRefusal::new(format!(
                "Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: \
                 <At path '{at}': {why}>"
            )))
        };
        let has_type = schema.contains_key("type");
        if schema.contains_key("anyOf") || schema.contains_key("oneOf") {
            if has_type {
                return refuse(
                    "when using anyOf, type should be defined in anyOf items instead of the parent schema",
                );
            }
            return Ok(());
        }
        if schema.contains_key("$ref") {
            if has_type {
                return refuse(
                    "when using $ref, type should be defined in the referenced schema instead of the parent schema",
                );
            }
            if schema.contains_key("description") {
                return refuse("conflicting keywords found after $ref expansion: description");
            }
            return Ok(());
        }
        if schema.contains_key("if") {
            return refuse("Conflict in schema definitions for key 'if'.");
        }
        if has_type { Ok(()) } else { refuse("type is not defined") }
    })
}

/// llama.cpp, `json-schema-to-grammar.cpp`.
pub(crate) fn check_llama_cpp(schema: &Value) -> RequestResult<()> {
    let refuse = |why: &str| {
        Err(RequestRefusal::new(format!(
            "Unable to generate parser for this template. Automatic parser generation failed: JSON schema conversion \
             failed:\n{why}"
        )))
    };
    walk(schema, "root", &mut |_, schema| {
        let pattern = schema.get("pattern").and_then(Value::as_str);
        if pattern.is_some_and(|pattern| !pattern.starts_with('^') || !pattern.ends_with('$')) {
            return refuse("Pattern must start with '^' and end with '$'");
        }
        let bounds = ["minLength", "maxLength", "minItems", "maxItems"];
        let mut bounds = bounds.iter().filter_map(|keyword| schema.get(*keyword)?.as_u64());
        if bounds.any(|bound| bound > LLAMA_CPP_REPETITIONS_MAX) {
            return refuse("failed to parse grammar: number of repetitions exceeds sane defaults");
        }
        let understood = [
            "$ref",
            "anyOf",
            "oneOf",
            "allOf",
            "type",
            "const",
            "enum",
            "properties",
            "items",
            "prefixItems",
        ];
        if !schema.is_empty() && !understood.iter().any(|keyword| schema.contains_key(*keyword)) {
            return refuse(&format!("Unrecognized schema: {}", Value::Object(schema.clone())));
        }
        Ok(())
    })
}

/// The metaschema of draft 2020-12, and references that lead somewhere.
fn check_metaschema(schema: &Value) -> Result<(), String> {
    CompiledSchema::compile_any(schema).map(drop).map_err(|fault| fault.to_string())
}

fn has_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    }
}

/// Every schema with its path.
fn walk(
    schema: &Value,
    at: &str,
    check: &mut impl FnMut(&str, &Map<String, Value>) -> RequestResult<()>,
) -> RequestResult<()> {
    let Value::Object(members) = schema else { return Ok(()) };
    check(at, members)?;
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(named),
            ) => {
                for (name, schema) in named {
                    walk(schema, &format!("{at}.{keyword}.{name}"), check)?;
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                for schema in schemas {
                    walk(schema, &format!("{at}.{keyword}"), check)?;
                }
            }
            (
                "items"
                | "additionalProperties"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames",
                Value::Object(_),
            ) => walk(value, &format!("{at}.{keyword}"), check)?,
            _ => {}
        }
    }
    Ok(())
}

/// A reference that comes back to itself.
fn recursive_reference(schema: &Value) -> Option<String> {
    let definitions = schema.get("$defs")?.as_object()?;
    let names_in = |schema: &Value| {
        let mut names = BTreeSet::new();
        // The check never refuses.
        drop(walk(schema, "", &mut |_, schema| {
            names.extend(schema.get("$ref").and_then(Value::as_str).map(str::to_owned));
            Ok(())
        }));
        names
    };
    let definition = |reference: &str| definitions.get(reference.strip_prefix("#/$defs/")?);
    definitions.keys().map(|name| format!("#/$defs/{name}")).find(|start| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<String> = definition(start).map(names_in).into_iter().flatten().collect();
        while let Some(next) = open.pop() {
            if next == *start {
                return true;
            }
            if seen.insert(next.clone()) {
                open.extend(definition(&next).map(names_in).into_iter().flatten());
            }
        }
        false
    })
}
