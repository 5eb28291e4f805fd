//! The closing lines of a run. Often only these are read, so they contain the failures.

use super::machine::MachineStrain;
use super::report::{Failure, Flake, TestReport};
use std::time::Duration;

/// Maximum number of closing lines.
const LINES_MAX: usize = 200;
const SLOWEST_MAX: usize = 20;
/// Maximum number of output lines per failure, if few failed.
const OUTPUT_LINES_MAX: usize = 60;

/// A whole run.
#[derive(Default)]
pub(crate) struct RunReport {
    pub(crate) tests: TestReport,
    /// Name and seconds of each check.
    pub(crate) checks: Vec<(&'static str, u64)>,
    /// Checks that were not run, and why.
    pub(crate) not_run: Vec<String>,
    pub(crate) strain: MachineStrain,
    pub(crate) took: Duration,
}

impl RunReport {
    /// Ends with `N passed, N failed`.
    pub(crate) fn closing_lines(&self) -> Vec<String> {
        let tests = &self.tests;
        let mut lines = self.slowest();
        lines.extend(tests.skipped.iter().chain(&self.not_run).map(|line| format!("skipped: {line}")));
        for Flake { test, outcome } in &tests.flakes {
            lines.push(format!("flaky: {test} ({outcome})"));
        }
        let checks: Vec<_> =
            self.checks.iter().map(|(name, seconds)| format!("{name} {seconds} s")).collect();
        let end = [
            format!("checks: {}", checks.join(", ")),
            format!("machine: {}", self.strain),
            format!("took {} s", self.took.as_secs()),
            format!("{} passed, {} failed", tests.passed, tests.failed),
        ];
        let room = LINES_MAX.saturating_sub(end.len() + tests.failures.len());
        let each = room.checked_div(tests.failures.len()).unwrap_or_default().min(OUTPUT_LINES_MAX);
        for Failure { line, output } in &tests.failures {
            lines.push(format!("failed: {line}"));
            lines.extend(excerpt(output, each).into_iter().map(|line| format!("    | {line}")));
        }
        lines.extend(end);
        lines
    }

    fn slowest(&self) -> Vec<String> {
        let mut durations: Vec<_> = self.tests.durations.iter().collect();
        durations.sort_by_key(|(_, duration)| std::cmp::Reverse(*duration));
        durations.truncate(SLOWEST_MAX);
        let line =
            |(test, duration): &(String, Duration)| format!("    {:6.1} s  {test}", duration.as_secs_f64());
        let head = (!durations.is_empty()).then(|| "slowest tests, as they ran beside others:".to_owned());
        head.into_iter().chain(durations.into_iter().map(line)).collect()
    }
}

/// The lines from the panic on without its backtrace, shortened to the first and the last of them.
fn excerpt(output: &[String], lines_max: usize) -> Vec<String> {
    let panic = output.iter().position(|line| line.contains("panicked at")).unwrap_or_default();
    let lines = output[panic..].iter().take_while(|line| *line != "stack backtrace:");
    let lines: Vec<_> = lines.filter(|line| !line.trim().is_empty()).cloned().collect();
    if lines.len() <= lines_max {
        return lines;
    }
    let Some(rest) = lines_max.checked_sub(1) else { return Vec::new() };
    let (first, last) = (rest - rest / 2, rest / 2);
    let left_out = format!("… {} lines …", lines.len() - rest);
    [&lines[..first], &[left_out], &lines[lines.len() - last..]].concat()
}

#[cfg(test)]
mod tests {
    use super::{Duration, Failure, RunReport, TestReport, excerpt};

    fn output(lines: usize) -> Vec<String> {
        (0..lines).map(|at| format!("line {at}")).collect()
    }

    fn run_of(failures: usize, lines: usize) -> RunReport {
        let failures =
            (0..failures).map(|at| Failure { line: format!("a::it b{at}"), output: output(lines) });
        let failures: Vec<_> = failures.collect();
        let tests = TestReport { passed: 7, failed: failures.len(), failures, ..TestReport::default() };
        RunReport {
            tests,
            checks: vec![("tests", 12)],
            took: Duration::from_secs(13),
            ..RunReport::default()
        }
    }

    #[test]
    fn failure_output_fits_into_the_last_lines() {
        for (failures, each) in [(1, 60), (3, 60), (30, 5), (100, 0)] {
            let lines = run_of(failures, 500).closing_lines();
            let last = &lines[lines.len().saturating_sub(super::LINES_MAX)..];
            let count = |start: &str| last.iter().filter(|line| line.starts_with(start)).count();
            assert_eq!(count("failed: "), failures);
            assert_eq!(count("    | "), failures * each, "{last:#?}");
            assert_eq!(last.last().unwrap(), &format!("7 passed, {failures} failed"));
        }
    }

    #[test]
    fn closing_lines_name_slowest_skips_and_checks() {
        let mut run = run_of(0, 0);
        run.tests.durations = (0..30).map(|at| (format!("a::it t{at}"), Duration::from_secs(at))).collect();
        run.tests.skipped.push("a::it b: there is no perl".to_owned());
        run.not_run.push("web: not run, since clippy failed".to_owned());
        let lines = run.closing_lines();
        assert_eq!(lines[1], "      29.0 s  a::it t29");
        let expected = [
            "      10.0 s  a::it t10",
            "skipped: a::it b: there is no perl",
            "skipped: web: not run, since clippy failed",
            "checks: tests 12 s",
            "machine: no hole over 500 ms",
            "took 13 s",
            "7 passed, 0 failed",
        ];
        assert_eq!(lines[20..], expected);
    }

    #[test]
    fn excerpt_begins_with_the_panic_and_has_no_backtrace() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let panic =
            "talk\nthread 'a' panicked at b.rs:1:2:\n\nleft: 1\nright: 2\nstack backtrace:\n   0: std";
        assert_eq!(excerpt(&lines(panic), 9), ["thread 'a' panicked at b.rs:1:2:", "left: 1", "right: 2"]);
        assert_eq!(excerpt(&output(9), 4), ["line 0", "line 1", "… 6 lines …", "line 8"]);
        assert_eq!(excerpt(&output(9), 0), [""; 0]);
    }
}
