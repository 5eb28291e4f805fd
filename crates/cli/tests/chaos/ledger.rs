//! The system that tools change: a separate server that records each effect and outlives every crash.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Number of writes of each key.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<HashMap<String, u32>>>);

impl Ledger {
    /// Listens on a free port.
    pub async fn start() -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ledger = Self::default();
        let shared = ledger.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(shared.clone().serve(socket));
            }
        });
        (ledger, address)
    }

    pub fn count(&self, key: &str) -> u32 {
        self.0.lock().unwrap().get(key).copied().unwrap_or(0)
    }

    /// Writes of all keys that begin so.
    pub fn count_of(&self, prefix: &str) -> u32 {
        let counts = self.0.lock().unwrap();
        counts.iter().filter(|(key, _)| key.starts_with(prefix)).map(|(_, count)| count).sum()
    }

    pub fn total(&self) -> u32 {
        self.0.lock().unwrap().values().sum()
    }

    /// Serves `POST /<key>`, one request per connection. The client may be dead before the answer.
    async fn serve(self, mut socket: TcpStream) {
        let mut request = Vec::new();
        let mut piece = [0; 1024];
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            match socket.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(read) => request.extend_from_slice(&piece[..read]),
            }
        }
        let head = String::from_utf8_lossy(&request).into_owned();
        let key = head.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
        *self.0.lock().unwrap().entry(key).or_default() += 1;
        let _ = socket
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 4\r\nconnection: close\r\n\r\ndone")
            .await;
    }
}
