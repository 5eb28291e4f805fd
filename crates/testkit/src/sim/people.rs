//! Simulated people: they answer late, twice, in contradiction, for all questions together, or never; they
//! stop single calls; and they send more messages while the turn runs, twice, too many, or retract them.

use super::consent::REFUSED_Q;
use super::rng::SimRng;
use serde_json::json;
use throughline_engine::{
    ApprovalDecision, ApprovalId, ApprovalScope, ApprovalTarget, ArgumentConstraints, ArgumentTest,
    MessageTiming, QueuedMessage, RememberRequest, ToolAnswer, TurnInput, UserMessageId,
};
use throughline_wire::{CallId, UserPart};

/// Reactions to an approval request, each with its delay in milliseconds.
pub(super) fn on_approval_request(
    rng: &mut SimRng,
    people_rng: &mut SimRng,
    approval: &ApprovalId,
    arguments_hash: &str,
) -> Vec<(i64, TurnInput)> {
    let inputs = answers(rng, approval);
    inputs
        .into_iter()
        .flat_map(|(after, input)| careful_answer(people_rng, after, input, arguments_hash))
        .collect()
}

/// Careful answers: they change arguments, name what was shown, and are to be remembered.
fn careful_answer(
    rng: &mut SimRng,
    after: i64,
    input: TurnInput,
    arguments_hash: &str,
) -> Vec<(i64, TurnInput)> {
    let mut careful = input.clone();
    let TurnInput::Approval {
        question, decision, arguments_hash: seen_hash, arguments, remember, stop, ..
    } = &mut careful
    else {
        return vec![(after, input)];
    };
    if rng.chance(25) {
        let constraints = match rng.below(3) {
            0 => ArgumentConstraints::Any,
            1 => ArgumentConstraints::Exact,
            _ => ArgumentConstraints::Arguments([("q".to_owned(), ArgumentTest::Equals("1".into()))].into()),
        };
        let scope = *rng
            .pick(&[
                ApprovalScope::Call,
                ApprovalScope::Turn,
                ApprovalScope::Conversation,
                ApprovalScope::Always,
            ])
            .unwrap_or(&ApprovalScope::Turn);
        *remember = Some(RememberRequest { scope, constraints });
    }
    let one = matches!(question, ApprovalTarget::One(_));
    match rng.below(10) {
        // It was about something else when it was looked at.
        0 if one => *seen_hash = Some("0".repeat(64)),
        1 | 2 if one => *seen_hash = Some(arguments_hash.to_owned()),
        3 | 4 if *decision == ApprovalDecision::Approve => *arguments = Some(json!({"q": "changed"})),
        // No tool takes these.
        5 if *decision == ApprovalDecision::Approve => *arguments = Some(json!({"q": REFUSED_Q})),
        // Enough: not this call, and nothing after it.
        6 | 7 if *decision == ApprovalDecision::Deny => {
            *stop = true;
            return vec![(after, careful)];
        }
        _ => return vec![(after, careful)],
    }
    // A refused answer is given again, plainly.
    if rng.chance(60) {
        vec![(after, careful), (after + rng.wait(300), input)]
    } else {
        vec![(after, careful)]
    }
}

fn answers(rng: &mut SimRng, approval: &ApprovalId) -> Vec<(i64, TurnInput)> {
    let answer = |question, decision| {
        let reason = (decision == ApprovalDecision::Deny).then(|| "no".to_owned());
        TurnInput::plain_approval(question, decision, "person", reason)
    };
    let one = || ApprovalTarget::One(approval.clone());
    let after = rng.wait(1_500);
    match rng.below(10) {
        // No answer: the question expires.
        0 => Vec::new(),
        1 | 2 => vec![(after, answer(one(), ApprovalDecision::Deny))],
        // Two people, two minds.
        3 => vec![
            (after, answer(one(), ApprovalDecision::Approve)),
            (after + rng.wait(200), answer(one(), ApprovalDecision::Deny)),
        ],
        4 => vec![(after, answer(ApprovalTarget::All, ApprovalDecision::Approve))],
        5 => vec![(after, answer(ApprovalTarget::One("no such question".into()), ApprovalDecision::Approve))],
        _ => vec![(after, answer(one(), ApprovalDecision::Approve))],
    }
}

/// Sometimes a call that is seen is stopped.
pub(super) fn on_call_seen(rng: &mut SimRng, call: &CallId) -> Vec<(i64, TurnInput)> {
    let mut inputs = Vec::new();
    if rng.chance(6) {
        let after = rng.wait(500);
        inputs.push((after, TurnInput::CancelCall { call: call.clone() }));
        if rng.chance(30) {
            inputs.push((after + rng.wait(100), TurnInput::CancelCall { call: call.clone() }));
        }
    }
    inputs
}

/// The user's messages in mid-turn, each with its delay in milliseconds after the start.
pub(super) fn mid_turn_messages(rng: &mut SimRng) -> Vec<(i64, TurnInput)> {
    let mut inputs = Vec::new();
    if !rng.chance(60) {
        return inputs;
    }
    for n in 0..1 + rng.below(4) {
        let id = UserMessageId::new(format!("said{n}"));
        let input = vec![UserPart::Text { text: format!("steer {n}") }];
        let when = if rng.chance(70) { MessageTiming::NextStep } else { MessageTiming::AfterTurn };
        let message = QueuedMessage { id: id.clone(), input, when };
        let at = rng.wait(1_000);
        inputs.push((at, TurnInput::UserMessage(message.clone())));
        match rng.below(10) {
            // Sent twice: the answer to the first was lost.
            0 => inputs.push((at + rng.wait(300), TurnInput::UserMessage(message))),
            1 | 2 => inputs.push((at + rng.wait(300), TurnInput::RetractMessage { id })),
            _ => {}
        }
    }
    inputs
}

/// Reactions of a person to the question of a running tool.
pub(super) fn on_elicitation(rng: &mut SimRng, question: &ApprovalId) -> Vec<(i64, TurnInput)> {
    let reply_input = |answer| {
        let (question, by) = (question.clone(), "person".to_owned());
        TurnInput::ToolQuestionAnswered { question, answer, by }
    };
    let accept = || reply_input(ToolAnswer::Accept { content: Some(json!({"name": "Ada"})) });
    let after = rng.wait(3_000);
    match rng.below(10) {
        // No answer: it expires as declined.
        0 | 1 => Vec::new(),
        2 => vec![(after, reply_input(ToolAnswer::Decline))],
        // Two people, two minds.
        3 | 4 => vec![(after, accept()), (after + rng.wait(200), reply_input(ToolAnswer::Decline))],
        // A client that knows approvals only; some people stop the whole turn.
        5 => {
            let mut denial = TurnInput::plain_approval(
                ApprovalTarget::One(question.clone()),
                ApprovalDecision::Deny,
                "person",
                None,
            );
            if let TurnInput::Approval { stop, .. } = &mut denial {
                *stop = after % 3 == 0;
            }
            vec![(after, denial)]
        }
        6 => vec![
            (
                after,
                TurnInput::plain_approval(ApprovalTarget::All, ApprovalDecision::Approve, "person", None),
            ),
            (after + 1, accept()),
        ],
        _ => vec![(after, accept())],
    }
}
