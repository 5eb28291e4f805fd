//! Links that show a conversation to others: created, listed and revoked by its user, read by anyone who has
//! the link.
//!
//! A link is `/s/<id>#<secret>`. Browsers do not send the fragment after `#`, so the secret is in no log of a
//! server or a proxy; the page sends it in the body of a request. A link shows one branch up to the turn that
//! was the last one when the link was created, with its files: turns that have ended do not change.

use super::tree::{BranchMessage, branch_messages, branch_path};
use super::{find_conversation, now_ms};
use crate::api::files;
use crate::api::page::{ListPage, PageQuery};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path, Query};
use crate::principal::{KeyScope, Principal};
use crate::request_guard::{RandomnessError, random_bytes};
use crate::state::AppState;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http::{HeaderMap, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use subtle::ConstantTimeEq;
use throughline_store::ShareRow;
use throughline_wire::display_escape;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Path of the page's view of a link.
const SHARE_PATH: &str = "/s";
/// Bytes of an id; it is no secret.
const ID_BYTES: usize = 16;
/// Bytes of a secret. A secret of this length cannot be guessed, so it needs no slow hash.
const SECRET_BYTES: usize = 32;
/// Context of the hash: another use of the same bytes has another hash.
const HASH_CONTEXT: &str = "throughline 2026-11-25 secret of a link to a conversation";
/// An id or a secret that is longer than any of ours is not looked at further.
const PART_BYTES_MAX: usize = 128;
/// Maximum and default number of messages in one response.
const MESSAGES_MAX: u32 = 200;
const MESSAGES_DEFAULT: u32 = 50;

/// `/v1/shares`, `/v1/shared` and the links of a conversation.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create_share))
        .routes(routes!(list_shares))
        .routes(routes!(revoke_share))
        .routes(routes!(get_shared))
        .routes(routes!(download_shared))
}

/// Limit of how often a link is read.
pub(crate) struct SharedReads(DefaultKeyedRateLimiter<String>);

impl SharedReads {
    pub(crate) fn new(per_minute_max: u32) -> Self {
        // The configuration refuses 0.
        let per_minute = NonZeroU32::new(per_minute_max).unwrap_or(NonZeroU32::MIN);
        Self(RateLimiter::keyed(Quota::per_minute(per_minute)))
    }

    /// Counts a request to a link. Only existing links are counted, so that the number of counters is
    /// bounded.
    fn check(&self, share: &ShareRow) -> Result<(), ApiError> {
        let Err(retry_at) = self.0.check_key(&share.id) else { return Ok(()) };
        let now = governor::clock::Clock::now(&governor::clock::DefaultClock::default());
        let wait_s = retry_at.wait_time_from(now).as_secs() + 1;
        let message = "this link was opened too many times within a minute";
        Err(ApiError::too_many("shared_reads_per_minute_max", message, wait_s))
    }
}

/// A link that is wanted.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct CreateShare {
    /// The last turn of the branch that is shown; absent = the conversation's leaf, or the turn before it while it runs.
    leaf_id: Option<String>,
    /// From then on it shows nothing; milliseconds since 1970. Absent = until it is revoked.
    expires_at: Option<i64>,
}

/// A link that shows a conversation.
#[derive(Clone, Debug, Serialize, ToSchema)]
struct ShareInfo {
    /// The part of the link that is no secret.
    id: String,
    /// Conversation that it shows.
    conversation_id: String,
    /// The last turn that it shows.
    leaf_id: String,
    /// Title of the conversation when the link was made.
    title: String,
    /// Milliseconds since 1970.
    created_at: i64,
    /// From then on it shows nothing; milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
}

impl From<ShareRow> for ShareInfo {
    fn from(row: ShareRow) -> Self {
        Self {
            id: row.id,
            conversation_id: row.conversation_id,
            leaf_id: row.leaf_id,
            title: display_escape::escape_prose(&row.title).into_owned(),
            created_at: row.created_at,
            expires_at: row.expires_at,
        }
    }
}

/// A link that was made.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedShare {
    /// The link itself. It is shown this once.
    #[schema(example = "http://127.0.0.1:8787/s/0f…#Xk…")]
    link: String,
    #[serde(flatten)]
    share: ShareInfo,
}

/// Selects links.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SharesQuery {
    /// Only those to this conversation.
    conversation_id: Option<String>,
    /// `next` of the previous page.
    cursor: Option<String>,
    /// Maximum number of rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// A link as its holder shows it.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReadShared {
    /// The part of the link in front of `#`, after `/s/`.
    id: String,
    /// The part behind `#`.
    secret: String,
    /// Only messages before this turn: `before` of the previous response.
    #[serde(default)]
    before: Option<String>,
    /// Maximum number of messages, 1 to 200. Default 50, the newest.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// A file of what a link shows.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReadSharedFile {
    /// The part of the link in front of `#`, after `/s/`.
    id: String,
    /// The part behind `#`.
    secret: String,
    /// The file, as a message names it.
    file_id: String,
}

/// Conversation behind a link: nothing but its messages.
#[derive(Debug, Serialize, ToSchema)]
struct SharedConversation {
    /// Title when the link was made.
    title: String,
    /// When the link was made; milliseconds since 1970.
    shared_at: i64,
    /// From then on it shows nothing; milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    /// Oldest first.
    messages: Vec<BranchMessage>,
    /// `before` of the part in front of this one; absent = it begins here.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
}

/// Create a link that shows a conversation as it is now to whoever has it. Only this response shows its secret.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}/shares", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation")), request_body = CreateShare, responses(
    (status = 201, description = "Created", body = CreatedShare),
    (status = 400, description = "It would have expired already", body = ErrorResponse),
    (status = 404, description = "Conversation or turn not found", body = ErrorResponse),
    (status = 409, description = "The conversation has no answer yet", body = ErrorResponse),
    (status = 413, description = "Too many links", body = ErrorResponse),
))]
async fn create_share(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
    Json(body): Json<CreateShare>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let (user, now) = (principal.user.as_str(), now_ms());
    if body.expires_at.is_some_and(|expires| expires <= now) {
        return Err(
            ApiError::bad_request("expired", "the link would have expired already").param("expires_at")
        );
    }
    let row = find_conversation(&state, &principal, &id).await?.conversation;
    let leaf_id = match body.leaf_id.or(row.leaf_id) {
        Some(leaf) => last_ended(&state, user, &id, &leaf).await?,
        None => None,
    };
    let leaf_id = leaf_id.ok_or_else(|| {
        ApiError::conflict("nothing_to_share", "the conversation has no answer yet")
            .remedy("share it when the first answer is complete")
    })?;
    let secret = URL_SAFE_NO_PAD.encode(secret_bytes::<SECRET_BYTES>()?);
    let share = ShareRow {
        id: secret_bytes::<ID_BYTES>()?.iter().map(|byte| format!("{byte:02x}")).collect(),
        user: user.to_owned(),
        conversation_id: id.clone(),
        leaf_id,
        title: row.title,
        hash: secret_hash(&secret),
        created_at: now,
        expires_at: body.expires_at,
    };
    if !state.catalog.add_share(user, share.clone()).await? {
        return Err(ApiError::not_found("conversation", &id));
    }
    let link = format!("{}{SHARE_PATH}/{}#{secret}", state.page_address.resolve(&uri, &headers), share.id);
    let location = format!("/v1/shares/{}", share.id);
    let created = CreatedShare { link, share: share.into() };
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(created)).into_response())
}

fn secret_bytes<const N: usize>() -> Result<[u8; N], ApiError> {
    random_bytes().map_err(|error: RandomnessError| ApiError::internal(error))
}

fn secret_hash(secret: &str) -> String {
    blake3::Hasher::new_derive_key(HASH_CONTEXT).update(secret.as_bytes()).finalize().to_hex().to_string()
}

/// The last turn of a branch that has ended.
async fn last_ended(
    state: &AppState,
    user: &str,
    conversation: &str,
    leaf: &str,
) -> Result<Option<String>, ApiError> {
    for (turn, _) in branch_path(state, user, conversation, leaf).await?.into_iter().rev() {
        if state.catalog.turn(user, &turn).await?.is_some_and(|row| row.end.is_some()) {
            return Ok(Some(turn));
        }
    }
    Ok(None)
}

/// List one's links, newest first, without their secrets.
#[utoipa::path(get, path = "/v1/shares", tag = "conversations", params(SharesQuery), responses(
    (status = 200, description = "One page", body = ListPage<ShareInfo>),
    (status = 400, description = "Invalid query", body = ErrorResponse),
))]
async fn list_shares(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<SharesQuery>,
) -> Result<axum::Json<ListPage<ShareInfo>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let page = PageQuery::page_request(query.cursor, query.limit)?;
    let shares = state.catalog.shares(&principal.user, query.conversation_id.as_deref(), &page).await?;
    Ok(axum::Json(ListPage::from_page(shares, ShareInfo::from)))
}

/// Revoke a link. From then on it shows nothing.
#[utoipa::path(delete, path = "/v1/shares/{share_id}", tag = "conversations",
    params(("share_id" = String, Path, description = "Id of the link")), responses(
    (status = 204, description = "Revoked"),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn revoke_share(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Chat)?;
    if state.catalog.delete_share(&principal.user, &id).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(ApiError::not_found("link", &id))
    }
}

/// Read the conversation behind a link. Needs no key.
#[utoipa::path(post, path = "/v1/shared", tag = "conversations", security(()), request_body = ReadShared, responses(
    (status = 200, description = "Part of the conversation, oldest first", body = SharedConversation),
    (status = 400, description = "Invalid request", body = ErrorResponse),
    (status = 404, description = "It has no such turn", body = ErrorResponse),
    (status = 410, description = "The link is unknown, revoked or expired", body = ErrorResponse),
    (status = 429, description = "The link was opened too many times within a minute", body = ErrorResponse),
))]
async fn get_shared(
    State(state): State<AppState>,
    Json(body): Json<ReadShared>,
) -> Result<axum::Json<SharedConversation>, ApiError> {
    let limit = body.limit.unwrap_or(MESSAGES_DEFAULT);
    if limit == 0 || limit > MESSAGES_MAX {
        let what = format!("`limit` is from 1 to {MESSAGES_MAX}");
        return Err(ApiError::bad_request("invalid_value", what).param("limit"));
    }
    let share = find_share(&state, &body.id, &body.secret).await?;
    let mut path = shared_path(&state, &share).await?;
    if let Some(before) = &body.before {
        let at = path.iter().position(|(turn, _)| turn == before);
        path.truncate(at.ok_or_else(|| ApiError::not_found("turn", before).param("before"))?);
    }
    let skipped = path.len().saturating_sub(limit as usize);
    let part = path.split_off(skipped);
    let before = part.first().filter(|_| skipped > 0).map(|(turn, _)| turn.clone());
    let mut messages = branch_messages(&state, &share.user, &part).await?;
    for message in &mut messages {
        message.message.conversation_id = None;
    }
    Ok(axum::Json(SharedConversation {
        title: display_escape::escape_prose(&share.title).into_owned(),
        shared_at: share.created_at,
        expires_at: share.expires_at,
        messages,
        before,
    }))
}

/// Download a file that a shared conversation shows. Needs no key.
#[utoipa::path(post, path = "/v1/shared/file", tag = "conversations", security(()), request_body = ReadSharedFile, responses(
    (status = 200, description = "The bytes with their media type", body = String, content_type = "*/*"),
    (status = 404, description = "The conversation shows no such file", body = ErrorResponse),
    (status = 410, description = "The link is unknown, revoked or expired", body = ErrorResponse),
    (status = 429, description = "The link was opened too many times within a minute", body = ErrorResponse),
))]
async fn download_shared(
    State(state): State<AppState>,
    headers: HeaderMap,
    Json(body): Json<ReadSharedFile>,
) -> Result<Response, ApiError> {
    let share = find_share(&state, &body.id, &body.secret).await?;
    let no_file = || ApiError::not_found("file", &body.file_id);
    let path = shared_path(&state, &share).await?;
    let turns: Vec<String> = path.iter().map(|(turn, _)| turn.clone()).collect();
    let used = state.catalog.turn_using_file(&share.user, &turns, &body.file_id).await?;
    let turn = used.ok_or_else(no_file)?;
    // A turn may use what its message does not show.
    let part: Vec<_> = path.into_iter().filter(|(id, _)| *id == turn).collect();
    let messages = branch_messages(&state, &share.user, &part).await?;
    let is_shown = messages.iter().any(|message| {
        serde_json::to_string(&message.message)
            .is_ok_and(|text| text.contains(&format!("\"{}\"", body.file_id)))
    });
    if !is_shown {
        return Err(no_file());
    }
    let row = state.catalog.file(&share.user, &body.file_id).await?.ok_or_else(no_file)?;
    files::content_response(&state, &row, &headers).await
}

/// The link with this secret, counted as read. The error is the same for an unknown, a revoked and an expired
/// one.
async fn find_share(state: &AppState, id: &str, secret: &str) -> Result<ShareRow, ApiError> {
    let is_possible = |part: &str| !part.is_empty() && part.len() <= PART_BYTES_MAX;
    let row = if is_possible(id) && is_possible(secret) { state.catalog.share(id).await? } else { None };
    let hash = secret_hash(secret);
    let matches = |row: &ShareRow| bool::from(hash.as_bytes().ct_eq(row.hash.as_bytes()));
    let row = row.filter(matches).filter(|row| row.is_valid(now_ms())).ok_or_else(no_link)?;
    state.shared_reads.check(&row)?;
    Ok(row)
}

fn no_link() -> ApiError {
    ApiError::gone("link_gone", "link is incomplete, revoked or expired")
        .remedy("ask the sender for a new link")
}

/// The branch that a link shows; 404 if its conversation was deleted.
async fn shared_path(state: &AppState, share: &ShareRow) -> Result<Vec<(String, Option<u64>)>, ApiError> {
    branch_path(state, &share.user, &share.conversation_id, &share.leaf_id)
        .await
        .map_err(|error| if error.status == StatusCode::NOT_FOUND { no_link() } else { error })
}
