//! Lines that break after something was sent, in every source: real servers on loopback and real programs that read a
//! request whole, count that it ran, and leave.
//!
//! A tool with effects ends `unknown` with the reason, one without is a failure; and nothing is ever sent twice.
#![cfg(all(feature = "mcp", target_os = "linux"))]

use crate::mcp::harness::{McpHarness, fake_server, is_up};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use throughline_tools::command::{CommandSource, CommandTool};
use throughline_tools::http_tool::{HttpTool, HttpToolSource};
use throughline_tools::mcp::{McpServer, ProtocolEra};
use throughline_tools::process::{ExecHelper, SpawnContext};
use throughline_tools::vcp_plugin::{VcpPluginSource, VcpPlugins};
use throughline_tools::{ToolExecutor, ToolInvocation, ToolSource, Toolbox};
use throughline_wire::{CallArguments, CallOutcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

const SECRET: &str = "tl-canary-0123456789";

/// A server that reads each request to its end, answers with these bytes and hangs up.
struct Server {
    address: String,
    closed: CancellationToken,
}

impl Server {
    async fn start(answer: impl Fn(&str, &Value) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server =
            Self { address: listener.local_addr().unwrap().to_string(), closed: CancellationToken::new() };
        let closed = server.closed.clone();
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = closed.cancelled() => break,
                };
                let Ok((mut stream, _)) = accepted else { break };
                let Some((head, body)) = read_request(&mut stream).await else { continue };
                let _ = stream.write_all(answer(&head, &body).as_bytes()).await;
                let _ = stream.shutdown().await;
            }
            drop(listener);
            closed.cancel();
        });
        server
    }

    /// Stops listening: connections are refused.
    async fn stop(&self) {
        self.closed.cancel();
        // The socket is closed when the task has let go of it.
        while TcpStream::connect(&self.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }
}

/// Head in small letters, and the body as JSON.
async fn read_request(stream: &mut TcpStream) -> Option<(String, Value)> {
    let (mut read, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some((head, serde_json::from_str(body).unwrap_or_default()));
            }
        }
        match stream.read(&mut piece).await.ok()? {
            0 => return None,
            count => read.extend_from_slice(&piece[..count]),
        }
    }
}

/// Asserts that a call of a tool with effects ended unknown, or one without failed, with the reason.
fn check_lost(outcome: &CallOutcome, has_effects: bool, reason: &str) -> String {
    let (message, partial) = match (outcome, has_effects) {
        (CallOutcome::Unknown { message: Some(message), partial }, true)
        | (CallOutcome::Failed { message, partial }, false) => (message, partial),
        _ => panic!("effects: {has_effects}, expected {reason}, got {outcome:?}"),
    };
    assert!(message.contains(reason), "expected {reason}, got {message}");
    assert!(!format!("{outcome:?}").contains("canary"), "a secret is told: {outcome:?}");
    partial.as_ref().map_or_else(String::new, |partial| partial.text.clone())
}

/// Asserts it of both: the one with effects and the one without, which have sent the same.
fn check_both_lost([change, look]: &[CallOutcome; 2], reason: &str) -> String {
    let partial = check_lost(change, true, reason);
    assert_eq!(check_lost(look, false, reason), partial, "{reason}");
    partial
}

/// Asserts that a call failed by its own report, for any effect.
fn check_failed(outcome: &CallOutcome, reason: &str) {
    let CallOutcome::Failed { message, .. } = outcome else { panic!("expected {reason}, got {outcome:?}") };
    assert!(message.contains(reason), "expected {reason}, got {message}");
}

async fn loaded(source: impl ToolSource + 'static) -> Toolbox {
    let toolbox = Toolbox::new([]).unwrap();
    toolbox.add(Arc::new(source));
    assert_eq!(toolbox.wait_ready(Duration::from_secs(60)).await, Vec::<String>::new());
    assert_eq!(toolbox.faults(), []);
    toolbox
}

async fn call(toolbox: &Toolbox, tool: &str) -> CallOutcome {
    let call = ToolInvocation::new("call_1", tool, CallArguments::from_value(json!({})));
    ToolExecutor::default().run(&toolbox.registry(), call, |_| async {}).await
}

// --- HTTP tools ---

/// Two tools at one address: one that changes something and one that looks.
async fn endpoints(address: &str) -> Toolbox {
    let endpoint = |effect: &str| {
        json!({
            "description": "a test", "url": format!("http://{address}/pay"), "method": "POST", "body": "arguments",
            "headers": {"authorization": "Bearer $API_KEY"}, "private_hosts": [address], "effect": effect,
        })
    };
    let tools = json!({"web.change": endpoint("write"), "web.look": endpoint("read")});
    let tools: BTreeMap<String, HttpTool> = serde_json::from_value(tools).unwrap();
    let environment = BTreeMap::from([("API_KEY".to_owned(), SECRET.to_owned())]);
    loaded(HttpToolSource::new(tools, SpawnContext { environment, ..SpawnContext::default() })).await
}

/// Calls both tools on a server with this answer: the one with effects, then the other. Each is sent once.
async fn ask_endpoints(answer: &'static str) -> [CallOutcome; 2] {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let server = Server::start(move |head, _| {
        if head.starts_with("get /result ") {
            return "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned();
        }
        assert!(head.starts_with("post /pay "), "{head}");
        counted.fetch_add(1, Ordering::SeqCst);
        answer.to_owned()
    })
    .await;
    let toolbox = endpoints(&server.address).await;
    let outcomes = [call(&toolbox, "web.change").await, call(&toolbox, "web.look").await];
    assert_eq!(ran.load(Ordering::SeqCst), 2, "{answer}");
    outcomes
}

#[tokio::test]
async fn interrupted_http_tool_call_is_lost() {
    for (answer, reason, partial) in [
        ("", "may have received the request and gave no answer", ""),
        ("HTTP/1.1 200 OK\r\ncontent-type: text/pl", "may have received the request and gave no answer", ""),
        ("this is not HTTP\r\n\r\n", "may have received the request and gave no answer", ""),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nhalf of it",
            "ended early",
            "half of it",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\na\r\nhalf of it\r\n",
            "ended early",
            "half of it",
        ),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 100\r\n\r\nno su", "ended early", "no su"),
        ("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n", "answered HTTP 502 Bad Gateway", ""),
        (
            "HTTP/1.1 504 Gateway Timeout\r\nconnection: close\r\n\r\nBearer tl-canary-0123456789",
            "answered HTTP 504 Gateway Timeout: ",
            "",
        ),
        // After these the request may have had its effects, and only the way to the page about them is closed.
        (
            "HTTP/1.1 303 See Other\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            "was not requested",
            "",
        ),
        (
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
            "redirects a POST request",
            "",
        ),
        (
            "HTTP/1.1 303 See Other\r\nlocation: /result\r\ncontent-length: 0\r\n\r\n",
            "/result answered HTTP 404",
            "",
        ),
    ] {
        assert_eq!(check_both_lost(&ask_endpoints(answer).await, reason), partial, "{answer}");
    }
}

#[tokio::test]
async fn http_tool_error_answer_is_a_failure() {
    for (answer, reason) in [
        ("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", "answered HTTP 400"),
        ("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n", "answered HTTP 429"),
        ("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n", "answered HTTP 500"),
        ("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n", "answered HTTP 503"),
        (
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n",
            "redirects a POST request",
        ),
    ] {
        for outcome in ask_endpoints(answer).await {
            check_failed(&outcome, reason);
        }
    }
}

#[tokio::test]
async fn unreachable_http_tool_endpoint_is_a_failure() {
    let server = Server::start(|_, _| panic!("asked")).await;
    server.stop().await;
    let toolbox = endpoints(&server.address).await;
    for tool in ["web.change", "web.look"] {
        let reason = format!("nothing was sent to http://{}/pay: cannot connect", server.address);
        check_failed(&call(&toolbox, tool).await, &reason);
    }
}

// --- MCP over HTTP ---

fn http(status: &str, more: &str, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{more}connection: close\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

fn result(message: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()
}

/// An MCP server with two tools, of which one changes something and one looks; `answer` gets the number of the call.
async fn mcp_server(
    session: &'static str,
    answer: impl Fn(usize, &Value) -> String + Send + 'static,
) -> (Server, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let server = Server::start(move |_, message| match message["method"].as_str() {
        Some("initialize") => {
            let about = json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            });
            http("200 OK", session, "application/json", &result(message, &about))
        }
        Some("tools/list") => {
            let tools = json!({"tools": [
                {"name": "change", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true}},
                {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}},
            ]});
            http("200 OK", "", "application/json", &result(message, &tools))
        }
        Some("tools/call") => answer(counted.fetch_add(1, Ordering::SeqCst), message),
        Some(_) => http("202 Accepted", "", "text/plain", ""),
        None => http("405 Method Not Allowed", "", "text/plain", ""),
    })
    .await;
    (server, calls)
}

async fn mcp_client(server: &Server) -> McpHarness {
    let harness = McpHarness::start(McpServer {
        url: Some(format!("http://{}/mcp", server.address)),
        headers: BTreeMap::from([("Authorization".to_owned(), "$OF_OURS".to_owned())]),
        era: ProtocolEra::V2025_11_25,
        trusted: true,
        ..McpServer::default()
    })
    .await;
    harness.until(|toolbox| toolbox.registry().get(&"fake.look".into()).is_some()).await;
    harness
}

/// The call that has effects, then the other; each is sent once.
async fn ask_mcp(answer: impl Fn(&Value) -> String + Send + 'static) -> [CallOutcome; 2] {
    let (server, calls) = mcp_server("", move |_, message| answer(message)).await;
    let harness = mcp_client(&server).await;
    let outcomes = [harness.call("change", json!({})).await, harness.call("look", json!({})).await];
    assert_eq!(calls.load(Ordering::SeqCst), 2, "{outcomes:?}");
    harness.stop().await;
    outcomes
}

#[tokio::test]
async fn interrupted_mcp_http_call_is_lost() {
    const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let table = [
        (String::new(), "failed before it replied"),
        ("HTTP/1.1 200 OK\r\ncontent-ty".to_owned(), "failed before it replied"),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"jsonrpc\":"
                .to_owned(),
            "failed before it replied",
        ),
        (http("200 OK", "", "application/json", "{\"jsonrpc\":"), "its reply is no JSON: the text ends"),
        (
            http("200 OK", "", "application/json", "{\"jsonrpc\": of ours alone"),
            "its reply is no JSON: not a JSON value at byte 12",
        ),
        (http("200 OK", "", "text/html", "<p>Done</p>"), "its answer is `text/html`"),
        (http("502 Bad Gateway", "", "text/html", "of ours alone"), "HTTP 502"),
        (http("504 Gateway Timeout", "", "text/html", ""), "HTTP 504"),
        (http("303 See Other", "location: /mcp\r\n", "text/plain", ""), "HTTP 303"),
        (SSE.to_owned(), "closed before it replied"),
        (format!("{SSE}data: {{\"jsonrpc\":"), "closed before it replied"),
        // The rest of the stream is requested, and not available.
        (format!("{SSE}id: 1\nretry: 1\ndata: \n\n"), "closed before it replied"),
    ];
    for (answer, reason) in table {
        let given = answer.clone();
        let outcomes = ask_mcp(move |_| given.clone()).await;
        check_both_lost(&outcomes, reason);
        assert!(!format!("{outcomes:?}").contains("of ours alone"), "{answer}");
    }
}

#[tokio::test]
async fn refused_mcp_http_call_is_a_failure() {
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "503 Service Unavailable",
    ] {
        for outcome in ask_mcp(move |_| http(status, "", "text/plain", "no")).await {
            check_failed(&outcome, &format!("gave no result: {}", status_error(status)));
        }
    }
    let refusal = |message: &Value| {
        let error = json!({"code": -32602, "message": "no such account"});
        let reply = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
        http("200 OK", "", "application/json", &reply.to_string())
    };
    for outcome in ask_mcp(refusal).await {
        check_failed(&outcome, "refused the call (code -32602): no such account");
    }
}

/// The SDK's own word for a status.
fn status_error(status: &str) -> String {
    match status.split_once(' ') {
        Some((number @ ("429" | "500" | "503"), _)) => format!("HTTP {number}"),
        _ => format!("unexpected server response: HTTP {status}: no"),
    }
}

#[tokio::test]
async fn unreachable_mcp_server_is_a_failure() {
    let (server, calls) = mcp_server("", |_, _| panic!("called")).await;
    let harness = mcp_client(&server).await;
    server.stop().await;
    check_failed(&harness.call("change", json!({})).await, "nothing was sent to the MCP server `fake`: ");
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    harness.stop().await;
}

// After a 404 the SDK begins a new session and sends the call again, which was refused; after anything else it must not.
#[tokio::test]
async fn mcp_call_is_resent_only_once_after_session_loss() {
    for (second, is_done) in [("done", true), ("", false)] {
        let (server, calls) = mcp_server("mcp-session-id: one\r\n", move |number, message| match number {
            0 => http("404 Not Found", "", "text/plain", ""),
            1 if is_done => {
                let content = json!({"content": [{"type": "text", "text": second}]});
                http("200 OK", "", "application/json", &result(message, &content))
            }
            1 => String::new(),
            _ => panic!("sent {number} times"),
        })
        .await;
        let harness = mcp_client(&server).await;
        let outcome = harness.call("change", json!({})).await;
        if is_done {
            let CallOutcome::Done(output) = outcome else { panic!("{outcome:?}") };
            assert_eq!(output.text, "done");
        } else {
            check_lost(&outcome, true, "failed before it replied");
        }
        assert_eq!(calls.load(Ordering::SeqCst), 2);
        harness.stop().await;
    }
}

// --- MCP over pipes ---

#[tokio::test]
async fn mcp_program_exit_during_a_call_makes_it_lost() {
    let harness = McpHarness::start(McpServer { trusted: true, ..fake_server(&[]) }).await;
    for (tool, has_effects) in [("die_writing", true), ("die_reading", false)] {
        harness.until(is_up).await;
        let outcome = harness.call(tool, json!({})).await;
        check_lost(&outcome, has_effects, "the connection to the MCP server `fake` closed before it replied");
        harness.logged_times(&format!("called: {tool}"), 1).await;
    }
    harness.stop().await;
}

// --- commands and VCP plugins ---

/// Way to run a script: a command with this output, or a plugin of this type.
#[derive(Clone, Copy, Debug)]
enum ScriptProgram {
    Command(&'static str),
    Plugin(&'static str),
}

/// The script as a program with effects, then as one without.
async fn run_script(program: ScriptProgram, script: &str) -> [CallOutcome; 2] {
    match program {
        ScriptProgram::Command(output) => run_command(output, script).await,
        ScriptProgram::Plugin(kind) => run_plugin(kind, script).await,
    }
}

fn programs() -> SpawnContext {
    let mut here = SpawnContext::of_this_process();
    here.environment.insert("BROKEN_LINES_KEY".into(), SECRET.into());
    here.with_helper(ExecHelper::new(env!("CARGO_BIN_EXE_throughline-exec"), []))
}

async fn run_command(output: &str, script: &str) -> [CallOutcome; 2] {
    let command = |effect: &str| {
        json!({
            "description": "a test", "argv": ["sh", "-c", script], "parameters": {"type": "object"},
            "env": {"KEY": "$BROKEN_LINES_KEY"}, "output": output, "effect": effect,
        })
    };
    let commands = json!({"sh.change": command("write"), "sh.look": command("read")});
    let commands: BTreeMap<String, CommandTool> = serde_json::from_value(commands).unwrap();
    let toolbox = loaded(CommandSource::new(commands, programs())).await;
    [call(&toolbox, "sh.change").await, call(&toolbox, "sh.look").await]
}

async fn run_plugin(kind: &str, script: &str) -> [CallOutcome; 2] {
    let folder = tempfile::tempdir().unwrap();
    for name in ["Change", "Look"] {
        let plugin = folder.path().join(name);
        std::fs::create_dir(&plugin).unwrap();
        std::fs::write(plugin.join("run.sh"), script).unwrap();
        let manifest = json!({
            "name": name, "displayName": name, "version": "1.0.0", "description": "a test", "pluginType": kind,
            "entryPoint": {"command": "sh run.sh"}, "communication": {"protocol": "stdio", "timeout": 60_000},
            "capabilities": {"invocationCommands": [
                {"commandIdentifier": "Now", "description": format!("tool_name:「始」{name}「末」")},
            ]},
        });
        std::fs::write(plugin.join("plugin-manifest.json"), manifest.to_string()).unwrap();
    }
    let settings: VcpPlugins = serde_json::from_value(json!({
        "folders": [folder.path()], "results": folder.path().join("results"),
        "effects": {"Change": "write", "Look": "read"},
    }))
    .unwrap();
    let toolbox = loaded(VcpPluginSource::new(settings, programs())).await;
    [call(&toolbox, "Change.Now").await, call(&toolbox, "Look.Now").await]
}

#[tokio::test]
async fn program_killed_by_signal_or_limit_makes_its_call_lost() {
    use ScriptProgram::{Command, Plugin};
    for (program, script, reason, partial) in [
        (Command("text"), "echo half $KEY; kill -KILL $$", "sh was killed by signal 9 (SIGKILL)", "half …\n"),
        (
            Command("text"),
            "echo half; echo why $KEY >&2; kill -TERM $$",
            "sh was killed by signal 15 (SIGTERM): why …",
            "half\n",
        ),
        (
            Command("json"),
            "echo '{\"half'; kill -SEGV $$",
            "sh was killed by signal 11 (SIGSEGV)",
            "{\"half\n",
        ),
        (Plugin("synchronous"), "echo half; kill -KILL $$", "sh was killed by signal 9 (SIGKILL)", "half\n"),
        (Plugin("synchronous"), "kill -TERM $$", "sh was killed by signal 15 (SIGTERM)", ""),
        (
            Plugin("asynchronous"),
            "echo half; echo why >&2; kill -KILL $$",
            "it was killed by signal 9: its answer is not JSON",
            "",
        ),
        (Plugin("asynchronous"), "kill -TERM $$", "it was killed by signal 15: it answered nothing", ""),
    ] {
        let outcomes = run_script(program, script).await;
        assert_eq!(check_both_lost(&outcomes, reason), partial, "{program:?} {script}");
    }
    for (program, reason, beginning) in [
        (Command("json"), "it wrote more than 16777216 bytes of JSON, and was stopped", "[[[["),
        (Plugin("synchronous"), "and was stopped", ""),
    ] {
        let outcomes = run_script(program, "yes '[[[['").await;
        assert!(check_both_lost(&outcomes, reason).starts_with(beginning), "{program:?}");
    }
}

#[tokio::test]
async fn program_exit_code_or_invalid_output_is_a_failure() {
    use ScriptProgram::{Command, Plugin};
    for (program, script, reason) in [
        (Command("text"), "echo no >&2; exit 3", "sh exited with code 3: no"),
        (Command("json"), "echo oops; exit 1", "sh exited with code 1"),
        (Command("json"), "echo oops", "its output is not JSON"),
        (Plugin("synchronous"), "echo no >&2; exit 4", "sh exited with code 4: no"),
        (Plugin("synchronous"), "echo oops", "its answer is not JSON"),
        (
            Plugin("synchronous"),
            "echo '{\"status\":\"error\",\"error\":\"no paper\"}'; kill -KILL $$",
            "no paper",
        ),
        (Plugin("asynchronous"), "exit 4", "it answered nothing"),
        (Plugin("asynchronous"), "echo oops", "its answer is not JSON"),
    ] {
        for outcome in run_script(program, script).await {
            check_failed(&outcome, reason);
        }
    }
}
