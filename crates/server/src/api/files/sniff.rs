//! Detection of a file's type from its content. Signatures: the MIME Sniffing Standard §6 (mimesniff.spec.whatwg.org),
//! and the formats' own for types that it does not name.

/// Media type of unknown content.
pub(super) const OCTETS: &str = "application/octet-stream";
/// Bytes at the beginning that are looked at: the longest signature.
const HEAD_BYTES: usize = 64;

/// Detector for a file that arrives in chunks.
#[derive(Debug, Default)]
pub(super) struct TypeSniffer {
    head: Vec<u8>,
    text: Utf8State,
}

/// Validity of the text so far as UTF-8.
#[derive(Debug)]
enum Utf8State {
    /// Valid so far, except for an incomplete character at the end.
    Valid(Vec<u8>),
    /// Not UTF-8.
    Invalid,
}

impl Default for Utf8State {
    fn default() -> Self {
        Utf8State::Valid(Vec::new())
    }
}

impl TypeSniffer {
    /// Takes the next piece.
    pub(super) fn apply(&mut self, chunk: &[u8]) {
        let missing = HEAD_BYTES.saturating_sub(self.head.len()).min(chunk.len());
        self.head.extend_from_slice(&chunk[..missing]);
        let Utf8State::Valid(rest) = &mut self.text else { return };
        rest.extend_from_slice(chunk);
        // Control characters other than white space are in no text.
        let is_binary = |byte: &u8| matches!(byte, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f);
        self.text = match std::str::from_utf8(rest) {
            _ if rest.iter().any(is_binary) => Utf8State::Invalid,
            Ok(_) => Utf8State::Valid(Vec::new()),
            Err(error) if error.error_len().is_none() => {
                Utf8State::Valid(rest.split_off(error.valid_up_to()))
            }
            Err(_) => Utf8State::Invalid,
        };
    }

    /// The type: by content where that is certain, else as declared. What contradicts the declaration is an error.
    pub(super) fn media_type(&self, declared: Option<&str>) -> Result<String, &'static str> {
        let detected = signature(&self.head);
        let is_text = matches!(&self.text, Utf8State::Valid(rest) if rest.is_empty());
        match (declared, detected) {
            (None, Some(detected)) => Ok(detected.to_owned()),
            (None, None) if is_text => Ok("text/plain".to_owned()),
            (None, None) => Ok(OCTETS.to_owned()),
            (Some(declared), Some(detected)) if is_alias(declared, detected) => Ok(declared.to_owned()),
            (Some(_), Some(detected)) => Err(detected),
            (Some(declared), None) if is_textual(declared) && !is_text => Err("no text in UTF-8"),
            // A declared picture without the signature of one is not accepted as a picture.
            (Some(declared), None) if has_signature(declared) => {
                if is_text {
                    Err("text")
                } else {
                    Err("something else")
                }
            }
            (Some(declared), None) if is_type(declared) => Ok(declared.to_owned()),
            (Some(_), None) => Err("not named by a media type"),
        }
    }
}

const SIGNATURES: [(&str, &[u8]); 14] = [
    ("image/png", b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF87a"),
    ("image/gif", b"GIF89a"),
    ("image/bmp", b"BM"),
    ("application/pdf", b"%PDF-"),
    ("application/gzip", b"\x1f\x8b\x08"),
    ("application/zip", b"PK\x03\x04"),
    ("audio/mpeg", b"ID3"),
    ("audio/ogg", b"OggS\0"),
    ("audio/flac", b"fLaC"),
    ("video/webm", b"\x1a\x45\xdf\xa3"),
    ("application/x-executable", b"\x7fELF"),
    ("application/x-msdownload", b"MZ\x90\0"),
];

fn signature(head: &[u8]) -> Option<&'static str> {
    let at = |from: usize, bytes: &[u8]| head.get(from..).is_some_and(|rest| rest.starts_with(bytes));
    if at(0, b"RIFF") {
        return [("image/webp", &b"WEBPVP"[..]), ("audio/wav", b"WAVE"), ("video/x-msvideo", b"AVI ")]
            .into_iter()
            .find_map(|(name, bytes)| at(8, bytes).then_some(name));
    }
    if at(4, b"ftyp") {
        return Some(match () {
            () if at(8, b"avif") => "image/avif",
            () if at(8, b"heic") || at(8, b"heix") => "image/heic",
            () if at(8, b"M4A ") => "audio/mp4",
            () => "video/mp4",
        });
    }
    // Texts may begin with these two letters too: in a bitmap four zeros follow the size.
    let detected = SIGNATURES.iter().find(|(_, bytes)| at(0, bytes)).map(|(name, _)| *name);
    detected.filter(|name| *name != "image/bmp" || at(6, &[0; 4]))
}

/// Formats with other names, or inside of others.
fn is_alias(declared: &str, detected: &str) -> bool {
    declared == detected
        || matches!(
            (detected, declared),
            ("image/jpeg", "image/jpg")
                | ("audio/wav", "audio/x-wav" | "audio/wave" | "audio/vnd.wave")
                | ("audio/mpeg", "audio/mp3")
                | ("audio/ogg", "video/ogg" | "application/ogg" | "audio/opus")
                | ("video/mp4", "audio/mp4" | "video/quicktime" | "audio/x-m4a")
                | ("audio/mp4", "audio/x-m4a" | "video/mp4")
                | ("video/webm", "audio/webm" | "video/x-matroska")
                | ("application/gzip", "application/x-gzip")
        )
        || (detected == "application/zip" && is_in_zip(declared))
}

/// Office documents, books and archives are zip files.
fn is_in_zip(declared: &str) -> bool {
    ["application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument."]
        .iter()
        .any(|start| declared.starts_with(start))
        || matches!(
            declared,
            "application/epub+zip" | "application/x-zip-compressed" | "application/java-archive"
        )
}

fn is_textual(declared: &str) -> bool {
    declared.starts_with("text/")
        || declared.ends_with("+json")
        || declared.ends_with("+xml")
        || matches!(
            declared,
            "application/json"
                | "application/xml"
                | "application/jsonl"
                | "application/x-ndjson"
                | "application/yaml"
                | "application/toml"
                | "application/javascript"
        )
}

fn has_signature(declared: &str) -> bool {
    // MPEG sound may begin in the middle of a stream, without `ID3`.
    declared != "audio/mpeg"
        && (SIGNATURES.iter().any(|(name, _)| is_alias(declared, name))
            || matches!(declared, "image/webp" | "audio/wav" | "image/avif" | "image/heic" | "video/mp4"))
}

/// `type/subtype` with the characters of RFC 6838.
fn is_type(declared: &str) -> bool {
    let is_name = |part: &str| {
        !part.is_empty()
            && part.len() <= 127
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    declared.split_once('/').is_some_and(|(kind, sub)| is_name(kind) && is_name(sub))
}

/// File extension for a file without a name.
pub(super) fn extension(media_type: &str) -> &'static str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "audio/wav" => "wav",
        "audio/mpeg" => "mp3",
        other if other.starts_with("text/") => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(content: &[u8], declared: &str, piece_bytes: usize) -> Result<String, &'static str> {
        let mut kind = TypeSniffer::default();
        content.chunks(piece_bytes).for_each(|chunk| kind.apply(chunk));
        kind.media_type(Some(declared).filter(|declared| !declared.is_empty()))
    }

    #[test]
    fn detected_type_must_match_the_declared_type() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice();
        let table: &[(&[u8], &str, Result<&str, &str>)] = &[
            (png, "", Ok("image/png")),
            (png, "image/png", Ok("image/png")),
            (png, "image/jpeg", Err("image/png")),
            (png, "text/html", Err("image/png")),
            (b"%PDF-1.7\n\xe2\xe3", "", Ok("application/pdf")),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", Ok("image/webp")),
            (b"RIFF\0\0\0\0WAVEfmt ", "audio/x-wav", Ok("audio/x-wav")),
            (b"RIFF\0\0\0\0WAVEfmt ", "image/webp", Err("audio/wav")),
            (
                b"PK\x03\x04\x14\0",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
                Ok("application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
            ),
            (b"PK\x03\x04\x14\0", "image/png", Err("application/zip")),
            ("你好, world\n".as_bytes(), "", Ok("text/plain")),
            ("你好".as_bytes(), "text/markdown", Ok("text/markdown")),
            (b"<script>alert(1)</script>", "image/png", Err("text")),
            (b"<script>alert(1)</script>", "text/html", Ok("text/html")),
            (b"{\"a\":1}", "application/json", Ok("application/json")),
            (b"\xff\xfe\0\x01", "text/plain", Err("no text in UTF-8")),
            (b"abc\0def", "text/csv", Err("no text in UTF-8")),
            (b"abc\xe4", "text/plain", Err("no text in UTF-8")),
            (b"\0\x01\x02", "", Ok(OCTETS)),
            (b"\0\x01\x02", "application/x-own", Ok("application/x-own")),
            (b"\0\x01\x02", "image/gif", Err("something else")),
            (b"BMW is a car", "", Ok("text/plain")),
            (b"x", "no type\r\nX: y", Err("not named by a media type")),
            (b"MZ\x90\0\x03", "image/png", Err("application/x-msdownload")),
        ];
        for (content, declared, expected) in table {
            for piece_bytes in [1, 3, 1_000] {
                let detected = decide(content, declared, piece_bytes);
                assert_eq!(
                    detected.as_deref().map_err(|detected| *detected),
                    *expected,
                    "{declared} in pieces of {piece_bytes}"
                );
            }
        }
    }
}
