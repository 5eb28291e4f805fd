//! A position in a text, and the small steps that every grammar is made of.

use crate::json::JsonRef;
use serde::de::IgnoredAny;

/// Longest tool name that is read, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// A position in a text.
pub(super) struct TextCursor<'t> {
    text: &'t str,
    at: usize,
    closers: Vec<CloserCache>,
}

/// Position of the last search for a closing marker and its result. Without it, many openers without closers
/// would each search the whole rest of the text.
struct CloserCache {
    marker: &'static str,
    from: usize,
    range: Option<(usize, usize)>,
}

impl<'t> TextCursor<'t> {
    pub(super) fn new(text: &'t str, at: usize) -> Self {
        Self { text, at, closers: Vec::new() }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Moves to a position, which must be a character's border.
    pub(super) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Skips white space.
    pub(super) fn skip_whitespace(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips a literal, if it is at the cursor.
    pub(super) fn eat(&mut self, literal: &str) -> bool {
        let here = self.rest().starts_with(literal);
        if here {
            self.at += literal.len();
        }
        here
    }

    /// Skips a marker, if it is at the cursor. In `marker`, `|` stands for one or two bars of any kind and
    /// `_` for an underscore of any kind: detokenizers and gateways disagree on both (`｜DSML｜`, `‖DSML‖`,
    /// `｜｜DSML｜｜`).
    pub(super) fn eat_marker(&mut self, marker: &str) -> bool {
        match marker_end(self.rest(), marker) {
            Some(length) => {
                self.at += length;
                true
            }
            None => false,
        }
    }

    /// Reads a value up to its closing marker; `None` without moving if there is none, or if `opening` comes
    /// before it: then some value was never closed, and it is unknown which. Markers begin with `<`.
    pub(super) fn value_until(&mut self, opening: &str, closing: &'static str) -> Option<&'t str> {
        let (start, end) = self.find(closing)?;
        let value = &self.text[self.at..start];
        let mut tags = memchr::memchr_iter(b'<', value.as_bytes());
        if tags.any(|at| marker_end(&value[at..], opening).is_some()) {
            return None;
        }
        self.at = end;
        Some(value)
    }

    fn find(&mut self, marker: &'static str) -> Option<(usize, usize)> {
        let known = self.closers.iter().position(|closer| closer.marker == marker);
        if let Some(closer) = known.map(|known| &self.closers[known])
            && closer.from <= self.at
            && closer.range.is_none_or(|(start, _)| self.at <= start)
        {
            return closer.range;
        }
        let range = memchr::memchr_iter(b'<', self.rest().as_bytes())
            .map(|offset| self.at + offset)
            .find_map(|start| marker_end(&self.text[start..], marker).map(|length| (start, start + length)));
        let closer = CloserCache { marker, from: self.at, range };
        match known {
            Some(known) => self.closers[known] = closer,
            None => self.closers.push(closer),
        }
        range
    }

    /// Passes a tool's or parameter's name: anything without white space, quotes or markup.
    pub(super) fn name(&mut self) -> Option<&'t str> {
        let rest = self.rest();
        let length = rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len());
        if length == 0 || length > NAME_BYTES_MAX {
            return None;
        }
        self.at += length;
        Some(&rest[..length])
    }

    /// Reads a JSON object or array; `None` without moving if there is no complete one.
    pub(super) fn json(&mut self) -> Option<JsonRef<'t>> {
        let rest = self.rest();
        if !rest.starts_with(['{', '[']) {
            return None;
        }
        // Stops at the first byte that is not JSON, so that two documents tried from different places share no more
        // than one string of text: this keeps the search linear.
        let mut documents = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        documents.next()?.ok()?;
        let end = documents.byte_offset();
        let json = JsonRef::parse(&rest[..end]).ok()?;
        self.at += end;
        Some(json)
    }

    /// Passes a JSON object.
    pub(super) fn object(&mut self) -> Option<JsonRef<'t>> {
        if self.peek() == Some('{') { self.json() } else { None }
    }

    /// Passes the attributes of a tag and its `>`.
    pub(super) fn attributes(&mut self) -> Option<Vec<(&'t str, &'t str)>> {
        let mut attributes = Vec::new();
        loop {
            self.skip_whitespace();
            if self.eat(">") {
                return Some(attributes);
            }
            let key = self.name()?;
            if !self.eat("=") {
                return None;
            }
            let quote = self.peek().filter(|c| matches!(c, '"' | '\''))?;
            self.at += 1;
            // A quote that closes neither on its line nor in its tag is prose.
            let rest = self.rest();
            let end = rest.find([quote, '\n', '>'])?;
            if !rest[end..].starts_with(quote) {
                return None;
            }
            self.at += end + 1;
            attributes.push((key, &rest[..end]));
        }
    }
}

fn is_name_char(c: char) -> bool {
    !(c.is_whitespace() || c.is_control() || "<>\"'`(){}[]|｜‖∥,;=".contains(c))
}

fn marker_end(text: &str, marker: &str) -> Option<usize> {
    let mut rest = text;
    for expected in marker.chars() {
        let first = rest.chars().next()?;
        let length = match expected {
            '|' if is_bar(first) => {
                let second = rest[first.len_utf8()..].chars().next().filter(|c| is_bar(*c));
                first.len_utf8() + second.map_or(0, char::len_utf8)
            }
            '_' if matches!(first, '_' | '▁') => first.len_utf8(),
            _ if first == expected => first.len_utf8(),
            _ => return None,
        };
        rest = &rest[length..];
    }
    Some(text.len() - rest.len())
}

fn is_bar(c: char) -> bool {
    matches!(c, '|' | '｜' | '‖' | '∥' | '│')
}
