//! What an agent is told and offered in one mode: its prompt, its tools, and why the others are none of them. One
//! function for turns and for everybody who asks beforehand. R: L3, X5

use crate::agent::Agent;
use crate::clock::Clock;
use crate::config::{Mode, Protocol};
use crate::error::Error;
use crate::prompt::{self, Cache, Facts, Instructions, Key, ToolsText, User};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_engine::UpstreamChoice;
use throughline_tools::{Found, Registry, Way, discover};
use throughline_wire::ToolName;
use throughline_wire::text::{self, TextProtocol};

/// What an agent is told and offered.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The agent's name.
    pub agent: String,
    /// How calls travel.
    pub mode: Mode,
    /// The protocol, if they travel as text.
    pub protocol: Option<&'static dyn TextProtocol>,
    /// Every tool by name, and whether it is offered.
    pub found: Vec<Found>,
    /// The system prompt, tools included if they travel as text.
    pub prompt: Instructions,
    text: Arc<ToolsText>,
}

/// What the tools of one source cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceTokens {
    /// The source: `mcp:files`.
    pub source: String,
    /// How many of its tools are offered.
    pub tools: usize,
    /// Tokens of their definitions, see [`prompt::counting`].
    pub tokens: usize,
}

impl Offer {
    /// The system prompt; `None` = there is none.
    pub fn instructions(&self) -> Option<String> {
        Some(self.prompt.text.clone()).filter(|text| !text.is_empty())
    }

    /// Whether a tool is offered.
    pub fn offers(&self, name: &ToolName) -> bool {
        self.found.iter().any(|found| found.tool.spec().name == *name && found.is_offered())
    }

    /// The tools as text; empty if they travel natively.
    pub fn tools_text(&self) -> &ToolsText {
        &self.text
    }

    /// The tokens of the offered tools by source: of their text, or of the JSON that goes beside the prompt natively.
    pub fn tokens_of_tools(&self) -> Vec<SourceTokens> {
        let mut sources: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let texts: BTreeMap<_, _> =
            self.text.tools.iter().map(|tool| (&tool.name, &tool.definition)).collect();
        for Found { tool, .. } in self.found.iter().filter(|found| found.is_offered()) {
            let tokens = match texts.get(&tool.spec().name) {
                Some(definition) => prompt::count(definition),
                None => {
                    let wire = tool.definition();
                    let beside = json!({"name": wire.name, "description": wire.description, "parameters": *wire.parameters});
                    prompt::count(&beside.to_string())
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

    /// The tokens of everything that is sent before the conversation: the prompt, and natively the tools beside it.
    pub fn tokens(&self) -> usize {
        let beside = match self.protocol {
            Some(_) => 0,
            None => self.tokens_of_tools().iter().map(|row| row.tokens).sum(),
        };
        prompt::count(&self.prompt.text) + beside
    }
}

impl Agent {
    /// What this agent would be told and offered now of the tools of a registry, without an application around it. Mode
    /// and protocol are its own unless they are given. R: L3, X5
    ///
    /// # Errors
    /// Its prompt cannot be rendered.
    pub fn offer(
        &self,
        registry: &Registry,
        user: &User,
        mode: Option<Mode>,
        protocol: Option<Protocol>,
    ) -> Result<Offer, Error> {
        offer(Asked {
            user,
            agent: self,
            model: self.models.first(),
            mode: mode.unwrap_or(self.mode),
            protocol: protocol.unwrap_or(self.tool_call.protocol),
            registry,
            prompts: &Cache::default(),
            now_ms: Clock::start().now(),
        })
    }
}

/// What [`offer`] has to know.
pub(crate) struct Asked<'a> {
    pub(crate) user: &'a User,
    pub(crate) agent: &'a Agent,
    pub(crate) model: Option<&'a UpstreamChoice>,
    pub(crate) mode: Mode,
    pub(crate) protocol: Protocol,
    pub(crate) registry: &'a Registry,
    pub(crate) prompts: &'a Cache,
    pub(crate) now_ms: i64,
}

pub(crate) fn offer(asked: Asked<'_>) -> Result<Offer, Error> {
    let Asked { user, agent, model, mode, protocol: wished, registry, prompts, now_ms } = asked;
    let tools = &agent.tool_call;
    let protocol = match mode {
        Mode::Native | Mode::Auto => None,
        Mode::Text => {
            Some(text::protocol(wished.name()).ok_or(Error::NoProtocol { protocol: wished.name() })?)
        }
    };
    let way = protocol.map_or(Way::Native, Way::Text);
    let found = discover(registry, tools.tools, &tools.toggles, way);
    let text = match protocol {
        None => Arc::default(),
        Some(protocol) => {
            let key = Key {
                protocol: wished,
                agent: agent.name.clone(),
                tools: tools.tools,
                toggles: tools.toggles.clone(),
            };
            prompts.get(registry.fingerprint(), key, || ToolsText::new(protocol, &found))
        }
    };
    let time_zone = user.time_zone.clone().unwrap_or_else(TimeZone::system);
    // A clock that is beyond the year 9999 is told as the beginning of time.
    let now = Timestamp::from_millisecond(now_ms).unwrap_or_default().to_zoned(time_zone);
    let prompt = prompt::instructions(
        agent.prompt.as_ref(),
        &Facts {
            now: &now,
            user: &user.name,
            agent: &agent.name,
            model: &model.map(|model| format!("{}/{}", model.name, model.model)).unwrap_or_default(),
            mode,
            tools: text.clone(),
        },
    )?;
    Ok(Offer { agent: agent.name.clone(), mode, protocol, found, prompt, text })
}
