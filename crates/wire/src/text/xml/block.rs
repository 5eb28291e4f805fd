//! One `<tool_call>` block while it arrives: a JSON document, told as a call as soon as its name is known.

use super::super::escape::{Beginning, Unescaper, unescape};
use super::super::protocol::{RAW_BYTES_MAX, Scanned};
use super::super::scan::{After, Grammar, Mark, Match, Out, Place, Rest, Start, Step, Verdict};
use super::words::{self, Flaw};
use super::{BEGINNINGS, BLOCK_BYTES_MAX, DEPTH_MAX, END, LOOK_BYTES_MAX, START, TAIL_SPACES_MAX};
use crate::json::{ArgumentsReader, Json};
use std::mem::take;

/// Reads the blocks of one reply, one after the other.
pub(super) struct Blocks {
    at: At,
    /// The JSON so far.
    body: ArgumentsReader,
    /// Where it begins.
    body_place: Place,
    /// Something but white space has come.
    begun: bool,
    outline: Outline,
    /// The name of the call that was opened.
    opened: Option<String>,
    /// How far its arguments were told.
    told: usize,
    unescaper: Unescaper,
    /// What follows the JSON.
    tail: String,
    tail_place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Json,
    /// Behind the document, which has this length.
    Tail(usize),
    /// The block is refused; its end is looked for.
    Refused(After),
    /// The block is too large to look for its end.
    Lost,
}

impl Blocks {
    pub(super) fn new(start: Place) -> Self {
        Self {
            at: At::Json,
            body: ArgumentsReader::default(),
            body_place: start,
            begun: false,
            outline: Outline::default(),
            opened: None,
            told: 0,
            unescaper: Unescaper::new(BEGINNINGS),
            tail: String::new(),
            tail_place: start,
        }
    }

    /// Refuses the block for what stands at `at` of its JSON.
    fn refuse(&mut self, flaw: &Flaw, at: usize, out: &mut Out<'_>) {
        let text = self.body.text();
        let end = text.floor_char_boundary(at.min(RAW_BYTES_MAX - START.len()));
        let raw = format!("{START}{}", &text[..end]);
        out.say(Scanned::Refused { why: flaw.to_string(), raw: &raw });
    }

    /// Tells what has become known of the call.
    fn tell(&mut self, out: &mut Out<'_>) {
        let text = self.body.text();
        if self.opened.is_none()
            && let Some((from, to)) = self.outline.name
            && let Ok(name) = serde_json::from_str::<String>(&text[from..to])
            && !name.is_empty()
        {
            let name = unescape(BEGINNINGS, &name).into_owned();
            out.say(Scanned::Opened { name: &name });
            self.opened = Some(name);
        }
        if let (Some(_), Some((from, to))) = (&self.opened, self.outline.arguments) {
            let from = from.max(self.told);
            let end = to.unwrap_or(self.outline.seen);
            if end > from {
                self.unescaper.push(&text[from..end], &mut |piece| out.say(Scanned::Arguments(piece)));
                if to.is_some() {
                    self.unescaper.finish(&mut |piece| out.say(Scanned::Arguments(piece)));
                }
                self.told = end;
            }
        }
    }

    fn json(&mut self, text: &str, out: &mut Out<'_>) -> Step {
        let before = self.body.text().len();
        self.body.push(text);
        let body = self.body.text();
        let closed = self.body.closed_len();
        let error = self.body.error().filter(|_| closed.is_none());
        // Pieces end where characters end, and an error may stand inside one.
        let known = closed.or(error.map(|error| error.at)).unwrap_or(body.len());
        let mut wrong = error.map(|error| words::wrong(error.what));
        let mut wrong_at = known;
        let opens_badly = !self.begun && {
            let document = text.trim_start_matches([' ', '\t', '\r', '\n']);
            let first = document.chars().next();
            self.begun = first.is_some();
            wrong_at = body.len() - document.len();
            first.is_some_and(|first| !matches!(first, '{' | '['))
        };
        if opens_badly {
            wrong = Some(words::NO_BRACKET.to_owned());
        } else if self.outline.read(body, known) == Depth::TooDeep {
            wrong = Some(words::TOO_DEEP.to_owned());
            wrong_at = self.outline.seen;
        } else {
            wrong_at = known;
        }
        if self.outline.seen > BLOCK_BYTES_MAX || (wrong.is_none() && known > BLOCK_BYTES_MAX) {
            self.tell(out);
            self.refuse(&Flaw::TooLarge, BLOCK_BYTES_MAX, out);
            self.at = At::Lost;
            out.place.advance(text);
            return Step::More { taken: text.len() };
        }
        self.tell(out);
        if let Some(what) = wrong {
            self.refuse(&Flaw::NotJson { what }, wrong_at, out);
            return match self.ends_early(out) {
                Some(again) => Step::Over { taken: text.len(), again, after: After::Tainted },
                None => {
                    self.at = At::Refused(After::Tainted);
                    let torn = torn_end(text);
                    out.place.advance(&text[..text.len() - torn]);
                    Step::More { taken: text.len() - torn }
                }
            };
        }
        match closed {
            None => {
                out.place.advance(text);
                Step::More { taken: text.len() }
            }
            Some(length) => {
                let taken = length - before;
                out.place.advance(&text[..taken]);
                self.at = At::Tail(length);
                self.tail_place = *out.place;
                match self.read(&text[taken..], Rest::MayCome, out) {
                    Step::More { taken: more } => Step::More { taken: taken + more },
                    Step::Over { taken: more, again, after } => {
                        Step::Over { taken: taken + more, again, after }
                    }
                }
            }
        }
    }

    /// What is wrong with the JSON may stand behind the end marker: then that is the end.
    fn ends_early(&mut self, out: &mut Out<'_>) -> Option<String> {
        let body = self.body.text();
        let end = body.find(END)? + END.len();
        *out.place = self.body_place;
        out.place.advance(&body[..end]);
        Some(body[end..].to_owned())
    }

    fn tail(&mut self, length: usize, text: &str, out: &mut Out<'_>) -> Step {
        let before = self.tail.len();
        self.tail.push_str(text);
        let tail = self.tail.trim_start();
        let spaces = self.tail.len() - tail.len();
        let may_end = spaces <= TAIL_SPACES_MAX;
        if may_end && tail.starts_with(END) {
            let taken = spaces + END.len() - before;
            out.place.advance(&text[..taken]);
            self.seal(length, out);
            return Step::Over { taken, again: String::new(), after: After::Clear };
        }
        if may_end && END.starts_with(tail) {
            out.place.advance(text);
            return Step::More { taken: text.len() };
        }
        Step::Over { taken: text.len(), again: self.no_end(out), after: After::Clear }
    }

    fn no_end(&mut self, out: &mut Out<'_>) -> String {
        if let At::Tail(length) = self.at {
            self.refuse(&Flaw::NoEnd, length, out);
        }
        *out.place = self.tail_place;
        take(&mut self.tail)
    }

    fn seal(&mut self, length: usize, out: &mut Out<'_>) {
        let body = &self.body.text()[..length];
        let calls = match Json::parse(body) {
            Ok(json) => calls(&json),
            Err(_) => Err(Flaw::NoCall),
        };
        let calls = match calls {
            Ok(calls) => calls,
            Err(flaw) => return self.refuse(&flaw, length, out),
        };
        for (at, (name, arguments)) in calls.iter().enumerate() {
            let is_open = at == 0 && self.opened.is_some();
            if !is_open {
                out.say(Scanned::Opened { name: &unescape(BEGINNINGS, name) });
            }
            let told = self.outline.arguments.and_then(|(from, to)| body.get(from..to?));
            if !is_open || told != Some(arguments) {
                if is_open && self.told > 0 {
                    out.say(Scanned::Restarted);
                }
                out.say(Scanned::Arguments(&unescape(BEGINNINGS, arguments)));
            }
            out.say(Scanned::Sealed);
        }
    }
}

impl Grammar for Blocks {
    const BEGINNINGS: &'static [Beginning] = BEGINNINGS;

    fn marker(text: &str, rest: Rest) -> Match {
        for (marker, mark) in [(START, Mark::Start), (END, Mark::End)] {
            if text.starts_with(marker) {
                return Match::Yes(mark, marker.len());
            }
            if marker.starts_with(text) {
                return match rest {
                    Rest::MayCome => Match::More,
                    // `<` and `<t` at the end of a reply are text.
                    Rest::Ended if text.len() > 2 => Match::Torn,
                    Rest::Ended => Match::No,
                };
            }
        }
        Match::No
    }

    fn follows(after: &str, start: Start, rest: Rest) -> Verdict {
        let body = after.trim_start_matches([' ', '\t', '\r', '\n']);
        let spaces = after.len() - body.len();
        let line = after.trim_start_matches([' ', '\t', '\r']);
        if start == Start::OfLine && line.starts_with('\n') && after.len() - line.len() < LOOK_BYTES_MAX {
            return Verdict::Block;
        }
        if spaces >= LOOK_BYTES_MAX {
            return Verdict::Text;
        }
        match (body.chars().next(), rest, start) {
            (Some('{' | '['), _, _) => Verdict::Block,
            (Some(_), _, _) => Verdict::Text,
            (None, Rest::MayCome, _) => Verdict::More,
            (None, Rest::Ended, Start::OfLine) => Verdict::Block,
            (None, Rest::Ended, Start::InLine) => Verdict::Torn,
        }
    }

    fn begin(&mut self, marker: &str, before: After, out: &mut Out<'_>) {
        out.place.advance(marker);
        *self = Self::new(*out.place);
        if before == After::Tainted {
            self.refuse(&Flaw::AfterTainted, 0, out);
            self.at = At::Refused(After::Tainted);
        }
    }

    fn read(&mut self, text: &str, rest: Rest, out: &mut Out<'_>) -> Step {
        match self.at {
            At::Json => self.json(text, out),
            At::Tail(length) => self.tail(length, text, out),
            At::Refused(after) => {
                let end = text.find(END).map(|at| at + END.len());
                let torn = if rest == Rest::MayCome { torn_end(text) } else { 0 };
                let taken = end.unwrap_or(text.len() - torn);
                out.place.advance(&text[..taken]);
                match end {
                    Some(_) => Step::Over { taken, again: String::new(), after },
                    None => Step::More { taken },
                }
            }
            At::Lost => {
                out.place.advance(text);
                Step::More { taken: text.len() }
            }
        }
    }

    fn end(&mut self, _held: &str, out: &mut Out<'_>) -> (String, After) {
        match self.at {
            At::Refused(after) => (String::new(), after),
            At::Lost => (String::new(), After::Tainted),
            At::Tail(length) if self.tail.trim_start().is_empty() => {
                self.seal(length, out);
                (String::new(), After::Clear)
            }
            At::Tail(_) => (self.no_end(out), After::Clear),
            At::Json => {
                let what = words::CUT.to_owned();
                self.refuse(&Flaw::NotJson { what }, usize::MAX, out);
                (self.ends_early(out).unwrap_or_default(), After::Tainted)
            }
        }
    }
}

/// How much of an end marker stands at the end of a text.
fn torn_end(text: &str) -> usize {
    (1..END.len()).rev().find(|length| text.ends_with(&END[..*length])).unwrap_or(0)
}

/// The calls of a whole document.
fn calls(json: &Json<'_>) -> Result<Vec<(String, String)>, Flaw> {
    let one = std::slice::from_ref(json);
    let all = if json.is_array() { json.items() } else { one };
    if all.is_empty() {
        return Err(Flaw::NoCall);
    }
    all.iter().map(call).collect()
}

fn call(json: &Json<'_>) -> Result<(String, String), Flaw> {
    let count = |json: &Json<'_>, key: &str| json.members().iter().filter(|(name, _)| name == key).count();
    let inner = json.get("function").filter(|function| function.is_object());
    let deciding = ["name", "arguments", "parameters", "function"];
    let twice = |json: &Json<'_>| deciding.iter().any(|key| count(json, key) > 1);
    if twice(json) || inner.is_some_and(|inner| twice(inner) || count(json, "name") > 0) {
        return Err(Flaw::Twice);
    }
    let call = inner.unwrap_or(json);
    let name = call.get("name").and_then(Json::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or(Flaw::NoCall)?.into_owned();
    let arguments = match call.get("arguments").or_else(|| call.get("parameters")) {
        None => "{}".to_owned(),
        Some(arguments) if arguments.is_object() => arguments.raw().to_owned(),
        // Encoded twice: the string holds the object.
        Some(arguments) => {
            let text = arguments.as_str().ok_or(Flaw::NoCall)?;
            if !Json::parse(&text).is_ok_and(|inner| inner.is_object()) {
                return Err(Flaw::NoCall);
            }
            text.into_owned()
        }
    };
    Ok((name, arguments))
}

/// The members of the outermost object, found while it arrives.
#[derive(Clone, Copy, Debug, Default)]
struct Outline {
    seen: usize,
    depth: usize,
    /// Where the string began that is open, and whether a backslash came last.
    string: Option<(usize, bool)>,
    member: Member,
    /// The value of `name`, with its quotes.
    name: Option<(usize, usize)>,
    /// The object that is the value of `arguments`, and its end.
    arguments: Option<(usize, Option<usize>)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Member {
    #[default]
    None,
    Named(Key),
    /// Its value follows.
    Due(Key),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Name,
    Arguments,
    Other,
}

#[derive(PartialEq, Eq)]
enum Depth {
    Fine,
    TooDeep,
}

impl Outline {
    /// Reads on to `end`, or to where the nesting is too deep.
    fn read(&mut self, text: &str, end: usize) -> Depth {
        let bytes = text.as_bytes();
        while self.seen < end {
            let (at, byte) = (self.seen, bytes[self.seen]);
            if let Some((from, escaped)) = self.string {
                self.string = match byte {
                    b'"' if !escaped => {
                        self.string_ends(text, from, at + 1);
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
                        return Depth::TooDeep;
                    }
                    let is_value = self.depth == 1 && self.member == Member::Due(Key::Arguments);
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
                    if let Member::Named(key) = self.member {
                        self.member = Member::Due(key);
                    }
                }
                b',' if self.depth == 1 => self.member = Member::None,
                _ => {}
            }
            self.seen += 1;
        }
        Depth::Fine
    }

    fn string_ends(&mut self, text: &str, from: usize, to: usize) {
        if self.depth != 1 {
            return;
        }
        match self.member {
            Member::None => {
                self.member = Member::Named(match &text[from..to] {
                    "\"name\"" => Key::Name,
                    "\"arguments\"" | "\"parameters\"" => Key::Arguments,
                    _ => Key::Other,
                });
            }
            Member::Due(Key::Name) if self.name.is_none() => self.name = Some((from, to)),
            _ => {}
        }
    }
}
