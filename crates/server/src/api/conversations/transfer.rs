//! Conversations out of the store and into it: written down for people and programs, and read in.

use super::tree::branch_path;
use super::{ConversationInfo, created_response, find_conversation};
use crate::error::{ApiError, ErrorResponse};
use crate::export::{
    self, ImportError, ImportFormat, ImportTarget, MediaLinks, PortableConversation, PortableTurn,
};
use crate::extract::{Path, Query};
use crate::json_scanner::LargestTurn;
use crate::large_bodies::{self, RequestMemory, SpooledText};
use crate::principal::{KeyScope, Principal};
use crate::stamps::now_ms;
use crate::state::AppState;
use crate::turn_log;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use http::request::Parts;
use http::{HeaderValue, header};
use serde::Deserialize;
use std::collections::BTreeMap;
use throughline::MediaStore;
use throughline_store::{PageRequest, TurnParent};
use throughline_wire::Media;
use tokio::task::spawn_blocking;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Memory for each byte of an import: its text, its events and its rows.
const IMPORT_PER_BYTE: u64 = 3;
/// Memory for each byte of the largest turn, since turns are processed one at a time: its events, its
/// message, its history, and the stored form of each.
const IMPORT_PER_BYTE_OF_TURN: u64 = 5;
/// Memory for each tree unit of a turn: for the parsed event, its message, and its history.
const IMPORT_PER_UNIT: u64 = 400;

/// Files that pictures are looked up among, newest first.
const LINKED_FILES_MAX: usize = 2_000;

/// `/v1/conversations/{conversation_id}/export` and `/v1/conversations/import`.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(export)).routes(routes!(import))
}

/// Format of an exported conversation.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ConversationExportFormat {
    /// Everything, one record a line; can be imported again.
    #[default]
    Jsonl,
    /// One branch, for people.
    Markdown,
}

/// Export options.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportQuery {
    /// `jsonl` (everything, can be imported again) or `markdown` (one branch, for people).
    #[serde(default)]
    #[param(inline)]
    format: ConversationExportFormat,
    /// Of Markdown: the last turn of the branch; absent = the conversation's leaf.
    leaf: Option<String>,
}

/// A turn with its log, as it travels.
pub(super) async fn portable_turn(
    state: &AppState,
    principal: &Principal,
    turn_id: &str,
    parent: Option<TurnParent>,
) -> Result<PortableTurn, ApiError> {
    let no_turn = || ApiError::not_found("turn", turn_id);
    let row = state.catalog.turn(&principal.user, turn_id).await?.ok_or_else(no_turn)?;
    let events = turn_log::raw_events(&*state.log, turn_id).await?;
    Ok(PortableTurn { id: row.id, parent, model: row.model, rating: row.rating, events })
}

/// Takes a conversation in under new names, and answers with it.
pub(super) async fn import_conversation(
    state: &AppState,
    principal: &Principal,
    portable: PortableConversation,
) -> Result<Response, ApiError> {
    let into = ImportTarget { log: &*state.log, catalog: &*state.catalog, media: &state.media };
    let imported = export::import_conversation(into, &principal.user, portable, now_ms()).await;
    let id = imported.map_err(import_error)?;
    created_response(state, principal, &id).await
}

/// Export a conversation: everything as JSON Lines, or one branch as Markdown.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/export", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation"), ExportQuery), responses(
    (status = 200, description = "The file", content(
        (String = "application/jsonl"),
        (String = "text/markdown"),
    )),
    (status = 404, description = "Conversation or turn not found", body = ErrorResponse),
))]
async fn export(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Query(query): Query<ExportQuery>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let row = find_conversation(&state, &principal, &id).await?.conversation;
    let (body, media_type, extension) = match query.format {
        ConversationExportFormat::Jsonl => {
            let mut turns = Vec::new();
            for turn in state.catalog.tree(&principal.user, &id).await? {
                turns.push(portable_turn(&state, &principal, &turn.id, turn.parent).await?);
            }
            let mut portable = PortableConversation::of(row, turns);
            let mut content = BTreeMap::new();
            for (_, file) in export::media_files(&portable) {
                if let Ok(Some(bytes)) = state.media.read(Some(&principal.user), &file).await {
                    content.insert(file, bytes);
                }
            }
            export::embed_media(&mut portable, &content);
            (export::write_jsonl(&portable, now_ms()), "application/jsonl", "jsonl")
        }
        ConversationExportFormat::Markdown => {
            let mut messages = Vec::new();
            if let Some(leaf) = query.leaf.or(row.leaf_id) {
                for (turn, _) in branch_path(&state, &principal.user, &id, &leaf).await? {
                    let Some(row) = state.catalog.turn(&principal.user, &turn).await? else { continue };
                    messages.push(turn_log::message_of(&*state.log, &row).await?);
                }
            }
            let links = StoredFileLinks::of(&state, &principal).await?;
            (export::markdown(&row.title, &messages, &links), "text/markdown; charset=utf-8", "md")
        }
    };
    let disposition = format!("attachment; filename=\"{id}.{extension}\"");
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers
        .insert(header::CONTENT_DISPOSITION, HeaderValue::try_from(disposition).map_err(ApiError::internal)?);
    Ok(response)
}

/// Files by the hash of their content.
struct StoredFileLinks(BTreeMap<String, String>);

impl StoredFileLinks {
    async fn of(state: &AppState, principal: &Principal) -> Result<Self, ApiError> {
        let mut files = BTreeMap::new();
        let mut page = PageRequest::first().limit(200);
        loop {
            let page_rows = state.catalog.files(&principal.user, &page).await?;
            files.extend(page_rows.items.into_iter().map(|file| (file.hash, file.id)));
            match page_rows.next {
                Some(next) if files.len() < LINKED_FILES_MAX => page = PageRequest::after(next).limit(200),
                _ => return Ok(Self(files)),
            }
        }
    }
}

impl MediaLinks for StoredFileLinks {
    fn link(&self, media: &Media) -> Option<String> {
        if let Some(id) = media.file_id() {
            return Some(format!("/v1/files/{id}/content"));
        }
        let bytes = base64::engine::general_purpose::STANDARD.decode(media.data()).ok()?;
        let id = self.0.get(blake3::hash(&bytes).to_hex().as_str())?;
        Some(format!("/v1/files/{id}/content"))
    }
}

/// Import a conversation from an export in JSON Lines or from a list of OpenAI messages.
///
/// Everything gets new ids. Nothing is fetched, and no model is called.
#[utoipa::path(post, path = "/v1/conversations/import", tag = "conversations",
    request_body(content((String = "application/jsonl"), (Object = "application/json")),
        description = "A file of `export`, or `[{\"role\": \"user\", \"content\": \"…\"}, …]`"), responses(
    (status = 201, description = "Created", body = ConversationInfo),
    (status = 400, description = "Invalid import; `line` says where", body = ErrorResponse),
    (status = 413, description = "The body is too large", body = ErrorResponse),
    (status = 507, description = "The disk is full", body = ErrorResponse),
))]
async fn import(
    State(state): State<AppState>,
    principal: Principal,
    request: Request,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let (Parts { headers, extensions, .. }, body) = request.into_parts();
    // The request guard bounds it, as every upload.
    let body = SpooledText::of_body(&state, body, u64::MAX).await?.unwrap_or_default();
    let memory = extensions.get::<RequestMemory>().cloned();
    // Detected from the first line, regardless of the file name.
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_jsonl = content_type.contains("jsonl")
        || content_type.contains("ndjson")
        || export::is_jsonl(body.beginning());
    let largest = if is_jsonl {
        body.units().largest_turn()
    } else {
        // Messages have JSON in their texts, and may all be of one turn.
        LargestTurn { bytes: body.bytes(), units: body.units().anywhere() }
    };
    let units_max = large_bodies::memory_of_key(&state.limits) / IMPORT_PER_UNIT;
    let needed = [
        body.bytes().saturating_mul(IMPORT_PER_BYTE),
        largest.bytes.saturating_mul(IMPORT_PER_BYTE_OF_TURN),
        largest.units.min(units_max).saturating_mul(IMPORT_PER_UNIT),
    ];
    let needed = needed.into_iter().fold(0, u64::saturating_add);
    let body = body.read(memory.as_ref(), needed).await?;
    let text = String::from_utf8(body).map_err(|error| {
        let read = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = read.iter().filter(|byte| **byte == b'\n').count() + 1;
        ApiError::bad_request("not_utf8", format!("line {line} is not UTF-8")).with_extra("line", line)
    })?;
    let format = if is_jsonl { ImportFormat::JsonLines } else { ImportFormat::Messages };
    let importing = async move {
        // A large import takes long, so it runs on a blocking thread.
        let parse = move || export::parse_conversation(&text, format, now_ms(), units_max);
        let parsed = spawn_blocking(parse).await.map_err(ApiError::internal)?;
        let imported = import_conversation(&state, &principal, parsed.map_err(line_error)?).await;
        drop(memory);
        imported
    };
    // Continues if its client disconnects: the blocking work cannot be stopped, and needs the memory until
    // its end.
    tokio::spawn(importing).await.map_err(ApiError::internal)?
}

fn import_error(error: ImportError) -> ApiError {
    match error {
        ImportError::Unreadable(error) => line_error(error),
        ImportError::Log(error) => error.into(),
        ImportError::Store(error) => error.into(),
    }
}

fn line_error(error: export::LineError) -> ApiError {
    let refused =
        ApiError::bad_request("cannot_be_imported", error.to_string()).with_extra("line", error.line);
    match error.help {
        Some(help) => refused.remedy(help),
        None => refused,
    }
}
