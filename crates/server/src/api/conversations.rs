//! Conversations: made, listed, searched, renamed, filed, deleted and brought back. Each is a tree of turns.

mod fork;
pub(crate) mod shares;
mod transfer;
mod tree;

use super::keys::present;
use super::page::{ListPage, PageQuery};
use super::rating::RatingInfo;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path, Query};
use crate::maintenance::RESTORE_TIME;
use crate::principal::{KeyScope, Principal};
use crate::stamps::{new_id, now_ms};
use crate::state::AppState;
use crate::turn_manager::WaitsFor;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use throughline_engine::TurnId;
use throughline_store::{
    ConversationChange, ConversationFilter, ConversationLabels, ConversationSummary, ConversationUsage,
    NamedCount, NewConversation, RemovalOutcome, SearchHit, SearchHitPart, TitleSource, TurnParent,
    TurnSummary,
};
use throughline_wire::display_escape;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/conversations` and `/v1/search`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(update, delete))
        .routes(routes!(restore))
        .routes(routes!(list_labels))
        .routes(routes!(get_usage))
        .routes(routes!(search))
        .merge(tree::routes())
        .merge(fork::routes())
        .merge(shares::routes())
        .merge(transfer::routes())
}

/// A conversation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ConversationInfo {
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
    /// True if a call of that turn waits for a person.
    pub awaits_approval: bool,
    /// Nothing of that turn runs until a person or a client gives this; a new turn in the conversation ends it. Absent: it
    /// runs, there is none, or another server has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitsFor>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When something last happened in it, in milliseconds since 1970.
    pub updated_at: i64,
    /// Folder in which its user has put it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Tags by its user, each once.
    pub tags: Vec<String>,
    /// Since when it stands in front of the others, in milliseconds since 1970; absent = it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned_at: Option<i64>,
    /// Since when it is out of the usual list, in milliseconds since 1970; absent = it is in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_at: Option<i64>,
    /// True if it is neither listed nor searched, and removed a while after its last event.
    pub temporary: bool,
}

impl From<ConversationSummary> for ConversationInfo {
    fn from(summary: ConversationSummary) -> Self {
        let ConversationSummary { conversation: row, turns, running_turn_id, awaits_approval } = summary;
        Self {
            id: row.id,
            title: display_escape::escape_prose(&row.title).into_owned(),
            title_by: match row.title_by {
                TitleSource::FirstInput => "input",
                TitleSource::UserGiven => "given",
            },
            leaf_id: row.leaf_id,
            turns,
            running_turn_id,
            awaits_approval,
            waits_for: None,
            created_at: row.created_at,
            updated_at: row.updated_at,
            folder: row.folder.map(|name| display_escape::escape_prose(&name).into_owned()),
            tags: row.tags.iter().map(|tag| display_escape::escape_prose(tag).into_owned()).collect(),
            pinned_at: row.pinned_at,
            archived_at: row.archived_at,
            temporary: row.temporary,
        }
    }
}

impl ConversationInfo {
    /// A conversation with what its turn waits for.
    fn read(state: &AppState, summary: ConversationSummary) -> Self {
        let info = Self::from(summary);
        let running = info.running_turn_id.as_deref().map(TurnId::new);
        let waits_for = running.and_then(|turn| state.turn_manager.wait_of(&turn));
        Self { waits_for, ..info }
    }
}

/// Turn that another turn continues.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParentTurn {
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
pub(crate) struct TurnNode {
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
    /// Rating by its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<RatingInfo>,
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
            rating: turn.rating.map(RatingInfo::from),
        }
    }
}

/// A new conversation.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CreateConversation {
    /// Absent = the first words of the first input, when it comes.
    #[schema(example = "Weather")]
    pub title: Option<String>,
    /// True for one that is neither listed nor searched, and is removed a day after its last event.
    pub temporary: bool,
}

/// Changes to a conversation. Absent fields stay as they are.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UpdateConversation {
    /// Its title; empty = the first words of the first input again.
    pub title: Option<String>,
    /// The turn that a new one continues: another branch.
    pub leaf_id: Option<String>,
    /// Folder to put it in; `null` = out of its folder.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub folder: Option<Option<String>>,
    /// All of its tags.
    pub tags: Option<Vec<String>>,
    /// To the front of the list, or back. What is pinned is not archived.
    pub pinned: Option<bool>,
    /// Out of the usual list, or back. What is archived is not pinned.
    pub archived: Option<bool>,
    /// `false` = a temporary one stays for good, as it does when it is filed.
    pub temporary: Option<bool>,
}

impl UpdateConversation {
    /// The change of its filing; `None` = nothing of that changes.
    fn filing(self) -> Result<Option<ConversationChange>, ApiError> {
        if self.temporary == Some(true) {
            return Err(ApiError::bad_request(
                "invalid_value",
                "an existing conversation cannot become temporary",
            )
            .param("temporary")
            .remedy("create a temporary one: POST /v1/conversations {\"temporary\": true}"));
        }
        let Self { folder, tags, pinned, archived, temporary, .. } = self;
        let change = ConversationChange { folder, tags, pinned, archived, temporary };
        Ok((change != ConversationChange::default()).then_some(change))
    }
}

/// A folder or a tag.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ConversationLabel {
    /// Its name.
    pub name: String,
    /// Number of conversations that have it and are not archived.
    pub conversations: u64,
}

/// Folders and tags in use, by name.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ConversationLabelList {
    pub folders: Vec<ConversationLabel>,
    pub tags: Vec<ConversationLabel>,
}

impl From<ConversationLabels> for ConversationLabelList {
    fn from(labels: ConversationLabels) -> Self {
        let listed = |counts: Vec<NamedCount>| {
            counts
                .into_iter()
                .map(|label| ConversationLabel { name: label.name, conversations: label.count })
                .collect()
        };
        Self { folders: listed(labels.folders), tags: listed(labels.tags) }
    }
}

/// Number of turns of a model.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ModelTurns {
    /// As `upstream/model`.
    pub model: String,
    /// Number of turns.
    pub turns: u64,
}

/// Usage of a conversation: its turns that have ended, all branches counted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ConversationUsageInfo {
    /// Number of turns.
    pub turns: u64,
    /// Tokens read by models.
    pub input_tokens: u64,
    /// Tokens read from a cache, as the upstream counts them.
    pub cached_input_tokens: u64,
    /// Tokens written by models.
    pub output_tokens: u64,
    /// Time in which models wrote, in milliseconds.
    pub writing_ms: u64,
    /// Time from the beginning to the end of each turn, in milliseconds: with tools, and with waiting for people.
    pub turn_ms: u64,
    /// Number of tool calls.
    pub calls: u64,
    /// Number of tool calls that failed.
    pub failed_calls: u64,
    /// Time in which tools ran, in milliseconds; calls side by side count apart.
    pub call_ms: u64,
    /// Turns by model, most first.
    pub models: Vec<ModelTurns>,
}

impl From<ConversationUsage> for ConversationUsageInfo {
    fn from(usage: ConversationUsage) -> Self {
        let models = usage.models.into_iter();
        Self {
            turns: usage.turns,
            input_tokens: usage.input_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            output_tokens: usage.output_tokens,
            writing_ms: usage.writing_ms,
            turn_ms: usage.turn_ms,
            calls: usage.calls,
            failed_calls: usage.failed_calls,
            call_ms: usage.call_ms,
            models: models.map(|model| ModelTurns { model: model.name, turns: model.count }).collect(),
        }
    }
}

/// A place where a text was found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SearchResult {
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
            title: display_escape::escape_prose(&hit.title).into_owned(),
            turn_id: hit.turn_id,
            part: match hit.part {
                SearchHitPart::Title => "title",
                SearchHitPart::Input => "input",
                SearchHitPart::Answer => "answer",
            },
            snippet: display_escape::escape_prose(&hit.snippet).into_owned(),
            at: hit.at,
        }
    }
}

/// Filter of a list of conversations.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConversationsQuery {
    /// Only those with this text in title, input or answer, whatever its case.
    q: Option<String>,
    /// Only those in this folder.
    folder: Option<String>,
    /// Only those with this tag.
    tag: Option<String>,
    /// Only those that are archived, or are not. Default `false`; with `q`, both.
    archived: Option<bool>,
    /// Only those that are pinned, or are not. Default: all, and without any other filter the pinned ones come first.
    pinned: Option<bool>,
    /// `next` of the previous page.
    cursor: Option<String>,
    /// Maximum number of rows, 1 to 200. Default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Kind of a deletion.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeletionQuery {
    /// `true` = at once and for good. Default: it can be brought back for 10 minutes.
    permanent: bool,
}

/// Search query.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
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
    let new = NewConversation {
        id: id.clone(),
        title: body.title,
        created_at: now_ms(),
        temporary: body.temporary,
    };
    state.catalog.create_conversation(&principal.user, new).await?;
    created_response(&state, &principal, &id).await
}

async fn created_response(state: &AppState, principal: &Principal, id: &str) -> Result<Response, ApiError> {
    let conversation = ConversationInfo::from(find_conversation(state, principal, id).await?);
    let location = format!("/v1/conversations/{id}");
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(conversation)).into_response())
}

/// List conversations, most recently active first, pinned ones in front.
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
    let ConversationsQuery { q, folder, tag, archived, pinned, .. } = query;
    let filter = ConversationFilter { text: q, folder, tag, archived, pinned };
    let rows = state.catalog.conversations(&principal.user, &filter, &page).await?;
    Ok(axum::Json(ListPage::from_page(rows, |row| ConversationInfo::read(&state, row))))
}

/// List the folders and tags of one's conversations.
#[utoipa::path(get, path = "/v1/conversations/labels", tag = "conversations", responses(
    (status = 200, description = "Folders and tags", body = ConversationLabelList),
))]
async fn list_labels(
    State(state): State<AppState>,
    principal: Principal,
) -> Result<axum::Json<ConversationLabelList>, ApiError> {
    principal.require(KeyScope::Chat)?;
    Ok(axum::Json(state.catalog.conversation_labels(&principal.user).await?.into()))
}

/// Get the usage of a conversation: turns, tokens, calls and times.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/usage", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation")), responses(
    (status = 200, description = "The usage", body = ConversationUsageInfo),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn get_usage(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<axum::Json<ConversationUsageInfo>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let usage = state.catalog.conversation_usage(&principal.user, &id).await?;
    Ok(axum::Json(usage.ok_or_else(|| conversation_not_found(&id))?.into()))
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

/// Rename or file a conversation, or select another branch of it.
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
    if let Some(leaf) = &body.leaf_id
        && !state.catalog.set_leaf(&principal.user, &id, leaf).await?
    {
        return Err(ApiError::not_found("turn", leaf).param("leaf_id"));
    }
    let title = body.title.clone();
    // What cannot be refused comes last.
    if let Some(change) = body.filing()? {
        state.catalog.change_conversation(&principal.user, &id, change, now_ms()).await?;
    }
    if let Some(title) = &title {
        state.catalog.rename(&principal.user, &id, title, now_ms()).await?;
    }
    let conversation = find_conversation(&state, &principal, &id).await?;
    Ok(axum::Json(ConversationInfo::read(&state, conversation)))
}

/// Delete a conversation with its turns, their logs and calls, and files that nothing else uses.
///
/// It is absent at once, and can be brought back for 10 minutes (`restore`) unless `permanent` is true.
#[utoipa::path(delete, path = "/v1/conversations/{conversation_id}", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation"), DeletionQuery), responses(
    (status = 204, description = "Deleted"),
    (status = 404, description = "Not found", body = ErrorResponse),
    (status = 409, description = "One of its turns is running", body = ErrorResponse),
))]
async fn delete(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Query(query): Query<DeletionQuery>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Chat)?;
    let user = principal.user.as_str();
    let remove = || async {
        if query.permanent {
            state.catalog.delete_conversation(user, &id).await
        } else {
            state.catalog.trash_conversation(user, &id, now_ms()).await
        }
    };
    let mut outcome = remove().await?;
    if let RemovalOutcome::StillRunning { turn_id } = &outcome
        && state.turn_manager.wait_for_finalize(user, turn_id).await
    {
        outcome = remove().await?;
    }
    match outcome {
        RemovalOutcome::Removed(removed) => {
            // A blob that remains only costs disk space: the sweep at the next start finds it.
            if let Err(error) = state.blobs.collect(&*state.catalog, &removed.blobs).await {
                tracing::warn!(%error, "blobs of a deleted conversation were not removed");
            }
            Ok(StatusCode::NO_CONTENT)
        }
        RemovalOutcome::StillRunning { turn_id } => Err(state.turn_manager.turn_running(&turn_id).await),
        RemovalOutcome::NotFound => Err(conversation_not_found(&id)),
    }
}

/// Bring back a conversation that was deleted at most 10 minutes ago.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}/restore", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation")), responses(
    (status = 200, description = "Restored", body = ConversationInfo),
    (status = 404, description = "Not deleted, or deleted too long ago to be restored", body = ErrorResponse),
))]
async fn restore(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<axum::Json<ConversationInfo>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let deleted_after = now_ms().saturating_sub_unsigned(RESTORE_TIME.as_millis() as u64);
    if !state.catalog.restore_conversation(&principal.user, &id, deleted_after).await? {
        return Err(ApiError::not_found("deleted conversation", &id));
    }
    let conversation = find_conversation(&state, &principal, &id).await?;
    Ok(axum::Json(ConversationInfo::read(&state, conversation)))
}
