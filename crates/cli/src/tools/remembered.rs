//! `throughline tools remembered`: answers that always hold, and taking one back.

use crate::administration;
use crate::approvals;
use crate::args::StoreArgs;
use crate::exit::{CliExit, CommandResult};
use crate::messages;
use throughline::approval_store::StoredApproval;
use throughline_wire::display_escape;

/// Lists them, or forgets one.
pub(crate) async fn run(at: &StoreArgs, forget: Option<u64>, json: bool) -> CommandResult {
    let store = approvals::permanent(&administration::settings_of(at)?.store);
    let stored = match forget {
        None => approvals::all(&store).await?,
        Some(number) => {
            let forgotten = approvals::remove(&store, number).await?;
            vec![forgotten.ok_or_else(|| messages::nothing_remembered(number))?]
        }
    };
    let printed = if json {
        crate::output::json_line(&stored)
    } else if stored.is_empty() {
        crate::output::text(&messages::nothing_is_remembered())
    } else {
        let lines: String = stored.iter().map(stored_text).collect();
        let footer = if forget.is_some() { messages::forgotten() } else { messages::remembered_legend() };
        crate::output::text(&format!("{lines}{footer}"))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(CliExit::Done)
}

/// Names and reasons come from servers and models: what turns text around is spelled out.
fn stored_text(stored: &StoredApproval) -> String {
    format!("{}\n", crate::plain::for_terminal(&display_escape::escape(&messages::remembered(stored))))
}
