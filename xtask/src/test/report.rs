//! The output of test programs, counted; of passed tests, only their skips are stored.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Totals of all test programs of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestReport {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
    /// One entry for each failed test, and for any other failure.
    pub(crate) failures: Vec<Failure>,
    /// Tests that failed at first and passed when they ran again; they count as passed.
    pub(crate) flakes: Vec<Flake>,
    /// Skip messages of the tests.
    pub(crate) skipped: Vec<String>,
    /// Programs and tests, and how long each ran.
    pub(crate) durations: Vec<(String, Duration)>,
}

/// One failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) line: String,
    /// The lines that it printed.
    pub(crate) output: Vec<String>,
}

/// A test that failed and then passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flake {
    /// The program and the test: `server::it request_guard::revoked_key_ends_the_stream`.
    pub(crate) test: String,
    /// The attempt that passed, and its time.
    pub(crate) outcome: String,
}

impl TestReport {
    /// Counts a failure. Lines after the first are its output.
    pub(crate) fn fail(&mut self, text: impl AsRef<str>) {
        let mut lines = text.as_ref().lines().map(str::to_owned);
        let line = lines.next().unwrap_or_default();
        self.fail_with(line, lines.collect());
    }

    pub(crate) fn fail_with(&mut self, line: impl Into<String>, output: Vec<String>) {
        self.failed += 1;
        self.failures.push(Failure { line: line.into(), output });
    }

    /// Takes a line of the browser tests; those that count a test are written by `web/e2e/reporter.ts`.
    pub(crate) fn take_browser_line(&mut self, line: &str) {
        let Some((outcome, test)) = line.strip_prefix("e2e ").and_then(|rest| rest.split_once(": ")) else {
            return;
        };
        if outcome == "output" {
            self.failures.last_mut().into_iter().for_each(|failure| failure.output.push(test.to_owned()));
            return;
        }
        let (outcome, milliseconds) = outcome.split_once(" in ").unwrap_or((outcome, ""));
        if let Ok(milliseconds) = milliseconds.trim_end_matches(" ms").parse() {
            let name = test.split(": ").next().unwrap_or_default();
            self.durations.push((name.to_owned(), Duration::from_millis(milliseconds)));
        }
        match outcome {
            "passed" => self.passed += 1,
            "flaky" => {
                self.passed += 1;
                self.flakes.push(Flake { test: test.to_owned(), outcome: "attempt 2".to_owned() });
            }
            "failed" => self.fail(test),
            "skipped" => self.ignored += 1,
            _ => {}
        }
    }

    /// Adds the counts of another check.
    pub(crate) fn append(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.failures.extend(other.failures);
        self.flakes.extend(other.flakes);
        self.skipped.extend(other.skipped);
        self.durations.extend(other.durations);
    }

    /// Takes the totals of a program; the tests that failed are the caller's to judge.
    pub(crate) fn add(&mut self, output: ProgramOutput) {
        self.passed += output.passed;
        self.ignored += output.ignored;
        self.skipped.extend(output.skipped);
    }
}

/// Maximum number of stored output lines of a failed test.
const OUTPUT_LINES_MAX: usize = 1_000;
/// Maximum number of stored lines of a program, for the case that it dies.
const LAST_LINES_MAX: usize = 40;

/// The output of one test program.
#[derive(Debug, Default)]
pub(crate) struct ProgramOutput {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
    pub(crate) failed_tests: Vec<FailedTest>,
    pub(crate) skipped: Vec<String>,
    /// True once the program has printed its totals.
    pub(crate) has_totals: bool,
    /// Tests that the runner reported as slow, and which have not ended.
    pub(crate) slow: Vec<String>,
    /// The last lines that people were shown.
    pub(crate) last_lines: VecDeque<String>,
    /// Tests in the order in which they ended, and when.
    ended: Vec<(String, Duration)>,
    section: OutputSection,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FailedTest {
    pub(crate) name: String,
    /// True if it found an input that breaks a property.
    pub(crate) found_an_input: bool,
    /// The lines that it printed, up to a bound.
    pub(crate) output: Vec<String>,
}

/// Current section of a test program's output.
#[derive(Debug, Default)]
enum OutputSection {
    #[default]
    Running,
    /// Output of a test that passed.
    Passed(String),
    /// Output of a test that failed.
    Failed(String),
    /// Names of the failed tests.
    FailedNames,
}

impl ProgramOutput {
    /// Takes the next line, with its time since the program's start; returns true if it is to be shown.
    pub(crate) fn take(&mut self, line: &str, at: Duration) -> bool {
        let is_shown = self.read(line, at);
        if is_shown {
            if self.last_lines.len() == LAST_LINES_MAX {
                self.last_lines.pop_front();
            }
            self.last_lines.push_back(line.to_owned());
        }
        is_shown
    }

    /// Duration of each test, for `threads` parallel ones: the runner starts them in the order of their
    /// names, the next one as soon as one has ended.
    pub(crate) fn durations(&self, threads: usize) -> BTreeMap<&str, Duration> {
        let mut names: Vec<_> = self.ended.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        let ended: BTreeMap<_, _> = self.ended.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        let duration = |(nth, name)| {
            let began: Option<usize> = usize::checked_sub(nth, threads);
            let began = began.map_or(Duration::ZERO, |before| self.ended[before].1);
            (name, ended[name].saturating_sub(began))
        };
        names.into_iter().enumerate().map(duration).collect()
    }

    fn read(&mut self, line: &str, at: Duration) -> bool {
        match line {
            "successes:" => {
                self.section = OutputSection::Passed(String::new());
                return false;
            }
            // Printed twice: above the outputs, and above the names.
            "failures:" => {
                self.section = match self.section {
                    OutputSection::Failed(_) => OutputSection::FailedNames,
                    _ => OutputSection::Failed(String::new()),
                };
                return true;
            }
            _ => {}
        }
        if let Some(totals) = line.strip_prefix("test result: ") {
            self.section = OutputSection::Running;
            self.has_totals = true;
            for part in totals.split([';', '.']) {
                let mut words = part.split_whitespace();
                let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<usize>), words.next())
                else {
                    continue;
                };
                match what {
                    "passed" => self.passed += count,
                    "failed" => self.failed += count,
                    "ignored" => self.ignored += count,
                    _ => {}
                }
            }
            return true;
        }
        let header = || line.strip_prefix("---- ")?.strip_suffix(" stdout ----");
        match &mut self.section {
            OutputSection::Running => {
                if let Some(test) = line.strip_prefix("test ") {
                    match test.split_once(" has been running for ") {
                        Some((name, _)) => self.slow.push(name.to_owned()),
                        None => {
                            let name = test.split(" ... ").next().unwrap_or_default();
                            self.slow.retain(|slow| slow != name);
                            self.ended.push((name.to_owned(), at));
                        }
                    }
                }
                true
            }
            OutputSection::Failed(test) => {
                if let Some(name) = header() {
                    name.clone_into(test);
                    self.failed_tests.push(FailedTest { name: name.to_owned(), ..FailedTest::default() });
                } else if let Some(failed) = self.failed_tests.last_mut() {
                    failed.found_an_input |= line.contains("minimal failing input");
                    if failed.output.len() < OUTPUT_LINES_MAX {
                        failed.output.push(line.to_owned());
                    }
                }
                true
            }
            OutputSection::FailedNames => {
                // A test without output has no section above.
                if let Some(name) = line.strip_prefix("    ")
                    && !self.failed_tests.iter().any(|failed| failed.name == name)
                {
                    self.failed_tests.push(FailedTest { name: name.to_owned(), ..FailedTest::default() });
                }
                true
            }
            OutputSection::Passed(test) => {
                if let Some(name) = header() {
                    name.clone_into(test);
                } else if let Some(why) = line.strip_prefix("skipped: ") {
                    self.skipped.push(format!("{test}: {why}"));
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, FailedTest, Failure, Flake, ProgramOutput, TestReport};

    const OUTPUT: &str = "\
running 5 tests
test a ... ok
test b ... FAILED
test c has been running for over 60 seconds
test d has been running for over 60 seconds
test c ... ok
test e ... its child talks
FAILED
test f ... FAILED

successes:

---- a stdout ----
skipped: THROUGHLINE_VECTORS is not set

---- c stdout ----
a lot of talk

successes:
    a
    c

failures:

---- b stdout ----
why it failed

---- f stdout ----
minimal failing input: text = \"\"

failures:
    b
    e
    f

test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 1 test
test g ... ok

successes:

successes:
    g

test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

    #[test]
    fn totals_are_added_and_failures_shown() {
        let mut output = ProgramOutput::default();
        let shown: Vec<_> = OUTPUT.lines().filter(|line| output.take(line, Duration::ZERO)).collect();
        assert_eq!((output.passed, output.failed, output.ignored), (3, 3, 2));
        let failed = |name: &str, found_an_input, output: &[&str]| FailedTest {
            name: name.to_owned(),
            found_an_input,
            output: output.iter().map(|&line| line.to_owned()).collect(),
        };
        let expected = [
            failed("b", false, &["why it failed", ""]),
            failed("f", true, &["minimal failing input: text = \"\"", ""]),
            failed("e", false, &[]),
        ];
        assert_eq!(output.failed_tests, expected);
        assert_eq!(output.skipped, ["a: THROUGHLINE_VECTORS is not set"]);
        assert_eq!(output.slow, ["d"]);
        assert!(shown.contains(&"why it failed") && !shown.contains(&"a lot of talk"), "{shown:?}");
    }

    #[test]
    fn browser_tests_are_counted_one_by_one() {
        let mut report = TestReport::default();
        let lines = [
            "e2e passed in 1250 ms: axe > chat",
            "e2e flaky: axe > thinking",
            "e2e failed in 90 ms: turns > stop: it goes on",
            "e2e output: it goes on",
            "e2e output:     at stop.test.ts:9",
            "e2e skipped: voice > speaks",
            " ✓ tests/axe.test.ts (94 tests)",
        ];
        lines.iter().for_each(|line| report.take_browser_line(line));
        let flake = Flake { test: "axe > thinking".to_owned(), outcome: "attempt 2".to_owned() };
        let expected = TestReport {
            passed: 2,
            failed: 1,
            ignored: 1,
            failures: vec![Failure {
                line: "turns > stop: it goes on".to_owned(),
                output: vec!["it goes on".to_owned(), "    at stop.test.ts:9".to_owned()],
            }],
            flakes: vec![flake],
            skipped: Vec::new(),
            durations: vec![
                ("axe > chat".to_owned(), Duration::from_millis(1_250)),
                ("turns > stop".to_owned(), Duration::from_millis(90)),
            ],
        };
        assert_eq!(report, expected);
    }

    #[test]
    fn durations_follow_from_the_ends_of_tests() {
        let mut output = ProgramOutput::default();
        // a and b start immediately, c when a has ended, d after c.
        for (name, at) in [("a", 3), ("c", 5), ("d", 6), ("b", 9)] {
            output.take(&format!("test {name} ... ok"), Duration::from_secs(at));
        }
        let durations = |threads| {
            output.durations(threads).into_values().map(|duration| duration.as_secs()).collect::<Vec<_>>()
        };
        assert_eq!(durations(2), [3, 9, 2, 1]);
        assert_eq!(durations(4), [3, 9, 5, 6]);
    }
}
