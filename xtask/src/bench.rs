//! `cargo xtask bench decode`: cost of decoding, measured, judged and recorded; `bench eager`: benefit of
//! starting tools early; `bench text`: cost of text mode; `bench store`: cost of an event in the log; `bench
//! server`: latency that the server adds; `bench page`: performance of the page in a browser.

mod callgrind;
mod eager;
mod goals;
mod page;
mod server;
mod store;
mod text;

use crate::fault::fault;
use crate::program::{self, ExternalProgram};
use crate::{TaskVerb, generated, repository};
use anyhow::{Result, bail};
pub(crate) use eager::eager;
use goals::{DecodeResult, GoalResult};
pub(crate) use page::page;
use serde_json::Value;
pub(crate) use server::server;
use std::path::Path;
pub(crate) use store::store;
pub(crate) use text::text;

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "bench",
    about: "Measure decoding beside the floor of any decoder, what text mode adds, and what eager starts are worth",
    help: "\
Usage: cargo xtask bench decode [--quick] [--gate] [--write]
       cargo xtask bench text [--quick] [--write]
       cargo xtask bench eager [--write]
       cargo xtask bench store [--quick] [--write]
       cargo xtask bench server [--quick] [--write]
       cargo xtask bench page [--quick] [--gate] [--write]

Builds crates/wire/benches/decode with the profile `bench` and runs its workloads: processor time of each event for
Throughline and for the floors, by turns; then instructions of each event under valgrind, which no busy machine changes,
and of hostile replies (crates/wire/benches/hostile.rs) of two sizes: the larger may not cost more than it is larger.

  --quick   fewer rounds, and not the calls of 4 and 16 MB
  --gate    fail if a workload takes more than 2000 instructions an event, or a hostile reply more than 4.4 times as many for
            four times as much; installs valgrind if this is root
  --write   write the figures to docs/performance.md

Goals in time are judged, too, but fail nothing: a busy machine moves them.

`text` decodes the same replies natively and in text mode, by turns, from 64 kB to 16 MB (`--quick`: to 1 MB).

`store` appends to the log in SQLite, and in PostgreSQL where there is one, paced and as fast as it goes, beside raw inserts of rusqlite and sqlx.

`server` asks `throughline serve` and other servers for turns of a fake model, one server after another, with the programs
of THROUGHLINE_VECTORS/bench, in a copy of it. It installs the peers that it can (pip, npm) and says which it could not.
`--quick` leaves out the peers, the search for the most streams, and most of the memory. BIN, PY: as in the bench's README;
SERVER: a binary with the feature `bench` to measure instead of one that is built now.

`page` opens the page in Chromium against a server whose model speaks at a fixed rate, and other people's views of the same
stream, which it installs with npm in target/bench-page, one after another; twelve minutes, on a machine that does nothing else.
`--quick`: shorter, ours alone. SERVER: a binary to measure instead of one that is built now.

`eager` runs whole turns against a paced model over HTTP, with tools that start at their seal and with the barrier.",
    run,
};

const DOCUMENT: &str = "docs/performance.md";
const SECTION: &str = "decode";

fn run(words: Vec<String>) -> Result<()> {
    let [what, flags @ ..] = &words[..] else {
        return Err(fault(
            "there is nothing to measure",
            "cargo xtask bench decode, text, eager, store, server or page",
        ));
    };
    let mut options = BenchOptions::default();
    for flag in flags {
        match flag.as_str() {
            "--quick" => options.effort = MeasureEffort::Quick,
            "--gate" => options.gate = InstructionGate::Enforced,
            "--write" => options.report = ReportTarget::Written,
            _ => {
                return Err(fault(
                    format!("`{flag}` is no flag of `bench`"),
                    "see `cargo xtask bench --help`",
                ));
            }
        }
    }
    match what.as_str() {
        "decode" => decode(&options).map(drop),
        "text" => text(&options).map(|line| println!("{line}")),
        "eager" => eager(options.report).map(|line| println!("{line}")),
        "store" => store(&options).map(|line| println!("{line}")),
        "server" => server(&options).map(|line| println!("{line}")),
        "page" => page(&options).map(|line| println!("{line}")),
        _ => Err(fault(
            format!("`{what}` is no benchmark"),
            "cargo xtask bench decode, text, eager, store, server or page",
        )),
    }
}

#[derive(Clone, Copy, Default)]
pub(crate) struct BenchOptions {
    pub(crate) effort: MeasureEffort,
    pub(crate) gate: InstructionGate,
    pub(crate) report: ReportTarget,
}

/// Number and length of the measurements.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum MeasureEffort {
    Quick,
    #[default]
    Full,
}

/// Effect of too many instructions: a report or an error.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum InstructionGate {
    #[default]
    Reported,
    Enforced,
}

/// Destination of the figures.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ReportTarget {
    #[default]
    Printed,
    Written,
}

/// Runs the benchmark; returns a summary line.
pub(crate) fn decode(options: &BenchOptions) -> Result<String> {
    let program =
        program::executable(&["bench", "--package", "throughline-wire", "--bench", "decode", "--no-run"])?;
    let hostile =
        program::executable(&["bench", "--package", "throughline-wire", "--bench", "hostile", "--no-run"])?;
    let (counts, hostile) = instructions(&program, &hostile, options.gate)?;
    let mut all = Vec::new();
    let quick: &[&str] = if options.effort == MeasureEffort::Quick { &["--quick"] } else { &[] };
    let status = ExternalProgram::new(&program).args(["measure"]).args(quick).lines(|line| {
        if let Some(measured) = parse_result(line, &counts) {
            println!("  {}", measured.line());
            all.push(measured);
        }
    })?;
    if !status.success() || all.is_empty() {
        bail!("the benchmark ended with {status}\n  remedy: a decoder reads something wrong; see above");
    }
    let verdicts = goals::judge_all(&all, &hostile);
    for verdict in &verdicts {
        println!("{}", verdict.line());
    }
    if options.report == ReportTarget::Written {
        let document = repository::read(DOCUMENT)?;
        let text = goals::render(&all, &verdicts);
        repository::write(DOCUMENT, &generated::replace(&document, SECTION, &text)?)?;
    }
    let missed: Vec<_> = verdicts.iter().filter(|verdict| verdict.is_gate && !verdict.is_met).collect();
    if options.gate == InstructionGate::Enforced && !missed.is_empty() {
        let lines: Vec<_> = missed.iter().map(|verdict| verdict.line()).collect();
        bail!(
            "{}\n  remedy: `valgrind --tool=callgrind` on the benchmark shows where they go",
            lines.join("\n")
        );
    }
    Ok(summary(&verdicts))
}

fn summary(verdicts: &[GoalResult]) -> String {
    let met = verdicts.iter().filter(|verdict| verdict.is_met).count();
    let figures: Vec<_> =
        verdicts.iter().map(|verdict| format!("{} {}", verdict.what, verdict.figure())).collect();
    format!("{met} of {} goals met: {}", verdicts.len(), figures.join(", "))
}

/// Instructions of each event, by workload: ours and the floor's.
type InstructionCounts = Vec<(String, [f64; 2])>;

/// Shapes of hostile replies, and how much more the larger one takes.
type HostileGrowth = Vec<(String, f64)>;

fn instructions(
    program: &Path,
    hostile: &Path,
    gate: InstructionGate,
) -> Result<(InstructionCounts, HostileGrowth)> {
    if !ExternalProgram::new("valgrind").args(["--version"]).succeeds() {
        if gate == InstructionGate::Reported {
            println!("skipped: instruction counts need valgrind");
            return Ok((Vec::new(), Vec::new()));
        }
        program::install(&["valgrind"])?;
    }
    let mut counts = Vec::new();
    for workload in callgrind::WORKLOADS {
        let count = |decoder| callgrind::per_event(program, workload, decoder);
        let floor = if workload.starts_with("text.") { f64::NAN } else { count("memo")? };
        let ours = count("throughline")?;
        println!("  {workload}: {ours:.0} instructions an event");
        counts.push((workload.to_owned(), [ours, floor]));
    }
    Ok((counts, callgrind::hostile_growth(hostile)?))
}

fn parse_result(line: &str, counts: &InstructionCounts) -> Option<DecodeResult> {
    let value: Value = serde_json::from_str(line).ok()?;
    let number = |key: &str| value[key].as_f64();
    let workload = value["workload"].as_str()?.to_owned();
    let count = counts.iter().find(|count| count.0 == workload).map(|count| count.1);
    Some(DecodeResult {
        events: number("events")?,
        bytes: number("bytes")?,
        arguments_bytes: number("arguments_bytes")?,
        throughline: number("throughline")?,
        memo: number("memo"),
        straight: number("straight"),
        lines: number("lines")?,
        copy: number("copy")?,
        ratio: number("ratio"),
        instructions: count.map(|count| count[0]),
        memo_instructions: count.map(|count| count[1]).filter(|count| count.is_finite()),
        workload,
    })
}
