//! Crowds of viewers on the real server: a thousand that reconnect together, a hundred that never read.
//!
//! These measurements need the real process: its memory, the kernel's buffers for it, and the delay of other
//! viewers' events. The short forms run with all tests and judge no figure; `THROUGHLINE_CROWD=long` makes
//! them the proof of `cargo xtask verify --only viewers`.

#![cfg(target_os = "linux")]

mod lazy;
mod measure;
mod model;
mod server;
mod viewer;

use futures_util::future::join_all;
use lazy::Lazy;
use measure::{Memory, per_cent, round_to};
use server::{PATIENCE, Server};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;
use tokio::time::{Instant, sleep, timeout};
use viewer::{By, Saw};

fn is_long() -> bool {
    std::env::var("THROUGHLINE_CROWD").is_ok_and(|form| form == "long")
}

/// Two tests in parallel would measure each other.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn runtime() -> tokio::runtime::Runtime {
    // Another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Duration of a turn by its own clock, in milliseconds.
fn lasted(saw: &Saw) -> i64 {
    let (first, last) = (saw.times.first().unwrap(), saw.times.last().unwrap());
    last - first
}

#[test]
fn simultaneous_reconnects_lose_no_event() {
    let (crowd, events, per_second) = if is_long() { (1_000, 200, 20) } else { (60, 90, 30) };
    runtime().block_on(async {
        let _alone = ONE_AT_A_TIME.lock().await;
        // A client may reconnect before the server has detected that its former connection is closed.
        let server = Server::start(&format!("streams_per_key_max = {}\n", 3 * crowd)).await;
        let run = format!("run {events} {per_second} 20");
        let turn = server.turn(&run).await;
        let alone = lasted(&viewer::watch(&server, &turn, By::Sse, 0, u64::MAX).await);

        let turn = server.turn(&run).await;
        let together = Arc::new(Barrier::new(crowd));
        let places: Vec<u64> = vec![events / 4, events / 2, u64::MAX];
        let watching = (0..crowd).map(|number| {
            let (server, turn) = (server.clone(), turn.clone());
            let (together, places) = (together.clone(), places.clone());
            tokio::spawn(async move {
                let by = if number % 3 == 2 { By::WebSocket } else { By::Sse };
                let (mut saw, mut back) = (Saw::default(), Vec::new());
                for place in places {
                    let asked = Instant::now();
                    let more = viewer::watch(&server, &turn, by, saw.last(), place).await;
                    if saw.last() > 0 {
                        back.push(more.first_at.expect("something comes").duration_since(asked));
                    }
                    saw.append(more);
                    together.wait().await;
                }
                (saw, back)
            })
        });
        let watching: Vec<_> = watching.collect();
        let (mut numbers, mut back) = (0, Vec::new());
        let mut whole: Option<Saw> = None;
        for watching in watching {
            let (saw, came_back) = timeout(2 * PATIENCE, watching).await.expect("all come to the end").unwrap();
            assert!(saw.is_in_order(), "each event once and in order: {:?}", saw.seqs);
            assert!(saw.ended, "up to the end");
            let first = whole.get_or_insert_with(|| saw.clone());
            assert_eq!((saw.last(), &saw.text), (first.last(), &first.text), "all of them the same");
            numbers += saw.seqs.len();
            back.extend(came_back.into_iter().map(|time| time.as_secs_f64() * 1_000.0));
        }
        let whole = whole.expect("somebody watched");
        let slowed = lasted(&whole) as f64 / alone as f64;

        // One more than there may be, once those before have left their seats.
        server.until_nobody_views().await;
        let turn = server.turn("run 100000 10 20").await;
        let held: Vec<_> = join_all((0..3 * crowd).map(|_| viewer::open(&server, &turn, 0))).await;
        assert!(held.iter().all(|answer| answer.status() == 200), "as many as there may be");
        let refused = join_all((0..20).map(|_| viewer::open(&server, &turn, 0))).await;
        let told = refused.iter().all(|answer| answer.status() == 429 && answer.headers().contains_key("retry-after"));
        assert!(told, "one too many is told when to try again");
        drop(held);
        server.cancel(&turn).await;
        server.kill().await;

        let back = per_cent(&mut back);
        println!(
            "storm: {crowd} viewers came back at once, twice: {numbers} events seen, 0 lost, doubled or out of order; first \
             event again after {} ms (p50), {} ms (p99); the turn took {} times as long as alone",
            round_to(back.p50, 0),
            round_to(back.p99, 0),
            round_to(slowed, 2)
        );
        if is_long() {
            assert!(slowed < 1.1, "the turn is slowed: {slowed}");
        }
    });
}

/// Result of one round.
#[derive(Default)]
struct Round {
    latencies_ms: Vec<f64>,
    memory: Memory,
    cut_after: Vec<(By, Duration)>,
}

/// Runs a turn with `lazies` viewers that never read, and then another one with viewers that read.
async fn round(server: &Server, lazies: usize, beat: &str, burst: &str) -> Round {
    let noisy = server.turn(burst).await;
    let by = |number: usize| if number.is_multiple_of(2) { By::Sse } else { By::WebSocket };
    let opened: Vec<Lazy> = join_all((0..lazies).map(|number| Lazy::open(server, &noisy, by(number)))).await;
    let cuts = tokio::spawn(join_all(opened.into_iter().map(Lazy::until_cut)));
    let whole = viewer::watch(server, &noisy, By::Sse, 0, u64::MAX).await;
    let others = if is_long() { 20 } else { 3 };
    let turn = server.turn(beat).await;
    let watching: Vec<_> = (0..others)
        .map(|number| {
            let (server, turn, by) = (server.clone(), turn.clone(), by(number));
            tokio::spawn(async move { viewer::watch(&server, &turn, by, 0, u64::MAX).await })
        })
        .collect();
    let mut round = Round::default();
    while watching.iter().any(|one| !one.is_finished()) {
        round.memory = round.memory.or_more(Memory::of(server.pid()));
        sleep(Duration::from_millis(100)).await;
    }
    let mut text: Option<Saw> = None;
    for watching in watching {
        let saw = watching.await.unwrap();
        assert!(saw.ended && saw.is_in_order(), "the others miss nothing: {:?}", saw.seqs);
        let text = &text.get_or_insert_with(|| saw.clone()).text;
        assert!(saw.text == *text, "{}\nis not\n{text}", saw.text);
        round.latencies_ms.extend(saw.latencies_us.iter().map(|us| *us as f64 / 1_000.0));
    }
    for (lazy, after) in timeout(PATIENCE, cuts).await.expect("all are cut").unwrap() {
        round.cut_after.push((lazy.by, after));
        // It continues from its position, and has the whole text in the end.
        let mut saw = lazy.taken().await;
        assert!(!saw.ended, "it cannot have seen everything");
        saw.append(viewer::watch(server, &noisy, lazy.by, saw.last(), u64::MAX).await);
        assert!(saw.ended && saw.seqs.is_sorted_by(|one, next| one < next), "each once and in order");
        assert!(
            saw.text == whole.text,
            "by {:?}: {} characters of {}",
            lazy.by,
            saw.text.len(),
            whole.text.len()
        );
    }
    round
}

#[test]
fn stalled_viewers_use_little_memory_and_lose_no_event() {
    // Deltas of the burst: more than the kernel takes, and less than `viewer_backlog_bytes_max`.
    let (rounds, lazies, beats, stall_ms) =
        if is_long() { (3, 100, 600, 10_000) } else { (1, 6, 100, 1_000) };
    runtime().block_on(async {
        let _alone = ONE_AT_A_TIME.lock().await;
        let limits = format!("viewer_stall_ms_max = {stall_ms}\nstreams_per_key_max = 1000\n");
        let (mut without, mut with) = (Vec::new(), Vec::new());
        let (beat, burst) = (format!("run {beats} 50 20"), "run 2400 0 400".to_owned());
        for _ in 0..rounds {
            // Memory that was freed would hide what is taken.
            for (lazies, rounds) in [(0, &mut without), (lazies, &mut with)] {
                let server = Server::start(&limits).await;
                rounds.push(round(&server, lazies, &beat, &burst).await);
                server.kill().await;
            }
        }
        let sorted = |of: &mut dyn FnMut(&mut Round) -> f64, rounds: &mut [Round]| {
            let mut values: Vec<f64> = rounds.iter_mut().map(of).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let median = |of: &mut dyn FnMut(&mut Round) -> f64, rounds: &mut [Round]| {
            let values = sorted(of, rounds);
            values[values.len() / 2]
        };
        // The calmest round of each: the others include the load of other programs.
        let mut p99 = |round: &mut Round| per_cent(&mut round.latencies_ms).p99;
        let (p99_without, p99_with) = (sorted(&mut p99, &mut without)[0], sorted(&mut p99, &mut with)[0]);
        let each = |total: f64| total / lazies as f64 / 1_024.0;
        let mut own = |round: &mut Round| round.memory.process as f64;
        let own = each(median(&mut own, &mut with) - median(&mut own, &mut without));
        let mut kernel = |round: &mut Round| round.memory.sockets as f64;
        let kernel = each(median(&mut kernel, &mut with) - median(&mut kernel, &mut without));
        let cuts: Vec<f64> =
            with.iter().flat_map(|round| &round.cut_after).map(|(_, after)| after.as_secs_f64()).collect();
        let (first, last) = (cuts.iter().copied().fold(f64::MAX, f64::min), cuts.iter().copied().fold(0.0, f64::max));
        println!(
            "never reading: {lazies} viewers, {} KiB of the process and {} KiB of the kernel each (both ends of the \
             connection); cut after {} to {} s and all went on; p99 of others {} ms without them, {} ms with them ({}x)",
            round_to(own.max(0.0), 0),
            round_to(kernel.max(0.0), 0),
            round_to(first, 1),
            round_to(last, 1),
            round_to(p99_without, 1),
            round_to(p99_with, 1),
            round_to(p99_with / p99_without, 2)
        );
        let stall = stall_ms as f64 / 1_000.0;
        if is_long() {
            assert!(first > stall * 0.5 && last < stall + 5.0, "cut after {first} to {last} s");
            assert!(own + kernel < 512.0, "{own} KiB and {kernel} KiB each");
            // A millisecond is what the clock of a busy machine is worth.
            assert!(p99_with < p99_without * 1.2 + 1.0, "{p99_with} ms instead of {p99_without} ms");
        }
    });
}
