//! An observer of all turns learns what the log holds, how far model calls are, and, if a turn wants it, every byte of them.

use crate::support::{DIALECTS, at, builder, read, serve};
use std::sync::{Arc, Mutex};
use throughline::engine::FailureKind;
use throughline::wire::{DecodeOptions, Dialect, StepDecoder, StepEvent};
use throughline::{
    Event, ModelCallEvent, ModelCallFacts, StreamingSetting, TurnFacts, TurnObserver, TurnRequest,
};
use throughline_testkit::{self as testkit, ModelScript, ScriptQueue};

#[derive(Default)]
struct Notes {
    logged: Vec<(TurnFacts, Event)>,
    moments: Vec<(ModelCallFacts, &'static str)>,
    ends: Vec<(u64, Option<FailureKind>)>,
    raw: Vec<u8>,
}

#[derive(Default)]
struct Watcher(Mutex<Notes>);

impl TurnObserver for Watcher {
    fn logged(&self, turn: &TurnFacts, events: &[Event]) {
        let seen = events.iter().map(|event| (turn.clone(), event.clone()));
        self.0.lock().unwrap().logged.extend(seen);
    }

    fn model_call(&self, _: &TurnFacts, call: &ModelCallFacts, moment: ModelCallEvent) {
        let mut notes = self.0.lock().unwrap();
        let name = match moment {
            ModelCallEvent::Sent { bytes, .. } => {
                assert!(bytes > 0, "a request has a body");
                "sent"
            }
            ModelCallEvent::HeadersReceived { status: 200, .. } => "answered",
            ModelCallEvent::HeadersReceived { .. } => "refused",
            ModelCallEvent::FirstByte { .. } => "first byte",
            ModelCallEvent::FirstToken { .. } => "first token",
            ModelCallEvent::Ended { bytes, failure, .. } => {
                notes.ends.push((bytes, failure));
                "ended"
            }
            _ => "unknown",
        };
        notes.moments.push((call.clone(), name));
    }

    fn raw(&self, _: &TurnFacts, _: &ModelCallFacts, bytes: &[u8]) {
        self.0.lock().unwrap().raw.extend_from_slice(bytes);
    }
}

fn text_of(events: &[StepEvent<'_>]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        StepEvent::Text(text) => Some(&**text),
        _ => None,
    });
    texts.collect()
}

fn decoded(dialect: Dialect, body: &[u8]) -> String {
    let mut events = Vec::new();
    let mut decoder = StepDecoder::new(dialect, DecodeOptions::default());
    decoder.push(body, &mut |event| events.push(event.into_owned()));
    decoder.finish(&mut |event| events.push(event.into_owned()));
    text_of(&events)
}

#[tokio::test]
async fn observer_gets_events_in_order_and_raw_bytes_on_request() {
    for dialect in DIALECTS {
        for keep_raw in [false, true] {
            let server = serve(ScriptQueue::new([ModelScript::new().say("Once ").say("upon a time.")])).await;
            let watcher = Arc::new(Watcher::default());
            let app = builder(&server, dialect).observer(watcher.clone()).build().unwrap();
            let request = TurnRequest { keep_raw, user: Some("ada".into()), ..TurnRequest::default() };
            let request = TurnRequest { input: "Tell.".into(), ..request };
            let (events, message) = read(app.start_turn(request).await.unwrap()).await;
            let notes = watcher.0.lock().unwrap();
            let logged: Vec<Event> = notes.logged.iter().map(|(_, event)| event.clone()).collect();
            assert_eq!(logged, events, "{dialect:?}");
            assert!(notes.logged.iter().all(|(turn, _)| turn.user.as_deref() == Some("ada")));
            let moments: Vec<&str> = notes.moments.iter().map(|(_, moment)| *moment).collect();
            assert_eq!(moments, ["sent", "answered", "first byte", "first token", "ended"], "{dialect:?}");
            let (call, _) = &notes.moments[0];
            assert_eq!((call.step, call.attempt, call.model.as_str()), (1, 1, "m"));
            assert_eq!((call.upstream.as_str(), call.dialect), ("test", dialect.0));
            let [(bytes, None)] = notes.ends[..] else { panic!("{:?}", notes.ends) };
            assert!(bytes > 0);
            if keep_raw {
                assert_eq!(notes.raw.len() as u64, bytes);
                assert_eq!(decoded(dialect.0, &notes.raw), message.text(), "decoded again: {dialect:?}");
            } else {
                assert!(notes.raw.is_empty(), "raw bytes are not requested");
            }
        }
    }
}

#[tokio::test]
async fn observer_sees_a_failed_attempt_with_its_number() {
    let server = serve(ScriptQueue::new([ModelScript::status(503), ModelScript::new().say("Here.")])).await;
    let watcher = Arc::new(Watcher::default());
    let chat = (Dialect::OpenaiChat, testkit::FakeDialect::OpenaiChat);
    let app = builder(&server, chat).observer(watcher.clone()).build().unwrap();
    read(app.ask("Hello").await.unwrap()).await;
    let notes = watcher.0.lock().unwrap();
    let told: Vec<(u32, &str)> = notes.moments.iter().map(|(call, moment)| (call.attempt, *moment)).collect();
    let first = [(1, "sent"), (1, "refused"), (1, "ended")];
    let second = [(2, "sent"), (2, "answered"), (2, "first byte"), (2, "first token"), (2, "ended")];
    assert_eq!(told, [&first[..], &second[..]].concat());
    assert_eq!(notes.ends[0], (0, Some(FailureKind::Overloaded)));
}

// Bytes of a discarded reply would precede those of the reply that the turn uses, and both would be decoded
// as one.
#[tokio::test]
async fn raw_bytes_of_a_replaced_reply_are_dropped() {
    let chat = (Dialect::OpenaiChat, testkit::FakeDialect::OpenaiChat);
    let refused = || {
        let code = Some("tool_use_failed".to_owned());
        let kind = Some("invalid_request_error".to_owned());
        let error =
            testkit::ErrorMove { kind, code, ..testkit::ErrorMove::new("Failed to call a function.") };
        ModelScript::new().then(testkit::ScriptMove::Error(error))
    };
    let breaks = |seen: &testkit::ParsedRequest| match seen.delivery {
        testkit::parsed_request::ReplyDelivery::Whole => ModelScript::new().say("Here."),
        _ => ModelScript::new().say("Nothing.").broken_at(20, testkit::BodyBreak::End),
    };
    let queue = |scripts: Vec<ModelScript>| serve(ScriptQueue::new(scripts));
    for (name, server, text) in [
        ("adapted", queue(vec![refused(), ModelScript::new().say("Here.")]).await, "Here."),
        ("refused twice", queue(vec![refused(), refused()]).await, ""),
        ("asked for whole", serve(breaks).await, "Here."),
    ] {
        let watcher = Arc::new(Watcher::default());
        let upstream = at(&server, chat).streaming(StreamingSetting::Auto);
        let app = builder(&server, chat).upstream(upstream).observer(watcher.clone()).build().unwrap();
        let request = TurnRequest { input: "Hello".into(), keep_raw: true, ..TurnRequest::default() };
        let (_, message) = read(app.start_turn(request).await.unwrap()).await;
        let notes = watcher.0.lock().unwrap();
        assert_eq!(server.exchanges().len(), 2, "{name}");
        assert_eq!(message.text(), text, "{name}");
        assert_eq!(notes.raw.len() as u64, notes.ends[0].0, "{name}: the last reply alone");
        assert_eq!(decoded(chat.0, &notes.raw), text, "{name}");
        assert!(!notes.raw.is_empty(), "{name}");
        let moments: Vec<&str> = notes.moments.iter().map(|(_, moment)| *moment).collect();
        assert_eq!(moments[..3], moments[3..6], "{name}: it comes anew");
    }
}
