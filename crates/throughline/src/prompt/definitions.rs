//! What `{{ tools }}` stands for: the guide of a text protocol, and a definition for each tool.

use throughline_tools::{Found, Verdict};
use throughline_wire::ToolName;
use throughline_wire::text::TextProtocol;

/// The tools of an agent as text. Empty for tools that travel natively: the upstream is told of them beside the prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolsText {
    /// How to call; said once, in front of the first definitions.
    pub guide: String,
    /// In stable order: by name.
    pub tools: Vec<ToolText>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolText {
    /// Its name.
    pub name: ToolName,
    /// Where it comes from.
    pub source: String,
    /// Its definition in the protocol.
    pub definition: String,
}

impl ToolsText {
    /// The offered ones of `found` in the words of `protocol`.
    pub fn new(protocol: &dyn TextProtocol, found: &[Found]) -> Self {
        let offered = found.iter().filter(|found| found.verdict == Verdict::Offered);
        let tools: Vec<ToolText> = offered
            .map(|Found { tool, .. }| ToolText {
                name: tool.spec().name.clone(),
                source: tool.spec().source.clone(),
                definition: protocol.definitions(&[tool.definition()]),
            })
            .collect();
        let guide = if tools.is_empty() { String::new() } else { protocol.guide().to_owned() };
        Self { guide, tools }
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The guide and all definitions, one blank line between.
    pub fn all(&self) -> String {
        paragraphs(std::iter::once(&self.guide).chain(self.tools.iter().map(|tool| &tool.definition)))
    }

    /// The definitions of the tools that `name` means: a source (`mcp:files`, or all of `mcp`), a group (`files`) or one
    /// tool (`files.read`). `None` = it means none.
    pub fn only(&self, name: &str) -> Option<Vec<&ToolText>> {
        let meant: Vec<&ToolText> = self.tools.iter().filter(|tool| tool.is_meant_by(name)).collect();
        (!meant.is_empty()).then_some(meant)
    }
}

impl ToolText {
    fn is_meant_by(&self, name: &str) -> bool {
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
