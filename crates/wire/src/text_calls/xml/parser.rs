//! The simple reader of `<tool_call>` blocks: the grammar of leaked calls, and error texts for everything
//! that it refuses.

use super::super::cursor::TextCursor;
use super::super::escape::{MarkerPrefix, unescape};
use super::super::hermes;
use super::super::text_parser::{BlockOpening, MarkerToken, ParsedBlock, ParserGrammar};
use super::texts::{self, XmlFlaw};
use super::{BLOCK_BYTES_MAX, DEPTH_MAX, END, LOOK_BYTES_MAX, MARKER_PREFIXES, START, TAIL_SPACES_MAX};
use crate::json::{ArgumentsReader, JsonRef};

pub(super) struct XmlParser;

impl ParserGrammar for XmlParser {
    fn prefixes(&self) -> &'static [MarkerPrefix] {
        MARKER_PREFIXES
    }

    fn leftover_characters(&self) -> &'static [char] {
        &[]
    }

    fn marker_at(&self, text: &str) -> MarkerToken {
        let is_torn = |marker: &str| text.len() >= 3 && marker.starts_with(text);
        if text.starts_with(START) {
            MarkerToken::Start(START.len())
        } else if text.starts_with(END) {
            MarkerToken::End(END.len())
        } else if is_torn(START) || is_torn(END) {
            MarkerToken::Torn
        } else {
            MarkerToken::Nothing
        }
    }

    fn block_opening(&self, after: &str, at_line_start: bool) -> BlockOpening {
        let mut spaces = 0;
        for byte in after.bytes() {
            match byte {
                _ if spaces >= LOOK_BYTES_MAX => return BlockOpening::Nothing,
                b'\n' if at_line_start => return BlockOpening::Block,
                b' ' | b'\t' | b'\r' | b'\n' => spaces += 1,
                b'{' | b'[' => return BlockOpening::Block,
                _ => return BlockOpening::Nothing,
            }
        }
        if spaces >= LOOK_BYTES_MAX {
            BlockOpening::Nothing
        } else if at_line_start {
            BlockOpening::Block
        } else {
            BlockOpening::Torn
        }
    }

    fn block(&self, text: &str, body: usize, tainted: bool) -> ParsedBlock {
        let after_end = || text[body..].find(END).map_or(text.len(), |at| body + at + END.len());
        if tainted {
            return refused(&XmlFlaw::AfterTainted, "", after_end(), true);
        }
        let mut cursor = TextCursor::new(text, body);
        // Only the white space of JSON may precede it.
        let first = text.len() - text[body..].trim_start_matches([' ', '\t', '\r', '\n']).len();
        cursor.seek(first);
        if cursor.json().is_none() {
            let (flaw, at) = find_flaw(&text[body..], first - body);
            let end = if flaw == XmlFlaw::TooLarge { text.len() } else { after_end() };
            return refused(&flaw, &text[body..body + at], end, true);
        }
        let document_end = cursor.position();
        let document = &text[body..document_end];
        if let Some(at) = too_deep(document) {
            let is_large = at > BLOCK_BYTES_MAX;
            let flaw =
                if is_large { XmlFlaw::TooLarge } else { XmlFlaw::NotJson { what: texts::TOO_DEEP.into() } };
            let end = if is_large { text.len() } else { after_end() };
            return refused(&flaw, &document[..at], end, true);
        }
        if document.len() > BLOCK_BYTES_MAX {
            return refused(&XmlFlaw::TooLarge, document, text.len(), true);
        }
        cursor.skip_whitespace();
        let is_near = cursor.position() - document_end <= TAIL_SPACES_MAX;
        let has_end = is_near && (cursor.eat(END) || cursor.is_at_end());
        if !has_end {
            return refused(&XmlFlaw::NoEnd, document, document_end, false);
        }
        let end = cursor.position();
        if JsonRef::parse(document).is_ok_and(|json| is_given_twice(&json)) {
            return refused(&XmlFlaw::Twice, document, end, false);
        }
        cursor.seek(body - START.len());
        let matched = hermes::read(&mut cursor);
        if matched.is_empty() {
            return refused(&XmlFlaw::NoCall, document, end, false);
        }
        let call = |matched: super::super::call_match::CallMatch<'_>| {
            let arguments = matched.arguments.into_text();
            let name = unescape(MARKER_PREFIXES, &matched.name).into_owned();
            (name, Ok(unescape(MARKER_PREFIXES, &arguments).into_owned()))
        };
        ParsedBlock { calls: matched.into_iter().map(call).collect(), end, tainted: false, notes: Vec::new() }
    }
}

fn refused(flaw: &XmlFlaw, before: &str, end: usize, tainted: bool) -> ParsedBlock {
    let name = name_in(before);
    ParsedBlock { calls: vec![(name, Err(flaw.to_string()))], end, tainted, notes: Vec::new() }
}

/// The flaw of a text that is no document, and its position.
fn find_flaw(body: &str, first: usize) -> (XmlFlaw, usize) {
    let not_json = |what: String, at: usize| {
        let flaw = if at > BLOCK_BYTES_MAX { XmlFlaw::TooLarge } else { XmlFlaw::NotJson { what } };
        (flaw, at)
    };
    if body[first..].starts_with(|c| !matches!(c, '{' | '[')) {
        return not_json(texts::NO_BRACKET.into(), first);
    }
    let mut reader = ArgumentsReader::default();
    reader.push(body);
    let error = reader.error();
    let known = error.map_or(body.len(), |error| error.offset);
    match (too_deep(&body[..known]), error) {
        (Some(at), _) => not_json(texts::TOO_DEEP.into(), at),
        (None, Some(error)) => not_json(texts::invalid_json_text(error.message), error.offset),
        (None, None) => not_json(texts::CUT.into(), body.len()),
    }
}

/// Offset at which a document, or its beginning, is nested too deeply.
fn too_deep(document: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in outside_strings(document) {
        match byte {
            b'{' | b'[' if depth == DEPTH_MAX => return Some(at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// The bytes of a document that are not inside its strings; a string is the quotes around it.
fn outside_strings(document: &str) -> impl Iterator<Item = (usize, u8)> {
    let (mut quoted, mut escaped) = (false, false);
    document.bytes().enumerate().filter(move |(_, byte)| {
        let inside = quoted;
        match byte {
            b'"' if !escaped => {
                quoted = !quoted;
                return true;
            }
            b'\\' => escaped = inside && !escaped,
            _ => escaped = false,
        }
        escaped &= inside;
        !inside
    })
}

/// Name in the beginning of a call.
fn name_in(before: &str) -> String {
    let mut depth = 0_usize;
    let mut is_value = false;
    let mut key = "";
    let mut string = None;
    for (at, byte) in outside_strings(before) {
        match (byte, string.take()) {
            (b'"', None) => string = Some(at),
            (b'"', Some(from)) if depth == 1 && is_value => {
                let name = serde_json::from_str::<String>(&before[from..=at]).unwrap_or_default();
                if key == "\"name\"" {
                    return unescape(MARKER_PREFIXES, &name).into_owned();
                }
            }
            (b'"', Some(from)) if depth == 1 => key = &before[from..=at],
            (b':', _) if depth == 1 => is_value = true,
            (b',', _) if depth == 1 => (is_value, key) = (false, ""),
            (b'{' | b'[', _) => depth += 1,
            (b'}' | b']', _) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    String::new()
}

/// True if a significant key is repeated, in a call or in its `function`.
fn is_given_twice(json: &JsonRef<'_>) -> bool {
    if json.is_array() {
        return json.items().iter().any(is_given_twice);
    }
    let keys: Vec<&str> = json.members().iter().map(|(key, _)| key.as_ref()).collect();
    let twice = |key: &str| keys.iter().filter(|known| **known == key).count() > 1;
    let deciding = ["name", "arguments", "parameters", "function"].into_iter().any(twice);
    let inner = json.get("function").filter(|function| function.is_object());
    deciding || inner.is_some_and(|inner| keys.contains(&"name") || is_given_twice(inner))
}
