//! Tools as the model reads them. Everything in here may come from strangers (MCP servers), so all of it is escaped.

use super::super::escape::escape;
use super::super::flat_arguments::{FlatParameter, parameters};
use super::history::{RequestWriter, names};
use super::syntax::{COMMAND, KEY_BYTES_MAX, MARKER_PREFIXES, TOOL_NAME, is_key_char};
use crate::vocabulary::ToolDefinition;
use serde_json::Value;
use std::fmt::Write;

/// One block for each tool, a blank line between.
pub(super) fn definitions_text(tools: &[ToolDefinition]) -> String {
    tools.iter().map(definition_text).collect::<Vec<_>>().join("\n\n")
}

/// Checks that every parameter can be written as the name of a field.
pub(super) fn check_names(tool: &ToolDefinition) -> Result<(), String> {
    for FlatParameter { name, .. } in parameters(&tool.parameters) {
        if name.eq_ignore_ascii_case(TOOL_NAME) {
            return Err(format!("its argument `{name}` has the name of the field that names the tool"));
        }
        let chosen = tool.vcp.as_ref().is_some_and(|vcp| vcp.command.is_some());
        let number = name.strip_prefix(COMMAND);
        if chosen && number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            return Err(format!("its argument `{name}` has the name of the field that chooses its command"));
        }
        if name.is_empty() || name.len() > KEY_BYTES_MAX || !name.chars().all(is_key_char) {
            return Err(format!(
                "its argument `{name}` cannot be written as a field: use only letters, digits, `_`, `-`, `.` and `$`"
            ));
        }
    }
    Ok(())
}

fn definition_text(tool: &ToolDefinition) -> String {
    let (name, command) = names(tool);
    let mut text = format!("<<<[TOOL_DEFINITION]>>>\ntool_name:「始」{}「末」\n", escaped(name));
    // Writing to a String cannot fail.
    if let Some(command) = command {
        let _ = writeln!(text, "command:「始」{}「末」", escaped(command));
    }
    let _ = writeln!(text, "description:「始」{}「末」", escaped(tool.description.trim()));
    let parameters = parameters(&tool.parameters);
    if parameters.is_empty() {
        text += "parameters: none\n";
    } else {
        text += "parameters:\n";
        for parameter in &parameters {
            let _ = writeln!(text, "- {}", parameter_text(parameter));
        }
    }
    let mut example = RequestWriter::new(name, command);
    let required = parameters.iter().filter(|parameter| parameter.required);
    let shown: Vec<_> = match required.collect::<Vec<_>>() {
        required if required.is_empty() => parameters.iter().take(1).collect(),
        required => required,
    };
    for parameter in shown {
        example.field(parameter.name, &example_value(parameter));
    }
    let _ = write!(text, "example:\n{}\n<<<[END_TOOL_DEFINITION]>>>", example.text());
    text
}

fn escaped(text: &str) -> std::borrow::Cow<'_, str> {
    escape(MARKER_PREFIXES, text)
}

/// `city (string, required, one of "a", "b", default "a"): The city.`
fn parameter_text(parameter: &FlatParameter<'_>) -> String {
    let FlatParameter { name, schema, kinds, required } = parameter;
    let mut text = format!("{name} ({}", kinds.describe());
    text += if *required { ", required" } else { ", optional" };
    if !kinds.choices.is_empty() {
        let choices: Vec<_> = kinds.choices.iter().map(Value::to_string).collect();
        let _ = write!(text, ", one of {}", choices.join(", "));
    }
    for (key, word) in [("minimum", "at least"), ("maximum", "at most"), ("default", "default")] {
        if let Some(value) = schema.get(key) {
            let _ = write!(text, ", {word} {value}");
        }
    }
    text.push(')');
    if let Some(description) = schema["description"].as_str().filter(|text| !text.trim().is_empty()) {
        let _ = write!(text, ": {}", description.trim().replace('\n', "\n  "));
    }
    escaped(&text).into_owned()
}

/// A value that the schema allows, as far as that is easily seen.
fn example_value(parameter: &FlatParameter<'_>) -> String {
    let FlatParameter { name, schema, kinds, .. } = parameter;
    let given = schema.get("default").filter(|value| !value.is_null());
    let given = given.or_else(|| schema["examples"].get(0)).or_else(|| kinds.choices.first());
    match given {
        Some(Value::String(text)) => return text.clone(),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => return value.to_string(),
        _ => {}
    }
    match schema.get("minimum") {
        _ if kinds.text => (*name).to_owned(),
        Some(minimum) if kinds.integer || kinds.number => minimum.to_string(),
        _ if kinds.integer => "1".to_owned(),
        _ if kinds.number => "1.5".to_owned(),
        _ => "true".to_owned(),
    }
}
