//! The upstream on real sockets: faults occur where the script puts them, and the client's reactions are
//! recorded.

use crate::client::{self, Over, asking, get, hello, open, path, post, read};
use serde_json::json;
use std::time::Duration;
use throughline_testkit::{
    BodyBreak, ExchangeEnd, FakeDialect, FakeUpstream, ModelScript, ParsedRequest, ReplyPace, ScenarioRules,
    ScriptMove, ScriptQueue, UpstreamVendor, mock,
};
use tokio::io::AsyncReadExt;

async fn playing(script: ModelScript) -> throughline_testkit::FakeUpstreamHandle {
    FakeUpstream::start(ScriptQueue::new([script])).await.expect("starts")
}

#[tokio::test]
async fn dialects_stream_to_their_final_marker() {
    let upstream = playing(ModelScript::new().say("Hello there.")).await;
    for (dialect, end) in [
        (FakeDialect::OpenaiChat, "data: [DONE]\n\n"),
        (FakeDialect::OpenaiResponses, "}}\n\n"),
        (FakeDialect::Anthropic, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
        (FakeDialect::Gemini, "}\n\n"),
        (FakeDialect::Ollama, "}\n"),
    ] {
        let reply = post(&upstream, &path(dialect, "mock"), &hello(dialect)).await;
        assert_eq!((reply.status, reply.over), (200, Over::Whole), "{dialect}");
        assert!(reply.text().ends_with(end) && reply.text().contains("Hello"), "{dialect}: {}", reply.text());
    }
    assert_eq!(upstream.violations(), []);
    assert_eq!(upstream.requests().len(), 5);
    assert_eq!(upstream.wait_for_end(5).await, ExchangeEnd::Complete);
    upstream.shutdown().await;
}

#[tokio::test]
async fn body_breaks_at_the_scripted_byte_or_move() {
    let whole = ModelScript::new().say("one two three");
    for (script, over, ending) in [
        (whole.clone().broken_at(100, BodyBreak::Cut), Over::Cut, BodyBreak::Cut),
        (whole.clone().broken_at(100, BodyBreak::Reset), Over::Reset, BodyBreak::Reset),
        (whole.clone().broken_at(100, BodyBreak::End), Over::Whole, BodyBreak::End),
        (whole.clone().then(ScriptMove::Cut), Over::Cut, BodyBreak::Cut),
        (whole.clone().then(ScriptMove::Reset), Over::Reset, BodyBreak::Reset),
        (whole.clone().then(ScriptMove::End), Over::Whole, BodyBreak::End),
    ] {
        let at_byte = script.cut.is_some();
        let upstream = playing(script).await;
        let reply =
            post(&upstream, &path(FakeDialect::OpenaiChat, ""), &hello(FakeDialect::OpenaiChat)).await;
        assert_eq!(reply.over, over, "{ending:?}");
        if at_byte {
            assert_eq!(reply.body.len(), 100, "{ending:?}");
        } else {
            let text = reply.text();
            assert!(text.contains("three") && !text.contains("[DONE]"), "{ending:?}: {text}");
            assert!(!text.contains("\"finish_reason\":\"stop\""), "{ending:?}: {text}");
        }
        assert_eq!(upstream.wait_for_end(1).await, ExchangeEnd::Broken(ending));
    }
}

#[tokio::test]
async fn whole_body_can_be_cut() {
    let upstream = playing(ModelScript::new().say("one two three").then(ScriptMove::Cut)).await;
    let body = json!({"model": "mock", "messages": [{"role": "user", "content": "hi"}]});
    let reply = post(&upstream, "/v1/chat/completions", &body).await;
    assert_eq!(reply.over, Over::Cut);
    assert!(serde_json::from_slice::<serde_json::Value>(&reply.body).is_err(), "{}", reply.text());
}

#[tokio::test]
async fn client_disconnect_during_a_stall_is_recorded() {
    let upstream = playing(ModelScript::new().say("wait").then(ScriptMove::Stall)).await;
    let mut stream = open(&upstream, "/api/chat", &hello(FakeDialect::Ollama)).await;
    upstream.wait_for_bytes(1, 1).await;
    let mut first = [0; 4096];
    let received = stream.read(&mut first).await.expect("the beginning");
    assert!(received > 0 && upstream.exchanges()[0].ending.is_none());
    drop(stream);
    assert_eq!(upstream.wait_for_end(1).await, ExchangeEnd::ClientDisconnected);
}

#[tokio::test]
async fn shutdown_cuts_a_reply_in_progress() {
    let upstream = playing(ModelScript::new().then(ScriptMove::Stall)).await;
    let mut stream = open(&upstream, "/v1/messages", &hello(FakeDialect::Anthropic)).await;
    upstream.wait_for_request(1).await;
    upstream.shutdown().await;
    assert_eq!(read(&mut stream).await.over, Over::Cut);
}

#[tokio::test]
async fn connection_is_reused_after_a_complete_reply() {
    let upstream = playing(ModelScript::new().say("again")).await;
    let mut stream = open(&upstream, "/api/chat", &hello(FakeDialect::Ollama)).await;
    assert_eq!(read(&mut stream).await.over, Over::Whole);
    let body = hello(FakeDialect::Ollama).to_string();
    let chunked = format!(
        "POST /api/chat HTTP/1.1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
        5,
        &body[..5],
        body.len() - 5,
        &body[5..]
    );
    tokio::io::AsyncWriteExt::write_all(&mut stream, chunked.as_bytes()).await.expect("sends");
    assert!(read(&mut stream).await.text().contains("again"));
    assert_eq!(stream.read(&mut [0; 1]).await.expect("closed"), 0, "as `connection: close` asks");
    assert_eq!(upstream.bodies().len(), 2);
}

#[tokio::test]
async fn error_replies_have_status_headers_and_dialect_error() {
    for (dialect, expected) in [
        (FakeDialect::OpenaiChat, "/error/code"),
        (FakeDialect::OpenaiResponses, "/error/message"),
        (FakeDialect::Anthropic, "/error/type"),
        (FakeDialect::Gemini, "/error/status"),
        (FakeDialect::Ollama, "/error"),
        (FakeDialect::Cohere, "/message"),
        (FakeDialect::BedrockConverse, "/message"),
        (FakeDialect::BedrockAnthropic, "/message"),
    ] {
        let upstream = playing(ModelScript::rate_limited(7)).await;
        let reply = post(&upstream, &path(dialect, "mock"), &hello(dialect)).await;
        assert_eq!(reply.status, 429, "{dialect}");
        assert!(reply.head.contains("\r\nretry-after: 7"), "{}", reply.head);
        let json = reply.json();
        assert!(json.pointer(expected).is_some_and(|v| v.as_str().is_some_and(|s| !s.is_empty())), "{json}");
    }
    let upstream = playing(ModelScript::html(502)).await;
    let reply = post(&upstream, "/api/chat", &hello(FakeDialect::Ollama)).await;
    assert!(reply.status == 502 && reply.head.contains("text/html") && reply.text().starts_with("<html>"));
}

#[tokio::test]
async fn vendors_without_tools_reject_only_requests_with_tools() {
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}});
    for vendor in UpstreamVendor::ALL {
        let upstream = FakeUpstream::start(ScriptQueue::new([ModelScript {
            moves: vec![ScriptMove::Say("fine".into())],
            ..ModelScript::tools_unsupported(vendor)
        }]))
        .await
        .expect("starts");
        let mut body = hello(FakeDialect::OpenaiChat);
        assert_eq!(post(&upstream, "/v1/chat/completions", &body).await.status, 200);
        body["tools"] = json!([tool]);
        let reply = post(&upstream, "/v1/chat/completions", &body).await;
        assert!(matches!(reply.status, 400 | 404 | 422 | 500), "{vendor:?}");
        assert!(reply.text().contains("tool") || reply.text().contains("Function call"), "{}", reply.text());
    }
}

#[tokio::test]
async fn errors_and_garbage_come_inside_a_200_stream() {
    for dialect in client::talk::SPOKEN {
        let error = throughline_testkit::ErrorMove::new("Token limit reached");
        let upstream = playing(ModelScript::new().say("Let me").then(ScriptMove::Error(error))).await;
        let reply = post(&upstream, &path(dialect, "mock"), &hello(dialect)).await;
        let text = reply.text();
        assert_eq!((reply.status, reply.over), (200, Over::Whole), "{dialect}");
        assert!(text.contains("Token limit reached") && text.contains("error"), "{dialect}: {text}");
    }
    let upstream = playing(
        ModelScript::new().say("a").then(ScriptMove::Garbage(64)).then(ScriptMove::Raw(": x\n\n".into())),
    )
    .await;
    let reply = post(&upstream, "/v1/chat/completions", &hello(FakeDialect::OpenaiChat)).await;
    assert!(std::str::from_utf8(&reply.body).is_err());
    assert!(reply.text().contains(": x\n\n") && reply.text().ends_with("[DONE]\n\n"));
}

// Virtual time: the whole reply takes a minute on the fake clock and none on the wall.
#[tokio::test(start_paused = true)]
async fn reply_pace_and_pauses_are_honored() {
    let began = tokio::time::Instant::now();
    let slow = ReplyPace { tokens_per_second: Some(2.0), ..ReplyPace::INSTANT };
    let script = ModelScript {
        first_byte_ms: 3_000,
        ..ModelScript::new().say("a b c d").then(ScriptMove::Pause(5_000)).with_pace(slow)
    };
    let upstream = playing(script).await;
    let reply = post(&upstream, "/api/chat", &hello(FakeDialect::Ollama)).await;
    assert_eq!(reply.events().len(), 5, "four tokens and the last line");
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(11), "{took:?}");
}

#[tokio::test]
async fn reply_continues_when_the_awaited_file_exists() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("go");
    let upstream =
        playing(ModelScript::new().say("before").then(ScriptMove::WaitFor(file.clone())).say("after")).await;
    let question = hello(FakeDialect::OpenaiChat);
    let mut asked = std::pin::pin!(post(&upstream, "/v1/chat/completions", &question));
    let early = tokio::time::timeout(Duration::from_millis(100), asked.as_mut()).await;
    assert!(early.is_err(), "it is not over while the file is missing");
    std::fs::write(&file, "").expect("written");
    assert!(asked.await.text().contains("after"));
}

#[tokio::test]
async fn model_lists_are_served_and_unknown_paths_are_404() {
    let upstream = playing(ModelScript::new()).await;
    for (path, pointer, value) in [
        ("/v1/models", "/data/0/id", "mock"),
        ("/v1beta/models", "/models/0/name", "models/mock"),
        ("/api/tags", "/models/0/model", "mock"),
    ] {
        let reply = get(&upstream, path).await.json();
        assert_eq!(reply.pointer(pointer), Some(&value.into()), "{path}");
    }
    assert_eq!(get(&upstream, "/v1/nothing").await.status, 404);
    assert_eq!(get(&upstream, "/v1/chat/completions").await.status, 405);
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn model_can_be_a_function_of_the_request() {
    let upstream =
        FakeUpstream::start(|seen: &ParsedRequest| ModelScript::new().say(seen.user_text().to_uppercase()))
            .await
            .expect("starts");
    for dialect in client::talk::SPOKEN {
        let reply = post(&upstream, &path(dialect, "mock"), &asking(dialect, "echo")).await;
        assert!(reply.text().contains("ECHO"), "{dialect}");
        assert_eq!(upstream.requests().last().map(|seen| (seen.dialect, seen.step())), Some((dialect, 1)));
    }
}

#[tokio::test]
async fn scenario_file_is_served() {
    let rules = ScenarioRules::parse(
        r#"
        models = ["scripted-1"]
        [[rules]]
        when = { request = 1, contains = "HEL", model = "mo*" }
        then = [{ say = "first" }, { say = { text = "second", chunk_chars = 2 } }, { pause = 1 }, { finish = "length" }]
        [[rules]]
        when = { contains = "cut" }
        then = [{ say = "never" }, "cut"]
        [[rules]]
        when = { contains = "http" }
        then = { http = { status = 503, headers = { x-a = "b" }, body = { error = "busy" } } }
        "#,
    )
    .expect("legal");
    let upstream = mock::serve(([127, 0, 0, 1], 0).into(), rules).await.expect("starts");
    let first = post(&upstream, "/api/chat", &hello(FakeDialect::Ollama)).await.text();
    assert!(first.contains("first") && first.contains("\"se\"") && first.contains("\"length\""), "{first}");
    assert_eq!(post(&upstream, "/api/chat", &asking(FakeDialect::Ollama, "Cut it")).await.over, Over::Cut);
    let busy = post(&upstream, "/api/chat", &asking(FakeDialect::Ollama, "http")).await;
    assert_eq!((busy.status, busy.json()), (503, json!({"error": "busy"})));
    assert!(busy.head.contains("x-a: b"));
    let none = post(&upstream, "/api/chat", &asking(FakeDialect::Ollama, "other")).await;
    assert!(
        none.status == 400 && none.text().contains("No rule of this mock's script applies to request 4"),
        "{}",
        none.text()
    );
    assert!(get(&upstream, "/v1/models").await.text().contains("scripted-1"));
}

#[test]
fn invalid_scenario_is_rejected_with_a_reason() {
    for (text, expected) in [
        ("[[rules]]\nthen = [{ shout = \"a\" }]", "unknown variant `shout`, expected one of `say`"),
        ("[[rules]]\nwhen = { contain = \"a\" }\nthen = []", "unknown field `contain`"),
        ("[[rules]]\nthen = { move = [] }", "unknown field `move`"),
        ("{\"rules\": [{}]}", "missing field `then`"),
    ] {
        let error = ScenarioRules::parse(text).expect_err(text);
        assert!(error.contains(expected), "{error}");
    }
}

/// The scenarios that other tests use: each has its documented effect, in each dialect.
#[tokio::test]
async fn trouble_scenarios_behave_as_named() {
    assert!(ScenarioRules::trouble().rules.len() > 20);
    for dialect in client::talk::SPOKEN {
        let upstream = FakeUpstream::start(ScenarioRules::trouble()).await.expect("starts");
        let ask = async |word: &str| post(&upstream, &path(dialect, "trouble"), &asking(dialect, word)).await;
        for (word, over, part) in [
            ("two tools", Over::Whole, "demo_weather"),
            ("denied", Over::Whole, "demo_calendar"),
            ("failing", Over::Whole, "demo_fail"),
            ("unknown", Over::Whole, "demo_wether"),
            ("wrong arguments", Over::Whole, "demo_weather"),
            ("malformed", Over::Whole, "demo_weather"),
            ("cut", Over::Cut, "then"),
            ("reset", Over::Reset, "then"),
            ("no end", Over::Whole, "then"),
            ("error inside", Over::Whole, "The model is overloaded."),
            ("garbage", Over::Whole, "After"),
            ("length", Over::Whole, "longer"),
            ("hello", Over::Whole, "well"),
        ] {
            let reply = ask(word).await;
            assert_eq!((reply.status, reply.over), (200, over), "{dialect} {word}");
            assert!(reply.text().contains(part), "{dialect} {word}: {}", reply.text());
        }
        let early = ask("cut early").await;
        let sends_halves = !matches!(dialect, FakeDialect::Gemini | FakeDialect::Ollama);
        assert_eq!(
            (early.over, early.text().contains("demo_weather")),
            (Over::Cut, sends_halves),
            "{dialect}"
        );
        assert_eq!((ask("busy").await.status, ask("busy").await.status), (429, 200), "{dialect}");
        assert_eq!((ask("overloaded").await.status, ask("overloaded").await.status), (503, 503), "{dialect}");
        assert_eq!(ask("html").await.status, 502, "{dialect}");
        assert_eq!(upstream.violations(), []);
    }
}

#[tokio::test]
async fn only_the_newest_exchanges_are_retained() {
    let upstream = FakeUpstream::on_address(([127, 0, 0, 1], 0).into())
        .retain(2)
        .serve(ScriptQueue::new([ModelScript::new()]))
        .await
        .expect("starts");
    for _ in 0..3 {
        post(&upstream, "/api/chat", &hello(FakeDialect::Ollama)).await;
    }
    assert_eq!(upstream.wait_for_end(3).await, ExchangeEnd::Complete);
    let numbers: Vec<u64> = upstream.exchanges().iter().map(|exchange| exchange.number).collect();
    assert_eq!(numbers, [2, 3]);
}
