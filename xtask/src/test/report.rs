//! Counts of the output of cargo's test runner; of tests that passed, it only holds what they skipped.

/// Totals of all test programs of a run.
#[derive(Default)]
pub(crate) struct TestReport {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) ignored: usize,
    /// Names of tests that failed.
    pub(crate) failures: Vec<String>,
    /// Skip messages of the tests.
    pub(crate) skipped: Vec<String>,
    /// True if cargo exited with 0.
    pub(crate) is_success: bool,
    section: OutputSection,
}

/// Where in a test program's output we are.
#[derive(Default)]
enum OutputSection {
    #[default]
    Running,
    /// Output of a test that passed.
    Passed(String),
    Failures,
}

impl TestReport {
    /// Takes the next line; says whether people want to see it.
    pub(crate) fn take(&mut self, line: &str) -> bool {
        match line {
            "successes:" => {
                self.section = OutputSection::Passed(String::new());
                return false;
            }
            "failures:" => {
                self.section = OutputSection::Failures;
                return true;
            }
            _ => {}
        }
        if let Some(totals) = line.strip_prefix("test result: ") {
            self.section = OutputSection::Running;
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
        match &mut self.section {
            OutputSection::Running => {
                if let Some(name) =
                    line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
                {
                    self.failures.push(name.to_owned());
                }
                true
            }
            OutputSection::Failures => true,
            OutputSection::Passed(test) => {
                if let Some(name) =
                    line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
                {
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
    use super::TestReport;

    const OUTPUT: &str = "\
running 3 tests
test a ... ok
test b ... FAILED
test c ... ok

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

failures:
    b

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 1 test
test d ... ok

successes:

successes:
    d

test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

    // R: D1
    #[test]
    fn totals_are_added_and_failures_shown() {
        let mut report = TestReport::default();
        let shown: Vec<_> = OUTPUT.lines().filter(|line| report.take(line)).collect();
        assert_eq!((report.passed, report.failed, report.ignored), (3, 1, 2));
        assert_eq!(report.failures, ["b"]);
        assert_eq!(report.skipped, ["a: THROUGHLINE_VECTORS is not set"]);
        assert!(shown.contains(&"why it failed") && !shown.contains(&"a lot of talk"), "{shown:?}");
    }
}
