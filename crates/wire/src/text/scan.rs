//! The incremental reader that the text protocols share: it shows text, hides markup, and hands each block to the
//! grammar. What may become a marker is held back, and nothing else.
// R: X3, X4

use super::escape::{Beginning, Unescaper};
use super::page::{Page, THINKING};
use super::protocol::{FINDINGS_MAX, Finding, FindingKind, Scanned, TextScanner};

/// Text is worked through in slices of this size, so that reading a part of it again never copies much.
const SLICE_BYTES: usize = 1024;
/// White space behind a block that is held back until it is known whether text follows.
const SPACE_BYTES_MAX: usize = 64;
/// `>` behind the end marker that still belong to it.
const EXTRA_ANGLES_MAX: u8 = 5;

/// Whether more text can follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    MayCome,
    Ended,
}

/// What stands at a `<`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// No marker.
    No,
    /// More text decides.
    More,
    /// The text ends inside a marker.
    Torn,
    /// A marker of this length.
    Yes(Mark, usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Start,
    End,
    /// Says itself that it begins an example.
    Example,
    /// The end of such an example.
    ExampleEnd,
}

/// What a start marker is, by what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
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
pub(super) enum Start {
    OfLine,
    InLine,
}

/// How a block is read on.
pub(super) enum Step {
    /// So many bytes were taken; the rest waits for more.
    More { taken: usize },
    /// The block ended behind so many bytes.
    Over {
        taken: usize,
        /// Text that was taken and is no part of the block after all; the place was set back to its beginning.
        again: String,
        after: After,
    },
}

/// What can be trusted after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Everything.
    Clear,
    /// Nothing: a value of the block did not close, so what follows may be a part of it. Nothing runs any more.
    Tainted,
}

/// A grammar of blocks.
pub(super) trait Grammar: Send {
    const BEGINNINGS: &'static [Beginning];

    /// Which marker stands at the beginning of `text`, a `<`?
    fn marker(text: &str, rest: Rest) -> Match;
    /// `after` follows a start marker: is it a block?
    fn follows(after: &str, start: Start, rest: Rest) -> Verdict;
    /// First bytes of what may be left over of a tainted block, and its length there.
    const LEFTOVERS: &'static [char] = &[];
    fn leftover(_text: &str) -> Leftover {
        Leftover::No
    }

    /// A block begins; the place is that of its marker.
    fn begin(&mut self, marker: &str, before: After, out: &mut Out<'_>);
    /// Reads on. Takes the place forward over all it takes.
    fn read(&mut self, text: &str, rest: Rest, out: &mut Out<'_>) -> Step;
    /// The text has ended inside the block. What is returned is no part of it after all.
    fn end(&mut self, held: &str, out: &mut Out<'_>) -> (String, After);
}

pub(super) enum Leftover {
    No,
    More,
    Yes(usize),
}

/// A place in the reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) at: usize,
    line: u32,
    column: u32,
}

impl Place {
    pub(super) const START: Self = Self { at: 0, line: 1, column: 1 };

    /// Over text without a line break.
    fn advance_in_line(&mut self, bytes: usize, characters: usize) {
        self.at += bytes;
        self.column = self.column.saturating_add(u32::try_from(characters).unwrap_or(u32::MAX));
    }

    pub(super) fn advance(&mut self, text: &str) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.at += text.len();
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
pub(super) struct Out<'s> {
    pub(super) place: &'s mut Place,
    remarks: &'s mut usize,
    sink: &'s mut dyn FnMut(Scanned<'_>),
}

impl Out<'_> {
    pub(super) fn say(&mut self, scanned: Scanned<'_>) {
        (self.sink)(scanned);
    }

    pub(super) fn remark(&mut self, kind: FindingKind, place: Place, message: String) {
        if *self.remarks < FINDINGS_MAX {
            *self.remarks += 1;
            let Place { at, line, column } = place;
            (self.sink)(Scanned::Remark(Finding { kind, at, line, column, message }));
        }
    }

    fn remark_here(&mut self, kind: FindingKind) {
        let place = *self.place;
        self.remark(kind, place, kind.sentence().to_owned());
    }
}

/// Reads one reply.
pub(super) struct Scanner<G> {
    grammar: G,
    /// [`Self::is_calm`], as it was after the last piece.
    calm: bool,
    mode: Mode,
    trust: After,
    page: Page,
    place: Place,
    remarks: usize,
    /// Text that more text must decide on.
    held: String,
    /// White space behind a block that is shown if text follows.
    spaces: String,
    extra_angles: u8,
    shown: Unescaper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Page,
    /// Behind a block, before anything that can be seen.
    Behind,
    Block,
}

/// What the next bytes of a page are.
enum Next {
    Shown(usize),
    /// Shown, and told.
    Remarked(usize, FindingKind),
    Held,
    /// An end marker that ends nothing.
    HiddenEnd(usize),
    /// What is left over of a tainted block.
    HiddenLeftover(usize),
    /// All that is left.
    Torn,
    /// A block begins with a marker of this length.
    Block(usize),
}

/// What stands in a plain piece of text.
struct Survey {
    has_line_break: bool,
    characters: usize,
}

/// Up to here one pass over the bytes beats several that use SIMD: most deltas are a few bytes long.
const SHORT_BYTES: usize = 48;

impl Survey {
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

impl<G: Grammar> Scanner<G> {
    pub(super) fn new(grammar: G) -> Self {
        Self {
            grammar,
            calm: true,
            mode: Mode::Page,
            trust: After::Clear,
            page: Page::default(),
            place: Place::START,
            remarks: 0,
            held: String::new(),
            spaces: String::new(),
            extra_angles: 0,
            shown: Unescaper::new(G::BEGINNINGS),
        }
    }

    /// Nothing is held and nothing is expected: plain text may pass.
    fn is_calm(&self) -> bool {
        self.mode == Mode::Page
            && self.trust == After::Clear
            && self.held.is_empty()
            && self.spaces.is_empty()
            && self.shown.is_idle()
    }

    fn feed(&mut self, mut text: &str, rest: Rest, sink: &mut dyn FnMut(Scanned<'_>)) {
        while !text.is_empty() {
            let (slice, behind) = text.split_at(text.floor_char_boundary(SLICE_BYTES));
            text = behind;
            let rest = if behind.is_empty() { rest } else { Rest::MayCome };
            if self.held.is_empty() {
                self.read(slice, rest, sink);
            } else {
                let mut joined = std::mem::take(&mut self.held);
                joined.push_str(slice);
                self.read(&joined, rest, sink);
            }
        }
    }

    fn read(&mut self, text: &str, rest: Rest, sink: &mut dyn FnMut(Scanned<'_>)) {
        let mut at = 0;
        // What is to be shown of the text, not yet told.
        let mut run = 0..0;
        while at < text.len() {
            let ahead = &text[at..];
            match self.mode {
                Mode::Behind => at += self.behind(ahead, sink),
                Mode::Block => {
                    let mut out =
                        Out { place: &mut self.place, remarks: &mut self.remarks, sink: &mut *sink };
                    match self.grammar.read(ahead, rest, &mut out) {
                        Step::More { taken } => {
                            self.held.push_str(&ahead[taken..]);
                            return;
                        }
                        Step::Over { taken, again, after } => {
                            self.block_ends(after);
                            at += taken;
                            if !again.is_empty() {
                                let joined = again + &text[at..];
                                return self.feed(&joined, rest, sink);
                            }
                        }
                    }
                }
                Mode::Page => {
                    let next = self.page(ahead, rest);
                    let taken = match &next {
                        Next::Shown(taken) | Next::Remarked(taken, _) => *taken,
                        Next::HiddenEnd(taken) | Next::HiddenLeftover(taken) | Next::Block(taken) => *taken,
                        Next::Torn => ahead.len(),
                        Next::Held => 0,
                    };
                    let passed = &ahead[..taken];
                    if !matches!(next, Next::Shown(_)) {
                        self.show(&text[std::mem::take(&mut run)], sink);
                    }
                    let place = self.place;
                    if !matches!(next, Next::Block(_)) {
                        self.place.advance(passed);
                    }
                    let mut out = Out { place: &mut { place }, remarks: &mut self.remarks, sink: &mut *sink };
                    match next {
                        Next::Shown(_) | Next::Remarked(..) => {
                            if let Next::Remarked(_, kind) = next {
                                out.remark_here(kind);
                            }
                            if run.is_empty() {
                                run.start = at;
                            }
                            run.end = at + taken;
                        }
                        Next::Held => {
                            self.held.push_str(ahead);
                            return;
                        }
                        Next::Torn => {
                            out.remark_here(FindingKind::TornMarker);
                            self.hide(sink);
                        }
                        Next::HiddenLeftover(_) => self.hide(sink),
                        Next::HiddenEnd(_) => {
                            if self.trust == After::Clear {
                                out.remark_here(FindingKind::StrayEnd);
                            }
                            self.hide(sink);
                            self.block_ends(self.trust);
                        }
                        Next::Block(_) => {
                            self.hide(sink);
                            self.mode = Mode::Block;
                            let mut out =
                                Out { place: &mut self.place, remarks: &mut self.remarks, sink: &mut *sink };
                            self.grammar.begin(passed, self.trust, &mut out);
                        }
                    }
                    at += taken;
                }
            }
        }
        self.show(&text[run], sink);
    }

    fn block_ends(&mut self, after: After) {
        self.mode = Mode::Behind;
        self.page = Page::default();
        self.extra_angles = EXTRA_ANGLES_MAX;
        if after == After::Tainted {
            self.trust = after;
        }
    }

    /// Passes what belongs to the block behind its end: more `>`, and white space up to the last line break.
    fn behind(&mut self, text: &str, sink: &mut dyn FnMut(Scanned<'_>)) -> usize {
        let byte = text.as_bytes()[0];
        if byte == b'>' && self.extra_angles > 0 {
            self.extra_angles -= 1;
            self.place.advance(">");
            return 1;
        }
        self.extra_angles = 0;
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        if is_space && self.spaces.len() < SPACE_BYTES_MAX {
            self.spaces.push(char::from(byte));
            self.place.advance(&text[..1]);
            return 1;
        }
        self.mode = Mode::Page;
        if let Some(newline) = self.spaces.rfind('\n') {
            self.spaces.drain(..=newline);
        }
        self.page.plain(&self.spaces);
        if is_space {
            self.show_spaces(sink);
        }
        0
    }

    fn show_spaces(&mut self, sink: &mut dyn FnMut(Scanned<'_>)) {
        if !self.spaces.is_empty() {
            let spaces = std::mem::take(&mut self.spaces);
            self.shown.push(&spaces, &mut |piece| sink(Scanned::Text(piece)));
        }
    }

    fn show(&mut self, piece: &str, sink: &mut dyn FnMut(Scanned<'_>)) {
        if !piece.is_empty() {
            self.show_spaces(sink);
            self.shown.push(piece, &mut |piece| sink(Scanned::Text(piece)));
        }
    }

    /// Something hidden follows: the shown text before and after it are two texts.
    fn hide(&mut self, sink: &mut dyn FnMut(Scanned<'_>)) {
        self.spaces.clear();
        self.shown.finish(&mut |piece| sink(Scanned::Text(piece)));
    }

    fn page(&mut self, ahead: &str, rest: Rest) -> Next {
        let bytes = ahead.as_bytes();
        let mut plain = memchr::memchr3(b'<', b'`', b'~', bytes).unwrap_or(bytes.len());
        if self.trust == After::Tainted {
            plain = ahead[..plain].find(G::LEFTOVERS).unwrap_or(plain);
        }
        if plain > 0 {
            self.page.plain(&ahead[..plain]);
            return Next::Shown(plain);
        }
        match bytes[0] {
            b'<' => self.angle(ahead, rest),
            mark @ (b'`' | b'~') => {
                let count = bytes.iter().take_while(|byte| **byte == mark).count();
                self.page.marks(mark, count);
                Next::Shown(count)
            }
            _ => self.leftover(ahead, rest),
        }
    }

    fn angle(&mut self, ahead: &str, rest: Rest) -> Next {
        let inert = self.page.inert();
        let start = if self.page.is_at_line_start() { Start::OfLine } else { Start::InLine };
        let may_be = |tag: &str| rest == Rest::MayCome && tag.starts_with(ahead);
        if let Some(closing) = self.page.thinking_ends_with() {
            if ahead.starts_with(closing) {
                self.page = Page::default();
                return Next::Shown(closing.len());
            }
            if may_be(closing) {
                return Next::Held;
            }
        } else if inert.is_none() && start == Start::OfLine {
            for (opening, closing) in THINKING {
                if ahead.starts_with(opening) {
                    self.page.begin_thinking(closing);
                    return Next::Shown(opening.len());
                }
            }
            if THINKING.iter().any(|(opening, _)| may_be(opening)) {
                return Next::Held;
            }
        }
        let (mark, length) = match G::marker(ahead, rest) {
            Match::No => {
                self.page.angle();
                return Next::Shown(1);
            }
            Match::More => return Next::Held,
            Match::Torn if inert.is_none() => return Next::Torn,
            Match::Torn => return Next::Shown(ahead.len()),
            Match::Yes(mark, length) => (mark, length),
        };
        let next = match (mark, inert) {
            (Mark::Example, None) => Next::Remarked(length, FindingKind::MarkedInert),
            (Mark::End, None) if start == Start::OfLine || self.trust == After::Tainted => {
                return Next::HiddenEnd(length);
            }
            (Mark::Example | Mark::ExampleEnd | Mark::End, _) => Next::Shown(length),
            (Mark::Start, Some(kind)) if kind != FindingKind::InInlineCode => Next::Remarked(length, kind),
            (Mark::Start, inert) => {
                let start = if inert.is_some() { Start::InLine } else { start };
                match (G::follows(&ahead[length..], start, rest), inert) {
                    (Verdict::More, _) => return Next::Held,
                    (Verdict::Text, _) | (Verdict::Torn, Some(_)) => Next::Shown(length),
                    (Verdict::Torn, None) => return Next::Torn,
                    (Verdict::Block, Some(kind)) => Next::Remarked(length, kind),
                    (Verdict::Block, None) => return Next::Block(length),
                }
            }
        };
        self.page.angle();
        next
    }

    /// The value that a tainted block left open may end somewhere in the text behind it.
    fn leftover(&mut self, ahead: &str, rest: Rest) -> Next {
        let character = ahead.chars().next().map_or(1, char::len_utf8);
        let inert = self.page.inert().is_some();
        match G::leftover(ahead) {
            Leftover::Yes(length) if !inert => {
                self.page.plain(&ahead[..length]);
                Next::HiddenLeftover(length)
            }
            Leftover::More if !inert && rest == Rest::MayCome => Next::Held,
            _ => {
                self.page.plain(&ahead[..character]);
                Next::Shown(character)
            }
        }
    }
}

impl<G: Grammar> TextScanner for Scanner<G> {
    fn push(&mut self, text: &str, sink: &mut dyn FnMut(Scanned<'_>)) {
        if self.calm
            && let Some(survey) = Survey::of(text.as_bytes())
        {
            if survey.has_line_break {
                self.page.plain(text);
                self.place.advance(text);
            } else {
                self.page.part(text.as_bytes());
                self.place.advance_in_line(text.len(), survey.characters);
            }
            self.shown.pass(text);
            if !text.is_empty() {
                sink(Scanned::Text(text));
            }
            return;
        }
        self.feed(text, Rest::MayCome, sink);
        self.calm = self.is_calm();
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Scanned<'_>)) {
        let held = std::mem::take(&mut self.held);
        self.read(&held, Rest::Ended, sink);
        while self.mode == Mode::Block {
            let held = std::mem::take(&mut self.held);
            let mut out = Out { place: &mut self.place, remarks: &mut self.remarks, sink: &mut *sink };
            let (again, after) = self.grammar.end(&held, &mut out);
            self.block_ends(after);
            self.feed(&again, Rest::Ended, sink);
        }
        self.hide(sink);
    }
}
