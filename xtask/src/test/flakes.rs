//! `docs/flakes.toml`: tests that failed and passed when they ran again, each with its cause.

use super::report::TestReport;
use crate::repository;
use anyhow::{Context, Result};
use serde::Deserialize;

const DOCUMENT: &str = "docs/flakes.toml";
/// Maximum number of flakes in one run; more are not chance.
const FLAKES_MAX: usize = 5;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownFlakes {
    #[serde(default)]
    flake: Vec<KnownFlake>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownFlake {
    /// Name of the test, as in the closing lines of a run.
    test: String,
    /// The day on which it was seen first.
    #[serde(rename = "seen")]
    _seen: String,
    #[serde(rename = "cause")]
    _cause: String,
    /// The cause is fixed: if it fails once more, the run fails.
    mended: bool,
}

impl KnownFlakes {
    pub(crate) fn read() -> Result<Self> {
        Self::parse(&repository::read(DOCUMENT)?).with_context(|| format!("{DOCUMENT} is not understood"))
    }

    fn parse(text: &str) -> Result<Self> {
        Ok(toml::from_str(text)?)
    }

    /// Counts the flakes that a run must not have as failures.
    pub(crate) fn judge(&self, report: &mut TestReport) {
        let flakes = report.flakes.clone();
        for flake in &flakes {
            let test = &flake.test;
            match self.flake.iter().find(|known| known.test == *test) {
                Some(known) if known.mended => report.fail(format!(
                    "{test} (it passed when it ran again, but {DOCUMENT} calls it mended: find its cause)"
                )),
                Some(_) => {}
                None => println!("    {test} has no row in {DOCUMENT} yet: add it, with its cause"),
            }
        }
        if flakes.len() > FLAKES_MAX {
            report.fail(format!("{} tests passed only when they ran again, {FLAKES_MAX} may", flakes.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Flake;
    use super::{KnownFlakes, TestReport};

    const KNOWN: &str = r#"
[[flake]]
test = "cli::serve known"
seen = "2026-11-26"
cause = "the file is read while it is written"
mended = false

[[flake]]
test = "cli::serve mended"
seen = "2026-11-26"
cause = "a limit of 200 ms"
mended = true
"#;

    #[track_caller]
    fn check(tests: &[&str], expected: &[&str]) {
        let flake =
            |test: &&str| Flake { test: (*test).to_owned(), outcome: "2nd attempt, 0.1 s".to_owned() };
        let mut report = TestReport { flakes: tests.iter().map(flake).collect(), ..TestReport::default() };
        KnownFlakes::parse(KNOWN).unwrap().judge(&mut report);
        assert_eq!(report.failed, expected.len(), "{:?}", report.failures);
        for (failure, expected) in report.failures.iter().zip(expected) {
            assert!(failure.line.contains(expected), "{}", failure.line);
        }
    }

    #[test]
    fn mended_or_numerous_flakes_are_failures() {
        check(&["cli::serve known", "cli::serve new"], &[]);
        check(&["cli::serve mended"], &["calls it mended"]);
        check(&["a", "b", "c", "d", "e"], &[]);
        check(&["a", "b", "c", "d", "e", "f"], &["6 tests passed only when they ran again, 5 may"]);
    }

    #[test]
    fn flakes_document_parses() {
        KnownFlakes::read().unwrap();
    }
}
