//! Tools, prompts and inspected replies as data: one form for `throughline tools --json`, `throughline parse --json`
//! and the server's API, with the feature `openapi` also its schemas.

use super::{CallOrigin, CallPrediction, InspectedCall, ReplyInspection};
use crate::agent::{SourceTokens, ToolSelection, prompt};
use serde::Serialize;
use serde_json::Value;
use throughline_engine::Effect;
use throughline_tools::{AgentCallable, PermissionRule, RegisteredTool, RunsOn, ToolAvailability};
use throughline_wire::text_calls::{FindingKind, MarkupFinding};
use throughline_wire::{ToolName, WireName, display_escape};

/// A tool, as an agent is offered it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ToolInfo))]
pub struct ToolDescription {
    /// `group.method`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "files.read"))]
    pub name: ToolName,
    /// Title for people.
    pub title: String,
    /// Description for the model.
    pub description: String,
    /// Effect: `pure`, `read`, `cosmetic`, `idempotent`, `write` or `external`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "read"))]
    pub effect: Effect,
    /// Source: `builtin`, `mcp:files`, ...
    #[cfg_attr(feature = "openapi", schema(example = "builtin"))]
    pub source: String,
    /// True if models may call it.
    pub callable: bool,
    /// True if the agent is offered it.
    pub offered: bool,
    /// Reason why it is not offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// True if it asks for approval where no rule decides otherwise.
    pub asks: bool,
    /// Name in model requests.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub wire_name: WireName,
    /// `here`, or `client` = in a connected page or app.
    pub runs_on: &'static str,
    /// Time limit in milliseconds.
    pub timeout_ms: u64,
    /// JSON Schema of its arguments.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
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
            asks: spec.permission == PermissionRule::Ask || spec.effect.has_effects(),
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

/// Prompt of an agent in one mode.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = PromptPreview))]
pub struct PromptDescription {
    /// Name of the agent.
    pub agent: String,
    /// Tool-calling mode.
    pub mode: &'static str,
    /// Text protocol; absent if calls are native.
    pub protocol: Option<&'static str>,
    /// System prompt, including the tools in text mode.
    pub prompt: String,
    /// Text that replaces `{{ tools }}`; empty if calls are native.
    pub tools_text: String,
    /// Names of the offered tools.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub tools: Vec<ToolName>,
    /// Tools that are not offered, with reasons.
    pub left_out: Vec<WithheldTool>,
    /// `tools("…")` in the prompt that match nothing.
    pub unmatched: Vec<String>,
    /// Cost in tokens.
    pub tokens: PromptTokens,
}

/// A tool that is not offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = OmittedTool))]
pub struct WithheldTool {
    /// The tool.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: ToolName,
    /// The first reason that applies.
    pub why: String,
}

/// Tokens of everything that is sent before the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = PromptTokensInfo))]
pub struct PromptTokens {
    /// Total.
    pub total: usize,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens of the tools by source.
    pub sources: Vec<SourceTokens>,
    /// `exact` or `estimated`.
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

/// Parsed reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ParsedReply))]
pub struct InspectionDescription {
    /// Calls and refused blocks, in the order of the text.
    pub requests: Vec<RequestDescription>,
    /// Warnings, in the order of the text.
    pub warnings: Vec<WarningDescription>,
    /// Text without markup, as a reader sees it.
    pub text: String,
}

/// A call in a text, or a block that was refused.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ParsedRequest))]
pub struct RequestDescription {
    /// The text protocol, or the format of a leaked call.
    pub format: &'static str,
    /// True for another model's markup that leaked into the text.
    pub leaked: bool,
    /// Name as written.
    pub name: String,
    /// The tool that it calls.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub tool: Option<ToolName>,
    /// The arguments, if they could be read.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub arguments: Option<Value>,
    /// The same as JSON text for people: nothing in it is invisible, and it reads as the same value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_text: Option<String>,
    /// `runs`, `asks`, `denied` or `not_started`.
    pub outlook: &'static str,
    /// The rule that decides.
    pub rule: Option<String>,
    /// Reason why it would not run.
    pub why: Option<String>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// First byte of the block.
    pub start: usize,
    /// First byte after it.
    pub end: usize,
}

/// A finding in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ParsedWarning))]
pub struct WarningDescription {
    /// Stable code.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: FindingKind,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Byte offset in the text.
    pub at: usize,
    /// Message.
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

/// Expected handling of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CallOutlook))]
pub struct PredictionDescription {
    /// `runs`, `asks`, `denied` or `not_started`.
    #[cfg_attr(feature = "openapi", schema(example = "asks"))]
    pub outlook: &'static str,
    /// The rule that decides: `rule:2 allow files.*` is the second of the policy.
    #[cfg_attr(feature = "openapi", schema(example = "rule:2 allow files.*"))]
    pub rule: Option<String>,
    /// Reason why it would not run.
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
            arguments_text: request.arguments.as_ref().map(display_escape::json),
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
