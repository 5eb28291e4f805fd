//! Who answers: prompt, models and the use of tools under one name.

use crate::config::{AgentLimitsSection, ResultsAs, SteeringMode, TextProtocolKind, ToolMode};
use crate::prompt::PromptTemplate;
use throughline_engine::{
    ConfirmMode, ExecutionMode, LoopGuard, OnInterrupted, Policy, PolicyRule, StartRule, UpstreamChoice,
};
use throughline_tools::{ToolToggle, ToolToggles};

/// A named set of prompt, models and tool settings.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// The model, then those to fall back on.
    pub models: Vec<UpstreamChoice>,
    /// How calls travel. R: T3
    pub mode: ToolMode,
    /// Template of the system prompt. R: X5
    pub prompt: Option<PromptTemplate>,
    /// Sampling.
    pub settings: throughline_wire::ModelSettings,
    /// Use of tools.
    pub tool_call: AgentTools,
    /// What may run unasked, and what may not run at all; the first rule that fits decides. R: A1
    pub policy: Vec<PolicyRule>,
    /// When the model goes in circles. R: T10
    pub guard: LoopGuard,
    /// What becomes of a message that comes while a reply runs. R: T14
    pub steering: SteeringMode,
    /// What becomes of a turn whose process died, when another takes it over. R: S3
    pub on_interrupted: OnInterrupted,
    /// Bounds that differ from those of all agents.
    pub limits: AgentLimitsSection,
}

impl Agent {
    /// An agent of this name with nothing but models, and tools as [`AgentTools::default`] has them.
    pub fn new(name: impl Into<String>, models: Vec<UpstreamChoice>) -> Self {
        Self {
            name: name.into(),
            models,
            mode: ToolMode::Auto,
            prompt: None,
            settings: throughline_wire::ModelSettings::default(),
            tool_call: AgentTools::default(),
            policy: Vec::new(),
            guard: LoopGuard::default(),
            steering: SteeringMode::default(),
            on_interrupted: OnInterrupted::Continue,
            limits: AgentLimitsSection::default(),
        }
    }

    /// Its rules and what is asked about beside them, as the machine takes them. R: A1
    pub fn policy(&self) -> Policy {
        Policy { rules: self.policy.clone(), confirm: self.tool_call.confirm() }
    }
}

/// How an agent uses tools.
#[derive(Clone, Debug)]
pub struct AgentTools {
    /// Whether it has any.
    pub tools: ToolToggle,
    /// Who starts calls.
    pub mode: CallStartMode,
    /// Which of them.
    pub toggles: ToolToggles,
    /// Steps with calls in a turn.
    pub max_iterations: u32,
    /// Time limit of a tool that has none of its own, in milliseconds.
    pub timeout_ms: u64,
    /// What is asked about beside what the rules say. R: A1
    pub confirmation: ConfirmationMode,
    /// How many run at once.
    pub execution: ExecutionMode,
    /// The protocol of text mode. R: X1
    pub protocol: TextProtocolKind,
    /// When those that change nothing start.
    pub start: StartRule,
    /// Who says results in text mode.
    pub results: ResultsAs,
}

/// Who starts calls: `tool_call.mode` of seed 002 (T3). How calls travel is [`ToolMode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallStartMode {
    /// They run as the rules say.
    #[default]
    Auto,
    /// Each waits for a person, without expiry; nothing runs by itself.
    Manual,
}

/// `require_confirmation`. R: A1
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfirmationMode {
    /// The rules decide.
    #[default]
    ByPolicy,
    /// Every call asks, whatever it may do.
    Everything,
}

impl AgentTools {
    /// What is asked about beside what the rules say. R: T3, A1
    pub fn confirm(&self) -> ConfirmMode {
        match (self.mode, self.confirmation) {
            (CallStartMode::Manual, _) => ConfirmMode::Manual,
            (CallStartMode::Auto, ConfirmationMode::Everything) => ConfirmMode::Everything,
            (CallStartMode::Auto, ConfirmationMode::ByPolicy) => ConfirmMode::ByRule,
        }
    }
}

impl Default for AgentTools {
    /// Tools on, everything else as in seed 002: what an agent that is not written in a file has.
    fn default() -> Self {
        Self {
            tools: ToolToggle::On,
            mode: CallStartMode::Auto,
            toggles: ToolToggles::default(),
            max_iterations: 5,
            timeout_ms: 30_000,
            confirmation: ConfirmationMode::ByPolicy,
            execution: ExecutionMode::Serial,
            protocol: TextProtocolKind::Vcp,
            start: StartRule::Eager,
            results: ResultsAs::User,
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
