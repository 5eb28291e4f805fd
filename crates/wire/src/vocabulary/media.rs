//! Pictures, sounds and files, with their content, or with a reference to the file that holds it.

use super::media_placeholder::MediaPlaceholder;
use super::picture_size::picture_size;
use super::{CallOutcome, Message, ModelRequest, StartState, ToolOutput, UserPart};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

/// A picture, sound or file of the user, a tool or the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// MIME type, `image/png`.
    pub media_type: String,
    /// Content, or a reference to it.
    #[serde(flatten)]
    pub content: MediaContent,
}

/// Type of a picture that models read, by its first bytes: PNG, JPEG, GIF and WebP are what every provider takes.
///
/// ```
/// use throughline_wire::picture_type;
///
/// assert_eq!(picture_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
/// assert_eq!(picture_type(b"<svg/>"), None);
/// ```
pub fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// True for a MIME type of pictures.
pub(super) fn is_picture_type(media_type: &str) -> bool {
    media_type.get(..6).is_some_and(|kind| kind.eq_ignore_ascii_case("image/"))
}

/// Base64 characters that hold the bytes by which a picture is recognized.
const PICTURE_HEAD_CHARS: usize = 16;

/// Form in which a request may have a content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MediaFitness {
    /// Matches its declared type.
    AsDeclared,
    /// A picture of another type than the declared one.
    OtherPicture(&'static str),
    /// Must be replaced by a note: no model reads it, or its file was deleted.
    NoteOnly,
}

/// Content of a [`Media`], or its location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum MediaContent {
    /// Content as base64.
    Inline {
        /// Base64, without a `data:` prefix.
        data: String,
    },
    /// In a file: code that needs it reads the file.
    Stored {
        /// Id of the file.
        file_id: String,
        /// Size of the file.
        bytes: u64,
    },
    /// An address that the upstream fetches. It is never fetched here.
    Url {
        /// `https://…`
        url: String,
    },
    /// A file, whose base64 replaces this text while an encoded request is sent. Never in a log.
    #[serde(skip)]
    Placeholder(MediaPlaceholder),
}

impl Media {
    /// With its content in base64, without a `data:` prefix.
    pub fn new(media_type: String, data: String) -> Self {
        Self { media_type, content: MediaContent::Inline { data } }
    }

    /// Media whose content is in a file.
    pub fn stored(media_type: String, file_id: String, bytes: u64) -> Self {
        Self { media_type, content: MediaContent::Stored { file_id, bytes } }
    }

    /// Media at an address that the upstream fetches.
    pub fn from_url(media_type: String, url: String) -> Self {
        Self { media_type, content: MediaContent::Url { url } }
    }

    /// Base64 of the content, or its placeholder; empty if the content is elsewhere.
    /// [`encode`](crate::encode) replaces stored files by a note, so encoders never meet them.
    pub fn data(&self) -> &str {
        match &self.content {
            MediaContent::Inline { data } => data,
            MediaContent::Placeholder(placeholder) => placeholder.text(),
            MediaContent::Stored { .. } | MediaContent::Url { .. } => "",
        }
    }

    /// The address where the upstream finds it, if it is not given its content.
    pub fn url(&self) -> Option<&str> {
        match &self.content {
            MediaContent::Url { url } => Some(url),
            MediaContent::Inline { .. } | MediaContent::Stored { .. } | MediaContent::Placeholder(_) => None,
        }
    }

    /// Data URL of the content, or its address, as the APIs of OpenAI take it.
    pub(crate) fn data_url(&self) -> String {
        match &self.content {
            MediaContent::Url { url } => url.clone(),
            _ => format!("data:{};base64,{}", self.media_type, self.data()),
        }
    }

    /// The file that holds its content, if one does.
    pub fn file_id(&self) -> Option<&str> {
        match &self.content {
            MediaContent::Inline { .. } | MediaContent::Url { .. } | MediaContent::Placeholder(_) => None,
            MediaContent::Stored { file_id, .. } => Some(file_id),
        }
    }

    /// Size of the content, in bytes.
    pub fn bytes(&self) -> u64 {
        match &self.content {
            MediaContent::Inline { data } => data.len() as u64 / 4 * 3,
            MediaContent::Stored { bytes, .. } => *bytes,
            MediaContent::Placeholder(placeholder) => placeholder.bytes(),
            MediaContent::Url { .. } => 0,
        }
    }

    /// Length of its base64 in a request.
    pub(crate) fn base64_bytes(&self) -> usize {
        match &self.content {
            MediaContent::Placeholder(placeholder) => placeholder.base64_bytes(),
            _ => self.data().len(),
        }
    }

    /// Width and height of a picture in pixels, if its header has them.
    pub(crate) fn pixel_size(&self) -> Option<(u32, u32)> {
        match &self.content {
            MediaContent::Placeholder(placeholder) => Some(placeholder.picture()?.pixels),
            _ => picture_size(self.data()),
        }
    }

    /// Note that replaces content that cannot be sent; never its base64.
    pub fn note(&self) -> String {
        format!("[{}, shown to the user]", self.describe())
    }

    /// Note for the model that replaces content of the user that it is not given.
    pub(crate) fn unseen_note(&self) -> String {
        let verb = match self.media_type.split('/').next() {
            Some("image") => "see",
            Some("audio") => "hear",
            _ => "read",
        };
        format!("[{}, sent by the user, which you cannot {verb}]", self.describe())
    }

    /// True for content that is sent as a picture, stored anywhere.
    pub(crate) fn is_picture(&self) -> bool {
        self.is_declared_picture()
    }

    /// Note that replaces a picture that the provider refuses, because of its number or size.
    pub(crate) fn left_out_note(&self, why: &str) -> String {
        format!("[{}, left out: {why}]", self.describe())
    }

    /// Note that replaces content whose file has been deleted, or that no model reads.
    fn unsent_note(&self) -> String {
        match self.file_id() {
            Some(_) => format!("[{}, no longer available]", self.describe()),
            None => format!("[{}, of a type that models cannot read]", self.describe()),
        }
    }

    /// Fitness of a picture by its bytes: a provider refuses one with a wrong type ("The image was specified
    /// using the image/png media type, but the image appears to be a image/jpeg image",
    /// anthropics/claude-code#58330) or of an unknown type, and with it every later request of the
    /// conversation.
    fn fitness(&self) -> MediaFitness {
        let known = match &self.content {
            MediaContent::Stored { .. } => return MediaFitness::NoteOnly,
            MediaContent::Url { .. } => return MediaFitness::AsDeclared,
            _ if !self.is_declared_picture() => return MediaFitness::AsDeclared,
            MediaContent::Placeholder(placeholder) => placeholder.picture().map(|picture| picture.kind),
            MediaContent::Inline { data } => {
                let whole = data.len().min(PICTURE_HEAD_CHARS) / 4 * 4;
                let head = data.get(..whole).and_then(|head| BASE64.decode(head).ok()).unwrap_or_default();
                picture_type(&head)
            }
        };
        match known {
            Some(known) if known == self.media_type => MediaFitness::AsDeclared,
            Some(known) => MediaFitness::OtherPicture(known),
            None => MediaFitness::NoteOnly,
        }
    }

    fn is_declared_picture(&self) -> bool {
        is_picture_type(&self.media_type)
    }

    fn declare_type(&mut self) {
        if let MediaFitness::OtherPicture(known) = self.fitness() {
            known.clone_into(&mut self.media_type);
        }
    }

    fn describe(&self) -> String {
        let kind = self.media_type.split('/').next().unwrap_or_default();
        if let Some(url) = self.url() {
            return format!("{kind} at {url}");
        }
        format!("{kind} {}, {} kB", self.media_type, self.bytes().div_ceil(1000))
    }
}

impl UserPart {
    /// Media of the part, if it is not text.
    pub fn media(&self) -> Option<&Media> {
        match self {
            UserPart::Text { .. } => None,
            UserPart::Image(media) | UserPart::File { media, .. } => Some(media),
        }
    }

    /// True for a picture part with another media type: a sound or a document in its place.
    fn is_misplaced_file(&self) -> bool {
        matches!(self, UserPart::Image(media) if media.url().is_none() && !media.is_declared_picture())
    }

    /// Mutable media of the part, if it is not text.
    pub fn media_mut(&mut self) -> Option<&mut Media> {
        match self {
            UserPart::Text { .. } => None,
            UserPart::Image(media) | UserPart::File { media, .. } => Some(media),
        }
    }
}

impl CallOutcome {
    /// The tool's output, to be replaced.
    pub fn output_mut(&mut self) -> Option<&mut ToolOutput> {
        match self {
            CallOutcome::Done(output) => Some(output),
            CallOutcome::Failed { partial, .. }
            | CallOutcome::TimedOut { partial, .. }
            | CallOutcome::Unknown { partial, .. }
            | CallOutcome::Cancelled(StartState::Yes { partial, .. }) => partial.as_mut(),
            CallOutcome::Denied { .. }
            | CallOutcome::Cancelled(StartState::No)
            | CallOutcome::NotStarted(_) => None,
        }
    }
}

impl Message {
    /// All media in it.
    pub fn media(&self) -> Vec<&Media> {
        match self {
            Message::User(parts) => parts.iter().filter_map(UserPart::media).collect(),
            Message::Step(step) => {
                let outputs = step.calls.iter().filter_map(|(_, outcome)| outcome.output());
                outputs.flat_map(|output| &output.media).collect()
            }
        }
    }

    /// Mutable media of the message, in order.
    pub fn media_mut(&mut self) -> Vec<&mut Media> {
        match self {
            Message::User(parts) => parts.iter_mut().filter_map(UserPart::media_mut).collect(),
            Message::Step(step) => {
                let outputs = step.calls.iter_mut().filter_map(|(_, outcome)| outcome.output_mut());
                outputs.flat_map(|output| &mut output.media).collect()
            }
        }
    }

    /// Corrects the declared types of pictures, and replaces content that cannot be sent by notes.
    fn fit_media(&mut self) {
        self.media_mut().into_iter().for_each(Media::declare_type);
        if let Message::User(parts) = self {
            for part in parts {
                if part.is_misplaced_file()
                    && let UserPart::Image(media) = part
                {
                    let media = media.clone();
                    *part = UserPart::File { name: "file".to_owned(), media };
                }
            }
        }
        self.replace_media(&mut |media| {
            (media.fitness() == MediaFitness::NoteOnly).then(|| media.unsent_note())
        });
    }

    /// Replaces some of its media by notes; `note` is called for each in order.
    pub(crate) fn replace_media(&mut self, note: &mut dyn FnMut(&Media) -> Option<String>) {
        match self {
            Message::User(parts) => {
                for part in parts {
                    let Some(note) = part.media().and_then(&mut *note) else { continue };
                    let text = match part {
                        UserPart::File { name, .. } => format!("{name}: {note}"),
                        _ => note,
                    };
                    *part = UserPart::Text { text };
                }
            }
            Message::Step(step) => {
                for output in step.calls.iter_mut().filter_map(|(_, outcome)| outcome.output_mut()) {
                    for media in std::mem::take(&mut output.media) {
                        match note(&media) {
                            Some(note) => output.text = format!("{}\n{note}", output.text),
                            None => output.media.push(media),
                        }
                    }
                }
            }
        }
    }
}

impl ModelRequest {
    /// True if some content is still in files.
    pub fn has_stored_media(&self) -> bool {
        self.messages.iter().flat_map(Message::media).any(|media| media.file_id().is_some())
    }

    /// True if some content cannot be sent as it is.
    pub(crate) fn has_unfit_media(&self) -> bool {
        self.messages.iter().any(|message| {
            let is_misplaced =
                matches!(message, Message::User(parts) if parts.iter().any(UserPart::is_misplaced_file));
            is_misplaced
                || message.media().into_iter().any(|media| media.fitness() != MediaFitness::AsDeclared)
        })
    }

    /// The same request with every picture declared by its bytes, and a note instead of each content that is
    /// still in a file or that no model reads.
    pub(crate) fn with_fit_media(&self) -> Self {
        let mut request = self.clone();
        request.messages.iter_mut().for_each(Message::fit_media);
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn inline_and_stored_media_round_trip() {
        let inline = Media::new("image/png".into(), "AAAA".into());
        let stored = Media::stored("image/png".into(), "file_1".into(), 1_999);
        assert_eq!(
            serde_json::to_value(&inline).unwrap(),
            json!({"media_type": "image/png", "data": "AAAA"})
        );
        let reference = json!({"media_type": "image/png", "file_id": "file_1", "bytes": 1_999});
        assert_eq!(serde_json::to_value(&stored).unwrap(), reference);
        let part = UserPart::File { name: "a.png".into(), media: stored.clone() };
        for media in [inline, stored.clone()] {
            let text = serde_json::to_string(&media).unwrap();
            assert_eq!(serde_json::from_str::<Media>(&text).unwrap(), media);
        }
        let text = serde_json::to_string(&part).unwrap();
        assert_eq!(serde_json::from_str::<UserPart>(&text).unwrap(), part);
        assert_eq!(stored.note(), "[image image/png, 2 kB, shown to the user]");
    }

    #[test]
    fn missing_stored_media_becomes_a_note() {
        let stored = || Media::stored("image/png".into(), "file_1".into(), 5_000);
        let inline = Media::new("image/png".into(), "iVBORw0KGgo=".into());
        let mut user = Message::User(vec![UserPart::Image(stored()), UserPart::Image(inline.clone())]);
        user.fit_media();
        let Message::User(parts) = user else { panic!("{user:?}") };
        assert_eq!(parts[0], UserPart::Text { text: "[image image/png, 5 kB, no longer available]".into() });
        assert_eq!(parts[1], UserPart::Image(inline.clone()));
    }

    #[test]
    fn picture_type_is_detected_by_magic_bytes() {
        assert_eq!(picture_type(b"\x89PNG\r\n\x1a\n"), Some("image/png"));
        assert_eq!(picture_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(picture_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(picture_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(picture_type(b"%PDF-1.7"), None);
    }

    #[test]
    fn picture_type_is_corrected_or_replaced_by_a_note() {
        let jpeg = "/9j/4AAQSkZJRgABAQAA";
        for (declared, data, expected) in [
            ("image/jpeg", jpeg, "image/jpeg"),
            ("image/png", jpeg, "image/jpeg"),
            ("image/jpg", jpeg, "image/jpeg"),
            ("IMAGE/WEBP", "UklGRiQAAABXRUJQVlA4", "image/webp"),
            ("image/png", "R0lGODdh", "image/gif"),
            ("audio/wav", "UklGRiQAAABXQVZF", "audio/wav"),
            ("application/pdf", "JVBERi0=", "application/pdf"),
        ] {
            let mut media = Media::new(declared.into(), data.into());
            media.declare_type();
            assert_eq!(media.media_type, expected, "{declared} {data}");
            assert!(media.fitness() == MediaFitness::AsDeclared, "{declared} {data}");
        }
        for (declared, data) in [
            ("image/svg+xml", "PHN2Zy8+"),
            ("image/bmp", "Qk0AAAAA"),
            ("image/png", "PGh0bWw+"),
            ("image/png", ""),
        ] {
            let mut user = Message::User(vec![UserPart::Image(Media::new(declared.into(), data.into()))]);
            user.fit_media();
            let Message::User(parts) = user else { panic!("{user:?}") };
            let UserPart::Text { text } = &parts[0] else { panic!("{parts:?}") };
            assert!(text.contains(declared) && text.contains("that models cannot read"), "{text}");
        }
    }
}
