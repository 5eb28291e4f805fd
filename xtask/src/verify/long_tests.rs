//! Tests of `cargo xtask test` in their long form.

use super::ProofOutcome;
use crate::program::ExternalProgram;
use anyhow::{Result, bail};

/// Replies of each way.
const REPLIES: u64 = 100_000;
/// Turns of the histories.
const TURNS: u64 = 100_000;

/// An MCP server with random output: its handshake, its replies, pages of its list, and its notifications.
pub(crate) fn mcp() -> Result<ProofOutcome> {
    let prefixes = [
        "mcp::any_server::malformed_",
        "mcp::any_server::any_",
        "mcp::odd_servers::malformed_stdio_",
        "mcp::odd_servers::malformed_http_",
    ];
    run(&prefixes, 8, ("THROUGHLINE_MCP_REPLIES", REPLIES))?;
    Ok(ProofOutcome::Holds(format!(
        "{REPLIES} replies and as many messages by itself, each of a program and over HTTP; {REPLIES} pages of a list over HTTP and \
         a third of it of a program; a third of it of handshakes over HTTP, a tenth of programs"
    )))
}

/// Drawn histories, to every upstream.
pub(crate) fn histories() -> Result<ProofOutcome> {
    run(&["histories::generated_histories"], 1, ("THROUGHLINE_HISTORY_TURNS", TURNS))?;
    Ok(ProofOutcome::Holds(format!("{TURNS} turns, each history to every dialect and known upstream")))
}

/// Runs the tests of some prefixes, `tests` in number, with a variable that makes them longer.
fn run(prefixes: &[&str], tests: usize, (variable, count): (&str, u64)) -> Result<()> {
    let mut passed = 0;
    let is_meant = |line: &str| {
        let test = line.strip_prefix("test ").unwrap_or_default();
        prefixes.iter().any(|prefix| test.starts_with(prefix))
    };
    let status = ExternalProgram::cargo()
        .args(["test", "--workspace", "--test", "it", "--"])
        .args(prefixes)
        .env(variable, count.to_string())
        .lines(|line| {
            println!("{line}");
            passed += usize::from(is_meant(line) && line.ends_with("... ok"));
        })?;
    if !status.success() || passed != tests {
        bail!("{passed} of {tests} tests passed");
    }
    Ok(())
}
