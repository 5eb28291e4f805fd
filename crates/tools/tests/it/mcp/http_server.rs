//! A strict server over HTTP with sessions: a request without the current session is answered with 404, as the protocol has
//! it. It forgets its session on request, as one that was restarted, and answers with anything.

use super::any_reply::{CALL_ID, ReplyKind, any_reply, bytes_of};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// Answer to `tools/list`.
#[derive(Clone, Default)]
pub enum HttpList {
    /// The server's tools.
    #[default]
    Sound,
    /// The tools and a second page, the reply of this seed.
    AnySecondPage(u64),
    /// The tools with the same cursor on every page.
    SameCursor,
    /// An error.
    Refused,
    /// The tools and these.
    With(Value),
}

/// An HTTP server that runs until its last clone is dropped: a test may start tens of thousands, one after
/// another.
#[derive(Clone, Default)]
pub struct HttpServer {
    state: Arc<Mutex<ServerState>>,
    pub changed: Arc<Notify>,
    _accepting: Option<Arc<AbortOnDropHandle<()>>>,
}

#[derive(Default)]
pub struct ServerState {
    pub list: HttpList,
    /// Request of the handshake that gets the reply of this seed.
    pub odd_handshake: Option<(&'static str, u64)>,
    /// Id of a request of ours that is not answered yet.
    pub awaited: Option<Value>,
    /// The handshake was that of the revision without sessions.
    is_stateless: bool,
    pub url: String,
    /// Sessions that were begun; the last one counts, unless it is forgotten.
    pub sessions: usize,
    is_forgotten: bool,
    /// Number of requested pages.
    pub pages: usize,
    /// Calls that came through to a tool.
    pub calls: Vec<String>,
}

/// Body of an answer, with its status and type.
struct Answer(&'static str, &'static str, Vec<u8>);

impl HttpServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self::default();
        server.state().url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving = server.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(serving.clone().serve(socket));
            }
        });
        Self { _accepting: Some(Arc::new(AbortOnDropHandle::new(accepting))), ..server }
    }

    pub fn state(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap()
    }

    /// Forgets the session, as after a restart.
    pub fn forget_session(&self) {
        self.state().is_forgotten = true;
    }

    /// Waits until the state fulfils a condition.
    pub async fn until(&self, is_so: impl Fn(&ServerState) -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so(&self.state()) {
                return;
            }
            changed.await;
        }
    }

    /// One request a connection.
    async fn serve(self, mut socket: TcpStream) -> Option<()> {
        let (mut read, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
        let (head, body) = loop {
            if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&read[..end]).to_lowercase();
                let length =
                    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                if read.len() >= end + 4 + length.unwrap_or(0usize) {
                    break (head, read.split_off(end + 4));
                }
            }
            match socket.read(&mut piece).await.ok()? {
                0 => return None,
                count => read.extend_from_slice(&piece[..count]),
            }
        };
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = self.answer(&head, &message);
        self.changed.notify_waiters();
        let session = self.state().sessions;
        let Some(Answer(status, kind, body)) = answer else {
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: open\n\n";
            socket.write_all(head.as_bytes()).await.ok()?;
            // Until the other side has had enough.
            while socket.read(&mut piece).await.ok()? > 0 {}
            return None;
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nmcp-session-id: {session}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        socket.write_all(&[head.as_bytes(), &body].concat()).await.ok()
    }

    /// `None` = a stream on which nothing comes.
    fn answer(&self, head: &str, message: &Value) -> Option<Answer> {
        let mut state = self.state();
        let id = &message["id"];
        let json = |result: Value| {
            let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
            Some(Answer("200 OK", "application/json", reply.to_string().into_bytes()))
        };
        let error = |code: i64, text: &str| {
            let reply = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}});
            Some(Answer("200 OK", "application/json", reply.to_string().into_bytes()))
        };
        let method = message["method"].as_str().unwrap_or_default();
        if method == "initialize" {
            state.sessions += 1;
            state.is_forgotten = false;
        }
        if let Some((odd, seed)) = state.odd_handshake.filter(|(odd, _)| *odd == method) {
            state.is_stateless = odd == "server/discover";
            let kind = if state.is_stateless { ReplyKind::Discover } else { ReplyKind::Initialize };
            return Some(Answer("200 OK", "application/json", bytes_of(&any_reply(seed, kind).line, id)));
        }
        if method == "initialize" {
            state.is_stateless = false;
            return json(json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "strict", "version": "1"},
            }));
        }
        if !head.starts_with("post ") {
            return Some(Answer("405 Method Not Allowed", "text/plain", Vec::new()));
        }
        let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        let is_current = session == Some(&state.sessions.to_string()) && !state.is_forgotten;
        if !is_current && !state.is_stateless {
            return Some(Answer("404 Not Found", "text/plain", Vec::new()));
        }
        if method.is_empty() && state.awaited.as_ref() == Some(id) {
            state.awaited = None;
        }
        match method {
            "tools/list" => {
                state.pages += 1;
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                let mut tools = vec![tool("echo"), tool("hang"), tool("refuse"), tool("raw"), tool("talk")];
                let is_first = message["params"]["cursor"].is_null();
                match (state.list.clone(), is_first) {
                    (HttpList::Sound, _) => json(json!({"tools": tools})),
                    (HttpList::AnySecondPage(_), true) => json(json!({"tools": tools, "nextCursor": "two"})),
                    (HttpList::AnySecondPage(seed), false) => {
                        let reply = any_reply(seed, ReplyKind::List);
                        Some(Answer("200 OK", "application/json", bytes_of(&reply.line, id)))
                    }
                    (HttpList::SameCursor, _) => json(json!({"tools": tools, "nextCursor": "one"})),
                    (HttpList::Refused, _) => error(-32_603, "not today"),
                    (HttpList::With(more), _) => {
                        tools.extend(more.as_array().cloned().unwrap_or_default());
                        json(json!({"tools": tools}))
                    }
                }
            }
            "tools/call" => {
                let (name, arguments) = (&message["params"]["name"], &message["params"]["arguments"]);
                let name = name.as_str().unwrap_or_default();
                state.calls.push(name.to_owned());
                match name {
                    "hang" => None,
                    "refuse" => Some(Answer("500 Internal Server Error", "text/plain", b"no".to_vec())),
                    "talk" => {
                        let wanted = &arguments["await"];
                        let wanted = if wanted == CALL_ID { id } else { wanted };
                        state.awaited = Some(wanted.clone()).filter(|id| !id.is_null());
                        let message = bytes_of(arguments["line"].as_str().unwrap_or_default(), id);
                        let result = json!({"content": [{"type": "text", "text": "afterwards"}]});
                        let reply = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
                        let events = [&b"data: "[..], &message, b"\n\ndata: ", reply.as_bytes(), b"\n\n"];
                        Some(Answer("200 OK", "text/event-stream", events.concat()))
                    }
                    "raw" => {
                        let bytes = bytes_of(arguments["line"].as_str().unwrap_or_default(), id);
                        match arguments["kind"].as_str() {
                            Some("events") => {
                                let event = [&b"event: message\ndata: "[..], &bytes, b"\n\n"].concat();
                                Some(Answer("200 OK", "text/event-stream", event))
                            }
                            Some("text") => Some(Answer("200 OK", "text/plain", bytes)),
                            Some("accepted") => Some(Answer("202 Accepted", "text/plain", Vec::new())),
                            _ => Some(Answer("200 OK", "application/json; charset=utf-8", bytes)),
                        }
                    }
                    _ => json(json!({"content": [{"type": "text", "text": arguments["text"]}]})),
                }
            }
            _ if id.is_null() => Some(Answer("202 Accepted", "text/plain", Vec::new())),
            _ => error(-32_601, "Method not found"),
        }
    }
}
