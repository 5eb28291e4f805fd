//! Tools that work, fail, panic, hang, flood, answer late or twice, and ask people.

use super::rng::Rng;
use serde_json::json;
use throughline_engine::{Input, Progress, ToolQuestion, Wants};
use throughline_wire::{Arguments, CallId, Outcome, Output, Started};

/// Begins an output that says which start produced it.
const START: &str = "from start ";

/// Which start of its call produced an output, if it says so.
pub(super) fn start_of(output: &str) -> Option<u32> {
    output.strip_prefix(START)?.split([' ', ',']).next()?.parse().ok()
}

/// What a started tool will say: so many milliseconds after its start, and what.
pub(super) fn life(
    rng: &mut Rng,
    call: &CallId,
    attempt: u32,
    arguments: &Arguments,
    timeout_ms: u64,
) -> Vec<(i64, Input)> {
    let ended = |outcome| Input::ToolEnded { call: call.clone(), attempt, outcome };
    let progress = |text: &str| {
        let progress = Progress { output_delta: Some(text.into()), message: None, ..Progress::default() };
        Input::ToolProgress { call: call.clone(), attempt, progress }
    };
    let done = || Outcome::Done(Output::text(format!("{START}{attempt} of {}", arguments.text)));
    let after = rng.wait(200);
    let limit = i64::try_from(timeout_ms).unwrap_or(i64::MAX);
    match rng.below(20) {
        0 => vec![(after, ended(Outcome::Failed { message: "tool failed".into(), partial: None }))],
        1 => vec![(
            after,
            ended(Outcome::Failed { message: "panicked: index out of bounds".into(), partial: None }),
        )],
        // Hangs, and its executor with it.
        2 => Vec::new(),
        // Hangs; the executor stops it.
        3 => vec![(limit, ended(Outcome::TimedOut { limit_ms: timeout_ms, partial: None }))],
        4 => {
            let mut said: Vec<_> = (0..rng.below(60)).map(|_| (after, progress("line\n"))).collect();
            said.push((after, ended(Outcome::Done(Output::text("x".repeat(500))))));
            said
        }
        // Says how it ended twice, differently.
        5 => vec![
            (after, ended(done())),
            (after + rng.wait(100), ended(Outcome::Failed { message: "again".into(), partial: None })),
        ],
        // Goes on talking after its end.
        6 => vec![(after, ended(done())), (after + 1, progress("late"))],
        // Far too late.
        7 => vec![(limit + 60_000, ended(done()))],
        // Nonsense for a tool that was started.
        8 => vec![(after, ended(Outcome::Denied { reason: None }))],
        9 => vec![
            (0, progress("begin ")),
            (after, ended(Outcome::Done(Output::text(rng.below(1_000).to_string())))),
        ],
        _ => vec![(after, ended(done()))],
    }
}

/// What a tool says when it is asked to stop; nothing if it does not care.
pub(super) fn stopped(rng: &mut Rng, call: &CallId, attempt: u32) -> Option<(i64, Input)> {
    let outcome = match rng.below(4) {
        0 => return None,
        1 => Outcome::Done(Output::text(format!("{START}{attempt}, just made it"))),
        _ => Outcome::Cancelled(Started::Yes { ran_ms: 1, partial: Some(Output::text("half")) }),
    };
    // Some take longer than anyone waits.
    Some((rng.wait(1_000), Input::ToolEnded { call: call.clone(), attempt, outcome }))
}

/// What a tool does that asks a person something, sooner or later: it asks, and most wait for the answer.
pub(super) fn asks(rng: &mut Rng, call: &CallId, attempt: u32, question_id: u64) -> Vec<(i64, Input)> {
    let wants = match rng.chance(80) {
        true => Wants::Form { schema: json!({"type": "object"}) },
        false => Wants::Url { url: "https://example.org/".into() },
    };
    let question = ToolQuestion { message: "who?".into(), wants };
    let after = rng.wait(200);
    let mut said = vec![(after, Input::ToolAsks { call: call.clone(), attempt, question_id, question })];
    // Some do not wait.
    if rng.chance(15) {
        said.push((after + rng.wait(500), ended(call, attempt)));
    }
    said
}

/// What it does with the answer: it ends, or hangs.
pub(super) fn told(rng: &mut Rng, call: &CallId, attempt: u32) -> Vec<(i64, Input)> {
    if rng.chance(20) { Vec::new() } else { vec![(rng.wait(200), ended(call, attempt))] }
}

fn ended(call: &CallId, attempt: u32) -> Input {
    let outcome = Outcome::Done(Output::text(format!("{START}{attempt}, after a question")));
    Input::ToolEnded { call: call.clone(), attempt, outcome }
}
