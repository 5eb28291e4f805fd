//! A tool as a model sees it.

use super::WireName;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Name, description and JSON Schema of one offered tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name on the wire.
    pub name: WireName,
    /// Purpose of the tool, for the model.
    pub description: String,
    /// JSON Schema of the arguments: an object schema. Shared: every turn and every request has all tools' schemas.
    #[serde(with = "shared")]
    pub parameters: Arc<Value>,
    /// Name in the VCP text protocol; without it, the wire name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcp: Option<VcpCommand>,
    /// The upstream is to hold the model to the schema: OpenAI's `strict`, sent in its two formats where it is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

impl ToolDefinition {
    /// A tool that every protocol calls by its wire name.
    pub fn new(name: impl Into<WireName>, description: impl Into<String>, parameters: Value) -> Self {
        let (name, description, parameters) = (name.into(), description.into(), Arc::new(parameters));
        Self { name, description, parameters, vcp: None, strict: None }
    }

    /// Hash that distinguishes it from another definition with the same name.
    pub fn definition_hash(&self) -> DefinitionHash {
        let mut hasher = DefaultHasher::new();
        (self.name.as_str(), &self.description, &*self.parameters, self.strict).hash(&mut hasher);
        DefinitionHash(hasher.finish())
    }
}

/// A definition of a tool, to be remembered without the definition: its name, its description, its schema and how strict
/// it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DefinitionHash(u64);

/// Serializes the shared value as the value itself.
mod shared {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;
    use std::sync::Arc;

    pub(super) fn serialize<S: Serializer>(value: &Arc<Value>, to: S) -> Result<S::Ok, S::Error> {
        value.as_ref().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Value>, D::Error> {
        Value::deserialize(from).map(Arc::new)
    }
}

/// Name of a tool in requests of the VCP text protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VcpCommand {
    /// Value of the field `tool_name`.
    pub tool_name: String,
    /// Value of the field `command`, if one tool name has several tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Further values of the field `tool_name`, where the tool's own manual uses them. A tool that really has such a name
    /// comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
}

impl VcpCommand {
    /// A name without aliases.
    pub fn new(tool_name: impl Into<String>, command: Option<&str>) -> Self {
        Self { tool_name: tool_name.into(), command: command.map(str::to_owned), aliases: Vec::new() }
    }

    /// True if the command has this tool name.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.tool_name == name || self.aliases.iter().any(|alias| alias == name)
    }
}
