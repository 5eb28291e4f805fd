//! Forks of a conversation, at any turn or at any event of a turn.

use super::transfer::{import_conversation, portable_turn};
use super::tree::branch_path;
use super::{ConversationInfo, find_conversation};
use crate::error::{ApiError, ErrorResponse};
use crate::export::{PortableConversation, PortableFiling};
use crate::extract::{Json, Path};
use crate::principal::{KeyScope, Principal};
use crate::stamps::now_ms;
use crate::state::AppState;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use throughline_engine::EventSeq;
use throughline_store::TurnParent;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/conversations/{conversation_id}/fork`.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(fork))
}

/// Where a conversation is to go on in another way, as a conversation of its own.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkConversation {
    /// The last turn that is taken along.
    pub turn_id: String,
    /// Only up to this event of it; absent = all of it.
    #[serde(default)]
    pub seq: Option<u64>,
    /// Absent = that of the conversation.
    #[serde(default)]
    pub title: Option<String>,
}

/// Fork a conversation at a turn, or at an event of it, into a new conversation.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}/fork", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Id of the conversation")), request_body = ForkConversation, responses(
    (status = 201, description = "A new conversation with copies of the turns up to there", body = ConversationInfo),
    (status = 400, description = "Event not found", body = ErrorResponse),
    (status = 404, description = "Conversation or turn not found", body = ErrorResponse),
))]
async fn fork(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Json(body): Json<ForkConversation>,
) -> Result<Response, ApiError> {
    principal.require(KeyScope::Chat)?;
    let row = find_conversation(&state, &principal, &id).await?.conversation;
    let path = branch_path(&state, &principal.user, &id, &body.turn_id).await?;
    let mut portable = PortableConversation {
        id: row.id,
        title: Some(body.title.unwrap_or(row.title)),
        leaf_id: Some(body.turn_id.clone()),
        created_at: now_ms(),
        filing: PortableFiling { folder: row.folder, tags: row.tags, ..PortableFiling::default() },
        turns: Vec::with_capacity(path.len()),
    };
    let mut parent: Option<TurnParent> = None;
    for (turn_id, cut_at) in path {
        let mut turn = portable_turn(&state, &principal, &turn_id, parent.take()).await?;
        if turn_id == body.turn_id {
            if let Some(seq) = body.seq
                && (seq == 0 || seq > turn.events.len() as u64)
            {
                let what = format!("turn `{turn_id}` has events 1 to {}", turn.events.len());
                return Err(ApiError::bad_request("no_such_event", what).param("seq"));
            }
            turn.close(body.seq.map(EventSeq));
        } else {
            turn.close(cut_at.map(EventSeq));
        }
        // The copy was cut itself, so the next turn continues after the whole copy.
        parent = Some(TurnParent::after_turn(turn_id));
        portable.turns.push(turn);
    }
    import_conversation(&state, &principal, portable).await
}
