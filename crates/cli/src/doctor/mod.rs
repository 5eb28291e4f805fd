//! `throughline doctor`: what is configured, what works here, and what to do about the rest. R: O2
//!
//! Asks no model anything. Sources of tools are started as for a turn, and stopped again.

mod machine;
mod report;
mod server;
mod setup;

use crate::args::Doctor;
use crate::exit::{Ended, Exit};
use crate::messages::{self, Lang, Words};
pub use report::Area;
use report::Report;

/// Looks at everything, prints it, and ends with an error if something that is configured does not work.
pub async fn run(args: &Doctor) -> Ended {
    let words = Words(Lang::of_environment());
    let mut report = Report::default();
    let settings = setup::configuration(&args.choice, words, &mut report);
    if let Some(settings) = &settings {
        setup::upstreams(settings, words, &mut report);
        setup::tools(&args.choice, settings, words, &mut report).await;
        server::look(settings, words, &mut report).await;
    }
    machine::sandbox(settings.as_ref(), words, &mut report).await;
    machine::limits(words, &mut report);
    machine::terminal(words, &mut report);
    machine::programs(words, &mut report).await;
    let printed = if args.json {
        crate::output::json_line(&report.as_json())
    } else {
        crate::output::text(&report.as_text(words))
    };
    printed.map_err(|error| messages::output_failed(&error))?;
    Ok(if report.is_well() { Exit::Done } else { Exit::Usage })
}
