//! One request block while it arrives: from signs to fields. What the fields mean is [`Request`]'s matter.

use super::super::escape::{Beginning, Unescaper};
use super::super::protocol::RAW_BYTES_MAX;
use super::super::scan::{After, Grammar, Leftover, Mark, Match, Out, Place, Rest, Start, Step, Verdict};
use super::marks::{
    ANGLES_MAX, BEGINNINGS, BLOCK_BYTES_MAX, FIELDS_MAX, GAP_BYTES_MAX, KEY_BYTES_MAX, is_colon, is_key_char,
    is_space,
};
use super::request::{Request, Tools};
use super::signs::{self, Brackets, Quoting, Seen, Sign};
use super::words::Flaw;
use std::mem::take;
use std::sync::Arc;

/// Reads the blocks of one reply, one after the other.
pub(super) struct Blocks {
    tools: Arc<Tools>,
    request: Request,
    at: At,
    /// The block as written, its first bytes.
    raw: String,
    raw_room: usize,
    /// Bytes behind the start marker.
    size: usize,
    /// What stands between two fields.
    gap: String,
    gap_place: Place,
    raw_before_gap: usize,
    extra_angles: usize,
    value: Unescaper,
}

#[derive(Clone, Copy, Debug)]
enum At {
    Gap,
    Value(Brackets, Quoting),
    /// The block is refused; its end is looked for.
    Refused(After),
    /// The block is too large to look for its end.
    Lost,
}

/// What a piece of text did.
enum Took {
    /// So many bytes belong to the block.
    Bytes(usize),
    /// More text decides.
    Held,
    Over(Step),
}

impl Blocks {
    pub(super) fn new(tools: Arc<Tools>, start: Place) -> Self {
        Self {
            request: Request::new(tools.clone(), start),
            tools,
            at: At::Gap,
            raw: String::new(),
            raw_room: RAW_BYTES_MAX,
            size: 0,
            gap: String::new(),
            gap_place: start,
            raw_before_gap: 0,
            extra_angles: 0,
            value: Unescaper::new(BEGINNINGS),
        }
    }

    fn refuse(&mut self, flaw: &Flaw, after: After, out: &mut Out<'_>) {
        self.request.refuse(flaw, &self.raw, out);
        self.at = At::Refused(after);
    }

    fn keep_raw(&mut self, text: &str) {
        let kept = &text[..text.floor_char_boundary(self.raw_room)];
        self.raw.push_str(kept);
        self.raw_room = if kept.len() < text.len() { 0 } else { self.raw_room - kept.len() };
    }

    // --- between fields ---

    fn gap(&mut self, text: &str, rest: Rest, out: &mut Out<'_>) -> Took {
        if self.gap.is_empty() && self.extra_angles > 0 && text.starts_with('>') {
            self.extra_angles -= 1;
            self.gap_place.advance(">");
            return Took::Bytes(1);
        }
        self.extra_angles = 0;
        let plain = text.find(['<', '「', '{']).unwrap_or(text.len());
        if plain > 0 {
            return self.junk(&text[..plain], out);
        }
        if text.starts_with('<') {
            return match signs::marker(text, rest) {
                Match::More => Took::Held,
                Match::Yes(Mark::End, length) => {
                    self.keep_raw(&text[..length]);
                    self.request.note_gap(&self.gap, None);
                    self.request.seal(&self.raw, out);
                    Took::Over(Step::Over { taken: length, again: String::new(), after: After::Clear })
                }
                Match::Yes(Mark::Start, length) => {
                    let line = self.gap.rsplit('\n').next().unwrap_or_default();
                    let start = if line.chars().all(is_space) { Start::OfLine } else { Start::InLine };
                    match signs::follows(&text[length..], start, rest) {
                        Verdict::More => Took::Held,
                        Verdict::Block => self.ends_without_marker(out),
                        Verdict::Text | Verdict::Torn => self.junk(&text[..length], out),
                    }
                }
                Match::Yes(Mark::Example | Mark::ExampleEnd, length) => self.junk(&text[..length], out),
                Match::No | Match::Torn => self.junk("<", out),
            };
        }
        match signs::sign(text) {
            Seen::More if rest == Rest::MayCome => Took::Held,
            Seen::No | Seen::More => {
                let length = text.chars().next().map_or(0, char::len_utf8);
                self.junk(&text[..length], out)
            }
            Seen::Like => {
                self.refuse(&Flaw::BadMark, After::Tainted, out);
                Took::Bytes(0)
            }
            Seen::Yes(Sign::Close(..), _) => {
                self.refuse(&Flaw::StrayCloser, After::Tainted, out);
                Took::Bytes(0)
            }
            Seen::Yes(Sign::Open(brackets, quoting), length) => {
                match key_before(&self.gap) {
                    None => self.refuse(&Flaw::NoKey, After::Tainted, out),
                    Some(_) if self.request.len() == FIELDS_MAX => {
                        self.refuse(&Flaw::TooManyFields, After::Tainted, out);
                    }
                    Some(key) => {
                        let key = key.to_owned();
                        self.request.note_gap(&self.gap, Some(&key));
                        self.request.field_begins(key, out);
                        self.at = At::Value(brackets, quoting);
                        self.gap.clear();
                    }
                }
                Took::Bytes(length)
            }
        }
    }

    fn junk(&mut self, text: &str, out: &mut Out<'_>) -> Took {
        if self.gap.len() + text.len() > GAP_BYTES_MAX {
            return self.ends_without_marker(out);
        }
        self.gap.push_str(text);
        Took::Bytes(text.len())
    }

    fn ends_without_marker(&mut self, out: &mut Out<'_>) -> Took {
        Took::Over(Step::Over { taken: 0, again: self.no_end(out), after: After::Clear })
    }

    /// The block ended behind its last field: what stands behind that is text again.
    fn no_end(&mut self, out: &mut Out<'_>) -> String {
        let before_gap = self.raw.len().min(self.raw_before_gap);
        self.request.refuse(&Flaw::NoEnd, &self.raw[..before_gap], out);
        *out.place = self.gap_place;
        take(&mut self.gap)
    }

    // --- in a value ---

    fn value(
        &mut self,
        brackets: Brackets,
        quoting: Quoting,
        text: &str,
        rest: Rest,
        out: &mut Out<'_>,
    ) -> Took {
        let plain = text.find(['<', '「', '{']).unwrap_or(text.len());
        if plain > 0 {
            return self.grow(&text[..plain], &text[..plain], out);
        }
        if text.starts_with('<') {
            return match signs::marker(text, rest) {
                Match::More => Took::Held,
                Match::Yes(Mark::End, _) if quoting == Quoting::Plain => {
                    let key = self.request.key().to_owned();
                    self.refuse(&Flaw::EndInValue { key }, After::Tainted, out);
                    Took::Bytes(0)
                }
                Match::Yes(Mark::Example | Mark::ExampleEnd, length) if quoting == Quoting::Escape => {
                    self.grow(&text[..length], &signs::restored(&text[..length]), out)
                }
                _ => self.grow("<", "<", out),
            };
        }
        match (signs::sign(text), quoting) {
            (Seen::More, _) if rest == Rest::MayCome => Took::Held,
            (Seen::Yes(Sign::Close(closes, how), length), _) if closes == brackets && how == quoting => {
                let request = &mut self.request;
                self.value.finish(&mut |piece| request.grow(piece, out));
                self.request.field_ends(out);
                self.at = At::Gap;
                self.gap_place = *out.place;
                self.gap_place.advance(&text[..length]);
                self.raw_before_gap = self.raw.len() + length;
                Took::Bytes(length)
            }
            (Seen::Yes(Sign::Open(..), _), Quoting::Plain) => {
                let key = self.request.key().to_owned();
                self.refuse(&Flaw::OpenerInValue { key }, After::Tainted, out);
                Took::Bytes(0)
            }
            (Seen::Yes(Sign::Open(opens, Quoting::Escape), length), Quoting::Escape) => {
                self.grow(&text[..length], opens.plain_opener(), out)
            }
            _ => {
                let length = text.chars().next().map_or(0, char::len_utf8);
                self.grow(&text[..length], &text[..length], out)
            }
        }
    }

    fn grow(&mut self, written: &str, meant: &str, out: &mut Out<'_>) -> Took {
        if self.size + written.len() > BLOCK_BYTES_MAX {
            self.request.refuse(&Flaw::TooLarge, &self.raw, out);
            self.at = At::Lost;
            return Took::Bytes(0);
        }
        let request = &mut self.request;
        self.value.push(meant, &mut |piece| request.grow(piece, out));
        Took::Bytes(written.len())
    }

    // --- refused ---

    fn skip(&mut self, after: After, text: &str, rest: Rest) -> Took {
        let plain = memchr::memchr(b'<', text.as_bytes()).unwrap_or(text.len());
        if plain > 0 {
            return Took::Bytes(plain);
        }
        match signs::marker(text, rest) {
            Match::More => Took::Held,
            Match::Yes(Mark::End, length) => {
                Took::Over(Step::Over { taken: length, again: String::new(), after })
            }
            _ => Took::Bytes(1),
        }
    }
}

impl Grammar for Blocks {
    const BEGINNINGS: &'static [Beginning] = BEGINNINGS;
    const LEFTOVERS: &'static [char] = &['「', '{'];

    fn marker(text: &str, rest: Rest) -> Match {
        signs::marker(text, rest)
    }

    fn follows(after: &str, start: Start, rest: Rest) -> Verdict {
        signs::follows(after, start, rest)
    }

    fn leftover(text: &str) -> Leftover {
        match signs::sign(text) {
            Seen::More => Leftover::More,
            Seen::Yes(Sign::Close(..), length) => Leftover::Yes(length),
            _ => Leftover::No,
        }
    }

    fn begin(&mut self, marker: &str, before: After, out: &mut Out<'_>) {
        let start = *out.place;
        *self = Self::new(self.tools.clone(), start);
        self.keep_raw(marker);
        out.place.advance(marker);
        self.gap_place = *out.place;
        self.raw_before_gap = self.raw.len();
        self.extra_angles = ANGLES_MAX - 3;
        if before == After::Tainted {
            self.refuse(&Flaw::AfterTainted, After::Tainted, out);
        }
    }

    fn read(&mut self, text: &str, rest: Rest, out: &mut Out<'_>) -> Step {
        let mut taken = 0;
        while taken < text.len() {
            let ahead = &text[taken..];
            let took = match self.at {
                At::Gap => self.gap(ahead, rest, out),
                At::Value(brackets, quoting) => self.value(brackets, quoting, ahead, rest, out),
                At::Refused(after) => self.skip(after, ahead, rest),
                At::Lost => Took::Bytes(ahead.len()),
            };
            match took {
                Took::Bytes(count) => {
                    let piece = &ahead[..count];
                    self.keep_raw(piece);
                    self.size += count;
                    out.place.advance(piece);
                    taken += count;
                }
                Took::Held => return Step::More { taken },
                Took::Over(Step::Over { taken: more, again, after }) => {
                    if again.is_empty() {
                        out.place.advance(&ahead[..more]);
                    }
                    return Step::Over { taken: taken + more, again, after };
                }
                Took::Over(step) => return step,
            }
        }
        Step::More { taken }
    }

    fn end(&mut self, held: &str, out: &mut Out<'_>) -> (String, After) {
        match self.at {
            At::Refused(after) => (String::new(), after),
            At::Lost => (String::new(), After::Tainted),
            At::Gap => {
                self.gap.push_str(held);
                (self.no_end(out), After::Clear)
            }
            At::Value(brackets, quoting) => {
                let key = self.request.key().to_owned();
                let flaw = if self.size + held.len() > BLOCK_BYTES_MAX {
                    Flaw::TooLarge
                } else {
                    Flaw::Unclosed { key, closer: brackets.closer(quoting) }
                };
                self.request.refuse(&flaw, &self.raw, out);
                (String::new(), After::Clear)
            }
        }
    }
}

/// The name of the field whose value opens behind this text.
fn key_before(gap: &str) -> Option<&str> {
    let named = gap.trim_end_matches(is_space).strip_suffix(is_colon)?.trim_end_matches(is_space);
    let before = named.trim_end_matches(is_key_char);
    let key = &named[before.len()..];
    // Spaces are enough behind the last value; behind anything else it takes a comma or a line break.
    let line = before.trim_end_matches([' ', '\t', '\r']);
    let starts = line.is_empty() || line.ends_with([',', '，', '\n']);
    (starts && !key.is_empty() && key.len() <= KEY_BYTES_MAX).then_some(key)
}
