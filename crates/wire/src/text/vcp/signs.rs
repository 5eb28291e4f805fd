//! The scanner's eyes: which sign begins here, seen from as much text as has come.

use super::super::page::is_blank;
use super::super::scan::{Mark, Match, Rest, Start, Verdict};
use super::marks::{
    ANGLES_MAX, END, ESCAPE_SUFFIX, KEY_BYTES_MAX, LABEL_SPACES_MAX, LOOK_BYTES_MAX, START, TOOL_NAME,
    is_colon, is_key_char, is_space,
};

/// Brackets of values; what one kind opens only the same kind closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brackets {
    Corner,
    Brace,
}

/// Whether a value protects the markers in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    Plain,
    Escape,
}

/// A sign around a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Open(Brackets, Quoting),
    Close(Brackets, Quoting),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// No sign and nothing like one.
    No,
    /// More text decides.
    More,
    /// Begins like a sign and is none.
    Like,
    /// A sign of this length.
    Yes(Sign, usize),
}

/// The marker at the beginning of `text`.
pub(super) fn marker(text: &str, rest: Rest) -> Match {
    let undecided = if rest == Rest::Ended { Match::Torn } else { Match::More };
    let bytes = text.as_bytes();
    let angles = bytes.iter().take(ANGLES_MAX + 1).take_while(|byte| **byte == b'<').count();
    if angles > ANGLES_MAX {
        return Match::No;
    }
    if angles == bytes.len() {
        // One `<` at the end of a reply is text.
        return if rest == Rest::Ended && angles < 2 { Match::No } else { undecided };
    }
    if angles < 2 || bytes[angles] != b'[' {
        return Match::No;
    }
    let Some(label_at) = spaces(bytes, angles + 1) else { return Match::No };
    let is_label = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b'_';
    let label_end = label_at + bytes[label_at..].iter().take_while(is_label).count();
    let label = &text[label_at..label_end];
    if label_end == bytes.len() {
        let begins = LABELS.iter().any(|(known, _)| starts_with(known, label));
        return if begins { undecided } else { Match::No };
    }
    let Some((_, mark)) = LABELS.iter().find(|(known, _)| known.eq_ignore_ascii_case(label)) else {
        return Match::No;
    };
    let Some(bracket) = spaces(bytes, label_end) else { return Match::No };
    match bytes.get(bracket) {
        None => return undecided,
        Some(b']') => {}
        Some(_) => return Match::No,
    }
    let closing = bytes[bracket + 1..].iter().take(3).take_while(|byte| **byte == b'>').count();
    let end = bracket + 1 + closing;
    match closing {
        3 => Match::Yes(*mark, end),
        2 if end < bytes.len() || rest == Rest::Ended => Match::Yes(*mark, end),
        _ if end == bytes.len() => undecided,
        _ => Match::No,
    }
}

const LABELS: [(&str, Mark); 4] = [
    (START, Mark::Start),
    (END, Mark::End),
    ("TOOL_REQUEST_ESCAPE", Mark::Example),
    ("END_TOOL_REQUEST_ESCAPE", Mark::ExampleEnd),
];

/// Behind the spaces at `at`, unless there are too many.
fn spaces(bytes: &[u8], at: usize) -> Option<usize> {
    let count = bytes[at..].iter().take(LABEL_SPACES_MAX + 1).take_while(|byte| **byte == b' ').count();
    (count <= LABEL_SPACES_MAX).then_some(at + count)
}

fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// A marker with `_ESCAPE` in it, without it: what it stands for inside an ESCAPE value.
pub(super) fn restored(marker: &str) -> String {
    let at = marker.len() - marker.trim_start_matches(|c| c != ']').len();
    let label_end = marker[..at].trim_end_matches(' ').len();
    let cut = label_end.saturating_sub(ESCAPE_SUFFIX.len());
    format!("{}{}", &marker[..cut], &marker[label_end..])
}

/// Is what follows a start marker a block?
///
/// At the beginning of a line it is if the line ends here, or if a field follows; elsewhere only if a field follows.
/// So a marker that is merely mentioned swallows nothing.
pub(super) fn follows(after: &str, start: Start, rest: Rest) -> Verdict {
    let window = &after[..after.floor_char_boundary(LOOK_BYTES_MAX)];
    let (undecided, ended) = if window.len() < after.len() || window.len() == LOOK_BYTES_MAX {
        (Verdict::Text, Verdict::Text)
    } else if rest == Rest::Ended {
        (Verdict::Torn, if start == Start::OfLine { Verdict::Block } else { Verdict::Torn })
    } else {
        (Verdict::More, Verdict::More)
    };
    let body = skip_angles(window);
    let line = body.trim_start_matches(|c: char| c.is_ascii() && is_blank(c as u8));
    if start == Start::OfLine && line.starts_with('\n') {
        return Verdict::Block;
    }
    let field = body.trim_start_matches(is_space);
    let key = &field[..field.len() - field.trim_start_matches(is_key_char).len()];
    let names_tool = key.eq_ignore_ascii_case(TOOL_NAME);
    if key.len() == field.len() {
        return match key {
            "" => ended,
            _ if key.len() > KEY_BYTES_MAX => Verdict::Text,
            _ if starts_with(TOOL_NAME, key) => ended,
            _ if undecided == Verdict::Torn => Verdict::Text,
            _ => undecided,
        };
    }
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Verdict::Text;
    }
    let colon = field[key.len()..].trim_start_matches(is_space);
    let Some(first) = colon.chars().next() else {
        let torn = undecided == Verdict::Torn && !names_tool;
        return if torn { Verdict::Text } else { ended };
    };
    if !is_colon(first) {
        return Verdict::Text;
    }
    if start == Start::OfLine && names_tool {
        return Verdict::Block;
    }
    let value = colon[first.len_utf8()..].trim_start_matches(is_space);
    match value {
        "" | "「" | "{" => ended,
        _ if value.starts_with("「始") || value.starts_with("{始") => Verdict::Block,
        _ => Verdict::Text,
    }
}

/// Behind the `>` that still belong to a marker of three.
pub(super) fn skip_angles(text: &str) -> &str {
    let count = text.bytes().take(ANGLES_MAX - 3).take_while(|byte| *byte == b'>').count();
    &text[count..]
}

/// The sign at the beginning of `text`, a corner or a brace.
pub(super) fn sign(text: &str) -> Seen {
    let (brackets, closing) =
        if text.starts_with('「') { (Brackets::Corner, '」') } else { (Brackets::Brace, '}') };
    let mut rest = text.chars();
    rest.next();
    let opens = match rest.next() {
        None => return Seen::More,
        Some('始') => true,
        Some('末') => false,
        Some(_) => return Seen::No,
    };
    let word = rest.as_str();
    let escape = "ESCAPE";
    let (quoting, tail) = if starts_with(word, escape) {
        (Quoting::Escape, &word[escape.len()..])
    } else if word.len() < escape.len() && starts_with(escape, word) {
        return Seen::More;
    } else {
        (Quoting::Plain, word)
    };
    match tail.chars().next() {
        None => Seen::More,
        Some(c) if c == closing => {
            let length = text.len() - tail.len() + c.len_utf8();
            let sign = if opens { Sign::Open(brackets, quoting) } else { Sign::Close(brackets, quoting) };
            Seen::Yes(sign, length)
        }
        Some(_) => Seen::Like,
    }
}

impl Brackets {
    /// What opens a plain value.
    pub(super) fn plain_opener(self) -> &'static str {
        match self {
            Brackets::Corner => "「始」",
            Brackets::Brace => "{始}",
        }
    }

    /// What closes a value.
    pub(super) fn closer(self, quoting: Quoting) -> &'static str {
        match (self, quoting) {
            (Brackets::Corner, Quoting::Plain) => "「末」",
            (Brackets::Corner, Quoting::Escape) => "「末ESCAPE」",
            (Brackets::Brace, Quoting::Plain) => "{末}",
            (Brackets::Brace, Quoting::Escape) => "{末ESCAPE}",
        }
    }
}
