//! One odd thing from a server costs that thing alone.

use super::any_reply::{AnyReply, ReplyKind, any_reply};
use super::harness::{McpHarness, fake_server, has, is_up, pass};
use super::http_server::{HttpList, HttpServer};
use super::{HOUR_MS, messages, soon, text};
use serde_json::{Value, json};
use std::time::Duration;
use throughline_tools::mcp::{McpLimits, McpServer, PinStore, ProtocolEra};
use throughline_wire::CallOutcome;

/// Replies in a normal run. `cargo xtask verify --only mcp` sends more.
const REPLIES: u64 = 300;

pub(super) fn replies() -> u64 {
    let count = std::env::var("THROUGHLINE_MCP_REPLIES").ok();
    count.map_or(REPLIES, |count| count.parse().expect("THROUGHLINE_MCP_REPLIES is a number"))
}

pub(super) async fn http_harness(server: &HttpServer, timeout_ms: u64) -> McpHarness {
    let url = Some(server.state().url.clone());
    let total_timeout_ms = 2 * timeout_ms;
    let era = ProtocolEra::V2025_11_25;
    let settings = McpServer { url, timeout_ms, total_timeout_ms, era, ..McpServer::default() };
    let limits = McpLimits { list_debounce: Duration::ZERO, ..super::harness::limits() };
    let harness = McpHarness::limited("fake", settings, PinStore::in_memory(), limits).await;
    harness.until(|toolbox| has(toolbox, "fake.echo")).await;
    harness
}

pub(super) async fn echoes(harness: &McpHarness, after: &str) {
    let outcome = harness.call("echo", json!({"text": "still there"})).await;
    assert!(
        matches!(&outcome, CallOutcome::Done(output) if output.text == "still there"),
        "{after}: {outcome:?}"
    );
}

/// A call that gets `reply` has ended, and not because its time was up; the next call gets its answer.
async fn costs_itself_alone(harness: &McpHarness, reply: &AnyReply, arguments: Value) -> CallOutcome {
    let AnyReply { seed, line, .. } = reply;
    let outcome = harness.call("raw", arguments).await;
    let is_silent = matches!(outcome, CallOutcome::TimedOut { .. });
    let report = format!("{outcome:?}");
    assert!(!is_silent && !report.contains("panicked"), "seed {seed}: {report:.300}\n{line:.2000}");
    echoes(harness, line).await;
    outcome
}

#[tokio::test]
async fn malformed_stdio_reply_affects_only_its_call() {
    let harness = McpHarness::start(fake_server(&[])).await;
    harness.until(is_up).await;
    for seed in 0..replies() {
        let reply = any_reply(seed, ReplyKind::Call);
        // An invalid reply is ignored, and the one after it counts.
        let outcome = costs_itself_alone(&harness, &reply, json!({"line": reply.line, "then": true})).await;
        let is_ignored = matches!(&outcome, CallOutcome::Done(output) if output.text == "afterwards");
        assert!(!(reply.names_its_call && is_ignored), "seed {seed} is ignored: {:.2000}", reply.line);
    }
    assert_eq!(harness.starts(), 1, "it was started again");
    harness.stop().await;
}

#[tokio::test]
async fn malformed_http_reply_affects_only_its_call() {
    let server = HttpServer::start().await;
    let harness = http_harness(&server, 50_000).await;
    for seed in 0..replies() {
        let reply = any_reply(seed, ReplyKind::Call);
        let kind = ["json", "events", "text"][(seed % 3) as usize];
        costs_itself_alone(&harness, &reply, json!({"line": reply.line, "kind": kind})).await;
    }
    assert_eq!(server.state().sessions, 1, "the connection was made again");
    harness.stop().await;
}

#[tokio::test]
async fn malformed_http_list_page_affects_only_itself() {
    let server = HttpServer::start().await;
    let harness = http_harness(&server, 50_000).await;
    for seed in 0..replies() {
        let before = {
            let mut state = server.state();
            state.list = HttpList::AnySecondPage(seed);
            state.pages
        };
        // Its status is a reason to ask for the list.
        harness.call("refuse", json!({})).await;
        soon(server.until(|state| state.pages >= before + 2)).await;
        echoes(&harness, &any_reply(seed, ReplyKind::List).line).await;
    }
    assert_eq!(server.state().sessions, 1, "the connection was made again");
    for tool in ["echo", "hang", "refuse", "raw"] {
        assert!(has(&harness.toolbox, &format!("fake.{tool}")), "{tool} is lost");
    }
    harness.stop().await;
}

#[tokio::test]
async fn invalid_handshake_result_is_a_bounded_fault() {
    let long = "x".repeat(100_000);
    for (result, expected) in [
        (json!(7), "names no revision of the protocol: 7; retrying"),
        (
            json!({"protocolVersion": null}),
            "names no revision of the protocol: {\"protocolVersion\":null}; retrying",
        ),
        (json!(long), "names no revision of the protocol: \"xxx"),
    ] {
        let (url, _requests) = super::harness::json_rpc(move |_| Some(result.clone())).await;
        let era = ProtocolEra::V2025_11_25;
        let settings = McpServer { url: Some(url), era, ..McpServer::default() };
        let harness = McpHarness::start(settings).await;
        harness.until(|toolbox| !toolbox.faults().is_empty()).await;
        let message = messages(&harness.toolbox.faults()).remove(0);
        assert!(message.contains(expected) && message.len() < 500, "{message:.1000}");
        harness.stop().await;
    }
}

/// Over HTTP; the older handshake alone, and after the probe, which gets the same answer.
#[tokio::test]
async fn refused_or_missing_handshake_fault_shows_the_reply() {
    let refusal = |message: &str, data: Value| {
        let error = json!({"code": -32_602, "message": message, "data": data});
        json!({"jsonrpc": "2.0", "error": error})
    };
    let key = "sk-handshake-0123456789";
    let revisions = json!({"supported": ["2024-11-05"]});
    for (reply, expected, remedy) in [
        (
            refusal("Unsupported protocol version", revisions),
            r#"refuses the handshake: Unsupported protocol version (code -32602): {"supported":["2024-11-05"]}; retrying"#,
            "update the server",
        ),
        (
            refusal("No", Value::Null),
            "refuses the handshake: No (code -32602); retrying",
            "Check that it is an MCP server",
        ),
        (
            refusal("No", json!("\u{202e}so".repeat(100))),
            r#"(code -32602): "\u202eso\u202eso"#,
            "Check that it is an MCP server",
        ),
        // The message is long, too, and a secret is where it is cut.
        (
            refusal(&format!("{}{key}", "x".repeat(260)), json!(format!("{}{key}", "y".repeat(190)))),
            "(code",
            "",
        ),
        (
            json!({"jsonrpc": "2.0", "method": "notifications/odd"}),
            r#"its answer holds no reply to the request: {"jsonrpc":"2.0","method":"notifications/odd"}; retrying"#,
            "Check that it is an MCP server",
        ),
    ] {
        for era in [ProtocolEra::V2025_11_25, ProtocolEra::Auto] {
            let reply = reply.clone();
            let (url, _requests) = super::harness::listener(move |body| {
                let request: Value = serde_json::from_str(body).unwrap_or_default();
                let mut reply = reply.clone();
                if reply["method"].is_null() {
                    reply["id"] = request["id"].clone();
                }
                super::harness::http_json(&reply)
            })
            .await;
            let headers = [("X-Key".to_owned(), key.to_owned())].into();
            let settings = McpServer { url: Some(url), headers, era, ..McpServer::default() };
            let harness = McpHarness::start(settings).await;
            harness.until(|toolbox| !toolbox.faults().is_empty()).await;
            let fault = harness.toolbox.faults().remove(0);
            let message = &fault.message;
            assert!(message.contains(expected) && message.len() < 800, "{era:?}: {message}");
            assert!(!message.contains("sk-"), "{era:?}: half a key: {message}");
            assert!(fault.remedy.as_ref().is_some_and(|known| known.contains(remedy)), "{era:?}: {fault:?}");
            harness.stop().await;
        }
    }
}

#[tokio::test]
async fn html_or_redirect_as_handshake_is_a_named_fault() {
    let page = "content-type: text/html\r\ncontent-length: 6\r\n\r\n<html>".to_owned();
    let far = format!("location: https://example.org/{}\r\ncontent-length: 0\r\n\r\n", "long/".repeat(100));
    for (status, rest, expected) in [
        ("200 OK", page, "its answer is `text/html`, and neither JSON nor events; retrying"),
        ("307 Temporary Redirect", far, "it redirects to another origin, https://example.org; retrying"),
    ] {
        let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{rest}");
        let (url, _requests) = super::harness::listener(move |_| answer.clone()).await;
        let harness = McpHarness::start(McpServer { url: Some(url), ..McpServer::default() }).await;
        harness.until(|toolbox| !toolbox.faults().is_empty()).await;
        let message = messages(&harness.toolbox.faults()).remove(0);
        assert!(message.contains(expected), "{message}");
        harness.stop().await;
    }
}

#[tokio::test]
async fn malformed_definition_is_one_fault_and_other_tools_work() {
    let odd = json!([
        {"name": "no_schema"},
        {"name": "null_schema", "inputSchema": null},
        {"name": "number", "inputSchema": 7},
        {"description": "no name", "inputSchema": {"type": "object"}},
        {"name": "hints", "inputSchema": {"type": "object", "properties": null}, "outputSchema": null,
         "annotations": {"readOnlyHint": "yes"}, "icons": "demo://i", "description": 7},
        "none at all",
    ]);
    let faults =
        ["its `inputSchema` is a number, and no schema", "has no name", "is a text, and no definition"];
    let program = McpHarness::start(fake_server(&[("ODD_TOOLS", &odd.to_string())])).await;
    let server = HttpServer::start().await;
    server.state().list = HttpList::With(odd);
    let remote = http_harness(&server, 50_000).await;
    for harness in [program, remote] {
        harness.until(|toolbox| has(toolbox, "fake.hints") && toolbox.faults().len() == faults.len()).await;
        let found = messages(&harness.toolbox.faults());
        for fault in faults {
            assert!(found.iter().any(|found| found.contains(fault)), "{fault}: {found:?}");
        }
        let number = harness.toolbox.faults().into_iter().find_map(|fault| fault.tool);
        assert_eq!(number, Some("fake.number".into()));
        for tool in ["no_schema", "null_schema", "hints", "echo"] {
            assert!(has(&harness.toolbox, &format!("fake.{tool}")), "{tool}");
        }
        echoes(&harness, "odd definitions").await;
        harness.stop().await;
    }
}

#[tokio::test]
async fn repeated_cursor_ends_the_tool_list() {
    let server = HttpServer::start().await;
    server.state().list = HttpList::SameCursor;
    let harness = http_harness(&server, 50_000).await;
    harness.until(|toolbox| !toolbox.faults().is_empty()).await;
    let faults = messages(&harness.toolbox.faults());
    assert_eq!(faults, ["its list of tools repeats a cursor; reading stopped there"]);
    assert_eq!(server.state().pages, 2);
    echoes(&harness, "the same cursor").await;
    harness.stop().await;
}

#[tokio::test]
async fn refused_list_update_leaves_known_tools() {
    let server = HttpServer::start().await;
    let harness = http_harness(&server, 50_000).await;
    server.state().list = HttpList::Refused;
    harness.call("refuse", json!({})).await;
    harness.until(|toolbox| !toolbox.faults().is_empty()).await;
    let fault = messages(&harness.toolbox.faults()).remove(0);
    assert!(fault.contains("listing its tools failed: not today"), "{fault}");
    echoes(&harness, "a refused list").await;
    server.state().list = HttpList::Sound;
    harness.until(|toolbox| toolbox.faults().is_empty()).await;
    assert_eq!(server.state().sessions, 1);
    harness.stop().await;
}

#[tokio::test]
async fn invalid_json_reply_is_repaired_or_ends_its_call_at_once() {
    let reply = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":@ID@,"result":{result}}}"#);
    let table = [
        (reply(r#"{"content":[{"type":"text","text":"caf@SURROGATE@.txt"}]}"#), Ok("caf\u{fffd}.txt")),
        (reply(r#"{"content":[{"type":"text","text":"caf@BYTE@.txt"}]}"#), Ok("caf\u{fffd}.txt")),
        (
            reply(r#"{"content":[{"type":"text","text":"mean"}],"structuredContent":{"mean":"@NAN@"}}"#),
            Ok("mean\n{\"mean\":null}"),
        ),
        (reply(r#"{"content":["@BARE@"]}"#), Err(": its reply is no JSON: not a JSON value at byte ")),
        (
            r#"{"jsonrpc":"2.0","id":@ID@,"result":{"content":["#.to_owned(),
            Err(": its reply is no JSON: the text ends where a value is expected at byte "),
        ),
    ];
    let program = McpHarness::start(McpServer {
        timeout_ms: HOUR_MS,
        total_timeout_ms: 2 * HOUR_MS,
        ..fake_server(&[])
    })
    .await;
    program.until(is_up).await;
    let server = HttpServer::start().await;
    let remote = http_harness(&server, HOUR_MS).await;
    for harness in [program, remote] {
        // Another call waits all the time.
        let (other, cancel) = harness.prepared("hang", json!({}));
        let other = tokio::spawn(harness.running(other));
        for (line, expected) in &table {
            for kind in ["json", "events"] {
                if kind == "events" && line.contains("@BYTE@") {
                    // Events are UTF-8, or their stream is broken.
                    continue;
                }
                let outcome = harness.call("raw", json!({"line": line, "kind": kind})).await;
                match (expected, &outcome) {
                    (Ok(expected), CallOutcome::Done(output)) => assert_eq!(output.text, *expected, "{line}"),
                    (Err(expected), CallOutcome::Unknown { message: Some(message), .. }) => {
                        assert!(
                            message.contains("MCP server `fake`") && message.contains(expected),
                            "{message}"
                        );
                    }
                    _ => panic!("{line}: {outcome:?}"),
                }
            }
        }
        assert!(!other.is_finished(), "another call ended");
        cancel.cancel();
        assert!(matches!(soon(other).await.unwrap(), CallOutcome::Cancelled(_)));
        echoes(&harness, "replies that are no JSON").await;
        harness.stop().await;
    }
}

#[tokio::test]
async fn invalid_http_answer_ends_its_call_at_once() {
    let server = HttpServer::start().await;
    let harness = http_harness(&server, HOUR_MS).await;
    for (kind, line, expected) in [
        ("json", "<html>", "its reply is no JSON"),
        ("json", "", "its reply is no JSON"),
        ("json", "{}", "its answer holds no reply to the request"),
        ("json", r#"{"id":"@ID@","result":{}}"#, "its answer holds no reply to the request"),
        ("text", "<html>", "its answer is `text/plain`, and neither JSON nor events"),
        ("events", "ping", "closed before it replied"),
    ] {
        let outcome = harness.call("raw", json!({"line": line, "kind": kind})).await;
        let report = format!("{outcome:?}");
        assert!(report.contains(expected), "{kind} {line}: {report}");
    }
    echoes(&harness, "answers that are none").await;
    assert_eq!(server.state().sessions, 1);
    harness.stop().await;
}

#[tokio::test]
async fn restarted_http_server_is_reinitialized() {
    let server = HttpServer::start().await;
    let harness = http_harness(&server, HOUR_MS).await;
    // Between calls: the next one is sent again in the new session, since the server has not acted on it.
    server.forget_session();
    echoes(&harness, "a restart between calls").await;
    assert_eq!(server.state().sessions, 2);
    assert_eq!(server.state().calls, ["echo"]);

    // During a call: the server has lost it, so it ends as soon as that is known, with an unknown outcome.
    let (call, _) = harness.prepared("hang", json!({}));
    let running = tokio::spawn(harness.running(call));
    soon(server.until(|state| state.calls.contains(&"hang".to_owned()))).await;
    server.forget_session();
    echoes(&harness, "a restart in a call").await;
    let outcome = soon(running).await.unwrap();
    let CallOutcome::Unknown { message: Some(message), .. } = &outcome else { panic!("{outcome:?}") };
    assert!(message.contains("failed before it replied"), "{message}");
    assert_eq!(server.state().sessions, 3);
    echoes(&harness, "two restarts").await;
    harness.stop().await;
}

#[tokio::test]
async fn cancelled_and_timed_out_calls_leave_the_server_usable() {
    let program = McpHarness::start(McpServer {
        timeout_ms: HOUR_MS,
        total_timeout_ms: 2 * HOUR_MS,
        ..fake_server(&[])
    })
    .await;
    program.until(is_up).await;
    let server = HttpServer::start().await;
    let url = Some(server.state().url.clone());
    let settings =
        McpServer { url, timeout_ms: HOUR_MS, total_timeout_ms: 2 * HOUR_MS, ..McpServer::default() };
    let remote = McpHarness::start(settings).await;
    remote.until(|toolbox| has(toolbox, "fake.echo")).await;
    for (harness, is_program) in [(program, true), (remote, false)] {
        let hangs = async |times: usize| {
            if is_program {
                harness.logged_times("called: hang", times).await;
            } else {
                soon(
                    server.until(|state| state.calls.iter().filter(|call| *call == "hang").count() == times),
                )
                .await;
            }
        };
        let (call, cancel) = harness.prepared("hang", json!({}));
        let cancelled = tokio::spawn(harness.running(call));
        hangs(1).await;
        cancel.cancel();
        assert!(matches!(soon(cancelled).await.unwrap(), CallOutcome::Cancelled(_)));
        echoes(&harness, "a cancelled call").await;

        let (call, _) = harness.prepared("hang", json!({}));
        let silent = tokio::spawn(harness.running(call));
        hangs(2).await;
        pass(Duration::from_millis(HOUR_MS)).await;
        let silent = soon(silent).await.unwrap();
        assert!(matches!(silent, CallOutcome::TimedOut { limit_ms: HOUR_MS, .. }), "{silent:?}");
        echoes(&harness, "a call whose time was up").await;
        harness.stop().await;
    }
}

#[tokio::test]
async fn structured_content_with_a_summary_reaches_the_model_once() {
    let harness = McpHarness::start(fake_server(&[])).await;
    harness.until(is_up).await;
    let orders = json!({"orders": [{"id": "ORD-7002"}]});
    for (content, expected) in [
        ("Found 1 order.".to_owned(), format!("Found 1 order.\n{orders}")),
        (orders.to_string(), orders.to_string()),
    ] {
        let result: Value =
            json!({"content": [{"type": "text", "text": content}], "structuredContent": orders});
        let line = format!(r#"{{"jsonrpc":"2.0","id":@ID@,"result":{result}}}"#);
        assert_eq!(text(&harness.call("raw", json!({"line": line})).await), expected);
    }
    harness.stop().await;
}
