//! Tools that work, fail, panic, hang, flood, answer late or twice, and ask people.

use super::rng::SimRng;
use serde_json::json;
use throughline_engine::{CallProgress, ElicitationMode, ToolQuestion, TurnInput};
use throughline_wire::{CallArguments, CallId, CallOutcome, StartState, ToolOutput};

/// Prefix of an output that names its start.
const START: &str = "from start ";

/// Number of the start that produced an output, if the output has one.
pub(super) fn start_number_in(output: &str) -> Option<u32> {
    output.strip_prefix(START)?.split([' ', ',']).next()?.parse().ok()
}

/// Inputs from a started tool, each with its delay in milliseconds.
pub(super) fn run_inputs(
    rng: &mut SimRng,
    call: &CallId,
    attempt: u32,
    arguments: &CallArguments,
    timeout_ms: u64,
) -> Vec<(i64, TurnInput)> {
    let ended = |outcome| TurnInput::ToolEnded { call: call.clone(), attempt, outcome };
    let progress = |text: &str| {
        let progress =
            CallProgress { output_delta: Some(text.into()), message: None, ..CallProgress::default() };
        TurnInput::ToolProgress { call: call.clone(), attempt, progress }
    };
    let done = || CallOutcome::Done(ToolOutput::text(format!("{START}{attempt} of {}", arguments.text)));
    let after = rng.wait(200);
    let limit = i64::try_from(timeout_ms).unwrap_or(i64::MAX);
    match rng.below(20) {
        0 => vec![(after, ended(CallOutcome::Failed { message: "tool failed".into(), partial: None }))],
        1 => vec![(
            after,
            ended(CallOutcome::Failed { message: "panicked: index out of bounds".into(), partial: None }),
        )],
        // Hangs, and its executor with it.
        2 => Vec::new(),
        // Hangs; the executor stops it.
        3 => vec![(limit, ended(CallOutcome::TimedOut { limit_ms: timeout_ms, partial: None }))],
        4 => {
            let mut inputs: Vec<_> = (0..rng.below(60)).map(|_| (after, progress("line\n"))).collect();
            inputs.push((after, ended(CallOutcome::Done(ToolOutput::text("x".repeat(500))))));
            inputs
        }
        // Reports its end twice, differently.
        5 => vec![
            (after, ended(done())),
            (after + rng.wait(100), ended(CallOutcome::Failed { message: "again".into(), partial: None })),
        ],
        // Reports continue after the end.
        6 => vec![(after, ended(done())), (after + 1, progress("late"))],
        // Far too late.
        7 => vec![(limit + 60_000, ended(done()))],
        // Nonsense for a tool that was started.
        8 => vec![(after, ended(CallOutcome::Denied { reason: None }))],
        9 => vec![
            (0, progress("begin ")),
            (after, ended(CallOutcome::Done(ToolOutput::text(rng.below(1_000).to_string())))),
        ],
        _ => vec![(after, ended(done()))],
    }
}

/// The end of a tool that is decided already.
pub(super) fn ends(
    rng: &mut SimRng,
    call: &CallId,
    attempt: u32,
    outcome: CallOutcome,
) -> Vec<(i64, TurnInput)> {
    vec![(rng.wait(200), TurnInput::ToolEnded { call: call.clone(), attempt, outcome })]
}

/// A tool's reaction to being cancelled; `None` if it ignores that.
pub(super) fn on_cancel(rng: &mut SimRng, call: &CallId, attempt: u32) -> Option<(i64, TurnInput)> {
    let outcome = match rng.below(4) {
        0 => return None,
        1 => CallOutcome::Done(ToolOutput::text(format!("{START}{attempt}, just made it"))),
        _ => CallOutcome::Cancelled(StartState::Yes { ran_ms: 1, partial: Some(ToolOutput::text("half")) }),
    };
    // Some take longer than anyone waits.
    Some((rng.wait(1_000), TurnInput::ToolEnded { call: call.clone(), attempt, outcome }))
}

/// Inputs from a tool that asks a person something, sooner or later: it asks, and most wait for the answer.
pub(super) fn question_inputs(
    rng: &mut SimRng,
    call: &CallId,
    attempt: u32,
    question_id: u64,
) -> Vec<(i64, TurnInput)> {
    let mode = if rng.chance(80) {
        ElicitationMode::Form { schema: json!({"type": "object"}) }
    } else {
        ElicitationMode::Url { url: "https://example.org/".into() }
    };
    let question = ToolQuestion { message: "who?".into(), mode };
    let after = rng.wait(200);
    let mut inputs =
        vec![(after, TurnInput::ToolQuestionAsked { call: call.clone(), attempt, question_id, question })];
    // Some do not wait.
    if rng.chance(15) {
        inputs.push((after + rng.wait(500), ended(call, attempt)));
    }
    inputs
}

/// A tool's inputs after the answer: it ends, or hangs.
pub(super) fn on_answer(rng: &mut SimRng, call: &CallId, attempt: u32) -> Vec<(i64, TurnInput)> {
    if rng.chance(20) { Vec::new() } else { vec![(rng.wait(200), ended(call, attempt))] }
}

fn ended(call: &CallId, attempt: u32) -> TurnInput {
    let outcome = CallOutcome::Done(ToolOutput::text(format!("{START}{attempt}, after a question")));
    TurnInput::ToolEnded { call: call.clone(), attempt, outcome }
}
