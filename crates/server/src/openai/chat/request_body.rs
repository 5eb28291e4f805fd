//! The body of a chat: its pictures and files are stored as files while they are read, so that a chat with
//! many of them needs no more memory than its text, and a picture that every request of a chat repeats is
//! stored once.

use super::file_extractor::{ExtractError, ExtractEvent, FileExtractor};
use crate::error::ApiError;
use crate::extract;
use crate::large_bodies::{JSON_VALUE_BYTES, LARGE_BYTES, RequestMemory, SpooledText, unreadable_body};
use crate::principal::Principal;
use crate::stamps::new_id;
use crate::state::AppState;
use axum::body::{Body, HttpBody};
use http::request::Parts;
use jiff::Timestamp;
use serde_json::Value;
use std::future::poll_fn;
use std::pin::Pin;
use throughline_store::{BlobFolder, BlobWriter, NewFile};
use tokio::task::spawn_blocking;

/// Memory for each byte of a chat's text: the text, the turn's events, and the requests to the model. Its values come to it.
const MEMORY_PER_BYTE: u64 = 7;

/// Memory for a byte of it while the turn runs: in its history, and in the request that is sent.
pub(super) const TURN_MEMORY_PER_BYTE: u64 = 4;

/// Reads a body. Large `data:` URLs and sound are replaced by ids of files of the user in the result.
///
/// # Errors
/// Invalid JSON, a text over the limit, a file that cannot be stored, or no memory in time.
pub(super) async fn read_body(
    state: &AppState,
    principal: &Principal,
    Parts { headers, extensions, .. }: &Parts,
    mut body: Body,
) -> Result<Value, ApiError> {
    extract::check_json(headers)?;
    let text = extract_files(state, principal, &mut body).await?;
    let memory = extensions.get::<RequestMemory>().cloned();
    // The request guard has enforced the limit of values.
    let values = text.units().anywhere().min(state.limits.json_values_max.into());
    let of_values = values.saturating_mul(JSON_VALUE_BYTES);
    let needed = text.bytes().saturating_mul(MEMORY_PER_BYTE).saturating_add(of_values);
    let text = text.read(memory.as_ref(), needed).await?;
    if text.len() as u64 <= LARGE_BYTES {
        return extract::parse_json(&text);
    }
    // Parsed on a blocking thread. The work continues if the client disconnects, and retains its memory.
    let parse = move || {
        let parsed = extract::parse_json(&text);
        drop(memory);
        parsed
    };
    spawn_blocking(parse).await.map_err(ApiError::internal)?
}

/// The body's text without its files.
async fn extract_files(
    state: &AppState,
    principal: &Principal,
    body: &mut Body,
) -> Result<SpooledText, ApiError> {
    let limits = &state.limits;
    let mut text = SpooledText::default();
    let mut extractor =
        FileExtractor::new(limits.media_inline_bytes_max as usize, limits.chat_text_bytes_max as usize);
    let mut upload: Option<FileUpload> = None;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        let frame = frame.map_err(unreadable_body)?;
        let Ok(chunk) = frame.into_data() else { continue };
        let mut rest = &chunk[..];
        while let Some(extracted) =
            extractor.next(&mut rest).map_err(|why| extract_error(why, limits.chat_text_bytes_max))?
        {
            match extracted {
                ExtractEvent::Begin { media_type } => {
                    // Refused like a new turn: the reserved disk space is for running turns.
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
        text.push(state, &extractor.take_text()).await?;
    }
    text.push(state, &extractor.into_text()).await?;
    Ok(text)
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

    /// The id of the user's file with this content: an existing one, or a new one.
    async fn store(self, state: &AppState, principal: &Principal) -> Result<String, ApiError> {
        let Self { blob, media_type } = self;
        // Held until the catalog has the file, so that its blob is not collected before.
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
