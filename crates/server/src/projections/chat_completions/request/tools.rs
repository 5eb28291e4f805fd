//! Tools that the client declares and runs itself.

use super::field::BodyField;
use super::{is_plain_name, says_something};
use crate::projections::chat_completions::InvalidRequestError;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use throughline::tools::ToolToggle;
use throughline_wire::ToolChoice;

/// Longest name of a tool, as OpenAI has it.
const NAME_BYTES_MAX: usize = 64;

/// A tool of the client's.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeclaredTool {
    /// Name, which the model and the client both use.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// The upstream is to hold the model to the schema.
    pub strict: Option<bool>,
}

/// Options of the request about tools.
pub(super) struct ToolOptions {
    /// The client's tools that the model may call.
    pub(super) tools: Vec<DeclaredTool>,
    pub(super) choice: ToolChoice,
    /// Toggle of the server's own tools.
    pub(super) server_tools: ToolToggle,
    /// Members of tools that nothing here reads, by their paths.
    pub(super) omitted: BTreeSet<String>,
}

/// Tools and `tool_choice`.
pub(super) fn read_tools(body: &BodyField<'_>) -> Result<ToolOptions, InvalidRequestError> {
    let tools = match body.get("tools") {
        Some(tools) => tools.items()?,
        None => Vec::new(),
    };
    let (mut names, mut omitted) = (BTreeSet::new(), BTreeSet::new());
    let mut declared = Vec::new();
    for tool in tools {
        collect_omitted(&tool, &mut omitted);
        let tool = read_tool(&tool)?;
        if !names.insert(tool.name.clone()) {
            return Err(InvalidRequestError::invalid(
                "tools",
                format!("two tools are called `{}`", tool.name),
            ));
        }
        declared.push(tool);
    }
    let (choice, server_tools) = (ToolChoice::Auto, ToolToggle::On);
    let mut options = ToolOptions { tools: declared, choice, server_tools, omitted };
    if let Some(field) = body.get("tool_choice") {
        options.apply_tool_choice(&field)?;
    }
    Ok(options)
}

impl ToolOptions {
    fn apply_tool_choice(&mut self, field: &BodyField<'_>) -> Result<(), InvalidRequestError> {
        if let Some(word) = field.value().as_str() {
            self.choice = parse_tool_choice(field, word)?;
        } else if let Some(allowed) = allowed_tools(field)? {
            self.apply_allowed_tools(&allowed)?;
        } else {
            let name = match field.get("function") {
                Some(function) => function.required("name")?,
                None => field.required("name")?,
            };
            self.choice = ToolChoice::Tool(self.require_declared(&name)?.into());
        }
        match self.choice {
            // A client that forbids calls gets none, including tools that it has not declared.
            ToolChoice::None => (self.tools, self.server_tools) = (Vec::new(), ToolToggle::Off),
            ToolChoice::Required if self.tools.is_empty() => {
                return Err(field
                    .invalid("forces a call, and there is no tool in `tools`")
                    .remedy("declare the tool to be called, or send `auto`"));
            }
            _ => {}
        }
        Ok(())
    }

    /// A filter: what it does not name is not offered, the server's tools included.
    fn apply_allowed_tools(&mut self, allowed: &BodyField<'_>) -> Result<(), InvalidRequestError> {
        self.choice = match allowed.get("mode") {
            None => ToolChoice::Auto,
            Some(word) => parse_tool_choice(&word, word.text()?)?,
        };
        let mut names = BTreeSet::new();
        for tool in allowed.required("tools")?.items()? {
            let name = match tool.get("function") {
                Some(function) => function.required("name")?,
                None => tool.required("name")?,
            };
            names.insert(self.require_declared(&name)?.to_owned());
        }
        self.tools.retain(|tool| names.contains(&tool.name));
        self.server_tools = ToolToggle::Off;
        Ok(())
    }

    fn require_declared<'n>(&self, name: &BodyField<'n>) -> Result<&'n str, InvalidRequestError> {
        let text = name.text()?;
        if self.tools.iter().any(|tool| tool.name == text) {
            return Ok(text);
        }
        Err(name
            .invalid(format!("is `{text}`, which is not in `tools`"))
            .remedy("only tools that the request declares can be chosen"))
    }
}

fn parse_tool_choice(field: &BodyField<'_>, word: &str) -> Result<ToolChoice, InvalidRequestError> {
    match word {
        "auto" => Ok(ToolChoice::Auto),
        "none" => Ok(ToolChoice::None),
        "required" => Ok(ToolChoice::Required),
        _ => Err(field.invalid("must be `auto`, `none`, `required`, a function or `allowed_tools`")),
    }
}

/// `{"type": "allowed_tools", "allowed_tools": {…}}`, or with the members one level up, as the Responses API has them.
fn allowed_tools<'f>(field: &BodyField<'f>) -> Result<Option<BodyField<'f>>, InvalidRequestError> {
    field.object()?;
    match field.get("type") {
        Some(kind) if kind.text()? == "allowed_tools" => {
            Ok(Some(field.get("allowed_tools").unwrap_or_else(|| field.clone())))
        }
        // Some clients leave the type out.
        Some(kind) if kind.text()? != "function" => Err(kind
            .unsupported("is neither `function` nor `allowed_tools`")
            .remedy("only tools with JSON arguments can be chosen here")),
        _ => Ok(None),
    }
}

/// Collects the names of a tool's members that are ignored.
fn collect_omitted(tool: &BodyField<'_>, omitted: &mut BTreeSet<String>) {
    let known: [(&str, &[&str], Option<&Value>); 2] = [
        ("tools", &["type", "function"], Some(tool.value())),
        ("tools.function", &["name", "description", "parameters", "strict"], tool.value().get("function")),
    ];
    for (path, names, value) in known {
        let members = value.and_then(Value::as_object).into_iter().flatten();
        let unknown = members.filter(|(name, value)| {
            !names.contains(&name.as_str()) && says_something(value) && is_plain_name(name)
        });
        omitted.extend(unknown.map(|(name, _)| format!("{path}.{name}")));
    }
}

fn read_tool(tool: &BodyField<'_>) -> Result<DeclaredTool, InvalidRequestError> {
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
    // Any other value is ignored.
    let strict = function.value().get("strict").and_then(Value::as_bool);
    Ok(DeclaredTool { name: text.to_owned(), description, parameters, strict })
}
