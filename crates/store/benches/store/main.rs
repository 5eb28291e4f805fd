//! The cost of an event in the log, next to raw inserts. `cargo xtask bench store` builds, runs and judges it.
//!
//! ```text
//! cargo bench -p throughline-store --features postgres --bench store -- measure [--quick]     one JSON line a figure
//! ```
//!
//! Raw inserts write 200-byte rows into an append-only table, a fixed number per transaction; the store
//! appends 200-byte records through `dyn Log`, from tasks as a driver does. Processor time is of the whole
//! process: producers, the writer thread and wake-ups are in it; that of PostgreSQL's own processes is not.
//! Every answer is compared with what was written.

mod clock;
#[cfg(feature = "postgres")]
#[path = "../../tests/it/cluster/mod.rs"]
mod cluster;
mod loads;
mod raw;

use loads::At;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let effort = match words[..] {
        ["measure"] => Effort { events: 20_000, seconds: 5.0, turns_ended: 10_000 },
        ["measure", "--quick"] => Effort { events: 4_000, seconds: 1.5, turns_ended: 1_000 },
        // `cargo bench` and `cargo test --benches` without words: that it runs and is right.
        [] => Effort { events: 200, seconds: 0.2, turns_ended: 20 },
        _ => {
            eprintln!("usage: measure [--quick]");
            return ExitCode::FAILURE;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.map_err(anyhow::Error::from).and_then(|runtime| run(&runtime, &effort)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Amount of work.
struct Effort {
    /// For a raw figure at one event a commit; larger batches do more.
    events: usize,
    /// For a paced load.
    seconds: f64,
    /// In the store that is opened again.
    turns_ended: usize,
}

fn run(runtime: &tokio::runtime::Runtime, effort: &Effort) -> anyhow::Result<()> {
    for (full, batch) in [(false, 1), (false, 64), (false, 1024), (true, 64)] {
        // A commit that waits for the disk costs milliseconds: a hundred of them say enough.
        let events = if full { batch * 100 } else { (effort.events * batch.min(10)).next_multiple_of(batch) };
        let events = events.min(effort.events * 10).next_multiple_of(batch);
        // By turns, so that a busy moment of the machine meets both.
        let mut rounds = Vec::new();
        for _ in 0..3 {
            let rusqlite = raw::rusqlite(events, batch, full)?;
            let sqlx = runtime.block_on(raw::sqlx(events, batch, full))?;
            rounds.push((rusqlite, sqlx));
        }
        let rusqlite = median(rounds.iter().map(|round| round.0));
        let sqlx = median(rounds.iter().map(|round| round.1));
        println!(r#"{{"raw":true,"batch":{batch},"full":{full},"rusqlite":{rusqlite:.2},"sqlx":{sqlx:.2}}}"#);
    }
    loads_at(runtime, effort, "sqlite", || At::File)?;
    #[cfg(feature = "postgres")]
    if let Some(cluster) = cluster::Cluster::start_durable() {
        loads_at(runtime, effort, "postgres", || At::Database(cluster.fresh()))?;
    }
    let opened = runtime.block_on(loads::open_again(effort.turns_ended, 100))?;
    println!(
        r#"{{"open":true,"turns_ended":{},"open_ms":{:.1},"clean_ms":{:.1},"bytes":{}}}"#,
        effort.turns_ended, opened.after_kill_ms, opened.after_close_ms, opened.bytes
    );
    let tails = runtime.block_on(loads::tails(1_000, 200))?;
    println!(
        r#"{{"tails":1000,"append_alone_ms":{:.3},"append_watched_ms":{:.3},"cpu_us_a_delivery":{:.2}}}"#,
        tails.alone_ms, tails.watched_ms, tails.cpu_us
    );
    Ok(())
}

/// Turns that append, paced and as fast as they are answered, each load in a separate store.
fn loads_at(
    runtime: &tokio::runtime::Runtime,
    effort: &Effort,
    store: &str,
    fresh: impl Fn() -> At,
) -> anyhow::Result<()> {
    let told = |load: &str, figures: loads::Load, asked: String| {
        println!(
            r#"{{"store":"{store}","load":"{load}","events":{},"cpu_us":{:.2},"p50_ms":{:.3},"p99_ms":{:.3},"commits":{},"fsyncs":{},"per_second":{:.0}{asked}}}"#,
            figures.events,
            figures.cpu_us,
            figures.p50_ms,
            figures.p99_ms,
            figures.commits,
            figures.fsyncs,
            figures.per_second,
        );
    };
    for (turns, per_second) in [(1, 50.0), (100, 50.0), (1_000, 30.0)] {
        let load = runtime.block_on(loads::paced(&fresh(), turns, per_second, effort.seconds))?;
        let asked = format!(r#","asked_per_second":{:.0}"#, turns as f64 * per_second);
        told(&format!("{turns} turns x {per_second}/s"), load, asked);
    }
    for batch in [1, 8] {
        let flood = runtime.block_on(loads::flood(&fresh(), 1_000, batch, effort.seconds))?;
        told(&format!("flood, 1000 turns, {batch} an append"), flood, String::new());
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
