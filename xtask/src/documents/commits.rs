//! The report of the long checks names commits that anyone can check out: an amended one proves nothing to
//! others.

use crate::program::ExternalProgram;
use crate::repository;
use anyhow::{Result, bail};

const REPORT: &str = "docs/verification.md";

/// Checks the commits; returns a summary line.
pub(super) fn check() -> Result<String> {
    let git = |words: &[&str]| ExternalProgram::new("git").args(words).output();
    let is_whole =
        git(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer.stdout.trim() == "false");
    if !is_whole {
        return Ok("no history to look for commits in".to_owned());
    }
    let named = commits(&repository::read(REPORT)?);
    let is_in_history = |commit: &str| {
        git(&["merge-base", "--is-ancestor", commit, "HEAD"]).is_ok_and(|answer| answer.status.success())
    };
    let unknown: Vec<_> = named.iter().filter(|commit| !is_in_history(commit)).collect();
    // If all are unknown, the sources are in another history, such as a copy in another repository.
    if !unknown.is_empty() && unknown.len() < named.len() {
        let lines: Vec<_> =
            unknown.iter().map(|commit| format!("{REPORT}: commit {commit} is not in the history")).collect();
        bail!("{}\n  remedy: run the check again at a commit that stays", lines.join("\n"));
    }
    Ok(format!("{} commits", named.len()))
}

/// Words of ten hexadecimal digits, as reports write commits. The compiler's follows a parenthesis and is
/// skipped.
fn commits(text: &str) -> Vec<String> {
    let is_commit =
        |word: &&str| word.len() == 10 && word.chars().all(|letter| matches!(letter, '0'..='9' | 'a'..='f'));
    let words = text.split(|letter: char| letter.is_whitespace() || ",;|`".contains(letter));
    let mut found: Vec<_> = words
        .map(|word| word.trim_end_matches(['+', '.', ':']))
        .filter(is_commit)
        .map(str::to_owned)
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::commits;

    #[test]
    fn commits_of_a_report_are_ten_hexadecimal_digits() {
        let report = "| test | passed | 2026-11-21 | 53cff1afd1 | rustc 1.95.0 (59807616e0 2026) | `x` |\n\
                      Measured at commit a8c12f8741+, with 3562199 ways, 4985734f events. At d2e68c4d91. a8c12f8741";
        assert_eq!(commits(report), ["53cff1afd1", "a8c12f8741", "d2e68c4d91"]);
    }
}
