//! `cargo xtask bench server`: latency that the server adds to its models, compared with floors and peers, in
//! one run.

mod figures;
mod measure;
mod setup;
mod subject;

use super::{BenchOptions, MeasureEffort, ReportTarget};
use crate::repository::{self, MachineLoad};
use crate::{generated, program};
use anyhow::{Context, Result, bail};
use figures::{MEMORY, NO_WAIT, OURS, OWN_API, ServerRows};
use measure::LoadSizes;
use serde_json::{Value, json};
use setup::{BenchSetup, PeerSelection};
use std::fs;
use std::path::{Path, PathBuf};
use subject::{BenchServer, LogPlacement};

const DOCUMENT: &str = "docs/performance.md";
const SECTION: &str = "server";

/// Port of the bench's model server; the bench's own default.
const UPSTREAM_PORT: u16 = 9120;
/// A file system in memory, where an fsync takes no time.
const IN_MEMORY: &str = "/dev/shm";

/// Runs the benchmark; returns a summary line.
///
/// # Errors
/// The server, the floors or the load generator fail. Missing peers are reported and left out.
pub(crate) fn server(options: &BenchOptions) -> Result<String> {
    let quick = options.effort == MeasureEffort::Quick;
    let Some(setup) =
        BenchSetup::prepare(if quick { PeerSelection::Unwanted } else { PeerSelection::Wanted })?
    else {
        return Ok("skipped".to_owned());
    };
    let machine = MachineLoad::now();
    let binary = binary()?;
    let subjects = BenchServers::new(&binary, &setup)?;
    subjects.write_targets(&setup)?;

    let results = setup.folder.join("server.jsonl");
    let _ = fs::remove_file(&results);
    let floors: &[&str] = if quick {
        &["relay-pass", "relay-turn", NO_WAIT, OURS, MEMORY]
    } else {
        &["relay-pass", "relay-turn", "relay-turn-eager", NO_WAIT, OURS, MEMORY, OWN_API]
    };
    let targets: Vec<&str> = floors.iter().copied().chain(setup.peers.iter().copied()).collect();
    let scenarios = if quick { "s1,s2" } else { "s1,s2,s3,s4" };
    let status = setup.part2(&results, &targets, scenarios).lines(|line| println!("  {line}"))?;
    if !status.success() {
        bail!("the bench ended with {status}\n  remedy: see what it says above");
    }
    let mut rows = read_rows(&results)?;
    let sizes = if quick {
        LoadSizes { idle_streams: 500, active_streams: 200, stored_turns: 1_000 }
    } else {
        LoadSizes { idle_streams: 5_000, active_streams: 500, stored_turns: 10_000 }
    };
    rows.extend(measure::measure_all(&setup, &subjects.disk, &sizes)?);
    let rows = ServerRows(rows);
    let verdicts = rows.verdicts();
    for verdict in &verdicts {
        println!("{}", verdict.line());
    }
    if options.report == ReportTarget::Written {
        let document = repository::read(DOCUMENT)?;
        let text = rows.render(&verdicts, &build(), &machine);
        repository::write(DOCUMENT, &generated::replace(&document, SECTION, &text)?)?;
    }
    Ok(super::summary(&verdicts))
}

/// The same server three times: the differences are the cost of waiting for the disk, and the cost of the
/// log.
struct BenchServers {
    disk: BenchServer,
    no_wait: BenchServer,
    memory: BenchServer,
    /// Deleted in the end: it takes memory.
    shm: PathBuf,
}

impl BenchServers {
    fn new(binary: &Path, setup: &BenchSetup) -> Result<Self> {
        let shm = Path::new(IN_MEMORY).join(format!("throughline-bench-{}", std::process::id()));
        Ok(Self {
            disk: BenchServer::new(binary, setup.folder.join("disk"), 9220, LogPlacement::Disk)?,
            no_wait: BenchServer::new(binary, shm.join("nowait"), 9221, LogPlacement::NoWait)?,
            memory: BenchServer::new(binary, shm.join("memory"), 9222, LogPlacement::Memory)?,
            shm,
        })
    }

    /// Makes them targets of the bench, in the file that it has for those of one machine.
    fn write_targets(&self, setup: &BenchSetup) -> Result<()> {
        let targets = json!({
            OURS: self.disk.target(),
            NO_WAIT: self.no_wait.target(),
            MEMORY: self.memory.target(),
            OWN_API: self.no_wait.own_target(),
        });
        fs::write(setup.folder.join("targets.local.json"), targets.to_string())?;
        Ok(())
    }
}

impl Drop for BenchServers {
    fn drop(&mut self) {
        // What cannot be deleted goes with the next start of the machine.
        let _ = fs::remove_dir_all(&self.shm);
    }
}

fn read_rows(results: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(results).context("the bench wrote no results")?;
    text.lines()
        .map(|line| serde_json::from_str(line).context("the bench wrote something else than JSON"))
        .collect()
}

/// The server, built now, or the one that the variable `SERVER` names: so two builds can be compared.
fn binary() -> Result<PathBuf> {
    match std::env::var_os("SERVER") {
        Some(binary) => Ok(PathBuf::from(binary)),
        None => program::build(&[
            "--release",
            "--package",
            "throughline-cli",
            "--features",
            "bench",
            "--bin",
            "throughline",
        ]),
    }
}

/// Build profile of the server, where it differs from a release.
fn build() -> String {
    let changed: Vec<String> = std::env::vars()
        .filter_map(|(name, value)| Some(format!("{}={value}", name.strip_prefix("CARGO_PROFILE_RELEASE_")?)))
        .collect();
    match (std::env::var_os("SERVER"), changed.is_empty()) {
        (Some(_), _) => "a release built before (`SERVER`)".to_owned(),
        (None, true) => "release".to_owned(),
        (None, false) => format!("release with {}", changed.join(", ").to_lowercase()),
    }
}
