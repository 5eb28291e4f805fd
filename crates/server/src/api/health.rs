//! Whether the server lives, and whether it takes new work. Neither tells anything of anybody, so neither takes a key. // R: O2

use crate::net::Connection;
use crate::state::AppState;
use axum::Extension;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(super) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz))
}

/// How it is.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// `ok`, `draining`.
    status: &'static str,
}

/// Whether the server lives.
#[utoipa::path(get, path = "/healthz", tag = "server", security(()), responses((status = 200, description = "It does", body = Health)))]
async fn healthz() -> axum::Json<Health> {
    axum::Json(Health { status: "ok" })
}

/// Whether the server takes new turns.
#[utoipa::path(get, path = "/readyz", tag = "server", security(()), responses(
    (status = 200, description = "It does", body = Health),
    (status = 503, description = "No more", body = Health),
))]
async fn readyz(connection: Option<Extension<Connection>>) -> Response {
    // Nothing is answered before the turns of the last start run again, so there is no third state.
    let (status, word) = match connection.is_some_and(|Extension(connection)| connection.is_draining()) {
        false => (StatusCode::OK, "ok"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
    };
    (status, axum::Json(Health { status: word })).into_response()
}
