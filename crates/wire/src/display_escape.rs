//! Text for people, without invisible characters.
//!
//! Some characters are invisible, or move others: `"\u{202e}2026-11-24"` reads `42-11-6202`. Wherever a
//! person reads or decides they are shown as `\u202e`, the escape of JSON: so [`escape`] of a JSON text is
//! the same value, and people are shown what runs. Data that is run, sent to a model or stored is never
//! changed.
//!
//! The page has the same function in TypeScript (`web/visible`); both read `tests/visible.json`.

use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;

/// True for characters that are invisible or move others: control characters, those that Unicode calls
/// default-ignorable (zero-width and bidirectional characters, soft hyphens, fillers, tags, variation
/// selectors), line and paragraph separators, marks of annotations, blanks that are no white space.
pub fn is_hidden(char: char) -> bool {
    matches!(
        char,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d159}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Values, names, titles, outputs: everything hidden is spelled out, but for tabs, line ends and what emoji are made of.
/// Spelling out twice changes nothing.
///
/// ```
/// use throughline_wire::display_escape;
///
/// assert_eq!(display_escape::escape("\u{202e}2026-11-24"), "\\u202e2026-11-24");
/// assert_eq!(display_escape::escape("plain"), "plain");
/// ```
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_hidden(text, TextKind::Value)
}

/// Running text: what letters need stays as well, that is joiners in Arabic and Indic words and variants of ideographs.
pub fn escape_prose(text: &str) -> Cow<'_, str> {
    escape_hidden(text, TextKind::Prose)
}

/// A piece of running text whose neighbors are not known: joiners and variants at its ends stay, since they may belong there.
pub fn escape_piece(text: &str) -> Cow<'_, str> {
    escape_hidden(text, TextKind::Piece)
}

/// Text that a person decides by: what emoji are made of is spelt out as well, since `→` and `→\u{fe0f}` look the same.
pub fn escape_exact(text: &str) -> Cow<'_, str> {
    escape_hidden(text, TextKind::Exact)
}

/// Like [`escape_exact`], for a text that is not JSON: two texts never look the same, since the backslashes
/// of apparent escapes are doubled.
pub fn escape_once(text: &str) -> Cow<'_, str> {
    match double_backslashes(text) {
        Cow::Borrowed(text) => escape_exact(text),
        Cow::Owned(text) => Cow::Owned(escape_exact(&text).into_owned()),
    }
}

/// A JSON value as text for people, with everything hidden spelled out as [`escape_exact`] does. Reading it gives the same value.
pub fn json(value: &Value) -> String {
    escape_exact(&value.to_string()).into_owned()
}

/// Like [`json`], indented, a member on each line.
pub fn pretty_json(value: &Value) -> String {
    escape_exact(&format!("{value:#}")).into_owned()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Exact,
    Value,
    Prose,
    Piece,
}

fn escape_hidden(text: &str, kind: TextKind) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\n')) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    // What has been looked at is in `out` up to here.
    let mut copied = 0;
    let (mut before, mut last) = (None, None);
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        if is_hidden(char) && !is_needed(char, (before, last, next), kind) {
            out.push_str(&text[copied..at]);
            copied = at + char.len_utf8();
            for unit in char.encode_utf16(&mut [0; 2]) {
                // A string can always be written to.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        (before, last) = (last, Some(char));
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// True for a hidden character that has a use at its position: after `before` and `last`, in front of `next`.
fn is_needed(
    char: char,
    (before, last, next): (Option<char>, Option<char>, Option<char>),
    kind: TextKind,
) -> bool {
    let is = |at: Option<char>, test: fn(char) -> bool| at.is_some_and(test);
    let is_selected = last == Some('\u{fe0f}') && is(before, is_pictograph);
    match char {
        '\t' | '\n' => return true,
        '\r' => return next == Some('\n'),
        _ if kind == TextKind::Exact => return false,
        _ => {}
    }
    let is_for_emoji = match char {
        // `1️⃣`
        '\u{fe0f}' if next == Some('\u{20e3}') => {
            is(last, |c| matches!(c, '0'..='9' | '#' | '*')) || is(last, is_pictograph)
        }
        '\u{fe0e}' | '\u{fe0f}' => is(last, is_pictograph),
        '\u{200d}' => (is_selected || is(last, is_pictograph)) && is(next, is_pictograph),
        _ => false,
    };
    let is_for_letters = kind != TextKind::Value
        && match char {
            '\u{200c}' | '\u{200d}' => is(last, is_joining),
            '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' => {
                is(last, is_joining) || is(last, is_ideograph)
            }
            '\u{e0100}'..='\u{e01ef}' => is(last, is_ideograph),
            _ => false,
        };
    let is_of_neighbors = kind == TextKind::Piece
        && (last.is_none() || next.is_none())
        && matches!(char, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}');
    is_for_emoji || is_for_letters || is_of_neighbors
}

/// True for characters of the blocks that emoji are in.
fn is_pictograph(char: char) -> bool {
    matches!(
        char,
        '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | '〰' | '〽' | '㊗' | '㊙' | 'Ⓜ'
            | '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{25a0}'..='\u{27bf}'
            | '\u{2900}'..='\u{297f}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{1f000}'..='\u{1faff}'
    )
}

/// True for characters of scripts whose letters join: Arabic and its neighbors, the scripts of India and
/// South-East Asia, Mongolian.
fn is_joining(char: char) -> bool {
    !is_hidden(char)
        && matches!(
            char,
            '\u{600}'..='\u{109f}'
                | '\u{1780}'..='\u{18af}'
                | '\u{a800}'..='\u{abff}'
                | '\u{fb50}'..='\u{fdff}'
                | '\u{fe70}'..='\u{fefc}'
                | '\u{11000}'..='\u{11fff}'
        )
}

fn is_ideograph(char: char) -> bool {
    matches!(char, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Backslashes in front of something hidden, or of the hex digits of something hidden, are doubled: an odd number of them
/// then means an escape, an even number the text itself.
fn double_backslashes(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (plain, from) = rest.split_at(at);
        let after = from.trim_start_matches('\\');
        let backslashes = &from[..from.len() - after.len()];
        out.push_str(plain);
        out.push_str(backslashes);
        let is_escaped = |c: char| is_hidden(c) && !matches!(c, '\t' | '\n');
        if after.starts_with(is_escaped) || looks_like_escape(after) {
            out.push_str(backslashes);
        }
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// `u202e`, or half of a pair.
fn looks_like_escape(after: &str) -> bool {
    let digits = after.strip_prefix('u').and_then(|hex| hex.get(..4));
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let Some(unit) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else { return false };
    char::from_u32(unit).is_none_or(is_hidden)
}
