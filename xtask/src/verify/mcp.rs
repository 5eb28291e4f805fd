//! An MCP server that answers anything.

use super::ProofOutcome;
use crate::program::ExternalProgram;
use anyhow::{Result, bail};

/// Replies of each way.
const REPLIES: u64 = 100_000;
/// Ways on which they come: a program, HTTP, and pages of a list.
const WAYS: usize = 3;

/// The long form of the tests with replies of every shape.
pub(crate) fn mcp() -> Result<ProofOutcome> {
    let mut passed = 0;
    let status = ExternalProgram::cargo()
        .args(["test", "--workspace", "--test", "it", "mcp::odd_servers::no_"])
        .env("THROUGHLINE_MCP_REPLIES", REPLIES.to_string())
        .lines(|line| {
            println!("{line}");
            passed += usize::from(line.starts_with("test mcp::odd_servers::no_") && line.ends_with("... ok"));
        })?;
    if !status.success() || passed != WAYS {
        bail!("a reply costs more than its own call");
    }
    Ok(ProofOutcome::Holds(format!("{REPLIES} replies each of a program, over HTTP and as pages of a list")))
}
