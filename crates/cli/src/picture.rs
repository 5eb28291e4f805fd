//! Pictures from files, by what they are and not by what they are called.

use crate::exit::CliFailure;
use crate::messages;
use std::path::Path;
use throughline::UserInput;
use throughline_wire::picture_type;

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
            picture_type(&bytes).ok_or_else(|| messages::no_picture(path, &messages::no_picture_format()))?;
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
