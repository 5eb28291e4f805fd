//! Unmodified clients against `throughline serve` with a scripted model: every cell of the matrix passes, or
//! is expected to fail for a reason given in the table.
//!
//! The scripts, one for each client, and the pins of their packages are in `clients/matrix`.

mod expected;
mod packages;
mod process;

use super::ProofOutcome;
use super::serving::ServeProcess;
use crate::{generated, program, repository};
use anyhow::{Result, anyhow, bail};
use expected::{CLIENTS, COLUMNS, MatrixClient};
use process::{ClientReport, ScriptedModel};
use std::fmt::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const DOCUMENT: &str = "docs/openai-clients.md";
const SECTION: &str = "clients";
/// Number of clients that run in parallel; they mostly wait.
const CLIENTS_AT_ONCE: usize = 4;

/// Result of one cell of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CellResult {
    cell: String,
    outcome: CellOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum CellOutcome {
    Works,
    /// Fails as expected, for this reason.
    ClientLimit(String),
    /// Differs from the expectation.
    Unexpected(String),
}

/// A client and how its cells went.
struct ClientRun {
    name: &'static str,
    version: String,
    cells: Vec<CellResult>,
    /// Cells that were as expected only when the client ran again.
    flakes: Vec<String>,
}

impl ClientRun {
    /// Adds the outcome of unexpected cells in the second run of the client.
    fn with_second_look(mut self, again: Self) -> Self {
        for (cell, again) in self.cells.iter_mut().zip(again.cells) {
            let (first, second) = (is_unexpected(&cell.outcome), is_unexpected(&again.outcome));
            if first && !second {
                self.flakes.push(again.cell.clone());
                *cell = again;
            }
        }
        self
    }
}

fn is_unexpected(outcome: &CellOutcome) -> bool {
    matches!(outcome, CellOutcome::Unexpected(_))
}

/// Passed cells of the quick clients, failed ones, and clients that could not be run.
pub(crate) struct QuickRun {
    pub(crate) worked: usize,
    pub(crate) unexpected: Vec<String>,
    /// Cells that were as expected in a second run only; they count as passed.
    pub(crate) flakes: Vec<String>,
    pub(crate) not_run: Vec<String>,
}

/// Runs all clients; writes the table.
///
/// # Errors
/// Cells that differ from the expectation, and programs that did not start.
pub(crate) fn clients() -> Result<ProofOutcome> {
    let (runs, not_run) = run_all(|_| true)?;
    if !not_run.is_empty() {
        return Ok(ProofOutcome::Skipped(not_run.join("; ")));
    }
    let unexpected = unexpected(&runs);
    if !unexpected.is_empty() {
        bail!("{} cells are not as expected: {}", unexpected.len(), unexpected.join("; "));
    }
    let document = repository::read(DOCUMENT)?;
    repository::write(DOCUMENT, &generated::replace(&document, SECTION, &table(&runs))?)?;
    let count = |wanted: fn(&CellOutcome) -> bool| {
        runs.iter().flat_map(|run| &run.cells).filter(|cell| wanted(&cell.outcome)).count()
    };
    let works = count(|outcome| *outcome == CellOutcome::Works);
    let client_limits = count(|outcome| matches!(outcome, CellOutcome::ClientLimit(_)));
    Ok(ProofOutcome::Holds(format!("{} clients: {works} cells work, {client_limits} theirs", runs.len())))
}

/// The clients that `cargo xtask test` runs as well.
///
/// # Errors
/// Programs that did not start.
pub(crate) fn quick() -> Result<QuickRun> {
    let (runs, not_run) = run_all(|client| client.is_quick)?;
    let unexpected = unexpected(&runs);
    let cells: usize = runs.iter().map(|run| run.cells.len()).sum();
    let flakes = runs.iter().flat_map(|run| run.flakes.iter().map(|cell| format!("{}, {cell}", run.name)));
    Ok(QuickRun { worked: cells - unexpected.len(), flakes: flakes.collect(), unexpected, not_run })
}

/// Installs the quick ones; the run reports what could not be installed.
pub(crate) fn install_quick() {
    for client in CLIENTS.iter().filter(|client| client.is_quick) {
        let _ = packages::installed(client);
    }
}

/// The clients that were run, and why others were not.
fn run_all(is_wanted: fn(&MatrixClient) -> bool) -> Result<(Vec<ClientRun>, Vec<String>)> {
    let (mut installed, mut not_run) = (Vec::new(), Vec::new());
    for client in CLIENTS.iter().filter(|client| is_wanted(client)) {
        match packages::installed(client)? {
            Ok(program) => installed.push((client, program)),
            Err(why) => {
                println!("    {}: not run: {why}", client.name);
                not_run.push(format!("{}: {why}", client.name));
            }
        }
    }
    let throughline = program::throughline_built_by_tests(&[])?;
    let folder = program::target()?.join("client-matrix/servers");
    let queue = Mutex::new(installed.iter().enumerate());
    let work = || -> Result<Vec<(usize, ClientRun)>> {
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        std::iter::from_fn(next)
            .map(|(at, (client, installed))| {
                let run_client = |name: String| -> Result<ClientRun> {
                    // A separate server for each, so that clients do not affect each other.
                    let folder = folder.join(name);
                    let (model, serving) = serve_matrix(&throughline, &folder)?;
                    let report =
                        process::run_client(client, installed, &serving.address, &serving.key, &folder)?;
                    drop((serving, model));
                    let run = judge_client(client, &report);
                    print_run(&run);
                    Ok(run)
                };
                let first = run_client(at.to_string())?;
                if unexpected(std::slice::from_ref(&first)).is_empty() {
                    return Ok((at, first));
                }
                println!("    {}: once more", client.name);
                Ok((at, first.with_second_look(run_client(format!("{at}-again"))?)))
            })
            .collect()
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CLIENTS_AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| anyhow!("a client's thread panicked")))
            .collect()
    });
    let mut runs = Vec::new();
    for worker in done {
        runs.extend(worker??);
    }
    runs.sort_by_key(|(at, _)| *at);
    Ok((runs.into_iter().map(|(_, run)| run).collect(), not_run))
}

fn serve_matrix(throughline: &Path, folder: &Path) -> Result<(ScriptedModel, ServeProcess)> {
    let model = ScriptedModel::start(throughline)?;
    let configuration = repository::read(&format!("{}/throughline.toml", packages::SOURCES))?;
    let variables = [("THROUGHLINE_BASE_URL_SCRIPTED", model.base_url.as_str())];
    let serving = ServeProcess::start_with(throughline, folder, &configuration, &[], &variables)?;
    Ok((model, serving))
}

/// Compares the report of a client's script with the expectation.
fn judge_client(client: &MatrixClient, report: &ClientReport) -> ClientRun {
    let version = report.lines.iter().find_map(|line| line["version"].as_str()).unwrap_or("not known");
    let cells = client.requested_cells().into_iter().map(|cell| {
        let outcome = report
            .lines
            .iter()
            .filter(|line| line["cell"] == cell)
            .find_map(|line| Some((line["ok"].as_bool()?, line["detail"].as_str().unwrap_or_default())));
        let outcome = match (outcome, client.reason(cell)) {
            (Some((true, _)), None) => CellOutcome::Works,
            (Some((false, _)), Some(reason)) => CellOutcome::ClientLimit(reason.to_owned()),
            (Some((true, _)), Some(_)) => {
                CellOutcome::Unexpected("works now: take its reason away".to_owned())
            }
            (Some((false, detail)), None) => CellOutcome::Unexpected(detail.to_owned()),
            (None, _) => {
                CellOutcome::Unexpected(report.failure.clone().unwrap_or("no word about it".to_owned()))
            }
        };
        CellResult { cell: cell.to_owned(), outcome }
    });
    ClientRun { name: client.name, version: version.to_owned(), cells: cells.collect(), flakes: Vec::new() }
}

fn unexpected(runs: &[ClientRun]) -> Vec<String> {
    let of = |run: &ClientRun| -> Vec<String> {
        let unexpected = run.cells.iter().filter_map(|cell| match &cell.outcome {
            CellOutcome::Unexpected(why) => Some(format!("{}, {}: {why}", run.name, cell.cell)),
            _ => None,
        });
        unexpected.collect()
    };
    runs.iter().flat_map(of).collect()
}

fn print_run(run: &ClientRun) {
    let good = run.cells.iter().filter(|cell| !is_unexpected(&cell.outcome)).count();
    println!("    {} {}: {good} of {} cells as expected", run.name, run.version, run.cells.len());
    for line in unexpected(std::slice::from_ref(run)) {
        println!("      {line}");
    }
}

/// The table for people, with the reasons under it.
fn table(runs: &[ClientRun]) -> String {
    let headings: Vec<_> = COLUMNS.iter().map(|column| column.heading).collect();
    let mut text = format!(
        "| client | version | {} |\n|---|---|{}\n",
        headings.join(" | "),
        "---|".repeat(headings.len())
    );
    let mut reasons: Vec<&str> = Vec::new();
    for run in runs {
        let mut mark = |column: &expected::MatrixColumn| {
            let cell = run.cells.iter().find(|cell| cell.cell == column.cell);
            match cell.map(|cell| &cell.outcome) {
                Some(CellOutcome::Works) => "✓".to_owned(),
                Some(CellOutcome::ClientLimit(reason)) => {
                    let known = reasons.iter().position(|known| known == reason);
                    let number = known.unwrap_or_else(|| {
                        reasons.push(reason);
                        reasons.len() - 1
                    });
                    format!("theirs ({})", number + 1)
                }
                Some(CellOutcome::Unexpected(_)) => "**✗**".to_owned(),
                None => "–".to_owned(),
            }
        };
        let marks: Vec<_> = COLUMNS.iter().map(&mut mark).collect();
        let _ = writeln!(text, "| {} | {} | {} |", run.name, run.version, marks.join(" | "));
    }
    for (at, reason) in reasons.iter().enumerate() {
        let _ = write!(text, "\n{}. {reason}", at + 1);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use expected::ClientStart;
    use serde_json::json;

    const CLIENT: MatrixClient = MatrixClient {
        name: "c",
        start: ClientStart::Rust,
        variant: "",
        cells: &["plain", "stream", "cut"],
        extra_cells: &[],
        missing_cells: &["cut"],
        client_limits: &[("stream", "it cannot")],
        is_quick: false,
    };

    fn run(plain: Option<bool>, stream: Option<bool>, trouble: Option<&str>) -> ClientRun {
        let line =
            |cell: &str, ok: Option<bool>| json!({"client": "c", "cell": cell, "ok": ok, "detail": "so"});
        let mut lines = vec![json!({"client": "c", "version": "1.2"})];
        for (cell, ok) in [("plain", plain), ("stream", stream)] {
            lines.push(line(cell, None));
            lines.extend(ok.map(|ok| line(cell, Some(ok))));
        }
        judge_client(&CLIENT, &ClientReport { lines, failure: trouble.map(str::to_owned) })
    }

    #[test]
    fn cell_must_work_or_be_a_known_client_limit() {
        let fine = run(Some(true), Some(false), None);
        assert_eq!(unexpected(&[fine]), Vec::<String>::new());
        assert_eq!(unexpected(&[run(Some(false), Some(false), None)]), ["c, plain: so"]);
        assert_eq!(
            unexpected(&[run(Some(true), Some(true), None)]),
            ["c, stream: works now: take its reason away"]
        );
        assert_eq!(unexpected(&[run(Some(true), None, Some("hangs"))]), ["c, stream: hangs"]);
        assert_eq!(unexpected(&[run(None, Some(false), None)]), ["c, plain: no word about it"]);
    }

    #[test]
    fn cell_that_works_in_a_second_run_is_a_flake() {
        let seen = run(Some(false), Some(false), None).with_second_look(run(Some(true), Some(false), None));
        assert_eq!(seen.flakes, ["plain"]);
        assert_eq!(unexpected(&[seen]), Vec::<String>::new());
        let seen = run(Some(true), None, None).with_second_look(run(Some(false), None, None));
        assert_eq!(unexpected(&[seen]), ["c, stream: no word about it"]);
    }

    #[test]
    fn table_shows_client_limits_with_their_reasons() {
        let text = table(&[run(Some(true), Some(false), None)]);
        assert!(text.contains("\n| c | 1.2 | ✓ | theirs (1) | – |"), "{text}");
        assert!(text.ends_with("\n1. it cannot"), "{text}");
    }

    #[test]
    fn every_client_cell_has_a_column() {
        for client in &CLIENTS {
            for cell in client.cells.iter().chain(client.extra_cells).chain(client.missing_cells) {
                assert!(COLUMNS.iter().any(|column| column.cell == *cell), "{}: {cell}", client.name);
            }
            assert!(
                client.client_limits.iter().all(|(cell, _)| client.cells.contains(cell)),
                "{}",
                client.name
            );
        }
    }
}
