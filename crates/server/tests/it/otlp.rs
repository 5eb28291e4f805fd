//! Spans as a collector receives them.
#![cfg(feature = "otel")]

use crate::support::collector::{Collector, Habit, Span};
use crate::support::{self, TestServer, saying};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use throughline::config::ServerLimits;
use throughline_engine::{Event, TurnId};
use throughline_server::{
    AttributeValue, ContentCapture, OtlpExporter, Redaction, SPAN_CONTENT_BYTES_MAX, SpanKind, Telemetry,
    TelemetryFold, TraceContext, TraceFold, TraceSink, TurnTrace,
};
use throughline_testkit::{ModelScript, ParsedRequest};

/// Time for sending the rest at the end.
const BOUND: Duration = Duration::from_secs(30);
/// A sampled span of the caller.
const ASKING: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

const LOG: &str = r#"
    {"turn_id":"turn-1","seq":1,"timestamp":1700000000000,"type":"stream_start","v":1,"conversation_id":"c-1","message_id":"m","agent":"default","mode":"auto","input":[]}
    {"turn_id":"turn-1","seq":2,"timestamp":1700000000002,"type":"step_start","step":1,"upstream":"gemini","model":"flash","attempt":1,"tools_offered":["time.now"]}
    {"turn_id":"turn-1","seq":3,"timestamp":1700000000102,"type":"tool_use","step":1,"block":0,"tool_id":"turn-1.1","tool_name":"time.now","wire_name":"time_now","source":"mcp:clock","effect":"read","status":"preparing","slot":0,"position":0}
    {"turn_id":"turn-1","seq":4,"timestamp":1700000000110,"type":"tool_input","step":1,"block":0,"tool_id":"turn-1.1","arguments":{"zone":"canary-secret"},"seal":"explicit"}
    {"turn_id":"turn-1","seq":5,"timestamp":1700000000111,"type":"tool_start","step":1,"block":0,"tool_id":"turn-1.1","early":true,"attempt":1}
    {"turn_id":"turn-1","seq":6,"timestamp":1700000000120,"type":"step_end","step":1,"finish":"tool_calls","usage":{"input_tokens":9,"output_tokens":3}}
    {"turn_id":"turn-1","seq":7,"timestamp":1700000000161,"type":"tool_result","step":1,"block":0,"tool_id":"turn-1.1","status":"error","error":{"code":"failed"},"output":"said-by-tool","started_at":1700000000111,"duration_ms":50}
    {"turn_id":"turn-1","seq":8,"timestamp":1700000000200,"type":"stream_end","status":"completed"}
"#;

fn trace(content: ContentCapture) -> TurnTrace {
    let context = TraceContext::of(&TurnId::new("turn-1"), None);
    let (mut fold, mut spans, mut found) = (TelemetryFold::new(content), TraceFold::new(context), Vec::new());
    for line in LOG.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let event: Event = serde_json::from_str(line).expect(line);
        fold.apply(&event, event.timestamp, &mut found);
    }
    found.iter().find_map(|measurement| spans.apply(measurement)).expect("the turn has ended")
}

#[test]
fn turn_is_a_tree_of_spans_with_opt_in_content() {
    let TurnTrace { root, children, .. } = trace(ContentCapture::Omitted);
    assert_eq!((root.name.as_str(), root.kind), ("invoke_agent default", SpanKind::Internal));
    assert_eq!((root.start, root.end), (1_700_000_000_000, 1_700_000_000_200));
    let shown: Vec<_> =
        children.iter().map(|span| (span.name.as_str(), span.kind, span.end - span.start)).collect();
    assert_eq!(
        shown,
        [("chat flash", SpanKind::Client, 118), ("execute_tool time.now", SpanKind::Internal, 50)]
    );
    let has = |span: usize, name: &str, value: &str| {
        let value = AttributeValue::Text(value.to_owned());
        children[span].attributes.iter().any(|(key, found)| *key == name && *found == value)
    };
    assert!(has(0, "gen_ai.provider.name", "gcp.gemini"), "{:?}", children[0]);
    assert!(
        has(1, "error.type", "tool_error") && has(1, "mcp.method.name", "tools/call"),
        "{:?}",
        children[1]
    );
    assert!(!format!("{children:?}").contains("said-by-tool"), "content is opt-in");
    let told = trace(ContentCapture::Captured);
    assert!(format!("{told:?}").contains("said-by-tool"));
}

#[tokio::test]
async fn exported_spans_form_a_tree_without_secrets() {
    let collector = Collector::start(Habit::Takes);
    let redaction = Arc::new(Redaction::new(["canary-secret".to_owned()]));
    let otlp =
        OtlpExporter::new(Some(format!("{}/v1/traces", collector.url())), redaction).expect("an address");
    otlp.export(trace(ContentCapture::Captured));
    otlp.finish(BOUND).await;
    let received = collector.next();
    assert!(received.head.starts_with("POST /v1/traces"), "{}", received.head);
    let spans = received.spans;
    let [chat, tool, root] = &spans[..] else { panic!("three spans: {spans:#?}") };
    assert_eq!(
        [&chat.name, &tool.name, &root.name],
        ["chat flash", "execute_tool time.now", "invoke_agent default"]
    );
    assert_eq!((root.parent.as_str(), &chat.parent, &tool.parent), ("", &root.id, &root.id));
    assert_eq!((root.service.as_str(), root.kind, chat.kind), ("throughline", 1, 3));
    let own = TraceContext::of(&TurnId::new("turn-1"), None).trace_id();
    assert!(spans.iter().all(|span| span.trace == own), "{spans:#?}");
    // Spans carry the times of the events.
    assert_eq!((tool.start, tool.end), (1_700_000_000_111, 1_700_000_000_161));
    assert_eq!((tool.error.as_deref(), &root.error), (Some("tool_error"), &None));
    for (span, name, value) in [
        (root, "gen_ai.operation.name", "invoke_agent"),
        (root, "gen_ai.conversation.id", "c-1"),
        (root, "throughline.turn.id", "turn-1"),
        (chat, "gen_ai.provider.name", "gcp.gemini"),
        (chat, "gen_ai.usage.input_tokens", "9"),
        (chat, "gen_ai.response.time_to_first_chunk", "0.1"),
        (tool, "gen_ai.tool.call.id", "turn-1.1"),
        (tool, "gen_ai.tool.call.arguments", "{\"zone\":\"…\"}"),
        (tool, "gen_ai.tool.call.result", "said-by-tool"),
    ] {
        assert_eq!(span.attributes.get(name).map(String::as_str), Some(value), "{name} of {}", span.name);
    }
    assert!(!format!("{spans:?}").contains("canary-secret"), "a span holds a secret");
}

#[test]
fn span_text_is_truncated_at_its_limit() {
    let long = "界".repeat(SPAN_CONTENT_BYTES_MAX);
    let (mut fold, mut spans, mut found) = (
        TelemetryFold::new(ContentCapture::Captured),
        TraceFold::new(TraceContext::of(&TurnId::new("turn-1"), None)),
        Vec::new(),
    );
    for line in LOG.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = line.replace("said-by-tool", &long);
        let event: Event = serde_json::from_str(&line).expect(&line);
        fold.apply(&event, event.timestamp, &mut found);
    }
    let trace = found.iter().find_map(|measurement| spans.apply(measurement)).expect("the turn has ended");
    let longest =
        trace.children.iter().flat_map(|span| &span.attributes).filter_map(|(_, value)| match value {
            AttributeValue::Text(text) => Some(text.len()),
            _ => None,
        });
    let longest = longest.max().expect("texts");
    assert!((SPAN_CONTENT_BYTES_MAX - 3..=SPAN_CONTENT_BYTES_MAX).contains(&longest), "{longest}");
}

/// A model that calls a tool, and then reports it.
fn looks(seen: &ParsedRequest) -> ModelScript {
    match seen.step() {
        1 if seen.user_text() == "write" => ModelScript::new().call("calendar_add", json!({"title": "tea"})),
        1 => ModelScript::new().say("Let me look.").call("weather_today", json!({})),
        _ => ModelScript::new().say("It is sunny."),
    }
}

async fn traced(collector: &Collector) -> (TestServer, Arc<OtlpExporter>) {
    let otlp = OtlpExporter::new(Some(format!("{}/v1/traces", collector.url())), Arc::default());
    let otlp = Arc::new(otlp.expect("an address"));
    let sink = otlp.clone();
    let watch = move || Telemetry::default().with_traces(sink.clone(), ContentCapture::Omitted);
    let build = |builder: throughline::ThroughlineBuilder| builder.approval(throughline::ApprovalMode::Ask);
    (TestServer::start_watched(looks, build, ServerLimits::default(), watch).await, otlp)
}

/// The spans of the turn that has just ended.
async fn sent(server: &TestServer, otlp: &OtlpExporter, collector: &Collector) -> Vec<Span> {
    support::eventually("the turn has ended", async || server.state.telemetry.turns_held() == 0).await;
    otlp.flush().await;
    collector.until("invoke_agent default")
}

fn root(spans: &[Span]) -> &Span {
    spans.iter().find(|span| span.name == "invoke_agent default").expect("a root")
}

#[tokio::test]
async fn turn_span_is_a_child_of_the_request_traceparent() {
    let collector = Collector::start(Habit::Takes);
    let (server, otlp) = traced(&collector).await;
    let chat = json!({"model": "default", "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let unsampled = ASKING.replace("-01", "-00");
    for (path, body, header, parent) in [
        ("/v1/turns", saying("Hi"), Some(ASKING), Some("00f067aa0ba902b7")),
        ("/v1/chat/completions", chat, Some(ASKING), Some("00f067aa0ba902b7")),
        ("/v1/turns", saying("Hi"), Some("00-nonsense"), None),
        ("/v1/turns", saying("Hi"), Some(unsampled.as_str()), None),
        ("/v1/turns", saying("Hi"), None, None),
    ] {
        let mut request =
            server.client().post(server.url(path)).header("accept", "text/event-stream").json(&body);
        if let Some(header) = header {
            request = request.header("traceparent", header);
        }
        let said = request.send().await.unwrap().text().await.unwrap();
        assert!(said.contains("sunny"), "{said}");
        if header == Some(unsampled.as_str()) {
            // The caller does not sample this trace: the next one follows without it.
            continue;
        }
        let spans = sent(&server, &otlp, &collector).await;
        let root = root(&spans);
        assert_eq!(spans.len(), 4, "{path} {header:?}: {spans:#?}");
        assert_eq!(root.parent, parent.unwrap_or_default(), "{path} {header:?}");
        assert!(spans.iter().all(|span| span.trace == root.trace), "one trace: {spans:#?}");
        assert!(spans.iter().all(|span| span.id == root.id || span.parent == root.id), "{spans:#?}");
        let own = TraceContext::of(&TurnId::new(root.attributes["throughline.turn.id"].as_str()), None);
        match parent {
            Some(_) => assert_eq!(root.trace, "4bf92f3577b34da6a3ce929d0e0e4736"),
            None => assert_eq!(root.trace, own.trace_id()),
        }
    }
    assert!(collector.rest().is_empty());
}

#[tokio::test]
async fn resumed_turn_is_one_trace() {
    let collector = Collector::start(Habit::Takes);
    let (server, otlp) = traced(&collector).await;
    let begun =
        server.client().post(server.url("/v1/turns")).header("traceparent", ASKING).json(&saying("write"));
    let begun: serde_json::Value = begun.send().await.unwrap().json().await.unwrap();
    let turn = begun["turn_id"].as_str().unwrap();
    let asked = server.follow(turn, 0).await.until("approval_request").await;
    let question = asked.last().unwrap().data["approval_id"].as_str().unwrap();
    let server = server.restart().await;
    let path = format!("/v1/turns/{turn}/approvals/{question}");
    assert_eq!(server.post(&path, json!({"decision": "approve"})).await.0, 200);
    server.follow(turn, 0).await.rest().await;
    let spans = sent(&server, &otlp, &collector).await;
    let root = root(&spans);
    assert_eq!((root.trace.as_str(), root.parent.as_str()), (&ASKING[3..35], &ASKING[36..52]));
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    // What the first process has seen is there, too, once.
    assert_eq!(
        names,
        ["chat m", "execute_tool calendar.add", "chat m", "invoke_agent default"],
        "{spans:#?}"
    );
    assert!(root.start <= spans[0].start, "it began where it began: {spans:#?}");
}

#[tokio::test]
async fn unreachable_collector_does_not_block_exports() {
    let silent = Collector::start(Habit::Silent);
    // A closed port.
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for endpoint in [format!("{}/v1/traces", silent.url()), format!("http://{away}/v1/traces")] {
        let otlp = Arc::new(OtlpExporter::new(Some(endpoint.clone()), Arc::default()).expect("an address"));
        let exported = Instant::now();
        // More than twice what the queue holds.
        for _ in 0..1_500 {
            otlp.export(trace(ContentCapture::Omitted));
        }
        // A server that waited for the collector would need 10 s for each span that does not fit into the
        // queue, hours in total.
        assert!(exported.elapsed() < Duration::from_mins(2), "{endpoint}: {:?}", exported.elapsed());
        let watch = {
            let otlp = otlp.clone();
            move || Telemetry::default().with_traces(otlp.clone(), ContentCapture::Omitted)
        };
        let server =
            TestServer::start_watched(looks, |builder| builder, ServerLimits::default(), watch).await;
        let turn = server.say("Hi").await;
        let events = server.follow(&turn, 0).await.rest().await;
        assert_eq!(events.last().unwrap().data["status"], "completed");
        // That neither a turn nor this waits even once is seen in a test of the command, with time limits of an hour.
        otlp.finish(Duration::from_millis(200)).await;
    }
}
