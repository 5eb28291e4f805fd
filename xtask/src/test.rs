//! `cargo xtask test`: all checks of CI.
//!
//! Programs are built by cargo and run one after another, documentation examples included, and what a test skips is printed.

mod closing;
mod flakes;
mod installs;
mod machine;
mod packages;
mod programs;
mod report;
mod shipped;
mod skips;

use crate::corpus::{self, CorpusOutcome};
use crate::fault::fault;
use crate::program::{self, ExternalProgram};
use crate::{TaskVerb, arch, documents, package, sim, typescript, verify, web};
use anyhow::{Result, bail};
use closing::RunReport;
use flakes::KnownFlakes;
use installs::Installs;
use machine::MachineWatch;
pub(crate) use packages::{CLIENTS, installed};
use programs::TestPrograms;
use report::{Flake, TestReport};
use skips::AllowedSkips;
use std::time::{Duration, Instant};

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "test",
    about: "Run every check and every test, as CI does",
    help: "\
Usage: cargo xtask test [--only NAME,…] [--fail-fast]

  format     cargo fmt --check                       (skipped where rustfmt is not installed)
  arch       dependency arrows; no async, clock or IO in the pure crates
  documents  the project's documents exist, links in them resolve, and each requirement names tests
  clippy     cargo clippy -- -D warnings             (skipped where clippy is not installed)
  alone      the pure crates compile by themselves, as whoever wants only those gets them
  typescript the types of the TypeScript client are those of the API's description (skipped without npm)
  web        the page: types, style, tests, build, and how much script it has (skipped without npm)
  page       the page in a browser against the server with the demo model (skipped without npm or Chromium)
  tests      unit, integration and documentation tests of the workspace
  shipped    the command built alone, with the features that users get: TLS and others; the archive that people download,
             unpacked and run
  package    our crates as cargo packs them: each is whole, and the server has the page in it
  mcp        real MCP servers and the protocol's conformance suite (skipped where npm, pip or a registry is missing)
  clients    OpenAI's libraries, LangChain and others against the server, unmodified, with the quick ones of
             `verify --only clients`; our own for TypeScript, also as it is published (skipped likewise)
  sim        a seeded sample of simulated turns
  corpus     recorded streams through `throughline decode`, if THROUGHLINE_VECTORS names them

It goes on after a failure, but not after one of format, clippy or a build, nor with --fail-fast, and ends with `N passed, N failed`: tests and checks together.
A test that failed is run again alone, up to twice, unless it is about lost or doubled data; one that passes then counts as
passed and is named in a line `flaky: …`. More than five of those, or one that docs/flakes.toml calls mended, fail the run. So does, with
CI=true in the environment, a check or test that is skipped and that docs/skips.toml does not list.
Property tests try the same inputs in each run; PROPTEST_RNG_SEED=<number> chooses others.
The long proofs are `cargo xtask verify`.",
    run,
};

enum CheckOutcome {
    /// Passed, with a figure for the summary line.
    Passed(String),
    /// Skipped, with the reason.
    Skipped(String),
    /// Tests count one by one.
    Tests(TestReport),
}

type CheckFn = fn() -> Result<CheckOutcome>;

/// The cheap ones first.
const CHECKS: [(&str, CheckFn); 15] = [
    ("format", format),
    ("arch", || arch::check().map(CheckOutcome::Passed)),
    ("documents", || documents::check().map(CheckOutcome::Passed)),
    ("clippy", clippy),
    ("alone", check_alone),
    ("typescript", || Ok(typescript::check()?.map_or_else(CheckOutcome::Skipped, CheckOutcome::Passed))),
    // Before any check that builds the server, which embeds the page.
    ("web", || Ok(web::check()?.map_or_else(CheckOutcome::Skipped, CheckOutcome::Passed))),
    ("tests", tests),
    ("shipped", shipped::check),
    ("package", packed_crates),
    ("mcp", || packages::check(&packages::MCP)),
    ("clients", clients),
    ("page", page_in_a_browser),
    ("sim", || sim::sample(SEEDS).map(CheckOutcome::Passed)),
    ("corpus", corpus_through_the_command),
];

/// Checks without which the others are meaningless. Of `tests`, that they build: a failed test does not
/// count.
const GATES: [&str; 4] = ["format", "clippy", "alone", "tests"];
/// Latest start of a check, so that the closing lines are printed within CI's limit of 90 minutes.
const BEGIN_WITHIN: Duration = Duration::from_mins(75);
/// Property tests try the same inputs in every run. `.cargo/config.toml` has the seed; those of the page read it, too.
pub(crate) const SEED_VARIABLE: &str = "PROPTEST_RNG_SEED";
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
    let (known_flakes, allowed_skips) = (KnownFlakes::read()?, AllowedSkips::read()?);
    println!("{}", machine::versions().join("\n"));
    println!(
        "property tests: {SEED_VARIABLE}={}",
        std::env::var(SEED_VARIABLE).unwrap_or_else(|_| "random".to_owned())
    );
    let checks: Vec<_> = CHECKS.into_iter().filter(|check| is_wanted(check.0)).collect();
    let names: Vec<_> = checks.iter().map(|check| check.0).collect();
    let mut run = run_checks(checks.into_iter(), Installs::begin(&names), fails_fast);
    println!();
    known_flakes.judge(&mut run.tests);
    if std::env::var_os("CI").is_some_and(|ci| ci == "true") {
        allowed_skips.judge(&mut run.tests);
    }
    for line in run.closing_lines() {
        println!("{line}");
    }
    if run.tests.failed > 0 { bail!("not everything passed") } else { Ok(()) }
}

fn run_checks(
    checks: impl Iterator<Item = (&'static str, CheckFn)>,
    mut installs: Installs,
    fails_fast: bool,
) -> RunReport {
    let mut run = RunReport::default();
    let mut machine = MachineWatch::start();
    let run_started_at = Instant::now();
    let mut stopped_by = None;
    for (name, check) in checks {
        if let Some(gate) = stopped_by {
            run.not_run.push(format!("{name}: not run, since {gate} failed"));
            continue;
        }
        if run_started_at.elapsed() > BEGIN_WITHIN {
            run.tests.fail(format!("{name}: not run, since {} min were over", BEGIN_WITHIN.as_secs() / 60));
            continue;
        }
        println!("==> {name}");
        let started_at = Instant::now();
        installs.wait_before(name);
        let outcome = check();
        let seconds = started_at.elapsed().as_secs();
        let strain = machine.lap();
        run.checks.push((name, seconds));
        match outcome {
            Ok(CheckOutcome::Passed(figure)) => {
                run.tests.passed += 1;
                println!("    {name}: passed ({figure}; {seconds} s; {strain})");
            }
            Ok(CheckOutcome::Skipped(why)) => {
                println!("    {name}: skipped: {why}");
                run.tests.skipped.push(format!("{name}: {why}"));
            }
            Ok(CheckOutcome::Tests(mut report)) => {
                let (passed, failed, ignored) = (report.passed, report.failed, report.ignored);
                println!(
                    "    {name}: {passed} passed, {failed} failed, {ignored} ignored ({seconds} s; {strain})"
                );
                report
                    .failures
                    .iter_mut()
                    .for_each(|failure| failure.line.insert_str(0, &format!("{name}: ")));
                run.tests.append(report);
            }
            Err(error) => {
                println!("    {name}: FAILED after {seconds} s\n{error:#}");
                run.tests.fail(format!("{name}: {error:#}"));
                stopped_by = stopped_by.or(GATES.contains(&name).then_some(name));
            }
        }
        run.strain.add(&strain);
        if fails_fast && run.tests.failed > 0 {
            stopped_by = stopped_by.or(Some(name));
        }
    }
    installs.wait();
    run.took = run_started_at.elapsed();
    run
}

fn format() -> Result<CheckOutcome> {
    if !ExternalProgram::cargo().args(["fmt", "--version"]).succeeds() {
        return Ok(CheckOutcome::Skipped(
            "rustfmt is not installed (rustup component add rustfmt)".to_owned(),
        ));
    }
    match ExternalProgram::cargo().args(["fmt", "--all", "--check"]).run() {
        Ok(()) => Ok(CheckOutcome::Passed("as rustfmt would".to_owned())),
        Err(_) => Err(fault("files are not as rustfmt would write them", "cargo fmt --all")),
    }
}

fn clippy() -> Result<CheckOutcome> {
    if !ExternalProgram::cargo().args(["clippy", "--version"]).succeeds() {
        return Ok(CheckOutcome::Skipped("clippy is not installed (rustup component add clippy)".to_owned()));
    }
    ExternalProgram::cargo()
        .args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
        .run()?;
    Ok(CheckOutcome::Passed("no warning".to_owned()))
}

/// Builds each crate alone. In a build of the workspace a crate has the features of its dependencies that any
/// other crate enables.
fn check_alone() -> Result<CheckOutcome> {
    const CRATES: [&str; 3] = ["throughline-wire", "throughline-engine", "throughline-speech"];
    for name in CRATES {
        ExternalProgram::cargo().args(["check", "--quiet", "--package", name]).run()?;
    }
    Ok(CheckOutcome::Passed(CRATES.join(", ")))
}

fn packed_crates() -> Result<CheckOutcome> {
    let (figure, without_page) = package::check()?;
    Ok(CheckOutcome::Passed(match without_page {
        None => figure,
        Some(why) => format!("{figure}; without the page: {why}"),
    }))
}

fn tests() -> Result<CheckOutcome> {
    // Tests that need packages are separate checks.
    let variables =
        [packages::MCP.variable, packages::CLIENTS.variable, shipped::ARCHIVE].map(|name| (name, "".into()));
    TestPrograms { modules: &[], variables: variables.into() }.run().map(CheckOutcome::Tests)
}

/// Runs our clients' tests, then the quick part of the matrix that `verify` runs as a whole.
fn clients() -> Result<CheckOutcome> {
    let mut report = match packages::check_clients()? {
        CheckOutcome::Tests(report) => report,
        outcome => return Ok(outcome),
    };
    match verify::clients::quick() {
        Ok(quick) => {
            report.passed += quick.worked;
            quick.unexpected.iter().for_each(|cell| report.fail(cell));
            let flake = |cell| Flake { test: cell, outcome: "attempt 2".to_owned() };
            report.flakes.extend(quick.flakes.into_iter().map(flake));
            report.skipped.extend(quick.not_run);
        }
        // What has passed before it stays counted.
        Err(error) => report.fail(format!("{error:#}")),
    }
    Ok(CheckOutcome::Tests(report))
}

fn page_in_a_browser() -> Result<CheckOutcome> {
    if let Err(why) = web::built()? {
        return Ok(CheckOutcome::Skipped(why));
    }
    let run = match web::in_browser(&program::throughline_built_by_tests(&[])?) {
        Ok(run) => run,
        Err(why) => return Ok(CheckOutcome::Skipped(why)),
    };
    let mut report = TestReport::default();
    let status = run.lines(|line| {
        println!("{line}");
        report.take_browser_line(line);
    })?;
    if !status.success() && report.failed == 0 {
        report.fail(format!("`npm run e2e` failed ({status})"));
    }
    Ok(CheckOutcome::Tests(report))
}

fn corpus_through_the_command() -> Result<CheckOutcome> {
    Ok(match corpus::check(&program::built_by_tests("bin", "throughline")?, 1)? {
        CorpusOutcome::Absent(why) => CheckOutcome::Skipped(why),
        CorpusOutcome::Passed { streams, recovered } => {
            CheckOutcome::Passed(format!("{streams} streams, {recovered} with leaked calls"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{CheckFn, CheckOutcome, Installs, run_checks};
    use anyhow::bail;

    const PASSES: CheckFn = || Ok(CheckOutcome::Passed("it is so".to_owned()));
    const FAILS: CheckFn = || bail!("it is not so");

    /// Runs these checks: how many passed and failed, and those that were not run.
    #[track_caller]
    fn check(checks: &[(&'static str, CheckFn)], fails_fast: bool, counts: (usize, usize), not_run: &[&str]) {
        let run = run_checks(checks.iter().copied(), Installs::default(), fails_fast);
        assert_eq!((run.tests.passed, run.tests.failed), counts, "{:?}", run.tests);
        assert_eq!(run.not_run, not_run);
    }

    #[test]
    fn run_continues_after_a_failure() {
        check(&[("arch", FAILS), ("web", PASSES)], false, (1, 1), &[]);
        check(&[("arch", FAILS), ("web", PASSES)], true, (0, 1), &["web: not run, since arch failed"]);
    }

    #[test]
    fn run_stops_after_a_failed_gate() {
        let not_run = ["web: not run, since clippy failed", "tests: not run, since clippy failed"];
        check(
            &[("format", PASSES), ("clippy", FAILS), ("web", PASSES), ("tests", PASSES)],
            false,
            (1, 1),
            &not_run,
        );
    }
}
