//! Calls of a running turn: stop one, or answer one that the caller was asked to run. // R: L2, T8

use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::hub::TurnState;
use crate::principal::Principal;
use crate::state::AppState;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::engine::{ClientAnswer, ClientStatus};
use throughline::{CancelCallResult, ClientAnswerResult};
use throughline_engine::TurnId;
use throughline_wire::CallId;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/turns/{turn_id}/calls/…`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(cancel_call)).routes(routes!(submit_call_result))
}

/// How a call ended that a client was asked to run.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CallResult {
    /// Whether it worked.
    #[schema(value_type = String)]
    pub status: ClientStatus,
    /// What it produced, or what went wrong: a text as it is, anything else as JSON.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub output: Value,
    /// Whether it took effect where the user can see it.
    #[serde(default)]
    pub applied: Option<bool>,
}

/// What became of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallAck {
    /// `accepted`, `cancelling` or `ended`.
    pub status: &'static str,
}

impl CallResult {
    /// As the library takes it.
    pub fn into_answer(self) -> ClientAnswer {
        ClientAnswer { status: self.status, output: self.output, applied: self.applied }
    }
}

/// Stop one call; the turn goes on.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/calls/{tool_id}/cancel", tag = "turns",
    params(("turn_id" = String, Path, description = "Which turn"), ("tool_id" = String, Path, description = "Which call")),
    responses(
        (status = 202, description = "It ends, or has ended before; its `tool_result` tells how", body = CallAck),
        (status = 404, description = "There is no such turn or call", body = ErrorResponse),
        (status = 503, description = "Another server runs the turn: `owner` says which", body = ErrorResponse),
    ))]
async fn cancel_call(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, call)): Path<(String, String)>,
) -> Result<(StatusCode, axum::Json<CallAck>), ApiError> {
    let turn_state = state.hub.control(&principal.user, &TurnId::new(turn)).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(stop_call(turn_state, &call).await?)))
}

/// Stops one call of a turn, whether it runs or is over.
pub async fn stop_call(turn_state: TurnState, call: &str) -> Result<CallAck, ApiError> {
    let outcome = match turn_state {
        TurnState::Running(control) => control.cancel_call(CallId::new(call)).await,
        TurnState::Ended(_) => CancelCallResult::TurnEnded,
    };
    match outcome {
        CancelCallResult::Cancelled => Ok(CallAck { status: "cancelling" }),
        CancelCallResult::AlreadyEnded | CancelCallResult::TurnEnded => Ok(CallAck { status: "ended" }),
        CancelCallResult::Unknown => Err(ApiError::not_found("call", call)),
    }
}

/// Tell how a call ended that you were asked to run. The first answer in time counts.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/calls/{tool_id}/result", tag = "turns", request_body = CallResult,
    params(("turn_id" = String, Path, description = "Which turn"), ("tool_id" = String, Path, description = "Which call")),
    responses(
        (status = 200, description = "It is the call's outcome", body = CallAck),
        (status = 404, description = "There is no such turn, or no client was asked to run such a call", body = ErrorResponse),
        (status = 409, description = "The call has an outcome already", body = ErrorResponse),
        (status = 410, description = "The call's time is over", body = ErrorResponse),
        (status = 503, description = "Another server runs the turn: `owner` says which", body = ErrorResponse),
    ))]
async fn submit_call_result(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, call)): Path<(String, String)>,
    Json(body): Json<CallResult>,
) -> Result<axum::Json<CallAck>, ApiError> {
    state.hub.control(&principal.user, &TurnId::new(turn)).await?;
    let id = CallId::new(call.as_str());
    call_ack(state.app.answer_client_call(Some(principal.user), &id, body.into_answer()).await, &call)
        .map(axum::Json)
}

/// What an answer is told.
pub fn call_ack(outcome: ClientAnswerResult, call: &str) -> Result<CallAck, ApiError> {
    match outcome {
        ClientAnswerResult::Accepted => Ok(CallAck { status: "accepted" }),
        ClientAnswerResult::AlreadyClosed => {
            Err(ApiError::conflict("call_ended", format!("call `{call}` has an outcome already")))
        }
        ClientAnswerResult::TooLate => {
            Err(ApiError::gone("too_late", format!("the time of call `{call}` is over")))
        }
        // What is another user's is not there.
        ClientAnswerResult::WrongUser | ClientAnswerResult::Unknown => {
            Err(ApiError::not_found("call that a client was asked to run", call))
        }
    }
}
