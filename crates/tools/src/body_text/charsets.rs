//! All encodings of the Encoding Standard.

use super::{BodyExtent, DecodedText};
use encoding_rs::{CoderResult, Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// A character encoding.
#[derive(Clone, Copy)]
pub(super) struct Charset(&'static Encoding);

impl Charset {
    pub(super) const UTF_8: Self = Self(UTF_8);
    /// Default of browsers for a text without a declared encoding that is not UTF-8.
    pub(super) const FALLBACK: Self = Self(WINDOWS_1252);

    /// Encoding by a byte-order mark, with the length of that mark.
    pub(super) fn for_bom(body: &[u8]) -> Option<(Self, usize)> {
        Encoding::for_bom(body).map(|(encoding, mark_bytes)| (Self(encoding), mark_bytes))
    }

    /// Encoding by a label that servers use.
    pub(super) fn for_label(label: &[u8]) -> Option<Self> {
        // Browsers refuse these encodings and show one character for the whole page.
        Encoding::for_label(label).filter(|encoding| *encoding != REPLACEMENT).map(Self)
    }

    /// Encoding as a text declares it for itself: a text that can be read byte by byte is in no encoding of
    /// two bytes. HTML has this rule for `<meta>`.
    pub(super) fn of_markup(self) -> Self {
        if self.0 == UTF_16LE || self.0 == UTF_16BE { Self::UTF_8 } else { self }
    }

    pub(super) fn name(self) -> &'static str {
        self.0.name()
    }

    pub(super) fn decode(self, body: &[u8], extent: BodyExtent, bytes_max: usize) -> DecodedText {
        let mut decoder = self.0.new_decoder_without_bom_handling();
        // A character more than fits, so that one which just fits is not taken for the beginning of more.
        let room = decoder.max_utf8_buffer_length(body.len()).unwrap_or(usize::MAX);
        let mut text = String::with_capacity(room.min(bytes_max.saturating_add(16)));
        let (result, _, has_malformed) =
            decoder.decode_to_string(body, &mut text, extent == BodyExtent::Complete);
        let is_full = result == CoderResult::OutputFull || text.len() > bytes_max;
        text.truncate(text.floor_char_boundary(bytes_max));
        DecodedText { text, has_malformed, extent: if is_full { BodyExtent::Cut } else { extent } }
    }
}
