//! `cargo xtask sim`: simulated turns by the seed. R: R1

use crate::fault::fault;
use crate::program::{self, Program};
use crate::{Verb, repository};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::PathBuf;

pub const VERB: Verb = Verb {
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

const KEPT: &str = "crates/testkit/sim-seeds.txt";
const EXAMPLE: [&str; 4] = ["--package", "throughline-testkit", "--example", "sim"];

fn run(words: Vec<String>) -> Result<()> {
    let (mut seeds, mut from, mut mutants) = (10_000, 0, Mutants::No);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64> {
            let text = words.next().unwrap_or_default();
            text.replace('_', "").parse().with_context(|| format!("`{word}` wants a number, not `{text}`"))
        };
        match word.as_str() {
            "--seeds" => seeds = number()?,
            "--from" => from = number()?,
            "--mutants" => mutants = Mutants::Too,
            _ => return Err(fault(format!("`{word}` is no flag of `sim`"), "see `cargo xtask sim --help`")),
        }
    }
    simulate(from, seeds, mutants).map(drop)
}

/// Whether rules are broken, too, to see the checks fail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mutants {
    No,
    Too,
}

/// Runs seeds in release and says what they came to; failing ones are kept.
pub fn simulate(from: u64, seeds: u64, mutants: Mutants) -> Result<String> {
    let simulator = program::build(&[&["--release"], &EXAMPLE[..]].concat())?;
    start(simulator, from, seeds, mutants)
}

/// A sample for the normal tests, in the profile that they have built already.
pub fn sample(seeds: u64) -> Result<String> {
    start(program::of_the_tests("example", "sim")?, 0, seeds, Mutants::Too)
}

fn start(simulator: PathBuf, from: u64, seeds: u64, mutants: Mutants) -> Result<String> {
    let mut program = Program::new(simulator).args([from.to_string(), seeds.to_string()]);
    if mutants == Mutants::Too {
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
        keep(&failed)?;
        bail!(
            "{} seeds failed; they are in {KEPT} now\n  remedy: `cargo xtask sim --from {} --seeds 1`",
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

fn keep(failed: &[(u64, String)]) -> Result<()> {
    let kept = repository::read(KEPT)?;
    repository::write(KEPT, &with_kept(&kept, failed, &repository::date()))
}

fn with_kept(kept: &str, failed: &[(u64, String)], date: &str) -> String {
    let mut text = kept.to_owned();
    for (seed, what) in failed {
        let is_there = kept.lines().any(|line| line.split_whitespace().next() == Some(&seed.to_string()));
        if !is_there {
            let _ = writeln!(text, "{seed}  {date}: {what}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    // R: R1
    #[test]
    fn failing_seeds_are_kept_once() {
        assert_eq!(failed_seed("seed 17: two ends: x"), Some((17, "two ends: x".to_owned())));
        assert_eq!(failed_seed("seeds 17: x"), None);
        let kept = with_kept("# Seeds\n3  old\n", &[(3, "a".into()), (9, "b".into())], "2026-11-21");
        assert_eq!(kept, "# Seeds\n3  old\n9  2026-11-21: b\n");
    }
}
