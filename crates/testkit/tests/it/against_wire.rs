//! Two independent implementations meet: requests of wire are accepted by a strict provider, and streams of a
//! provider are understood by wire.

use crate::client::{self, Over, Reply as Raw};
use serde_json::{Value, json};
use throughline_testkit::{
    CallMove, ErrorMove, FakeDialect, FakeModel, FakeUpstream, FakeUpstreamHandle, ModelScript, ScriptFinish,
    ScriptMove, ScriptQueue,
};
use throughline_wire::{
    BrokenCall, Call, CallArguments, CallId, CallOutcome, ClosedStep, DecodeOptions, FinishReason, Media,
    Message, ModelReply, ModelRequest, NotStarted, RawArguments, StartState, StepDecoder, StreamEnd,
    ToolChoice, ToolDefinition, ToolOutput, TransferMode, UpstreamProfile, UserPart,
};

fn theirs(dialect: FakeDialect) -> throughline_wire::Dialect {
    match dialect {
        FakeDialect::OpenaiChat => throughline_wire::Dialect::OpenaiChat,
        FakeDialect::OpenaiResponses => throughline_wire::Dialect::OpenaiResponses,
        FakeDialect::Anthropic => throughline_wire::Dialect::Anthropic,
        FakeDialect::Gemini => throughline_wire::Dialect::Gemini,
        FakeDialect::Ollama => throughline_wire::Dialect::Ollama,
        FakeDialect::Cohere => throughline_wire::Dialect::Cohere,
        FakeDialect::BedrockConverse => throughline_wire::Dialect::BedrockConverse,
        FakeDialect::BedrockAnthropic => throughline_wire::Dialect::BedrockAnthropic,
    }
}

fn model(dialect: FakeDialect) -> &'static str {
    // The strictest rules about signatures hold from Gemini 3 on.
    if dialect == FakeDialect::Gemini { "gemini-3-pro" } else { "mock" }
}

async fn start(model: impl FakeModel) -> FakeUpstreamHandle {
    FakeUpstream::start(model).await.expect("starts")
}

async fn send(
    upstream: &FakeUpstreamHandle,
    dialect: FakeDialect,
    request: &ModelRequest,
    transfer: TransferMode,
) -> Raw {
    let encoded = throughline_wire::encode(theirs(dialect), request, &UpstreamProfile::default(), transfer)
        .expect("encodes");
    let whole = encoded.path.starts_with("/v1/") || encoded.path.starts_with("/api/");
    let path = if whole { encoded.path } else { format!("{}{}", dialect.base_path(), encoded.path) };
    client::post(upstream, &path, &encoded.body).await
}

fn decode(dialect: FakeDialect, body: &[u8], piece: usize) -> ModelReply {
    let mut decoder = StepDecoder::new(theirs(dialect), DecodeOptions::default());
    let mut reply = ModelReply::default();
    for piece in body.chunks(piece) {
        decoder.push(piece, &mut |event| reply.apply(event));
    }
    decoder.finish(&mut |event| reply.apply(event));
    reply
}

fn asking(dialect: FakeDialect, messages: Vec<Message>) -> ModelRequest {
    let tool = |name: &str| {
        ToolDefinition::new(
            name,
            "A tool.",
            json!({"type": "object", "properties": {"city": {"type": "string", "minLength": 1}},
            "required": ["city"], "additionalProperties": false, "$schema": "https://json-schema.org/draft/2020-12/schema"}),
        )
    };
    ModelRequest {
        model: model(dialect).into(),
        instructions: Some("Be brief.".into()),
        messages,
        tools: vec![tool("f"), tool("g")],
        ..ModelRequest::default()
    }
}

fn user(text: &str) -> Message {
    Message::User(vec![UserPart::Text { text: text.into() }])
}

/// The step as the engine would close it, with these outcomes in turn.
fn closed(dialect: FakeDialect, reply: &ModelReply, outcomes: &[CallOutcome]) -> Message {
    let calls = reply.calls.iter().enumerate().map(|(i, call)| {
        let arguments = match call.ending.clone().expect("an ending") {
            Ok(arguments) => Ok(arguments),
            Err((_, raw)) => Err(raw),
        };
        let made = Call {
            id: CallId::new(format!("call_{i}")),
            upstream_id: call.upstream_id.clone(),
            name: call.name.clone(),
            kind: call.kind,
            arguments,
            ran_with: None,
        };
        (made, outcomes[i % outcomes.len()].clone())
    });
    Message::Step(ClosedStep {
        thinking: reply.thinking.clone(),
        text: reply.text.clone(),
        calls: calls.collect(),
        provider_state: reply.provider_state.clone(),
        model: model(dialect).into(),
    })
}

fn every_outcome() -> Vec<CallOutcome> {
    let picture = Media::new("image/png".into(), "iVBORw0KGgo=".into());
    vec![
        CallOutcome::Done(ToolOutput::text("21 °C")),
        CallOutcome::Done(ToolOutput::default()),
        CallOutcome::Done(ToolOutput { media: vec![picture], ..ToolOutput::text("a picture") }),
        CallOutcome::Failed { message: "boom".into(), partial: Some(ToolOutput::text("half")) },
        CallOutcome::Denied { reason: Some("no".into()) },
        CallOutcome::Cancelled(StartState::No),
        CallOutcome::Cancelled(StartState::Yes { ran_ms: 1, partial: None }),
        CallOutcome::TimedOut { limit_ms: 1, partial: None },
        CallOutcome::NotStarted(NotStarted::UnknownTool { closest: vec!["f".into()] }),
        CallOutcome::NotStarted(NotStarted::InvalidArguments { message: "/city: missing".into() }),
        CallOutcome::NotStarted(NotStarted::Interrupted),
        CallOutcome::unknown(),
    ]
}

fn two_calls() -> ModelScript {
    let calls = ["北京", "Oslo"].map(|city| CallMove::new("f", json!({"city": city})));
    ModelScript::new()
        .think("Which cities? \"Two\".")
        .say("Let me look 🙂. ")
        .then(ScriptMove::Parallel(calls.into()))
        .say("Done.")
}

/// Text, reasoning, calls and finish of each dialect, streamed and whole, in any pieces.
#[tokio::test]
async fn streamed_and_whole_replies_decode_in_every_dialect() {
    for dialect in FakeDialect::ALL {
        let upstream = start(ScriptQueue::new([two_calls()])).await;
        for (transfer, piece) in
            [(TransferMode::Stream, 1), (TransferMode::Stream, 1000), (TransferMode::Whole, 1 << 20)]
        {
            let raw = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), transfer).await;
            assert_eq!((raw.status, raw.over), (200, Over::Whole), "{dialect}: {}", raw.text());
            let reply = decode(dialect, &raw.body, piece);
            assert_eq!(reply.text, "Let me look 🙂. Done.", "{dialect} {transfer:?}");
            assert_eq!(reply.thinking, "Which cities? \"Two\".", "{dialect} {transfer:?}");
            let calls: Vec<(&str, Value)> = reply
                .calls
                .iter()
                .map(|call| match &call.ending {
                    Some(Ok(arguments)) => (call.name.as_str(), arguments.value.clone()),
                    other => panic!("{dialect} {transfer:?}: {other:?}"),
                })
                .collect();
            assert_eq!(
                calls,
                [("f", json!({"city": "北京"})), ("f", json!({"city": "Oslo"}))],
                "{dialect} {transfer:?}"
            );
            assert_eq!(
                reply.finish.as_ref().map(|(reason, _)| *reason),
                Some(FinishReason::ToolCalls),
                "{dialect}"
            );
            assert_eq!(reply.end, Some(StreamEnd::Complete), "{dialect} {transfer:?}");
            assert_eq!(reply.problems, [], "{dialect} {transfer:?}");
            assert!(reply.usage.is_some_and(|usage| usage.output_tokens > Some(0)), "{dialect} {transfer:?}");
        }
        assert_eq!(upstream.violations(), [], "{dialect}");
    }
}

/// A history with every outcome, in the dialect it was made in, is accepted unchanged, and the last step
/// without tools too.
#[tokio::test]
async fn history_is_accepted_by_its_own_dialect() {
    let outcomes = every_outcome();
    for dialect in FakeDialect::ALL {
        let upstream = start(ScriptQueue::new([two_calls()])).await;
        let mut history = vec![user("hi")];
        for pair in outcomes.chunks(2) {
            let raw = send(&upstream, dialect, &asking(dialect, history.clone()), TransferMode::Stream).await;
            assert_eq!(raw.status, 200, "{dialect}: {}", raw.text());
            history.push(closed(dialect, &decode(dialect, &raw.body, 64), pair));
        }
        let mut last = asking(dialect, history.clone());
        last.tool_choice = ToolChoice::None;
        assert_eq!(send(&upstream, dialect, &last, TransferMode::Stream).await.status, 200, "{dialect}");
        history.push(user("and now?"));
        let raw = send(&upstream, dialect, &asking(dialect, history), TransferMode::Stream).await;
        assert_eq!(raw.status, 200, "{dialect}: {}", raw.text());
        assert_eq!(upstream.violations(), [], "{dialect}");

        let requests = upstream.requests();
        let at_the_end = &requests[requests.len() - 2];
        let results: Vec<String> =
            at_the_end.answered_calls().iter().map(|(_, result)| result.text.clone()).collect();
        // Converse has no choice that forbids calls, and wants the tools defined that the history calls.
        let is_none = !at_the_end.may_call() || dialect == FakeDialect::BedrockConverse;
        assert!(is_none, "{dialect}: tools are off in the last step");
        if !matches!(dialect, FakeDialect::OpenaiChat | FakeDialect::Ollama | FakeDialect::Cohere) {
            // There, a tool's picture follows as a user message.
            let expected: Vec<String> = outcomes.iter().map(CallOutcome::model_text).collect();
            assert_eq!(results, expected, "{dialect}");
        }
        assert_eq!(at_the_end.instructions.as_deref(), Some("Be brief."), "{dialect}");
    }
}

/// A conversation that changes its upstream on the way.
#[tokio::test]
async fn history_of_another_dialect_is_accepted() {
    for from in FakeDialect::ALL {
        for to in FakeDialect::ALL {
            let upstream = start(ScriptQueue::new([two_calls()])).await;
            let raw = send(&upstream, from, &asking(from, vec![user("hi")]), TransferMode::Stream).await;
            let step = closed(from, &decode(from, &raw.body, 64), &every_outcome());
            let raw =
                send(&upstream, to, &asking(to, vec![user("hi"), step, user("go on")]), TransferMode::Stream)
                    .await;
            assert_eq!(raw.status, 200, "{from} -> {to}: {}", raw.text());
        }
    }
}

/// Half a call is shown and never run, and is sent back unchanged.
#[tokio::test]
async fn broken_call_is_detected_in_every_dialect() {
    for dialect in FakeDialect::ALL {
        let half = ModelScript::new()
            .say("a")
            .call("f", json!({"city": "Oslo"}))
            .call("g", "{\"city\": \"Par".into());
        let upstream = start(ScriptQueue::new([half])).await;
        let raw = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), TransferMode::Stream).await;
        let reply = decode(dialect, &raw.body, 7);
        if dialect == FakeDialect::Gemini {
            // It never sends broken arguments, but reports an error.
            assert_eq!(reply.finish.map(|(reason, _)| reason), Some(FinishReason::Error), "{dialect}");
            continue;
        }
        let ending = reply.calls[1].ending.clone();
        assert!(
            matches!(ending, Some(Err((BrokenCall::InvalidJson { .. }, RawArguments(_))))),
            "{dialect}: {ending:?}"
        );
        let why = CallOutcome::NotStarted(NotStarted::InvalidArguments { message: "EOF".into() });
        let history =
            vec![user("hi"), closed(dialect, &reply, &[CallOutcome::Done(ToolOutput::text("ok")), why])];
        let raw = send(&upstream, dialect, &asking(dialect, history), TransferMode::Stream).await;
        assert_eq!(raw.status, 200, "{dialect}: {}", raw.text());
    }
}

/// After any break of the stream, the end reports it and no open call survives it.
#[tokio::test]
async fn stream_faults_are_reported_in_every_dialect() {
    let call = || ModelScript::new().say("a").call("f", json!({"city": "Oslo"}));
    for dialect in FakeDialect::ALL {
        for (fault, expected) in [
            (ScriptMove::Cut, StreamEnd::Truncated),
            (ScriptMove::Reset, StreamEnd::Truncated),
            (ScriptMove::End, StreamEnd::Truncated),
            (ScriptMove::Error(ErrorMove::new("overloaded")), StreamEnd::Error(Default::default())),
        ] {
            let upstream = start(ScriptQueue::new([call().then(fault.clone())])).await;
            let raw =
                send(&upstream, dialect, &asking(dialect, vec![user("hi")]), TransferMode::Stream).await;
            let end = decode(dialect, &raw.body, 7).end.expect("an end");
            match (&end, &expected) {
                (StreamEnd::Error(error), StreamEnd::Error(_)) => {
                    assert_eq!(error.message, "overloaded", "{dialect} {fault:?}");
                }
                _ => assert_eq!(end, expected, "{dialect} {fault:?}"),
            }
        }
        let half = ModelScript::new()
            .then(ScriptMove::HalfCall(CallMove::new("f", "{\"city\": \"Os".into())))
            .then(ScriptMove::Cut);
        let upstream = start(ScriptQueue::new([half])).await;
        let raw = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), TransferMode::Stream).await;
        let reply = decode(dialect, &raw.body, 7);
        assert_eq!(reply.end, Some(StreamEnd::Truncated), "{dialect}");
        for call in &reply.calls {
            assert!(matches!(call.ending, Some(Err((BrokenCall::Cut, _)))), "{dialect}: {:?}", call.ending);
        }
        // Cut at every 16th byte: never complete, never an error, never a call with other arguments.
        let upstream = start(ScriptQueue::new([call()])).await;
        let whole = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), TransferMode::Stream).await;
        for at in (0..whole.body.len()).step_by(16) {
            let reply = decode(dialect, &whole.body[..at], 1 << 20);
            for call in &reply.calls {
                if let Some(Ok(CallArguments { value, .. })) = &call.ending {
                    assert_eq!(*value, json!({"city": "Oslo"}), "{dialect} cut at {at}");
                }
            }
            assert!(
                matches!(reply.end, Some(StreamEnd::Truncated | StreamEnd::Complete)),
                "{dialect} cut at {at}: {:?}",
                reply.end
            );
        }
    }
}

#[tokio::test]
async fn finish_reasons_and_rate_limits_are_decoded() {
    for dialect in FakeDialect::ALL {
        for (finish, expected) in
            [(ScriptFinish::Stop, FinishReason::Stop), (ScriptFinish::Length, FinishReason::Length)]
        {
            let script = ModelScript::new().say("a").then(ScriptMove::Finish(finish));
            let upstream = start(ScriptQueue::new([script])).await;
            let raw =
                send(&upstream, dialect, &asking(dialect, vec![user("hi")]), TransferMode::Stream).await;
            let reply = decode(dialect, &raw.body, 7);
            assert_eq!(reply.finish.map(|(reason, _)| reason), Some(expected), "{dialect}");
        }
        let upstream = start(ScriptQueue::new([ModelScript::rate_limited(1)])).await;
        let raw = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), TransferMode::Stream).await;
        let end = decode(dialect, &raw.body, 7).end;
        assert!(
            matches!(&end, Some(StreamEnd::Error(error)) if !error.message.is_empty()),
            "{dialect}: {end:?}"
        );
    }
}
