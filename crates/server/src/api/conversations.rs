//! Conversations: made, listed, searched, renamed, deleted. Each is a tree of turns. // R: S4

mod fork;
mod transfer;
mod tree;

use super::page::{ListPage, PageQuery};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path, Query};
use crate::portable::new_id;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use throughline_store::catalog::{
    ConversationSummary, NewConversation, RemovalOutcome, SearchHit, SearchHitPart, TitleSource, TurnParent,
    TurnSummary,
};
use throughline_wire::visible;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/conversations` and `/v1/search`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(update, delete))
        .routes(routes!(search))
        .merge(tree::routes())
        .merge(fork::routes())
        .merge(transfer::routes())
}

/// A conversation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConversationInfo {
    /// Id.
    #[schema(example = "conv_01a1fe3a01c37659bcb2d47e8bf4ff6e")]
    pub id: String,
    /// Given, or the first words of the first input.
    pub title: String,
    /// `given`, or `input` = the first words of the first input.
    #[schema(example = "input")]
    pub title_by: &'static str,
    /// Turn that a new one continues by default.
    pub leaf_id: Option<String>,
    /// Number of turns, all branches counted.
    pub turns: u64,
    /// The turn that runs in it now.
    pub running_turn_id: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When something last happened in it, in milliseconds since 1970.
    pub updated_at: i64,
}

impl From<ConversationSummary> for ConversationInfo {
    fn from(summary: ConversationSummary) -> Self {
        let ConversationSummary { conversation: row, turns, running_turn_id } = summary;
        Self {
            id: row.id,
            title: visible::escape_prose(&row.title).into_owned(),
            title_by: match row.title_by {
                TitleSource::FirstInput => "input",
                TitleSource::UserGiven => "given",
            },
            leaf_id: row.leaf_id,
            turns,
            running_turn_id,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// Turn that another turn continues.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParentTurn {
    /// A turn of the same conversation.
    pub turn_id: String,
    /// Only up to this event of it; absent = all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

impl From<TurnParent> for ParentTurn {
    fn from(parent: TurnParent) -> Self {
        Self { turn_id: parent.turn_id, seq: parent.seq }
    }
}

/// A turn in a tree. Turns with the same parent are siblings: with another input an edit, with the same a regeneration.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TurnNode {
    /// Id.
    pub id: String,
    /// The turn before; absent for the first of a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentTurn>,
    /// Id of the answer.
    pub message_id: String,
    /// Agent that answered.
    pub agent: String,
    /// Model that answered, as `upstream/model`.
    pub model: Option<String>,
    /// The beginning of the input.
    pub input: String,
    /// The beginning of the answer.
    pub answer: String,
    /// `running`, or the status at its end.
    pub status: String,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Milliseconds since 1970; absent = it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
}

impl From<TurnSummary> for TurnNode {
    fn from(turn: TurnSummary) -> Self {
        Self {
            id: turn.id,
            parent: turn.parent.map(ParentTurn::from),
            message_id: turn.message_id,
            agent: turn.agent,
            model: turn.model,
            input: turn.input,
            answer: turn.answer,
            status: turn.status,
            created_at: turn.created_at,
            ended_at: turn.ended_at,
        }
    }
}

/// A new conversation.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreateConversation {
    /// Absent = the first words of the first input, when it comes.
    #[schema(example = "Weather")]
    pub title: Option<String>,
}

/// Changes to a conversation. Absent fields stay as they are.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateConversation {
    /// Its title; empty = the first words of the first input again.
    pub title: Option<String>,
    /// The turn that a new one continues: another branch.
    pub leaf_id: Option<String>,
}

/// A place where a text was found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SearchResult {
    /// Id of the conversation.
    pub conversation_id: String,
    /// Its title.
    pub title: String,
    /// In which turn; absent = in the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// `title`, `input` or `answer`.
    pub part: &'static str,
    /// Text around the match.
    pub snippet: String,
    /// Milliseconds since 1970.
    pub at: i64,
}

impl From<SearchHit> for SearchResult {
    fn from(hit: SearchHit) -> Self {
        Self {
            conversation_id: hit.conversation_id,
            title: visible::escape_prose(&hit.title).into_owned(),
            turn_id: hit.turn_id,
            part: match hit.part {
                SearchHitPart::Title => "title",
                SearchHitPart::Input => "input",
                SearchHitPart::Answer => "answer",
            },
            snippet: visible::escape_prose(&hit.snippet).into_owned(),
            at: hit.at,
        }
    }
}

/// Filter of a list of conversations.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ConversationsQuery {
    /// Only those with this text in title, input or answer, whatever its case.
    q: Option<String>,
    /// `next` of the previous page.
    cursor: Option<String>,
    /// Maximum number of rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Search query.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// The text. `%`, `_` and `*` mean themselves.
    q: String,
    /// `next` of the previous page.
    cursor: Option<String>,
    /// Maximum number of rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

fn conversation_not_found(id: &str) -> ApiError {
    ApiError::not_found("conversation", id)
}

async fn find_conversation(
    state: &AppState,
    principal: &Principal,
    id: &str,
) -> Result<ConversationSummary, ApiError> {
    state.catalog.conversation(&principal.user, id).await?.ok_or_else(|| conversation_not_found(id))
}

/// Create a conversation without turns.
///
/// Not needed before a first turn: `POST /v1/turns` creates one.
#[utoipa::path(post, path = "/v1/conversations", tag = "conversations", request_body = CreateConversation, responses(
    (status = 201, description = "Created", body = ConversationInfo),
    (status = 400, description = "Invalid request", body = ErrorResponse),
))]
async fn create(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<CreateConversation>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let id = new_id("conv_");
    let new = NewConversation { id: id.clone(), title: body.title, created_at: now_ms() };
    state.catalog.create_conversation(&principal.user, new).await?;
    created_response(&state, &principal, &id).await
}

async fn created_response(state: &AppState, principal: &Principal, id: &str) -> Result<Response, ApiError> {
    let conversation = ConversationInfo::from(find_conversation(state, principal, id).await?);
    let location = format!("/v1/conversations/{id}");
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(conversation)).into_response())
}

/// List conversations, most recently active first.
#[utoipa::path(get, path = "/v1/conversations", tag = "conversations", params(ConversationsQuery), responses(
    (status = 200, description = "One page", body = ListPage<ConversationInfo>),
    (status = 400, description = "Invalid query", body = ErrorResponse),
    (status = 503, description = "With `q`: too many searches are waiting; retry", body = ErrorResponse),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<ConversationsQuery>,
) -> Result<axum::Json<ListPage<ConversationInfo>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let page = PageQuery::page_request(query.cursor, query.limit)?;
    let rows = state.catalog.conversations(&principal.user, query.q.as_deref(), &page).await?;
    Ok(axum::Json(ListPage::from_page(rows, ConversationInfo::from)))
}

/// Search titles, inputs and answers.
#[utoipa::path(get, path = "/v1/search", tag = "conversations", params(SearchQuery), responses(
    (status = 200, description = "Matches with the text around them, newest first", body = ListPage<SearchResult>),
    (status = 400, description = "Invalid query", body = ErrorResponse),
    (status = 503, description = "Too many searches are waiting; retry", body = ErrorResponse),
))]
async fn search(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<SearchQuery>,
) -> Result<axum::Json<ListPage<SearchResult>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let page = PageQuery::page_request(query.cursor, query.limit)?;
    let hits = state.catalog.search(&principal.user, &query.q, &page).await?;
    Ok(axum::Json(ListPage::from_page(hits, SearchResult::from)))
}

/// Rename a conversation, or select another branch of it.
#[utoipa::path(patch, path = "/v1/conversations/{conversation_id}", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation")), request_body = UpdateConversation, responses(
    (status = 200, description = "The new state", body = ConversationInfo),
    (status = 400, description = "Invalid request", body = ErrorResponse),
    (status = 404, description = "Conversation or turn not found", body = ErrorResponse),
))]
async fn update(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Json(body): Json<UpdateConversation>,
) -> Result<axum::Json<ConversationInfo>, ApiError> {
    principal.require(KeyScope::Chat)?;
    find_conversation(&state, &principal, &id).await?;
    // The branch first: it is what can be refused, and then nothing has changed.
    if let Some(leaf) = &body.leaf_id
        && !state.catalog.set_leaf(&principal.user, &id, leaf).await?
    {
        return Err(ApiError::not_found("turn", leaf).param("leaf_id"));
    }
    if let Some(title) = &body.title {
        state.catalog.rename(&principal.user, &id, title, now_ms()).await?;
    }
    Ok(axum::Json(find_conversation(&state, &principal, &id).await?.into()))
}

/// Delete a conversation with its turns, their logs and calls, and files that nothing else uses.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation")), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 409, description = "A turn of it is running", body = ErrorResponse),
))]
async fn delete(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Chat)?;
    match state.catalog.delete_conversation(&principal.user, &id).await? {
        RemovalOutcome::Removed(removed) => {
            // What stays behind of a blob costs room and nothing else: the sweep at the next start finds it.
            if let Err(error) = state.blobs.collect(&*state.catalog, &removed.blobs).await {
                tracing::warn!(%error, "blobs of a deleted conversation were not removed");
            }
            Ok(StatusCode::NO_CONTENT)
        }
        RemovalOutcome::StillRunning { turn_id } => {
            Err(ApiError::conflict("turn_running", "a turn of this conversation is still running")
                .remedy(format!("cancel it first: POST /v1/turns/{turn_id}/cancel"))
                .with_extra("turn_id", turn_id))
        }
        RemovalOutcome::NotFound => Err(conversation_not_found(&id)),
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
