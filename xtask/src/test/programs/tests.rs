//! Planted faults: programs that print what a test program prints, and fail, hang or die.

use super::{NEVER_AGAIN, TestProgram, TestReport};
use crate::program::BuiltExecutable;
use crate::repository;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const PASSES: &str = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
const FAILS: &str = "printf 'test a ... FAILED\\n\\nfailures:\\n\\n---- a stdout ----\\nthread a panicked at a.rs:1:\\nwhy\\n\\nfailures:\\n    a\\n\\ntest result: FAILED. 2 passed; 1 failed; 0 ignored\\n'; exit 101";
/// A test that fails in the first run, and `times` more times.
fn fails_again(times: usize) -> String {
    format!("echo run >>runs; if [ $(wc -l <runs) -le {} ]; then {FAILS}; fi; {PASSES}", times + 1)
}

#[track_caller]
fn check(name: &str, script: &str, passed: usize, flakes: &[&str], failures: &[&str]) -> TestReport {
    let folder = tempfile(name);
    let path = folder.join("program");
    let text = folder.join("text");
    fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
    // A child that another test forks at this moment has all that is open here, and what is open for writing cannot be started
    // ("Text file busy"): another process writes the program.
    assert!(Command::new("install").args(["-m", "755"]).args([&text, &path]).status().unwrap().success());
    let built = BuiltExecutable::for_tests(path, folder.clone());
    let program = TestProgram { name: format!("cli::{name}"), show: |_| {}, ..TestProgram::new(&built, &[]) };
    let mut report = TestReport::default();
    let silence_max = Duration::from_secs(if name == "hang" { 1 } else { 600 });
    for test in program.run(&[], &mut report, silence_max).unwrap() {
        match program.reason_against(&test) {
            Some(reason) => report.fail(reason),
            None => program.look_again(test, &mut report, silence_max).unwrap(),
        }
    }
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(report.passed, passed, "{report:?}");
    assert_eq!(report.failed, failures.len(), "{report:?}");
    assert_eq!(report.flakes.iter().map(|flake| flake.test.as_str()).collect::<Vec<_>>(), flakes);
    assert!(report.flakes.iter().all(|flake| flake.outcome.ends_with("; before: why")), "{report:?}");
    for (failure, expected) in report.failures.iter().zip(failures) {
        assert!(failure.line.contains(expected), "{}", failure.line);
    }
    report
}

fn tempfile(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn failed_test_that_passes_alone_is_a_flake() {
    check("flake", &fails_again(0), 3, &["cli::flake a"], &[]);
    check("flake_twice", &fails_again(1), 3, &["cli::flake_twice a"], &[]);
}

#[test]
fn failed_test_that_fails_alone_is_a_failure() {
    check("failure", FAILS, 2, &[], &["cli::failure a (3 attempts)"]);
}

#[test]
fn silent_program_is_ended_and_its_slow_test_named() {
    let script = "echo 'test b has been running for over 60 seconds'; exec sleep 3600";
    let report = check("hang", script, 0, &[], &["cli::hang hangs: it printed nothing for 1 s during b"]);
    let closing = report.failures[0].output.last().map(String::as_str).unwrap_or_default();
    // Only Linux has the states of threads.
    let has_states = !cfg!(target_os = "linux") || closing.starts_with("thread sleep: state S");
    assert!(has_states, "{closing}");
}

#[test]
fn program_that_dies_is_a_failure() {
    check("dies", "echo 'test a ... ok'; kill -9 $$", 0, &[], &["cli::dies ended with signal: 9"]);
    check(
        "ends",
        "echo 'test a ... ok'",
        0,
        &[],
        &["cli::ends ended with exit status: 0 before all of its tests had"],
    );
    check("exits", &format!("{PASSES}; exit 3"), 1, &[], &["and no test of it had failed"]);
}

#[test]
fn tests_about_data_are_not_run_again() {
    check("chaos", &FAILS.replace(" a", " killed_at_random"), 2, &[], &["it is about lost or doubled data"]);
    let found = FAILS.replace("why", "minimal failing input: text = x");
    check("found", &found, 2, &[], &["it found an input that breaks a property"]);
}

#[test]
fn tests_that_are_not_run_again_exist() {
    for (program, start) in NEVER_AGAIN {
        let (crate_name, target) = program.split_once("::").unwrap();
        let (file, test) = start.split_once("::").unwrap_or(("main", start));
        let source = repository::read(&format!("crates/{crate_name}/tests/{target}/{file}.rs")).unwrap();
        assert!(source.contains(&format!("fn {test}")), "{program}: no test begins with `{start}`");
    }
}
