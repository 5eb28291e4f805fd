//! Test programs: built by cargo, run one after another; failed tests are run again, alone.
//!
//! Cargo itself would suffice for the first run; but a second run needs the program's path, and a program
//! that hangs must be killed and named instead of the whole run.

use super::report::{FailedTest, Flake, ProgramOutput, TestReport};
use crate::program::{self, BuiltExecutable, EndedProgram, ExternalProgram};
use anyhow::{Result, anyhow};
use std::ffi::{OsStr, OsString};
use std::num::NonZero;
use std::time::{Duration, Instant};

/// Each crate has one program of integration tests, and some that must run alone.
const PROGRAM: &str = "it";
/// Silence after which a program counts as hung: no test takes a third of it on a busy machine.
const SILENCE_MAX: Duration = Duration::from_secs(900);
/// Maximum number of runs of a test, including the first.
const ATTEMPTS_MAX: usize = 3;
/// Maximum number of failed tests that are run again: more indicate a general failure.
const AGAIN_MAX: usize = 20;
/// Tests about lost or doubled data: programs, and how the names of their tests begin. One failure of them is one too many.
const NEVER_AGAIN: [(&str, &str); 12] = [
    ("cli::chaos", "killed_"),
    ("engine::it", "properties::"),
    ("engine::it", "events::"),
    ("speech::it", "splits::"),
    ("store::it", "postgres_faults::database_crash_"),
    ("store::it", "postgres_faults::claim_during_appends_"),
    ("store::it", "postgres_faults::crash_of_both_"),
    ("store::it", "store_disk_full::"),
    ("store::it", "store_kill::"),
    ("testkit::it", "fold_vectors::"),
    ("wire::it", "equivalence::"),
    ("wire::it", "fixtures::"),
];

/// Test programs to run, and their environment.
pub(crate) struct TestPrograms<'a> {
    /// Modules of tests, each with its crate: `server::clients`. Empty: all programs of the workspace, and the examples of its
    /// documentation.
    pub(crate) modules: &'a [&'a str],
    pub(crate) variables: Vec<(&'a str, OsString)>,
}

impl TestPrograms<'_> {
    /// Builds and runs them.
    ///
    /// # Errors
    /// They cannot be built.
    pub(crate) fn run(&self) -> Result<TestReport> {
        let programs = self.build()?;
        let (mut report, failed) = std::thread::scope(|scope| -> Result<_> {
            // In parallel with the programs, some of which mostly wait.
            let examples = self.modules.is_empty().then(|| scope.spawn(|| self.run_examples()));
            let (mut report, failed) = self.run_programs(programs)?;
            if let Some(examples) = examples {
                let examples = examples.join().map_err(|_| anyhow!("the thread of the examples panicked"))?;
                let (lines, examples) = examples?;
                println!("     Running the examples of the documentation\n{}", lines.join("\n"));
                report.append(examples);
            }
            Ok((report, failed))
        })?;
        if failed.len() > AGAIN_MAX {
            println!("{} tests failed: too many to be run again", failed.len());
        }
        let is_second_look = failed.len() <= AGAIN_MAX;
        for (built, test) in failed {
            let program = TestProgram::new(&built, &self.variables);
            match program.reason_against(&test) {
                None if is_second_look => program.look_again(test, &mut report, SILENCE_MAX)?,
                reason => {
                    let reason = reason.map(|reason| format!(" (not run again: {reason})"));
                    let line = format!("{} {}{}", program.name, test.name, reason.unwrap_or_default());
                    report.fail_with(line, test.output);
                }
            }
        }
        Ok(report)
    }

    /// Runs each once; the second value has the tests that failed.
    fn run_programs(
        &self,
        programs: Vec<BuiltExecutable>,
    ) -> Result<(TestReport, Vec<(BuiltExecutable, FailedTest)>)> {
        let mut report = TestReport::default();
        let mut failed = Vec::new();
        for built in programs {
            let program = TestProgram::new(&built, &self.variables);
            println!("     Running {}", program.name);
            for test in program.run(&self.filters(&program.name), &mut report, SILENCE_MAX)? {
                failed.push((built.clone(), test));
            }
        }
        Ok((report, failed))
    }

    /// Builds the programs, in a fixed order: cargo's is the order of completion.
    fn build(&self) -> Result<Vec<BuiltExecutable>> {
        let target: &[&str] = if self.modules.is_empty() { &[] } else { &["--test", PROGRAM] };
        // Of the whole workspace, so that the same features are chosen and nothing is built twice.
        let words = ["test", "--workspace", "--no-run"];
        let mut programs = program::executables(ExternalProgram::cargo().args(words).args(target))?;
        programs.retain(|built| {
            built.is_harness && (self.modules.is_empty() || !self.filters(&built.test_name()).is_empty())
        });
        programs.sort_by_key(BuiltExecutable::test_name);
        Ok(programs)
    }

    /// Beginnings of the names of the tests that are wanted of a program; empty: all are.
    fn filters(&self, program: &str) -> Vec<String> {
        let wanted = self.modules.iter().filter_map(|module| module.split_once("::"));
        let of_this = wanted.filter(|(crate_name, _)| program == format!("{crate_name}::{PROGRAM}"));
        of_this.map(|(_, module)| format!("{module}::")).collect()
    }

    /// Runs the examples; returns the lines that they print, and their report.
    fn run_examples(&self) -> Result<(Vec<String>, TestReport)> {
        let words = ["test", "--workspace", "--doc", "--no-fail-fast", "--", "--show-output"];
        let (mut shown, mut output) = (Vec::new(), ProgramOutput::default());
        let status = with_variables(ExternalProgram::cargo().args(words), &self.variables).lines(|line| {
            if output.take(line, Duration::ZERO) {
                shown.push(line.to_owned());
            }
        })?;
        let mut report = TestReport::default();
        let failed = std::mem::take(&mut output.failed_tests);
        if !status.success() && failed.is_empty() {
            report.fail_with(
                "the examples of the documentation: see what cargo printed above",
                Vec::from(std::mem::take(&mut output.last_lines)),
            );
        }
        for test in failed {
            report.fail_with(format!("example {}", test.name), test.output);
        }
        report.add(output);
        Ok((shown, report))
    }
}

struct TestProgram<'a> {
    name: String,
    built: &'a BuiltExecutable,
    variables: &'a [(&'a str, OsString)],
    /// Shows a line to people. A test has it show nothing: what its programs print looks like the outcome of tests.
    show: fn(&str),
}

impl<'a> TestProgram<'a> {
    fn new(built: &'a BuiltExecutable, variables: &'a [(&'a str, OsString)]) -> Self {
        Self { name: built.test_name(), built, variables, show: |line| println!("{line}") }
    }

    /// Runs all of its tests and returns those that failed; if it died or hangs, that is one failure.
    fn run(
        &self,
        filters: &[String],
        report: &mut TestReport,
        silence_max: Duration,
    ) -> Result<Vec<FailedTest>> {
        let (mut output, ended) = self.start(filters, silence_max)?;
        let failed = std::mem::take(&mut output.failed_tests);
        match ended {
            EndedProgram::Exited(status) if output.has_totals && failed.len() == output.failed => {
                if !status.success() && failed.is_empty() {
                    report.fail(format!("{} ended with {status}, and no test of it had failed", self.name));
                }
            }
            EndedProgram::Exited(status) => {
                let line = format!("{} ended with {status} before all of its tests had", self.name);
                report.fail_with(line, output.last_lines.iter().cloned().collect());
            }
            EndedProgram::Silent => {
                let line = self.hangs(&output, silence_max);
                report.fail_with(line, output.last_lines.iter().cloned().collect());
            }
        }
        let durations = output.durations(self.threads());
        report.durations.extend(
            durations.into_iter().map(|(test, duration)| (format!("{} {test}", self.name), duration)),
        );
        report.add(output);
        Ok(failed)
    }

    /// Runs one test alone until it passes or has failed often enough.
    fn look_again(&self, test: FailedTest, report: &mut TestReport, silence_max: Duration) -> Result<()> {
        let test_name = format!("{} {}", self.name, test.name);
        let why = panic_message(&test.output).map(|why| format!("; before: {why}")).unwrap_or_default();
        for attempt in 2..=ATTEMPTS_MAX {
            (self.show)(&format!("     Running {test_name}, alone, attempt {attempt} of {ATTEMPTS_MAX}"));
            let started_at = Instant::now();
            let words = ["--exact", &test.name, "--test-threads=1"];
            let (output, ended) = self.start(&words, silence_max)?;
            let seconds = started_at.elapsed().as_secs_f64();
            match ended {
                EndedProgram::Silent => {
                    let line = self.hangs(&output, silence_max);
                    report.fail_with(line, output.last_lines.into());
                    return Ok(());
                }
                EndedProgram::Exited(status) if status.success() && output.passed == 1 => {
                    report.passed += 1;
                    let outcome = format!("attempt {attempt}, {seconds:.1} s{why}");
                    report.flakes.push(Flake { test: test_name, outcome });
                    return Ok(());
                }
                EndedProgram::Exited(_) => {}
            }
        }
        report.fail_with(format!("{test_name} ({ATTEMPTS_MAX} attempts)"), test.output);
        Ok(())
    }

    /// Number of parallel tests. Those of a crate's program often wait, so that two for each processor keep
    /// it busy. Unit tests compute, and the separate programs load the machine themselves: one for each.
    fn threads(&self) -> usize {
        let named = std::env::var("RUST_TEST_THREADS").ok().and_then(|threads| threads.parse().ok());
        let processors = || std::thread::available_parallelism().map_or(1, NonZero::get);
        named.unwrap_or_else(|| {
            if self.name.ends_with(&format!("::{PROGRAM}")) { 2 * processors() } else { processors() }
        })
    }

    /// Reason why a test is not run again.
    fn reason_against(&self, test: &FailedTest) -> Option<&'static str> {
        if test.found_an_input {
            return Some("it found an input that breaks a property");
        }
        NEVER_AGAIN
            .iter()
            .any(|(program, start)| *program == self.name && test.name.starts_with(start))
            .then_some("it is about lost or doubled data")
    }

    fn hangs(&self, output: &ProgramOutput, silence_max: Duration) -> String {
        let tests =
            if output.slow.is_empty() { "one of its tests".to_owned() } else { output.slow.join(", ") };
        format!("{} hangs: it printed nothing for {} s during {tests}", self.name, silence_max.as_secs())
    }

    fn start(
        &self,
        words: &[impl AsRef<OsStr>],
        silence_max: Duration,
    ) -> Result<(ProgramOutput, EndedProgram)> {
        let mut output = ProgramOutput::default();
        // Where cargo runs it.
        let program = ExternalProgram::new(&self.built.path)
            .without_our_package()
            .inside(&self.built.package_folder)
            .env("CARGO_MANIFEST_DIR", &self.built.package_folder)
            .env("RUST_TEST_THREADS", self.threads().to_string())
            .args(words)
            .args(["--show-output"]);
        let started_at = Instant::now();
        let ended = with_variables(program, self.variables).lines_within(silence_max, |line| {
            if output.take(line, started_at.elapsed()) {
                (self.show)(line);
            }
        })?;
        Ok((output, ended))
    }
}

/// Message of a failed test's panic.
fn panic_message(output: &[String]) -> Option<&str> {
    let panic = output.iter().position(|line| line.contains(" panicked at "))?;
    output.get(panic + 1).map(|line| &line[..line.floor_char_boundary(300)])
}

fn with_variables(program: ExternalProgram, variables: &[(&str, OsString)]) -> ExternalProgram {
    variables.iter().fold(program, |program, (name, value)| program.env(name, value))
}

#[cfg(test)]
mod tests;
