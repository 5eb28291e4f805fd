//! `kill -9` of the real server, again and again, while people watch.

use super::ProofOutcome;
use crate::program::ExternalProgram;
use anyhow::{Result, bail};

/// Number of kill tests: at nine points, at random, and at random over PostgreSQL.
const KILL_TESTS: usize = 3;

/// The long form of the kill tests. Each prints a summary line.
pub(crate) fn chaos() -> Result<ProofOutcome> {
    let mut figures = Vec::new();
    let status = ExternalProgram::cargo()
        .args(["test", "--workspace", "--test", "chaos", "--", "--nocapture"])
        .env("THROUGHLINE_CHAOS", "long")
        .lines(|line| {
            println!("{line}");
            if line.contains("writes twice") {
                figures.push(line.to_owned());
            }
        })?;
    if !status.success() || figures.len() != KILL_TESTS {
        bail!("a kill test fails or was skipped (one needs PostgreSQL), or a mutant was not noticed");
    }
    Ok(ProofOutcome::Holds(figures.join("; ")))
}
