//! Tests with groups of four hundred processes that fork without end.

use super::ProofOutcome;
use crate::program::ExternalProgram;
use anyhow::{Result, bail};

/// The long form of the tests that fork. Each prints the time after which a group was stopped.
pub(crate) fn hunt() -> Result<ProofOutcome> {
    let mut figures = Vec::new();
    let status = ExternalProgram::cargo()
        .args(["test", "--workspace", "--test", "hunt", "--", "--nocapture", "--test-threads=1"])
        .env("THROUGHLINE_HUNT", "long")
        .lines(|line| {
            println!("{line}");
            if line.contains("stopped after") {
                figures.push(line.to_owned());
            }
        })?;
    if !status.success() || figures.is_empty() {
        bail!("a family that forks is not ended, or perl is missing");
    }
    Ok(ProofOutcome::Holds(figures.join("; ")))
}
