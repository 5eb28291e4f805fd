//! Every metric of an active server, compared with its activity: a row for each kind of turn and viewer.

use crate::support::{PATIENCE, TestServer, saying};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Mutex;
use throughline::config::ServerLimits;
use throughline::tools::{Effect, NoArguments, ToolContext, tool};
use throughline::wire::{Dialect, TransferMode};
use throughline::{ApprovalMode, ThroughlineBuilder, Upstream};
use throughline_server::METRICS;
use throughline_testkit::{self as testkit, CallMove, FakeModel, ModelScript, ParsedRequest, ScriptMove};
use tokio::io::AsyncWriteExt;
use tokio::time::{Duration, sleep, timeout};

/// Series that grow with every turn of two steps with one call, for any outcome of the tool.
const TWO_STEPS: [&str; 8] = [
    "gen_ai_client_operation_duration_seconds_count{\"test/m\"} +2",
    "gen_ai_client_operation_time_to_first_chunk_seconds_count{\"test/m\"} +2",
    "gen_ai_client_token_usage_count{\"test/m\",gen_ai_token_type=\"input\"} +2",
    "gen_ai_client_token_usage_count{\"test/m\",gen_ai_token_type=\"output\"} +2",
    "gen_ai_invoke_agent_duration_seconds_count{gen_ai_operation_name=\"invoke_agent\",gen_ai_agent_name=\"default\"} +1",
    "throughline_steps_per_turn_sum +2",
    "throughline_tool_calls_seen_total +1",
    "throughline_tool_detection_seconds_count +1",
];
/// Series that a call that reached us whole adds, however it ends.
const DETECTED: &str = "throughline_tool_calls_detected_total +1";
/// Series that grow with a turn of one step.
const ONE_STEP: [&str; 6] = [
    "gen_ai_client_operation_duration_seconds_count{\"test/m\"} +1",
    "gen_ai_client_operation_time_to_first_chunk_seconds_count{\"test/m\"} +1",
    "gen_ai_client_token_usage_count{\"test/m\",gen_ai_token_type=\"input\"} +1",
    "gen_ai_client_token_usage_count{\"test/m\",gen_ai_token_type=\"output\"} +1",
    "gen_ai_invoke_agent_duration_seconds_count{gen_ai_operation_name=\"invoke_agent\",gen_ai_agent_name=\"default\"} +1",
    "throughline_steps_per_turn_sum +1",
];
/// Series that grow with every turn with content.
const ANSWERED: [&str; 3] = [
    "throughline_steps_per_turn_count +1",
    "throughline_time_to_first_content_seconds_count +1",
    "throughline_turns_total{status=\"completed\"} +1",
];

/// The person's text decides what the model does.
#[derive(Default)]
struct Scripted(Mutex<HashSet<String>>);

impl FakeModel for Scripted {
    fn reply(&self, seen: &ParsedRequest) -> ModelScript {
        let said = seen.user_text();
        // In text mode results arrive as a user message.
        if seen.step() > 1 || said.contains("TOOL_RESULT") {
            return ModelScript::new().say("That is it.");
        }
        let is_first = self.0.lock().unwrap().insert(said.to_owned());
        match said {
            "call" => ModelScript::new().say("Let me look.").call("weather_today", json!({})),
            "early" => {
                let script = ModelScript::new().say("Let me look.").call("weather_today", json!({}));
                script.then(ScriptMove::Pause(300)).say("Just a moment.")
            }
            "text" => ModelScript::new()
                .say("<<<[TOOL_REQUEST]>>>\ntool_name:「始」weather_today「末」\n<<<[END_TOOL_REQUEST]>>>"),
            "fail" => ModelScript::new().call("test_fail", json!({"text": "no"})),
            "clock" => ModelScript::new().call("clock_now", json!({})),
            "nobody's" => ModelScript::new().call("nobodys_tool", json!({})),
            "half" => {
                let half = CallMove::new("weather_today", json!("{\"a"));
                ModelScript::new().say("Let me").then(ScriptMove::HalfCall(half)).then(ScriptMove::Cut)
            }
            "wait" => ModelScript::new().call("queue_wait", json!({})),
            "write" => ModelScript::new().call("calendar_add", json!({"title": "tea"})),
            "refused" => ModelScript::status(401),
            "busy" if is_first => ModelScript::status(503),
            "limited" if is_first => ModelScript::rate_limited(0),
            _ => ModelScript::new().say("Hello."),
        }
    }
}

async fn clock(_: NoArguments, _: ToolContext) -> &'static str {
    "noon"
}

async fn started(limits: ServerLimits) -> TestServer {
    let upstream = testkit::FakeUpstream::start(Scripted::default()).await.unwrap();
    // The second upstream is the same, with whole replies.
    let address = upstream.base_url(testkit::FakeDialect::OpenaiChat);
    let build = move |builder: ThroughlineBuilder| {
        let _kept = &upstream;
        let whole =
            Upstream::new("whole", Dialect::OpenaiChat, &address).unwrap().transfer(TransferMode::Whole);
        let clock = tool("clock.now", "The time", clock).effect(Effect::Read).agent_callable();
        builder
            .upstream(whole)
            .model("test/m")
            .tool(testkit::tools::fail())
            .tool(testkit::tools::stubborn())
            .tool(clock.source("mcp:clock"))
    };
    TestServer::start_with(Scripted::default(), build, limits).await
}

/// Series by name and labels.
type Figures = BTreeMap<String, f64>;

async fn figures(server: &TestServer) -> Figures {
    let response = server.client().get(server.url("/metrics")).send().await.unwrap();
    let text = response.text().await.unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let series = |line: &str| {
        let (name, value) = line.rsplit_once(' ').expect("a value");
        let name = name
            .replace("gen_ai_operation_name=\"chat\",gen_ai_provider_name=\"", "\"")
            .replace("\",gen_ai_request_model=\"", "/");
        (name, value.parse().expect("a number"))
    };
    lines.map(series).collect()
}

/// The metrics' text, once no turn runs and no viewer is connected.
async fn settled(server: &TestServer) -> Figures {
    timeout(PATIENCE, async {
        loop {
            let now = figures(server).await;
            if now["throughline_active_turns"] == 0.0 && now["throughline_viewers"] == 0.0 {
                return now;
            }
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("it settles")
}

/// The growth, as `series +n`: all but times, the store's own figures, and what hangs on how text was cut.
fn grown(before: &Figures, after: &Figures) -> Vec<String> {
    let hangs = [
        "_bucket",
        "seconds_sum",
        "usage_sum",
        "throughline_store_",
        "output_chunk",
        "detection_rate",
        "resident_memory",
    ];
    let counted = after.iter().filter(|(name, _)| !hangs.iter().any(|part| name.contains(part)));
    counted
        .filter_map(|(name, value)| {
            let more = value - before.get(name).copied().unwrap_or_default();
            (more != 0.0).then(|| format!("{name} {more:+}"))
        })
        .collect()
}

/// Exactly this has grown, and nothing else.
fn check(what: &str, before: &Figures, after: &Figures, mut expected: Vec<&str>) {
    let mut grown = grown(before, after);
    grown.sort_unstable();
    expected.sort_unstable();
    assert_eq!(grown, expected, "{what}: {grown:#?}");
}

/// Lines that several kinds of turns have in common, together.
fn lines<'a>(parts: &[&[&'a str]]) -> Vec<&'a str> {
    parts.concat()
}

/// A turn to its end. The conversation that it is in.
async fn turn(server: &TestServer, body: &Value) -> String {
    let (status, started) = server.post("/v1/turns", body.clone()).await;
    assert_eq!(status, 201, "{started}");
    server.follow(started["turn_id"].as_str().unwrap(), 0).await.rest().await;
    started["conversation_id"].as_str().unwrap().to_owned()
}

/// A viewer that has its seat and takes nothing.
async fn lazy(server: &TestServer, turn: &str) -> tokio::net::TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut lazy = socket.connect(server.address).await.unwrap();
    let head = format!("host: {}\r\nx-test-user: ada\r\n", server.address);
    let request = format!("GET /v1/turns/{turn}/events HTTP/1.1\r\n{head}\r\n");
    lazy.write_all(request.as_bytes()).await.unwrap();
    lazy.readable().await.unwrap();
    lazy
}

/// Waits until a series has this value.
async fn until(server: &TestServer, series: &str, value: f64) -> Figures {
    timeout(PATIENCE, async {
        loop {
            let now = figures(server).await;
            if now.get(series) == Some(&value) {
                return now;
            }
            sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("{series} never says {value}"))
}

#[tokio::test]
async fn every_metric_changes_with_its_event() {
    let limits =
        ServerLimits { viewer_stall_ms_max: 500, message_bytes_max: 3 << 20, ..ServerLimits::default() };
    let server = started(limits).await;
    let mut seen = vec![figures(&server).await];
    let with = |says: &str, key: &str, value: &str| {
        let mut body = saying(says);
        body[key] = json!(value);
        body
    };
    let ran = |tool: &str, more: &str| {
        let labels = format!("gen_ai_operation_name=\"execute_tool\",gen_ai_tool_name=\"{tool}\"{more}");
        format!("gen_ai_execute_tool_duration_seconds_count{{{labels}}} +1")
    };
    let ended = |tool: &str, status: &str| {
        format!("throughline_tool_calls_total{{gen_ai_tool_name=\"{tool}\",status=\"{status}\"}} +1")
    };
    let (weather_ran, weather_ended) = (ran("weather.today", ""), ended("weather.today", "success"));
    let (fail_ran, fail_ended) = (ran("test.fail", ",error_type=\"failed\""), ended("test.fail", "error"));
    let (clock_ran, clock_ended) = (ran("clock.now", ""), ended("clock.now", "success"));
    let (unknown, never) = (ended("unknown", "not_started"), ended("weather.today", "not_started"));
    let latency = "streaming_tool_execution_latency_seconds_count +1";
    let agent_failed = |code: &str| {
        let labels = "gen_ai_operation_name=\"invoke_agent\",gen_ai_agent_name=\"default\"";
        format!("gen_ai_invoke_agent_duration_seconds_count{{{labels},error_type=\"{code}\"}} +1")
    };
    let call_failed = |code: &str| {
        format!("gen_ai_client_operation_duration_seconds_count{{\"test/m\",error_type=\"{code}\"}} +1")
    };
    let (lost, refused) = (agent_failed("upstream_lost"), agent_failed("unauthorized"));
    let (call_lost, call_refused) = (call_failed("upstream_lost"), call_failed("unauthorized"));
    let (call_busy, call_limited) = (call_failed("retry"), call_failed("rate_limit"));
    let whole = [&TWO_STEPS[..], &ANSWERED, &[DETECTED, latency]].concat();

    let rows: Vec<(&str, Value, Vec<&str>)> = vec![
        ("a call", saying("call"), lines(&[&whole, &[&weather_ran, &weather_ended]])),
        ("a call before the reply ends", saying("early"), lines(&[&whole, &[&weather_ran, &weather_ended]])),
        ("a call in text", with("text", "mode", "text"), lines(&[&whole, &[&weather_ran, &weather_ended]])),
        ("a tool that fails", saying("fail"), lines(&[&whole, &[&fail_ran, &fail_ended]])),
        (
            "a tool of an MCP server",
            saying("clock"),
            lines(&[
                &whole,
                &[&clock_ran, &clock_ended],
                &[
                    "mcp_client_operation_duration_seconds_count{mcp_method_name=\"tools/call\",gen_ai_tool_name=\"clock.now\"} +1",
                ],
            ]),
        ),
        // Seen, and not whole: it has no name of a tool.
        ("a tool that nobody has", saying("nobody's"), lines(&[&TWO_STEPS, &ANSWERED, &[&unknown]])),
        (
            "half a call",
            saying("half"),
            lines(&[
                &[&lost, &call_lost, &never],
                &[
                    "gen_ai_client_operation_time_to_first_chunk_seconds_count{\"test/m\"} +1",
                    "throughline_steps_per_turn_count +1",
                    "throughline_steps_per_turn_sum +1",
                    "throughline_time_to_first_content_seconds_count +1",
                    "throughline_tool_calls_seen_total +1",
                    "throughline_tool_detection_seconds_count +1",
                    "throughline_turns_total{status=\"error\"} +1",
                    "throughline_upstream_errors_total{code=\"upstream_lost\"} +1",
                ],
            ]),
        ),
        (
            "a key that is refused",
            saying("refused"),
            lines(&[
                &[&refused, &call_refused],
                &[
                    "throughline_steps_per_turn_count +1",
                    "throughline_steps_per_turn_sum +1",
                    "throughline_turns_total{status=\"error\"} +1",
                    "throughline_upstream_errors_total{code=\"unauthorized\"} +1",
                ],
            ]),
        ),
        (
            "a server that is busy once",
            saying("busy"),
            lines(&[
                &ONE_STEP,
                &ANSWERED,
                &[&call_busy, "throughline_upstream_errors_total{code=\"retry\"} +1"],
            ]),
        ),
        (
            "a limit once",
            saying("limited"),
            lines(&[
                &ONE_STEP,
                &ANSWERED,
                &[&call_limited, "throughline_upstream_errors_total{code=\"rate_limit\"} +1"],
            ]),
        ),
    ];
    for (what, body, expected) in rows {
        let before = settled(&server).await;
        turn(&server, &body).await;
        let after = settled(&server).await;
        check(what, &before, &after, expected);
        seen.push(after);
    }
    // Of seven calls two were not whole.
    let rate = seen.last().unwrap()["streaming_tool_detection_rate"];
    assert!((rate - 5.0 / 7.0).abs() < 1e-9, "{rate}");

    // Who goes back to something simpler within a conversation is counted, and who goes forward is not.
    let change = |change: &str| format!("streaming_rollback_count_total{{change=\"{change}\"}}");
    let conversation = turn(&server, &saying("Hello")).await;
    for (body, counted) in [
        (saying("Hello"), vec![]),
        (with("Hello", "model", "whole/m"), vec!["model", "streaming"]),
        (with("Hello", "model", "whole/m"), vec![]),
        (with("Hello", "mode", "text"), vec!["mode", "model"]),
    ] {
        let before = settled(&server).await;
        let mut body = body;
        body["conversation_id"] = json!(conversation);
        turn(&server, &body).await;
        let after = settled(&server).await;
        for name in ["model", "mode", "streaming"] {
            let grown = after[&change(name)] - before[&change(name)];
            assert_eq!(grown, f64::from(u8::from(counted.contains(&name))), "{name}: {body}");
        }
        seen.push(after);
    }
    let late = json!({"jank_frames": 3, "window_ms": 10_000});
    assert_eq!(server.post("/v1/telemetry/frames", late).await.0, 204);

    // Viewers: connected, reconnected in every way, and disconnected.
    let told = server.turn(saying("wait")).await;
    let mut viewers = [server.follow(&told, 0).await, server.follow(&told, 0).await];
    viewers[0].until("tool_start").await;
    seen.push(until(&server, "throughline_viewers", 2.0).await);
    assert_eq!(seen.last().unwrap()["throughline_active_turns"], 1.0);
    drop(viewers);
    until(&server, "throughline_viewers", 0.0).await;
    let before = figures(&server).await;
    server.follow(&told, 1).await;
    server.follow(&told, 2).await;
    server.follow(&told, 100_000).await;
    server.client().get(server.url(&format!("/v1/turns/{told}/events?from=snapshot"))).send().await.unwrap();
    let after = until(&server, "throughline_viewers", 0.0).await;
    let expected = [
        "throughline_resume_total{outcome=\"continued\"} +2",
        "throughline_resume_total{outcome=\"resync\"} +1",
        "throughline_resume_total{outcome=\"snapshot\"} +1",
    ];
    check("viewers that come back", &before, &after, expected.to_vec());
    assert_eq!(server.post(&format!("/v1/turns/{told}/cancel"), json!({})).await.0, 202);
    seen.push(settled(&server).await);
    // The conversation exists, its events do not: as after the retention of events.
    let before = settled(&server).await;
    server.state.log.delete(&told).await.unwrap();
    let (status, error) = server.get(&format!("/v1/turns/{told}/events?after=1")).await;
    assert_eq!((status, &error["error"]["code"]), (410, &json!("events_gone")));
    let after = settled(&server).await;
    let expected = ["throughline_resume_total{outcome=\"gone\"} +1"];
    check("a viewer that comes back too late", &before, &after, expected.to_vec());
    seen.push(after);
    // More than the kernel and the connection's own buffer hold.
    let long = server.say(&"a few more words ".repeat(150_000)).await;
    let lazy = lazy(&server, &long).await;
    let dropped = until(&server, "throughline_subscriber_drops_total", 1.0).await;
    drop(lazy);
    seen.extend([dropped, settled(&server).await]);

    // A turn that another process has taken: its last event is not reported here, and its state is dropped.
    let taken = server.turn(saying("wait")).await;
    server.follow(&taken, 0).await.until("tool_start").await;
    server.state.log.claim(&taken).await.unwrap();
    server.post(&format!("/v1/turns/{taken}/cancel"), json!({})).await;
    settled(&server).await;
    assert_eq!(server.state.telemetry.turns_held(), 0);

    // A turn that is resumed after the process was killed: its calls are counted where it ends.
    let asking = |builder: ThroughlineBuilder| builder.approval(ApprovalMode::Ask);
    let server = TestServer::start_with(Scripted::default(), asking, ServerLimits::default()).await;
    let open = server.turn(saying("write")).await;
    let asked = server.follow(&open, 0).await.until("approval_request").await;
    let question = asked.last().unwrap().data["approval_id"].as_str().unwrap().to_owned();
    let server = server.restart().await;
    until(&server, "throughline_turns_resumed_total", 1.0).await;
    let path = format!("/v1/turns/{open}/approvals/{question}");
    assert_eq!(server.post(&path, json!({"decision": "approve"})).await.0, 200);
    let after = settled(&server).await;
    for (series, value) in [
        ("throughline_tool_calls_total{gen_ai_tool_name=\"calendar.add\",status=\"success\"}", 1.0),
        ("throughline_turns_total{status=\"completed\"}", 1.0),
        ("throughline_steps_per_turn_sum", 2.0),
        // The first process has counted the call on the wire, and the model call.
        ("throughline_tool_calls_seen_total", 0.0),
        ("gen_ai_client_operation_duration_seconds_count{\"test/m\"}", 1.0),
    ] {
        assert_eq!(after.get(series), Some(&value), "{series}: {after:#?}");
    }
    seen.push(after);

    let rated = server.turn(saying("hello")).await;
    server.follow(&rated, 0).await.rest().await;
    let path = server.url(&format!("/v1/turns/{rated}/rating"));
    let answer = server.client().put(path).json(&json!({"value": "up"})).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    seen.push(until(&server, "throughline_ratings_total{value=\"up\"}", 1.0).await);

    // Not one metric is registered and never fed.
    let fed: BTreeSet<&str> = seen
        .iter()
        .flatten()
        .filter(|(_, value)| **value != 0.0)
        .map(|(series, _)| name_of(series))
        .collect();
    let never: Vec<&str> =
        METRICS.iter().map(|metric| metric.name).filter(|name| !fed.contains(name)).collect();
    // Whether anything waits here at the very moment of a look is chance.
    let queues = ["throughline_store_queue", "throughline_call_history_queue"];
    #[cfg(not(target_os = "linux"))]
    let never: Vec<&str> =
        never.into_iter().filter(|name| *name != "process_resident_memory_bytes").collect();
    assert!(never.iter().all(|name| queues.contains(name)), "never fed: {never:?}");
    let there = seen.last().unwrap();
    assert!(queues.iter().all(|name| there.contains_key(*name)), "{there:#?}");
}

/// The metric that a series belongs to.
fn name_of(series: &str) -> &str {
    let name = series.split('{').next().unwrap_or(series);
    let histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
    histogram.filter(|name| METRICS.iter().any(|metric| metric.name == *name)).unwrap_or(name)
}
