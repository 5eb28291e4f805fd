//! The prompt and tools of an agent in one mode, with the reason for each tool left out. Turns and previews use the
//! same function.

use super::prompt::{self, PromptContext, PromptUser, SystemPrompt, ToolsText, ToolsTextCache, ToolsTextKey};
use super::{Agent, TextProtocolKind, ToolMode};
use crate::clock::TurnClock;
use crate::error::Error;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_engine::UpstreamChoice;
use throughline_tools::{DiscoveredTool, ToolCallingMode, ToolRegistry, discover};
use throughline_wire::ToolName;
use throughline_wire::text_calls::{self, TextProtocol};

/// Prompt and tools of an agent.
#[derive(Clone, Debug)]
pub struct ToolSelection {
    /// The agent's name.
    pub agent: String,
    /// Transport of tool calls.
    pub mode: ToolMode,
    /// The protocol, if they travel as text.
    pub protocol: Option<&'static dyn TextProtocol>,
    /// Every tool by name, with the reason if it is not offered.
    pub discovered: Vec<DiscoveredTool>,
    /// The system prompt, tools included if they travel as text.
    pub prompt: SystemPrompt,
    tools_text: Arc<ToolsText>,
}

/// Cost in tokens of one source's tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SourceTokensInfo))]
pub struct SourceTokens {
    /// The source.
    pub source: String,
    /// Number of its tools that are offered.
    pub tools: usize,
    /// Tokens of their definitions.
    pub tokens: usize,
}

impl ToolSelection {
    /// The system prompt; `None` if it is empty.
    pub fn instructions(&self) -> Option<String> {
        Some(self.prompt.text.clone()).filter(|text| !text.is_empty())
    }

    /// True if the tool is offered.
    pub fn is_offered(&self, name: &ToolName) -> bool {
        self.discovered
            .iter()
            .any(|discovered| discovered.tool.spec().name == *name && discovered.is_offered())
    }

    /// The tools as text; empty if they travel natively.
    pub fn tools_text(&self) -> &ToolsText {
        &self.tools_text
    }

    /// Tokens of the offered tools by source: of their text, or natively of their JSON.
    pub fn tool_tokens(&self) -> Vec<SourceTokens> {
        let mut sources: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let texts: BTreeMap<_, _> =
            self.tools_text.tools.iter().map(|tool| (&tool.name, &tool.definition)).collect();
        for DiscoveredTool { tool, .. } in self.discovered.iter().filter(|discovered| discovered.is_offered())
        {
            let tokens = match texts.get(&tool.spec().name) {
                Some(definition) => prompt::count(definition),
                None => {
                    let wire = tool.definition();
                    let definition_json = json!({"name": wire.name, "description": wire.description, "parameters": *wire.parameters});
                    prompt::count(&definition_json.to_string())
                }
            };
            let entry = sources.entry(&tool.spec().source).or_default();
            *entry = (entry.0 + 1, entry.1 + tokens);
        }
        let rows = sources.into_iter().map(|(source, (tools, tokens))| SourceTokens {
            source: source.to_owned(),
            tools,
            tokens,
        });
        rows.collect()
    }

    /// Tokens of everything sent before the conversation: the prompt, and natively the tools.
    pub fn tokens(&self) -> usize {
        let native_tool_tokens = match self.protocol {
            Some(_) => 0,
            None => self.tool_tokens().iter().map(|row| row.tokens).sum(),
        };
        prompt::count(&self.prompt.text) + native_tool_tokens
    }
}

impl Agent {
    /// Prompt and offered tools of this agent for the tools of a registry, without an application. Mode and protocol
    /// default to the agent's.
    ///
    /// # Errors
    /// Its prompt cannot be rendered.
    pub fn select_tools(
        &self,
        registry: &ToolRegistry,
        user: &PromptUser,
        mode: Option<ToolMode>,
        protocol: Option<TextProtocolKind>,
    ) -> Result<ToolSelection, Error> {
        select_tools(SelectionInput {
            user,
            agent: self,
            model: self.models.first(),
            mode: mode.unwrap_or(self.mode),
            protocol: protocol.unwrap_or(self.tool_call.protocol),
            registry,
            prompts: &ToolsTextCache::default(),
            now_ms: TurnClock::start().now(),
        })
    }
}

/// Inputs of [`select_tools`].
pub(crate) struct SelectionInput<'a> {
    pub(crate) user: &'a PromptUser,
    pub(crate) agent: &'a Agent,
    pub(crate) model: Option<&'a UpstreamChoice>,
    pub(crate) mode: ToolMode,
    pub(crate) protocol: TextProtocolKind,
    pub(crate) registry: &'a ToolRegistry,
    pub(crate) prompts: &'a ToolsTextCache,
    pub(crate) now_ms: i64,
}

pub(crate) fn select_tools(input: SelectionInput<'_>) -> Result<ToolSelection, Error> {
    let SelectionInput { user, agent, model, mode, protocol: requested, registry, prompts, now_ms } = input;
    let tools = &agent.tool_call;
    let protocol = match mode {
        ToolMode::Native | ToolMode::Auto => None,
        ToolMode::Text => Some(
            text_calls::protocol(requested.name()).ok_or(Error::NoProtocol { protocol: requested.name() })?,
        ),
    };
    let transport = protocol.map_or(ToolCallingMode::Native, ToolCallingMode::Text);
    let discovered = discover(registry, tools.tools, &tools.toggles, transport);
    let text = match protocol {
        None => Arc::default(),
        Some(protocol) => {
            let key = ToolsTextKey {
                protocol: requested,
                agent: agent.name.clone(),
                tools: tools.tools,
                toggles: tools.toggles.clone(),
            };
            prompts.get(registry.fingerprint(), key, || ToolsText::new(protocol, &discovered))
        }
    };
    let time_zone = user.time_zone.clone().unwrap_or_else(TimeZone::system);
    // A time after the year 9999 is shown as the epoch.
    let now = Timestamp::from_millisecond(now_ms).unwrap_or_default().to_zoned(time_zone);
    let prompt = prompt::system_prompt(
        agent.prompt.as_ref(),
        &PromptContext {
            now: &now,
            user: &user.name,
            agent: &agent.name,
            model: &model.map(|model| format!("{}/{}", model.name, model.model)).unwrap_or_default(),
            mode,
            tools: text.clone(),
        },
    )?;
    Ok(ToolSelection { agent: agent.name.clone(), mode, protocol, discovered, prompt, tools_text: text })
}
