//! Autobahn's WebSocket cases 1 to 7 against an echo route.
//!
//! The suite is a program for Python 2.7. The same classes of cases run as raw frames against `/v1/ws` in
//! `crates/server/tests/it/ws_frames.rs`, on every platform and in every run.

use super::ProofOutcome;
use super::serving::{ServeProcess, packages};
use crate::program::{self, ExternalProgram};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const PINS: &str = "clients/conformance/autobahn.txt";
const AGENT: &str = "throughline";
/// Fewer than this, and something was left out.
const CASES_MIN: usize = 240;

/// Runs the suite.
///
/// # Errors
/// Cases that failed, and programs that did not start.
pub(crate) fn websocket() -> Result<ProofOutcome> {
    let Some(python) = python() else {
        return Ok(ProofOutcome::Skipped(
            "there is no Python 2.7 with pip, which Autobahn's suite needs".to_owned(),
        ));
    };
    let pip = || ExternalProgram::new(&python).args(["-m", "pip"]);
    let folder = match packages(PINS, "websocket", "six==1.16.0", pip)? {
        Ok(folder) => folder,
        Err(why) => return Ok(ProofOutcome::Skipped(why)),
    };
    let throughline = with_the_route(&folder)?;
    let serving = ServeProcess::start(&throughline, &folder.join("server"), "")?;
    let reports = folder.join("reports");
    let cases: Vec<String> = (1..=7).map(|class| format!("{class}.*")).collect();
    let spec = json!({
        "outdir": reports,
        "servers": [{"agent": AGENT, "url": format!("ws://{}/_echo", serving.address)}],
        "cases": cases, "exclude-cases": [], "exclude-agent-cases": {},
    });
    let spec_file = folder.join("spec.json");
    fs::write(&spec_file, spec.to_string()).context("the specification of the suite cannot be written")?;
    // Python reads `.pth` files in its own folders only.
    let library = json!(folder.join("lib")).to_string();
    let start =
        format!("import site; site.addsitedir({library}); from autobahntestsuite.wstest import run; run()");
    let spec_file = spec_file.to_string_lossy().into_owned();
    let suite = ExternalProgram::new(&python).args(["-c", &start, "-m", "fuzzingclient", "-s", &spec_file]);
    // Nothing of Python's own packages: two versions of one would mix.
    let output = suite.env("PYTHONNOUSERSITE", "1").output()?;
    if !output.status.success() {
        bail!("Autobahn's suite ended with {}:\n{}{}", output.status, output.stdout, output.stderr);
    }
    judge(&reports)
}

/// Builds the command with `/_echo`, in a separate folder: the usual one must never contain a command with
/// that route.
fn with_the_route(folder: &Path) -> Result<PathBuf> {
    let built = program::throughline_built_by_tests(&["test-routes"])?;
    let own = folder.join("throughline");
    fs::copy(&built, &own).with_context(|| format!("{} cannot be written", own.display()))?;
    fs::remove_file(&built).with_context(|| format!("{} cannot be removed", built.display()))?;
    Ok(own)
}

/// Counts how the cases ended.
fn judge(reports: &Path) -> Result<ProofOutcome> {
    let index = fs::read_to_string(reports.join("index.json")).context("the suite wrote no index.json")?;
    let figure = count(&serde_json::from_str(&index)?)?;
    Ok(ProofOutcome::Holds(figure))
}

fn count(index: &Value) -> Result<String> {
    let cases = index[AGENT].as_object().context("index.json does not know the server")?;
    let (mut strict, mut others, mut failed) = (0, 0, Vec::new());
    for (case, ended) in cases {
        let behavior = ended["behavior"].as_str().unwrap_or_default();
        let close = ended["behaviorClose"].as_str().unwrap_or_default();
        match (behavior, close) {
            ("OK", "OK") => strict += 1,
            ("OK" | "NON-STRICT" | "INFORMATIONAL", "OK" | "INFORMATIONAL") => others += 1,
            _ => failed.push(format!("{case} ({behavior}, goodbye {close})")),
        }
    }
    if cases.len() < CASES_MIN {
        bail!("only {} cases were run", cases.len());
    }
    let figure = format!(
        "{} cases: {strict} as the RFC says, {others} left open by it, {} failed",
        cases.len(),
        failed.len()
    );
    if failed.is_empty() { Ok(figure) } else { bail!("{figure}: {}", failed.join(", ")) }
}

/// A Python 2.7 with pip: in the path, or among those of pyenv.
fn python() -> Option<String> {
    let has_pip = |python: &str| ExternalProgram::new(python).args(["-m", "pip", "--version"]).succeeds();
    let in_path = ["python2.7", "python2"].into_iter().map(str::to_owned);
    let of_pyenv = || {
        let versions = ExternalProgram::new("pyenv").args(["versions", "--bare"]).output().ok()?.stdout;
        let version = versions.lines().map(str::trim).find(|version| version.starts_with("2.7"))?.to_owned();
        let prefix = ExternalProgram::new("pyenv").args(["prefix", &version]).text().ok()?;
        Some(format!("{prefix}/bin/python2.7"))
    };
    in_path.into_iter().find(|python| has_pip(python)).or_else(|| of_pyenv().filter(|python| has_pip(python)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(of: impl Fn(usize) -> (&'static str, &'static str)) -> Value {
        let case = |at: usize| {
            let (behavior, close) = of(at);
            (format!("1.{at}"), json!({"behavior": behavior, "behaviorClose": close}))
        };
        json!({ AGENT: (0..CASES_MIN).map(case).collect::<serde_json::Map<_, _>>() })
    }

    #[test]
    fn single_failed_case_fails_the_suite() {
        let fine = index(|at| if at == 3 { ("NON-STRICT", "OK") } else { ("OK", "OK") });
        assert_eq!(count(&fine).unwrap(), "240 cases: 239 as the RFC says, 1 left open by it, 0 failed");
        for bad in [("FAILED", "OK"), ("OK", "FAILED"), ("OK", "WRONG CODE"), ("OK", "UNCLEAN"), ("", "")] {
            let error = count(&index(|at| if at == 7 { bad } else { ("OK", "OK") })).unwrap_err().to_string();
            assert!(error.contains("1 failed: 1.7 ("), "{error}");
        }
        assert!(count(&json!({ AGENT: {} })).is_err());
        assert!(count(&json!({})).is_err());
    }
}
