//! Stopping a turn. // R: T8

use crate::error::{ApiError, ErrorResponse};
use crate::extract::Path;
use crate::hub::TurnState;
use crate::principal::Principal;
use crate::state::AppState;
use axum::extract::State;
use http::StatusCode;
use throughline_engine::TurnId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/turns/{turn_id}/cancel`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(cancel))
}

/// Stop a turn. What is finished stays; a second time: without waiting for tools to say how they ended.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/cancel", tag = "turns",
    params(("turn_id" = String, Path, description = "Which turn")),
    responses(
        (status = 202, description = "It will stop, or has ended before; its events tell which"),
        (status = 404, description = "There is none", body = ErrorResponse),
        (status = 503, description = "Another server runs the turn: `owner` says which", body = ErrorResponse),
    ))]
async fn cancel(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
) -> Result<StatusCode, ApiError> {
    if let TurnState::Running(control) = state.hub.control(&principal.user, &TurnId::new(turn)).await? {
        // If it ended a moment ago, that is what its events say.
        let _ = control.cancel().await;
    }
    Ok(StatusCode::ACCEPTED)
}
