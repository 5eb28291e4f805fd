//! A raw HTTP client for tests: it shows what really came over the socket, also when that is half a reply.

pub mod talk;

use serde_json::{Value, json};
use throughline_testkit::{FakeDialect, FakeUpstreamHandle};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// State of the connection when the reply was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The body came to its announced end.
    Whole,
    /// Connection closed (FIN) during the body.
    Cut,
    /// Connection reset (RST).
    Reset,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    pub over: Over,
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// The payloads of `data:` lines, or of NDJSON lines.
    pub fn events(&self) -> Vec<Value> {
        let text = self.text();
        let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        lines
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }
}

pub fn path(dialect: FakeDialect, model: &str) -> String {
    match dialect {
        FakeDialect::OpenaiChat => "/v1/chat/completions".into(),
        FakeDialect::OpenaiResponses => "/v1/responses".into(),
        FakeDialect::Anthropic => "/v1/messages".into(),
        FakeDialect::Gemini => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        FakeDialect::Ollama => "/api/chat".into(),
        FakeDialect::Cohere => "/v2/chat".into(),
        FakeDialect::BedrockConverse => format!("/model/{model}/converse-stream"),
        FakeDialect::BedrockAnthropic => format!("/model/{model}/invoke-with-response-stream"),
    }
}

/// The smallest legal streaming request.
pub fn hello(dialect: FakeDialect) -> Value {
    asking(dialect, "hello")
}

pub fn asking(dialect: FakeDialect, text: &str) -> Value {
    let user = json!([{"role": "user", "content": text}]);
    match dialect {
        FakeDialect::OpenaiChat => json!({"model": "mock", "messages": user, "stream": true}),
        FakeDialect::OpenaiResponses => {
            json!({"model": "mock", "input": user, "stream": true, "store": false})
        }
        FakeDialect::Anthropic => {
            json!({"model": "mock", "max_tokens": 64, "messages": user, "stream": true})
        }
        FakeDialect::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
        FakeDialect::Ollama => json!({"model": "mock", "messages": user}),
        FakeDialect::Cohere => json!({"model": "mock", "messages": user, "stream": true}),
        FakeDialect::BedrockConverse => json!({"messages": [{"role": "user", "content": [{"text": text}]}]}),
        FakeDialect::BedrockAnthropic => {
            json!({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 64, "messages": user})
        }
    }
}

pub async fn open(upstream: &FakeUpstreamHandle, path: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(upstream.address()).await.expect("connects");
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: test\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.expect("sends");
    stream
}

pub async fn post(upstream: &FakeUpstreamHandle, path: &str, body: &Value) -> Reply {
    let mut stream = open(upstream, path, body).await;
    read(&mut stream).await
}

pub async fn get(upstream: &FakeUpstreamHandle, path: &str) -> Reply {
    let mut stream = TcpStream::connect(upstream.address()).await.expect("connects");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n").as_bytes()).await.expect("sends");
    read(&mut stream).await
}

/// Reads one reply to its end, of any kind.
pub async fn read(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let over = loop {
        if let Some(reply) = whole(&bytes) {
            return reply;
        }
        match stream.read_buf(&mut bytes).await {
            Ok(0) => break Over::Cut,
            Ok(_) => {}
            Err(_) => break Over::Reset,
        }
    };
    let (status, head, rest) = split(&bytes).unwrap_or((0, String::new(), &[]));
    let body = if chunked(&head) { dechunk(rest).0 } else { rest.to_vec() };
    Reply { status, head, body, over }
}

fn whole(bytes: &[u8]) -> Option<Reply> {
    let (status, head, rest) = split(bytes)?;
    if chunked(&head) {
        let (body, ended) = dechunk(rest);
        return ended.then_some(Reply { status, head, body, over: Over::Whole });
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
    (rest.len() >= length).then(|| Reply { status, head, body: rest[..length].to_vec(), over: Over::Whole })
}

fn chunked(head: &str) -> bool {
    head.contains("transfer-encoding: chunked")
}

fn split(bytes: &[u8]) -> Option<(u16, String, &[u8])> {
    let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).expect("an ASCII head");
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, head, &bytes[end + 4..]))
}

fn dechunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = rest.get(end + 2..end + 2 + size) else { break };
        body.extend_from_slice(chunk);
        rest = rest.get(end + 4 + size..).unwrap_or_default();
    }
    (body, false)
}
