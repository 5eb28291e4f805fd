//! `throughline serve` in a terminal that is closed, and SIGHUP without a terminal.

#![cfg(target_os = "linux")]

use crate::support;
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server whose session has this terminal; its output goes to a pipe.
fn served(folder: &Path, through: &[&str]) -> (Child, OwnedFd) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = std::ffi::OsString::from_vec(ptsname(&master, Vec::new()).unwrap().into_bytes());
    let no_controlling = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
    let line = OpenOptions::new().read(true).write(true).custom_flags(no_controlling).open(name).unwrap();
    let (given, _) = support::throughline();
    let mut command = Command::new("setsid");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THROUGHLINE_")) {
        command.env_remove(name);
    }
    command.arg("--ctty").args(through).arg(given.get_program()).args(["serve", "--listen", "127.0.0.1:0"]);
    command.current_dir(folder).env("LC_ALL", "C.UTF-8").env("THROUGHLINE_DATA", folder.join("data"));
    let mut child = command.stdin(line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut greeting = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(greeting.any(|line| line.ends_with("/docs")), "it serves");
    // The pipe is read to its end, so that it does not break.
    std::thread::spawn(move || greeting.for_each(drop));
    (child, master)
}

fn configured(folder: &Path) {
    let text = "[upstreams.mock]\ndialect = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\n[agents.default]\nmodel = \"mock/m\"\n";
    std::fs::write(folder.join("throughline.toml"), text).unwrap();
}

fn ends(child: &mut Child) -> Option<i32> {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(since.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn address(folder: &Path) -> String {
    let note = std::fs::read_dir(folder.join("data")).unwrap().flatten().find_map(|file| {
        let text = std::fs::read_to_string(file.path()).ok()?;
        Some(text.split("http://").nth(1)?.split(['"', '/', '\n']).next()?.to_owned())
    });
    note.expect("the note of the running server")
}

fn has_setsid() -> bool {
    let there = Command::new("setsid").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        println!("skipped: there is no setsid on this machine");
    }
    there.is_ok()
}

#[test]
fn server_survives_sighup_and_ends_with_its_terminal() {
    if !has_setsid() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path());
    // The test runner may ignore hangups, which its children inherit.
    let (mut child, terminal) = served(folder.path(), &["env", "--default-signal=HUP"]);
    // A hangup sent by a process reloads the configuration, and does not end the server.
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    let there = std::net::TcpStream::connect(address(folder.path()));
    assert!(there.is_ok() && child.try_wait().unwrap().is_none(), "it serves on: {there:?}");
    drop(terminal);
    assert_eq!(ends(&mut child), Some(0), "in good order");
}

#[test]
fn server_under_nohup_survives_its_terminal() {
    if !has_setsid() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    configured(folder.path());
    let (mut child, terminal) = served(folder.path(), &["nohup"]);
    drop(terminal);
    let deadline = Instant::now() + Duration::from_millis(500);
    while Instant::now() < deadline {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        assert!(std::net::TcpStream::connect(address(folder.path())).is_ok());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(ends(&mut child), Some(0));
}
