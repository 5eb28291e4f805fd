//! Just enough HTTP/1.1 to serve one client well and to misbehave on purpose: requests are read whole, responses are
//! written piece by piece.

use std::io;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest request line with headers, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Longest request body, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A request as it came in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceivedRequest {
    /// `GET`, `POST`.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query, without the question mark.
    pub query: String,
    /// Header names in lower case, with values.
    pub headers: Vec<(String, String)>,
    /// The body, chunks joined.
    pub body: Vec<u8>,
}

impl ReceivedRequest {
    /// A header's value; the name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reason why no request could be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The client has disconnected, or closed the connection between two requests.
    Closed,
    /// Not HTTP/1.1 as this server reads it.
    Malformed(&'static str),
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

/// A connection with the bytes read ahead.
pub(crate) struct FakeConnection {
    pub stream: TcpStream,
    pub read_ahead: Vec<u8>,
}

impl FakeConnection {
    /// The next request, whole.
    pub async fn request(&mut self) -> Result<ReceivedRequest, ReadError> {
        let end = loop {
            if let Some(at) = find(&self.read_ahead, b"\r\n\r\n") {
                break at;
            }
            if self.read_ahead.len() > HEAD_BYTES_MAX {
                return Err(ReadError::Malformed("the head of the request is too long"));
            }
            self.read_more().await?;
        };
        let head: Vec<u8> = self.read_ahead.drain(..end + 4).collect();
        let mut request = parse_head(&head[..end])?;
        if request.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let chunked = request.header("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"));
        request.body = if chunked {
            self.chunked_body().await?
        } else {
            let length = match request.header("content-length").map(str::parse::<usize>) {
                None => 0,
                Some(Ok(length)) if length <= BODY_BYTES_MAX => length,
                Some(Ok(_)) => return Err(ReadError::Malformed("the request body is too large")),
                Some(Err(_)) => return Err(ReadError::Malformed("content-length is not a number")),
            };
            self.take(length).await?
        };
        Ok(request)
    }

    async fn chunked_body(&mut self) -> Result<Vec<u8>, ReadError> {
        let mut body = Vec::new();
        loop {
            let line = self.line().await?;
            let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
            let size = std::str::from_utf8(size).ok().and_then(|s| usize::from_str_radix(s.trim(), 16).ok());
            let size = size.ok_or(ReadError::Malformed("a chunk has no size"))?;
            if size == 0 {
                while !self.line().await?.is_empty() {}
                return Ok(body);
            }
            if size > BODY_BYTES_MAX - body.len() {
                return Err(ReadError::Malformed("the request body is too large"));
            }
            body.extend(self.take(size).await?);
            if !self.line().await?.is_empty() {
                return Err(ReadError::Malformed("a chunk is longer than it says"));
            }
        }
    }

    async fn line(&mut self) -> Result<Vec<u8>, ReadError> {
        loop {
            if let Some(at) = find(&self.read_ahead, b"\r\n") {
                let line = self.read_ahead.drain(..at + 2).take(at).collect();
                return Ok(line);
            }
            if self.read_ahead.len() > HEAD_BYTES_MAX {
                return Err(ReadError::Malformed("a line is too long"));
            }
            self.read_more().await?;
        }
    }

    async fn take(&mut self, length: usize) -> Result<Vec<u8>, ReadError> {
        while self.read_ahead.len() < length {
            self.read_more().await?;
        }
        Ok(self.read_ahead.drain(..length).collect())
    }

    async fn read_more(&mut self) -> Result<(), ReadError> {
        match self.stream.read_buf(&mut self.read_ahead).await? {
            0 => Err(ReadError::Closed),
            _ => Ok(()),
        }
    }
}

fn parse_head(head: &[u8]) -> Result<ReceivedRequest, ReadError> {
    let text = std::str::from_utf8(head).map_err(|_| ReadError::Malformed("the head is not UTF-8"))?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(ReadError::Malformed("the request line is not HTTP/1.1"));
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(ReadError::Malformed("a header has no colon"))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(ReceivedRequest {
        method: method.into(),
        path: path.into(),
        query: query.into(),
        headers,
        body: Vec::new(),
    })
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

/// The status line and headers.
pub(crate) fn head(status: u16, headers: &[(String, String)], length: Option<usize>) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        // A line end in a scripted value would forge a second header.
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match length {
        Some(length) => head.push_str(&format!("content-length: {length}\r\n\r\n")),
        None => head.push_str("transfer-encoding: chunked\r\ncache-control: no-cache\r\n\r\n"),
    }
    head.into_bytes()
}

/// One chunk in one write, so that it is one packet.
pub(crate) async fn write_chunk(out: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    out.write_all(&chunk).await
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Payload Too Large",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_line_and_headers_are_parsed() {
        let head = b"POST /v1beta/models/m:generateContent?alt=sse HTTP/1.1\r\nHost: a\r\nX-Key:  v \r\n";
        let request = parse_head(&head[..head.len() - 2]).expect("legal");
        assert_eq!(request.path, "/v1beta/models/m:generateContent");
        assert_eq!((request.query.as_str(), request.header("x-key")), ("alt=sse", Some("v")));
    }

    #[test]
    fn malformed_request_head_is_rejected() {
        for head in [&b"GET /"[..], b"GET / HTTP/2", b"GET / HTTP/1.1\r\nnocolon", b"\xff\xfe / HTTP/1.1"] {
            assert!(matches!(parse_head(head), Err(ReadError::Malformed(_))), "{head:?}");
        }
    }

    #[test]
    fn scripted_header_values_cannot_forge_headers() {
        let head = head(200, &[("a".into(), "b\r\nset-cookie: c".into())], Some(0));
        let text = String::from_utf8(head).expect("ascii");
        assert!(text.contains("a: bset-cookie: c\r\n"), "{text}");
    }
}
