//! An upstream in this process that reads bodies and forgets them: nothing of what is measured is its.

use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

const ANSWER: &str = "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":\
    [{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ok\"}}]}\n\n\
    data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":\
    [{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const LIMITED: &str = "{\"error\":{\"message\":\"Rate limit reached\",\"type\":\"rate_limit_error\"}}";

/// An upstream that answers like OpenAI, or reports a rate limit of ten minutes. Its threads end with the
/// process.
pub(super) struct DrainingUpstream {
    address: SocketAddr,
}

impl DrainingUpstream {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("there is no free port")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that leaves ends its connection.
                thread::spawn(move || serve(&stream));
            }
        });
        Ok(Self { address })
    }

    /// Base URL of what it does.
    pub(super) fn url(&self, what: &str) -> String {
        format!("http://{}/{what}/v1", self.address)
    }
}

fn serve(stream: &TcpStream) -> std::io::Result<()> {
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    loop {
        let (mut request, mut length) = (String::new(), 0);
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            if header.trim().is_empty() {
                break;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
        let (status, headers, body) = if request.contains("/limited/") {
            ("429 Too Many Requests", "Content-Type: application/json\r\nRetry-After: 600", LIMITED)
        } else {
            ("200 OK", "Content-Type: text/event-stream", ANSWER)
        };
        let head = format!("HTTP/1.1 {status}\r\n{headers}\r\nContent-Length: {}\r\n\r\n", body.len());
        writer.write_all(format!("{head}{body}").as_bytes())?;
    }
}
