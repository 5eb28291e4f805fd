//! The simple reader of request blocks: a whole text, searched from sign to sign.

use super::super::escape::{Beginning, unescape};
use super::super::whole::{Block, Opens, Standing, WholeGrammar};
use super::marks::{
    ANGLES_MAX, BARE_NAMES_MAX, BEGINNINGS, BLOCK_BYTES_MAX, END, FIELDS_MAX, GAP_BYTES_MAX, KEY_BYTES_MAX,
    LABEL_SPACES_MAX, LOOK_BYTES_MAX, START, TOOL_NAME, is_colon, is_key_char, is_space,
};
use super::meaning;
use super::words::Flaw;
use crate::vocabulary::ToolDefinition;

pub(super) struct Reader<'d> {
    pub(super) tools: &'d [ToolDefinition],
}

/// A field as written.
pub(super) struct Field {
    pub(super) key: String,
    pub(super) value: String,
}

/// The fields of a block, and names with a colon that have no value.
#[derive(Default)]
pub(super) struct Fields {
    pub(super) fields: Vec<Field>,
    pub(super) bare: Vec<String>,
}

/// Why a block is refused, and where to look for its end: `None` if it has none.
struct Refusal {
    flaw: Flaw,
    from: Option<usize>,
    tainted: bool,
}

impl Refusal {
    /// A value may not have closed.
    fn tainted(flaw: Flaw, from: usize) -> Self {
        Self { flaw, from: Some(from), tainted: true }
    }
}

impl WholeGrammar for Reader<'_> {
    fn beginnings(&self) -> &'static [Beginning] {
        BEGINNINGS
    }

    fn leftover_characters(&self) -> &'static [char] {
        &['「', '{']
    }

    fn standing(&self, text: &str) -> Standing {
        if text.starts_with('<') { marker(text) } else { leftover(text) }
    }

    fn opens(&self, after: &str, at_line_start: bool) -> Opens {
        opens(after, at_line_start)
    }

    fn block(&self, text: &str, body: usize, tainted: bool) -> Block {
        let mut fields = Fields::default();
        let read = if tainted {
            Err(Refusal::tainted(Flaw::AfterTainted, body))
        } else {
            read_fields(text, body, &mut fields)
        };
        match read {
            Ok(end) => match meaning::calls(&fields, self.tools) {
                Ok((calls, notes)) => {
                    let calls = calls.into_iter().map(|(name, arguments)| (name, Ok(arguments))).collect();
                    Block { calls, end, tainted: false, notes }
                }
                Err(flaw) => self.refused(&fields, &flaw, end, false),
            },
            Err(Refusal { flaw: flaw @ Flaw::NoEnd, from, .. }) => {
                self.refused(&fields, &flaw, from.unwrap_or(text.len()), false)
            }
            Err(Refusal { flaw, from, tainted }) => {
                let end = from.and_then(|from| end_marker(text, from)).unwrap_or(text.len());
                self.refused(&fields, &flaw, end, tainted)
            }
        }
    }
}

impl Reader<'_> {
    fn refused(&self, fields: &Fields, flaw: &Flaw, end: usize, tainted: bool) -> Block {
        let name = meaning::name_so_far(&fields.fields, self.tools);
        Block { calls: vec![(name, Err(flaw.to_string()))], end, tainted, notes: Vec::new() }
    }
}

/// Reads fields up to the end marker; what is behind it.
fn read_fields(text: &str, body: usize, into: &mut Fields) -> Result<usize, Refusal> {
    let mut at = body + extra_angles(&text[body..]);
    loop {
        let gap = at;
        let no_end = || Refusal { flaw: Flaw::NoEnd, from: Some(gap), tainted: false };
        let sign = loop {
            let Some(offset) = text[at..].find(['<', '「', '{']) else { return Err(no_end()) };
            at += offset;
            if at - gap > GAP_BYTES_MAX {
                return Err(no_end());
            }
            if !text[at..].starts_with('<') {
                match sign(&text[at..]) {
                    Sign::None => at += text[at..].chars().next().map_or(1, char::len_utf8),
                    Sign::Alike => return Err(Refusal::tainted(Flaw::BadMark, at)),
                    Sign::Close(..) => return Err(Refusal::tainted(Flaw::StrayCloser, at)),
                    Sign::Open(sign) => break sign,
                }
                continue;
            }
            at += match marker(&text[at..]) {
                Standing::End(length) => {
                    note_bare(&text[gap..at], into);
                    return Ok(at + length);
                }
                Standing::Start(length) => {
                    let line = text[gap..at].rfind('\n').map_or(gap, |newline| gap + newline + 1);
                    let at_line_start = text[line..at].chars().all(is_space);
                    if opens(&text[at + length..], at_line_start) == Opens::Block {
                        return Err(no_end());
                    }
                    length
                }
                Standing::Example(length) | Standing::ExampleEnd(length) => length,
                _ => 1,
            };
        };
        let value = at + sign.length;
        let Some((key, key_at)) = key(&text[gap..at]) else {
            return Err(Refusal::tainted(Flaw::NoKey, value));
        };
        if into.fields.len() == FIELDS_MAX {
            return Err(Refusal::tainted(Flaw::TooManyFields, value));
        }
        note_bare(&text[gap..gap + key_at], into);
        let key = if key.eq_ignore_ascii_case(TOOL_NAME) { TOOL_NAME } else { key };
        let (written, behind) = read_value(text, body, value, &sign, key)?;
        at = behind;
        into.fields.push(Field { key: key.to_owned(), value: unescape(BEGINNINGS, &written).into_owned() });
    }
}

/// The value that begins at `from`, and what is behind its closing sign.
fn read_value(
    text: &str,
    body: usize,
    from: usize,
    opened: &Opened,
    key: &str,
) -> Result<(String, usize), Refusal> {
    let mut value = String::new();
    let mut at = from;
    let in_bounds = |at: usize| {
        let too_large = at > from && at - body > BLOCK_BYTES_MAX;
        if too_large { Err(Refusal { flaw: Flaw::TooLarge, from: None, tainted: true }) } else { Ok(()) }
    };
    while let Some(offset) = text[at..].find(['<', '「', '{']) {
        value += &text[at..at + offset];
        at += offset;
        let rest = &text[at..];
        if rest.starts_with('<') {
            match marker(rest) {
                Standing::End(_) if !opened.escape => {
                    in_bounds(at)?;
                    return Err(Refusal::tainted(Flaw::EndInValue { key: key.into() }, at));
                }
                Standing::Example(length) | Standing::ExampleEnd(length) if opened.escape => {
                    value += &without_suffix(&rest[..length]);
                    at += length;
                    continue;
                }
                _ => {}
            }
        } else {
            match sign(rest) {
                Sign::Close(close) if close.brace == opened.brace && close.escape == opened.escape => {
                    in_bounds(at)?;
                    return Ok((value, at + close.length));
                }
                Sign::Open(_) if !opened.escape => {
                    in_bounds(at)?;
                    return Err(Refusal::tainted(Flaw::OpenerInValue { key: key.into() }, at));
                }
                Sign::Open(inner) if inner.escape => {
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
    let flaw = Flaw::Unclosed { key: key.into(), closer };
    Err(Refusal { flaw, from: None, tainted: false })
}

/// Behind the next end marker.
fn end_marker(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(offset) = text[at..].find('<') {
        at += offset;
        match marker(&text[at..]) {
            Standing::End(length) => return Some(at + length),
            _ => at += 1,
        }
    }
    None
}

/// The name in front of an opening sign, and where it begins.
fn key(gap: &str) -> Option<(&str, usize)> {
    let colon = gap.trim_end_matches(is_space);
    let name = colon.strip_suffix(is_colon)?.trim_end_matches(is_space);
    let start = name.char_indices().rev().take_while(|(_, c)| is_key_char(*c)).last()?.0;
    let key = &name[start..];
    let mut before = name[..start].chars().rev().skip_while(|c| matches!(c, ' ' | '\t' | '\r'));
    let is_apart = before.next().is_none_or(|c| matches!(c, ',' | '，' | '\n'));
    (is_apart && key.len() <= KEY_BYTES_MAX).then_some((key, start))
}

/// Names with a colon at the beginning of the parts of a gap.
fn note_bare(gap: &str, into: &mut Fields) {
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
fn marker(text: &str) -> Standing {
    let angles = text.bytes().take(ANGLES_MAX + 1).take_while(|byte| *byte == b'<').count();
    if angles > ANGLES_MAX || (angles < 2 && text.len() > angles) || text.len() < 2 {
        return Standing::Nothing;
    }
    let Some(rest) = text[angles..].strip_prefix('[') else {
        return if text.len() == angles { Standing::Torn } else { Standing::Nothing };
    };
    let label = rest.trim_start_matches(' ');
    if rest.len() - label.len() > LABEL_SPACES_MAX {
        return Standing::Nothing;
    }
    let length = label.find(|c: char| !(c.is_ascii_alphabetic() || c == '_')).unwrap_or(label.len());
    let word = label[..length].to_ascii_uppercase();
    let labels = [START, END, "TOOL_REQUEST_ESCAPE", "END_TOOL_REQUEST_ESCAPE"];
    if length == label.len() {
        let is_torn = labels.iter().any(|known| known.starts_with(&word));
        return if is_torn { Standing::Torn } else { Standing::Nothing };
    }
    if !labels.contains(&word.as_str()) {
        return Standing::Nothing;
    }
    let rest = &label[length..];
    let bracket = rest.trim_start_matches(' ');
    if rest.len() - bracket.len() > LABEL_SPACES_MAX {
        return Standing::Nothing;
    }
    let Some(tail) = bracket.strip_prefix(']') else {
        return if bracket.is_empty() { Standing::Torn } else { Standing::Nothing };
    };
    let closing = (tail.len() - tail.trim_start_matches('>').len()).min(3);
    let whole = text.len() - tail.len() + closing;
    match closing {
        2 | 3 if word == START => Standing::Start(whole),
        2 | 3 if word == END => Standing::End(whole),
        2 | 3 if word.starts_with(START) => Standing::Example(whole),
        2 | 3 => Standing::ExampleEnd(whole),
        _ if tail.len() == closing => Standing::Torn,
        _ => Standing::Nothing,
    }
}

/// `<<<[X_ESCAPE]>>>` as `<<<[X]>>>`.
fn without_suffix(marker: &str) -> String {
    let suffix = marker.to_ascii_uppercase().rfind("_ESCAPE").unwrap_or(marker.len());
    let behind = marker[suffix..].get("_ESCAPE".len()..).unwrap_or_default();
    format!("{}{behind}", &marker[..suffix])
}

struct Opened {
    brace: bool,
    escape: bool,
    length: usize,
}

enum Sign {
    None,
    /// Begins like a sign and is none.
    Alike,
    Open(Opened),
    Close(Opened),
}

fn sign(text: &str) -> Sign {
    let brace = text.starts_with('{');
    let mut characters = text.chars();
    characters.next();
    let word = characters.next();
    let Some(is_open) =
        [('始', true), ('末', false)].iter().find(|(c, _)| Some(*c) == word).map(|(_, is)| is)
    else {
        return Sign::None;
    };
    let rest = characters.as_str();
    let escape = rest.get(.."ESCAPE".len()).is_some_and(|word| word.eq_ignore_ascii_case("ESCAPE"));
    let tail = if escape { &rest["ESCAPE".len()..] } else { rest };
    let closing = if brace { '}' } else { '」' };
    if tail.starts_with(closing) {
        let length = text.len() - tail.len() + closing.len_utf8();
        let opened = Opened { brace, escape, length };
        if *is_open { Sign::Open(opened) } else { Sign::Close(opened) }
    } else if tail.is_empty() || "ESCAPE".starts_with(&rest.to_ascii_uppercase()) {
        // The text ends here.
        Sign::None
    } else {
        Sign::Alike
    }
}

fn leftover(text: &str) -> Standing {
    match sign(text) {
        Sign::Close(close) => Standing::Leftover(close.length),
        _ => Standing::Nothing,
    }
}

/// Does what follows a start marker make it a block?
fn opens(after: &str, at_line_start: bool) -> Opens {
    let look = after.floor_char_boundary(LOOK_BYTES_MAX);
    let window = &after[..look];
    let is_all = look == after.len() && look < LOOK_BYTES_MAX;
    // If the text ends before it is decided: a beginning of a block is not shown, anything else is text.
    let torn = match (is_all, at_line_start) {
        (false, _) => Opens::Nothing,
        (true, true) => Opens::Block,
        (true, false) => Opens::Torn,
    };
    let body = &window[extra_angles(window)..];
    if at_line_start && body.trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
        return Opens::Block;
    }
    let field = body.trim_start_matches(is_space);
    if field.is_empty() {
        return torn;
    }
    let end = field.find(|c| !is_key_char(c)).unwrap_or(field.len());
    let (key, rest) = field.split_at(end);
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Opens::Nothing;
    }
    let is_tool_name = key.eq_ignore_ascii_case(TOOL_NAME);
    let colon = rest.trim_start_matches(is_space);
    if colon.is_empty() {
        let begins =
            if rest.is_empty() { TOOL_NAME.starts_with(&key.to_ascii_lowercase()) } else { is_tool_name };
        return if begins { torn } else { Opens::Nothing };
    }
    let Some(value) = colon.strip_prefix(is_colon) else { return Opens::Nothing };
    if at_line_start && is_tool_name {
        return Opens::Block;
    }
    match value.trim_start_matches(is_space) {
        "" | "「" | "{" => torn,
        value if value.starts_with("「始") || value.starts_with("{始") => Opens::Block,
        _ => Opens::Nothing,
    }
}
