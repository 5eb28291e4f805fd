//! `cargo xtask arch`: checks that the workspace has the structure that ARCHITECTURE.md describes.
//!
//! Four checks: the arrows among the crates here, the outside dependencies of the pure ones, impure code in
//! their sources, and the vocabulary of all crates.

mod dependencies;
mod purity;
mod vocabulary;

use crate::program::ExternalProgram;
use crate::rust_text::{RustText, is_test_file};
use crate::{TaskVerb, repository};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use vocabulary::Vocabulary;

pub(crate) const VERB: TaskVerb = TaskVerb {
    name: "arch",
    about: "Fail on a wrong dependency arrow, on async, clocks or IO in a pure crate, or on a bad name",
    help: "\
Usage: cargo xtask arch

Checks, from `cargo metadata`, `cargo tree` and the sources:
  - each crate depends only on those below it (wire <- engine <- tools, store <- throughline <- cli);
  - no runtime, clock or random number among what `wire`, `engine` and `speech` build against, at any depth;
  - no more than 140 crates in the library without its default features, and no C library among them;
  - no async, clock, IO, thread, environment, randomness or global in their sources outside tests;
  - no provider's name in `engine`;
  - in all crates, no word of this project's old dialect in a name (xtask/src/arch/vocabulary.rs lists them), no public
    type defined twice or named as one of the standard library, no private enum of `Yes` and `No`, and, in tests and
    benchmarks too, no documentation that begins with Who, What, Which, How or Whether;
  - no name of a test longer than 60 characters or without a subject (what_, nobody_, so_ and their like);
  - the same for words and documentation of the TypeScript client.",
    run: |_| {
        println!("{}", check()?);
        Ok(())
    },
};

/// Most crates that the library may build without its default features. A ratchet: lower it when there are fewer.
const LIBRARY_CRATES_MAX: usize = 140;
/// Crates that would make the small library need a C compiler. (ring's assembler is needed by TLS in any
/// case.)
const C_LIBRARIES: [&str; 5] = ["libsqlite3-sys", "openssl-sys", "aws-lc-sys", "zstd-sys", "libz-sys"];

/// Crates that are pure.
const PURE: [&str; 3] = ["wire", "engine", "speech"];

/// The crates of the library without its default features, one a line.
fn library_tree() -> Result<String> {
    let tree = ["tree", "--package", "throughline", "--no-default-features", "--edges", "normal"];
    ExternalProgram::cargo().args(tree).args(["--prefix", "none", "--format", "{p}"]).text()
}

fn library_excess(tree: &str) -> Vec<String> {
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)").trim());
    let crates: BTreeSet<&str> = lines.filter(|line| !line.is_empty()).collect();
    let mut wrong = Vec::new();
    if crates.len() > LIBRARY_CRATES_MAX {
        let count = crates.len();
        wrong.push(format!(
            "the library without default features has {count} crates, not {LIBRARY_CRATES_MAX}"
        ));
    }
    let names = crates.iter().filter_map(|line| line.split(' ').next());
    let c_libraries = names.filter(|name| C_LIBRARIES.contains(name));
    wrong.extend(
        c_libraries.map(|name| format!("the library without default features builds {name}, which is C")),
    );
    wrong
}

/// Checks everything; returns a summary of the checks.
pub(crate) fn check() -> Result<String> {
    let metadata =
        ExternalProgram::cargo().args(["metadata", "--no-deps", "--format-version", "1"]).text()?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata printed no JSON")?;
    let crates = dependencies::read_crates(&metadata);
    let mut wrong = dependencies::violations(&crates);
    wrong.extend(library_excess(&library_tree()?));
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
    let of_crates = sources("crates").filter(|path| path.split('/').nth(2) == Some("src"));
    let files: Vec<String> = of_crates.chain(sources("xtask/src")).collect();
    for path in &files {
        let text = RustText::read(&repository::read(path)?);
        vocabulary.add(path, &text);
        vocabulary.add_test_names(path, &text);
    }
    let others = ["crates", "fuzz"].into_iter().flat_map(|folder| repository::files(folder, ".rs"));
    for path in others.filter(|path| !files.contains(path)) {
        let text = RustText::read(&repository::read(&path)?);
        vocabulary.add_documentation(&path, &text);
        vocabulary.add_test_names(&path, &text);
    }
    // The published client. `api.ts` is generated.
    let client = repository::files("web/client", ".ts").into_iter();
    let client: Vec<String> = client
        .filter(|path| ["src/", "react/"].iter().any(|part| path.starts_with(&format!("web/client/{part}"))))
        .filter(|path| !path.ends_with("/api.ts"))
        .collect();
    for path in &client {
        vocabulary.add_typescript(path, &repository::read(path)?);
    }
    let wrong = vocabulary.wrong();
    if !wrong.is_empty() {
        bail!(
            "{}\n  remedy: rename it to the field's word (docs/glossary.md); a name that must stay goes with its reason \
             into STAYS of xtask/src/arch/vocabulary.rs",
            wrong.join("\n")
        );
    }
    Ok(files.len() + client.len())
}

/// Rust files below a folder, without those that are tests.
fn sources(folder: &str) -> impl Iterator<Item = String> {
    repository::files(folder, ".rs").into_iter().filter(|path| !is_test_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_with_too_many_crates_or_c_code_is_reported() {
        let many = (0..=LIBRARY_CRATES_MAX).map(|n| format!("crate-{n} v1.0.0\n")).collect::<String>();
        assert_eq!(library_excess(&many).len(), 1);
        assert_eq!(library_excess("a v1.0.0\na v1.0.0 (*)\nlibsqlite3-sys v0.30.1\n").len(), 1);
        assert_eq!(library_excess("a v1.0.0\n"), Vec::<String>::new());
    }
}
