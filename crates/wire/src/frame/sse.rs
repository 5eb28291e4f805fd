//! Server-sent events by the rules of the HTML standard (§9.2.6), for any cut of the bytes.
//!
//! Pull style: the caller keeps its slice and asks for the next item, so that it always knows which bytes made it.
//! Extensions of model servers to the standard are not decided here but handed out: an unterminated last event
//! ([`SseFramer::finish`]), fields of unknown names (`error:`), and the lines of a multi-line `data`.

use crate::limits::DecodeLimits;
use std::borrow::Cow;

/// One thing found in the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum SseItem<'a> {
    /// An event, dispatched by its blank line.
    Event(SseEvent<'a>),
    /// A comment: a sign of life.
    Comment,
    /// A field that the standard does not know; some servers report errors so (`error: …`).
    Unknown {
        /// Offset of its line in the stream.
        offset: u64,
        /// Name of the field.
        name: Cow<'a, str>,
        /// Value of the field.
        value: Cow<'a, str>,
    },
    /// A line or event was over its limit and is dropped.
    TooLarge {
        /// Offset of the line in the stream.
        offset: u64,
        /// Name of the limit.
        limit: &'static str,
    },
}

impl SseItem<'_> {
    /// Offset in the stream: of an event's first line, or of any other item's line. Comments have none.
    pub fn offset(&self) -> u64 {
        match self {
            SseItem::Event(event) => event.offset,
            SseItem::Comment => 0,
            SseItem::Unknown { offset: at, .. } | SseItem::TooLarge { offset: at, .. } => *at,
        }
    }
}

/// A dispatched event.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// Offset in the stream of its first line.
    pub offset: u64,
    /// Value of `event:`, empty if there was none (the standard's default is `message`).
    pub event: &'a str,
    /// All `data:` lines joined by LF. Bytes that are not UTF-8 are U+FFFD.
    pub data: Cow<'a, str>,
    /// `id:` of this event or the last one before it.
    pub id: &'a str,
}

/// Cuts a stream into events.
///
/// ```
/// use throughline_wire::DecodeLimits;
/// use throughline_wire::frame::{SseFramer, SseItem};
///
/// let mut framer = SseFramer::new(&DecodeLimits::default());
/// let mut events = Vec::new();
/// for mut piece in [&b"event: ping\nda"[..], &b"ta: {}\n\n"[..]] {
///     while let Some(item) = framer.next(&mut piece) {
///         if let SseItem::Event(event) = item {
///             events.push((event.event.to_owned(), event.data.into_owned()));
///         }
///     }
/// }
/// assert_eq!(events, [("ping".to_owned(), "{}".to_owned())]);
/// ```
#[derive(Debug)]
pub struct SseFramer {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    event: String,
    id: String,
    retry: Option<u64>,
    after_cr: bool,
    bom_matched: usize,
    overlong_line: bool,
    overlong_event: bool,
    dispatched: bool,
    /// Offsets in the stream: of the next byte, of the line being read, of the event's first line.
    position: u64,
    line_at: u64,
    event_at: Option<u64>,
    line_bytes_max: usize,
    event_bytes_max: usize,
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

impl SseFramer {
    /// A framer at the beginning of a stream.
    pub fn new(limits: &DecodeLimits) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            event: String::new(),
            id: String::new(),
            retry: None,
            after_cr: false,
            bom_matched: 0,
            overlong_line: false,
            overlong_event: false,
            dispatched: false,
            position: 0,
            line_at: 0,
            event_at: None,
            line_bytes_max: limits.line_bytes_max,
            event_bytes_max: limits.event_bytes_max,
        }
    }

    /// The LF of a CRLF whose CR ended the last line; call before [`is_between_events`](Self::is_between_events).
    pub fn skip_line_feed(&mut self, input: &mut &[u8]) {
        if let Some(first) = input.first()
            && std::mem::take(&mut self.after_cr)
            && *first == b'\n'
        {
            *input = &input[1..];
            self.position += 1;
        }
    }

    /// Advances over this many bytes, whole events that the caller has read itself.
    pub fn skip(&mut self, bytes: usize) {
        self.position += bytes as u64;
    }

    /// True if no event is partially read: the next byte begins a new one.
    pub fn is_between_events(&self) -> bool {
        self.line.is_empty()
            && self.event_at.is_none()
            && !self.has_data
            && !self.after_cr
            && !self.overlong_line
            && !self.overlong_event
            && (self.event.is_empty() || self.dispatched)
            && self.bom_matched == BOM.len()
    }

    /// The latest reconnection time of a `retry:` field, in milliseconds.
    pub fn retry(&self) -> Option<u64> {
        self.retry
    }

    /// The last event id that a dispatched event carried.
    pub fn last_event_id(&self) -> &str {
        &self.id
    }

    /// The next item in `input`, which is advanced past the bytes read; `None` when it is used up.
    pub fn next<'a>(&'a mut self, input: &mut &[u8]) -> Option<SseItem<'a>> {
        if std::mem::take(&mut self.dispatched) {
            self.event.clear();
            self.data.clear();
        }
        while !input.is_empty() {
            if self.bom_matched < BOM.len() && !self.skip_bom(input) {
                return None;
            }
            self.skip_line_feed(input);
            if input.is_empty() {
                return None;
            }
            if self.line.is_empty() && !self.overlong_line {
                self.line_at = self.position;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', input) else {
                self.carry(input);
                self.position += input.len() as u64;
                *input = &[];
                return None;
            };
            let (line, rest) = (&input[..end], &input[end + 1..]);
            self.position += end as u64 + 1;
            self.after_cr = input[end] == b'\r';
            *input = rest;
            // The borrow checker cannot see that only one arm's borrow leaves the loop, so lines are judged first.
            match self.take_line(line) {
                LineEffect::Nothing => {}
                LineEffect::Comment => return Some(SseItem::Comment),
                LineEffect::TooLarge(limit) => {
                    return Some(SseItem::TooLarge { offset: self.line_at, limit });
                }
                LineEffect::Unknown(name, value) => {
                    let (name, value) = (Cow::Owned(name), Cow::Owned(value));
                    return Some(SseItem::Unknown { offset: self.line_at, name, value });
                }
                LineEffect::Dispatch => {
                    self.dispatched = true;
                    return Some(SseItem::Event(self.take_event()));
                }
            }
        }
        None
    }

    /// The bytes have ended. The standard drops an event without its blank line; real servers send such,
    /// so it is handed out for the caller to decide.
    pub fn finish(&mut self) -> Option<SseEvent<'_>> {
        if std::mem::take(&mut self.dispatched) {
            self.event.clear();
            self.data.clear();
        }
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() && !self.overlong_line {
            self.take_line(&line);
        }
        (self.has_data && !self.overlong_event).then(|| self.take_event())
    }

    fn take_event(&mut self) -> SseEvent<'_> {
        self.has_data = false;
        let offset = self.event_at.take().unwrap_or(self.line_at);
        SseEvent { offset, event: &self.event, data: String::from_utf8_lossy(&self.data), id: &self.id }
    }

    /// Drops a byte-order mark at the very beginning; false while more bytes are needed to know.
    fn skip_bom(&mut self, input: &mut &[u8]) -> bool {
        while self.bom_matched < BOM.len() {
            match input.first() {
                None => return false,
                Some(byte) if *byte == BOM[self.bom_matched] => {
                    self.bom_matched += 1;
                    self.position += 1;
                    *input = &input[1..];
                }
                Some(_) => {
                    // What looked like its beginning was data.
                    self.line.extend_from_slice(&BOM[..self.bom_matched]);
                    self.bom_matched = BOM.len();
                }
            }
        }
        true
    }

    fn carry(&mut self, bytes: &[u8]) {
        if self.overlong_line || self.line.len() + bytes.len() > self.line_bytes_max {
            self.overlong_line = true;
            self.line.clear();
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn take_line(&mut self, line: &[u8]) -> LineEffect {
        if std::mem::take(&mut self.overlong_line) || self.line.len() + line.len() > self.line_bytes_max {
            self.line.clear();
            self.overlong_event = true;
            return LineEffect::TooLarge("line_bytes_max");
        }
        if self.line.is_empty() {
            return self.field(line);
        }
        self.line.extend_from_slice(line);
        let whole = std::mem::take(&mut self.line);
        let taken = self.field(&whole);
        self.line = whole;
        self.line.clear();
        taken
    }

    fn field(&mut self, line: &[u8]) -> LineEffect {
        if line.is_empty() {
            return self.blank_line();
        }
        if line[0] != b':' {
            self.event_at.get_or_insert(self.line_at);
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(0) => return LineEffect::Comment,
            Some(colon) => {
                (&line[..colon], line[colon + 1..].strip_prefix(b" ").unwrap_or(&line[colon + 1..]))
            }
            None => (line, &[][..]),
        };
        match name {
            b"data" => {
                if self.data.len() + value.len() > self.event_bytes_max {
                    self.data.clear();
                    if !std::mem::replace(&mut self.overlong_event, true) {
                        return LineEffect::TooLarge("event_bytes_max");
                    }
                }
                if !self.overlong_event {
                    if std::mem::replace(&mut self.has_data, true) {
                        self.data.push(b'\n');
                    }
                    self.data.extend_from_slice(value);
                }
            }
            b"event" => {
                self.event.clear();
                self.event.push_str(&String::from_utf8_lossy(value));
            }
            b"id" if !value.contains(&0) => {
                self.id.clear();
                self.id.push_str(&String::from_utf8_lossy(value));
            }
            b"id" => {}
            b"retry" => {
                if let Some(time) = std::str::from_utf8(value)
                    .ok()
                    .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
                    .and_then(|text| text.parse().ok())
                {
                    self.retry = Some(time);
                }
            }
            _ => {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                return LineEffect::Unknown(text(name), text(value));
            }
        }
        LineEffect::Nothing
    }

    fn blank_line(&mut self) -> LineEffect {
        if std::mem::take(&mut self.overlong_event) || !self.has_data {
            self.has_data = false;
            self.data.clear();
            self.event.clear();
            self.event_at = None;
            return LineEffect::Nothing;
        }
        LineEffect::Dispatch
    }
}

/// Effect of a line.
enum LineEffect {
    Nothing,
    Comment,
    Unknown(String, String),
    TooLarge(&'static str),
    Dispatch,
}
