//! A tool as a model sees it.

use super::WireName;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name, description and JSON Schema of one offered tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name on the wire.
    pub name: WireName,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments: an object schema.
    pub parameters: Value,
    /// What it is called in the VCP text protocol; without it, by its wire name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcp: Option<VcpCommand>,
}

impl ToolDefinition {
    /// A tool that every protocol calls by its wire name.
    pub fn new(name: impl Into<WireName>, description: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters, vcp: None }
    }
}

/// How a request of the VCP text protocol names a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VcpCommand {
    /// The field `tool_name`.
    pub tool_name: String,
    /// The field `command`, if one tool name stands for several tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}
