//! The user's turns that are running or parked, which count against the limits of its keys.

use crate::api::page::ListPage;
use crate::error::{ApiError, ErrorResponse};
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use crate::turn_manager::{RunningTurn, WaitsFor};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// A turn that has not ended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct OpenTurnInfo {
    /// Id of the turn: `GET /v1/turns/{turn_id}` shows it, `POST …/cancel` stops it.
    pub turn_id: String,
    /// The conversation that it belongs to; absent = none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Name of the agent.
    pub agent: String,
    /// `upstream/model` that it began with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Milliseconds since 1970.
    pub started_at: i64,
    /// Absent: it runs. Otherwise it is parked until a person or a client gives this; it does not count against
    /// `turns_per_key_max`. Over `parked_turns_per_key_max` the oldest that waits for `tool_results` is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<WaitsFor>,
    /// Since when it is parked, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parked_at: Option<i64>,
}

impl From<RunningTurn> for OpenTurnInfo {
    fn from(turn: RunningTurn) -> Self {
        Self {
            turn_id: turn.turn_id.as_str().to_owned(),
            conversation_id: turn.conversation_id,
            agent: turn.agent,
            model: turn.model,
            started_at: turn.started_at,
            waits_for: turn.parked.map(|(waits_for, _)| waits_for),
            parked_at: turn.parked.map(|(_, since)| since),
        }
    }
}

/// List the turns that run on this server or are parked here, oldest first, on one page.
#[utoipa::path(get, path = "/v1/turns", tag = "turns", responses(
    (status = 200, description = "All running turns", body = ListPage<OpenTurnInfo>),
    (status = 403, description = "The key lacks a scope", body = ErrorResponse),
))]
pub(super) async fn list(
    State(state): State<AppState>,
    principal: Principal,
) -> Result<axum::Json<ListPage<OpenTurnInfo>>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let turns = state.turn_manager.turns_of(&principal.user);
    Ok(axum::Json(ListPage::complete(turns.into_iter().map(OpenTurnInfo::from).collect())))
}
