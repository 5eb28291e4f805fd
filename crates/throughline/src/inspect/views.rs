//! Tools, prompts and inspected replies as data: one form for `throughline tools --json`, `throughline parse --json`
//! and the server's API.
// R: L3, X5, W8

use super::{CallOrigin, CallPrediction, InspectedCall, ReplyInspection};
use crate::agent::{SourceTokens, ToolSelection, prompt};
use serde::Serialize;
use serde_json::Value;
use throughline_engine::Effect;
use throughline_tools::{AgentCallable, PermissionRule, RegisteredTool, RunsOn, ToolAvailability};
use throughline_wire::text::{FindingKind, MarkupFinding};
use throughline_wire::{ToolName, WireName};

/// A tool, and whether an agent is offered it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolDescription {
    /// `group.method`.
    pub name: ToolName,
    /// Display name.
    pub title: String,
    /// Purpose, for the model.
    pub description: String,
    /// Effect of running it.
    pub effect: Effect,
    /// Its source: `builtin`, `mcp:files`, ...
    pub source: String,
    /// True if models may call it at all.
    pub callable: bool,
    /// True if the agent is offered it.
    pub offered: bool,
    /// Reason for leaving it out, in a sentence.
    pub why_not: Option<String>,
    /// True if it asks for approval where no rule decides.
    pub asks: bool,
    /// Its name at upstreams.
    pub wire_name: WireName,
    /// Location where it runs: `here`, or `client` = in a connected page or app.
    pub runs_on: &'static str,
    /// Its time limit, in milliseconds.
    pub timeout_ms: u64,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

impl ToolDescription {
    /// Describes a tool as an agent finds it.
    pub fn new(tool: &RegisteredTool, verdict: &ToolAvailability) -> Self {
        let spec = tool.spec();
        Self {
            name: spec.name.clone(),
            title: spec.title.clone(),
            description: spec.description.clone(),
            effect: spec.effect,
            source: spec.source.clone(),
            callable: spec.agent_callable == AgentCallable::Yes,
            offered: *verdict == ToolAvailability::Offered,
            why_not: match verdict {
                ToolAvailability::Offered => None,
                ToolAvailability::Withheld(why) => Some(why.to_string()),
            },
            asks: spec.permission == PermissionRule::Ask
                || !matches!(spec.effect, Effect::Pure | Effect::Read | Effect::Cosmetic),
            wire_name: tool.wire_name().clone(),
            runs_on: match spec.runs_on {
                RunsOn::Here => "here",
                RunsOn::Client => "client",
            },
            timeout_ms: u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX),
            parameters: spec.parameters.clone(),
        }
    }
}

/// Prompt and tools of an agent, and their cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PromptDescription {
    /// Name of the agent.
    pub agent: String,
    /// Transport of tool calls.
    pub mode: &'static str,
    /// The text protocol, if they travel as text.
    pub protocol: Option<&'static str>,
    /// The system prompt, tools included if they travel as text.
    pub prompt: String,
    /// Value of `{{ tools }}`; empty if tools travel natively.
    pub tools_text: String,
    /// Names of the offered tools.
    pub tools: Vec<ToolName>,
    /// Tools that are not offered, and why.
    pub left_out: Vec<WithheldTool>,
    /// `tools("…")` of the prompt that mean nothing.
    pub unmatched: Vec<String>,
    /// Cost in tokens.
    pub tokens: PromptTokens,
}

/// A tool that an agent is not offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WithheldTool {
    /// The tool.
    pub name: ToolName,
    /// The first reason that holds.
    pub why: String,
}

/// Tokens of everything that is sent before the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromptTokens {
    /// Total: the prompt, and natively the tools.
    pub total: usize,
    /// The prompt alone.
    pub prompt: usize,
    /// The tools by their source.
    pub sources: Vec<SourceTokens>,
    /// `exact`, or `estimated` without a tokenizer.
    pub counting: &'static str,
}

impl From<&ToolSelection> for PromptDescription {
    fn from(selection: &ToolSelection) -> Self {
        let withheld = selection.discovered.iter().filter_map(|found| match &found.availability {
            ToolAvailability::Offered => None,
            ToolAvailability::Withheld(why) => {
                Some(WithheldTool { name: found.tool.spec().name.clone(), why: why.to_string() })
            }
        });
        let offered = selection.discovered.iter().filter(|found| found.is_offered());
        Self {
            agent: selection.agent.clone(),
            mode: selection.mode.name(),
            protocol: selection.protocol.map(|protocol| protocol.name()),
            prompt: selection.prompt.text.clone(),
            tools_text: selection.tools_text().full_text(),
            tools: offered.map(|found| found.tool.spec().name.clone()).collect(),
            left_out: withheld.collect(),
            unmatched: selection.prompt.unmatched.clone(),
            tokens: PromptTokens {
                total: selection.tokens(),
                prompt: prompt::count(&selection.prompt.text),
                sources: selection.tool_tokens(),
                counting: match prompt::counting() {
                    prompt::TokenCounting::Estimated => "estimated",
                    prompt::TokenCounting::Exact => "exact",
                },
            },
        }
    }
}

/// Contents of a reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InspectionDescription {
    /// Calls and refused blocks, in the order of the text.
    pub requests: Vec<RequestDescription>,
    /// Other findings, in the order of the text.
    pub warnings: Vec<WarningDescription>,
    /// The text that a reader would see.
    pub text: String,
}

/// A call in a text, or a block that is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestDescription {
    /// The text protocol, or the format of a leaked call.
    pub format: &'static str,
    /// It is another model's markup, and not of a text protocol.
    pub leaked: bool,
    /// As it was written.
    pub name: String,
    /// The tool that it means.
    pub tool: Option<ToolName>,
    /// The arguments, if they could be read.
    pub arguments: Option<Value>,
    /// `runs`, `asks`, `denied` or `not_started`.
    pub outlook: &'static str,
    /// The rule that decides.
    pub rule: Option<String>,
    /// Reason for not running it.
    pub why: Option<String>,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// First byte of the block.
    pub start: usize,
    /// Offset of the byte after it.
    pub end: usize,
}

/// A finding in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WarningDescription {
    /// A stable word.
    pub kind: FindingKind,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// In bytes of the text.
    pub at: usize,
    /// A sentence.
    pub message: String,
}

impl From<&ReplyInspection> for InspectionDescription {
    fn from(found: &ReplyInspection) -> Self {
        Self {
            requests: found.calls.iter().map(RequestDescription::from).collect(),
            warnings: found.warnings.iter().map(WarningDescription::from).collect(),
            text: found.visible_text.clone(),
        }
    }
}

/// Prediction of a call's fate in a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PredictionDescription {
    /// `runs`, `asks`, `denied` or `not_started`.
    pub outlook: &'static str,
    /// The rule that decides.
    pub rule: Option<String>,
    /// Reason for not running it.
    pub why: Option<String>,
}

impl From<&CallPrediction> for PredictionDescription {
    fn from(outlook: &CallPrediction) -> Self {
        let (outlook, rule, why) = match outlook {
            CallPrediction::Runs { rule } => ("runs", Some(rule), None),
            CallPrediction::Asks { rule } => ("asks", Some(rule), None),
            CallPrediction::Denied { rule, reason } => ("denied", Some(rule), Some(reason)),
            CallPrediction::NotStarted { why } => ("not_started", None, Some(why)),
        };
        Self { outlook, rule: rule.cloned(), why: why.cloned() }
    }
}

impl From<&InspectedCall> for RequestDescription {
    fn from(request: &InspectedCall) -> Self {
        let PredictionDescription { outlook, rule, why } = PredictionDescription::from(&request.prediction);
        Self {
            format: request.format,
            leaked: request.origin == CallOrigin::Leaked,
            name: request.name.clone(),
            tool: request.tool.clone(),
            arguments: request.arguments.clone(),
            outlook,
            rule,
            why,
            line: request.line,
            column: request.column,
            start: request.span.start,
            end: request.span.end,
        }
    }
}

impl From<&MarkupFinding> for WarningDescription {
    fn from(finding: &MarkupFinding) -> Self {
        Self {
            kind: finding.kind,
            line: finding.line,
            column: finding.column,
            at: finding.offset,
            message: finding.message.clone(),
        }
    }
}
