//! Upstreams of the program's own: requests that it authorizes, and models that run in its process.

use crate::support::{self, DIALECTS, at, builder, read, serve};
use async_trait::async_trait;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use throughline::engine::{FailureKind, UpstreamFailure};
use throughline::wire::{Dialect, Message, ModelRequest};
use throughline::{
    AuthorizeError, CallStatus, InProcessModel, ReplySender, Throughline, ToolMode, TurnStatus, Upstream,
};
use throughline_testkit::{ModelScript, ScriptQueue};
use tokio::sync::Notify;

#[tokio::test]
async fn each_request_is_authorized_again_over_its_body() {
    let server = serve(ScriptQueue::new([ModelScript::status(503), ModelScript::new().say("Hi.")])).await;
    let minted = Arc::new(AtomicU32::new(0));
    let upstream = at(&server, DIALECTS[0]).authorize(move |mut request| {
        let number = minted.fetch_add(1, Ordering::Relaxed);
        async move {
            assert_eq!(
                (request.method(), request.header("content-type")),
                ("POST", Some("application/json"))
            );
            let body: serde_json::Value = serde_json::from_slice(request.body())?;
            let signature =
                format!("{}-{}", request.url().path(), body["model"].as_str().unwrap_or_default());
            request.set_header("authorization", format!("Bearer fresh-token-{number}"))?;
            request.set_header("x-signature", signature)?;
            Ok(request)
        }
    });
    let app = builder(&server, DIALECTS[0]).upstream(upstream).build().unwrap();
    let message = app.ask("Hi").await.unwrap().finish().await;
    assert_eq!(message.text(), "Hi.", "{:?}", message.error);
    let seen = server.requests();
    let tokens: Vec<_> = seen.iter().map(|request| request.header("authorization").unwrap()).collect();
    assert_eq!(tokens, ["Bearer fresh-token-0", "Bearer fresh-token-1"]);
    assert_eq!(seen[0].header("x-signature"), Some("/v1/chat/completions-m"));
}

#[tokio::test]
async fn request_is_not_sent_if_the_authorizer_fails() {
    let server = serve(ScriptQueue::new([])).await;
    let upstream = at(&server, DIALECTS[0])
        .authorize(|_| async { Err(AuthorizeError::new("the token service is away")) });
    let app = Throughline::builder().upstream(upstream).model("m").build().unwrap();
    let why = app.ask("Hi").await.unwrap().finish().await.error().unwrap().to_string();
    assert!(why.contains("the token service is away"), "{why}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn token_set_by_the_authorizer_is_redacted() {
    let refused = ModelScript::status(401).then(throughline_testkit::ScriptMove::Error(
        throughline_testkit::ErrorMove::new("Incorrect token: very-secret-token-1"),
    ));
    let server = serve(ScriptQueue::new([refused])).await;
    let upstream = at(&server, DIALECTS[0]).authorize(|mut request| async move {
        request.set_header("authorization", "Bearer very-secret-token-1")?;
        Ok(request)
    });
    let app = Throughline::builder().upstream(upstream).model("m").build().unwrap();
    let message = app.ask("Hi").await.unwrap().finish().await;
    assert!(!format!("{message:?}").contains("very-secret-token-1"), "{message:?}");
}

#[tokio::test]
async fn known_upstream_with_an_authorizer_needs_no_key() {
    let upstream = Upstream::known("groq").unwrap().key_from_variable("THROUGHLINE_TEST_NEVER_SET");
    let upstream = upstream.authorize(|request| async { Ok(request) });
    assert!(Throughline::builder().upstream(upstream).model("m").build().is_ok());
}

/// A model that calls the weather tool, then returns its result; in text mode it writes the call as text.
struct Local;

#[async_trait]
impl InProcessModel for Local {
    async fn reply(&self, request: ModelRequest, reply: &mut ReplySender) -> Result<(), UpstreamFailure> {
        reply.usage(3, 5).await;
        let told = format!("{:?}", request.messages);
        if told.contains("sunny") {
            reply.text("It is sunny.").await;
        } else if request.tools.is_empty() {
            reply.text("Let me look.\n<<<[TOOL_REQUEST]>>>\ntool_name:「始」weather_today「末」,\n").await;
            reply.text("city:「始」Oslo「末」\n<<<[END_TOOL_REQUEST]>>>").await;
        } else {
            reply.thinking("I need the weather.").await;
            reply.text("Let me look.").await;
            reply.call("weather_today", &json!({"city": "Oslo"})).await;
        }
        Ok(())
    }
}

#[tokio::test]
async fn in_process_model_runs_native_and_text_turns() {
    for mode in [ToolMode::Native, ToolMode::Text] {
        let app = Throughline::builder()
            .upstream(Upstream::in_process("local", Local).unwrap())
            .model("m")
            .mode(mode)
            .prompt("{{ tools }}")
            .tools(support::tools())
            .build()
            .unwrap();
        let (_, message) = read(app.ask("Weather in Oslo?").await.unwrap()).await;
        assert_eq!(message.text(), "Let me look.\n\nIt is sunny.", "{mode:?}: {message:#?}");
        let call = message.calls().next().unwrap();
        assert_eq!((call.status, call.output.as_str()), (Some(CallStatus::Success), "Oslo: sunny"));
        assert_eq!(message.usage.input_tokens, Some(6), "{mode:?}");
    }
}

/// A model that fails before any output.
struct Broken;

#[async_trait]
impl InProcessModel for Broken {
    async fn reply(&self, _: ModelRequest, _: &mut ReplySender) -> Result<(), UpstreamFailure> {
        let message = "the model is not loaded".to_owned();
        Err(UpstreamFailure { kind: FailureKind::ModelNotFound, status: None, message, retry_after_ms: None })
    }
}

/// A model that sends until its receiver is dropped.
struct Endless(Arc<Notify>);

struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl InProcessModel for Endless {
    async fn reply(&self, request: ModelRequest, reply: &mut ReplySender) -> Result<(), UpstreamFailure> {
        let _gone = OnDrop(self.0.clone());
        assert!(matches!(request.messages[0], Message::User(_)));
        loop {
            reply.text("on and ").await;
        }
    }
}

#[tokio::test]
async fn in_process_model_falls_back_and_can_be_cancelled() {
    let dropped = Arc::new(Notify::new());
    let app = Throughline::builder()
        .upstream(Upstream::in_process("broken", Broken).unwrap())
        .upstream(Upstream::in_process("endless", Endless(dropped.clone())).unwrap())
        .model("broken/m")
        .fallback("endless/m")
        .build()
        .unwrap();
    let mut turn = app.ask("Go").await.unwrap();
    while let Some(event) = turn.next().await {
        if let throughline::EventKind::ContentDelta { .. } = event.kind {
            let _ = turn.cancel().await;
        }
    }
    assert_eq!(turn.message().status, Some(TurnStatus::Cancelled));
    dropped.notified().await;
    let alone = Throughline::builder().upstream(Upstream::in_process("broken", Broken).unwrap()).model("m");
    let message = alone.build().unwrap().ask("Go").await.unwrap().finish().await;
    assert!(message.error().unwrap().to_string().contains("the model is not loaded"), "{message:?}");
    assert_eq!(Upstream::in_process("x", Broken).unwrap().wire_format(), Dialect::OpenaiChat);
}
