//! Every secret that a server can be given, searched for in all of its output: answers, streams, exports,
//! output of commands, metrics, spans, logs, and the files of the store.

#![cfg(all(unix, feature = "otel"))]

use crate::collector::{Collector, Habit};
use crate::support::serving::{PATIENCE, Serving, command};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use throughline_testkit::{
    ErrorMove, FakeDialect, FakeModel, FakeUpstream, HttpAnswer, ModelScript, ParsedRequest, ScriptMove,
};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Every secret begins and ends with one of these, so that half of a secret is found, too.
const WORDS: [&str; 2] = ["canary", "fledgling"];

/// Environment of a server: keys, headers, and variables of tools and MCP servers.
const VARIABLES: [(&str, &str); 10] = [
    ("UPSTREAM_KEY", "canary/7+x=\"q\" fledgling"),
    ("GATEWAY", "Bearer canary-gateway-fledgling"),
    ("COMMAND_SECRET", "canary-command-fledgling"),
    ("LET_THROUGH_TOKEN", "canary-allowed-fledgling"),
    ("ENDPOINT_TOKEN", "canary+endpoint+fledgling"),
    ("ENDPOINT_QUERY", "canary&query=fledgling"),
    ("MCP_SECRET", "canary-program-fledgling"),
    ("MCP_HEADER", "Bearer canary-server-fledgling"),
    ("LATER_KEY", "canary-later-fledgling"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary-collector-fledgling,x-team=a"),
];
/// A secret in the configuration file itself.
const LITERAL: &str = "canary-literal-fledgling";

/// A key that is entered on the page.
const STORED: &str = "canary-stored-fledgling";
const REFUSED: &str = "canary-refused-fledgling";

/// The words as they are, and in base64 at each of three offsets.
fn forms() -> Vec<String> {
    let mut forms: Vec<String> = WORDS.map(str::to_owned).into();
    for word in WORDS {
        for before in 0..3 {
            let mut bytes = vec![0; before];
            bytes.extend_from_slice(word.as_bytes());
            let (first, last) = ((before * 8usize).div_ceil(6), bytes.len() * 8 / 6);
            forms.push(STANDARD_NO_PAD.encode(&bytes)[first..last].to_owned());
        }
    }
    forms
}

/// All secrets of the upstream, in the encodings in which keys travel.
fn repeated() -> String {
    let mut said = String::from("wrong key:");
    for (_, secret) in VARIABLES.iter().filter(|(name, _)| ["UPSTREAM_KEY", "GATEWAY"].contains(name)) {
        let basic = STANDARD_NO_PAD.encode(format!("user:{secret}"));
        said.push_str(&format!(" {secret} {} {basic}", json!(secret)));
        said.extend(url::form_urlencoded::byte_serialize(secret.as_bytes()));
    }
    said + " " + LITERAL + " " + VARIABLES[1].1.split_once(' ').unwrap().1
}

/// An upstream that repeats its request in every field of the response.
struct Telltale;

impl FakeModel for Telltale {
    fn reply(&self, seen: &ParsedRequest) -> ModelScript {
        let answer = |status: u16, header: &str, body: Value| {
            let headers = [(header.to_owned(), VARIABLES[1].1.to_owned())].into();
            ModelScript {
                http: Some(HttpAnswer { status, headers, body: Some(body) }),
                ..ModelScript::default()
            }
        };
        let later = VARIABLES[8].1;
        match seen.user_text() {
            "refuse" => {
                answer(401, "x-request-id", json!({"error": {"message": repeated(), "code": repeated()}}))
            }
            "redirect" => answer(302, "location", json!(repeated())),
            "garbage" => answer(500, "retry-after", json!([repeated(), "x".repeat(5_000), repeated()])),
            "later" => answer(403, "x-request-id", json!({"error": {"message": later, "type": later}})),
            "pasted" => answer(401, "x-request-id", json!({"error": {"message": STORED, "type": STORED}})),
            _ if seen.step() == 1 => ModelScript::new()
                .say("Let me look.")
                .call("commands_leak", json!({}))
                .call("commands_fail", json!({}))
                .call("http_tools_ask", json!({})),
            _ => {
                let error = ErrorMove { kind: Some(repeated()), code: Some(repeated()), message: repeated() };
                ModelScript::new().say("Then it broke.").then(ScriptMove::Error(error))
            }
        }
    }
}

/// Answers every request with a failure that repeats it.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut head, mut piece) = (Vec::new(), [0; 4_096]);
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut piece) {
                    Ok(read @ 1..) => head.extend_from_slice(&piece[..read]),
                    Ok(_) | Err(_) => break,
                }
            }
            let said = String::from_utf8_lossy(&head).into_owned();
            let answer = format!(
                "HTTP/1.1 500 Oh\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{said}",
                said.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

fn configuration(upstream: &str, echo: SocketAddr) -> String {
    format!(
        "[store]\nkeep_raw = \"on\"\n\
         [upstreams.mine]\ndialect = \"openai-chat\"\nbase_url = \"{upstream}\"\nkey_env = \"UPSTREAM_KEY\"\n\
         headers = {{ x-gateway = \"$GATEWAY\", x-literal = \"{LITERAL}\" }}\n\
         [agents.default]\nmodel = \"mine/mock\"\ntool_call = {{ enabled = true }}\n\
         [commands.leak]\ndescription = \"Shows its secrets\"\nargv = [\"env\"]\neffect = \"pure\"\n\
         env = {{ COMMAND = \"$COMMAND_SECRET\" }}\nenv_allow = [\"LET_THROUGH_TOKEN\"]\n\
         [commands.fail]\ndescription = \"Complains of its secrets\"\nargv = [\"sh\", \"-c\", \"env >&2; exit 3\"]\n\
         effect = \"pure\"\nenv = {{ COMMAND = \"$COMMAND_SECRET\" }}\n\
         [http_tools.ask]\ndescription = \"Is told its secrets\"\nurl = \"http://{echo}/x\"\neffect = \"read\"\n\
         private_hosts = [\"{echo}\"]\nheaders = {{ authorization = \"Bearer $ENDPOINT_TOKEN\" }}\n\
         query = {{ q = \"$ENDPOINT_QUERY\" }}\n\
         [mcp.program]\ncommand = [\"sh\", \"-c\", \"env >&2; exit 3\"]\nenv = {{ SECRET = \"$MCP_SECRET\" }}\n\
         [mcp.server]\nurl = \"http://{echo}/mcp\"\nheaders = {{ authorization = \"$MCP_HEADER\" }}\n"
    )
}

/// All output of the server, by channel.
struct Told(Vec<(String, String)>);

impl Told {
    fn add(&mut self, way: impl Into<String>, said: impl Into<String>) {
        self.0.push((way.into(), said.into()));
    }

    /// Runs a command and records its output, standard error included.
    fn command(&mut self, folder: &Path, arguments: &[&str]) {
        let output = command(folder).args(arguments).envs(VARIABLES).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        self.add(arguments.join(" "), String::from_utf8_lossy(&text));
    }
}

#[test]
fn secrets_appear_in_no_output_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let upstream = runtime.block_on(FakeUpstream::start(Telltale)).unwrap();
    let (collector, echo) = (Collector::start(Habit::Takes), echo());
    let file = folder.path().join("throughline.toml");
    let base = configuration(&upstream.base_url(FakeDialect::OpenaiChat), echo);
    std::fs::write(&file, &base).unwrap();
    let endpoint = collector.url();
    let more = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ("THROUGHLINE_LOG", "debug"),
    ];
    let mut server = Serving::start_with(folder.path(), &[], &[&VARIABLES[..], &more].concat());
    let token = server.token().expect("a key is shown").to_owned();
    let auth = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
    let mut told = Told(Vec::new());

    // Turns that fail in every way, each to its end.
    let mut turns = Vec::new();
    let mut turn = |server: &Serving, told: &mut Told, says: &str, model: &str| {
        let body = json!({"model": model, "input": [{"type": "text", "text": says}]}).to_string();
        let (status, started) = server.ask("POST", "/v1/turns", Some(&token), &body);
        assert_eq!(status, 201, "{started}");
        told.add(format!("starting `{says}`"), started.clone());
        let started: Value = serde_json::from_str(&started).unwrap();
        let id = started["turn_id"].as_str().unwrap().to_owned();
        let events = server.raw("GET", &format!("/v1/turns/{id}/events"), &auth, "");
        assert!(events.contains("stream_end") && events.contains("\"type\":\"error\""), "{says}: {events}");
        told.add(format!("events of `{says}`"), events.clone());
        turns.push((id, started["conversation_id"].as_str().unwrap().to_owned()));
        events
    };
    let whole = turn(&server, &mut told, "tools", "mine/mock");
    // The positive side: all of it was there to be seen.
    assert_eq!(whole.matches("\"type\":\"tool_result\"").count(), 3, "{whole}");
    for part in ["COMMAND=…", "LET_THROUGH_TOKEN=…", "authorization: …", "wrong key: …"] {
        assert!(whole.contains(part), "{part} in {whole}");
    }
    let seen = upstream.requests();
    let given = seen.first().unwrap().header("authorization").unwrap();
    assert!(
        given.ends_with(VARIABLES[0].1) && seen[0].header("x-gateway") == Some(VARIABLES[1].1),
        "{given}"
    );
    for says in ["refuse", "redirect", "garbage"] {
        turn(&server, &mut told, says, "mine/mock");
    }

    // A later configuration, and one with a mistake at a secret.
    let later = "[upstreams.later]\ndialect = \"openai-chat\"\nkey_env = \"LATER_KEY\"\n";
    let at = upstream.base_url(FakeDialect::OpenaiChat);
    std::fs::write(&file, format!("{base}{later}base_url = \"{at}\"\n")).unwrap();
    let mut log = server.says("a new configuration is in use");
    turn(&server, &mut told, "later", "later/mock");
    let wrong = base.replace(&format!("\"{LITERAL}\""), &format!("\"{LITERAL}\", x-bad = 3"));
    std::fs::write(&file, wrong).unwrap();
    log += &server.says("the new configuration is invalid");
    std::fs::write(&file, &base).unwrap();
    log += &server.says("a new configuration is in use");

    // Keys that are entered: one that is stored and used, and one that no upstream accepts.
    let connect = |name: &str, key: &str, url: &str| {
        let body = json!({"key": key, "base_url": url, "model": "mock"}).to_string();
        server.ask("POST", &format!("/v1/upstreams/{name}/connect"), Some(&token), &body)
    };
    let (status, said) = connect("pasted", STORED, &at);
    assert_eq!(status, 200, "{said}");
    told.add("connecting", said);
    let used = upstream
        .requests()
        .iter()
        .any(|seen| seen.header("authorization").is_some_and(|value| value.ends_with(STORED)));
    assert!(used, "it was sent where it belongs");
    let (status, said) = connect("refused", REFUSED, &format!("http://{echo}/v1"));
    assert_eq!(status, 502, "{said}");
    told.add("connecting in vain", said);
    turn(&server, &mut told, "pasted", "pasted/mock");

    let (_, ticket) = server.ask("POST", "/v1/tickets", Some(&token), "");
    let ticket = serde_json::from_str::<Value>(&ticket).unwrap()["ticket"].as_str().unwrap().to_owned();
    let made = json!({"name": "second", "scopes": ["chat"]}).to_string();
    let (status, made) = server.ask("POST", "/v1/keys", Some(&token), &made);
    assert_eq!(status, 201, "{made}");
    let second = serde_json::from_str::<Value>(&made).unwrap()["key"].as_str().unwrap().to_owned();

    let (id, conversation) = turns[0].clone();
    let by_ticket = server.raw("GET", &format!("/v1/turns/{id}/events?ticket={ticket}"), "", "");
    assert!(by_ticket.contains("stream_end"), "{by_ticket}");
    told.add("events by ticket", by_ticket);
    told.add(
        "a ticket that is used",
        server.raw("GET", &format!("/v1/turns/{id}/events?ticket={ticket}"), "", ""),
    );
    told.add("a wrong key", server.raw("GET", "/v1/turns", "Authorization: Bearer canary-fledgling\r\n", ""));
    told.add(
        "the second key",
        server.raw("GET", "/v1/keys", &format!("Authorization: Bearer {second}\r\n"), ""),
    );
    let mut paths: Vec<String> = [
        "/metrics",
        "/v1/openapi.json",
        "/v1/upstreams",
        "/v1/upstreams/known",
        "/v1/agents",
        "/v1/agents/default/prompt",
        "/v1/tools",
        "/v1/keys",
        "/v1/models",
        "/v1/history/calls",
        "/v1/history/export?format=csv",
        "/v1/search?q=wrong",
        "/v1/conversations",
        "/v1/nowhere",
        "/readyz",
    ]
    .map(str::to_owned)
    .into();
    paths.push(format!("/v1/nowhere?ticket={ticket}&key={token}"));
    for (turn, conversation) in &turns {
        paths.extend(
            ["", "/events?from=snapshot", "/waterfall", "/messages"]
                .map(|end| format!("/v1/turns/{turn}{end}")),
        );
        paths.extend(
            ["", "/messages", "/export?format=jsonl", "/export?format=markdown"]
                .map(|end| format!("/v1/conversations/{conversation}{end}")),
        );
    }
    for path in paths {
        told.add(path.clone(), server.raw("GET", &path, &auth, ""));
    }
    for (stream, says) in [(true, "tools"), (false, "refuse"), (true, "refuse")] {
        let body =
            json!({"model": "mine/mock", "stream": stream, "messages": [{"role": "user", "content": says}]});
        let said = server.raw("POST", "/v1/chat/completions", &auth, &body.to_string());
        assert!(said.contains("error"), "{said}");
        told.add(format!("chat completions of `{says}`"), said);
    }
    told.add(
        "a manual call",
        server.raw("POST", "/v1/tools/commands.leak/call", &auth, "{\"arguments\":{}}"),
    );
    told.add("WebSocket", runtime.block_on(over_a_socket(server.address(), &token, &id)));

    for arguments in [
        &["history", "--json"][..],
        &["history"],
        &["history", "--turns", "--json"],
        &["export", &conversation],
        &["export", &conversation, "--format", "markdown"],
        &["export", &conversation, "--format", "csv"],
        &["replay", &id],
        &["replay", &id, "--events"],
        &["replay", &id, "--at", "3", "--json"],
        &["replay", &id, "--decode-raw"],
        &["replay", &turns[1].0],
        &["keys", "list"],
        &["doctor"],
        &["doctor", "--json"],
        &["upstreams"],
        &["tools", "list"],
        &["tools", "call", "commands.leak"],
    ] {
        told.command(folder.path(), arguments);
    }

    server.signal("-TERM");
    server.child.wait().unwrap();
    log.extend(server.log.iter().map(|line| line + "\n"));
    assert!(log.contains("step_ended") && log.contains("turn_ended"), "{log}");
    told.add("the log", log);
    let spans = collector.rest();
    assert!(spans.iter().any(|span| span.attributes.contains_key("gen_ai.tool.call.result")), "{spans:#?}");
    told.add("spans", format!("{spans:?}"));
    for (name, bytes) in files(&folder.path().join("data")) {
        told.add(format!("the file {name}"), String::from_utf8_lossy(&bytes));
    }

    assert!(
        told.0.len() > 60 && told.0.iter().any(|(way, _)| way.contains("throughline.db")),
        "{}",
        told.0.len()
    );
    let forms = forms();
    let of_server = [("the key", &token), ("the second key", &second), ("a ticket", &ticket)];
    for (way, said) in &told.0 {
        assert!(!said.is_empty(), "{way} says nothing");
        // A client that sends a secret may find it in the error about that request; no other output may
        // contain it.
        for form in forms.iter().filter(|_| way != "a wrong key") {
            assert!(!said.contains(form.as_str()), "{form} in {way}: {}", around(said, form));
        }
        for (what, secret) in of_server {
            assert!(!said.contains(secret.as_str()), "{what} in {way}: {}", around(said, secret));
        }
    }
}

/// Text around the match.
fn around<'t>(said: &'t str, found: &str) -> &'t str {
    let at = said.find(found).unwrap_or_default();
    let (from, to) = (at.saturating_sub(200), (at + 300).min(said.len()));
    &said[said.floor_char_boundary(from)..said.ceil_char_boundary(to)]
}

/// Messages of a turn over a WebSocket.
async fn over_a_socket(address: &str, token: &str, turn: &str) -> String {
    let mut request = format!("ws://{address}/v1/ws").into_client_request().unwrap();
    request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    socket.send(Message::text(json!({"op": "subscribe", "turn_id": turn}).to_string())).await.unwrap();
    socket.send(Message::text("{\"op\": \"nonsense\"}")).await.unwrap();
    let mut said = String::new();
    while !said.contains("\"type\":\"stream_end\"") {
        let message = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
        said.push_str(&message.to_string());
    }
    said
}

/// Every file of the data folder except those that hold keys.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().unwrap().is_dir() {
            files.extend(self::files(&path));
        } else if name != "admin-token" && name != "upstreams.json" {
            files.push((name, std::fs::read(&path).unwrap()));
        }
    }
    files.retain(|(_, bytes)| !bytes.is_empty());
    files
}
