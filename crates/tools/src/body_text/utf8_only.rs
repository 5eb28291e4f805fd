//! UTF-8 alone, for builds without the feature `charsets`: every other label is unknown, and is named.

use super::{BodyExtent, DecodedText};

/// The only encoding of builds without charset support: UTF-8.
#[derive(Clone, Copy)]
pub(super) struct Charset;

impl Charset {
    pub(super) const UTF_8: Self = Self;
    pub(super) const FALLBACK: Self = Self;

    /// Encoding by a byte-order mark, with the length of that mark.
    pub(super) fn for_bom(body: &[u8]) -> Option<(Self, usize)> {
        body.starts_with(b"\xef\xbb\xbf").then_some((Self, 3))
    }

    /// Encoding by a label that servers use.
    pub(super) fn for_label(label: &[u8]) -> Option<Self> {
        let label = label.trim_ascii();
        let is_known = ["utf-8", "utf8", "us-ascii", "ascii"]
            .iter()
            .any(|one| label.eq_ignore_ascii_case(one.as_bytes()));
        is_known.then_some(Self)
    }

    pub(super) fn of_markup(self) -> Self {
        self
    }

    pub(super) fn name(self) -> &'static str {
        "UTF-8"
    }

    pub(super) fn decode(self, body: &[u8], extent: BodyExtent, bytes_max: usize) -> DecodedText {
        let body = match std::str::from_utf8(body) {
            // Its end was cut off in the middle of a character.
            Err(error) if extent == BodyExtent::Cut && error.error_len().is_none() => {
                &body[..error.valid_up_to()]
            }
            _ => body,
        };
        let mut text = String::new();
        let mut has_malformed = false;
        for chunk in body.utf8_chunks() {
            text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                has_malformed = true;
                text.push('\u{fffd}');
            }
            if text.len() > bytes_max {
                text.truncate(text.floor_char_boundary(bytes_max));
                return DecodedText { text, has_malformed, extent: BodyExtent::Cut };
            }
        }
        DecodedText { text, has_malformed, extent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_is_decoded_within_limit_and_other_labels_are_unknown() {
        for (body, extent, bytes_max, expected, has_malformed, expected_extent) in [
            (&b"a\xc3\xa9"[..], BodyExtent::Complete, 9, "aé", false, BodyExtent::Complete),
            (b"a\xc3", BodyExtent::Cut, 9, "a", false, BodyExtent::Cut),
            (b"a\xc3", BodyExtent::Complete, 9, "a\u{fffd}", true, BodyExtent::Complete),
            (b"\xc3\xa9\xc3\xa9", BodyExtent::Complete, 3, "é", false, BodyExtent::Cut),
        ] {
            let read = Charset::UTF_8.decode(body, extent, bytes_max);
            let read = (read.text.as_str(), read.has_malformed, read.extent);
            assert_eq!(read, (expected, has_malformed, expected_extent), "{body:?}");
        }
        let mark = Charset::for_bom(b"\xef\xbb\xbfa").map(|(charset, bytes)| (charset.name(), bytes));
        assert_eq!((mark, Charset::for_bom(b"a").is_none()), (Some(("UTF-8", 3)), true));
        for (label, is_known) in
            [("UTF-8", true), (" utf8 ", true), ("us-ascii", true), ("gbk", false), ("", false)]
        {
            let charset = Charset::for_label(label.as_bytes()).map(Charset::of_markup);
            assert_eq!(charset.is_some(), is_known, "{label}");
        }
        assert_eq!(Charset::FALLBACK.name(), "UTF-8");
    }
}
