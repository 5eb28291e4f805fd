//! Going on in another way from any turn, or any event of one. // R: S4

use super::travelling::{take_in, travelling};
use super::tree::branch;
use super::{Conversation, find, now};
use crate::error::{ApiError, ErrorBody};
use crate::extract::{Json, Path};
use crate::portable::Portable;
use crate::principal::{Principal, Scope};
use crate::state::AppState;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use throughline_engine::Seq;
use throughline_store::catalog::Parent;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/conversations/{conversation_id}/fork`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(fork))
}

/// Where a conversation is to go on in another way, as a conversation of its own.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Fork {
    /// The last turn that is taken along.
    pub turn_id: String,
    /// Only up to this event of it; absent = all of it.
    #[serde(default)]
    pub seq: Option<u64>,
    /// Absent = that of the conversation.
    #[serde(default)]
    pub title: Option<String>,
}

/// Go on in another way from any turn, or any event of one, as a conversation of its own.
#[utoipa::path(post, path = "/v1/conversations/{conversation_id}/fork", tag = "conversations",
    params(("conversation_id" = String, Path, description = "Which conversation")), request_body = Fork, responses(
    (status = 201, description = "A new conversation with copies of the turns up to there", body = Conversation),
    (status = 400, description = "There is no such event", body = ErrorBody),
    (status = 404, description = "There is none, or no such turn in it", body = ErrorBody),
))]
async fn fork(
    State(state): State<AppState>,
    principal: Principal,
    Path(id): Path<String>,
    Json(body): Json<Fork>,
) -> Result<Response, ApiError> {
    principal.need(Scope::Chat)?;
    let row = find(&state, &principal, &id).await?.conversation;
    let path = branch(&state, &principal, &id, &body.turn_id).await?;
    let mut portable = Portable {
        id: row.id,
        title: Some(body.title.unwrap_or(row.title)),
        leaf_id: Some(body.turn_id.clone()),
        created_at: now(),
        turns: Vec::with_capacity(path.len()),
    };
    let mut parent: Option<Parent> = None;
    for (turn_id, cut_at) in path {
        let mut turn = travelling(&state, &principal, &turn_id, parent.take()).await?;
        if turn_id == body.turn_id {
            if let Some(seq) = body.seq
                && (seq == 0 || seq > turn.events.len() as u64)
            {
                let what = format!("turn `{turn_id}` has events 1 to {}", turn.events.len());
                return Err(ApiError::bad_request("no_such_event", what).param("seq"));
            }
            turn.close(body.seq.map(Seq));
        } else {
            turn.close(cut_at.map(Seq));
        }
        // The copy was cut itself, so what follows stands behind all of it.
        parent = Some(Parent::whole(turn_id));
        portable.turns.push(turn);
    }
    take_in(&state, &principal, portable).await
}
