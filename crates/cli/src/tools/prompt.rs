//! `throughline tools prompt`: the system prompt of an agent, and its cost in tokens.

use crate::args::ModelArgs;
use crate::exit::{CliExit, CommandResult};
use crate::messages;
use crate::output::errln;
use crate::setup::{self, ToolSources};
use throughline::ToolSelection;
use throughline::config::{TextProtocolKind, ToolMode};
use throughline::views::PromptDescription;
use throughline_tools::{DiscoveredTool, ToolAvailability, WithheldReason};

/// Prints the system prompt on standard output, and what it costs on standard error.
pub(crate) async fn run(choice: &ModelArgs, protocol: Option<&str>, json: bool) -> CommandResult {
    let settings = setup::load_settings(choice)?;
    let protocol = match protocol {
        None => None,
        Some(name) => {
            Some(TextProtocolKind::from_name(name).ok_or_else(|| messages::no_such_protocol(name))?)
        }
    };
    let tools = ToolSources::open(choice, &settings).await?;
    let agent = settings.agents.get(&settings.agent).ok_or_else(messages::no_agent)?;
    // A protocol without a mode implies text mode.
    let mode = protocol.filter(|_| choice.mode.is_none()).map(|_| ToolMode::Text);
    let offer = agent
        .select_tools(&tools.registry(), &settings.user, mode, protocol)
        .map_err(|error| messages::setup(&error))?;
    let printed = if json {
        crate::output::json_line(&PromptDescription::from(&offer))
    } else {
        crate::output::text(&with_line_end(&offer.prompt.text))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    if !json {
        for note in notes(&offer) {
            errln!("{}", crate::plain::for_terminal(&note));
        }
        errln!("{}", messages::prompt_cost(&offer));
    }
    tools.close().await;
    Ok(CliExit::Done)
}

/// Notes for the author of a prompt.
fn notes(offer: &ToolSelection) -> Vec<String> {
    let unmatched = offer.prompt.unmatched.iter().map(|name| messages::no_tools_of(name));
    let left_out =
        offer.discovered.iter().filter_map(|DiscoveredTool { tool, availability: verdict }| match verdict {
            ToolAvailability::Withheld(why @ WithheldReason::NotInProtocol { .. }) => {
                Some(messages::tool_left_out(tool.spec().name.as_str(), why))
            }
            _ => None,
        });
    unmatched.chain(left_out).collect()
}

fn with_line_end(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}")
}
