//! `throughline serve` as it is measured: its configuration, its key, its process.

use super::UPSTREAM_PORT;
use crate::fault::fault;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time limit for a server to start or stop.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Storage of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogPlacement {
    /// The store, on a disk.
    Disk,
    /// The store, on a file system in memory: the same work, without waiting for the disk.
    NoWait,
    /// Memory only, without durability. The difference is the cost of the log.
    Memory,
}

/// One server, stopped or running.
pub(crate) struct BenchServer {
    binary: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
    log: LogPlacement,
    pub(crate) key: String,
}

impl BenchServer {
    /// A server with an empty store; it is started once, so that it has a key, and stopped.
    pub(crate) fn new(binary: &Path, folder: PathBuf, port: u16, log: LogPlacement) -> Result<Self> {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("throughline.toml"), configuration(port))?;
        let mut subject = Self { binary: binary.to_owned(), folder, port, log, key: String::new() };
        let running = subject.start()?;
        let key =
            fs::read_to_string(subject.folder.join("data/admin-token")).context("the server made no key")?;
        running.stop()?;
        subject.key = key.trim().to_owned();
        Ok(subject)
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![("THROUGHLINE_DATA", self.folder.join("data").display().to_string())];
        if self.log == LogPlacement::Memory {
            all.push(("THROUGHLINE_BENCH_LOG", "memory".to_owned()));
        }
        all
    }

    fn serve_arguments(&self) -> [String; 4] {
        let file = self.folder.join("throughline.toml");
        [self.binary.display().to_string(), "serve".into(), "--config".into(), file.display().to_string()]
    }

    /// An entry of `targets.local.json` for the OpenAI-compatible API, which the peers have, too.
    pub(crate) fn target(&self) -> Value {
        let environment: serde_json::Map<String, Value> =
            self.environment().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        json!({
            "cmd": self.serve_arguments(), "env": environment, "port": self.port, "start_n": 200,
            "url": "http://127.0.0.1:{port}/v1/chat/completions", "headers": [self.header()],
            "kinds": ["relay", "turn"], "tool_model": "tool-50-5-5-1-5-bench_noop",
        })
    }

    /// An entry for the native API of the same server.
    pub(crate) fn own_target(&self) -> Value {
        let mut target = self.target();
        target["url"] = "http://127.0.0.1:{port}/v1/turns".into();
        target["body"] = json!({
            "model": "{{model}}", "input": [{"type": "text", "text": "turnid={{turnid}} go"}],
        });
        target
    }

    /// Authorization header of a request.
    pub(crate) fn header(&self) -> String {
        format!("authorization: Bearer {}", self.key)
    }

    /// Starts it on the first processor and waits until it takes turns.
    pub(crate) fn start(&self) -> Result<RunningBenchServer<'_>> {
        let log = fs::File::create(self.folder.join("log"))?;
        let began = Instant::now();
        let child = Command::new("taskset")
            .args(["-c", "0"])
            .args(self.serve_arguments())
            .envs(self.environment())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("taskset could not be started")?;
        let mut running = RunningBenchServer { child, subject: self, ready_after: Duration::ZERO };
        loop {
            if self.get_text("/readyz").is_ok_and(|(status, _)| status == 200) {
                running.ready_after = began.elapsed();
                return Ok(running);
            }
            let has_failed = running.child.try_wait()?.is_some() || began.elapsed() > START_TIMEOUT;
            if has_failed {
                let log = self.folder.join("log").display().to_string();
                return Err(fault("the server does not start", format!("see {log}")));
            }
            sleep(Duration::from_millis(2));
        }
    }

    /// Status and body.
    pub(crate) fn get_text(&self, path: &str) -> Result<(u16, String)> {
        self.request("GET", path, "")
    }

    /// Status and body.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let mut socket = self.open(method, path, body, "close")?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).context("no HTTP")?;
        Ok((status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default()))
    }

    /// A connection with a request on it.
    pub(crate) fn open(&self, method: &str, path: &str, body: &str, connection: &str) -> Result<TcpStream> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_read_timeout(Some(START_TIMEOUT))?;
        let key = if self.key.is_empty() { String::new() } else { self.header() + "\r\n" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\n{key}connection: {connection}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        );
        socket.write_all(request.as_bytes())?;
        Ok(socket)
    }

    /// A counter of `/metrics`.
    pub(crate) fn counter(&self, name: &str) -> Result<f64> {
        let (_, text) = self.get_text("/metrics")?;
        let line = text.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
        value.with_context(|| format!("there is no metric {name}"))
    }
}

/// A process, killed when it is dropped.
pub(crate) struct RunningBenchServer<'a> {
    child: Child,
    subject: &'a BenchServer,
    /// Time from its start until it accepted turns.
    pub(crate) ready_after: Duration,
}

impl RunningBenchServer<'_> {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory, in KiB.
    pub(crate) fn rss_kib(&self) -> Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).context("no VmRSS")
    }

    /// Stops the server with the signal that an operator uses.
    pub(crate) fn stop(mut self) -> Result<()> {
        let pid = self.pid().to_string();
        Command::new("kill").args(["-TERM", &pid]).status()?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > START_TIMEOUT {
                let folder = self.subject.folder.display().to_string();
                return Err(fault("the server does not stop", format!("see {folder}/log")));
            }
            sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for RunningBenchServer<'_> {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Configuration without bounds per key: one key makes all requests here.
fn configuration(port: u16) -> String {
    format!(
        r#"[upstreams.bench]
dialect = "openai-chat"
base_url = "http://127.0.0.1:{UPSTREAM_PORT}/v1"
proxy = "off"

[agents.default]
model = "bench/pace-50-100"
mode = "native"
tool_call = {{ enabled = true, parallel_execution = true }}

[agents.asking]
model = "bench/pace-50-100"
mode = "native"
tool_call = {{ enabled = true, require_confirmation = true }}

[server]
listen = "127.0.0.1:{port}"
drain_ms = 1000

[server.limits]
connections_max = 16000
turns_per_minute_max = 10000000
turns_per_key_max = 10000
streams_per_key_max = 10000
"#
    )
}
