//! The archive that people download, unpacked into an empty folder. `cargo xtask test` packs it and names it to these tests.

#![cfg(unix)]

use crate::support::serving::{Serving, command_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The archive; without one a test prints a notice and passes.
fn archive() -> Option<PathBuf> {
    match std::env::var_os("THROUGHLINE_ARCHIVE") {
        // The runner of the tests has reported the reason.
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => {
            println!("skipped: THROUGHLINE_ARCHIVE is not set (cargo xtask test --only shipped)");
            None
        }
    }
}

/// The archive unpacked: the folder that guards it, and the one that is in it.
fn unpacked() -> Option<(tempfile::TempDir, PathBuf)> {
    let archive = archive()?;
    let folder = tempfile::tempdir().unwrap();
    done(Command::new("tar").arg("xzf").arg(&archive).current_dir(folder.path()));
    let name = archive.file_name().unwrap().to_string_lossy().replace(".tar.gz", "");
    let inner = folder.path().join(name);
    assert!(inner.is_dir(), "the archive holds one folder of its name");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "and nothing else");
    Some((folder, inner))
}

/// The output of a program, which must end well.
#[track_caller]
fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

fn is_installed(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        println!("skipped: there is no {program} on this machine");
    }
    there
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn unpacked_program_answers_and_serves_its_page() {
    let Some((_guard, folder)) = unpacked() else { return };
    let program = folder.join("throughline");
    let elsewhere = tempfile::tempdir().unwrap();
    let command = || command_of(&program, elsewhere.path());
    let version = done(command().arg("--version"));
    assert!(folder.to_string_lossy().contains(version.split_whitespace().nth(1).unwrap()), "{version}");
    let answer = done(command().args(["ask", "--model", "demo", "--quiet", "What time is it?"]));
    assert!(!answer.trim().is_empty());

    let mut serve = command();
    serve.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(folder.join("ops/throughline.toml"));
    let server = Serving::spawn(serve);
    let (status, page) = server.get("/", None);
    assert_eq!(status, 200);
    let scripts: Vec<&str> =
        page.split('"').filter(|part| part.starts_with("/assets/") && part.ends_with(".js")).collect();
    assert!(!scripts.is_empty(), "the page is in the program: {page}");
    for script in scripts {
        assert_eq!(server.get(script, None).0, 200, "{script}");
    }
    let (status, models) = server.get("/v1/models", server.token());
    assert!(status == 200 && models.contains("default"), "the example configuration has an agent: {models}");
    assert_eq!(server.stop(), Some(0));
}

/// The page that describes the archive.
fn page() -> String {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/installing.md"))
}

#[test]
fn archive_matches_documented_contents_and_install_commands() {
    let Some((_guard, folder)) = unpacked() else { return };
    let page = page();
    let rows = page.lines().skip_while(|line| !line.starts_with("| in the archive |")).skip(2);
    let cells = rows.take_while(|line| line.starts_with('|')).filter_map(|line| line.split('|').nth(1));
    let named: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() >= 10, "{named:?}");
    for path in &named {
        assert!(folder.join(path).exists(), "{path}");
    }
    // And the other way round: nothing is in it that the table does not name.
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_named = named.iter().any(|path| path.split('/').next() == Some(&name));
        assert!(is_named, "{name} is not described");
    }
    // The commands, with another folder than /usr/local.
    let prefix = tempfile::tempdir().unwrap();
    std::fs::create_dir(prefix.path().join("bin")).unwrap();
    let commands: Vec<&str> = page.lines().filter(|line| line.starts_with("install ")).collect();
    assert_eq!(commands.len(), 5);
    let script = commands.join("\n").replace("/usr/local", &prefix.path().display().to_string());
    done(Command::new("sh").args(["-ec", &script]).current_dir(&folder));
    done(Command::new(prefix.path().join("bin/throughline")).arg("--version"));
    assert!(prefix.path().join("share/man/man1/throughline-serve.1").exists());
    let archive = archive().unwrap();
    let name = archive.file_name().unwrap().to_string_lossy().into_owned();
    let version = format!("throughline-{}-", env!("CARGO_PKG_VERSION"));
    assert!(name.starts_with(&version) && page.contains(&format!("tar xzf {version}")), "{name}");
}

#[test]
fn archive_checksum_verifies() {
    let Some(archive) = archive() else { return };
    let said = done(
        Command::new("sha256sum")
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(archive.parent().unwrap()),
    );
    let name = archive.file_name().unwrap().to_string_lossy();
    assert!(said.contains(&format!("{name}: OK")), "{said}");
}

#[test]
fn archive_completions_are_accepted_by_shells() {
    let Some((_guard, folder)) = unpacked() else { return };
    for (shell, file) in [("bash", "throughline.bash"), ("zsh", "_throughline"), ("fish", "throughline.fish")]
    {
        let path = folder.join("completions").join(file);
        assert!(read(&path).contains("serve"), "{file}");
        if is_installed(shell) {
            done(Command::new(shell).arg("-n").arg(&path));
        }
    }
    if is_installed("bash") {
        let script = "source completions/throughline.bash; COMP_WORDS=(throughline ser); COMP_CWORD=1; \
                      _throughline throughline ser throughline; echo \"${COMPREPLY[@]}\"";
        let offered = done(Command::new("bash").args(["-c", script]).current_dir(&folder));
        assert_eq!(offered.trim(), "serve");
    }
}

#[test]
fn archive_manual_pages_are_well_formed() {
    let Some((_guard, folder)) = unpacked() else { return };
    let manual = folder.join("man/man1");
    for page in ["throughline", "throughline-serve", "throughline-ask", "throughline-keys-create"] {
        let path = manual.join(format!("{page}.1"));
        let text = read(&path);
        assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH OPTIONS"), "{page}");
        if is_installed("groff") {
            let mut groff = Command::new("groff");
            let output = groff.args(["-man", "-Kutf8", "-ww", "-z"]).arg(&path).output().unwrap();
            let complaints = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && complaints.is_empty(), "{page}: {complaints}");
        }
    }
    let overview = read(&manual.join("throughline.1"));
    assert!(!overview.contains("throughline\\-man"), "what is hidden in the help is hidden here");
}

#[test]
fn archive_has_documents_and_third_party_licenses() {
    let Some((_guard, folder)) = unpacked() else { return };
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md", "docs/README.md"] {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
        assert_eq!(read(&folder.join(file)), read(&here), "{file}");
    }
    for file in ["throughline.service", "alerts.yml", "grafana.json", "throughline.toml"] {
        assert!(folder.join("ops").join(file).exists(), "{file}");
    }
    let licenses = read(&folder.join("THIRD-PARTY.txt"));
    let line = |begin: &str| licenses.lines().find(|line| line.starts_with(begin) && line.contains(": "));
    for package in ["tokio ", "rustls ", "rusqlite ", "react ", "scheduler ", "marked ", "tailwindcss "] {
        let line = line(package).unwrap_or_else(|| panic!("{package}"));
        assert!(line.contains("MIT"), "{line}");
    }
    for development in ["vitest ", "proptest ", "playwright-core "] {
        assert!(line(development).is_none(), "{development} is not in the program");
    }
    assert!(licenses.contains("Permission is hereby granted, free of charge"));
    assert!(licenses.contains("Copyright (c) Meta Platforms, Inc. and affiliates."));
    if cfg!(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")) {
        assert!(
            licenses.contains("Copyright (C) 2002-present Jason Evans"),
            "C code that a crate brings along"
        );
    }
}
