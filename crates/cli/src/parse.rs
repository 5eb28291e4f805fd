//! `throughline parse`: which calls a pasted reply holds, and what would become of each. Runs nothing.
// R: X2, X3, W8, A1

use crate::args::Parse;
use crate::exit::{Ended, Exit, Failure};
use crate::messages;
use crate::setup::{self, Tools};
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use throughline::config::{Place, Protocol};
use throughline::described::InspectionDescription;
use throughline::inspect::{Asked, Inspection, Origin, Reading, inspect};
use throughline_wire::visible;

/// How standard input is called where it is shown.
const STDIN: &str = "-";

/// Reads, decides, prints.
pub async fn run(args: &Parse) -> Ended {
    let reading = match args.protocol.as_str() {
        "auto" => Reading::Any,
        name => Reading::As(Protocol::named(name).ok_or_else(|| messages::no_such_protocol(name))?),
    };
    let settings = setup::settings(&args.choice)?;
    let agent = settings.agents.get(&settings.agent).ok_or_else(messages::no_agent)?;
    let text = read(&args.file)?;
    let tools = Tools::open(&args.choice, &settings).await?;
    let registry = tools.registry();
    let mode = args.choice.mode.is_none().then_some(throughline::config::Mode::Text);
    let protocol = match reading {
        Reading::Any => None,
        Reading::As(protocol) => Some(protocol),
    };
    let offer =
        agent.offer(&registry, &settings.user, mode, protocol).map_err(|error| messages::setup(&error))?;
    let kept = setup::memory().all().map_err(|error| messages::memory(&error))?;
    let remembered: Vec<_> = kept.into_iter().map(|kept| kept.answer).collect();
    let asked = Asked { agent, registry: &registry, offer: &offer, remembered: &remembered };
    let found = inspect(&text, reading, asked);
    let printed = match args.json {
        true => crate::output::json_line(&InspectionDescription::from(&found)),
        false => crate::output::text(&report(&args.file, &text, &found)),
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    tools.close().await;
    let refused = found.requests.iter().any(|request| request.outlook.is_refusal());
    Ok(if refused { Exit::ToolFailed } else { Exit::Done })
}

fn read(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    if file.as_os_str() == STDIN {
        if io::stdin().is_terminal() {
            eprintln!("{}", messages::PARSE_READS_STDIN);
        }
        io::stdin().read_to_string(&mut text).map_err(|error| messages::input_failed(&error))?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(|error| messages::file_failed(file, &error))
}

/// As compilers report: what, where, why.
fn report(file: &Path, text: &str, found: &Inspection) -> String {
    let file = file.display().to_string();
    let at = |span| Place::in_file(&file, text, span);
    // Requests and warnings as they stand in the text.
    let mut parts: Vec<(usize, String)> = Vec::new();
    for request in &found.requests {
        let place = at(request.span.clone());
        let margin = place.margin();
        let mut part = format!("{}\n{place}", messages::parse_heading(request));
        if let Some(arguments) = &request.arguments {
            part.push_str(&format!("\n{margin} = {}", messages::parse_arguments(arguments)));
        }
        part.push_str(&format!("\n{margin} = {}\n", messages::parse_outlook(&request.outlook)));
        if request.origin == Origin::Leaked {
            part.push_str(&format!("{margin} = {}\n", messages::PARSE_LEAKED));
        }
        parts.push((request.span.start, part));
    }
    for warning in &found.warnings {
        let place = at(warning.at..warning.at);
        parts.push((warning.at, format!("warning: {}\n{place}\n", warning.message)));
    }
    parts.sort_by_key(|(at, _)| *at);
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    // Pasted text may hold anything; a terminal must show what is there.
    let shown = crate::plain::for_terminal(&visible::escape(&parts.join("\n")));
    let gap = if shown.is_empty() { "" } else { "\n" };
    format!("{shown}{gap}{}\n", messages::parse_summary(found))
}
