//! Traces of `throughline serve`: to the collector that the environment names, and nowhere without one.

#![cfg(all(unix, feature = "otel"))]

use crate::collector::{Collector, Habit};
use crate::support::serving;
use crate::support::serving::{Serving, command};
use serde_json::Value;

const ASKS: &str = r#"{"input":[{"type":"text","text":"What's the weather in Paris?"}]}"#;
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A turn of the demo model, with its tool, to its end. The lines that the log has of it.
fn turn(server: &Serving, token: &str) -> Vec<Value> {
    let headers = format!(
        "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n\
         traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n"
    );
    let events = server.raw("POST", "/v1/turns", &headers, ASKS);
    assert!(events.contains("stream_end"), "{events}");
    let log = server.says("turn_ended");
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| !line["turn_id"].is_null()).collect()
}

#[test]
fn spans_are_sent_at_shutdown_and_trace_ids_are_logged() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start(Habit::Takes));
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-team=lines".to_owned()),
        ("OTEL_SERVICE_NAME", "ours".to_owned()),
        // It would be sent after an hour.
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000".to_owned()),
    ];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let server = Serving::start_with(folder.path(), &["--model", "demo", "--demo-tools"], &variables);
    let token = server.token().unwrap().to_owned();
    let lines = turn(&server, &token);
    assert!(lines.iter().all(|line| line["trace_id"] == TRACE), "{lines:#?}");
    for msg in ["turn_began", "streaming_tool_call_detected", "streaming_tool_executed", "turn_ended"] {
        assert!(lines.iter().any(|line| line["msg"] == msg), "{msg} in {lines:#?}");
    }
    assert!(collector.rest().is_empty(), "not yet");
    assert_eq!(server.stop(), Some(0));
    let received = collector.next();
    assert!(received.head.starts_with("POST /v1/traces HTTP/1.1"), "{}", received.head);
    assert!(received.head.to_lowercase().contains("x-team: lines"), "{}", received.head);
    let names: Vec<&str> = received.spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["chat demo", "execute_tool demo.weather", "chat demo", "invoke_agent default"]);
    let root = received.spans.last().unwrap();
    assert_eq!(
        (root.trace.as_str(), root.parent.as_str(), root.service.as_str()),
        (TRACE, "00f067aa0ba902b7", "ours")
    );
}

#[test]
fn silent_collector_delays_neither_turns_nor_shutdown() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start(Habit::Silent));
    let url = collector.url();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_BSP_SCHEDULE_DELAY", "1"),
        // A wait for the collector would last an hour, longer than the timeout of the test.
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000"),
        ("OTEL_BSP_EXPORT_TIMEOUT", "3600000"),
    ];
    let server = Serving::start_with(folder.path(), &["--model", "demo", "--demo-tools"], &variables);
    let token = server.token().unwrap().to_owned();
    turn(&server, &token);
    // Now the exporter waits for it, and no other task does.
    collector.next();
    for _ in 0..3 {
        turn(&server, &token);
    }
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn unreachable_collector_is_logged_once_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    // A closed port.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{free}");
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()), ("OTEL_BSP_SCHEDULE_DELAY", "1")];
    let server = Serving::start_with(folder.path(), &["--model", "demo", "--demo-tools"], &variables);
    let token = server.token().unwrap().to_owned();
    let headers = format!(
        "Authorization: Bearer {token}\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"
    );
    server.raw("POST", "/v1/turns", &headers, ASKS);
    let line = server.says("collector_failed");
    let line: Value = serde_json::from_str(line.lines().last().unwrap()).unwrap();
    assert_eq!((&line["level"], &line["collector"]), (&Value::from("warn"), &Value::from(url.as_str())));
    assert!(line["error"].as_str().is_some_and(|error| !error.is_empty()), "{line}");
    assert!(line["remedy"].as_str().is_some_and(|remedy| remedy.contains("OTEL_EXPORTER_OTLP_ENDPOINT")));
    // More spans are lost, also at the end, and no library logs its own message.
    server.raw("POST", "/v1/turns", &headers, ASKS);
    server.signal("-TERM");
    let rest: Vec<String> = server.log.iter().collect();
    let again =
        rest.iter().filter(|line| line.contains("collector_failed") || line.contains("opentelemetry"));
    assert_eq!(again.count(), 0, "{rest:#?}");
}

#[test]
fn unsupported_exporter_fails_and_disabled_one_sends_no_spans() {
    let (folder, collector) = (tempfile::tempdir().unwrap(), Collector::start(Habit::Takes));
    let url = collector.url();
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str());
    let mut refused = command(folder.path());
    refused
        .args(["serve", "--listen", "127.0.0.1:0"])
        .envs([endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    let (status, said) = serving::ended(refused);
    assert!(status == Some(1) && said.contains("OTEL_EXPORTER_OTLP_") && said.contains("`grpc`"), "{said}");
    for off in [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")] {
        let folder = tempfile::tempdir().unwrap();
        let server =
            Serving::start_with(folder.path(), &["--model", "demo", "--demo-tools"], &[endpoint, off]);
        let token = server.token().unwrap().to_owned();
        turn(&server, &token);
        assert_eq!(server.stop(), Some(0));
        assert!(collector.rest().is_empty(), "{off:?}");
    }
}
