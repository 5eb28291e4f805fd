//! Calling tools as they are offered: arguments go into the properties that the schema names.

use crate::parsed_request::{ParsedRequest, ParsedTool};
use crate::script::CallMove;
use serde_json::{Map, Value};

/// A value and the names that a schema may have for it, likeliest first.
pub(crate) struct ArgumentWish<'a>(pub &'a [&'a str], pub Value);

/// A call of an offered tool, or `None` if it is not offered or no tool may be called.
pub(crate) fn call(seen: &ParsedRequest, name: &str, wishes: &[ArgumentWish<'_>]) -> Option<CallMove> {
    let tool = seen.may_call().then(|| seen.tool(name)).flatten()?;
    Some(CallMove::new(name, Value::Object(arguments(tool, wishes))))
}

fn arguments(tool: &ParsedTool, wishes: &[ArgumentWish<'_>]) -> Map<String, Value> {
    let mut arguments = Map::new();
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    for ArgumentWish(names, value) in wishes {
        let name = match properties {
            Some(properties) => names.iter().find(|name| properties.contains_key(**name)),
            None => names.first(),
        };
        if let Some(name) = name {
            let schema = properties.and_then(|properties| properties.get(*name));
            arguments.insert((*name).to_owned(), fit_to_schema(value.clone(), schema));
        }
    }
    let required = tool.parameters.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !arguments.contains_key(name) {
            let schema = properties.and_then(|properties| properties.get(name));
            arguments.insert(name.to_owned(), fit_to_schema(Value::Null, schema));
        }
    }
    arguments
}

/// The value if the schema takes it, else one that it takes.
fn fit_to_schema(value: Value, schema: Option<&Value>) -> Value {
    let Some(schema) = schema else { return value };
    if let Some(choices) = schema.get("enum").and_then(Value::as_array).filter(|choices| !choices.is_empty())
    {
        let wanted = value.as_str().unwrap_or_default().to_lowercase();
        let near = |choice: &&Value| {
            let choice = choice.as_str().unwrap_or_default().to_lowercase();
            !wanted.is_empty() && (choice.contains(&wanted) || wanted.contains(&choice))
        };
        return choices.iter().find(near).unwrap_or(&choices[0]).clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    match (kind, &value) {
        (Some("string"), Value::Null) => "".into(),
        (Some("integer" | "number"), Value::Null) => {
            schema.get("minimum").cloned().unwrap_or_else(|| 0.into())
        }
        (Some("boolean"), Value::Null) => false.into(),
        (Some("array"), Value::Null) => Value::Array(Vec::new()),
        (Some("object"), Value::Null) => Value::Object(Map::new()),
        (Some("array"), Value::String(_)) => Value::Array(vec![value]),
        (Some("string"), Value::Number(number)) => number.to_string().into(),
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_follow_the_offered_schema() {
        let tool = |parameters| ParsedTool { name: "t".into(), description: String::new(), parameters };
        let wish = || ArgumentWish(&["city", "location"], "Oslo".into());
        let check = |parameters: Value, expected: Value| {
            assert_eq!(Value::Object(arguments(&tool(parameters), &[wish()])), expected);
        };
        check(Value::Null, json!({"city": "Oslo"}));
        check(json!({"properties": {"location": {"type": "string"}}}), json!({"location": "Oslo"}));
        check(
            json!({"properties": {"city": {"type": "array"}, "days": {"type": "integer", "minimum": 1}}, "required": ["days"]}),
            json!({"city": ["Oslo"], "days": 1}),
        );
        check(
            json!({"properties": {"city": {"enum": ["Rome", "Oslo, Norway"]}}}),
            json!({"city": "Oslo, Norway"}),
        );
        check(json!({"properties": {}}), json!({}));
    }
}
