//! The settings of an agent that configuration and requests share: transport of calls, text protocol, steering, limits.

use serde::{Deserialize, Serialize};
use throughline_engine::TurnLimits;

/// Transport of tool calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolMode {
    /// Native calls. If the upstream refuses tools, the message reports that and how to switch.
    #[default]
    Auto,
    /// The upstream's own tool calling.
    Native,
    /// A text protocol, for models without tools.
    Text,
}

impl ToolMode {
    /// Name of the mode, as in `stream_start`.
    pub fn name(self) -> &'static str {
        match self {
            ToolMode::Auto => "auto",
            ToolMode::Native => "native",
            ToolMode::Text => "text",
        }
    }

    /// Names of all modes.
    pub const NAMES: [&'static str; 3] = ["auto", "native", "text"];

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [ToolMode::Auto, ToolMode::Native, ToolMode::Text].into_iter().find(|mode| mode.name() == name)
    }
}

/// Text protocols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TextProtocolKind {
    /// Blocks between `<<<[TOOL_REQUEST]>>>` and `<<<[END_TOOL_REQUEST]>>>`.
    #[default]
    Vcp,
    /// `<tool_call>{…}</tool_call>`, on which Hermes and Qwen models are trained.
    Xml,
}

impl TextProtocolKind {
    /// Name of the protocol, as in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            TextProtocolKind::Vcp => "vcp",
            TextProtocolKind::Xml => "xml",
        }
    }

    /// Names of all protocols.
    pub const NAMES: [&'static str; 2] = ["vcp", "xml"];

    /// The protocol of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [TextProtocolKind::Vcp, TextProtocolKind::Xml].into_iter().find(|protocol| protocol.name() == name)
    }
}

/// Handling of messages that the user sends while a reply is running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SteeringMode {
    /// The model receives the message at the next step of the same turn.
    #[default]
    NextStep,
    /// The message is queued and starts the next turn.
    AfterTurn,
}

/// Moment at which tools without side effects start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStartMode {
    /// While the model still talks.
    Eager,
    /// Tools start once the model's stream has ended.
    AfterStream,
}

/// `limits = { … }` of an agent; each field as in [`TurnLimits`]. The steps with calls are its
/// `tool_call.max_iterations`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "fields are documented in throughline_engine::TurnLimits")]
pub struct AgentLimitsSection {
    pub pauses_max: Option<u32>,
    pub calls_per_turn_max: Option<u32>,
    pub approval_ms_max: Option<u64>,
    pub cancel_grace_ms: Option<u64>,
    pub tool_overrun_ms: Option<u64>,
    pub output_bytes_max: Option<usize>,
    pub shortened_output_bytes_max: Option<usize>,
    pub progress_events_max: Option<u32>,
    pub problems_per_step_max: Option<u32>,
    pub messages_queued_max: Option<u32>,
    pub own_tool_ms_max: Option<u64>,
    pub takeovers_max: Option<u32>,
    pub questions_per_call_max: Option<u32>,
    pub asked_ms_max: Option<u64>,
}

impl AgentLimitsSection {
    /// Applies these settings over the global limits.
    pub fn over(self, base: TurnLimits) -> TurnLimits {
        TurnLimits {
            iterations_max: base.iterations_max,
            pauses_max: self.pauses_max.unwrap_or(base.pauses_max),
            calls_per_turn_max: self.calls_per_turn_max.unwrap_or(base.calls_per_turn_max),
            approval_ms_max: self.approval_ms_max.or(base.approval_ms_max),
            cancel_grace_ms: self.cancel_grace_ms.unwrap_or(base.cancel_grace_ms),
            tool_overrun_ms: self.tool_overrun_ms.unwrap_or(base.tool_overrun_ms),
            output_bytes_max: self.output_bytes_max.unwrap_or(base.output_bytes_max),
            shortened_output_bytes_max: self
                .shortened_output_bytes_max
                .unwrap_or(base.shortened_output_bytes_max),
            progress_events_max: self.progress_events_max.unwrap_or(base.progress_events_max),
            problems_per_step_max: self.problems_per_step_max.unwrap_or(base.problems_per_step_max),
            questions_per_call_max: self.questions_per_call_max.unwrap_or(base.questions_per_call_max),
            asked_ms_max: self.asked_ms_max.unwrap_or(base.asked_ms_max),
            messages_queued_max: self.messages_queued_max.unwrap_or(base.messages_queued_max),
            own_tool_ms_max: self.own_tool_ms_max.unwrap_or(base.own_tool_ms_max),
            takeovers_max: self.takeovers_max.unwrap_or(base.takeovers_max),
        }
    }
}
