//! `docs/skips.toml`: what may be skipped where everything is there.

use super::report::TestReport;
use crate::repository;
use anyhow::{Context, Result};
use serde::Deserialize;

const DOCUMENT: &str = "docs/skips.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowedSkips {
    #[serde(default)]
    skip: Vec<AllowedSkip>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AllowedSkip {
    /// A part of the line `skipped: …`.
    line: String,
    #[serde(rename = "reason")]
    _reason: String,
}

impl AllowedSkips {
    pub(crate) fn read() -> Result<Self> {
        Self::parse(&repository::read(DOCUMENT)?).with_context(|| format!("{DOCUMENT} is not understood"))
    }

    fn parse(text: &str) -> Result<Self> {
        Ok(toml::from_str(text)?)
    }

    /// Counts skips that are not listed as failures with `CI=true`, where a skipped test would go unnoticed.
    pub(crate) fn judge(&self, report: &mut TestReport) {
        let is_allowed = |line: &&String| self.skip.iter().any(|allowed| line.contains(&allowed.line));
        let (_, missing): (Vec<_>, Vec<_>) = report.skipped.iter().partition(is_allowed);
        for line in missing.into_iter().cloned().collect::<Vec<_>>() {
            report.fail(format!("{line} (skipped with CI=true, and {DOCUMENT} does not allow it)"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AllowedSkips, TestReport};

    const ALLOWED: &str = r#"
[[skip]]
line = "there is no freezer"
reason = "The kernel decides."
"#;

    #[track_caller]
    fn check(skipped: &[&str], expected: &[&str]) {
        let skipped = skipped.iter().map(|&line| line.to_owned()).collect();
        let mut report = TestReport { skipped, ..TestReport::default() };
        AllowedSkips::parse(ALLOWED).unwrap().judge(&mut report);
        let failures: Vec<_> = report.failures.iter().map(|failure| failure.line.as_str()).collect();
        assert_eq!((failures.as_slice(), report.failed), (expected, expected.len()));
    }

    #[test]
    fn skip_that_is_not_listed_is_a_failure() {
        check(&["tools::hunt frozen: there is no freezer of version 1"], &[]);
        check(
            &["page: Chromium is not installed"],
            &[
                "page: Chromium is not installed (skipped with CI=true, and docs/skips.toml does not allow it)",
            ],
        );
    }

    #[test]
    fn skips_document_parses() {
        AllowedSkips::read().unwrap();
    }
}
