//! `cargo xtask coverage`: share of the pure crates' code that their own tests run.
//!
//! Uses the compiler's instrumentation and the toolchain's LLVM tools, so no other tool is needed.

use crate::fault::fault;
use crate::program::{self, ExternalProgram};
use crate::{TaskVerb, repository};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "coverage",
    about: "Measure how many lines of `wire`, `engine` and `speech` their tests run: at least 90 %",
    help: "\
Usage: cargo xtask coverage [--files]

  --files   every file with its share of lines, the lowest first

Needs the toolchain's LLVM tools: `rustup component add llvm-tools` (tried if rustup is there). Builds in
target/coverage, since everything is compiled with counters.",
    run,
};

const LINES_PERCENT_MIN: f64 = 90.0;
const CRATES: [&str; 3] = ["wire", "engine", "speech"];
const PACKAGES: [&str; 6] =
    ["--package", "throughline-wire", "--package", "throughline-engine", "--package", "throughline-speech"];

fn run(words: Vec<String>) -> Result<()> {
    let view = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => CoverageView::Totals,
        ["--files"] => CoverageView::Files,
        _ => return Err(fault("these flags are not understood", "see `cargo xtask coverage --help`")),
    };
    println!("{}", check(view)?);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoverageView {
    Totals,
    Files,
}

/// The toolchain's LLVM tools, or the reason why they are missing.
pub(crate) fn tools() -> Result<PathBuf, &'static str> {
    const MISSING: &str = "the toolchain lacks its LLVM tools (rustup component add llvm-tools)";
    let library =
        ExternalProgram::new("rustc").args(["--print", "target-libdir"]).text().map_err(|_| MISSING)?;
    let tools = Path::new(&library).parent().ok_or(MISSING)?.join("bin");
    let is_there = || ["llvm-cov", "llvm-cov.exe"].iter().any(|name| tools.join(name).exists());
    if !is_there() && ExternalProgram::new("rustup").args(["--version"]).succeeds() {
        // Without a network this fails, and then the tools are just not there.
        let _ = ExternalProgram::new("rustup").args(["component", "add", "llvm-tools"]).run();
    }
    if is_there() { Ok(tools) } else { Err(MISSING) }
}

/// Measures; an error below the goal.
pub(crate) fn check(view: CoverageView) -> Result<String> {
    let tools = tools().map_err(|why| fault("coverage cannot be measured", why))?;
    let folder = repository::root().join("target/coverage");
    let counters = folder.join("counters");
    // Counters of an earlier build belong to other sources.
    let _ = fs::remove_dir_all(&counters);
    fs::create_dir_all(&counters)?;
    let cargo = |words: &[&str]| {
        ExternalProgram::cargo()
            .args(["test"])
            .args(PACKAGES)
            .args(["--tests", "--target-dir"])
            .args([&folder])
            .args(words)
            .env("RUSTFLAGS", "-Cinstrument-coverage")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env("LLVM_PROFILE_FILE", counters.join("%m_%p.profraw"))
    };
    let programs = program::executables(cargo(&["--no-run"]))?;
    cargo(&["--quiet"]).run()?;
    let merged = folder.join("merged.profdata");
    let profiles = fs::read_dir(&counters)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    ensure!(!profiles.is_empty(), "the tests left no counters");
    ExternalProgram::new(tools.join("llvm-profdata"))
        .args(["merge", "--sparse", "-o"])
        .args([&merged])
        .args(&profiles)
        .run()?;
    let report = ExternalProgram::new(tools.join("llvm-cov"))
        .args(["export", "--summary-only", "--instr-profile"])
        .args([&merged])
        .args(programs.iter().flat_map(|program| ["--object".as_ref(), program.path.as_os_str()]))
        .output()?;
    ensure!(report.status.success(), "llvm-cov ended with {}:\n{}", report.status, report.stderr);
    let report: Value = serde_json::from_str(&report.stdout).context("llvm-cov's report is no JSON")?;
    let files: Vec<_> = CRATES.iter().map(|name| (*name, files(&report, name))).collect();
    if view == CoverageView::Files {
        print_files(&files);
    }
    let covered: Vec<_> = files.iter().map(|(name, files)| (*name, percent(files))).collect();
    let line: Vec<_> = covered.iter().map(|(name, percent)| format!("{name} {percent:.1} %")).collect();
    let line = format!("lines run by tests: {}", line.join(", "));
    if covered.iter().any(|(_, percent)| *percent < LINES_PERCENT_MIN) {
        bail!(
            "{line}, below {LINES_PERCENT_MIN} %\n  remedy: `cargo xtask coverage --files` shows where tests are missing"
        );
    }
    Ok(line)
}

/// A source file and its lines.
struct CoverageFile {
    name: String,
    covered: f64,
    lines: f64,
}

/// Sources of a crate, tests left out.
fn files(report: &Value, name: &str) -> Vec<CoverageFile> {
    let folder = format!("crates/{name}/src/");
    let files = report["data"][0]["files"].as_array().into_iter().flatten();
    let ours = files.filter_map(|file| {
        let name = file["filename"].as_str()?.replace('\\', "/");
        let name = name[name.find(&folder)?..].to_owned();
        let number = |key: &str| file["summary"]["lines"][key].as_f64().unwrap_or(0.0);
        (!name.ends_with("tests.rs")).then(|| CoverageFile {
            name,
            covered: number("covered"),
            lines: number("count"),
        })
    });
    ours.collect()
}

fn percent(files: &[CoverageFile]) -> f64 {
    let covered: f64 = files.iter().map(|file| file.covered).sum();
    let lines: f64 = files.iter().map(|file| file.lines).sum();
    if lines > 0.0 { 100.0 * covered / lines } else { 0.0 }
}

fn print_files(files: &[(&str, Vec<CoverageFile>)]) {
    let mut files: Vec<_> =
        files.iter().flat_map(|(_, files)| files).filter(|file| file.lines > 0.0).collect();
    files.sort_by(|a, b| (a.covered / a.lines).total_cmp(&(b.covered / b.lines)));
    for CoverageFile { name, covered, lines } in files {
        println!("{:5.1} %  {:5} not run  {name}", 100.0 * covered / lines, lines - covered);
    }
}

#[cfg(test)]
mod tests {
    use super::{files, percent};
    use serde_json::json;

    #[test]
    fn coverage_is_summed_by_crate_without_tests() {
        let file = |name: &str, covered: u32, count: u32| json!({"filename": name, "summary": {"lines": {"covered": covered, "count": count}}});
        let report = json!({"data": [{"files": [
            file("/x/crates/wire/src/a.rs", 90, 100),
            file("/x/crates/wire/src/b/c.rs", 0, 20),
            file("/x/crates/wire/src/b/d_tests.rs", 0, 500),
            file("/x/crates/wire/tests/e.rs", 0, 500),
            file("/x/crates/engine/src/a.rs", 1, 1),
        ]}]});
        let check = |name: &str, expected: f64| {
            assert!((percent(&files(&report, name)) - expected).abs() < 1e-9, "{name}")
        };
        check("wire", 75.0);
        check("engine", 100.0);
        check("none", 0.0);
    }
}
