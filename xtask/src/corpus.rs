//! The shared corpus of recorded streams, through the command as a user would pipe them.

use crate::program::ExternalProgram;
use crate::repository;
use anyhow::{Result, ensure};
use std::path::Path;

/// Action if the corpus or its checker is missing.
pub(crate) enum CorpusOutcome {
    /// Reason why nothing was checked.
    Absent(String),
    /// Streams that passed, in how many ways of cutting.
    Passed { streams: usize, recovered: usize },
}

/// Runs the corpus's own checker over `throughline decode`: strictly, whole and in `chunkings` seeded ways of cutting,
/// then once more for the calls that leaked into the text.
pub(crate) fn check(throughline: &Path, chunkings: u32) -> Result<CorpusOutcome> {
    let Some(vectors) = repository::vectors() else {
        return Ok(CorpusOutcome::Absent("THROUGHLINE_VECTORS is not set".to_owned()));
    };
    let checker = vectors.join("corpus/check.py");
    if !checker.exists() {
        return Ok(CorpusOutcome::Absent(format!("{} does not exist", checker.display())));
    }
    if !ExternalProgram::new("python3").args(["--version"]).succeeds() {
        return Ok(CorpusOutcome::Absent(
            "python3, which the corpus's checker needs, is not installed".to_owned(),
        ));
    }
    let check = |words: &[&str]| -> Result<usize> {
        let program = ExternalProgram::new("python3").args([&checker]).args(["-v", "--strict"]).args(words);
        let output = program.args(["--".as_ref(), throughline.as_os_str(), "decode".as_ref()]).output()?;
        let (passed, failed) = counts(&output.stdout).unwrap_or((0, 0));
        ensure!(
            output.status.success() && failed == 0 && passed > 0,
            "the corpus does not pass:\n{}{}",
            output.stdout,
            output.stderr
        );
        Ok(passed)
    };
    let streams = check(&["--chunkings", &chunkings.to_string()])?;
    let recovered = check(&["--chunkings", &chunkings.to_string(), "--recover"])?;
    Ok(CorpusOutcome::Passed { streams, recovered })
}

/// The last `N passed, N failed` of a report.
pub(crate) fn counts(report: &str) -> Option<(usize, usize)> {
    report.lines().rev().find_map(|line| {
        let (passed, rest) = line.trim().split_once(" passed, ")?;
        let failed = rest.split_once(" failed")?.0;
        Some((passed.parse().ok()?, failed.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn last_totals_of_the_output_are_read() {
        assert_eq!(counts("1 passed, 9 failed\nx\n568 passed, 2 failed\nfailed: a b\n"), Some((568, 2)));
        assert_eq!(counts("nothing here"), None);
    }
}
