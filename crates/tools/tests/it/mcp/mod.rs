//! MCP servers as sources of tools, against a server of our own that misbehaves on request: this test binary,
//! started again. Tests with real servers are in `mcp_servers.rs`.

#![cfg(all(feature = "mcp", unix))]

mod any_reply;
mod any_server;
mod fake;
pub mod harness;
mod http_server;
mod odd_servers;
mod pausing;

use harness::{McpHarness, PATIENCE, fake_server, has, is_down, is_up, pass};
use pausing::{PAUSE_MS, PausingServer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use throughline_engine::{Effect, ElicitationMode, ToolAnswer};
use throughline_tools::mcp::{McpLimits, McpServer, PinStore, ProtocolEra};
use throughline_tools::{AgentCallable, QuestionHandler, SourceFault};
use throughline_wire::{CallOutcome, NotStarted, StartState, ToolOutput};

/// Not a test in itself: the server, if it was started as one.
#[test]
fn fake_server_process() {
    fake::serve_if_wanted();
}

const HOUR_MS: u64 = 60 * 60 * 1_000;

/// Waits for it, for a bounded time.
async fn soon<T>(coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, coming).await.expect("it never comes")
}

fn text(outcome: &CallOutcome) -> String {
    match outcome {
        CallOutcome::Done(output) => output.text.clone(),
        other => panic!("{other:?}"),
    }
}

fn messages(faults: &[SourceFault]) -> Vec<String> {
    faults.iter().map(|fault| fault.message.clone()).collect()
}

#[tokio::test]
async fn mcp_tool_is_registered_and_called_in_both_protocol_eras() {
    for era in ["legacy", "modern"] {
        let harness = McpHarness::start(fake_server(&[("ERA", era)])).await;
        harness.until(is_up).await;
        assert_eq!(harness.toolbox.faults(), [], "{era}");
        let registry = harness.toolbox.registry();
        let echo = registry.get(&"fake.echo".into()).unwrap().spec().clone();
        assert_eq!((echo.title.as_str(), echo.source.as_str()), ("Echo", "mcp:fake"));
        assert_eq!((echo.effect, echo.agent_callable), (Effect::External, AgentCallable::Yes));
        assert_eq!(text(&harness.call("echo", json!({"text": "hello"})).await), "hello", "{era}");
        let refused = harness.call("echo", json!({"text": 1})).await;
        assert!(
            matches!(refused, CallOutcome::NotStarted(NotStarted::InvalidArguments { .. })),
            "{refused:?}"
        );
        let outcome = harness.call("fail", json!({})).await;
        assert!(
            matches!(&outcome, CallOutcome::Failed { message, .. } if message == "as asked"),
            "{outcome:?}"
        );
        harness.stop().await;
    }
}

#[tokio::test]
async fn protocol_revision_is_negotiated_or_configured() {
    let table = [
        ("legacy", ProtocolEra::Auto, "2025-11-25"),
        ("modern", ProtocolEra::Auto, "2026-07-28"),
        ("modern", ProtocolEra::V2026_07_28, "2026-07-28"),
        ("legacy", ProtocolEra::V2025_11_25, "2025-11-25"),
        // A server that exits on an unknown request gets the older handshake the next time.
        ("deaf", ProtocolEra::Auto, "2025-11-25"),
    ];
    for (server, era, expected) in table {
        let harness = McpHarness::start(McpServer { era, ..fake_server(&[("ERA", server)]) }).await;
        harness.until(is_up).await;
        assert_eq!(text(&harness.call("era", json!({})).await), expected, "{server} {era:?}");
        harness.stop().await;
    }
    let harness =
        McpHarness::start(McpServer { era: ProtocolEra::V2026_07_28, ..fake_server(&[("ERA", "legacy")]) })
            .await;
    harness.until(is_down).await;
    harness.stop().await;
}

#[tokio::test]
async fn progress_extends_the_timeout_up_to_the_total() {
    let most_of_an_hour = Duration::from_secs(50 * 60);
    let harness = McpHarness::start(McpServer {
        timeout_ms: HOUR_MS,
        total_timeout_ms: 10 * HOUR_MS,
        ..fake_server(&[])
    })
    .await;
    harness.until(is_up).await;
    // In all longer than the time without a sign of life, which each step is.
    let (running, mut progress) = harness.stepping(4).await;
    for step in 1..=3 {
        pass(most_of_an_hour).await;
        harness.step();
        let progress = soon(progress.recv()).await.expect("no progress");
        assert_eq!((progress.total, progress.message), (Some(4.0), Some(format!("step {step}"))));
    }
    harness.step();
    assert_eq!(text(&soon(running).await.unwrap()), "done");
    let (silent, _progress) = harness.stepping(1).await;
    pass(Duration::from_millis(HOUR_MS)).await;
    let silent = soon(silent).await.unwrap();
    assert!(matches!(silent, CallOutcome::TimedOut { limit_ms: HOUR_MS, .. }), "{silent:?}");
    harness.logged("cancelled: no answer and no progress in time").await;
    harness.stop().await;

    const TOTAL_MS: u64 = HOUR_MS + HOUR_MS / 2;
    let harness =
        McpHarness::start(McpServer { timeout_ms: HOUR_MS, total_timeout_ms: TOTAL_MS, ..fake_server(&[]) })
            .await;
    harness.until(is_up).await;
    let (over, mut progress) = harness.stepping(4).await;
    pass(most_of_an_hour).await;
    harness.step();
    soon(progress.recv()).await.expect("no progress");
    pass(most_of_an_hour).await;
    let over = soon(over).await.unwrap();
    assert!(matches!(over, CallOutcome::TimedOut { limit_ms: TOTAL_MS, .. }), "{over:?}");
    harness.logged("cancelled: stopped by the user").await;
    harness.stop().await;
}

#[tokio::test]
async fn cancel_reaches_the_server_and_late_replies_are_ignored() {
    let harness = McpHarness::start(fake_server(&[])).await;
    harness.until(is_up).await;
    let (call, cancel) = harness.prepared("hang", json!({}));
    let running = tokio::spawn(harness.running(call));
    harness.logged("called: hang").await;
    cancel.cancel();
    let outcome = running.await.unwrap();
    assert!(matches!(outcome, CallOutcome::Cancelled(StartState::Yes { .. })), "{outcome:?}");
    harness.logged("cancelled: stopped by the user").await;
    // The server answers the cancelled call now; the next one gets its own answer.
    assert_eq!(text(&harness.call("echo", json!({"text": "next"})).await), "next");

    // The caller has stopped waiting: dropping the executor notifies the server, too.
    let (call, _cancel) = harness.prepared("hang", json!({}));
    let dropped = tokio::spawn(harness.running(call));
    harness.logged_times("called: hang", 2).await;
    dropped.abort();
    harness.logged("cancelled: the caller is no longer waiting").await;
    harness.stop().await;
}

#[tokio::test]
async fn crashed_server_restarts_and_its_calls_fail_or_are_unknown() {
    let harness = McpHarness::start(McpServer { trusted: true, ..fake_server(&[]) }).await;
    harness.until(is_up).await;
    let registry = harness.toolbox.registry();
    assert_eq!(registry.get(&"fake.die_reading".into()).unwrap().spec().effect, Effect::Read);
    let outcome = harness.call("die_reading", json!({})).await;
    assert!(
        matches!(&outcome, CallOutcome::Failed { message, .. } if message.contains("closed before")),
        "{outcome:?}"
    );
    // A call waits for the server to be there again, and the tools stay.
    assert_eq!(text(&harness.call("echo", json!({"text": "again"})).await), "again");
    // The fault of this death is not taken for that of the next one.
    harness.until(is_up).await;
    let outcome = harness.call("die_writing", json!({})).await;
    assert!(
        matches!(&outcome, CallOutcome::Unknown { message: Some(message), .. } if message.contains("closed before")),
        "it may have written: {outcome:?}"
    );
    harness
        .until(|toolbox| {
            messages(&toolbox.faults())
                .iter()
                .any(|m| m.contains("exited with code 3") && m.contains("last words"))
        })
        .await;
    assert!(has(&harness.toolbox, "fake.echo"), "its tools stay while it is started again");
    harness.until(is_up).await;
    assert_eq!(harness.starts(), 3);
    harness.stop().await;
}

#[tokio::test]
async fn failed_server_start_reports_stderr_and_is_retried() {
    let harness = McpHarness::start(fake_server(&[("FAIL_STARTS", "2")])).await;
    harness.until(is_down).await;
    let fault = &harness.toolbox.faults()[0];
    assert_eq!((fault.source.as_str(), &fault.tool), ("mcp:fake", &None));
    assert!(
        fault.message.contains("exited with code 1") && fault.message.contains("cannot find my files"),
        "{}",
        fault.message
    );
    assert!(fault.message.contains("retrying in"), "{}", fault.message);
    harness.until(is_up).await;
    assert_eq!(text(&harness.call("echo", json!({"text": "at last"})).await), "at last");
    harness.stop().await;
}

#[tokio::test]
async fn unreachable_server_fault_has_cause_and_remedy() {
    let program = |program: &str| McpServer { command: vec![program.into()], ..McpServer::default() };
    let env =
        |value: &str| McpServer { env: BTreeMap::from([("KEY".into(), value.into())]), ..fake_server(&[]) };
    let url = |url: &str| McpServer { url: Some(url.into()), ..McpServer::default() };
    let secret = McpServer {
        headers: BTreeMap::from([("A".into(), "$NO_SUCH".into())]),
        ..url("http://127.0.0.1:9/")
    };
    let table = [
        (
            program("no-such-program-at-all"),
            "there is no program `no-such-program-at-all`",
            "correct `command`",
        ),
        (env("$NO_SUCH_VARIABLE"), "the environment variable NO_SUCH_VARIABLE is not set", "`env`"),
        (secret, "the environment variable NO_SUCH is not set", "`headers`"),
        (url("http://127.0.0.1:9/mcp"), "http://127.0.0.1:9/mcp: ", "Check that it is an MCP server"),
        // However long the address is, the cause is there.
        (
            url(&format!("http://127.0.0.1:9/{}", "long/".repeat(100))),
            "tcp connect error",
            "that it is running",
        ),
        // It refuses the probe, and dies of the older handshake.
        (
            fake_server(&[("ERA", "faint")]),
            "exited with code 5 before completing the MCP handshake",
            "that it is running",
        ),
        (McpServer { start_timeout_ms: 300, ..program("cat") }, "", ""),
        (
            McpServer { start_timeout_ms: 300, ..fake_server(&[("ERA", "mute")]) },
            "has not shaken hands in 300 ms",
            "start_timeout_ms",
        ),
    ];
    for (settings, message, remedy) in table {
        let shown = format!("{settings:?}");
        let harness = McpHarness::start(settings).await;
        harness.until(is_down).await;
        let fault = harness.toolbox.faults().remove(0);
        assert!(fault.message.contains(message), "{}\n{shown}", fault.message);
        assert!(fault.remedy.unwrap_or_default().contains(remedy), "{shown}");
        harness.stop().await;
    }
}

#[tokio::test]
async fn slow_server_does_not_delay_other_tools() {
    let harness = McpHarness::start(fake_server(&[("ERA", "mute")])).await;
    let silent = harness.toolbox.wait_ready(Duration::from_millis(50)).await;
    assert_eq!(silent, ["mcp:fake"]);
    assert!(has(&harness.toolbox, "own.ping"));
    harness.stop().await;
}

#[tokio::test]
async fn changed_definition_is_disabled_until_approved() {
    let pins = PinStore::in_memory();
    let debounce = Duration::from_millis(HOUR_MS);
    let limits = McpLimits { list_debounce: debounce, ..harness::limits() };
    let harness = McpHarness::limited("fake", fake_server(&[]), pins.clone(), limits).await;
    harness.until(is_up).await;
    // Four notices in a row, of which one list is made.
    text(&harness.call("grow", json!({})).await);
    pass(debounce).await;
    harness.until(|toolbox| !has(toolbox, "fake.echo")).await;
    assert!(has(&harness.toolbox, "fake.newcomer"), "a tool that is seen for the first time is pinned");
    let fault = harness.toolbox.faults().remove(0);
    assert_eq!(fault.tool, Some("fake.echo".into()));
    assert!(fault.remedy.unwrap().contains("throughline tools approve fake.echo"));
    let changes = pins.pending_changes().unwrap();
    assert!(changes[0].diff().contains("+ And mails it to mallory"), "{}", changes[0].diff());
    assert_eq!(harness.lists(), 2, "a burst of notices is one change");
    pins.approve("fake.echo").unwrap();
    harness.until(|toolbox| has(toolbox, "fake.echo")).await;
    assert_eq!(harness.toolbox.faults(), []);
    harness.stop().await;
}

#[tokio::test]
async fn pins_persist_and_invalid_pin_file_disables_tools() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pins.json");
    let harness = McpHarness::with_pins(fake_server(&[]), PinStore::in_file(&path)).await;
    harness.until(is_up).await;
    harness.stop().await;

    let harness = McpHarness::with_pins(
        fake_server(&[("DESCRIPTION", "Now something else")]),
        PinStore::in_file(&path),
    )
    .await;
    harness.until(|toolbox| !toolbox.faults().is_empty()).await;
    assert!(!has(&harness.toolbox, "fake.echo") && has(&harness.toolbox, "fake.hang"));
    harness.stop().await;

    std::fs::write(&path, "{}").unwrap();
    let harness = McpHarness::with_pins(fake_server(&[]), PinStore::in_file(&path)).await;
    harness.until(|toolbox| !toolbox.faults().is_empty()).await;
    assert!(!has(&harness.toolbox, "fake.echo"), "without its pins nothing of it is offered");
    assert!(messages(&harness.toolbox.faults())[0].contains("not a file of pinned definitions"));
    harness.stop().await;
}

#[tokio::test]
async fn garbage_and_oversized_replies_keep_the_connection() {
    let harness = McpHarness::start(McpServer { timeout_ms: 20_000, ..fake_server(&[]) }).await;
    harness.until(is_up).await;
    assert_eq!(text(&harness.call("garbage", json!({})).await), "after the garbage");
    let outcome = harness.call("flood", json!({})).await;
    assert!(
        matches!(&outcome, CallOutcome::Unknown { message: Some(message), .. } if message.contains("the limit of")),
        "{outcome:?}"
    );
    assert_eq!(text(&harness.call("echo", json!({"text": "still there"})).await), "still there");
    assert_eq!(harness.starts(), 1);
    harness.stop().await;
}

#[tokio::test]
async fn too_deep_schema_is_one_fault_and_other_tools_work() {
    // 100 nested properties exceed the limit of the SDK's parser, 40 exceed that of a definition.
    for levels in ["100", "40"] {
        let harness = McpHarness::start(fake_server(&[("DEEP_SCHEMA", levels)])).await;
        harness.until(|toolbox| has(toolbox, "fake.echo")).await;
        let faults = harness.toolbox.faults();
        assert_eq!(
            messages(&faults),
            ["its definition is nested deeper than the limit of 64 levels"],
            "{levels}"
        );
        assert_eq!(faults[0].tool, Some("fake.deep".into()));
        assert!(!has(&harness.toolbox, "fake.deep"));
        assert_eq!(text(&harness.call("echo", json!({"text": "here"})).await), "here");
        assert_eq!(harness.starts(), 1, "nothing was waited for or begun again");
        harness.stop().await;
    }
    let harness = McpHarness::start(fake_server(&[("DEEP_SCHEMA", "25")])).await;
    harness.until(|toolbox| has(toolbox, "fake.deep")).await;
    assert_eq!(harness.toolbox.faults(), []);
    harness.stop().await;
}

#[tokio::test]
async fn too_deep_schema_over_http_leaves_other_tools_usable() {
    let deep = (0..100).fold(json!({}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
    let tools =
        json!([{"name": "good", "inputSchema": {"type": "object"}}, {"name": "deep", "inputSchema": deep}]);
    let (url, _requests) = harness::json_rpc(move |method| match method {
        "initialize" => Some(json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "fake", "version": "1"},
        })),
        "tools/list" => Some(json!({"tools": tools})),
        _ => None,
    })
    .await;
    let harness = McpHarness::start(McpServer {
        url: Some(url),
        era: ProtocolEra::V2025_11_25,
        ..McpServer::default()
    })
    .await;
    harness.until(|toolbox| has(toolbox, "fake.good")).await;
    assert_eq!(harness.toolbox.faults().len(), 1, "{:?}", harness.toolbox.faults());
    assert_eq!(harness.toolbox.faults()[0].tool, Some("fake.deep".into()));
    harness.stop().await;
}

#[tokio::test]
async fn wrong_reply_id_is_ignored_and_too_deep_reply_is_unknown() {
    let harness = McpHarness::start(McpServer { timeout_ms: 50_000, ..fake_server(&[]) }).await;
    harness.until(is_up).await;
    assert_eq!(text(&harness.call("wrong_id", json!({})).await), "for a number");
    let outcome = harness.call("deep_answer", json!({})).await;
    assert!(
        matches!(&outcome, CallOutcome::Unknown { message: Some(message), .. } if message.contains("nests deeper than 100 levels")),
        "{outcome:?}"
    );
    assert_eq!(text(&harness.call("echo", json!({"text": "still there"})).await), "still there");
    harness.stop().await;
}

#[tokio::test]
async fn server_environment_is_filtered() {
    let mut settings = fake_server(&[("GIVEN", "$OF_OURS")]);
    settings.env_allow = vec!["ALLOWED".into()];
    let harness = McpHarness::start(settings).await;
    harness.until(is_up).await;
    let seen: Vec<String> =
        serde_json::from_str(&text(&harness.call("environment", json!({})).await)).unwrap();
    for name in ["PATH", "ALLOWED", "GIVEN"] {
        assert!(seen.iter().any(|seen| seen == name), "{name} is missing of {seen:?}");
    }
    for name in ["OF_OURS", "SECRET_KEY"] {
        assert!(!seen.iter().any(|seen| seen == name), "{name} is handed on");
    }
    harness.stop().await;
}

#[tokio::test]
async fn server_secrets_are_redacted_in_output_and_progress() {
    let harness = McpHarness::start(fake_server(&[("GIVEN", "$OF_OURS")])).await;
    harness.until(is_up).await;
    let (outcome, progress) = harness.call_with_progress("leak", json!({})).await;
    let report = format!("{outcome:?} {progress:?}");
    assert!(report.contains("it is …"), "{report}");
    assert!(!report.contains("of ours alone"), "{report}");
    harness.stop().await;
}

#[tokio::test]
async fn server_child_processes_end_on_stop() {
    let harness = McpHarness::start(fake_server(&[])).await;
    harness.until(is_up).await;
    let ids: Vec<u32> = serde_json::from_str(&text(&harness.call("fork", json!({})).await)).unwrap();
    assert_eq!(ids.len(), 2);
    assert!(ids.iter().all(|id| harness::runs(*id)));
    harness.stop().await;
    for id in ids {
        harness::until_exited(id).await;
    }
}

#[tokio::test]
async fn hostile_server_texts_stay_data() {
    for hostile in harness::hostile_texts() {
        let harness = McpHarness::start(fake_server(&[("DESCRIPTION", &hostile)])).await;
        harness.until(is_up).await;
        let registry = harness.toolbox.registry();
        let echo = registry.get(&"fake.echo".into()).unwrap();
        assert_eq!(echo.definition().description, hostile, "it is passed on as it is");
        let names: Vec<_> = registry.iter().map(|tool| tool.wire_name().as_str().to_owned()).collect();
        assert!(
            names.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        );
        let outcome = harness.call("echo", json!({"text": hostile})).await;
        assert_eq!(outcome, CallOutcome::Done(ToolOutput::text(hostile)));
        harness.stop().await;
    }
}

#[tokio::test]
async fn output_violating_its_schema_is_used_and_reported() {
    let harness = McpHarness::start(fake_server(&[])).await;
    harness.until(is_up).await;
    let CallOutcome::Done(output) = harness.call("measure", json!({"degrees": "22"})).await else { panic!() };
    assert_eq!(output.value, Some(json!({"degrees": "22"})));
    harness.until(|toolbox| !toolbox.faults().is_empty()).await;
    let fault = harness.toolbox.faults().remove(0);
    assert_eq!(fault.tool, Some("fake.measure".into()));
    assert!(fault.message.contains("/degrees: expected number, got"), "{}", fault.message);
    assert!(has(&harness.toolbox, "fake.measure"));
    harness.stop().await;
}

#[tokio::test]
async fn task_only_tools_are_not_offered() {
    let harness = McpHarness::start(fake_server(&[])).await;
    harness.until(is_up).await;
    assert!(!has(&harness.toolbox, "fake.research"));
    harness.stop().await;
}

/// The public suite measures it by the clock, of which `mcp_servers.rs` takes no notice.
#[tokio::test]
async fn closed_stream_reconnects_only_after_the_retry_delay() {
    let (server, address) = PausingServer::start().await;
    let url = Some(format!("http://{address}/mcp"));
    let (timeout_ms, total_timeout_ms) = (5 * HOUR_MS, 5 * HOUR_MS);
    let settings = McpServer { url, timeout_ms, total_timeout_ms, ..McpServer::default() };
    let harness = McpHarness::named("pausing", settings, PinStore::in_memory()).await;
    harness.until(|toolbox| has(toolbox, "pausing.wait")).await;
    let (call, _) = harness.prepared("wait", json!({}));
    let running = tokio::spawn(harness.running(call));
    let came = |count: &AtomicU32| count.load(Ordering::SeqCst) > 0;
    soon(async {
        while !came(&server.calls) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let mut waited = Duration::ZERO;
    while !came(&server.returns) && !running.is_finished() {
        let step = Duration::from_secs(5 * 60);
        pass(step).await;
        waited += step;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(waited >= Duration::from_millis(PAUSE_MS), "after {waited:?}");
    assert_eq!(text(&soon(running).await.unwrap()), "waited");
    assert_eq!(server.returns.load(Ordering::SeqCst), 1);
    harness.stop().await;
}

#[tokio::test]
async fn server_question_reaches_the_user_and_pauses_timeouts() {
    let limits = McpServer { timeout_ms: HOUR_MS / 12, total_timeout_ms: HOUR_MS / 6, ..fake_server(&[]) };
    let harness = McpHarness::start(limits).await;
    harness.until(is_up).await;
    let (answered, answer) = tokio::sync::oneshot::channel::<ToolAnswer>();
    let answer = Arc::new(tokio::sync::Mutex::new(Some(answer)));
    let asked = Arc::new(tokio::sync::Notify::new());
    let (mut call, _) = harness.prepared("ask", json!({}));
    let is_asked = asked.clone();
    call.question_handler = QuestionHandler::new(move |question| {
        let (answer, is_asked) = (answer.clone(), is_asked.clone());
        async move {
            is_asked.notify_one();
            assert_eq!(question.message, "The MCP server `fake` asks: Which color?");
            let ElicitationMode::Form { schema } = question.mode else { panic!("no form") };
            assert_eq!(schema["properties"]["color"]["enum"], json!(["red", "green"]));
            answer.lock().await.take().unwrap().await.unwrap()
        }
    });
    let asking = tokio::spawn(harness.running(call));
    soon(asked.notified()).await;
    // Longer than the call may be silent, or last: the person thinks, and other calls continue.
    pass(Duration::from_millis(HOUR_MS / 3)).await;
    assert_eq!(text(&harness.call("echo", json!({"text": "meanwhile"})).await), "meanwhile");
    answered.send(ToolAnswer::Accept { content: Some(json!({"color": "red"})) }).unwrap();
    let received: Value = serde_json::from_str(&text(&soon(asking).await.unwrap())).unwrap();
    let content = json!({"color": "red", "shade": "dark"});
    assert_eq!(received, json!({"action": "accept", "content": content}), "with the form's own default");

    // No person: declined, and the call continues.
    let received: Value = serde_json::from_str(&text(&harness.call("ask", json!({})).await)).unwrap();
    assert_eq!(received, json!({"action": "decline"}));
    harness.stop().await;
}

#[tokio::test]
async fn modern_server_elicits_by_an_input_required_result() {
    let harness = McpHarness::start(fake_server(&[("ERA", "modern")])).await;
    harness.until(is_up).await;
    for (answer, action) in
        [(ToolAnswer::Accept { content: None }, "accept"), (ToolAnswer::Decline, "decline")]
    {
        let (mut call, _) = harness.prepared("ask_again", json!({}));
        call.question_handler = QuestionHandler::new(move |question| {
            assert_eq!(question.mode, ElicitationMode::Url { url: "https://example.com/sign-in".into() });
            std::future::ready(answer.clone())
        });
        let received: Value = serde_json::from_str(&text(&harness.running(call).await)).unwrap();
        assert_eq!(received, json!({"action": action}));
    }
    harness.stop().await;
}

#[tokio::test]
async fn secrets_do_not_follow_a_redirect_to_another_origin() {
    let (thief, mut visits) =
        harness::listener(|_| "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let (front, mut asked) = harness::listener(move |_| {
        format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {thief}\r\ncontent-length: 0\r\n\r\n")
    })
    .await;
    let headers = BTreeMap::from([("Authorization".to_owned(), "$OF_OURS".to_owned())]);
    let harness = McpHarness::start(McpServer { url: Some(front), headers, ..McpServer::default() }).await;
    harness.until(is_down).await;
    assert!(
        asked.recv().await.unwrap().contains("authorization: of ours"),
        "the server itself gets the header"
    );
    assert!(visits.try_recv().is_err(), "another origin was asked");
    let message = messages(&harness.toolbox.faults()).remove(0);
    assert!(message.contains("redirects to another origin"), "{message}");
    assert!(!message.contains("of ours"), "a secret is told: {message}");
    harness.stop().await;
}

#[tokio::test]
async fn non_object_arguments_are_refused() {
    // The registry checks before anything is sent; a server never sees what is not an object.
    let harness = McpHarness::start(fake_server(&[])).await;
    harness.until(is_up).await;
    for wrong in [json!([]), json!("text"), Value::Null] {
        let outcome = harness.call("fail", wrong).await;
        assert!(
            matches!(outcome, CallOutcome::NotStarted(NotStarted::InvalidArguments { .. })),
            "{outcome:?}"
        );
    }
    harness.stop().await;
}
