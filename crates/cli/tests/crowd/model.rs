//! A model whose events carry their time: `run EVENTS PER_SECOND BYTES` as the last user message; 0 per
//! second is as fast as possible.

use crate::measure::micros;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

/// Answers in an endless loop.
pub async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let _ = socket.set_nodelay(true);
            // Who hangs up has heard enough.
            tokio::spawn(async move { answer(socket).await.ok() });
        }
    });
    address
}

async fn answer(socket: TcpStream) -> std::io::Result<()> {
    let mut socket = BufReader::new(socket);
    let mut length = 0;
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await?;
    let body = String::from_utf8_lossy(&body);
    let numbers = body.rsplit("run ").next().unwrap_or_default();
    let mut numbers =
        numbers.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse::<u64>().unwrap_or(0));
    let mut number = || numbers.next().unwrap_or(0);
    let (events, per_second, bytes) = (number(), number(), number() as usize);

    let mut socket = socket.into_inner();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    let (began, padding) = (Instant::now(), "x".repeat(bytes));
    for event in 0..events {
        // 0 per second: without pauses.
        if let Some(due) = (event * 1_000_000).checked_div(per_second) {
            sleep_until(began + Duration::from_micros(due)).await;
        }
        let chunk = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"@{} {padding}\"}}}}]}}\n\n",
            micros()
        );
        socket.write_all(chunk.as_bytes()).await?;
    }
    let last =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    socket.write_all(last.as_bytes()).await?;
    socket.shutdown().await
}
