//! Measurements that `scripts/part2.py` does not make: eager starts under our tools' names, fsyncs, memory, restarts.

use super::UPSTREAM_PORT;
use super::setup::BenchSetup;
use super::subject::{BenchServer, RunningBenchServer};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Number of streams and turns.
pub(crate) struct LoadSizes {
    pub(crate) idle_streams: usize,
    pub(crate) active_streams: usize,
    pub(crate) stored_turns: usize,
}

/// The model server of the bench, on the second processor, killed when it is dropped.
pub(crate) struct BenchUpstream(Child);

impl BenchUpstream {
    pub(crate) fn start(setup: &BenchSetup) -> Result<Self> {
        let child = Command::new("taskset")
            .args(["-c", "1"])
            .arg(setup.program("upstream"))
            .arg(format!("127.0.0.1:{UPSTREAM_PORT}"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let upstream = Self(child);
        let started_at = Instant::now();
        while TcpStream::connect(("127.0.0.1", UPSTREAM_PORT)).is_err() {
            if started_at.elapsed() > Duration::from_secs(10) {
                bail!("the bench's model server does not start");
            }
            sleep(Duration::from_millis(5));
        }
        Ok(upstream)
    }
}

impl Drop for BenchUpstream {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the load generator once, on the second processor.
fn load(
    setup: &BenchSetup,
    subject: &BenchServer,
    running: &RunningBenchServer<'_>,
    model: &str,
    more: &[(&str, usize)],
) -> Result<Value> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(setup.program("load")).args(["--model", model]);
    command.args(["--url", &format!("http://127.0.0.1:{}/v1/chat/completions", subject.port)]);
    command.args(["--upstream", &format!("http://127.0.0.1:{UPSTREAM_PORT}")]);
    command.args(["--header", &subject.header(), "--pid", &running.pid().to_string()]);
    for (name, value) in more {
        command.args([format!("--{name}"), value.to_string()]);
    }
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Value = serde_json::from_str(text.trim()).context("the load generator failed")?;
    match figures["fails"].as_u64() {
        Some(0) => Ok(figures),
        _ => bail!("of {model} {} failed: {}", figures["fails"], figures["err"]),
    }
}

/// Runs all measurements; rows have the form of those of `scripts/part2.py`.
pub(crate) fn measure_all(
    setup: &BenchSetup,
    subject: &BenchServer,
    sizes: &LoadSizes,
) -> Result<Vec<Value>> {
    let _upstream = BenchUpstream::start(setup)?;
    let mut rows = Vec::new();
    let mut push_row = |scenario: &str, mut figures: Value| {
        figures["target"] = "throughline".into();
        figures["scen"] = scenario.into();
        println!("  {}", row_text(scenario, &figures));
        rows.push(figures);
    };
    let running = subject.start()?;
    push_row("cold", json!({ "rss_kib": running.rss_kib()?, "ready_ms": ms(running.ready_after) }));
    load(setup, subject, &running, "pace-0-3", &[("turns", 40)])?;
    push_row("fsyncs", fsyncs(setup, subject, &running)?);
    for (scenario, model, optimum_ms) in [
        ("s4.par", "tool-50-10-40-3-5-bench_sleep1s", 1000.0),
        ("s4.3s1s1s", "tool-50-10-40-3-5-bench_sleep3s+bench_sleep1s+bench_sleep1s", 1320.0),
        ("s4.tail", "tool-50-10-40-3-5-bench_sleep1s-50", 0.0),
    ] {
        let mut figures = load(setup, subject, &running, model, &[("turns", 2)])?;
        figures["optimum_ms"] = optimum_ms.into();
        push_row(scenario, figures);
    }
    let (before, n) = (running.rss_kib()?, sizes.active_streams);
    let many = [("n", n), ("ramp-ms", 3000), ("expect", 150)];
    let mut active = load(setup, subject, &running, "pace-20-150", &many)?;
    let peak = active["target_rss_mib"][1].as_f64().unwrap_or(f64::NAN) * 1024.0;
    active["kib_a_stream"] = ((peak - before) / n as f64).into();
    push_row("active", active);
    running.stop()?;
    // What the streams before have freed would be taken again, and nothing would seem to be needed.
    let running = subject.start()?;
    push_row("idle", idle(subject, &running, sizes.idle_streams)?);
    running.stop()?;
    push_row("restart", restart(setup, subject, sizes.stored_turns)?);
    Ok(rows)
}

/// Number of fsyncs per turn, and the duration of one on the store's disk.
fn fsyncs(setup: &BenchSetup, subject: &BenchServer, running: &RunningBenchServer<'_>) -> Result<Value> {
    const TURNS: usize = 100;
    let (fsyncs, commits) = ("throughline_store_fsyncs_total", "throughline_store_commits_total");
    let before = [subject.counter(fsyncs)?, subject.counter(commits)?];
    load(setup, subject, running, "pace-0-3", &[("turns", TURNS)])?;
    let after = [subject.counter(fsyncs)?, subject.counter(commits)?];
    let a_turn = |at: usize| (after[at] - before[at]) / TURNS as f64;
    Ok(
        json!({ "fsyncs_a_turn": a_turn(0), "commits_a_turn": a_turn(1), "fsync_ms": fsync_ms(&subject.folder)? }),
    )
}

/// Median time of an fsync after a small write, in milliseconds.
fn fsync_ms(folder: &Path) -> Result<f64> {
    let path = folder.join("fsync");
    let mut file = fs::File::create(&path)?;
    let mut times = Vec::new();
    for _ in 0..101 {
        file.write_all(&[0; 4096])?;
        let started_at = Instant::now();
        file.sync_data()?;
        times.push(ms(started_at.elapsed()));
    }
    fs::remove_file(path)?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Measures idle streams: viewers of a turn with an open question.
fn idle(subject: &BenchServer, running: &RunningBenchServer<'_>, n: usize) -> Result<Value> {
    let body = json!({
        "agent": "asking", "model": "tool-0-1-1-1-1-bench_noop", "input": [{"type": "text", "text": "go"}],
    });
    let (status, answer) = subject.request("POST", "/v1/turns", &body.to_string())?;
    let answer: Value = serde_json::from_str(&answer).with_context(|| format!("{status}: {answer}"))?;
    let turn = answer["turn_id"].as_str().with_context(|| format!("no turn in {answer}"))?;
    let before = running.rss_kib()?;
    let mut streams = Vec::with_capacity(n);
    for _ in 0..n {
        let path = format!("/v1/turns/{turn}/events?after=0");
        let mut stream = subject.open("GET", &path, "", "keep-alive")?;
        // The first bytes are there: this viewer is one.
        let mut first = [0; 12];
        stream.read_exact(&mut first)?;
        if first != *b"HTTP/1.1 200" {
            bail!("stream {} of {n} was refused: {}", streams.len() + 1, String::from_utf8_lossy(&first));
        }
        streams.push(stream);
    }
    let kib = (running.rss_kib()? - before) / n as f64;
    Ok(json!({ "streams": n, "kib_a_stream": kib }))
}

/// Measures a restart after a kill, until the server accepts turns, with `turns` turns in the store.
fn restart(setup: &BenchSetup, subject: &BenchServer, turns: usize) -> Result<Value> {
    let running = subject.start()?;
    const AT_ONCE: usize = 50;
    load(setup, subject, &running, "pace-0-3", &[("n", AT_ONCE), ("turns", turns / AT_ONCE)])?;
    // Kills it.
    drop(running);
    let running = subject.start()?;
    let figures =
        json!({ "turns": turns, "ready_ms": ms(running.ready_after), "rss_kib": running.rss_kib()? });
    running.stop()?;
    Ok(figures)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn row_text(scenario: &str, figures: &Value) -> String {
    let of_interest = [
        "rss_kib",
        "ready_ms",
        "fsyncs_a_turn",
        "commits_a_turn",
        "fsync_ms",
        "kib_a_stream",
        "turns",
        "streams",
        "optimum_ms",
    ];
    let mut text = format!("throughline {scenario}:");
    for name in of_interest {
        if let Some(value) = figures[name].as_f64() {
            text += &format!(" {name}={value:.2}");
        }
    }
    if let Some(between) = figures["turn"]["between_calls_us_p50"].as_f64().filter(|between| *between > 0.0) {
        text += &format!(" between calls {:.2} ms", between / 1e3);
    }
    text
}
