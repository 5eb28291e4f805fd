//! Whole bodies to payloads: server-sent events, JSON lines, AWS event-stream frames.

use super::surrogates::parse;
use serde_json::Value;

/// One event of a body.
#[derive(Debug)]
pub enum Event {
    /// A JSON payload with the name of its event.
    Json(String, Value),
    /// `[DONE]`.
    Done,
    /// An error that is not JSON data of the API: an `error:` field, a plain-text error event, an exception frame.
    Error(String),
}

/// Kind of a body.
pub enum Body {
    Events(Vec<Event>),
    /// One JSON document instead of a stream.
    Document(Value),
    /// Something else instead of a stream (a proxy's error page).
    Junk(String),
}

/// Reads server-sent events, or what came instead of them.
pub fn sse(body: &[u8]) -> Body {
    let text = String::from_utf8_lossy(body);
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    let start = text.trim_start();
    if start.starts_with('<') {
        return Body::Junk(without_tags(start));
    }
    if start.starts_with(['{', '[']) {
        return parse(start).map_or_else(|| Body::Junk(start.to_owned()), Body::Document);
    }
    let mut events = Vec::new();
    let (mut name, mut data) = (String::new(), Vec::new());
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    let ends_open = lines.last().is_some_and(|last| !last.is_empty());
    if ends_open {
        lines.push("");
    }
    let last = lines.len();
    for (number, line) in lines.into_iter().enumerate() {
        if line.is_empty() {
            let cut_off = number + 1 == last;
            event(&std::mem::take(&mut name), std::mem::take(&mut data), cut_off, &mut events);
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value.to_owned(),
            "data" => data.push(value.to_owned()),
            "error" => events.push(Event::Error(value.to_owned())),
            _ => {}
        }
    }
    Body::Events(events)
}

/// The text that a browser would show of a page, more or less.
fn without_tags(page: &str) -> String {
    let text: Vec<&str> =
        page.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
    text.concat().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn event(name: &str, data: Vec<String>, cut_off: bool, events: &mut Vec<Event>) {
    let joined = data.join("\n");
    if joined.trim().is_empty() {
        return;
    }
    if joined.trim() == "[DONE]" {
        events.push(Event::Done);
    } else if let Some(value) = parse(&joined) {
        events.push(Event::Json(name.to_owned(), value));
    } else if name == "error" && !cut_off {
        events.push(Event::Error(joined));
    } else if data.len() > 1 {
        for line in data {
            event(name, vec![line], cut_off, events);
        }
    }
}

/// One JSON document per line; invalid lines are skipped.
pub fn lines(body: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(body);
    text.strip_prefix('\u{FEFF}')
        .unwrap_or(&text)
        .split(['\n', '\r'])
        .filter_map(|line| parse(line.trim()))
        .collect()
}

/// AWS event-stream frames: kind (`event` or `exception`), type and payload. Stops at the first frame that is cut or
/// whose checksums do not fit.
pub fn event_stream(body: &[u8]) -> Vec<(String, String, Vec<u8>)> {
    let mut frames = Vec::new();
    let mut rest = body;
    while rest.len() >= 16 {
        let total = number(&rest[0..4]);
        let headers = number(&rest[4..8]);
        if total < 16 || total > rest.len() || headers + 16 > total {
            break;
        }
        let frame = &rest[..total];
        if crc(&frame[..8]) != number(&frame[8..12])
            || crc(&frame[..total - 4]) != number(&frame[total - 4..])
        {
            break;
        }
        let header = |name: &str| string_header(&frame[12..12 + headers], name);
        let kind = header(":message-type").unwrap_or_default();
        let name =
            header(":event-type").or(header(":exception-type")).or(header(":error-code")).unwrap_or_default();
        frames.push((kind, name, frame[12 + headers..total - 4].to_vec()));
        rest = &rest[total..];
    }
    frames
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn string_header(mut headers: &[u8], wanted: &str) -> Option<String> {
    while !headers.is_empty() {
        let (name, rest) = headers[1..].split_at(usize::from(headers[0]));
        assert_eq!(rest[0], 7, "the corpus has string headers only");
        let length = number(&rest[1..3]);
        if name == wanted.as_bytes() {
            return Some(String::from_utf8_lossy(&rest[3..3 + length]).into_owned());
        }
        headers = &rest[3 + length..];
    }
    None
}

/// CRC-32 (IEEE), bit by bit.
fn crc(bytes: &[u8]) -> usize {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc as usize
}

/// Base64 without a table.
pub fn base64(text: &str) -> Vec<u8> {
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut out) = (0u32, 0, Vec::new());
    for sextet in text.chars().filter_map(|c| alphabet.find(c)) {
        bits = (bits << 6 | sextet as u32) & 0xFFFF;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}
