//! Runs seeds of the simulator: `sim <from> <count>`. Prints totals, or the first failure and its seed.

use std::collections::BTreeMap;
use std::process::ExitCode;
use throughline_testkit::sim::{self, Options};

fn main() -> ExitCode {
    let mut numbers = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let (from, count) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(1_000));
    let mut totals = sim::Summary::default();
    let mut statuses: BTreeMap<String, u64> = BTreeMap::new();
    let mut failed: Vec<(u64, String)> = Vec::new();
    for seed in from..from + count {
        match sim::run(seed, &Options::default()) {
            Ok(one) => {
                totals.events += one.events;
                totals.model_calls += one.model_calls;
                totals.calls += one.calls;
                totals.early_starts += one.early_starts;
                totals.crashes += one.crashes;
                totals.virtual_ms += one.virtual_ms;
                *statuses.entry(format!("{:?}", one.status)).or_default() += 1;
            }
            Err(failure) => {
                if failed.is_empty() {
                    println!("{failure}");
                }
                failed.push((seed, failure.what));
            }
        }
    }
    println!("{count} seeds from {from}: {totals:?}\n{statuses:?}");
    for (seed, what) in failed.iter().take(20) {
        println!("{seed}  {what}");
    }
    println!("{} failed", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
