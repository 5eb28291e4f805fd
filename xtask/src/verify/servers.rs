//! Real MCP servers of npm and PyPI: the program has the tools that each of them lists.

use super::ProofOutcome;
use crate::program::{self, ExternalProgram};
use crate::repository;
use anyhow::{Result, bail};

const SCRIPT: &str = "clients/tool_lists.py";
/// Folder of the installed servers, in the system's for temporary files: the user that they run as must reach it.
const FOLDER: &str = "throughline-mcp-servers";

/// Installs and lists all servers of `clients/tool-servers.toml`.
///
/// # Errors
/// A server whose tools are not those that it lists, and fewer than forty that could be started.
pub(crate) fn servers() -> Result<ProofOutcome> {
    let is_root = ExternalProgram::new("id").args(["-u"]).text().is_ok_and(|id| id.trim() == "0");
    let has_programs = ["node", "npm", "unshare"]
        .iter()
        .all(|name| ExternalProgram::new(name).args(["--version"]).succeeds());
    if !is_root || !has_programs {
        return Ok(ProofOutcome::Skipped("needs Linux, root, Node.js and unshare".to_owned()));
    }
    let throughline = program::throughline_built_by_tests(&[])?;
    let mut total = String::new();
    let status = ExternalProgram::new("python3")
        .args([repository::root().join(SCRIPT), std::env::temp_dir().join(FOLDER)])
        .args([std::ffi::OsStr::new("--read-by"), throughline.as_os_str()])
        .lines(|line| {
            println!("{line}");
            total = line.to_owned();
        })?;
    if status.success() { Ok(ProofOutcome::Holds(total)) } else { bail!("{total}") }
}
