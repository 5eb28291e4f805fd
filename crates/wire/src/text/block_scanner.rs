//! The incremental reader that the text protocols share: it shows text, hides markup, and hands each block to the
//! grammar. What may become a marker is held back, and nothing else.

use super::escape::{MarkerPrefix, StreamUnescaper};
use super::protocol::{FINDINGS_MAX, FindingKind, MarkupFinding, ScanEvent, TextScanner};
use super::quotation::{QuotationReader, may_be_mention};

/// Text is worked through in slices of this size, so that reading a part of it again never copies much.
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
    /// More text decides.
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
    /// Says itself that it begins an example.
    Example,
    /// The end of such an example.
    ExampleEnd,
}

/// Meaning of a start marker, by the text after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockDecision {
    /// A mention in the text.
    Text,
    /// More text decides.
    More,
    /// The text ends inside what was to be a block.
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
    /// So many bytes were taken; the rest waits for more.
    More { consumed: usize },
    /// The block ended after so many bytes.
    Ended {
        consumed: usize,
        /// Text that was taken and is no part of the block after all; the position was set back to its beginning.
        reread: String,
        after: TrustState,
    },
}

/// Trust in the text after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrustState {
    /// Everything.
    Trusted,
    /// Nothing: a value of the block did not close, so what follows may be a part of it. Nothing runs any more.
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
    /// The text has ended inside the block. What is returned is no part of it after all.
    fn end(&mut self, held: &str, out: &mut ScanOutput<'_>) -> (String, TrustState);
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

    /// Over text without a line break.
    fn advance_in_line(&mut self, bytes: usize, characters: usize) {
        self.offset += bytes;
        self.column = self.column.saturating_add(u32::try_from(characters).unwrap_or(u32::MAX));
    }

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

/// Where a grammar says what it reads.
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
            let TextPosition { offset: at, line, column } = position;
            (self.sink)(ScanEvent::Finding(MarkupFinding { kind, offset: at, line, column, message }));
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
    /// [`Self::is_idle`], as it was after the last piece.
    idle: bool,
    mode: ScanMode,
    trust: TrustState,
    page: QuotationReader,
    position: TextPosition,
    findings: usize,
    /// Text that more text must decide on.
    held: String,
    /// White space after a block that is shown if text follows.
    pending_spaces: String,
    extra_angles: u8,
    unescaper: StreamUnescaper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanMode {
    Page,
    /// Behind a block, before anything that can be seen.
    AfterBlock,
    Block,
}

/// Next token of a page.
enum PageToken {
    Shown(usize),
    /// Shown, and emitted.
    Reported(usize, FindingKind),
    Held,
    /// An end marker that ends nothing.
    HiddenEnd(usize),
    /// Leftover of a tainted block.
    HiddenLeftover(usize),
    /// All that is left.
    Torn,
    /// A block begins with a marker of this length.
    Block(usize),
}

/// Findings in a plain piece of text.
struct TextSurvey {
    has_line_break: bool,
    characters: usize,
}

/// Up to here one pass over the bytes beats several that use SIMD: most deltas are a few bytes long.
const SHORT_BYTES: usize = 48;

impl TextSurvey {
    /// `None` if there is a `<`, a backtick or a tilde.
    fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > SHORT_BYTES {
            let is_plain = memchr::memchr3(b'<', b'`', b'~', bytes).is_none();
            return is_plain.then_some(Self { has_line_break: true, characters: 0 });
        }
        let (mut classes, mut characters) = (0, 0);
        for byte in bytes {
            let class = CLASSES[usize::from(*byte)];
            classes |= class;
            characters += usize::from(class & CONTINUATION == 0);
        }
        let has_line_break = classes & LINE_BREAK != 0;
        (classes & MARK == 0).then_some(Self { has_line_break, characters })
    }
}

const MARK: u8 = 1;
const LINE_BREAK: u8 = 2;
const CONTINUATION: u8 = 4;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0x80;
    while byte < 0xc0 {
        classes[byte] = CONTINUATION;
        byte += 1;
    }
    classes[b'<' as usize] = MARK;
    classes[b'`' as usize] = MARK;
    classes[b'~' as usize] = MARK;
    classes[b'\n' as usize] = LINE_BREAK;
    classes
};

impl<G: BlockGrammar> BlockScanner<G> {
    pub(super) fn new(grammar: G) -> Self {
        Self {
            grammar,
            idle: true,
            mode: ScanMode::Page,
            trust: TrustState::Trusted,
            page: QuotationReader::default(),
            position: TextPosition::START,
            findings: 0,
            held: String::new(),
            pending_spaces: String::new(),
            extra_angles: 0,
            unescaper: StreamUnescaper::new(G::MARKER_PREFIXES),
        }
    }

    /// Nothing is held and nothing is expected: plain text may pass.
    fn is_idle(&self) -> bool {
        self.mode == ScanMode::Page
            && self.trust == TrustState::Trusted
            && self.held.is_empty()
            && self.pending_spaces.is_empty()
            && self.unescaper.is_idle()
    }

    fn push_slices(&mut self, mut text: &str, rest: InputState, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        while !text.is_empty() {
            let (slice, remaining) = text.split_at(text.floor_char_boundary(SLICE_BYTES));
            text = remaining;
            let rest = if remaining.is_empty() { rest } else { InputState::Open };
            if self.held.is_empty() {
                self.read(slice, rest, sink);
            } else {
                let mut joined = std::mem::take(&mut self.held);
                joined.push_str(slice);
                self.read(&joined, rest, sink);
            }
        }
    }

    fn read(&mut self, text: &str, rest: InputState, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        let mut at = 0;
        // What is to be shown of the text, not yet told.
        let mut run = 0..0;
        while at < text.len() {
            let ahead = &text[at..];
            match self.mode {
                ScanMode::AfterBlock => at += self.skip_after_block(ahead, sink),
                ScanMode::Block => {
                    let mut out = ScanOutput {
                        position: &mut self.position,
                        findings: &mut self.findings,
                        sink: &mut *sink,
                    };
                    match self.grammar.read(ahead, rest, &mut out) {
                        BlockProgress::More { consumed } => {
                            self.held.push_str(&ahead[consumed..]);
                            return;
                        }
                        BlockProgress::Ended { consumed, reread, after } => {
                            self.block_ends(after);
                            at += consumed;
                            if !reread.is_empty() {
                                let joined = reread + &text[at..];
                                return self.push_slices(&joined, rest, sink);
                            }
                        }
                    }
                }
                ScanMode::Page => {
                    let next = self.page(ahead, rest);
                    let consumed = match &next {
                        PageToken::Shown(consumed) | PageToken::Reported(consumed, _) => *consumed,
                        PageToken::HiddenEnd(consumed)
                        | PageToken::HiddenLeftover(consumed)
                        | PageToken::Block(consumed) => *consumed,
                        PageToken::Torn => ahead.len(),
                        PageToken::Held => 0,
                    };
                    let passed = &ahead[..consumed];
                    if !matches!(next, PageToken::Shown(_)) {
                        self.show(&text[std::mem::take(&mut run)], sink);
                    }
                    let position = self.position;
                    if !matches!(next, PageToken::Block(_)) {
                        self.position.advance(passed);
                    }
                    let mut out = ScanOutput {
                        position: &mut { position },
                        findings: &mut self.findings,
                        sink: &mut *sink,
                    };
                    match next {
                        PageToken::Shown(_) | PageToken::Reported(..) => {
                            if let PageToken::Reported(_, kind) = next {
                                out.report_here(kind);
                            }
                            if run.is_empty() {
                                run.start = at;
                            }
                            run.end = at + consumed;
                        }
                        PageToken::Held => {
                            self.held.push_str(ahead);
                            return;
                        }
                        PageToken::Torn => {
                            out.report_here(FindingKind::TornMarker);
                            self.hide(sink);
                        }
                        PageToken::HiddenLeftover(_) => self.hide(sink),
                        PageToken::HiddenEnd(_) => {
                            if self.trust == TrustState::Trusted {
                                out.report_here(FindingKind::StrayEnd);
                            }
                            self.hide(sink);
                            self.block_ends(self.trust);
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
                    at += consumed;
                }
            }
        }
        self.show(&text[run], sink);
    }

    fn block_ends(&mut self, after: TrustState) {
        self.mode = ScanMode::AfterBlock;
        self.page = QuotationReader::default();
        self.extra_angles = EXTRA_ANGLES_MAX;
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

    /// Something hidden follows: the shown text before and after it are two texts.
    fn hide(&mut self, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        self.pending_spaces.clear();
        self.unescaper.finish(&mut |piece| sink(ScanEvent::Text(piece)));
    }

    fn page(&mut self, ahead: &str, rest: InputState) -> PageToken {
        let bytes = ahead.as_bytes();
        let mut plain = memchr::memchr3(b'<', b'`', b'~', bytes).unwrap_or(bytes.len());
        if self.trust == TrustState::Tainted {
            plain = ahead[..plain].find(G::LEFTOVERS).unwrap_or(plain);
        }
        if plain > 0 {
            self.page.push(&ahead[..plain]);
            return PageToken::Shown(plain);
        }
        match bytes[0] {
            b'<' => self.angle(ahead, rest),
            mark @ (b'`' | b'~') => {
                let count = bytes.iter().take_while(|byte| **byte == mark).count();
                self.page.push(&ahead[..count]);
                PageToken::Shown(count)
            }
            _ => self.leftover(ahead, rest),
        }
    }

    fn angle(&mut self, ahead: &str, rest: InputState) -> PageToken {
        let inert = self.page.quotation();
        let start =
            if self.page.is_at_line_start() { LinePosition::LineStart } else { LinePosition::MidLine };
        let (mark, length) = match G::marker(ahead, rest) {
            MarkerMatch::No => {
                self.page.push("<");
                return PageToken::Shown(1);
            }
            MarkerMatch::More => return PageToken::Held,
            MarkerMatch::Torn if inert.is_none() => return PageToken::Torn,
            MarkerMatch::Torn => {
                self.page.push(ahead);
                return PageToken::Shown(ahead.len());
            }
            MarkerMatch::Yes(mark, length) => (mark, length),
        };
        let next = match (mark, inert) {
            (MarkerKind::Example, None) => PageToken::Reported(length, FindingKind::MarkedInert),
            (MarkerKind::End, None)
                if (start == LinePosition::LineStart && !self.page.is_in_quoted_request())
                    || self.trust == TrustState::Tainted =>
            {
                return PageToken::HiddenEnd(length);
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
                    (BlockDecision::More, _) => return PageToken::Held,
                    (BlockDecision::Text, None) => PageToken::Shown(length),
                    (BlockDecision::Text | BlockDecision::Torn, Some(_)) => {
                        self.page.pass_quoted_marker();
                        PageToken::Shown(length)
                    }
                    (BlockDecision::Torn, None) => return PageToken::Torn,
                    (BlockDecision::Block, Some(kind)) => {
                        self.page.begin_quoted_request();
                        PageToken::Reported(length, kind)
                    }
                    (BlockDecision::Block, None) => return PageToken::Block(length),
                }
            }
        };
        self.page.push(&ahead[..length]);
        next
    }

    /// The value that a tainted block left open may end somewhere in the text after it.
    fn leftover(&mut self, ahead: &str, rest: InputState) -> PageToken {
        let character = ahead.chars().next().map_or(1, char::len_utf8);
        let inert = self.page.quotation().is_some();
        match G::leftover(ahead) {
            LeftoverMatch::Yes(length) if !inert => {
                self.page.push(&ahead[..length]);
                PageToken::HiddenLeftover(length)
            }
            LeftoverMatch::More if !inert && rest == InputState::Open => PageToken::Held,
            _ => {
                self.page.push(&ahead[..character]);
                PageToken::Shown(character)
            }
        }
    }
}

impl<G: BlockGrammar> TextScanner for BlockScanner<G> {
    fn push(&mut self, text: &str, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        if self.idle
            && let Some(survey) = TextSurvey::of(text.as_bytes())
        {
            if survey.has_line_break {
                self.page.push(text);
                self.position.advance(text);
            } else {
                self.page.push(text);
                self.position.advance_in_line(text.len(), survey.characters);
            }
            self.unescaper.record_tail(text);
            if !text.is_empty() {
                sink(ScanEvent::Text(text));
            }
            return;
        }
        self.push_slices(text, InputState::Open, sink);
        self.idle = self.is_idle();
    }

    fn finish(&mut self, sink: &mut dyn FnMut(ScanEvent<'_>)) {
        let held = std::mem::take(&mut self.held);
        self.read(&held, InputState::Ended, sink);
        while self.mode == ScanMode::Block {
            let held = std::mem::take(&mut self.held);
            let mut out =
                ScanOutput { position: &mut self.position, findings: &mut self.findings, sink: &mut *sink };
            let (reread, after) = self.grammar.end(&held, &mut out);
            self.block_ends(after);
            self.push_slices(&reread, InputState::Ended, sink);
        }
        self.hide(sink);
    }
}
