//! schemathesis over the OpenAPI document, against `throughline serve` with the demo model: valid requests
//! are answered as documented, and invalid ones are refused properly.

use super::ProofOutcome;
use super::serving::{ServeProcess, packages};
use crate::program::{self, ExternalProgram};
use crate::repository;
use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitStatus;

const PINS: &str = "clients/conformance/schemathesis.txt";
const CHECKS: &str = "clients/conformance/schemathesis.toml";
/// Seeds. Each is one set of requests, up to ids of the server. Seeds differ in what they find: three seeds
/// of another run have found what three of ours had not.
const SEEDS: [&str; 10] = ["4", "11", "777", "90210", "2718281", "7", "1234", "31337", "424242", "1618033"];
/// Cases of each operation, with each seed.
const EXAMPLES: &str = "25";
/// All phases; `stateful` continues with the ids of responses.
const PHASES: &str = "examples,coverage,fuzzing,stateful";
/// Bounds that would refuse what is not refused for its content.
const CONFIGURATION: &str = "\
[server]
limits = { turns_per_minute_max = 1000000, turns_per_key_max = 1000000, streams_per_key_max = 1000000 }
";

/// Runs the suite.
///
/// # Errors
/// Answers that are not as described, and programs that did not start.
pub(crate) fn api() -> Result<ProofOutcome> {
    if !ExternalProgram::new("python3").args(["-m", "pip", "--version"]).succeeds() {
        return Ok(ProofOutcome::Skipped("Python 3 with pip is not installed".to_owned()));
    }
    let pip = || ExternalProgram::new("python3").args(["-m", "pip"]);
    let folder = match packages(PINS, "schemathesis", "packaging==26.3", pip)? {
        Ok(folder) => folder,
        Err(why) => return Ok(ProofOutcome::Skipped(why)),
    };
    let throughline = program::throughline_built_by_tests(&[])?;
    let (mut totals, mut failed) = (Vec::new(), Vec::new());
    for seed in SEEDS {
        let (status, total) = run(&throughline, &folder, seed)?;
        if !status.success() {
            failed.push(seed);
        }
        totals.push(format!("seed {seed}: {total}"));
    }
    let totals = totals.join("; ");
    if failed.is_empty() {
        Ok(ProofOutcome::Holds(totals))
    } else {
        bail!("answers are not as described (seeds {}): {totals}", failed.join(", "))
    }
}

/// Runs the suite once against a new server: exit status, and its total.
fn run(throughline: &Path, folder: &Path, seed: &str) -> Result<(ExitStatus, String)> {
    let serving = ServeProcess::start(throughline, &folder.join("server"), CONFIGURATION)?;
    let document = format!("http://{}/v1/openapi.json", serving.address);
    let key = format!("Authorization: Bearer {}", serving.key);
    let reports = folder.join("reports").join(seed).to_string_lossy().into_owned();
    let suite = ExternalProgram::new("python3")
        .args(["-m", "schemathesis.cli", "--config-file"])
        .args([repository::root().join(CHECKS)])
        // Without `--checks`: all are on, and the option would override the exceptions of the file.
        .args(["run", &document, "--header", &key])
        .args(["--phases", PHASES, "--max-examples", EXAMPLES, "--seed", seed])
        .args(["--continue-on-failure", "--request-timeout", "20", "--workers", "1"])
        .args(["--suppress-health-check", "all", "--report", "junit", "--report-dir", &reports])
        // What it remembers of failures is left there, and not in the repository.
        .inside(folder)
        .env("PYTHONPATH", folder.join("lib"))
        .env("NO_COLOR", "1");
    let mut total = String::new();
    let status = suite.lines(|line| {
        println!("{line}");
        if is_total(line) {
            total = line.trim().to_owned();
        }
    })?;
    Ok((status, total))
}

/// True for the total of the suite's summary: `1234 generated, 1234 passed`.
fn is_total(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next().is_some_and(|word| word.parse::<u64>().is_ok()) && words.next() == Some("generated,")
}

#[cfg(test)]
mod tests {
    #[test]
    fn totals_line_is_recognized() {
        assert!(super::is_total("  1200 generated, 1200 passed"));
        assert!(!super::is_total("generated, 3"));
        assert!(!super::is_total("Test cases:"));
    }
}
