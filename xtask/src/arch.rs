//! `cargo xtask arch`: the shape of the workspace is what ARCHITECTURE.md says. R: D3
//!
//! Three things are looked at: who depends on whom among the crates here, what `wire` and `engine` pull in from
//! outside, and what the sources of these two say.

mod dependencies;
mod purity;

use crate::program::ExternalProgram;
use crate::rust_text::{RustText, is_test_file};
use crate::{TaskVerb, repository};
use anyhow::{Context, Result, bail};
use serde_json::Value;

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "arch",
    about: "Fail on a wrong dependency arrow, or on async, clocks or IO in `wire` and `engine`",
    help: "\
Usage: cargo xtask arch

Checks, from `cargo metadata`, `cargo tree` and the sources:
  - each crate depends only on those below it (wire <- engine <- tools, store <- throughline <- cli);
  - no runtime, clock or random number among what `wire` and `engine` build against, at any depth;
  - no async, clock, IO, thread, environment, randomness or global in their sources outside tests;
  - no provider's name in `engine`.",
    run: |_| {
        println!("{}", check()?);
        Ok(())
    },
};

/// Crates that are pure.
const PURE: [&str; 2] = ["wire", "engine"];

/// Checks everything; says what was looked at.
pub(crate) fn check() -> Result<String> {
    let metadata =
        ExternalProgram::cargo().args(["metadata", "--no-deps", "--format-version", "1"]).text()?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata printed no JSON")?;
    let crates = dependencies::read_crates(&metadata);
    let mut wrong = dependencies::violations(&crates);
    let mut files = 0;
    for name in PURE {
        let package = format!("throughline-{name}");
        let tree =
            ["tree", "--package", &package, "--edges", "normal", "--prefix", "none", "--format", "{p}"];
        wrong.extend(dependencies::forbidden_in_tree(name, &ExternalProgram::cargo().args(tree).text()?));
        let sources = repository::files(&format!("crates/{name}/src"), ".rs");
        for path in sources.iter().filter(|path| !is_test_file(path)) {
            files += 1;
            let text = repository::read(path)?;
            let found = purity::impurities(&RustText::read(&text));
            let providers = if name == "engine" { purity::provider_names(&text) } else { Vec::new() };
            wrong.extend(
                found.into_iter().chain(providers).map(|(line, what)| format!("{path}:{line}: {what}")),
            );
        }
    }
    if !wrong.is_empty() {
        bail!(
            "{}\n  remedy: what reads a clock, waits or does IO belongs into `throughline`, `tools` or `store`; an arrow \
             that is meant to be new goes into xtask/src/arch/arrows.rs, with its reason into ARCHITECTURE.md",
            wrong.join("\n")
        );
    }
    Ok(format!("{} crates, {files} pure sources: no wrong arrow, no async, clock or IO", crates.len()))
}
