//! Viewers that read: the events that they see, and their delay.

use crate::measure::micros;
use crate::server::{PATIENCE, Server};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Transport of a viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Sse,
    WebSocket,
}

/// Events that a viewer has seen.
#[derive(Clone, Debug, Default)]
pub struct Saw {
    pub seqs: Vec<u64>,
    /// Time at which each event was created, in milliseconds since 1970.
    pub times: Vec<i64>,
    /// Latency of the model's text, in microseconds.
    pub latencies_us: Vec<u64>,
    /// Text of the model.
    pub text: String,
    pub ended: bool,
    /// Time at which the first event arrived.
    pub first_at: Option<Instant>,
}

/// Fields of an event that the viewer reads.
#[derive(Deserialize)]
struct Seen<'a> {
    #[serde(borrow, rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    seq: Option<u64>,
    #[serde(default)]
    timestamp: i64,
    #[serde(borrow, default)]
    text: std::borrow::Cow<'a, str>,
}

impl Saw {
    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.seqs.last().copied().unwrap_or(0)
    }

    /// True if each event arrived once and in order. On a busy machine a viewer may lag, and then gets merged
    /// deltas: their text must be compared, too.
    pub fn is_in_order(&self) -> bool {
        if crate::is_long() {
            return self.seqs.iter().copied().eq(1..=self.last());
        }
        self.seqs.is_sorted_by(|one, next| one < next)
    }

    /// Adds an event, as JSON. Invalid JSON is skipped.
    pub fn take(&mut self, event: &str) {
        let Ok(Seen { kind, seq: Some(seq), timestamp, text }) = serde_json::from_str(event) else { return };
        self.first_at.get_or_insert_with(Instant::now);
        self.seqs.push(seq);
        self.times.push(timestamp);
        self.ended |= kind == "stream_end";
        if kind == "content_delta" {
            let said = text.rsplit('@').next().and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
            self.latencies_us.extend(said.map(|said| micros().saturating_sub(said)));
            self.text.push_str(&text);
        }
    }

    /// Appends the events of a later connection.
    pub fn append(&mut self, more: Saw) {
        self.seqs.extend(more.seqs);
        self.times.extend(more.times);
        self.latencies_us.extend(more.latencies_us);
        self.text.push_str(&more.text);
        self.ended |= more.ended;
        self.first_at = self.first_at.or(more.first_at);
    }
}

/// Requests the events of a turn, after one.
pub async fn open(server: &Server, turn: &str, after: u64) -> reqwest::Response {
    let url = format!("http://{}/v1/turns/{turn}/events", server.address);
    let request = server.client.get(url).header("last-event-id", after.to_string());
    timeout(PATIENCE, request.send()).await.expect("an answer in time").unwrap()
}

/// Watches up to this event, or to the end, and then loses the connection.
pub async fn watch(server: &Server, turn: &str, by: By, after: u64, up_to: u64) -> Saw {
    let saw = match by {
        By::Sse => sse(server, turn, after, up_to),
        By::WebSocket => {
            return timeout(PATIENCE, websocket(server, turn, after, up_to)).await.expect("in time");
        }
    };
    timeout(PATIENCE, saw).await.expect("in time")
}

async fn sse(server: &Server, turn: &str, after: u64, up_to: u64) -> Saw {
    let answer = open(server, turn, after).await;
    assert_eq!(answer.status(), 200);
    let (mut saw, mut body, mut text) = (Saw::default(), answer.bytes_stream(), Vec::new());
    while let Some(piece) = body.next().await {
        text.extend_from_slice(&piece.expect("the stream is not cut"));
        let mut done = 0;
        while let Some(end) = text[done..].iter().position(|byte| *byte == b'\n') {
            let line = &text[done..done + end];
            done += end + 1;
            if let Some(data) = line.strip_prefix(b"data: ") {
                saw.take(std::str::from_utf8(data).unwrap());
                if saw.ended || saw.last() >= up_to {
                    return saw;
                }
            }
        }
        text.drain(..done);
    }
    saw
}

async fn websocket(server: &Server, turn: &str, after: u64, up_to: u64) -> Saw {
    let mut request = format!("ws://{}/v1/ws", server.address).into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "throughline.v1".parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::connect_async(request).await.unwrap();
    let subscribe = json!({"op": "subscribe", "turn_id": turn, "after": after});
    socket.send(Message::text(subscribe.to_string())).await.unwrap();
    let mut saw = Saw::default();
    while let Some(message) = socket.next().await {
        let Message::Text(text) = message.expect("the socket is not cut") else { continue };
        assert!(!text.starts_with("{\"error\""), "{text}");
        saw.take(&text);
        if saw.ended || saw.last() >= up_to {
            break;
        }
    }
    saw
}
