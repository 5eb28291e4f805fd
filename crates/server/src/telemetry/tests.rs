//! Telemetry as a fold of logs: events in, measurements out, and the resulting Prometheus text.

use super::measurement::Measurement;
use super::meter::TelemetryMeter;
use super::names::METRICS;
use super::rollback::{ChoiceHistory, UpstreamDelivery};
use super::{ContentCapture, Redaction, StoreMetrics, TelemetryFold, ViewerResume};
use std::collections::BTreeSet;
use std::sync::Arc;
use throughline_engine::Event;
use throughline_store::RatingValue;

/// Time that the log of these tests takes to acknowledge, in milliseconds.
const ACKNOWLEDGED_AFTER: i64 = 3;

/// A log as it is stored: one event a line, the time in `at` (ms), numbered here.
fn events(log: &str) -> Vec<Event> {
    let lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let event = |(at, line): (usize, &str)| {
        let mut event: serde_json::Value = serde_json::from_str(line).expect(line);
        event["turn_id"] = "t".into();
        event["seq"] = (at + 1).into();
        event["timestamp"] = event["at"].clone();
        serde_json::from_value(event).expect(line)
    };
    lines.enumerate().map(event).collect()
}

fn measured(log: &str) -> Vec<Measurement> {
    let mut fold = TelemetryFold::new(ContentCapture::Omitted);
    let mut out = Vec::new();
    for event in events(log) {
        fold.apply(&event, event.timestamp + ACKNOWLEDGED_AFTER, &mut out);
    }
    out
}

/// Formats each measurement as one line.
fn lines(measurements: &[Measurement]) -> Vec<String> {
    let line = |measurement: &Measurement| match measurement {
        Measurement::TurnBegan => "turn began".to_owned(),
        Measurement::TurnResumed => "turn resumed".to_owned(),
        Measurement::ChoiceMade(chosen) => format!("chosen {} {}", chosen.model, chosen.mode),
        Measurement::CallDetected(call) => format!(
            "detected {} {} after {} ms at {}",
            call.call,
            call.tool.as_deref().unwrap_or("-"),
            call.latency_ms,
            call.stream_position
        ),
        Measurement::CallAssessed(judgment) => format!("judged {judgment:?}"),
        Measurement::CallEnded(call) => format!(
            "ended {} {} {:?} {:?} ms{}{}",
            call.call,
            call.tool.as_deref().unwrap_or("-"),
            call.status,
            call.duration_ms,
            if call.parallel { " parallel" } else { "" },
            if call.early { " early" } else { "" },
        ),
        Measurement::UpstreamFailed(failure) => format!(
            "upstream failed {} {} {}",
            failure.code,
            failure.upstream.as_deref().unwrap_or("-"),
            failure.why.as_deref().unwrap_or("-")
        ),
        Measurement::StepEnded(step) => format!(
            "step {}.{} {}/{} {} ms, first {:?}, per chunk {:?}, {:?}",
            step.step,
            step.attempt,
            step.upstream,
            step.model,
            step.ended_at - step.started_at,
            step.first_chunk_ms,
            step.per_chunk_ms,
            step.error
        ),
        Measurement::TurnEnded(turn) => format!(
            "turn {:?} {} ms, {} steps, {} calls, first {:?}, {:?}",
            turn.status,
            turn.ended_at - turn.started_at,
            turn.steps,
            turn.calls,
            turn.first_content_ms,
            turn.error
        ),
    };
    measurements.iter().map(line).collect()
}

#[track_caller]
fn check(log: &str, expected: &[&str]) {
    assert_eq!(lines(&measured(log)), expected);
}

const WITH_TOOLS: &str = r#"
    {"at":1000,"type":"stream_start","v":1,"conversation_id":"c","message_id":"m","agent":"default","mode":"auto","input":[]}
    {"at":1002,"type":"step_start","step":1,"upstream":"deepseek","model":"chat","attempt":1,"tools_offered":["demo.weather","files.write"]}
    {"at":1102,"type":"content_delta","step":1,"block":0,"text":"Let me see. "}
    {"at":1142,"type":"tool_use","step":1,"block":1,"tool_id":"t.1","tool_name":"demo.weather","wire_name":"demo_weather","source":"mcp:demo","effect":"read","status":"preparing","slot":0,"position":0}
    {"at":1162,"type":"tool_input_delta","step":1,"block":1,"tool_id":"t.1","delta":"{\"city\":\"Rome\"}"}
    {"at":1162,"type":"tool_input","step":1,"block":1,"tool_id":"t.1","arguments":{"city":"Rome"},"seal":"balanced"}
    {"at":1163,"type":"tool_start","step":1,"block":1,"tool_id":"t.1","early":true,"attempt":1}
    {"at":1182,"type":"tool_use","step":1,"block":2,"tool_id":"t.2","tool_name":"demo.weather","wire_name":"demo_weather","source":"mcp:demo","effect":"read","status":"preparing","slot":1,"position":1}
    {"at":1192,"type":"tool_input","step":1,"block":2,"tool_id":"t.2","arguments":{"city":"Oslo"},"seal":"explicit"}
    {"at":1193,"type":"tool_start","step":1,"block":2,"tool_id":"t.2","early":true,"attempt":1}
    {"at":1200,"type":"step_end","step":1,"finish":"tool_calls","usage":{"input_tokens":90,"output_tokens":30}}
    {"at":1413,"type":"tool_result","step":1,"block":1,"tool_id":"t.1","status":"success","output":"Sunny","started_at":1163,"duration_ms":250}
    {"at":5193,"type":"tool_result","step":1,"block":2,"tool_id":"t.2","status":"timed_out","error":{"code":"timed_out"},"started_at":1193,"duration_ms":4000}
    {"at":5195,"type":"step_start","step":2,"upstream":"deepseek","model":"chat","attempt":1,"tools_offered":["demo.weather","files.write"]}
    {"at":5295,"type":"content_delta","step":2,"block":3,"text":"Sunny."}
    {"at":5300,"type":"step_end","step":2,"finish":"stop","usage":{"input_tokens":150,"output_tokens":5}}
    {"at":5301,"type":"session_stats","steps":2,"calls":2,"usage":{"input_tokens":240,"output_tokens":35},"wall_ms":4301,"first_content_ms":102,"saved_by_eager_ms":37,"segments":[]}
    {"at":5302,"type":"stream_end","status":"completed"}
"#;

#[test]
fn turn_with_tools_is_measured() {
    check(
        WITH_TOOLS,
        &[
            "turn began",
            "chosen deepseek/chat auto",
            "detected t.1 demo.weather after 3 ms at 12",
            "judged Detected",
            "detected t.2 demo.weather after 3 ms at 27",
            "judged Detected",
            "step 1.1 deepseek/chat 198 ms, first Some(100), per chunk Some(26.666666666666668), None",
            "ended t.1 demo.weather Success Some(250) ms parallel early",
            "ended t.2 demo.weather TimedOut Some(4000) ms parallel early",
            "step 2.1 deepseek/chat 105 ms, first Some(100), per chunk None, None",
            "turn Completed 4302 ms, 2 steps, 2 calls, first Some(102), None",
        ],
    );
}

/// Calls that arrive incomplete or not at all, and one that was cancelled.
const MISSED: &str = r#"
    {"at":1000,"type":"stream_start","v":1,"message_id":"m","agent":"default","mode":"native","input":[]}
    {"at":1000,"type":"step_start","step":1,"upstream":"x","model":"y","attempt":1,"tools_offered":["a.b"]}
    {"at":1010,"type":"tool_use","step":1,"block":0,"tool_id":"t.1","tool_name":"invented","wire_name":"invented","effect":"external","status":"preparing","slot":0,"position":0}
    {"at":1010,"type":"tool_input","step":1,"block":0,"tool_id":"t.1","arguments":{},"seal":"explicit"}
    {"at":1010,"type":"tool_result","step":1,"block":0,"tool_id":"t.1","status":"not_started","error":{"code":"unknown_tool"}}
    {"at":1020,"type":"tool_use","step":1,"block":1,"tool_id":"t.2","tool_name":"a.b","wire_name":"a_b","source":"builtin","effect":"read","status":"preparing","slot":1,"position":1}
    {"at":1020,"type":"tool_input","step":1,"block":1,"tool_id":"t.2","raw":"{\"a\":","problem":"not JSON"}
    {"at":1020,"type":"tool_result","step":1,"block":1,"tool_id":"t.2","status":"not_started","error":{"code":"invalid_arguments"}}
    {"at":1025,"type":"problem","step":1,"code":"leaked_call","excerpt":"hermes: <tool_call>"}
    {"at":1030,"type":"tool_use","step":1,"block":2,"tool_id":"t.3","tool_name":"web.search","wire_name":"web_search","source":"upstream","effect":"external","status":"preparing","slot":9,"position":9}
    {"at":1030,"type":"tool_result","step":1,"block":2,"tool_id":"t.3","status":"success","output":"found"}
    {"at":1040,"type":"tool_use","step":1,"block":3,"tool_id":"t.4","tool_name":"a.b","wire_name":"a_b","source":"builtin","effect":"read","status":"preparing","slot":2,"position":2}
    {"at":1050,"type":"tool_use","step":1,"block":4,"tool_id":"t.5","tool_name":"a.b","wire_name":"a_b","source":"builtin","effect":"read","status":"preparing","slot":3,"position":3}
    {"at":1060,"type":"error","code":"upstream_lost","what":"w","why":"y","remedy":"r","retryable":true}
    {"at":1060,"type":"tool_result","step":1,"block":3,"tool_id":"t.4","status":"not_started","error":{"code":"interrupted"}}
    {"at":1060,"type":"tool_result","step":1,"block":4,"tool_id":"t.5","status":"cancelled","error":{"code":"cancelled"}}
    {"at":1060,"type":"step_end","step":1}
    {"at":1061,"type":"stream_end","status":"error"}
"#;

#[test]
fn incomplete_calls_are_judged_missed() {
    check(
        MISSED,
        &[
            "turn began",
            "chosen x/y native",
            "detected t.1 - after 3 ms at 0",
            "judged Missed",
            "ended t.1 - NotStarted None ms",
            "detected t.2 a.b after 3 ms at 0",
            "judged Missed",
            "ended t.2 a.b NotStarted None ms",
            "judged Missed",
            "detected t.3 web.search after 3 ms at 0",
            "ended t.3 web.search Success None ms",
            "detected t.4 a.b after 3 ms at 0",
            "detected t.5 a.b after 3 ms at 0",
            "upstream failed upstream_lost x y",
            "judged Missed",
            "ended t.4 a.b NotStarted None ms",
            "ended t.5 a.b Cancelled None ms",
            "step 1.1 x/y 60 ms, first Some(10), per chunk Some(10.0), Some(\"upstream_lost\")",
            "turn Error 61 ms, 1 steps, 5 calls, first None, Some(\"upstream_lost\")",
        ],
    );
}

/// A first try that is refused, a fallback, a restart.
const TRIED_AGAIN: &str = r#"
    {"at":1000,"type":"stream_start","v":1,"message_id":"m","agent":"default","mode":"native","input":[]}
    {"at":1000,"type":"step_start","step":1,"upstream":"x","model":"y","attempt":1,"tools_offered":[]}
    {"at":1100,"type":"waiting","step":1,"reason":"rate_limit","until":1600}
    {"at":1600,"type":"step_start","step":1,"upstream":"x","model":"y","attempt":2,"tools_offered":[]}
    {"at":1700,"type":"problem","step":1,"code":"fallback","excerpt":"503"}
    {"at":1700,"type":"step_start","step":1,"upstream":"z","model":"w","attempt":3,"fallback":1,"tools_offered":[]}
    {"at":1800,"type":"content_delta","step":1,"block":0,"text":"Hel"}
    {"at":9000,"type":"turn_resumed","epoch":2}
    {"at":9001,"type":"step_start","step":1,"upstream":"z","model":"w","attempt":4,"fallback":1,"tools_offered":[]}
    {"at":9101,"type":"content_delta","step":1,"block":0,"text":"Hello"}
    {"at":9111,"type":"step_end","step":1,"finish":"stop"}
    {"at":9111,"type":"stream_end","status":"completed"}
"#;

#[test]
fn retries_fallbacks_and_resumes_are_distinguished() {
    check(
        TRIED_AGAIN,
        &[
            "turn began",
            "chosen x/y native",
            "upstream failed rate_limit x -",
            "step 1.1 x/y 100 ms, first None, per chunk None, Some(\"rate_limit\")",
            "upstream failed fallback x 503",
            "step 1.2 x/y 100 ms, first None, per chunk None, Some(\"fallback\")",
            "step 1.3 z/w 7300 ms, first Some(100), per chunk None, Some(\"interrupted\")",
            "turn resumed",
            "step 1.4 z/w 110 ms, first Some(100), per chunk None, None",
            "turn Completed 8111 ms, 1 steps, 0 calls, first None, None",
        ],
    );
}

/// A meter that has recorded every measurement.
fn scripted() -> TelemetryMeter {
    let meter = TelemetryMeter::new(Arc::new(Redaction::new(["canary-secret".to_owned()])));
    let mut choices = ChoiceHistory::default();
    for log in [WITH_TOOLS, MISSED, TRIED_AGAIN, &WITH_TOOLS.replace("\"chat\"", "\"canary-secret\"")] {
        for measurement in measured(log) {
            if let Measurement::ChoiceMade(chosen) = &measurement {
                for change in choices.apply(chosen.clone(), UpstreamDelivery::Streamed) {
                    meter.rollback(change);
                }
            }
            meter.record(&measurement);
        }
    }
    meter.active_turns(1);
    meter.history_queue(2);
    meter.viewers(3);
    meter.viewers(-1);
    meter.resumed(ViewerResume::Continued);
    meter.dropped();
    meter.jank_frames(7);
    meter.rated("turn_1", RatingValue::Up);
    meter.store(StoreMetrics { commits: 40, fsyncs: 4, events: 90, queue: 1 });
    meter.resident_memory(50_000_000);
    meter
}

/// The text in a fixed order: metrics by name, series by labels, buckets as they are.
fn sorted(text: &str) -> String {
    let block = |block: &str| {
        let (head, mut series): (Vec<&str>, Vec<&str>) =
            block.trim().lines().partition(|line| line.starts_with('#'));
        series.sort_by_key(|line| line.split("le=").next().unwrap_or(line).to_owned());
        [head, series].concat().join("\n")
    };
    let mut blocks: Vec<String> =
        text.split("\n\n").filter(|block| !block.trim().is_empty()).map(block).collect();
    blocks.sort();
    blocks.join("\n\n").replace(env!("CARGO_PKG_VERSION"), "VERSION") + "\n"
}

#[test]
fn prometheus_text_matches_the_fixture() {
    let text = sorted(&scripted().render());
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/metrics.prom");
    if std::env::var_os("THROUGHLINE_BLESS").is_some() {
        std::fs::write(&file, &text).expect("the fixture can be written");
    }
    let expected = std::fs::read_to_string(&file).expect("THROUGHLINE_BLESS=1 writes it");
    assert_eq!(text, expected, "THROUGHLINE_BLESS=1 writes {} anew", file.display());
}

#[test]
fn exported_metrics_are_exactly_the_declared_ones() {
    let text = scripted().render();
    let shown: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let declared: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(shown, declared);
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let of = |suffix: &str| name.strip_suffix(suffix).unwrap_or(name);
        let names = [name, of("_bucket"), of("_sum"), of("_count")];
        let metric = METRICS.iter().find(|metric| names.contains(&metric.name)).expect(line);
        let labels = line.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
        let labels = labels.map_or("", |(labels, _)| labels).split("\",");
        for (label, _) in labels.filter_map(|pair| pair.split_once("=\"")) {
            assert!(label == "le" || metric.labels.contains(&label), "{label} in {line}");
        }
    }
}

#[test]
fn labels_hold_no_secret_and_no_invented_names() {
    let text = scripted().render();
    assert!(!text.contains("canary-secret"), "a secret in {text}");
    assert!(text.contains("gen_ai_request_model=\"…\""), "{text}");
    assert!(!text.contains("invented"), "a model's invention in {text}");
    let unknown = "throughline_tool_calls_total{gen_ai_tool_name=\"unknown\",status=\"not_started\"} 1";
    assert!(text.contains(unknown), "{text}");
}
