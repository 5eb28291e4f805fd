//! A conversation as a tree: all its turns in short, and the messages of one branch.

use super::{ConversationInfo, TurnNode, find_conversation};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Path, Query};
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use crate::turn_log;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use throughline_engine::fold::AssistantMessage;
use throughline_store::TurnSummary;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Maximum and default number of messages in one response.
const MESSAGES_MAX: u32 = 200;
const MESSAGES_DEFAULT: u32 = 50;

/// `/v1/conversations/{conversation_id}` and its messages.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get)).routes(routes!(list_messages))
}

/// A conversation with all its turns.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct ConversationTree {
    /// The conversation.
    #[serde(flatten)]
    pub conversation: ConversationInfo,
    /// All its turns, oldest first: a tree by `parent`.
    pub tree: Vec<TurnNode>,
}

/// One message of a branch.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct BranchMessage {
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
pub(super) struct BranchMessages {
    /// Its last turn.
    pub leaf_id: Option<String>,
    /// Oldest first.
    pub messages: Vec<BranchMessage>,
    /// `before` of the part in front of this one; absent = it begins here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// `after` of the part behind this one; absent = it ends here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Selection of messages.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MessagesQuery {
    /// The last turn of the branch; absent = the conversation's leaf.
    leaf: Option<String>,
    /// Only messages before this turn: `before` of the previous response.
    before: Option<String>,
    /// Only messages after this turn: `after` of the previous response.
    after: Option<String>,
    /// Messages on both sides of this turn. If it is not on the branch, the branch is one that goes through it.
    around: Option<String>,
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
    let conversation = ConversationInfo::read(&state, find_conversation(&state, &principal, &id).await?);
    let tree = state.catalog.tree(&principal.user, &id).await?;
    Ok(axum::Json(ConversationTree { conversation, tree: tree.into_iter().map(TurnNode::from).collect() }))
}

/// List the messages of one branch.
#[utoipa::path(get, path = "/v1/conversations/{conversation_id}/messages", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation"), MessagesQuery), responses(
    (status = 200, description = "Part of the branch, oldest first", body = BranchMessages),
    (status = 400, description = "Invalid query", body = ErrorResponse),
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
    if [&query.before, &query.after, &query.around].into_iter().flatten().count() > 1 {
        let what = "only one of `before`, `after` and `around` can be answered";
        return Err(ApiError::bad_request("invalid_value", what).param("around"));
    }
    let user = principal.user.as_str();
    let conversation = find_conversation(&state, &principal, &id).await?.conversation;
    let Some(mut leaf) = query.leaf.or(conversation.leaf_id) else {
        return Ok(axum::Json(BranchMessages {
            leaf_id: None,
            messages: Vec::new(),
            before: None,
            after: None,
        }));
    };
    let mut path = branch_path(&state, user, &id, &leaf).await?;
    if let Some(around) = &query.around
        && !path.iter().any(|(turn, _)| turn == around)
    {
        // 404 for a turn of another conversation.
        branch_path(&state, user, &id, around).await?;
        leaf = newest_leaf(state.catalog.tree(user, &id).await?, around);
        path = branch_path(&state, user, &id, &leaf).await?;
    }
    let position = |wanted: &str, param: &str| {
        let at = path.iter().position(|(turn, _)| turn == wanted);
        at.ok_or_else(|| ApiError::not_found("turn", wanted).param(param))
    };
    let (len, limit) = (path.len(), limit as usize);
    let (start, end) = if let Some(before) = &query.before {
        let end = position(before, "before")?;
        (end.saturating_sub(limit), end)
    } else if let Some(after) = &query.after {
        let start = position(after, "after")? + 1;
        (start, len.min(start + limit))
    } else if let Some(around) = &query.around {
        // As many as requested, if the branch has them, at any position of the turn.
        let start = position(around, "around")?.saturating_sub(limit / 2).min(len.saturating_sub(limit));
        (start, len.min(start + limit))
    } else {
        (len.saturating_sub(limit), len)
    };
    let part = path.get(start..end).unwrap_or_default();
    let before = part.first().filter(|_| start > 0).map(|(turn, _)| turn.clone());
    let after = part.last().filter(|_| end < len).map(|(turn, _)| turn.clone());
    let messages = branch_messages(&state, user, part).await?;
    Ok(axum::Json(BranchMessages { leaf_id: Some(leaf), messages, before, after }))
}

/// The messages of a part of a branch.
pub(super) async fn branch_messages(
    state: &AppState,
    user: &str,
    part: &[(String, Option<u64>)],
) -> Result<Vec<BranchMessage>, ApiError> {
    let mut messages = Vec::with_capacity(part.len());
    for (turn_id, cut_at) in part {
        let Some(row) = state.catalog.turn(user, turn_id).await? else { continue };
        let message = turn_log::message_of(&*state.log, &row).await?;
        let status = row.status().to_owned();
        messages.push(BranchMessage { turn_id: turn_id.clone(), cut_at: *cut_at, status, message });
    }
    Ok(messages)
}

/// The end of the newest branch from a turn: at each step the newest turn that continues all of the previous
/// one.
fn newest_leaf(tree: Vec<TurnSummary>, from: &str) -> String {
    // Oldest first, so that the newest one stays.
    let next: HashMap<String, String> = tree
        .into_iter()
        .filter_map(|turn| {
            let parent = turn.parent.filter(|parent| parent.seq.is_none())?;
            Some((parent.turn_id, turn.id))
        })
        .collect();
    let mut leaf = from;
    while let Some(turn) = next.get(leaf) {
        leaf = turn;
    }
    leaf.to_owned()
}

/// The turns from the beginning of a conversation to one of its turns, each with where the branch leaves it.
pub(super) async fn branch_path(
    state: &AppState,
    user: &str,
    conversation: &str,
    leaf: &str,
) -> Result<Vec<(String, Option<u64>)>, ApiError> {
    let no_turn = || ApiError::not_found("turn", leaf);
    let row = state.catalog.turn(user, leaf).await?.ok_or_else(no_turn)?;
    if row.conversation_id.as_deref() != Some(conversation) {
        return Err(no_turn());
    }
    let path = state.catalog.path(user, leaf).await?;
    Ok(path.into_iter().map(|turn| (turn.id, turn.cut_at)).collect())
}
