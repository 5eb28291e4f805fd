//! Views of tools, prompts and parsed replies: the library's descriptions in the public form of the API, shared by the routes
//! of tools and of agents.

use crate::error::ApiError;
use serde::Serialize;
use serde_json::Value;
use throughline::config::{TextProtocolKind, ToolMode};
use throughline::views::{InspectionDescription, PromptDescription, ToolDescription};
use throughline_wire::visible;
use utoipa::ToSchema;

/// A tool, as an agent is offered it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolInfo {
    /// `group.method`.
    #[schema(example = "files.read")]
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Description for the model.
    pub description: String,
    /// Effect: `pure`, `read`, `cosmetic`, `idempotent`, `write` or `external`.
    #[schema(example = "read")]
    pub effect: String,
    /// Source: `builtin`, `mcp:files`, ...
    #[schema(example = "builtin")]
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
    pub wire_name: String,
    /// `here`, or `client` = in a connected page or app.
    pub runs_on: &'static str,
    /// Time limit in milliseconds.
    pub timeout_ms: u64,
    /// JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub parameters: Value,
}

impl From<ToolDescription> for ToolInfo {
    fn from(tool: ToolDescription) -> Self {
        Self {
            name: tool.name.as_str().to_owned(),
            title: visible::escape(&tool.title).into_owned(),
            description: tool.description,
            effect: variant_name(&tool.effect),
            source: tool.source,
            callable: tool.callable,
            offered: tool.offered,
            why_not: tool.why_not,
            asks: tool.asks,
            wire_name: tool.wire_name.as_str().to_owned(),
            runs_on: tool.runs_on,
            timeout_ms: tool.timeout_ms,
            parameters: tool.parameters,
        }
    }
}

/// The name of a variant on the wire.
pub(super) fn variant_name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(Value::Object(members)) => members.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

/// A source of tools.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolSourceInfo {
    /// `builtin`, `mcp:files`, ...
    pub name: String,
    /// Number of tools that the source has.
    pub tools: usize,
    /// Faults of the source.
    pub faults: Vec<SourceFaultInfo>,
}

/// A fault of a source. Its other tools keep working.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SourceFaultInfo {
    /// Tool that has the fault; absent if it is the whole source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// List of tools.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ToolList {
    /// Tools by name.
    pub tools: Vec<ToolInfo>,
    /// Sources by name, including those without tools.
    pub sources: Vec<ToolSourceInfo>,
    /// Toggles of the agent that match no tool.
    pub unknown_toggles: Vec<String>,
}

/// Prompt of an agent in one mode.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PromptPreview {
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
    pub tools: Vec<String>,
    /// Tools that are not offered, with reasons.
    pub left_out: Vec<OmittedTool>,
    /// `tools("…")` in the prompt that match nothing.
    pub unmatched: Vec<String>,
    /// Cost in tokens.
    pub tokens: PromptTokensInfo,
}

/// A tool that is not offered.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OmittedTool {
    /// The tool.
    pub name: String,
    /// The first reason that applies.
    pub why: String,
}

/// Tokens of everything that is sent before the conversation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PromptTokensInfo {
    /// Total.
    pub total: usize,
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens of the tools by source.
    pub sources: Vec<SourceTokensInfo>,
    /// `exact` or `estimated`.
    pub counting: &'static str,
}

/// Cost in tokens of one source's tools.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SourceTokensInfo {
    /// The source.
    pub source: String,
    /// Number of its tools that are offered.
    pub tools: usize,
    /// Tokens of their definitions.
    pub tokens: usize,
}

impl From<PromptDescription> for PromptPreview {
    fn from(prompt: PromptDescription) -> Self {
        let source = |row: throughline::SourceTokens| SourceTokensInfo {
            source: row.source,
            tools: row.tools,
            tokens: row.tokens,
        };
        Self {
            agent: prompt.agent,
            mode: prompt.mode,
            protocol: prompt.protocol,
            prompt: prompt.prompt,
            tools_text: prompt.tools_text,
            tools: prompt.tools.iter().map(|name| name.as_str().to_owned()).collect(),
            left_out: prompt
                .left_out
                .into_iter()
                .map(|left| OmittedTool { name: left.name.as_str().to_owned(), why: left.why })
                .collect(),
            unmatched: prompt.unmatched,
            tokens: PromptTokensInfo {
                total: prompt.tokens.total,
                prompt: prompt.tokens.prompt,
                sources: prompt.tokens.sources.into_iter().map(source).collect(),
                counting: prompt.tokens.counting,
            },
        }
    }
}

/// Mode and protocol by name. Whoever names a protocol wants to see text.
pub(super) fn mode_and_protocol(
    mode: Option<&str>,
    protocol: Option<&str>,
) -> Result<(Option<ToolMode>, Option<TextProtocolKind>), ApiError> {
    let unknown = |param: &str, given: &str, names: &[&str]| {
        ApiError::bad_request("unknown_value", format!("there is no {param} `{given}`"))
            .param(param)
            .remedy(names.join(", "))
    };
    let protocol = protocol
        .map(|name| {
            TextProtocolKind::from_name(name)
                .ok_or_else(|| unknown("protocol", name, &TextProtocolKind::NAMES))
        })
        .transpose()?;
    let mode = mode
        .map(|name| ToolMode::from_name(name).ok_or_else(|| unknown("mode", name, &ToolMode::NAMES)))
        .transpose()?;
    Ok((mode.or(protocol.map(|_| ToolMode::Text)), protocol))
}

/// All tool-calling modes: native, and every text protocol.
pub(super) const PROMPT_MODES: [(ToolMode, Option<TextProtocolKind>); 3] = [
    (ToolMode::Native, None),
    (ToolMode::Text, Some(TextProtocolKind::Vcp)),
    (ToolMode::Text, Some(TextProtocolKind::Xml)),
];

/// Parsed reply.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ParsedReply {
    /// Calls and refused blocks, in the order of the text.
    pub requests: Vec<ParsedRequest>,
    /// Warnings, in the order of the text.
    pub warnings: Vec<ParsedWarning>,
    /// Text without markup, as a reader sees it.
    pub text: String,
}

/// A call in a text, or a block that was refused.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ParsedRequest {
    /// The text protocol, or the format of a leaked call.
    pub format: &'static str,
    /// True for another model's markup that leaked into the text.
    pub leaked: bool,
    /// Name as written.
    pub name: String,
    /// The tool that it calls.
    pub tool: Option<String>,
    /// The arguments, if they could be read.
    #[schema(value_type = Option<Object>)]
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
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ParsedWarning {
    /// Stable code.
    pub kind: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Byte offset in the text.
    pub at: usize,
    /// Message.
    pub message: String,
}

impl From<InspectionDescription> for ParsedReply {
    fn from(inspection: InspectionDescription) -> Self {
        let requests = inspection.requests.into_iter().map(|request| ParsedRequest {
            format: request.format,
            leaked: request.leaked,
            name: request.name,
            tool: request.tool.map(|tool| tool.as_str().to_owned()),
            arguments_text: request.arguments.as_ref().map(visible::json),
            arguments: request.arguments,
            outlook: request.outlook,
            rule: request.rule,
            why: request.why,
            line: request.line,
            column: request.column,
            start: request.start,
            end: request.end,
        });
        let warnings = inspection.warnings.into_iter().map(|warning| ParsedWarning {
            kind: variant_name(&warning.kind),
            line: warning.line,
            column: warning.column,
            at: warning.at,
            message: warning.message,
        });
        Self { requests: requests.collect(), warnings: warnings.collect(), text: inspection.text }
    }
}
