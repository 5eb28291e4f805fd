//! Settings of a request on top of the agent's: instructions, sampling, a history that already ends with what is to be answered.

use crate::support::{DIALECTS, at};
use serde_json::{Value, json};
use throughline::wire::{
    Call, CallArguments, CallOutcome, ClosedStep, Dialect, Message, ModelSettings, ToolOutput, UserPart,
};
use throughline::{Throughline, TurnRequest};
use throughline_testkit::{FakeUpstream, ModelScript, ScriptQueue};

fn call() -> Message {
    let call = Call {
        id: "c1".into(),
        upstream_id: Some("c1".into()),
        name: "weather_today".into(),
        kind: Default::default(),
        arguments: Ok(CallArguments::from_value(json!({"city": "Oslo"}))),
        ran_with: None,
    };
    let calls = vec![(call, CallOutcome::Done(ToolOutput::text("rain")))];
    Message::Step(ClosedStep { calls, ..ClosedStep::default() })
}

/// A field of the dialect that we do not write by ourselves.
fn wish(dialect: Dialect) -> (&'static str, Value) {
    match dialect {
        Dialect::Anthropic | Dialect::BedrockAnthropic => ("metadata", json!({"user_id": "ada"})),
        Dialect::Cohere => ("safety_mode", json!("OFF")),
        Dialect::BedrockConverse => ("requestMetadata", json!({"user": "ada"})),
        Dialect::Gemini => ("cachedContent", json!("cachedContents/1")),
        Dialect::Ollama => ("keep_alive", json!("5m")),
        _ => ("user", json!("ada")),
    }
}

#[tokio::test]
async fn request_adds_history_instructions_and_settings() {
    for dialect in DIALECTS {
        let server =
            FakeUpstream::start(ScriptQueue::new([ModelScript::new().say("It rains.")])).await.unwrap();
        let app = Throughline::builder()
            .upstream(at(&server, dialect))
            .model("m")
            .prompt("You are short.")
            .build()
            .unwrap();
        let (field, value) = wish(dialect.0);
        let extra: Value = json!({ field: value });
        let request = TurnRequest {
            history: vec![Message::User(vec![UserPart::Text { text: "Weather?".into() }]), call()],
            instructions: Some("Speak like a pirate.".into()),
            settings: ModelSettings {
                temperature: Some(0.25),
                extra: extra.as_object().cloned().unwrap(),
                ..ModelSettings::default()
            },
            ..TurnRequest::default()
        };
        let message = app.start_turn(request).await.unwrap().finish().await;

        assert_eq!(message.text(), "It rains.", "{dialect:?}: {:?}", message.error);
        let seen = server.requests().remove(0);
        assert_eq!(seen.body[field], value, "{dialect:?}");
        assert!(seen.body.to_string().contains("0.25"), "{dialect:?}");
        assert_eq!(
            seen.instructions.as_deref(),
            Some("You are short.\n\nSpeak like a pirate."),
            "{dialect:?}"
        );
        let last = seen.messages.last().unwrap();
        assert!(
            format!("{last:?}").contains("rain"),
            "{dialect:?}: the outcome is the last thing said: {last:?}"
        );
        assert_eq!(server.violations(), []);
    }
}
