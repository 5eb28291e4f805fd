//! The fast path: most events of a stream differ from the one before in one string only.
//!
//! After a full decode whose only effect was one fragment of text, the event's bytes around that string are stored. A
//! later event with the same bytes around has the same structure by the grammar of JSON and of SSE, so only the
//! string is checked (closed, no raw control byte, valid escapes, UTF-8) and handed on. Members that change and that
//! the dialect never reads (`created`, `obfuscation`) are holes as well: checked, then skipped. Anything else takes
//! the full decode, so this can be slow but never wrong; every equivalence test runs through it.

use crate::json::JsonRef;
use crate::step::{FragmentTarget, FrameEffect, StepState, StepWriter};
use crate::vocabulary::StepEvent;

/// Templates stored at a time: text, reasoning and the calls in progress take turns.
const TEMPLATES_MAX: usize = 4;
/// Full decodes without a hit in between, after which learning stops for this stream.
const MISSES_MAX: u32 = 64;

pub(super) struct FastPath {
    /// Top-level members that the dialect never reads; `None`: its fragments depend on each other.
    ignored: Option<&'static [&'static str]>,
    templates: Vec<EventTemplate>,
    /// Members among `ignored` that were seen to change.
    changing: Vec<&'static str>,
    last_values: Vec<(&'static str, String)>,
    misses: u32,
}

struct EventTemplate {
    parts: Vec<TemplatePart>,
    target: FragmentTarget,
    generation: u64,
    epoch: u64,
}

enum TemplatePart {
    Fixed(Vec<u8>),
    /// The body of the one string that matters.
    Content,
    /// Body of a string that is ignored.
    IgnoredString,
    /// An integer that is ignored.
    IgnoredNumber,
}

impl FastPath {
    pub(super) fn new(ignored: Option<&'static [&'static str]>) -> Self {
        Self { ignored, templates: Vec::new(), changing: Vec::new(), last_values: Vec::new(), misses: 0 }
    }

    /// Decodes one event at the beginning of `input` if it is like one before; returns its length, or 0.
    pub(super) fn try_decode(
        &mut self,
        input: &[u8],
        state: &mut StepState,
        sink: &mut dyn FnMut(StepEvent<'_>),
    ) -> usize {
        for at in 0..self.templates.len() {
            let template = &self.templates[at];
            if template.epoch != state.epoch() {
                continue;
            }
            if let FragmentTarget::Arguments(_) = template.target
                && template.generation != state.primary_choice.calls.generation()
            {
                continue;
            }
            let Some((body, len)) = template.match_event(input) else { continue };
            if len > state.event_bytes_max() {
                return 0;
            }
            let target = template.target;
            self.misses = 0;
            if at > 0 {
                self.templates.swap(0, at);
            }
            StepWriter::new(state, sink).fragment_body(target, body);
            return len;
        }
        0
    }

    /// Learns a template from an event that took the full decode. `raw` is everything from its first byte to
    /// its blank line.
    pub(super) fn learn(&mut self, raw: &[u8], data: &str, state: &StepState) {
        let Some(ignored) = self.ignored else { return };
        let FrameEffect::One { target, body_at, body_len } = state.effect() else { return };
        if self.misses >= MISSES_MAX || !raw.ends_with(b"\n") {
            return;
        }
        self.misses += 1;
        let Some(template) = self.build_template(raw, data, ignored, target, body_at, body_len) else {
            return;
        };
        let generation = state.primary_choice.calls.generation();
        self.templates.retain(|known| known.target != target);
        self.templates.insert(0, EventTemplate { generation, epoch: state.epoch(), ..template });
        self.templates.truncate(TEMPLATES_MAX);
    }

    fn build_template(
        &mut self,
        raw: &[u8],
        data: &str,
        ignored: &'static [&'static str],
        target: FragmentTarget,
        body_at: usize,
        body_len: usize,
    ) -> Option<EventTemplate> {
        // The data must be one line of the raw bytes, not joined or repaired.
        let data_at = memchr::memmem::find(raw, data.as_bytes())?;
        let json = JsonRef::parse(data.trim_ascii()).ok()?;
        let offset = |text: &str| (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize);
        let body_at = body_at.checked_sub(data.as_ptr() as usize)?;
        data.get(body_at..body_at + body_len)?;

        let mut holes = vec![(body_at, body_len, TemplatePart::Content)];
        for name in ignored {
            let Some((_, value)) = json.members().iter().find(|(key, _)| key == name) else { continue };
            let hole = match value.string_body() {
                Some(body) => (offset(body)?, body.len(), TemplatePart::IgnoredString),
                None if is_plain_integer(value.raw().as_bytes()) => {
                    (offset(value.raw())?, value.raw().len(), TemplatePart::IgnoredNumber)
                }
                None => continue,
            };
            match self.last_values.iter_mut().find(|(key, _)| key == name) {
                Some((_, last)) if last == value.raw() => {}
                Some((_, last)) => {
                    value.raw().clone_into(last);
                    if !self.changing.contains(name) {
                        self.changing.push(name);
                    }
                }
                None => self.last_values.push((name, value.raw().to_owned())),
            }
            if self.changing.contains(name) {
                holes.push(hole);
            }
        }
        holes.sort_by_key(|(at, ..)| *at);

        let mut parts = Vec::with_capacity(2 * holes.len() + 1);
        let mut from = 0;
        for (at, len, hole) in holes {
            parts.push(TemplatePart::Fixed(raw.get(from..data_at + at)?.to_vec()));
            parts.push(hole);
            from = data_at + at + len;
        }
        parts.push(TemplatePart::Fixed(raw.get(from..)?.to_vec()));
        Some(EventTemplate { parts, target, generation: 0, epoch: 0 })
    }
}

impl EventTemplate {
    /// The content and the length of the event at the beginning of `input`, if it is one of these.
    fn match_event<'i>(&self, input: &'i [u8]) -> Option<(&'i str, usize)> {
        let mut at = 0;
        let mut content = "";
        for part in &self.parts {
            let rest = input.get(at..)?;
            at += match part {
                TemplatePart::Fixed(bytes) => {
                    if !rest.starts_with(bytes) {
                        return None;
                    }
                    bytes.len()
                }
                TemplatePart::Content => {
                    content = string_body(rest)?;
                    content.len()
                }
                TemplatePart::IgnoredString => string_body(rest)?.len(),
                TemplatePart::IgnoredNumber => {
                    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    if !is_plain_integer(&rest[..len]) {
                        return None;
                    }
                    len
                }
            };
        }
        Some((content, at))
    }
}

/// The well-formed body of a JSON string, up to its closing quote.
fn string_body(input: &[u8]) -> Option<&str> {
    let mut at = 0;
    loop {
        let byte = *input.get(at)?;
        match byte {
            b'"' => break,
            b'\\' => match input.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                b'u' if input.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => at += 6,
                _ => return None,
            },
            0..0x20 => return None,
            _ => at += 1,
        }
    }
    std::str::from_utf8(&input[..at]).ok()
}

fn is_plain_integer(text: &[u8]) -> bool {
    match text {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}
