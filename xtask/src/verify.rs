//! `cargo xtask verify`: the long-running checks, and docs/verification.md with their last results.

mod api;
mod chaos;
pub(crate) mod clients;
mod hunt;
mod ledger;
mod limits;
mod load;
mod long_tests;
mod mutants;
mod paths;
mod platforms;
mod questions;
mod servers;
pub(crate) mod serving;
mod vcp;
mod viewers;
mod websocket;

use crate::bench::{self, InstructionGate, MeasureEffort};
use crate::corpus::{self, CorpusOutcome};
use crate::coverage::{self, CoverageView};
use crate::fault::fault;
use crate::fuzz;
use crate::program::{self, ExternalProgram};
use crate::sim::{self, Mutants};
use crate::{TaskVerb, generated, package, repository, test};
use anyhow::{Context, Result, bail};
use ledger::{ProofLedger, ProofRow};
use std::hash::{BuildHasher, RandomState};
use std::time::Instant;

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "verify",
    about: "Run the long-running checks and write docs/verification.md",
    help: "\
Usage: cargo xtask verify [--only NAME,…]

  test         everything that CI runs, with a random seed for the property tests
  equivalence  every 2-cut of every recorded stream against an independent reader of whole bodies
  corpus       every recorded stream through the command, whole and cut in eight ways
  fuzz         10,000,000 executions of each fuzz target
  sim          100,000 simulated turns, and every mutant caught
  bench        decoding speed, with the gate on instruction counts; writes docs/performance.md
  text         what text mode adds to a text delta; writes docs/performance.md
  eager        what starting tools early is worth; writes docs/performance.md
  paths        the scripts of docs/paths.md that build something, on a copy of the sources: a first program with the library,
               and a new event
  coverage     at least 90 % of the lines of the pure crates
  chaos        kill -9 of the server at nine places and at random, with viewers; every mutant noticed
  hunt         families of four hundred processes that fork for ever are ended, whoever runs them
  mcp          messages of every shape from an MCP server, as a program and over HTTP: 100,000 replies, as many requests and
               notifications in the middle of a call, pages of its tools, handshakes
  mutants      mistakes in the encoders and the MCP reader, each planted by itself in a copy of the sources: its gate fails
  servers      the tools of a hundred real MCP servers of npm and PyPI, started and listed by the program (half an hour, ten
               gigabytes; skipped where root, npm or unshare is missing)
  histories    100,000 simulated turns through each dialect and known upstream
  viewers      1,000 viewers that come back at once, 100 that never read: memory and lateness measured; writes
               docs/reliability.md
  load         a store of 100,000 turns made by import: searches to their first page, others while searches are abandoned, an
               hour of mixed load with level memory. THROUGHLINE_LOAD_TURNS, _LONG (long turns), _MINUTES make it
               smaller
  limits       large bodies that come at once: the memory that they take and give back; a wait that does not fit into the time of
               a call
  websocket    Autobahn's WebSocket cases 1 to 7      (skipped where there is no Python 2.7)
  api          schemathesis over the description of the API, against `throughline serve` (skipped where Python is missing)
  clients      twenty clients of the OpenAI surface, unmodified and pinned: every cell of the matrix works or is theirs, by
               docs/openai-clients.md, which it writes (skipped where npm, pip or a registry is missing)
  questions    10,000 random hostile answers in front of a question, through thirteen Markdown renderers: the question is seen
               whole, once, unstyled and last (skipped where npm, pip or a registry is missing)
  vcp          the plugins of a checkout of VCPToolBox are listed, and their commands called (skipped without THROUGHLINE_VCP)
  package      `cargo install` of the packed command with our crates as they are packed, serving its page (skipped without npm)
  platforms    the command compiles for musl, ARM, Windows and macOS (a platform whose tools are not here is named)

Takes hours on two cores; --only runs some of them anew and leaves the rows of the others. equivalence and corpus need
THROUGHLINE_VECTORS. THROUGHLINE_RELEASE names the command that corpus, load and limits measure (else a release build).
valgrind and a C++ compiler are installed if this is root on Debian or Ubuntu.",
    run,
};

const DOCUMENT: &str = "docs/verification.md";
const SECTION: &str = "proofs";
const CHUNKINGS: u32 = 8;
const FUZZ_RUNS: u64 = 10_000_000;
const SEEDS: u64 = 100_000;

/// Result of a proof, with a figure or a reason.
pub(crate) enum ProofOutcome {
    Holds(String),
    Skipped(String),
}

struct Proof {
    name: &'static str,
    what: &'static str,
    command: &'static str,
    run: fn() -> Result<ProofOutcome>,
}

const PROOFS: [Proof; 26] = [
    Proof { name: "test", what: "All checks and tests of CI", command: "cargo xtask test", run: tests },
    Proof {
        name: "equivalence",
        what: "Every two-way split of every stream up to 64 KiB, sampled splits of longer ones: same result \
               as the independent reader; mutants are caught",
        command: "THROUGHLINE_EXHAUSTIVE=1 cargo test --release -p throughline-wire --test it equivalence",
        run: equivalence,
    },
    Proof {
        name: "corpus",
        what: "Recorded streams through `throughline decode` in strict mode, whole and split in 8 seeded \
               ways",
        command: "corpus/check.py --strict --chunkings 8 -- throughline decode",
        run: streams,
    },
    Proof {
        name: "fuzz",
        what: "Every parser and dialect under libFuzzer: no panic, no hang, and the same result whole and \
               split",
        command: "cargo xtask fuzz --runs 10000000",
        run: fuzzing,
    },
    Proof {
        name: "sim",
        what: "Simulated turns with hostile models, tools and users; a mutant of each rule is caught",
        command: "cargo xtask sim --seeds 100000 --mutants",
        run: || sim::simulate(0, SEEDS, Mutants::With).map(ProofOutcome::Holds),
    },
    Proof {
        name: "bench",
        what: "Decoding speed beside a baseline decoder, at most 2,000 instructions per event, no hostile reply above linear",
        command: "cargo xtask bench decode --gate --write",
        run: || {
            let options = bench::BenchOptions {
                effort: MeasureEffort::Full,
                gate: InstructionGate::Enforced,
                report: bench::ReportTarget::Written,
            };
            bench::decode(&options).map(ProofOutcome::Holds)
        },
    },
    Proof {
        name: "text",
        what: "Text mode adds at most 25 ns to a text delta, independent of the length of the text",
        command: "cargo xtask bench text --write",
        run: || {
            let report = bench::ReportTarget::Written;
            bench::text(&bench::BenchOptions { report, ..bench::BenchOptions::default() })
                .map(ProofOutcome::Holds)
        },
    },
    Proof {
        name: "eager",
        what: "Starting tools early is never slower than waiting for the end of the step, over real HTTP",
        command: "cargo xtask bench eager --write",
        run: || bench::eager(bench::ReportTarget::Written).map(ProofOutcome::Holds),
    },
    Proof {
        name: "paths",
        what: "A new program with all recipes of the library, and a new event by the recipe, on a copy of the sources",
        command: "cargo xtask verify --only paths",
        run: paths::paths,
    },
    Proof {
        name: "coverage",
        what: "Test coverage of `wire`, `engine` and `speech`: at least 90 % of the lines",
        command: "cargo xtask coverage",
        run: || match coverage::tools() {
            Err(why) => Ok(ProofOutcome::Skipped(why.to_owned())),
            Ok(_) => coverage::check(CoverageView::Totals).map(ProofOutcome::Holds),
        },
    },
    Proof {
        name: "chaos",
        what: "kill -9 at nine points, 20 times each, and 200 times at random with 50 turns: no viewer \
               misses an event or receives one twice, no write runs twice; both mutants are caught",
        command: "THROUGHLINE_CHAOS=long cargo test --workspace --test chaos",
        run: chaos::chaos,
    },
    Proof {
        name: "hunt",
        what: "Families of 400 processes that fork for ever, ours and another user's: stopped, and nobody is left",
        command: "cargo xtask verify --only hunt",
        run: hunt::hunt,
    },
    Proof {
        name: "mcp",
        what: "An MCP server that says anything, as a program and over HTTP: in its handshake, replies and lists, and in the middle of a \
               call. Nothing costs more than itself, and nothing hangs",
        command: "THROUGHLINE_MCP_REPLIES=100000 cargo test --workspace --test it -- mcp::any_server::malformed_ mcp::any_server::any_ \
                  mcp::odd_servers::malformed_stdio_ mcp::odd_servers::malformed_http_",
        run: long_tests::mcp,
    },
    Proof {
        name: "mutants",
        what: "Mistakes planted in the encoders and the MCP reader, one rule less or one thing more demanded at a time: a test fails for \
               each of them",
        command: "cargo xtask verify --only mutants",
        run: mutants::mutants,
    },
    Proof {
        name: "servers",
        what: "Real MCP servers of npm and PyPI, started by the program: at least 40, and each has all the tools that it lists",
        command: "cargo xtask verify --only servers",
        run: servers::servers,
    },
    Proof {
        name: "histories",
        what: "100,000 simulated turns in histories of every shape, through each dialect and known upstream: none is refused",
        command: "THROUGHLINE_HISTORY_TURNS=100000 cargo test --workspace --test it histories::generated_histories",
        run: long_tests::histories,
    },
    Proof {
        name: "viewers",
        what: "1,000 viewers reconnect to a running turn at once, twice; 100 never read: nobody misses an event, \
               those that never read cost less than 0.5 MB each, others wait at most 1.2 times as long",
        command: "cargo xtask verify --only viewers",
        run: viewers::viewers,
    },
    Proof {
        name: "load",
        what: "100,000 imported turns: any search's first page within 200 ms; 50 abandoned searches add at most 10 ms \
               to others' p99; the allocated memory stays level in an hour of mixed load",
        command: "cargo xtask verify --only load",
        run: load::load,
    },
    Proof {
        name: "limits",
        what: "24 chats of 56 MB at once, long texts and imports: all are answered, the peak is at most 320 MiB, a minute later \
               at most 32 MiB are left; a wait that does not fit is not waited",
        command: "cargo xtask verify --only limits",
        run: limits::limits,
    },
    Proof {
        name: "websocket",
        what: "Autobahn's WebSocket cases 1 to 7: none fails",
        command: "cargo xtask verify --only websocket",
        run: websocket::websocket,
    },
    Proof {
        name: "api",
        what: "Every operation of the OpenAPI document under schemathesis with all checks and ten seeds: none fails",
        command: "cargo xtask verify --only api",
        run: api::api,
    },
    Proof {
        name: "clients",
        what: "Twenty unmodified, pinned OpenAI clients against the real program: every cell of the matrix \
               works, or is marked `theirs` with the reason",
        command: "cargo xtask verify --only clients",
        run: clients::clients,
    },
    Proof {
        name: "questions",
        what: "10,000 random hostile answers in front of a question, rendered by 13 Markdown renderers: the question \
               is seen whole, once, unstyled and last",
        command: "cargo xtask verify --only questions",
        run: questions::questions,
    },
    Proof {
        name: "vcp",
        what: "A checkout of VCPToolBox: at least 47 of 69 plugins are listed, and commands that need no key do their work",
        command: "THROUGHLINE_VCP=… cargo xtask verify --only vcp",
        run: vcp::vcp,
    },
    Proof {
        name: "package",
        what: "`cargo install` of the packed command, with our other crates as they are packed: it serves the page",
        command: "cargo xtask verify --only package",
        run: || {
            let outcome = package::install()?;
            Ok(outcome.map_or_else(ProofOutcome::Skipped, ProofOutcome::Holds))
        },
    },
    Proof {
        name: "platforms",
        what: "The command compiles for other platforms (`cargo check`, C parts included)",
        command: "cargo xtask verify --only platforms",
        run: platforms::platforms,
    },
];

fn run(words: Vec<String>) -> Result<()> {
    let only: Option<Vec<&str>> = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => None,
        ["--only", names] => Some(names.split(',').collect()),
        _ => return Err(fault("these flags are not understood", "see `cargo xtask verify --help`")),
    };
    let names: Vec<_> = PROOFS.iter().map(|proof| proof.name).collect();
    if let Some(name) = only.iter().flatten().find(|name| !names.contains(name)) {
        return Err(fault(format!("`{name}` is not a check"), format!("one of: {}", names.join(", "))));
    }
    // Known before the first proof, since proofs write documents and take hours.
    let (commit, machine) = (repository::commit(), repository::machine());
    let mut failed = Vec::new();
    for proof in PROOFS.iter().filter(|proof| only.as_ref().is_none_or(|only| only.contains(&proof.name))) {
        println!("==> {}: {}", proof.name, proof.command);
        let started_at = Instant::now();
        let outcome = (proof.run)();
        let (result, figure) = match outcome {
            Ok(ProofOutcome::Holds(figure)) => ("passed", figure),
            Ok(ProofOutcome::Skipped(why)) => ("not run", why),
            Err(error) => {
                println!("{error:#}");
                failed.push(proof.name);
                ("**failed**", error.to_string().lines().next().unwrap_or_default().to_owned())
            }
        };
        println!("    {}: {result} ({figure})", proof.name);
        let row = ProofRow {
            name: proof.name.to_owned(),
            what: proof.what.to_owned(),
            result: result.to_owned(),
            figure,
            duration: duration_text(started_at.elapsed().as_secs()),
            date: repository::date(),
            commit: commit.clone(),
            machine: machine.clone(),
            command: proof.command.to_owned(),
        };
        // Written immediately: a later proof may be interrupted.
        write_row(row)?;
    }
    println!("{DOCUMENT} is written");
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

fn write_row(row: ProofRow) -> Result<()> {
    let document = repository::read(DOCUMENT)?;
    let mut ledger = ProofLedger::parse(generated::section(&document, SECTION)?);
    ledger.put(row);
    let order: Vec<_> = PROOFS.iter().map(|proof| proof.name).collect();
    repository::write(DOCUMENT, &generated::replace(&document, SECTION, &ledger.render(&order))?)
}

fn duration_text(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        _ => format!("{} min", (seconds + 30) / 60),
    }
}

fn tests() -> Result<ProofOutcome> {
    let mut totals = String::new();
    let program = std::env::current_exe().context("this program does not know where it is")?;
    // Other inputs for the property tests than CI's, which are always the same.
    let seed = RandomState::new().hash_one(()) >> 33;
    let run = ExternalProgram::new(program).args(["test"]).env(test::SEED_VARIABLE, seed.to_string());
    let status = run.lines(|line| {
        println!("{line}");
        if corpus::counts(line).is_some() {
            line.clone_into(&mut totals);
        }
    })?;
    if status.success() { Ok(ProofOutcome::Holds(totals)) } else { bail!("{totals}") }
}

fn equivalence() -> Result<ProofOutcome> {
    if repository::vectors().is_none() {
        return Ok(ProofOutcome::Skipped("THROUGHLINE_VECTORS is not set".to_owned()));
    }
    let mut figure = None;
    let status = ExternalProgram::cargo()
        .args([
            "test",
            "--release",
            "--package",
            "throughline-wire",
            "--test",
            "it",
            "equivalence::",
            "--",
            "--nocapture",
        ])
        .env("THROUGHLINE_EXHAUSTIVE", "1")
        .lines(|line| {
            println!("{line}");
            if line.contains("ways to cut them") {
                figure = Some(line.to_owned());
            }
        })?;
    match figure {
        Some(figure) if status.success() => Ok(ProofOutcome::Holds(figure)),
        _ => bail!("the exhaustive equivalence test fails"),
    }
}

fn streams() -> Result<ProofOutcome> {
    let throughline = program::release()?;
    Ok(match corpus::check(&throughline, CHUNKINGS)? {
        CorpusOutcome::Absent(why) => ProofOutcome::Skipped(why),
        CorpusOutcome::Passed { streams, recovered } => ProofOutcome::Holds(format!(
            "{streams} of {streams} streams; leaked calls recovered in {recovered} of {recovered}"
        )),
    })
}

fn fuzzing() -> Result<ProofOutcome> {
    let fuzzed = fuzz::fuzz(&[], FUZZ_RUNS)?;
    let crashes: usize = fuzzed.iter().map(|one| one.crashes.len()).sum();
    let fewest = fuzzed.iter().map(|one| one.executions).min().unwrap_or(0);
    let all: u64 = fuzzed.iter().map(|one| one.executions).sum();
    let slowest = fuzzed.iter().map(|one| one.executions_per_second).min().unwrap_or(0);
    let memory = fuzzed.iter().map(|one| one.memory_mib).max().unwrap_or(0);
    let figure = format!(
        "{} targets, at least {fewest} executions each, {all} in all, {slowest}/s or more, at most {memory} MiB, \
         {crashes} crashes",
        fuzzed.len()
    );
    if crashes > 0 || fewest < FUZZ_RUNS { bail!("{figure}") } else { Ok(ProofOutcome::Holds(figure)) }
}

#[cfg(test)]
mod tests {
    use super::{PROOFS, VERB};

    #[test]
    fn help_lists_every_proof_in_order() {
        let named = VERB.help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let named: Vec<_> = named.filter(|name| !name.is_empty()).collect();
        let proofs: Vec<_> = PROOFS.iter().map(|proof| proof.name).collect();
        assert_eq!(named, proofs);
    }

    #[test]
    fn proof_descriptions_have_at_most_200_characters() {
        let long: Vec<_> = PROOFS.iter().filter(|proof| proof.what.chars().count() > 200).collect();
        assert!(long.is_empty(), "{:?}", long.iter().map(|proof| proof.name).collect::<Vec<_>>());
    }
}
