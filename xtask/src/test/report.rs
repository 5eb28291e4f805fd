//! The output of test programs, counted; of tests that passed, only what they skipped is kept.

/// Totals of all test programs of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestReport {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
    /// A line for each test that failed, and for whatever else went wrong.
    pub(crate) failures: Vec<String>,
    /// Tests that failed at first and passed when they ran again; they count as passed.
    pub(crate) flakes: Vec<Flake>,
    /// Skip messages of the tests.
    pub(crate) skipped: Vec<String>,
}

/// A test that failed and then passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flake {
    /// The program and the test: `server::it gate::revoked_key_ends_the_stream`.
    pub(crate) test: String,
    /// The attempt that passed, and its time.
    pub(crate) outcome: String,
}

impl TestReport {
    /// Counts something that failed.
    pub(crate) fn fail(&mut self, line: impl Into<String>) {
        self.failed += 1;
        self.failures.push(line.into());
    }

    /// Takes a line of the browser tests; those that count a test are written by `web/e2e/reporter.ts`.
    pub(crate) fn take_browser_line(&mut self, line: &str) {
        let Some((outcome, test)) = line.strip_prefix("e2e ").and_then(|rest| rest.split_once(": ")) else {
            return;
        };
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

    /// Takes the totals of a program; the tests that failed are the caller's to judge.
    pub(crate) fn add(&mut self, output: ProgramOutput) {
        self.passed += output.passed;
        self.ignored += output.ignored;
        self.skipped.extend(output.skipped);
    }
}

/// The output of one test program.
#[derive(Debug, Default)]
pub(crate) struct ProgramOutput {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
    pub(crate) failed_tests: Vec<FailedTest>,
    pub(crate) skipped: Vec<String>,
    /// It came to its end.
    pub(crate) has_totals: bool,
    /// Tests of which the runner said that they take long, and which have not ended.
    pub(crate) slow: Vec<String>,
    section: OutputSection,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedTest {
    pub(crate) name: String,
    /// It found an input that breaks a property; another run would try other inputs.
    pub(crate) found_an_input: bool,
}

/// Where in a test program's output we are.
#[derive(Debug, Default)]
enum OutputSection {
    #[default]
    Running,
    /// Output of a test that passed.
    Passed(String),
    /// Output of a test that failed.
    Failed(String),
    /// The names of those that failed.
    FailedNames,
}

impl ProgramOutput {
    /// Takes the next line; says whether people want to see it.
    pub(crate) fn take(&mut self, line: &str) -> bool {
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
                        }
                    }
                }
                true
            }
            OutputSection::Failed(test) => {
                if let Some(name) = header() {
                    name.clone_into(test);
                    self.failed_tests.push(FailedTest { name: name.to_owned(), found_an_input: false });
                } else if line.contains("minimal failing input") {
                    self.found_an_input();
                }
                true
            }
            OutputSection::FailedNames => {
                // One that printed nothing has no section of its own above.
                if let Some(name) = line.strip_prefix("    ")
                    && !self.failed_tests.iter().any(|failed| failed.name == name)
                {
                    self.failed_tests.push(FailedTest { name: name.to_owned(), found_an_input: false });
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

    fn found_an_input(&mut self) {
        if let Some(last) = self.failed_tests.last_mut() {
            last.found_an_input = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FailedTest, Flake, ProgramOutput, TestReport};

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

    // R: D1
    #[test]
    fn totals_are_added_and_failures_shown() {
        let mut output = ProgramOutput::default();
        let shown: Vec<_> = OUTPUT.lines().filter(|line| output.take(line)).collect();
        assert_eq!((output.passed, output.failed, output.ignored), (3, 3, 2));
        let failed = |name: &str, found_an_input| FailedTest { name: name.to_owned(), found_an_input };
        assert_eq!(output.failed_tests, [failed("b", false), failed("f", true), failed("e", false)]);
        assert_eq!(output.skipped, ["a: THROUGHLINE_VECTORS is not set"]);
        assert_eq!(output.slow, ["d"]);
        assert!(shown.contains(&"why it failed") && !shown.contains(&"a lot of talk"), "{shown:?}");
    }

    #[test]
    fn browser_tests_are_counted_one_by_one() {
        let mut report = TestReport::default();
        let lines = [
            "e2e passed: axe > chat",
            "e2e flaky: axe > thinking",
            "e2e failed: turns > stop: it goes on",
            "e2e skipped: voice > speaks",
            " ✓ tests/axe.test.ts (94 tests)",
        ];
        lines.iter().for_each(|line| report.take_browser_line(line));
        let flake = Flake { test: "axe > thinking".to_owned(), outcome: "attempt 2".to_owned() };
        let expected = TestReport {
            passed: 2,
            failed: 1,
            ignored: 1,
            failures: vec!["turns > stop: it goes on".to_owned()],
            flakes: vec![flake],
            skipped: Vec::new(),
        };
        assert_eq!(report, expected);
    }
}
