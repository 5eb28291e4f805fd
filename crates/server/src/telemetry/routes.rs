//! `GET /metrics`, and `POST /v1/telemetry/frames` for what only the page can see. R: O1

use super::meter::StoreFigures;
use super::recorder::Telemetry;
use crate::error::ApiError;
use crate::extract::Json;
use crate::principal::{Principal, Scope};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{StatusCode, header};
use serde::Deserialize;
use std::sync::Arc;

/// Frames that a screen can show in a second: more late ones are not believed.
pub const FRAMES_PER_SECOND_MAX: u64 = 60;
/// Longest window of one report, in milliseconds.
const WINDOW_MS_MAX: u64 = 3_600_000;
/// The Prometheus text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the store says of itself, when somebody looks.
pub type Figures = Arc<dyn Fn() -> StoreFigures + Send + Sync>;

#[derive(Clone)]
struct Told {
    telemetry: Arc<Telemetry>,
    store: Option<Figures>,
}

/// The routes, to be merged into a server's own behind its gate.
pub fn routes(telemetry: Arc<Telemetry>, store: Option<Figures>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/v1/telemetry/frames", post(frames))
        .with_state(Told { telemetry, store })
}

async fn metrics(principal: Principal, State(told): State<Told>) -> Result<Response, ApiError> {
    principal.need(Scope::Admin)?;
    if let Some(store) = &told.store {
        told.telemetry.meter().store(store());
    }
    Ok(([(header::CONTENT_TYPE, PROMETHEUS)], told.telemetry.meter().render()).into_response())
}

/// What a page reports about its own drawing.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FramesSeen {
    /// Frames that came late.
    jank_frames: u64,
    /// Over how long, in milliseconds.
    window_ms: u64,
}

async fn frames(
    principal: Principal,
    State(told): State<Told>,
    Json(seen): Json<FramesSeen>,
) -> Result<StatusCode, ApiError> {
    principal.need(Scope::Chat)?;
    let window_ms = seen.window_ms.min(WINDOW_MS_MAX);
    let believable = window_ms.saturating_mul(FRAMES_PER_SECOND_MAX) / 1_000;
    told.telemetry.meter().jank_frames(seen.jank_frames.min(believable));
    Ok(StatusCode::NO_CONTENT)
}
