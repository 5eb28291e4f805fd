//! State of a text: its blocks, and the line so far.

use super::regions::Region;

#[derive(Clone, Copy, Debug, Default)]
pub(super) enum TextZone {
    #[default]
    Page,
    Fence(OpenFence),
    /// Up to this closing text.
    Until(Region),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFence {
    pub(super) mark: char,
    pub(super) length: usize,
    /// Column of the containing list item.
    pub(super) column: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct MarkRun {
    pub(super) mark: char,
    pub(super) length: usize,
    /// True if the run is the first visible text on its line, not indented as code.
    pub(super) leads: bool,
    /// Column at which it begins.
    pub(super) column: usize,
}

/// The line so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineState {
    pub(super) lead: LineLead,
    pub(super) column: usize,
    /// Column of its first character that can be seen.
    pub(super) indentation: usize,
    /// Column after the marker of the list item that begins on this line.
    pub(super) item: Option<usize>,
    /// The line begins with `>`.
    pub(super) quoted: bool,
    /// True if the line has visible text after its `>`.
    pub(super) has_text: bool,
    /// True if the line continues a quotation without a `>`.
    pub(super) continues_quotation: bool,
    pub(super) indented: bool,
    /// True if the line begins with `#`: a heading of Markdown or a comment of many languages.
    pub(super) heading: bool,
    pub(super) comment: bool,
    pub(super) row: bool,
    /// The line so far opens a fence.
    pub(super) opens: Option<OpenFence>,
    /// The line so far closes the fence.
    pub(super) closes: bool,
    pub(super) shape: LineShape,
}

/// The characters of a line, as far as they make it a rule (`---`) or the second line of a table (`|---|---|`).
#[derive(Clone, Copy, Debug)]
pub(super) struct LineShape {
    pub(super) only_rule: bool,
    pub(super) only_delimiters: bool,
    pub(super) has_dash: bool,
    pub(super) has_bar: bool,
}

impl Default for LineShape {
    fn default() -> Self {
        Self { only_rule: true, only_delimiters: true, has_dash: false, has_bar: false }
    }
}

/// Beginning of a line so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LineLead {
    /// White space, or nothing.
    #[default]
    Indent,
    /// `-`, `*` or `+`.
    Bullet(char),
    /// This many digits.
    Digits(u8),
    /// Digits with their `.` or `)`.
    Number,
    /// Two dashes, `--`.
    Dashes,
    /// A slash, `/`.
    Slash,
    /// Any other text.
    Text,
}
