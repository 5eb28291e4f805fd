//! Regions with a closing text: comments, elements of HTML that quote their content, and thinking.

use super::state::{LineLead, LineState, TextZone};
use super::{QuotationReader, is_blank};
use crate::text_calls::protocol::FindingKind;

/// Everything up to a closing text, as in a comment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) closing: &'static str,
    pub(super) kind: FindingKind,
    pub(super) extent: RegionExtent,
    /// Bytes of the closing text that were just passed.
    pub(super) matched: usize,
    pub(super) has_line_break: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegionExtent {
    /// If it never closes, it reaches to the end.
    Text,
    /// If it does not close on its line, it ends there.
    Line,
}

/// A tag of HTML so far, without its `<`.
#[derive(Clone, Copy, Debug)]
pub(super) struct TagPrefix {
    pub(super) bytes: [u8; Self::BYTES_MAX],
    pub(super) length: usize,
    pub(super) starts_line: bool,
}

impl TagPrefix {
    const BYTES_MAX: usize = 12;

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Thinking in the middle of a reply, at the start of a line; at the beginning of a reply it was split off before.
const THINKING: [(&[u8], &str); 2] = [(b"think", "</think>"), (b"thinking", "</thinking>")];

/// Elements of HTML whose content is shown verbatim, or as a quotation.
const ELEMENTS: [(&[u8], &str, FindingKind); 9] = [
    (b"blockquote", "</blockquote>", FindingKind::InQuotation),
    (b"code", "</code>", FindingKind::InInlineCode),
    (b"example", "</example>", FindingKind::InCodeFence),
    (b"pre", "</pre>", FindingKind::InCodeFence),
    (b"q", "</q>", FindingKind::InQuotation),
    (b"samp", "</samp>", FindingKind::InInlineCode),
    (b"script", "</script>", FindingKind::InCodeFence),
    (b"textarea", "</textarea>", FindingKind::InCodeFence),
    (b"xmp", "</xmp>", FindingKind::InCodeFence),
];

impl QuotationReader {
    pub(super) fn push_region(&mut self, text: &str, mut region: Region) -> usize {
        let closing = region.closing.as_bytes();
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if region.matched == 0 && region.extent == RegionExtent::Text {
                let next = memchr::memchr2(closing[0], b'\n', &bytes[at..]).unwrap_or(bytes.len() - at);
                at += next;
                if at == bytes.len() {
                    break;
                }
            }
            let byte = bytes[at];
            at += 1;
            // The tags of thinking are exact, as where it is split off.
            let folded =
                if region.kind == FindingKind::InThinking { byte } else { byte.to_ascii_lowercase() };
            region.matched = match region.matched {
                matched if folded == closing[matched] => matched + 1,
                // `--->` closes a comment, too.
                2 if byte == b'-' => 2,
                _ => usize::from(byte == closing[0]),
            };
            if region.matched == closing.len() {
                self.end_region(region);
                return at;
            }
            if byte == b'\n' {
                region.has_line_break = true;
                if region.extent == RegionExtent::Line {
                    self.zone = TextZone::Page;
                    self.end_line();
                    return at;
                }
            }
        }
        self.zone = TextZone::Until(region);
        bytes.len()
    }

    pub(super) fn end_region(&mut self, region: Region) {
        if region.kind == FindingKind::InThinking {
            let (offset, spans) = (self.offset, self.spans.take());
            *self = Self { offset, spans, ..Self::default() };
            return;
        }
        self.zone = TextZone::Page;
        self.previous = Some('>');
        if region.has_line_break {
            // The line began inside: what follows continues it as text.
            self.line = LineState { lead: LineLead::Text, ..LineState::default() };
            self.continues_paragraph = true;
        }
    }

    pub(super) fn begin_region(&mut self, closing: &'static str, kind: FindingKind, extent: RegionExtent) {
        self.zone = TextZone::Until(Region { closing, kind, extent, matched: 0, has_line_break: false });
        (self.tag, self.comment_mark, self.escaped) = (None, None, false);
    }

    pub(super) fn push_tag(&mut self, character: char) {
        if character == '<' {
            self.tag = Some(TagPrefix { bytes: [0; TagPrefix::BYTES_MAX], length: 0, starts_line: false });
            return;
        }
        let Some(tag) = &mut self.tag else { return };
        let ends = character == '>' || character == '/' || is_blank(character);
        if !ends && character.is_ascii() && tag.length < TagPrefix::BYTES_MAX {
            tag.bytes[tag.length] = u8::try_from(character).unwrap_or_default();
            tag.length += 1;
            if tag.as_bytes() == b"!--" && self.code == 0 {
                self.begin_region("-->", FindingKind::InComment, RegionExtent::Text);
            }
            return;
        }
        let tag = *tag;
        self.tag = None;
        if !ends || self.code > 0 {
            return;
        }
        let thinking = THINKING.iter().find(|(name, _)| *name == tag.as_bytes() && character == '>');
        let element = ELEMENTS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(tag.as_bytes()));
        if let Some((_, closing)) = thinking {
            if tag.starts_line && self.quotation().is_none() {
                self.begin_region(closing, FindingKind::InThinking, RegionExtent::Text);
            }
        } else if let Some((_, closing, kind)) = element {
            self.begin_region(closing, *kind, RegionExtent::Text);
        }
    }
}
