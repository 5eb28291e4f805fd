//! The simple reader of request blocks: a whole text, searched from sign to sign.

use super::super::escape::{MarkerPrefix, unescape};
use super::super::text_parser::{BlockOpening, MarkerToken, ParsedBlock, ParserGrammar};
use super::interpret;
use super::syntax::{
    ANGLES_MAX, BARE_NAMES_MAX, BLOCK_BYTES_MAX, END, FIELDS_MAX, GAP_BYTES_MAX, KEY_BYTES_MAX,
    LABEL_SPACES_MAX, LOOK_BYTES_MAX, MARKER_PREFIXES, START, TOOL_NAME, is_colon, is_key_char, is_space,
};
use super::texts::VcpFlaw;
use crate::vocabulary::ToolDefinition;

pub(super) struct VcpParser<'d> {
    pub(super) tools: &'d [ToolDefinition],
}

/// A field as written.
pub(super) struct VcpField {
    pub(super) key: String,
    pub(super) value: String,
}

/// The fields of a block, and names with a colon that have no value.
#[derive(Default)]
pub(super) struct VcpFields {
    pub(super) fields: Vec<VcpField>,
    pub(super) bare: Vec<String>,
}

/// Reason why a block is refused, and the offset at which the search for its end begins: `None` if it has
/// none.
struct BlockRefusal {
    flaw: VcpFlaw,
    from: Option<usize>,
    tainted: bool,
}

impl BlockRefusal {
    /// A value may not have closed.
    fn tainted(flaw: VcpFlaw, from: usize) -> Self {
        Self { flaw, from: Some(from), tainted: true }
    }
}

impl ParserGrammar for VcpParser<'_> {
    fn prefixes(&self) -> &'static [MarkerPrefix] {
        MARKER_PREFIXES
    }

    fn leftover_characters(&self) -> &'static [char] {
        &['「', '{']
    }

    fn marker_at(&self, text: &str) -> MarkerToken {
        if text.starts_with('<') { marker(text) } else { leftover(text) }
    }

    fn block_opening(&self, after: &str, at_line_start: bool) -> BlockOpening {
        block_opening(after, at_line_start)
    }

    fn block(&self, text: &str, body: usize, tainted: bool) -> ParsedBlock {
        let mut fields = VcpFields::default();
        let read = if tainted {
            Err(BlockRefusal::tainted(VcpFlaw::AfterTainted, body))
        } else {
            read_fields(text, body, &mut fields)
        };
        match read {
            Ok(end) => match interpret::calls(&fields, self.tools) {
                Ok((calls, notes)) => {
                    let calls = calls.into_iter().map(|(name, arguments)| (name, Ok(arguments))).collect();
                    ParsedBlock { calls, end, tainted: false, notes }
                }
                Err(flaw) => self.refused(&fields, &flaw, end, false),
            },
            Err(BlockRefusal { flaw: flaw @ VcpFlaw::NoEnd, from, .. }) => {
                self.refused(&fields, &flaw, from.unwrap_or(text.len()), false)
            }
            Err(BlockRefusal { flaw, from, tainted }) => {
                let end = from.and_then(|from| end_marker(text, from)).unwrap_or(text.len());
                self.refused(&fields, &flaw, end, tainted)
            }
        }
    }
}

impl VcpParser<'_> {
    fn refused(&self, fields: &VcpFields, flaw: &VcpFlaw, end: usize, tainted: bool) -> ParsedBlock {
        let name = interpret::name_so_far(&fields.fields, self.tools);
        ParsedBlock { calls: vec![(name, Err(flaw.to_string()))], end, tainted, notes: Vec::new() }
    }
}

/// Reads fields up to the end marker, and returns the rest.
fn read_fields(text: &str, body: usize, into: &mut VcpFields) -> Result<usize, BlockRefusal> {
    let mut at = body + extra_angles(&text[body..]);
    loop {
        let gap = at;
        let no_end = || BlockRefusal { flaw: VcpFlaw::NoEnd, from: Some(gap), tainted: false };
        let sign = loop {
            let Some(offset) = text[at..].find(['<', '「', '{']) else { return Err(no_end()) };
            at += offset;
            if at - gap > GAP_BYTES_MAX {
                return Err(no_end());
            }
            if !text[at..].starts_with('<') {
                match parse_sign(&text[at..]) {
                    ParsedSign::None => at += text[at..].chars().next().map_or(1, char::len_utf8),
                    ParsedSign::LookAlike => return Err(BlockRefusal::tainted(VcpFlaw::BadMark, at)),
                    ParsedSign::Close(..) => return Err(BlockRefusal::tainted(VcpFlaw::StrayCloser, at)),
                    ParsedSign::Open(sign) => break sign,
                }
                continue;
            }
            at += match marker(&text[at..]) {
                MarkerToken::End(length) => {
                    note_bare(&text[gap..at], into);
                    return Ok(at + length);
                }
                MarkerToken::Start(length) => {
                    let line = text[gap..at].rfind('\n').map_or(gap, |newline| gap + newline + 1);
                    let at_line_start = text[line..at].chars().all(is_space);
                    if block_opening(&text[at + length..], at_line_start) == BlockOpening::Block {
                        return Err(no_end());
                    }
                    length
                }
                MarkerToken::Example(length) | MarkerToken::ExampleEnd(length) => length,
                _ => 1,
            };
        };
        let value = at + sign.length;
        let Some((key, key_at)) = key_before(&text[gap..at]) else {
            return Err(BlockRefusal::tainted(VcpFlaw::NoKey, value));
        };
        if into.fields.len() == FIELDS_MAX {
            return Err(BlockRefusal::tainted(VcpFlaw::TooManyFields, value));
        }
        note_bare(&text[gap..gap + key_at], into);
        let key = if key.eq_ignore_ascii_case(TOOL_NAME) { TOOL_NAME } else { key };
        let (written, end) = read_value(text, body, value, &sign, key)?;
        at = end;
        into.fields
            .push(VcpField { key: key.to_owned(), value: unescape(MARKER_PREFIXES, &written).into_owned() });
    }
}

/// The value that begins at `from`, and the text after its closing sign.
fn read_value(
    text: &str,
    body: usize,
    from: usize,
    opened: &SignToken,
    key: &str,
) -> Result<(String, usize), BlockRefusal> {
    let mut value = String::new();
    let mut at = from;
    let in_bounds = |at: usize| {
        let too_large = at > from && at - body > BLOCK_BYTES_MAX;
        if too_large {
            Err(BlockRefusal { flaw: VcpFlaw::TooLarge, from: None, tainted: true })
        } else {
            Ok(())
        }
    };
    while let Some(offset) = text[at..].find(['<', '「', '{']) {
        value += &text[at..at + offset];
        at += offset;
        let rest = &text[at..];
        if rest.starts_with('<') {
            match marker(rest) {
                MarkerToken::End(_) if !opened.escape => {
                    in_bounds(at)?;
                    return Err(BlockRefusal::tainted(VcpFlaw::EndInValue { key: key.into() }, at));
                }
                MarkerToken::Example(length) | MarkerToken::ExampleEnd(length) if opened.escape => {
                    value += &without_suffix(&rest[..length]);
                    at += length;
                    continue;
                }
                _ => {}
            }
        } else {
            match parse_sign(rest) {
                ParsedSign::Close(close) if close.brace == opened.brace && close.escape == opened.escape => {
                    in_bounds(at)?;
                    return Ok((value, at + close.length));
                }
                ParsedSign::Open(_) if !opened.escape => {
                    in_bounds(at)?;
                    return Err(BlockRefusal::tainted(VcpFlaw::OpenerInValue { key: key.into() }, at));
                }
                ParsedSign::Open(inner) if inner.escape => {
                    value += if inner.brace { "{始}" } else { "「始」" };
                    at += inner.length;
                    continue;
                }
                _ => {}
            }
        }
        let length = rest.chars().next().map_or(1, char::len_utf8);
        value += &rest[..length];
        at += length;
    }
    in_bounds(text.len())?;
    let closer = match (opened.brace, opened.escape) {
        (false, false) => "「末」",
        (false, true) => "「末ESCAPE」",
        (true, false) => "{末}",
        (true, true) => "{末ESCAPE}",
    };
    let flaw = VcpFlaw::Unclosed { key: key.into(), closer };
    Err(BlockRefusal { flaw, from: None, tainted: false })
}

/// Offset after the next end marker.
fn end_marker(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(offset) = text[at..].find('<') {
        at += offset;
        match marker(&text[at..]) {
            MarkerToken::End(length) => return Some(at + length),
            _ => at += 1,
        }
    }
    None
}

/// The name in front of an opening sign, and where it begins.
fn key_before(gap: &str) -> Option<(&str, usize)> {
    let colon = gap.trim_end_matches(is_space);
    let name = colon.strip_suffix(is_colon)?.trim_end_matches(is_space);
    let start = name.char_indices().rev().take_while(|(_, c)| is_key_char(*c)).last()?.0;
    let key = &name[start..];
    let mut before = name[..start].chars().rev().skip_while(|c| matches!(c, ' ' | '\t' | '\r'));
    let is_apart = before.next().is_none_or(|c| matches!(c, ',' | '，' | '\n'));
    (is_apart && key.len() <= KEY_BYTES_MAX).then_some((key, start))
}

/// Names with a colon at the beginning of the parts of a gap.
fn note_bare(gap: &str, into: &mut VcpFields) {
    for part in gap.split([',', '，', '\n']) {
        let part = part.trim_start();
        let end = part.find(|c| !is_key_char(c)).unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let known = into.bare.iter().any(|known| known == name) || into.bare.len() >= BARE_NAMES_MAX;
        if !name.is_empty() && rest.trim_start().starts_with(is_colon) && !known {
            into.bare.push(name.to_owned());
        }
    }
}

fn extra_angles(text: &str) -> usize {
    let count = text.len() - text.trim_start_matches('>').len();
    count.min(ANGLES_MAX - 3)
}

// --- signs ---

/// `<<[LABEL]>>`, read step by step; running out of text on the way is a torn marker.
fn marker(text: &str) -> MarkerToken {
    let angles = text.bytes().take(ANGLES_MAX + 1).take_while(|byte| *byte == b'<').count();
    if angles > ANGLES_MAX || (angles < 2 && text.len() > angles) || text.len() < 2 {
        return MarkerToken::Nothing;
    }
    let Some(rest) = text[angles..].strip_prefix('[') else {
        return if text.len() == angles { MarkerToken::Torn } else { MarkerToken::Nothing };
    };
    let label = rest.trim_start_matches(' ');
    if rest.len() - label.len() > LABEL_SPACES_MAX {
        return MarkerToken::Nothing;
    }
    let length = label.find(|c: char| !(c.is_ascii_alphabetic() || c == '_')).unwrap_or(label.len());
    let word = label[..length].to_ascii_uppercase();
    let labels = [START, END, "TOOL_REQUEST_ESCAPE", "END_TOOL_REQUEST_ESCAPE"];
    if length == label.len() {
        let is_torn = labels.iter().any(|known| known.starts_with(&word));
        return if is_torn { MarkerToken::Torn } else { MarkerToken::Nothing };
    }
    if !labels.contains(&word.as_str()) {
        return MarkerToken::Nothing;
    }
    let rest = &label[length..];
    let bracket = rest.trim_start_matches(' ');
    if rest.len() - bracket.len() > LABEL_SPACES_MAX {
        return MarkerToken::Nothing;
    }
    let Some(tail) = bracket.strip_prefix(']') else {
        return if bracket.is_empty() { MarkerToken::Torn } else { MarkerToken::Nothing };
    };
    let closing = (tail.len() - tail.trim_start_matches('>').len()).min(3);
    let whole = text.len() - tail.len() + closing;
    match closing {
        2 | 3 if word == START => MarkerToken::Start(whole),
        2 | 3 if word == END => MarkerToken::End(whole),
        2 | 3 if word.starts_with(START) => MarkerToken::Example(whole),
        2 | 3 => MarkerToken::ExampleEnd(whole),
        _ if tail.len() == closing => MarkerToken::Torn,
        _ => MarkerToken::Nothing,
    }
}

/// Turns `<<<[X_ESCAPE]>>>` into `<<<[X]>>>`.
fn without_suffix(marker: &str) -> String {
    let suffix = marker.to_ascii_uppercase().rfind("_ESCAPE").unwrap_or(marker.len());
    let tail = marker[suffix..].get("_ESCAPE".len()..).unwrap_or_default();
    format!("{}{tail}", &marker[..suffix])
}

struct SignToken {
    brace: bool,
    escape: bool,
    length: usize,
}

enum ParsedSign {
    None,
    /// Begins like a sign but is not one.
    LookAlike,
    Open(SignToken),
    Close(SignToken),
}

fn parse_sign(text: &str) -> ParsedSign {
    let brace = text.starts_with('{');
    let mut characters = text.chars();
    characters.next();
    let word = characters.next();
    let Some(is_open) =
        [('始', true), ('末', false)].iter().find(|(c, _)| Some(*c) == word).map(|(_, is)| is)
    else {
        return ParsedSign::None;
    };
    let rest = characters.as_str();
    let escape = rest.get(.."ESCAPE".len()).is_some_and(|word| word.eq_ignore_ascii_case("ESCAPE"));
    let tail = if escape { &rest["ESCAPE".len()..] } else { rest };
    let closing = if brace { '}' } else { '」' };
    if tail.starts_with(closing) {
        let length = text.len() - tail.len() + closing.len_utf8();
        let opened = SignToken { brace, escape, length };
        if *is_open { ParsedSign::Open(opened) } else { ParsedSign::Close(opened) }
    } else if tail.is_empty() || "ESCAPE".starts_with(&rest.to_ascii_uppercase()) {
        // The text ends here.
        ParsedSign::None
    } else {
        ParsedSign::LookAlike
    }
}

fn leftover(text: &str) -> MarkerToken {
    match parse_sign(text) {
        ParsedSign::Close(close) => MarkerToken::Leftover(close.length),
        _ => MarkerToken::Nothing,
    }
}

/// Does what follows a start marker make it a block?
fn block_opening(after: &str, at_line_start: bool) -> BlockOpening {
    let look = after.floor_char_boundary(LOOK_BYTES_MAX);
    let window = &after[..look];
    let is_all = look == after.len() && look < LOOK_BYTES_MAX;
    // If the text ends before it is decided: a beginning of a block is not shown, anything else is text.
    let torn = match (is_all, at_line_start) {
        (false, _) => BlockOpening::Nothing,
        (true, true) => BlockOpening::Block,
        (true, false) => BlockOpening::Torn,
    };
    let body = &window[extra_angles(window)..];
    if at_line_start && body.trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
        return BlockOpening::Block;
    }
    let field = body.trim_start_matches(is_space);
    if field.is_empty() {
        return torn;
    }
    let end = field.find(|c| !is_key_char(c)).unwrap_or(field.len());
    let (key, rest) = field.split_at(end);
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return BlockOpening::Nothing;
    }
    let is_tool_name = key.eq_ignore_ascii_case(TOOL_NAME);
    let colon = rest.trim_start_matches(is_space);
    if colon.is_empty() {
        let begins =
            if rest.is_empty() { TOOL_NAME.starts_with(&key.to_ascii_lowercase()) } else { is_tool_name };
        return if begins { torn } else { BlockOpening::Nothing };
    }
    let Some(value) = colon.strip_prefix(is_colon) else { return BlockOpening::Nothing };
    if at_line_start && is_tool_name {
        return BlockOpening::Block;
    }
    match value.trim_start_matches(is_space) {
        "" | "「" | "{" => torn,
        value if value.starts_with("「始") || value.starts_with("{始") => BlockOpening::Block,
        _ => BlockOpening::Nothing,
    }
}
