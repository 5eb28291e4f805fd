//! Images, audio and files that are too large for the log: they go to a file store, events reference the file, and
//! models receive the content again.
//!
//! Without a [`MediaStore`] everything stays in the events, which suits a program whose log is in memory.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::sync::Arc;
use throughline_engine::TurnId;
use throughline_wire::{CallOutcome, Media, MediaContent, Message, ModelRequest, UserPart};

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
    /// It cannot be stored. It stays in the event then: nothing is lost.
    async fn save(&self, owner: &MediaOwner, media_type: &str, bytes: Vec<u8>) -> Result<String, MediaError>;

    /// The content of a file; `None` = there is no such file of this user.
    ///
    /// # Errors
    /// It cannot be read now.
    async fn read(&self, user: Option<&str>, file_id: &str) -> Result<Option<Vec<u8>>, MediaError>;
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
        // Base64 that cannot be read is nobody's picture; the model's provider will say so.
        let Ok(bytes) = STANDARD.decode(data) else { return };
        let size = bytes.len() as u64;
        // A store that cannot says why where it runs; here nothing is lost.
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
    pub(crate) async fn hydrate(&self, request: &mut ModelRequest) {
        let Some(store) = &self.store else { return };
        for media in request.messages.iter_mut().flat_map(Message::media_mut) {
            let Some(file_id) = media.file_id() else { continue };
            if let Ok(Some(bytes)) = store.read(self.owner.user.as_deref(), file_id).await {
                media.content = MediaContent::Inline { data: STANDARD.encode(bytes) };
            }
        }
    }
}
