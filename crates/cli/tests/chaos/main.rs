//! The server is killed with `kill -9` and started again while turns run and people watch them. R: S2, S3, R3
//!
//! Whatever happens, each viewer sees each event once and in order, no tool that changes something runs twice, and a call
//! whose end nobody knows is called `unknown`. The short forms run with all tests; `THROUGHLINE_CHAOS=long` makes them the
//! proof of `cargo xtask verify --only chaos`.

#![cfg(unix)]

#[path = "../../../store/tests/cluster/mod.rs"]
mod cluster;

mod chaos_context;
mod check;
mod ledger;
mod model;
mod server;
mod viewer;

use chaos_context::ChaosContext;
use check::Broken;
use server::{Place, Server};
use std::time::Duration;

/// The nine places between "arguments complete" and the end of a turn.
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

// R: S2, S3
#[test]
fn killed_at_each_of_nine_places_the_message_goes_on() {
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
                let server = Server::start(&world, Some(Place { name: place, nth }), None).await;
                let turn = world.begin_turn().await;
                assert!(server.dies().await, "nothing was killed at {place}:{nth}");
                deaths += 1;
                let server = Server::start(&world, None, None).await;
                world.seen_to_its_end(turn).await;
                server.kill().await;
            }
        }
        let told = world.check().unwrap_or_else(|broken| panic!("{broken}"));
        println!("nine places, {times} times each: {deaths} deaths, {told}");
    });
}

// R: S2, S3
#[test]
fn killed_at_random_under_load_no_viewer_loses_an_event() {
    let (kills, at_once) = if is_long() { (200, 50) } else { (4, 8) };
    runtime().block_on(async {
        let world = ChaosContext::new().await;
        let told = random_kills(world, kills, at_once).await.unwrap_or_else(|broken| panic!("{broken}"));
        println!("{kills} kills, {at_once} turns at a time: {told}");
    });
}

// R: S1, S2, S3
#[test]
fn killed_at_random_with_turns_in_postgresql_no_viewer_loses_an_event() {
    let Some(cluster) = cluster::Cluster::shared() else { return };
    let (kills, at_once) = if is_long() { (40, 20) } else { (3, 4) };
    runtime().block_on(async {
        let world = ChaosContext::keeping_in(Some(&cluster.fresh())).await;
        let told = random_kills(world, kills, at_once).await.unwrap_or_else(|broken| panic!("{broken}"));
        println!("{kills} kills over PostgreSQL, {at_once} turns at a time: {told}");
    });
}

// R: S2
#[test]
fn the_test_notices_that_events_are_shown_before_they_are_logged() {
    runtime().block_on(async {
        match killed_without("log_first", "durable:tool_input").await {
            Ok(told) => panic!("nothing was noticed: {told}"),
            Err(broken) => assert!(matches!(broken, Broken::Events(_)), "this was noticed: {broken}"),
        }
    });
}

// R: S3
#[test]
fn the_test_notices_that_tools_start_without_an_intent() {
    runtime().block_on(async {
        // Which of them changes something depends on which is faster; one of these does.
        match killed_without("intent_first", "appending:tool_start").await {
            Ok(told) => panic!("nothing was noticed: {told}"),
            Err(broken) => assert!(matches!(broken, Broken::Effects(_)), "this was noticed: {broken}"),
        }
    });
}

/// Turns under a server that leaves out a rule and dies at this place: at the first call that comes by, and at the next
/// ones.
async fn killed_without(rule: &str, name: &'static str) -> Result<check::Told, Broken> {
    let mut world = ChaosContext::new().await;
    for nth in 1..=4 {
        let place = Place { name, nth };
        let server = Server::start(&world, Some(place), Some(rule)).await;
        let turn = world.begin_turn().await;
        assert!(server.dies().await, "nothing was killed at {place:?}");
        let server = Server::start(&world, None, None).await;
        world.seen_to_its_end(turn).await;
        server.kill().await;
    }
    world.check()
}

/// Turns run `at_once`, the server is killed so often, then everything is seen to its end and checked.
async fn random_kills(mut world: ChaosContext, kills: u32, at_once: usize) -> Result<check::Told, Broken> {
    let mut random = chaos_context::Random::new(0x5eed);
    let mut server = Server::start(&world, None, None).await;
    for _ in 0..kills {
        world.keep_running(at_once).await;
        // How long a server lives is what is drawn here; nothing waits for it.
        tokio::time::sleep(Duration::from_millis(random.between(30, 900))).await;
        server.kill().await;
        world.check_so_far()?;
        server = Server::start(&world, None, None).await;
    }
    world.all_seen_to_their_end().await;
    server.kill().await;
    // Turns that ended a moment before are told apart by nobody but the store.
    let server = Server::start(&world, None, None).await;
    world.history_is_whole().await?;
    server.kill().await;
    world.check()
}
