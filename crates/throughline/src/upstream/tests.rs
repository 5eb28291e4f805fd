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
    self as testkit, BodyBreak, ExchangeEnd, FakeUpstreamHandle, HttpAnswer, ModelScript, ParsedRequest,
    ScriptMove, ScriptQueue, UpstreamVendor,
};
use throughline_wire::text_calls::CallFormat;
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
fn default_timeouts_depend_on_the_upstream_address() {
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
async fn wrong_address_error_names_the_requested_url() {
    let model = |_: &ParsedRequest| ModelScript {
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
async fn every_dialect_sends_valid_requests_streamed_and_whole() {
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
                seen.delivery == testkit::parsed_request::ReplyDelivery::Whole,
                transfer == TransferMode::Whole,
                "{context}"
            );
            assert_eq!(seen.header("accept-encoding"), Some("identity"), "{context}");
            assert!(seen.headers.iter().any(|(_, value)| value.contains("sk-12345678")), "{context}");
        }
    }
}

#[tokio::test]
async fn every_failure_before_a_reply_has_its_kind() {
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
            "received a web page instead of a reply: Login",
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
            "the connection to test failed",
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
async fn connection_failure_is_explained() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    for (url, message) in [
        (format!("http://127.0.0.1:{port}"), "cannot connect to test"),
        ("http://nobody.invalid".to_owned(), "cannot resolve host name test"),
    ] {
        let upstream = Upstream::new("test", Dialect::OpenaiChat, &url).unwrap().proxy(UpstreamProxy::Off);
        let came = call(&client(upstream), &request()).await;
        assert_eq!(came.kind(), Some(K::Connect), "{url}: {came:?}");
        assert!(came.message().contains(message), "{url}: {came:?}");
    }
}

#[tokio::test]
async fn broken_stream_keeps_its_text_and_is_not_complete() {
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
async fn total_timeout_ends_a_call_despite_pings() {
    let moves = std::iter::repeat_n([ScriptMove::Pause(40), ScriptMove::Ping], 100).flatten();
    let script = ModelScript { moves: moves.collect(), ..ModelScript::new() };
    let server = testkit::FakeUpstream::start(ScriptQueue::new([script])).await.unwrap();
    let timeouts = UpstreamTimeouts { total_ms: 400, idle_ms: 5_000, ..UpstreamTimeouts::default() };
    let came = call(&client(chat(&server).timeouts(timeouts)), &request()).await;
    assert_eq!(came.kind(), Some(K::TotalTimeout), "{came:?}");
    assert_eq!(server.wait_for_end(1).await, ExchangeEnd::ClientDisconnected);
}

#[tokio::test]
async fn tools_refusal_is_recognized_for_every_vendor() {
    for vendor in UpstreamVendor::ALL {
        let model = move |_: &ParsedRequest| ModelScript {
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
async fn error_event_in_a_200_is_classified_also_mid_reply() {
    let error = |kind: &str, message: &str| {
        ScriptMove::Error(testkit::ErrorMove { kind: Some(kind.into()), ..testkit::ErrorMove::new(message) })
    };
    let overloaded = || error("overloaded_error", "Overloaded");
    let first = check(ModelScript::new().then(overloaded())).await;
    assert_eq!(first.kind(), Some(K::Overloaded), "{first:?}");
    let later = check(ModelScript::new().say("Well, ").then(overloaded())).await;
    assert_eq!((later.kind(), later.text().as_str()), (Some(K::Overloaded), "Well, "), "{later:?}");
    // An error without a class is left to the decoder.
    let vague = check(ModelScript::new().say("Well, ").then(error("oops", "Something went wrong."))).await;
    assert!(vague.failure.is_none() && matches!(vague.end(), Some(StreamEnd::Error(_))), "{vague:?}");
    assert_eq!(vague.text(), "Well, ");
}

#[tokio::test]
async fn refused_stream_options_are_omitted_from_then_on() {
    let model = |seen: &ParsedRequest| {
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
async fn refused_model_specific_fields_are_omitted_from_then_on() {
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
async fn refused_tool_schemas_are_plain_from_then_on() {
    for rule in [testkit::ToolSchemaRule::Moonshot, testkit::ToolSchemaRule::LlamaCpp] {
        let behavior =
            testkit::UpstreamBehavior { tool_schemas: rule, ..testkit::UpstreamBehavior::default() };
        let replies = ScriptQueue::new([ModelScript::new().say("Hello."), ModelScript::new().say("Again.")]);
        let server = testkit::FakeUpstream::with_behavior(behavior).serve(replies).await.unwrap();
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

/// Requests that are sent together are all refused, and each of them is repeated.
#[tokio::test]
async fn concurrently_refused_requests_are_all_retried() {
    let model = |seen: &ParsedRequest| {
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
async fn request_echoed_in_a_refusal_is_not_misread() {
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
async fn tools_beyond_the_upstream_limit_are_left_out_and_named() {
    let behavior = testkit::UpstreamBehavior { tools_max: Some(128), ..testkit::UpstreamBehavior::default() };
    let replies = [ModelScript::new().say("Hello.")];
    let server =
        testkit::FakeUpstream::with_behavior(behavior).serve(ScriptQueue::new(replies)).await.unwrap();
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

/// Names of the tools that a reply's problems report as left out.
fn left_out_tools(came: &ReceivedReply) -> Vec<&str> {
    let named = came.events.iter().filter_map(|event| match event {
        StepEvent::Problem(problem) if problem.kind == ProblemKind::ToolsLeftOut => Some(&*problem.excerpt),
        _ => None,
    });
    named.collect()
}

/// A provider refuses the whole request because of one tool: the others work, and it is named.
#[tokio::test]
async fn refused_tool_is_left_out_and_named() {
    let behavior =
        testkit::UpstreamBehavior { refused_tools: &["bad"], ..testkit::UpstreamBehavior::default() };
    let tool = |name: &str| ToolDefinition::new(name, "", json!({"type": "object", "properties": {"a": {}}}));
    for dialect in DIALECTS {
        let replies = (0..3).map(|_| ModelScript::new().say("Hello."));
        let server =
            testkit::FakeUpstream::with_behavior(behavior).serve(ScriptQueue::new(replies)).await.unwrap();
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

/// All other tools were left out before, and the refusal teaches nothing new.
#[tokio::test]
async fn required_call_with_only_refused_tools_is_sent_once() {
    let behavior = testkit::UpstreamBehavior { refused_tools: &["bad", "worse"], ..Default::default() };
    let server = testkit::FakeUpstream::with_behavior(behavior);
    let server = server.serve(ScriptQueue::new([ModelScript::new().say("Hello.")])).await.unwrap();
    let client = client(chat(&server));
    let tool = |name: &str| ToolDefinition::new(name, "", json!({"type": "object", "properties": {}}));
    let asking = ModelRequest { tools: vec![tool("bad"), tool("worse")], ..request() };
    let came = call(&client, &asking).await;
    assert_eq!((came.text().as_str(), server.exchanges().len()), ("Hello.", 4), "{came:?}");
    let came = call(&client, &ModelRequest { tool_choice: ToolChoice::Required, ..asking }).await;
    assert_eq!((came.kind(), server.exchanges().len()), (Some(K::Status), 5), "{came:?}");
}

/// An upstream that refuses one tool after the other is given a limited number of attempts in one call, and
/// the next call continues with the rest.
#[tokio::test]
async fn retries_for_refused_tools_are_limited_per_call() {
    let server = testkit::FakeUpstream::start(|seen: &ParsedRequest| match seen.tools.first() {
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
async fn refused_settings_are_left_out_and_named() {
    let behavior = testkit::UpstreamBehavior {
        unsupported: &["temperature", "top_p", "max_tokens"],
        ..testkit::UpstreamBehavior::default()
    };
    let replies = (0..2).map(|_| ModelScript::new().say("Hello."));
    let server =
        testkit::FakeUpstream::with_behavior(behavior).serve(ScriptQueue::new(replies)).await.unwrap();
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

/// Some models at Bedrock accept 20 pictures: the limit is learned, and only the newest pictures are sent
/// from then on.
#[tokio::test]
async fn images_beyond_a_refused_limit_are_left_out_afterwards() {
    let behavior =
        testkit::UpstreamBehavior { pictures_max: Some(20), ..testkit::UpstreamBehavior::default() };
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
            testkit::FakeUpstream::with_behavior(behavior).serve(ScriptQueue::new(replies)).await.unwrap();
        let client = client(at(&server, dialect));
        for exchanges in [2, 3] {
            let came = call(&client, &asking).await;
            assert_eq!((came.text(), server.exchanges().len()), ("Hello.".to_owned(), exchanges), "{came:?}");
        }
    }
}

/// Grok that thinks takes no penalties, and calls them by other names than its requests do.
#[tokio::test]
async fn setting_refused_under_another_spelling_is_left_out() {
    let behavior = testkit::UpstreamBehavior::of("xai");
    let replies = [ModelScript::new().say("Hello.")];
    let server =
        testkit::FakeUpstream::with_behavior(behavior).serve(ScriptQueue::new(replies)).await.unwrap();
    let mut asking = request();
    let extra = ["presence_penalty", "frequency_penalty"].map(|name| (name.to_owned(), json!(0.5)));
    asking.settings.extra = extra.into_iter().collect();
    let came = call(&client(chat(&server)), &asking).await;
    assert_eq!((came.text(), server.exchanges().len()), ("Hello.".to_owned(), 3), "{came:?}");
}

/// `text.verbosity` of Responses is inside an object; a refusal of a setting that was not sent is no reason
/// to repeat the call.
#[tokio::test]
async fn setting_that_stays_refused_is_sent_twice_at_most() {
    let words = "Unsupported parameter: 'text.verbosity' is not supported with this model.";
    let replies = (0..9).map(|_| refusal(400, words, "invalid_request_error"));
    let server = testkit::FakeUpstream::start(ScriptQueue::new(replies)).await.unwrap();
    let mut asking = request();
    asking.settings.extra = Map::from_iter([("text".to_owned(), json!({"verbosity": "low"}))]);
    let came = call(&client(at(&server, DIALECTS[1])), &asking).await;
    assert_eq!((came.kind(), server.exchanges().len()), (Some(K::Status), 2), "{came:?}");
}

/// A template of Mistral's models skips calls and results: that a user message after results must be
/// separated is learned.
#[tokio::test]
async fn user_after_tool_is_learned_from_a_template_error() {
    let behavior = testkit::UpstreamBehavior::of("devstral");
    let replies = (0..2).map(|_| ModelScript::new().say("Hello."));
    let server =
        testkit::FakeUpstream::with_behavior(behavior).serve(ScriptQueue::new(replies)).await.unwrap();
    let client = client(chat(&server));
    let messages = [request().messages, vec![Message::Step(step_with_call())], request().messages].concat();
    let asking = ModelRequest { messages, ..request() };
    for exchanges in [2, 3] {
        let came = call(&client, &asking).await;
        assert_eq!((came.text(), server.exchanges().len()), ("Hello.".to_owned(), exchanges), "{came:?}");
    }
}

#[tokio::test]
async fn mutually_exclusive_settings_are_valid_for_claude() {
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
async fn renamed_argument_names_are_restored_in_calls() {
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

/// Answers of Claude must not end after 4,096 tokens because no limit is configured.
#[tokio::test]
async fn required_output_limit_follows_from_the_model() {
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
async fn image_for_a_model_without_vision_becomes_a_note() {
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
    // The configuration takes precedence over the table of models.
    for seeing in ["kimi-k2.6", "nobody-knows", "deepseek-v4-pro"] {
        assert_eq!(content(seeing).await[0]["type"], "image_url", "{seeing}");
    }
}

/// The table of models cannot know the inputs that a gateway accepts: a profile that enables sound counts.
#[tokio::test]
async fn audio_is_sent_only_if_the_profile_supports_it() {
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
async fn refused_forced_call_is_retried_as_an_instruction() {
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
async fn unreadable_reasoning_is_dropped_and_retried_once() {
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

/// Reasoning in a client's history that another model has signed is left out permanently; the turn's own
/// reasoning is still sent back.
#[tokio::test]
async fn foreign_signature_is_dropped_but_not_that_of_the_turn() {
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
    // A user message between steps is not an input.
    let messages =
        [user(), vec![Message::Step(foreign.clone())], user(), vec![Message::Step(turn_step)], user()];
    let in_turn = ModelRequest { messages: messages.concat(), ..asking.clone() };
    for (text, exchanges) in [("One.", 3), ("Two.", 4)] {
        let came = call(&client, &in_turn).await;
        assert_eq!((came.text().as_str(), server.exchanges().len()), (text, exchanges), "{came:?}");
        let sent = String::from_utf8(server.bodies().pop().unwrap()).unwrap();
        assert!(sent.contains("signature") && !sent.contains("Zm9y"), "{sent}");
    }

    // In the middle of the turn foreign reasoning cannot be distinguished from the model's own, and the model
    // cannot continue without its reasoning.
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

/// Thoughts of the turn from a client or from another model of the same name: an older Claude accepts them
/// only if thinking is enabled.
#[tokio::test]
async fn refused_thinking_of_the_turn_is_left_out_afterwards() {
    let replies = [ModelScript::new().think("Hm.").call("tool_1", json!({})), ModelScript::new().say("One.")];
    let replies = replies.into_iter().chain([ModelScript::new().say("Two.")]);
    let behavior = testkit::UpstreamBehavior::of("claude-4.5");
    let server =
        testkit::FakeUpstream::with_behavior(behavior).serve(ScriptQueue::new(replies)).await.unwrap();
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

/// GLM through a gateway: "Tool choice must be auto".
#[tokio::test]
async fn tools_are_omitted_if_tool_choice_none_is_refused() {
    let behavior = testkit::UpstreamBehavior::of("zhipu");
    let replies = ["One.", "Two."].map(|text| ModelScript::new().say(text));
    let server =
        testkit::FakeUpstream::with_behavior(behavior).serve(ScriptQueue::new(replies)).await.unwrap();
    let client = client(chat(&server));
    let last_step = ModelRequest { tool_choice: ToolChoice::None, ..with_tools() };
    for (text, exchanges) in [("One.", 2), ("Two.", 3)] {
        let came = call(&client, &last_step).await;
        assert_eq!((came.text().as_str(), server.exchanges().len()), (text, exchanges), "{came:?}");
        assert_eq!(server.requests().last().unwrap().tools.len(), 0);
    }
}

#[tokio::test]
async fn failed_tool_generation_is_retried_once() {
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

/// Gateways and some servers send status 200 before they know that the request is refused.
#[tokio::test]
async fn refusal_inside_a_200_is_learned_and_retried() {
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
        // The beginning was already passed on.
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
async fn key_echoed_by_an_upstream_is_redacted() {
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
async fn request_without_its_key_is_not_sent_and_names_the_variable() {
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
async fn configured_headers_override_the_authorization() {
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
async fn unread_events_stop_reading_from_the_upstream() {
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
    // The socket's buffers fill up, and then the server blocks: its count does not change for a while.
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

/// A server that answers as many requests per connection as `answers` lists, and closes the connection on the
/// next request.
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
async fn only_a_stale_pooled_connection_is_retried_at_once() {
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
    /// Sends an endless reply.
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
async fn connection_is_reused_unless_a_complete_reply_stays_open() {
    let (url, counts) = streams(ServerTail::TheEnd).await;
    let client_of = |url: &str| client(Upstream::new("test", Dialect::OpenaiChat, url).unwrap());
    let client = client_of(&url);
    for _ in 0..20 {
        assert_eq!(call(&client, &request()).await.text(), "Hi");
        // The rest of the reply is read by a separate task, between two calls.
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
