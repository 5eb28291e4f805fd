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
}
