//! Reading a line of a model's Markdown, which may not have come whole: white space and marks in front of it, and its end.

use throughline_wire::display_escape::is_hidden;

/// Longest line that is held back, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 1_000;

/// State of the text: more may follow, or it is complete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextEnd {
    Open,
    Final,
}

/// The end of a part of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// The part is the whole line.
    Whole,
    /// More of the line may follow.
    Open,
    /// The line exceeds the limit.
    TooLong,
}

/// The line that a text begins with, as far as one looks, without its end.
pub(super) fn line_within(text: &str, bytes_max: usize, end: TextEnd) -> (&str, LineEnd) {
    let window = &text[..text.floor_char_boundary(bytes_max)];
    match window.find('\n') {
        Some(at) => (&window[..at], LineEnd::Whole),
        None if window.len() < text.len() => (window, LineEnd::TooLong),
        None if end == TextEnd::Open => (window, LineEnd::Open),
        None => (window, LineEnd::Whole),
    }
}

/// White space and marks of list items in front of a line.
pub(super) struct LineLead {
    /// Bytes of white space.
    pub indent: usize,
    /// Bytes of all of it.
    pub length: usize,
    /// Width of the indent in columns.
    pub columns: usize,
}

impl LineLead {
    /// `None`: what it is depends on what comes.
    pub(super) fn read(rest: &str, indent: usize, end: TextEnd) -> Option<Self> {
        let mut length = indent;
        loop {
            let body = &rest[length..];
            let digits = body.len() - body.trim_start_matches(|char: char| char.is_ascii_digit()).len();
            let mark = match body[digits..].chars().next() {
                Some('-' | '+' | '*') if digits == 0 => 1,
                Some('.' | ')') if (1..=9).contains(&digits) => digits + 1,
                None if digits <= 9 && end == TextEnd::Open => return None,
                _ => 0,
            };
            let blank = blank_length(&body[mark..]);
            if body[mark..].is_empty() && end == TextEnd::Open {
                return None;
            }
            if mark == 0 || blank == 0 {
                break;
            }
            length += mark + blank;
            if rest[length..].is_empty() && end == TextEnd::Open && length <= LINE_BYTES_MAX {
                return None;
            }
        }
        // A run of marks may be incomplete.
        let body = &rest[length..];
        let may_become_block = ["```", "~~~", "$$", ":::", "///"];
        let is_open = may_become_block.iter().any(|block| block.starts_with(body) && !body.is_empty());
        if is_open && end == TextEnd::Open {
            return None;
        }
        Some(Self { indent, length, columns: columns(&rest[..length]) })
    }
}

pub(super) fn is_blank(char: char) -> bool {
    char != '\n' && (char.is_whitespace() || is_hidden(char))
}

/// Bytes of white space in front of a line's text, also of what is not called so and cannot be seen.
pub(super) fn blank_length(text: &str) -> usize {
    text.find(|char| !is_blank(char)).unwrap_or(text.len())
}

/// Length of a part of a text with the white space and the line end after it.
pub(super) fn with_line_end(text: &str, length: usize) -> usize {
    let blank = blank_length(&text[length..]);
    length + blank + usize::from(text[length + blank..].starts_with('\n'))
}

pub(super) fn run_length(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}

pub(super) fn columns(text: &str) -> usize {
    text.chars().fold(0, |column, char| if char == '\t' { column / 4 * 4 + 4 } else { column + 1 })
}
