//! Turns: start one, look at one, stop one. // R: E2

use crate::error::{ApiError, ErrorBody};
use crate::extract::{Json, Path};
use crate::hub::{NewTurn, OnDisconnect, Standing};
use crate::principal::Principal;
use crate::state::AppState;
use crate::viewer::message;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline::TurnRequest;
use throughline_engine::TurnId;
use throughline_wire::UserPart;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/turns`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(start)).routes(routes!(get)).routes(routes!(cancel))
}

/// A turn to be started.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartTurn {
    /// What the user says.
    pub input: Vec<InputPart>,
    /// Who answers; absent = the server's own agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// `upstream/model` in place of the agent's.
    #[serde(default)]
    pub model: Option<String>,
    /// What happens when the last viewer is gone. Default `continue`.
    #[serde(default)]
    pub on_disconnect: OnDisconnect,
}

/// A part of what the user says.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum InputPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
}

/// A turn that runs now.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TurnStarted {
    /// Which turn.
    pub turn_id: String,
    /// The message that it writes.
    pub message_id: String,
    /// Where its events are.
    pub events_url: String,
}

/// A turn as it stands.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Snapshot {
    /// `running`, or how it ended: `completed`, `length`, `limit`, `error`, `cancelled`, `interrupted`.
    pub status: String,
    /// The last event that is in it: go on with `events?after=<last_seq>`.
    pub last_seq: u64,
    /// The message with its blocks: the fold of the events.
    #[schema(value_type = Object)]
    pub message: throughline::Message,
    /// Tokens of all steps.
    #[schema(value_type = Object)]
    pub usage: Value,
}

/// Start a turn.
#[utoipa::path(post, path = "/v1/turns", tag = "turns", request_body = StartTurn, responses(
    (status = 201, description = "It runs", body = TurnStarted),
    (status = 400, description = "It cannot be begun like this", body = ErrorBody),
))]
async fn start(
    State(state): State<AppState>,
    principal: Principal,
    Json(body): Json<StartTurn>,
) -> Result<Response, ApiError> {
    let input: Vec<UserPart> = body
        .input
        .into_iter()
        .map(|part| match part {
            InputPart::Text { text } => UserPart::Text { text },
        })
        .collect();
    let request =
        TurnRequest { input: input.into(), agent: body.agent, model: body.model, ..TurnRequest::default() };
    let started = state.hub.start(&principal, NewTurn { request, on_disconnect: body.on_disconnect }).await?;
    let events_url = format!("/v1/turns/{}/events", started.turn_id.as_str());
    let body = TurnStarted {
        turn_id: started.turn_id.as_str().to_owned(),
        message_id: started.message_id.as_str().to_owned(),
        events_url,
    };
    let location = format!("/v1/turns/{}", body.turn_id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(body)).into_response())
}

/// A turn as it stands now.
#[utoipa::path(get, path = "/v1/turns/{turn_id}", tag = "turns", params(("turn_id" = String, Path, description = "Which turn")), responses(
    (status = 200, description = "As it stands", body = Snapshot),
    (status = 404, description = "There is none", body = ErrorBody),
))]
async fn get(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
) -> Result<axum::Json<Snapshot>, ApiError> {
    let turn = TurnId::new(turn);
    state.hub.control(&principal.user, &turn).await?;
    let (message, _) = message(&*state.log, &turn).await?;
    let status = match &message.status {
        None => "running".to_owned(),
        Some(status) => serde_json::to_value(status)
            .ok()
            .and_then(|name| name.as_str().map(str::to_owned))
            .unwrap_or_default(),
    };
    let usage = serde_json::to_value(message.usage).map_err(ApiError::internal)?;
    Ok(axum::Json(Snapshot { status, last_seq: message.seq.0, message, usage }))
}

/// Stop a turn. What is finished stays; a second time: without waiting for tools to say how they ended.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/cancel", tag = "turns", params(("turn_id" = String, Path, description = "Which turn")), responses(
    (status = 202, description = "It will stop, or has ended before; its events tell which"),
    (status = 404, description = "There is none", body = ErrorBody),
))]
async fn cancel(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
) -> Result<StatusCode, ApiError> {
    if let Standing::Running(control) = state.hub.control(&principal.user, &TurnId::new(turn)).await? {
        // If it ended a moment ago, that is what its events say.
        let _ = control.cancel().await;
    }
    Ok(StatusCode::ACCEPTED)
}
