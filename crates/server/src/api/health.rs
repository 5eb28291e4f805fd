//! Whether the server lives, and whether it takes new work. Neither tells anything of anybody, so neither takes a key. // R: O2

use crate::net::Connection;
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
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz))
}

/// How it is.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// `ok`, `draining`, `no_room` (turns that run can finish) or `store_unavailable`.
    status: &'static str,
    /// Why it takes no turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Whether the server lives.
#[utoipa::path(get, path = "/healthz", tag = "server", security(()), responses((status = 200, description = "It does", body = Health)))]
async fn healthz() -> axum::Json<Health> {
    axum::Json(Health { status: "ok", why: None })
}

/// Whether the server takes new turns.
#[utoipa::path(get, path = "/readyz", tag = "server", security(()), responses(
    (status = 200, description = "It does", body = Health),
    (status = 503, description = "No more", body = Health),
))]
async fn readyz(State(state): State<AppState>, connection: Option<Extension<Connection>>) -> Response {
    // Nothing is answered before the turns of the last start run again, so there is no state for that.
    let draining = connection.is_some_and(|Extension(connection)| connection.is_draining());
    let (status, why) = match (draining, state.log.takes_new_turns()) {
        (true, _) => ("draining", None),
        (false, Ok(())) => ("ok", None),
        (false, Err(LogError::NoRoom { why })) => ("no_room", Some(why)),
        // What it says may name files: it is for the log, and this is for everybody.
        (false, Err(_)) => ("store_unavailable", None),
    };
    let code = match status {
        "ok" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, axum::Json(Health { status, why })).into_response()
}
