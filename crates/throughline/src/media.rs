//! Images, audio and files that are too large for the log: they go to a file store, events reference the file, and
//! models receive the content again.
//!
//! Without a [`MediaStore`] everything stays in the events, which suits a program whose log is in memory.

use crate::request_files::RequestFiles;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::io::Cursor;
use std::pin::Pin;
use std::sync::Arc;
use throughline_engine::TurnId;
use throughline_wire::{CallOutcome, Media, MediaContent, Message, ModelRequest, UserPart};
use tokio::io::AsyncRead;

/// Owner of stored content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaOwner {
    /// The user who owns the turn, in an application with several users.
    pub user: Option<String>,
    /// The turn; `None` = it is being prepared, and the program assigns the files of
    /// [`PreparedTurn::file_ids`](crate::PreparedTurn::file_ids) to it.
    pub turn_id: Option<TurnId>,
}

/// Reason why content cannot be stored or loaded.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MediaError(pub String);

/// Store for content that is too large for the log.
#[async_trait]
pub trait MediaStore: Send + Sync {
    /// Largest content that stays in its event, in bytes.
    fn inline_bytes_max(&self) -> u64;

    /// Stores content and returns the id of its file.
    ///
    /// # Errors
    /// The content cannot be stored. It stays in the event then, so nothing is lost.
    async fn save(&self, owner: &MediaOwner, media_type: &str, bytes: Vec<u8>) -> Result<String, MediaError>;

    /// The content of a file; `None` = this user has no such file.
    ///
    /// # Errors
    /// It cannot be read now.
    async fn read(&self, user: Option<&str>, file_id: &str) -> Result<Option<Vec<u8>>, MediaError>;

    /// Opens the content of a file as a stream, read in pieces while a request is sent. A store that
    /// implements it needs no memory for large pictures; by default the content is read whole.
    ///
    /// # Errors
    /// The content cannot be read now.
    async fn open(&self, user: Option<&str>, file_id: &str) -> Result<Option<MediaReader>, MediaError> {
        Ok(self.read(user, file_id).await?.map(MediaReader::of_bytes))
    }
}

/// The content of a file that is read in pieces.
pub struct MediaReader {
    /// Size of all of it, in bytes.
    pub bytes: u64,
    /// The whole content, from the beginning.
    pub content: Pin<Box<dyn AsyncRead + Send>>,
}

impl MediaReader {
    /// A content that is in memory.
    pub fn of_bytes(content: Vec<u8>) -> Self {
        Self { bytes: content.len() as u64, content: Box::pin(Cursor::new(content)) }
    }
}

impl fmt::Debug for MediaReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediaReader").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Form in which the content of files comes into a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HydratedForm {
    /// The content itself, for a provider that needs it in the body or signs the request.
    Inline,
    /// A placeholder where the encoder need not see it: it is read while the request is sent.
    Streamed,
}

/// Moves large content of one turn to the file store and back.
#[derive(Clone, Default)]
pub(crate) struct MediaOffloader {
    store: Option<Arc<dyn MediaStore>>,
    owner: MediaOwner,
}

impl fmt::Debug for MediaOffloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediaOffloader").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl MediaOffloader {
    pub(crate) fn new(
        store: Option<Arc<dyn MediaStore>>,
        user: Option<String>,
        turn_id: Option<TurnId>,
    ) -> Self {
        Self { store, owner: MediaOwner { user, turn_id } }
    }

    /// Moves content over the limit into a file. Content that cannot be stored stays in the event.
    pub(crate) async fn offload(&self, media: &mut Media) {
        let Some(store) = &self.store else { return };
        let MediaContent::Inline { data } = &media.content else { return };
        if media.bytes() <= store.inline_bytes_max() {
            return;
        }
        // Invalid base64 stays in the message; the model's provider reports it.
        let Ok(bytes) = STANDARD.decode(data) else { return };
        let size = bytes.len() as u64;
        // A store logs its own errors; here the content stays in the event.
        if let Ok(file_id) = store.save(&self.owner, &media.media_type, bytes).await {
            media.content = MediaContent::Stored { file_id, bytes: size };
        }
    }

    pub(crate) async fn offload_parts(&self, parts: &mut [UserPart]) {
        for media in parts.iter_mut().filter_map(UserPart::media_mut) {
            self.offload(media).await;
        }
    }

    pub(crate) async fn offload_messages(&self, messages: &mut [Message]) {
        for media in messages.iter_mut().flat_map(Message::media_mut) {
            self.offload(media).await;
        }
    }

    pub(crate) async fn offload_output(&self, outcome: &mut CallOutcome) {
        for media in outcome.output_mut().into_iter().flat_map(|output| &mut output.media) {
            self.offload(media).await;
        }
    }

    /// Loads content from its files for a model. Content that is no longer there stays a reference, which becomes a
    /// note.
    pub(crate) async fn hydrate(&self, request: &mut ModelRequest, form: HydratedForm) -> RequestFiles {
        let Some(store) = &self.store else { return RequestFiles::default() };
        let mut files = RequestFiles::of(Arc::clone(store), self.owner.user.clone());
        for media in request.messages.iter_mut().flat_map(Message::media_mut) {
            let Some(file_id) = media.file_id().map(str::to_owned) else { continue };
            let user = self.owner.user.as_deref();
            let bytes = match form {
                HydratedForm::Inline => store.read(user, &file_id).await,
                HydratedForm::Streamed => match store.open(user, &file_id).await {
                    Ok(Some(opened)) => files.add(media, file_id, opened).await,
                    Ok(None) => Ok(None),
                    Err(error) => Err(error),
                },
            };
            if let Ok(Some(bytes)) = bytes {
                media.content = MediaContent::Inline { data: STANDARD.encode(bytes) };
            }
        }
        files
    }
}
