//! Stopping a turn.

use crate::error::{ApiError, ErrorResponse};
use crate::extract::Path;
use crate::principal::Principal;
use crate::state::AppState;
use crate::turn_log;
use axum::extract::State;
use http::StatusCode;
use throughline::CommandAck;
use throughline_engine::TurnId;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/turns/{turn_id}/cancel`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(cancel))
}

/// Cancel a turn. Finished work stays. A second request does not wait for running tools to end.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/cancel", tag = "turns",
    params(("turn_id" = String, Path, description = "Id of the turn")),
    responses(
        (status = 202, description = "Accepted: the turn will stop or has already ended; see its events"),
        (status = 404, description = "Not found", body = ErrorResponse),
        (status = 503, description = "Another server runs the turn and took no notice: `owner` names it", body = ErrorResponse),
    ))]
async fn cancel(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
) -> Result<StatusCode, ApiError> {
    cancel_turn(&state, &principal, &TurnId::new(turn)).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Cancels a turn, if it is not over.
pub(crate) async fn cancel_turn(
    state: &AppState,
    principal: &Principal,
    turn: &TurnId,
) -> Result<(), ApiError> {
    let turn_state = state.turn_manager.lookup(&principal.user, turn).await?;
    let Some(control) = turn_state.into_control(turn)? else { return Ok(()) };
    match control.cancel().await {
        CommandAck::Accepted => Ok(()),
        // The log tells whether the turn ended a moment ago.
        CommandAck::TurnEnded => turn_log::check_end(&*state.log, turn).await,
    }
}
