//! A server that sends anything at any time: in the handshake, in its lists, and unsolicited during a call.

use super::any_reply::{AnyMessage, any_message};
use super::harness::{McpHarness, fake_server, has, is_up, limits};
use super::http_server::HttpServer;
use super::odd_servers::{echoes, http_harness, replies};
use super::{HOUR_MS, PATIENCE, soon, text};
use serde_json::{Value, json};
use std::time::Duration;
use throughline_engine::ToolAnswer;
use throughline_tools::QuestionHandler;
use throughline_tools::mcp::{McpLimits, McpServer, PinStore, ProtocolEra};
use throughline_wire::CallOutcome;

/// Messages that take as much time as a list with its consequences, or a connection.
const MESSAGES_PER_LIST: u64 = 3;
/// Messages that take as much time as the start of a program.
const MESSAGES_PER_START: u64 = 10;
const HANDSHAKES: [(&str, ProtocolEra); 2] =
    [("initialize", ProtocolEra::V2025_11_25), ("server/discover", ProtocolEra::Auto)];

/// Limits without retries during a test.
fn once() -> McpLimits {
    let hour = Duration::from_millis(HOUR_MS);
    McpLimits { restart_after: hour, restart_after_max: hour, ..limits() }
}

fn patient(settings: McpServer) -> McpServer {
    McpServer { start_timeout_ms: HOUR_MS, timeout_ms: HOUR_MS, total_timeout_ms: HOUR_MS, ..settings }
}

/// Checks that the server `odd` is usable, or is one fault with a remedy, and that the other one is
/// unaffected.
async fn is_usable_or_one_fault(harness: &McpHarness, settings: McpServer, report: &str) {
    harness.add("odd", patient(settings), PinStore::in_memory(), once());
    harness.until(|toolbox| has(toolbox, "odd.echo") || !toolbox.faults().is_empty()).await;
    let faults = harness.toolbox.faults();
    if has(&harness.toolbox, "odd.echo") {
        let (call, _) = harness.prepared_at("odd", "echo", json!({"text": "odd as it is"}));
        assert_eq!(text(&soon(harness.running(call)).await), "odd as it is", "{report}");
        assert_eq!(faults, [], "{report}");
    } else {
        let [fault] = &faults[..] else { panic!("{report}: {faults:?}") };
        assert!(fault.source == "mcp:odd" && fault.remedy.is_some(), "{report}: {fault:?}");
        let message = &fault.message;
        assert!(!message.contains("panicked") && !message.contains("Result("), "{report}: {fault:?}");
        assert!(message.len() < 1_500, "{report}: a fault of {} bytes", message.len());
    }
    echoes(harness, report).await;
    soon(harness.toolbox.remove("mcp:odd")).await;
}

#[tokio::test]
async fn malformed_stdio_handshake_affects_only_its_server() {
    let harness = McpHarness::start(fake_server(&[])).await;
    harness.until(is_up).await;
    let seeds = replies() / MESSAGES_PER_START;
    for seed in 0..seeds {
        let (_, era) = HANDSHAKES[(seed % 2) as usize];
        let order = ["ODD_INITIALIZE", "ODD_DISCOVER"][(seed % 2) as usize];
        let settings = McpServer { era, ..fake_server(&[(order, &seed.to_string())]) };
        is_usable_or_one_fault(&harness, settings, &format!("seed {seed}")).await;
    }
    assert!(harness.starts() as u64 <= 1 + 2 * seeds, "one was started again and again");
    harness.stop().await;
}

#[tokio::test]
async fn malformed_http_handshake_affects_only_its_server() {
    let beside = HttpServer::start().await;
    let harness = http_harness(&beside, HOUR_MS).await;
    for seed in 0..replies() / MESSAGES_PER_LIST {
        let server = HttpServer::start().await;
        let (method, era) = HANDSHAKES[(seed % 2) as usize];
        server.state().odd_handshake = Some((method, seed));
        let url = Some(server.state().url.clone());
        let settings = McpServer { url, era, ..McpServer::default() };
        is_usable_or_one_fault(&harness, settings, &format!("seed {seed}")).await;
        assert!(server.state().sessions <= 2, "seed {seed}: it was initialized again and again");
    }
    harness.stop().await;
}

/// Checks that a call during which the server sends this message gets its own answer. Every second time a
/// person can be asked.
async fn gets_its_answer(harness: &McpHarness, message: &AnyMessage, line: &str) {
    let arguments = json!({"line": line, "await": message.answered_under});
    let (mut call, _) = harness.prepared("talk", arguments);
    if message.seed.is_multiple_of(2) {
        call.question_handler = QuestionHandler::new(|_| {
            std::future::ready(ToolAnswer::Accept { content: Some(json!({"color": "red"})) })
        });
    }
    let report = || format!("seed {}: {line:.2000}", message.seed);
    let answered = tokio::time::timeout(PATIENCE, harness.running(call)).await;
    let outcome = answered.unwrap_or_else(|_| panic!("the call or its request has no answer, {}", report()));
    assert!(
        matches!(&outcome, CallOutcome::Done(output) if output.text == "afterwards"),
        "{outcome:?}, {}",
        report()
    );
}

#[tokio::test]
async fn any_stdio_message_disturbs_no_call_and_requests_get_answers() {
    let harness = McpHarness::start(patient(fake_server(&[]))).await;
    harness.until(is_up).await;
    for seed in 0..replies() {
        let message = any_message(seed);
        gets_its_answer(&harness, &message, &message.line).await;
    }
    echoes(&harness, "all messages").await;
    assert_eq!(harness.starts(), 1, "it was started again");
    harness.stop().await;
}

#[tokio::test]
async fn any_http_message_disturbs_no_call_and_requests_get_answers() {
    let server = HttpServer::start().await;
    let harness = http_harness(&server, HOUR_MS).await;
    for seed in 0..replies() {
        let message = any_message(seed);
        // Events are UTF-8, or their stream is broken.
        let line = message.line.replace("@BYTE@", "@SURROGATE@");
        gets_its_answer(&harness, &message, &line).await;
        let answered = tokio::time::timeout(PATIENCE, server.until(|state| state.awaited.is_none())).await;
        assert!(answered.is_ok(), "a request has no answer, seed {seed}: {line:.2000}");
    }
    echoes(&harness, "all messages").await;
    assert_eq!(server.state().sessions, 1, "the connection was made again");
    harness.stop().await;
}

#[tokio::test]
async fn malformed_stdio_list_page_affects_only_that_list() {
    let limits = McpLimits { list_debounce: Duration::ZERO, ..limits() };
    let settings = patient(fake_server(&[]));
    let harness = McpHarness::limited("fake", settings, PinStore::in_memory(), limits).await;
    harness.until(is_up).await;
    for seed in 0..replies() / MESSAGES_PER_LIST {
        let order: Value = json!({"seed": seed, "page": seed % 2});
        assert_eq!(text(&harness.call("relist", order).await), "changed", "seed {seed}");
        // A sound list comes after the odd one.
        let mark = format!("fake.list_{seed}");
        harness
            .until(|toolbox| has(toolbox, &mark) && has(toolbox, "fake.relist") && has(toolbox, "fake.echo"))
            .await;
        echoes(&harness, &mark).await;
    }
    assert_eq!(harness.starts(), 1, "it was started again");
    harness.stop().await;
}
