//! Text that replaces a content's base64 in an encoded request.

use super::media::is_picture_type;
use super::picture_size::picture_size;
use super::picture_type;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Text that replaces a content's base64, with the properties that encoders need: a request with large
/// pictures is encoded without them, and its sender inserts each where its text is.
///
/// ```
/// use throughline_wire::{Dialect, Media, MediaContent, MediaPlaceholder, Message, ModelRequest, TransferMode, UserPart, encode};
///
/// let head = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xE0";
/// let content = MediaPlaceholder::new("(picture 1)".into(), "image/png", 250_000, head).unwrap();
/// let picture = Media { media_type: "image/png".into(), content: MediaContent::Placeholder(content) };
/// let messages = vec![Message::User(vec![UserPart::Image(picture)])];
/// let request = ModelRequest { model: "m".into(), messages, ..ModelRequest::default() };
/// let encoded = encode(Dialect::Ollama, &request, &Default::default(), TransferMode::Stream)?;
/// assert_eq!(encoded.body["messages"][0]["images"][0], "(picture 1)");
/// # Ok::<(), throughline_wire::EncodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaPlaceholder {
    text: String,
    bytes: u64,
    picture: Option<PictureHead>,
}

/// Facts that a picture's first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PictureHead {
    pub kind: &'static str,
    pub pixels: (u32, u32),
}

impl MediaPlaceholder {
    /// A placeholder for a content of `bytes` bytes with this beginning. The text must not occur elsewhere in
    /// the request, and must have only characters that JSON does not escape.
    ///
    /// `None` for content that an encoder has to see: text, and a picture whose size is not in this
    /// beginning.
    pub fn new(text: String, media_type: &str, bytes: u64, head: &[u8]) -> Option<Self> {
        let is_text = media_type.starts_with("text/") || media_type.ends_with("json");
        let picture = match picture_type(head).filter(|_| is_picture_type(media_type)) {
            Some(kind) => Some(PictureHead { kind, pixels: picture_size(&BASE64.encode(head))? }),
            None => None,
        };
        (!is_text).then_some(Self { text, bytes, picture })
    }

    /// The text that replaces the content.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Size of the content, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Length of its base64, padding included.
    pub(super) fn base64_bytes(&self) -> usize {
        usize::try_from(self.bytes.div_ceil(3).saturating_mul(4)).unwrap_or(usize::MAX)
    }

    /// Facts about a picture, if it is one that models read.
    pub(super) fn picture(&self) -> Option<PictureHead> {
        self.picture
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, EncodedRequest, Media, MediaContent, Message, ModelRequest, TransferMode};
    use crate::{UpstreamProfile, UserPart, encode};

    fn png(width: u32, bytes: usize) -> Vec<u8> {
        let mut png = b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR".to_vec();
        png.extend([width.to_be_bytes(), 10_u32.to_be_bytes()].concat());
        png.resize(bytes, 7);
        png
    }

    fn encoded(dialect: Dialect, media: Vec<Media>) -> EncodedRequest {
        let part = |media: Media| match media.media_type.split('/').next() {
            Some("image") => UserPart::Image(media),
            _ => UserPart::File { name: "f".into(), media },
        };
        let messages = vec![Message::User(media.into_iter().map(part).collect())];
        let request = ModelRequest { model: "claude".into(), messages, ..ModelRequest::default() };
        let profile = UpstreamProfile { audio: true, ..UpstreamProfile::default() };
        encode(dialect, &request, &profile, TransferMode::Stream).unwrap()
    }

    /// Checks that a request with placeholders, after their replacement, equals the request with the
    /// contents.
    #[track_caller]
    fn check(media: &[(&str, Vec<u8>)]) {
        let texts: Vec<String> = (0..media.len()).map(|number| format!("(placeholder {number})")).collect();
        let inline = media.iter().map(|(kind, bytes)| Media::new((*kind).into(), BASE64.encode(bytes)));
        let placed = media.iter().zip(&texts).map(|((kind, bytes), text)| {
            let head = &bytes[..bytes.len().min(64)];
            let placeholder = MediaPlaceholder::new(text.clone(), kind, bytes.len() as u64, head).unwrap();
            Media { media_type: (*kind).into(), content: MediaContent::Placeholder(placeholder) }
        });
        let (inline, placed): (Vec<Media>, Vec<Media>) = (inline.collect(), placed.collect());
        for dialect in Dialect::ALL {
            let mut body = encoded(dialect, placed.clone()).body.to_string();
            for ((_, bytes), text) in media.iter().zip(&texts) {
                body = body.replace(text, &BASE64.encode(bytes));
            }
            assert_eq!(body, encoded(dialect, inline.clone()).body.to_string(), "{dialect:?}");
        }
    }

    #[test]
    fn request_with_placeholders_is_otherwise_identical() {
        check(&[("image/png", png(640, 5_000)), ("application/pdf", b"%PDF-1.7 and so on".to_vec())]);
        check(&[
            ("image/heic", b"\0\0\0\x1cftypheic, which no model reads".to_vec()),
            ("application/zip", b"PK".to_vec()),
        ]);
        check(&[("audio/wav", b"RIFF\x24\0\0\0WAVE".to_vec()), ("audio/mpeg", vec![0xFF; 4])]);
        // Of another type than declared, too wide, too large.
        check(&[("image/png", b"GIF89a\xA0\x0F\x2C\x01\xF7\0\0".to_vec()), ("image/png", png(9_000, 100))]);
        check(&[("image/png", png(10, 3_999_999)), ("image/png", png(11, 100)), ("image/png", png(12, 101))]);
        let many = (0..25).map(|width| ("image/png", png(1_990 + width, 100)));
        check(&many.collect::<Vec<_>>());
    }

    #[test]
    fn content_needed_by_encoders_gets_no_placeholder() {
        let of = |kind, head: &[u8]| MediaPlaceholder::new("p".into(), kind, 100, head);
        for kind in ["text/plain", "application/json", "application/vnd.api+json"] {
            assert_eq!(of(kind, b"{}"), None, "{kind}");
        }
        assert_eq!(of("image/jpeg", b"\xFF\xD8\xFF\xE1\xFF\xFF then EXIF, and no size yet"), None);
        assert_eq!(of("image/png", &png(640, 30)).map(|content| content.base64_bytes()), Some(136));
    }
}
