//! People: they answer late, twice, in contradiction, for all at once, or never; they stop single calls; and they say
//! more while the turn runs, twice, too much, or take it back.

use super::consent::REFUSED_Q;
use super::rng::Rng;
use serde_json::json;
use throughline_engine::{
    ApprovalId, ArgumentTest, Constraints, Decision, Input, Question, QueuedMessage, Remember, Scope,
    ToolAnswer, UserMessageId, When,
};
use throughline_wire::{CallId, UserPart};

/// What happens when a question is seen: so many milliseconds later, and what.
pub(super) fn asked(
    rng: &mut Rng,
    care: &mut Rng,
    approval: &ApprovalId,
    arguments_hash: &str,
) -> Vec<(i64, Input)> {
    let said = answers(rng, approval);
    said.into_iter().flat_map(|(after, input)| with_care(care, after, input, arguments_hash)).collect()
}

/// Some look closer: they change arguments, say what they looked at, and want their answer kept.
fn with_care(rng: &mut Rng, after: i64, input: Input, arguments_hash: &str) -> Vec<(i64, Input)> {
    let mut careful = input.clone();
    let Input::Approval { question, decision, arguments_hash: looked_at, arguments, remember, .. } =
        &mut careful
    else {
        return vec![(after, input)];
    };
    if rng.chance(25) {
        let constraints = match rng.below(3) {
            0 => Constraints::Any,
            1 => Constraints::Exact,
            _ => Constraints::Arguments([("q".to_owned(), ArgumentTest::Equals("1".into()))].into()),
        };
        let scope = *rng
            .pick(&[Scope::Call, Scope::Turn, Scope::Conversation, Scope::Always])
            .unwrap_or(&Scope::Turn);
        *remember = Some(Remember { scope, constraints });
    }
    let one = matches!(question, Question::One(_));
    match rng.below(10) {
        // It was about something else when it was looked at.
        0 if one => *looked_at = Some("0".repeat(64)),
        1 | 2 if one => *looked_at = Some(arguments_hash.to_owned()),
        3 | 4 if *decision == Decision::Approve => *arguments = Some(json!({"q": "changed"})),
        // No tool takes these.
        5 if *decision == Decision::Approve => *arguments = Some(json!({"q": REFUSED_Q})),
        _ => return vec![(after, careful)],
    }
    // What was not taken is said again, plainly.
    match rng.chance(60) {
        true => vec![(after, careful), (after + rng.wait(300), input)],
        false => vec![(after, careful)],
    }
}

fn answers(rng: &mut Rng, approval: &ApprovalId) -> Vec<(i64, Input)> {
    let answer = |question, decision| {
        let reason = (decision == Decision::Deny).then(|| "no".to_owned());
        Input::answer(question, decision, "person", reason)
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

/// What the user says in mid-turn: so many milliseconds after its start, and what.
pub(super) fn says(rng: &mut Rng) -> Vec<(i64, Input)> {
    let mut said = Vec::new();
    if !rng.chance(60) {
        return said;
    }
    for n in 0..1 + rng.below(4) {
        let id = UserMessageId::new(format!("said{n}"));
        let input = vec![UserPart::Text { text: format!("steer {n}") }];
        let when = if rng.chance(70) { When::NextStep } else { When::AfterTurn };
        let message = QueuedMessage { id: id.clone(), input, when };
        let at = rng.wait(1_000);
        said.push((at, Input::UserMessage(message.clone())));
        match rng.below(10) {
            // Sent twice: the answer to the first was lost.
            0 => said.push((at + rng.wait(300), Input::UserMessage(message))),
            1 | 2 => said.push((at + rng.wait(300), Input::TakeBack { id })),
            _ => {}
        }
    }
    said
}

/// What happens when a person sees that a running tool asks something.
pub(super) fn asked_by_tool(rng: &mut Rng, question: &ApprovalId) -> Vec<(i64, Input)> {
    let say = |answer| {
        let (question, by) = (question.clone(), "person".to_owned());
        Input::ToolQuestionAnswered { question, answer, by }
    };
    let accept = || say(ToolAnswer::Accept { content: Some(json!({"name": "Ada"})) });
    let after = rng.wait(3_000);
    match rng.below(10) {
        // Nobody looks: it expires as declined.
        0 | 1 => Vec::new(),
        2 => vec![(after, say(ToolAnswer::Decline))],
        // Two people, two minds.
        3 | 4 => vec![(after, accept()), (after + rng.wait(200), say(ToolAnswer::Decline))],
        // Somebody who knows approvals only.
        5 => vec![(after, Input::answer(Question::One(question.clone()), Decision::Deny, "person", None))],
        6 => vec![
            (after, Input::answer(Question::All, Decision::Approve, "person", None)),
            (after + 1, accept()),
        ],
        _ => vec![(after, accept())],
    }
}
