//! The plugins of a VCPToolBox checkout.

use super::ProofOutcome;
use crate::program::ExternalProgram;
use anyhow::{Result, bail};

/// Names the folder of the checkout.
const CHECKOUT: &str = "THROUGHLINE_VCP";
/// Plugins listed, and commands called.
const FIGURES: usize = 2;

/// The tests that read a checkout; each prints a summary line.
pub(crate) fn vcp() -> Result<ProofOutcome> {
    if std::env::var_os(CHECKOUT).is_none() {
        return Ok(ProofOutcome::Skipped(format!("{CHECKOUT} names no folder of VCPToolBox")));
    }
    let mut figures = Vec::new();
    let status = ExternalProgram::cargo()
        .args(["test", "--package", "throughline-tools", "--test", "it"])
        .args(["--", "of_a_vcp_checkout", "--nocapture"])
        .lines(|line| {
            println!("{line}");
            if let Some((_, figure)) = line.split_once("vcp: ") {
                figures.push(figure.to_owned());
            }
        })?;
    if !status.success() || figures.len() != FIGURES {
        bail!("a plugin or a command of the checkout fails");
    }
    // The tests run at the same time.
    figures.sort();
    Ok(ProofOutcome::Holds(figures.join("; ")))
}
