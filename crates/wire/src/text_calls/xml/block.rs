//! One `<tool_call>` block while it arrives: a JSON document, reported as a call as soon as its name is known.

use super::super::block_scanner::{
    BlockDecision, BlockGrammar, BlockProgress, InputState, LinePosition, MarkerKind, MarkerMatch,
    ScanOutput, TextPosition, TrustState,
};
use super::super::escape::{MarkerPrefix, StreamUnescaper, unescape};
use super::super::protocol::{RAW_BYTES_MAX, ScanEvent};
use super::texts::{self, XmlFlaw};
use super::{BLOCK_BYTES_MAX, DEPTH_MAX, END, LOOK_BYTES_MAX, MARKER_PREFIXES, START, TAIL_SPACES_MAX};
use crate::json::{ArgumentsReader, JsonRef};

/// Reads the blocks of one reply, one after the other.
pub(super) struct XmlBlockReader {
    state: XmlBlockState,
    /// The JSON so far.
    body: ArgumentsReader,
    /// Position of the block's body.
    body_position: TextPosition,
    /// True once something other than white space has arrived.
    started: bool,
    outline: JsonOutline,
    /// The name of the call that was opened.
    opened: Option<String>,
    /// Number of bytes of the arguments emitted so far.
    emitted: usize,
    unescaper: StreamUnescaper,
    /// Text after the JSON.
    tail: String,
    tail_position: TextPosition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum XmlBlockState {
    Json,
    /// After the document, which has this length.
    Tail(usize),
    /// The block is refused; its end is looked for.
    Refused(TrustState),
    /// The block is too large to look for its end.
    Lost,
}

impl XmlBlockReader {
    pub(super) fn new(start: TextPosition) -> Self {
        Self {
            state: XmlBlockState::Json,
            body: ArgumentsReader::default(),
            body_position: start,
            started: false,
            outline: JsonOutline::default(),
            opened: None,
            emitted: 0,
            unescaper: StreamUnescaper::new(MARKER_PREFIXES),
            tail: String::new(),
            tail_position: start,
        }
    }

    /// Refuses the block because of a flaw at offset `at` of its JSON.
    fn refuse(&mut self, flaw: &XmlFlaw, at: usize, out: &mut ScanOutput<'_>) {
        let text = self.body.text();
        let end = text.floor_char_boundary(at.min(RAW_BYTES_MAX - START.len()));
        let raw = format!("{START}{}", &text[..end]);
        out.emit(ScanEvent::Refused { reason: flaw.to_string(), raw: &raw });
    }

    /// Emits what has become known of the call.
    fn emit_call(&mut self, out: &mut ScanOutput<'_>) {
        let text = self.body.text();
        if self.opened.is_none()
            && let Some((from, to)) = self.outline.name
            && let Ok(name) = serde_json::from_str::<String>(&text[from..to])
            && !name.is_empty()
        {
            let name = unescape(MARKER_PREFIXES, &name).into_owned();
            out.emit(ScanEvent::Opened { name: &name });
            self.opened = Some(name);
        }
        if let (Some(_), Some((from, to))) = (&self.opened, self.outline.arguments) {
            let from = from.max(self.emitted);
            let end = to.unwrap_or(self.outline.seen);
            if end > from {
                self.unescaper.push(&text[from..end], &mut |piece| out.emit(ScanEvent::Arguments(piece)));
                if to.is_some() {
                    self.unescaper.finish(&mut |piece| out.emit(ScanEvent::Arguments(piece)));
                }
                self.emitted = end;
            }
        }
    }

    fn json(&mut self, text: &str, out: &mut ScanOutput<'_>) -> BlockProgress {
        let before = self.body.text().len();
        self.body.push(text);
        let body = self.body.text();
        let closed = self.body.closed_len();
        let error = self.body.error().filter(|_| closed.is_none());
        // Pieces end at character borders, and an error may be inside one.
        let known = closed.or(error.map(|error| error.offset)).unwrap_or(body.len());
        let mut wrong = error.map(|error| texts::invalid_json_text(error.message));
        let mut wrong_at = known;
        let opens_badly = !self.started && {
            let document = text.trim_start_matches([' ', '\t', '\r', '\n']);
            let first = document.chars().next();
            self.started = first.is_some();
            wrong_at = body.len() - document.len();
            first.is_some_and(|first| !matches!(first, '{' | '['))
        };
        if opens_badly {
            wrong = Some(texts::NO_BRACKET.to_owned());
        } else if self.outline.read(body, known) == NestingDepth::TooDeep {
            wrong = Some(texts::TOO_DEEP.to_owned());
            wrong_at = self.outline.seen;
        } else {
            wrong_at = known;
        }
        if self.outline.seen > BLOCK_BYTES_MAX || (wrong.is_none() && known > BLOCK_BYTES_MAX) {
            self.emit_call(out);
            self.refuse(&XmlFlaw::TooLarge, BLOCK_BYTES_MAX, out);
            self.state = XmlBlockState::Lost;
            out.position.advance(text);
            return BlockProgress::More { consumed: text.len() };
        }
        self.emit_call(out);
        if let Some(what) = wrong {
            self.refuse(&XmlFlaw::NotJson { what }, wrong_at, out);
            if self.ends_early(out) {
                return BlockProgress::Ended { after: TrustState::Tainted };
            }
            self.state = XmlBlockState::Refused(TrustState::Tainted);
            let torn = torn_end(text);
            out.position.advance(&text[..text.len() - torn]);
            return BlockProgress::More { consumed: text.len() - torn };
        }
        match closed {
            None => {
                out.position.advance(text);
                BlockProgress::More { consumed: text.len() }
            }
            Some(length) => {
                let consumed = length - before;
                out.position.advance(&text[..consumed]);
                self.state = XmlBlockState::Tail(length);
                self.tail_position = *out.position;
                match self.read(&text[consumed..], InputState::Open, out) {
                    BlockProgress::More { consumed: more } => {
                        BlockProgress::More { consumed: consumed + more }
                    }
                    ended @ BlockProgress::Ended { .. } => ended,
                }
            }
        }
    }

    /// Ends the block early if the error of its JSON can lie after the end marker.
    fn ends_early(&mut self, out: &mut ScanOutput<'_>) -> bool {
        let body = self.body.text();
        let Some(end) = body.find(END) else { return false };
        *out.position = self.body_position;
        out.position.advance(&body[..end + END.len()]);
        true
    }

    fn tail(&mut self, length: usize, text: &str, out: &mut ScanOutput<'_>) -> BlockProgress {
        let before = self.tail.len();
        self.tail.push_str(text);
        let tail = self.tail.trim_start();
        let spaces = self.tail.len() - tail.len();
        let may_end = spaces <= TAIL_SPACES_MAX;
        if may_end && tail.starts_with(END) {
            let consumed = spaces + END.len() - before;
            out.position.advance(&text[..consumed]);
            self.seal(length, out);
            return BlockProgress::Ended { after: TrustState::Trusted };
        }
        if may_end && END.starts_with(tail) {
            out.position.advance(text);
            return BlockProgress::More { consumed: text.len() };
        }
        self.refuse_unterminated(out);
        BlockProgress::Ended { after: TrustState::Trusted }
    }

    fn refuse_unterminated(&mut self, out: &mut ScanOutput<'_>) {
        if let XmlBlockState::Tail(length) = self.state {
            self.refuse(&XmlFlaw::NoEnd, length, out);
        }
        *out.position = self.tail_position;
    }

    fn seal(&mut self, length: usize, out: &mut ScanOutput<'_>) {
        let body = &self.body.text()[..length];
        let calls = match JsonRef::parse(body) {
            Ok(json) => calls(&json),
            Err(_) => Err(XmlFlaw::NoCall),
        };
        let calls = match calls {
            Ok(calls) => calls,
            Err(flaw) => return self.refuse(&flaw, length, out),
        };
        for (at, (name, arguments)) in calls.iter().enumerate() {
            let is_open = at == 0 && self.opened.is_some();
            if !is_open {
                out.emit(ScanEvent::Opened { name: &unescape(MARKER_PREFIXES, name) });
            }
            let emitted = self.outline.arguments.and_then(|(from, to)| body.get(from..to?));
            if !is_open || emitted != Some(arguments) {
                if is_open && self.emitted > 0 {
                    out.emit(ScanEvent::Restarted);
                }
                out.emit(ScanEvent::Arguments(&unescape(MARKER_PREFIXES, arguments)));
            }
            out.emit(ScanEvent::Sealed);
        }
    }
}

impl BlockGrammar for XmlBlockReader {
    const MARKER_PREFIXES: &'static [MarkerPrefix] = MARKER_PREFIXES;

    fn marker(text: &str, rest: InputState) -> MarkerMatch {
        for (marker, mark) in [(START, MarkerKind::Start), (END, MarkerKind::End)] {
            if text.starts_with(marker) {
                return MarkerMatch::Yes(mark, marker.len());
            }
            if marker.starts_with(text) {
                return match rest {
                    InputState::Open => MarkerMatch::More,
                    // `<` and `<t` at the end of a reply are text.
                    InputState::Ended if text.len() > 2 => MarkerMatch::Torn,
                    InputState::Ended => MarkerMatch::No,
                };
            }
        }
        MarkerMatch::No
    }

    fn follows(after: &str, start: LinePosition, rest: InputState) -> BlockDecision {
        let body = after.trim_start_matches([' ', '\t', '\r', '\n']);
        let spaces = after.len() - body.len();
        let line = after.trim_start_matches([' ', '\t', '\r']);
        if start == LinePosition::LineStart
            && line.starts_with('\n')
            && after.len() - line.len() < LOOK_BYTES_MAX
        {
            return BlockDecision::Block;
        }
        if spaces >= LOOK_BYTES_MAX {
            return BlockDecision::Text;
        }
        match (body.chars().next(), rest, start) {
            (Some('{' | '['), _, _) => BlockDecision::Block,
            (Some(_), _, _) => BlockDecision::Text,
            (None, InputState::Open, _) => BlockDecision::More,
            (None, InputState::Ended, LinePosition::LineStart) => BlockDecision::Block,
            (None, InputState::Ended, LinePosition::MidLine) => BlockDecision::Torn,
        }
    }

    fn begin(&mut self, marker: &str, before: TrustState, out: &mut ScanOutput<'_>) {
        out.position.advance(marker);
        *self = Self::new(*out.position);
        if before == TrustState::Tainted {
            self.refuse(&XmlFlaw::AfterTainted, 0, out);
            self.state = XmlBlockState::Refused(TrustState::Tainted);
        }
    }

    fn read(&mut self, text: &str, rest: InputState, out: &mut ScanOutput<'_>) -> BlockProgress {
        match self.state {
            XmlBlockState::Json => self.json(text, out),
            XmlBlockState::Tail(length) => self.tail(length, text, out),
            XmlBlockState::Refused(after) => {
                let end = text.find(END).map(|at| at + END.len());
                let torn = if rest == InputState::Open { torn_end(text) } else { 0 };
                let consumed = end.unwrap_or(text.len() - torn);
                out.position.advance(&text[..consumed]);
                match end {
                    Some(_) => BlockProgress::Ended { after },
                    None => BlockProgress::More { consumed },
                }
            }
            XmlBlockState::Lost => {
                out.position.advance(text);
                BlockProgress::More { consumed: text.len() }
            }
        }
    }

    fn end(&mut self, _held: &str, out: &mut ScanOutput<'_>) -> TrustState {
        match self.state {
            XmlBlockState::Refused(after) => after,
            XmlBlockState::Lost => TrustState::Tainted,
            XmlBlockState::Tail(length) if self.tail.trim_start().is_empty() => {
                self.seal(length, out);
                TrustState::Trusted
            }
            XmlBlockState::Tail(_) => {
                self.refuse_unterminated(out);
                TrustState::Trusted
            }
            XmlBlockState::Json => {
                let what = texts::CUT.to_owned();
                self.refuse(&XmlFlaw::NotJson { what }, usize::MAX, out);
                self.ends_early(out);
                TrustState::Tainted
            }
        }
    }
}

/// Number of bytes of an end marker at the end of a text.
fn torn_end(text: &str) -> usize {
    (1..END.len()).rev().find(|length| text.ends_with(&END[..*length])).unwrap_or(0)
}

/// The calls of a whole document.
fn calls(json: &JsonRef<'_>) -> Result<Vec<(String, String)>, XmlFlaw> {
    let one = std::slice::from_ref(json);
    let all = if json.is_array() { json.items() } else { one };
    if all.is_empty() {
        return Err(XmlFlaw::NoCall);
    }
    all.iter().map(call).collect()
}

fn call(json: &JsonRef<'_>) -> Result<(String, String), XmlFlaw> {
    let count = |json: &JsonRef<'_>, key: &str| json.members().iter().filter(|(name, _)| name == key).count();
    let inner = json.get("function").filter(|function| function.is_object());
    let deciding = ["name", "arguments", "parameters", "function"];
    let twice = |json: &JsonRef<'_>| deciding.iter().any(|key| count(json, key) > 1);
    if twice(json) || inner.is_some_and(|inner| twice(inner) || count(json, "name") > 0) {
        return Err(XmlFlaw::Twice);
    }
    let call = inner.unwrap_or(json);
    let name = call.get("name").and_then(JsonRef::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or(XmlFlaw::NoCall)?.into_owned();
    let arguments = match call.get("arguments").or_else(|| call.get("parameters")) {
        None => "{}".to_owned(),
        Some(arguments) if arguments.is_object() => arguments.raw().to_owned(),
        // Encoded twice: the string holds the object.
        Some(arguments) => {
            let text = arguments.as_str().ok_or(XmlFlaw::NoCall)?;
            if !JsonRef::parse(&text).is_ok_and(|inner| inner.is_object()) {
                return Err(XmlFlaw::NoCall);
            }
            text.into_owned()
        }
    };
    Ok((name, arguments))
}

/// The members of the outermost object, found while it arrives.
#[derive(Clone, Copy, Debug, Default)]
struct JsonOutline {
    seen: usize,
    depth: usize,
    /// Start of the open string, and true if a backslash came last.
    string: Option<(usize, bool)>,
    member: MemberState,
    /// The value of `name`, with its quotes.
    name: Option<(usize, usize)>,
    /// The object that is the value of `arguments`, and its end.
    arguments: Option<(usize, Option<usize>)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MemberState {
    #[default]
    None,
    Named(MemberKey),
    /// Before the value of this member.
    AwaitingValue(MemberKey),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberKey {
    Name,
    Arguments,
    Other,
}

#[derive(PartialEq, Eq)]
enum NestingDepth {
    Allowed,
    TooDeep,
}

impl JsonOutline {
    /// Reads on to `end`, or to where the nesting is too deep.
    fn read(&mut self, text: &str, end: usize) -> NestingDepth {
        let bytes = text.as_bytes();
        while self.seen < end {
            let (at, byte) = (self.seen, bytes[self.seen]);
            if let Some((from, escaped)) = self.string {
                self.string = match byte {
                    b'"' if !escaped => {
                        self.end_string(text, from, at + 1);
                        None
                    }
                    b'\\' => Some((from, !escaped)),
                    _ => Some((from, false)),
                };
                self.seen += 1;
                continue;
            }
            match byte {
                b'"' => self.string = Some((at, false)),
                b'{' | b'[' => {
                    if self.depth == DEPTH_MAX {
                        return NestingDepth::TooDeep;
                    }
                    let is_value =
                        self.depth == 1 && self.member == MemberState::AwaitingValue(MemberKey::Arguments);
                    if is_value && byte == b'{' && self.arguments.is_none() {
                        self.arguments = Some((at, None));
                    }
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if let (1, Some((_, end @ None))) = (self.depth, &mut self.arguments) {
                        *end = Some(at + 1);
                    }
                }
                b':' if self.depth == 1 => {
                    if let MemberState::Named(key) = self.member {
                        self.member = MemberState::AwaitingValue(key);
                    }
                }
                b',' if self.depth == 1 => self.member = MemberState::None,
                _ => {}
            }
            self.seen += 1;
        }
        NestingDepth::Allowed
    }

    fn end_string(&mut self, text: &str, from: usize, to: usize) {
        if self.depth != 1 {
            return;
        }
        match self.member {
            MemberState::None => {
                self.member = MemberState::Named(match &text[from..to] {
                    "\"name\"" => MemberKey::Name,
                    "\"arguments\"" | "\"parameters\"" => MemberKey::Arguments,
                    _ => MemberKey::Other,
                });
            }
            MemberState::AwaitingValue(MemberKey::Name) if self.name.is_none() => {
                self.name = Some((from, to))
            }
            _ => {}
        }
    }
}
