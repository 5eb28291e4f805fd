//! Random hostile answers in front of a question, as Markdown renderers show them.

use super::ProofOutcome;
use crate::program::ExternalProgram;
use crate::test::{CLIENTS, installed};
use anyhow::{Result, bail};

const ANSWERS: &str = "10000";

/// The long form of the renderers' test, with a new seed each time. It prints the number of rendered answers.
pub(crate) fn questions() -> Result<ProofOutcome> {
    let folder = match installed(&CLIENTS)? {
        Ok(folder) => folder,
        Err(why) => return Ok(ProofOutcome::Skipped(why)),
    };
    let mut figures = Vec::new();
    let status = ExternalProgram::cargo()
        .args([
            "test",
            "--package",
            "throughline-server",
            "--test",
            "it",
            "clients::renderers",
            "--",
            "--nocapture",
        ])
        .env("THROUGHLINE_RENDERED_ANSWERS", ANSWERS)
        .env(CLIENTS.variable, folder)
        .lines(|line| {
            println!("{line}");
            if line.starts_with("seed ") || line.contains("\"checked\":") {
                figures.push(line.to_owned());
            }
        })?;
    if !status.success() || figures.len() < 2 {
        bail!("a question is not seen whole and last, see above");
    }
    Ok(ProofOutcome::Holds(figures.join("; ")))
}
