//! Discovery: all tools -> those that models may call -> those that the agent has switched on -> those that
//! can be written in its protocol. The reason why a tool is not offered is recorded and shown to people.

use crate::registry::{RegisteredTool, ToolRegistry};
use crate::toggles::{ToolToggle, ToolToggles};
use crate::tool::AgentCallable;
use std::fmt;
use std::sync::Arc;
use throughline_wire::text_calls::TextProtocol;

/// Form in which an agent's calls travel.
#[derive(Clone, Copy, Debug)]
pub enum ToolCallingMode<'a> {
    /// Native calls of the upstream, which can carry any arguments.
    Native,
    /// As text of this protocol.
    Text(&'a dyn TextProtocol),
}

/// A tool, and whether an agent is offered it.
#[derive(Clone)]
pub struct DiscoveredTool {
    /// Tool in question.
    pub tool: Arc<RegisteredTool>,
    /// Availability of the tool.
    pub availability: ToolAvailability,
}

impl fmt::Debug for DiscoveredTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.tool.spec().name, self.availability)
    }
}

/// Availability of a tool to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolAvailability {
    /// Offered to the model.
    Offered,
    /// Not offered, for this reason.
    Withheld(WithheldReason),
}

/// Reason why a tool is not offered: the first that applies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WithheldReason {
    /// Registered for other uses than by models.
    NotCallable,
    /// The agent has no tools at all.
    ToolsOff,
    /// Switched off.
    SwitchedOff {
        /// The switch: the tool's name or a part of it; `None` = what holds where no switch is set.
        by: Option<String>,
    },
    /// Its calls cannot be written in the text protocol.
    NotInProtocol {
        /// Name of the text protocol.
        protocol: &'static str,
        /// Obstacle, in a sentence.
        why: String,
    },
}

impl fmt::Display for WithheldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WithheldReason::NotCallable => f.write_str("models may not call it (agent_callable)"),
            WithheldReason::ToolsOff => f.write_str("the agent has no tools (tool_call.enabled = false)"),
            WithheldReason::SwitchedOff { by: Some(name) } => {
                write!(f, "disabled (tool_toggles.\"{name}\" = false)")
            }
            WithheldReason::SwitchedOff { by: None } => {
                f.write_str("not switched on (default_tool_enabled = false)")
            }
            WithheldReason::NotInProtocol { protocol, why } => {
                write!(f, "cannot be called in the text protocol {protocol}: {why}")
            }
        }
    }
}

/// Every tool of a registry, in the order of their names, with what an agent is offered of it.
///
/// ```
/// use throughline_tools::{NoArguments, ToolAvailability, ToolCallingMode, ToolRegistry, ToolToggle, ToolToggles};
/// use throughline_tools::{discover, tool};
///
/// let quiet = |name: &str| tool(name, "", |_: NoArguments, _| async {}).agent_callable();
/// let registry = ToolRegistry::builder().tool(quiet("time.now")).tool(quiet("files.read")).build()?;
/// let toggles = ToolToggles::default().set("files", ToolToggle::Off);
/// let found = discover(&registry, ToolToggle::On, &toggles, ToolCallingMode::Native);
/// assert_eq!(found[1].availability, ToolAvailability::Offered);
/// let ToolAvailability::Withheld(why) = &found[0].availability else { panic!("it is switched off") };
/// assert_eq!(why.to_string(), "disabled (tool_toggles.\"files\" = false)");
/// # Ok::<(), throughline_tools::RegistryError>(())
/// ```
pub fn discover(
    registry: &ToolRegistry,
    tools: ToolToggle,
    toggles: &ToolToggles,
    mode: ToolCallingMode<'_>,
) -> Vec<DiscoveredTool> {
    let to_discovered = |tool: &Arc<RegisteredTool>| DiscoveredTool {
        tool: tool.clone(),
        availability: availability(tool, tools, toggles, mode),
    };
    registry.iter().map(to_discovered).collect()
}

fn availability(
    tool: &RegisteredTool,
    tools: ToolToggle,
    toggles: &ToolToggles,
    mode: ToolCallingMode<'_>,
) -> ToolAvailability {
    let spec = tool.spec();
    if spec.agent_callable == AgentCallable::No {
        return ToolAvailability::Withheld(WithheldReason::NotCallable);
    }
    if tools == ToolToggle::Off {
        return ToolAvailability::Withheld(WithheldReason::ToolsOff);
    }
    if let (by, ToolToggle::Off) = toggles.resolve(&spec.name) {
        return ToolAvailability::Withheld(WithheldReason::SwitchedOff { by: by.map(str::to_owned) });
    }
    if let ToolCallingMode::Text(protocol) = mode
        && let Err(why) = protocol.can_offer(&tool.definition())
    {
        return ToolAvailability::Withheld(WithheldReason::NotInProtocol { protocol: protocol.name(), why });
    }
    ToolAvailability::Offered
}

impl DiscoveredTool {
    /// True if it is offered.
    pub fn is_offered(&self) -> bool {
        self.availability == ToolAvailability::Offered
    }
}
