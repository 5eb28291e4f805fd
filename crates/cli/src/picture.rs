//! Pictures from files, by what they are and not by what they are called.

use crate::exit::CliFailure;
use crate::messages;
use std::path::Path;
use throughline::UserInput;

/// Largest picture that is sent, in bytes: what the strictest known upstream takes.
const PICTURE_BYTES_MAX: u64 = 20 << 20;

/// A picture with its type.
#[derive(Clone)]
pub(crate) struct PictureFile {
    name: String,
    media_type: &'static str,
    bytes: Vec<u8>,
}

impl PictureFile {
    /// Reads a file.
    pub(crate) fn load(path: &Path) -> Result<Self, CliFailure> {
        let size =
            std::fs::metadata(path).map_err(|error| messages::no_picture(path, &error.to_string()))?.len();
        if size > PICTURE_BYTES_MAX {
            let why = messages::picture_too_large(size >> 20, PICTURE_BYTES_MAX >> 20);
            return Err(messages::no_picture(path, &why));
        }
        let bytes = std::fs::read(path).map_err(|error| messages::no_picture(path, &error.to_string()))?;
        let media_type =
            media_type(&bytes).ok_or_else(|| messages::no_picture(path, &messages::no_picture_format()))?;
        let name =
            path.file_name().map_or_else(|| "image".to_owned(), |name| name.to_string_lossy().into_owned());
        Ok(Self { name, media_type, bytes })
    }

    /// Name of the file, without its folder.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends it to what is sent.
    pub(crate) fn attach(&self, input: UserInput) -> UserInput {
        input.image(self.media_type, &self.bytes)
    }
}

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_known_by_its_first_bytes() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(media_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(media_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(media_type(b"%PDF-1.7"), None);
    }
}
