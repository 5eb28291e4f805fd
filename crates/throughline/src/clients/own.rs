//! Tools that whoever asks for a turn declares with the request, and runs itself. R: E3

use super::ClientTool;
use crate::error::Error;
use serde_json::json;
use std::collections::BTreeMap;
use throughline_engine::{Effect, OfferedTool, REQUESTER, Runs};
use throughline_tools::Registry;
use throughline_wire::{ToolDefinition, ToolName, WireName};

/// Tools that one request may declare.
pub const OWN_TOOLS_MAX: usize = 128;

/// Longest name that all dialects take.
const NAME_BYTES_MAX: usize = 64;

/// The request's tools as the machine needs them: under exactly their names on the wire, and as `own.<name>` beside the
/// tools that run here, so that neither can be taken for the other. Their arguments are checked where they run.
pub(crate) fn own_tools(
    declared: Vec<ClientTool>,
    offered: &[OfferedTool],
    registry: &Registry,
    timeout_ms: u64,
) -> Result<Vec<OfferedTool>, Error> {
    if declared.len() > OWN_TOOLS_MAX {
        return Err(Error::TooManyTools { count: declared.len() });
    }
    let mut taken: BTreeMap<&str, &str> =
        offered.iter().map(|tool| (tool.wire_name.as_str(), tool.source.as_str())).collect();
    for tool in &declared {
        let name = tool.name.as_str();
        check(name)?;
        if let Some(from) = taken.insert(name, "the request") {
            return Err(Error::ToolNameTaken { name: name.to_owned(), from: from.to_owned() });
        }
        let ours = own_name(name);
        if let Some(entry) = registry.get(&ours) {
            return Err(Error::ToolNameTaken { name: ours.into_string(), from: entry.spec().source.clone() });
        }
    }
    Ok(declared.into_iter().map(|tool| own_tool(tool, timeout_ms)).collect())
}

fn own_name(name: &str) -> ToolName {
    ToolName::new(format!("own.{name}"))
}

fn check(name: &str) -> Result<(), Error> {
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

fn own_tool(tool: ClientTool, timeout_ms: u64) -> OfferedTool {
    let ClientTool { name, title, description, input_schema, effect, timeout_ms: wished } = tool;
    let wire_name = WireName::new(name.as_str());
    let parameters = input_schema.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let name = own_name(name.as_str());
    OfferedTool {
        wire_name: wire_name.clone(),
        title: title.unwrap_or_else(|| wire_name.as_str().to_owned()),
        source: REQUESTER.to_owned(),
        timeout_ms: wished.unwrap_or(timeout_ms).min(timeout_ms),
        definition: ToolDefinition::new(wire_name, description, parameters),
        runs: Runs::Requester,
        ..OfferedTool::new(name.as_str(), effect.unwrap_or(Effect::External))
    }
}
