//! The body of a chat: pictures and files in it are kept as files while they are read, so that a chat with many of them
//! needs no more memory than its text, and a picture that comes with every request of a chat is kept once.

use super::file_extractor::{ExtractError, ExtractEvent, FileExtractor};
use crate::error::ApiError;
use crate::extract;
use crate::principal::Principal;
use crate::stamps::new_id;
use crate::state::AppState;
use axum::body::{Body, HttpBody};
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::Value;
use std::future::poll_fn;
use std::pin::Pin;
use throughline_store::{BlobFolder, BlobWriter, NewFile};

/// Reads a body. What was in it as a large `data:` URL, or as sound, is an id of a file of the user's in what is given back.
///
/// # Errors
/// It is no JSON, its text is too large, a file cannot be kept.
pub(super) async fn read_body(
    state: &AppState,
    principal: &Principal,
    headers: &HeaderMap,
    mut body: Body,
) -> Result<Value, ApiError> {
    extract::check_json(headers)?;
    let extracted = extract_files(state, principal, &mut body).await?;
    extract::parse_json(extracted.text())
}

async fn extract_files(
    state: &AppState,
    principal: &Principal,
    body: &mut Body,
) -> Result<FileExtractor, ApiError> {
    let limits = &state.limits;
    let mut extractor =
        FileExtractor::new(limits.media_inline_bytes_max as usize, limits.chat_text_bytes_max as usize);
    let mut upload: Option<FileUpload> = None;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| {
            ApiError::bad_request("unreadable_body", format!("the body broke off: {error}"))
        })?;
        let Ok(chunk) = frame.into_data() else { continue };
        let mut rest = &chunk[..];
        while let Some(extracted) =
            extractor.next(&mut rest).map_err(|why| extract_error(why, limits.chat_text_bytes_max))?
        {
            match extracted {
                ExtractEvent::Begin { media_type } => {
                    // As a new turn: what is held in reserve is for those that run.
                    state.log.accepts_new_turns()?;
                    upload = Some(FileUpload::new(&state.blobs, media_type).await?)
                }
                ExtractEvent::Bytes(bytes) => {
                    if let Some(upload) = &mut upload {
                        upload.blob.write(&bytes).await?;
                        // It may itself be what takes the room.
                        state.log.accepts_new_turns()?;
                    }
                }
                ExtractEvent::End => {
                    if let Some(upload) = upload.take() {
                        extractor.insert_reference(&upload.store(state, principal).await?);
                    }
                }
            }
        }
    }
    Ok(extractor)
}

/// A file that is being read.
struct FileUpload {
    blob: BlobWriter,
    media_type: String,
}

impl FileUpload {
    async fn new(blobs: &BlobFolder, media_type: String) -> Result<Self, ApiError> {
        Ok(Self { blob: blobs.begin().await?, media_type })
    }

    /// The id of the user's file with this content: the one that there is, or a new one.
    async fn store(self, state: &AppState, principal: &Principal) -> Result<String, ApiError> {
        let Self { blob, media_type } = self;
        // Held until the catalog knows the file, so that nobody collects it meanwhile.
        let blob = blob.finish().await?;
        let new = NewFile {
            id: new_id("file_"),
            name: media_type.split('/').next().unwrap_or("file").to_owned(),
            media_type,
            bytes: blob.bytes,
            hash: blob.hash.clone(),
            made_in: None,
            created_at: Timestamp::now().as_millisecond(),
        };
        Ok(state.catalog.find_or_add_file(&principal.user, new).await?.id)
    }
}

fn extract_error(why: ExtractError, text_bytes_max: u32) -> ApiError {
    match why {
        ExtractError::NoBase64 => {
            ApiError::bad_request("invalid_request", "a picture or file in the messages is no base64")
                .param("messages")
                .remedy("send it as `data:<media type>;base64,<content>`")
        }
        // The code at which clients shorten what they send.
        ExtractError::TextTooLarge => ApiError::bad_request(
            "context_length_exceeded",
            format!("the chat without its pictures and files is larger than {text_bytes_max} bytes"),
        )
        .param("messages")
        .with_extra("bytes_max", text_bytes_max)
        .remedy("send less, or raise `chat_text_bytes_max` of [server.limits] if the model reads more"),
    }
}
