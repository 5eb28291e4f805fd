//! The scripts of `docs/paths.md` that build something, on a copy of the sources.

use super::ProofOutcome;
use crate::program::{self, ExternalProgram};
use crate::repository;
use anyhow::{Context, Result};
use std::path::Path;

const PAGE: &str = "docs/paths.md";
/// Builds nothing, and is run by `crates/cli/tests/it/self_hosting_path.rs`.
const RUN_BY_A_TEST: &str = "self-hoster";

/// Runs every script of the page but that one.
///
/// # Errors
/// A script that fails, with the end of what it printed.
pub(crate) fn paths() -> Result<ProofOutcome> {
    // Outside of the repository: a new program inside of it would become a member of its workspace.
    let folder = std::env::temp_dir().join(format!("throughline-paths-{}", std::process::id()));
    let builds = program::target()?.join("paths");
    let page = repository::read(PAGE)?;
    let mut names = Vec::new();
    for (name, script) in scripts(&page).into_iter().filter(|(name, _)| *name != RUN_BY_A_TEST) {
        let copy = folder.join(name);
        let sources = copy.join("sources");
        copy_sources(&sources)?;
        ExternalProgram::new("bash")
            .args(["-euo", "pipefail", "-c", script.as_str()])
            .inside(&copy)
            .env("REPO", &sources)
            // One for all scripts, so that what they share is built once.
            .env("CARGO_TARGET_DIR", &builds)
            .run_with_tail()
            .with_context(|| format!("the script `{name}` of {PAGE}"))?;
        std::fs::remove_dir_all(&folder)?;
        names.push(name);
    }
    Ok(ProofOutcome::Holds(format!("{} scripts: {}", names.len(), names.join(", "))))
}

/// Copies every file that git tracks or would add. An identical copy stays untouched, so that it is not
/// rebuilt.
pub(crate) fn copy_sources(to: &Path) -> Result<()> {
    let files = ExternalProgram::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .text()?;
    for file in files.lines() {
        let from = repository::root().join(file);
        // A file that was deleted and not committed is still listed.
        if from.is_file() {
            let (to, text) = (to.join(file), std::fs::read(&from).with_context(|| file.to_owned())?);
            if std::fs::read(&to).is_ok_and(|there| there == text) {
                continue;
            }
            std::fs::create_dir_all(to.parent().context("a file has a folder")?)?;
            std::fs::copy(&from, &to).with_context(|| file.to_owned())?;
        }
    }
    Ok(())
}

/// Fenced blocks that begin with three back-ticks, `sh` and a name.
fn scripts(page: &str) -> Vec<(&str, String)> {
    let mut scripts = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in page.lines() {
        match (open.take(), line.strip_prefix("```")) {
            (None, Some(info)) => open = info.strip_prefix("sh ").map(|name| (name, String::new())),
            (Some(script), Some(_)) => scripts.push(script),
            (Some((name, text)), None) => open = Some((name, format!("{text}{line}\n"))),
            (None, None) => {}
        }
    }
    scripts
}

#[cfg(test)]
mod tests {
    use super::scripts;

    #[test]
    fn only_named_scripts_are_extracted() {
        let page = "```sh one\na\nb\n```\ntext\n```text\nc\n```\n```sh two\nd\n```\n";
        assert_eq!(scripts(page), [("one", "a\nb\n".to_owned()), ("two", "d\n".to_owned())]);
    }
}
