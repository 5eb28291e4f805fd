//! Pictures, sounds and files that are too large for the log, as files of the turn's user.

use crate::stamps::new_id;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use std::fmt;
use std::sync::Arc;
use throughline::{MediaError, MediaOwner, MediaReader, MediaStore};
use throughline_engine::TurnId;
use throughline_store::{BlobFolder, Catalog, FileRow, NewFile};
use throughline_wire::{Media, MediaContent};

/// The files of a server, as the store for content that is too large for the log. Cheap to clone.
#[derive(Clone)]
pub struct CatalogMediaStore {
    catalog: Arc<dyn Catalog>,
    blobs: BlobFolder,
    inline_bytes_max: u64,
}

impl fmt::Debug for CatalogMediaStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogMediaStore")
            .field("inline_bytes_max", &self.inline_bytes_max)
            .finish_non_exhaustive()
    }
}

impl CatalogMediaStore {
    /// A store on this catalog and folder; content of at most `inline_bytes_max` bytes stays in the log
    /// (`media_inline_bytes_max`).
    pub fn new(catalog: Arc<dyn Catalog>, blobs: BlobFolder, inline_bytes_max: u64) -> Self {
        Self { catalog, blobs, inline_bytes_max }
    }

    /// A file of the user as a part of a message; `None` = its content was deleted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub async fn of_file(&self, row: &FileRow) -> Result<Option<Media>, MediaError> {
        let media_type = row.media_type.clone();
        if row.bytes > self.inline_bytes_max {
            let exists = self.blobs.file(&row.hash).await.map_err(media_error)?.is_some();
            return Ok(exists.then(|| Media::stored(media_type, row.id.clone(), row.bytes)));
        }
        let bytes = self.blobs.read(&row.hash).await.map_err(media_error)?;
        Ok(bytes.map(|bytes| Media::new(media_type, STANDARD.encode(bytes))))
    }

    /// Gives media back its content, if it is in a file that this user still has.
    pub async fn hydrate(&self, user: &str, media: &mut Media) {
        let Some(file_id) = media.file_id() else { return };
        if let Ok(Some(bytes)) = self.read(Some(user), file_id).await {
            media.content = MediaContent::Inline { data: STANDARD.encode(bytes) };
        }
    }

    async fn store_bytes(
        &self,
        user: &str,
        made_in: Option<&TurnId>,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<String, MediaError> {
        let kind = media_type.split('/').next().filter(|kind| !kind.is_empty()).unwrap_or("file");
        // Held until the catalog has the file, so that its blob is not collected before.
        let blob = self.blobs.put(bytes).await.map_err(media_error)?;
        let new = NewFile {
            id: new_id("file_"),
            name: kind.to_owned(),
            media_type: media_type.to_owned(),
            bytes: blob.bytes,
            hash: blob.hash.clone(),
            made_in: made_in.map(|turn| turn.as_str().to_owned()),
            created_at: Timestamp::now().as_millisecond(),
        };
        Ok(self.catalog.find_or_add_file(user, new).await.map_err(media_error)?.id)
    }

    async fn open_file(&self, user: &str, file_id: &str) -> Result<Option<MediaReader>, MediaError> {
        let Some(row) = self.catalog.file(user, file_id).await.map_err(media_error)? else { return Ok(None) };
        let file = self.blobs.checked_file(&row.hash).await.map_err(media_error)?;
        Ok(file
            .map(|(file, bytes)| MediaReader { bytes, content: Box::pin(tokio::fs::File::from_std(file)) }))
    }

    async fn read_bytes(&self, user: &str, file_id: &str) -> Result<Option<Vec<u8>>, MediaError> {
        let Some(row) = self.catalog.file(user, file_id).await.map_err(media_error)? else { return Ok(None) };
        self.blobs.read(&row.hash).await.map_err(media_error)
    }
}

#[async_trait]
impl MediaStore for CatalogMediaStore {
    fn inline_bytes_max(&self) -> u64 {
        self.inline_bytes_max
    }

    async fn save(&self, owner: &MediaOwner, media_type: &str, bytes: Vec<u8>) -> Result<String, MediaError> {
        // A file needs an owner.
        let Some(user) = &owner.user else { return Err(MediaError("the turn has no user".to_owned())) };
        let stored = self.store_bytes(user, owner.turn_id.as_ref(), media_type, &bytes).await;
        if let Err(error) = &stored {
            let turn_id = owner.turn_id.as_ref().map(TurnId::as_str);
            tracing::warn!(turn_id, %error, "cannot move a large picture or file out of the log");
        }
        stored
    }

    async fn read(&self, user: Option<&str>, file_id: &str) -> Result<Option<Vec<u8>>, MediaError> {
        let Some(user) = user else { return Ok(None) };
        let read = self.read_bytes(user, file_id).await;
        read.inspect_err(|error| warn_unreadable(file_id, error))
    }

    async fn open(&self, user: Option<&str>, file_id: &str) -> Result<Option<MediaReader>, MediaError> {
        let Some(user) = user else { return Ok(None) };
        let opened = self.open_file(user, file_id).await;
        opened.inspect_err(|error| warn_unreadable(file_id, error))
    }
}

fn warn_unreadable(file_id: &str, error: &MediaError) {
    tracing::warn!(file_id, %error, "cannot read the content of a file");
}

fn media_error(error: impl fmt::Display) -> MediaError {
    MediaError(error.to_string())
}
