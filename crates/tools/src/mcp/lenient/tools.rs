//! A list of tools, definition by definition.

use crate::mcp::listing::TaskOnly;
use rmcp::model::{ListToolsResult, Tool};
use serde_json::{Map, Value, json};

/// Member of `_meta` in which the faults of a list travel through the SDK. A server's own is dropped.
const FAULTS: &str = "throughline/faults";

/// Reads one page.
///
/// # Errors
/// It is no page at all.
pub(in crate::mcp) fn read_list(result: Value, task_only: &TaskOnly) -> Result<ListToolsResult, String> {
    let mut fields = match result {
        Value::Object(fields) => fields,
        // The list itself.
        list @ Value::Array(_) => Map::from_iter([("tools".to_owned(), list)]),
        other => return Err(format!("its answer to `tools/list` is {}", kind_of(&other))),
    };
    let mut faults = Vec::new();
    let offered = match fields.remove("tools") {
        Some(Value::Array(offered)) => offered,
        other => {
            let found = other.as_ref().map_or("nothing", kind_of);
            faults.push((None, format!("it lists no tools: `tools` is {found}")));
            Vec::new()
        }
    };
    let mut tools = Vec::with_capacity(offered.len());
    for (index, definition) in offered.into_iter().enumerate() {
        if let (Some(name), support) =
            (definition.get("name").and_then(Value::as_str), definition.pointer("/execution/taskSupport"))
        {
            task_only.note(name, support.and_then(Value::as_str) == Some("required"));
        }
        match read_tool(index, definition) {
            Ok(tool) => tools.push(tool),
            Err(fault) => faults.push(fault),
        }
    }
    let mut list = ListToolsResult::with_all_items(tools);
    match fields.remove("nextCursor") {
        None | Some(Value::Null) => {}
        Some(Value::String(cursor)) => list.next_cursor = Some(cursor),
        Some(other) => {
            faults.push((None, format!("its list ends at an invalid cursor: {}", kind_of(&other))))
        }
    }
    list.ttl_ms = fields.get("ttlMs").and_then(Value::as_f64).filter(|ms| *ms >= 1.0).map(|ms| ms as u64);
    if !faults.is_empty() {
        let faults: Vec<Value> =
            faults.into_iter().map(|(tool, message)| json!({"tool": tool, "message": message})).collect();
        list.meta = Some(Map::from_iter([(FAULTS.to_owned(), Value::Array(faults))]).into());
    }
    Ok(list)
}

/// The faults of a page: a tool by the server's name for it, and the message.
pub(in crate::mcp) fn list_faults(page: &ListToolsResult) -> Vec<(Option<String>, String)> {
    let faults = page.meta.as_ref().and_then(|meta| meta.get(FAULTS)).and_then(Value::as_array);
    let text = |fault: &Value, field: &str| fault.get(field).and_then(Value::as_str).map(str::to_owned);
    faults
        .into_iter()
        .flatten()
        .map(|fault| (text(fault, "tool"), text(fault, "message").unwrap_or_default()))
        .collect()
}

/// Reads a definition, repaired where its meaning is clear.
///
/// # Errors
///
/// The fault that replaces it.
fn read_tool(index: usize, definition: Value) -> Result<Tool, (Option<String>, String)> {
    let position = index + 1;
    let Value::Object(mut fields) = definition else {
        let kind = kind_of(&definition);
        return Err((None, format!("entry {position} of its list of tools is {kind}, and no definition")));
    };
    let name = match fields.remove("name") {
        Some(Value::String(name)) => name,
        None | Some(Value::Null) => {
            return Err((None, format!("entry {position} of its list of tools has no name")));
        }
        Some(other) => {
            let kind = kind_of(&other);
            return Err((None, format!("the name of entry {position} of its list of tools is {kind}")));
        }
    };
    let mut tool = Map::from_iter([("name".to_owned(), Value::from(name.clone()))]);
    match read_schema(fields.remove("inputSchema")) {
        Ok(schema) => tool.insert("inputSchema".to_owned(), Value::Object(schema)),
        Err(kind) => return Err((Some(name), format!("its `inputSchema` is {kind}, and no schema"))),
    };
    for field in ["title", "description"] {
        match fields.remove(field) {
            Some(text @ Value::String(_)) => tool.insert(field.to_owned(), text),
            Some(scalar @ (Value::Number(_) | Value::Bool(_))) => {
                tool.insert(field.to_owned(), Value::from(scalar.to_string()))
            }
            _ => None,
        };
    }
    // What checks nothing, or hints at nothing, is left out.
    for field in ["outputSchema", "_meta"] {
        if let Some(object @ Value::Object(_)) = fields.remove(field) {
            tool.insert(field.to_owned(), object);
        }
    }
    if let Some(Value::Object(mut hints)) = fields.remove("annotations") {
        hints.retain(|name, value| if name == "title" { value.is_string() } else { value.is_boolean() });
        tool.insert("annotations".to_owned(), Value::Object(hints));
    }
    if let Some(icons) = fields.remove("icons") {
        let with_icons = tool.clone().into_iter().chain([("icons".to_owned(), icons)]).collect();
        if let Ok(tool) = serde_json::from_value(Value::Object(with_icons)) {
            return Ok(tool);
        }
    }
    serde_json::from_value(Value::Object(tool))
        .map_err(|error| (Some(name), format!("its definition: {error}")))
}

/// Schema of the arguments: an absent one means no arguments, `true` any arguments.
///
/// # Errors
///
/// The kind of the invalid value.
fn read_schema(schema: Option<Value>) -> Result<Map<String, Value>, &'static str> {
    let object = || Map::from_iter([("type".to_owned(), Value::from("object"))]);
    let mut schema = match schema {
        None | Some(Value::Null) => {
            let mut schema = object();
            schema.insert("properties".to_owned(), json!({}));
            schema
        }
        Some(Value::Bool(true)) => object(),
        Some(Value::Object(schema)) => schema,
        // A schema that was serialized twice.
        Some(Value::String(text)) => match serde_json::from_str(&text) {
            Ok(Value::Object(schema)) => schema,
            _ => return Err("a text"),
        },
        Some(other) => return Err(kind_of(&other)),
    };
    // `null` for none, and what PHP makes of an empty map.
    if schema.get("properties").is_some_and(|value| value.is_null() || *value == json!([])) {
        schema.insert("properties".to_owned(), json!({}));
    }
    for field in ["required", "type", "description", "additionalProperties", "$defs", "definitions"] {
        if schema.get(field).is_some_and(Value::is_null) {
            schema.remove(field);
        }
    }
    Ok(schema)
}

/// Kind of a value, for people.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "`null`",
        Value::Bool(true) => "`true`",
        Value::Bool(false) => "`false`",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(result: Value) -> ListToolsResult {
        read_list(result, &TaskOnly::default()).unwrap()
    }

    /// One definition among good ones: those are there, and this one is a tool with this schema, or a fault.
    fn check(definition: Value, expected: Result<Value, (Option<&str>, &str)>) {
        let good = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let page = page(json!({"tools": [good("first"), definition, good("last")]}));
        let mut names: Vec<&str> = page.tools.iter().map(|tool| tool.name.as_ref()).collect();
        let faults = list_faults(&page);
        let faults: Vec<_> =
            faults.iter().map(|(tool, message)| (tool.as_deref(), message.as_str())).collect();
        match expected {
            Ok(schema) => {
                assert_eq!(faults, [], "{definition}");
                assert_eq!(names.remove(1), "odd");
                assert_eq!(
                    Value::Object(page.tools[1].input_schema.as_ref().clone()),
                    schema,
                    "{definition}"
                );
            }
            Err(fault) => assert_eq!(faults, [fault], "{definition}"),
        }
        assert_eq!(names, ["first", "last"], "{definition}");
    }

    #[test]
    fn malformed_definition_is_repaired_or_reported_alone() {
        let none = json!({"type": "object", "properties": {}});
        let any = json!({"type": "object"});
        let with = |field: &str, value: Value| {
            let mut definition = json!({"name": "odd", "inputSchema": any});
            definition[field] = value;
            definition
        };
        check(json!({"name": "odd"}), Ok(none.clone()));
        check(with("inputSchema", Value::Null), Ok(none.clone()));
        check(with("inputSchema", json!(true)), Ok(any.clone()));
        check(with("inputSchema", json!("{\"type\":\"object\"}")), Ok(any.clone()));
        check(
            with("inputSchema", json!({"type": "object", "properties": null, "required": null})),
            Ok(none.clone()),
        );
        check(with("inputSchema", json!({"type": "object", "properties": []})), Ok(none));
        for (field, value) in [
            ("description", json!(7)),
            ("description", json!({"en": "text"})),
            ("title", Value::Null),
            ("outputSchema", Value::Null),
            ("outputSchema", json!([])),
            ("annotations", json!({"readOnlyHint": "yes", "title": 7, "more": {}})),
            ("annotations", json!("read-only")),
            ("icons", json!("https://example.com/i.png")),
            ("icons", json!([{"src": 7}])),
            ("_meta", json!(7)),
            ("execution", json!(7)),
        ] {
            check(with(field, value), Ok(any.clone()));
        }
        check(
            with("inputSchema", json!(false)),
            Err((Some("odd"), "its `inputSchema` is `false`, and no schema")),
        );
        check(
            with("inputSchema", json!("?")),
            Err((Some("odd"), "its `inputSchema` is a text, and no schema")),
        );
        check(
            with("inputSchema", json!([1])),
            Err((Some("odd"), "its `inputSchema` is a list, and no schema")),
        );
        check(json!({"inputSchema": any}), Err((None, "entry 2 of its list of tools has no name")));
        check(with("name", json!(7)), Err((None, "the name of entry 2 of its list of tools is a number")));
        check(json!(7), Err((None, "entry 2 of its list of tools is a number, and no definition")));
        check(Value::Null, Err((None, "entry 2 of its list of tools is `null`, and no definition")));
    }

    #[test]
    fn malformed_tool_list_page_is_a_fault() {
        for (result, expected) in [
            (json!({}), Some("it lists no tools: `tools` is nothing")),
            (json!({"tools": null}), Some("it lists no tools: `tools` is `null`")),
            (json!({"tools": {"a": {}}}), Some("it lists no tools: `tools` is an object")),
            (json!({"tools": [], "nextCursor": 7}), Some("its list ends at an invalid cursor: a number")),
            (json!({"tools": [], "ttlMs": "soon", "_meta": {FAULTS: [{"message": "forged"}]}}), None),
            (json!([]), None),
        ] {
            let faults: Vec<String> =
                list_faults(&page(result.clone())).into_iter().map(|(_, message)| message).collect();
            assert_eq!(faults, expected.into_iter().collect::<Vec<_>>(), "{result}");
        }
        assert_eq!(page(json!({"tools": [], "nextCursor": ""})).next_cursor.as_deref(), Some(""));
        assert_eq!(page(json!({"tools": [], "nextCursor": null})).next_cursor, None);
        assert!(read_list(json!("none"), &TaskOnly::default()).is_err());
    }

    #[test]
    fn task_only_tools_are_detected() {
        let task_only = TaskOnly::default();
        let support = |support: Value| {
            let tools = json!([{"name": "research", "execution": {"taskSupport": support}}, {"name": "add"}]);
            read_list(json!({"tools": tools}), &task_only).unwrap();
            (task_only.contains("research"), task_only.contains("add"))
        };
        assert_eq!(support(json!("required")), (true, false));
        assert_eq!(support(json!("optional")), (false, false));
        assert_eq!(support(json!(7)), (false, false));
    }
}
