//! Discovery: all tools -> those that models may call -> those that the agent has switched on -> those that can be
//! written in its protocol. The reason why a tool is not offered is kept, since that is what people ask. R: L3

use crate::registry::{Registered, Registry};
use crate::toggles::{Toggle, Toggles};
use crate::tool::AgentCallable;
use std::fmt;
use std::sync::Arc;
use throughline_wire::text::TextProtocol;

/// How an agent's calls travel.
#[derive(Clone, Copy, Debug)]
pub enum Way<'a> {
    /// As the upstream's own calls, which can carry any arguments.
    Native,
    /// As text of this protocol.
    Text(&'a dyn TextProtocol),
}

/// A tool, and whether an agent is offered it.
#[derive(Clone)]
pub struct Found {
    /// The tool.
    pub tool: Arc<Registered>,
    /// Whether it is offered.
    pub verdict: Verdict,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.tool.spec().name, self.verdict)
    }
}

/// Whether an agent is offered a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Offered,
    /// It is not.
    Withheld(Withheld),
}

/// Why a tool is not offered: the first reason that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// It is registered for other uses than by models.
    NotCallable,
    /// The agent has no tools at all.
    ToolsOff,
    /// It is switched off.
    SwitchedOff {
        /// The switch: the tool's name or a part of it; `None` = what holds where no switch is set.
        by: Option<String>,
    },
    /// Its calls cannot be written in the protocol.
    NotInProtocol {
        /// The protocol's name.
        protocol: &'static str,
        /// Why.
        why: String,
    },
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Withheld::NotCallable => f.write_str("models may not call it (agent_callable)"),
            Withheld::ToolsOff => f.write_str("the agent has no tools (tool_call.enabled = false)"),
            Withheld::SwitchedOff { by: Some(name) } => {
                write!(f, "switched off (tool_toggles.\"{name}\" = false)")
            }
            Withheld::SwitchedOff { by: None } => {
                f.write_str("not switched on (default_tool_enabled = false)")
            }
            Withheld::NotInProtocol { protocol, why } => {
                write!(f, "cannot be called in the text protocol {protocol}: {why}")
            }
        }
    }
}

/// Every tool of a registry, in the order of their names, with what an agent is offered of it.
///
/// ```
/// use throughline_tools::{NoArguments, Registry, Toggle, Toggles, Verdict, Way, discover, tool};
///
/// let quiet = |name: &str| tool(name, "", |_: NoArguments, _| async {}).agent_callable();
/// let registry = Registry::builder().tool(quiet("time.now")).tool(quiet("files.read")).build()?;
/// let found = discover(&registry, Toggle::On, &Toggles::default().set("files", Toggle::Off), Way::Native);
/// assert_eq!(found[1].verdict, Verdict::Offered);
/// let Verdict::Withheld(why) = &found[0].verdict else { panic!("it is switched off") };
/// assert_eq!(why.to_string(), "switched off (tool_toggles.\"files\" = false)");
/// # Ok::<(), throughline_tools::RegistryError>(())
/// ```
pub fn discover(registry: &Registry, tools: Toggle, toggles: &Toggles, way: Way<'_>) -> Vec<Found> {
    let found =
        |tool: &Arc<Registered>| Found { tool: tool.clone(), verdict: verdict(tool, tools, toggles, way) };
    registry.iter().map(found).collect()
}

fn verdict(tool: &Registered, tools: Toggle, toggles: &Toggles, way: Way<'_>) -> Verdict {
    let spec = tool.spec();
    if spec.agent_callable == AgentCallable::No {
        return Verdict::Withheld(Withheld::NotCallable);
    }
    if tools == Toggle::Off {
        return Verdict::Withheld(Withheld::ToolsOff);
    }
    if let (by, Toggle::Off) = toggles.deciding(&spec.name) {
        return Verdict::Withheld(Withheld::SwitchedOff { by: by.map(str::to_owned) });
    }
    if let Way::Text(protocol) = way
        && let Err(why) = protocol.can_offer(&tool.definition())
    {
        return Verdict::Withheld(Withheld::NotInProtocol { protocol: protocol.name(), why });
    }
    Verdict::Offered
}

impl Found {
    /// Whether it is offered.
    pub fn is_offered(&self) -> bool {
        self.verdict == Verdict::Offered
    }
}
