//! The path of docs/paths.md for a self-hoster: the script, in an empty folder, with the built command.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn script() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/paths.md");
    let page = std::fs::read_to_string(page).unwrap();
    let begin = page.split("```sh self-hoster\n").nth(1).expect("the script of docs/paths.md");
    begin.split("\n```").next().unwrap().to_owned()
}

fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok_and(|mut child| child.wait().is_ok())
}

/// `PATH` with the built command in front of everything else.
fn path() -> String {
    let program: PathBuf = assert_cmd::cargo::cargo_bin("throughline");
    let folder = program.parent().unwrap().display().to_string();
    format!("{folder}:{}", std::env::var("PATH").unwrap_or_default())
}

fn run(folder: &Path, script: &str) -> Output {
    let mut bash = Command::new("bash");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THROUGHLINE_")) {
        bash.env_remove(name);
    }
    bash.args(["-euo", "pipefail", "-c", script]).current_dir(folder).env("PATH", path());
    bash.env("LC_ALL", "C.UTF-8").env("NO_PROXY", "127.0.0.1").output().unwrap()
}

/// A certificate for a machine without OpenSSL.
fn write_certificate(folder: &Path) {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

/// Prints the output of a failed script.
#[track_caller]
fn check(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

#[test]
fn self_hosting_script_runs_as_documented() {
    if !is_there("curl") {
        println!("skipped: curl is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    if !is_there("openssl") {
        write_certificate(folder.path());
    }
    let output = run(folder.path(), &script());
    check(&output);
    let before = std::fs::read_to_string(folder.path().join("before")).unwrap();
    assert!(before.contains("What is the weather in Paris?"), "the history has the turn: {before}");
}

/// Otherwise the script would pass with any server.
#[test]
fn self_hosting_script_fails_without_its_deny_rule() {
    if !is_there("curl") {
        println!("skipped: curl is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    write_certificate(folder.path());
    let output = run(folder.path(), &script().replace("decide = \"deny\"", "decide = \"allow\""));
    assert!(!output.status.success(), "a call that should be refused ran");
    assert!(folder.path().join("refusal").exists(), "everything before it holds");
    assert!(!folder.path().join("backup").exists(), "and nothing after it ran");
}
