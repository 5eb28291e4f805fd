//! One request block while it arrives: from signs to fields. [`RequestReader`] interprets the fields.

use super::super::block_scanner::{
    BlockDecision, BlockGrammar, BlockProgress, InputState, LeftoverMatch, LinePosition, MarkerKind,
    MarkerMatch, ScanOutput, TextPosition, TrustState,
};
use super::super::escape::{MarkerPrefix, StreamUnescaper};
use super::super::protocol::RAW_BYTES_MAX;
use super::lexer::{self, BracketKind, QuoteMode, SignMatch, ValueSign};
use super::request::{RequestReader, VcpTools};
use super::syntax::{
    ANGLES_MAX, BLOCK_BYTES_MAX, FIELDS_MAX, GAP_BYTES_MAX, KEY_BYTES_MAX, MARKER_PREFIXES, is_colon,
    is_key_char, is_space,
};
use super::texts::VcpFlaw;
use std::sync::Arc;

/// Reads the blocks of one reply, one after the other.
pub(super) struct VcpBlockReader {
    tools: Arc<VcpTools>,
    request: RequestReader,
    state: VcpBlockState,
    /// The block as written, its first bytes.
    raw: String,
    raw_room: usize,
    /// Bytes after the start marker.
    size: usize,
    /// Text between two fields.
    gap: String,
    gap_position: TextPosition,
    raw_before_gap: usize,
    extra_angles: usize,
    value: StreamUnescaper,
}

#[derive(Clone, Copy, Debug)]
enum VcpBlockState {
    Gap,
    Value(BracketKind, QuoteMode),
    /// The block is refused; its end is looked for.
    Refused(TrustState),
    /// The block is too large to look for its end.
    Lost,
}

/// Effect of a piece of text.
enum PieceResult {
    /// This many bytes belong to the block.
    Consumed(usize),
    /// Undecided: more text is needed.
    Held,
    /// The block ended after this many bytes.
    Ended(usize, TrustState),
}

impl VcpBlockReader {
    pub(super) fn new(tools: Arc<VcpTools>, start: TextPosition) -> Self {
        Self {
            request: RequestReader::new(tools.clone(), start),
            tools,
            state: VcpBlockState::Gap,
            raw: String::new(),
            raw_room: RAW_BYTES_MAX,
            size: 0,
            gap: String::new(),
            gap_position: start,
            raw_before_gap: 0,
            extra_angles: 0,
            value: StreamUnescaper::new(MARKER_PREFIXES),
        }
    }

    fn refuse(&mut self, flaw: &VcpFlaw, after: TrustState, out: &mut ScanOutput<'_>) {
        self.request.refuse(flaw, &self.raw, out);
        self.state = VcpBlockState::Refused(after);
    }

    fn push_raw(&mut self, text: &str) {
        let prefix = &text[..text.floor_char_boundary(self.raw_room)];
        self.raw.push_str(prefix);
        self.raw_room = if prefix.len() < text.len() { 0 } else { self.raw_room - prefix.len() };
    }

    // --- between fields ---

    fn gap(&mut self, text: &str, rest: InputState, out: &mut ScanOutput<'_>) -> PieceResult {
        if self.gap.is_empty() && self.extra_angles > 0 && text.starts_with('>') {
            self.extra_angles -= 1;
            self.gap_position.advance(">");
            return PieceResult::Consumed(1);
        }
        self.extra_angles = 0;
        let plain = text.find(['<', '「', '{']).unwrap_or(text.len());
        if plain > 0 {
            return self.push_gap(&text[..plain], out);
        }
        if text.starts_with('<') {
            return match lexer::marker(text, rest) {
                MarkerMatch::More => PieceResult::Held,
                MarkerMatch::Yes(MarkerKind::End, length) => {
                    self.push_raw(&text[..length]);
                    self.request.note_gap(&self.gap, None);
                    self.request.seal(&self.raw, out);
                    PieceResult::Ended(length, TrustState::Trusted)
                }
                MarkerMatch::Yes(MarkerKind::Start, length) => {
                    let line = self.gap.rsplit('\n').next().unwrap_or_default();
                    let start = if line.chars().all(is_space) {
                        LinePosition::LineStart
                    } else {
                        LinePosition::MidLine
                    };
                    match lexer::follows(&text[length..], start, rest) {
                        BlockDecision::More => PieceResult::Held,
                        BlockDecision::Block => self.end_without_marker(out),
                        BlockDecision::Text | BlockDecision::Torn => self.push_gap(&text[..length], out),
                    }
                }
                MarkerMatch::Yes(MarkerKind::Example | MarkerKind::ExampleEnd, length) => {
                    self.push_gap(&text[..length], out)
                }
                MarkerMatch::No | MarkerMatch::Torn => self.push_gap("<", out),
            };
        }
        match lexer::match_sign(text) {
            SignMatch::More if rest == InputState::Open => PieceResult::Held,
            SignMatch::No | SignMatch::More => {
                let length = text.chars().next().map_or(0, char::len_utf8);
                self.push_gap(&text[..length], out)
            }
            SignMatch::LookAlike => {
                self.refuse(&VcpFlaw::BadMark, TrustState::Tainted, out);
                PieceResult::Consumed(0)
            }
            SignMatch::Yes(ValueSign::Close(..), _) => {
                self.refuse(&VcpFlaw::StrayCloser, TrustState::Tainted, out);
                PieceResult::Consumed(0)
            }
            SignMatch::Yes(ValueSign::Open(brackets, quoting), length) => {
                match key_before(&self.gap) {
                    None => self.refuse(&VcpFlaw::NoKey, TrustState::Tainted, out),
                    Some(_) if self.request.len() == FIELDS_MAX => {
                        self.refuse(&VcpFlaw::TooManyFields, TrustState::Tainted, out);
                    }
                    Some(key) => {
                        let key = key.to_owned();
                        self.request.note_gap(&self.gap, Some(&key));
                        self.request.begin_field(key, out);
                        self.state = VcpBlockState::Value(brackets, quoting);
                        self.gap.clear();
                    }
                }
                PieceResult::Consumed(length)
            }
        }
    }

    fn push_gap(&mut self, text: &str, out: &mut ScanOutput<'_>) -> PieceResult {
        if self.gap.len() + text.len() > GAP_BYTES_MAX {
            return self.end_without_marker(out);
        }
        self.gap.push_str(text);
        PieceResult::Consumed(text.len())
    }

    fn end_without_marker(&mut self, out: &mut ScanOutput<'_>) -> PieceResult {
        self.refuse_unterminated(out);
        PieceResult::Ended(0, TrustState::Trusted)
    }

    /// The block ended after its last field: what follows is text again.
    fn refuse_unterminated(&mut self, out: &mut ScanOutput<'_>) {
        let before_gap = self.raw.len().min(self.raw_before_gap);
        self.request.refuse(&VcpFlaw::NoEnd, &self.raw[..before_gap], out);
        *out.position = self.gap_position;
    }

    // --- in a value ---

    fn value(
        &mut self,
        brackets: BracketKind,
        quoting: QuoteMode,
        text: &str,
        rest: InputState,
        out: &mut ScanOutput<'_>,
    ) -> PieceResult {
        let plain = text.find(['<', '「', '{']).unwrap_or(text.len());
        if plain > 0 {
            return self.push_value(&text[..plain], &text[..plain], out);
        }
        if text.starts_with('<') {
            return match lexer::marker(text, rest) {
                MarkerMatch::More => PieceResult::Held,
                MarkerMatch::Yes(MarkerKind::End, _) if quoting == QuoteMode::Plain => {
                    let key = self.request.key().to_owned();
                    self.refuse(&VcpFlaw::EndInValue { key }, TrustState::Tainted, out);
                    PieceResult::Consumed(0)
                }
                MarkerMatch::Yes(MarkerKind::Example | MarkerKind::ExampleEnd, length)
                    if quoting == QuoteMode::Escape =>
                {
                    self.push_value(&text[..length], &lexer::without_escape_suffix(&text[..length]), out)
                }
                _ => self.push_value("<", "<", out),
            };
        }
        match (lexer::match_sign(text), quoting) {
            (SignMatch::More, _) if rest == InputState::Open => PieceResult::Held,
            (SignMatch::Yes(ValueSign::Close(closes, how), length), _)
                if closes == brackets && how == quoting =>
            {
                let request = &mut self.request;
                self.value.finish(&mut |piece| request.push_value(piece, out));
                self.request.end_field(out);
                self.state = VcpBlockState::Gap;
                self.gap_position = *out.position;
                self.gap_position.advance(&text[..length]);
                self.raw_before_gap = self.raw.len() + length;
                PieceResult::Consumed(length)
            }
            (SignMatch::Yes(ValueSign::Open(..), _), QuoteMode::Plain) => {
                let key = self.request.key().to_owned();
                self.refuse(&VcpFlaw::OpenerInValue { key }, TrustState::Tainted, out);
                PieceResult::Consumed(0)
            }
            (SignMatch::Yes(ValueSign::Open(opens, QuoteMode::Escape), length), QuoteMode::Escape) => {
                self.push_value(&text[..length], opens.plain_opener(), out)
            }
            _ => {
                let length = text.chars().next().map_or(0, char::len_utf8);
                self.push_value(&text[..length], &text[..length], out)
            }
        }
    }

    fn push_value(&mut self, written: &str, meant: &str, out: &mut ScanOutput<'_>) -> PieceResult {
        if self.size + written.len() > BLOCK_BYTES_MAX {
            self.request.refuse(&VcpFlaw::TooLarge, &self.raw, out);
            self.state = VcpBlockState::Lost;
            return PieceResult::Consumed(0);
        }
        let request = &mut self.request;
        self.value.push(meant, &mut |piece| request.push_value(piece, out));
        PieceResult::Consumed(written.len())
    }

    // --- refused ---

    fn skip(&mut self, after: TrustState, text: &str, rest: InputState) -> PieceResult {
        let plain = memchr::memchr(b'<', text.as_bytes()).unwrap_or(text.len());
        if plain > 0 {
            return PieceResult::Consumed(plain);
        }
        match lexer::marker(text, rest) {
            MarkerMatch::More => PieceResult::Held,
            MarkerMatch::Yes(MarkerKind::End, length) => PieceResult::Ended(length, after),
            _ => PieceResult::Consumed(1),
        }
    }
}

impl BlockGrammar for VcpBlockReader {
    const MARKER_PREFIXES: &'static [MarkerPrefix] = MARKER_PREFIXES;
    const LEFTOVERS: &'static [char] = &['「', '{'];

    fn marker(text: &str, rest: InputState) -> MarkerMatch {
        lexer::marker(text, rest)
    }

    fn follows(after: &str, start: LinePosition, rest: InputState) -> BlockDecision {
        lexer::follows(after, start, rest)
    }

    fn leftover(text: &str) -> LeftoverMatch {
        match lexer::match_sign(text) {
            SignMatch::More => LeftoverMatch::More,
            SignMatch::Yes(ValueSign::Close(..), length) => LeftoverMatch::Yes(length),
            _ => LeftoverMatch::No,
        }
    }

    fn begin(&mut self, marker: &str, before: TrustState, out: &mut ScanOutput<'_>) {
        let start = *out.position;
        *self = Self::new(self.tools.clone(), start);
        self.push_raw(marker);
        out.position.advance(marker);
        self.gap_position = *out.position;
        self.raw_before_gap = self.raw.len();
        self.extra_angles = ANGLES_MAX - 3;
        if before == TrustState::Tainted {
            self.refuse(&VcpFlaw::AfterTainted, TrustState::Tainted, out);
        }
    }

    fn read(&mut self, text: &str, rest: InputState, out: &mut ScanOutput<'_>) -> BlockProgress {
        let mut consumed = 0;
        while consumed < text.len() {
            let ahead = &text[consumed..];
            let result = match self.state {
                VcpBlockState::Gap => self.gap(ahead, rest, out),
                VcpBlockState::Value(brackets, quoting) => self.value(brackets, quoting, ahead, rest, out),
                VcpBlockState::Refused(after) => self.skip(after, ahead, rest),
                VcpBlockState::Lost => PieceResult::Consumed(ahead.len()),
            };
            match result {
                PieceResult::Consumed(count) => {
                    let piece = &ahead[..count];
                    self.push_raw(piece);
                    self.size += count;
                    out.position.advance(piece);
                    consumed += count;
                }
                PieceResult::Held => return BlockProgress::More { consumed },
                PieceResult::Ended(count, after) => {
                    out.position.advance(&ahead[..count]);
                    return BlockProgress::Ended { after };
                }
            }
        }
        BlockProgress::More { consumed }
    }

    fn end(&mut self, held: &str, out: &mut ScanOutput<'_>) -> TrustState {
        match self.state {
            VcpBlockState::Refused(after) => after,
            VcpBlockState::Lost => TrustState::Tainted,
            VcpBlockState::Gap => {
                self.refuse_unterminated(out);
                TrustState::Trusted
            }
            VcpBlockState::Value(brackets, quoting) => {
                let key = self.request.key().to_owned();
                let flaw = if self.size + held.len() > BLOCK_BYTES_MAX {
                    VcpFlaw::TooLarge
                } else {
                    VcpFlaw::Unclosed { key, closer: brackets.closer(quoting) }
                };
                self.request.refuse(&flaw, &self.raw, out);
                TrustState::Trusted
            }
        }
    }
}

/// The name of the field whose value opens after this text.
fn key_before(gap: &str) -> Option<&str> {
    let named = gap.trim_end_matches(is_space).strip_suffix(is_colon)?.trim_end_matches(is_space);
    let before = named.trim_end_matches(is_key_char);
    let key = &named[before.len()..];
    // Spaces are enough after the last value; anywhere else a comma or a line break is needed.
    let line = before.trim_end_matches([' ', '\t', '\r']);
    let starts = line.is_empty() || line.ends_with([',', '，', '\n']);
    (starts && !key.is_empty() && key.len() <= KEY_BYTES_MAX).then_some(key)
}
