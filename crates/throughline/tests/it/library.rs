//! The first things that a program with the library writes: why a turn failed, rules in Rust, answers as values, tools that fail.

use crate::support::{DIALECTS, at, serve, tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use throughline::prelude::*;
use throughline::{RuleAction, ThroughlineBuilder};
use throughline_testkit::{FakeUpstreamHandle, ModelScript, ScriptQueue};

fn app(server: &FakeUpstreamHandle) -> ThroughlineBuilder {
    Throughline::builder().upstream(at(server, DIALECTS[0])).model("m").tools(tools())
}

#[tokio::test]
async fn failed_turn_error_is_whole_sentences() {
    let server = serve(ScriptQueue::new([ModelScript::status(401)])).await;
    let message = app(&server).build().unwrap().ask("Hi").await.unwrap().finish().await;
    let why = message.error().unwrap().to_string();
    assert!(why.contains("HTTP 401: ") && why.ends_with('.'), "sentences, one after the other: {why}");
    assert!(!why.contains("  ") && !why.contains(".."), "{why}");
    let fault = message.into_result().unwrap_err();
    let error: Box<dyn std::error::Error> = fault.into();
    assert_eq!(error.to_string(), why, "`?` takes it");
}

#[tokio::test]
async fn builder_rules_decide_before_the_tool_effect() {
    let add = || ModelScript::new().call("calendar_add", json!({"title": "Lunch"}));
    let say = || ModelScript::new().say("Done.");
    let server = serve(ScriptQueue::new([add(), say(), add(), say(), add(), say()])).await;
    let status = async |app: ThroughlineBuilder| {
        // No person is available.
        let app = app.approval(ApprovalMode::DenyAll { reason: "nobody is there".into() }).build().unwrap();
        let message = app.ask("Lunch").await.unwrap().finish().await;
        let call = message.calls().next().unwrap().clone();
        (call.status.unwrap(), call.rule.unwrap_or_default())
    };
    let (allowed, rule) = status(app(&server).allow("calendar.*")).await;
    assert_eq!((allowed, rule.as_str()), (CallStatus::Success, "rule:1 allow calendar.*"));
    let (asked, _) = status(app(&server).require_approval("calendar").allow("calendar.*")).await;
    assert_eq!(asked, CallStatus::Denied, "the first that fits");
    let (denied, rule) = status(app(&server).deny("calendar.add", "no lunch")).await;
    assert_eq!((denied, rule.as_str()), (CallStatus::Denied, "rule:1 deny calendar.add"));
    assert!(format!("{:?}", server.requests().last().unwrap().messages).contains("no lunch"));
    let agent = app(&server).deny("a.b", "no").build().unwrap().agents().remove(0);
    assert_eq!(agent.policy[0].decide, RuleAction::Deny);
}

#[tokio::test]
async fn builder_sets_sampling_parameters() {
    let server = serve(ScriptQueue::new([ModelScript::new().say("Hi.")])).await;
    let app = app(&server).temperature(0.25).max_output_tokens(77).body_field("top_p", 0.5);
    app.build().unwrap().ask("Hi").await.unwrap().finish().await.into_result().unwrap();
    let body = server.requests().remove(0).body;
    assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.25), &json!(0.5)), "{body}");
    assert!(body.to_string().contains("77"), "{body}");
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Place {
    city: String,
    people: u32,
}

#[tokio::test]
async fn typed_answer_is_parsed_after_calls_and_one_repair() {
    let server = serve(ScriptQueue::new([
        ModelScript::new().say("Let me look.").call("weather_today", json!({"city": "Oslo"})),
        ModelScript::new().say("```json\n{\"city\": \"Oslo\"}\n```"),
        ModelScript::new().say(r#"{"city": "Oslo", "people": 700000}"#),
    ]))
    .await;
    let place: Place = app(&server).build().unwrap().ask_as("Tell me about Oslo.").await.unwrap();
    assert_eq!(place, Place { city: "Oslo".into(), people: 700_000 });
    let requests = server.requests();
    assert!(
        requests[0].instructions.as_ref().unwrap().contains(r#""people""#),
        "the schema is in the prompt"
    );
    assert!(requests[2].user_text().contains("missing field `people`"), "{}", requests[2].user_text());
    assert_eq!(requests[2].messages.len(), 5, "question, call, result, answer, repair: {requests:#?}");
    assert_eq!(server.violations(), []);
}

#[tokio::test]
async fn missing_typed_answer_is_an_error_with_its_reason() {
    let server = serve(ScriptQueue::new([
        ModelScript::new().say("I don't know."),
        ModelScript::new().say("Really not."),
        ModelScript::status(401),
        ModelScript::new().call("queue_wait", json!({})),
    ]))
    .await;
    let app = app(&server).build().unwrap();
    let unreadable = app.ask_as::<Place>("Oslo?").await.unwrap_err();
    assert!(
        matches!(&unreadable, AnswerError::Unreadable { text, .. } if text == "Really not."),
        "{unreadable}"
    );
    let failed = app.ask_as::<Place>("Oslo?").await.unwrap_err();
    assert!(matches!(&failed, AnswerError::Turn(fault) if fault.status == Some(401)), "{failed}");

    let mut turn = app.start_turn(TurnRequest::new("Oslo?").answer_as::<Place>()).await.unwrap();
    while let Some(event) = turn.next().await {
        if let EventKind::ToolStart { .. } = event.kind {
            let _ = turn.cancel().await;
        }
    }
    let stopped = turn.finish_as::<Place>().await.unwrap_err();
    assert_eq!(stopped, AnswerError::Incomplete { status: Some(TurnStatus::Cancelled) });
}
