//! `streaming = "auto"`: a stream that breaks before its first content is requested again, whole, and the
//! turn reports it.

use crate::support::{DIALECTS, at, builder, read, serve};
use serde_json::json;
use throughline::wire::Dialect;
use throughline::{AssistantMessage, Event, EventKind, StreamingSetting, TurnStatus};
use throughline_testkit::{
    BodyBreak, FakeDialect, FakeUpstreamHandle, ModelScript, ParsedRequest, PlantedQuirk, ScenarioRules,
    parsed_request::ReplyDelivery,
};

/// Dialects whose calls arrive in fragments, so that one can be cut.
const STREAMS_ARGUMENTS: [Dialect; 3] = [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic];

fn with_quirk(quirk: PlantedQuirk) -> ScenarioRules {
    let mut model = ScenarioRules::capable();
    model.quirks = vec![quirk];
    model
}

async fn ask(
    server: &FakeUpstreamHandle,
    dialect: (Dialect, FakeDialect),
    streaming: StreamingSetting,
) -> (Vec<Event>, AssistantMessage) {
    let app = builder(server, dialect).upstream(at(server, dialect).streaming(streaming)).build().unwrap();
    read(app.ask("Count from one to five.").await.unwrap()).await
}

/// Remedies of the findings that report a fallback.
fn told(events: &[Event]) -> Vec<String> {
    let problems = events.iter().filter_map(|event| match &event.kind {
        EventKind::Problem { code, remedy, .. } if code == "stream_replaced" => remedy.clone(),
        _ => None,
    });
    problems.collect()
}

#[tokio::test]
async fn unreadable_stream_is_requested_again_whole_once() {
    for quirk in [PlantedQuirk::BrokenStream, PlantedQuirk::NoStreaming] {
        for dialect in DIALECTS {
            let server = serve(with_quirk(quirk)).await;
            let (events, message) = ask(&server, dialect, StreamingSetting::Auto).await;
            let context = format!("{} {quirk:?}: {events:#?}", dialect.0);
            assert_eq!(message.status, Some(TurnStatus::Completed), "{context}");
            assert!(message.text().contains("three"), "{context}");
            let told = told(&events);
            assert_eq!(told.len(), 1, "{context}");
            assert!(told[0].contains("streaming = \"off\""), "{context}");
            assert_eq!(server.exchanges().len(), 2, "one retry: {context}");
        }
    }
}

#[tokio::test]
async fn connection_cut_before_the_first_event_falls_back_to_whole() {
    let cut = |seen: &ParsedRequest| match seen.delivery {
        ReplyDelivery::Whole => ModelScript::new().say("whole"),
        _ => ModelScript::new().say("streamed").broken_at(0, BodyBreak::Cut),
    };
    let server = serve(cut).await;
    let (events, message) = ask(&server, DIALECTS[0], StreamingSetting::Auto).await;
    assert_eq!((message.text().as_str(), told(&events).len()), ("whole", 1), "{events:#?}");
}

#[tokio::test]
async fn stream_cut_after_visible_text_is_not_requested_again() {
    let cut = |_: &ParsedRequest| ModelScript::new().say("One two three four").broken_at(700, BodyBreak::Cut);
    let server = serve(cut).await;
    let (events, message) = ask(&server, DIALECTS[0], StreamingSetting::Auto).await;
    assert!(message.text().starts_with("One"), "{events:#?}");
    assert_eq!((server.exchanges().len(), told(&events).len()), (1, 0), "{events:#?}");
}

#[tokio::test]
async fn stream_cut_after_a_call_began_is_not_requested_again() {
    let long = "The garden is in bloom. ".repeat(300);
    let cut = move |seen: &ParsedRequest| match seen.delivery {
        ReplyDelivery::Whole => ModelScript::new().say("whole"),
        _ => {
            let script = ModelScript::new().call("notes_add", json!({ "text": long }));
            script.broken_at(4_000, BodyBreak::Cut)
        }
    };
    for dialect in DIALECTS.into_iter().filter(|(dialect, _)| STREAMS_ARGUMENTS.contains(dialect)) {
        let server = serve(cut.clone()).await;
        let (events, _) = ask(&server, dialect, StreamingSetting::Auto).await;
        let context = format!("{}: {events:#?}", dialect.0);
        assert!(events.iter().any(|event| matches!(event.kind, EventKind::ToolUse { .. })), "{context}");
        assert_eq!(told(&events).len(), 0, "{context}");
        let whole = server.exchanges().into_iter().filter_map(|exchange| exchange.seen);
        assert!(whole.into_iter().all(|seen| seen.delivery != ReplyDelivery::Whole), "{context}");
    }
}

#[tokio::test]
async fn unreadable_stream_is_an_error_with_streaming_on() {
    let server = serve(with_quirk(PlantedQuirk::NoStreaming)).await;
    let (events, message) = ask(&server, DIALECTS[0], StreamingSetting::On).await;
    assert_eq!(message.status, Some(TurnStatus::Error), "{events:#?}");
    assert_eq!((server.exchanges().len(), told(&events).len()), (1, 0));
}
