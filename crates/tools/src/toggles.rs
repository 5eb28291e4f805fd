//! Selection of an agent's tools: switches for a group or one method, the more exact wins.

use std::collections::BTreeMap;
use throughline_wire::ToolName;

/// Switch of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolToggle {
    /// Offered, if the tool is callable by agents at all.
    #[default]
    On,
    /// Not offered.
    Off,
}

/// An agent's switches (`tool_toggles`), and what holds where none is set (`default_tool_enabled`).
///
/// ```
/// use throughline_tools::{ToolToggle, ToolToggles};
/// let toggles = ToolToggles::new(ToolToggle::On).set("files", ToolToggle::Off).set("files.read", ToolToggle::On);
/// assert_eq!(toggles.get(&"files.read".into()), ToolToggle::On);
/// assert_eq!(toggles.get(&"files.search".into()), ToolToggle::Off);
/// assert_eq!(toggles.get(&"time.now".into()), ToolToggle::On);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolToggles {
    default: ToolToggle,
    set: BTreeMap<String, ToolToggle>,
}

impl ToolToggles {
    /// No switches: `default` holds for every tool.
    pub fn new(default: ToolToggle) -> Self {
        Self { default, set: BTreeMap::new() }
    }

    /// Sets the switch of a group (`files`) or a tool (`files.read`).
    #[must_use]
    pub fn set(mut self, name: impl Into<String>, toggle: ToolToggle) -> Self {
        self.set.insert(name.into(), toggle);
        self
    }

    /// The switch of a tool: its own, else that of the longest part of its name that ends before a dot.
    pub fn get(&self, name: &ToolName) -> ToolToggle {
        self.resolve(name).1
    }

    /// State of a tool, with the name of the switch that decides; `None` = no switch is set for it.
    pub fn resolve<'n>(&self, name: &'n ToolName) -> (Option<&'n str>, ToolToggle) {
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
    pub fn switches(&self) -> impl Iterator<Item = (&str, ToolToggle)> {
        self.set.iter().map(|(name, toggle)| (name.as_str(), *toggle))
    }

    /// The default where no switch is set.
    pub fn default_toggle(&self) -> ToolToggle {
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
    fn most_specific_toggle_wins() {
        let toggles = ToolToggles::new(ToolToggle::Off)
            .set("mcp", ToolToggle::On)
            .set("mcp.git", ToolToggle::Off)
            .set("mcp.git.log", ToolToggle::On)
            .set("time.now", ToolToggle::On);
        for (name, expected) in [
            ("mcp.time", ToolToggle::On),
            ("mcp.git", ToolToggle::Off),
            ("mcp.git.push", ToolToggle::Off),
            ("mcp.git.log", ToolToggle::On),
            ("mcp.github", ToolToggle::On),
            ("mcpx.time", ToolToggle::Off),
            ("time.now", ToolToggle::On),
            ("time.nowhere", ToolToggle::Off),
        ] {
            assert_eq!(toggles.get(&name.into()), expected, "{name}");
        }
    }
}
