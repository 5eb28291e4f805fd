//! Pictures: what their first bytes say, and no more.

use super::super::language::DemoLanguage;
use super::DemoScene;
use crate::parsed_request::ParsedImage;
use crate::script::ModelScript;

pub(super) fn reply(scene: &DemoScene<'_>) -> ModelScript {
    if scene.images.is_empty() {
        return ModelScript::new().say(scene.choose_text(
            "Send me a picture along with your message (in the terminal: `/image path`), and I'll tell you what a script \
             can see in it.",
            "把图片和消息一起发给我（在终端里用 `/image 路径`），我来说说一个脚本能从中看出什么。",
        ));
    }
    let lines: String =
        scene.images.iter().map(|image| format!("- {}\n", describe_image(image, scene.language))).collect();
    let count = scene.images.len();
    ModelScript::new().say(scene.language.choose(
        format!(
            "{} arrived here:\n\n{lines}\nThat is as far as my eyes go. I am a script and read only the first bytes of \
             the file; what is *in* the picture I cannot tell. A model that sees would get exactly these bytes.",
            if count == 1 { "One picture".to_owned() } else { format!("{count} pictures") }
        ),
        format!(
            "我收到了 {count} 张图片：\n\n{lines}\n我的眼力到此为止。我只是一个脚本，只读了文件开头的几个字节，画面里*有什么*我说不出来。\
             换成能看图的模型，它收到的正是这些字节。"
        ),
    ))
}

fn describe_image(image: &ParsedImage, language: DemoLanguage) -> String {
    if let Some(url) = &image.url {
        return language.choose(
            format!("a picture at {url} (I do not go and fetch it)"),
            format!("位于 {url} 的图片（我不会去下载它）"),
        );
    }
    let (name, size) = read_header(&image.bytes).unwrap_or((image.media_type.as_str(), None));
    let bytes = size_words(image.bytes.len());
    match size {
        Some((width, height)) => language.choose(
            format!("**{name}**, {width} × {height} pixels, {bytes}"),
            format!("**{name}**，{width} × {height} 像素，{bytes}"),
        ),
        None => format!("**{name}**, {bytes}"),
    }
}

fn size_words(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Format and size in pixels, from the header.
fn read_header(bytes: &[u8]) -> Option<(&'static str, Option<(u32, u32)>)> {
    let big =
        |at: usize, n: usize| bytes.get(at..at + n).map(|b| b.iter().fold(0, |v, b| v << 8 | u32::from(*b)));
    let little = |at: usize, n: usize| {
        bytes.get(at..at + n).map(|b| b.iter().rev().fold(0, |v, b| v << 8 | u32::from(*b)))
    };
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some(("PNG", big(16, 4).zip(big(20, 4))));
    }
    if bytes.starts_with(b"GIF8") {
        return Some(("GIF", little(6, 2).zip(little(8, 2))));
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        let size = match bytes.get(12..16) {
            Some(b"VP8X") => little(24, 3).zip(little(27, 3)).map(|(w, h)| (w + 1, h + 1)),
            Some(b"VP8L") => little(21, 4).map(|bits| ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)),
            Some(b"VP8 ") => little(26, 2).zip(little(28, 2)).map(|(w, h)| (w & 0x3fff, h & 0x3fff)),
            _ => None,
        };
        return Some(("WebP", size));
    }
    bytes.starts_with(b"\xff\xd8").then(|| ("JPEG", jpeg_size(bytes)))
}

/// Walks the segments to the frame header.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let (mark, kind) = (*bytes.get(at)?, *bytes.get(at + 1)?);
        if mark != 0xff {
            return None;
        }
        let pair = |at: usize| Some(u32::from(*bytes.get(at)?) << 8 | u32::from(*bytes.get(at + 1)?));
        if matches!(kind, 0xc0..=0xcf) && !matches!(kind, 0xc4 | 0xc8 | 0xcc) {
            return Some((pair(at + 7)?, pair(at + 5)?));
        }
        at += 2 + pair(at + 2)?.max(2) as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_format_and_size_are_read_from_the_header() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0".as_slice();
        let gif = b"GIF89a\x0a\x00\x14\x00".as_slice();
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04JF\xff\xc0\x00\x11\x08\x00\x10\x00\x20".as_slice();
        let webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x1f\0\0\x0f\0\0".as_slice();
        for (bytes, expected) in [
            (png, Some(("PNG", Some((640, 480))))),
            (gif, Some(("GIF", Some((10, 20))))),
            (jpeg, Some(("JPEG", Some((32, 16))))),
            (webp, Some(("WebP", Some((32, 16))))),
            (&png[..10], Some(("PNG", None))),
            (&jpeg[..6], Some(("JPEG", None))),
            (b"hello".as_slice(), None),
            (b"".as_slice(), None),
        ] {
            assert_eq!(read_header(bytes), expected, "{bytes:?}");
        }
    }
}
