//! Order of log and effects.

use throughline_engine::{Event, EventKind, EventSeq, Outbox, TimerId, TurnAction, TurnInput, TurnOutput};
use throughline_wire::{CallArguments, CallOutcome, NotStarted};

fn event(seq: u64, text: &str) -> Event {
    Event {
        turn_id: "t".into(),
        seq: EventSeq(seq),
        timestamp: 0,
        step: None,
        block: None,
        tool_id: None,
        kind: EventKind::content_delta(text),
    }
}

fn timer(n: i64) -> TurnAction {
    TurnAction::SetTimer { id: TimerId::Retry { step: 1, attempt: 1 }, at: n }
}

fn start() -> TurnAction {
    let arguments = CallArguments::from_value(serde_json::json!({}));
    TurnAction::StartTool {
        call: "a".into(),
        attempt: 1,
        tool: "t".into(),
        arguments,
        fingerprint: String::new(),
    }
}

fn out(events: Vec<Event>, actions: Vec<TurnAction>) -> TurnOutput {
    TurnOutput { events, actions, provider_states: Vec::new() }
}

#[test]
fn actions_wait_for_the_append_of_their_events() {
    let mut outbox = Outbox::new();
    assert!(outbox.push(&mut out(vec![event(1, "a")], vec![timer(1)])).is_empty());
    let append = outbox.next_append().expect("something to append");
    assert_eq!(append.events.len(), 1);
    // What comes while an append is in flight waits for the next one, actions without events too.
    assert!(outbox.push(&mut out(vec![event(2, "b")], vec![])).is_empty());
    assert!(outbox.push(&mut out(vec![], vec![timer(2)])).is_empty());
    assert!(outbox.next_append().is_none() && outbox.take_ready().is_empty());
    assert_eq!(outbox.acknowledge().actions, [timer(1)]);
    assert!(outbox.take_ready().is_empty());
    assert_eq!(outbox.next_append().expect("the rest").events[0].seq, EventSeq(2));
    assert_eq!(outbox.acknowledge().actions, [timer(2)]);
    // One without events that is the last is released with the append that it waited for.
    assert!(outbox.push(&mut out(vec![event(3, "c")], vec![])).is_empty());
    assert!(outbox.next_append().is_some());
    assert!(outbox.push(&mut out(vec![], vec![timer(3)])).is_empty());
    assert_eq!(outbox.acknowledge().actions, [timer(3)]);
    assert!(outbox.is_empty());
    // Without anything to wait for, an action is ready immediately.
    assert!(outbox.push(&mut out(vec![], vec![timer(4)])).is_empty());
    assert_eq!(outbox.take_ready(), [timer(4)]);
    assert!(outbox.is_empty());
}

#[test]
fn validation_actions_do_not_wait_for_appends() {
    let mut outbox = Outbox::new();
    assert!(outbox.push(&mut out(vec![event(1, "a")], vec![timer(1)])).is_empty());
    assert!(outbox.next_append().is_some());
    let look = TurnAction::Validate {
        call: "a".into(),
        version: 1,
        tool: "t".into(),
        arguments: CallArguments::from_value(serde_json::json!({})),
        fingerprint: None,
        is_edit: false,
    };
    assert!(outbox.push(&mut out(vec![event(2, "b")], vec![look.clone(), timer(2)])).is_empty());
    assert!(!outbox.is_empty());
    assert_eq!(outbox.take_ready(), std::slice::from_ref(&look), "once, and nothing else with it");
    assert!(outbox.take_ready().is_empty());
    assert_eq!(outbox.acknowledge().actions, [timer(1)]);
    // A fenced owner performs no read-only actions either.
    assert!(outbox.push(&mut out(vec![], vec![look])).is_empty());
    outbox.refuse();
    assert!(outbox.take_ready().is_empty());
}

#[test]
fn cancel_between_intent_and_start_prevents_the_start() {
    for in_flight in [true, false] {
        let mut outbox = Outbox::new();
        assert!(outbox.push(&mut out(vec![event(1, "intent")], vec![start()])).is_empty());
        if in_flight {
            assert!(outbox.next_append().is_some());
        }
        let cancel = TurnAction::CancelTool { call: "a".into(), attempt: 1 };
        let back = outbox.push(&mut out(vec![event(2, "cancel")], vec![cancel]));
        let outcome = CallOutcome::NotStarted(NotStarted::Stopped);
        assert_eq!(back, [TurnInput::ToolEnded { call: "a".into(), attempt: 1, outcome }]);
        while outbox.next_append().is_some() {
            assert!(outbox.acknowledge().actions.is_empty());
        }
    }
}

#[test]
fn refused_append_stops_all_appends_and_actions() {
    let mut outbox = Outbox::new();
    assert!(outbox.push(&mut out(vec![event(1, "a")], vec![start()])).is_empty());
    assert!(outbox.next_append().is_some());
    outbox.refuse();
    assert!(outbox.acknowledge().actions.is_empty());
    assert!(outbox.push(&mut out(vec![event(2, "b")], vec![timer(1)])).is_empty());
    assert!(outbox.next_append().is_none() && outbox.take_ready().is_empty());
}

#[test]
fn outbox_is_full_at_its_event_and_byte_limits() {
    let mut outbox = Outbox::new();
    for seq in 1..Outbox::EVENTS_MAX as u64 {
        assert!(outbox.push(&mut out(vec![event(seq, "")], vec![])).is_empty());
    }
    assert!(!outbox.is_full());
    assert!(outbox.push(&mut out(vec![event(4_096, "")], vec![])).is_empty());
    assert!(outbox.is_full());
    assert!(outbox.next_append().is_some() && outbox.is_full(), "in flight counts");
    outbox.acknowledge();
    assert!(!outbox.is_full());
    assert!(outbox.push(&mut out(vec![event(1, &"x".repeat(Outbox::BYTES_MAX))], vec![])).is_empty());
    assert!(outbox.is_full());
}
