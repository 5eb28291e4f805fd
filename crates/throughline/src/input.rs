//! User input.
// R: T12

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use throughline_wire::{Media, UserPart};

/// User input: text, images and files in any order.
///
/// ```
/// use throughline::UserInput;
/// let input = UserInput::from("What is on this picture?").image("image/png", b"\x89PNG...");
/// assert_eq!(input.parts().len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInput(Vec<UserPart>);

impl UserInput {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends text.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.0.push(UserPart::Text { text: text.into() });
        self
    }

    /// Appends an image. Models without image input get a note instead.
    pub fn image(mut self, media_type: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        self.0.push(UserPart::Image(Media::new(media_type.into(), STANDARD.encode(bytes))));
        self
    }

    /// Appends any other file. Upstreams that cannot take it get a note instead.
    pub fn file(
        mut self,
        name: impl Into<String>,
        media_type: impl Into<String>,
        bytes: impl AsRef<[u8]>,
    ) -> Self {
        let media = Media::new(media_type.into(), STANDARD.encode(bytes));
        self.0.push(UserPart::File { name: name.into(), media });
        self
    }

    /// The parts in order.
    pub fn parts(&self) -> &[UserPart] {
        &self.0
    }

    pub(crate) fn from_parts(parts: Vec<UserPart>) -> Self {
        Self(parts)
    }

    pub(crate) fn into_parts(self) -> Vec<UserPart> {
        self.0
    }
}

impl From<&str> for UserInput {
    fn from(text: &str) -> Self {
        Self::new().text(text)
    }
}

impl From<String> for UserInput {
    fn from(text: String) -> Self {
        Self::new().text(text)
    }
}

impl From<&String> for UserInput {
    fn from(text: &String) -> Self {
        Self::new().text(text.as_str())
    }
}

impl From<Vec<UserPart>> for UserInput {
    fn from(parts: Vec<UserPart>) -> Self {
        Self(parts)
    }
}
