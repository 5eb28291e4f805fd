//! Benefit of starting tools early: whole turns through the library, against a paced model over real HTTP,
//! with the barrier and without, and for comparison with replies that are not streamed. `cargo xtask bench
//! eager` builds, runs and judges it.
//!
//! ```text
//! cargo bench -p throughline --bench eager -- measure [ROUNDS]     one JSON line a scenario and execution
//! ```
//!
//! Time is real, and nearly all of it is waiting: all turns of a round run in parallel.

mod scenario;

use scenario::{Beat, SCENARIOS, Scenario};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use throughline::tools::{Effect, FunctionTool, tool};
use throughline::wire::Dialect;
use throughline::{ApprovalMode, EventKind, StreamingSetting, Throughline, Upstream, UpstreamProxy};
use throughline_engine::{Event, StartRule};
use throughline_testkit::{self as testkit, ModelScript, ReplyPace, ScriptQueue};

/// Deltas a second of the fake model: seconds of arguments and prose are counted in them.
const DELTAS_PER_SECOND: f64 = 100.0;
const FRAGMENT_CHARS: usize = 6;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let rounds = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["measure"] => 3,
        ["measure", rounds] => rounds.parse().unwrap_or(3),
        // Without arguments one round checks that the benchmark runs.
        [] => 1,
        _ => {
            eprintln!("usage: measure [ROUNDS]");
            return ExitCode::FAILURE;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match runtime.map(|runtime| runtime.block_on(measure(rounds))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("no runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Number of tools that run in parallel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Running {
    Serial,
    Parallel,
}

/// Seconds from the beginning of the turn.
#[derive(Clone, Copy)]
struct Times {
    first_start: f64,
    tools_done: f64,
}

async fn measure(rounds: usize) -> Result<(), String> {
    let mut seen: Vec<[Vec<Times>; WAYS.len()]> = SCENARIOS.iter().map(|_| Default::default()).collect();
    for _ in 0..rounds {
        let mut turns = tokio::task::JoinSet::new();
        for (at, scenario) in SCENARIOS.iter().enumerate() {
            for (way, of) in WAYS.into_iter().enumerate() {
                turns.spawn(async move { (at, way, turn(scenario, of).await) });
            }
        }
        while let Some(ended) = turns.join_next().await {
            let (at, way, times) = ended.map_err(|error| error.to_string())?;
            seen[at][way].push(times?);
        }
    }
    for (scenario, ways) in SCENARIOS.iter().zip(&seen) {
        let of = |way: usize, pick: fn(&Times) -> f64| median(ways[way].iter().map(pick).collect());
        println!(
            "{}",
            json!({
                "scenario": scenario.name,
                "serial": [of(0, |t| t.tools_done), of(1, |t| t.tools_done)],
                "parallel": [of(2, |t| t.tools_done), of(3, |t| t.tools_done)],
                "first_start": [of(0, |t| t.first_start), of(1, |t| t.first_start)],
                "whole": [of(4, |t| t.tools_done), of(4, |t| t.first_start)],
            })
        );
    }
    Ok(())
}

type Way = (Running, StartRule, StreamingSetting);

/// Barrier and eager, serial and parallel; at last without streaming, where no tool can be early.
const WAYS: [Way; 5] = [
    (Running::Serial, StartRule::AfterStream, StreamingSetting::On),
    (Running::Serial, StartRule::Eager, StreamingSetting::On),
    (Running::Parallel, StartRule::AfterStream, StreamingSetting::On),
    (Running::Parallel, StartRule::Eager, StreamingSetting::On),
    (Running::Parallel, StartRule::Eager, StreamingSetting::Off),
];

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Runs one turn: the step of the scenario, and a last one that reports the end.
async fn turn(scenario: &Scenario, (running, start, streaming): Way) -> Result<Times, String> {
    let upstream =
        testkit::FakeUpstream::start(ScriptQueue::new([script(scenario), ModelScript::new().say("Done.")]))
            .await
            .map_err(|error| error.to_string())?;
    let base_url = upstream.base_url(testkit::FakeDialect::OpenaiChat);
    let model = Upstream::new("fake", Dialect::OpenaiChat, &base_url).map_err(|error| error.to_string())?;
    let mut builder = Throughline::builder()
        .upstream(model.proxy(UpstreamProxy::Off).streaming(streaming))
        .model("fake")
        .approval(ApprovalMode::AllowAll)
        .start_rule(start)
        .tool(waits("bench.look", Effect::Read))
        .tool(waits("bench.save", Effect::Write))
        .tool(waits("bench.face", Effect::Cosmetic));
    if running == Running::Parallel {
        builder = builder.parallel();
    }
    let app = builder.build().map_err(|error| error.to_string())?;
    let mut turn = app.ask(scenario.name).await.map_err(|error| error.to_string())?;
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    times(scenario, &events)
}

fn times(scenario: &Scenario, events: &[Event]) -> Result<Times, String> {
    let at = |wanted: fn(&EventKind) -> bool, nth: usize| {
        let event = events.iter().filter(|event| wanted(&event.kind)).nth(nth);
        event.map(|event| event.timestamp as f64 / 1_000.0)
    };
    let begun = at(|kind| matches!(kind, EventKind::StreamStart { .. }), 0);
    let first_start = at(|kind| matches!(kind, EventKind::ToolStart { .. }), 0);
    let second_step = at(|kind| matches!(kind, EventKind::StepStart { .. }), 1);
    let calls = events
        .iter()
        .filter(|event| matches!(&event.kind, EventKind::ToolResult(result) if result.error.is_none()));
    let wanted = scenario.beats.iter().filter(|beat| matches!(beat, Beat::Call { .. })).count();
    match (begun, first_start, second_step, calls.count()) {
        (Some(begun), Some(first), Some(second), calls) if calls == wanted => {
            Ok(Times { first_start: first - begun, tools_done: second - begun })
        }
        _ => Err(format!("the turn of `{}` went wrong", scenario.name)),
    }
}

fn waits(name: &str, effect: Effect) -> FunctionTool {
    let run = |args: scenario::Arguments, _| async move {
        tokio::time::sleep(Duration::from_millis(args.ms)).await;
        format!("{} ms", args.ms)
    };
    tool(name, "Takes its time.", run).effect(effect).agent_callable()
}

fn script(scenario: &Scenario) -> ModelScript {
    let pace = ReplyPace {
        tokens_per_second: Some(DELTAS_PER_SECOND),
        chunk_chars: Some(FRAGMENT_CHARS),
        fragment_chars: Some(FRAGMENT_CHARS),
    };
    let mut script = ModelScript::new().with_pace(pace);
    let chars = |seconds: f64| (seconds * DELTAS_PER_SECOND) as usize * FRAGMENT_CHARS;
    for (number, beat) in scenario.beats.iter().enumerate() {
        script = match *beat {
            Beat::Call { tool, arguments_s, takes_s } => {
                let ms = (takes_s * 1_000.0) as u64;
                // The length of the other members counts towards the size.
                let around = json!({"ms": ms, "number": number, "filling": ""}).to_string().len();
                let filling = "x".repeat(chars(arguments_s).saturating_sub(around));
                script.call(tool, json!({"ms": ms, "number": number, "filling": filling}))
            }
            Beat::Prose { seconds } => script.say("prose ".repeat(chars(seconds) / 6)),
            Beat::Silence { seconds } => script.then(testkit::ScriptMove::Pause((seconds * 1_000.0) as u64)),
        };
    }
    script
}
