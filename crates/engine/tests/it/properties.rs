//! Properties over drawn turns.

use crate::script::{self, ScriptedTurn};
use proptest::prelude::*;
use std::collections::BTreeSet;
use throughline_engine::fold::AssistantMessage;
use throughline_engine::{Event, EventKind, Turn, TurnOutput, merge_deltas};
use throughline_wire::{ClosedStep, Message};

/// A step of harmless calls: text, and calls of pure and read tools that answer by their arguments alone.
fn step() -> impl Strategy<Value = String> {
    let call = (0..3u8, 0..3u8, prop::bool::ANY, prop::bool::ANY);
    (prop::collection::vec(call, 1..4), prop::bool::ANY).prop_map(|(calls, reopens)| {
        let mut lines = String::from("text hi\n");
        for (at, (tool, argument, explicit, prose)) in calls.into_iter().enumerate() {
            let label = char::from(b'A' + at as u8);
            let (name, seal) =
                (["p", "r", "s"][usize::from(tool)], if explicit { "seal" } else { "balanced" });
            lines.push_str(&format!("open {label} {name}\nargs {label} {{\n"));
            if reopens && at == 1 {
                lines.push_str(&format!("{seal} {label} {{\"q\":99}}\nreopen {label}\n"));
            }
            lines.push_str(&format!("{seal} {label} {{\"q\":{argument}}}\n"));
            if prose {
                lines.push_str("text and\n");
            }
        }
        lines + "finish tool_calls\n"
    })
}

/// Runs steps to the end; tools answer by their arguments, `lag` inputs after their start.
fn run(rule: &str, steps: &[String], lag: usize) -> ScriptedTurn {
    let mut scripted = ScriptedTurn::run(&format!("tools p:pure r:read s:read; iterations 50; {rule}"));
    for step in steps {
        let mut waited = 0;
        for line in step.lines() {
            scripted.line(line);
            waited += 1;
            if waited > lag {
                answer(&mut scripted, 1);
                waited = 0;
            }
        }
        answer(&mut scripted, usize::MAX);
        // The loop guard may ask; this person always agrees.
        for _ in 0..10 {
            scripted.line("approve all");
            answer(&mut scripted, usize::MAX);
        }
    }
    if !scripted.turn.is_over() {
        scripted.line("finish stop");
    }
    scripted
}

fn answer(scripted: &mut ScriptedTurn, most: usize) {
    for _ in 0..most.min(64) {
        let closed: BTreeSet<_> = scripted
            .log
            .iter()
            .filter(|event| matches!(event.kind, EventKind::ToolResult(_)))
            .filter_map(|event| event.tool_id.clone())
            .collect();
        let next = scripted.running.iter().position(|(call, _)| !closed.contains(call));
        let Some((call, attempt)) = next.map(|at| scripted.running.remove(at)) else { return };
        let input = scripted.log.iter().rev().find_map(|event| match &event.kind {
            EventKind::ToolInput(input) if event.tool_id.as_ref() == Some(&call) => input.arguments.clone(),
            _ => None,
        });
        let outcome =
            throughline_wire::CallOutcome::Done(throughline_wire::ToolOutput::text(format!("of {input:?}")));
        scripted.apply(throughline_engine::TurnInput::ToolEnded { call, attempt, outcome });
    }
}

/// History without our ids: an early start that was contradicted gets a new one.
fn anonymous(scripted: &ScriptedTurn) -> Vec<Message> {
    let mut history = scripted.turn.history().expect("closed");
    for message in &mut history {
        if let Message::Step(ClosedStep { calls, .. }) = message {
            calls.iter_mut().for_each(|(call, _)| call.id = "".into());
        }
    }
    history
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Eager and barrier, serial and parallel, end in the same history for pure and read tools.
    #[test]
    fn eager_and_barrier_end_in_the_same_history(steps in prop::collection::vec(step(), 1..4), lag in 0..6usize) {
        let barrier = run("barrier; serial", &steps, lag);
        for rule in ["eager; serial", "eager; parallel", "barrier; parallel"] {
            let other = run(rule, &steps, lag);
            prop_assert_eq!(anonymous(&other), anonymous(&barrier), "{}\n{:#?}", rule, other.lines);
        }
    }

    /// Every call in a request has its outcome, in recorded order, once.
    #[test]
    fn requests_contain_every_call_in_recorded_order(steps in prop::collection::vec(step(), 1..4), lag in 0..6usize) {
        let scripted = run("eager; parallel", &steps, lag);
        prop_assert_eq!(scripted.requests.len(), steps.len() + 1);
        for (n, request) in scripted.requests.iter().enumerate() {
            let closed_steps: Vec<&ClosedStep> = request.messages.iter().filter_map(|message| match message {
                Message::Step(step) => Some(step),
                Message::User(_) => None,
            }).collect();
            prop_assert_eq!(closed_steps.len(), n);
            for (step, script) in closed_steps.iter().zip(&steps) {
                let opened: Vec<&str> = script.lines().filter_map(|line| line.strip_prefix("open ")).map(|rest| &rest[2..]).collect();
                let names: Vec<&str> = step.calls.iter().map(|(call, _)| call.name.as_str()).collect();
                prop_assert_eq!(names, opened);
            }
        }
    }

    /// A machine restored from any part of the log and given the rest equals the live one; so does
    /// the fold; joined deltas fold the same.
    #[test]
    fn turn_restores_from_its_log_at_every_event(steps in prop::collection::vec(step(), 1..3), lag in 0..6usize) {
        let scripted = run("eager; serial", &steps, lag);
        let full_message = AssistantMessage::from_events(&scripted.log);
        for cut in 0..=scripted.log.len() {
            let mut turn = restored(&scripted.log[..cut]);
            scripted.log[cut..].iter().for_each(|event| turn.replay(event));
            scripted.provider_states.iter().for_each(|provider_states| turn.apply_provider_state(provider_states));
            prop_assert!(turn.state_eq(&scripted.turn), "cut at {}", cut);

            let snapshot = serde_json::to_string(&AssistantMessage::from_events(&scripted.log[..cut])).expect("JSON");
            let mut message: AssistantMessage = serde_json::from_str(&snapshot).expect("a message");
            scripted.log[cut..].iter().for_each(|event| message.apply(event));
            prop_assert_eq!(&message, &full_message);
        }
        let merged = merge_deltas(scripted.log.clone());
        prop_assert_eq!(&AssistantMessage::from_events(&merged), &full_message);
        for cut in 0..=merged.len() {
            let mut message = AssistantMessage::from_events(&merged[..cut]);
            merged[cut..].iter().for_each(|event| message.apply(event));
            prop_assert_eq!(&message, &full_message, "a snapshot of a joined log, after {} events", cut);
        }
        let mut turn = restored(&merged);
        scripted.provider_states.iter().for_each(|provider_states| turn.apply_provider_state(provider_states));
        prop_assert_eq!(turn.history(), scripted.turn.history(), "restored from a joined log");
    }

    /// A crash after any event, then a takeover: every call gets one outcome and the turn ends.
    #[test]
    fn crash_after_any_event_gives_each_call_one_outcome(steps in prop::collection::vec(step(), 1..3), lag in 0..6usize) {
        let scripted = run("eager; serial", &steps, lag);
        for cut in 1..scripted.log.len() {
            let mut turn = restored(&scripted.log[..cut]);
            let mut out = TurnOutput::default();
            turn.resume(2, scripted.now, &mut out);
            prop_assert!(turn.is_over(), "cut at {}", cut);
            let mut log = scripted.log[..cut].to_vec();
            log.extend(out.events);
            let uses = log.iter().filter(|event| matches!(event.kind, EventKind::ToolUse { .. })).count();
            let results = log.iter().filter(|event| matches!(event.kind, EventKind::ToolResult(_))).count();
            prop_assert_eq!(uses, results, "cut at {}", cut);
            prop_assert!(turn.history().is_some());
        }
    }
}

/// A machine that knows a part of the log, after a way through JSON.
fn restored(events: &[Event]) -> Turn {
    let json: Vec<String> = events.iter().map(|event| serde_json::to_string(event).expect("JSON")).collect();
    let events: Vec<Event> = json.iter().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let setup = script::setup("tools p:pure r:read s:read; iterations 50; eager; serial");
    Turn::restore(setup, script::start(), &events, &[])
}
