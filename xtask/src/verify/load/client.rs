//! Just enough HTTP to measure a server of ours without anything of others in the way.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Timeout of a request, longer than any should take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

/// A connection that is used again and again.
pub(crate) struct LoadClient {
    address: String,
    key: String,
    stream: Option<BufReader<TcpStream>>,
}

pub(crate) struct LoadAnswer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl LoadAnswer {
    pub(crate) fn json(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl LoadClient {
    pub(crate) fn new(address: &str, key: &str) -> Self {
        Self { address: address.to_owned(), key: key.to_owned(), stream: None }
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<LoadAnswer> {
        self.request("GET", path, None)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<LoadAnswer> {
        self.request("POST", path, Some(&body.to_string()))
    }

    pub(crate) fn post_text(&mut self, path: &str, body: &str) -> Result<LoadAnswer> {
        self.request("POST", path, Some(body))
    }

    pub(crate) fn delete(&mut self, path: &str) -> Result<LoadAnswer> {
        self.request("DELETE", path, None)
    }

    fn request(&mut self, method: &str, path: &str, body: Option<&str>) -> Result<LoadAnswer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => BufReader::new(self.connect()?),
        };
        stream.get_mut().write_all(self.request_text(method, path, body).as_bytes())?;
        let (answer, keeps_alive) = read_answer(&mut stream).with_context(|| format!("{method} {path}"))?;
        if keeps_alive {
            self.stream = Some(stream);
        }
        Ok(answer)
    }

    /// Sends a request and disconnects after this time, with or without an answer.
    pub(crate) fn abandon(&self, path: &str, after: Duration) -> Result<()> {
        let mut stream = self.connect()?;
        stream.write_all(self.request_text("GET", path, None).as_bytes())?;
        stream.set_read_timeout(Some(after))?;
        // The answer is not waited for.
        let _ = stream.read(&mut [0; 16]);
        Ok(())
    }

    fn connect(&self) -> Result<TcpStream> {
        let stream =
            TcpStream::connect(&self.address).with_context(|| format!("{} is not there", self.address))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        Ok(stream)
    }

    fn request_text(&self, method: &str, path: &str, body: Option<&str>) -> String {
        let body = body.unwrap_or_default();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.address,
            self.key,
            body.len()
        )
    }
}

/// Reads an answer; true if the connection can be reused.
fn read_answer(stream: &mut BufReader<TcpStream>) -> Result<(LoadAnswer, bool)> {
    let first = line(stream)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let Some(status) = status else { bail!("no answer: {first:?}") };
    let (mut length, mut chunked, mut keeps_alive) = (0, false, true);
    loop {
        let header = line(stream)?.to_ascii_lowercase();
        match header.split_once(':').map(|(name, value)| (name, value.trim())) {
            None => break,
            Some(("content-length", value)) => length = value.parse()?,
            Some(("transfer-encoding", value)) => chunked = value.contains("chunked"),
            Some(("connection", value)) => keeps_alive = value != "close",
            Some(_) => {}
        }
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            let size = usize::from_str_radix(line(stream)?.split(';').next().unwrap_or_default(), 16)?;
            read_bytes(stream, size, &mut body)?;
            line(stream)?;
            if size == 0 {
                break;
            }
        }
    } else {
        read_bytes(stream, length, &mut body)?;
    }
    Ok((LoadAnswer { status, body }, keeps_alive))
}

fn read_bytes(stream: &mut BufReader<TcpStream>, bytes: usize, into: &mut Vec<u8>) -> Result<()> {
    let begin = into.len();
    into.resize(begin + bytes, 0);
    Ok(stream.read_exact(&mut into[begin..])?)
}

fn line(stream: &mut BufReader<TcpStream>) -> Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        bail!("the connection was closed");
    }
    Ok(line.trim_end().to_owned())
}
