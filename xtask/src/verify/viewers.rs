//! Crowds of viewers on the server as people run it.

use super::ProofOutcome;
use crate::program::ExternalProgram;
use crate::{generated, repository};
use anyhow::{Result, bail};

const DOCUMENT: &str = "docs/reliability.md";
const SECTION: &str = "viewers";

/// The long form of the crowds. Each prints a summary line, which the page on reliability also shows.
pub(crate) fn viewers() -> Result<ProofOutcome> {
    let mut figures = Vec::new();
    let status = ExternalProgram::cargo()
        .args(["test", "--workspace", "--test", "crowd", "--", "--nocapture", "--test-threads=1"])
        .env("THROUGHLINE_CROWD", "long")
        .lines(|line| {
            println!("{line}");
            // The name of a test is on the same line if its output is not captured.
            for kind in ["storm: ", "never reading: "] {
                figures.extend(line.find(kind).map(|at| line[at..].to_owned()));
            }
        })?;
    if !status.success() || figures.len() != 2 {
        bail!("a crowd is not served as it should be");
    }
    let lines: String = figures.iter().map(|figure| format!("- {figure}\n")).collect();
    let shown = format!("{lines}\nSeen on {} ({}).\n", repository::date(), repository::machine());
    let document = repository::read(DOCUMENT)?;
    repository::write(DOCUMENT, &generated::replace(&document, SECTION, &shown)?)?;
    Ok(ProofOutcome::Holds(figures.join("; ")))
}
