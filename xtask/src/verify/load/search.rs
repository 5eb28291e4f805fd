//! Time to the first page of a search, and the effect of searches on other requests.

use super::client::LoadClient;
use super::texts::{self, encoded};
use super::{LoadResult, percentile};
use crate::verify::serving::ServeProcess;
use anyhow::{Result, bail};
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const FIRST_PAGE_MS_MAX: f64 = 200.0;
const LATER_MS_MAX: f64 = 10.0;
const TIMES: usize = 20;

/// Searches that run and are abandoned at the same time, and when each is.
const ABANDONED_AT_ONCE: usize = 50;
const ABANDONED_AFTER: Duration = Duration::from_millis(50);
/// Requests of others that are measured, each time.
const OTHERS: usize = 600;

/// Measures every kind of search to its first page, and the slowest of all.
pub(crate) fn measure_kinds(serving: &ServeProcess) -> Result<LoadResult> {
    let mut client = LoadClient::new(&serving.address, &serving.key);
    let kinds = [
        ("rare", texts::RARE),
        ("common", texts::COMMON),
        ("absent", texts::ABSENT),
        ("absent, of common trigrams", texts::ABSENT_OF_COMMON),
        ("two letters", "co"),
        ("one letter", "c"),
        ("absent, one character", texts::ABSENT_SHORT),
        ("Chinese", texts::CHINESE),
        ("two words", texts::TWO_WORDS),
    ];
    let (mut shown, mut slowest) = (Vec::new(), 0.0_f64);
    for (name, text) in kinds {
        for (list, path) in [("hits", "/v1/search"), ("conversations", "/v1/conversations")] {
            let path = format!("{path}?q={}", encoded(text));
            let (mut durations_ms, mut found, mut partial) = (Vec::new(), 0, false);
            for _ in 0..TIMES {
                let begun = Instant::now();
                let answer = client.get(&path)?;
                durations_ms.push(begun.elapsed().as_secs_f64() * 1e3);
                if answer.status != 200 {
                    bail!("a search for {name} is answered {}", answer.status);
                }
                let page = answer.json()?;
                found = page["items"].as_array().map_or(0, Vec::len);
                partial = page["partial"] == true;
            }
            let (middle, most) = (percentile(&mut durations_ms, 50.0), percentile(&mut durations_ms, 100.0));
            slowest = slowest.max(most);
            let cut = if partial { ", partial" } else { "" };
            println!("    {list}, {name}: {middle:.1} ms, at most {most:.1} ms ({found}{cut})");
            shown.push(format!("{name} {middle:.0}/{most:.0}{}", if partial { " (partial)" } else { "" }));
        }
    }
    let figure = format!(
        "first page of a search, ms at p50/at most, hits and conversations: {}; slowest {slowest:.0} ms",
        shown.join(", ")
    );
    let fault = (slowest > FIRST_PAGE_MS_MAX).then(|| format!("a first page takes {slowest:.0} ms"));
    Ok(LoadResult { figure, fault })
}

/// Latency of other requests, alone and while searches run and are abandoned.
pub(crate) fn measure_others(serving: &ServeProcess) -> Result<LoadResult> {
    let before = other_requests_p99(serving)?;
    let (is_over, abandoned) = (AtomicBool::new(false), AtomicU64::new(0));
    let texts = [texts::ABSENT_OF_COMMON, texts::COMMON, texts::ABSENT, "co"];
    let during = thread::scope(|scope| {
        for n in 0..ABANDONED_AT_ONCE {
            let (is_over, abandoned) = (&is_over, &abandoned);
            let client = LoadClient::new(&serving.address, &serving.key);
            let list = if n.is_multiple_of(3) { "/v1/conversations" } else { "/v1/search" };
            let path = format!("{list}?q={}", encoded(texts[n % texts.len()]));
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    if client.abandon(&path, ABANDONED_AFTER).is_err() {
                        return;
                    }
                    abandoned.fetch_add(1, Relaxed);
                    // A search that is refused immediately is not repeated at once, since a flood of
                    // connections is not measured here.
                    thread::sleep(ABANDONED_AFTER);
                }
            });
        }
        let during = other_requests_p99(serving);
        is_over.store(true, Relaxed);
        during
    })?;
    let count = abandoned.load(Relaxed);
    let figure = format!(
        "p99 of other requests {before:.1} ms alone, {during:.1} ms while {ABANDONED_AT_ONCE} searches at a time ran and \
         were abandoned ({count} in all)"
    );
    let later = during - before;
    let fault = (later > LATER_MS_MAX).then(|| format!("others wait {later:.1} ms longer"));
    Ok(LoadResult { figure, fault })
}

/// The p99 of requests other than searches, in milliseconds.
fn other_requests_p99(serving: &ServeProcess) -> Result<f64> {
    let mut client = LoadClient::new(&serving.address, &serving.key);
    let first = client.get("/v1/conversations?limit=1")?.json()?;
    let conversation = first["items"][0]["id"].as_str().unwrap_or_default().to_owned();
    let mut durations_ms = Vec::new();
    for n in 0..OTHERS {
        let begun = Instant::now();
        let answer = match n % 4 {
            0 => client.get("/v1/conversations")?,
            1 => client.get(&format!("/v1/turns?conversation_id={conversation}&limit=20"))?,
            2 => client.post("/v1/conversations", &json!({"title": "one more"}))?,
            _ => client.get("/v1/files")?,
        };
        durations_ms.push(begun.elapsed().as_secs_f64() * 1e3);
        if answer.status >= 300 {
            bail!(
                "a request of others is answered {}: {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            );
        }
    }
    Ok(percentile(&mut durations_ms, 99.0))
}
