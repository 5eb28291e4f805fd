//! Liveness and readiness. Neither reveals user data, so neither needs a key.

use crate::net::ConnectionInfo;
use crate::state::AppState;
use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use throughline_store::LogError;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(check_health)).routes(routes!(check_readiness))
}

/// Health of the server.
#[derive(Debug, Serialize, ToSchema)]
struct HealthStatus {
    /// `ok`, `draining`, `no_room` (turns that run can finish) or `store_unavailable`.
    status: &'static str,
    /// Why it takes no turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Check that the server process is alive.
#[utoipa::path(get, path = "/healthz", tag = "server", security(()), responses((status = 200, description = "Healthy", body = HealthStatus)))]
async fn check_health() -> axum::Json<HealthStatus> {
    axum::Json(HealthStatus { status: "ok", why: None })
}

/// Check that the server accepts new turns: reads from and writes to the store at most once a second.
#[utoipa::path(get, path = "/readyz", tag = "server", security(()), responses(
    (status = 200, description = "Healthy", body = HealthStatus),
    (status = 503, description = "Not ready", body = HealthStatus),
))]
async fn check_readiness(
    State(state): State<AppState>,
    connection: Option<Extension<ConnectionInfo>>,
) -> Response {
    // No request is answered before the turns of the last start are resumed, so that state cannot occur here.
    let draining = connection.is_some_and(|Extension(connection)| connection.is_draining());
    let (status, why) = if draining {
        ("draining", None)
    } else {
        match state.readiness.check(|| state.log.probe()).await {
            Ok(()) => ("ok", None),
            Err(LogError::NoRoom { why }) => ("no_room", Some(why)),
            // The error may name files: it is logged, and the public answer leaves it out.
            Err(_) => ("store_unavailable", None),
        }
    };
    let code = match status {
        "ok" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, axum::Json(HealthStatus { status, why })).into_response()
}
