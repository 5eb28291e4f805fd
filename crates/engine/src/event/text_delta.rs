//! Text deltas, written and read in a single pass: a reply has hundreds of them, and they are on the path of
//! every token.
//!
//! Bytes and meaning equal those of the derived code, which handles every other event, and also text deltas
//! in another field order.

use super::{Event, EventKind};
use crate::id::{EventSeq, TurnId, UnixMillis};
use serde::Serialize;
use throughline_wire::CallId;

impl Event {
    /// Reads an event whose kind the log names. Without the kind the type may come after the fields, and
    /// reading has to scan them twice.
    ///
    /// # Errors
    ///
    /// The JSON is not an event.
    pub fn from_json(kind: &str, json: &[u8]) -> serde_json::Result<Self> {
        from_json(kind, json).map_or_else(|| serde_json::from_slice(json), Ok)
    }

    /// The event as the log stores it.
    ///
    /// # Errors
    ///
    /// None known: every value in an event can be serialized.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        to_json(self).map_or_else(|| serde_json::to_vec(self), Ok)
    }
}

/// Type name and text of such an event.
fn text_of(kind: &EventKind) -> Option<(&'static str, &str)> {
    match kind {
        EventKind::ContentDelta { text } => Some(("content_delta", text)),
        EventKind::Thinking { text } => Some(("thinking", text)),
        _ => None,
    }
}

/// The other way round.
fn kind_of(name: &str) -> Option<fn(String) -> EventKind> {
    match name {
        "content_delta" => Some(|text| EventKind::ContentDelta { text }),
        "thinking" => Some(|text| EventKind::Thinking { text }),
        _ => None,
    }
}

/// The event as the derived code writes it; `None` for any other kind.
fn to_json(event: &Event) -> Option<Vec<u8>> {
    let (name, text) = text_of(&event.kind)?;
    let mut json = Vec::with_capacity(160 + text.len());
    json.extend_from_slice(b"{\"turn_id\":");
    string(event.turn_id.as_str(), &mut json);
    number(b",\"seq\":", &event.seq, &mut json);
    number(b",\"timestamp\":", &event.timestamp, &mut json);
    if let Some(step) = event.step {
        number(b",\"step\":", &step, &mut json);
    }
    if let Some(block) = event.block {
        number(b",\"block\":", &block, &mut json);
    }
    if let Some(call) = &event.tool_id {
        json.extend_from_slice(b",\"tool_id\":");
        string(call.as_str(), &mut json);
    }
    json.extend_from_slice(b",\"type\":\"");
    json.extend_from_slice(name.as_bytes());
    json.extend_from_slice(b"\",\"text\":");
    string(text, &mut json);
    json.push(b'}');
    Some(json)
}

fn string(text: &str, json: &mut Vec<u8>) {
    let is_plain = text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    if is_plain {
        json.push(b'"');
        json.extend_from_slice(text.as_bytes());
        json.push(b'"');
    } else {
        // Writing a string to memory does not fail.
        let _ = serde_json::to_writer(json, text);
    }
}

fn number(name: &[u8], number: &impl Serialize, json: &mut Vec<u8>) {
    json.extend_from_slice(name);
    // Neither does this.
    let _ = serde_json::to_writer(json, number);
}

/// Exactly what [`to_json`] writes; `None`: another kind, another order, fields of a later release, or no event at all.
fn from_json(kind: &str, json: &[u8]) -> Option<Event> {
    let kind_of_text = kind_of(kind)?;
    let mut tail = JsonTail(std::str::from_utf8(json).ok()?);
    tail.skip("{\"turn_id\":")?;
    let turn_id = TurnId::new(tail.plain_string()?);
    tail.skip(",\"seq\":")?;
    let seq = EventSeq(tail.number()?);
    tail.skip(",\"timestamp\":")?;
    let timestamp = UnixMillis::try_from(tail.number()?).ok()?;
    let step = tail.optional_number(",\"step\":")?;
    let block = tail.optional_number(",\"block\":")?;
    let tool_id = match tail.skip(",\"tool_id\":") {
        Some(()) => Some(CallId::new(tail.plain_string()?)),
        None => None,
    };
    tail.skip(",\"type\":\"")?;
    tail.skip(kind)?;
    tail.skip("\",\"text\":")?;
    let text_json = tail.0.strip_suffix('}')?;
    let text = match (JsonTail(text_json).plain_string(), text_json.len()) {
        (Some(text), length) if text.len() + 2 == length => text.to_owned(),
        // Fails if the field holds more than one string.
        _ => serde_json::from_str(text_json).ok()?,
    };
    Some(Event { turn_id, seq, timestamp, step, block, tool_id, kind: kind_of_text(text) })
}

struct JsonTail<'a>(&'a str);

impl<'a> JsonTail<'a> {
    fn skip(&mut self, expected: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// A string without escapes.
    fn plain_string(&mut self) -> Option<&'a str> {
        let body = self.0.strip_prefix('"')?;
        let end = body.bytes().position(|byte| byte < b' ' || byte == b'"' || byte == b'\\')?;
        let (text, tail) = (body.get(..end)?, body.get(end..)?);
        self.0 = tail.strip_prefix('"')?;
        Some(text)
    }

    fn number(&mut self) -> Option<u64> {
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = self.0.split_at(digits);
        // JSON knows no number with a zero in front.
        let is_json = number == "0" || !number.starts_with('0');
        self.0 = tail;
        number.parse().ok().filter(|_| is_json)
    }

    /// Outer `None`: it is there and no number of 32 bits.
    fn optional_number(&mut self, name: &str) -> Option<Option<u32>> {
        match self.skip(name) {
            Some(()) => Some(Some(u32::try_from(self.number()?).ok()?)),
            None => Some(None),
        }
    }
}
