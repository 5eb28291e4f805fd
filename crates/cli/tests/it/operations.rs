//! `ops/` against the program: what the unit and the composition start, ask and wait for is what there is. Neither systemd nor
//! a container is started here; where `systemd-analyze` is, it reads the unit. The image is `image.rs`'s.

#![cfg(unix)]

use crate::support::throughline;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use throughline::config::ServerSettings;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Checks that the program understands a command line: it answers with `--help` appended.
#[track_caller]
fn understood(words: &[&str]) {
    let (mut command, _own) = throughline();
    let help = command.args(words).arg("--help").output().unwrap();
    assert!(help.status.success(), "{words:?}: {}", String::from_utf8_lossy(&help.stderr));
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for flag in words.iter().filter(|word| word.starts_with("--")) {
        assert!(help.contains(flag), "{flag} is no flag of {words:?}");
    }
}

/// Variables that the program reads, as its documents list them.
fn known_variables() -> String {
    read("docs/configuration.md") + &read("docs/operations.md")
}

/// Seconds that running turns get before a supervisor gives up on them.
fn drain_seconds() -> u64 {
    ServerSettings::default().drain_ms / 1_000
}

/// `key=value` lines of a unit, by key.
fn unit() -> BTreeMap<String, Vec<String>> {
    let mut unit: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in read("ops/throughline.service").lines().filter(|line| !line.starts_with('#')) {
        if let Some((key, value)) = line.split_once('=') {
            unit.entry(key.to_owned()).or_default().push(value.to_owned());
        }
    }
    unit
}

#[test]
fn systemd_unit_has_valid_start_reload_and_stop_settings() {
    let unit = unit();
    let one = |key: &str| unit[key].join(" ");
    let start = one("ExecStart");
    let words: Vec<&str> = start.split_whitespace().collect();
    assert_eq!(words[0], "/usr/local/bin/throughline");
    understood(&words[1..]);
    assert_eq!(one("ExecReload"), "/bin/kill -HUP $MAINPID", "SIGHUP reads the configuration again");
    assert_eq!(one("KillSignal"), "SIGTERM");
    let stop: u64 = one("TimeoutStopSec").parse().unwrap();
    assert!(stop > drain_seconds(), "{stop} s are less than turns get to end");
    for line in &unit["Environment"] {
        let (name, place) = line.split_once('=').unwrap();
        assert!(known_variables().contains(name), "{name}");
        // With `StateDirectory=` this is the one folder that it may write.
        assert_eq!(place, format!("/var/lib/{}", one("StateDirectory")));
    }
    // Programs of tools get control groups, which can be written.
    assert_eq!(one("Delegate"), "yes");
    assert!(!unit.contains_key("ProtectControlGroups"));
    // The paths at its top are those of its lines.
    let head = read("ops/throughline.service");
    for path in
        ["/usr/local/bin/throughline", "/etc/throughline/throughline.toml", "/etc/throughline/environment"]
    {
        assert!(head.matches(path).count() >= 2, "{path}");
    }
    assert!(
        root().join("ops/throughline.service").exists()
            && head.contains("install -m 644 ops/throughline.service")
    );
}

#[test]
fn example_config_is_valid_also_with_all_settings_enabled() {
    let example = read("ops/throughline.toml");
    let is_setting = |line: &str| {
        let name = line.split(" = ").next().unwrap();
        line.starts_with('[') || (line != name && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
    };
    let everything: Vec<&str> = example
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|setting| is_setting(setting)).unwrap_or(line))
        .collect();
    let everything = everything.join("\n");
    assert!(everything.contains("\n[commands.disk]\n"), "{everything}");
    for (text, tool) in [(&example, "time.now"), (&everything, "commands.disk")] {
        let (mut command, folder) = throughline();
        let path = folder.path().join("example.toml");
        std::fs::write(&path, text).unwrap();
        let output = command.args(["tools", "list", "--config"]).arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.contains(tool), "{text}\n{said}");
    }
}

#[test]
fn systemd_analyze_accepts_the_unit() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        println!("skipped: there is no systemd-analyze on this machine");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (given, _own) = throughline();
    let program = Path::new(given.get_program()).display().to_string();
    let unit = read("ops/throughline.service")
        .replace("/usr/local/bin/throughline serve", &format!("{program} serve"));
    let place = folder.path().join("throughline.service");
    std::fs::write(&place, unit).unwrap();
    let verified = Command::new("systemd-analyze").arg("verify").arg(&place).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    let of_ours: Vec<&str> = said.lines().filter(|line| line.contains("throughline.service")).collect();
    assert!(verified.status.success() && of_ours.is_empty(), "{said}");
    // The calls that confinement needs pass the filter by name, regardless of the groups that this systemd
    // has.
    for call in ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp"] {
        assert!(unit_filters().contains(call), "{call}");
    }
}

fn unit_filters() -> BTreeSet<String> {
    unit()["SystemCallFilter"].iter().flat_map(|line| line.split_whitespace()).map(str::to_owned).collect()
}

#[test]
fn compose_file_waits_for_turns_and_binds_to_localhost() {
    let text = read("ops/compose.yaml");
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(&format!("{key}: ")));
        line.unwrap_or_else(|| panic!("{key}")).to_owned()
    };
    assert!(root().join(value("dockerfile")).exists());
    assert_eq!(value("context"), "..");
    let port = ServerSettings::default().listen.port();
    assert_eq!(value("ports"), format!("[\"127.0.0.1:{port}:{port}\"]"));
    let grace: u64 = value("stop_grace_period").trim_end_matches('s').parse().unwrap();
    assert!(grace > drain_seconds(), "{grace} s are less than turns get to end");
    assert_eq!(value("read_only"), "true", "only the volume is written");
    assert!(
        text.contains("- data:/data") && text.contains("tmpfs: [/tmp]"),
        "which is where data and scratch are"
    );
}
