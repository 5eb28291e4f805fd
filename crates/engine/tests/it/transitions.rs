//! Every input in every phase: what follows, as a table. Transitions are total.

use crate::script::ScriptedTurn;
use throughline_engine::{
    ApprovalDecision, ApprovalId, ApprovalTarget, ArgumentValidation, CallProgress, ClientAnswer,
    ClientStatus, FailureKind, MessageTiming, QueuedMessage, TimerId, ToolAnswer, ToolQuestion, TurnInput,
    TurnOutput, UpstreamFailure,
};
use throughline_wire::{
    CallId, CallOutcome, FinishReason, StepEvent, StreamEnd, ToolName, ToolOutput, UserPart,
};

/// The way to each phase, all with call `t.1` = A and, where there is a second, `t.2` = B.
const PHASES: [(&str, &str); 7] = [
    ("connecting", "tools r:read w:write; parallel"),
    ("streaming", "tools r:read w:write; parallel\nopen A r\nseal A {}\nopen B w\nargs B {"),
    ("backoff", "tools r:read w:write; parallel\nhttp 503"),
    (
        "settling",
        "tools r:read w:write; parallel\nopen A r\nseal A {}\nopen B w\nseal B {}\nfinish tool_calls",
    ),
    (
        "settling, a client's call held",
        "tools page:write:client w:write; approve; serial
         open A page\nslow A\nseal A {}\nopen B w\nseal B {}\nfinish tool_calls\nheld A 60000",
    ),
    (
        "stopping",
        "tools r:read w:write; parallel\nopen A r\nseal A {}\nopen B w\nseal B {}\nfinish tool_calls\ncancel",
    ),
    ("over", "tools r:read w:write; parallel\nfinish stop"),
];

fn inputs() -> Vec<(&'static str, TurnInput)> {
    let a = || CallId::new("t.1");
    let model = |step, attempt, event| TurnInput::Model { step, attempt, event };
    let text = || StepEvent::Text("x".into());
    let done = || CallOutcome::Done(ToolOutput::text("x"));
    let approval = |question, decision| TurnInput::plain_approval(question, decision, "user", None);
    let more = |arguments_hash, arguments| TurnInput::Approval {
        question: ApprovalTarget::One(ApprovalId::new("t.2.a1")),
        decision: ApprovalDecision::Approve,
        by: "user".into(),
        reason: None,
        arguments_hash,
        arguments,
        remember: None,
        stop: false,
    };
    let stopping = |question, decision| TurnInput::Approval {
        question,
        decision,
        by: "user".into(),
        reason: None,
        arguments_hash: None,
        arguments: None,
        remember: None,
        stop: true,
    };
    let redefined = |tool: &str, start| TurnInput::ToolRedefined {
        tool: ToolName::new(tool),
        fingerprint: "f2".into(),
        start,
    };
    let failure = || UpstreamFailure {
        kind: FailureKind::Connect,
        status: None,
        message: String::new(),
        retry_after_ms: None,
    };
    let message = || QueuedMessage {
        id: "s1".into(),
        input: vec![UserPart::Text { text: "and?".into() }],
        when: MessageTiming::NextStep,
    };
    let ask = || ToolQuestion::form("who?", serde_json::json!({"type": "object"}));
    let b1 = || ApprovalId::new("t.2.a1");
    vec![
        ("text", model(1, 1, text())),
        ("text of another attempt", model(1, 9, text())),
        ("text of another step", model(9, 1, text())),
        ("finish", model(1, 1, StepEvent::Finish { reason: FinishReason::Stop, raw: None })),
        ("end", model(1, 1, StepEvent::End(StreamEnd::Complete))),
        ("end cut", model(1, 1, StepEvent::End(StreamEnd::Truncated))),
        ("failure", TurnInput::ModelFailed { step: 1, attempt: 1, failure: failure(), time_left_ms: None }),
        (
            "failure of another attempt",
            TurnInput::ModelFailed { step: 1, attempt: 9, failure: failure(), time_left_ms: None },
        ),
        (
            "check of nobody",
            TurnInput::Validated { call: "no".into(), version: 0, validation: ArgumentValidation::Valid },
        ),
        (
            "check once more",
            TurnInput::Validated { call: a(), version: 0, validation: ArgumentValidation::Valid },
        ),
        ("check of A held", TurnInput::CheckHeld { call: a(), version: 0, until: 60_000 }),
        ("check of nobody held", TurnInput::CheckHeld { call: "no".into(), version: 0, until: 60_000 }),
        ("progress A", TurnInput::ToolProgress { call: a(), attempt: 1, progress: CallProgress::default() }),
        (
            "progress of another start",
            TurnInput::ToolProgress { call: a(), attempt: 9, progress: CallProgress::default() },
        ),
        ("end A", TurnInput::ToolEnded { call: a(), attempt: 1, outcome: done() }),
        ("end of another start", TurnInput::ToolEnded { call: a(), attempt: 9, outcome: done() }),
        ("end of nobody", TurnInput::ToolEnded { call: "no".into(), attempt: 1, outcome: done() }),
        ("approve B", approval(ApprovalTarget::One(b1()), ApprovalDecision::Approve)),
        ("deny B", approval(ApprovalTarget::One(b1()), ApprovalDecision::Deny)),
        ("approve nothing", approval(ApprovalTarget::One("no".into()), ApprovalDecision::Approve)),
        ("deny B and stop", stopping(ApprovalTarget::One(b1()), ApprovalDecision::Deny)),
        ("deny all and stop", stopping(ApprovalTarget::All, ApprovalDecision::Deny)),
        ("approve B and stop", stopping(ApprovalTarget::One(b1()), ApprovalDecision::Approve)),
        ("approve all", approval(ApprovalTarget::All, ApprovalDecision::Approve)),
        ("approve B with other arguments", more(None, Some(serde_json::json!({"n": 1})))),
        ("approve B for arguments that are no more", more(Some("other".into()), None)),
        ("definition of w", redefined("w", None)),
        ("definition of w, start of A", redefined("w", Some((a(), 1)))),
        ("definition of r, start of A", redefined("r", Some((a(), 1)))),
        ("definition of nothing", redefined("no", None)),
        ("say", TurnInput::UserMessage(message())),
        ("take back", TurnInput::RetractMessage { id: message().id }),
        ("A asks", TurnInput::ToolQuestionAsked { call: a(), attempt: 1, question_id: 1, question: ask() }),
        (
            "another start asks",
            TurnInput::ToolQuestionAsked { call: a(), attempt: 9, question_id: 1, question: ask() },
        ),
        (
            "answer to no question",
            TurnInput::ToolQuestionAnswered {
                question: "no".into(),
                answer: ToolAnswer::Decline,
                by: "user".into(),
            },
        ),
        (
            "a client about A",
            TurnInput::ClientAnswered {
                call: a(),
                attempt: None,
                answer: ClientAnswer { status: ClientStatus::Success, output: "x".into(), applied: None },
            },
        ),
        ("cancel", TurnInput::Cancel),
        ("cancel for a reason", TurnInput::CancelWithReason { why: "There is no room.".into() }),
        ("cancel A", TurnInput::CancelCall { call: a() }),
        ("cancel B", TurnInput::CancelCall { call: "t.2".into() }),
        ("cancel nobody", TurnInput::CancelCall { call: "no".into() }),
        ("timer retry", TurnInput::Timer { id: TimerId::Retry { step: 1, attempt: 2 } }),
        ("timer of another retry", TurnInput::Timer { id: TimerId::Retry { step: 1, attempt: 9 } }),
        ("timer approval B", TurnInput::Timer { id: TimerId::Approval(b1()) }),
        ("timer tool A", TurnInput::Timer { id: TimerId::Tool { call: a(), attempt: 1 } }),
        ("timer of another start", TurnInput::Timer { id: TimerId::Tool { call: a(), attempt: 9 } }),
        ("timer grace A", TurnInput::Timer { id: TimerId::CancelGrace { call: a(), attempt: 1 } }),
        ("timer silence", TurnInput::Timer { id: TimerId::ModelSilence { step: 1, attempt: 1 } }),
        (
            "timer silence of another try",
            TurnInput::Timer { id: TimerId::ModelSilence { step: 1, attempt: 9 } },
        ),
        ("timer elsewhere A", TurnInput::Timer { id: TimerId::RemoteCall { call: a(), attempt: 1 } }),
        ("timer held A", TurnInput::Timer { id: TimerId::HeldCheck { call: a(), version: 0 } }),
        ("timer of another check", TurnInput::Timer { id: TimerId::HeldCheck { call: a(), version: 9 } }),
        ("log was slow", TurnInput::LogDelayed { ms: 1_500 }),
    ]
}

/// The effects: events by type, then actions with `!`.
fn follows(script: &str, input: TurnInput) -> String {
    let mut scripted = ScriptedTurn::run(script);
    let mut out = TurnOutput::default();
    // No timer fires immediately.
    let later = if let TurnInput::Timer { .. } = input { 2_000 } else { 0 };
    scripted.turn.apply(input, scripted.now + later, &mut out);
    let mut words: Vec<String> = Vec::new();
    for event in &out.events {
        let json = serde_json::to_value(event).expect("JSON");
        let kind = json["type"].as_str().expect("a type");
        let detail = json["status"].as_str().or(json["reason"].as_str()).or(json["code"].as_str());
        words.push(detail.map_or_else(|| kind.to_owned(), |detail| format!("{kind}:{detail}")));
    }
    for action in &out.actions {
        let name = format!("{action:?}");
        words.push(format!("!{}", name.split([' ', '(']).next().unwrap_or_default()));
    }
    if words.is_empty() { "-".into() } else { words.join(" ") }
}

#[test]
fn every_input_in_every_phase_matches_the_table() {
    let mut table = String::new();
    for (phase, script) in PHASES {
        table.push_str(&format!("{phase}\n"));
        for (name, input) in inputs() {
            table.push_str(&format!("  {name} = {}\n", follows(script, input)));
        }
    }
    let expected = include_str!("../transitions.txt");
    if let Some((line, (is, was))) =
        (1..).zip(table.lines().zip(expected.lines())).find(|(_, (is, was))| is != was)
    {
        panic!("line {line} of transitions.txt\n  is  {is}\n  was {was}\n\nthe whole table:\n{table}");
    }
    assert_eq!(table.lines().count(), expected.lines().count(), "{table}");
}
