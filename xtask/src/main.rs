//! `cargo xtask <verb>`: checks and tasks that cargo cannot express.
//!
//! The two verbs of the README, `run` and `test`, only need the Rust toolchain, a C compiler and `make`;
//! `verify` installs or names the other needs of the long proofs. It never edits code: the files that it
//! writes are `docs/performance.md`, `docs/verification.md`, the types of the TypeScript client, failing
//! seeds and crash inputs.

mod arch;
mod bench;
mod corpus;
mod coverage;
mod dist;
mod documents;
mod fault;
mod fuzz;
mod generated;
mod models;
mod package;
mod program;
mod repository;
mod run;
mod rust_text;
mod sim;
mod test;
mod typescript;
mod verify;
mod web;

use anyhow::Result;
use fault::fault;
use std::process::ExitCode;

/// A verb of `cargo xtask`.
pub(crate) struct TaskVerb {
    name: &'static str,
    /// Description in one line.
    about: &'static str,
    /// Flags and what they mean, for `--help`.
    help: &'static str,
    run: fn(Vec<String>) -> Result<()>,
}

const VERBS: [&TaskVerb; 12] = [
    &run::VERB,
    &test::VERB,
    &verify::VERB,
    &sim::VERB,
    &fuzz::VERB,
    &bench::VERB,
    &arch::VERB,
    &typescript::VERB,
    &web::VERB,
    &dist::VERB,
    &coverage::VERB,
    &models::VERB,
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let verb = words.next();
    let words: Vec<String> = words.collect();
    match dispatch(verb.as_deref(), words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(verb: Option<&str>, words: Vec<String>) -> Result<()> {
    let Some(verb) = verb.filter(|verb| !matches!(*verb, "help" | "--help" | "-h")) else {
        match words.first().and_then(|name| find(name)) {
            Some(verb) => print_help(verb),
            None => print_overview(),
        }
        return Ok(());
    };
    let Some(found) = find(verb) else {
        let names: Vec<_> = VERBS.iter().map(|verb| verb.name).collect();
        return Err(fault(format!("`{verb}` is no verb of xtask"), format!("one of: {}", names.join(", "))));
    };
    // What follows `--` belongs to the program that is started.
    if words.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h") {
        print_help(found);
        return Ok(());
    }
    (found.run)(words)
}

fn find(name: &str) -> Option<&'static TaskVerb> {
    VERBS.into_iter().find(|verb| verb.name == name)
}

fn print_overview() {
    println!("Tasks of this repository.\n\nUsage: cargo xtask <verb> [flags]\n");
    for verb in VERBS {
        println!("  {:10} {}", verb.name, verb.about);
    }
    println!(
        "\nBegin with `cargo xtask run`; before a commit: `cargo xtask test`. `cargo xtask <verb> --help` tells more.\n\
         THROUGHLINE_VECTORS=<folder> names the shared test vectors (corpus/, suites/); without it the tests that\n\
         need them are skipped and say so."
    );
}

fn print_help(verb: &TaskVerb) {
    println!("{}\n\n{}", verb.about, verb.help.trim_end());
}
