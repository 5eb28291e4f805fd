//! Real MCP servers, from their public packages, and the clients' part of the protocol's own conformance suite.
//!
//! `cargo xtask test --only mcp` installs them, pinned by `mcp/package.json`, its lock and `mcp/requirements.txt`, and
//! names their folder in `THROUGHLINE_MCP_SERVERS`.

#![cfg(all(feature = "mcp", unix))]

use crate::mcp::harness::{McpHarness, has};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use throughline_engine::{Effect, ElicitationMode, ToolAnswer, ToolQuestion};
use throughline_tools::mcp::{McpServer, PinStore, ProtocolEra};
use throughline_tools::{QuestionHandler, Toolbox};
use throughline_wire::{CallOutcome, StartState, ToolOutput};

/// Folder of the installed packages; without it a test prints a line and passes.
fn packages() -> Option<PathBuf> {
    match std::env::var_os("THROUGHLINE_MCP_SERVERS") {
        // Another check of this run has them.
        Some(folder) if folder.is_empty() => None,
        Some(folder) => Some(folder.into()),
        None => {
            println!("skipped: THROUGHLINE_MCP_SERVERS is not set");
            None
        }
    }
}

/// Node of the packages, and a script of theirs.
fn node(packages: &Path, script: &str, arguments: &[&str]) -> Vec<String> {
    let path = |path: &str| packages.join("node_modules").join(path).to_str().unwrap().to_owned();
    let mut command = vec![path(".bin/node"), path(script)];
    command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    command
}

const EVERYTHING: &str = ".bin/mcp-server-everything";

async fn started(name: &str, settings: McpServer) -> McpHarness {
    let harness = McpHarness::named(name, settings, PinStore::in_memory()).await;
    harness.until(|toolbox| toolbox.registry().iter().any(|tool| tool.spec().source != "rust")).await;
    harness
}

fn output(outcome: CallOutcome) -> ToolOutput {
    match outcome {
        CallOutcome::Done(output) => output,
        other => panic!("{other:?}"),
    }
}

/// Checks every feature of the server, over any transport.
async fn everything_works(harness: &McpHarness) {
    let call = async |method: &str, arguments: Value| output(harness.call(method, arguments).await);
    assert_eq!(call("echo", json!({"message": "hello"})).await.text, "Echo: hello");
    assert!(call("get-sum", json!({"a": 2, "b": 40})).await.text.contains("42"));

    let image = call("get-tiny-image", json!({})).await;
    assert_eq!(image.media.iter().map(|media| media.media_type.as_str()).collect::<Vec<_>>(), ["image/png"]);
    assert!(!image.text.contains(&image.media[0].data()[..40]), "base64 is for no reader");

    let weather = call("get-structured-content", json!({"location": "New York"})).await;
    assert!(weather.value.unwrap()["temperature"].is_number());
    assert_eq!(harness.toolbox.faults(), [], "it fits its own schema");

    let links = call("get-resource-links", json!({"count": 2})).await;
    assert_eq!(links.value.unwrap()["links"].as_array().unwrap().len(), 2);
    assert!(links.text.contains("]("), "{}", links.text);
    let embedded = call("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})).await;
    assert!(embedded.value.unwrap()["resources"][0]["uri"].is_string());

    let slow = json!({"duration": 1, "steps": 4});
    let (outcome, progress) = harness.call_with_progress("trigger-long-running-operation", slow).await;
    output(outcome);
    assert_eq!(progress.last().and_then(|progress| progress.total), Some(4.0), "{progress:?}");

    // Its answer to an invalid call is an error of the tool, not of the connection.
    let wrong =
        harness.call("get-resource-reference", json!({"resourceType": "Text", "resourceId": -1})).await;
    assert!(matches!(wrong, CallOutcome::Failed { .. }), "{wrong:?}");
    assert!(!has(&harness.toolbox, "everything.simulate-research-query"), "it runs as a task only");

    let (mut running, cancel) =
        harness.prepared("trigger-long-running-operation", json!({"duration": 60, "steps": 60}));
    running.timeout = None;
    let running = tokio::spawn(harness.running(running));
    // It has begun when its first step is over; the next call shows that it is no longer in the way.
    cancel_when_seen(harness, cancel).await;
    let outcome = running.await.unwrap();
    assert!(matches!(outcome, CallOutcome::Cancelled(StartState::Yes { .. })), "{outcome:?}");
    assert_eq!(call("echo", json!({"message": "after"})).await.text, "Echo: after");
}

/// A call of the same server with an answer: earlier messages have arrived by then.
async fn cancel_when_seen(harness: &McpHarness, cancel: tokio_util::sync::CancellationToken) {
    output(harness.call("echo", json!({"message": "in between"})).await);
    cancel.cancel();
}

#[tokio::test]
async fn server_everything_works_over_stdio() {
    let Some(packages) = packages() else { return };
    let settings = McpServer { command: node(&packages, EVERYTHING, &["stdio"]), ..McpServer::default() };
    let harness = started("everything", settings).await;
    everything_works(&harness).await;
    questions_are_answered(&harness).await;
    harness.stop().await;
}

/// The tools that ask appear when the server has seen that we can answer: its list changes.
async fn questions_are_answered(harness: &McpHarness) {
    let asks = "everything.trigger-elicitation-request";
    harness.until(|toolbox: &Toolbox| has(toolbox, asks)).await;
    let (mut call, _) = harness.prepared("trigger-elicitation-request", json!({}));
    call.question_handler = QuestionHandler::new(|question: ToolQuestion| async move {
        assert!(question.message.contains("everything"), "who asks is said: {}", question.message);
        let ElicitationMode::Form { schema } = question.mode else { panic!("no form") };
        assert!(schema["properties"]["name"].is_object(), "{schema}");
        ToolAnswer::Accept { content: Some(json!({"name": "Ada"})) }
    });
    let answered = output(harness.running(call).await);
    assert!(answered.text.contains("Ada"), "{}", answered.text);

    let declined = output(harness.call("trigger-elicitation-request", json!({})).await);
    assert!(declined.text.contains("declined"), "{}", declined.text);
}

#[tokio::test]
async fn server_everything_works_over_http_and_reconnects() {
    let Some(packages) = packages() else { return };
    // Below the ports that a system assigns: the server finds it free, also after a restart.
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = (first..32_000).find(is_free).unwrap();
    let url = Some(format!("http://127.0.0.1:{port}/mcp"));
    let start = || {
        let command = node(&packages, EVERYTHING, &["streamableHttp"]);
        let mut server = tokio::process::Command::new(&command[0]);
        server.args(&command[1..]).env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        server.kill_on_drop(true).spawn().unwrap()
    };
    let mut server = start();
    let harness = started("everything", McpServer { url, ..McpServer::default() }).await;
    everything_works(&harness).await;
    questions_are_answered(&harness).await;

    server.kill().await.unwrap();
    let outcome = harness.call("echo", json!({"message": "anybody there?"})).await;
    assert!(!matches!(outcome, CallOutcome::Done(_)), "{outcome:?}");
    harness.until(|toolbox| !toolbox.faults().is_empty()).await;
    let _server = start();
    harness.until(|toolbox| toolbox.faults().is_empty() && has(toolbox, "everything.echo")).await;
    assert_eq!(output(harness.call("echo", json!({"message": "again"})).await).text, "Echo: again");
    harness.stop().await;
}

#[tokio::test]
async fn server_filesystem_effects_follow_trust_reads_stay_in_root() {
    let Some(packages) = packages() else { return };
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    std::fs::write(root.join("note.txt"), "milk").unwrap();
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    let command = node(&packages, ".bin/mcp-server-filesystem", &[root.to_str().unwrap()]);
    for (trusted, reads, writes) in
        [(false, Effect::External, Effect::External), (true, Effect::Read, Effect::Idempotent)]
    {
        let harness =
            started("files", McpServer { command: command.clone(), trusted, ..McpServer::default() }).await;
        let registry = harness.toolbox.registry();
        let effect = |name: &str| registry.get(&name.into()).unwrap().spec().effect;
        assert_eq!((effect("files.read_text_file"), effect("files.write_file")), (reads, writes));
        assert_eq!(
            output(harness.call("read_text_file", json!({"path": path("note.txt")})).await).text,
            "milk"
        );
        let outside = harness.call("read_text_file", json!({"path": "/etc/passwd"})).await;
        let CallOutcome::Failed { message, .. } = outside else { panic!("{outside:?}") };
        assert!(message.contains("outside"), "{message}");
        output(harness.call("write_file", json!({"path": path("new.txt"), "content": "x"})).await);
        assert_eq!(std::fs::read_to_string(root.join("new.txt")).unwrap(), "x");
        harness.stop().await;
    }
}

#[tokio::test]
async fn server_time_speaks_both_revisions() {
    let Some(packages) = packages() else { return };
    let program = packages.join("venv/bin/mcp-server-time").to_str().unwrap().to_owned();
    for era in [ProtocolEra::Auto, ProtocolEra::V2026_07_28, ProtocolEra::V2025_11_25] {
        let command = vec![program.clone(), "--local-timezone=Asia/Shanghai".into()];
        let harness = started("time", McpServer { command, era, ..McpServer::default() }).await;
        let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Shanghai"});
        let converted = output(harness.call("convert_time", noon).await);
        assert!(converted.text.contains("20:00"), "{era:?}: {}", converted.text);
        let nowhere = harness.call("get_current_time", json!({"timezone": "Nowhere/Atall"})).await;
        assert!(matches!(nowhere, CallOutcome::Failed { .. }), "{nowhere:?}");
        harness.stop().await;
    }
}

/// Names the conformance suite's server to the process that it starts.
const PROBE: &str = "THROUGHLINE_MCP_PROBE";

/// Not a test in itself: a host that uses all tools of the server whose URL is the last argument, and calls
/// each once.
#[tokio::test]
async fn probe_process() {
    let (Ok(_), Some(url)) = (std::env::var(PROBE), std::env::args().next_back()) else { return };
    let settings = McpServer { url: Some(url), ..McpServer::default() };
    let harness = McpHarness::named("probe", settings, PinStore::in_memory()).await;
    assert_eq!(harness.toolbox.wait_ready(Duration::from_secs(20)).await, [""; 0]);
    let names: Vec<String> = {
        let registry = harness.toolbox.registry();
        let names = registry.iter().filter(|tool| tool.spec().source == "mcp:probe");
        names.map(|tool| tool.spec().name.as_str().trim_start_matches("probe.").to_owned()).collect()
    };
    for name in names {
        let arguments = if name == "add_numbers" { json!({"a": 5, "b": 3}) } else { json!({}) };
        let (mut call, _) = harness.prepared(&name, arguments);
        // For any defaults of the form.
        call.question_handler = QuestionHandler::new(|_| async { ToolAnswer::Accept { content: None } });
        println!("{name}: {:?}", harness.running(call).await);
    }
    harness.stop().await;
}

#[tokio::test]
async fn mcp_conformance_suite_passes() {
    let Some(packages) = packages() else { return };
    let us = std::env::current_exe().unwrap();
    let probe = format!("{} --exact mcp_servers::probe_process --nocapture", us.display());
    for scenario in ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"] {
        let command =
            node(&packages, ".bin/conformance", &["client", "--scenario", scenario, "--command", &probe]);
        let folder = tempfile::tempdir().unwrap();
        let mut suite = tokio::process::Command::new(&command[0]);
        suite.args(&command[1..]).args(["--output-dir", "results"]);
        suite.env(PROBE, "1").current_dir(folder.path()).kill_on_drop(true);
        let ended = tokio::time::timeout(Duration::from_secs(90), suite.output()).await;
        let ended = ended.expect("the suite does not end").unwrap();
        let report =
            format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        let faults = faults(&folder.path().join("results"));
        // Its clock runs on while the machine is busy. The pause itself is tested in virtual time, in
        // `mcp.rs`.
        let is_late = faults == [("client-sse-retry-timing".to_owned(), "WARNING".to_owned())];
        assert!(ended.status.success() || is_late, "{scenario}: {faults:?}\n{report}");
    }
}

/// Checks of the suite that have not succeeded, by id and status.
fn faults(results: &Path) -> Vec<(String, String)> {
    let folders = std::fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path());
    let reports = folders.map(|folder| std::fs::read(folder.join("checks.json")).unwrap());
    let checks = reports.flat_map(|report| serde_json::from_slice::<Vec<Value>>(&report).unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let faults = checks.map(|check| (text(&check["id"]), text(&check["status"])));
    faults.filter(|(_, status)| !matches!(status.as_str(), "SUCCESS" | "INFO")).collect()
}
