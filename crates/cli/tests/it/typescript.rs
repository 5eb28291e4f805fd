//! The client for TypeScript (`web/client`): it compiles as strictly as can be, and its tests run against `throughline serve`
//! with the demo model.
//!
//! `cargo xtask test --only clients` installs the compiler and Node and names their folder in `THROUGHLINE_CLIENTS`.

#![cfg(unix)]

use crate::support::serving::Serving;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of the installed packages; without it a test prints a notice and passes.
fn packages() -> Option<PathBuf> {
    match std::env::var_os("THROUGHLINE_CLIENTS") {
        // Another check of this run has them.
        Some(folder) if folder.is_empty() => None,
        Some(folder) => Some(folder.into()),
        None => {
            println!("skipped: THROUGHLINE_CLIENTS is not set");
            None
        }
    }
}

fn client() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/client").canonicalize().unwrap()
}

/// Runs a program of the packages to its end, which must be a good one.
fn check(packages: &Path, program: &str, words: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(packages.join("node_modules/.bin").join(program));
    command.current_dir(client()).args(words).envs(variables.iter().copied());
    // `tsc` is started with the Node that is pinned, too.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", packages.join("node_modules/.bin").display()));
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{program} {words:?}: {status}\n{said}\n{}", String::from_utf8_lossy(&stderr));
    said
}

#[test]
fn typescript_client_and_its_type_tests_compile() {
    let Some(packages) = packages() else { return };
    check(&packages, "tsc", &["-p", "."], &[]);
    let types = packages.join("node_modules/@types");
    check(&packages, "tsc", &["-p", "tests", "--typeRoots", types.to_str().unwrap()], &[]);
}

#[test]
fn typescript_client_tests_pass_against_the_server() {
    let Some(packages) = packages() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Serving::start(folder.path(), &["--model", "demo", "--demo-tools"]);
    let base = format!("http://{}", server.address());
    let variables =
        [("BASE_URL", base.as_str()), ("KEY", server.token().unwrap()), ("NO_PROXY", "127.0.0.1")];
    // All files in parallel: each mostly waits.
    let words = ["--test", "--test-concurrency=3", "--test-reporter=tap", "tests/*.test.ts"];
    let said = check(&packages, "node", &words, &variables);
    let passed = said.lines().find_map(|line| line.strip_prefix("# pass ")?.parse::<u32>().ok());
    assert!(passed.is_some_and(|passed| passed >= 20), "{said}");
    for line in said.lines().filter(|line| line.contains("# SKIP")) {
        println!("skipped: {line}");
    }
    assert_eq!(server.stop(), Some(0));
}
