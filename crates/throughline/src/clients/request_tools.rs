//! Tools that a request declares and its requester runs.

use super::ClientToolSpec;
use crate::error::Error;
use serde_json::json;
use std::collections::BTreeMap;
use throughline_engine::{CallRunner, Effect, OfferedTool, REQUESTER};
use throughline_tools::ToolRegistry;
use throughline_wire::{ToolDefinition, ToolName, WireName};

/// Tools that one request may declare.
pub const REQUEST_TOOLS_MAX: usize = 128;

/// Longest name that all dialects take.
const NAME_BYTES_MAX: usize = 64;

/// The request's tools as the turn machine takes them: under exactly their names on the wire, and as `own.<name>` in
/// the log, so that they cannot be confused with tools that run here.
pub(crate) fn request_tools(
    declared: Vec<ClientToolSpec>,
    offered: &[OfferedTool],
    registry: &ToolRegistry,
    timeout_ms: u64,
) -> Result<Vec<OfferedTool>, Error> {
    if declared.len() > REQUEST_TOOLS_MAX {
        return Err(Error::TooManyTools { count: declared.len() });
    }
    let mut taken: BTreeMap<&str, &str> =
        offered.iter().map(|tool| (tool.wire_name.as_str(), tool.source.as_str())).collect();
    for tool in &declared {
        let name = tool.name.as_str();
        check_name(name)?;
        if let Some(from) = taken.insert(name, "the request") {
            return Err(Error::ToolNameTaken { name: name.to_owned(), from: from.to_owned() });
        }
        let tool_name = request_tool_name(name);
        if let Some(entry) = registry.get(&tool_name) {
            return Err(Error::ToolNameTaken {
                name: tool_name.into_string(),
                from: entry.spec().source.clone(),
            });
        }
    }
    Ok(declared.into_iter().map(|tool| request_tool(tool, timeout_ms)).collect())
}

fn request_tool_name(name: &str) -> ToolName {
    ToolName::new(format!("own.{name}"))
}

fn check_name(name: &str) -> Result<(), Error> {
    let why = match name {
        "" => "it is empty",
        name if name.len() > NAME_BYTES_MAX => "it is longer than 64 bytes",
        name if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')) => {
            "only letters, digits, `_` and `-` can be sent to every upstream"
        }
        _ => return Ok(()),
    };
    Err(Error::BadToolName { name: name.to_owned(), why })
}

fn request_tool(tool: ClientToolSpec, timeout_ms: u64) -> OfferedTool {
    let ClientToolSpec {
        name,
        title,
        description,
        input_schema,
        effect,
        timeout_ms: requested_timeout_ms,
        strict,
    } = tool;
    let wire_name = WireName::new(name.as_str());
    let parameters = input_schema.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let name = request_tool_name(name.as_str());
    OfferedTool {
        wire_name: wire_name.clone(),
        title: title.unwrap_or_else(|| wire_name.as_str().to_owned()),
        source: REQUESTER.to_owned(),
        timeout_ms: requested_timeout_ms.unwrap_or(timeout_ms).min(timeout_ms),
        definition: ToolDefinition { strict, ..ToolDefinition::new(wire_name, description, parameters) },
        runs: CallRunner::Requester,
        ..OfferedTool::new(name.as_str(), effect.unwrap_or(Effect::External))
    }
}
