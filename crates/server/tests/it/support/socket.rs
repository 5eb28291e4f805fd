//! A WebSocket of the native API, message by message.

use super::{PATIENCE, TestServer};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

pub struct Socket(pub WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub async fn connect(server: &TestServer) -> Self {
        Self(Self::offering(server, Some("throughline.v1")).await.unwrap())
    }

    /// Connects with this subprotocol.
    pub async fn offering(
        server: &TestServer,
        protocol: Option<&str>,
    ) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, Error> {
        Self::asking(server.address, &[("x-test-user", "ada")], protocol).await
    }

    /// Connects to any server, with these headers.
    pub async fn asking(
        address: SocketAddr,
        headers: &[(&'static str, &str)],
        protocol: Option<&str>,
    ) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, Error> {
        let mut request = format!("ws://{address}/v1/ws").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        if let Some(protocol) = protocol {
            request.headers_mut().insert("sec-websocket-protocol", protocol.parse().unwrap());
        }
        connect_async(request).await.map(|(socket, _)| socket)
    }

    pub async fn send(&mut self, op: Value) {
        self.0.send(Message::text(op.to_string())).await.unwrap();
    }

    /// The next JSON text, or the code that the socket is closed with. Pings are skipped.
    pub async fn next(&mut self) -> Result<Value, u16> {
        timeout(PATIENCE, self.next_at_last()).await.expect("a message in time")
    }

    async fn next_at_last(&mut self) -> Result<Value, u16> {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => return Err(frame.map_or(1005, |frame| frame.code.into())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(1006),
            }
        }
    }

    /// The messages up to the first for which this holds.
    pub async fn until(&mut self, found: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.next().await.expect("a message");
            let last = found(&message);
            messages.push(message);
            if last {
                return messages;
            }
        }
    }
}
