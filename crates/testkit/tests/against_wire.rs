//! Two implementations meet that share no code: what wire sends is accepted by a strict provider, and what a provider
//! streams is understood by wire.

mod client;

use client::{Over, Reply as Raw};
use serde_json::{Value, json};
use throughline_testkit::{
    CallMove, Dialect, ErrorMove, Finish, Model, Move, Queue, Script, Upstream, UpstreamHandle,
};
use throughline_wire::{
    Arguments, BrokenCall, Call, CallId, ClosedStep, DecodeOptions, End, FinishReason, Media, Message,
    ModelRequest, NotStarted, Outcome, Output, Profile, RawArguments, Reply, Started, StepDecoder,
    ToolChoice, ToolDefinition, Transfer, UserPart,
};

fn theirs(dialect: Dialect) -> throughline_wire::Dialect {
    match dialect {
        Dialect::OpenaiChat => throughline_wire::Dialect::OpenaiChat,
        Dialect::OpenaiResponses => throughline_wire::Dialect::OpenaiResponses,
        Dialect::Anthropic => throughline_wire::Dialect::Anthropic,
        Dialect::Gemini => throughline_wire::Dialect::Gemini,
        Dialect::Ollama => throughline_wire::Dialect::Ollama,
    }
}

fn model(dialect: Dialect) -> &'static str {
    // The strictest rules about signatures hold from Gemini 3 on.
    if dialect == Dialect::Gemini { "gemini-3-pro" } else { "mock" }
}

async fn start(model: impl Model) -> UpstreamHandle {
    Upstream::start(model).await.expect("starts")
}

async fn send(
    upstream: &UpstreamHandle,
    dialect: Dialect,
    request: &ModelRequest,
    transfer: Transfer,
) -> Raw {
    let encoded =
        throughline_wire::encode(theirs(dialect), request, &Profile::default(), transfer).expect("encodes");
    let whole = encoded.path.starts_with("/v1/") || encoded.path.starts_with("/api/");
    let path = if whole { encoded.path } else { format!("{}{}", dialect.base_path(), encoded.path) };
    client::post(upstream, &path, &encoded.body).await
}

fn decode(dialect: Dialect, body: &[u8], piece: usize) -> Reply {
    let mut decoder = StepDecoder::new(theirs(dialect), DecodeOptions::default());
    let mut reply = Reply::default();
    for piece in body.chunks(piece) {
        decoder.push(piece, &mut |event| reply.apply(event));
    }
    decoder.finish(&mut |event| reply.apply(event));
    reply
}

fn asking(dialect: Dialect, messages: Vec<Message>) -> ModelRequest {
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
fn closed(dialect: Dialect, reply: &Reply, outcomes: &[Outcome]) -> Message {
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
        provider_state: reply.state.clone(),
        model: model(dialect).into(),
    })
}

fn every_outcome() -> Vec<Outcome> {
    let picture = Media::new("image/png".into(), "iVBORw0KGgo=".into());
    vec![
        Outcome::Done(Output::text("21 °C")),
        Outcome::Done(Output::default()),
        Outcome::Done(Output { media: vec![picture], ..Output::text("a picture") }),
        Outcome::Failed { message: "boom".into(), partial: Some(Output::text("half")) },
        Outcome::Denied { reason: Some("no".into()) },
        Outcome::Cancelled(Started::No),
        Outcome::Cancelled(Started::Yes { ran_ms: 1, partial: None }),
        Outcome::TimedOut { limit_ms: 1, partial: None },
        Outcome::NotStarted(NotStarted::UnknownTool { closest: vec!["f".into()] }),
        Outcome::NotStarted(NotStarted::InvalidArguments { message: "/city: missing".into() }),
        Outcome::NotStarted(NotStarted::Interrupted),
        Outcome::Unknown,
    ]
}

fn two_calls() -> Script {
    let calls = ["北京", "Oslo"].map(|city| CallMove::new("f", json!({"city": city})));
    Script::new()
        .think("Which cities? \"Two\".")
        .say("Let me look 🙂. ")
        .then(Move::Parallel(calls.into()))
        .say("Done.")
}

/// R: W1, W4, W7: text, thought, calls and finish of each dialect, streamed and whole, whatever the pieces.
#[tokio::test]
async fn what_is_streamed_is_understood() {
    for dialect in Dialect::ALL {
        let upstream = start(Queue::new([two_calls()])).await;
        for (transfer, piece) in [(Transfer::Stream, 1), (Transfer::Stream, 1000), (Transfer::Whole, 1 << 20)]
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
            assert_eq!(reply.end, Some(End::Complete), "{dialect} {transfer:?}");
            assert_eq!(reply.problems, [], "{dialect} {transfer:?}");
            assert!(reply.usage.is_some_and(|usage| usage.output_tokens > Some(0)), "{dialect} {transfer:?}");
        }
        assert_eq!(upstream.violations(), [], "{dialect}");
    }
}

/// R: T9: a history with every outcome, in the dialect it was made in, is accepted as it stands, and the last step
/// without tools too.
#[tokio::test]
async fn every_history_is_accepted_and_arrives_as_it_was() {
    let outcomes = every_outcome();
    for dialect in Dialect::ALL {
        let upstream = start(Queue::new([two_calls()])).await;
        let mut history = vec![user("hi")];
        for pair in outcomes.chunks(2) {
            let raw = send(&upstream, dialect, &asking(dialect, history.clone()), Transfer::Stream).await;
            assert_eq!(raw.status, 200, "{dialect}: {}", raw.text());
            history.push(closed(dialect, &decode(dialect, &raw.body, 64), pair));
        }
        let mut last = asking(dialect, history.clone());
        last.tool_choice = ToolChoice::None;
        assert_eq!(send(&upstream, dialect, &last, Transfer::Stream).await.status, 200, "{dialect}");
        history.push(user("and now?"));
        let raw = send(&upstream, dialect, &asking(dialect, history), Transfer::Stream).await;
        assert_eq!(raw.status, 200, "{dialect}: {}", raw.text());
        assert_eq!(upstream.violations(), [], "{dialect}");

        let requests = upstream.requests();
        let at_the_end = &requests[requests.len() - 2];
        let told: Vec<String> = at_the_end.answered().iter().map(|(_, result)| result.text.clone()).collect();
        let is_none = !at_the_end.may_call();
        assert!(is_none, "{dialect}: tools are off in the last step");
        if dialect != Dialect::OpenaiChat && dialect != Dialect::Ollama {
            // There, a tool's picture follows as a user message.
            let expected: Vec<String> = outcomes.iter().map(Outcome::told_to_model).collect();
            assert_eq!(told, expected, "{dialect}");
        }
        assert_eq!(at_the_end.instructions.as_deref(), Some("Be brief."), "{dialect}");
    }
}

/// R: W7, T9: a conversation that changes its upstream on the way.
#[tokio::test]
async fn a_history_made_elsewhere_is_accepted_too() {
    for from in Dialect::ALL {
        for to in Dialect::ALL {
            let upstream = start(Queue::new([two_calls()])).await;
            let raw = send(&upstream, from, &asking(from, vec![user("hi")]), Transfer::Stream).await;
            let step = closed(from, &decode(from, &raw.body, 64), &every_outcome());
            let raw =
                send(&upstream, to, &asking(to, vec![user("hi"), step, user("go on")]), Transfer::Stream)
                    .await;
            assert_eq!(raw.status, 200, "{from} -> {to}: {}", raw.text());
        }
    }
}

/// R: W5: half a call is shown and never run, and goes back as what it was.
#[tokio::test]
async fn broken_calls_are_broken_everywhere() {
    for dialect in Dialect::ALL {
        let half =
            Script::new().say("a").call("f", json!({"city": "Oslo"})).call("g", "{\"city\": \"Par".into());
        let upstream = start(Queue::new([half])).await;
        let raw = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), Transfer::Stream).await;
        let reply = decode(dialect, &raw.body, 7);
        if dialect == Dialect::Gemini {
            // It never sends broken arguments, but says so.
            assert_eq!(reply.finish.map(|(reason, _)| reason), Some(FinishReason::Error), "{dialect}");
            continue;
        }
        let ending = reply.calls[1].ending.clone();
        assert!(
            matches!(ending, Some(Err((BrokenCall::InvalidJson { .. }, RawArguments(_))))),
            "{dialect}: {ending:?}"
        );
        let why = Outcome::NotStarted(NotStarted::InvalidArguments { message: "EOF".into() });
        let history = vec![user("hi"), closed(dialect, &reply, &[Outcome::Done(Output::text("ok")), why])];
        let raw = send(&upstream, dialect, &asking(dialect, history), Transfer::Stream).await;
        assert_eq!(raw.status, 200, "{dialect}: {}", raw.text());
    }
}

/// R: W5, R3: whatever breaks the stream, the end says so and no call that was open survives it.
#[tokio::test]
async fn faults_are_seen_for_what_they_are() {
    let call = || Script::new().say("a").call("f", json!({"city": "Oslo"}));
    for dialect in Dialect::ALL {
        for (fault, expected) in [
            (Move::Cut, End::Truncated),
            (Move::Reset, End::Truncated),
            (Move::End, End::Truncated),
            (Move::Error(ErrorMove::new("overloaded")), End::Error(Default::default())),
        ] {
            let upstream = start(Queue::new([call().then(fault.clone())])).await;
            let raw = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), Transfer::Stream).await;
            let end = decode(dialect, &raw.body, 7).end.expect("an end");
            match (&end, &expected) {
                (End::Error(error), End::Error(_)) => {
                    assert_eq!(error.message, "overloaded", "{dialect} {fault:?}");
                }
                _ => assert_eq!(end, expected, "{dialect} {fault:?}"),
            }
        }
        let half =
            Script::new().then(Move::HalfCall(CallMove::new("f", "{\"city\": \"Os".into()))).then(Move::Cut);
        let upstream = start(Queue::new([half])).await;
        let raw = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), Transfer::Stream).await;
        let reply = decode(dialect, &raw.body, 7);
        assert_eq!(reply.end, Some(End::Truncated), "{dialect}");
        for call in &reply.calls {
            assert!(matches!(call.ending, Some(Err((BrokenCall::Cut, _)))), "{dialect}: {:?}", call.ending);
        }
        // Cut at every 16th byte: never complete, never an error, never a call with other arguments.
        let upstream = start(Queue::new([call()])).await;
        let whole = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), Transfer::Stream).await;
        for at in (0..whole.body.len()).step_by(16) {
            let reply = decode(dialect, &whole.body[..at], 1 << 20);
            for call in &reply.calls {
                if let Some(Ok(Arguments { value, .. })) = &call.ending {
                    assert_eq!(*value, json!({"city": "Oslo"}), "{dialect} cut at {at}");
                }
            }
            assert!(
                matches!(reply.end, Some(End::Truncated | End::Complete)),
                "{dialect} cut at {at}: {:?}",
                reply.end
            );
        }
    }
}

#[tokio::test]
async fn finish_reasons_and_refused_requests() {
    for dialect in Dialect::ALL {
        for (finish, expected) in [(Finish::Stop, FinishReason::Stop), (Finish::Length, FinishReason::Length)]
        {
            let script = Script::new().say("a").then(Move::Finish(finish));
            let upstream = start(Queue::new([script])).await;
            let raw = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), Transfer::Stream).await;
            let reply = decode(dialect, &raw.body, 7);
            assert_eq!(reply.finish.map(|(reason, _)| reason), Some(expected), "{dialect}");
        }
        let upstream = start(Queue::new([Script::rate_limited(1)])).await;
        let raw = send(&upstream, dialect, &asking(dialect, vec![user("hi")]), Transfer::Stream).await;
        let end = decode(dialect, &raw.body, 7).end;
        assert!(matches!(&end, Some(End::Error(error)) if !error.message.is_empty()), "{dialect}: {end:?}");
    }
}
