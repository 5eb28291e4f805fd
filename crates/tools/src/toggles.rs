//! Which tools an agent is offered: switches for a group or one method, the more exact wins.

use std::collections::BTreeMap;
use throughline_wire::ToolName;

/// A switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Toggle {
    /// Offered, if the tool is callable by agents at all.
    #[default]
    On,
    /// Not offered.
    Off,
}

/// An agent's switches (`tool_toggles`), and what holds where none is set (`default_tool_enabled`). R: L1 L3
///
/// ```
/// use throughline_tools::{Toggle, Toggles};
/// let toggles = Toggles::new(Toggle::On).set("files", Toggle::Off).set("files.read", Toggle::On);
/// assert_eq!(toggles.of(&"files.read".into()), Toggle::On);
/// assert_eq!(toggles.of(&"files.search".into()), Toggle::Off);
/// assert_eq!(toggles.of(&"time.now".into()), Toggle::On);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toggles {
    default: Toggle,
    set: BTreeMap<String, Toggle>,
}

impl Toggles {
    /// No switches: `default` holds for every tool.
    pub fn new(default: Toggle) -> Self {
        Self { default, set: BTreeMap::new() }
    }

    /// Sets the switch of a group (`files`) or a tool (`files.read`).
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, toggle: Toggle) -> Self {
        self.set.insert(name.into(), toggle);
        self
    }

    /// What holds for a tool: its own switch, else that of the longest part of its name that ends before a dot.
    pub fn of(&self, name: &ToolName) -> Toggle {
        self.deciding(name).1
    }

    /// The same, with the name of the switch that decides; `None` = no switch is set for it.
    pub fn deciding<'n>(&self, name: &'n ToolName) -> (Option<&'n str>, Toggle) {
        let mut part = name.as_str();
        loop {
            if let Some(toggle) = self.set.get(part) {
                return (Some(part), *toggle);
            }
            match part.rsplit_once('.') {
                Some((parent, _)) => part = parent,
                None => return (None, self.default),
            }
        }
    }

    /// The switches that are set, by name.
    pub fn switches(&self) -> impl Iterator<Item = (&str, Toggle)> {
        self.set.iter().map(|(name, toggle)| (name.as_str(), *toggle))
    }

    /// What holds where no switch is set.
    pub fn otherwise(&self) -> Toggle {
        self.default
    }

    /// The names that have a switch.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.set.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_exact_switch_wins() {
        let toggles = Toggles::new(Toggle::Off)
            .set("mcp", Toggle::On)
            .set("mcp.git", Toggle::Off)
            .set("mcp.git.log", Toggle::On)
            .set("time.now", Toggle::On);
        for (name, expected) in [
            ("mcp.time", Toggle::On),
            ("mcp.git", Toggle::Off),
            ("mcp.git.push", Toggle::Off),
            ("mcp.git.log", Toggle::On),
            ("mcp.github", Toggle::On),
            ("mcpx.time", Toggle::Off),
            ("time.now", Toggle::On),
            ("time.nowhere", Toggle::Off),
        ] {
            assert_eq!(toggles.of(&name.into()), expected, "{name}");
        }
    }
}
