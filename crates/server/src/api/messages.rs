//! What the user says while a turn runs: queued, listed, taken back. // R: T14

use super::turns::{InputPart, parts};
use crate::error::{ApiError, ErrorBody};
use crate::extract::{Json, Path};
use crate::hub::Standing;
use crate::principal::Principal;
use crate::state::AppState;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline::{Said, TakenBack, TurnControl, When};
use throughline_engine::TurnId;
use throughline_wire::UserPart;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/turns/{turn_id}/messages`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(say, list)).routes(routes!(take_back))
}

/// Something to be said to a running turn.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// What.
    pub input: Vec<InputPart>,
    /// `next_step` (default): the model answers it in this turn. `after_turn`: the next turn begins with it.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub when: When,
    /// An id of one's own, unique in the turn: saying it twice is saying it once.
    #[serde(default)]
    pub id: Option<String>,
}

/// A message that waits.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Queued {
    /// By which it can be taken back.
    pub id: String,
    /// Its parts.
    #[schema(value_type = Vec<Object>)]
    pub input: Vec<UserPart>,
    /// What it waits for.
    #[schema(value_type = String)]
    pub when: When,
}

/// Messages that wait, oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct QueuedMessages {
    /// Those.
    pub messages: Vec<Queued>,
}

/// A message was taken.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SaidSo {
    /// By which it can be taken back, and found in the turn's events.
    pub id: String,
}

/// Say something while the turn runs.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/messages", tag = "turns", request_body = Say,
    params(("turn_id" = String, Path, description = "Which turn")),
    responses(
        (status = 202, description = "It waits for its time; a `user_message` event tells when it is taken in", body = SaidSo),
        (status = 404, description = "There is no such turn", body = ErrorBody),
        (status = 409, description = "The turn is over: begin another one with it", body = ErrorBody),
        (status = 429, description = "Too many wait already", body = ErrorBody),
        (status = 503, description = "Another server runs the turn: `owner` says which", body = ErrorBody),
    ))]
async fn say(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
    Json(body): Json<Say>,
) -> Result<(StatusCode, axum::Json<SaidSo>), ApiError> {
    let control = running(&state, &principal, &turn).await?;
    let input = parts_for(&state, &principal.user, &turn, body.input).await?;
    let said =
        said(&state, &principal.user, (&control, &TurnId::new(turn)), input, body.when, body.id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(said)))
}

/// What is said to a turn that runs; its files stay as long as the turn does. // R: T12
pub async fn parts_for(
    state: &AppState,
    user: &str,
    turn: &str,
    input: Vec<InputPart>,
) -> Result<Vec<UserPart>, ApiError> {
    let (input, files) = parts(state, user, input).await?;
    for file in files {
        state.catalog.use_file(user, turn, &file).await?;
    }
    Ok(input)
}

/// Says something to a turn that runs.
pub async fn said(
    state: &AppState,
    user: &str,
    (control, turn): (&TurnControl, &TurnId),
    input: Vec<UserPart>,
    when: When,
    id: Option<String>,
) -> Result<SaidSo, ApiError> {
    match state.hub.say(user, control, turn, id, input, when).await? {
        Said::Queued(id) => Ok(SaidSo { id: id.as_str().to_owned() }),
        Said::Full => Err(ApiError::too_many("too_many_messages", "too many messages wait already", 1)),
        Said::TurnIsOver => Err(over()),
    }
}

/// What waits to be taken in.
#[utoipa::path(get, path = "/v1/turns/{turn_id}/messages", tag = "turns",
    params(("turn_id" = String, Path, description = "Which turn")),
    responses(
        (status = 200, description = "Oldest first", body = QueuedMessages),
        (status = 404, description = "There is no such turn", body = ErrorBody),
        (status = 503, description = "Another server runs the turn: `owner` says which", body = ErrorBody),
    ))]
async fn list(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
) -> Result<axum::Json<QueuedMessages>, ApiError> {
    let queued = match state.hub.control(&principal.user, &TurnId::new(turn)).await? {
        Standing::Running(control) => control.queued(),
        Standing::Ended(_) => Vec::new(),
    };
    let queued = queued.into_iter().map(|message| Queued {
        id: message.id.as_str().to_owned(),
        input: message.input,
        when: message.when,
    });
    Ok(axum::Json(QueuedMessages { messages: queued.collect() }))
}

/// Take a message back that was not taken in yet.
#[utoipa::path(delete, path = "/v1/turns/{turn_id}/messages/{message_id}", tag = "turns",
    params(("turn_id" = String, Path, description = "Which turn"), ("message_id" = String, Path, description = "Which message")),
    responses(
        (status = 200, description = "It will not be taken in; these are its parts", body = Object),
        (status = 404, description = "There is no such turn", body = ErrorBody),
        (status = 409, description = "It was taken in, or never sent", body = ErrorBody),
        (status = 503, description = "Another server runs the turn: `owner` says which", body = ErrorBody),
    ))]
async fn take_back(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, message)): Path<(String, String)>,
) -> Result<axum::Json<serde_json::Value>, ApiError> {
    let control = running(&state, &principal, &turn).await?;
    match state.hub.take_back(&principal.user, &control, &TurnId::new(turn), &message).await? {
        TakenBack::Yes(input) => Ok(axum::Json(serde_json::json!({ "input": input }))),
        TakenBack::TooLate => Err(ApiError::conflict("too_late", "it was taken in, or never sent")),
    }
}

async fn running(state: &AppState, principal: &Principal, turn: &str) -> Result<TurnControl, ApiError> {
    match state.hub.control(&principal.user, &TurnId::new(turn)).await? {
        Standing::Running(control) if !control.is_over() => Ok(control),
        Standing::Running(_) | Standing::Ended(_) => Err(over()),
    }
}

fn over() -> ApiError {
    ApiError::conflict("turn_is_over", "the turn is over").remedy("begin another one with it: POST /v1/turns")
}
