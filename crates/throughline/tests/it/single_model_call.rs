//! One streaming model call without the loop: its reader runs the tools and makes the next call.

use crate::support::{DIALECTS, at, serve};
use serde_json::json;
use throughline::Throughline;
use throughline::engine::FailureKind;
use throughline::wire::{
    CallOutcome, Message, ModelRequest, StepEvent, ToolDefinition, ToolOutput, UserPart,
};
use throughline_testkit::{ModelScript, ScriptQueue};

fn request() -> ModelRequest {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    ModelRequest {
        model: "m".to_owned(),
        messages: vec![Message::User(vec![UserPart::Text { text: "Weather in Oslo?".to_owned() }])],
        tools: vec![ToolDefinition::new("weather", "Weather", parameters)],
        ..ModelRequest::default()
    }
}

#[tokio::test]
async fn stream_model_leaves_tools_to_the_caller_in_every_dialect() {
    for dialect in DIALECTS {
        let server = serve(ScriptQueue::new([
            ModelScript::new().say("Let me look.").call("weather", json!({"city": "Oslo"})),
            ModelScript::new().say("It rains."),
        ]))
        .await;
        let app = Throughline::builder().upstream(at(&server, dialect)).model("m").build().unwrap();
        let mut stream = app.stream_model(request()).unwrap();
        let (mut text, mut deltas, mut sealed) = (String::new(), String::new(), Vec::new());
        while let Some(event) = stream.next().await {
            match event.unwrap() {
                StepEvent::Text(piece) => text.push_str(&piece),
                StepEvent::CallArguments { delta, .. } => deltas.push_str(&delta),
                StepEvent::CallSealed { arguments, .. } => sealed.push(arguments.value),
                _ => {}
            }
        }
        assert_eq!((text.as_str(), sealed), ("Let me look.", vec![json!({"city": "Oslo"})]), "{dialect:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&deltas).unwrap(), json!({"city": "Oslo"}));
        assert!(stream.reply().usage.is_some(), "{dialect:?}");

        let message = serde_json::to_value(stream.reply()).unwrap();
        assert_eq!(message["content"], "Let me look.");
        let call = &message["tool_calls"][0];
        assert_eq!((&call["type"], &call["function"]["name"]), (&json!("function"), &json!("weather")));
        assert!(call["id"].as_str().is_some_and(|id| !id.is_empty()));

        let mut request = request();
        let step = stream
            .finish()
            .await
            .unwrap()
            .into_step("m", |call| CallOutcome::Done(ToolOutput::text(format!("{}: rain", call.name))));
        request.messages.push(Message::Step(step));
        let reply = app.stream_model(request).unwrap().finish().await.unwrap();
        assert_eq!(reply.text, "It rains.", "{dialect:?}");
        assert!(format!("{:?}", server.requests()[1].messages).contains("weather: rain"));
        assert_eq!(server.violations(), [], "{dialect:?}");
    }
}

#[tokio::test]
async fn failed_model_call_ends_the_stream_with_an_error() {
    let server = serve(ScriptQueue::new([ModelScript::status(401)])).await;
    let app = Throughline::builder().upstream(at(&server, DIALECTS[0])).model("m").build().unwrap();
    let mut stream = app.stream_model(request()).unwrap();
    let failure = stream.next().await.unwrap().unwrap_err();
    assert_eq!((failure.kind, failure.status), (FailureKind::Unauthorized, Some(401)));
    assert!(failure.to_string().starts_with("HTTP 401: "), "{failure}");
    assert!(stream.next().await.is_none(), "nothing follows");
}

#[tokio::test]
async fn dropping_the_stream_ends_its_request() {
    let server = serve(ScriptQueue::new([ModelScript::new().say("word ".repeat(100_000))])).await;
    let app = Throughline::builder().upstream(at(&server, DIALECTS[0])).model("m").build().unwrap();
    let mut stream = app.stream_model(request()).unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    server.wait_for_end(1).await;
}
