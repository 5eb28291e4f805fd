//! Tools that a provider runs itself.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A tool that the provider runs within a model call. Its calls and results are shown, and nothing runs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HostedToolKind {
    /// Web search.
    WebSearch,
    /// Runs code that the model writes, in a sandbox of the provider.
    CodeExecution,
}

impl HostedToolKind {
    /// All hosted tools.
    pub const ALL: [HostedToolKind; 2] = [HostedToolKind::WebSearch, HostedToolKind::CodeExecution];

    /// The name used in configuration.
    pub fn name(self) -> &'static str {
        match self {
            HostedToolKind::WebSearch => "web_search",
            HostedToolKind::CodeExecution => "code_execution",
        }
    }
}

impl fmt::Display for HostedToolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
