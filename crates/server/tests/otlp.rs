//! Spans as a collector receives them.
#![cfg(feature = "otel")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use throughline_engine::Event;
use throughline_server::telemetry::traces::{SpanKind, TraceFold, TraceSink, TurnTrace, Value};
use throughline_server::telemetry::{Content, Otlp, Redaction, TelemetryFold};

/// How long the collector's answer may be waited for.
const BOUND: Duration = Duration::from_secs(30);

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

fn trace(content: Content) -> TurnTrace {
    let (mut fold, mut spans, mut found) = (TelemetryFold::new(content), TraceFold::default(), Vec::new());
    for line in LOG.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let event: Event = serde_json::from_str(line).expect(line);
        fold.absorb(&event, event.timestamp, &mut found);
    }
    found.iter().find_map(|measurement| spans.absorb(measurement)).expect("the turn has ended")
}

// R: O1
#[test]
fn a_turn_is_a_tree_of_spans() {
    let TurnTrace { root, children } = trace(Content::LeftOut);
    assert_eq!((root.name.as_str(), root.kind), ("invoke_agent default", SpanKind::Internal));
    assert_eq!((root.start, root.end), (1_700_000_000_000, 1_700_000_000_200));
    let shown: Vec<_> =
        children.iter().map(|span| (span.name.as_str(), span.kind, span.end - span.start)).collect();
    assert_eq!(
        shown,
        [("chat flash", SpanKind::Client, 118), ("execute_tool time.now", SpanKind::Internal, 50)]
    );
    let has = |span: usize, name: &str, value: &str| {
        children[span].attributes.contains(&(attribute(name), Value::Text(value.to_owned())))
    };
    assert!(has(0, "gen_ai.provider.name", "gcp.gemini"), "{:?}", children[0]);
    assert!(
        has(1, "error.type", "tool_error") && has(1, "mcp.method.name", "tools/call"),
        "{:?}",
        children[1]
    );
    assert!(!format!("{children:?}").contains("said-by-tool"), "content is opt-in");
    let told = trace(Content::Kept);
    assert!(format!("{told:?}").contains("said-by-tool"));
}

fn attribute(name: &str) -> &'static str {
    use throughline_server::telemetry::names::attribute::*;
    [PROVIDER, ERROR_TYPE, MCP_METHOD].into_iter().find(|known| *known == name).expect("a known attribute")
}

// R: O1, R4
#[test]
fn a_collector_receives_the_tree_without_secrets() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let endpoint = format!("http://{}/v1/traces", listener.local_addr().expect("it listens"));
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (mut all, mut piece) = (Vec::new(), [0; 4_096]);
            // Head, then as much as it announces.
            loop {
                let Ok(read) = stream.read(&mut piece) else { break };
                all.extend_from_slice(&piece[..read]);
                let Some(end) = all.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
                let head = String::from_utf8_lossy(&all[..end]).to_lowercase();
                let length = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                if read == 0 || all.len() >= end + 4 + length.unwrap_or(0) {
                    break;
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = sender.send(all);
        }
    });
    let redaction = Arc::new(Redaction::new(["canary-secret".to_owned()]));
    let otlp = Otlp::new(Some(endpoint), redaction).expect("the address is one");
    otlp.export(trace(Content::Kept));
    otlp.flush().expect("the collector answers");
    let body = received.recv_timeout(BOUND).expect("spans arrive");
    let text = String::from_utf8_lossy(&body);
    assert!(text.starts_with("POST /v1/traces"), "{text}");
    for name in
        ["invoke_agent default", "chat flash", "execute_tool time.now", "gen_ai.usage.input_tokens", "turn-1"]
    {
        assert!(text.contains(name), "{name} in {text}");
    }
    assert!(!text.contains("canary-secret"), "a span holds a secret");
    // Spans carry the times of the events: 1700000000111 ms as little-endian nanoseconds.
    let started = (1_700_000_000_111_u64 * 1_000_000).to_le_bytes();
    assert!(body.windows(8).any(|window| window == started), "the tool's own start");
}
