//! The scanner's eyes: which sign begins here, seen from as much text as has come.

use super::super::block_scanner::{BlockDecision, InputState, LinePosition, MarkerKind, MarkerMatch};
use super::super::quotation::is_blank;
use super::syntax::{
    ANGLES_MAX, END, ESCAPE_SUFFIX, KEY_BYTES_MAX, LABEL_SPACES_MAX, LOOK_BYTES_MAX, START, TOOL_NAME,
    is_colon, is_key_char, is_space,
};

/// Brackets of values; what one kind opens only the same kind closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BracketKind {
    Corner,
    Brace,
}

/// Quoting of a value, which decides if the markers in it are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuoteMode {
    Plain,
    Escape,
}

/// A sign around a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueSign {
    Open(BracketKind, QuoteMode),
    Close(BracketKind, QuoteMode),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignMatch {
    /// No sign and nothing like one.
    No,
    /// Undecided: more text is needed.
    More,
    /// Begins like a sign but is not one.
    LookAlike,
    /// A sign of this length.
    Yes(ValueSign, usize),
}

/// The marker at the beginning of `text`.
pub(super) fn marker(text: &str, rest: InputState) -> MarkerMatch {
    let undecided = if rest == InputState::Ended { MarkerMatch::Torn } else { MarkerMatch::More };
    let bytes = text.as_bytes();
    let angles = bytes.iter().take(ANGLES_MAX + 1).take_while(|byte| **byte == b'<').count();
    if angles > ANGLES_MAX {
        return MarkerMatch::No;
    }
    if angles == bytes.len() {
        // One `<` at the end of a reply is text.
        return if rest == InputState::Ended && angles < 2 { MarkerMatch::No } else { undecided };
    }
    if angles < 2 || bytes[angles] != b'[' {
        return MarkerMatch::No;
    }
    let Some(label_at) = spaces(bytes, angles + 1) else { return MarkerMatch::No };
    let is_label = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b'_';
    let label_end = label_at + bytes[label_at..].iter().take_while(is_label).count();
    let label = &text[label_at..label_end];
    if label_end == bytes.len() {
        let begins = LABELS.iter().any(|(known, _)| starts_with(known, label));
        return if begins { undecided } else { MarkerMatch::No };
    }
    let Some((_, mark)) = LABELS.iter().find(|(known, _)| known.eq_ignore_ascii_case(label)) else {
        return MarkerMatch::No;
    };
    let Some(bracket) = spaces(bytes, label_end) else { return MarkerMatch::No };
    match bytes.get(bracket) {
        None => return undecided,
        Some(b']') => {}
        Some(_) => return MarkerMatch::No,
    }
    let closing = bytes[bracket + 1..].iter().take(3).take_while(|byte| **byte == b'>').count();
    let end = bracket + 1 + closing;
    match closing {
        3 => MarkerMatch::Yes(*mark, end),
        2 if end < bytes.len() || rest == InputState::Ended => MarkerMatch::Yes(*mark, end),
        _ if end == bytes.len() => undecided,
        _ => MarkerMatch::No,
    }
}

const LABELS: [(&str, MarkerKind); 4] = [
    (START, MarkerKind::Start),
    (END, MarkerKind::End),
    ("TOOL_REQUEST_ESCAPE", MarkerKind::Example),
    ("END_TOOL_REQUEST_ESCAPE", MarkerKind::ExampleEnd),
];

/// Offset after the spaces at `at`, unless there are too many.
fn spaces(bytes: &[u8], at: usize) -> Option<usize> {
    let count = bytes[at..].iter().take(LABEL_SPACES_MAX + 1).take_while(|byte| **byte == b' ').count();
    (count <= LABEL_SPACES_MAX).then_some(at + count)
}

fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// A marker without its `_ESCAPE`: its meaning inside an ESCAPE value.
pub(super) fn without_escape_suffix(marker: &str) -> String {
    let at = marker.len() - marker.trim_start_matches(|c| c != ']').len();
    let label_end = marker[..at].trim_end_matches(' ').len();
    let cut = label_end.saturating_sub(ESCAPE_SUFFIX.len());
    format!("{}{}", &marker[..cut], &marker[label_end..])
}

/// True if a block follows a start marker.
///
/// At the beginning of a line it does if the line ends here, or if a field follows; elsewhere only if a field
/// follows. So a marker in running text swallows nothing.
pub(super) fn follows(after: &str, start: LinePosition, rest: InputState) -> BlockDecision {
    let window = &after[..after.floor_char_boundary(LOOK_BYTES_MAX)];
    let (undecided, ended) = if window.len() < after.len() || window.len() == LOOK_BYTES_MAX {
        (BlockDecision::Text, BlockDecision::Text)
    } else if rest == InputState::Ended {
        (
            BlockDecision::Torn,
            if start == LinePosition::LineStart { BlockDecision::Block } else { BlockDecision::Torn },
        )
    } else {
        (BlockDecision::More, BlockDecision::More)
    };
    let body = skip_angles(window);
    let line = body.trim_start_matches(is_blank);
    if start == LinePosition::LineStart && line.starts_with('\n') {
        return BlockDecision::Block;
    }
    let field = body.trim_start_matches(is_space);
    let key = &field[..field.len() - field.trim_start_matches(is_key_char).len()];
    let names_tool = key.eq_ignore_ascii_case(TOOL_NAME);
    if key.len() == field.len() {
        return match key {
            "" => ended,
            _ if key.len() > KEY_BYTES_MAX => BlockDecision::Text,
            _ if starts_with(TOOL_NAME, key) => ended,
            _ if undecided == BlockDecision::Torn => BlockDecision::Text,
            _ => undecided,
        };
    }
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return BlockDecision::Text;
    }
    let colon = field[key.len()..].trim_start_matches(is_space);
    let Some(first) = colon.chars().next() else {
        let torn = undecided == BlockDecision::Torn && !names_tool;
        return if torn { BlockDecision::Text } else { ended };
    };
    if !is_colon(first) {
        return BlockDecision::Text;
    }
    if start == LinePosition::LineStart && names_tool {
        return BlockDecision::Block;
    }
    let value = colon[first.len_utf8()..].trim_start_matches(is_space);
    match value {
        "" | "「" | "{" => ended,
        _ if value.starts_with("「始") || value.starts_with("{始") => BlockDecision::Block,
        _ => BlockDecision::Text,
    }
}

/// The text after the `>` that still belong to a marker of three.
pub(super) fn skip_angles(text: &str) -> &str {
    let count = text.bytes().take(ANGLES_MAX - 3).take_while(|byte| *byte == b'>').count();
    &text[count..]
}

/// The sign at the beginning of `text`, a corner or a brace.
pub(super) fn match_sign(text: &str) -> SignMatch {
    let (brackets, closing) =
        if text.starts_with('「') { (BracketKind::Corner, '」') } else { (BracketKind::Brace, '}') };
    let mut rest = text.chars();
    rest.next();
    let opens = match rest.next() {
        None => return SignMatch::More,
        Some('始') => true,
        Some('末') => false,
        Some(_) => return SignMatch::No,
    };
    let word = rest.as_str();
    let escape = "ESCAPE";
    let (quoting, tail) = if starts_with(word, escape) {
        (QuoteMode::Escape, &word[escape.len()..])
    } else if word.len() < escape.len() && starts_with(escape, word) {
        return SignMatch::More;
    } else {
        (QuoteMode::Plain, word)
    };
    match tail.chars().next() {
        None => SignMatch::More,
        Some(c) if c == closing => {
            let length = text.len() - tail.len() + c.len_utf8();
            let sign =
                if opens { ValueSign::Open(brackets, quoting) } else { ValueSign::Close(brackets, quoting) };
            SignMatch::Yes(sign, length)
        }
        Some(_) => SignMatch::LookAlike,
    }
}

impl BracketKind {
    /// Opening of a plain value.
    pub(super) fn plain_opener(self) -> &'static str {
        match self {
            BracketKind::Corner => "「始」",
            BracketKind::Brace => "{始}",
        }
    }

    /// End of a value.
    pub(super) fn closer(self, quoting: QuoteMode) -> &'static str {
        match (self, quoting) {
            (BracketKind::Corner, QuoteMode::Plain) => "「末」",
            (BracketKind::Corner, QuoteMode::Escape) => "「末ESCAPE」",
            (BracketKind::Brace, QuoteMode::Plain) => "{末}",
            (BracketKind::Brace, QuoteMode::Escape) => "{末ESCAPE}",
        }
    }
}
