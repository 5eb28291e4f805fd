//! `cargo xtask coverage`: how much of the two pure crates the tests run. R: D1

use crate::Verb;
use crate::fault::fault;
use crate::program::Program;
use anyhow::{Context, Result, bail};
use serde_json::Value;

pub const VERB: Verb = Verb {
    name: "coverage",
    about: "Measure how many lines of `wire` and `engine` the tests run: at least 90 %",
    help: "\
Usage: cargo xtask coverage

Needs cargo-llvm-cov and the toolchain's llvm-tools:

  rustup component add llvm-tools
  cargo install --locked cargo-llvm-cov",
    run: |_| {
        println!("{}", check()?);
        Ok(())
    },
};

const LINES_PERCENT_MIN: f64 = 90.0;
const CRATES: [&str; 2] = ["wire", "engine"];

/// What is missing for the measurement, if anything.
pub fn missing() -> Option<&'static str> {
    if !Program::cargo().args(["llvm-cov", "--version"]).works() {
        return Some("cargo-llvm-cov is not installed (cargo install --locked cargo-llvm-cov)");
    }
    let sysroot = Program::new("rustc").args(["--print", "target-libdir"]).text().ok()?;
    let tools = std::path::Path::new(&sysroot).parent()?.join("bin");
    let is_there = ["llvm-profdata", "llvm-profdata.exe"].iter().any(|name| tools.join(name).exists());
    (!is_there && std::env::var_os("LLVM_PROFDATA").is_none())
        .then_some("the toolchain lacks llvm-tools (rustup component add llvm-tools)")
}

/// Measures; an error below the goal.
pub fn check() -> Result<String> {
    if let Some(missing) = missing() {
        return Err(fault("coverage cannot be measured", missing));
    }
    let report = Program::cargo()
        .args([
            "llvm-cov",
            "--json",
            "--summary-only",
            "--package",
            "throughline-wire",
            "--package",
            "throughline-engine",
        ])
        .args(["--package", "throughline-testkit"])
        .text()?;
    // Test programs print before the report, which is one line.
    let line =
        report.lines().rev().find(|line| line.starts_with('{')).context("llvm-cov printed no report")?;
    let report: Value = serde_json::from_str(line).context("llvm-cov's report is no JSON")?;
    let covered: Vec<_> = CRATES.iter().map(|name| (*name, percent(&report, name))).collect();
    let line: Vec<_> = covered.iter().map(|(name, percent)| format!("{name} {percent:.1} %")).collect();
    let line = format!("lines run by tests: {}", line.join(", "));
    if covered.iter().any(|(_, percent)| *percent < LINES_PERCENT_MIN) {
        bail!(
            "{line}, below {LINES_PERCENT_MIN} %\n  remedy: `cargo llvm-cov --html` shows what no test runs"
        );
    }
    Ok(line)
}

/// Lines of a crate's sources that were run, in percent.
fn percent(report: &Value, name: &str) -> f64 {
    let folder = format!("crates/{name}/src/");
    let files = report["data"][0]["files"].as_array().into_iter().flatten();
    let ours = files.filter(|file| {
        let name = file["filename"].as_str().unwrap_or_default().replace('\\', "/");
        name.contains(&folder) && !name.ends_with("tests.rs")
    });
    let (covered, all) = ours.fold((0.0, 0.0), |(covered, all), file| {
        let lines = &file["summary"]["lines"];
        let number = |key: &str| lines[key].as_f64().unwrap_or(0.0);
        (covered + number("covered"), all + number("count"))
    });
    if all > 0.0 { 100.0 * covered / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::percent;
    use serde_json::json;

    // R: D1
    #[test]
    fn lines_are_added_by_crate() {
        let file = |name: &str, covered: u32, count: u32| json!({"filename": name, "summary": {"lines": {"covered": covered, "count": count}}});
        let report = json!({"data": [{"files": [
            file("/x/crates/wire/src/a.rs", 90, 100),
            file("/x/crates/wire/src/b/c.rs", 0, 20),
            file("/x/crates/wire/src/b/d_tests.rs", 0, 500),
            file("/x/crates/engine/src/a.rs", 1, 1),
        ]}]});
        assert!((percent(&report, "wire") - 75.0).abs() < 1e-9);
        assert!((percent(&report, "engine") - 100.0).abs() < 1e-9);
        assert!(percent(&report, "none") < 1e-9);
    }
}
