//! A server over HTTP that closes the stream of a call and announces when to reconnect.

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Value of `retry`, in milliseconds.
pub const PAUSE_MS: u64 = 60 * 60 * 1_000;

#[derive(Clone, Default)]
pub struct PausingServer {
    pub calls: Arc<AtomicU32>,
    /// Requests for the rest of a stream.
    pub returns: Arc<AtomicU32>,
}

impl PausingServer {
    pub async fn start() -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self::default();
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().serve(socket));
            }
        });
        (server, address)
    }

    /// One request a connection.
    async fn serve(self, mut socket: TcpStream) -> Option<()> {
        let (mut read, mut piece) = (Vec::new(), [0; 4096]);
        let (head, body) = loop {
            let text = String::from_utf8_lossy(&read).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let head = head.to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                    break (head, body.to_owned());
                }
            }
            match socket.read(&mut piece).await.ok()? {
                0 => return None,
                count => read.extend_from_slice(&piece[..count]),
            }
        };
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        let (status, kind, body) = self.reply(&head, &message);
        let length = body.len();
        let reply = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        socket.write_all(reply.as_bytes()).await.ok()
    }

    fn reply(&self, head: &str, message: &Value) -> (&'static str, &'static str, String) {
        let json = |result: Value| {
            let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            ("200 OK", "application/json", reply.to_string())
        };
        match message["method"].as_str() {
            Some("initialize") => json(json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "pausing", "version": "1"},
            })),
            Some("tools/list") => {
                json(json!({"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]}))
            }
            Some("tools/call") => {
                self.calls.fetch_add(1, Ordering::SeqCst);
                let id = message["id"].to_string();
                ("200 OK", "text/event-stream", format!("id: {id}\nretry: {PAUSE_MS}\ndata: \n\n"))
            }
            Some(_) if message["id"].is_null() => ("202 Accepted", "text/plain", String::new()),
            Some(_) => {
                let error = json!({"code": -32601, "message": "Method not found"});
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                ("200 OK", "application/json", reply.to_string())
            }
            None => {
                let Some(id) = head.lines().find_map(|line| line.strip_prefix("last-event-id: ")) else {
                    return ("405 Method Not Allowed", "text/plain", String::new());
                };
                self.returns.fetch_add(1, Ordering::SeqCst);
                let id: Value = serde_json::from_str(id).unwrap();
                let result = json!({"content": [{"type": "text", "text": "waited"}]});
                let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
                ("200 OK", "text/event-stream", format!("id: end\ndata: {reply}\n\n"))
            }
        }
    }
}
