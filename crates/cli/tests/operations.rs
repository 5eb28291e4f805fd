//! `ops/` against the program: what the unit and the container start, ask and wait for is what there is. Neither systemd nor
//! a container is started here; where `systemd-analyze` is, it reads the unit. R: O2, R4

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::throughline;
use throughline::config::ServerSettings;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A command line is one that the program understands: `--help` behind it is answered.
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

// R: O2
#[test]
fn the_unit_starts_reloads_and_stops_what_there_is() {
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

// R: R4
#[test]
fn systemd_understands_every_line_of_the_unit() {
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
    // The calls that confinement needs pass the filter by name, whatever groups this systemd knows.
    for call in ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp"] {
        assert!(unit_filters().contains(call), "{call}");
    }
}

fn unit_filters() -> BTreeSet<String> {
    unit()["SystemCallFilter"].iter().flat_map(|line| line.split_whitespace()).map(str::to_owned).collect()
}

/// Instructions of the Dockerfile with their words, continued lines joined.
fn dockerfile() -> Vec<(String, String)> {
    let joined = read("ops/Dockerfile").replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(word, rest)| (word.into(), rest.trim().into()))
        .collect()
}

// R: O2, R4
#[test]
fn the_image_is_built_of_what_there_is_and_starts_what_there_is() {
    let lines = dockerfile();
    let of = |word: &str| -> Vec<&str> {
        lines.iter().filter(|(known, _)| known == word).map(|(_, rest)| rest.as_str()).collect()
    };
    let known = [
        "FROM",
        "RUN",
        "WORKDIR",
        "COPY",
        "USER",
        "ENV",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    ];
    assert!(lines.iter().all(|(word, _)| known.contains(&word.as_str())), "{lines:?}");
    // The compiler is the one that the workspace asks for, and what is copied between the stages is made there.
    let manifest = read("Cargo.toml");
    let version =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    assert!(of("FROM")[0].starts_with(&format!("rust:{version}-")), "{:?} and {version}", of("FROM"));
    assert!(of("FROM")[0].ends_with(" AS build"));
    let build = of("RUN").into_iter().find(|run| run.contains("cargo build")).unwrap();
    assert!(build.contains("-p throughline-cli") && build.contains("--locked"), "{build}");
    assert!(read("crates/cli/Cargo.toml").contains("name = \"throughline-cli\""));
    assert!(root().join("Cargo.lock").exists(), "--locked needs it");
    let (from, to) =
        of("COPY").last().unwrap().strip_prefix("--from=build ").unwrap().split_once(' ').unwrap();
    assert!(build.ends_with(&format!(" {from}")) && build.contains("target/release/throughline "), "{build}");
    assert!(to.ends_with("/throughline"));
    // Not root, and its folder is its own.
    assert_eq!(of("USER"), ["throughline"]);
    assert!(of("RUN").last().unwrap().contains("install -d -o throughline -g throughline -m 700 /data"));
    let command = format!("{} {}", of("ENTRYPOINT")[0], of("CMD")[0]);
    let words: Vec<&str> = command.split('"').skip(1).step_by(2).collect();
    assert_eq!(words[0], "throughline");
    understood(&words[1..]);
    for variable in of("ENV")[0].split_whitespace() {
        let (name, value) = variable.split_once('=').unwrap();
        assert!(known_variables().contains(name), "{name}");
        match name {
            "THROUGHLINE_DATA" => assert_eq!(of("VOLUME"), [value]),
            _ => assert!(value.ends_with(&format!(":{}", of("EXPOSE")[0])), "{variable}"),
        }
    }
    assert_eq!(of("EXPOSE"), [ServerSettings::default().listen.port().to_string()]);
    assert_eq!(of("STOPSIGNAL"), ["SIGTERM"]);
    let health = of("HEALTHCHECK")[0];
    assert!(health.contains(&format!("http://127.0.0.1:{}/healthz", of("EXPOSE")[0])), "{health}");
    assert!(of("RUN").last().unwrap().contains(" curl "), "what the health check runs is installed");
}

// R: O2
#[test]
fn the_composition_waits_for_turns_and_publishes_to_this_machine_only() {
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
