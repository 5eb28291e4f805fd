//! A turn whose server died: it is restored from its log, and taken over.

use crate::script::{self, ScriptedTurn};
use throughline_wire::{CallOutcome, Message};

/// Restores from the log so far and takes over.
fn take_over(
    scripted: &ScriptedTurn,
    setup: &str,
) -> (throughline_engine::Turn, throughline_engine::TurnOutput) {
    let mut turn = throughline_engine::Turn::restore(
        script::setup(setup),
        script::start(),
        &scripted.log,
        &scripted.provider_states,
    );
    let mut out = throughline_engine::TurnOutput::default();
    turn.resume(2, scripted.now + 1_000, &mut out);
    (turn, out)
}

#[test]
fn interrupted_write_is_unknown_and_is_not_rerun() {
    let setup = "tools w:write r:read; parallel; approve; continue";
    let scripted = ScriptedTurn::run(&format!(
        "{setup}\nopen A w\nseal A {{}}\nopen B r\nseal B {{}}\nfinish tool_calls"
    ));
    let (_, out) = take_over(&scripted, setup);
    let actions: Vec<String> = out.actions.iter().map(|action| format!("{action:?}")).collect();
    let starts: Vec<&String> = actions.iter().filter(|action| action.starts_with("StartTool")).collect();
    assert_eq!(starts.len(), 1, "{actions:#?}");
    assert!(
        starts[0].contains("t.2") && starts[0].contains("attempt: 2"),
        "only the read runs again: {starts:?}"
    );
    let reported = out.events.iter().find_map(|event| match &event.kind {
        throughline_engine::EventKind::ToolResult(result) => Some(result.outcome()),
        _ => None,
    });
    assert_eq!(reported, Some(CallOutcome::unknown()));
}

#[test]
fn interrupted_reply_is_discarded_and_requested_again() {
    let setup = "tools w:write; continue";
    let scripted = ScriptedTurn::run(&format!("{setup}\nthink hm\ntext so far\nopen A w\nargs A {{\"half"));
    let (turn, out) = take_over(&scripted, setup);
    assert!(!turn.is_over());
    let request = out.actions.iter().find_map(|action| match action {
        throughline_engine::TurnAction::CallModel { request, step: 2, .. } => Some(request),
        _ => None,
    });
    let messages = &request.expect("the next step").messages;
    assert!(matches!(messages[..], [Message::User(_)]), "as if it had not been said: {messages:?}");
    let mut log = scripted.log.clone();
    log.extend(out.events);
    let message = throughline_engine::fold::AssistantMessage::from_events(&log);
    assert_eq!(message.text(), "");
    let call = message.calls().next().expect("its card stays");
    assert_eq!(call.status, Some(throughline_engine::CallStatus::NotStarted));
}

#[test]
fn turn_is_interrupted_at_the_fourth_takeover() {
    let setup = "tools w:write; continue";
    let scripted = ScriptedTurn::run(&format!("{setup}\ntext so far"));
    let mut log = scripted.log.clone();
    for time in 1..=4 {
        let mut turn = throughline_engine::Turn::restore(
            script::setup(setup),
            script::start(),
            &log,
            &scripted.provider_states,
        );
        let mut out = throughline_engine::TurnOutput::default();
        turn.resume(1 + time, scripted.now + 1_000, &mut out);
        assert_eq!(turn.is_over(), time == 4, "after {time}");
        log.extend(out.events);
    }
    let status = throughline_engine::fold::AssistantMessage::from_events(&log).status;
    assert_eq!(status, Some(throughline_engine::TurnStatus::Interrupted));
}

#[test]
fn taken_over_turn_without_continue_is_interrupted() {
    let setup = "tools w:write; approve";
    let scripted = ScriptedTurn::run(&format!("{setup}\nopen A w\nseal A {{}}\nfinish tool_calls"));
    let (turn, out) = take_over(&scripted, setup);
    assert!(turn.is_over());
    let last = out.events.last().expect("an end");
    assert_eq!(
        last.kind,
        throughline_engine::EventKind::stream_end(throughline_engine::TurnStatus::Interrupted)
    );
}

#[test]
fn pending_approval_survives_a_takeover() {
    let setup = "tools w:write; continue";
    let scripted = ScriptedTurn::run(&format!("{setup}\nopen A w\nseal A {{}}\nfinish tool_calls"));
    let (mut turn, out) = take_over(&scripted, setup);
    assert!(
        out.actions.iter().any(|action| matches!(action, throughline_engine::TurnAction::SetTimer { .. }))
    );
    let mut out = throughline_engine::TurnOutput::default();
    let now = scripted.now + 2_000;
    let version = 0;
    let validation = throughline_engine::ArgumentValidation::Valid;
    turn.apply(
        throughline_engine::TurnInput::Validated { call: "t.1".into(), version, validation },
        now,
        &mut out,
    );
    let answer = throughline_engine::TurnInput::plain_approval(
        throughline_engine::ApprovalTarget::All,
        throughline_engine::ApprovalDecision::Approve,
        "user",
        None,
    );
    turn.apply(answer, now, &mut out);
    assert!(
        out.actions
            .iter()
            .any(|action| matches!(action, throughline_engine::TurnAction::StartTool { attempt: 1, .. }))
    );
}
