//! `throughline tools changes` and `throughline tools approve`: definitions of MCP servers that are not what was agreed
//! to.
// R: L2 R4

use crate::data;
use crate::exit::{Ended, Exit, Failure};
use crate::messages;
use serde_json::json;
use throughline_tools::mcp::{Changed, Pins, PinsError};
use throughline_wire::visible;

/// Prints every difference that waits.
pub fn changes(json: bool) -> Ended {
    let changes = pins()?.changes().map_err(|error| messages::pins(&error))?;
    let printed = if json {
        let rows: Vec<_> = changes
            .iter()
            .map(|changed| {
                json!({
                    "name": changed.name, "before": changed.before, "now": changed.now,
                    "fingerprint": changed.now.fingerprint(), "diff": changed.diff(),
                })
            })
            .collect();
        crate::output::json_line(&rows)
    } else if changes.is_empty() {
        crate::output::text(messages::NO_CHANGES)
    } else {
        let shown: Vec<String> = changes.iter().map(shown).collect();
        crate::output::text(&format!("{}\n{}", shown.join("\n"), messages::CHANGES_LEGEND))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

/// Agrees to one of them, and prints what was agreed to.
pub fn approve(name: &str) -> Ended {
    let approved = pins()?.approve(name).map_err(|error| match error {
        PinsError::NotWaiting { name, waiting } => {
            let names = waiting.iter().map(String::as_str);
            messages::nothing_to_approve(&name, &throughline_engine::closest_names(&name, names))
        }
        error => messages::pins(&error),
    })?;
    let printed = crate::output::text(&format!("{}{}", shown(&approved), messages::APPROVED));
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

/// What a server says may hold anything: what turns text around or is not there to be seen is spelt out.
fn shown(changed: &Changed) -> String {
    let diff: String = changed.diff().lines().map(|line| format!("  {line}\n")).collect();
    format!("{}\n{}", visible::escape(&changed.name), crate::plain::for_terminal(&visible::escape(&diff)))
}

fn pins() -> Result<Pins, Failure> {
    let folder = data::folder().ok_or_else(messages::no_data_folder)?;
    Ok(Pins::at(folder.join(data::PINS)))
}
