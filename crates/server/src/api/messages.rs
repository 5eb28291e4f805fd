//! Messages that users send while a turn runs: send, list, retract.

use super::turns::{InputPart, input_parts};
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::principal::Principal;
use crate::state::AppState;
use crate::turn_log;
use crate::turn_manager::TurnLookup;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline::{MessageTiming, RetractResult, SendResult, TurnControl};
use throughline_engine::TurnId;
use throughline_wire::UserPart;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// `/v1/turns/{turn_id}/messages`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(send_message, list_messages)).routes(routes!(retract_message))
}

/// Message to a running turn.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendMessage {
    /// Content of the message.
    pub input: Vec<InputPart>,
    /// `next_step` (default): the model answers it in this turn. `after_turn`: the next turn begins with it.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub when: MessageTiming,
    /// An id of one's own, unique in the turn: saying it twice is saying it once.
    #[serde(default)]
    pub id: Option<String>,
}

/// A message that waits.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct QueuedMessageInfo {
    /// By which it can be taken back.
    pub id: String,
    /// Its parts.
    #[schema(value_type = Vec<Object>)]
    pub input: Vec<UserPart>,
    /// Point at which the message is delivered.
    #[schema(value_type = String)]
    pub when: MessageTiming,
}

/// Messages that wait, oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct QueuedMessageList {
    /// Those.
    pub messages: Vec<QueuedMessageInfo>,
}

/// A message was taken.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct SentMessage {
    /// By which it can be taken back, and found in the turn's events.
    pub id: String,
}

/// Send a message to a running turn.
#[utoipa::path(post, path = "/v1/turns/{turn_id}/messages", tag = "turns", request_body = SendMessage,
    params(("turn_id" = String, Path, description = "Id of the turn")),
    responses(
        (status = 202, description = "Queued; a `user_message` event reports the delivery", body = SentMessage),
        (status = 404, description = "Turn not found", body = ErrorResponse),
        (status = 409, description = "The turn has ended; start a new one", body = ErrorResponse),
        (status = 429, description = "Too many queued messages", body = ErrorResponse),
        (status = 503, description = "Another server runs the turn and took no notice: `owner` names it", body = ErrorResponse),
    ))]
async fn send_message(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
    Json(body): Json<SendMessage>,
) -> Result<(StatusCode, axum::Json<SentMessage>), ApiError> {
    let control = running_turn(&state, &principal, &turn).await?;
    let input = message_input(&state, &principal.user, &turn, body.input).await?;
    let sent =
        queue_message(&state, &principal.user, (&control, &TurnId::new(turn)), input, body.when, body.id)
            .await?;
    Ok((StatusCode::ACCEPTED, axum::Json(sent)))
}

/// Input of a message to a running turn; its files stay as long as the turn does.
pub(crate) async fn message_input(
    state: &AppState,
    user: &str,
    turn: &str,
    input: Vec<InputPart>,
) -> Result<Vec<UserPart>, ApiError> {
    let (input, files) = input_parts(state, user, input).await?;
    for file in files {
        state.catalog.record_file_use(user, turn, &file).await?;
    }
    Ok(input)
}

/// Queues a message for a running turn.
pub(crate) async fn queue_message(
    state: &AppState,
    user: &str,
    (control, turn): (&TurnControl, &TurnId),
    input: Vec<UserPart>,
    when: MessageTiming,
    id: Option<String>,
) -> Result<SentMessage, ApiError> {
    match state.turn_manager.send(user, control, turn, id, input, when).await? {
        SendResult::Queued(id) => Ok(SentMessage { id: id.as_str().to_owned() }),
        SendResult::QueueFull => {
            Err(ApiError::too_many("too_many_messages", "too many messages are queued", 1))
        }
        _ => Err(lost_turn(state, turn).await),
    }
}

/// List queued messages.
#[utoipa::path(get, path = "/v1/turns/{turn_id}/messages", tag = "turns",
    params(("turn_id" = String, Path, description = "Id of the turn")),
    responses(
        (status = 200, description = "Oldest first", body = QueuedMessageList),
        (status = 404, description = "Turn not found", body = ErrorResponse),
        (status = 503, description = "Another server runs the turn and took no notice: `owner` names it", body = ErrorResponse),
    ))]
async fn list_messages(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
) -> Result<axum::Json<QueuedMessageList>, ApiError> {
    let queued = match state.turn_manager.lookup(&principal.user, &TurnId::new(turn)).await? {
        TurnLookup::Running(control) => control.queued(),
        TurnLookup::NotRunning | TurnLookup::Ended(_) => Vec::new(),
    };
    let queued = queued.into_iter().map(|message| QueuedMessageInfo {
        id: message.id.as_str().to_owned(),
        input: message.input,
        when: message.when,
    });
    Ok(axum::Json(QueuedMessageList { messages: queued.collect() }))
}

/// Retract a queued message.
#[utoipa::path(delete, path = "/v1/turns/{turn_id}/messages/{message_id}", tag = "turns",
    params(("turn_id" = String, Path, description = "Id of the turn"), ("message_id" = String, Path, description = "Id of the message")),
    responses(
        (status = 200, description = "Retracted; returns its parts", body = Object),
        (status = 404, description = "Turn not found", body = ErrorResponse),
        (status = 409, description = "Already delivered, or never sent", body = ErrorResponse),
        (status = 503, description = "Another server runs the turn and took no notice: `owner` names it", body = ErrorResponse),
    ))]
async fn retract_message(
    State(state): State<AppState>,
    principal: Principal,
    Path((turn, message)): Path<(String, String)>,
) -> Result<axum::Json<serde_json::Value>, ApiError> {
    let control = running_turn(&state, &principal, &turn).await?;
    match state.turn_manager.retract(&principal.user, &control, &TurnId::new(turn), &message).await? {
        RetractResult::Retracted(input) => Ok(axum::Json(serde_json::json!({ "input": input }))),
        RetractResult::TooLate => {
            Err(ApiError::conflict("too_late", "it was already delivered, or never existed"))
        }
    }
}

/// A turn that runs.
pub(crate) async fn running_turn(
    state: &AppState,
    principal: &Principal,
    turn: &str,
) -> Result<TurnControl, ApiError> {
    let turn = TurnId::new(turn);
    let turn_state = state.turn_manager.lookup(&principal.user, &turn).await?;
    let control = turn_state.into_control(&turn)?.ok_or_else(turn_ended)?;
    if control.is_over() { Err(lost_turn(state, &turn).await) } else { Ok(control) }
}

/// The error for a turn that takes no messages any more.
async fn lost_turn(state: &AppState, turn: &TurnId) -> ApiError {
    turn_log::check_end(&*state.log, turn).await.map_or_else(|error| error, |()| turn_ended())
}

fn turn_ended() -> ApiError {
    ApiError::conflict("turn_is_over", "the turn has ended")
        .remedy("begin another one with it: POST /v1/turns")
}
