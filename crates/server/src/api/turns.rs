//! Turns: start one, get the state of one.

mod list;

use super::events::{SseFrame, canceller_of, event_stream};
use super::rating::RatingInfo;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::{JsonText, Path, parse_json};
use crate::net::ConnectionInfo;
use crate::principal::Principal;
use crate::state::AppState;
use crate::telemetry::trace_parent;
use crate::turn_log::fold_message;
use crate::turn_manager::{ConversationRef, OnDisconnect, ParentRef, StartedTurn, TurnSpec};
use crate::viewer::ResumeFrom;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use throughline::TurnRequest;
use throughline::config::ToolMode;
use throughline_engine::TurnId;
use throughline_store::{IdempotencyKey, LogError, TurnParent};
use throughline_wire::{ClosedStep, Media, Message, UserPart};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest `Idempotency-Key`, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// `/v1/turns`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(start, list::list)).routes(routes!(get))
}

/// Request to start a turn.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StartTurn {
    /// Input of the user.
    pub input: Vec<InputPart>,
    /// Name of the agent that answers; absent for the server's default agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Model as `upstream/model`, instead of the agent's.
    #[serde(default)]
    pub model: Option<String>,
    /// Tool-calling mode: `native`, `text` or `auto`. Absent for the agent's own.
    #[serde(default)]
    pub mode: Option<String>,
    /// Instructions for this turn, appended to the agent's own.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Conversation to continue. Absent, and without `messages`, for a new one.
    #[serde(default)]
    pub conversation_id: Option<String>,
    /// Turn to continue from. Absent for the branch that was continued last; `null` to start a new branch at the beginning of the
    /// conversation.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub parent_id: Option<Option<String>>,
    /// Event of the parent to continue from, instead of its end.
    #[serde(default)]
    pub parent_seq: Option<u64>,
    /// Earlier messages of a turn that stands alone, outside any conversation.
    #[serde(default)]
    pub messages: Option<Vec<PastMessage>>,
    /// Behavior when the last viewer disconnects. Default `continue`.
    #[serde(default)]
    pub on_disconnect: OnDisconnect,
}

/// Part of the user's input.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum InputPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An uploaded picture.
    Image {
        /// Id from `POST /v1/files`.
        file_id: String,
    },
    /// Any other uploaded file.
    File {
        /// Id from `POST /v1/files`.
        file_id: String,
    },
}

/// Earlier message of a turn that stands alone.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PastMessage {
    pub role: PastMessageRole,
    pub content: String,
}

/// Author of a past message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PastMessageRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A started turn.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TurnStarted {
    pub turn_id: String,
    /// Id of the answer's message.
    pub message_id: String,
    /// Id of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// Path of its events.
    pub events_url: String,
}

impl std::convert::From<StartedTurn> for TurnStarted {
    fn from(started: StartedTurn) -> Self {
        let turn_id = started.turn_id.as_str().to_owned();
        Self {
            events_url: format!("/v1/turns/{turn_id}/events"),
            turn_id,
            message_id: started.message_id.as_str().to_owned(),
            conversation_id: started.conversation_id,
        }
    }
}

/// Current state of a turn.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TurnSnapshot {
    /// `running`, or the status at its end: `completed`, `length`, `limit`, `error`, `cancelled`, `interrupted`.
    pub status: String,
    /// Number of its last event: continue with `events?after=<last_seq>`.
    pub last_seq: u64,
    /// The message with its blocks.
    #[schema(value_type = crate::api::openapi::MessageSchema)]
    pub message: throughline::AssistantMessage,
    /// Tokens of all steps.
    #[schema(value_type = crate::api::openapi::UsageSchema)]
    pub usage: Value,
    /// Rating by its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<RatingInfo>,
}

/// Start a turn.
///
/// With `Accept: text/event-stream` the response is the turn's event stream, and `Location` names the turn. For 24 hours,
/// the same `Idempotency-Key` with the same body gives the same turn.
#[utoipa::path(post, path = "/v1/turns", tag = "turns", request_body = StartTurn,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to retry"),
        ("traceparent" = Option<String>, Header, description = "Span of the caller (W3C Trace Context): parent \
         of the turn's trace. An invalid value is ignored")),
    responses(
        (status = 201, description = "Started", body = TurnStarted),
        (status = 200, description = "The event stream if `Accept` requests it, or the turn of an earlier \
         request with this key",
            content((SseFrame = "text/event-stream"), (TurnStarted = "application/json"))),
        (status = 400, description = "Invalid request", body = ErrorResponse),
        (status = 404, description = "Conversation, parent or file not found", body = ErrorResponse),
        (status = 409, description = "A turn of the conversation is running: `turn_id` names it", body = ErrorResponse),
        (status = 413, description = "The input is too large", body = ErrorResponse),
        (status = 422, description = "The idempotency key was used for another request", body = ErrorResponse),
        (status = 429, description = "Too many turns", body = ErrorResponse),
        (status = 503, description = "The server is stopping, or its store is unavailable", body = ErrorResponse),
    ))]
async fn start(
    State(state): State<AppState>,
    principal: Principal,
    connection: Option<Extension<ConnectionInfo>>,
    headers: HeaderMap,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let idempotency = idempotency(&headers, &text)?;
    let body: StartTurn = parse_json(&text)?;
    let mut new = TurnSpec { idempotency, ..new_turn(&state, &principal.user, body).await? };
    new.request.trace_parent = trace_parent(&headers);
    let started = state.turn_manager.start_turn(&principal, new).await?;
    let location = format!("/v1/turns/{}", started.turn_id.as_str());
    if wants_events(&headers) {
        let viewer = state.turn_manager.viewer(&principal, &started.turn_id, ResumeFrom::After(0)).await?;
        let mut response = event_stream(&state.turn_manager, viewer, canceller_of(connection));
        if let Ok(location) = HeaderValue::from_str(&location) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        return Ok(response);
    }
    let status = if started.is_replay { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, [(header::LOCATION, location)], axum::Json(TurnStarted::from(started))).into_response())
}

/// Get the current state of a turn. Its message plus the events after `last_seq` equal all of its events.
#[utoipa::path(get, path = "/v1/turns/{turn_id}", tag = "turns",
    params(("turn_id" = String, Path, description = "Id of the turn")),
    responses(
        (status = 200, description = "The current state", body = TurnSnapshot),
        (status = 404, description = "Not found", body = ErrorResponse),
        (status = 410, description = "Its events have been deleted", body = ErrorResponse),
        (status = 503, description = "The turn has not started yet", body = ErrorResponse),
    ))]
async fn get(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
) -> Result<axum::Json<TurnSnapshot>, ApiError> {
    let turn = TurnId::new(turn);
    state.turn_manager.wait_for_log(&principal.user, &turn).await?;
    let (message, _) = fold_message(&*state.log, &turn).await.map_err(|error| match error {
        LogError::UnknownTurn { .. } => {
            ApiError::gone("events_gone", "the events of this turn have been deleted")
        }
        error => error.into(),
    })?;
    let status = match &message.status {
        None => "running".to_owned(),
        Some(status) => {
            let name = serde_json::to_value(status).map_err(ApiError::internal)?;
            name.as_str().unwrap_or_default().to_owned()
        }
    };
    let usage = serde_json::to_value(message.usage).map_err(ApiError::internal)?;
    let row = state.catalog.turn(&principal.user, turn.as_str()).await?;
    let rating = row.and_then(|row| row.rating).map(RatingInfo::from);
    Ok(axum::Json(TurnSnapshot { status, last_seq: message.seq.0, message, usage, rating }))
}

/// A turn as the turn manager takes it.
///
/// # Errors
/// Input that is invalid, too large or missing.
pub(crate) async fn new_turn(state: &AppState, user: &str, body: StartTurn) -> Result<TurnSpec, ApiError> {
    let mode = body.mode.as_deref().map(parse_mode).transpose()?;
    let conversation = conversation_ref(&body)?;
    let history =
        body.messages.map(|messages| past_messages(messages, state.limits.history_bytes_max)).transpose()?;
    let (input, files) = input_parts(state, user, body.input).await?;
    if let Some(instructions) = &body.instructions
        && instructions.len() > state.limits.message_bytes_max as usize
    {
        return Err(over_limit("instructions", "message_bytes_max", state.limits.message_bytes_max));
    }
    let request = TurnRequest {
        input: input.into(),
        history: history.unwrap_or_default(),
        agent: body.agent,
        model: body.model,
        mode,
        instructions: body.instructions,
        ..TurnRequest::default()
    };
    Ok(TurnSpec { request, conversation, files, on_disconnect: body.on_disconnect, ..TurnSpec::default() })
}

fn parse_mode(name: &str) -> Result<ToolMode, ApiError> {
    ToolMode::from_name(name).ok_or_else(|| {
        let message = format!("there is no mode `{name}`; there are native, text and auto");
        ApiError::bad_request("unknown_value", message).param("mode")
    })
}

fn conversation_ref(body: &StartTurn) -> Result<ConversationRef, ApiError> {
    let wrong = |message, param| Err(ApiError::bad_request("contradiction", message).param(param));
    let parent = match (&body.parent_id, body.parent_seq) {
        (None, None) => ParentRef::Leaf,
        (Some(None), None) => ParentRef::Root,
        (Some(Some(turn)), seq) => ParentRef::Turn(TurnParent { turn_id: turn.clone(), seq }),
        (None | Some(None), Some(_)) => {
            return wrong("`parent_seq` requires `parent_id`", "parent_seq");
        }
    };
    match (&body.conversation_id, &body.messages) {
        (Some(_), Some(_)) => wrong("`messages` and `conversation_id` exclude each other", "messages"),
        (Some(id), None) => Ok(ConversationRef::Existing { conversation_id: id.clone(), parent }),
        (None, _) if parent != ParentRef::Leaf => {
            wrong("`parent_id` requires `conversation_id`", "conversation_id")
        }
        (None, Some(_)) => Ok(ConversationRef::Standalone),
        (None, None) => Ok(ConversationRef::New),
    }
}

fn past_messages(messages: Vec<PastMessage>, bytes_max: u32) -> Result<Vec<Message>, ApiError> {
    let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
    if bytes > bytes_max as usize {
        return Err(over_limit("messages", "history_bytes_max", bytes_max));
    }
    let of = |message: PastMessage| match message.role {
        PastMessageRole::User => Message::User(vec![UserPart::Text { text: message.content }]),
        PastMessageRole::Assistant => {
            Message::Step(ClosedStep { text: message.content, ..ClosedStep::default() })
        }
    };
    Ok(messages.into_iter().map(of).collect())
}

/// Input parts with their files, and the ids of those files.
///
/// # Errors
/// Too little or too much input; a file is missing or is no picture.
pub(crate) async fn input_parts(
    state: &AppState,
    user: &str,
    input: Vec<InputPart>,
) -> Result<(Vec<UserPart>, Vec<String>), ApiError> {
    let bytes: usize = input
        .iter()
        .map(|part| match part {
            InputPart::Text { text } => text.len(),
            InputPart::Image { .. } | InputPart::File { .. } => 0,
        })
        .sum();
    if bytes > state.limits.message_bytes_max as usize {
        return Err(over_limit("input", "message_bytes_max", state.limits.message_bytes_max));
    }
    let nothing = |part: &InputPart| matches!(part, InputPart::Text { text } if text.trim().is_empty());
    if input.iter().all(nothing) {
        return Err(ApiError::bad_request("empty_input", "the input is empty").param("input"));
    }
    let (mut parts, mut files) = (Vec::with_capacity(input.len()), Vec::new());
    for part in input {
        parts.push(match part {
            InputPart::Text { text } => UserPart::Text { text },
            InputPart::Image { file_id } => {
                let (_, media) = find_file(state, user, &file_id).await?;
                if !media.media_type.starts_with("image/") {
                    let message = format!("file `{file_id}` is no picture but {}", media.media_type);
                    let error = ApiError::unprocessable("not_an_image", message).param("file_id");
                    return Err(error.remedy("send it as {\"type\": \"file\"}"));
                }
                files.push(file_id);
                UserPart::Image(media)
            }
            InputPart::File { file_id } => {
                let (name, media) = find_file(state, user, &file_id).await?;
                files.push(file_id);
                UserPart::File { name, media }
            }
        });
    }
    Ok((parts, files))
}

async fn find_file(state: &AppState, user: &str, id: &str) -> Result<(String, Media), ApiError> {
    let not_found = || ApiError::not_found("file", id).param("file_id");
    let row = state.catalog.file(user, id).await?.ok_or_else(not_found)?;
    let media = state.media.of_file(&row).await.map_err(ApiError::internal)?.ok_or_else(not_found)?;
    Ok((row.name, media))
}

pub(crate) fn over_limit(param: &str, limit: &'static str, max: u32) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "over_limit",
        format!("`{param}` exceeds the limit `{limit}` of {max}"),
    )
    .param(param)
    .remedy(format!("raise `{limit}` of [server.limits], or upload it as a file: POST /v1/files"))
}

fn wants_events(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// The request's key, with a hash of its body.
fn idempotency(headers: &HeaderMap, body: &[u8]) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let invalid = || {
        let message = format!("`Idempotency-Key` has 1 to {KEY_BYTES_MAX} visible characters");
        ApiError::bad_request("invalid_value", message).param("Idempotency-Key")
    };
    let key = key.to_str().map_err(|_| invalid())?.trim();
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return Err(invalid());
    }
    let body_hash = blake3::hash(body).to_hex().to_string();
    Ok(Some(IdempotencyKey { key: key.to_owned(), body_hash }))
}

/// A field that may be absent, `null` or there.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}
