//! Declaration of a client's tool.

use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use throughline_tools::builtin::live2d;
use throughline_tools::{AgentCallable, Effect, RegistryError, RunsOn, Tool, ToolRegistry, ToolSpec};
use throughline_wire::ToolName;

/// Tools that one client may declare.
pub const CLIENT_TOOLS_MAX: usize = 128;

/// A tool that a client runs, as it declares it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientToolSpec {
    /// `client.<name>`, or one of the avatar's: `live2d.<name>`.
    pub name: ToolName,
    /// Title for people, shown on the card. Default: the name.
    #[serde(default)]
    pub title: Option<String>,
    /// Purpose and usage, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments. Default: none.
    #[serde(default)]
    pub input_schema: Option<Value>,
    /// Effect of the tool. Default `external`, the most restrictive; for the avatar's tools their known effect.
    #[serde(default)]
    pub effect: Option<Effect>,
    /// Time for the client to answer, in milliseconds. Default 30,000; the avatar's tools 10,000.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// The upstream is to hold the model to the schema, where it can. Only for tools of a request.
    #[serde(skip)]
    pub strict: Option<bool>,
}

/// Reasons why a client cannot connect, or not with these tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A name that is not a client's to give.
    #[error(
        "`{name}` is not a valid client tool name; use `client.<name>` (or `live2d.<name>` for an avatar)"
    )]
    Name {
        /// The name.
        name: ToolName,
    },
    /// A tool that cannot be registered: its name, its schema, twice.
    #[error(transparent)]
    Tool(#[from] RegistryError),
    /// The client declares too many tools.
    #[error("too many tools: {count}; a client may declare {CLIENT_TOOLS_MAX}")]
    TooMany {
        /// Number of declared tools.
        count: usize,
    },
    /// The id is reserved.
    #[error("the client id `{client_id}` is reserved; choose another id")]
    Reserved {
        /// The id.
        client_id: String,
    },
}

/// Checked tools of one client.
#[derive(PartialEq)]
pub(super) struct DeclaredTools(Vec<ClientToolSpec>);

impl DeclaredTools {
    pub(super) fn new(tools: Vec<ClientToolSpec>) -> Result<Self, ClientError> {
        if tools.len() > CLIENT_TOOLS_MAX {
            return Err(ClientError::TooMany { count: tools.len() });
        }
        let is_allowed = |tool: &&ClientToolSpec| {
            ["client.", "live2d."].iter().any(|group| tool.name.as_str().starts_with(group))
        };
        if let Some(tool) = tools.iter().find(|tool| !is_allowed(tool)) {
            return Err(ClientError::Name { name: tool.name.clone() });
        }
        let declared = Self(tools);
        ToolRegistry::builder().tools(declared.tools(&ToolRegistry::default())).build()?;
        Ok(declared)
    }

    pub(super) fn contains(&self, name: &ToolName) -> bool {
        self.spec(name).is_some()
    }

    /// The declared tools. Fields that the client leaves out come from the tool of the same name, if clients
    /// run that one.
    pub(super) fn tools(&self, base: &ToolRegistry) -> Vec<Arc<dyn Tool>> {
        self.0.iter().map(|tool| tool.to_tool(base)).collect()
    }

    pub(super) fn spec(&self, name: &ToolName) -> Option<&ClientToolSpec> {
        self.0.iter().find(|tool| tool.name == *name)
    }
}

impl ClientToolSpec {
    /// A tool of this name, with all other fields open.
    pub fn new(name: impl Into<ToolName>) -> Self {
        let name = name.into();
        Self {
            name,
            title: None,
            description: String::new(),
            input_schema: None,
            effect: None,
            timeout_ms: None,
            strict: None,
        }
    }

    pub(super) fn to_tool(&self, base: &ToolRegistry) -> Arc<dyn Tool> {
        let known = base.get(&self.name).map(|entry| entry.spec());
        let known = known.filter(|spec| spec.runs_on == RunsOn::Client).cloned();
        let mut spec = known.unwrap_or_else(|| {
            let mut spec = ToolSpec::new(self.name.clone(), String::new());
            spec.source = "client".into();
            spec
        });
        spec.agent_callable = AgentCallable::Yes;
        if !self.description.is_empty() {
            spec.description.clone_from(&self.description);
        }
        if let Some(title) = &self.title {
            spec.title.clone_from(title);
        }
        if let Some(schema) = &self.input_schema {
            spec.parameters = schema.clone();
        }
        if let Some(effect) = self.effect {
            spec.effect = effect;
        }
        if let Some(ms) = self.timeout_ms {
            spec.timeout = Duration::from_millis(ms);
        }
        Arc::new(live2d::ClientSideTool::new(spec))
    }
}
