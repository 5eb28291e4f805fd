//! `cargo xtask test`: everything that CI runs. R: D1
//!
//! Always with cargo's own test runner, though others are faster: one path for everybody, documentation examples
//! included, and what a test skips is printed.

mod packages;
mod report;

use crate::corpus::{self, Corpus};
use crate::fault::fault;
use crate::program::{self, Program};
use crate::{Verb, arch, documents, sim, spec, typescript, verify, web};
use anyhow::{Result, bail};
use report::Report;
use std::time::Instant;

pub const VERB: Verb = Verb {
    name: "test",
    about: "Run every check and every test, as CI does",
    help: "\
Usage: cargo xtask test [--only NAME,…] [--fail-fast]

  format     cargo fmt --check                       (skipped where rustfmt is not installed)
  clippy     cargo clippy -- -D warnings             (skipped where clippy is not installed)
  alone      `wire` and `engine` compile by themselves, as whoever wants only those gets them
  arch       dependency arrows; no async, clock or IO in `wire` and `engine`
  spec       every requirement of this release has code and a test
  typescript the types of the TypeScript client are those of the API's description
  web        the page: types, style, tests, build, and how much script it has (skipped without npm)
  page       the page in a browser against the server with the demo model (skipped without npm or Chromium)
  documents  the project's documents exist, and links in them resolve
  tests      unit, integration and documentation tests of the workspace
  mcp        real MCP servers and the protocol's conformance suite (skipped where npm, pip or a registry is missing)
  clients    OpenAI's libraries, LangChain and others against the server, unmodified, with the quick ones of
             `verify --only clients`; our own for TypeScript (skipped likewise)
  sim        a seeded sample of simulated turns
  corpus     recorded streams through `throughline decode`, if THROUGHLINE_VECTORS names them

It goes on after a failure (not with --fail-fast) and ends with `N passed, N failed`: tests and checks together.
The long proofs are `cargo xtask verify`.",
    run,
};

/// How one check ended.
enum Ended {
    /// With a figure for the line that says so.
    Passed(String),
    /// Why it did not run.
    Skipped(String),
    /// Tests count one by one.
    Tests(Report),
}

type Check = fn() -> Result<Ended>;

const CHECKS: [(&str, Check); 14] = [
    ("format", format),
    ("clippy", clippy),
    ("alone", alone),
    ("arch", || arch::check().map(Ended::Passed)),
    ("spec", || spec::check().map(Ended::Passed)),
    ("typescript", || typescript::check().map(Ended::Passed)),
    // Before whatever builds the server, which carries the page.
    ("web", || Ok(web::check()?.map_or_else(Ended::Skipped, Ended::Passed))),
    ("documents", || documents::check().map(Ended::Passed)),
    ("tests", tests),
    ("mcp", || packages::check(&packages::MCP)),
    ("clients", clients),
    ("page", page_in_a_browser),
    ("sim", || sim::sample(SEEDS).map(Ended::Passed)),
    ("corpus", corpus_through_the_command),
];

/// Simulated turns of one run of the checks; 100,000 are `verify`'s.
const SEEDS: u64 = 300;

fn run(words: Vec<String>) -> Result<()> {
    let mut only: Option<Vec<String>> = None;
    let mut fails_fast = false;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match (word.as_str(), words.len()) {
            ("--only", 1..) => {
                only = words.next().map(|names| names.split(',').map(str::to_owned).collect());
            }
            ("--fail-fast", _) => fails_fast = true,
            _ => {
                return Err(fault(format!("`{word}` is no flag of `test`"), "see `cargo xtask test --help`"));
            }
        }
    }
    let names: Vec<_> = CHECKS.iter().map(|check| check.0).collect();
    if let Some(name) = only.iter().flatten().find(|name| !names.contains(&name.as_str())) {
        return Err(fault(format!("`{name}` is no check"), format!("one of: {}", names.join(", "))));
    }
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only.iter().any(|one| one == name));
    let (mut passed, mut failed, mut skipped) = (0, 0, Vec::new());
    let mut failures = Vec::new();
    let begun = Instant::now();
    for (name, check) in CHECKS.into_iter().filter(|check| is_wanted(check.0)) {
        println!("==> {name}");
        let begun = Instant::now();
        let ended = check();
        let seconds = begun.elapsed().as_secs();
        match ended {
            Ok(Ended::Passed(figure)) => {
                passed += 1;
                println!("    {name}: passed ({figure}; {seconds} s)");
            }
            Ok(Ended::Skipped(why)) => {
                println!("    {name}: skipped: {why}");
                skipped.push(format!("{name}: {why}"));
            }
            Ok(Ended::Tests(report)) => {
                passed += report.passed;
                failed += report.failed.max(usize::from(!report.is_success));
                let Report { passed, failed, ignored, .. } = report;
                println!("    {name}: {passed} passed, {failed} failed, {ignored} ignored ({seconds} s)");
                skipped.extend(report.skipped);
                failures.extend(report.failures);
                if !report.is_success {
                    failures.push(format!("{name}: see `cargo test` above"));
                }
            }
            Err(error) => {
                failed += 1;
                println!("    {name}: FAILED after {seconds} s\n{error:#}");
                // Said again at the end, where whoever reads only the last lines finds it.
                failures.push(format!("{name}: {error:#}"));
            }
        }
        if fails_fast && failed > 0 {
            break;
        }
    }
    println!();
    for line in &skipped {
        println!("skipped: {line}");
    }
    for line in &failures {
        println!("failed: {line}");
    }
    println!("took {} s", begun.elapsed().as_secs());
    println!("{passed} passed, {failed} failed");
    if failed > 0 { bail!("not everything passed") } else { Ok(()) }
}

fn format() -> Result<Ended> {
    if !Program::cargo().args(["fmt", "--version"]).works() {
        return Ok(Ended::Skipped("rustfmt is not installed (rustup component add rustfmt)".to_owned()));
    }
    match Program::cargo().args(["fmt", "--all", "--check"]).run() {
        Ok(()) => Ok(Ended::Passed("as rustfmt would".to_owned())),
        Err(_) => Err(fault("files are not as rustfmt would write them", "cargo fmt --all")),
    }
}

fn clippy() -> Result<Ended> {
    if !Program::cargo().args(["clippy", "--version"]).works() {
        return Ok(Ended::Skipped("clippy is not installed (rustup component add clippy)".to_owned()));
    }
    Program::cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()?;
    Ok(Ended::Passed("no warning".to_owned()))
}

/// In a build of the workspace a crate has the features of its dependencies that some other crate asks for.
fn alone() -> Result<Ended> {
    const CRATES: [&str; 2] = ["throughline-wire", "throughline-engine"];
    for name in CRATES {
        Program::cargo().args(["check", "--quiet", "--package", name]).run()?;
    }
    Ok(Ended::Passed(CRATES.join(", ")))
}

fn tests() -> Result<Ended> {
    let mut report = Report::default();
    let words = ["test", "--workspace", "--no-fail-fast", "--", "--show-output"];
    // Those that need packages are checks of their own.
    let program =
        Program::cargo().args(words).env(packages::MCP.variable, "").env(packages::CLIENTS.variable, "");
    let status = program.lines(|line| {
        if report.take(line) {
            println!("{line}");
        }
    })?;
    report.is_success = status.success();
    Ok(Ended::Tests(report))
}

/// Those whose tests are ours, then the quick ones of the matrix that `verify` runs as a whole.
fn clients() -> Result<Ended> {
    let mut report = match packages::check(&packages::CLIENTS)? {
        Ended::Tests(report) => report,
        ended => return Ok(ended),
    };
    let quick = verify::clients::quick()?;
    report.passed += quick.worked;
    report.failed += quick.unexpected.len();
    report.is_success &= quick.unexpected.is_empty();
    report.failures.extend(quick.unexpected);
    report.skipped.extend(quick.not_run);
    Ok(Ended::Tests(report))
}

fn page_in_a_browser() -> Result<Ended> {
    if let Err(why) = web::built()? {
        return Ok(Ended::Skipped(why));
    }
    Ok(match web::in_browser(&program::throughline_of_the_tests(&[])?)? {
        Ok(()) => Ended::Passed("see above".to_owned()),
        Err(why) => Ended::Skipped(why),
    })
}

fn corpus_through_the_command() -> Result<Ended> {
    Ok(match corpus::check(&program::of_the_tests("bin", "throughline")?, 1)? {
        Corpus::Absent(why) => Ended::Skipped(why),
        Corpus::Passed { streams, recovered } => {
            Ended::Passed(format!("{streams} streams, {recovered} with leaked calls"))
        }
    })
}
