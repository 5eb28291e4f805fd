//! The connection to an upstream breaks at every byte of a reply: the text so far stays, an incomplete call
//! never runs, and the turn ends or continues truthfully.

use crate::support::{DIALECTS, builder, read, serve};
use futures_util::{StreamExt, stream};
use serde_json::json;
use throughline::engine::RetryPolicy;
use throughline::{AssistantMessage, CallStatus, Event, EventKind, TurnStatus};
use throughline_testkit::parsed_request::ParsedMessage;
use throughline_testkit::script::BodyBreak;
use throughline_testkit::{ModelScript, ParsedRequest};

/// Number of turns that run in parallel.
const AT_ONCE: usize = 16;
const SAID: &str = "I will note it for you.";

/// The whole reply: text, a call that reads, a call that writes, and a text with the results.
fn whole(seen: &ParsedRequest) -> ModelScript {
    match seen.messages.last() {
        Some(ParsedMessage::Results(_)) => ModelScript::new().say("Done."),
        _ => ModelScript::new()
            .say(SAID)
            .call("weather_today", json!({"city": "Oslo"}))
            .call("calendar_add", json!({"title": "tea"})),
    }
}

/// Offset at which the reply to this request breaks, from its text: `byte how`.
fn place(seen: &ParsedRequest) -> Option<(u64, BodyBreak)> {
    let (byte, how) = seen.user_text().split_once(' ')?;
    Some((byte.parse().ok()?, HOW[how.parse::<usize>().ok()?]))
}

const HOW: [BodyBreak; 3] = [BodyBreak::Cut, BodyBreak::End, BodyBreak::Reset];

#[tokio::test]
async fn reply_cut_at_any_byte_keeps_text_and_runs_no_write() {
    let model = |seen: &ParsedRequest| match (seen.messages.last(), place(seen)) {
        (Some(ParsedMessage::User { .. }), Some((byte, how))) => whole(seen).broken_at(byte, how),
        _ => whole(seen),
    };
    for (number, dialect) in DIALECTS.into_iter().enumerate() {
        let server = serve(model).await;
        let retry = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
        let app = builder(&server, dialect).retry(retry).build().unwrap();
        read(app.ask("Hi").await.unwrap()).await;
        let length = server.exchanges()[0].sent;
        // With a reset, a cut or a clean end, by turns. One dialect meets all bytes, the others a part of them.
        let bytes = (0..length).step_by(if number == 0 { 1 } else { 17 });
        let turns = bytes.enumerate().map(|(nth, byte)| {
            let (app, how) = (app.clone(), nth % HOW.len());
            async move {
                let turn = app.ask(format!("{byte} {how}")).await.unwrap();
                let (events, message) = read(turn).await;
                let what = format!("{} cut at byte {byte} of {length}, {:?}", dialect.0.name(), HOW[how]);
                check(&what, &events, &message)
            }
        });
        let noticed: Vec<Noticed> = stream::iter(turns).buffer_unordered(AT_ONCE).collect().await;
        let (cuts, broken) =
            (noticed.len(), noticed.iter().filter(|noticed| **noticed == Noticed::Yes).count());
        assert!(broken > cuts / 2, "{}: {broken} of {cuts} breaks were noticed", dialect.0.name());
        assert_eq!(server.violations(), [], "{}", dialect.0.name());
    }
}

/// True if a turn has noticed that its reply was cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Noticed {
    Yes,
    /// Only unneeded bytes were missing, such as the end of the framing.
    No,
}

fn check(what: &str, events: &[Event], message: &AssistantMessage) -> Noticed {
    let first = events.iter().filter(|event| event.step == Some(1));
    let said: String = first
        .filter_map(|event| match &event.kind {
            EventKind::ContentDelta { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!(SAID.starts_with(&said), "{what}: {message:#?}");
    let wrote = message.calls().any(|call| {
        let is_write = call.tool_name.as_ref().is_some_and(|name| name.as_str() == "calendar.add");
        is_write && call.status == Some(CallStatus::Success)
    });
    match message.status {
        Some(TurnStatus::Completed) => {
            assert!(said == SAID && wrote, "{what}: {message:#?}");
            Noticed::No
        }
        Some(TurnStatus::Error) => {
            assert!(!wrote, "a write runs only when the reply is whole: {what}: {message:#?}");
            Noticed::Yes
        }
        other => panic!("{other:?} {what}: {message:#?}"),
    }
}
