//! People: they answer late, twice, in contradiction, for all at once, or never; and they stop single calls.

use super::rng::Rng;
use throughline_engine::{ApprovalId, Decision, Input, Question};
use throughline_wire::CallId;

/// What happens when a question is seen: so many milliseconds later, and what.
pub(super) fn asked(rng: &mut Rng, approval: &ApprovalId) -> Vec<(i64, Input)> {
    let answer = |question, decision| Input::Approval {
        question,
        decision,
        by: "person".into(),
        reason: (decision == Decision::Deny).then(|| "no".to_owned()),
    };
    let one = || Question::One(approval.clone());
    let after = rng.wait(1_500);
    match rng.below(10) {
        // Nobody looks: it expires.
        0 => Vec::new(),
        1 | 2 => vec![(after, answer(one(), Decision::Deny))],
        // Two people, two minds.
        3 => vec![
            (after, answer(one(), Decision::Approve)),
            (after + rng.wait(200), answer(one(), Decision::Deny)),
        ],
        4 => vec![(after, answer(Question::All, Decision::Approve))],
        5 => vec![(after, answer(Question::One("no such question".into()), Decision::Approve))],
        _ => vec![(after, answer(one(), Decision::Approve))],
    }
}

/// Sometimes a call that is seen is stopped.
pub(super) fn saw_call(rng: &mut Rng, call: &CallId) -> Vec<(i64, Input)> {
    let mut said = Vec::new();
    if rng.chance(6) {
        let after = rng.wait(500);
        said.push((after, Input::CancelCall { call: call.clone() }));
        if rng.chance(30) {
            said.push((after + rng.wait(100), Input::CancelCall { call: call.clone() }));
        }
    }
    said
}
