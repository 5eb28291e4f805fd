//! The real binary, isolated from the configuration of the person who runs the tests.

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
    // Isolated from connected upstreams, too.
    command.env("THROUGHLINE_DATA", folder.path().join("data"));
    (command, folder)
}

/// Installs a script that can be started immediately. A child that another test forks at this moment inherits
/// open files, and a file that is open for writing cannot be executed ("Text file busy"), so another process
/// writes it.
pub fn install_program(path: &Path, script: &str) {
    let text = path.with_extension("text");
    std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
    let installed =
        std::process::Command::new("install").args(["-m", "755"]).args([text.as_path(), path]).status();
    assert!(installed.unwrap().success(), "{}", path.display());
}
