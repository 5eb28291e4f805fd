//! A store of 100,000 turns under `throughline serve`: every kind of search, other requests while searches run and are
//! abandoned, and mixed load for an hour with the allocated memory watched.

pub(super) mod client;
mod mixed;
mod search;
mod texts;

use super::ProofOutcome;
use super::serving::ServeProcess;
use crate::program;
use anyhow::{Context, Result, bail};
use client::LoadClient;
pub(super) use mixed::resident_mib;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Configuration without limits that the load would reach.
const CONFIGURATION: &str = "\
[server]
limits = { turns_per_minute_max = 1000000, turns_per_key_max = 1000000, streams_per_key_max = 1000000, connections_max = 100000 }
";

/// Turns that are imported as one conversation.
const TURNS_PER_IMPORT: u64 = 500;

/// Size and duration of a load.
struct LoadScale {
    turns: u64,
    long: u64,
    minutes: f64,
    /// The command that is measured.
    program: PathBuf,
    /// URL of an empty database of PostgreSQL; absent for SQLite.
    database: Option<String>,
}

impl LoadScale {
    fn of_environment() -> Result<Self> {
        let number = |name: &str, default: f64| -> Result<f64> {
            match std::env::var(name) {
                Ok(text) => text.parse().with_context(|| format!("{name} is no number: {text}")),
                Err(_) => Ok(default),
            }
        };
        let turns = number("THROUGHLINE_LOAD_TURNS", 100_000.0)? as u64;
        Ok(Self {
            turns: turns.max(100),
            long: number("THROUGHLINE_LOAD_LONG", turns as f64 * 0.06)? as u64,
            minutes: number("THROUGHLINE_LOAD_MINUTES", 60.0)?,
            database: std::env::var("THROUGHLINE_LOAD_DATABASE").ok(),
            program: program::release()?,
        })
    }
}

/// Runs all measurements. Violations are reported at the end.
pub(crate) fn load() -> Result<ProofOutcome> {
    let scale = LoadScale::of_environment()?;
    let folder = program::target()?.join("load");
    let store = scale.database.as_deref().map(|url| format!("[store]\nurl = {url:?}\n"));
    let configuration = format!("{CONFIGURATION}{}", store.unwrap_or_default());
    let serving = ServeProcess::start(&scale.program, &folder, &configuration)?;
    let mut figures = vec![import(&serving, &scale)?];
    if scale.database.is_some() {
        figures.insert(0, "in PostgreSQL".to_owned());
    }
    let mut faults = Vec::new();
    let mut record = |measured: LoadResult| {
        println!("    {}", measured.figure);
        faults.extend(measured.fault);
        figures.push(measured.figure);
    };
    record(search::measure_kinds(&serving)?);
    record(search::measure_others(&serving)?);
    record(mixed::run(&serving, Duration::from_secs_f64(scale.minutes * 60.0))?);
    let figure = figures.join("; ");
    if faults.is_empty() { Ok(ProofOutcome::Holds(figure)) } else { bail!("{}: {figure}", faults.join(", ")) }
}

/// Observations, and failures among them.
struct LoadResult {
    figure: String,
    fault: Option<String>,
}

fn import(serving: &ServeProcess, scale: &LoadScale) -> Result<String> {
    let started_at = Instant::now();
    let mut client = LoadClient::new(&serving.address, &serving.key);
    let long_every = (scale.turns / scale.long.max(1)).max(1);
    let mut done = 0;
    while done < scale.turns {
        let end_turn = (done + TURNS_PER_IMPORT).min(scale.turns);
        let answer = client
            .post("/v1/conversations/import", &texts::messages(done..end_turn, scale.turns, long_every))?;
        if answer.status != 201 {
            bail!("an import is answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
        done = end_turn;
        if done.is_multiple_of(TURNS_PER_IMPORT * 20) {
            println!("    {done} turns imported in {:.0} s", started_at.elapsed().as_secs_f64());
        }
    }
    let elapsed_s = started_at.elapsed().as_secs_f64();
    Ok(format!(
        "{done} turns ({} long ones) imported in {elapsed_s:.0} s, {:.0} a second",
        scale.long,
        done as f64 / elapsed_s
    ))
}

/// Percentile of the values, which are sorted in place.
fn percentile(values: &mut [f64], hundredths: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * hundredths / 100.0).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}
