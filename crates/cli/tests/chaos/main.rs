//! The server is killed with `kill -9` and started again while turns run and people watch them.
//!
//! In every case each viewer sees each event once and in order, no tool with side effects runs twice, and a
//! call whose outcome is not known is reported as `unknown`. The short forms run with all tests;
//! `THROUGHLINE_CHAOS=long` makes them the proof of `cargo xtask verify --only chaos`.

#![cfg(unix)]

#[path = "../../../store/tests/it/cluster/mod.rs"]
mod cluster;

mod chaos_context;
mod check;
mod ledger;
mod model;
mod server;
mod viewer;

use chaos_context::ChaosContext;
use check::Broken;
use server::{PATIENCE, Place, Server};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// The nine points between complete arguments and the end of a turn.
const PLACES: [&str; 9] = [
    "durable:tool_input",
    "appending:tool_start",
    "durable:tool_start",
    "tool_begins",
    "tool_done",
    "appending:tool_result",
    "durable:tool_result",
    "model_call",
    "appending:stream_end",
];

fn is_long() -> bool {
    std::env::var("THROUGHLINE_CHAOS").is_ok_and(|form| form == "long")
}

fn runtime() -> tokio::runtime::Runtime {
    // Another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn killed_at_each_fail_point_every_turn_completes() {
    let times = if is_long() { 20 } else { 1 };
    runtime().block_on(async {
        let mut world = ChaosContext::new().await;
        let mut deaths = 0;
        for place in PLACES {
            for time in 1..=times {
                // A turn has five calls of tools of four kinds, three steps and one end.
                let passes = match place {
                    "appending:stream_end" => 1,
                    "model_call" => 3,
                    _ => 5,
                };
                let nth = 1 + (time - 1) % passes;
                let server = Server::dying_at(&world, Place { name: place, nth }).await;
                let turn = world.begin_turn().await;
                assert!(server.dies().await, "nothing was killed at {place}:{nth}");
                deaths += 1;
                let server = Server::start(&world).await;
                world.seen_to_its_end(turn).await;
                server.kill().await;
            }
        }
        let told = world.check().unwrap_or_else(|broken| panic!("{broken}"));
        println!("nine places, {times} times each: {deaths} deaths, {told}");
    });
}

#[test]
fn killed_at_random_under_load_no_viewer_loses_an_event() {
    let (kills, at_once) = if is_long() { (200, 50) } else { (4, 8) };
    runtime().block_on(async {
        let world = ChaosContext::new().await;
        let told = random_kills(world, kills, at_once).await.unwrap_or_else(|broken| panic!("{broken}"));
        println!("{kills} kills, {at_once} turns at a time: {told}");
    });
}

#[test]
fn killed_at_random_on_postgresql_no_viewer_loses_an_event() {
    let Some(cluster) = cluster::Cluster::shared() else { return };
    let (kills, at_once) = if is_long() { (40, 20) } else { (3, 4) };
    runtime().block_on(async {
        let world = ChaosContext::keeping_in(Some(&cluster.fresh())).await;
        let told = random_kills(world, kills, at_once).await.unwrap_or_else(|broken| panic!("{broken}"));
        println!("{kills} kills over PostgreSQL, {at_once} turns at a time: {told}");
    });
}

#[test]
fn events_shown_before_they_are_logged_are_detected() {
    let is_shown = |world: &ChaosContext, nth| world.shown_to_all("tool_input") >= nth;
    match killed_without("log_first", "durable:tool_input", is_shown) {
        Ok(told) => panic!("nothing was noticed: {told}"),
        Err(broken) => assert!(matches!(broken, Broken::Events(_)), "this was noticed: {broken}"),
    }
}

#[test]
fn tool_start_without_an_intent_is_detected() {
    // The third call is the first that changes something.
    let is_done = |world: &ChaosContext, nth| world.effects_of_last_turn() >= nth;
    match killed_without("intent_first", "appending:tool_start", is_done) {
        Ok(told) => panic!("nothing was noticed: {told}"),
        Err(broken) => assert!(matches!(broken, Broken::Effects(_)), "this was noticed: {broken}"),
    }
}

/// Runs turns on a server with one rule disabled and a pause at this point, at the first call that reaches it
/// and at the next ones. The server is killed as soon as the forbidden effect has happened.
fn killed_without(
    rule: &str,
    name: &'static str,
    has_happened: impl Fn(&ChaosContext, u32) -> bool,
) -> Result<check::Told, Broken> {
    runtime().block_on(async {
        let mut world = ChaosContext::new().await;
        for nth in 1..=4 {
            let server = Server::standing_at(&world, Place { name, nth }, rule).await;
            let turn = world.begin_turn().await;
            let happens = async {
                while !world.stderr().contains("standing still at") || !has_happened(&world, nth) {
                    sleep(Duration::from_millis(20)).await;
                }
            };
            timeout(PATIENCE, happens).await.unwrap_or_else(|_| panic!("nothing happened at {name}:{nth}"));
            server.kill().await;
            let server = Server::start(&world).await;
            world.seen_to_its_end(turn).await;
            server.kill().await;
        }
        world.check()
    })
}

/// Runs `at_once` turns in parallel, kills the server `kills` times, then follows all turns to their end and
/// checks them.
async fn random_kills(mut world: ChaosContext, kills: u32, at_once: usize) -> Result<check::Told, Broken> {
    let mut random = chaos_context::Random::new(0x5eed);
    let mut server = Server::start(&world).await;
    for kill in 0..kills {
        world.keep_running(at_once).await;
        // The server is killed at any moment, perhaps during its start. The next one is allowed to take over
        // all turns: if all were killed during their start, as on a slow machine, no client would be served.
        if kill % 2 == 1 {
            world.is_served().await;
        }
        // How long it lives is what is drawn here; nothing waits for it.
        sleep(Duration::from_millis(random.between(30, 900))).await;
        server.kill().await;
        world.check_so_far()?;
        server = Server::start(&world).await;
    }
    world.all_seen_to_their_end().await;
    server.kill().await;
    // Only the store can distinguish turns that ended a moment before.
    let server = Server::start(&world).await;
    world.history_is_whole().await?;
    server.kill().await;
    world.check()
}
