//! Ratings of answers: up or down, and why.

use crate::error::{ApiError, ErrorResponse};
use crate::extract::{Json, Path};
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};
use throughline_store::{RatingValue, TurnRating};
use throughline_wire::display_escape;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Longest reason of a rating, in characters.
pub(crate) const RATING_REASON_CHARS_MAX: usize = 2_000;

/// `/v1/turns/{turn_id}/rating`.
pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(rate_answer, delete_rating))
}

/// Value of a rating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RatingChoice {
    /// Good.
    Up,
    /// Bad.
    Down,
}

/// Rating to give.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateAnswer {
    pub value: RatingChoice,
    /// At most 2,000 characters.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Rating of an answer by its user.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct RatingInfo {
    pub value: RatingChoice,
    /// In the user's words. Invisible and bidirectional characters are escaped.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Milliseconds since 1970.
    pub rated_at: i64,
}

impl From<TurnRating> for RatingInfo {
    fn from(rating: TurnRating) -> Self {
        let value = match rating.value {
            RatingValue::Up => RatingChoice::Up,
            RatingValue::Down => RatingChoice::Down,
        };
        let reason = display_escape::escape(&rating.reason).into_owned();
        Self { value, reason, rated_at: rating.rated_at }
    }
}

/// Rate the answer of an ended turn. Another rating replaces the one before.
#[utoipa::path(put, path = "/v1/turns/{turn_id}/rating", tag = "turns", request_body = RateAnswer,
    params(("turn_id" = String, Path, description = "Id of the turn")),
    responses(
        (status = 200, description = "The rating", body = RatingInfo),
        (status = 400, description = "Invalid rating", body = ErrorResponse),
        (status = 404, description = "Turn not found", body = ErrorResponse),
        (status = 409, description = "The turn is still running", body = ErrorResponse),
    ))]
async fn rate_answer(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
    Json(body): Json<RateAnswer>,
) -> Result<axum::Json<RatingInfo>, ApiError> {
    principal.require(KeyScope::Chat)?;
    let reason = body.reason.unwrap_or_default().trim().to_owned();
    if reason.chars().count() > RATING_REASON_CHARS_MAX {
        let message = format!("`reason` has more than {RATING_REASON_CHARS_MAX} characters");
        return Err(ApiError::bad_request("invalid_value", message).param("reason"));
    }
    let value = match body.value {
        RatingChoice::Up => RatingValue::Up,
        RatingChoice::Down => RatingValue::Down,
    };
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let rated_at = i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX);
    let rating = TurnRating { value, reason, rated_at };
    rate(&state, &principal, &turn, Some(rating.clone())).await?;
    state.telemetry.meter().rated(&turn, value);
    Ok(axum::Json(rating.into()))
}

/// Remove the rating of an answer.
#[utoipa::path(delete, path = "/v1/turns/{turn_id}/rating", tag = "turns",
    params(("turn_id" = String, Path, description = "Id of the turn")),
    responses(
        (status = 204, description = "The answer is not rated"),
        (status = 404, description = "Turn not found", body = ErrorResponse),
        (status = 409, description = "The turn is still running", body = ErrorResponse),
    ))]
async fn delete_rating(
    State(state): State<AppState>,
    principal: Principal,
    Path(turn): Path<String>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Chat)?;
    rate(&state, &principal, &turn, None).await?;
    state.telemetry.meter().rating_removed(&turn);
    Ok(StatusCode::NO_CONTENT)
}

async fn rate(
    state: &AppState,
    principal: &Principal,
    turn: &str,
    rating: Option<TurnRating>,
) -> Result<(), ApiError> {
    let user = principal.user.as_str();
    if state.catalog.rate_turn(user, turn, rating.clone()).await? {
        return Ok(());
    }
    if state.catalog.turn(user, turn).await?.is_none() {
        return Err(ApiError::not_found("turn", turn));
    }
    if state.turn_manager.wait_for_finalize(user, turn).await
        && state.catalog.rate_turn(user, turn, rating).await?
    {
        return Ok(());
    }
    let running = ApiError::conflict("turn_running", "the turn is still running");
    Err(running.remedy("rate the answer after the turn has ended"))
}
