//! Viewers that lose their connections, reconnect together, do not read, or are two: real sockets, one
//! server.
//!
//! The long forms, against the program itself, with memory and latency measured, are `crates/cli/tests/crowd`.

mod lazy;
mod leaving;
mod reconnect;
mod storm;
mod tabs;

use crate::support::{Events, Socket, TestServer};
use serde_json::Value;

/// Way in which a viewer names its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// `Last-Event-ID`, as browsers do.
    Header,
    /// `?after=`
    Query,
    /// `subscribe` on a WebSocket.
    Socket,
}

const WAYS: [By; 3] = [By::Header, By::Query, By::Socket];

/// An open view of a turn. Dropping it is losing the connection.
enum View {
    Stream(Events),
    Socket(Box<Socket>),
    /// The turn is over: no more events follow.
    Over,
}

impl View {
    /// Connects anew with the number of the last event that was seen.
    async fn connect_after(server: &TestServer, turn: &str, by: By, after: u64) -> Self {
        if by == By::Socket {
            let mut socket = Socket::connect(server).await;
            let op = serde_json::json!({"op": "subscribe", "turn_id": turn, "after": after});
            socket.send(op).await;
            assert_eq!(socket.next().await.unwrap()["op"], "subscribed");
            return Self::Socket(Box::new(socket));
        }
        let (path, client) = (format!("/v1/turns/{turn}/events"), server.client());
        let request = match by {
            By::Query => client.get(server.url(&format!("{path}?after={after}"))),
            _ => client.get(server.url(&path)).header("last-event-id", after),
        };
        let events = Events::of(request.send().await.unwrap());
        match events.status {
            200 => Self::Stream(events),
            204 => Self::Over,
            status => panic!("status {status} behind {after}"),
        }
    }

    /// The next event, as in the log; `None` after the last one.
    async fn next(&mut self) -> Option<Value> {
        match self {
            Self::Over => None,
            Self::Stream(events) => {
                let event = events.next().await?;
                let seq = event.data["seq"].as_u64().or(event.data["last_seq"].as_u64());
                assert_eq!(seq, Some(event.id));
                Some(event.data)
            }
            Self::Socket(socket) => {
                let said = socket.next().await.expect("a message");
                // After an error no more events would follow.
                assert_ne!(said["op"], "error", "{said}");
                (said["op"] != "unsubscribed").then_some(said)
            }
        }
    }

    async fn rest(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

/// The log of a turn, as one who never lost the connection sees it.
async fn log(server: &TestServer, turn: &str) -> Vec<Value> {
    View::connect_after(server, turn, By::Query, 0).await.rest().await
}

/// The message that events add up to.
fn fold(events: &[Value]) -> throughline::AssistantMessage {
    let read = |event: &Value| serde_json::from_value::<throughline::Event>(event.clone()).unwrap();
    throughline::AssistantMessage::from_events(&events.iter().map(read).collect::<Vec<_>>())
}

fn seq(event: &Value) -> u64 {
    event["seq"].as_u64().unwrap()
}
