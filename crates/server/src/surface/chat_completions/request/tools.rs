//! Tools that the client declares and runs itself.

use super::field::Field;
use crate::surface::chat_completions::Refusal;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Longest name of a tool, as OpenAI has it.
const NAME_BYTES_MAX: usize = 64;

/// A tool of the client's.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredTool {
    /// Its name, which the model and the client both use.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

/// The tools that the model may call. `tool_choice: "none"` offers none.
pub(super) fn read(body: &Field<'_>) -> Result<Vec<DeclaredTool>, Refusal> {
    let tools = match body.get("tools") {
        Some(tools) => tools.items()?,
        None => Vec::new(),
    };
    let mut names = BTreeSet::new();
    let mut declared = Vec::new();
    for tool in tools {
        let tool = tool_of(&tool)?;
        if !names.insert(tool.name.clone()) {
            return Err(Refusal::invalid("tools", format!("two tools are called `{}`", tool.name)));
        }
        declared.push(tool);
    }
    match choice(body)? {
        Choice::Auto => Ok(declared),
        Choice::None => Ok(Vec::new()),
    }
}

fn tool_of(tool: &Field<'_>) -> Result<DeclaredTool, Refusal> {
    let kind = tool.required("type")?;
    if kind.text()? != "function" {
        return Err(
            kind.unsupported("is not `function`: only tools with JSON arguments can be declared here")
        );
    }
    let function = tool.required("function")?;
    let name = function.required("name")?;
    let text = name.text()?;
    let is_name = !text.is_empty()
        && text.len() <= NAME_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if !is_name {
        return Err(name.invalid("is no name of a tool: 1 to 64 of a-z, A-Z, 0-9, `_`, `-`"));
    }
    let description = match function.get("description") {
        Some(description) => description.text()?.to_owned(),
        None => String::new(),
    };
    let parameters = match function.get("parameters") {
        Some(parameters) => Value::Object(parameters.object()?.clone()),
        None => json!({"type": "object", "properties": {}}),
    };
    Ok(DeclaredTool { name: text.to_owned(), description, parameters })
}

enum Choice {
    Auto,
    None,
}

fn choice(body: &Field<'_>) -> Result<Choice, Refusal> {
    let Some(choice) = body.get("tool_choice") else { return Ok(Choice::Auto) };
    match choice.value().as_str() {
        Some("auto") => Ok(Choice::Auto),
        Some("none") => Ok(Choice::None),
        // A turn has many model calls: a choice that is forced in each of them never ends.
        _ => Err(choice
            .unsupported("forces a call, which cannot be done in a turn of several model calls")
            .remedy("send `auto` or `none`, and say in a message which tool is wanted")),
    }
}
