//! `throughline tools remembered`: answers that always hold, and taking one back.
// R: A2

use crate::exit::{Ended, Exit};
use crate::messages;
use crate::setup;
use throughline::memory::Kept;
use throughline_wire::visible;

/// Lists them, or forgets one.
pub fn run(forget: Option<u64>, json: bool) -> Ended {
    let memory = setup::memory();
    let kept = match forget {
        None => memory.all().map_err(|error| messages::memory(&error))?,
        Some(number) => {
            let forgotten = memory.forget(number).map_err(|error| messages::memory(&error))?;
            vec![forgotten.ok_or_else(|| messages::nothing_remembered(number))?]
        }
    };
    let printed = if json {
        crate::output::json_line(&kept)
    } else if kept.is_empty() {
        crate::output::text(messages::NOTHING_REMEMBERED)
    } else {
        let lines: String = kept.iter().map(shown).collect();
        let below = if forget.is_some() { messages::FORGOTTEN } else { messages::REMEMBERED_LEGEND };
        crate::output::text(&format!("{lines}{below}"))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(Exit::Done)
}

/// Names and reasons come from servers and models: what turns text around is spelt out.
fn shown(kept: &Kept) -> String {
    format!("{}\n", crate::plain::for_terminal(&visible::escape(&messages::remembered(kept))))
}
