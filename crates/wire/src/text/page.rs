//! Where in a Markdown page a streamed text stands: is what comes next an example, or meant?
//!
//! Only what has arrived decides, so it never changes afterwards, however the text is cut. CommonMark, with two
//! differences that follow from this: a run of backticks opens inline code until the end of its line even if no run
//! closes it, and a fence that is never closed reaches to the end.
// R: X4

use super::protocol::FindingKind;

/// The tags of thinking that stands in the middle of a reply; at its beginning it was split off before.
pub(super) const THINKING: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// A place in a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    zone: Zone,
    lead: Lead,
    /// The line begins with `>`.
    quoted: bool,
    /// Length of the run of backticks that is open on this line; 0 is none.
    code: usize,
    /// The line so far opens a fence.
    opens: Option<Fence>,
    /// The line so far closes the fence.
    closes: bool,
    /// A run of fence marks that may go on.
    run: Option<Run>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Zone {
    #[default]
    Prose,
    Fence(Fence),
    /// Thinking, with the tag that ends it.
    Thinking(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: u8,
    length: usize,
}

/// What the line consists of so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lead {
    /// So many spaces.
    Spaces(u8),
    /// White space that is not only spaces.
    Blank,
    /// Something that can be seen.
    Begun,
}

impl Default for Lead {
    fn default() -> Self {
        Lead::Spaces(0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Run {
    mark: u8,
    length: usize,
    leads: bool,
}

/// Deepest indentation of a fence or a quotation.
const INDENT_MAX: u8 = 3;

impl Page {
    /// Takes text without `<`, backticks and tildes.
    pub(super) fn plain(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let Some(last) = memchr::memrchr(b'\n', bytes) else { return self.part(bytes) };
        let first = memchr::memchr(b'\n', bytes).unwrap_or(last);
        self.part(&bytes[..first]);
        self.line_ends();
        // Lines in between hold no mark, so they change nothing.
        self.part(&bytes[last + 1..]);
    }

    /// Takes a run of backticks or tildes, or a part of one.
    pub(super) fn marks(&mut self, mark: u8, count: usize) {
        if let Some(run) = self.run.as_mut().filter(|run| run.mark == mark) {
            run.length += count;
            return;
        }
        self.settle_run();
        let leads = matches!(self.lead, Lead::Spaces(0..=INDENT_MAX));
        self.lead = Lead::Begun;
        self.run = Some(Run { mark, length: count, leads });
    }

    /// Takes a `<` that is text.
    pub(super) fn angle(&mut self) {
        self.part(b"<");
    }

    /// Why a request that begins here is only an example.
    pub(super) fn inert(&mut self) -> Option<FindingKind> {
        self.settle_run();
        match self.zone {
            Zone::Fence(_) => Some(FindingKind::InCodeFence),
            Zone::Thinking(_) => Some(FindingKind::InThinking),
            Zone::Prose if self.quoted => Some(FindingKind::InQuotation),
            Zone::Prose if self.opens.is_some() => Some(FindingKind::InCodeFence),
            Zone::Prose if self.code > 0 => Some(FindingKind::InInlineCode),
            Zone::Prose => None,
        }
    }

    /// Nothing but white space stands before this place on its line.
    pub(super) fn is_at_line_start(&self) -> bool {
        self.lead != Lead::Begun
    }

    /// The tag that ends the thinking.
    pub(super) fn thinking_ends_with(&self) -> Option<&'static str> {
        match self.zone {
            Zone::Thinking(closing) => Some(closing),
            _ => None,
        }
    }

    /// A tag of thinking was passed.
    pub(super) fn begin_thinking(&mut self, closing: &'static str) {
        *self = Self { zone: Zone::Thinking(closing), ..Self::default() };
    }

    /// Takes text without `<`, backticks, tildes and line breaks.
    #[inline]
    pub(super) fn part(&mut self, part: &[u8]) {
        let says_nothing = self.lead == Lead::Begun && self.run.is_none() && !self.closes;
        if !says_nothing && !part.is_empty() {
            self.part_of_line(part);
        }
    }

    fn part_of_line(&mut self, part: &[u8]) {
        if self.run.is_some() {
            self.settle_run();
        }
        if self.closes && !part.iter().all(|byte| is_blank(*byte)) {
            self.closes = false;
        }
        if self.lead == Lead::Begun {
            return;
        }
        for byte in part {
            self.lead = match (byte, self.lead) {
                (b' ', Lead::Spaces(n)) => Lead::Spaces(n.saturating_add(1)),
                (byte, _) if is_blank(*byte) => Lead::Blank,
                (b'>', Lead::Spaces(0..=INDENT_MAX)) => {
                    self.quoted = true;
                    Lead::Begun
                }
                _ => Lead::Begun,
            };
            if self.lead == Lead::Begun {
                return;
            }
        }
    }

    fn settle_run(&mut self) {
        let Some(Run { mark, length, leads }) = self.run.take() else { return };
        match self.zone {
            Zone::Fence(fence) => {
                self.closes = leads && mark == fence.mark && length >= fence.length;
            }
            Zone::Prose if leads && length >= 3 => {
                self.opens = Some(Fence { mark, length });
                if mark == b'`' {
                    self.code = length;
                }
            }
            Zone::Prose if mark == b'`' => {
                // ```` ```a``` ```` on one line is inline code.
                self.opens = self.opens.filter(|fence| fence.mark != b'`');
                self.code = match self.code {
                    0 => length,
                    open if open == length => 0,
                    open => open,
                };
            }
            Zone::Prose | Zone::Thinking(_) => {}
        }
    }

    fn line_ends(&mut self) {
        self.settle_run();
        let zone = match (self.zone, self.opens) {
            (Zone::Fence(_), _) if self.closes => Zone::Prose,
            (Zone::Prose, Some(fence)) if !self.quoted => Zone::Fence(fence),
            (zone, _) => zone,
        };
        *self = Self { zone, ..Self::default() };
    }
}

/// White space within a line.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}
