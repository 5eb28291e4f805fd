//! The real binary, away from whatever configuration the person running the tests has.

pub mod commands;
pub mod played;
pub mod serving;
pub mod terminal;

use assert_cmd::Command;
use std::path::Path;

/// `throughline` in an empty folder, with no variable of ours set.
pub fn throughline() -> (Command, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::cargo_bin("throughline").unwrap();
    command.current_dir(folder.path()).env("LC_ALL", "C.UTF-8").env_remove("THROUGHLINE_CONFIG");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THROUGHLINE_")) {
        command.env_remove(name);
    }
    // Nor whatever was connected.
    command.env("THROUGHLINE_DATA", folder.path().join("data"));
    (command, folder)
}

/// A script that can be started at once. A child that another test forks at this moment has all that is open here, and what is
/// open for writing cannot be started ("Text file busy"): another process writes it.
pub fn install_program(path: &Path, script: &str) {
    let text = path.with_extension("text");
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
    let installed =
        std::process::Command::new("install").args(["-m", "755"]).args([text.as_path(), path]).status();
    assert!(installed.unwrap().success(), "{}", path.display());
}
