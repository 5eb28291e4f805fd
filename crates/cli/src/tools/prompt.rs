//! `throughline tools prompt`: what an agent is told, and what it costs.
// R: X5, L3

use crate::args::Choice;
use crate::exit::{Ended, Exit};
use crate::messages;
use crate::setup::{self, Tools};
use throughline::Offer;
use throughline::config::{Mode, Protocol};
use throughline::described::PromptDescription;
use throughline_tools::{Found, Verdict, Withheld};

/// Prints the system prompt on standard output, and what it costs on standard error.
pub async fn run(choice: &Choice, protocol: Option<&str>, json: bool) -> Ended {
    let settings = setup::settings(choice)?;
    let protocol = match protocol {
        None => None,
        Some(name) => Some(Protocol::named(name).ok_or_else(|| messages::no_such_protocol(name))?),
    };
    let tools = Tools::open(choice, &settings).await?;
    let agent = settings.agents.get(&settings.agent).ok_or_else(messages::no_agent)?;
    // Somebody who names a protocol wants to see text.
    let mode = protocol.filter(|_| choice.mode.is_none()).map(|_| Mode::Text);
    let offer = agent
        .offer(&tools.registry(), &settings.user, mode, protocol)
        .map_err(|error| messages::setup(&error))?;
    let printed = match json {
        true => crate::output::json_line(&PromptDescription::from(&offer)),
        false => crate::output::text(&with_line_end(&offer.prompt.text)),
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    if !json {
        for note in notes(&offer) {
            eprintln!("{}", crate::plain::for_terminal(&note));
        }
        eprintln!("{}", messages::prompt_cost(&offer));
    }
    tools.close().await;
    Ok(Exit::Done)
}

/// What an author of a prompt should know of it.
fn notes(offer: &Offer) -> Vec<String> {
    let unmatched = offer.prompt.unmatched.iter().map(|name| messages::no_tools_of(name));
    let left_out = offer.found.iter().filter_map(|Found { tool, verdict }| match verdict {
        Verdict::Withheld(why @ Withheld::NotInProtocol { .. }) => {
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
