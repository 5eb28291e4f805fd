//! Runs seeds of the simulator on every core: `sim <from> <count> [--mutants]`. `cargo xtask sim` builds and starts it.
//!
//! Prints each seed that failed (the first with what led to it) and, as its last line, the totals. With `--mutants`
//! each broken rule must be caught, too.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use throughline_testkit::sim::{self, SimFailure, SimMutant, SimOptions, SimSummary};

/// Seeds that a thread takes in one batch.
const BATCH: u64 = 250;
/// Seeds within which a broken rule has to be noticed.
const MUTANT_SEEDS_MAX: u64 = 2_000;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let mut numbers = words.iter().filter_map(|word| word.parse::<u64>().ok());
    let (from, count) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(1_000));
    let all = run(from, count);
    let mut is_well = all.failed.is_empty();
    let mut line = format!("{count} seeds from {from}: {}", all.describe());
    if words.iter().any(|word| word == "--mutants") {
        let mut slowest = 0;
        for mutant in SimMutant::ALL {
            match seeds_until_caught(mutant) {
                Some(seeds) => slowest = slowest.max(seeds),
                None => {
                    is_well = false;
                    println!("mutant {mutant:?} goes unnoticed for {MUTANT_SEEDS_MAX} seeds");
                }
            }
        }
        line += &format!("; {} mutants, the last caught after {slowest} seeds", SimMutant::ALL.len());
    }
    println!("{line}");
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Sums over many runs.
#[derive(Default)]
struct All {
    totals: SimSummary,
    statuses: BTreeMap<String, u64>,
    failed: Vec<u64>,
}

impl All {
    fn take(&mut self, run: Result<SimSummary, Box<SimFailure>>) {
        match run {
            Ok(one) => {
                self.totals.events += one.events;
                self.totals.model_calls += one.model_calls;
                self.totals.calls += one.calls;
                self.totals.early_starts += one.early_starts;
                self.totals.crashes += one.crashes;
                self.totals.virtual_ms += one.virtual_ms;
                let status = one
                    .status
                    .map_or_else(|| "none".to_owned(), |status| format!("{status:?}").to_lowercase());
                *self.statuses.entry(status).or_default() += 1;
            }
            Err(failure) => {
                if self.failed.is_empty() {
                    println!("{failure}");
                } else {
                    println!("seed {}: {}", failure.seed, failure.what);
                }
                self.failed.push(failure.seed);
            }
        }
    }

    fn describe(&self) -> String {
        let SimSummary { events, model_calls, calls, early_starts, crashes, .. } = self.totals;
        let statuses: Vec<_> =
            self.statuses.iter().map(|(status, count)| format!("{count} {status}")).collect();
        format!(
            "{} failed; {events} events, {model_calls} model calls, {calls} tool calls, {early_starts} started early, \
             {crashes} crashes; turns: {}",
            self.failed.len(),
            statuses.join(", ")
        )
    }
}

fn run(from: u64, count: u64) -> All {
    let next = AtomicU64::new(0);
    let all = Mutex::new(All::default());
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= count {
                        break;
                    }
                    let runs: Vec<_> = (first..count.min(first + BATCH))
                        .map(|seed| sim::run(from + seed, &SimOptions::default()))
                        .collect();
                    let mut all = all.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    runs.into_iter().for_each(|run| all.take(run));
                    let done = first + BATCH;
                    if done.is_multiple_of(BATCH * 40) {
                        eprintln!(
                            "  {done} of {count} seeds, {} failed, {} s",
                            all.failed.len(),
                            begun.elapsed().as_secs()
                        );
                    }
                }
            });
        }
    });
    all.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn seeds_until_caught(mutant: SimMutant) -> Option<u64> {
    let options = SimOptions { mutant: Some(mutant), ..SimOptions::default() };
    (0..MUTANT_SEEDS_MAX).find(|seed| sim::run(*seed, &options).is_err()).map(|seed| seed + 1)
}
