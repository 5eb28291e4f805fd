//! `cargo xtask arch`: the shape of the workspace is what ARCHITECTURE.md says. R: D3
//!
//! Four checks: the arrows among the crates here, the outside dependencies of `wire` and `engine`, impure code in the
//! sources of these two, and the vocabulary of all crates.

mod dependencies;
mod purity;
mod vocabulary;

use crate::program::ExternalProgram;
use crate::rust_text::{RustText, is_test_file};
use crate::{TaskVerb, repository};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use vocabulary::Vocabulary;

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "arch",
    about: "Fail on a wrong dependency arrow, on async, clocks or IO in `wire` and `engine`, or on a bad name",
    help: "\
Usage: cargo xtask arch

Checks, from `cargo metadata`, `cargo tree` and the sources:
  - each crate depends only on those below it (wire <- engine <- tools, store <- throughline <- cli);
  - no runtime, clock or random number among what `wire` and `engine` build against, at any depth;
  - no async, clock, IO, thread, environment, randomness or global in their sources outside tests;
  - no provider's name in `engine`;
  - in all crates, no word of this project's old dialect in a name (xtask/src/arch/vocabulary.rs lists them), no public
    type defined twice or named as one of the standard library, no private enum of `Yes` and `No`, and no documentation
    that begins with Who, What, Which, How or Whether.",
    run: |_| {
        println!("{}", check()?);
        Ok(())
    },
};

/// Crates that are pure.
const PURE: [&str; 2] = ["wire", "engine"];

/// Checks everything; returns a summary of the checks.
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
        for path in sources(&format!("crates/{name}/src")) {
            files += 1;
            let text = repository::read(&path)?;
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
             that is meant to be new goes into xtask/src/arch/dependencies.rs, with its reason into ARCHITECTURE.md",
            wrong.join("\n")
        );
    }
    let named = check_vocabulary()?;
    Ok(format!(
        "{} crates, {files} pure sources: no wrong arrow, no async, clock or IO; {named} sources: no bad name",
        crates.len()
    ))
}

/// Checks the names of all crates; returns the number of files.
fn check_vocabulary() -> Result<usize> {
    let mut vocabulary = Vocabulary::default();
    let files: Vec<String> = sources("crates").filter(|path| path.split('/').nth(2) == Some("src")).collect();
    for path in &files {
        vocabulary.add(path, &RustText::read(&repository::read(path)?));
    }
    let wrong = vocabulary.wrong();
    if !wrong.is_empty() {
        bail!(
            "{}\n  remedy: rename it to the field's word (docs/glossary.md); a name that must stay goes with its reason \
             into STAYS of xtask/src/arch/vocabulary.rs",
            wrong.join("\n")
        );
    }
    Ok(files.len())
}

/// Rust files below a folder, without those that are tests.
fn sources(folder: &str) -> impl Iterator<Item = String> {
    repository::files(folder, ".rs").into_iter().filter(|path| !is_test_file(path))
}
