//! `cargo xtask sim`: simulated turns by the seed.

use crate::fault::fault;
use crate::program::{self, ExternalProgram};
use crate::{TaskVerb, repository};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::PathBuf;

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "sim",
    about: "Simulate turns with hostile models, tools and people, one for each seed",
    help: "\
Usage: cargo xtask sim [--seeds N] [--from S] [--mutants]

  --seeds N   how many (default 10000), in release, on every core
  --from S    the first seed (default 0)
  --mutants   afterwards break one rule after another and see that each is caught

One seed is one run, for ever. A seed that fails is printed and added to crates/testkit/sim-seeds.txt, which the
normal tests run.",
    run,
};

const SEEDS_FILE: &str = "crates/testkit/sim-seeds.txt";
const EXAMPLE: [&str; 4] = ["--package", "throughline-testkit", "--example", "sim"];

fn run(words: Vec<String>) -> Result<()> {
    let (mut seeds, mut from, mut mutants) = (10_000, 0, Mutants::Without);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64> {
            let text = words.next().unwrap_or_default();
            text.replace('_', "").parse().with_context(|| format!("`{word}` wants a number, not `{text}`"))
        };
        match word.as_str() {
            "--seeds" => seeds = number()?,
            "--from" => from = number()?,
            "--mutants" => mutants = Mutants::With,
            _ => return Err(fault(format!("`{word}` is no flag of `sim`"), "see `cargo xtask sim --help`")),
        }
    }
    simulate(from, seeds, mutants).map(drop)
}

/// Runs of the simulator with the real rules alone, or with broken ones as well, to see the checks fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mutants {
    Without,
    With,
}

/// Runs seeds in release and returns a summary; failing ones are stored.
pub(crate) fn simulate(from: u64, seeds: u64, mutants: Mutants) -> Result<String> {
    let simulator = program::build(&[&["--release"], &EXAMPLE[..]].concat())?;
    start(simulator, from, seeds, mutants)
}

/// A sample for the normal tests, in the profile that they have built already.
pub(crate) fn sample(seeds: u64) -> Result<String> {
    start(program::built_by_tests("example", "sim")?, 0, seeds, Mutants::With)
}

fn start(simulator: PathBuf, from: u64, seeds: u64, mutants: Mutants) -> Result<String> {
    let mut program = ExternalProgram::new(simulator).args([from.to_string(), seeds.to_string()]);
    if mutants == Mutants::With {
        program = program.args(["--mutants"]);
    }
    let mut failed: Vec<(u64, String)> = Vec::new();
    let mut totals = String::new();
    let status = program.lines(|line| {
        println!("{line}");
        failed.extend(failed_seed(line));
        line.clone_into(&mut totals);
    })?;
    if !failed.is_empty() {
        save_seeds(&failed)?;
        bail!(
            "{} seeds failed; they are in {SEEDS_FILE} now\n  remedy: `cargo xtask sim --from {} --seeds 1`",
            failed.len(),
            failed[0].0
        );
    }
    if !status.success() {
        bail!("the simulator failed ({status}); see above");
    }
    Ok(totals)
}

/// `seed 17: what broke`, as the simulator heads each failure.
fn failed_seed(line: &str) -> Option<(u64, String)> {
    let (seed, what) = line.strip_prefix("seed ")?.split_once(": ")?;
    Some((seed.parse().ok()?, what.to_owned()))
}

fn save_seeds(failed: &[(u64, String)]) -> Result<()> {
    let saved = repository::read(SEEDS_FILE)?;
    repository::write(SEEDS_FILE, &with_saved(&saved, failed, &repository::date()))
}

fn with_saved(saved: &str, failed: &[(u64, String)], date: &str) -> String {
    let mut text = saved.to_owned();
    for (seed, what) in failed {
        let is_there = saved.lines().any(|line| line.split_whitespace().next() == Some(&seed.to_string()));
        if !is_there {
            let _ = writeln!(text, "{seed}  {date}: {what}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_seeds_are_saved_once() {
        assert_eq!(failed_seed("seed 17: two ends: x"), Some((17, "two ends: x".to_owned())));
        assert_eq!(failed_seed("seeds 17: x"), None);
        let saved = with_saved("# Seeds\n3  old\n", &[(3, "a".into()), (9, "b".into())], "2026-11-21");
        assert_eq!(saved, "# Seeds\n3  old\n9  2026-11-21: b\n");
    }
}
