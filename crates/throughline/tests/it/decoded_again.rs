//! Recorded bytes of upstreams, decoded again: the same as the log has, or the difference.

use crate::support::{DIALECTS, builder, city, read, serve};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use throughline::{
    Event, EventKind, ModelCallFacts, RawExtent, RecordedBytes, RedecodeOutcome, RedecodedReply, StoredTurn,
    TurnFacts, TurnHooks, TurnObserver, TurnRequest, redecode,
};
use throughline_testkit::{ModelScript, ScriptQueue};

#[derive(Default)]
struct Keeper(Mutex<BTreeMap<(u32, u32), Vec<u8>>>);

impl TurnObserver for Keeper {
    fn raw(&self, _: &TurnFacts, call: &ModelCallFacts, bytes: &[u8]) {
        self.0.lock().unwrap().entry((call.step, call.attempt)).or_default().extend_from_slice(bytes);
    }
}

/// A turn that was really run: with thinking, a call, a failed try, two steps and characters of several bytes.
async fn recorded(
    dialect: (throughline::wire::Dialect, throughline_testkit::FakeDialect),
    mode: throughline::config::ToolMode,
) -> (StoredTurn, Vec<Event>, Vec<RecordedBytes>) {
    let scripts = match mode {
        throughline::config::ToolMode::Text => [
            ModelScript::status(503),
            ModelScript::new().say("我看看。\n").say(
                "<<<[TOOL_REQUEST]>>>\ntool_name:「始」weather.today「末」,\ncity:「始」巴黎「末」\n<<<[END_TOOL_REQUEST]>>>",
            ),
            ModelScript::new().say("晴天 ").say("today."),
        ],
        _ => [
            ModelScript::status(503),
            ModelScript::new().think("Where is it? 在哪里").say("我看看。").call("weather_today", city("巴黎")),
            ModelScript::new().say("晴天 ").say("today."),
        ],
    };
    let server = serve(ScriptQueue::new(scripts)).await;
    let keeper = Arc::new(Keeper::default());
    let app = builder(&server, dialect).mode(mode).observer(keeper.clone()).keep_raw(true).build().unwrap();
    let request = TurnRequest { input: "天气?".into(), ..TurnRequest::default() };
    let prepared = app.prepare(request).await.unwrap();
    // In the stored form: a field that is not serialized would be missing later.
    let stored = serde_json::from_str(&serde_json::to_string(prepared.stored()).unwrap()).unwrap();
    let (events, message) = read(app.start_prepared(prepared, TurnHooks::default()).await.unwrap()).await;
    assert!(message.text().contains("晴天"), "{message:?}");
    let kept = std::mem::take(&mut *keeper.0.lock().unwrap());
    let kept = kept.into_iter().map(|((step, attempt), bytes)| RecordedBytes {
        step,
        attempt,
        extent: RawExtent::Complete,
        bytes,
    });
    let kept = kept.collect();
    (stored, events, kept)
}

fn outcomes(again: &[RedecodedReply]) -> Vec<(u32, RedecodeOutcome)> {
    again.iter().map(|again| (again.step, again.outcome.clone())).collect()
}

#[tokio::test]
async fn redecoding_gives_the_same_result_in_every_dialect() {
    for dialect in DIALECTS {
        for mode in [throughline::config::ToolMode::Native, throughline::config::ToolMode::Text] {
            let (stored, events, kept) = recorded(dialect, mode).await;
            let again = redecode(&stored, &events, &kept).unwrap();
            assert_eq!(
                outcomes(&again),
                [(1, RedecodeOutcome::Same), (2, RedecodeOutcome::Same)],
                "{dialect:?} {mode:?}"
            );
            assert!(again.iter().all(|again| again.upstream == "test" && again.bytes > 0), "{again:?}");
        }
    }
}

#[tokio::test]
async fn redecoding_reports_only_the_planted_differences() {
    for dialect in &DIALECTS[..3] {
        let (stored, events, kept) = recorded(*dialect, throughline::config::ToolMode::Native).await;
        let check = |what: &str, plant: &dyn Fn(&mut EventKind)| {
            let mut events = events.clone();
            events.iter_mut().for_each(|event| plant(&mut event.kind));
            let again = redecode(&stored, &events, &kept).unwrap();
            let found: Vec<String> = again
                .iter()
                .flat_map(|again| match &again.outcome {
                    RedecodeOutcome::Different(found) => {
                        found.iter().map(|found| found.what.clone()).collect()
                    }
                    other => {
                        assert_eq!(*other, RedecodeOutcome::Same, "{what}");
                        Vec::new()
                    }
                })
                .collect();
            assert!(
                !found.is_empty() && found.iter().all(|found| found == what),
                "{what}: {found:?} {dialect:?}"
            );
        };
        check("text", &|kind| {
            if let EventKind::ContentDelta { text, .. } = kind {
                *text = text.replace('y', "Y");
            }
        });
        check("call 1 arguments", &|kind| {
            if let EventKind::ToolInput(input) = kind {
                input.arguments = Some(json!({"city": "Lyon"}));
                input.text = None;
            }
        });
        check("call 1 name", &|kind| {
            if let EventKind::ToolUse { wire_name, .. } = kind {
                *wire_name = "weather_then".into();
            }
        });
        check("usage", &|kind| {
            if let EventKind::StepEnd { usage, .. } = kind {
                *usage = Some(throughline::wire::Usage { input_tokens: Some(987_654), ..Default::default() });
            }
        });
        check("finish", &|kind| {
            if let EventKind::StepEnd { finish_raw, .. } = kind {
                *finish_raw = Some("otherwise".into());
            }
        });
    }
}

#[tokio::test]
async fn truncated_recording_is_compared_up_to_its_end() {
    for dialect in DIALECTS {
        let (stored, events, kept) = recorded(dialect, throughline::config::ToolMode::Native).await;
        for tenth in 1..10 {
            let cut = |kept: &RecordedBytes| {
                let bytes = kept.bytes[..kept.bytes.len() * tenth / 10].to_vec();
                RecordedBytes { extent: RawExtent::Truncated, bytes, ..kept.clone() }
            };
            let kept: Vec<_> = kept.iter().map(cut).collect();
            let again = redecode(&stored, &events, &kept).unwrap();
            let expected = [(1, RedecodeOutcome::SamePrefix), (2, RedecodeOutcome::SamePrefix)];
            assert_eq!(outcomes(&again), expected, "{dialect:?} {tenth}/10");
        }
    }
    // A reply that cannot be compared is reported as such.
    let (mut stored, events, kept) = recorded(DIALECTS[0], throughline::config::ToolMode::Native).await;
    let elsewhere = vec![RecordedBytes { step: 9, ..kept[0].clone() }];
    let outcome = |stored: &StoredTurn, kept: &[RecordedBytes]| {
        redecode(stored, &events, kept).unwrap().remove(0).outcome
    };
    assert_eq!(outcome(&stored, &elsewhere), RedecodeOutcome::NotInLog);
    stored.decode_profiles.clear();
    assert_eq!(outcome(&stored, &kept), RedecodeOutcome::NoDecodeProfile);
}
