//! The value of `{{ tools }}`: the guide of a text protocol, and a definition for each tool.

use throughline_tools::{DiscoveredTool, ToolAvailability};
use throughline_wire::text_calls::TextProtocol;
use throughline_wire::{ToolDefinition, ToolName};

/// The tools of an agent as text. Empty for tools that travel natively: the upstream receives them separately from
/// the prompt.
#[derive(Clone, Debug, Default)]
pub struct ToolsText {
    /// Instructions for calling tools; placed once, before the first definitions.
    pub guide: String,
    /// Texts of the tools, sorted by name.
    pub tools: Vec<ToolText>,
    /// Protocol and definitions of the tools, in the order of `tools`: some protocols put one frame around
    /// all definitions.
    combined: Option<(&'static dyn TextProtocol, Vec<ToolDefinition>)>,
}

/// Prompt text of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolText {
    /// Name of the tool.
    pub name: ToolName,
    /// Source of the tool.
    pub source: String,
    /// Definition in the protocol, complete by itself.
    pub definition: String,
}

impl ToolsText {
    /// Texts of the offered tools among `found`, in the syntax of `protocol`.
    pub fn new(protocol: &'static dyn TextProtocol, found: &[DiscoveredTool]) -> Self {
        let offered = || found.iter().filter(|found| found.availability == ToolAvailability::Offered);
        let definitions = offered().map(|found| found.tool.definition()).collect();
        let tools: Vec<ToolText> = offered()
            .map(|DiscoveredTool { tool, .. }| ToolText {
                name: tool.spec().name.clone(),
                source: tool.spec().source.clone(),
                definition: protocol.definitions(&[tool.definition()]),
            })
            .collect();
        let guide = if tools.is_empty() { String::new() } else { protocol.guide().to_owned() };
        Self { guide, tools, combined: Some((protocol, definitions)) }
    }

    /// Texts given as they are, without a protocol.
    pub fn plain(guide: impl Into<String>, tools: Vec<ToolText>) -> Self {
        Self { guide: guide.into(), tools, combined: None }
    }

    /// The definitions of some of the tools.
    pub fn definitions(&self, tools: &[&ToolText]) -> String {
        match &self.combined {
            None => paragraphs(tools.iter().map(|tool| &tool.definition)),
            Some((protocol, definitions)) => {
                let is_wanted = |own: &ToolText| tools.iter().any(|tool| tool.name == own.name);
                let matching = self.tools.iter().zip(definitions).filter(|(own, _)| is_wanted(own));
                protocol.definitions(&matching.map(|(_, definition)| definition.clone()).collect::<Vec<_>>())
            }
        }
    }

    /// True if no tool is listed.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The guide and all definitions, one blank line between.
    pub fn full_text(&self) -> String {
        paragraphs([&self.guide, &self.definitions(&self.tools.iter().collect::<Vec<_>>())].into_iter())
    }

    /// The definitions of the tools that `name` means: a source (`mcp:files`, or all of `mcp`), a group (`files`) or one
    /// tool (`files.read`). `None` = it means none.
    pub fn matching(&self, name: &str) -> Option<Vec<&ToolText>> {
        let matching: Vec<&ToolText> = self.tools.iter().filter(|tool| tool.matches(name)).collect();
        (!matching.is_empty()).then_some(matching)
    }
}

impl ToolText {
    fn matches(&self, name: &str) -> bool {
        let is_at_border = |whole: &str, border: char| {
            whole.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(border))
        };
        is_at_border(&self.source, ':') || is_at_border(self.name.as_str(), '.')
    }
}

/// Texts with one blank line between those that are not empty.
pub(super) fn paragraphs<'t>(texts: impl Iterator<Item = &'t String>) -> String {
    let parts: Vec<&str> =
        texts.map(|text| text.trim_matches('\n')).filter(|text| !text.is_empty()).collect();
    parts.join("\n\n")
}
