//! Reads an event stream as strictly as the strictest client: LF only, one line of data, ids that are numbers.

use super::PATIENCE;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio::time::timeout;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: u64,
    pub name: String,
    pub data: Value,
}

/// An open stream. Dropping it is closing the connection.
pub struct Events {
    pub status: u16,
    body: BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    /// Bytes and not text: a read may end in the middle of a character.
    buffer: Vec<u8>,
    /// Id and name of the last event that was read.
    last: Option<(u64, String)>,
    /// Comments and `retry` fields so far.
    pub comments: Vec<String>,
    /// End of the stream, once it has come.
    pub broken: bool,
}

impl Events {
    pub fn of(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let body = response.bytes_stream().boxed();
        Self { status, body, buffer: Vec::new(), last: None, comments: Vec::new(), broken: false }
    }

    /// The next event; `None` at the end of the stream. Heartbeats are skipped, for a limited time.
    pub async fn next(&mut self) -> Option<Event> {
        let next = timeout(PATIENCE, self.next_at_last()).await;
        let next = next.unwrap_or_else(|_| panic!("no event in time behind {:?}", self.last));
        if let Some(event) = &next {
            self.last = Some((event.id, event.name.clone()));
        }
        next
    }

    async fn next_at_last(&mut self) -> Option<Event> {
        loop {
            while let Some(frame) = self.frame() {
                assert!(!frame.contains('\r'), "LF only: {frame:?}");
                if let Some(event) = self.read(frame.trim_end_matches('\n')) {
                    return Some(event);
                }
            }
            match self.body.next().await {
                Some(Ok(bytes)) => self.buffer.extend_from_slice(&bytes),
                Some(Err(_)) => {
                    self.broken = true;
                    return None;
                }
                None => {
                    assert_eq!(String::from_utf8_lossy(&self.buffer), "", "a whole frame");
                    return None;
                }
            }
        }
    }

    /// Waits until the server has sent this many comments after the opening, while no event arrives.
    pub async fn alive(&mut self, times: usize) -> Vec<String> {
        let opening = self.comments.len();
        while self.comments.len() < opening + times {
            let bytes = timeout(PATIENCE, self.body.next()).await.expect("a sign of life in time");
            self.buffer.extend_from_slice(&bytes.unwrap().unwrap());
            while let Some(frame) = self.frame() {
                assert_eq!(self.read(frame.trim_end_matches('\n')), None, "only signs of life");
            }
        }
        self.comments.split_off(opening)
    }

    /// Takes the first frame that is whole, with its empty line.
    fn frame(&mut self) -> Option<String> {
        let end = self.buffer.windows(2).position(|two| two == b"\n\n")? + 2;
        Some(String::from_utf8(self.buffer.drain(..end).collect()).expect("UTF-8"))
    }

    fn read(&mut self, frame: &str) -> Option<Event> {
        let (mut id, mut name, mut data) = (None, None, None);
        for line in frame.split('\n') {
            match line.split_once(": ") {
                Some(("id", text)) => assert!(id.replace(text.parse().unwrap()).is_none(), "{frame}"),
                Some(("event", text)) => assert!(name.replace(text.to_owned()).is_none(), "{frame}"),
                Some(("data", text)) => {
                    assert!(data.replace(serde_json::from_str(text).unwrap()).is_none(), "{frame}")
                }
                _ => self.comments.push(line.to_owned()),
            }
        }
        let data: Value = data?;
        // What is in no log has no number.
        assert_eq!(id.is_some(), !data["seq"].is_null() || !data["last_seq"].is_null(), "{frame}");
        let event = Event { id: id.unwrap_or_default(), name: name.expect("a name"), data };
        assert_eq!(event.data["type"], event.name.as_str());
        Some(event)
    }

    /// All events up to the end of the stream.
    pub async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    /// The events up to the first of this name.
    pub async fn until(&mut self, name: &str) -> Vec<Event> {
        self.until_any(&[name]).await
    }

    /// The events up to the first that has one of these names.
    pub async fn until_any(&mut self, names: &[&str]) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            let found = names.contains(&event.name.as_str());
            events.push(event);
            if found {
                return events;
            }
        }
        panic!("none of {names:?} in {events:#?}");
    }
}
