//! The body of a chat: pictures and files in it are kept as files while they are read, so that a chat with many of them
//! needs no more memory than its text, and a picture that comes with every request of a chat is kept once. // R: R2, T12

use super::lift::{Lifted, Lifter, NotLifted};
use crate::error::ApiError;
use crate::extract;
use crate::gate::drain;
use crate::portable::mint;
use crate::principal::Principal;
use crate::state::AppState;
use axum::body::{Body, HttpBody};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use serde_json::Value;
use std::future::poll_fn;
use std::pin::Pin;
use throughline_store::BlobFolder;
use throughline_store::blobs::UnfinishedBlob;
use throughline_store::catalog::NewFile;

/// Reads a body. What was in it as a large `data:` URL, or as sound, is an id of a file of the user's in what is given back.
///
/// # Errors
/// It is no JSON, its text is too large, a file cannot be kept.
pub(super) async fn read(
    state: &AppState,
    principal: &Principal,
    headers: &HeaderMap,
    mut body: Body,
) -> Result<Value, ApiError> {
    extract::check_json(headers)?;
    let lifted = lifted(state, principal, &mut body).await;
    if lifted.is_err() {
        drain(body, headers).await;
    }
    extract::parse(lifted?.text())
}

async fn lifted(state: &AppState, principal: &Principal, body: &mut Body) -> Result<Lifter, ApiError> {
    let limits = &state.limits;
    let mut lifter = Lifter::new(limits.media_inline_bytes_max as usize, limits.body_bytes_max as usize);
    let mut open: Option<Open> = None;
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| {
            ApiError::bad_request("unreadable_body", format!("the body broke off: {error}"))
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        let mut rest = &piece[..];
        while let Some(lifted) = lifter.next(&mut rest).map_err(|why| refused(why, limits.body_bytes_max))? {
            match lifted {
                Lifted::Begin { media_type } => open = Some(Open::new(&state.blobs, media_type).await?),
                Lifted::Bytes(bytes) => {
                    if let Some(open) = &mut open {
                        open.blob.write(&bytes).await?;
                    }
                }
                Lifted::End => {
                    if let Some(open) = open.take() {
                        lifter.put(&open.keep(state, principal).await?);
                    }
                }
            }
        }
    }
    Ok(lifter)
}

/// A file that is being read.
struct Open {
    blob: UnfinishedBlob,
    media_type: String,
}

impl Open {
    async fn new(blobs: &BlobFolder, media_type: String) -> Result<Self, ApiError> {
        Ok(Self { blob: blobs.begin().await?, media_type })
    }

    /// The id of the user's file with this content: the one that there is, or a new one.
    async fn keep(self, state: &AppState, principal: &Principal) -> Result<String, ApiError> {
        let Self { blob, media_type } = self;
        // Held until the catalog knows the file, so that nobody collects it meanwhile.
        let blob = blob.finish().await?;
        let new = NewFile {
            id: mint("file_"),
            name: media_type.split('/').next().unwrap_or("file").to_owned(),
            media_type,
            bytes: blob.bytes,
            hash: blob.hash.clone(),
            made_in: None,
            created_at: Timestamp::now().as_millisecond(),
        };
        Ok(state.catalog.keep_file(&principal.user, new).await?.id)
    }
}

fn refused(why: NotLifted, text_bytes_max: u32) -> ApiError {
    match why {
        NotLifted::NoBase64 => {
            ApiError::bad_request("invalid_request", "a picture or file in the messages is no base64")
                .param("messages")
                .remedy("send it as `data:<media type>;base64,<content>`")
        }
        NotLifted::TextTooLarge => ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_bytes_max",
            format!("the body without its pictures and files is larger than {text_bytes_max} bytes"),
        )
        .with("bytes_max", text_bytes_max)
        .remedy("raise `body_bytes_max` of [server.limits], or send less"),
    }
}
