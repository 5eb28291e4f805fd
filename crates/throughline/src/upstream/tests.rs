//! Model calls over real sockets, against the scriptable upstream.

use super::{
    CallTime, EventBatch, ModelHandoff, ModelItem, Upstream, UpstreamClient, UpstreamProxy, UpstreamTimeouts,
};
use crate::clock::TurnClock;
use crate::config::EnvVars;
use crate::media::MediaOffloader;
use crate::observe::ObservedCall;
use crate::upstream::models::ModelFacts;
use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use throughline_engine::{FailureKind as K, UpstreamFailure};
use throughline_testkit::{
    self as testkit, BodyBreak, ExchangeEnd, FakeUpstreamHandle, HttpAnswer, ModelScript, ScriptMove,
    ScriptQueue, SeenRequest, UpstreamVendor,
};
use throughline_wire::text::CallFormat;
use throughline_wire::{
    Call, CallArguments, CallKind, CallOutcome, ClosedStep, DecodeLimits, Dialect, Media, Message,
    ModelRequest, ModelSettings, ProblemKind, ProviderState, StepEvent, StreamEnd, ToolChoice,
    ToolDefinition, ToolOutput, TransferMode, UpstreamProfile, UserPart,
};

const DIALECTS: [(Dialect, testkit::FakeDialect); 8] = [
    (Dialect::OpenaiChat, testkit::FakeDialect::OpenaiChat),
    (Dialect::OpenaiResponses, testkit::FakeDialect::OpenaiResponses),
    (Dialect::Anthropic, testkit::FakeDialect::Anthropic),
    (Dialect::Gemini, testkit::FakeDialect::Gemini),
    (Dialect::Ollama, testkit::FakeDialect::Ollama),
    (Dialect::Cohere, testkit::FakeDialect::Cohere),
    (Dialect::BedrockConverse, testkit::FakeDialect::BedrockConverse),
    (Dialect::BedrockAnthropic, testkit::FakeDialect::BedrockAnthropic),
];

/// Result of a call.
#[derive(Debug)]
struct ReceivedReply {
    events: Vec<StepEvent<'static>>,
    failure: Option<UpstreamFailure>,
}

impl ReceivedReply {
    fn text(&self) -> String {
        self.events.iter().map(|event| if let StepEvent::Text(text) = event { text } else { "" }).collect()
    }
    fn end(&self) -> Option<&StreamEnd> {
        self.events.iter().find_map(|event| if let StepEvent::End(end) = event { Some(end) } else { None })
    }
    fn kind(&self) -> Option<K> {
        assert!(
            self.failure.is_none() || self.end().is_none(),
            "a failure stands instead of `End`: {self:?}"
        );
        self.failure.as_ref().map(|failure| failure.kind)
    }
    fn message(&self) -> &str {
        self.failure.as_ref().map_or("", |failure| &failure.message)
    }
}

fn at(server: &FakeUpstreamHandle, (ours, theirs): (Dialect, testkit::FakeDialect)) -> Upstream {
    Upstream::new("test", ours, &server.base_url(theirs)).unwrap()
}

fn chat(server: &FakeUpstreamHandle) -> Upstream {
    at(server, DIALECTS[0])
}

fn client(upstream: Upstream) -> UpstreamClient {
    UpstreamClient::new(upstream, DecodeLimits::default()).unwrap()
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        messages: vec![Message::User(vec![UserPart::Text { text: "Hello".into() }])],
        ..ModelRequest::default()
    }
}

fn with_tools() -> ModelRequest {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tool = ToolDefinition::new("weather_today", "Weather", parameters);
    ModelRequest { tools: vec![tool], ..request() }
}

async fn call(client: &UpstreamClient, request: &ModelRequest) -> ReceivedReply {
    let (said, clock, shelf) = (ModelHandoff::default(), TurnClock::start(), MediaOffloader::default());
    let time = CallTime { clock: &clock, deadline: client.deadline() };
    let mut call = Some(
        client
            .call(
                request.clone().into(),
                &CallFormat::Native,
                time,
                ObservedCall::unobserved(),
                &shelf,
                &said,
            )
            .boxed(),
    );
    let (mut batch, mut failure) = (EventBatch::default(), None);
    while let Some(item) = said.next_from(&mut call).await {
        match item {
            ModelItem::Events(events) => {
                assert!(!events.is_empty(), "an empty piece says nothing");
                events.into_iter().for_each(|event| batch.push(event));
            }
            ModelItem::Failed(why) => failure = Some(why),
        }
    }
    ReceivedReply { events: batch.into_events(), failure }
}

/// Calls once, without tools, an upstream that answers with `script`.
async fn check(script: ModelScript) -> ReceivedReply {
    let server = testkit::FakeUpstream::start(ScriptQueue::new([script])).await.unwrap();
    call(&client(quick(chat(&server))), &request()).await
}

/// Limits that a test can wait for.
fn quick(upstream: Upstream) -> Upstream {
    upstream.timeouts(UpstreamTimeouts {
        first_byte_ms: 1_500,
        idle_ms: 1_500,
        ..UpstreamTimeouts::default()
    })
}

#[test]
fn limits_of_time_follow_where_the_model_is() {
    let limits = |name: &str| Upstream::known(name).unwrap().time_limits();
    for name in ["ollama", "llama.cpp", "vllm", "lmstudio"] {
        assert_eq!(limits(name), UpstreamTimeouts::OWN_NETWORK, "{name}");
    }
    for name in ["openai", "anthropic", "deepseek"] {
        assert_eq!(limits(name), UpstreamTimeouts::default(), "{name}");
    }
    let moved = Upstream::known("ollama").unwrap().base_url("https://gpu.example.com").unwrap();
    assert_eq!(moved.time_limits(), UpstreamTimeouts::default());
    // A thinking model may be silent for minutes, before its reply and in the middle of it.
    let UpstreamTimeouts { first_byte_ms, idle_ms, .. } = UpstreamTimeouts::default();
    assert_eq!((first_byte_ms, idle_ms, limits("ollama").first_byte_ms), (300_000, 300_000, 600_000));
    let own = UpstreamTimeouts { idle_ms: 7, ..UpstreamTimeouts::default() };
    assert_eq!(Upstream::known("ollama").unwrap().timeouts(own).time_limits(), own);
}

#[tokio::test]
async fn an_address_with_nothing_there_is_named() {
    let model = |_: &SeenRequest| ModelScript {
        http: Some(HttpAnswer {
            status: 404,
            headers: BTreeMap::new(),
            body: Some(json!({"detail": "Not Found"})),
        }),
        ..ModelScript::new()
    };
    let server = testkit::FakeUpstream::start(model).await.unwrap();
    let came = call(&client(chat(&server)), &request()).await;
    let address = chat(&server).base_url.join("/chat/completions");
    assert_eq!(came.kind(), Some(K::WrongAddress), "{came:?}");
    assert_eq!(came.message(), format!("Not Found (POST {address})"));
    assert_eq!(server.exchanges().len(), 1);
}

#[tokio::test]
async fn every_dialect_streams_and_comes_whole_and_sends_what_its_provider_takes() {
    for dialect in DIALECTS {
        for transfer in [TransferMode::Stream, TransferMode::Whole] {
            let script =
                ModelScript::new().say("Let me look. ").call("weather_today", json!({"city": "巴黎"}));
            let server = testkit::FakeUpstream::start(ScriptQueue::new([script])).await.unwrap();
            let came =
                call(&client(at(&server, dialect).key("sk-12345678").transfer(transfer)), &with_tools())
                    .await;
            let context = format!("{} {transfer:?}: {came:?}", dialect.0);
            assert_eq!(server.violations(), [], "{context}");
            assert_eq!(came.text(), "Let me look. ", "{context}");
            let sealed = came.events.iter().find_map(|event| match event {
                StepEvent::CallSealed { arguments, .. } => Some(arguments.value.clone()),
                _ => None,
            });
            assert_eq!(sealed, Some(json!({"city": "巴黎"})), "{context}");
            assert_eq!(came.end(), Some(&StreamEnd::Complete), "{context}");
            let seen = &server.requests()[0];
            assert_eq!(
                seen.delivery == testkit::seen::ReplyDelivery::Whole,
                transfer == TransferMode::Whole,
                "{context}"
            );
            assert_eq!(seen.header("accept-encoding"), Some("identity"), "{context}");
            assert!(seen.headers.iter().any(|(_, value)| value.contains("sk-12345678")), "{context}");
        }
    }
}

#[tokio::test]
async fn every_way_to_fail_before_a_reply_has_its_kind() {
    let page = || Some(json!("<html><title>Login</title></html>"));
    let headers = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let http = |status, headers, body| ModelScript {
        http: Some(HttpAnswer { status, headers, body }),
        ..ModelScript::new()
    };
    let cases = [
        ("429", ModelScript::rate_limited(7), K::RateLimited, ""),
        ("503", ModelScript::status(503), K::Overloaded, ""),
        ("401", ModelScript::status(401), K::Unauthorized, ""),
        ("a proxy's page", ModelScript::html(502), K::Status, "502 Bad Gateway"),
        (
            "a page with 200",
            http(200, headers("content-type", "text/html"), page()),
            K::Status,
            "a web page came instead of a reply: Login",
        ),
        (
            "a redirect",
            http(307, headers("location", "https://elsewhere/"), None),
            K::Unsendable,
            "redirects to https://elsewhere/",
        ),
        (
            "compressed",
            http(200, headers("content-encoding", "gzip"), Some(json!("x"))),
            K::Status,
            "compressed (gzip)",
        ),
        (
            "no first byte",
            ModelScript { first_byte_ms: 60_000, ..ModelScript::new() },
            K::PromptTimeout,
            "1500 ms (first_byte_ms)",
        ),
        ("silence after the head", ModelScript::new().broken_at(0, BodyBreak::Stall), K::PromptTimeout, ""),
        (
            "reset at once",
            ModelScript::new().then(ScriptMove::Reset),
            K::Broken,
            "the connection to test broke",
        ),
    ];
    for (what, script, kind, message) in cases {
        let came = check(script).await;
        assert_eq!(came.kind(), Some(kind), "{what}: {came:?}");
        assert!(came.message().contains(message) && !came.message().is_empty(), "{what}: {came:?}");
        assert_eq!(came.text(), "", "{what}");
    }
    assert_eq!(check(ModelScript::rate_limited(7)).await.failure.unwrap().retry_after_ms, Some(7_000));
}

#[tokio::test]
async fn no_connection_is_told_in_words() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    for (url, message) in [
        (format!("http://127.0.0.1:{port}"), "no connection to test"),
        ("http://nobody.invalid".to_owned(), "the name test cannot be found"),
    ] {
        let upstream = Upstream::new("test", Dialect::OpenaiChat, &url).unwrap().proxy(UpstreamProxy::Off);
        let came = call(&client(upstream), &request()).await;
        assert_eq!(came.kind(), Some(K::Connect), "{url}: {came:?}");
        assert!(came.message().contains(message), "{url}: {came:?}");
    }
}

#[tokio::test]
async fn what_breaks_in_mid_stream_keeps_what_was_said_and_is_no_end() {
    let said = || ModelScript::new().say("The beginning of something long");
    for (what, last, kind) in [
        ("cut", ScriptMove::Cut, K::Broken),
        ("reset", ScriptMove::Reset, K::Broken),
        ("stall", ScriptMove::Stall, K::IdleTimeout),
    ] {
        // A reset may overtake what was sent before it; a breath lets that arrive.
        let came = check(said().then(ScriptMove::Pause(50)).then(last)).await;
        assert_eq!(came.kind(), Some(kind), "{what}: {came:?}");
        assert_eq!(came.text(), "The beginning of something long", "{what}");
    }
    let ended = check(said().then(ScriptMove::End)).await;
    assert_eq!(
        (ended.kind(), ended.end()),
        (None, Some(&StreamEnd::Truncated)),
        "a clean end without an end marker"
    );
}

#[tokio::test]
async fn a_call_that_takes_for_ever_is_given_up_although_it_lives() {
    let moves = std::iter::repeat_n([ScriptMove::Pause(40), ScriptMove::Ping], 100).flatten();
    let script = ModelScript { moves: moves.collect(), ..ModelScript::new() };
    let server = testkit::FakeUpstream::start(ScriptQueue::new([script])).await.unwrap();
    let timeouts = UpstreamTimeouts { total_ms: 400, idle_ms: 5_000, ..UpstreamTimeouts::default() };
    let came = call(&client(chat(&server).timeouts(timeouts)), &request()).await;
    assert_eq!(came.kind(), Some(K::TotalTimeout), "{came:?}");
    assert_eq!(server.wait_for_end(1).await, ExchangeEnd::ClientDisconnected);
}

#[tokio::test]
async fn each_servers_refusal_of_tools_is_recognized_and_only_if_there_were_tools() {
    for vendor in UpstreamVendor::ALL {
        let model = move |_: &SeenRequest| ModelScript {
            refuse_tools: Some(vendor),
            ..ModelScript::new().say("Hello.")
        };
        let server = testkit::FakeUpstream::start(model).await.unwrap();
        let client = client(chat(&server));
        assert_eq!(call(&client, &with_tools()).await.kind(), Some(K::ToolsUnsupported), "{vendor:?}");
        assert_eq!(call(&client, &request()).await.text(), "Hello.", "{vendor:?}");
    }
}

#[tokio::test]
async fn an_error_inside_a_200_is_what_it_says_also_in_mid_reply() {
    let error = |kind: &str, message: &str| {
        ScriptMove::Error(testkit::ErrorMove { kind: Some(kind.into()), ..testkit::ErrorMove::new(message) })
    };
    let overloaded = || error("overloaded_error", "Overloaded");
    let first = check(ModelScript::new().then(overloaded())).await;
    assert_eq!(first.kind(), Some(K::Overloaded), "{first:?}");
    let later = check(ModelScript::new().say("Well, ").then(overloaded())).await;
    assert_eq!((later.kind(), later.text().as_str()), (Some(K::Overloaded), "Well, "), "{later:?}");
    // One that says no more than that it failed is the decoder's.
    let vague = check(ModelScript::new().say("Well, ").then(error("oops", "Something went wrong."))).await;
    assert!(vague.failure.is_none() && matches!(vague.end(), Some(StreamEnd::Error(_))), "{vague:?}");
    assert_eq!(vague.text(), "Well, ");
}

#[tokio::test]
async fn stream_options_are_left_out_for_good_once_they_are_refused() {
    let model = |seen: &SeenRequest| {
        if !seen.wants_usage {
            return ModelScript::new().say("Hello.");
        }
        let detail = json!({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]});
        ModelScript {
            http: Some(HttpAnswer { status: 422, headers: BTreeMap::new(), body: Some(detail) }),
            ..ModelScript::new()
        }
    };
    let server = testkit::FakeUpstream::start(model).await.unwrap();
    let client = client(chat(&server));
    for requests in [2, 3] {
        let came = call(&client, &request()).await;
        assert_eq!((came.text().as_str(), server.requests().len()), ("Hello.", requests), "{came:?}");
    }
}

fn refusal(status: u16, message: &str, code: &str) -> ModelScript {
    let body = Some(json!({"error": {"message": message, "code": code}}));
    ModelScript { http: Some(HttpAnswer { status, headers: BTreeMap::new(), body }), ..ModelScript::new() }
}

#[tokio::test]
async fn what_only_some_models_take_is_left_out_for_good_once_it_is_refused() {
    let eager = UpstreamProfile { eager_arguments: true, ..UpstreamProfile::default() };
    for (dialect, profile, word, refused) in [
        (
            DIALECTS[1],
            UpstreamProfile::default(),
            "reasoning.encrypted_content",
            "Encrypted content is not supported with this model.",
        ),
        (
            DIALECTS[2],
            eager,
            "eager_input_streaming",
            "tools.0.custom.eager_input_streaming: Extra inputs are not permitted",
        ),
    ] {
        let replies = [
            refusal(400, refused, "bad"),
            ModelScript::new().say("Hello."),
            ModelScript::new().say("Again."),
        ];
        let server = testkit::FakeUpstream::start(ScriptQueue::new(replies)).await.unwrap();
        let client = client(at(&server, dialect).profile(profile));
        for (text, asks) in [("Hello.", [true, false].as_slice()), ("Again.", &[true, false, false])] {
            assert_eq!(call(&client, &with_tools()).await.text(), text);
            let bodies =
                server.exchanges().into_iter().map(|asked| String::from_utf8(asked.request.body).unwrap());
            assert_eq!(bodies.map(|body| body.contains(word)).collect::<Vec<_>>(), asks, "{word}");
        }
    }
}

#[tokio::test]
async fn schemas_of_tools_are_plain_for_good_once_one_is_refused() {
    for rule in [testkit::ToolSchemaRule::Moonshot, testkit::ToolSchemaRule::LlamaCpp] {
        let habits = testkit::UpstreamHabits { tool_schemas: rule, ..testkit::UpstreamHabits::default() };
        let replies = ScriptQueue::new([ModelScript::new().say("Hello."), ModelScript::new().say("Again.")]);
        let server = testkit::FakeUpstream::with_habits(habits).serve(replies).await.unwrap();
        let client = client(chat(&server));
        let parameters = json!({"type": "object", "properties":
            {"city": {"type": "string", "pattern": "\\S"}, "unit": {"description": "of the answer"}}});
        let tools = vec![ToolDefinition::new("weather_today", "Weather", parameters)];
        let asking = ModelRequest { tools, ..request() };
        for (text, patterns) in [("Hello.", [true, false].as_slice()), ("Again.", &[true, false, false])] {
            assert_eq!(call(&client, &asking).await.text(), text, "{rule:?}");
            let bodies =
                server.exchanges().into_iter().map(|asked| String::from_utf8(asked.request.body).unwrap());
            assert_eq!(bodies.map(|body| body.contains("pattern")).collect::<Vec<_>>(), patterns, "{rule:?}");
        }
    }
}

/// Of requests that are on their way together each is refused: not the first alone is asked again.
#[tokio::test]
async fn requests_that_are_refused_together_are_all_asked_again() {
    let model = |seen: &SeenRequest| {
        let refused = refusal(400, "Unknown field: stream_options", "bad");
        if seen.wants_usage { refused } else { ModelScript::new().say("Hello.") }
    };
    let server = testkit::FakeUpstream::start(model).await.unwrap();
    let (client, asking) = (client(chat(&server)), request());
    let came = futures_util::future::join_all((0..8).map(|_| call(&client, &asking))).await;
    assert!(came.iter().all(|came| came.text() == "Hello."), "{came:?}");
}

/// Servers that send the request back with their refusal name everything in it.
#[tokio::test]
async fn what_a_refusal_repeats_of_the_request_is_not_what_is_refused() {
    let echo = json!({"detail": [{"loc": ["body", "temperature"], "msg": "too hot",
        "input": {"stream_options": {"include_usage": true}, "tool_choice": "required"}}]});
    let http = HttpAnswer { status: 422, headers: BTreeMap::new(), body: Some(echo) };
    let script = ModelScript { http: Some(http), ..ModelScript::new() };
    let server = testkit::FakeUpstream::start(ScriptQueue::new([script])).await.unwrap();
    let forced = ModelRequest { tool_choice: ToolChoice::Required, ..with_tools() };
    let came = call(&client(chat(&server)), &forced).await;
    assert_eq!((came.kind(), server.exchanges().len()), (Some(K::Status), 1), "{came:?}");
}

fn step_with_call() -> ClosedStep {
    let call = Call {
        id: "c1".into(),
        upstream_id: Some("c1".into()),
        name: "tool_1".into(),
        kind: CallKind::default(),
        arguments: Ok(CallArguments::from_value(json!({}))),
        ran_with: None,
    };
    let calls = vec![(call, CallOutcome::Done(ToolOutput::text("Done.")))];
    ClosedStep { calls, ..ClosedStep::default() }
}

#[tokio::test]
async fn tools_that_an_upstream_does_not_take_are_left_out_and_named() {
    let habits = testkit::UpstreamHabits { tools_max: Some(128), ..testkit::UpstreamHabits::default() };
    let replies = [ModelScript::new().say("Hello.")];
    let server = testkit::FakeUpstream::with_habits(habits).serve(ScriptQueue::new(replies)).await.unwrap();
    let mut upstream = chat(&server);
    upstream.profile.tools_max = Some(128);
    let client = client(upstream);
    let tool = |number| ToolDefinition::new(format!("tool_{number}"), "", json!({}));
    let first = ModelRequest { tools: (0..150).map(tool).collect(), ..request() };
    let expected = (128..148).map(|number| format!("tool_{number}")).collect::<Vec<_>>().join(", ");
    let came = call(&client, &first).await;
    assert_eq!(came.text(), "Hello.");
    assert_eq!(left_out_tools(&came), [format!("{expected}, and 2 more")]);
}

/// The names of the tools that a reply's problems say were left out.
fn left_out_tools(came: &ReceivedReply) -> Vec<&str> {
    let named = came.events.iter().filter_map(|event| match event {
        StepEvent::Problem(problem) if problem.kind == ProblemKind::ToolsLeftOut => Some(&*problem.excerpt),
        _ => None,
    });
    named.collect()
}

/// A provider refuses the whole request because of one tool: the others work, and it is named.
#[tokio::test]
async fn a_tool_that_an_upstream_takes_in_no_form_is_left_out_and_named() {
    let habits = testkit::UpstreamHabits { refused_tools: &["bad"], ..testkit::UpstreamHabits::default() };
    let tool = |name: &str| ToolDefinition::new(name, "", json!({"type": "object", "properties": {"a": {}}}));
    for dialect in DIALECTS {
        let replies = (0..3).map(|_| ModelScript::new().say("Hello."));
        let server =
            testkit::FakeUpstream::with_habits(habits).serve(ScriptQueue::new(replies)).await.unwrap();
        let client = client(at(&server, dialect));
        let asking = ModelRequest { tools: vec![tool("good"), tool("bad"), tool("ugly")], ..request() };
        let names_none = matches!(dialect.0, Dialect::Ollama | Dialect::Cohere);
        let came = call(&client, &asking).await;
        if names_none {
            assert_eq!((came.kind(), left_out_tools(&came)), (Some(K::Status), vec![]), "{came:?}");
            continue;
        }
        // In the plain form first.
        assert_eq!((came.text().as_str(), server.exchanges().len()), ("Hello.", 3), "{came:?}");
        assert_eq!(left_out_tools(&came), ["bad"]);
        let sent = server.requests().pop().unwrap().tools;
        assert_eq!(sent.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["good", "ugly"]);

        let came = call(&client, &asking).await;
        assert_eq!((server.exchanges().len(), left_out_tools(&came)), (4, vec!["bad"]), "{came:?}");

        let forced = ModelRequest { tool_choice: ToolChoice::Tool("bad".into()), ..asking.clone() };
        let came = call(&client, &forced).await;
        assert_eq!((came.kind(), server.exchanges().len()), (Some(K::Status), 5), "{came:?}");
        let alone = ModelRequest { tools: vec![tool("bad")], ..asking };
        let must_call = ModelRequest { tool_choice: ToolChoice::Required, ..alone.clone() };
        let came = call(&client, &must_call).await;
        assert_eq!((came.kind(), server.exchanges().len()), (Some(K::Status), 6), "{came:?}");
        let came = call(&client, &alone).await;
        assert_eq!((came.text().as_str(), left_out_tools(&came)), ("Hello.", vec!["bad"]), "{came:?}");
        assert_eq!(server.violations().len(), 4, "nothing else is refused: {:?}", server.violations());
    }
}

/// Each was left out before, and there is nothing more to learn.
#[tokio::test]
async fn a_call_that_has_to_be_made_with_refused_tools_alone_is_asked_for_once() {
    let habits = testkit::UpstreamHabits { refused_tools: &["bad", "worse"], ..Default::default() };
    let server = testkit::FakeUpstream::with_habits(habits);
    let server = server.serve(ScriptQueue::new([ModelScript::new().say("Hello.")])).await.unwrap();
    let client = client(chat(&server));
    let tool = |name: &str| ToolDefinition::new(name, "", json!({"type": "object", "properties": {}}));
    let asking = ModelRequest { tools: vec![tool("bad"), tool("worse")], ..request() };
    let came = call(&client, &asking).await;
    assert_eq!((came.text().as_str(), server.exchanges().len()), ("Hello.", 4), "{came:?}");
    let came = call(&client, &ModelRequest { tool_choice: ToolChoice::Required, ..asking }).await;
    assert_eq!((came.kind(), server.exchanges().len()), (Some(K::Status), 5), "{came:?}");
}

/// An upstream that refuses one tool after the other has an end in one call, and the next goes on from there.
#[tokio::test]
async fn an_upstream_that_refuses_every_tool_is_asked_a_limited_number_of_times() {
    let server = testkit::FakeUpstream::start(|seen: &SeenRequest| match seen.tools.first() {
        Some(tool) => refusal(400, &format!("Invalid schema for function '{}': no", tool.name), "bad"),
        None => ModelScript::new().say("Hello."),
    });
    let server = server.await.unwrap();
    let client = client(chat(&server));
    let tool = |number| ToolDefinition::new(format!("tool_{number}"), "", json!({}));
    let asking = ModelRequest { tools: (0..40).map(tool).collect(), ..request() };
    let came = call(&client, &asking).await;
    assert_eq!((came.kind(), server.exchanges().len()), (Some(K::Status), 33), "{came:?}");
    let came = call(&client, &asking).await;
    assert_eq!((came.text().as_str(), server.exchanges().len()), ("Hello.", 33 + 10), "{came:?}");
    let named = left_out_tools(&came);
    assert!(named.len() == 1 && named[0].ends_with("tool_19, and 20 more"), "{named:?}");
}

/// A reasoning model of OpenAI: two settings and the name of the limit are refused one after the other.
#[tokio::test]
async fn settings_a_model_refuses_are_left_out_and_named() {
    let habits = testkit::UpstreamHabits {
        unsupported: &["temperature", "top_p", "max_tokens"],
        ..testkit::UpstreamHabits::default()
    };
    let replies = (0..2).map(|_| ModelScript::new().say("Hello."));
    let server = testkit::FakeUpstream::with_habits(habits).serve(ScriptQueue::new(replies)).await.unwrap();
    let client = client(chat(&server));
    let mut asking = request();
    asking.settings.temperature = Some(0.2);
    asking.settings.max_output_tokens = Some(100);
    asking.settings.extra = Map::from_iter([("top_p".to_owned(), json!(0.9))]);
    for exchanges in [4, 5] {
        let came = call(&client, &asking).await;
        assert_eq!((came.text(), server.exchanges().len()), ("Hello.".to_owned(), exchanges), "{came:?}");
        let named = came.events.into_iter().find_map(|event| match event {
            StepEvent::Problem(problem) if problem.kind == ProblemKind::SettingsLeftOut => {
                Some(problem.excerpt)
            }
            _ => None,
        });
        assert_eq!(named.as_deref(), Some("temperature, top_p"));
    }
    assert_eq!(server.requests()[1].max_output_tokens, Some(100));
}

/// Some models at Bedrock take 20: it is learned, and only the newest are sent from then on.
#[tokio::test]
async fn pictures_over_the_number_that_a_model_takes_are_left_out_once_they_are_refused() {
    let habits = testkit::UpstreamHabits { pictures_max: Some(20), ..testkit::UpstreamHabits::default() };
    let picture = || UserPart::Image(Media::new("image/png".into(), "iVBORw0KGgo=".into()));
    let messages = vec![Message::User((0..25).map(|_| picture()).collect())];
    let asking = ModelRequest { messages, ..request() };
    let claude = DIALECTS.into_iter().filter(|(_, theirs)| {
        use testkit::FakeDialect as F;
        matches!(theirs, F::Anthropic | F::BedrockAnthropic | F::BedrockConverse)
    });
    for dialect in claude {
        let replies = (0..2).map(|_| ModelScript::new().say("Hello."));
        let server =
            testkit::FakeUpstream::with_habits(habits).serve(ScriptQueue::new(replies)).await.unwrap();
        let client = client(at(&server, dialect));
        for exchanges in [2, 3] {
            let came = call(&client, &asking).await;
            assert_eq!((came.text(), server.exchanges().len()), ("Hello.".to_owned(), exchanges), "{came:?}");
        }
    }
}

/// Grok that thinks takes no penalties, and calls them by other names than its requests do.
#[tokio::test]
async fn a_setting_that_is_refused_under_another_spelling_is_left_out() {
    let habits = testkit::UpstreamHabits::of("xai");
    let replies = [ModelScript::new().say("Hello.")];
    let server = testkit::FakeUpstream::with_habits(habits).serve(ScriptQueue::new(replies)).await.unwrap();
    let mut asking = request();
    let extra = ["presence_penalty", "frequency_penalty"].map(|name| (name.to_owned(), json!(0.5)));
    asking.settings.extra = extra.into_iter().collect();
    let came = call(&client(chat(&server)), &asking).await;
    assert_eq!((came.text(), server.exchanges().len()), ("Hello.".to_owned(), 3), "{came:?}");
}

/// `text.verbosity` of Responses stands inside an object; a refusal that names what is not sent is no reason to ask again.
#[tokio::test]
async fn a_setting_refused_for_ever_is_asked_for_twice_at_most() {
    let words = "Unsupported parameter: 'text.verbosity' is not supported with this model.";
    let replies = (0..9).map(|_| refusal(400, words, "invalid_request_error"));
    let server = testkit::FakeUpstream::start(ScriptQueue::new(replies)).await.unwrap();
    let mut asking = request();
    asking.settings.extra = Map::from_iter([("text".to_owned(), json!({"verbosity": "low"}))]);
    let came = call(&client(at(&server, DIALECTS[1])), &asking).await;
    assert_eq!((came.kind(), server.exchanges().len()), (Some(K::Status), 2), "{came:?}");
}

/// A template of Mistral's models passes over calls and results: what the user says after them is learned to be parted.
#[tokio::test]
async fn a_word_after_results_is_learned_from_a_template() {
    let habits = testkit::UpstreamHabits::of("devstral");
    let replies = (0..2).map(|_| ModelScript::new().say("Hello."));
    let server = testkit::FakeUpstream::with_habits(habits).serve(ScriptQueue::new(replies)).await.unwrap();
    let client = client(chat(&server));
    let messages = [request().messages, vec![Message::Step(step_with_call())], request().messages].concat();
    let asking = ModelRequest { messages, ..request() };
    for exchanges in [2, 3] {
        let came = call(&client, &asking).await;
        assert_eq!((came.text(), server.exchanges().len()), ("Hello.".to_owned(), exchanges), "{came:?}");
    }
}

#[tokio::test]
async fn settings_that_exclude_each_other_reach_claude_as_one() {
    let replies = (0..2).map(|_| ModelScript::new().say("Hello."));
    let server = testkit::FakeUpstream::start(ScriptQueue::new(replies)).await.unwrap();
    let client = client(at(&server, DIALECTS[2]));
    for thinking in [json!({"type": "disabled"}), json!({"type": "enabled", "budget_tokens": 2048})] {
        let mut asking = request();
        asking.settings.temperature = Some(0.2);
        asking.settings.max_output_tokens = Some(1000);
        let extra = [("thinking", thinking), ("top_p", json!(0.9)), ("top_k", json!(5))];
        asking.settings.extra = extra.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
        assert_eq!(call(&client, &asking).await.text(), "Hello.");
    }
    assert_eq!(server.violations(), []);
}

#[tokio::test]
async fn arguments_have_their_own_names_whatever_the_provider_takes() {
    let script =
        ModelScript::new().call("list_builds", json!({"filter_app_": "x", "argument_2": 1, "limit": 2}));
    let server = testkit::FakeUpstream::start(ScriptQueue::new([script])).await.unwrap();
    let parameters = json!({"type": "object", "properties": {"filter[app]": {}, "城市": {}, "limit": {}}});
    let tools = vec![ToolDefinition::new("list_builds", "Builds", parameters)];
    let came = call(&client(at(&server, DIALECTS[2])), &ModelRequest { tools, ..request() }).await;
    let sealed = came.events.iter().find_map(|event| match event {
        StepEvent::CallSealed { arguments, .. } => Some(arguments.value.clone()),
        _ => None,
    });
    assert_eq!(sealed, Some(json!({"filter[app]": "x", "城市": 1, "limit": 2})), "{came:?}");
}

/// Answers of Claude must not end after 4,096 tokens because nobody has set a limit.
#[tokio::test]
async fn a_limit_that_the_api_requires_follows_from_the_model() {
    let sent = async |model: &str, settings: ModelSettings| {
        let script = ScriptQueue::new([ModelScript::new().say("Hi")]);
        let server = testkit::FakeUpstream::start(script).await.unwrap();
        let facts = ModelFacts { output_tokens: Some(16_000), ..ModelFacts::default() };
        let client = client(at(&server, DIALECTS[2]))
            .with_models(Arc::new(BTreeMap::from([("home-claude".to_owned(), facts)])));
        let asking = ModelRequest { model: model.into(), settings, ..request() };
        assert_eq!(call(&client, &asking).await.text(), "Hi");
        let body: Value = serde_json::from_slice(&server.exchanges()[0].request.body).unwrap();
        body["max_tokens"].as_u64().unwrap()
    };
    let thinking = |tokens: u64| {
        let mut settings = ModelSettings::default();
        settings.extra.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": tokens}));
        settings
    };
    let few = ModelSettings { max_output_tokens: Some(100), ..ModelSettings::default() };
    assert_eq!(sent("claude-sonnet-5", ModelSettings::default()).await, 32_000);
    assert_eq!(sent("claude-sonnet-5", thinking(40_000)).await, 72_000);
    assert_eq!(sent("claude-sonnet-5", few).await, 100);
    assert_eq!(sent("home-claude", ModelSettings::default()).await, 16_000);
    assert_eq!(sent("nobody-knows", ModelSettings::default()).await, 4_096);
}

#[tokio::test]
async fn a_picture_for_a_model_that_does_not_see_becomes_a_note() {
    let content = async |model: &str| {
        let script = ScriptQueue::new([ModelScript::new().say("Hi")]);
        let server = testkit::FakeUpstream::start(script).await.unwrap();
        let facts = ModelFacts { vision: Some(true), ..ModelFacts::default() };
        let client = client(chat(&server))
            .with_models(Arc::new(BTreeMap::from([("test/deepseek-v4-pro".to_owned(), facts)])));
        let picture = Media::new("image/png".to_owned(), "iVBORw0KGgo=".to_owned());
        let messages = vec![Message::User(vec![UserPart::Image(picture)])];
        let asking = ModelRequest { model: model.into(), messages, ..request() };
        assert_eq!(call(&client, &asking).await.text(), "Hi");
        let body: Value = serde_json::from_slice(&server.exchanges()[0].request.body).unwrap();
        body["messages"][0]["content"].clone()
    };
    for blind in ["glm-4.7", "maker/qwen3.7-max"] {
        assert_eq!(content(blind).await, "[image image/png, 1 kB, sent by the user, which you cannot see]");
    }
    // What the configuration says of a model counts more than the table.
    for seeing in ["kimi-k2.6", "nobody-knows", "deepseek-v4-pro"] {
        assert_eq!(content(seeing).await[0]["type"], "image_url", "{seeing}");
    }
}

/// The table of models cannot know what a gateway takes: where a profile says that its models hear, they do.
#[tokio::test]
async fn sound_goes_where_the_configuration_says_that_it_is_heard() {
    let content = async |hears: Option<bool>, profile: UpstreamProfile| {
        let script = ScriptQueue::new([ModelScript::new().say("Hi")]);
        let server = testkit::FakeUpstream::start(script).await.unwrap();
        let facts = ModelFacts { audio: hears, ..ModelFacts::default() };
        let client = client(chat(&server).profile(profile))
            .with_models(Arc::new(BTreeMap::from([("glm-4.7".to_owned(), facts)])));
        let media = Media::new("audio/wav".to_owned(), "UklGRg==".to_owned());
        let messages = vec![Message::User(vec![UserPart::File { name: "sound.wav".to_owned(), media }])];
        let asking = ModelRequest { model: "glm-4.7".into(), messages, ..request() };
        assert_eq!(call(&client, &asking).await.text(), "Hi");
        let body: Value = serde_json::from_slice(&server.exchanges()[0].request.body).unwrap();
        body.to_string().contains("input_audio")
    };
    let hearing = || UpstreamProfile { audio: true, ..UpstreamProfile::default() };
    // Its maker's API does not take sound, by the table.
    assert!(content(None, hearing()).await);
    assert!(!content(Some(false), hearing()).await);
    assert!(!content(Some(true), UpstreamProfile::default()).await);
}

#[tokio::test]
async fn a_forced_call_that_is_refused_is_asked_for_in_words() {
    let refused = refusal(400, "tool_choice 'required' is incompatible with thinking enabled", "bad");
    let server = testkit::FakeUpstream::start(ScriptQueue::new([refused, ModelScript::new().say("Well.")]))
        .await
        .unwrap();
    let forced = ModelRequest { tool_choice: ToolChoice::Required, ..with_tools() };
    assert_eq!(call(&client(chat(&server)), &forced).await.text(), "Well.");
    let bodies: Vec<Value> = server
        .exchanges()
        .into_iter()
        .map(|asked| serde_json::from_slice(&asked.request.body).unwrap())
        .collect();
    assert_eq!((&bodies[0]["tool_choice"], bodies[1].get("tool_choice")), (&json!("required"), None));
    assert!(bodies[1].to_string().contains("this reply must call"), "{}", bodies[1]);
}

#[tokio::test]
async fn reasoning_that_cannot_be_read_any_more_is_left_out_once() {
    let refused = refusal(400, "The encrypted content could not be verified.", "invalid_encrypted_content");
    let foreign = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let off = "Provider returned error: messages.1.content.0: When thinking is disabled, an `assistant` message in the final \
               position cannot contain `thinking`.";
    for (replies, text, requests) in [
        (vec![refused.clone(), ModelScript::new().say("Hi")], "Hi", 2),
        (vec![refusal(400, off, "bad"), ModelScript::new().say("Hi")], "Hi", 2),
        (vec![refusal(400, foreign, "invalid_request_error"), ModelScript::new().say("Hi")], "Hi", 2),
        (vec![refused.clone(), refused], "", 2),
    ] {
        let server = testkit::FakeUpstream::start(ScriptQueue::new(replies)).await.unwrap();
        let came = call(&client(chat(&server)), &request()).await;
        assert_eq!((came.text().as_str(), server.exchanges().len()), (text, requests), "{came:?}");
    }
}

/// Reasoning that another model has signed, in a client's history, is left out for good; the turn's own goes on going back.
#[tokio::test]
async fn a_foreign_signature_costs_the_turn_none_of_its_own() {
    let call_tool = || ModelScript::new().think("Hm.").call("tool_1", json!({}));
    let replies = [call_tool(), ModelScript::new().say("One."), ModelScript::new().say("Two.")];
    let server = testkit::FakeUpstream::start(ScriptQueue::new(replies)).await.unwrap();
    let client = client(at(&server, DIALECTS[2]));
    let mut asking = ModelRequest { tools: vec![ToolDefinition::new("tool_1", "", json!({}))], ..request() };
    let thinking = json!({"type": "enabled", "budget_tokens": 1024});
    asking.settings.extra = Map::from_iter([("thinking".to_owned(), thinking)]);
    let came = call(&client, &asking).await;
    let own = came.events.iter().find_map(|event| match event {
        StepEvent::ProviderState(state) => Some(state.clone()),
        _ => None,
    });
    let own = own.unwrap_or_else(|| panic!("{came:?}"));
    let call_id = own.value["content"].as_array().unwrap().iter().find_map(|block| block["id"].as_str());
    let mut turn_step =
        ClosedStep { provider_state: Some(own.clone()), model: "m".into(), ..step_with_call() };
    turn_step.calls[0].0.upstream_id = call_id.map(Into::into);
    let content = json!([{"type": "thinking", "thinking": "Hm.", "signature": "Zm9y"}, {"type": "text", "text": "Hi."}]);
    let value = json!({"role": "assistant", "content": content});
    let foreign = ClosedStep {
        text: "Hi.".into(),
        provider_state: Some(ProviderState { dialect: Dialect::Anthropic, value }),
        model: "m".into(),
        ..ClosedStep::default()
    };
    let user = || request().messages;
    // A word between steps is no question.
    let messages =
        [user(), vec![Message::Step(foreign.clone())], user(), vec![Message::Step(turn_step)], user()];
    let in_turn = ModelRequest { messages: messages.concat(), ..asking.clone() };
    for (text, exchanges) in [("One.", 3), ("Two.", 4)] {
        let came = call(&client, &in_turn).await;
        assert_eq!((came.text().as_str(), server.exchanges().len()), (text, exchanges), "{came:?}");
        let sent = String::from_utf8(server.bodies().pop().unwrap()).unwrap();
        assert!(sent.contains("signature") && !sent.contains("Zm9y"), "{sent}");
    }

    // In the middle of the turn nothing can be told from the model's own, and it does not go on without what it has thought.
    let server =
        testkit::FakeUpstream::start(ScriptQueue::new([ModelScript::new().say("One.")])).await.unwrap();
    let calling = ClosedStep { calls: step_with_call().calls, ..foreign };
    let messages = [user(), vec![Message::Step(calling)]].concat();
    let client = self::client(at(&server, DIALECTS[2]));
    let came = call(&client, &ModelRequest { messages, ..asking }).await;
    assert_eq!((came.text().as_str(), server.exchanges().len()), ("One.", 2), "{came:?}");
    let is_named =
        |event: &StepEvent| matches!(event, StepEvent::Problem(problem) if problem.excerpt == "thinking");
    assert!(came.events.iter().any(is_named), "{came:?}");
}

/// Thoughts of the turn from a client or from another model of the same name: an older Claude takes them only where it is asked to
/// think.
#[tokio::test]
async fn thoughts_are_left_out_of_the_turn_where_a_model_says_that_it_does_not_think() {
    let replies = [ModelScript::new().think("Hm.").call("tool_1", json!({})), ModelScript::new().say("One.")];
    let replies = replies.into_iter().chain([ModelScript::new().say("Two.")]);
    let habits = testkit::UpstreamHabits::of("claude-4.5");
    let server = testkit::FakeUpstream::with_habits(habits).serve(ScriptQueue::new(replies)).await.unwrap();
    let client = client(at(&server, DIALECTS[2]));
    let asking = ModelRequest { tools: vec![ToolDefinition::new("tool_1", "", json!({}))], ..request() };
    let came = call(&client, &asking).await;
    let state = came.events.iter().find_map(|event| match event {
        StepEvent::ProviderState(state) => Some(state.clone()),
        _ => None,
    });
    let step = ClosedStep { provider_state: state, model: "m".into(), ..step_with_call() };
    let in_turn =
        ModelRequest { messages: [request().messages, vec![Message::Step(step)]].concat(), ..asking };
    for (text, exchanges) in [("One.", 3), ("Two.", 4)] {
        let came = call(&client, &in_turn).await;
        assert_eq!((came.text().as_str(), server.exchanges().len()), (text, exchanges), "{came:?}");
    }
    let sent: Vec<_> = server.bodies().into_iter().map(|body| String::from_utf8(body).unwrap()).collect();
    let has_thought: Vec<_> = sent.iter().map(|body| body.contains("signature")).collect();
    assert_eq!(has_thought, [false, true, false, false], "{sent:?}");
}

/// GLM behind a gateway: "Tool choice must be auto".
#[tokio::test]
async fn an_upstream_that_cannot_be_forbidden_to_call_gets_no_tools() {
    let habits = testkit::UpstreamHabits::of("zhipu");
    let replies = ["One.", "Two."].map(|text| ModelScript::new().say(text));
    let server = testkit::FakeUpstream::with_habits(habits).serve(ScriptQueue::new(replies)).await.unwrap();
    let client = client(chat(&server));
    let last_step = ModelRequest { tool_choice: ToolChoice::None, ..with_tools() };
    for (text, exchanges) in [("One.", 2), ("Two.", 3)] {
        let came = call(&client, &last_step).await;
        assert_eq!((came.text().as_str(), server.exchanges().len()), (text, exchanges), "{came:?}");
        assert_eq!(server.requests().last().unwrap().tools.len(), 0);
    }
}

#[tokio::test]
async fn a_model_that_could_not_write_its_call_gets_one_more_try() {
    let body = json!({"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}});
    let failed = ModelScript {
        http: Some(HttpAnswer { status: 400, headers: BTreeMap::new(), body: Some(body) }),
        ..ModelScript::new()
    };
    for (replies, text, requests) in
        [(vec![failed.clone(), ModelScript::new().say("Hi")], "Hi", 2), (vec![failed.clone(), failed], "", 2)]
    {
        let server = testkit::FakeUpstream::start(ScriptQueue::new(replies)).await.unwrap();
        let came = call(&client(chat(&server)), &with_tools()).await;
        assert_eq!((came.text().as_str(), server.exchanges().len()), (text, requests), "{came:?}");
    }
}

/// Gateways and some servers have sent their 200 before they know that the request is refused.
#[tokio::test]
async fn a_refusal_inside_an_answer_with_200_is_adapted_to_as_any_other() {
    let refused = |message: &str, code: &str| {
        let kind = Some(if code == "server_error" { code } else { "invalid_request_error" }.to_owned());
        let code = Some(code.to_owned()).filter(|code| !code.is_empty());
        let error = testkit::ErrorMove { kind, code, ..testkit::ErrorMove::new(message) };
        ModelScript::new().then(ScriptMove::Error(error))
    };
    let hi = || ModelScript::new().say("Hi");
    let temperature = "Unsupported parameter: 'temperature' is not supported with this model.";
    let no_call = || refused("Failed to call a function.", "tool_use_failed");
    for (replies, text, requests) in [
        (vec![refused(temperature, "400"), hi()], "Hi", 2),
        (vec![refused(temperature, ""), hi()], "Hi", 2),
        (vec![refused("failed to parse grammar", ""), hi()], "Hi", 2),
        (vec![refused("tool_choice 'required' is incompatible with thinking enabled", "400"), hi()], "Hi", 2),
        (vec![refused(temperature, ""), refused("failed to parse grammar", "500"), hi()], "Hi", 3),
        (vec![no_call(), hi()], "Hi", 2),
        (vec![no_call(), no_call(), hi()], "", 2),
        (vec![refused("Unsupported parameter: 'seed'", ""), hi()], "", 1),
        (vec![refused("the server is overloaded", "503"), hi()], "", 1),
        // Not about the request.
        (
            vec![refused("Unexpected error: the temperature sensor is unavailable", "server_error"), hi()],
            "",
            1,
        ),
        // Somebody has read the beginning.
        (
            vec![ModelScript { moves: [hi().moves, refused(temperature, "").moves].concat(), ..hi() }, hi()],
            "Hi",
            1,
        ),
    ] {
        let server = testkit::FakeUpstream::start(ScriptQueue::new(replies)).await.unwrap();
        let mut asking = ModelRequest { tool_choice: ToolChoice::Required, ..with_tools() };
        asking.settings.temperature = Some(0.2);
        let came = call(&client(chat(&server)), &asking).await;
        assert_eq!((came.text().as_str(), server.exchanges().len()), (text, requests), "{came:?}");
        assert_eq!(server.violations(), []);
        let is_named = |event: &&StepEvent| matches!(event, StepEvent::Problem(problem) if problem.kind == ProblemKind::SettingsLeftOut);
        assert!(came.events.iter().filter(is_named).count() <= 1, "named once: {came:?}");
    }
}

#[tokio::test]
async fn a_key_that_an_upstream_repeats_is_not_passed_on() {
    let body = Some(json!({"error": {"message": "Incorrect API key provided: sk-very-secret."}}));
    let script = ModelScript {
        http: Some(HttpAnswer { status: 401, headers: BTreeMap::new(), body }),
        ..ModelScript::new()
    };
    let server = testkit::FakeUpstream::start(ScriptQueue::new([script])).await.unwrap();
    let came = call(&client(chat(&server).key("sk-very-secret")), &request()).await;
    assert_eq!(came.message(), "Incorrect API key provided: ….");
}

#[tokio::test]
async fn without_its_key_nothing_is_sent_and_the_variable_is_named() {
    let server = testkit::FakeUpstream::start(ScriptQueue::new([])).await.unwrap();
    let upstream = chat(&server).with_key_value("NOBODY_SET_THIS", EnvVars::new().remove("NOBODY_SET_THIS"));
    let came = call(&client(upstream), &request()).await;
    assert_eq!(came.kind(), Some(K::Unauthorized));
    assert_eq!(
        came.message(),
        "there is no key: the environment variable NOBODY_SET_THIS is not set, and none is stored"
    );
    assert_eq!(server.exchanges().len(), 0);
}

#[tokio::test]
async fn headers_of_ones_own_are_sent_and_win() {
    let server =
        testkit::FakeUpstream::start(ScriptQueue::new([ModelScript::new().say("Hi")])).await.unwrap();
    let upstream = chat(&server)
        .key("sk-1")
        .header("Authorization", "Basic x")
        .unwrap()
        .header("x-team", "blue")
        .unwrap();
    call(&client(upstream), &request()).await;
    let seen = &server.requests()[0];
    assert_eq!((seen.header("authorization"), seen.header("x-team")), (Some("Basic x"), Some("blue")));
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let server = testkit::FakeUpstream::start(ScriptQueue::new([ModelScript::new()
        .say("Hello")
        .then(ScriptMove::Stall)]))
    .await
    .unwrap();
    let client = client(chat(&server));
    let (said, asked, clock, shelf) =
        (ModelHandoff::default(), request(), TurnClock::start(), MediaOffloader::default());
    let mut call = Some(
        client
            .call(
                asked.into(),
                &CallFormat::Native,
                CallTime { clock: &clock, deadline: client.deadline() },
                ObservedCall::unobserved(),
                &shelf,
                &said,
            )
            .boxed(),
    );
    assert!(matches!(said.next_from(&mut call).await, Some(ModelItem::Events(_))));
    assert!(call.is_some(), "it never ends by itself");
    drop(call);
    assert_eq!(server.wait_for_end(1).await, ExchangeEnd::ClientDisconnected);
}

#[tokio::test]
async fn an_upstream_is_not_read_while_nobody_takes_what_it_says() {
    let speech =
        testkit::SpeechMove { chunk_chars: Some(64 << 10), ..testkit::SpeechMove::from("x".repeat(1 << 20)) };
    let script = ModelScript { moves: vec![ScriptMove::Say(speech); 64], ..ModelScript::new() };
    let server = testkit::FakeUpstream::start(ScriptQueue::new([script])).await.unwrap();
    let client = client(chat(&server));
    let (said, asked, clock, shelf) =
        (ModelHandoff::default(), request(), TurnClock::start(), MediaOffloader::default());
    let mut call = Some(
        client
            .call(
                asked.into(),
                &CallFormat::Native,
                CallTime { clock: &clock, deadline: client.deadline() },
                ObservedCall::unobserved(),
                &shelf,
                &said,
            )
            .boxed(),
    );
    assert!(said.next_from(&mut call).await.is_some());
    // The socket's buffers fill up, and then the server cannot go on: its count stands still for a while.
    let mut sent = 0;
    loop {
        let more =
            tokio::time::timeout(std::time::Duration::from_millis(300), server.wait_for_bytes(1, sent + 1))
                .await;
        match more {
            Ok(()) => sent = server.exchanges()[0].sent,
            Err(_) => break,
        }
    }
    assert!(sent < 32 << 20, "{sent} of 64 MiB were taken by a reader that does not read");
    drop(call);
    assert_eq!(server.wait_for_end(1).await, ExchangeEnd::ClientDisconnected);
}

/// A server that answers each connection as often as `answers` says, and hangs up on the request after that.
async fn hangs_up_after(answers: &'static [usize]) -> (String, tokio::task::JoinHandle<usize>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut requests = 0;
        for answers in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            for answered in 0..=*answers {
                let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
                while !seen.ends_with(b"}") {
                    match stream.read(&mut buffer).await.unwrap() {
                        0 => return requests,
                        n => seen.extend_from_slice(&buffer[..n]),
                    }
                }
                requests += 1;
                if answered < *answers {
                    let body = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                        body.len()
                    );
                    stream.write_all((head + body).as_bytes()).await.unwrap();
                }
            }
        }
        requests
    });
    (url, serving)
}

#[tokio::test]
async fn only_a_connection_of_an_earlier_call_is_tried_again_at_once() {
    let whole = |url: &str| {
        client(Upstream::new("test", Dialect::OpenaiChat, url).unwrap().transfer(TransferMode::Whole))
    };

    let (url, serving) = hangs_up_after(&[1, 1]).await;
    let client = whole(&url);
    assert_eq!(call(&client, &request()).await.text(), "Hi");
    assert_eq!(
        call(&client, &request()).await.text(),
        "Hi",
        "the stale connection is replaced without a word"
    );
    drop(client);
    assert_eq!(serving.await.unwrap(), 3);

    let (url, serving) = hangs_up_after(&[0]).await;
    let came = call(&whole(&url), &request()).await;
    assert_eq!(came.kind(), Some(K::Broken), "a fresh connection that hangs up is a failure: {came:?}");
    assert_eq!(serving.await.unwrap(), 1);
}

/// Behavior of a server after a complete reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerTail {
    /// Ends the body.
    TheEnd,
    /// Keeps it open.
    Nothing,
    /// Says more and more.
    Much,
}

/// Answers calls on any number of connections. How many there were, each read until the client has left it.
async fn streams(behind: ServerTail) -> (String, tokio::sync::watch::Receiver<(usize, usize)>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (counted, counts) = tokio::sync::watch::channel((0, 0));
    let counted = std::sync::Arc::new(counted);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.send_modify(|(opened, _)| *opened += 1);
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                'connection: loop {
                    let mut seen = Vec::new();
                    while !seen.ends_with(b"}") {
                        match stream.read(&mut buffer).await {
                            Ok(0) | Err(_) => break 'connection,
                            Ok(n) => seen.extend_from_slice(&buffer[..n]),
                        }
                    }
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
                    let more = format!(": {}\n\n", "x".repeat(4_000));
                    let mut reply = format!("{head}{:x}\r\n{body}\r\n", body.len());
                    match behind {
                        ServerTail::TheEnd => reply += "0\r\n\r\n",
                        ServerTail::Nothing => {}
                        ServerTail::Much => reply += &format!("{:x}\r\n{more}\r\n", more.len()).repeat(100),
                    }
                    if stream.write_all(reply.as_bytes()).await.is_err() {
                        break;
                    }
                }
                counted.send_modify(|(_, left)| *left += 1);
            });
        }
    });
    (url, counts)
}

// Limits: `REST_BYTES_MAX` and `REST_MAX`.
#[tokio::test]
async fn a_connection_carries_call_after_call_unless_its_server_keeps_a_complete_reply_open() {
    let (url, counts) = streams(ServerTail::TheEnd).await;
    let client_of = |url: &str| client(Upstream::new("test", Dialect::OpenaiChat, url).unwrap());
    let client = client_of(&url);
    for _ in 0..20 {
        assert_eq!(call(&client, &request()).await.text(), "Hi");
        // What is left of the reply is read by a task of its own, between two calls.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(counts.borrow().0, 1, "of 20 calls");

    for behind in [ServerTail::Nothing, ServerTail::Much] {
        let (url, mut counts) = streams(behind).await;
        let client = client_of(&url);
        assert_eq!(call(&client, &request()).await.text(), "Hi");
        counts.wait_for(|(opened, left)| (*opened, *left) == (1, 1)).await.unwrap();
    }
}
