//! Tests of `cargo xtask test` in their long form.

use super::ProofOutcome;
use crate::program::ExternalProgram;
use anyhow::{Result, bail};

/// Replies of each way.
const REPLIES: u64 = 100_000;
/// Turns of the histories.
const TURNS: u64 = 100_000;

/// An MCP server that answers anything, as a program, over HTTP and as pages of a list.
pub(crate) fn mcp() -> Result<ProofOutcome> {
    run("mcp::odd_servers::no_", 3, ("THROUGHLINE_MCP_REPLIES", REPLIES))?;
    Ok(ProofOutcome::Holds(format!("{REPLIES} replies each of a program, over HTTP and as pages of a list")))
}

/// Drawn histories, to every upstream.
pub(crate) fn histories() -> Result<ProofOutcome> {
    run("histories::no_upstream", 1, ("THROUGHLINE_HISTORY_TURNS", TURNS))?;
    Ok(ProofOutcome::Holds(format!("{TURNS} turns, each history to every dialect and known upstream")))
}

/// Runs the tests of a prefix, which are so many, with a variable that makes them longer.
fn run(prefix: &str, tests: usize, (variable, count): (&str, u64)) -> Result<()> {
    let mut passed = 0;
    let start = format!("test {prefix}");
    let status = ExternalProgram::cargo()
        .args(["test", "--workspace", "--test", "it", prefix])
        .env(variable, count.to_string())
        .lines(|line| {
            println!("{line}");
            passed += usize::from(line.starts_with(&start) && line.ends_with("... ok"));
        })?;
    if !status.success() || passed != tests {
        bail!("{passed} of {tests} tests passed");
    }
    Ok(())
}
