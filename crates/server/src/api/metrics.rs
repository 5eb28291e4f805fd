//! `GET /metrics`, and `POST /v1/telemetry/frames` for measurements of the page.

use super::page::ListPage;
use crate::error::{ApiError, ErrorResponse};
use crate::extract::Json;
use crate::principal::{KeyScope, Principal};
use crate::state::AppState;
use crate::telemetry::ThresholdInfo;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Frames that a screen can show in a second: more late ones are not believed.
const FRAMES_PER_SECOND_MAX: u64 = 60;
/// Longest window of one report, in milliseconds.
const WINDOW_MS_MAX: u64 = 3_600_000;
/// The Prometheus text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `/metrics`, `/v1/metrics/thresholds` and `/v1/telemetry/frames`.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(get_metrics))
        .routes(routes!(list_thresholds))
        .routes(routes!(report_frames))
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
    if let Some(bytes) = std::fs::read_to_string("/proc/self/status").ok().and_then(|text| resident(&text)) {
        meter.resident_memory(bytes);
    }
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], meter.render()).into_response())
}

/// Bytes in RAM of a process, from the text of its `status` in `/proc` (proc(5)).
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// List the thresholds for streaming tool calls, each with its value lately and whether it holds. What happened before the last
/// start of this server does not count.
#[utoipa::path(get, path = "/v1/metrics/thresholds", tag = "server", responses(
    (status = 200, description = "All thresholds", body = ListPage<ThresholdInfo>),
    (status = 403, description = "The key lacks the scope `admin`", body = ErrorResponse),
))]
async fn list_thresholds(
    principal: Principal,
    State(state): State<AppState>,
) -> Result<axum::Json<ListPage<ThresholdInfo>>, ApiError> {
    principal.require(KeyScope::Admin)?;
    Ok(axum::Json(ListPage::complete(state.telemetry.meter().thresholds())))
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
