//! Where in a Markdown page a streamed text stands: is what comes next an example, or meant?
//!
//! Only what has arrived decides, so it never changes afterwards, however the text is cut. CommonMark, with two
//! differences that follow from this: a run of backticks opens inline code until the end of its line even if no run
//! closes it, and a fence that is never closed reaches to the end.

use super::protocol::FindingKind;

/// The tags of thinking that stands in the middle of a reply; at its beginning it was split off before.
pub(super) const THINKING: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// A position in a page.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkdownState {
    zone: MarkdownZone,
    lead: LineLead,
    /// The line begins with `>`.
    quoted: bool,
    /// Length of the run of backticks that is open on this line; 0 is none.
    code: usize,
    /// The line so far opens a fence.
    opens: Option<OpenFence>,
    /// The line so far closes the fence.
    closes: bool,
    /// A run of fence marks that may go on.
    run: Option<MarkRun>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum MarkdownZone {
    #[default]
    Prose,
    Fence(OpenFence),
    /// Thinking, with the tag that ends it.
    Thinking(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenFence {
    mark: u8,
    length: usize,
}

/// Beginning of the current line so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineLead {
    /// So many spaces.
    Spaces(u8),
    /// White space that is not only spaces.
    Blank,
    /// Something that can be seen.
    Visible,
}

impl Default for LineLead {
    fn default() -> Self {
        LineLead::Spaces(0)
    }
}

#[derive(Clone, Copy, Debug)]
struct MarkRun {
    mark: u8,
    length: usize,
    leads: bool,
}

/// Deepest indentation of a fence or a quotation.
const INDENT_MAX: u8 = 3;

impl MarkdownState {
    /// Takes text without `<`, backticks and tildes.
    pub(super) fn push_plain(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let Some(last) = memchr::memrchr(b'\n', bytes) else { return self.push_inline(bytes) };
        let first = memchr::memchr(b'\n', bytes).unwrap_or(last);
        self.push_inline(&bytes[..first]);
        self.end_line();
        // Lines in between hold no mark, so they change nothing.
        self.push_inline(&bytes[last + 1..]);
    }

    /// Takes a run of backticks or tildes, or a part of one.
    pub(super) fn push_marks(&mut self, mark: u8, count: usize) {
        if let Some(run) = self.run.as_mut().filter(|run| run.mark == mark) {
            run.length += count;
            return;
        }
        self.finish_run();
        let leads = matches!(self.lead, LineLead::Spaces(0..=INDENT_MAX));
        self.lead = LineLead::Visible;
        self.run = Some(MarkRun { mark, length: count, leads });
    }

    /// Takes a `<` that is text.
    pub(super) fn push_angle(&mut self) {
        self.push_inline(b"<");
    }

    /// Why a request that begins here is only an example.
    pub(super) fn inert_reason(&mut self) -> Option<FindingKind> {
        self.finish_run();
        match self.zone {
            MarkdownZone::Fence(_) => Some(FindingKind::InCodeFence),
            MarkdownZone::Thinking(_) => Some(FindingKind::InThinking),
            MarkdownZone::Prose if self.quoted => Some(FindingKind::InQuotation),
            MarkdownZone::Prose if self.opens.is_some() => Some(FindingKind::InCodeFence),
            MarkdownZone::Prose if self.code > 0 => Some(FindingKind::InInlineCode),
            MarkdownZone::Prose => None,
        }
    }

    /// Only white space precedes this position on its line.
    pub(super) fn is_at_line_start(&self) -> bool {
        self.lead != LineLead::Visible
    }

    /// The tag that ends the thinking.
    pub(super) fn thinking_ends_with(&self) -> Option<&'static str> {
        match self.zone {
            MarkdownZone::Thinking(closing) => Some(closing),
            _ => None,
        }
    }

    /// A tag of thinking was passed.
    pub(super) fn begin_thinking(&mut self, closing: &'static str) {
        *self = Self { zone: MarkdownZone::Thinking(closing), ..Self::default() };
    }

    /// Takes text without `<`, backticks, tildes and line breaks.
    #[inline]
    pub(super) fn push_inline(&mut self, part: &[u8]) {
        let is_noop = self.lead == LineLead::Visible && self.run.is_none() && !self.closes;
        if !is_noop && !part.is_empty() {
            self.push_line_part(part);
        }
    }

    fn push_line_part(&mut self, part: &[u8]) {
        if self.run.is_some() {
            self.finish_run();
        }
        if self.closes && !part.iter().all(|byte| is_blank(*byte)) {
            self.closes = false;
        }
        if self.lead == LineLead::Visible {
            return;
        }
        for byte in part {
            self.lead = match (byte, self.lead) {
                (b' ', LineLead::Spaces(n)) => LineLead::Spaces(n.saturating_add(1)),
                (byte, _) if is_blank(*byte) => LineLead::Blank,
                (b'>', LineLead::Spaces(0..=INDENT_MAX)) => {
                    self.quoted = true;
                    LineLead::Visible
                }
                _ => LineLead::Visible,
            };
            if self.lead == LineLead::Visible {
                return;
            }
        }
    }

    fn finish_run(&mut self) {
        let Some(MarkRun { mark, length, leads }) = self.run.take() else { return };
        match self.zone {
            MarkdownZone::Fence(fence) => {
                self.closes = leads && mark == fence.mark && length >= fence.length;
            }
            MarkdownZone::Prose if leads && length >= 3 => {
                self.opens = Some(OpenFence { mark, length });
                if mark == b'`' {
                    self.code = length;
                }
            }
            MarkdownZone::Prose if mark == b'`' => {
                // ```` ```a``` ```` on one line is inline code.
                self.opens = self.opens.filter(|fence| fence.mark != b'`');
                self.code = match self.code {
                    0 => length,
                    open if open == length => 0,
                    open => open,
                };
            }
            MarkdownZone::Prose | MarkdownZone::Thinking(_) => {}
        }
    }

    fn end_line(&mut self) {
        self.finish_run();
        let zone = match (self.zone, self.opens) {
            (MarkdownZone::Fence(_), _) if self.closes => MarkdownZone::Prose,
            (MarkdownZone::Prose, Some(fence)) if !self.quoted => MarkdownZone::Fence(fence),
            (zone, _) => zone,
        };
        *self = Self { zone, ..Self::default() };
    }
}

/// White space within a line.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}
