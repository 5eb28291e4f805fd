//! Files: what people upload to talk about, and what tools have made.
//!
//! A file is data and never a page: it is given out as an attachment that a browser neither renders nor guesses about, with
//! a policy under which nothing in it could run if it were rendered all the same.

mod pdf;
mod sniff;

use super::page::{ListPage, PageQuery};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Path, Query};
use crate::principal::{KeyScope, Principal};
use crate::stamps::{new_id, now_ms};
use crate::state::AppState;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use sniff::{OCTETS, TypeSniffer};
use throughline_store::{BlobError, FileRow, NewFile};
use throughline_wire::display_escape::is_hidden;
use tokio::io::AsyncReadExt;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest name of a file, in characters.
pub(crate) const FILE_NAME_CHARS_MAX: usize = 200;
/// Size of a read from disk, in bytes.
const CHUNK_BYTES: usize = 64 << 10;
/// `Retry-After` for content at another server, in seconds: a balancer may choose that server.
const RETRY_ELSEWHERE_S: u64 = 2;
/// Content security policy of files: nothing in them may run, load anything, or be framed.
const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox; default-src 'none'; frame-ancestors 'none'");

/// `/v1/files`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    // The blob folder enforces its own limit, and a file is never in memory as a whole.
    let upload = OpenApiRouter::new().routes(routes!(upload)).layer(DefaultBodyLimit::disable());
    OpenApiRouter::new()
        .merge(upload)
        .routes(routes!(list))
        .routes(routes!(get, delete))
        .routes(routes!(download))
        .routes(routes!(pdf::get_text))
}

/// A file.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct FileInfo {
    /// Its id: `{"type": "file", "file_id": …}` in the input of a turn.
    #[schema(example = "file_01a1fe3a01c37659bcb2d47e8bf4ff6e")]
    pub id: String,
    /// File name as uploaded.
    #[schema(example = "report.pdf")]
    pub name: String,
    /// Media type, detected from the content.
    #[schema(example = "application/pdf")]
    pub media_type: String,
    /// Size in bytes.
    pub bytes: u64,
    /// BLAKE3 of its content, in hex.
    pub hash: String,
    /// Milliseconds since 1970.
    pub created_at: i64,
}

impl From<FileRow> for FileInfo {
    fn from(row: FileRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            media_type: row.media_type,
            bytes: row.bytes,
            hash: row.hash,
            created_at: row.created_at,
        }
    }
}

/// Query of an upload whose body is the file itself.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadQuery {
    /// File name. Not needed for `multipart/form-data`, which has its own.
    name: Option<String>,
}

/// A form with one file in it.
#[derive(ToSchema)]
#[allow(dead_code, reason = "a description only")]
pub(crate) struct UploadForm {
    /// The file.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Upload a file: a form with one file in it, or the file itself as the body.
///
/// The media type is detected from the content. A declared type that the content contradicts is refused.
#[utoipa::path(post, path = "/v1/files", tag = "files", params(UploadQuery),
    request_body(content((UploadForm = "multipart/form-data"), (String = "application/octet-stream"))), responses(
    (status = 201, description = "Created", body = FileInfo),
    (status = 400, description = "The request contains no file", body = ErrorResponse),
    (status = 413, description = "The file exceeds its limit, or all files together exceed \
     theirs", body = ErrorResponse),
    (status = 415, description = "The content contradicts the declared type", body = ErrorResponse),
    (status = 507, description = "The disk is full", body = ErrorResponse),
))]
async fn upload(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<UploadQuery>,
    request: Request,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let body_type = declared_type(request.headers());
    let row = if body_type.as_deref() == Some("multipart/form-data") {
        let mut form = Multipart::from_request(request, &state).await.map_err(|error| form_error(&error))?;
        let mut stored = None;
        while let Some(field) = form.next_field().await.map_err(|error| form_error(&error))? {
            let Some(name) = field.file_name().map(str::to_owned) else { continue };
            if stored.is_some() {
                return Err(ApiError::bad_request(
                    "one_file_each",
                    "there is more than one file in the form",
                )
                .remedy("send a request for each"));
            }
            let declared = field.content_type().map(media_essence);
            let chunks = field.map(|chunk| chunk.map_err(|error| form_error(&error)));
            stored = Some(
                store_upload(&state, &principal, query.name.clone().or(Some(name)), declared, chunks).await?,
            );
        }
        stored.ok_or_else(|| {
            ApiError::bad_request("no_file", "there is no file in the form")
                .remedy("a field with a `filename`")
        })?
    } else {
        let name = query.name.or_else(|| disposition_filename(request.headers()));
        let chunks = request.into_body().into_data_stream().map(|chunk| {
            chunk.map_err(|error| {
                ApiError::bad_request("unreadable_body", format!("the request body ended early: {error}"))
            })
        });
        store_upload(&state, &principal, name, body_type, chunks).await?
    };
    let location = format!("/v1/files/{}", row.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(FileInfo::from(row))).into_response())
}

/// Stores the upload, piece by piece.
async fn store_upload(
    state: &AppState,
    principal: &Principal,
    name: Option<String>,
    declared: Option<String>,
    chunks: impl Stream<Item = Result<Bytes, ApiError>>,
) -> Result<FileRow, ApiError> {
    let declared = declared.filter(|declared| declared != OCTETS);
    // Refused like a new turn: the reserved disk space is for running turns.
    state.log.accepts_new_turns()?;
    let mut sniffer = TypeSniffer::default();
    let mut blob = state.blobs.begin().await.map_err(blob_error)?;
    let mut chunks = std::pin::pin!(chunks);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        sniffer.apply(&chunk);
        blob.write(&chunk).await.map_err(blob_error)?;
        // It may itself be what takes the room.
        state.log.accepts_new_turns()?;
    }
    let media_type = sniffer.media_type(declared.as_deref()).map_err(|found| {
        let declared = declared.unwrap_or_default();
        ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "media_type_mismatch",
            format!("the declared type is {declared}, but the content is {found}"),
        )
        .param("Content-Type")
        .remedy("declare the actual type, or application/octet-stream")
    })?;
    // Held until the catalog has the file, so that its blob is not collected before.
    let blob = blob.finish().await.map_err(blob_error)?;
    if blob.bytes == 0 {
        return Err(ApiError::bad_request("empty_file", "the file is empty"));
    }
    let new = NewFile {
        id: new_id("file_"),
        name: display_name(name.as_deref().unwrap_or_default(), &media_type),
        media_type,
        bytes: blob.bytes,
        hash: blob.hash.clone(),
        made_in: None,
        created_at: now_ms(),
    };
    Ok(state.catalog.add_file(&principal.user, new).await?)
}

/// List files, newest first.
#[utoipa::path(get, path = "/v1/files", tag = "files", params(PageQuery), responses(
    (status = 200, description = "One page", body = ListPage<FileInfo>),
    (status = 400, description = "Invalid query", body = ErrorResponse),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<ListPage<FileInfo>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let page = PageQuery::page_request(query.cursor, query.limit)?;
    let files = state.catalog.files(&principal.user, &page).await?;
    Ok(axum::Json(ListPage::from_page(files, FileInfo::from)))
}

/// Get the metadata of a file.
#[utoipa::path(get, path = "/v1/files/{file_id}", tag = "files",
    params(("file_id" = String, Path, description = "Id of the file")), responses(
    (status = 200, description = "The metadata", body = FileInfo),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn get(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<axum::Json<FileInfo>, ApiError> {
    principal.require(KeyScope::Chat)?;
    Ok(axum::Json(find_file(&state, &principal, &id).await?.into()))
}

async fn find_file(state: &AppState, principal: &Principal, id: &str) -> Result<FileRow, ApiError> {
    state.catalog.file(&principal.user, id).await?.ok_or_else(|| ApiError::not_found("file", id))
}

/// Download the content of a file, always as an attachment.
#[utoipa::path(get, path = "/v1/files/{file_id}/content", tag = "files",
    params(("file_id" = String, Path, description = "Id of the file")), responses(
    (status = 200, description = "The bytes with their media type", body = String, content_type = "*/*"),
    (status = 304, description = "Unchanged: `If-None-Match` matches"),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 410, description = "The content of the file is missing", body = ErrorResponse),
    (status = 503, description = "The content is at another server", body = ErrorResponse),
))]
async fn download(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let row = find_file(&state, &principal, &id).await?;
    content_response(&state, &row, &headers).await
}

/// The content of a file as an attachment, or 304 if the client has it.
pub(crate) async fn content_response(
    state: &AppState,
    row: &FileRow,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let tag = format!("\"{}\"", row.hash);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    if known.is_some_and(|known| known.split(',').any(|one| one.trim() == tag)) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let body = Body::from_stream(read_chunks(open_content(state, row).await?));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    let media_type = HeaderValue::try_from(&row.media_type).unwrap_or(HeaderValue::from_static(OCTETS));
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(row.bytes));
    headers.insert(header::CONTENT_DISPOSITION, attachment(&row.name));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, SANDBOX);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=0, must-revalidate"));
    headers.insert(header::ETAG, HeaderValue::try_from(tag).map_err(ApiError::internal)?);
    Ok(response)
}

async fn open_content(state: &AppState, row: &FileRow) -> Result<tokio::fs::File, ApiError> {
    let lost = || {
        if state.log.peers().is_some() {
            // Each server has its own folder: another one may have what is not here.
            let message = "the content of this file is not at this server";
            return ApiError::unavailable("stored_elsewhere", message, RETRY_ELSEWHERE_S).remedy(
                "ask the server that received the upload, or let all servers share one folder of files; if \
                 that server no longer exists, upload the file again",
            );
        }
        tracing::error!(file = %row.id, "the content of a file is missing");
        ApiError::gone("content_gone", "the content of this file is missing").remedy("upload it again")
    };
    let file = state.blobs.file(&row.hash).await.map_err(blob_error)?.ok_or_else(lost)?;
    Ok(tokio::fs::File::from_std(file))
}

/// Delete a file and its content, even if conversations use it. Models are told that it was deleted.
///
/// Files of at most `media_inline_bytes_max` are part of the conversation itself and stay there.
#[utoipa::path(delete, path = "/v1/files/{file_id}", tag = "files",
    params(("file_id" = String, Path, description = "Id of the file")), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn delete(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Chat)?;
    let removed = state.catalog.remove_file(&principal.user, &id).await?;
    let row = removed.ok_or_else(|| ApiError::not_found("file", &id))?;
    if let Err(error) = state.blobs.collect(&*state.catalog, &[row.hash]).await {
        tracing::warn!(%error, "the content of a deleted file was not removed");
    }
    Ok(StatusCode::NO_CONTENT)
}

fn read_chunks(file: tokio::fs::File) -> impl Stream<Item = std::io::Result<Bytes>> {
    stream::try_unfold(file, |mut file| async move {
        let mut chunk = vec![0; CHUNK_BYTES];
        let read = file.read(&mut chunk).await?;
        chunk.truncate(read);
        Ok((read > 0).then(|| (Bytes::from(chunk), file)))
    })
}

fn blob_error(error: BlobError) -> ApiError {
    match error {
        BlobError::Full(error) => {
            tracing::error!(%error, "the disk is full");
            ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", "there is no room for files")
        }
        error => error.into(),
    }
}

fn form_error(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::bad_request("bad_form", format!("the form cannot be read: {error}"))
}

/// The declared type without its parameters.
fn declared_type(headers: &HeaderMap) -> Option<String> {
    headers.get(header::CONTENT_TYPE)?.to_str().ok().map(media_essence)
}

fn media_essence(value: &str) -> String {
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// `filename` of a `Content-Disposition`.
fn disposition_filename(headers: &HeaderMap) -> Option<String> {
    let disposition = headers.get(header::CONTENT_DISPOSITION)?.to_str().ok()?;
    let name = disposition.split(';').find_map(|part| part.trim().strip_prefix("filename="))?;
    Some(name.trim_matches('"').to_owned())
}

/// A name for people: its last part, without invisible and direction-changing characters.
fn display_name(name: &str, media_type: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last.chars().filter(|c| !is_hidden(*c)).take(FILE_NAME_CHARS_MAX).collect();
    match clean.trim().trim_matches('.') {
        "" => format!("file.{}", sniff::extension(media_type)),
        _ => clean.trim().to_owned(),
    }
}

/// `attachment` with a file name in both forms of RFC 6266: ASCII for old clients, and the whole name.
fn attachment(name: &str) -> HeaderValue {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || " ._-()".contains(c) { c } else { '_' })
        .collect();
    let mut exact = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => exact.push(char::from(byte)),
            byte => exact.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::try_from(format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}"))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_name_drops_paths_and_invisible_characters() {
        for (given, expected) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\a\\b.txt", "b.txt"),
            ("a\r\nSet-Cookie: x", "aSet-Cookie: x"),
            ("invoice\u{202e}fdp.exe", "invoicefdp.exe"),
            ("a\u{ad}\u{200b}\u{e0041}.pdf", "a.pdf"),
            ("报告.pdf", "报告.pdf"),
            ("..", "file.png"),
            ("", "file.png"),
            ("dir/", "file.png"),
        ] {
            assert_eq!(display_name(given, "image/png"), expected, "{given:?}");
        }
        assert_eq!(display_name(&"x".repeat(300), "image/png").chars().count(), FILE_NAME_CHARS_MAX);
    }

    #[test]
    fn content_disposition_escapes_the_file_name() {
        for (name, header) in [
            ("a b.txt", "attachment; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt"),
            ("a\"; x=\".txt", "attachment; filename=\"a__ x__.txt\"; filename*=UTF-8''a%22%3B%20x%3D%22.txt"),
            ("报", "attachment; filename=\"_\"; filename*=UTF-8''%E6%8A%A5"),
        ] {
            assert_eq!(attachment(name), header);
        }
    }
}
