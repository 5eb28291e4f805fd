//! `GET /metrics`, and `POST /v1/telemetry/frames` for what only the page can see. R: O1

use super::meter::StoreMetrics;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::Json;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Frames that a screen can show in a second: more late ones are not believed.
pub const FRAMES_PER_SECOND_MAX: u64 = 60;
/// Longest window of one report, in milliseconds.
const WINDOW_MS_MAX: u64 = 3_600_000;
/// The Prometheus text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Function that reads the metrics of the store.
pub type StoreMetricsFn = Arc<dyn Fn() -> StoreMetrics + Send + Sync>;

/// `/metrics` and `/v1/telemetry/frames`.
pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get_metrics)).routes(routes!(report_frames))
}

/// Get metrics in the Prometheus text format.
#[utoipa::path(get, path = "/metrics", tag = "server", responses(
    (status = 200, description = "The text format, version 0.0.4", content_type = "text/plain", body = String),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
))]
async fn get_metrics(principal: Principal, State(state): State<AppState>) -> Result<Response, ApiError> {
    principal.require(KeyScope::Admin)?;
    let meter = state.telemetry.meter();
    if let Some(figures) = &state.store_metrics {
        meter.store(figures());
    }
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], meter.render()).into_response())
}

/// Report of a page about its own drawing.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FrameReport {
    /// Frames that came late.
    #[schema(minimum = 0)]
    jank_frames: i64,
    /// Over how long, in milliseconds.
    #[schema(minimum = 0)]
    window_ms: i64,
}

/// Report late frames of a page.
#[utoipa::path(post, path = "/v1/telemetry/frames", tag = "server", request_body = FrameReport, responses(
    (status = 204, description = "Counted, up to a plausible maximum"),
    (status = 400, description = "Invalid report", body = ErrorResponse),
))]
async fn report_frames(
    principal: Principal,
    State(state): State<AppState>,
    Json(report): Json<FrameReport>,
) -> Result<StatusCode, ApiError> {
    principal.require(KeyScope::Chat)?;
    let counted = |name: &str, value: i64| {
        u64::try_from(value).map_err(|_| {
            ApiError::bad_request("invalid_value", format!("`{name}` is less than nothing")).param(name)
        })
    };
    let frames = counted("jank_frames", report.jank_frames)?;
    let window_ms = counted("window_ms", report.window_ms)?.min(WINDOW_MS_MAX);
    let believable = window_ms.saturating_mul(FRAMES_PER_SECOND_MAX) / 1_000;
    state.telemetry.meter().jank_frames(frames.min(believable));
    Ok(StatusCode::NO_CONTENT)
}
