//! Clients that run tools: they answer, answer twice or differently, late, for a start that is over, or never.

use super::rng::SimRng;
use serde_json::{Value, json};
use throughline_engine::{ClientAnswer, ClientStatus, TurnInput};
use throughline_wire::CallId;

/// Prefix of an output that names the answer.
const ANSWER: &str = "client answer ";

/// Number of the answer that produced an output, if the output has one.
pub(super) fn answer_number_in(output: &str) -> Option<u64> {
    output.strip_prefix(ANSWER)?.split(['\n', ' ']).next()?.parse().ok()
}

/// Number of this answer.
pub(super) fn answer_number(answer: &ClientAnswer) -> Option<u64> {
    answer.output.as_str().and_then(answer_number_in)
}

/// Answers of a client that is asked to run a call, each with its delay in milliseconds. `number` is the
/// number of its first answer.
pub(super) fn answers_to_offer(
    rng: &mut SimRng,
    call: &CallId,
    attempt: u32,
    limit_ms: i64,
    number: u64,
) -> Vec<(i64, TurnInput)> {
    let client_answer = |nth: u64, status, attempt| {
        let output = Value::String(format!("{ANSWER}{}", number + nth));
        let answer = ClientAnswer { status, output, applied: (nth == 0).then_some(true) };
        TurnInput::ClientAnswered { call: call.clone(), attempt, answer }
    };
    let after = rng.wait(300);
    let good = |nth| client_answer(nth, ClientStatus::Success, Some(attempt));
    match rng.below(10) {
        // Closed, asleep, or without a network.
        0 => Vec::new(),
        // Two pages of one user, or an answer that was sent again.
        1 | 2 => vec![
            (after, good(0)),
            (after + rng.wait(200), client_answer(1, ClientStatus::Error, Some(attempt))),
        ],
        3 => vec![(limit_ms + rng.wait(2_000), good(0))],
        4 => vec![(after, client_answer(0, ClientStatus::Success, Some(attempt + 1))), (after + 1, good(1))],
        5 => vec![(after, client_answer(0, ClientStatus::Error, None))],
        6 => {
            let answer = ClientAnswer { status: ClientStatus::Success, output: json!(null), applied: None };
            vec![
                (after, TurnInput::ClientAnswered { call: "no such call".into(), attempt: None, answer }),
                (after, good(0)),
            ]
        }
        _ => vec![(after, good(0))],
    }
}
