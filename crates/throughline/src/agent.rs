//! Who answers: prompt, models and the use of tools under one name.

use crate::config::Mode;
use throughline_engine::{Execution, StartRule, UpstreamChoice};
use throughline_tools::{Toggle, Toggles};

/// A named set of prompt, models and tool settings.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// The model, then those to fall back on.
    pub models: Vec<UpstreamChoice>,
    /// System prompt.
    pub prompt: Option<String>,
    /// Sampling.
    pub settings: throughline_wire::Settings,
    /// Use of tools.
    pub tool_call: ToolCall,
}

/// How an agent uses tools.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Whether it has any.
    pub tools: Toggle,
    /// How calls travel.
    pub mode: Mode,
    /// Which of them.
    pub toggles: Toggles,
    /// Steps with calls in a turn.
    pub max_iterations: u32,
    /// Time limit of a tool that has none of its own, in milliseconds.
    pub timeout_ms: u64,
    /// How many run at once.
    pub execution: Execution,
    /// When those that change nothing start.
    pub start: StartRule,
}

impl Default for ToolCall {
    /// Tools on, everything else as in seed 002: what an agent that is not written in a file has.
    fn default() -> Self {
        Self {
            tools: Toggle::On,
            mode: Mode::Auto,
            toggles: Toggles::default(),
            max_iterations: 5,
            timeout_ms: 30_000,
            execution: Execution::Serial,
            start: StartRule::Eager,
        }
    }
}

/// `upstream/model` taken apart. The model's own name may contain further slashes.
pub(crate) fn parse_model(text: &str) -> Result<UpstreamChoice, String> {
    match text.split_once('/') {
        Some((upstream, model)) if !upstream.is_empty() && !model.is_empty() => {
            Ok(UpstreamChoice { name: upstream.to_owned(), model: model.to_owned() })
        }
        _ => Err(format!("`{text}` is not `upstream/model`")),
    }
}
