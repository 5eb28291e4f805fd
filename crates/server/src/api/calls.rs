//! Calls of a running turn: cancel one, or answer one that a client runs.

use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::principal::Principal;
use crate::state::AppState;
use crate::turn_log;
use crate::turn_manager::TurnLookup;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::engine::{ClientAnswer, ClientStatus};
use throughline::{CancelCallResult, ClientAnswerResult};
use throughline_engine::TurnId;
use throughline_store::Log;
use throughline_wire::CallId;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/turns/{turn_id}/calls/…`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(cancel_call)).routes(routes!(submit_call_result))
}

/// Result of a call that a client was asked to run.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallResult {
    /// Status of the call.
    #[schema(value_type = String)]
    pub status: ClientStatus,
    /// Output of the call, or its error: text as it is, anything else as JSON.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub output: Value,
    /// True if the call took effect where the user can see it.
    #[serde(default)]
    pub applied: Option<bool>,
}

/// Receipt for a call's result or cancellation.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct CallAck {
    /// `accepted`, `cancelling` or `ended`.
    pub status: &'static str,
}

impl CallResult {
    /// The answer in the form that the library takes.
    pub(crate) fn into_answer(self) -> ClientAnswer {
        ClientAnswer { status: self.status, output: self.output, applied: self.applied }
    }
}

/// Cancel one call; the turn continues.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/calls/{tool_id}/cancel", tag = "turns",
    params(("turn_id" = String, Path, description = "Id of the turn"), ("tool_id" = String, Path, description = "Id of the call")),
    responses(
        (status = 202, description = "Accepted: the call is ending or has ended; see its \
         `tool_result`", body = CallAck),
        (status = 404, description = "Turn or call not found", body = ErrorResponse),
        (status = 503, description = "Another server runs the turn and took no notice: `owner` names it", body = ErrorResponse),
    ))]
async fn cancel_call(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, call)): Path<(String, String)>,
) -> Result<(StatusCode, axum::Json<CallAck>), ApiError> {
    let turn_state = state.turn_manager.lookup(&principal.user, &TurnId::new(turn.as_str())).await?;
    let ack = stop_call(&*state.log, turn_state, &TurnId::new(turn), &call).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(ack)))
}

/// Stops one call of a turn, whether it runs or is over.
pub(crate) async fn stop_call(
    log: &dyn Log,
    turn_state: TurnLookup,
    turn: &TurnId,
    call: &str,
) -> Result<CallAck, ApiError> {
    let Some(control) = turn_state.into_control(turn)? else { return Ok(CallAck { status: "ended" }) };
    match control.cancel_call(CallId::new(call)).await {
        CancelCallResult::Cancelled => Ok(CallAck { status: "cancelling" }),
        CancelCallResult::AlreadyEnded => Ok(CallAck { status: "ended" }),
        CancelCallResult::TurnEnded => {
            turn_log::check_end(log, turn).await.map(|()| CallAck { status: "ended" })
        }
        CancelCallResult::Unknown => Err(ApiError::not_found("call", call)),
    }
}

/// Submit the result of a call that the client was asked to run. The first result in time counts.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/calls/{tool_id}/result", tag = "turns", request_body = CallResult,
    params(("turn_id" = String, Path, description = "Id of the turn"), ("tool_id" = String, Path, description = "Id of the call")),
    responses(
        (status = 200, description = "Accepted as the call's outcome", body = CallAck),
        (status = 404, description = "Turn not found, or the call is not one that a client runs", body = ErrorResponse),
        (status = 409, description = "The call has an outcome already", body = ErrorResponse),
        (status = 410, description = "The call timed out", body = ErrorResponse),
        (status = 503, description = "Another server runs the turn and took no notice: `owner` names it", body = ErrorResponse),
    ))]
async fn submit_call_result(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, call)): Path<(String, String)>,
    Json(body): Json<CallResult>,
) -> Result<axum::Json<CallAck>, ApiError> {
    let turn = TurnId::new(turn);
    if let TurnLookup::NotRunning = state.turn_manager.lookup(&principal.user, &turn).await? {
        return Err(turn_log::not_running(&turn));
    }
    let id = CallId::new(call.as_str());
    call_ack(state.app.answer_client_call(Some(principal.user), &id, body.into_answer()).await, &call)
        .map(axum::Json)
}

/// Response to a submitted result.
pub(crate) fn call_ack(outcome: ClientAnswerResult, call: &str) -> Result<CallAck, ApiError> {
    match outcome {
        ClientAnswerResult::Accepted => Ok(CallAck { status: "accepted" }),
        ClientAnswerResult::AlreadyClosed => {
            Err(ApiError::conflict("call_ended", format!("call `{call}` has an outcome already")))
        }
        ClientAnswerResult::TooLate => {
            Err(ApiError::gone("too_late", format!("call `{call}` has timed out")))
        }
        // What is another user's is not there.
        ClientAnswerResult::WrongUser | ClientAnswerResult::Unknown => {
            Err(ApiError::not_found("client tool call", call))
        }
    }
}
