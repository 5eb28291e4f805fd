//! Views of tools, shared by the routes of tools and of agents.

use crate::error::ApiError;
use serde::Serialize;
use serde_json::Value;
use throughline::ToolSelection;
use throughline::config::{TextProtocolKind, ToolMode};
use throughline::views::ToolDescription;
use throughline_tools::{RegisteredTool, ToolAvailability};
use throughline_wire::display_escape;
use utoipa::ToSchema;

/// A tool, as an agent is offered it. People read its title: nothing in it is invisible.
pub(super) fn tool_info(tool: &RegisteredTool, availability: &ToolAvailability) -> ToolDescription {
    let mut info = ToolDescription::new(tool, availability);
    info.title = display_escape::escape(&info.title).into_owned();
    info
}

/// Every tool that an agent could be offered.
pub(super) fn tool_infos(selection: &ToolSelection) -> Vec<ToolDescription> {
    selection.discovered.iter().map(|found| tool_info(&found.tool, &found.availability)).collect()
}

/// The name of a variant on the wire.
pub(super) fn variant_name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(Value::Object(members)) => members.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

/// A source of tools.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct ToolSourceInfo {
    /// `builtin`, `mcp:files`, ...
    pub name: String,
    /// Number of tools that the source has.
    pub tools: usize,
    /// Faults of the source.
    pub faults: Vec<SourceFaultInfo>,
}

/// A fault of a source. Its other tools keep working.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct SourceFaultInfo {
    /// Tool that has the fault; absent if it is the whole source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// List of tools.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct ToolList {
    /// Tools by name.
    pub tools: Vec<ToolDescription>,
    /// Sources by name, including those without tools.
    pub sources: Vec<ToolSourceInfo>,
    /// Toggles of the agent that match no tool.
    pub unknown_toggles: Vec<String>,
}

/// Mode and protocol by name. A protocol without a mode implies text mode.
pub(super) fn mode_and_protocol(
    mode: Option<&str>,
    protocol: Option<&str>,
) -> Result<(Option<ToolMode>, Option<TextProtocolKind>), ApiError> {
    let unknown = |param: &str, given: &str, names: &[&str]| {
        ApiError::bad_request("unknown_value", format!("there is no {param} `{given}`"))
            .param(param)
            .remedy(names.join(", "))
    };
    let protocol = protocol
        .map(|name| {
            TextProtocolKind::from_name(name)
                .ok_or_else(|| unknown("protocol", name, &TextProtocolKind::NAMES))
        })
        .transpose()?;
    let mode = mode
        .map(|name| ToolMode::from_name(name).ok_or_else(|| unknown("mode", name, &ToolMode::NAMES)))
        .transpose()?;
    Ok((mode.or(protocol.map(|_| ToolMode::Text)), protocol))
}

/// All tool-calling modes: native, and every text protocol.
pub(super) const PROMPT_MODES: [(ToolMode, Option<TextProtocolKind>); 3] = [
    (ToolMode::Native, None),
    (ToolMode::Text, Some(TextProtocolKind::Vcp)),
    (ToolMode::Text, Some(TextProtocolKind::Xml)),
];
