//! Turns, searches, lists and deletions for a long time, and whether the allocated memory stays where it is.

use super::client::LoadClient;
use super::texts::{self, encoded};
use super::{LoadResult, percentile};
use crate::verify::serving::ServeProcess;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const WORKERS: usize = 16;
/// Samples of the allocated memory in all: one a second in an hour. The allocator releases memory within seconds, so fewer
/// samples would mostly be noise.
const SAMPLES: u32 = 3_600;
/// Samples of which the lowest is judged: those of one minute in an hour. Memory that leaks is never released, so it
/// raises the lowest sample. A higher sample only shows what was in use at that moment, which depends on the speed of
/// the machine.
const SAMPLES_PER_FLOOR: usize = 60;
/// Lines of progress in a run.
const REPORTS: u32 = 10;
/// Share of the time in which caches fill.
const WARM_UP: f64 = 0.25;
/// Number of standard errors within which a slope counts as zero.
const ERRORS: f64 = 2.0;
/// Maximum uncertainty of the slope, in MiB per hour: above it a leak could go unnoticed.
const UNCERTAINTY_MIB_MAX: f64 = 5.0;

/// Anonymous resident memory at a moment: what the program has allocated. Pages of its executable, which the
/// system loads and drops as it likes, do not count.
struct MemorySample {
    hours: f64,
    turns: f64,
    mib: f64,
}

/// Works the server for this time.
pub(crate) fn run(serving: &ServeProcess, time: Duration) -> Result<LoadResult> {
    let begun = Instant::now();
    let turns = AtomicU64::new(0);
    let samples = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let turns = &turns;
                scope.spawn(move || run_worker(serving, worker, begun + time, turns))
            })
            .collect();
        let mut samples = Vec::new();
        while begun.elapsed() < time {
            thread::sleep((time / SAMPLES).max(Duration::from_millis(200)));
            samples.push(MemorySample {
                hours: begun.elapsed().as_secs_f64() / 3_600.0,
                turns: turns.load(Relaxed) as f64,
                mib: status_mib(serving.pid(), "RssAnon")?,
            });
            if samples.len().is_multiple_of((SAMPLES / REPORTS) as usize)
                && let Some(last) = samples.last()
            {
                println!("    {:.0} min: {:.0} turns, {:.1} MiB", last.hours * 60.0, last.turns, last.mib);
            }
        }
        for worker in workers {
            match worker.join() {
                Ok(done) => done?,
                Err(_) => bail!("a worker of the load panicked"),
            }
        }
        Ok(samples)
    })?;
    Ok(judge_samples(&samples, time))
}

/// Runs the typical requests of people and programs in turn.
fn run_worker(serving: &ServeProcess, worker: usize, until: Instant, turns: &AtomicU64) -> Result<()> {
    let mut client = LoadClient::new(&serving.address, &serving.key);
    let searches = [texts::RARE, texts::COMMON, texts::ABSENT, texts::CHINESE, texts::TWO_WORDS, "co"];
    for round in 0_usize.. {
        if Instant::now() >= until {
            return Ok(());
        }
        let question = format!("A common question of worker {worker}, round {round}");
        let turn = client.post(
            "/v1/chat/completions",
            &json!({"model": "demo", "messages": [{"role": "user", "content": question}], "stream": round.is_multiple_of(2)}),
        )?;
        expect(&turn, &[200])?;
        turns.fetch_add(1, Relaxed);
        let path = match round % 4 {
            0 => format!("/v1/search?q={}", encoded(searches[round / 4 % searches.len()])),
            1 => format!("/v1/conversations?q={}", encoded(searches[round / 4 % searches.len()])),
            2 => "/v1/turns?limit=20".to_owned(),
            _ => "/v1/conversations".to_owned(),
        };
        // The number of waiting searches is limited, and these are more than people would start.
        expect(&client.get(&path)?, &[200, 503])?;
        if round.is_multiple_of(10) {
            let made = client.post("/v1/conversations", &json!({"title": question}))?;
            expect(&made, &[201])?;
            let id = made.json()?["id"].as_str().unwrap_or_default().to_owned();
            expect(&client.delete(&format!("/v1/conversations/{id}"))?, &[204])?;
        }
    }
    Ok(())
}

fn expect(answer: &super::client::LoadAnswer, statuses: &[u16]) -> Result<()> {
    if statuses.contains(&answer.status) {
        return Ok(());
    }
    bail!("the load is answered {}: {}", answer.status, String::from_utf8_lossy(&answer.body))
}

/// Resident set of a process in MiB, on Linux; not measured elsewhere.
pub(crate) fn resident_mib(pid: u32) -> Result<f64> {
    status_mib(pid, "VmRSS")
}

/// A figure of `/proc/PID/status`, in MiB.
fn status_mib(pid: u32, name: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .context("memory is read from /proc, which Linux has")?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib: Option<f64> = value.and_then(|value| value.trim().trim_end_matches(" kB").parse().ok());
    Ok(kib.with_context(|| format!("/proc/{pid}/status has no {name}"))? / 1_024.0)
}

fn judge_samples(samples: &[MemorySample], time: Duration) -> LoadResult {
    let warm = time.as_secs_f64() / 3_600.0 * WARM_UP;
    let warm_samples: Vec<&MemorySample> = samples.iter().filter(|sample| sample.hours >= warm).collect();
    let floors: Vec<&MemorySample> = warm_samples
        .chunks(SAMPLES_PER_FLOOR)
        .filter_map(|minute| minute.iter().copied().min_by(|a, b| a.mib.total_cmp(&b.mib)))
        .collect();
    let by_hour = fit_line(floors.iter().map(|sample| (sample.hours, sample.mib)));
    let by_turn = fit_line(floors.iter().map(|sample| (sample.turns, sample.mib)));
    let mut sizes: Vec<f64> = warm_samples.iter().map(|sample| sample.mib).collect();
    let (least, most) = (percentile(&mut sizes, 0.0), percentile(&mut sizes, 100.0));
    let turns = samples.last().map_or(0.0, |last| last.turns);
    let figure = format!(
        "mixed load for {:.0} min: {turns:.0} turns; allocated memory after {:.0} min of warm-up {least:.1} to {most:.1} MiB, slope of \
         its lowest sample in each minute {:+.2} ± {:.2} MiB an hour, {:+.4} KiB a turn",
        time.as_secs_f64() / 60.0,
        warm * 60.0,
        by_hour.slope,
        by_hour.error * ERRORS,
        by_turn.slope * 1_024.0,
    );
    let uncertainty = by_hour.error * ERRORS;
    let fault = if by_hour.slope > uncertainty {
        Some("the allocated memory rises".to_owned())
    } else if uncertainty > UNCERTAINTY_MIB_MAX {
        Some(format!(
            "inconclusive: the slope of the allocated memory is known to ± {uncertainty:.2} MiB an hour only, and may be to {UNCERTAINTY_MIB_MAX}"
        ))
    } else {
        None
    };
    LoadResult { figure, fault }
}

/// A line through points.
struct Regression {
    slope: f64,
    /// Standard error of the slope, for points that depend on those before them.
    error: f64,
}

/// Least squares. What one sample is above the line, the next one is, too: that makes the error larger, by the correlation
/// of neighbors.
fn fit_line(points: impl Iterator<Item = (f64, f64)>) -> Regression {
    let points: Vec<(f64, f64)> = points.collect();
    let count = points.len() as f64;
    if points.len() < 4 {
        return Regression { slope: 0.0, error: f64::INFINITY };
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let square: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if square == 0.0 {
        return Regression { slope: 0.0, error: f64::INFINITY };
    }
    let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / square;
    let residuals: Vec<f64> = points.iter().map(|point| point.1 - y - slope * (point.0 - x)).collect();
    let sum: f64 = residuals.iter().map(|residuals| residuals * residuals).sum();
    let neighbors: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let correlation = if sum == 0.0 { 0.0 } else { (neighbors / sum).clamp(0.0, 0.99) };
    let inflation = ((1.0 + correlation) / (1.0 - correlation)).sqrt();
    Regression { slope, error: (sum / (count - 2.0) / square).sqrt() * inflation }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(mib: impl Fn(u32) -> f64) -> Vec<MemorySample> {
        (0..SAMPLES)
            .map(|n| MemorySample {
                hours: f64::from(n) / f64::from(SAMPLES),
                turns: f64::from(n) * 10.0,
                mib: mib(n),
            })
            .collect()
    }

    #[test]
    fn rising_memory_is_distinguished_from_level_memory() {
        // Requests in progress: up and down by a rule.
        let noise = |n: u32| f64::from(n * 7_919 % 1_301) / 100.0;
        let minute = |n: u32| f64::from(n / 60);
        let hour = Duration::from_secs(3_600);
        assert_eq!(judge_samples(&samples(|n| 80.0 + noise(n)), hour).fault, None);
        let rises = judge_samples(&samples(|n| 80.0 + noise(n) + minute(n) / 10.0), hour);
        assert_eq!(rises.fault.as_deref(), Some("the allocated memory rises"), "{}", rises.figure);
        // More work at once, on a machine that became slower, is no leak.
        let busier = judge_samples(&samples(|n| 80.0 + noise(n) * (1.0 + minute(n) / 20.0)), hour);
        assert_eq!(busier.fault, None, "{}", busier.figure);
        // Floors with too much variation give no result.
        let wild = judge_samples(&samples(|n| 80.0 + 40.0 * f64::from(n / 600 % 2)), hour);
        assert!(wild.fault.is_some_and(|fault| fault.starts_with("inconclusive")), "{}", wild.figure);
        // What only rises while caches fill is level.
        assert_eq!(judge_samples(&samples(|n| 80.0 + noise(n) + minute(n).min(14.0)), hour).fault, None);
    }
}
