//! The incremental reader that the text protocols share: it shows text, hides markup, and passes each block
//! to the grammar. Only text that may become a marker is held back.
//!
//! The caller holds the text, so nothing of it is copied, and most of it passes unread: only for a marker the
//! reader determines if it is quoted and on which line it is.

use super::escape::{MarkerPrefix, StreamUnescaper};
use super::protocol::{FINDINGS_MAX, FindingKind, MarkupFinding, ScanEvent, TextScanner};
use super::quotation::{QuotationReader, may_be_mention};

/// Text is processed in slices of this size, so that no search reaches far beyond its purpose.
const SLICE_BYTES: usize = 1024;
/// White space after a block that is held back until it is known whether text follows.
const SPACE_BYTES_MAX: usize = 64;
/// `>` after the end marker that still belong to it.
const EXTRA_ANGLES_MAX: u8 = 5;

/// State of the input: complete, or more text can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputState {
    Open,
    Ended,
}

/// Result of matching a start marker at a `<`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerMatch {
    /// No marker.
    No,
    /// Undecided: more text is needed.
    More,
    /// The text ends inside a marker.
    Torn,
    /// A marker of this length.
    Yes(MarkerKind, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerKind {
    Start,
    End,
    /// A marker that declares its block an example.
    Example,
    /// The end of such an example.
    ExampleEnd,
}

/// Meaning of a start marker, by the text after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockDecision {
    /// A mention in the text.
    Text,
    /// Undecided: more text is needed.
    More,
    /// The text ends inside a possible block.
    Torn,
    /// The beginning of a block.
    Block,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinePosition {
    LineStart,
    MidLine,
}

/// Progress of a block after more text.
pub(super) enum BlockProgress {
    /// This many bytes were consumed; the rest waits for more.
    More { consumed: usize },
    /// The block ended. The text continues at the position: before the consumed bytes, if they are not part
    /// of the block after all.
    Ended { after: TrustState },
}

/// Trust in the text after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrustState {
    /// Later blocks may run.
    Trusted,
    /// Later blocks must not run: a value of the block did not close, so the following text may be a part of
    /// it.
    Tainted,
}

/// A grammar of blocks.
pub(super) trait BlockGrammar: Send {
    const MARKER_PREFIXES: &'static [MarkerPrefix];

    /// Matches a marker at the beginning of `text`, a `<`.
    fn marker(text: &str, rest: InputState) -> MarkerMatch;
    /// `after` follows a start marker: is it a block?
    fn follows(after: &str, start: LinePosition, rest: InputState) -> BlockDecision;
    /// First bytes of what may be left over of a tainted block, and its length there.
    const LEFTOVERS: &'static [char] = &[];
    fn leftover(_text: &str) -> LeftoverMatch {
        LeftoverMatch::No
    }

    /// A block begins; the position is that of its marker.
    fn begin(&mut self, marker: &str, before: TrustState, out: &mut ScanOutput<'_>);
    /// Continues reading. Advances the position over everything it takes.
    fn read(&mut self, text: &str, rest: InputState, out: &mut ScanOutput<'_>) -> BlockProgress;
    /// The text has ended inside the block. What follows the position then is no part of it after all.
    fn end(&mut self, held: &str, out: &mut ScanOutput<'_>) -> TrustState;
}

pub(super) enum LeftoverMatch {
    No,
    More,
    Yes(usize),
}

/// A position in the reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextPosition {
    pub(super) offset: usize,
    line: u32,
    column: u32,
}

impl TextPosition {
    pub(super) const START: Self = Self { offset: 0, line: 1, column: 1 };

    pub(super) fn advance(&mut self, text: &str) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.offset += text.len();
        let Some(last) = memchr::memrchr(b'\n', text.as_bytes()) else {
            self.column = self.column.saturating_add(count(text.chars().count()));
            return;
        };
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        self.line = self.line.saturating_add(count(lines));
        self.column = count(text[last + 1..].chars().count()).saturating_add(1);
    }
}

/// Receiver of what a grammar reports.
pub(super) struct ScanOutput<'s> {
    pub(super) position: &'s mut TextPosition,
    findings: &'s mut usize,
    sink: &'s mut dyn FnMut(ScanEvent<'_>),
}

impl ScanOutput<'_> {
    pub(super) fn emit(&mut self, scanned: ScanEvent<'_>) {
        (self.sink)(scanned);
    }

    pub(super) fn report(&mut self, kind: FindingKind, position: TextPosition, message: String) {
        if *self.findings < FINDINGS_MAX {
            *self.findings += 1;
            let TextPosition { offset, line, column } = position;
            (self.sink)(ScanEvent::Finding(MarkupFinding { kind, offset, line, column, message }));
        }
    }

    fn report_here(&mut self, kind: FindingKind) {
        let position = *self.position;
        self.report(kind, position, kind.sentence().to_owned());
    }
}

/// Reads one reply.
pub(super) struct BlockScanner<G> {
    grammar: G,
    /// Offset of the text since which nothing is held or expected, and plain text has passed.
    idle_since: Option<usize>,
    mode: ScanMode,
    trust: TrustState,
    /// Outside of blocks it lags behind together with `position`: see [`Self::catch_up`].
    page: QuotationReader,
    position: TextPosition,
    findings: usize,
    /// Bytes of the text that were looked at.
    seen: usize,
    /// Bytes of the text that were decided on. More text must decide on those up to `seen`.
    taken: usize,
    /// White space after a block that is shown if text follows.
    pending_spaces: String,
    extra_angles: u8,
    unescaper: StreamUnescaper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanMode {
    Page,
    /// After a block, before any visible text.
    AfterBlock,
    Block,
}

/// Next token of a page.
enum PageToken {
    Shown(usize),
    /// Shown, and reported.
    Reported(usize, FindingKind),
    Held,
    /// An end marker that ends nothing.
    HiddenEnd(usize),
    /// Leftover of a tainted block.
    HiddenLeftover(usize),
    /// All remaining text.
    Torn,
    /// A block begins with a marker of this length.
    Block(usize),
}

/// Up to here a plain loop beats SIMD, and most deltas are a few bytes long.
const SHORT_BYTES: usize = 16;

/// No marker begins in the piece, and nothing in it is escaped.
fn is_plain(piece: &str) -> bool {
    if piece.len() > SHORT_BYTES {
        return memchr::memchr2(b'<', b'~', piece.as_bytes()).is_none();
    }
    piece.bytes().all(|byte| !matches!(byte, b'<' | b'~'))
}

impl<G: BlockGrammar> BlockScanner<G> {
    pub(super) fn new(grammar: G) -> Self {
        Self {
            grammar,
            idle_since: Some(0),
            mode: ScanMode::Page,
            trust: TrustState::Trusted,
            page: QuotationReader::default(),
            position: TextPosition::START,
            findings: 0,
            seen: 0,
            taken: 0,
            pending_spaces: String::new(),
            extra_angles: 0,
            unescaper: StreamUnescaper::new(G::MARKER_PREFIXES),
        }
    }

    /// True if nothing is held or expected: plain text may pass.
    fn is_idle(&self) -> bool {
        self.mode == ScanMode::Page
            && self.trust == TrustState::Trusted
            && self.taken == self.seen
            && self.pending_spaces.is_empty()
            && self.unescaper.is_idle()
    }

    /// Not inlined: so that [`TextScanner::push`] only prepares for plain text.
    #[inline(never)]
    fn push_eventful(&mut self, text: &str, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        if let Some(since) = self.idle_since {
            self.unescaper.record_tail(&text[since..self.seen]);
        }
        self.push_slices(text, InputState::Open, sink);
        self.idle_since = self.is_idle().then_some(self.seen);
    }

    fn push_slices(&mut self, text: &str, rest: InputState, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        while self.seen < text.len() {
            self.seen = text.floor_char_boundary(self.seen + SLICE_BYTES);
            let rest = if self.seen == text.len() { rest } else { InputState::Open };
            self.read(&text[..self.seen], rest, sink);
        }
    }

    /// Reads to the end of `text`, or of the next block: the next slice begins after it.
    fn read(&mut self, text: &str, rest: InputState, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        // Range of the visible text that was not emitted yet.
        let mut run = 0..0;
        while self.taken < text.len() {
            let ahead = &text[self.taken..];
            match self.mode {
                ScanMode::AfterBlock => self.taken += self.skip_after_block(ahead, sink),
                ScanMode::Block => {
                    let mut out = ScanOutput {
                        position: &mut self.position,
                        findings: &mut self.findings,
                        sink: &mut *sink,
                    };
                    match self.grammar.read(ahead, rest, &mut out) {
                        BlockProgress::More { consumed } => {
                            self.taken += consumed;
                            return;
                        }
                        BlockProgress::Ended { after } => return self.block_ends(after),
                    }
                }
                ScanMode::Page => {
                    let next = self.page(text, rest);
                    let consumed = match &next {
                        PageToken::Shown(consumed) | PageToken::Reported(consumed, _) => *consumed,
                        PageToken::HiddenEnd(consumed)
                        | PageToken::HiddenLeftover(consumed)
                        | PageToken::Block(consumed) => *consumed,
                        PageToken::Torn => ahead.len(),
                        PageToken::Held => 0,
                    };
                    if !matches!(next, PageToken::Shown(_)) {
                        self.show(&text[std::mem::take(&mut run)], sink);
                    }
                    let passed = &ahead[..consumed];
                    let mut out = ScanOutput {
                        position: &mut self.position,
                        findings: &mut self.findings,
                        sink: &mut *sink,
                    };
                    match next {
                        PageToken::Shown(_) | PageToken::Reported(..) => {
                            if let PageToken::Reported(_, kind) = next {
                                out.report_here(kind);
                            }
                            if run.is_empty() {
                                run.start = self.taken;
                            }
                            run.end = self.taken + consumed;
                        }
                        PageToken::Held => return,
                        PageToken::Torn => {
                            out.report_here(FindingKind::TornMarker);
                            out.position.advance(passed);
                            self.hide(sink);
                        }
                        PageToken::HiddenLeftover(_) => self.hide(sink),
                        PageToken::HiddenEnd(_) => {
                            if self.trust == TrustState::Trusted {
                                out.report_here(FindingKind::StrayEnd);
                            }
                            out.position.advance(passed);
                            self.hide(sink);
                            return self.block_ends(self.trust);
                        }
                        PageToken::Block(_) => {
                            self.hide(sink);
                            self.mode = ScanMode::Block;
                            let mut out = ScanOutput {
                                position: &mut self.position,
                                findings: &mut self.findings,
                                sink: &mut *sink,
                            };
                            self.grammar.begin(passed, self.trust, &mut out);
                        }
                    }
                    self.taken += consumed;
                }
            }
        }
        self.show(&text[run], sink);
    }

    fn block_ends(&mut self, after: TrustState) {
        self.mode = ScanMode::AfterBlock;
        self.page = QuotationReader::default();
        self.extra_angles = EXTRA_ANGLES_MAX;
        (self.seen, self.taken) = (self.position.offset, self.position.offset);
        if after == TrustState::Tainted {
            self.trust = after;
        }
    }

    /// Skips what belongs to the block after its end: more `>`, and white space up to the last line break.
    fn skip_after_block(&mut self, text: &str, sink: &mut dyn FnMut(ScanEvent<'_>)) -> usize {
        let byte = text.as_bytes()[0];
        if byte == b'>' && self.extra_angles > 0 {
            self.extra_angles -= 1;
            self.position.advance(">");
            return 1;
        }
        self.extra_angles = 0;
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        if is_space && self.pending_spaces.len() < SPACE_BYTES_MAX {
            self.pending_spaces.push(char::from(byte));
            self.position.advance(&text[..1]);
            return 1;
        }
        self.mode = ScanMode::Page;
        if let Some(newline) = self.pending_spaces.rfind('\n') {
            self.pending_spaces.drain(..=newline);
        }
        self.page.push(&self.pending_spaces);
        if is_space {
            self.show_spaces(sink);
        }
        0
    }

    fn show_spaces(&mut self, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        if !self.pending_spaces.is_empty() {
            let spaces = std::mem::take(&mut self.pending_spaces);
            self.unescaper.push(&spaces, &mut |piece| sink(ScanEvent::Text(piece)));
        }
    }

    fn show(&mut self, piece: &str, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        if !piece.is_empty() {
            self.show_spaces(sink);
            self.unescaper.push(piece, &mut |piece| sink(ScanEvent::Text(piece)));
        }
    }

    /// Ends the current text: markup is hidden here, and the text after it is a separate one.
    fn hide(&mut self, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        self.pending_spaces.clear();
        self.unescaper.finish(&mut |piece| sink(ScanEvent::Text(piece)));
    }

    /// Reads the text that passed unread, before the position of a marker is needed.
    fn catch_up(&mut self, text: &str) {
        let unread = &text[self.position.offset..self.taken];
        self.page.push(unread);
        self.position.advance(unread);
    }

    fn page(&mut self, text: &str, rest: InputState) -> PageToken {
        let ahead = &text[self.taken..];
        let mut plain = memchr::memchr(b'<', ahead.as_bytes()).unwrap_or(ahead.len());
        if self.trust == TrustState::Tainted {
            plain = ahead[..plain].find(G::LEFTOVERS).unwrap_or(plain);
        }
        match ahead.as_bytes()[0] {
            _ if plain > 0 => PageToken::Shown(plain),
            b'<' => self.angle(text, rest),
            _ => self.leftover(text, rest),
        }
    }

    fn angle(&mut self, text: &str, rest: InputState) -> PageToken {
        let ahead = &text[self.taken..];
        let marker = match G::marker(ahead, rest) {
            MarkerMatch::No => return PageToken::Shown(1),
            MarkerMatch::More => return PageToken::Held,
            MarkerMatch::Torn => None,
            MarkerMatch::Yes(mark, length) => Some((mark, length)),
        };
        self.catch_up(text);
        let inert = self.page.quotation();
        let start =
            if self.page.is_at_line_start() { LinePosition::LineStart } else { LinePosition::MidLine };
        let Some((mark, length)) = marker else {
            return if inert.is_none() { PageToken::Torn } else { PageToken::Shown(ahead.len()) };
        };
        match (mark, inert) {
            (MarkerKind::Example, None) => PageToken::Reported(length, FindingKind::MarkedInert),
            (MarkerKind::End, None)
                if (start == LinePosition::LineStart && !self.page.is_in_quoted_request())
                    || self.trust == TrustState::Tainted =>
            {
                PageToken::HiddenEnd(length)
            }
            (MarkerKind::End, _) => {
                self.page.end_quoted_request();
                PageToken::Shown(length)
            }
            (MarkerKind::Example | MarkerKind::ExampleEnd, _) => PageToken::Shown(length),
            (MarkerKind::Start, Some(kind)) if !may_be_mention(kind) => {
                self.page.begin_quoted_request();
                PageToken::Reported(length, kind)
            }
            (MarkerKind::Start, inert) => {
                let start = if inert.is_some() { LinePosition::MidLine } else { start };
                match (G::follows(&ahead[length..], start, rest), inert) {
                    (BlockDecision::More, _) => PageToken::Held,
                    (BlockDecision::Text, None) => PageToken::Shown(length),
                    (BlockDecision::Text | BlockDecision::Torn, Some(_)) => {
                        self.page.pass_quoted_marker();
                        PageToken::Shown(length)
                    }
                    (BlockDecision::Torn, None) => PageToken::Torn,
                    (BlockDecision::Block, Some(kind)) => {
                        self.page.begin_quoted_request();
                        PageToken::Reported(length, kind)
                    }
                    (BlockDecision::Block, None) => PageToken::Block(length),
                }
            }
        }
    }

    /// The value that a tainted block left open may end somewhere in the text after it.
    fn leftover(&mut self, text: &str, rest: InputState) -> PageToken {
        let ahead = &text[self.taken..];
        let next = match G::leftover(ahead) {
            LeftoverMatch::Yes(length) => Some(PageToken::HiddenLeftover(length)),
            LeftoverMatch::More if rest == InputState::Open => Some(PageToken::Held),
            LeftoverMatch::More | LeftoverMatch::No => None,
        };
        if let Some(next) = next {
            self.catch_up(text);
            if self.page.quotation().is_none() {
                return next;
            }
        }
        PageToken::Shown(ahead.chars().next().map_or(1, char::len_utf8))
    }
}

impl<G: BlockGrammar> TextScanner for BlockScanner<G> {
    fn push(&mut self, text: &str, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        // A text that does not continue the previous one has no next piece.
        let Some(piece) = text.get(self.seen..) else { return };
        if self.idle_since.is_none() || !is_plain(piece) {
            return self.push_eventful(text, sink);
        }
        (self.seen, self.taken) = (text.len(), text.len());
        if !piece.is_empty() {
            sink(ScanEvent::Text(piece));
        }
    }

    fn finish(&mut self, text: &str, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        if text.get(self.seen..).is_none() {
            return;
        }
        self.read(text, InputState::Ended, sink);
        self.push_slices(text, InputState::Ended, sink);
        while self.mode == ScanMode::Block {
            let held = &text[self.taken..];
            self.position.advance(held);
            let mut out =
                ScanOutput { position: &mut self.position, findings: &mut self.findings, sink: &mut *sink };
            let after = self.grammar.end(held, &mut out);
            self.block_ends(after);
            self.push_slices(text, InputState::Ended, sink);
        }
        self.hide(sink);
    }
}
