//! The model and the clients as processes.

use super::expected::MatrixClient;
use super::packages::{InstalledClient, SOURCES};
use crate::fault::fault;
use crate::program::ExternalProgram;
use crate::repository;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// A client that has not come to the end of a cell by then hangs. Long for a slow machine: the longest cell takes seconds.
const CELL_MAX: Duration = Duration::from_secs(180);

/// `throughline mock` with the matrix's script, which ends with this value.
pub(crate) struct ScriptedModel {
    child: Child,
    /// `http://127.0.0.1:12345/v1`
    pub(crate) base_url: String,
    _stdout: BufReader<ChildStdout>,
}

impl ScriptedModel {
    pub(crate) fn start(throughline: &Path) -> Result<Self> {
        let script = repository::root().join(SOURCES).join("model.toml");
        let mut command = Command::new(throughline);
        command.arg("mock").arg("--script").arg(script).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child =
            command.stderr(Stdio::null()).spawn().context("`throughline mock` could not be started")?;
        let mut stdout = BufReader::new(child.stdout.take().context("a pipe of its own")?);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let Some((_, address)) = line.trim().rsplit_once("http://") else {
            return Err(fault(format!("`throughline mock` says `{}`", line.trim()), "see what it says"));
        };
        let base_url = format!("http://{address}/v1");
        Ok(Self { child, base_url, _stdout: stdout })
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        // The process may have exited already, which the clients have noticed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Output of a client's script: lines of JSON, and the rest.
pub(crate) struct ClientReport {
    pub(crate) lines: Vec<Value>,
    /// Reason why the output ended early.
    pub(crate) failure: Option<String>,
}

/// Runs all cells of a client against this server.
pub(crate) fn run_client(
    client: &MatrixClient,
    installed: &InstalledClient,
    address: &str,
    key: &str,
    folder: &Path,
) -> Result<ClientReport> {
    let log = folder.join("client.log");
    let errors = fs::File::create(&log).with_context(|| format!("{} cannot be written", log.display()))?;
    let mut command = Command::new(&installed.program);
    command
        .args(&installed.script)
        .args(client.requested_cells())
        .current_dir(folder)
        .env("BASE_URL", format!("http://{address}"))
        .env("KEY", key)
        .env("CLIENT", client.variant)
        .env("PACKAGES", &installed.packages)
        .env("PYTHONPATH", repository::root().join(SOURCES))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors);
    // So that it can be killed with all of its children.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().with_context(|| format!("{} could not be started", client.name))?;
    let stdout = child.stdout.take().context("a pipe of its own")?;
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let mut report = ClientReport { lines: Vec::new(), failure: None };
    loop {
        match lines.recv_timeout(CELL_MAX) {
            // Other output of a library is skipped.
            Ok(line) => report.lines.extend(serde_json::from_str::<Value>(&line)),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                report.failure = Some(format!("hangs: nothing for {} s", CELL_MAX.as_secs()));
                break;
            }
        }
    }
    end_client(&mut child, report.failure.is_some());
    let status = child.wait()?;
    if report.failure.is_none() && !status.success() {
        let log_text = fs::read_to_string(&log).unwrap_or_default();
        let last = log_text.trim().lines().last().unwrap_or_default().to_owned();
        report.failure = Some(format!("ended with {status}: {last}"));
    }
    Ok(report)
}

/// Ends a client that hangs, with all that it has started.
fn end_client(child: &mut Child, hangs: bool) {
    if hangs {
        let group = format!("-{}", child.id());
        // Without such a command, at least the client itself ends.
        let _ = ExternalProgram::new("kill").args(["-KILL", "--", &group]).succeeds();
        let _ = child.kill();
    }
}
