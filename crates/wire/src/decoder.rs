//! One step's bytes to [`StepEvent`]s: framing, the rules that model servers add to it, and the dialect.

mod body;
mod fast;

use crate::dialect::{
    ArgumentNames, ArgumentRenamer, Dialect, DialectDecoder, FrameKind, FramingKind, PayloadFrame,
};
use crate::frame::{
    EventStreamFramer, EventStreamItem, JsonArrayFramer, LineFramer, LineItem, SseFramer, SseItem,
};
use crate::json::JsonRef;
use crate::limits::DecodeLimits;
use crate::profile::UpstreamProfile;
use crate::step::{StepState, StepWriter, error_of, event_words_of, excerpt_of};
use crate::text_calls::CallFormat;
use crate::vocabulary::{ProblemKind, StepEvent, UpstreamError};
use fast::FastPath;
use std::borrow::Cow;

/// Handling of `<think>…</think>` in the text: a separate payloads that can split it off as thinking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkMode {
    /// Text stays verbatim.
    #[default]
    Verbatim,
    /// Split into thinking and text, for any cut of the tags.
    Split,
}

/// Options of a decoder.
#[derive(Clone, Debug, Default)]
pub struct DecodeOptions {
    /// Bounds of the decoder.
    pub limits: DecodeLimits,
    /// Quirks of the upstream.
    pub profile: UpstreamProfile,
    /// Handling of `<think>` tags.
    pub think: ThinkMode,
    /// Names of the offered tools: a call is announced as soon as its name equals one.
    pub offered: Vec<String>,
    /// The form in which the model calls tools.
    pub calls: CallFormat,
    /// Arguments that have other names on the wire than in the tool's definition: the events have the tool's.
    pub argument_names: ArgumentNames,
}

/// Decodes one model step, pushed in pieces of any size: the events are the same for every cut, but for how text is
/// divided into fragments.
///
/// ```
/// use throughline_wire::{DecodeOptions, Dialect, ModelReply, StepDecoder};
///
/// let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// let mut decoder = StepDecoder::new(Dialect::OpenaiChat, DecodeOptions::default());
/// let mut reply = ModelReply::default();
/// for piece in body.chunks(7) {
///     decoder.push(piece, &mut |event| reply.apply(event));
/// }
/// decoder.finish(&mut |event| reply.apply(event));
/// assert_eq!(reply.text, "Hi");
/// ```
pub struct StepDecoder {
    framing: ActiveFramer,
    payloads: PayloadDecoder,
    fast: FastPath,
    limits: DecodeLimits,
    renamer: Option<ArgumentRenamer>,
    /// Bytes taken so far.
    bytes_read: u64,
}

/// The framer in use; a body is sniffed first, because errors come as plain JSON or HTML.
enum ActiveFramer {
    /// White space so far, with any byte-order mark.
    Undetected(Vec<u8>),
    Sse(Box<SseFramer>),
    Lines(LineFramer),
    EventStream(Box<EventStreamFramer>),
    /// A top-level JSON array, element by element.
    Array(JsonArrayFramer),
    /// Anything else: one document, read whole.
    Body(Vec<u8>),
}

/// Everything after the framing.
struct PayloadDecoder {
    dialect: Box<dyn DialectDecoder>,
    state: StepState,
    /// True once a payload was seen.
    saw_payload: bool,
    /// First line that is not part of a payload.
    stray_line: Option<String>,
    over: bool,
}

impl StepDecoder {
    /// A decoder for one step.
    pub fn new(dialect: Dialect, mut options: DecodeOptions) -> Self {
        let limits = options.limits;
        let renamer = ArgumentRenamer::new(std::mem::take(&mut options.argument_names));
        let framing = match dialect.framing() {
            FramingKind::Sse => ActiveFramer::Undetected(Vec::new()),
            FramingKind::Lines => ActiveFramer::Lines(LineFramer::new(&limits)),
            FramingKind::EventStream => ActiveFramer::EventStream(Box::new(EventStreamFramer::new(&limits))),
        };
        let decoder = dialect.decoder();
        Self {
            framing,
            fast: FastPath::new(decoder.ignored_members()),
            payloads: PayloadDecoder {
                dialect: decoder,
                state: StepState::new(dialect, options),
                saw_payload: false,
                stray_line: None,
                over: false,
            },
            limits,
            renamer,
            bytes_read: 0,
        }
    }

    /// Decodes the next bytes and emits their events.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(StepEvent<'_>)) {
        self.with_own_names(sink, |decoder, sink| decoder.push_bytes(bytes, sink));
    }

    /// With the tools' own names of arguments, where the wire has others.
    fn with_own_names(
        &mut self,
        sink: &mut dyn FnMut(StepEvent<'_>),
        decode: impl FnOnce(&mut Self, &mut dyn FnMut(StepEvent<'_>)),
    ) {
        match self.renamer.take() {
            None => decode(self, sink),
            Some(mut renamer) => {
                decode(self, &mut |event| renamer.pass(event, sink));
                self.renamer = Some(renamer);
            }
        }
    }

    fn push_bytes(&mut self, bytes: &[u8], sink: &mut dyn FnMut(StepEvent<'_>)) {
        if self.payloads.over {
            return;
        }
        let room = self.limits.step_bytes_max.saturating_sub(self.bytes_read);
        let fits = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        self.frame_bytes(&bytes[..fits], sink);
        self.bytes_read += fits as u64;
        if fits < bytes.len() && !self.payloads.over {
            let mut step = StepWriter::new(&mut self.payloads.state, sink);
            step.problem(ProblemKind::LimitReached { limit: "step_bytes_max".to_owned() }, "");
            step.fail(UpstreamError {
                message: format!("the reply is longer than {} bytes", self.limits.step_bytes_max),
                kind: Some("step_bytes_max".to_owned()),
                code: None,
            });
            self.payloads.end(sink);
        }
    }

    /// Decodes one event from a parsed JSON value instead of its bytes.
    pub(crate) fn push_value(&mut self, value: &serde_json::Value, sink: &mut dyn FnMut(StepEvent<'_>)) {
        self.with_own_names(sink, |decoder, sink| decoder.decode_value(value, sink));
    }

    fn decode_value(&mut self, value: &serde_json::Value, sink: &mut dyn FnMut(StepEvent<'_>)) {
        if self.payloads.over {
            return;
        }
        let text = value.to_string();
        self.bytes_read = self.bytes_read.saturating_add(text.len() as u64);
        if self.bytes_read > self.limits.step_bytes_max || text.len() > self.limits.event_bytes_max {
            self.payloads.too_large("event_bytes_max", sink);
            return self.payloads.end(sink);
        }
        self.payloads.state.begin_frame();
        self.payloads.decode_payload("", &text, sink);
    }

    /// The bytes have ended. Emits the rest and exactly one [`StepEvent::End`], unless `push` has done so already.
    pub fn finish(&mut self, sink: &mut dyn FnMut(StepEvent<'_>)) {
        self.with_own_names(sink, Self::decode_rest);
    }

    fn decode_rest(&mut self, sink: &mut dyn FnMut(StepEvent<'_>)) {
        if self.payloads.over {
            return;
        }
        let payloads = &mut self.payloads;
        payloads.state.offset = self.bytes_read;
        match &mut self.framing {
            ActiveFramer::Undetected(_) => {}
            ActiveFramer::Sse(framer) => {
                // An unterminated last event counts if its payload is whole JSON, else it is the cut (quirk S9).
                if let Some(event) = framer.finish() {
                    payloads.state.offset = event.offset;
                    payloads.finish_event(event.event, &event.data, sink);
                }
            }
            ActiveFramer::Lines(framer) => framer.finish(&mut |line| {
                if let LineItem::Text { text, .. } = line
                    && let Ok(text) = std::str::from_utf8(text)
                    && JsonRef::parse(text).is_ok()
                {
                    payloads.decode_payload("", text, sink);
                }
            }),
            ActiveFramer::EventStream(framer) => {
                framer.finish(&mut |item| payloads.handle_frame_item(item, sink))
            }
            ActiveFramer::Array(_) => {}
            ActiveFramer::Body(bytes) => payloads.decode_body(bytes, sink),
        }
        if !self.payloads.over {
            if self.payloads.state.finish_reason_ends() {
                StepWriter::new(&mut self.payloads.state, sink).complete();
            }
            self.payloads.end(sink);
        }
    }

    /// The step is over: `End` has been emitted and further bytes are ignored.
    pub fn is_over(&self) -> bool {
        self.payloads.over
    }

    fn frame_bytes(&mut self, bytes: &[u8], sink: &mut dyn FnMut(StepEvent<'_>)) {
        let base = self.bytes_read;
        let payloads = &mut self.payloads;
        // A binary frame begins with a zero byte; plain replies and errors come as JSON or HTML (quirk E3).
        let is_text = matches!(bytes.first(), Some(b'{' | b'[' | b'<'));
        if base == 0 && is_text && matches!(self.framing, ActiveFramer::EventStream(_)) {
            self.framing = ActiveFramer::Body(Vec::new());
        }
        match &mut self.framing {
            ActiveFramer::Undetected(before) => {
                let blank = bytes
                    .iter()
                    .take_while(|byte| byte.is_ascii_whitespace() || b"\xEF\xBB\xBF".contains(byte));
                let blank = blank.count();
                before.extend_from_slice(&bytes[..blank]);
                let Some(first) = bytes.get(blank) else {
                    if before.len() > self.limits.line_bytes_max {
                        self.framing = ActiveFramer::Sse(Box::new(SseFramer::new(&self.limits)));
                    }
                    return;
                };
                let framing = match first {
                    b'[' if payloads.dialect.streams_json_array() => {
                        ActiveFramer::Array(JsonArrayFramer::new(&self.limits))
                    }
                    b'{' | b'[' | b'<' => ActiveFramer::Body(Vec::new()),
                    _ => ActiveFramer::Sse(Box::new(SseFramer::new(&self.limits))),
                };
                let before = std::mem::take(before);
                self.framing = framing;
                // The white space belongs to the framing, too: it may hold a byte-order mark or blank lines.
                if matches!(self.framing, ActiveFramer::Sse(_)) {
                    self.bytes_read = base.saturating_sub((before.len() - blank) as u64);
                    self.frame_bytes(&before, sink);
                }
                self.bytes_read = base + blank as u64;
                self.frame_bytes(&bytes[blank..], sink);
                self.bytes_read = base;
            }
            ActiveFramer::Sse(framer) => {
                let mut rest = bytes;
                while !rest.is_empty() && !payloads.over {
                    framer.skip_line_feed(&mut rest);
                    let begins_event = framer.is_between_events();
                    if begins_event {
                        // Offsets name the event's first byte, for any cut of the bytes.
                        payloads.state.offset = base + (bytes.len() - rest.len()) as u64;
                        let fast = self.fast.try_decode(rest, &mut payloads.state, sink);
                        if fast > 0 {
                            framer.skip(fast);
                            rest = &rest[fast..];
                            continue;
                        }
                    }
                    let before = rest;
                    let Some(item) = framer.next(&mut rest) else { break };
                    payloads.state.begin_frame();
                    payloads.state.offset = item.offset();
                    match item {
                        SseItem::Event(event) => {
                            payloads.report_invalid_utf8(&event.data, sink);
                            payloads.decode_payload(event.event, &event.data, sink);
                            if begins_event && !payloads.over {
                                let raw = &before[..before.len() - rest.len()];
                                self.fast.learn(raw, &event.data, &payloads.state);
                            }
                        }
                        SseItem::Comment => {}
                        SseItem::Unknown { name, value, .. } => payloads.unknown_field(&name, &value, sink),
                        SseItem::TooLarge { limit, .. } => payloads.too_large(limit, sink),
                    }
                }
            }
            ActiveFramer::Lines(framer) => framer.push(bytes, &mut |line| match line {
                _ if payloads.over => {}
                LineItem::Text { offset, text } => {
                    payloads.state.offset = offset;
                    payloads.state.begin_frame();
                    let text = String::from_utf8_lossy(text);
                    payloads.report_invalid_utf8(&text, sink);
                    payloads.decode_payload("", &text, sink);
                }
                LineItem::TooLong => payloads.too_large("line_bytes_max", sink),
            }),
            ActiveFramer::EventStream(framer) => framer.push(bytes, &mut |item| {
                if !payloads.over {
                    payloads.handle_frame_item(item, sink);
                }
            }),
            ActiveFramer::Array(framer) => {
                let dropped = framer.dropped();
                framer.push(bytes, &mut |element| {
                    if !payloads.over {
                        let text = String::from_utf8_lossy(element);
                        payloads.report_invalid_utf8(&text, sink);
                        payloads.decode_payload("", &text, sink);
                    }
                });
                if framer.dropped() > dropped && !payloads.over {
                    payloads.too_large("event_bytes_max", sink);
                }
            }
            ActiveFramer::Body(body) => {
                if body.len() + bytes.len() > self.limits.event_bytes_max {
                    body.clear();
                    payloads.too_large("event_bytes_max", sink);
                    payloads.end(sink);
                } else {
                    body.extend_from_slice(bytes);
                }
            }
        }
    }
}

/// Writes the events of one payload. The name and the first arguments of a call are one item in many
/// payloads, and two events here: the first one has a copy of the arguments of the second, for viewers that
/// show the call.
fn write_payload<T>(
    state: &mut StepState,
    sink: &mut dyn FnMut(StepEvent<'_>),
    write: impl FnOnce(&mut StepWriter<'_>) -> T,
) -> T {
    let mut opened = None;
    // A call in a text has no separate item: its pieces are cut anywhere.
    let joins = !state.reads_calls_in_text();
    let mut join = |event: StepEvent<'_>| {
        if joins { join_call_head(&mut opened, event, sink) } else { sink(event) }
    };
    let result = write(&mut StepWriter::new(state, &mut join));
    if let Some(opened) = opened {
        sink(opened);
    }
    result
}

fn join_call_head(
    opened: &mut Option<StepEvent<'static>>,
    event: StepEvent<'_>,
    sink: &mut dyn FnMut(StepEvent<'_>),
) {
    match (opened.take(), &event) {
        (
            Some(StepEvent::CallOpened { slot, position, upstream_id, name, kind, .. }),
            StepEvent::CallArguments { slot: of, delta },
        ) if slot == *of => {
            let arguments = Some(Cow::Borrowed(&**delta));
            sink(StepEvent::CallOpened { slot, position, upstream_id, name, kind, arguments });
        }
        (Some(other), _) => sink(other),
        (None, _) => {}
    }
    if matches!(event, StepEvent::CallOpened { .. }) {
        *opened = Some(event.into_owned());
    } else {
        sink(event);
    }
}

impl PayloadDecoder {
    /// One payload of a text framing.
    fn decode_payload(&mut self, event: &str, data: &str, sink: &mut dyn FnMut(StepEvent<'_>)) {
        let trimmed = data.trim_matches(|c: char| c.is_ascii_whitespace());
        if trimmed.is_empty() {
            return;
        }
        self.saw_payload = true;
        if trimmed == "[DONE]" {
            return self.end_marker(sink);
        }
        match JsonRef::parse(trimmed) {
            Ok(json) => {
                self.decode_json(event, FrameKind::Data, &json, sink);
            }
            Err(error) => {
                // `data:` lines that are JSON one by one but not joined were events (quirk S4).
                let is_payload = |line: &str| line.trim_ascii() == "[DONE]" || JsonRef::parse(line).is_ok();
                if trimmed.contains('\n') && trimmed.split('\n').all(is_payload) {
                    for line in trimmed.split('\n') {
                        if !self.over {
                            self.decode_payload(event, line, sink);
                        }
                    }
                    return;
                }
                let mut step = StepWriter::new(&mut self.state, sink);
                if event == "error" {
                    step.fail(UpstreamError { message: trimmed.to_owned(), ..UpstreamError::default() });
                } else {
                    step.problem(ProblemKind::InvalidEvent, &format!("{error}: {}", excerpt_of(trimmed)));
                }
            }
        }
    }

    /// `[DONE]` ends a step where it is the dialect's own marker; elsewhere a proxy adds it even to a torn stream, so it
    /// counts after the dialect's own finish only, and is read over before.
    fn end_marker(&mut self, sink: &mut dyn FnMut(StepEvent<'_>)) {
        let mut step = StepWriter::new(&mut self.state, sink);
        if self.dialect.ends_with_done() || step.is_finished() {
            step.complete();
            self.end(sink);
        } else {
            step.problem(ProblemKind::ForeignEnd, "[DONE]");
        }
    }

    /// An event without its blank line. Of several lines that are documents one by one, only the last can be cut.
    fn finish_event(&mut self, event: &str, data: &str, sink: &mut dyn FnMut(StepEvent<'_>)) {
        let is_whole = |text: &str| text == "[DONE]" || JsonRef::parse(text).is_ok();
        if is_whole(data.trim()) {
            return self.decode_payload(event, data, sink);
        }
        for line in data.split('\n').take_while(|line| is_whole(line.trim())) {
            if !self.over {
                self.decode_payload(event, line, sink);
            }
        }
    }

    fn decode_json(
        &mut self,
        event: &str,
        kind: FrameKind,
        json: &JsonRef<'_>,
        sink: &mut dyn FnMut(StepEvent<'_>),
    ) {
        if self.over {
            return;
        }
        let error = match (kind, event) {
            (FrameKind::Exception, _) => Some(UpstreamError {
                message: json
                    .nonempty("message")
                    .map_or_else(|| excerpt_of(json.raw()), |text| text.into_owned()),
                kind: Some(event.to_owned()),
                code: None,
            }),
            (_, "error") => error_of(json).or_else(|| body::plain_error(json)),
            _ => error_of(json),
        };
        let words = if error.is_none() { event_words_of(event, json) } else { None };
        let dialect = &mut self.dialect;
        let is_over = write_payload(&mut self.state, sink, |step| {
            match words {
                // No dialect reads anything in it.
                Some(words) => step.last_words(words),
                // The rest of the payload counts as well: a finish reason may be next to the error (quirk
                // E1).
                None => dialect.decode_event(&PayloadFrame { event, kind, json }, step),
            }
            if let Some(error) = error {
                step.fail(error);
            }
            step.is_over()
        });
        if is_over {
            self.end(sink);
        }
    }

    fn handle_frame_item(&mut self, item: EventStreamItem<'_>, sink: &mut dyn FnMut(StepEvent<'_>)) {
        match item {
            EventStreamItem::Frame(frame) => {
                self.saw_payload = true;
                self.state.offset = frame.offset;
                let text = String::from_utf8_lossy(frame.payload);
                let (kind, event) = if frame.is_exception() {
                    (FrameKind::Exception, frame.exception_type)
                } else {
                    (FrameKind::Data, frame.event_type)
                };
                match (JsonRef::parse(&text), kind) {
                    (Ok(json), _) => self.decode_json(event, kind, &json, sink),
                    (Err(_), FrameKind::Exception) => {
                        let error_text = [frame.error_message, text.trim(), event]
                            .into_iter()
                            .find(|error_text| !error_text.is_empty());
                        StepWriter::new(&mut self.state, sink).fail(UpstreamError {
                            message: excerpt_of(error_text.unwrap_or("exception")),
                            kind: Some(event.to_owned()),
                            code: None,
                        });
                    }
                    (Err(error), FrameKind::Data) => {
                        StepWriter::new(&mut self.state, sink)
                            .problem(ProblemKind::InvalidEvent, &format!("{error}: {}", excerpt_of(&text)));
                    }
                }
            }
            EventStreamItem::Problem { kind, offset, message: what } => {
                self.state.offset = offset;
                let reached = match &kind {
                    ProblemKind::LimitReached { limit } => Some(limit.clone()),
                    _ => None,
                };
                StepWriter::new(&mut self.state, sink).problem(kind, what);
                if let Some(limit) = reached {
                    self.fail_at_limit(&limit, sink);
                }
            }
        }
    }

    /// A separate field `error: {...}` is an error (llama.cpp, GPUStack). Any other unknown field is
    /// retained, in case the body turns out not to be a stream.
    fn unknown_field(&mut self, name: &str, value: &str, sink: &mut dyn FnMut(StepEvent<'_>)) {
        if name == "error" {
            let error = match JsonRef::parse(value.trim()) {
                Ok(json) => error_of(&json).or_else(|| body::plain_error(&json)),
                Err(_) => Some(UpstreamError { message: value.to_owned(), ..UpstreamError::default() }),
            };
            self.saw_payload = true;
            if let Some(error) = error {
                StepWriter::new(&mut self.state, sink).fail(error);
            }
        } else if self.stray_line.is_none() {
            self.stray_line =
                Some(if value.is_empty() { name.to_owned() } else { format!("{name}: {value}") });
        }
    }

    fn too_large(&mut self, limit: &str, sink: &mut dyn FnMut(StepEvent<'_>)) {
        let kind = ProblemKind::LimitReached { limit: limit.to_owned() };
        StepWriter::new(&mut self.state, sink).problem(kind, "");
        self.fail_at_limit(limit, sink);
    }

    /// Fails the step at a limit: the dropped bytes may have held part of a call, so nothing can be trusted to be whole.
    fn fail_at_limit(&mut self, limit: &str, sink: &mut dyn FnMut(StepEvent<'_>)) {
        StepWriter::new(&mut self.state, sink).fail(UpstreamError {
            message: format!("the upstream's reply exceeds the limit {limit}"),
            kind: Some(limit.to_owned()),
            code: None,
        });
    }

    /// Text that had to be copied was not UTF-8. (U+FFFD that was sent as such is data.)
    #[allow(clippy::ptr_arg, reason = "whether it had to be copied is what is asked")]
    fn report_invalid_utf8(&mut self, data: &Cow<'_, str>, sink: &mut dyn FnMut(StepEvent<'_>)) {
        if let Cow::Owned(text) = data {
            StepWriter::new(&mut self.state, sink).problem(ProblemKind::InvalidUtf8, text);
        }
    }

    fn end(&mut self, sink: &mut dyn FnMut(StepEvent<'_>)) {
        let stray = self.stray_line.take().filter(|_| !self.saw_payload);
        let dialect = &mut self.dialect;
        write_payload(&mut self.state, sink, |step| {
            if let Some(message) = stray {
                step.fail(UpstreamError { message, ..UpstreamError::default() });
            }
            step.fail_by_last_words();
            dialect.finish(step);
            step.close();
        });
        self.over = true;
    }
}
