//! Agents: a prompt, models and tool settings under one name.

mod modes;
pub mod prompt;
pub(crate) mod tool_selection;
pub(crate) mod tool_transport;

pub use modes::{AgentLimitsSection, SteeringMode, TextProtocolKind, ToolMode, ToolStartMode};
pub use throughline_wire::text_calls::ResultRole;
pub use tool_selection::{SourceTokens, ToolSelection};

use prompt::PromptTemplate;
use throughline_engine::{
    ConfirmMode, ExecutionMode, LoopGuard, OnInterrupted, PermissionPreset, Policy, PolicyRule, StartRule,
    TextRule, UpstreamChoice,
};
use throughline_tools::{ToolToggle, ToolToggles};

/// A named set of prompt, models and tool settings.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Name of the agent.
    pub name: String,
    /// The model, then those to fall back on.
    pub models: Vec<UpstreamChoice>,
    /// Transport of tool calls: native, text or chosen by upstream.
    pub mode: ToolMode,
    /// Template of the system prompt.
    pub prompt: Option<PromptTemplate>,
    /// Sampling.
    pub settings: throughline_wire::ModelSettings,
    /// Use of tools.
    pub tool_call: AgentTools,
    /// Rules for what may run without approval and what may not run at all; the first rule that matches decides.
    pub policy: Vec<PolicyRule>,
    /// Permission preset. It adds its rules after those of `policy`.
    pub permissions: Option<PermissionPreset>,
    /// Rules that rewrite the text shown to people or sent to the model, in order of application.
    pub text_rules: Vec<TextRule>,
    /// Limits on a model that repeats itself without progress.
    pub guard: LoopGuard,
    /// Handling of messages that arrive while a reply is running.
    pub steering: SteeringMode,
    /// Continue or end a turn that is taken over from a process that died.
    pub on_interrupted: OnInterrupted,
    /// Limits of this agent that differ from the global ones.
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
            permissions: None,
            text_rules: Vec::new(),
            guard: LoopGuard::default(),
            steering: SteeringMode::default(),
            on_interrupted: OnInterrupted::Continue,
            limits: AgentLimitsSection::default(),
        }
    }

    /// The rules and the confirmation mode, as the turn machine takes them.
    pub fn policy(&self) -> Policy {
        Policy {
            rules: self.policy.clone(),
            permissions: self.permissions,
            confirm: self.tool_call.confirm(),
        }
    }
}

/// Settings of an agent's tool use.
#[derive(Clone, Debug)]
pub struct AgentTools {
    /// Enables tools for the agent.
    pub tools: ToolToggle,
    /// Automatic calls, or calls that a person starts.
    pub mode: CallStartMode,
    /// The tools that are switched on.
    pub toggles: ToolToggles,
    /// Steps with calls in a turn.
    pub max_iterations: u32,
    /// Time limit of a tool that sets none, in milliseconds.
    pub timeout_ms: u64,
    /// Calls that ask for approval in addition to those that the rules name.
    pub confirmation: ConfirmationMode,
    /// Serial or parallel execution of calls.
    pub execution: ExecutionMode,
    /// The protocol of text mode.
    pub protocol: TextProtocolKind,
    /// The moment at which tools without side effects start.
    pub start: StartRule,
    /// Role of tool results in text mode.
    pub results: ResultRole,
}

/// Calls run automatically or are started by a person: `tool_call.mode`. The transport of calls is
/// [`ToolMode`](crate::config::ToolMode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallStartMode {
    /// Calls run as the rules allow.
    #[default]
    Auto,
    /// Every call waits for a person, without expiry; none starts automatically.
    Manual,
}

/// Calls that ask for approval: `require_confirmation`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfirmationMode {
    /// The rules decide.
    #[default]
    ByPolicy,
    /// Every call asks, regardless of its effect.
    Everything,
}

impl AgentTools {
    /// The same setting in the form that the turn machine takes.
    pub fn confirm(&self) -> ConfirmMode {
        match (self.mode, self.confirmation) {
            (CallStartMode::Manual, _) => ConfirmMode::Manual,
            (CallStartMode::Auto, ConfirmationMode::Everything) => ConfirmMode::Everything,
            (CallStartMode::Auto, ConfirmationMode::ByPolicy) => ConfirmMode::ByRule,
        }
    }
}

impl Default for AgentTools {
    /// Tools on and the defaults of the configuration file: the settings of an agent that no file describes.
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
            results: ResultRole::User,
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
