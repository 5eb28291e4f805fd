//! A viewer: it reconnects with the number of its last event, as often as necessary.

use crate::server::PATIENCE;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Transport of a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Sse,
    WebSocket,
}

/// Events that one viewer has seen, in order, and the number of its reconnections.
#[derive(Clone, Debug, Default)]
pub struct Saw {
    pub events: Vec<Value>,
    pub connections: u32,
    /// An unexpected item: a resync, an error, an invalid end.
    pub strange: Option<String>,
}

impl Saw {
    pub fn last_seq(&self) -> u64 {
        self.events.last().and_then(|event| event["seq"].as_u64()).unwrap_or(0)
    }

    pub fn has_ended(&self) -> bool {
        self.events.last().is_some_and(|event| event["type"] == "stream_end")
    }
}

/// Follows a turn to its end; `saw` can be read in the meantime.
pub async fn watch(address: SocketAddr, turn: String, by: By, saw: Arc<Mutex<Saw>>) {
    let mut patience = Instant::now() + PATIENCE;
    loop {
        let before = saw.lock().unwrap().last_seq();
        saw.lock().unwrap().connections += 1;
        match by {
            By::Sse => sse(address, &turn, &saw).await,
            By::WebSocket => websocket(address, &turn, &saw).await,
        };
        let now = saw.lock().unwrap().clone();
        if now.has_ended() || now.strange.is_some() {
            return;
        }
        if now.last_seq() > before {
            patience = Instant::now() + PATIENCE;
        }
        if Instant::now() > patience {
            saw.lock().unwrap().strange = Some(format!("nothing behind event {before}"));
            return;
        }
        // The server is dead or starting; an immediate reconnect would only find its port closed.
        sleep(Duration::from_millis(25)).await;
    }
}

fn take(saw: &Mutex<Saw>, event: Value) {
    saw.lock().unwrap().events.push(event);
}

fn strange(saw: &Mutex<Saw>, what: String) {
    saw.lock().unwrap().strange = Some(what);
}

/// A client that ignores the machine's proxy settings.
pub fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap()
}

async fn sse(address: SocketAddr, turn: &str, saw: &Mutex<Saw>) -> Option<()> {
    let after = saw.lock().unwrap().last_seq();
    let url = format!("http://{address}/v1/turns/{turn}/events");
    let answer = client().get(url).header("last-event-id", after.to_string()).send().await.ok()?;
    match answer.status().as_u16() {
        200 => {}
        // Not yet ready, or stopping.
        503 => return None,
        status => {
            strange(saw, format!("status {status} for event {after} of {turn}"));
            return None;
        }
    }
    let mut body = answer.bytes_stream();
    let mut text = Vec::new();
    while let Some(Ok(piece)) = body.next().await {
        text.extend_from_slice(&piece);
        while let Some(end) = text.windows(2).position(|end| end == b"\n\n") {
            let frame: Vec<u8> = text.drain(..end + 2).collect();
            let frame = String::from_utf8(frame).ok()?;
            let Some(data) = frame.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
            let event: Value = serde_json::from_str(data).ok()?;
            match frame.lines().find_map(|line| line.strip_prefix("id: ")) {
                Some(id) if event["seq"].as_u64() == id.parse().ok() => take(saw, event),
                _ => strange(saw, frame),
            }
        }
    }
    Some(())
}

async fn websocket(address: SocketAddr, turn: &str, saw: &Mutex<Saw>) -> Option<()> {
    let after = saw.lock().unwrap().last_seq();
    let mut request = format!("ws://{address}/v1/ws").into_client_request().ok()?;
    request.headers_mut().insert("sec-websocket-protocol", "throughline.v1".parse().ok()?);
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.ok()?;
    let subscribe = json!({ "op": "subscribe", "turn_id": turn, "after": after });
    socket.send(Message::text(subscribe.to_string())).await.ok()?;
    while let Some(Ok(message)) = socket.next().await {
        let Message::Text(text) = message else { continue };
        let said: Value = serde_json::from_str(&text).ok()?;
        if said["seq"].is_u64() {
            let is_last = said["type"] == "stream_end";
            take(saw, said);
            if is_last {
                break;
            }
        } else if said["op"] == "error" || said["type"] == "resync" {
            strange(saw, text.to_string());
            break;
        } else if said["op"] == "unsubscribed" {
            break;
        }
    }
    Some(())
}
