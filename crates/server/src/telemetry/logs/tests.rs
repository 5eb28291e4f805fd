//! Lines that leave the process, as a collector reads them.

use crate::telemetry::logs::{FALLBACK_VARIABLE, LOG_VARIABLE, QUIET_LIBRARIES, env_filter};
use crate::telemetry::{ContentCapture, Redaction, TelemetryFold, logs};
use std::io::Write;
use std::sync::{Arc, Mutex};
use throughline_engine::Event;
use tracing_subscriber::fmt::MakeWriter;

/// The captured output.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test panics here").write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Written {
    type Writer = Written;
    fn make_writer(&'w self) -> Self::Writer {
        self.clone()
    }
}

fn logged(secrets: &[&str], work: impl FnOnce()) -> Vec<serde_json::Value> {
    let written = Written::default();
    let redaction = Arc::new(Redaction::new(secrets.iter().map(|secret| (*secret).to_owned())));
    tracing::subscriber::with_default(logs::json_to(redaction, written.clone()), work);
    let bytes = written.0.lock().expect("no test panics here").clone();
    let text = String::from_utf8(bytes).expect("logs are text");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn call_is_logged_when_detected_and_when_executed() {
    let log = r#"
        {"turn_id":"t","seq":1,"timestamp":1000,"type":"step_start","step":1,"upstream":"x","model":"y","attempt":1,"tools_offered":["demo.weather"]}
        {"turn_id":"t","seq":2,"timestamp":1010,"type":"content_delta","step":1,"block":0,"text":"Hello"}
        {"turn_id":"t","seq":3,"timestamp":1020,"type":"tool_use","step":1,"block":1,"tool_id":"t.1","tool_name":"demo.weather","wire_name":"demo_weather","source":"builtin","effect":"read","status":"preparing","slot":0,"position":0}
        {"turn_id":"t","seq":4,"timestamp":1030,"type":"tool_start","step":1,"block":1,"tool_id":"t.1","early":true,"attempt":1}
        {"turn_id":"t","seq":5,"timestamp":1480,"type":"tool_result","step":1,"block":1,"tool_id":"t.1","status":"success","output":"Sunny in canary-city","started_at":1030,"duration_ms":450}
    "#;
    let lines = logged(&[], || {
        let (mut fold, mut found) = (TelemetryFold::new(ContentCapture::Captured), Vec::new());
        for line in log.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let event: Event = serde_json::from_str(line).expect(line);
            fold.apply(&event, event.timestamp + 4, &mut found);
        }
        for measurement in &found {
            logs::log_measurement(&"t".into(), "0af7", measurement);
        }
    });
    let shown: Vec<serde_json::Value> = lines
        .into_iter()
        .map(|mut line| {
            let fields = line.as_object_mut().expect("a line is an object");
            assert!(
                fields
                    .remove("time")
                    .is_some_and(|time| time.as_str().is_some_and(|time| time.ends_with('Z')))
            );
            assert!(fields.remove("target").is_some());
            line
        })
        .collect();
    assert_eq!(
        shown,
        [
            serde_json::json!({"level": "info", "msg": "streaming_tool_call_detected", "turn_id": "t", "trace_id": "0af7", "step": 1,
                "tool_id": "t.1", "tool_name": "demo.weather", "detection_latency_ms": 4, "stream_position": 5}),
            serde_json::json!({"level": "info", "msg": "streaming_tool_executed", "turn_id": "t", "trace_id": "0af7", "step": 1,
                "tool_id": "t.1", "tool_name": "demo.weather", "execution_latency_ms": 450, "is_parallel": false,
                "is_early": true, "status": "success"}),
        ],
        "and nothing of what was said"
    );
}

#[test]
fn secrets_are_redacted_in_log_lines() {
    let secret = "canary/7+x=\"q\"";
    let lines = logged(&[secret], || {
        tracing::info!(url = format!("https://x/?key={}", "canary%2F7%2Bx%3D%22q%22"), "as {secret}");
        tracing::error!(?secret, basic = "dTpjYW5hcnkvNyt4PSJxIg==", "and so on");
    });
    assert_eq!(lines.len(), 2);
    for line in lines {
        let line = line.to_string();
        for form in ["canary", "Y2FuYXJ5", "jYW5hcn"] {
            assert!(!line.contains(form), "{line}");
        }
    }
}

#[test]
fn log_filter_is_read_from_the_environment() {
    let directives = |pairs: &[(&str, &str)]| {
        let value =
            |name: &str| pairs.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).into());
        env_filter(value).to_string()
    };
    let quiet = |filter: &str, library: &str| filter.split(',').any(|part| part == format!("{library}=warn"));
    let default = directives(&[]);
    assert!(default.split(',').any(|part| part == "info"), "{default}");
    assert!(QUIET_LIBRARIES.iter().all(|library| quiet(&default, library)), "{default}");
    let ours = directives(&[(LOG_VARIABLE, "debug"), (FALLBACK_VARIABLE, "trace")]);
    assert!(ours.split(',').any(|part| part == "debug") && !ours.contains("trace"), "{ours}");
    let wanted = directives(&[(FALLBACK_VARIABLE, "info,h2=debug")]);
    assert!(wanted.contains("h2=debug") && !quiet(&wanted, "h2") && quiet(&wanted, "hyper"), "{wanted}");
    assert!(directives(&[(LOG_VARIABLE, "=====")]).contains("info"));
}
