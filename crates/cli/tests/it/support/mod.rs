//! The real binary, away from whatever configuration the person running the tests has.

pub mod commands;
pub mod played;
pub mod serving;
pub mod terminal;

use assert_cmd::Command;

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
