//! Planted mistakes: one rule less in an encoder, one thing more that a reader demands. A gate is worth what it catches.

mod table;

use super::ProofOutcome;
use super::paths::copy_sources;
use crate::program::{CapturedOutput, ExternalProgram};
use crate::{fault::fault, program, repository};
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use table::MUTANTS;

/// Time for the tests of one mutant, in seconds, after which it counts as not caught: those of the slowest row take a minute.
const TESTS_SECONDS_MAX: &str = "300";

/// A change of one file, and the tests that must notice it.
struct Mutant {
    title: &'static str,
    file: &'static str,
    /// Occurs once in the file.
    original: &'static str,
    replaced: &'static str,
    /// Arguments of `cargo test`.
    tests: &'static str,
}

/// A copy of the sources, built apart from ours.
struct SourceCopy {
    sources: PathBuf,
    builds: PathBuf,
}

/// Plants each mutant separately, and runs the tests that are meant to catch it.
///
/// # Errors
/// A mutant that no test notices, one that does not compile, or flaky tests.
pub(crate) fn mutants() -> Result<ProofOutcome> {
    if !ExternalProgram::new("timeout").args(["--version"]).succeeds() {
        return Ok(ProofOutcome::Skipped("`timeout` of coreutils is missing".to_owned()));
    }
    let folder = program::target()?.join("mutants");
    let copy = SourceCopy { sources: folder.join("source"), builds: folder.join("target") };
    // A file that is no more would still be read where tests list a folder.
    for file in repository::files(&copy.sources.to_string_lossy(), "") {
        let file = repository::root().join(file);
        if file.strip_prefix(&copy.sources).is_ok_and(|own| !repository::root().join(own).is_file()) {
            std::fs::remove_file(&file)?;
        }
    }
    copy_sources(&copy.sources)?;
    for tests in MUTANTS.iter().map(|mutant| mutant.tests).collect::<BTreeSet<_>>() {
        println!("    without a mutant: {tests}");
        let run = copy.test(tests)?;
        if !has_passed(&run) {
            bail!("`cargo test {tests}` fails without a mutant:\n{}\n{}", run.stdout, run.stderr);
        }
    }
    let (mut survivors, mut errors) = (Vec::new(), Vec::new());
    for mutant in MUTANTS {
        let title = mutant.title;
        match copy.catches(mutant) {
            Ok(true) => println!("    caught: {title}"),
            Ok(false) => {
                println!("    SURVIVED: {title}");
                survivors.push(title);
            }
            Err(error) => {
                println!("    ERROR: {title}: {error:#}");
                // Its first sentence; the output is above.
                errors.push(format!("{title} ({error})"));
            }
        }
    }
    verdict(&survivors, &errors)
}

/// The proof by its mutants. One without a result is no survivor: its row is to be written anew, or its tests are.
fn verdict(survivors: &[&str], errors: &[String]) -> Result<ProofOutcome> {
    let count = MUTANTS.len();
    let mut failures = Vec::new();
    if !survivors.is_empty() {
        failures.push(format!("{} of {count} mutants survived: {}", survivors.len(), survivors.join("; ")));
    }
    if !errors.is_empty() {
        failures.push(format!("{} of {count} have no result: {}", errors.len(), errors.join("; ")));
    }
    if !failures.is_empty() {
        bail!(failures.join(", and "));
    }
    Ok(ProofOutcome::Holds(format!("{count} mutants, all caught")))
}

/// True if all tests have passed, and at least one ran.
fn has_passed(run: &CapturedOutput) -> bool {
    let is_some = |line: &str| line.starts_with("test result: ok.") && !line.contains(" 0 passed");
    run.status.success() && run.stdout.lines().any(is_some)
}

/// Tests have failed, and not their program.
fn has_failed(run: &CapturedOutput) -> bool {
    !run.status.success() && run.stdout.lines().any(|line| line.starts_with("test result: FAILED"))
}

impl Mutant {
    /// The file with the mistake.
    fn planted(&self, folder: &Path) -> Result<(String, String)> {
        let text = std::fs::read_to_string(folder.join(self.file)).with_context(|| self.file)?;
        let found = text.matches(self.original).count();
        if found != 1 || self.original == self.replaced {
            return Err(fault(
                format!("{}: the original is {found} times in {}", self.title, self.file),
                "write the row of `xtask/src/verify/mutants/table.rs` anew",
            ));
        }
        let planted = text.replacen(self.original, self.replaced, 1);
        Ok((text, planted))
    }
}

impl SourceCopy {
    /// True if tests fail with the mutant, each time that they run.
    fn catches(&self, mutant: &Mutant) -> Result<bool> {
        let (text, planted) = mutant.planted(&self.sources)?;
        let file = self.sources.join(mutant.file);
        std::fs::write(&file, planted)?;
        let has_failed = self.fails_twice(mutant.tests);
        std::fs::write(&file, text)?;
        has_failed
    }

    fn fails_twice(&self, tests: &str) -> Result<bool> {
        if !has_failed(&self.test(tests)?) {
            return Ok(false);
        }
        // A test that fails now and then would catch anything.
        let run = self.test(tests)?;
        if !has_failed(&run) {
            let problem = format!("`cargo test {tests}` fails now and then");
            return Err(anyhow!("{}\n{}", run.stdout, run.stderr).context(problem));
        }
        Ok(true)
    }

    /// Builds first, without a limit, so that what does not compile is not taken for caught.
    fn test(&self, tests: &str) -> Result<CapturedOutput> {
        let build = self.cargo(&["0", "cargo", "test", "--no-run"], tests)?;
        if !build.status.success() {
            return Err(anyhow!(build.stderr).context("it does not compile"));
        }
        self.cargo(&[TESTS_SECONDS_MAX, "cargo", "test"], tests)
    }

    /// `timeout` ends the tests together with cargo, of which they are children.
    fn cargo(&self, words: &[&str], tests: &str) -> Result<CapturedOutput> {
        ExternalProgram::new("timeout")
            .without_our_package()
            .args(words.iter().copied().chain(tests.split(' ')))
            .inside(&self.sources)
            .env("CARGO_TARGET_DIR", &self.builds)
            // A line has changed, and all crates above it are built again.
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "none")
            .output()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutated_text_occurs_once_and_changes() {
        for mutant in MUTANTS {
            mutant.planted(&repository::root()).unwrap();
        }
    }

    #[test]
    fn surviving_mutants_and_missing_results_are_distinct() {
        let failure = |survivors: &[&str], errors: &[&str]| {
            let errors: Vec<String> = errors.iter().map(|&error| error.to_owned()).collect();
            verdict(survivors, &errors).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let count = MUTANTS.len();
        let torn = "c (it does not compile)";
        assert_eq!(failure(&[], &[]), "");
        assert_eq!(failure(&["a", "b"], &[]), format!("2 of {count} mutants survived: a; b"));
        assert_eq!(failure(&[], &[torn]), format!("1 of {count} have no result: {torn}"));
        assert_eq!(
            failure(&["a"], &[torn]),
            format!("1 of {count} mutants survived: a, and 1 of {count} have no result: {torn}")
        );
    }
}
