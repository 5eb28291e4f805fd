//! A viewer that never reads.

use crate::server::{PATIENCE, Server};
use crate::viewer::{By, Saw};
use socket2::{SockRef, TcpKeepalive};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// Interval of the checks for a cut connection.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Interval of the kernel's own probes, in whole seconds.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

pub struct Lazy {
    pub by: By,
    socket: TcpStream,
    began: Instant,
}

impl Lazy {
    /// Requests the events of a turn, and reads none of them.
    pub async fn open(server: &Server, turn: &str, by: By) -> Self {
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        // While it takes nothing Linux may drop the reset (seen with 6.18), but not the one that answers a probe.
        let probes = TcpKeepalive::new().with_time(PROBE_INTERVAL).with_interval(PROBE_INTERVAL);
        SockRef::from(&socket).set_tcp_keepalive(&probes).unwrap();
        let (path, more) = match by {
            By::WebSocket => (
                "/v1/ws".to_owned(),
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            ),
            By::Sse => (format!("/v1/turns/{turn}/events"), ""),
        };
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{more}\r\n", server.address);
        socket.write_all(head.as_bytes()).await.unwrap();
        if by == By::WebSocket {
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                answer.push(timeout(PATIENCE, socket.read_u8()).await.expect("an answer in time").unwrap());
            }
            let subscribe = format!(r#"{{"op":"subscribe","turn_id":"{turn}"}}"#);
            let length =
                u8::try_from(subscribe.len()).ok().filter(|length| *length < 126).expect("a short one");
            // With a mask that changes nothing.
            socket.write_all(&[0x81, 0x80 | length, 0, 0, 0, 0]).await.unwrap();
            socket.write_all(subscribe.as_bytes()).await.unwrap();
        }
        Self { by, socket, began: Instant::now() }
    }

    /// Waits until the server cuts it, without reading; how long that took.
    pub async fn until_cut(self) -> (Self, Duration) {
        let cut = async {
            while self.socket.take_error().unwrap().is_none() {
                sleep(LOOK_EVERY).await;
            }
        };
        timeout(PATIENCE, cut).await.unwrap_or_else(|_| panic!("by {:?} it is never cut", self.by));
        let after = self.began.elapsed();
        (self, after)
    }

    /// The whole events that the kernel had taken for it.
    pub async fn taken(&self) -> Saw {
        let mut bytes = Vec::new();
        loop {
            let mut piece = [0; 16 << 10];
            match self.socket.try_read(&mut piece) {
                Ok(read @ 1..) => bytes.extend_from_slice(&piece[..read]),
                // What is left is the end of the connection.
                Ok(_) | Err(_) => break,
            }
        }
        let mut saw = Saw::default();
        match self.by {
            By::Sse => {
                // The lengths of chunks are on separate lines, or inside a frame, which is skipped with the
                // rest.
                let text = String::from_utf8_lossy(&bytes);
                for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
                    let before = saw.last();
                    saw.take(data);
                    if saw.last() != before + 1 {
                        break;
                    }
                }
            }
            By::WebSocket => {
                let mut rest = &bytes[..];
                while let [_, length, ..] = rest {
                    let (length, head) = match (length, rest) {
                        (126, [_, _, high, low, ..]) => (usize::from(u16::from_be_bytes([*high, *low])), 4),
                        (126.., _) => break,
                        (length, _) => (usize::from(*length), 2),
                    };
                    let Some(payload) = rest.get(head..head + length) else { break };
                    saw.take(&String::from_utf8_lossy(payload));
                    rest = &rest[head + length..];
                }
            }
        }
        saw
    }
}
