//! The meaning of a whole block's fields: calls with arguments.

use super::super::flat_arguments;
use super::super::protocol::FindingKind;
use super::parser::{VcpField, VcpFields};
use super::syntax::{COMMAND, COMMANDS_MAX, DIRECTIVES, TOOL_NAME};
use super::texts::{self, VcpFlaw};
use crate::json::JsonRef;
use crate::vocabulary::ToolDefinition;
use serde_json::Value;

/// Name and argument text of each call, and findings about fields.
type BlockCalls = (Vec<(String, String)>, Vec<(FindingKind, String)>);

/// The calls of a block.
pub(super) fn calls(block: &VcpFields, tools: &[ToolDefinition]) -> Result<BlockCalls, VcpFlaw> {
    let fields = &block.fields;
    let names = values_of(fields, TOOL_NAME);
    let Some(name) = names.first() else {
        let is_bare = block.bare.iter().any(|key| key.to_ascii_lowercase() == TOOL_NAME);
        return Err(if is_bare { VcpFlaw::Bare { key: TOOL_NAME.into() } } else { VcpFlaw::NoToolName });
    };
    if let Some(other) = names.iter().find(|other| other != &name) {
        return Err(VcpFlaw::TwoToolNames { first: name.to_string(), second: other.to_string() });
    }
    if name.is_empty() {
        return Err(VcpFlaw::NoToolName);
    }
    let numbers = command_numbers(fields, name, tools);
    let commands = values_of(fields, COMMAND);
    let chooses = command_chooses(name, tools);
    // Each call as its tool, whether its command chose it, and its number.
    let mut made = Vec::new();
    if numbers.is_empty() {
        let first = commands.first();
        let other = commands.iter().find(|other| Some(*other) != first);
        if let (true, Some(first), Some(other)) = (chooses, first, other) {
            return Err(VcpFlaw::TwoCommands { first: first.to_string(), second: other.to_string() });
        }
        made.push((choose_tool(name, first.copied(), tools), None));
    } else {
        if !commands.is_empty() {
            return Err(VcpFlaw::MixedCommands);
        }
        if numbers.len() > COMMANDS_MAX {
            return Err(VcpFlaw::TooManyCommands);
        }
        for number in &numbers {
            let command = values_of(fields, &format!("{COMMAND}{number}")).last().copied();
            made.push((choose_tool(name, command, tools), Some(*number)));
        }
    }
    for key in &block.bare {
        let base = split_number(key).map_or(key.as_str(), |(base, _)| base);
        let known = made.iter().any(|((tool, _), _)| has_parameter(*tool, key) || has_parameter(*tool, base));
        let is_given = fields.iter().any(|field| &field.key == key);
        let is_name = key.to_ascii_lowercase() == TOOL_NAME;
        if (known || (base == COMMAND && chooses)) && !is_given && !is_name {
            return Err(VcpFlaw::Bare { key: key.clone() });
        }
    }
    let first_tool = made.first().and_then(|((tool, _), _)| *tool);
    let mut idle: Vec<&str> = Vec::new();
    for VcpField { key, .. } in fields {
        if DIRECTIVES.contains(&key.as_str())
            && !has_parameter(first_tool, key)
            && !idle.contains(&key.as_str())
        {
            idle.push(key);
        }
    }
    let is_choice = made.first().is_some_and(|((_, is_chosen), _)| *is_chosen);
    let mut twice: Vec<&str> = Vec::new();
    for (at, VcpField { key, .. }) in fields.iter().enumerate() {
        let counts = key != TOOL_NAME && !idle.contains(&key.as_str()) && !(is_choice && key == COMMAND);
        let before = fields[..at].iter().any(|field| &field.key == key);
        if counts && before && !twice.contains(&key.as_str()) {
            twice.push(key);
        }
    }
    let calls = made.into_iter().map(|((tool, is_chosen), number)| {
        let wire = tool.map_or(*name, |tool| tool.name.as_str());
        (wire.to_owned(), arguments(fields, tool, is_chosen, number, &numbers))
    });
    let mut notes = Vec::new();
    if !idle.is_empty() {
        notes.push((FindingKind::Directive, texts::no_effect_text(&idle)));
    }
    if !twice.is_empty() {
        notes.push((FindingKind::GivenTwice, texts::given_twice_text(&twice)));
    }
    Ok((calls.collect(), notes))
}

/// The name of a block that is refused: the tool's, once it was clear while reading, else as written.
pub(super) fn name_so_far(fields: &[VcpField], tools: &[ToolDefinition]) -> String {
    let clear = (1..=fields.len()).find_map(|count| {
        let fields = &fields[..count];
        let name = *values_of(fields, TOOL_NAME).first().filter(|name| !name.is_empty())?;
        if !command_chooses(name, tools) {
            return Some(tool_by_name(name, tools).map_or(name, |tool| tool.name.as_str()).to_owned());
        }
        if !command_numbers(fields, name, tools).is_empty() {
            return None;
        }
        let command = *values_of(fields, COMMAND).first()?;
        tool_by_command(name, command, tools).map(|tool| tool.name.as_str().to_owned())
    });
    let written = || values_of(fields, TOOL_NAME).first().map(|name| name.to_string());
    clear.or_else(written).unwrap_or_default()
}

fn values_of<'f>(fields: &'f [VcpField], key: &str) -> Vec<&'f str> {
    fields.iter().filter(|field| field.key == key).map(|field| field.value.trim()).collect()
}

// --- which tool ---

fn tool_by_name<'d>(name: &str, tools: &'d [ToolDefinition]) -> Option<&'d ToolDefinition> {
    let wire = tools.iter().find(|tool| tool.name.as_str() == name);
    let vcp = |tool: &&ToolDefinition| matches!(&tool.vcp, Some(vcp) if vcp.tool_name == name && vcp.command.is_none());
    let alias = |tool: &&ToolDefinition| matches!(&tool.vcp, Some(vcp) if vcp.is_named(name) && vcp.command.is_none());
    wire.or_else(|| tools.iter().find(vcp)).or_else(|| tools.iter().find(alias))
}

fn tool_by_command<'d>(name: &str, command: &str, tools: &'d [ToolDefinition]) -> Option<&'d ToolDefinition> {
    let vcp = |tool: &&ToolDefinition| matches!(&tool.vcp, Some(vcp) if vcp.tool_name == name && vcp.command.as_deref() == Some(command));
    let wire = format!("{name}_{command}");
    let method = |tool: &&ToolDefinition| !command.is_empty() && tool.name.as_str() == wire;
    let alias = |tool: &&ToolDefinition| matches!(&tool.vcp, Some(vcp) if vcp.is_named(name) && vcp.command.as_deref() == Some(command));
    tools.iter().find(vcp).or_else(|| tools.iter().find(method)).or_else(|| tools.iter().find(alias))
}

/// Does `command` choose between tools of this name, rather than being an argument?
fn command_chooses(name: &str, tools: &[ToolDefinition]) -> bool {
    let group = format!("{name}_");
    let some = tools.iter().any(|tool| {
        let method = tool.name.as_str().strip_prefix(&group);
        let command = matches!(&tool.vcp, Some(vcp) if vcp.is_named(name) && vcp.command.is_some());
        command || method.is_some_and(|method| !method.is_empty())
    });
    some && !has_parameter(tool_by_name(name, tools), COMMAND)
}

fn choose_tool<'d>(
    name: &str,
    command: Option<&str>,
    tools: &'d [ToolDefinition],
) -> (Option<&'d ToolDefinition>, bool) {
    let by_command = match command {
        Some(command) if command_chooses(name, tools) => tool_by_command(name, command, tools),
        _ => None,
    };
    match by_command {
        Some(tool) => (Some(tool), true),
        None => (tool_by_name(name, tools), false),
    }
}

fn has_parameter(tool: Option<&ToolDefinition>, key: &str) -> bool {
    tool.is_some_and(|tool| tool.parameters["properties"].get(key).is_some())
}

// --- numbers ---

fn split_number(key: &str) -> Option<(&str, u32)> {
    let digits = key.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (base, number) = key.split_at(key.len() - digits);
    if base.is_empty() || number.is_empty() || number.starts_with('0') {
        return None;
    }
    Some((base, number.parse().ok()?))
}

fn command_numbers(fields: &[VcpField], name: &str, tools: &[ToolDefinition]) -> Vec<u32> {
    let own = tool_by_name(name, tools);
    let mut numbers: Vec<u32> = fields
        .iter()
        .filter(|field| !has_parameter(own, &field.key))
        .filter_map(|field| split_number(&field.key))
        .filter(|(base, _)| *base == COMMAND)
        .map(|(_, number)| number)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

// --- arguments ---

fn arguments(
    fields: &[VcpField],
    tool: Option<&ToolDefinition>,
    is_chosen: bool,
    number: Option<u32>,
    numbers: &[u32],
) -> String {
    let mut members: Vec<(&str, &str)> = Vec::new();
    let mut put = |key, value| {
        members.retain(|(known, _)| *known != key);
        members.push((key, value));
    };
    let numbered = |field: &VcpField| {
        let (base, of) = split_number(&field.key)?;
        let belongs = numbers.contains(&of) && !has_parameter(tool, &field.key);
        belongs.then_some((base.len(), of))
    };
    let counts = |key: &str| {
        let is_choice = is_chosen && key == COMMAND;
        let is_idle = DIRECTIVES.contains(&key) && !has_parameter(tool, key);
        key != TOOL_NAME && !is_choice && !is_idle
    };
    for field in fields.iter().filter(|field| numbered(field).is_none() && counts(&field.key)) {
        put(&field.key, &field.value);
    }
    for field in fields {
        if let Some((base, of)) = numbered(field)
            && Some(of) == number
            && counts(&field.key[..base])
        {
            put(&field.key[..base], &field.value);
        }
    }
    let parameters = tool.map(|tool| flat_arguments::parameters(&tool.parameters)).unwrap_or_default();
    let members = members.into_iter().map(|(key, value)| {
        let kinds = parameters.iter().find(|parameter| parameter.name == key).map(|known| &known.kinds);
        format!("{}:{}", Value::from(key), typed_json(kinds, value))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// A value in the type of the schema, if the conversion is certain; else as text.
fn typed_json(kinds: Option<&flat_arguments::ValueKinds>, value: &str) -> String {
    let text = Value::from(value).to_string();
    let Some(kinds) = kinds else { return text };
    let trimmed = value.trim();
    if kinds.text {
        let listed = |text: &str| kinds.choices.contains(&Value::from(text));
        return if listed(trimmed) && !listed(value) { Value::from(trimmed).to_string() } else { text };
    }
    let Ok(json) = JsonRef::parse(trimmed) else { return text };
    let is_whole = json.is_number() && !trimmed.contains(['.', 'e', 'E']);
    let fits = (kinds.number && json.is_number())
        || (kinds.integer && is_whole)
        || (kinds.boolean && matches!(trimmed, "true" | "false"))
        || (kinds.null && json.is_null());
    if fits { trimmed.to_owned() } else { text }
}
