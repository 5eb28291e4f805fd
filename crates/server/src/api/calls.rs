//! Calls of a running turn: stop one, or answer one that the caller was asked to run. // R: L2, T8

use crate::error::{ApiError, ErrorBody};
use crate::extract::{Json, Path};
use crate::hub::Standing;
use crate::principal::Principal;
use crate::state::AppState;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::engine::{ClientAnswer, ClientStatus};
use throughline::{CallCancelled, ClientAnswered};
use throughline_engine::TurnId;
use throughline_wire::CallId;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/turns/{turn_id}/calls/…`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(cancel_call)).routes(routes!(answer_call))
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
pub struct CallTold {
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
        (status = 202, description = "It ends, or has ended before; its `tool_result` tells how", body = CallTold),
        (status = 404, description = "There is no such turn or call", body = ErrorBody),
        (status = 503, description = "Another server runs the turn: `owner` says which", body = ErrorBody),
    ))]
async fn cancel_call(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, call)): Path<(String, String)>,
) -> Result<(StatusCode, axum::Json<CallTold>), ApiError> {
    let standing = state.hub.control(&principal.user, &TurnId::new(turn)).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(cancelled(standing, &call).await?)))
}

/// Stops one call of a turn, whether it runs or is over.
pub async fn cancelled(standing: Standing, call: &str) -> Result<CallTold, ApiError> {
    let cancelled = match standing {
        Standing::Running(control) => control.cancel_call(CallId::new(call)).await,
        Standing::Ended(_) => CallCancelled::TurnIsOver,
    };
    match cancelled {
        CallCancelled::Yes => Ok(CallTold { status: "cancelling" }),
        CallCancelled::Ended | CallCancelled::TurnIsOver => Ok(CallTold { status: "ended" }),
        CallCancelled::Unknown => Err(ApiError::not_found("call", call)),
    }
}

/// Tell how a call ended that you were asked to run. The first answer in time counts.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/calls/{tool_id}/result", tag = "turns", request_body = CallResult,
    params(("turn_id" = String, Path, description = "Which turn"), ("tool_id" = String, Path, description = "Which call")),
    responses(
        (status = 200, description = "It is the call's outcome", body = CallTold),
        (status = 404, description = "There is no such turn, or no client was asked to run such a call", body = ErrorBody),
        (status = 409, description = "The call has an outcome already", body = ErrorBody),
        (status = 410, description = "The call's time is over", body = ErrorBody),
        (status = 503, description = "Another server runs the turn: `owner` says which", body = ErrorBody),
    ))]
async fn answer_call(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, call)): Path<(String, String)>,
    Json(body): Json<CallResult>,
) -> Result<axum::Json<CallTold>, ApiError> {
    state.hub.control(&principal.user, &TurnId::new(turn)).await?;
    let id = CallId::new(call.as_str());
    told(state.app.answer_client_call(Some(principal.user), &id, body.into_answer()).await, &call)
        .map(axum::Json)
}

/// What an answer is told.
pub fn told(answered: ClientAnswered, call: &str) -> Result<CallTold, ApiError> {
    match answered {
        ClientAnswered::Accepted => Ok(CallTold { status: "accepted" }),
        ClientAnswered::AlreadyClosed => {
            Err(ApiError::conflict("call_ended", format!("call `{call}` has an outcome already")))
        }
        ClientAnswered::TooLate => {
            Err(ApiError::gone("too_late", format!("the time of call `{call}` is over")))
        }
        // What is another user's is not there.
        ClientAnswered::NotYours | ClientAnswered::Unknown => {
            Err(ApiError::not_found("call that a client was asked to run", call))
        }
    }
}
