//! A deterministic simulator of turns: one seed, one run.
//!
//! A seed generates a setup (tools, schedule, limits), a hostile upstream (cut, stalled, lying, repeating,
//! resetting), tools that hang, panic, flood and answer late or twice, people who answer late, twice or never
//! and press stop, a log that is slow, refuses or crashes. Everything runs under a virtual clock through the
//! same [`Outbox`] as the real driver, and a checker that knows no internals of the machine checks every
//! event.
//!
//! It has no threads, no real time and no randomness but the seed, so a failing seed always fails.
//!
//! [`Outbox`]: throughline_engine::Outbox

mod call_truth;
mod check;
mod client;
mod consent;
mod people;
mod rng;
mod sim_plan;
mod simulation;
mod tool;
mod upstream;
mod wire_reply;

use std::fmt;
use throughline_engine::{Event, ExecutionMode, StartRule, TurnStatus};

/// Options of a simulation. By default everything is drawn from the seed.
#[derive(Clone, Debug, Default)]
pub struct SimOptions {
    /// Rule for starting tools; `None` = drawn.
    pub start: Option<StartRule>,
    /// Mode of execution; `None` = drawn.
    pub execution: Option<ExecutionMode>,
    /// Replies come as events only, never as bytes: for seeds that failed before there were any.
    pub events_only: bool,
    /// A rule to break, to see the checks fail.
    pub mutant: Option<SimMutant>,
}

/// The program with one rule removed. Each must be caught, or the checks are worth nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimMutant {
    /// Tools that write start like those that read: before the commit and without approval.
    NoCommitRule,
    /// A call's outcome is lost.
    OrphanCall,
    /// A call ends twice.
    SecondCompletion,
    /// A tool starts before its intent is durable.
    StartBeforeDurable,
    /// A tool is started twice for one intent.
    SecondStart,
    /// A message during the turn is delivered immediately, in any phase.
    SteerAtOnce,
    /// A message in mid-turn is delivered twice.
    SteerTwice,
    /// An answer answers for every call with the same id of the upstream.
    ApprovalByUpstreamId,
    /// An answer counts although it was given for other arguments.
    ApprovalForOtherArguments,
    /// An approved call starts although the tool has another definition by now.
    ApprovalSurvivesRedefinition,
    /// A client's call starts with a check that was made some time ago.
    StaleCheck,
    /// Arguments that a person changed are not checked.
    EditUnchecked,
    /// A remembered decision about a tool holds for every later definition of it.
    MemoryIgnoresFingerprint,
    /// A tool receives the answer to its question twice.
    AnswerTwice,
    /// A tool's time limit runs on while a person is asked.
    TimeRunsOn,
    /// Every answer of a client counts, not the first.
    LastAnswerWins,
    /// A denial that was to stop the turn only denies.
    StopForgotten,
    /// Fragments of arguments under a number that is no call's are lost on the way.
    StraysDropped,
    /// The machine does not learn of fragments that belong to no call.
    OrphansHidden,
    /// An end marker of another format counts as the format's own.
    ForeignEndTaken,
    /// A call whose line broke after it was sent is reported as one that failed.
    LossIsFailure,
}

impl SimMutant {
    /// All mutants.
    pub const ALL: [SimMutant; 21] = [
        SimMutant::NoCommitRule,
        SimMutant::OrphanCall,
        SimMutant::SecondCompletion,
        SimMutant::StartBeforeDurable,
        SimMutant::SecondStart,
        SimMutant::SteerAtOnce,
        SimMutant::SteerTwice,
        SimMutant::ApprovalByUpstreamId,
        SimMutant::ApprovalForOtherArguments,
        SimMutant::ApprovalSurvivesRedefinition,
        SimMutant::StaleCheck,
        SimMutant::EditUnchecked,
        SimMutant::MemoryIgnoresFingerprint,
        SimMutant::AnswerTwice,
        SimMutant::TimeRunsOn,
        SimMutant::LastAnswerWins,
        SimMutant::StopForgotten,
        SimMutant::StraysDropped,
        SimMutant::OrphansHidden,
        SimMutant::ForeignEndTaken,
        SimMutant::LossIsFailure,
    ];
}

/// Summary of a run that held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimSummary {
    /// Events in the log.
    pub events: u64,
    /// Model calls, retries included.
    pub model_calls: u64,
    /// Tool calls.
    pub calls: u64,
    /// Tools started before the commit.
    pub early_starts: u64,
    /// Messages that the user sent in mid-turn and that were taken in.
    pub steered: u64,
    /// Calls that ran with arguments that a person changed.
    pub edited: u64,
    /// Answers that were remembered.
    pub remembered: u64,
    /// Starts that were not made since the tool had another definition.
    pub redefined: u64,
    /// Questions of running tools.
    pub asked_by_tools: u64,
    /// Calls that a client's answer has closed.
    pub answered_by_clients: u64,
    /// Replies that the decoder read from bytes.
    pub byte_replies: u64,
    /// Tools with effects that were started by such a reply.
    pub byte_starts: u64,
    /// Calls with effects whose line broke after they were sent.
    pub lost: u64,
    /// Deaths of the process, each followed by a takeover.
    pub crashes: u64,
    /// Virtual milliseconds from start to end.
    pub virtual_ms: u64,
    /// Status of the turn's end.
    pub status: Option<TurnStatus>,
}

/// A broken invariant, with what led to it.
#[derive(Clone, Debug)]
pub struct SimFailure {
    /// Run it again with this.
    pub seed: u64,
    /// The invariant, in a sentence.
    pub what: String,
    /// Trace, oldest first: virtual time, then an input, event or action.
    pub trace: Vec<String>,
}

impl fmt::Display for SimFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.what)?;
        let skipped = self.trace.len().saturating_sub(TRACE_LINES);
        if skipped > 0 {
            writeln!(f, "  … {skipped} lines before")?;
        }
        for line in self.trace.iter().skip(skipped) {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SimFailure {}

/// Lines of the trace that are shown.
const TRACE_LINES: usize = 120;

/// Simulates one turn.
///
/// ```
/// use throughline_testkit::sim::{SimMutant, SimOptions, run};
///
/// let summary = run(7, &SimOptions::default())?;
/// assert_eq!(summary, run(7, &SimOptions::default())?, "one seed, one run");
/// let broken = SimOptions { mutant: Some(SimMutant::OrphanCall), ..SimOptions::default() };
/// assert!((0..100).any(|seed| run(seed, &broken).is_err()), "a broken rule is caught");
/// # Ok::<(), Box<throughline_testkit::sim::SimFailure>>(())
/// ```
pub fn run(seed: u64, options: &SimOptions) -> Result<SimSummary, Box<SimFailure>> {
    run_with_log(seed, options).map(|(summary, _)| summary)
}

/// The log of a simulated turn: for tests of code that reads logs.
pub fn events(seed: u64) -> Result<Vec<Event>, Box<SimFailure>> {
    run_with_log(seed, &SimOptions::default()).map(|(_, events)| events)
}

fn run_with_log(seed: u64, options: &SimOptions) -> Result<(SimSummary, Vec<Event>), Box<SimFailure>> {
    // The trace costs more than the run, so it is only written when it is needed: the second run is the first one.
    match simulation::simulate(seed, options, None) {
        Ok(ended) => Ok(ended),
        Err(what) => {
            let mut trace = Vec::new();
            let again = simulation::simulate(seed, options, Some(&mut trace));
            let what = match again {
                Err(again) if again == what => what,
                _ => format!("{what} (and not deterministic: the second run differs)"),
            };
            Err(Box::new(SimFailure { seed, what, trace }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seed: u64, options: &SimOptions) -> SimSummary {
        match run(seed, options) {
            Ok(summary) => summary,
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Every seed that ever failed, and why it is here.
    #[test]
    fn previously_failed_seeds_pass() {
        let failed_seeds = include_str!("../../sim-seeds.txt");
        let seeds = failed_seeds
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_whitespace().next());
        for seed in seeds {
            let options = SimOptions { events_only: true, ..SimOptions::default() };
            check(seed.parse().expect("a seed"), &options);
        }
    }

    #[test]
    fn three_hundred_seeds_hold_the_invariants() {
        let mut all = SimSummary::default();
        let mut statuses = std::collections::BTreeMap::new();
        for seed in 0..300 {
            let one = check(seed, &SimOptions::default());
            all.early_starts += one.early_starts;
            all.crashes += one.crashes;
            all.edited += one.edited;
            all.remembered += one.remembered;
            all.redefined += one.redefined;
            all.calls += one.calls;
            all.steered += one.steered;
            all.asked_by_tools += one.asked_by_tools;
            all.answered_by_clients += one.answered_by_clients;
            all.byte_replies += one.byte_replies;
            all.byte_starts += one.byte_starts;
            all.lost += one.lost;
            *statuses.entry(format!("{:?}", one.status)).or_insert(0) += 1;
        }
        // The environment is hostile enough to be a test.
        assert!(all.early_starts > 80 && all.crashes > 30 && all.calls > 500, "{all:?}");
        assert!(all.steered > 50 && all.asked_by_tools > 20 && all.answered_by_clients > 10, "{all:?}");
        assert!(all.byte_replies > 50 && all.byte_starts > 15 && all.lost > 5, "{all:?}");
        assert!(all.edited > 5 && all.remembered > 5 && all.redefined > 3, "{all:?}");
        assert!(statuses.len() >= 6, "{statuses:?}");
    }

    #[test]
    fn same_seed_gives_the_same_run() {
        for seed in [1, 77, 4_242] {
            assert_eq!(check(seed, &SimOptions::default()), check(seed, &SimOptions::default()));
        }
    }

    #[test]
    fn every_mutant_is_caught_by_its_invariant() {
        use SimMutant as M;
        let expected = [
            (M::NoCommitRule, "nobody allowed it"),
            (M::OrphanCall, "has no outcome"),
            (M::SecondCompletion, "has a result already"),
            (M::StartBeforeDurable, "its intent is not durable"),
            (M::SecondStart, "is started twice for one intent"),
            (M::SteerAtOnce, "UserMessage"),
            (M::SteerTwice, "is taken in twice"),
            (M::ApprovalByUpstreamId, "nobody said Approve"),
            (M::ApprovalForOtherArguments, "nobody said Approve"),
            (M::ApprovalSurvivesRedefinition, "nobody allowed it"),
            (M::StaleCheck, "was not looked at just now"),
            (M::EditUnchecked, "starts with arguments that no tool takes"),
            (M::MemoryIgnoresFingerprint, "nobody allowed it"),
            (M::AnswerTwice, "is answered twice"),
            (M::TimeRunsOn, "is given up after"),
            (M::LastAnswerWins, "has a result already"),
            (M::StopForgotten, "nobody said Deny"),
            (M::StraysDropped, "which nobody sent"),
            (M::OrphansHidden, "beside fragments that belong to no call"),
            (M::ForeignEndTaken, "its reply is torn"),
            (M::LossIsFailure, "was sent and never answered"),
        ];
        assert_eq!(expected.map(|(mutant, _)| mutant), SimMutant::ALL);
        for (mutant, invariant) in expected {
            let options = SimOptions { mutant: Some(mutant), ..SimOptions::default() };
            let failures = (0..2_000).filter_map(|seed| run(seed, &options).err());
            let caught = failures.inspect(|failure| assert!(!failure.trace.is_empty(), "{failure}"));
            let is_its = |failure: &SimFailure| failure.what.contains(invariant);
            assert!(caught.into_iter().any(|failure| is_its(&failure)), "{mutant:?} lives: {invariant}");
        }
    }
}
