//! `throughline tools changes` and `throughline tools approve`: definitions of MCP servers that are not what was agreed
//! to.

use crate::data_dir;
use crate::exit::{CliExit, CliFailure, CommandResult};
use crate::messages;
use serde_json::json;
use throughline_tools::mcp::{DefinitionChange, PinStore, PinsError};
use throughline_wire::display_escape;

/// Prints every difference that waits.
pub(crate) fn changes(json: bool) -> CommandResult {
    let changes = open_pins()?.pending_changes().map_err(|error| messages::pins(&error))?;
    let printed = if json {
        let rows: Vec<_> = changes
            .iter()
            .map(|changed| {
                json!({
                    "name": changed.name, "before": changed.before, "now": changed.after,
                    "fingerprint": changed.after.fingerprint(), "diff": changed.diff(),
                })
            })
            .collect();
        crate::output::json_line(&rows)
    } else if changes.is_empty() {
        crate::output::text(&messages::no_changes())
    } else {
        let shown: Vec<String> = changes.iter().map(change_text).collect();
        crate::output::text(&format!("{}\n{}", shown.join("\n"), messages::changes_legend()))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

/// Agrees to one of them, and prints what was agreed to.
pub(crate) fn approve(name: &str) -> CommandResult {
    let approved = open_pins()?.approve(name).map_err(|error| match error {
        PinsError::NotPending { name, pending: waiting } => {
            let names = waiting.iter().map(String::as_str);
            messages::nothing_to_approve(&name, &throughline_engine::suggest_names(&name, names))
        }
        error => messages::pins(&error),
    })?;
    let printed = crate::output::text(&format!("{}{}", change_text(&approved), messages::approved()));
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

/// Text of a changed definition. Invisible and direction-changing characters of a server's text are escaped.
fn change_text(changed: &DefinitionChange) -> String {
    let diff: String = changed.diff().lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "{}\n{}",
        display_escape::escape_exact(&changed.name),
        crate::plain::for_terminal(&display_escape::escape_exact(&diff))
    )
}

fn open_pins() -> Result<PinStore, CliFailure> {
    let folder = data_dir::folder().ok_or_else(messages::no_data_folder)?;
    Ok(PinStore::in_file(folder.join(data_dir::PINS_FILE)))
}
