//! `throughline parse`: which calls a pasted reply holds, and what would become of each. Runs nothing.

use crate::approvals;
use crate::args::ParseArgs;
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages;
use crate::output::errln;
use crate::setup::{self, ToolSources};
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use throughline::config::{ConfigLocation, TextProtocolKind};
use throughline::inspect::{CallOrigin, InspectionContext, ProtocolFilter, ReplyInspection, inspect};
use throughline::views::InspectionDescription;
use throughline_wire::display_escape;

/// Name of standard input in messages.
const STDIN: &str = "-";

/// Reads, decides, prints.
pub(crate) async fn run(args: &ParseArgs) -> CommandResult {
    let reading = match args.protocol.as_str() {
        "auto" => ProtocolFilter::Any,
        name => ProtocolFilter::Only(
            TextProtocolKind::from_name(name).ok_or_else(|| messages::no_such_protocol(name))?,
        ),
    };
    let settings = setup::load_settings(&args.choice)?;
    let agent = settings.agents.get(&settings.agent).ok_or_else(messages::no_agent)?;
    let text = read_reply(&args.file)?;
    let tools = ToolSources::open(&args.choice, &settings).await?;
    let registry = tools.registry();
    let mode = args.choice.mode.is_none().then_some(throughline::config::ToolMode::Text);
    let protocol = match reading {
        ProtocolFilter::Any => None,
        ProtocolFilter::Only(protocol) => Some(protocol),
    };
    let offer = agent
        .select_tools(&registry, &settings.user, mode, protocol)
        .map_err(|error| messages::setup(&error))?;
    let remembered = approvals::decisions(&settings.store).await?;
    let inspect_request =
        InspectionContext { agent, registry: &registry, selection: &offer, remembered: &remembered };
    let inspection = inspect(&text, reading, inspect_request);
    let printed = if args.json {
        crate::output::json_line(&InspectionDescription::from(&inspection))
    } else {
        crate::output::text(&render_report(&args.file, &text, &inspection))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    tools.close().await;
    let refused = inspection.calls.iter().any(|request| request.prediction.is_refusal());
    Ok(if refused { CliExit::ToolFailed } else { CliExit::Done })
}

fn read_reply(file: &Path) -> Result<String, CliFailure> {
    let mut text = String::new();
    if file.as_os_str() == STDIN {
        if io::stdin().is_terminal() {
            errln!("{}", messages::parse_reads_stdin());
        }
        io::stdin().read_to_string(&mut text).map_err(|error| messages::input_failed(&error))?;
        return Ok(text);
    }
    std::fs::read_to_string(file).map_err(|error| messages::file_failed(file, &error))
}

/// A report like a compiler's: message, position, explanation.
fn render_report(file: &Path, text: &str, inspection: &ReplyInspection) -> String {
    let file = file.display().to_string();
    let at = |span| ConfigLocation::in_file(&file, text, span);
    // Requests and warnings in the order of the text.
    let mut parts: Vec<(usize, String)> = Vec::new();
    for request in &inspection.calls {
        let position = at(request.span.clone());
        let margin = position.margin();
        let mut part = format!("{}\n{position}", messages::parse_heading(request));
        if let Some(arguments) = &request.arguments {
            part.push_str(&format!("\n{margin} = {}", messages::parse_arguments(arguments)));
        }
        part.push_str(&format!("\n{margin} = {}\n", messages::parse_outlook(&request.prediction)));
        if request.origin == CallOrigin::Leaked {
            part.push_str(&format!("{margin} = {}\n", messages::parse_leaked()));
        }
        parts.push((request.span.start, part));
    }
    for warning in &inspection.warnings {
        let position = at(warning.offset..warning.offset);
        parts.push((warning.offset, format!("warning: {}\n{position}\n", warning.message)));
    }
    parts.sort_by_key(|(at, _)| *at);
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    // Pasted text may hold anything; a terminal must show what is there.
    let shown = crate::plain::for_terminal(&display_escape::escape(&parts.join("\n")));
    let gap = if shown.is_empty() { "" } else { "\n" };
    format!("{shown}{gap}{}\n", messages::parse_summary(inspection))
}
