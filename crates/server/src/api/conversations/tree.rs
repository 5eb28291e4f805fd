//! A conversation as a tree: all its turns in short, and the messages of one branch. // R: S4

use super::{ConversationInfo, TurnNode, find_conversation};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Path, Query};
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use crate::turn_log;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use throughline_engine::fold::AssistantMessage;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Most messages of one answer, and how many without a wish.
const MESSAGES_MAX: u32 = 200;
const MESSAGES_DEFAULT: u32 = 50;

/// `/v1/conversations/{conversation_id}` and its messages.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get)).routes(routes!(list_messages))
}

/// A conversation with all its turns.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConversationTree {
    /// The conversation.
    #[serde(flatten)]
    pub conversation: ConversationInfo,
    /// All its turns, oldest first: a tree by `parent`.
    pub tree: Vec<TurnNode>,
}

/// One message of a branch.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BranchMessage {
    /// The turn that wrote it.
    pub turn_id: String,
    /// Event of the parent after which the branch continues; absent if it continues after the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_at: Option<u64>,
    /// `running`, or the status at its end.
    pub status: String,
    /// The message of the turn: the user's input and the blocks of the answer.
    #[schema(value_type = crate::api::openapi::MessageSchema)]
    pub message: AssistantMessage,
}

/// Messages of a branch, oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BranchMessages {
    /// Its last turn.
    pub leaf_id: Option<String>,
    /// Oldest first.
    pub messages: Vec<BranchMessage>,
    /// `before` of the part in front of this one; absent = it begins here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// Selection of messages.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MessagesQuery {
    /// The last turn of the branch; absent = the conversation's leaf.
    leaf: Option<String>,
    /// Only messages before this turn: `before` of the previous response.
    before: Option<String>,
    /// Maximum number of messages, 1 to 200. Default 50, the newest.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Get a conversation with the tree of its turns.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation")), responses(
    (status = 200, description = "The conversation and its turns in short", body = ConversationTree),
    (status = 404, description = "Not found", body = ErrorResponse),
))]
async fn get(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
) -> Result<axum::Json<ConversationTree>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let conversation = ConversationInfo::from(find_conversation(&state, &principal, &id).await?);
    let tree = state.catalog.tree(&principal.user, &id).await?;
    Ok(axum::Json(ConversationTree { conversation, tree: tree.into_iter().map(TurnNode::from).collect() }))
}

/// List the messages of one branch.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/messages", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation"), MessagesQuery), responses(
    (status = 200, description = "Part of the branch, oldest first", body = BranchMessages),
    (status = 404, description = "Conversation or turn not found", body = ErrorResponse),
))]
async fn list_messages(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Query(query): Query<MessagesQuery>,
) -> Result<axum::Json<BranchMessages>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let limit = query.limit.unwrap_or(MESSAGES_DEFAULT);
    if limit == 0 || limit > MESSAGES_MAX {
        let what = format!("`limit` is from 1 to {MESSAGES_MAX}");
        return Err(ApiError::bad_request("invalid_value", what).param("limit"));
    }
    let conversation = find_conversation(&state, &principal, &id).await?.conversation;
    let Some(leaf) = query.leaf.or(conversation.leaf_id) else {
        return Ok(axum::Json(BranchMessages { leaf_id: None, messages: Vec::new(), before: None }));
    };
    let mut path = branch_path(&state, &principal, &id, &leaf).await?;
    if let Some(before) = &query.before {
        let at = path.iter().position(|(turn, _)| turn == before);
        path.truncate(at.ok_or_else(|| ApiError::not_found("turn", before).param("before"))?);
    }
    let skipped = path.len().saturating_sub(limit as usize);
    let part = path.split_off(skipped);
    let before = part.first().filter(|_| skipped > 0).map(|(turn, _)| turn.clone());
    let mut messages = Vec::with_capacity(part.len());
    for (turn_id, cut_at) in part {
        let Some(row) = state.catalog.turn(&principal.user, &turn_id).await? else { continue };
        let message = turn_log::message_of(&*state.log, &row).await?;
        messages.push(BranchMessage { turn_id, cut_at, status: row.status().to_owned(), message });
    }
    Ok(axum::Json(BranchMessages { leaf_id: Some(leaf), messages, before }))
}

/// The turns from the beginning of a conversation to one of its turns, each with where the branch leaves it.
pub(super) async fn branch_path(
    state: &AppState,
    principal: &Principal,
    conversation: &str,
    leaf: &str,
) -> Result<Vec<(String, Option<u64>)>, ApiError> {
    let no_turn = || ApiError::not_found("turn", leaf);
    let row = state.catalog.turn(&principal.user, leaf).await?.ok_or_else(no_turn)?;
    if row.conversation_id.as_deref() != Some(conversation) {
        return Err(no_turn());
    }
    let path = state.catalog.path(&principal.user, leaf).await?;
    Ok(path.into_iter().map(|turn| (turn.id, turn.cut_at)).collect())
}
