//! How the calls of a turn travel: in the upstream's own field or as text, and which tools can travel that way. // R: T3

use crate::agent::{Agent, ToolCall};
use crate::config::{Mode, ResultsAs};
use crate::error::Error;
use throughline_engine::{OfferedTool, Remark};
use throughline_wire::text::{self, CallFormat, ResultRole, TextCalls, TextProtocol};

/// How the calls of a turn travel.
pub(crate) struct Calling {
    pub format: CallFormat,
    /// Tools that can be called that way.
    pub tools: Vec<OfferedTool>,
    /// One for each tool that the agent may use and that cannot.
    pub left_out: Vec<Remark>,
}

impl Calling {
    /// `auto` is `native`: a refusal of tools ends in an error that says how to switch, never in a silent downgrade.
    ///
    /// # Errors
    /// The agent's protocol is not there.
    pub fn new(mode: Mode, tool_call: &ToolCall, tools: Vec<OfferedTool>) -> Result<Self, Error> {
        match mode {
            Mode::Auto | Mode::Native => Ok(Self { format: CallFormat::Native, tools, left_out: Vec::new() }),
            Mode::Text => {
                let name = tool_call.protocol.name();
                let protocol = text::protocol(name).ok_or(Error::NoProtocol { protocol: name })?;
                Ok(Self::text(protocol, tool_call.results, tools))
            }
        }
    }

    fn text(protocol: &'static dyn TextProtocol, results: ResultsAs, tools: Vec<OfferedTool>) -> Self {
        let mut left_out = Vec::new();
        let mut offered = Vec::with_capacity(tools.len());
        for tool in tools {
            match protocol.can_offer(&tool.definition) {
                Ok(()) => offered.push(tool),
                Err(why) => left_out.push(not_offered(&tool, &why)),
            }
        }
        let results = match results {
            ResultsAs::User => ResultRole::User,
            ResultsAs::Tool => ResultRole::Tool,
        };
        let definitions = offered.iter().map(|tool| tool.definition.clone()).collect();
        let format = CallFormat::Text(TextCalls { protocol, tools: definitions, results });
        Self { format, tools: offered, left_out }
    }

    /// The instructions of an agent, with what the model needs to know to call tools as text at their end.
    pub fn instructions(&self, agent: &Agent) -> Option<String> {
        let CallFormat::Text(TextCalls { protocol, tools, .. }) = &self.format else {
            return agent.prompt.clone();
        };
        if tools.is_empty() {
            return agent.prompt.clone();
        }
        let definitions = protocol.definitions(tools);
        let prompt = agent.prompt.as_deref().unwrap_or_default().trim_end();
        let parts = [prompt, protocol.guide(), definitions.as_str()];
        Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n"))
    }
}

fn not_offered(tool: &OfferedTool, why: &str) -> Remark {
    let other = text::PROTOCOLS.iter().find(|other| other.can_offer(&tool.definition).is_ok());
    let remedy = match other {
        Some(other) => {
            format!("Set `protocol = \"{}\"` in the agent's `tool_call`, or use mode `native`.", other.name())
        }
        None => "Use mode `native`.".to_owned(),
    };
    Remark {
        code: "tool_not_offered".to_owned(),
        what: format!("{} is not offered in text mode: {why}", tool.name),
        remedy: Some(remedy),
    }
}
