//! Width and height of a picture, read from its header alone: a history may hold a hundred pictures of 5 MB each, and all of them
//! are looked at for every request.

use super::picture_type;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

/// Segments of a JPEG that are passed over. Cameras and editors write a few dozen in front of the size, a hostile file millions.
const SEGMENTS_MAX: usize = 1_000;

/// Width and height in pixels of a picture in base64; `None` if its header does not have them.
///
/// Only the groups of base64 that are needed are decoded, so a long EXIF block costs nothing.
pub(crate) fn picture_size(base64: &str) -> Option<(u32, u32)> {
    let picture = Base64Bytes(base64);
    match picture_type(&picture.read::<12>(0)?)? {
        "image/png" => png_size(&picture),
        "image/jpeg" => jpeg_size(&picture),
        "image/gif" => {
            let (width, height) = (picture.read(6)?, picture.read(8)?);
            Some((u16::from_le_bytes(width).into(), u16::from_le_bytes(height).into()))
        }
        "image/webp" => webp_size(&picture),
        _ => None,
    }
}

/// Size in a PNG header: <https://www.w3.org/TR/png-3/#11IHDR>
fn png_size(picture: &Base64Bytes<'_>) -> Option<(u32, u32)> {
    let is_header = picture.read(12)? == *b"IHDR";
    let (width, height) = (picture.read(16)?, picture.read(20)?);
    is_header.then(|| (u32::from_be_bytes(width), u32::from_be_bytes(height)))
}

/// The first frame header, `SOF0` to `SOF15` (<https://www.w3.org/Graphics/JPEG/itu-t81.pdf>, B.1.1.3 and B.2.2).
fn jpeg_size(picture: &Base64Bytes<'_>) -> Option<(u32, u32)> {
    let mut at = 2;
    for _ in 0..SEGMENTS_MAX {
        let [0xFF, marker] = picture.read(at)? else { return None };
        at += match marker {
            // Any number of these may precede a marker.
            0xFF => 1,
            // They have no content.
            0x01 | 0xD0..=0xD7 => 2,
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) => {
                let (height, width) = (picture.read(at + 5)?, picture.read(at + 7)?);
                return Some((u16::from_be_bytes(width).into(), u16::from_be_bytes(height).into()));
            }
            // The data begins, or the picture ends.
            0xD8..=0xDA => return None,
            _ => 2 + usize::from(u16::from_be_bytes(picture.read(at + 2)?)),
        };
    }
    None
}

/// Size in a WebP header: <https://developers.google.com/speed/webp/docs/riff_container>, RFC 9649.
fn webp_size(picture: &Base64Bytes<'_>) -> Option<(u32, u32)> {
    match &picture.read(12)? {
        b"VP8 " => {
            let is_key_frame = picture.read(23)? == [0x9D, 0x01, 0x2A];
            // The two highest bits say how to scale it.
            let side = |bytes| u32::from(u16::from_le_bytes(bytes) & 0x3FFF);
            let (width, height) = (picture.read(26)?, picture.read(28)?);
            is_key_frame.then(|| (side(width), side(height)))
        }
        b"VP8L" => {
            let is_lossless = picture.read(20)? == [0x2F];
            let bits = u32::from_le_bytes(picture.read(21)?);
            is_lossless.then(|| ((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1))
        }
        b"VP8X" => {
            let side = |[low, middle, high]: [u8; 3]| u32::from_le_bytes([low, middle, high, 0]) + 1;
            Some((side(picture.read(24)?), side(picture.read(27)?)))
        }
        _ => None,
    }
}

/// Bytes encoded as base64.
struct Base64Bytes<'a>(&'a str);

impl Base64Bytes<'_> {
    /// The bytes there; none if there are not as many, or if they are no base64.
    fn read<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        let (first, end) = (at / 3, (at + N).div_ceil(3));
        let groups = self.0.get(first * 4..self.0.len().min(end * 4))?;
        let bytes = BASE64.decode(groups).ok()?;
        bytes.get(at - first * 3..)?.first_chunk().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(what: &str, pieces: &[&[u8]], expected: Option<(u32, u32)>) {
        assert_eq!(picture_size(&BASE64.encode(pieces.concat())), expected, "{what}");
    }

    const SOI: &[u8] = b"\xFF\xD8";
    const JFIF: &[u8] = b"\xFF\xE0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0";
    /// A frame header of 3,000 by 2,000 pixels.
    const SOF0: &[u8] = b"\xFF\xC0\0\x11\x08\x07\xD0\x0B\xB8\x03\x01\x22\0\x02\x11\x01\x03\x11\x01";
    const SOF2: &[u8] = b"\xFF\xC2\0\x11\x08\x07\xD0\x0B\xB8\x03\x01\x22\0\x02\x11\x01\x03\x11\x01";

    #[test]
    fn sizes_are_read_from_the_headers() {
        let ihdr = b"\0\0\0\rIHDR\0\0\x23\x28\0\0\0\x0A\x08\x06\0\0\0";
        check("PNG", &[b"\x89PNG\r\n\x1A\n", ihdr], Some((9000, 10)));
        check("GIF", &[b"GIF89a\xA0\x0F\x2C\x01\xF7\0\0"], Some((4000, 300)));
        check("JPEG", &[SOI, JFIF, SOF0], Some((3000, 2000)));
        check("progressive JPEG", &[SOI, JFIF, SOF2], Some((3000, 2000)));
        let vp8 = b"VP8 \x20\0\0\0\x30\x01\0\x9D\x01\x2A\xD0\x47\xE8\x03";
        check("WebP", &[b"RIFF\x2C\0\0\0WEBP", vp8], Some((2000, 1000)));
        let vp8l = b"VP8L\x10\0\0\0\x2F\xFF\xCF\xF9\x00";
        check("lossless WebP", &[b"RIFF\x1C\0\0\0WEBP", vp8l], Some((4096, 1000)));
        let vp8x = b"VP8X\x0A\0\0\0\x10\0\0\0\x3F\x1F\0\x0F\x27\0";
        check("extended WebP", &[b"RIFF\x2C\0\0\0WEBP", vp8x], Some((8000, 10_000)));
    }

    #[test]
    fn jpeg_size_is_found_after_large_segments() {
        let exif = [b"\xFF\xE1\xFF\xFFExif\0\0".as_slice(), &vec![7; 0xFFFF - 8]].concat();
        let table = b"\xFF\xC4\0\x03\x01";
        for segments in [1, 2, 40] {
            let exif = exif.repeat(segments);
            check("EXIF", &[SOI, &exif, b"\xFF\xFF", table, SOF0], Some((3000, 2000)));
        }
        check("no end", &[SOI, &table.repeat(SEGMENTS_MAX), SOF0], None);
        check("data without a size", &[SOI, JFIF, b"\xFF\xDA\0\x02", SOF0], None);
    }

    #[test]
    fn missing_picture_size_is_none() {
        let cut = [SOI, JFIF, SOF0].concat();
        for length in 0..SOI.len() + JFIF.len() + 9 {
            check("cut", &[&cut[..length]], None);
        }
        check("no picture", &[b"<svg width='9000' height='9000'/>"], None);
        for text in
            ["", "iVBORw0KGgo=", "iVBORw0KGgo", "\u{e9}", "/9j/\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}"]
        {
            assert_eq!(picture_size(text), None, "{text}");
        }
    }

    const HEADS: &[&[u8]] = &[
        b"",
        b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR",
        b"\xFF\xD8\xFF",
        b"GIF89a",
        b"RIFF\0\0\0\0WEBPVP8 ",
        b"RIFF\0\0\0\0WEBPVP8L",
        b"RIFF\0\0\0\0WEBPVP8X",
    ];

    proptest! {
        #[test]
        fn arbitrary_picture_bytes_never_panic(
            head in proptest::sample::select(HEADS),
            tail in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xFF), Just(0)], 0..200),
            text in ".*",
        ) {
            let base64 = BASE64.encode([head, &tail].concat());
            let _ = (picture_size(&base64), picture_size(&text), picture_size(&format!("{base64}{text}")));
            for length in 0..base64.len() {
                let _ = picture_size(&base64[..length]);
            }
        }
    }
}
