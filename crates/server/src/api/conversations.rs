//! Conversations: made, listed, searched, renamed, deleted. Each is a tree of turns. // R: S4

mod fork;
mod travelling;
mod tree;

pub use travelling::IMPORT_BYTES_MAX;

use super::page::{Listed, PageQuery};
use crate::error::{ApiError, ErrorBody};
use crate::extract::{Json, Path, Query};
use crate::portable::mint;
use crate::principal::{Principal, Scope};
use crate::state::AppState;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use throughline_store::catalog::{
    ConversationSummary, Hit, HitPart, NewConversation, Parent, Removed, TitleBy, TurnSummary,
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
        .merge(travelling::routes())
}

/// A conversation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Conversation {
    /// Its id.
    #[schema(example = "conv_01a1fe3a01c37659bcb2d47e8bf4ff6e")]
    pub id: String,
    /// Given, or the first words of the first input.
    pub title: String,
    /// `given`, or `input` = the first words of the first input.
    #[schema(example = "input")]
    pub title_by: &'static str,
    /// The turn that a new one continues if nothing else is said.
    pub leaf_id: Option<String>,
    /// How many turns it has, all branches counted.
    pub turns: u64,
    /// The turn that runs in it now.
    pub running_turn_id: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When something last happened in it, in milliseconds since 1970.
    pub updated_at: i64,
}

impl From<ConversationSummary> for Conversation {
    fn from(summary: ConversationSummary) -> Self {
        let ConversationSummary { conversation: row, turns, running_turn_id } = summary;
        Self {
            id: row.id,
            title: visible::escape_prose(&row.title).into_owned(),
            title_by: match row.title_by {
                TitleBy::Input => "input",
                TitleBy::Given => "given",
            },
            leaf_id: row.leaf_id,
            turns,
            running_turn_id,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// What a turn continues.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParentTurn {
    /// A turn of the same conversation.
    pub turn_id: String,
    /// Only up to this event of it; absent = all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

impl From<Parent> for ParentTurn {
    fn from(parent: Parent) -> Self {
        Self { turn_id: parent.turn_id, seq: parent.seq }
    }
}

/// A turn in a tree. Turns with the same parent are siblings: with another input an edit, with the same a regeneration.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TurnNode {
    /// Its id.
    pub id: String,
    /// What it continues; absent = it begins the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentTurn>,
    /// Id of the answer.
    pub message_id: String,
    /// Which agent answered.
    pub agent: String,
    /// Which model, as `upstream/model`.
    pub model: Option<String>,
    /// The beginning of the input.
    pub input: String,
    /// The beginning of the answer.
    pub answer: String,
    /// `running`, or how it ended.
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

/// What is to be different. What is not named stays.
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
pub struct Found {
    /// In which conversation.
    pub conversation_id: String,
    /// Its title.
    pub title: String,
    /// In which turn; absent = in the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// `title`, `input` or `answer`.
    pub part: &'static str,
    /// What stands around it.
    pub snippet: String,
    /// Milliseconds since 1970.
    pub at: i64,
}

impl From<Hit> for Found {
    fn from(hit: Hit) -> Self {
        Self {
            conversation_id: hit.conversation_id,
            title: visible::escape_prose(&hit.title).into_owned(),
            turn_id: hit.turn_id,
            part: match hit.part {
                HitPart::Title => "title",
                HitPart::Input => "input",
                HitPart::Answer => "answer",
            },
            snippet: visible::escape_prose(&hit.snippet).into_owned(),
            at: hit.at,
        }
    }
}

/// Which conversations.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only those with this text in title, input or answer, whatever its case.
    q: Option<String>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// What is looked for.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// The text. `%`, `_` and `*` mean themselves.
    q: String,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Most rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

fn no_conversation(id: &str) -> ApiError {
    ApiError::not_found("conversation", id)
}

async fn find(state: &AppState, principal: &Principal, id: &str) -> Result<ConversationSummary, ApiError> {
    state.catalog.conversation(&principal.user, id).await?.ok_or_else(|| no_conversation(id))
}

/// Make a conversation without turns.
///
/// Not needed before a first turn: `POST /v1/turns` makes one too.
#[utoipa::path(post, path = "/v1/conversations", tag = "conversations", request_body = CreateConversation, responses(
    (status = 201, description = "It is there", body = Conversation),
    (status = 400, description = "It cannot be made like this", body = ErrorBody),
))]
async fn create(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<CreateConversation>,
) -> Result<Response, ApiError> {
    principal.need(Scope::Chat)?;
    let id = mint("conv_");
    let new = NewConversation { id: id.clone(), title: body.title, created_at: now() };
    state.catalog.create_conversation(&principal.user, new).await?;
    created(&state, &principal, &id).await
}

async fn created(state: &AppState, principal: &Principal, id: &str) -> Result<Response, ApiError> {
    let conversation = Conversation::from(find(state, principal, id).await?);
    let location = format!("/v1/conversations/{id}");
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(conversation)).into_response())
}

/// List conversations, those with the latest events first.
#[utoipa::path(get, path = "/v1/conversations", tag = "conversations", params(ListQuery), responses(
    (status = 200, description = "A part of the list", body = Listed<Conversation>),
    (status = 400, description = "A query that cannot be answered", body = ErrorBody),
    (status = 503, description = "With `q`: too many searches wait; ask again", body = ErrorBody),
))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<Listed<Conversation>>, ApiError> {
    principal.need(Scope::Chat)?;
    let page = PageQuery::request(query.cursor, query.limit)?;
    let found = state.catalog.conversations(&principal.user, query.q.as_deref(), &page).await?;
    Ok(axum::Json(Listed::of(found, Conversation::from)))
}

/// Look for a text in titles, inputs and answers.
#[utoipa::path(get, path = "/v1/search", tag = "conversations", params(SearchQuery), responses(
    (status = 200, description = "Places with what stands around them, newest first", body = Listed<Found>),
    (status = 400, description = "A query that cannot be answered", body = ErrorBody),
    (status = 503, description = "Too many searches wait; ask again", body = ErrorBody),
))]
async fn search(
    State(state): State<AppState>,
    principal: Principal,
    Query(query): Query<SearchQuery>,
) -> Result<axum::Json<Listed<Found>>, ApiError> {
    principal.need(Scope::Chat)?;
    let page = PageQuery::request(query.cursor, query.limit)?;
    let found = state.catalog.search(&principal.user, &query.q, &page).await?;
    Ok(axum::Json(Listed::of(found, Found::from)))
}

/// Rename a conversation, or go to another branch of it.
#[utoipa::path(patch, path = "/v1/conversations/{conversation_id}", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Which conversation")), request_body = UpdateConversation, responses(
    (status = 200, description = "As it is now", body = Conversation),
    (status = 400, description = "It cannot be changed like this", body = ErrorBody),
    (status = 404, description = "There is none, or no such turn in it", body = ErrorBody),
))]
async fn update(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Json(body): Json<UpdateConversation>,
) -> Result<axum::Json<Conversation>, ApiError> {
    principal.need(Scope::Chat)?;
    find(&state, &principal, &id).await?;
    // The branch first: it is what can be refused, and then nothing has changed.
    if let Some(leaf) = &body.leaf_id
        && !state.catalog.set_leaf(&principal.user, &id, leaf).await?
    {
        return Err(ApiError::not_found("turn", leaf).param("leaf_id"));
    }
    if let Some(title) = &body.title {
        state.catalog.rename(&principal.user, &id, title, now()).await?;
    }
    Ok(axum::Json(find(&state, &principal, &id).await?.into()))
}

/// Delete a conversation with its turns, their logs, calls, and the files that nothing else uses.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Which conversation")), responses(
    (status = 204, description = "It is gone"),
    (status = 404, description = "There is none", body = ErrorBody),
    (status = 409, description = "A turn of it runs", body = ErrorBody),
))]
async fn delete(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    principal.need(Scope::Chat)?;
    match state.catalog.delete_conversation(&principal.user, &id).await? {
        Removed::Gone(gone) => {
            // What stays behind of a blob costs room and nothing else: the sweep at the next start finds it.
            if let Err(error) = state.blobs.collect(&*state.catalog, &gone.blobs).await {
                tracing::warn!(%error, "blobs of a deleted conversation were not removed");
            }
            Ok(StatusCode::NO_CONTENT)
        }
        Removed::StillRunning { turn_id } => {
            Err(ApiError::conflict("turn_running", "a turn of this conversation is still running")
                .remedy(format!("cancel it first: POST /v1/turns/{turn_id}/cancel"))
                .with("turn_id", turn_id))
        }
        Removed::Absent => Err(no_conversation(&id)),
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
