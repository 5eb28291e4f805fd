//! `throughline doctor`: what is configured, what works here, and what to do about the rest.
//!
//! Sends nothing to any model. Tool sources are started as for a turn, and stopped again.

mod machine;
mod report;
mod server;
mod setup;

use crate::args::DoctorArgs;
use crate::exit::{CliExit, CommandResult};
use crate::messages::{self, UiLanguage, UiText};
pub(crate) use report::DoctorArea;
use report::DoctorReport;

/// Checks everything, prints the findings, and ends with an error if a configured part does not work.
pub(crate) async fn run(args: &DoctorArgs) -> CommandResult {
    let words = UiText(UiLanguage::current());
    let mut report = DoctorReport::default();
    let settings = setup::check_configuration(&args.choice, words, &mut report);
    if let Some(settings) = &settings {
        setup::check_upstreams(settings, words, &mut report);
        server::check_last_answers(words, &mut report).await;
        setup::check_tools(&args.choice, settings, words, &mut report).await;
        server::check_server(settings, words, &mut report).await;
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
    Ok(if report.has_no_errors() { CliExit::Done } else { CliExit::Usage })
}
